"""Shows what a record lives through: a death in the middle, its expiry, the
reaper, and damage; nothing is stuck for a day, nothing that still runs is
cleared away, and what cannot be read is unknown, never absent."""
import json
import pathlib
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest

from harness import check
from harness.library import IN_PROGRESS, UNKNOWN, Library
from harness.operator_command import Operator
from harness.secret import new_key

HELD_ATTEMPT = pathlib.Path(__file__).parent / "harness/held_attempt.py"
# So long that a busy machine sees the attempt in progress.
LIBRARY_LEASE_MS = 4000


def pause(seconds):
    """Time passes; that is what is tested."""
    threading.Event().wait(seconds)


def hold(one, key, target="/pay", **how):
    """An operation that waits at the provider; its connection."""
    wire = one.gateway.connect()
    wire.send(one.gateway.request("POST", target, key=key, behave=f"hold={key}", **how))
    one.provider.gate(key).wait_arrived()
    return wire


def test_dead_owner(site):
    """What a dead process left is lost at once: unknown, not in progress for a day."""
    one = site()
    key = new_key()
    with hold(one, key):
        one.gateway.kill()
    one.provider.gate(key).release()
    one.gateway.start()
    check.problem(one.gateway.post(key=key), "idempotency_outcome_unknown")
    assert len(one.provider.ledger(key)) == 1


def test_lost_leases_are_counted(site):
    """A lease that a dead process left counts as lost."""
    one = site()
    key = new_key()
    with hold(one, key):
        one.gateway.kill()
    one.provider.gate(key).release()
    one.gateway.start()
    check.until(lambda: one.gateway.metrics()["hapax_leases_lost_total"] >= 1, "one lost lease is counted")
    assert one.gateway.metrics()['hapax_attempt_errors_total{error="lease_lost"}'] == 1
    reference = one.provider.seen(key=key)[0]["Hapax-Operation"]
    assert one.gateway.operation(reference).json()["last_error"] == "lease_lost"
    rows = Operator(one.gateway).json("keys", "ls", "--error", "lease_lost")["operations"]
    assert [row["key"] for row in rows] == [key], rows


