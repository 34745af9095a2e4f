"""Shows hapax as those see it who run it: health, metrics, reload, drain, one
server per file, and what it says when it cannot start."""
import re
import signal
import socket
import sqlite3
import subprocess

import pytest

from harness import check, postgres
from harness.gateway import Gateway, free_port
from harness.operator_command import Operator
from harness.secret import new_key


def test_health(shared):
    """Alive and ready; other admin paths are not there."""
    assert shared.gateway.admin("/healthz").status == 200
    assert shared.gateway.admin("/readyz").status == 200
    assert shared.gateway.admin("/nothing").status == 404


def test_admin_is_apart(shared):
    """The public listener serves no admin path: they go up like any other."""
    before = len(shared.provider.seen("/metrics"))
    shared.gateway.get("/metrics")
    assert len(shared.provider.seen("/metrics")) == before + 1


def count(before, after, name):
    return after.get(name, 0) - before.get(name, 0)


@pytest.mark.parametrize("behaviours, bodies, outcome", [
    ([""], [1], "created"),
    (["", ""], [1, 1], "replay"),
    (["", ""], [1, 2], "mismatch"),
    (["status=429", ""], [1, 1], "retried"),
    (["status=502", ""], [1, 1], "unknown"),
])
def test_reserve_total(shared, behaviours, bodies, outcome):
    """What became of each reservation is counted."""
    gateway, key = shared.gateway, new_key()
    for behave, body in list(zip(behaviours, bodies))[:-1]:
        gateway.post(key=key, behave=behave, body=b'{"n": %d}' % body)
    before = gateway.metrics()
    gateway.post(key=key, behave=behaviours[-1], body=b'{"n": %d}' % bodies[-1])
    after = gateway.metrics()
    changed = {o: count(before, after, f'hapax_reserve_total{{outcome="{o}"}}')
               for o in ("created", "replay", "in_progress", "mismatch", "retried", "unknown")}
    assert {o: n for o, n in changed.items() if n} == {outcome: 1}


def test_in_progress_is_counted(shared):
    """So is a retry that came too early."""
    gateway, key = shared.gateway, new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        shared.provider.gate(key).wait_arrived()
        before = gateway.metrics()
        gateway.post(key=key)
        assert count(before, gateway.metrics(), 'hapax_reserve_total{outcome="in_progress"}') == 1
        shared.provider.gate(key).release()
        assert wire.answer().status == 200


def test_metric_names(shared):
    """The metrics that operators need are there, with a help text and a type each."""
    gateway = shared.gateway
    gateway.post(behave="status=502")
    text = gateway.admin("/metrics").body.decode()
    for name in ("hapax_reserve_total", "hapax_unkeyed_total", "hapax_store_errors_total",
                 "hapax_leases_lost_total", "hapax_reaped_total", "hapax_oldest_unknown_seconds",
                 "hapax_operations"):
        assert re.search(rf"^# HELP {name} \S", text, re.M), f"no help of {name}"
        assert re.search(rf"^# TYPE {name} (counter|gauge)$", text, re.M), f"no type of {name}"
    assert len(re.findall(r"^# TYPE \S+ histogram$", text, re.M)) >= 4, "upstream, commit, batch, request"
    # Counted by a worker and not when somebody asks: each second, and later where a count took
    # long. It gets a two-hundredth of the time: a fifth of a second is followed by forty.
    check.until(lambda: gateway.metrics()['hapax_operations{state="unknown"}'] >= 1,
                "the unknown operation is counted", 60)
    for line in text.splitlines():
        assert re.fullmatch(r'#.*|[a-z_]+(\{([a-z_]+="[^"]*",?)+\})? [-+0-9.eInfNa]+', line), line


def test_unkeyed(shared):
    """Guarded requests without a key are counted by route."""
    before = shared.gateway.metrics()
    shared.gateway.post(key=None)
    after = shared.gateway.metrics()
    total = sum(v - before.get(n, 0) for n, v in after.items() if n.startswith("hapax_unkeyed_total"))
    assert total == 1


def test_duplicates_and_changed_tenant(shared):
    """Replays count as duplicates; one key under two credentials is a sign."""
    gateway, key = shared.gateway, new_key()
    gateway.post(key=key)
    before = gateway.metrics()
    gateway.post(key=key)
    gateway.post(key=key, auth="Bearer s3cr3t-renewed")
    after = gateway.metrics()
    duplicates = sum(v - before.get(n, 0) for n, v in after.items() if n.startswith("hapax_duplicates_total"))
    assert duplicates == 1
    assert count(before, after, "hapax_tenant_changed_total") == 1
    assert not any("s3cr3t" in name for name in after)


