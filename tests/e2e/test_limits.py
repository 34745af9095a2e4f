"""Shows that one greedy caller, one slow caller or a crowd takes from the others
neither the gateway's descriptors, its memory, its connections nor its time: who asks
for too much is told so, and whoever does not is served."""
import contextlib
import http.client
import resource
import signal
import socket

from harness import check, secret
from harness.secret import new_key
from harness.wire import Wire, request_bytes


def idle_sockets(address, count, stack):
    """Connections that send nothing, as many as can be made."""
    sockets = []
    for _ in range(count):
        sock = socket.socket()
        stack.callback(sock.close)
        with contextlib.suppress(OSError):
            sock.connect(address)
            sockets.append(sock)
    return sockets


def admin_says(gateway, path="/healthz"):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.admin_port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


# ---- descriptors ----

def test_idle_connections_on_the_admin_listener(site):
    """3,000 connections that ask for nothing do not keep a health check out."""
    one = site()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with contextlib.ExitStack() as stack:
            idle_sockets(("127.0.0.1", one.gateway.admin_port), 3000, stack)
            assert admin_says(one.gateway) == (200, b"ok\n")
            assert one.gateway.post().status == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_descriptors_run_out(site):
    """A crowd on the main listener uses up the descriptors for clients, and no others:
    health and metrics answer, the log has a line, the metric counts."""
    one = site({"loops": 1}, wrap=["prlimit", "--nofile=200:200"])
    one.gateway.wait_log("event=descriptors_short limit=200 wanted=10")
    with contextlib.ExitStack() as stack:
        idle_sockets(one.gateway.address, 400, stack)
        line = one.gateway.wait_log("event=descriptors_exhausted")
        assert "remedy=" in line
        assert admin_says(one.gateway) == (200, b"ok\n")
        assert one.gateway.metrics()["hapax_descriptors_exhausted_total"] >= 200
        assert one.gateway.metrics()["hapax_connections"] > 50
    check.until(lambda: one.gateway.metrics()["hapax_connections"] == 0, "the crowd is gone")
    key = new_key()
    assert one.gateway.post(key=key).status == 200
    assert len(one.provider.ledger(key)) == 1


def test_descriptor_limit_is_raised(site):
    """The soft limit is raised to what the configuration can need, without a word."""
    one = site({"limits": {"connections": 3000}}, wrap=["prlimit", "--nofile=1024:8192"])
    with open(f"/proc/{one.gateway.pid}/limits", encoding="ascii") as file:
        line = next(l for l in file if l.startswith("Max open files"))
    assert 3000 < int(line.split()[3]) <= 8192
    assert not [l for l in one.gateway.lines if "descriptors_short" in l]


# ---- rates ----
# A rate of so few in an hour gives nothing back while a test runs.

def limited(answer, name, count, executed="no"):
    """429 with everything that a client needs, and nothing kept of it."""
    check.problem(answer, "rate_limited", executed=executed)
    assert int(answer["Retry-After"]) >= 1
    assert answer["RateLimit-Policy"] == f'"{name}";q={count};w=3600'
    left, rest = answer["RateLimit"].split(";", 1)
    assert left == f'"{name}"' and rest.startswith("r=0;t=")


def limited_count(gateway, limit):
    return sum(value for name, value in gateway.metrics().items()
               if name.startswith("hapax_limited_total{") and f'limit="{limit}"' in name)


def test_new_keys_of_a_tenant(site):
    """Behind the last new key of its budget a tenant is refused before anything happens;
    its known keys, other tenants and the refused key in better times are served."""
    one = site({"limits": {"tenant": {"new_keys": "3/h"}}})
    keys = [new_key() for _ in range(3)]
    for key in keys:
        assert one.gateway.post(key=key).status == 200
    late = new_key()
    limited(one.gateway.post(key=late), "new_keys", 3)
    limited(one.gateway.post(key=late), "new_keys", 3)
    assert one.provider.ledger(late) == []
    for key in keys:
        assert one.gateway.post(key=key)["Idempotent-Replayed"] == "true"
    assert one.gateway.post(key=late, auth="Bearer somebody-else").status == 200
    assert limited_count(one.gateway, "new_keys") == 2
    one.gateway.config["limits"]["tenant"]["new_keys"] = "off"
    one.gateway.write_config()
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log("event=reloaded")
    assert one.gateway.post(key=late)["Idempotent-Replayed"] is None, "a refusal is not stored"
    assert len(one.provider.ledger(late)) == 2  # this tenant's, and the other's


