"""Shows that kills at random times under load lose nothing and repeat nothing,
on one store through all of them, while generations of operations open, close,
expire and are reaped, also where tombstones and a history are left behind.
HAPAX_KILLS asks for more than the usual number, HAPAX_SEED for the same run again."""
import os
import threading

from expiring import EXPIRING, TARGETS, conclude
from generations import check_turnover
from harness.gateway import merge
from judge import POLICY, judge
from nodes import Crowd
from timed_ledger import BRIEF

KILLS = int(os.environ.get("HAPAX_KILLS", "200"))
# With tombstones and a history: by default fewer, since each run waits for expiries.
EXPIRY_KILLS = int(os.environ.get("HAPAX_KILLS", "30"))
CLIENTS = 4
# With many kills more is stored, and then generations are not quite as small.
SIZES = {"HAPAX_TEST_GENERATION_OPERATIONS": str(max(12, KILLS // 10)), "HAPAX_TEST_GENERATION_MS": str(max(400, 2 * KILLS))}


class Site:
    """The one gateway, for clients who else have several."""

    def __init__(self, ground):
        self.provider = ground.provider
        self.post = ground.gateway.post


def kill_often(one, chance, crowd, kills, longest):
    for _ in range(kills):
        threading.Event().wait(chance.uniform(0.0, longest))
        one.gateway.kill()
        one.gateway.start(SIZES)
        if crowd.failed:
            break


def test_random_kills(ground, chance):
    """Killed again and again, while clients never stop."""
    one = ground(merge(POLICY, BRIEF))
    one.gateway.start(SIZES)
    crowd = Crowd(Site(one), chance, CLIENTS, stuck_is_wrong=True).start()
    try:
        kill_often(one, chance, crowd, KILLS, 0.15)
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


def test_random_kills_with_expiry(ground, chance):
    """The same where keys are refused after their expiry, and what finished is told."""
    one = ground(merge(POLICY, EXPIRING))
    one.gateway.start(SIZES)
    crowd = Crowd(Site(one), chance, CLIENTS, stuck_is_wrong=True, brief_targets=TARGETS).start()
    try:
        kill_often(one, chance, crowd, EXPIRY_KILLS, 0.6)
        conclude(one, crowd, SIZES)
    finally:
        crowd.tell_to_stop()
    check_turnover(one.gateway.folder / "hapax.db")