def mismatches(gateway):
    """{tenant: how often}."""
    found = {}
    for name, value in gateway.metrics().items():
        match = re.fullmatch(r'hapax_mismatch_total\{tenant="(.*)"\}', name)
        if match:
            found[match.group(1)] = found.get(match.group(1), 0) + value
    return found


TENANTS = {"tenant": {"from": "header", "name": "X-Tenant"}, "trusted_peers": ["127.0.0.1"], "loops": 1}


def test_misused_keys(site):
    """Another request with a known key counts for its tenant, and is logged once per operation."""
    gateway, key, other = site(TENANTS).gateway, new_key(), new_key()
    for tenant, name, bodies in (("alice", key, (b"1", b"1", b"2", b"3")), ("bob", key, (b"1", b"1")),
                                 ("alice", other, (b"1", b"2"))):
        for body in bodies:
            answer = gateway.post(key=name, body=body, headers=[("X-Tenant", tenant)])
            assert answer.status == (200 if body == b"1" else 422)
    assert mismatches(gateway) == {"header:alice": 3, "header:bob": 0, "(others)": 0}
    assert key not in "".join(gateway.events("key_misused", 2))


def test_misuse_is_in_the_history(site):
    """A storm of other requests with one key, also after a restart, is one event; the record, its answer and its replay are what they were."""
    one, key = site(), new_key()
    operator = Operator(one.gateway)
    first = one.gateway.post(key=key, body=b"1", behave="status=201")
    reference, before = first["Hapax-Operation"], operator.key(first["Hapax-Operation"])
    assert [e["what"] for e in before["history"]] == ["reserved", "completed"]
    for number in range(40):
        check.problem(one.gateway.post(key=key, body=b"x%d" % number), "idempotency_key_reused")
    one.gateway.stop()
    one.gateway.start()
    check.problem(one.gateway.post(key=key, body=b"later"), "idempotency_key_reused")
    one.gateway.stop()
    one.gateway.start()
    after = operator.key(reference)
    assert [e["what"] for e in after.pop("history")] == ["reserved", "completed", "misused"]
    before.pop("history")
    assert after == before
    again = one.gateway.post(key=key, body=b"1")
    assert (again.status, again.body, again["Idempotent-Replayed"]) == (201, first.body, "true")
    assert re.search(r"misused .*another request", operator.on("keys", "show", reference))
    assert not [line for line in one.gateway.lines if "event=misuse_not_noted" in line]


def test_misused_keys_of_many_tenants(site):
    """No caller makes the page grow: beyond 64 tenants they are counted together."""
    gateway = site(TENANTS).gateway
    for number in range(66):
        who, key = [("X-Tenant", f"t{number}")], new_key()
        assert [gateway.post(key=key, body=body, headers=who).status for body in (b"1", b"2")] == [200, 422]
    found = mismatches(gateway)
    assert len(found) == 65 and found["(others)"] == 2 and found["header:t0"] == 1


def test_reload(site):
    """SIGHUP brings in what can be reloaded; the running connection keeps going."""
    one = site()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/free", key=None))
        check.problem(wire.answer(), "idempotency_key_missing")
        one.gateway.config["routes"] = [{"match": "POST /free", "key": "ignore"}]
        one.gateway.write_config()
        since = len(one.gateway.lines)
        one.gateway.signal(signal.SIGHUP)
        one.gateway.wait_log(r"event=reload", since=since)
        wire.send(one.gateway.request("POST", "/free", key=None))
        assert wire.answer().status == 200


@pytest.mark.parametrize("change, name", [
    ({"store": "sqlite:other.db"}, "store"), ({"tenant": {"from": "anonymous"}}, "tenant"),
    ({"defaults": {"scope": "tenant"}}, "scope"), ({"upstream_name": "other"}, "upstream_name"),
])
def test_not_reloadable(site, change, name):
    """What cannot be reloaded is said so by name, and stays as it was."""
    one = site()
    key = new_key()
    one.gateway.post(key=key)
    before = dict(one.gateway.config)
    one.gateway.config = {**before, **change}
    one.gateway.write_config()
    one.gateway.config = before
    since = len(one.gateway.lines)
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log(rf"level=(warn|error).*\b{name}", since=since)
    assert one.gateway.post(key=key).replayed


def test_bad_reload(site):
    """A mistake in the file leaves the old configuration in force, and is named."""
    one = site()
    (one.gateway.folder / "hapax.yaml").write_text("listen: nonsense\nwhat: is this\n")
    since = len(one.gateway.lines)
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log(r"level=error", since=since)
    assert one.gateway.post().status == 200


