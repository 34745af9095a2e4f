"""Shows that one greedy caller, one slow caller or a crowd takes from the others
neither the gateway's descriptors, its memory, its connections nor its time: who asks
for too much is told so, and whoever does not is served."""
import collections
import contextlib
import gzip
import http.client
import json
import os
import resource
import secrets
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

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
    """3,000 connections that ask for nothing do not keep a health check out, nor take the
    descriptors of others."""
    one = site(wrap=["prlimit", "--nofile=800:800"])
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
        check.until(lambda: one.gateway.metrics()["hapax_descriptors_exhausted_total"] > 100, "they are counted")
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


def test_too_many_keys(site):
    """A tenant that has as many keys as are kept for it begins no more; known ones and
    other tenants are served."""
    one = site({"limits": {"tenant": {"active_keys": 2}}})
    keys = [new_key() for _ in range(2)]
    assert [one.gateway.post(key=key).status for key in keys] == [200, 200]
    late = new_key()
    answer = one.gateway.post(key=late)
    check.problem(answer, "too_many_keys")
    assert answer["RateLimit-Policy"] == '"active_keys";q=2;w=86400' and check.retry_after(answer) > 60
    assert one.gateway.post(key=keys[0])["Idempotent-Replayed"] == "true"
    assert one.gateway.post(auth="Bearer somebody-else").status == 200
    assert one.provider.ledger(late) == [] and limited_count(one.gateway, "active_keys") == 1


def test_too_much_stored(site):
    """The same by the size of what is stored."""
    one = site({"limits": {"tenant": {"stored": "200KiB"}}})
    key = new_key()
    assert one.gateway.post(key=key, behave="big=250000").status == 200
    check.problem(one.gateway.post(), "too_many_keys")
    assert len(one.gateway.post(key=key).body) == 250000


# ---- shares of what is scarce ----

def connect_from(gateway, address):
    sock = socket.create_connection(gateway.address, 15, source_address=(address, 0))
    return Wire(sock)


PROXY = "127.0.0.9"


class Way:
    """How callers of many addresses reach the gateway: themselves, or by a trusted proxy that
    names them. In front of the true name stands what the caller itself has sent, another one
    each time."""

    def __init__(self, site, proxied):
        self.site, self.proxied = site, proxied

    def __call__(self, config=None):
        return self.site({**(config or {}), **({"trusted_peers": [PROXY]} if self.proxied else {})})

    def connect(self, gateway, address):
        return connect_from(gateway, PROXY if self.proxied else address)

    def named(self, address):
        invented = f"198.51.100.{secrets.randbelow(254) + 1}"
        return [("X-Forwarded-For", f"{invented}, {address}" if self.proxied else invented)]

    def post(self, gateway, address, **how):
        with self.connect(gateway, address) as wire:
            wire.send(gateway.request("POST", "/pay", headers=self.named(address), **how))
            return wire.answer()


@pytest.fixture(params=[False, True], ids=["themselves", "by a proxy"])
def way(site, request):
    return Way(site, request.param)


def half_a_body(way, gateway, address, stack, sent=800 << 10):
    """A guarded request whose body stops before its end."""
    wire = stack.enter_context(way.connect(gateway, address))
    fields = [("Authorization", f"Bearer {new_key()}"), ("Idempotency-Key", new_key()),
              ("Content-Length", str(1 << 20)), *way.named(address)]
    with contextlib.suppress(OSError):
        wire.send(request_bytes("POST", "/pay", fields) + b"x" * sent)
    return wire


def post_from(gateway, address, **how):
    with connect_from(gateway, address) as wire:
        wire.send(gateway.request("POST", "/pay", **how))
        return wire.answer()


def test_half_bodies_of_one_address(way):
    """58 sockets that send most of a body and stop, each under a name of its own, leave
    room for the bodies of everybody else."""
    one = way()
    with contextlib.ExitStack() as stack:
        for _ in range(58):
            half_a_body(way, one.gateway, "127.0.0.66", stack)
        check.until(lambda: limited_count(one.gateway, "share_bodies") > 0, "the memory is nearly used")
        for i in range(8):
            key = new_key()
            answer = way.post(one.gateway, f"127.0.1.{i + 1}", key=key, body=b"y" * 900000)
            assert answer.status == 200, answer
            assert len(one.provider.ledger(key)) == 1
        # One tenant with several bodies at once, each from another address.
        keys = [new_key() for _ in range(4)]
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda i: way.post(one.gateway, f"127.0.2.{i + 1}", key=keys[i],
                                                       body=b"y" * 900000), range(4)))
        assert [a.status for a in answers] == [200] * 4, answers


