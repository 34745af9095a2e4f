"""Shows that a damaged SQLite file costs availability and nothing else: whatever bit
of a stopped file is flipped, whatever page is zeroed, wherever it is cut off, the
server starts or says clearly why it does not, and every retry gets the right answer,
`unknown`, or a refusal; nothing is executed again. A job that can be read is the one that
was owed; one that cannot is removed by a person, and by nobody else. HAPAX_FLIPS asks for more damages
than usual, HAPAX_SEED for the same run again, HAPAX_FLIP_ONLY=hapax_aside for damages
to a table or index of that name."""
import json
import os

import pytest

from generations import SMALL
from harness.gateway import READY_SECONDS, merge
from harness.library import Library
from harness.operator_command import FAILED, Operator
from harness.secret import new_key
from judge import POLICY, Operation, Task, join, send
from store_file import StoreFile
from test_shared_file import LibraryProcess, names_of

FLIPS = int(os.environ.get("HAPAX_FLIPS", "160"))
PARTS = 4
# How the operations of the file ended: all that a record can be after a clean stop.
BEHAVIOURS = ("", "", "", "status=201", "status=429", "reset=after", "big=100000", "big=9000", "status=404; effect=yes")
OPERATIONS = 60
LIBRARY_OPERATIONS = 12
ORDERS = 10  # each owes two jobs
QUIET = merge(POLICY, {"defaults": {"lease": "20s"}, "work": {"inside": False}})
# What is executed now, and its answer cannot be stored: to whoever sent it, and to a retry.
LOST = ("upstream_outcome_unknown", "idempotency_key_in_progress")
ALLOWED = ("idempotency_outcome_unknown", "idempotency_store_unavailable")


class Stored:
    """An operation of the sound file, and what its retry got there."""

    def __init__(self, behave):
        self.operation = Operation(behave)
        self.answer = None

    def may_run(self):
        """Whether the record says that nothing happened, so that a retry executes it."""
        return self.operation.behave == "status=429"


def code_of(answer):
    if answer["Content-Type"] != "application/problem+json":
        return ""
    return answer.json()["code"]


def fill(one):
    """A file with all kinds of records, and what each retry is answered."""
    stored = [Stored(BEHAVIOURS[n % len(BEHAVIOURS)]) for n in range(OPERATIONS)]
    one.gateway.start(SMALL)
    join([Task(send, one.gateway, s.operation, s.operation.behave) for s in stored])
    application = LibraryProcess(one, "own", names_of(one), lease_ms=60_000)
    by_library = [Stored("by the library") for _ in range(LIBRARY_OPERATIONS)]
    application.ask([s.operation.key for s in by_library])
    application.wait([s.operation.key for s in by_library])
    assert application.close() == 0
    assert {t["verdict"] for t in application.told.values()} == {"executed"}, application.told
    stored += by_library
    shop = Library(one.gateway.config["store"])
    for _ in range(ORDERS):
        shop.owe(new_key(), [("charge", "bank", "/charges"), ("mail", "mailer", "/mails")])
    shop.close()
    for s in stored:
        if not s.may_run():
            s.answer = send(one.gateway, s.operation)
            assert s.answer.replayed or code_of(s.answer) in ("idempotency_outcome_unknown", "response_not_kept"), s.answer
    one.gateway.restart(env=SMALL)  # its keeper has looked at all of it once more
    one.gateway.stop()
    return stored


class Person(Operator):
    """Works on a damaged file, where every command may be refused."""

    def try_on(self, *arguments):
        """What was printed, or None where it was refused, with a reason."""
        try:
            return self.on(*arguments)
        except AssertionError:
            assert "exit" not in self.err and self.err.startswith("hapax jobs"), self.err
            return None


def jobs_of(text):
    """{number: job} of `jobs ls --json`; what moves by itself is left out."""
    return {job["number"]: {name: job[name] for name in ("readable", "operation", "name", "target", "path", "key", "state")}
            for job in json.loads(text)["jobs"]}


def judge_jobs(one, owed, told):
    """What can be read is what was owed. What cannot be read is removed, by force."""
    person = Person(one.gateway)
    text = person.try_on("jobs", "ls", "--limit", 1000, "--json")
    if text is None:
        told["jobs refused"] = told.get("jobs refused", 0) + 1
        return
    for number, job in jobs_of(text).items():
        if job["readable"]:
            assert owed.get(number) == job, f"job {number} is {job}, not {owed.get(number)}"
            continue
        verb = ("jobs", "discard", number, "--reason", "damaged")
        done = person.try_on(*verb)
        if done:  # only its body is damaged: the rest of the row is right, and says so
            assert "discarded" in done, done
            end = "job discarded"
        elif person.try_on(*verb, "--force"):
            assert "there is no job" in person.on("jobs", "show", number, code=FAILED), number
            end = "job removed"
        else:
            end = "job stays"
        told[end] = told.get(end, 0) + 1