def test_drain(site):
    """SIGTERM: what is under way is finished and stored, new connections are
    refused, it is no longer ready, and it exits 0."""
    one = site()
    gateway, key = one.gateway, new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        one.provider.gate(key).wait_arrived()
        gateway.signal(signal.SIGTERM)
        check.until(lambda: refuses(gateway), "new connections are refused")
        assert gateway.process.poll() is None, "it left its request behind"
        one.provider.gate(key).release()
        done = wire.answer()
        assert done.status == 200
    assert gateway.wait() == 0
    gateway.start()
    check.same_answer(done, gateway.post(key=key))
    assert len(one.provider.ledger(key)) == 1


def refuses(gateway):
    try:
        with socket.create_connection(gateway.address, 5):
            return False
    except OSError:
        return True


def test_drain_ends(site):
    """What is left after the drain is written as unknown."""
    one = site({"timeouts": {"drain": "1s"}})
    gateway, key = one.gateway, new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        one.provider.gate(key).wait_arrived()
        gateway.signal(signal.SIGTERM)
        assert gateway.wait() == 0
    states = sqlite3.connect(gateway.folder / "hapax.db").execute("SELECT state FROM hapax_operation").fetchall()
    one.provider.gate(key).release()
    gateway.start()
    check.problem(gateway.post(key=key), "idempotency_outcome_unknown")
    assert len(one.provider.ledger(key)) == 1 and len(states) == 1


def test_idle_connections_do_not_hold_up_the_drain(site):
    """Idle clients are let go at once."""
    one = site()
    wires = [one.gateway.connect() for _ in range(5)]
    for wire in wires:
        wire.send(one.gateway.request("GET", "/x"))
        assert wire.answer().status == 200
    one.gateway.signal(signal.SIGTERM)
    assert one.gateway.wait(10) == 0
    for wire in wires:
        with wire:
            assert wire.ended()


def test_one_server_per_file(site):
    """A second server on the same store refuses to start and says why."""
    one = site()
    second = Gateway(one.gateway.folder, one.provider.url, {
        "listen": f"127.0.0.1:{free_port()}", "admin": f"127.0.0.1:{free_port()}",
        "store": one.gateway.config["store"]})
    second.spawn()
    assert second.wait(20) != 0
    second.wait_log(r"(?i)another|already|serve|lock")
    assert one.gateway.post().status == 200


@pytest.mark.parametrize("config, said", [
    ({"store_create": "never"}, r"(?i)store_create|create|migrate|no such|does not exist"),
    ({"store": "sqlite:/nowhere/at/all.db"}, r"/nowhere/at/all\.db"),
    ({"nonsense": 1}, r"nonsense"),
    ({"listen": "127.0.0.1:99999"}, r"listen"),
    ({"upstream": None}, r"upstream"),
])
def test_cannot_start(tmp_path, config, said):
    """A mistake ends it with a message about it, and a code that is not 0."""
    empty = {"store": postgres.shared().url(postgres.shared().database())} if postgres.chosen() else {}
    one = Gateway(tmp_path, "http://127.0.0.1:9", {**empty, **config})
    one.spawn()
    assert one.wait(20) in (1, 2)
    one.wait_log(said)


def test_port_taken(site, tmp_path):
    """A port that somebody else has is named."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        one = Gateway(tmp_path, "http://127.0.0.1:9", {"listen": f"127.0.0.1:{taken.getsockname()[1]}"})
        one.spawn()
        assert one.wait(20) == 1
        one.wait_log(str(taken.getsockname()[1]))
    assert site  # the program is there


def test_file_mode(shared):
    """The store is for its owner's eyes only."""
    for path in shared.gateway.folder.glob("hapax.db*"):
        assert path.stat().st_mode & 0o077 == 0, path


def test_flags(site, tmp_path):
    """The command line alone is enough to start."""
    one = site()
    port, admin = free_port(), free_port()
    process = subprocess.Popen(
        [one.gateway.program, "serve", "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}",
         "--upstream", one.provider.url, "--store", f"sqlite:{tmp_path}/flags.db"],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        line = next(l for l in process.stderr if "event=ready" in l)
        assert f"listen=127.0.0.1:{port}" in line and f"admin=127.0.0.1:{admin}" in line, line
        other = Gateway(tmp_path, one.provider.url)
        other.port, other.config["listen"] = port, f"127.0.0.1:{port}"
        key = new_key()
        check.same_answer(other.post(key=key), other.post(key=key))
    finally:
        process.terminate()
        code = process.wait(30)
        process.stderr.close()
    assert code == 0