def test_replays_have_a_budget_of_their_own(site):
    """A storm of retries locks out neither new work nor another tenant."""
    one = site({"limits": {"tenant": {"replays": "2/h", "new_keys": "4/h"}}})
    key = new_key()
    for _ in range(3):
        assert one.gateway.post(key=key).status == 200
    limited(one.gateway.post(key=key), "replays", 2, "yes")
    assert [one.gateway.post().status for _ in range(4)] == [200, 200, 200, 429]
    assert len(one.provider.ledger(key)) == 1


def test_a_limited_retry_of_what_is_under_way(site):
    """It says `unknown`: the first request may be executed at this moment."""
    one = site({"limits": {"tenant": {"replays": "1/h"}}})
    key = new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key, behave="delay=2"))
        check.until(lambda: one.provider.seen(key=key), "it is under way")
        check.problem(one.gateway.post(key=key), "idempotency_key_in_progress")
        limited(one.gateway.post(key=key), "replays", 1, "unknown")
        assert wire.answer().status == 200
    assert len(one.provider.ledger(key)) == 1


def test_status_reads(site):
    """Asking for an operation's state has a budget of its own too."""
    one = site({"limits": {"tenant": {"status_reads": "2/h"}}})
    path = "/.hapax/operations/" + one.gateway.post()["Hapax-Operation"]
    assert [one.gateway.get(path).status for _ in range(2)] == [200, 200]
    limited(one.gateway.get(path), "status_reads", 2)
    assert one.gateway.post().status == 200


def test_a_storm_on_one_key(site):
    """It is refused by its heads: the bodies are never asked for; other keys go on."""
    one = site({"limits": {"key": {"requests": "2/h"}}})
    key = new_key()
    assert [one.gateway.post(key=key).status for _ in range(2)] == [200, 200]
    head = request_bytes("POST", "/pay", [("Authorization", secret.ALICE), ("Idempotency-Key", key),
                                          ("Content-Length", "1000"), ("Expect", "100-continue")])
    with one.gateway.connect() as wire:
        wire.send(head)
        answer = wire.answer()
        assert answer.interim == []
        limited(answer, "key_requests", 2, "unknown")
    assert one.gateway.post().status == 200
    assert len(one.provider.ledger(key)) == 1


def test_key_spraying_from_one_address(site):
    """Inventing tenants does not help: the address has a budget; others have theirs."""
    one = site({"limits": {"peer": {"new_keys": "5/h"}}, "trusted_peers": ["127.0.0.9"]})
    for i in range(5):
        assert one.gateway.post(auth=f"Bearer invented-{i}").status == 200
    limited(one.gateway.post(auth="Bearer invented-6"), "peer_new_keys", 5)

    def through_proxy(forwarded):
        sock = socket.create_connection(one.gateway.address, 15, source_address=("127.0.0.9", 0))
        with Wire(sock) as wire:
            wire.send(one.gateway.request("POST", "/pay", headers=[("X-Forwarded-For", forwarded)]))
            return wire.answer().status
    # The last address that is not trusted counts, however many it invents before.
    got = [through_proxy(f"10.0.0.{i}, 192.0.2.7, 127.0.0.9") for i in range(6)]
    assert got == [200] * 5 + [429]
    assert [through_proxy("192.0.2.8") for _ in range(5)] == [200] * 5
    assert [through_proxy("2001:db8::%x" % i) for i in range(1, 7)] == [200] * 5 + [429]
    assert [through_proxy("127.0.0.9") for _ in range(7)] == [200] * 7, "trusted peers are exempt"


def test_unix_sockets_are_exempt(site, tmp_path):
    one = site({"listen": f"unix:{tmp_path}/gateway.sock", "limits": {"peer": {"new_keys": "1/h"}}})
    assert [one.gateway.post().status for _ in range(3)] == [200] * 3


def test_limits_are_published(site):
    """/.hapax/policy has what the preset turns on, and says that it is per gateway."""
    one = site({"limits": {"preset": "public", "tenant": {"replays": "50/m burst 70"}}})
    limits = one.gateway.get("/.hapax/policy").json()["limits"]
    assert limits["per"] == "gateway"
    assert limits["tenant"]["new_keys"] == {"count": 100, "seconds": 1, "burst": 100}
    assert limits["tenant"]["replays"] == {"count": 50, "seconds": 60, "burst": 70}
    assert limits["key"]["requests"]["count"] == 10 and limits["peer"]["new_keys"]["count"] == 1000
    assert site().gateway.get("/.hapax/policy").json()["limits"]["tenant"] == {}
