"""Shows that two gateways on one PostgreSQL lose nothing and repeat nothing,
while gateways are killed, stopped and continued, their connections are cut,
and the database is restarted, fast and as after a crash; also where keys expire,
tombstones and a history are left behind, and unknown outcomes are settled.
HAPAX_FAULTS asks for more faults than usual, HAPAX_SEED for the same run again."""
import os
import signal

import pytest

from expiring import EXPIRING, TARGETS, judge_all
from harness import postgres
from harness.gateway import merge
from judge import judge
from nodes import Crowd, Nodes, pause
from test_settlement import Settler, judge_settled, settled_config

FAULTS = int(os.environ.get("HAPAX_FAULTS", "110"))
# With tombstones and a history: by default fewer, since the run waits for expiries.
EXPIRY_FAULTS = int(os.environ.get("HAPAX_FAULTS", "40"))
CLIENTS = 64
BEYOND_LEASE = 1.3

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


# The faults. Each leaves everything running again.
def kill(nodes, chance):
    gateway = chance.choice(nodes.gateways)
    gateway.kill()
    gateway.start()


def stop_for(seconds):
    def stop(nodes, chance):
        gateway = chance.choice(nodes.gateways)
        gateway.signal(signal.SIGSTOP)
        pause(seconds(chance))
        gateway.signal(signal.SIGCONT)
    return stop


def cut(nodes, chance):
    """Some of the gateways' connections, whatever they are doing."""
    share = chance.choice((0.3, 1.0))
    nodes.cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                      f"application_name = 'hapax' AND random() < {share}")


def restart(how):
    def stop_and_start(nodes, _):
        nodes.cluster.stop(how)
        nodes.cluster.start()
    return stop_and_start


KINDS = {
    "kill": (kill, 25),
    "stop": (stop_for(lambda chance: chance.uniform(0.02, 0.3)), 20),
    "stop beyond the lease": (stop_for(lambda chance: BEYOND_LEASE), 5),
    "cut": (cut, 38),
    "restart": (restart(signal.SIGINT), 6),
    "crash": (restart(signal.SIGQUIT), 6),
}


class Settled:
    """One of the gateways, for a settler who knows but one."""

    def __init__(self, nodes):
        self.gateway = nodes.gateways[0]
        self.provider = nodes.provider


def harm(nodes, crowd, chance, faults):
    """Faults at random, one after the other; how many of each kind."""
    done = dict.fromkeys(KINDS, 0)
    for _ in range(faults):
        pause(chance.uniform(0.05, 0.35))
        kind = chance.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
        KINDS[kind][0](nodes, chance)
        done[kind] += 1
        if crowd.failed:
            break
    return done


def test_two_gateways(tmp_path, chance):
    """Faults at random, while 64 clients never stop."""
    nodes = Nodes(tmp_path, postgres.Cluster(), chance)
    crowd = Crowd(nodes, chance, CLIENTS)
    try:
        nodes.start()
        crowd.start()
        done = harm(nodes, crowd, chance, FAULTS)
        operations = crowd.finish()
        ends = list(judge(nodes, nodes.provider, operations, stuck_is_wrong=False).values())
        print(f"{done}, {len(operations)} operations: {ends.count('done')} done, "
              f"{ends.count('unknown')} unknown")
        assert sum(done.values()) == FAULTS and len(operations) > 10 * FAULTS
        assert ends.count("done") > ends.count("unknown") / 2
    finally:
        crowd.tell_to_stop()
        nodes.close()


def test_two_gateways_with_expiry(tmp_path, chance):
    """The same where both gateways reap, and somebody settles what they lost: keys are
    refused after their expiry whichever gateway buried them, what finished is told exactly
    once, and what was settled as applied is done for its clients."""
    nodes = Nodes(tmp_path, postgres.Cluster(), chance, more=merge(settled_config("sqlite", tmp_path), EXPIRING))
    crowd = Crowd(nodes, chance, CLIENTS, brief_targets=TARGETS)
    settler = Settler(Settled(nodes), chance.random(), nodes.cluster)
    try:
        nodes.start()
        crowd.start()
        settler.start()
        done = harm(nodes, crowd, chance, EXPIRY_FAULTS)
        print(done)
        settler.finish()
        kept, brief = crowd.finish(), crowd.brief
        ends = judge_all(nodes.gateways, nodes.provider, kept, brief, nodes.cluster)
        judge_settled(settler.one, settler, ends)
        assert sum(done.values()) == EXPIRY_FAULTS
    finally:
        settler.over.set()
        crowd.tell_to_stop()
        nodes.close()
