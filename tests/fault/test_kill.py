"""Shows that kills at random times under load lose nothing and repeat nothing,
on one store through all of them. HAPAX_KILLS asks for more than the usual
number, HAPAX_SEED for the same run again."""
import os
import random
import threading

from judge import BEHAVIOURS, POLICY, Operation, Task, join, judge, settle, try_once

KILLS = int(os.environ.get("HAPAX_KILLS", "150"))
CLIENTS = 4


class Client:
    """Makes operations one after the other, each until it is definite, through
    as many deaths as it takes. Some are sent by two at once."""

    def __init__(self, gateway, seed):
        self.gateway = gateway
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
        twins = [Task(try_once, self.gateway, operation)] if self.chance.random() < 0.2 else []
        try_once(self.gateway, operation)
        settle(self.gateway, operation, stuck_is_wrong=not twins)
        join(twins)


def test_random_kills(ground, chance):
    """Killed again and again, while clients never stop."""
    one = ground(POLICY)
    clients = [Client(one.gateway, chance.random()) for _ in range(CLIENTS)]
    one.gateway.start()
    for client in clients:
        client.start()
    for _ in range(KILLS):
        threading.Event().wait(chance.uniform(0.0, 0.15))
        one.gateway.kill()
        one.gateway.start()
        if any(c.task.failure for c in clients):
            break
    for client in clients:
        client.over.set()
    join([c.task for c in clients])
    one.gateway.kill()
    one.gateway.start()
    operations = [o for c in clients for o in c.operations]
    ends = judge(one.gateway, one.provider, operations)
    counts = {e: list(ends.values()).count(e) for e in ("done", "unknown")}
    print(f"{KILLS + 1} kills, {len(operations)} operations: {counts}")
    assert len(operations) > KILLS and counts["done"] > counts["unknown"] / 2