@pytest.fixture
def held_attempt():
    """Begins an operation by the library, in a process that never ends it: process and reference."""
    started = []

    def start(*arguments):
        started.append(subprocess.Popen([sys.executable, "-B", str(HELD_ATTEMPT), json.dumps(arguments)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1], started[-1].stdout.readline().strip()
    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def verdict_of(url, *names):
    library = Library(url)
    verdict = library.begin(*names, LIBRARY_LEASE_MS).verdict
    library.close()
    return verdict


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_a_retry_finds_the_lost_lease_of_an_application(site, held_attempt, how):
    """An application with the library is gone, and no sweeper looks: its retry, by another
    process, finds the lease over, and the operation's page and the lists say so."""
    gateway = site({"sweep": {"every": "1h"}}).gateway
    operator = Operator(gateway)
    mine = operator.key(gateway.post()["Hapax-Operation"])
    names = [gateway.config["store"], mine["tenant"], mine["scope"], new_key()]
    process, reference = held_attempt(*names, LIBRARY_LEASE_MS)
    process.send_signal(how)
    assert verdict_of(*names) == IN_PROGRESS
    page = gateway.operation(reference).json()
    assert page["state"] == "in_progress" and "last_error" not in page, page
    assert operator.json("keys", "ls", "--error", "lease_lost")["operations"] == []
    check.until(lambda: verdict_of(*names) != IN_PROGRESS, "the lease has run out")
    assert verdict_of(*names) == UNKNOWN
    page = gateway.operation(reference).json()
    assert (page["state"], page["last_error"]) == ("unknown", "lease_lost"), page
    rows = operator.json("keys", "ls", "--error", "lease_lost")["operations"]
    assert [(row["reference"], row["last_error"]) for row in rows] == [(reference, "lease_lost")], rows


def test_lost_leases_are_told(site):
    """Each operation has a line with the state that it has now, whichever store it is
    in and whoever found it; at SQLite's start a sum points to the list that has them."""
    one = site({"defaults": {"lease": "1s"}, "sweep": {"every": "1s"},
                "routes": [{"match": "POST /resumed", "on_lost": "resume", "fenced": True}]})
    gateway = one.gateway
    is_sqlite = gateway.config["store"].startswith("sqlite")
    for targets, counts, see in [(["/resumed"], "unknown=0 failed_retryable=1", "failed_retryable"),
                                 (["/pay", "/resumed"], "unknown=1 failed_retryable=1", "unknown")]:
        keys = {target: new_key() for target in targets}
        wires = [hold(one, key, target=target) for target, key in keys.items()]
        gateway.kill()
        since = len(gateway.lines)
        for wire, key in zip(wires, keys.values()):
            one.provider.gate(key).release()
            wire.close()
        gateway.start()
        states = ["unknown" if target == "/pay" else "failed_retryable" for target in targets]
        for state in states:
            gateway.wait_log(f"event=lease_lost id=[0-9a-f]{{32,}} state={state}$", since=since)
        told = [line for line in gateway.lines[since:] if "event=lease_lost" in line]
        assert len(told) == len(states), told
        if is_sqlite:
            line = gateway.wait_log("event=leases_lost", since=since)
            assert f" {counts} jobs=0 " in line and f'see="hapax keys ls --state {see}"' in line, line


def test_graceful_restart_keeps_all(site):
    """After an orderly restart every record is what it was."""
    one = site()
    rows = {b: new_key() for b in ("", "status=404", "status=429", "status=502")}
    first = {b: one.gateway.post(key=k, behave=b) for b, k in rows.items()}
    one.gateway.restart()
    check.same_answer(first[""], one.gateway.post(key=rows[""]))
    check.same_answer(first["status=404"], one.gateway.post(key=rows["status=404"]))
    check.problem(one.gateway.post(key=rows["status=502"]), "idempotency_outcome_unknown")
    assert one.gateway.post(key=rows["status=429"]).status == 200
    assert [r["Hapax-Attempt"] for r in one.provider.seen(key=rows["status=429"])] == ["1", "2"]


SHORT = {"defaults": {"retention": "1s"}, "reap": {"every": "1s"}}


def test_running_is_not_reaped(site):
    """The reaper leaves alone what still runs, though its retention is over."""
    one = site(SHORT)
    key = new_key()
    with hold(one, key) as wire:
        pause(2.5)
        check.problem(one.gateway.post(key=key), "idempotency_key_in_progress")
        one.provider.gate(key).release()
        done = wire.answer()
    check.same_answer(done, one.gateway.post(key=key))
    assert len(one.provider.ledger(key)) == 1


def test_unknown_never_expires(site):
    """Unknown stays unknown until somebody settles it."""
    one = site(SHORT)
    key = new_key()
    one.gateway.post(key=key, behave="reset=after")
    pause(2.5)
    check.problem(one.gateway.post(key=key), "idempotency_outcome_unknown")
    assert len(one.provider.ledger(key)) == 1


def test_reaped(site):
    """What has expired is cleared away, and counted. What was answered at once goes with
    its generation (tests/fault/test_generation.py); until then it is told to be expired."""
    one = site(SHORT)
    plain, failed, large = (one.gateway.post(behave=b)["Hapax-Operation"]
                            for b in ("", "status=429", "big=5000"))
    check.until(lambda: one.gateway.metrics()["hapax_reaped_total"] >= 1, "one record is reaped")
    assert one.gateway.operation(failed).status == 404
    check.until(lambda: {one.gateway.operation(r).status for r in (plain, large)} == {410}, "both have expired")
    one.gateway.stop()
    with sqlite3.connect(one.gateway.folder / "hapax.db") as store:
        left = store.execute("SELECT state, place FROM hapax_operation ORDER BY created").fetchall()
    assert left == [(3, "plain"), (3, "plain")]


def test_more_than_a_batch_is_reaped(site):
    """Where more has expired than the reaper takes at once, it comes again, and
    does not wait for its next turn in an hour."""
    one = site({**SHORT, "reap": {"every": "1h", "batch": 3}})
    for _ in range(20):
        one.gateway.post(behave="status=429")
    pause(1.2)
    one.gateway.restart()
    check.until(lambda: one.gateway.metrics()["hapax_reaped_total"] >= 20, "all twenty are reaped")


def test_retry_extends_nothing(site):
    """A replay does not lengthen the record's life."""
    one = site({"defaults": {"retention": "1h"}})
    key = new_key()
    expiry = {one.gateway.post(key=key)["Idempotency-Expires"] for _ in range(3)}
    assert len(expiry) == 1, expiry


@pytest.mark.parametrize("damage", [
    "DELETE FROM hapax_answer_1",
    "UPDATE hapax_answer_1 SET body = x'00'",
    "UPDATE hapax_answer_1 SET body = CAST(substr(body, 2) AS BLOB)",
    "UPDATE hapax_answer_1 SET expires = expires - 86400000",
    "UPDATE hapax_operation_1 SET retention = 1",
    "UPDATE hapax_operation_1 SET fingerprint = x'00'",
    "UPDATE hapax_operation_1 SET token = x''",
])
def test_damaged_record(site, damage):
    """A record that cannot be read is unknown; it is neither served nor executed again."""
    one = site()
    key = new_key()
    one.gateway.post(key=key)
    one.gateway.stop()
    with sqlite3.connect(one.gateway.folder / "hapax.db") as store:
        try:
            changed = store.execute(damage).rowcount
        except sqlite3.IntegrityError:
            pytest.skip("the schema does not allow this damage")
    assert changed == 1
    one.gateway.start()
    for _ in range(2):
        check.problem(one.gateway.post(key=key), "idempotency_outcome_unknown")
    assert len(one.provider.ledger(key)) == 1
    assert one.gateway.post().status == 200, "others are not harmed"


def test_another_file(site):
    """A file that is not hapax's is refused, and left as it was."""
    one = site()
    one.gateway.stop()
    path = one.gateway.folder / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    one.gateway.config["store"] = f"sqlite:{path}"
    one.gateway.spawn()
    assert one.gateway.wait(20) == 1
    one.gateway.process = None
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT name FROM sqlite_master").fetchall() == [("mine",)]
