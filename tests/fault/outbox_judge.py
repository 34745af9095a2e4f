"""The judge of the outbox and the reconciler: the external service's ledger on one
side, and on the other what hapax says of its jobs and what clients were told.

The rules, each a function below:
  ended         every job is done, declined, dead, unknown or discarded: none is lost
  effects       at most one effect per job; exactly one where it is called done, and
                then with the provider's own id; none where it was declined
  sends         a job is sent again only if no earlier sending can have been carried
                out (proved), or the target honours keys and remembers this one
  same          every sending of a job is the same request
  order         the effects of an operation's jobs come in the order of the numbers
                in their names
  strangers     nothing was sent that no job asked for
  told          a client that was told of success was told the truth, and one story"""
import collections
import dataclasses
import re

ENDS = ("done", "declined", "dead", "unknown", "discarded")
# Answers by which a provider says that it did not do it (DESIGN, the outcome of an attempt).
REFUSALS = {"401", "403", "407", "408", "421", "425", "429"}


@dataclasses.dataclass
class Policy:
    """What the configuration says of the target."""
    honours_ms: int = 0          # 0: it does not honour keys
    settle_after_ms: int = None  # None: a lookup's "not found" proves nothing
    lookups: int = 2             # so many in a row
    deaf: bool = False           # who asked may have died before it heard the answer
    refusals: frozenset = frozenset(REFUSALS)


@dataclasses.dataclass
class Job:
    """What hapax says of one job. `end`: one of ENDS, None where it is not to be
    found. `by_person`: somebody had it sent again, which no rule forbids."""
    key: str
    operation: str
    name: str
    end: str = None
    provider_id: str = None
    by_person: bool = False

    @property
    def number(self):
        """The sequence number in its name, or None."""
        found = re.findall(r"\d+", self.name)
        return int(found[-1]) if found else None


@dataclasses.dataclass
class Told:
    """What the clients of one operation were told: (status, body) of each answer."""
    operation: str
    answers: list


class Case:
    """The ledger, sorted by key and by operation. `of`: how a send or an effect
    names its job; by its key, unless the test knows better."""

    def __init__(self, ledger, jobs, policy, of=lambda row: row.key):
        self.jobs = jobs
        self.policy = policy
        self.of = of
        self.sends = self.sorted_by(of, ledger.sends())
        self.effects = self.sorted_by(of, ledger.effects())
        self.by_operation = self.sorted_by(lambda row: row.operation, ledger.effects())
        self.lookups = self.sorted_by(lambda row: row.operation, ledger.lookups())

    @staticmethod
    def sorted_by(of, rows):
        found = collections.defaultdict(list)
        for row in rows:
            found[of(row)].append(row)
        return found


def fates(rows):
    """Sends, as a failure prints them."""
    return [(row.at, row.told, row.effect, "replay" if row.replay else "") for row in rows]


def ended(case):
    for job in case.jobs:
        if job.end not in ENDS:
            yield f"lost: {job}, sends {fates(case.sends[job.key])}"


def effects(case):
    for job in case.jobs:
        ids = [effect.id for effect in case.effects[job.key]]
        if len(ids) > 1 and not job.by_person:
            yield f"happened {len(ids)} times: {job}, sends {fates(case.sends[job.key])}"
        if job.end == "done" and not ids:
            yield f"done without an effect: {job}, sends {fates(case.sends[job.key])}"
        if job.end == "declined" and ids:
            yield f"declined, but it happened: {job}, effects {ids}"
        if job.end == "discarded" and case.sends[job.key] and not job.by_person:
            yield f"discarded after it was sent: {job}, sends {fates(case.sends[job.key])}"
        if job.end == "done" and job.provider_id is not None and job.provider_id not in ids:
            yield f"the provider has another id: {job}, effects {ids}"


def refused(case, send):
    """Whether the answer to this sending says that nothing was done."""
    if send.told == "503":
        return send.retry_after is not None
    return send.told in case.policy.refusals


def looked_up(case, send, until):
    """Whether lookups proved, before `until`, that this sending did nothing: the
    last ones in a row, all after the settling time. A lookup by key is about the
    job of that key alone."""
    if case.policy.settle_after_ms is None:
        return False
    seen = [row for row in case.lookups[send.operation] if send.n < row.n < until.n
            and row.key in (None, send.key)]
    if case.policy.deaf:  # an answer that was no verdict may not have been heard
        seen = [row for row in seen if row.told in ("200", "404")]
    last = seen[-case.policy.lookups:]
    return (len(last) == case.policy.lookups and all(row.told == "404" for row in last)
            and last[0].at >= send.at + case.policy.settle_after_ms)


def sends(case):
    for job in case.jobs:
        rows = case.sends[job.key]
        if job.by_person:
            continue
        for at, send in enumerate(rows):
            open_ones = [row for row in rows[:at]
                         if not refused(case, row) and not looked_up(case, row, send)]
            if open_ones and send.at - open_ones[0].at >= case.policy.honours_ms:
                yield (f"sent again although it may have happened: {job}, "
                       f"sends {fates(rows[:at + 1])}")
                break


def same(case):
    for job in case.jobs:
        kinds = {(row.method, row.path, row.query, row.operation, row.digest)
                 for row in case.sends[job.key] if row.whole}
        if len(kinds) > 1:
            yield f"sent as different requests: {job}, {sorted(kinds)}"
        wrong = {kind[3] for kind in kinds} - {job.operation}
        if wrong:
            yield f"sent for another operation: {job}, {wrong}"


def order(case):
    numbers = {job.key: job.number for job in case.jobs}
    for operation, rows in case.by_operation.items():
        seen = [numbers[case.of(row)] for row in rows if numbers.get(case.of(row)) is not None]
        if seen != sorted(seen):
            yield f"out of order: operation {operation}, its jobs happened as {seen}"


def strangers(case):
    known = {job.key for job in case.jobs}
    for key in set(case.sends) - known:
        if case.sends[key]:
            yield f"nobody's job: {key!r}, sends {fates(case.sends[key])}"


def told(case, clients):
    per_operation = collections.Counter(job.operation for job in case.jobs)
    by_person = {job.operation for job in case.jobs if job.by_person}
    for client in clients:
        happened = len(case.by_operation[client.operation])
        stories = {body for status, body in client.answers if 200 <= status < 300 and status != 202}
        if len(stories) > 1:
            yield f"two stories: operation {client.operation}, {stories}"
        if stories and not happened:
            yield f"success without an effect: operation {client.operation}, {stories}"
        most = max(1, per_operation[client.operation])
        if happened > most and client.operation not in by_person:
            yield f"happened {happened} times: operation {client.operation}"


def complaints(ledger, jobs, policy=None, clients=(), of=None):
    """Every rule that was broken, in words."""
    case = Case(ledger, jobs, policy or Policy(), **({"of": of} if of else {}))
    found = [c for rule in (ended, effects, sends, same, order, strangers) for c in rule(case)]
    return found + list(told(case, clients))


def judge(ledger, jobs, policy=None, clients=(), of=None):
    """Fails with all complaints; returns how many jobs ended in which way."""
    found = complaints(ledger, jobs, policy, clients, of)
    assert not found, "\n".join(found)
    return collections.Counter(job.end for job in jobs)
