"""Shows that two gateways on one PostgreSQL lose nothing and repeat nothing,
while gateways are killed, stopped and continued, their connections are cut,
and the database is restarted, fast and as after a crash. HAPAX_FAULTS asks for
more faults than usual, HAPAX_SEED for the same run again."""
import os
import random
import signal
import threading

import pytest

from harness import postgres
from harness.gateway import Gateway, merge
from harness.provider import Provider
from judge import BEHAVIOURS, POLICY, Operation, Task, join, judge, settle, try_once

FAULTS = int(os.environ.get("HAPAX_FAULTS", "110"))
CLIENTS = 64
RETRIES = 0.3
BEYOND_LEASE = 1.3

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


class Nodes:
    """Gateways on one database, behind something that sends each request to
    any of them, as a balancer does."""

    def __init__(self, folder, chance, count=2):
        self.cluster = postgres.Cluster()
        self.database = self.cluster.database()
        self.provider = Provider(folder / "ledger")
        self.chance = random.Random(chance.random())
        self.gateways = []
        for number in range(count):
            (folder / str(number)).mkdir()
            config = merge(POLICY, {"store": self.cluster.url(self.database)})
            self.gateways.append(Gateway(folder / str(number), self.provider.url, config, True))

    def post(self, **how):
        return self.chance.choice(self.gateways).post(**how)

    def close(self):
        for gateway in self.gateways:
            gateway.kill()
            gateway.check_log()
        self.provider.close()
        self.cluster.close()


def pause(seconds):
    """Time passes; that is what is tested."""
    threading.Event().wait(seconds)


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


class Client:
    """Makes operations one after the other, each until it is definite; some
    are sent by two at once, and some again although they are done."""

    def __init__(self, nodes, seed):
        self.nodes = nodes
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.operations = []
        self.task = None

    def start(self):
        self.task = Task(self.run)

    def run(self):
        while not self.over.is_set():
            self.one()

    def one(self):
        operation = Operation(self.chance.choice(BEHAVIOURS))
        self.operations.append(operation)
        twins = [Task(try_once, self.nodes, operation)] if self.chance.random() < RETRIES else []
        try_once(self.nodes, operation)
        end = settle(self.nodes, operation)
        join(twins)
        if self.chance.random() < RETRIES:
            assert settle(self.nodes, operation) == end or operation.successes, f"{end}: {operation}"


def test_two_gateways(tmp_path, chance):
    """Faults at random, one after the other, while 64 clients never stop."""
    nodes = Nodes(tmp_path, chance)
    clients = [Client(nodes, chance.random()) for _ in range(CLIENTS)]
    done = dict.fromkeys(KINDS, 0)
    try:
        for gateway in nodes.gateways:
            gateway.start()
        for client in clients:
            client.start()
        for _ in range(FAULTS):
            pause(chance.uniform(0.05, 0.35))
            kind = chance.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
            KINDS[kind][0](nodes, chance)
            done[kind] += 1
            if any(c.task.failure for c in clients):
                break
        for client in clients:
            client.over.set()
        join([c.task for c in clients])
        operations = [o for c in clients for o in c.operations]
        ends = list(judge(nodes, nodes.provider, operations, stuck_is_wrong=False).values())
        print(f"{done}, {len(operations)} operations: {ends.count('done')} done, "
              f"{ends.count('unknown')} unknown")
        assert sum(done.values()) == FAULTS and len(operations) > 10 * FAULTS
        assert ends.count("done") > ends.count("unknown") / 2
    finally:
        for client in clients:
            client.over.set()
        nodes.close()
