"""Two gateways on one database and the clients who use them, for the tests in
which the database or the gateways come to harm."""
import random
import threading

from harness.gateway import Gateway, merge
from judge import BEHAVIOURS, POLICY, Operation, Task, join, settle, try_once
from timed_ledger import BRIEF, BRIEF_TARGET, TimedProvider, judge_brief

RETRIES = 0.3
BRIEF_SHARE = 0.3


class Nodes:
    """Gateways on one database, behind something that sends each request to
    any of them, as a balancer does."""

    def __init__(self, folder, cluster, chance, count=2, more=BRIEF):
        self.cluster = cluster
        self.database = cluster.database()
        self.provider = TimedProvider(folder / "ledger")
        self.chance = random.Random(chance.random())
        self.gateways = []
        for number in range(count):
            (folder / str(number)).mkdir()
            config = merge(merge(POLICY, more), {"store": cluster.url(self.database)})
            self.gateways.append(Gateway(folder / str(number), self.provider.url, config, True))

    def start(self):
        for gateway in self.gateways:
            gateway.start()
        return self

    def post(self, target="/pay", **how):
        return self.chance.choice(self.gateways).post(target, **how)

    def close(self):
        for gateway in self.gateways:
            gateway.kill()
            gateway.check_log()
        self.provider.close()
        self.cluster.close()


def pause(seconds):
    """Time passes; that is what is tested."""
    threading.Event().wait(seconds)


class Client:
    """Makes operations one after the other, each until it is definite; some
    are sent by two at once, some again although they are done, and some expire
    and are reaped while the test runs, and are sent again at any time."""

    def __init__(self, nodes, seed, stuck_is_wrong, brief_targets):
        self.nodes = nodes
        self.brief_targets = brief_targets
        self.stuck_is_wrong = stuck_is_wrong
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.operations = []
        self.brief = []
        self.task = None

    def start(self):
        self.task = Task(self.run)

    def run(self):
        while not self.over.is_set():
            self.one()

    def one(self):
        brief = self.chance.random() < BRIEF_SHARE
        operation = Operation(self.chance.choice(BEHAVIOURS), self.chance.choice(self.brief_targets) if brief else "/pay")
        (self.brief if brief else self.operations).append(operation)
        twins = [Task(try_once, self.nodes, operation)] if self.chance.random() < RETRIES else []
        try_once(self.nodes, operation)
        end = settle(self.nodes, operation, self.stuck_is_wrong and not twins)
        join(twins)
        if self.chance.random() < RETRIES:
            again = settle(self.nodes, operation)
            # A late answer may still settle what was unknown, never the other way; and
            # what has expired may have been executed anew, which the ledger judges.
            assert brief or again in (end, "done"), f"{end}, then {again}: {operation}"
        if self.brief and self.chance.random() < RETRIES:
            settle(self.nodes, self.chance.choice(self.brief))


class Crowd:
    """Clients who never stop until they are told, and all that they did.
    `stuck_is_wrong`: whoever lost an answer was told so by the death of all."""

    def __init__(self, nodes, chance, count, stuck_is_wrong=False, brief_targets=(BRIEF_TARGET,)):
        self.nodes = nodes
        self.clients = [Client(nodes, chance.random(), stuck_is_wrong, brief_targets) for _ in range(count)]

    def start(self):
        for client in self.clients:
            client.start()
        return self

    @property
    def failed(self):
        return any(c.task.failure for c in self.clients)

    @property
    def brief(self):
        return [o for c in self.clients for o in c.brief]

    def count(self):
        return sum(len(c.operations) + len(c.brief) for c in self.clients)

    def tell_to_stop(self):
        for client in self.clients:
            client.over.set()

    def finish(self):
        """Everything they did that is kept, once none of them is under way; what
        expired meanwhile is judged here."""
        self.tell_to_stop()
        join([c.task for c in self.clients])
        judge_brief(self.nodes.provider, self.brief)
        return [o for c in self.clients for o in c.operations]
