"""Shows that a process killed at any named step of a request's way loses no
operation and repeats none: it is started again, every client retries, and the
ledger is judged. So does one that is killed while generations open, close, get their
filters, and are reaped; or while the reaper leaves tombstones and a history behind."""
import pytest

from expiring import EXPIRING, TARGETS, conclude
from generations import SMALL
from harness import check, postgres
from harness.gateway import merge
from judge import POLICY, Operation, join, judge, workload
from nodes import Crowd
from test_kill import Site
from timed_ledger import BRIEF

SET = ("", "delay=0.03", "reset=after", "status=429", "big=100000", "status=500; effect=yes")

CLIENTS = 3
GENERATION = int(SMALL["HAPAX_TEST_GENERATION_OPERATIONS"])

# Without the outbox's workers, whose batches would pass the same steps first.
ALONE = merge(POLICY, {"work": {"inside": False}})


@pytest.mark.parametrize("passing", [1, 2, 3, 5, 8])
def test_killed_at(ground, step, passing):
    """Killed at the n-th passing of a step, under a few operations at once."""
    one = ground(ALONE)
    operations = [Operation(b) for b in SET]
    one.gateway.spawn({**SMALL, "HAPAX_CRASH_AT": f"{step}:{passing}"}).wait_ready(may_die=True)
    join(workload(one.gateway, operations, copies=2))
    if passing == 1:
        assert one.gateway.wait(30) == -9, f"{step} was never passed"
    one.gateway.kill()
    one.gateway.start(SMALL)
    judge(one.gateway, one.provider, operations)


def test_killed_while_recovering(ground, step):
    """Killed at the same step again and again, retries included: it still ends well."""
    one = ground(ALONE)
    operations = [Operation(b) for b in SET]
    for passing in (2, 1, 3):
        one.gateway.spawn({**SMALL, "HAPAX_CRASH_AT": f"{step}:{passing}"}).wait_ready(may_die=True)
        join(workload(one.gateway, operations))
        one.gateway.kill()
    one.gateway.start(SMALL)
    judge(one.gateway, one.provider, operations)


@pytest.mark.parametrize("passing", [1, 2, 5])
def test_killed_at_generation(ground, chance, generation_step, passing):
    """Killed at the n-th passing of a step of the generations, and once more at the first
    one after the next start, while clients never stop and what they do expires."""
    one = ground(merge(POLICY, BRIEF))
    one.gateway.start({**SMALL, "HAPAX_CRASH_AT": f"{generation_step}:{passing}"})
    crowd = Crowd(Site(one), chance, CLIENTS, stuck_is_wrong=True).start()
    try:
        check.until(one.gateway.gone, f"{generation_step} is passed {passing} times", 40)
        assert one.gateway.wait() == -9, one.gateway.log()
        one.gateway.spawn({**SMALL, "HAPAX_CRASH_AT": generation_step}).wait_ready(may_die=True)
        check.until(one.gateway.gone, f"{generation_step} is passed again", 40)
        one.gateway.start(SMALL)
        done = crowd.count()
        check.until(lambda: crowd.failed or crowd.count() > done + 3 * GENERATION, "traffic goes on", 40)
        operations = crowd.finish()
    finally:
        crowd.tell_to_stop()
    one.gateway.kill()
    one.gateway.start(SMALL)
    judge(one.gateway, one.provider, operations)


@pytest.mark.parametrize("passing", [1, 2, 5])
def test_killed_at_expiry(ground, chance, expiry_store, expiry_step, passing):
    """Killed at the n-th passing of a step of the reaper, and again after the next start:
    no tombstone is lost, and each finished operation is told once."""
    config = merge(POLICY, EXPIRING)
    alone = expiry_store == "sqlite"   # else a dead gateway's attempts wait for their leases
    if not alone:
        if postgres.programs() is None:
            pytest.skip("PostgreSQL is not installed")
        config = merge(config, {"store": postgres.shared().url(postgres.shared().database())})
    one = ground(config)
    one.gateway.start({**SMALL, "HAPAX_CRASH_AT": f"{expiry_step}:{passing}"})
    crowd = Crowd(Site(one), chance, CLIENTS, stuck_is_wrong=alone, brief_targets=TARGETS).start()
    try:
        check.until(one.gateway.gone, f"{expiry_step} is passed {passing} times", 40)
        assert one.gateway.wait() == -9, one.gateway.log()
        one.gateway.spawn({**SMALL, "HAPAX_CRASH_AT": expiry_step}).wait_ready(may_die=True)
        check.until(one.gateway.gone, f"{expiry_step} is passed again", 40)
        one.gateway.start(SMALL)
        done = crowd.count()
        check.until(lambda: crowd.failed or crowd.count() > done + 3 * GENERATION, "traffic goes on", 40)
        conclude(one, crowd, SMALL)
    finally:
        crowd.tell_to_stop()
