"""Shows what must not happen between jobs and providers: a second effect because
the provider said "not found" too early, a second delivery without need, a job that
holds up others, a target that holds up another."""
import pytest

from harness import check
from harness.operator_command import Operator
from harness.providers import Debt, Providers

SETTLE_AFTER_MS = 2000


@pytest.fixture
def scene(site, tmp_path):
    """scene(config) starts a gateway that owes jobs to both providers."""
    made = []

    def start(**config):
        providers = Providers(tmp_path)
        made.append(providers)
        one = site(providers.config(**config))
        one.providers, one.operator = providers, Operator(one.gateway)
        return one

    yield start
    for providers in made:
        providers.close()


def plain(**how):
    return {"targets": {"plain": how}}


def state_of(one, debt):
    job, = one.operator.jobs("--operation", debt.reference)
    return job["state"]


def accept(one, path, count=1):
    debts = [Debt(path) for _ in range(count)]
    for debt in debts:
        assert debt.ask(one.gateway).status == 202, debt
    return debts


def wait_state(one, debts, state, seconds=30):
    for debt in debts:
        check.until(lambda d=debt: state_of(one, d) == state, f"{debt} is {state}", seconds)


def not_found(external):
    return [row for row in external.ledger.lookups() if row.told == "404"]


# The slow original.
def test_not_found_while_the_original_runs(scene):
    """However often the provider says so: before settle_after it counts for nothing.
    The original has its effect, and is then found."""
    one = scene(**plain(reconcile={"settle_after": "1h"}))
    external = one.providers.plain
    external.fault("none", before_gate="slow")
    debt, = accept(one, "/plain")
    external.wait(lambda: len(not_found(external)) >= 3, 30)
    assert state_of(one, debt) == "unknown" and len(external.ledger.sends()) == 1
    external.release("slow")
    wait_state(one, [debt], "done")
    assert debt.final(one.gateway) == 409
    assert len(external.ledger.sends()) == len(external.ledger.effects()) == 1


# What a 5xx of a target means.
def test_server_error_retry(scene):
    """`server_error: retry` takes a 500 for rolled back: it is sent again, and nobody asks."""
    one = scene(**plain(server_error="retry"))
    external = one.providers.plain
    external.script({"times": 2, "fault": {"kind": "error_before"}})
    debt, = accept(one, "/plain")
    wait_state(one, [debt], "done")
    assert debt.final(one.gateway) == 201
    assert len(external.ledger.sends()) == 3 and len(external.ledger.effects()) == 1
    assert external.ledger.lookups() == []


def test_server_error_replay(scene):
    """`server_error: replay` takes a 500 for the final answer, which the client gets."""
    one = scene(**plain(server_error="replay"))
    external = one.providers.plain
    external.script({"times": 1, "fault": {"kind": "error_before"}})
    debt, = accept(one, "/plain")
    wait_state(one, [debt], "done")
    answer = debt.accept(one.gateway)
    assert answer.status == 500 and answer.replayed, answer
    assert len(external.ledger.sends()) == 1 and external.ledger.lookups() == []


def test_server_error_unsaid(scene):
    """Unsaid, nobody knows what a 500 means: the provider is asked, and nothing is sent again."""
    one = scene()
    external = one.providers.plain
    external.script({"times": 1, "fault": {"kind": "error_after"}})
    debt, = accept(one, "/plain")
    wait_state(one, [debt], "done")
    assert len(external.ledger.sends()) == len(external.ledger.effects()) == 1
    assert external.ledger.lookups()


def test_not_found_once_is_not_enough(scene):
    """After settle_after, too, it must be said twice in a row; a lookup that fails
    begins the row anew. Only then is it sent again."""
    one = scene(**plain(reconcile={"settle_after": f"{SETTLE_AFTER_MS}ms"}))
    external = one.providers.plain
    external.script({"times": 1, "fault": {"kind": "reset_before"}},
                   {"when": {"kind": "lookup", "number": [2, 4, 6]}, "fault": {"kind": "error_before"}})
    debt, = accept(one, "/plain")
    wait_state(one, [debt], "done", 60)
    assert debt.final(one.gateway) == 201
    first, second = external.ledger.sends()
    assert (first.key, first.body) == (second.key, second.body)
    counted = [row for row in external.ledger.lookups() if row.at >= first.at + SETTLE_AFTER_MS]
    assert [row.told for row in counted[-2:]] == ["404", "404"]
    assert counted[-1].at - counted[-2].at >= 990  # confirm_after, but for the clock's grain
    assert len(external.ledger.effects()) == 1


