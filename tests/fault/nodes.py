"""Two gateways on one database and the clients who use them, for the tests in
which the database or the gateways come to harm."""
import random
import threading

from harness.gateway import Gateway, merge
from harness.provider import Provider
from judge import BEHAVIOURS, POLICY, Operation, Task, join, settle, try_once

RETRIES = 0.3


class Nodes:
    """Gateways on one database, behind something that sends each request to
    any of them, as a balancer does."""

    def __init__(self, folder, cluster, chance, count=2):
        self.cluster = cluster
        self.database = cluster.database()
        self.provider = Provider(folder / "ledger")
        self.chance = random.Random(chance.random())
        self.gateways = []
        for number in range(count):
            (folder / str(number)).mkdir()
            config = merge(POLICY, {"store": cluster.url(self.database)})
            self.gateways.append(Gateway(folder / str(number), self.provider.url, config, True))

    def start(self):
        for gateway in self.gateways:
            gateway.start()
        return self

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
            # A late answer may still settle what was unknown, never the other way.
            assert settle(self.nodes, operation) in (end, "done"), f"{end}: {operation}"


class Crowd:
    """Clients who never stop until they are told, and all that they did."""

    def __init__(self, nodes, chance, count):
        self.clients = [Client(nodes, chance.random()) for _ in range(count)]

    def start(self):
        for client in self.clients:
            client.start()
        return self

    @property
    def failed(self):
        return any(c.task.failure for c in self.clients)

    def count(self):
        return sum(len(c.operations) for c in self.clients)

    def tell_to_stop(self):
        for client in self.clients:
            client.over.set()

    def finish(self):
        """Everything they did, once none of them is under way."""
        self.tell_to_stop()
        join([c.task for c in self.clients])
        return [o for c in self.clients for o in c.operations]
