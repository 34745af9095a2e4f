"""Shows that provider and judge work together: through random faults and kills of
the provider, deliverers that keep the rules are acquitted, and each that breaks
one is found out. HAPAX_SEED asks for the same run again."""
import dataclasses
import uuid

import pytest

from harness.external_service import ExternalService
from harness.wire import Closed, Malformed, connect, request_bytes
from outbox_judge import REFUSALS, Job, Policy, complaints, judge

FAULTS = [{"kind": kind} for kind in ("none", "error_before", "error_after", "reset_before",
                                      "reset_after", "half", "nonsense", "decline", "unavailable")]
FAULTS += [{"kind": "too_many", "retry_after": 0}, {"kind": "unavailable", "retry_after": 0},
           {"kind": "none", "before_ms": 3, "after_ms": 3}, {"kind": "late", "late_ms": 5}]
JOBS = 90
TRIES = 60


@dataclasses.dataclass
class Deliverer:
    """Sends an operation's jobs one after the other, and none after one that is
    unknown, because that may still happen. `careless`: sends again whatever
    happened; `forgetful`: with a new key each time; `hasty`: begins with the last
    job; `pushing`: goes on after an unknown one."""
    external: ExternalService
    honours: bool
    careless: bool = False
    forgetful: bool = False
    hasty: bool = False
    pushing: bool = False

    def deliver(self, jobs):
        blocked = False
        for job in sorted(jobs, key=lambda job: job.number, reverse=self.hasty):
            job.end = "dead" if blocked else self.see_through(job)
            blocked = blocked or (job.end == "unknown" and not self.pushing)

    def see_through(self, job):
        for _ in range(TRIES):
            key = uuid.uuid4().hex if self.forgetful else job.key
            end = self.meaning(self.send(key, job.operation), job)
            if end:
                return end
        return "dead"

    def send(self, key, operation):
        """The answer; None where it was lost, or "refused"."""
        fields = [("Idempotency-Key", key), ("Hapax-Operation", operation)]
        try:
            wire = connect(("127.0.0.1", self.external.port))
        except ConnectionRefusedError:
            return "refused"
        with wire:
            wire.sock.settimeout(0.1)
            try:
                wire.send(request_bytes("POST", "/pay", fields, b"x"))
                return wire.answer("POST")
            except (OSError, Closed, Malformed):
                return None

    def meaning(self, answer, job):
        """How the job ends by this answer; None to send it again."""
        if answer == "refused":
            self.external.start()
            return None
        status = answer.status if answer else 0
        if 200 <= status < 300:
            job.provider_id = answer.json()["id"]
            return "done"
        if str(status) in REFUSALS or (status == 503 and answer["Retry-After"]):
            return None
        if 400 <= status < 500:
            return "declined"
        return None if self.honours or self.careless else "unknown"


def run(external, chance, honours, count=JOBS, kills=3, **faulty):
    """Delivers, with the provider killed now and then; returns the jobs."""
    external.set(honours_keys=honours)
    seed = chance.randrange(1 << 32)
    external.script({"random": {"seed": seed, "share": 0.7, "faults": FAULTS}})
    jobs = [Job(uuid.uuid4().hex, f"op {n // 3}", f"step-{n % 3}") for n in range(count)]
    deliverer = Deliverer(external, honours, **faulty)
    deaths = set(chance.sample(range(count // 3), kills))
    for n in range(count // 3):
        if n in deaths:
            external.kill()
        deliverer.deliver(jobs[3 * n:3 * n + 3])
    return jobs


@pytest.fixture
def external(tmp_path):
    with ExternalService(tmp_path, tls=False) as one:
        yield one


def test_rules_kept_with_keys(external, chance):
    """Whoever sends the same key again until it knows has one effect per job."""
    jobs = run(external, chance, True)
    ends = judge(external.ledger, jobs, Policy(honours_ms=3600_000))
    print(ends, len(external.ledger.sends()), "sends")
    assert ends["done"] == len(external.ledger.effects()) > JOBS / 2


def test_rules_kept_without_keys(external, chance):
    """Whoever sends again only what was refused has at most one effect per job."""
    jobs = run(external, chance, False)
    ends = judge(external.ledger, jobs)
    print(ends, len(external.ledger.sends()), "sends")
    assert ends["done"] and ends["unknown"]


@pytest.mark.parametrize("faulty, honours, words", [
    ({"careless": True}, False, {"sent again although it may have happened", "happened 2 times"}),
    ({"forgetful": True}, True, {"nobody's job", "done without an effect"}),
    ({"hasty": True}, True, {"out of order"}),
])
def test_rules_broken(external, chance, faulty, honours, words):
    """A deliverer that breaks a rule is found out."""
    jobs = run(external, chance, honours, **faulty)
    policy = Policy(honours_ms=3600_000 if honours else 0)
    found = {c.split(":")[0] for c in complaints(external.ledger, jobs, policy)}
    assert words <= found, found


def test_pushing_on(external):
    """Going on after an unknown job is found out when that one happens late."""
    external.fault("none", before_gate="late")
    jobs = [Job(uuid.uuid4().hex, "op", f"step-{n}") for n in (1, 2)]
    Deliverer(external, False, pushing=True).deliver(jobs)
    assert [job.end for job in jobs] == ["unknown", "done"]
    assert complaints(external.ledger, jobs) == []
    external.release("late")
    external.wait(lambda: external.ledger.effects(key=jobs[0].key))
    assert complaints(external.ledger, jobs) == [
        "out of order: operation op, its jobs happened as [2, 1]"]