def test_found_late(scene):
    """Lookups that lag behind the effect: it is found in the end, and not repeated."""
    one = scene(**plain(reconcile={"settle_after": "1h"}))
    external = one.providers.plain
    external.set(lookup_delay_ms=3600_000)
    external.fault("reset_after")
    debt, = accept(one, "/plain")
    check.until(lambda: not_found(external), "a lookup that came too early")
    external.set(clock_shift_ms=3600_001)
    wait_state(one, [debt], "done")
    assert not_found(external) and len(external.ledger.sends()) == 1


# Who holds up whom.
def test_a_poison_job(scene):
    """One that fails for ever, first in the queue of a target that takes one at a
    time, does not hold up the others, and ends among the dead letters."""
    one = scene(targets={"keyed": {"concurrency": 1, "attempts": 6, "breaker": {"failures": 0}}},
                routes=[{"match": f"POST /{path}", "deliver": "async", "target": "keyed"}
                        for path in ("keyed", "poison")])
    external = one.providers.keyed
    external.script({"when": {"path": "/poison"}, "fault": {"kind": "too_many"}})
    poison, = accept(one, "/poison")
    others = accept(one, "/keyed", 20)
    wait_state(one, others, "done")
    wait_state(one, [poison], "dead")
    assert len(external.ledger.sends(path="/poison")) == 6
    assert len(external.ledger.effects()) == 20
    assert [row["operation"] for row in one.operator.jobs("--state", "dead")] == [poison.reference]


def test_a_poison_job_that_never_answers(scene):
    """Nor does one that is unknown again and again."""
    one = scene(targets={"keyed": {"concurrency": 1, "attempts": 4, "timeout": "200ms",
                                   "breaker": {"failures": 0}}},
                routes=[{"match": f"POST /{path}", "deliver": "async", "target": "keyed"}
                        for path in ("keyed", "poison")])
    external = one.providers.keyed
    external.script({"when": {"path": "/poison"}, "fault": {"kind": "hold_after"}})
    poison, = accept(one, "/poison")
    others = accept(one, "/keyed", 10)
    wait_state(one, others, "done")
    wait_state(one, [poison], "unknown")
    sends = external.ledger.sends(path="/poison")
    assert len(sends) == 4 and len({send.key for send in sends}) == 1
    assert len(external.ledger.effects(path="/poison")) == 1


def test_a_slow_target(scene):
    """With as many jobs under way as there may be in all, another target's are
    delivered all the same."""
    one = scene(work={"deliveries": 4}, targets={"keyed": {"timeout": "60s", "concurrency": 16}})
    one.providers.keyed.script({"fault": {"kind": "none", "before_gate": "slow"}})
    slow = accept(one, "/keyed", 8)
    one.providers.keyed.wait(lambda: len(one.providers.keyed.ledger.sends()) >= 3)
    quick = accept(one, "/plain", 20)
    wait_state(one, quick, "done")
    assert not one.providers.keyed.ledger.effects()
    one.providers.keyed.release("slow", 100)
    wait_state(one, slow, "done")


def test_a_target_that_is_down(scene):
    """Nothing is listening: its jobs wait, another's do not; then they are sent."""
    one = scene()
    one.providers.keyed.refuse()
    waiting = accept(one, "/keyed", 5)
    wait_state(one, accept(one, "/plain", 10), "done")
    assert {state_of(one, debt) for debt in waiting} <= {"queued", "sending"}
    one.providers.keyed.accept()
    wait_state(one, waiting, "done")
    assert len(one.providers.keyed.ledger.effects()) == 5
