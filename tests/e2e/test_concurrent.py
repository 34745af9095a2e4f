"""Shows what a request gets while the first with its key is under way, by each
choice of `concurrent`, and that no storm of retries ever makes a second effect."""
import concurrent.futures
import contextlib
import select
import threading

import pytest

from harness import check
from harness.secret import new_key

CONFIG = {
    "limits": {"waiters": 500, "waiters_per_operation": 100},
    "routes": [
        {"match": "POST /wait", "concurrent": "wait", "wait": "10s"},
        {"match": "POST /short", "concurrent": "wait", "wait": "300ms"},
        {"match": "POST /accepted", "concurrent": "accepted"},
    ],
}


class First:
    """The first request of an operation, held at the provider."""

    def __init__(self, site, path, key=None, behave=""):
        self.key = key or new_key()
        self.gate = site.provider.gate(self.key)
        self.wire = site.gateway.connect()
        self.wire.send(site.gateway.request("POST", path, key=self.key,
                                            behave=f"hold={self.key}; {behave}"))
        self.gate.wait_arrived()

    def finish(self):
        self.gate.release()
        with self.wire:
            return self.wire.answer()


def answered(wires, count, seconds=15):
    """The first `count` of these connections on which an answer arrives."""
    pending, done = {w.sock: w for w in wires}, []
    while len(done) < count:
        ready, _, _ = select.select(list(pending), [], [], seconds)
        assert ready, f"only {len(done)} of {count} were answered"
        done += [pending.pop(sock) for sock in ready]
    return done


def test_conflict(shared):
    """`conflict`, the default: 409 with Retry-After at once; the first is unharmed."""
    first = First(shared, "/pay")
    for _ in range(3):
        answer = shared.gateway.post(key=first.key)
        check.problem(answer, "idempotency_key_in_progress")
        assert check.retry_after(answer) >= 1 and answer["Hapax-Operation"]
    done = first.finish()
    assert done.status == 200
    check.same_answer(done, shared.gateway.post(key=first.key))
    assert len(shared.provider.ledger(first.key)) == 1


def test_conflict_with_a_long_one(shared):
    """The older the attempt, the longer is Retry-After: half of its age, from one second on."""
    first = First(shared, "/pay")
    assert check.retry_after(shared.gateway.post(key=first.key)) == 1
    check.until(lambda: check.retry_after(shared.gateway.post(key=first.key)) == 2, "it grows", 30)
    assert first.finish().status == 200


@pytest.mark.parametrize("path", ["/pay", "/wait", "/accepted"])
def test_another_request_meanwhile(shared, path):
    """Another body does not attach to the operation under way."""
    first = First(shared, path)
    answer = shared.gateway.post(path, key=first.key, body=b'{"amount": 11}')
    check.problem(answer, "idempotency_key_reused")
    assert first.finish().status == 200


def test_wait(shared):
    """`wait`: the answer when it comes, from the one execution."""
    first = First(shared, "/wait")
    waiters = [shared.gateway.connect() for _ in range(5)]
    for wire in waiters:
        wire.send(shared.gateway.request("POST", "/wait", key=first.key))
    assert select.select([w.sock for w in waiters], [], [], 0.3)[0] == [], "answered too early"
    done = first.finish()
    for wire in waiters:
        with wire:
            check.same_answer(done, wire.answer())
    assert len(shared.provider.ledger(first.key)) == 1


def test_wait_ends(shared):
    """A waiter's time is bounded, and its end takes nothing from the first."""
    first = First(shared, "/short")
    for _ in range(2):
        check.problem(shared.gateway.post("/short", key=first.key), "idempotency_key_in_progress")
    done = first.finish()
    assert done.status == 200
    check.same_answer(done, shared.gateway.post("/short", key=first.key))
    assert len(shared.provider.ledger(first.key)) == 1


@pytest.mark.parametrize("behave, code", [
    ("status=429", "idempotency_key_in_progress"),
    ("status=403", "idempotency_key_in_progress"),
    ("reset=after", "idempotency_outcome_unknown"),
    ("status=502", "idempotency_outcome_unknown"),
])
def test_waiter_never_executes(shared, behave, code):
    """Whatever became of the first, a waiter does not take its place."""
    first = First(shared, "/wait", behave=behave)
    with shared.gateway.connect() as waiter:
        waiter.send(shared.gateway.request("POST", "/wait", key=first.key))
        assert select.select([waiter.sock], [], [], 0.3)[0] == [], "answered too early"
        first.finish()
        check.problem(waiter.answer(), code)
    assert len(shared.provider.seen(key=first.key)) == 1