def test_large_bodies_leave_room_for_small_ones(way):
    """Bodies of many addresses, none above its share, that fill the memory to the last byte
    keep no payment out."""
    one = way({"limits": {"bodies": "16MiB"}})
    with contextlib.ExitStack() as stack:
        wires = [half_a_body(way, one.gateway, f"127.0.6.{i + 1}", stack) for i in range(30)]
        wires += [half_a_body(way, one.gateway, f"127.0.8.{i + 1}", stack, sent=3000) for i in range(120)]
        check.until(lambda: one.gateway.metrics()["hapax_bodies_bytes"] > 8 << 20, "much of it is used")
        for i in range(200):
            for wire in wires[i % len(wires)::30]:
                with contextlib.suppress(OSError):
                    wire.send(b"x" * 300)
            answer = way.post(one.gateway, f"127.0.7.{i + 1}", auth=f"Bearer customer-{i}", body=b"y" * 200)
            assert answer.status == 200, (i, answer)


def test_connections_of_one_address(site):
    """When three quarters of the connections are in use, the address that has most of
    them gets no more, and others do; alone it has three quarters."""
    one = site({"limits": {"connections": 100}})
    with contextlib.ExitStack() as stack:
        idle_sockets(one.gateway.address, 100, stack)
        check.until(lambda: one.gateway.metrics()["hapax_connections"] == 75, "it has its share")
        for i in range(20):
            wire = stack.enter_context(connect_from(one.gateway, f"127.0.2.{i + 1}"))
            wire.send(one.gateway.request("POST", "/pay", auth=f"Bearer other-{i}"))
            assert wire.answer().status == 200
        assert limited_count(one.gateway, "share_connections") == 25


def test_connections_of_one_tenant(site):
    """The same for a tenant that comes from many addresses."""
    one = site({"limits": {"connections": 40}})
    with contextlib.ExitStack() as stack:
        statuses = []
        for i in range(36):
            wire = stack.enter_context(connect_from(one.gateway, f"127.0.3.{i + 1}"))
            wire.send(one.gateway.request("POST", "/pay"))
            statuses.append(wire.answer().status)
        assert statuses[:29] == [200] * 29 and 503 in statuses, statuses
        answer = post_from(one.gateway, "127.0.4.1", auth="Bearer somebody-else")
        assert answer.status == 200, answer
    check.until(lambda: one.gateway.metrics()["hapax_connections"] == 0, "all are given back")


def test_waiters_of_one_address(way):
    """Requests that wait for another's answer are shared out in the same way."""
    one = way({"limits": {"waiters": 8}, "routes": [{"match": "POST /pay", "concurrent": "wait"}]})
    slow, other, third = new_key(), new_key(), new_key()
    somebody = {"auth": "Bearer somebody-else", "key": third}
    with contextlib.ExitStack() as stack:
        for key in (slow, other):
            wire = stack.enter_context(way.connect(one.gateway, "127.0.0.5"))
            wire.send(one.gateway.request("POST", "/pay", key=key, behave="delay=3", headers=way.named("127.0.0.5")))
        wire = stack.enter_context(way.connect(one.gateway, "127.0.0.5"))
        wire.send(one.gateway.request("POST", "/pay", behave="delay=3", headers=way.named("127.0.0.5"), **somebody))
        check.until(lambda: len(one.provider.seen("/pay")) == 3, "all are under way")
        greedy = []
        for _ in range(8):
            wire = stack.enter_context(way.connect(one.gateway, "127.0.0.66"))
            wire.send(one.gateway.request("POST", "/pay", key=slow, headers=way.named("127.0.0.66")))
            greedy.append(wire)
        check.until(lambda: limited_count(one.gateway, "share_waiters") == 2, "it has its share")
        assert one.gateway.metrics()["hapax_waiting"] == 6
        # The same tenant at another address has its share too; another tenant there is served.
        check.problem(way.post(one.gateway, "127.0.0.7", key=other), "overloaded", executed="unknown")
        assert way.post(one.gateway, "127.0.0.7", **somebody)["Idempotent-Replayed"] == "true"
        assert sorted(wire.answer().status for wire in greedy) == [200] * 6 + [503] * 2
    assert [len(one.provider.ledger(key)) for key in (slow, other, third)] == [1, 1, 1]