def start_damaged(gateway):
    """Whether it serves; if not, that it ended by itself and said what is wrong."""
    gateway.lines.clear()
    gateway.spawn(SMALL)
    with gateway.news:
        gateway.news.wait_for(lambda: gateway.ready or gateway.gone(), READY_SECONDS)
    if gateway.ready and not gateway.gone():
        return True
    code = gateway.wait(READY_SECONDS)
    gateway.wait_log(r"hapax\.db")
    assert code > 0, f"exit {code}, not a refusal:\n{gateway.log()}"
    return False


def verdict_of(one, stored):
    """What one retry shows; fails where it is wrong."""
    answer = send(one.gateway, stored.operation)
    assert answer is not None, f"no answer: {stored.operation}\n{one.gateway.log()}"
    code = code_of(answer)
    if code in ALLOWED:
        return code
    if stored.may_run():
        assert answer.status == 200 or code in LOST, f"{answer}, not 200 or {LOST}: {stored.operation}"
        return "executed"
    right = (stored.answer.status, stored.answer.replayed, code_of(stored.answer))
    got = (answer.status, answer.replayed, code)
    assert got == right, f"{got}, not {right}: {stored.operation} {answer}"
    if answer.replayed:
        assert answer.body == stored.answer.body, f"another body: {answer.body[:99]}, not {stored.answer.body[:99]}"
    return "right"


def judge_damaged(one, stored, told):
    """Two rounds of retries on the damaged file, and a new key; then the ledger."""
    for s in stored + stored:
        verdict = verdict_of(one, s)
        told[verdict] = told.get(verdict, 0) + 1
    new = one.gateway.post()
    assert new.status == 200 or code_of(new) in (LOST[0], "idempotency_store_unavailable"), new
    effects = [line[2].strip('"') for line in one.provider.ledger()]
    for s in stored:
        most = 1 if s.may_run() else 0
        count = effects.count(s.operation.key)
        assert count <= most, f"executed {count} times again, not {most}: {s.operation}"


def harm(one, stored, owed, damage, chance, told):
    """One damage, and what becomes of it; its name stands in front of a failure."""
    os.truncate(one.provider.ledger_path, 0)
    what = damage(one.gateway.folder / "hapax.db", chance)
    try:
        serves = start_damaged(one.gateway)
        if serves:
            judge_damaged(one, stored, told)
            judge_jobs(one, owed, told)
        told["served" if serves else "refused"] = told.get("served" if serves else "refused", 0) + 1
    except AssertionError as failure:
        return f"{what}: {failure}"
    finally:
        one.gateway.kill()
    return None


def judge_all(one, damages, chance, count):
    """As many damages as asked, each on a fresh copy; every failure is told."""
    stored = fill(one)
    owed = jobs_of(Operator(one.gateway).on("jobs", "ls", "--limit", 1000, "--json"))
    assert len(owed) == 2 * ORDERS and all(job["readable"] for job in owed.values()), owed
    os.rename(one.gateway.folder / "hapax.db", one.gateway.folder / "sound.db")
    file = StoreFile(one.gateway.folder / "sound.db")
    told, failures = {}, []
    for n in range(count):
        damage = getattr(file, damages[n % len(damages)])
        failures.append(harm(one, stored, owed, damage, chance, told))
    failures = [f for f in failures if f]
    print(f"{count} damages to {len(file.pages)} pages of {len(file.kinds())} kinds: {told}")
    assert not failures, f"{len(failures)} of {count} damages:\n" + "\n".join(failures[:10])
    assert told.get("served", 0) > 0, told
    return told


@pytest.mark.parametrize("part", range(PARTS))
def test_flipped_bit(ground, chance, part):
    """One bit anywhere in the file."""
    told = judge_all(ground(QUIET), ["flip"], chance, FLIPS // PARTS)
    assert told.get("right", 0) > 0, told


def test_zeroed_and_truncated(ground, chance):
    """A page of zeros, as a disk gives that lost it; a file that ends too early."""
    judge_all(ground(QUIET), ["zero", "truncate"], chance, FLIPS // PARTS)


def test_flipped_bit_of_a_job(ground, chance, monkeypatch):
    """One bit of the jobs' table: some cannot be read, and are removed."""
    monkeypatch.setattr("store_file.ONLY", "hapax_job ")
    told = judge_all(ground(QUIET), ["flip"], chance, FLIPS // PARTS)
    assert told.get("job removed", 0) > 0, told