@pytest.mark.parametrize("limits", [{"waiters_per_operation": 2}, {"waiters": 2}])
def test_waiters_are_bounded(site, limits):
    """Beyond the bound: 503, at once; those within it get their answer."""
    one = site({**CONFIG, "limits": limits})
    first = First(one, "/wait")
    wires = [one.gateway.connect() for _ in range(6)]
    for wire in wires:
        wire.send(one.gateway.request("POST", "/wait", key=first.key))
    refused = answered(wires, 4)
    for wire in refused:
        answer = wire.answer()
        # The retry is refused, but what it asks for is under way.
        check.problem(answer, "overloaded", executed="unknown")
        assert check.retry_after(answer) >= 1
    done = first.finish()
    for wire in set(wires) - set(refused):
        check.same_answer(done, wire.answer())
    with contextlib.ExitStack() as stack:
        for wire in wires:
            stack.enter_context(wire)
    assert len(one.provider.ledger(first.key)) == 1


def test_waiter_goes_away(shared):
    """A waiter that hangs up harms neither the first nor the others."""
    first = First(shared, "/wait")
    leaving, staying = shared.gateway.connect(), shared.gateway.connect()
    for wire in (leaving, staying):
        wire.send(shared.gateway.request("POST", "/wait", key=first.key))
    leaving.close()
    done = first.finish()
    with staying:
        check.same_answer(done, staying.answer())


def test_accepted(shared):
    """`accepted`: 202 and where to look; afterwards the answer."""
    first = First(shared, "/accepted")
    answer = shared.gateway.post("/accepted", key=first.key)
    assert answer.status == 202 and not answer.replayed, answer
    assert answer["Hapax-Operation"]
    where = answer["Location"]
    assert where and where.endswith(f"/.hapax/operations/{answer['Hapax-Operation']}"), answer
    assert shared.gateway.get(where[where.index("/.hapax"):]).json()["state"] == "in_progress"
    done = first.finish()
    assert done["Hapax-Operation"] == answer["Hapax-Operation"]
    check.same_answer(done, shared.gateway.post("/accepted", key=first.key))


@pytest.mark.parametrize("path, allowed", [
    ("/pay", {200, 409}), ("/wait", {200}), ("/accepted", {200, 202}),
])
def test_storm(shared, path, allowed):
    """Fifty at once with one key: one effect, one answer."""
    key, count = new_key(), 50
    start, answers = threading.Barrier(count), []

    def send():
        with shared.gateway.connect() as wire:
            start.wait()
            wire.send(shared.gateway.request("POST", path, key=key, behave="delay=0.1"))
            answers.append(wire.answer())

    threads = [threading.Thread(target=send) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(answers) == count
    assert {a.status for a in answers} <= allowed, {a.status for a in answers}
    done = [a for a in answers if a.status == 200]
    assert len([a for a in done if not a.replayed]) == 1
    assert len({a.body for a in done}) == 1
    assert len(shared.provider.ledger(key)) == 1


def test_slow_is_not_lost(site):
    """While the upstream connection lives, the lease is renewed: a request that
    takes three leases is in progress all the time, and its answer counts."""
    one = site({"defaults": {"lease": "1s"}, "sweep": {"every": "1s"}})
    first = First(one, "/pay")
    pause = threading.Event()
    for _ in range(6):
        pause.wait(0.5)  # the passing of time is what is tested
        check.problem(one.gateway.post(key=first.key), "idempotency_key_in_progress")
    done = first.finish()
    assert done.status == 200, done
    check.same_answer(done, one.gateway.post(key=first.key))
    assert len(one.provider.ledger(first.key)) == 1


def test_metrics_beside_connections(site):
    """Scrapes while connections come and go: the descriptors that a scrape counts change under its hands."""
    one, over = site(), threading.Event()

    def come_and_go():
        while not over.is_set():
            assert one.gateway.get("/seen").status == 200

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        callers = [pool.submit(come_and_go) for _ in range(4)]
        try:
            for _ in range(150):
                assert one.gateway.metrics()["process_open_fds"] >= 10
        finally:
            over.set()
    for caller in callers:
        caller.result()