def test_tunnels_of_one_address(way):
    """Idle tunnels of one address leave some to others."""
    one = way({"loops": 1, "limits": {"upstream_connections": 32}})
    one.provider.raws["up"] = (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                               b"Upgrade: websocket\r\n\r\n")
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]

    def open_tunnel(address, stack):
        wire = stack.enter_context(way.connect(one.gateway, address))
        wire.send(one.gateway.request("GET", "/ws", headers=upgrade + way.named(address), behave="tunnel"))
        return wire.head().status
    with contextlib.ExitStack() as stack:
        got = [open_tunnel("127.0.0.66", stack) for _ in range(8)]
        assert got == [101] * 6 + [503] * 2, got
        assert [open_tunnel("127.0.0.7", stack) for _ in range(2)] == [101] * 2


# ---- slow bodies ----

@pytest.mark.parametrize("config", [
    {"timeouts": {"body": "1s"}, "limits": {"body_rate": "1KiB"}},
    {"timeouts": {"whole_body": "2s"}, "limits": {"body_rate": 0}},
], ids=["rate", "whole"])
def test_slow_body(site, config):
    """A byte now and then does not hold a body's memory for ever, and a new connection
    with the same key is served."""
    one = site(config)
    key = new_key()
    fields = [("Authorization", secret.ALICE), ("Idempotency-Key", key), ("Content-Length", "1000")]
    with one.gateway.connect(20) as wire:
        wire.send(request_bytes("POST", "/pay", fields))
        wire.sock.settimeout(0.2)
        for _ in range(100):
            try:
                wire.send(b"x")
                wire.sock.recv(1, socket.MSG_PEEK)
                break
            except socket.timeout:
                continue
        else:
            raise AssertionError("bytes were taken for 20 seconds, one at a time")
        wire.sock.settimeout(15)
        check.problem(wire.answer(), "request_timeout")
    assert one.provider.ledger(key) == []
    assert one.gateway.post(key=key).status == 200
    check.until(lambda: one.gateway.metrics()["hapax_bodies_bytes"] == 0, "the memory is given back")


def test_a_slow_upload_that_passes_through(site):
    """What is not held in memory may take longer than `timeouts.whole_body`."""
    one = site({"timeouts": {"whole_body": "1s"}, "routes": [{"match": "POST /up", "key": "ignore"}]})
    with one.gateway.connect(20) as wire:
        wire.send(request_bytes("POST", "/up", [("Authorization", secret.ALICE), ("Content-Length", "8")]))
        for _ in range(8):
            wire.send(b"x")
            time.sleep(0.25)  # the time is what this is about
        assert wire.answer().status == 200


# ---- bodies under gzip ----

CODED = [("Content-Encoding", "gzip"), ("Content-Type", "application/json")]


def test_a_large_body_is_compared_decoded(site):
    """A large body is fingerprinted by another thread, and is the same request however it
    was coded; other bytes are another request."""
    one = site()
    key = new_key()
    body = json.dumps({"items": [{"n": i, "text": f"item {i * 7919 % 1000}"} for i in range(20000)]}).encode()
    again = json.dumps(json.loads(body), indent=1).encode()
    assert one.gateway.post(key=key, body=gzip.compress(body), headers=CODED).status == 200
    answer = one.gateway.post(key=key, body=body, headers=[("Content-Type", "application/json")])
    assert answer["Idempotent-Replayed"] == "true", answer
    answer = one.gateway.post(key=key, body=gzip.compress(again, 1), headers=CODED)
    assert answer["Idempotent-Replayed"] == "true", answer
    check.problem(one.gateway.post(key=key, body=gzip.compress(body[:-2] + b" ,1]}"), headers=CODED),
                  "idempotency_key_reused")
    assert len(one.provider.ledger(key)) == 1


