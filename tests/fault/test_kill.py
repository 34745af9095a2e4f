"""Shows that kills at random times under load lose nothing and repeat nothing,
on one store through all of them, while generations of operations open, close,
expire and are reaped. HAPAX_KILLS asks for more than the usual number,
HAPAX_SEED for the same run again."""
import os
import threading

from generations import check_turnover
from harness.gateway import merge
from judge import POLICY, judge
from nodes import Crowd
from timed_ledger import BRIEF

KILLS = int(os.environ.get("HAPAX_KILLS", "200"))
CLIENTS = 4
# With many kills more is stored, and then generations are not quite as small.
SIZES = {"HAPAX_TEST_GENERATION_OPERATIONS": str(max(12, KILLS // 10)), "HAPAX_TEST_GENERATION_MS": str(max(400, 2 * KILLS))}


class Site:
    """The one gateway, for clients who else have several."""

    def __init__(self, ground):
        self.provider = ground.provider
        self.post = ground.gateway.post


def test_random_kills(ground, chance):
    """Killed again and again, while clients never stop."""
    one = ground(merge(POLICY, BRIEF))
    one.gateway.start(SIZES)
    crowd = Crowd(Site(one), chance, CLIENTS, stuck_is_wrong=True).start()
    try:
        for _ in range(KILLS):
            threading.Event().wait(chance.uniform(0.0, 0.15))
            one.gateway.kill()
            one.gateway.start(SIZES)
            if crowd.failed:
                break
        operations = crowd.finish()
    finally:
        crowd.tell_to_stop()
    one.gateway.kill()
    one.gateway.start(SIZES)
    ends = list(judge(one.gateway, one.provider, operations).values())
    print(f"{KILLS + 1} kills, {crowd.count()} operations, of those that are kept "
          f"{ends.count('done')} done, {ends.count('unknown')} unknown")
    assert len(operations) > KILLS and ends.count("done") > ends.count("unknown") / 2
    check_turnover(one.gateway.folder / "hapax.db")
