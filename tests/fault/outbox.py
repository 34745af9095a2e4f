"""Clients and an application that make a gateway owe jobs, and what has to be true
of all of them at the end."""
import collections
import random
import threading
import time

from harness.library import Library
from harness.operator_command import Operator
from harness.providers import FINAL_SECONDS, SETTLE_AFTER_MS, Debt, pause
from harness.secret import new_key
from judge import Task, join
from outbox_judge import Job, Policy, judge

HONOURS_MS = 3600_000
KEYED = Policy(honours_ms=HONOURS_MS)


class Client:
    """Makes one debt after the other, each until it is accepted."""

    def __init__(self, gateway, seed):
        self.gateway = gateway
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.debts = []
        self.task = Task(self.run)

    def run(self):
        while not self.over.is_set():
            debt = Debt(self.chance.choice(("/keyed", "/plain")))
            self.debts.append(debt)
            debt.accept(self.gateway, wait=self.chance.choice((0, 0, 1)))
            debt.ask(self.gateway)
            self.over.wait(self.chance.uniform(0.1, 0.5))


class Shop:
    """An application in the same store: its orders owe three jobs each."""

    def __init__(self, url, seed):
        self.library = Library(url)
        self.chance = random.Random(seed)
        self.over = threading.Event()
        self.orders = []
        self.task = Task(self.run)

    def run(self):
        while not self.over.is_set():
            steps = [(f"step-{n}", self.chance.choice(("keyed", "keyed", "plain")), f"/step-{n}")
                     for n in (1, 2, 3)]
            self.orders.append(self.library.owe(new_key(), steps))
            self.over.wait(self.chance.uniform(0.3, 1.0))


def rows_of(operator):
    return operator.jobs("--limit", 10000)


def wait_settled(operator, seconds=FINAL_SECONDS):
    """Every job has ended, and so that nothing is left to a person."""
    end = time.monotonic() + seconds
    while True:
        rows = rows_of(operator)
        left = [row for row in rows if row["state"] != "done"]
        if not left:
            return rows
        assert time.monotonic() < end, (f"{len(left)} of {len(rows)} jobs are not settled: "
                                        f"{left[:3]}\n{operator.on('jobs', 'show', left[0]['number'])}")
        pause(0.3)


def ended(row):
    """How a job ended: what was answered with 402 was declined."""
    end = "declined" if row["state"] == "done" and row["status"] == 402 else row["state"]
    return Job(row["key"], row["operation"], row["name"], end, row["provider_id"] or None)


class Told:
    """What the judge wants to know of a client."""

    def __init__(self, debt):
        self.operation = debt.reference
        self.answers = debt.answers


def judge_all(gateway, providers, debts, orders=(), settle_after_ms=SETTLE_AFTER_MS):
    """Waits until all is settled, then lets the ledgers speak. How they ended."""
    rows = wait_settled(Operator(gateway))
    finals = collections.Counter(debt.final(gateway) for debt in debts)
    known = {row["operation"] for row in rows}
    lost = [d for d in debts if d.reference not in known] + [o for o in orders if o not in known]
    assert not lost, f"accepted, and no job: {lost}"
    assert len(rows) == len(debts) + 3 * len(orders), (len(rows), len(debts), len(orders))
    plain = Policy(settle_after_ms=settle_after_ms, deaf=True)
    for name, external in providers.all.items():
        jobs = [ended(row) for row in rows if row["target"] == name]
        clients = [Told(d) for d in debts if d.path == f"/{name}"]
        judge(external.ledger, jobs, KEYED if name == "keyed" else plain, clients)
    judge_order(providers, rows)
    return finals


def judge_order(providers, rows):
    """Over both providers: an order's next step begins after the one before it ended."""
    numbers = {row["key"]: row["number"] for row in rows}
    begun = collections.defaultdict(list)
    done = {}
    for external in providers.all.values():
        for send in external.ledger.sends():
            begun[send.operation].append((send.at, numbers[send.key]))
        for effect in external.ledger.effects():
            done[numbers[effect.key]] = effect.at
    for operation, sends in begun.items():
        steps = sorted({number for _, number in sends})
        for before, after in zip(steps, steps[1:]):
            first = min(at for at, number in sends if number == after)
            assert done[before] <= first, f"out of order: {operation}, {before} and {after}"


def finish(makers):
    """Tells them to stop, and waits until they have."""
    for maker in makers:
        maker.over.set()
    join([maker.task for maker in makers])
