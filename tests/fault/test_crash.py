"""Shows that a process killed at any named step of a request's way loses no
operation and repeats none: it is started again, every client retries, and the
ledger is judged."""
import pytest

from harness.gateway import merge
from judge import POLICY, Operation, join, judge, workload

SET = ("", "delay=0.03", "reset=after", "status=429", "big=100000", "status=500; effect=yes")

# Without the outbox's workers, whose batches would pass the same steps first.
ALONE = merge(POLICY, {"work": {"inside": False}})


@pytest.mark.parametrize("passing", [1, 2, 3, 5, 8])
def test_killed_at(ground, step, passing):
    """Killed at the n-th passing of a step, under a few operations at once."""
    one = ground(ALONE)
    operations = [Operation(b) for b in SET]
    one.gateway.spawn({"HAPAX_CRASH_AT": f"{step}:{passing}"}).wait_ready(may_die=True)
    join(workload(one.gateway, operations, copies=2))
    if passing == 1:
        assert one.gateway.wait(30) == -9, f"{step} was never passed"
    one.gateway.kill()
    one.gateway.start()
    judge(one.gateway, one.provider, operations)


def test_killed_while_recovering(ground, step):
    """Killed at the same step again and again, retries included: it still ends well."""
    one = ground(ALONE)
    operations = [Operation(b) for b in SET]
    for passing in (2, 1, 3):
        one.gateway.spawn({"HAPAX_CRASH_AT": f"{step}:{passing}"}).wait_ready(may_die=True)
        join(workload(one.gateway, operations))
        one.gateway.kill()
    one.gateway.start()
    judge(one.gateway, one.provider, operations)
