"""Shows that kills at random times under load lose nothing and repeat nothing,
on one store through all of them. HAPAX_KILLS asks for more than the usual
number, HAPAX_SEED for the same run again."""
import os
import random
import threading

from judge import BEHAVIOURS, POLICY, Operation, join, judge, send, settle

KILLS = int(os.environ.get("HAPAX_KILLS", "150"))
CLIENTS = 4


class Client(threading.Thread):
    """Makes operations one after the other, each until it is definite, through
    as many deaths as it takes. Some are sent by two at once."""

    def __init__(self, gateway, seed, over):
        super().__init__()
        self.gateway = gateway
        self.chance = random.Random(seed)
        self.over = over
        self.operations = []
        self.failure = None

    def run(self):
        try:
            while not self.over.is_set():
                self.one()
        except AssertionError as failure:
            self.failure = failure

    def one(self):
        operation = Operation(self.chance.choice(BEHAVIOURS))
        self.operations.append(operation)
        twin = None
        if self.chance.random() < 0.2:
            twin = threading.Thread(target=self.once, args=(operation,))
            twin.start()
        self.once(operation)
        settle(self.gateway, operation, stuck_is_wrong=twin is None)
        if twin:
            twin.join()

    def once(self, operation):
        answer = send(self.gateway, operation, operation.behave)
        if answer is not None:
            operation.saw(answer)


def test_random_kills(ground, chance):
    """Killed again and again, while clients never stop."""
    one = ground(POLICY)
    over = threading.Event()
    clients = [Client(one.gateway, chance.random(), over) for _ in range(CLIENTS)]
    one.gateway.start()
    for client in clients:
        client.start()
    for _ in range(KILLS):
        over.wait(chance.uniform(0.0, 0.15))
        one.gateway.kill()
        one.gateway.start()
        assert not any(c.failure for c in clients), [c.failure for c in clients if c.failure]
    over.set()
    join(clients)
    assert not any(c.failure for c in clients), [c.failure for c in clients if c.failure]
    one.gateway.kill()
    one.gateway.start()
    operations = [o for c in clients for o in c.operations]
    ends = judge(one.gateway, one.provider, operations)
    counts = {e: list(ends.values()).count(e) for e in ("done", "unknown")}
    print(f"{KILLS + 1} kills, {len(operations)} operations: {counts}")
    assert len(operations) > KILLS and counts["done"] > counts["unknown"] / 2