def test_bombs(site):
    """Bombs of 16 KB on eight connections at once: each happens once, as the bytes that it
    is, and others are served meanwhile."""
    one = site({"loops": 1})
    bomb = gzip.compress(b'{"a":"' + b"0" * (16 << 20) + b'"}', mtime=0)
    keys = [new_key() for _ in range(8)]
    with contextlib.ExitStack() as stack:
        wires = []
        for key in keys:
            wire = stack.enter_context(one.gateway.connect())
            for _ in range(4):
                wire.send(one.gateway.request("POST", "/pay", key=key, body=bomb, headers=CODED))
            wires.append(wire)
        for _ in range(20):
            assert one.gateway.post().status == 200
        for wire in wires:
            answers = [wire.answer() for _ in range(4)]
            assert [answer.status for answer in answers] == [200] * 4
            assert [answer["Idempotent-Replayed"] for answer in answers] == [None] + ["true"] * 3
    assert all(len(one.provider.ledger(key)) == 1 for key in keys)
    # Far below what would be held of a decoded body, far above 64 times its size: it is not
    # inflated, so the same document in other bytes is another request.
    key, document = new_key(), b'{"a":"' + b"0" * (4 << 20) + b'"}'
    assert one.gateway.post(key=key, body=gzip.compress(document, mtime=0), headers=CODED).status == 200
    check.problem(one.gateway.post(key=key, body=gzip.compress(document, 1, mtime=0), headers=CODED),
                  "idempotency_key_reused")


def test_large_bodies_leave_the_loop(site):
    """Small bodies are worked on where they came; the first large one starts the threads that
    work beside the loop."""
    one = site({"loops": 1})

    def threads():
        return len(os.listdir(f"/proc/{one.gateway.pid}/task"))

    for _ in range(20):
        assert one.gateway.post(body=b'{"a": 1}', headers=CODED[1:]).status == 200
    before = threads()
    body = json.dumps([str(i) for i in range(90000)]).encode()
    assert one.gateway.post(body=body, headers=CODED[1:]).status == 200
    assert threads() > before


def test_a_client_that_leaves_while_its_body_is_worked_on(site):
    """Whoever leaves, and a stop meanwhile: nothing is lost or left behind."""
    one = site({"loops": 1})
    body = json.dumps([str(i) for i in range(90000)]).encode()
    for _ in range(10):
        with one.gateway.connect() as wire:
            wire.send(one.gateway.request("POST", "/pay", body=body,
                                          headers=[("Content-Type", "application/json")]))
    check.until(lambda: one.gateway.metrics()["hapax_bodies_bytes"] == 0, "all is given back")
    with one.gateway.connect() as wire:
        for _ in range(4):
            wire.send(one.gateway.request("POST", "/pay", body=body,
                                          headers=[("Content-Type", "application/json")]))
        one.gateway.stop()


# ---- all of it at once ----

ATTACKERS = os.path.join(os.path.dirname(__file__), "..", "..", "bench", "driver", "attackers.py")
KINDS = ("slow-head", "slow-body", "storm", "spray", "bomb", "tunnel")


def test_payments_under_attack(site):
    """Hundreds of connections from many addresses attack in every way at once, and the
    customers that pay meanwhile are never refused; each payment happens once."""
    one = site({"limits": {"preset": "public", "connections": 400}})
    attack = [sys.executable, "-B", ATTACKERS, str(one.gateway.address[1]), "8", "2000"]
    with subprocess.Popen(attack + [f"{kind}={4 if kind == 'bomb' else 60}" for kind in KINDS],
                          stdout=subprocess.PIPE, text=True) as attackers:
        try:
            check.until(lambda: one.gateway.metrics()["hapax_connections"] > 200, "the attack is on")
            keys = []
            while attackers.poll() is None:
                key, customer = new_key(), len(keys) % 50 + 1
                keys.append(key)
                who = {"key": key, "auth": f"Bearer customer-{customer}"}
                answer = post_from(one.gateway, f"127.0.5.{customer}", **who)
                assert answer.status == 200, answer
                answer = post_from(one.gateway, f"127.0.5.{customer}", **who)
                assert answer["Idempotent-Replayed"] == "true", answer
            got = json.loads(attackers.communicate()[0])
        finally:
            attackers.kill()
    assert len(keys) > 3
    executed = collections.Counter(line[2].strip('"') for line in one.provider.ledger())
    assert [executed[key] for key in keys] == [1] * len(keys)
    assert got["storm"]["429"] > 0 and got["bomb"]["200"] > 0, got
