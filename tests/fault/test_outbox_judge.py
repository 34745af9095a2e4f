"""Shows that the judge of the outbox is awake: an innocent history passes, and
each rule, broken alone, is complained of in its own words. The histories are
written as the provider writes them, by its own ledger."""
import hashlib

import pytest

from harness.external_ledger import Book
from outbox_judge import Job, Policy, Told, complaints, judge

HOUR = 3600_000
ANSWERS = {"honours_keys": False, "remember_ms": None, "lookup_delay_ms": 0}


class History:
    """A ledger in the making; its clock goes on only as the test says."""

    def __init__(self, path):
        self.ledger = Book(path)
        self.at = 1_000_000
        self.ledger.now = lambda: self.at

    def arrive(self, kind, key, operation, body, whole=1):
        row = {"kind": kind, "method": "POST", "path": "/pay", "query": "", "key": key,
               "operation": operation, "attempt": None, "credential": None, "headers": "[]",
               "digest": hashlib.sha256(body).hexdigest(), "body": body, "whole": whole}
        self.ledger.arrive(row, lambda *_: (None, {}))
        return row

    def send(self, key, told="201", effect=True, operation="op1", body=b"x", retry_after=None,
             whole=1):
        """One sending, its effect if it has one, and what was told."""
        self.at += 1
        row = self.arrive("send", key, operation, body, whole)
        made = None
        if effect:
            made = self.ledger.execute(row, ANSWERS, lambda _: ("succeeded", 201, b""))[0]
        self.ledger.tell(row["n"], told, retry_after)
        return made

    def lookup(self, told="404", operation="op1", after=1):
        self.at += after
        self.ledger.tell(self.arrive("lookup", None, operation, b"")["n"], told)


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "ledger.db")


def job(end="done", key="k1", operation="op1", name="pay-1", **more):
    return Job(key, operation, name, end, **more)


def complaint(history, *jobs, policy=None, clients=()):
    """The first words of every complaint."""
    return [c.split(":")[0] for c in complaints(history.ledger, jobs, policy, clients)]


def test_innocent(history):
    """Jobs that were refused, resent, declined, given up and never sent: all in order."""
    history.send("k1", "429", effect=False)
    history.send("k1", "503", effect=False, retry_after=1)
    made = history.send("k1")
    history.send("k2", operation="op1")
    history.send("k3", "402", effect=False, operation="op3")
    history.send("k4", "reset", operation="op4")
    jobs = [job(provider_id=made), job(key="k2", name="mail-2"),
            job("declined", "k3", "op3"), job("unknown", "k4", "op4"),
            job("dead", "k5", "op5"), job("discarded", "k6", "op6")]
    clients = [Told("op1", [(202, b""), (201, b"a"), (201, b"a")]), Told("op3", [(402, b"")])]
    assert judge(history.ledger, jobs, clients=clients) == {
        "done": 2, "declined": 1, "unknown": 1, "dead": 1, "discarded": 1}


@pytest.mark.parametrize("end", [None, "queued", "sending"])
def test_lost_job(history, end):
    """A job that is nowhere, or still under way at the end, is lost."""
    assert complaint(history, job(end)) == ["lost"]


@pytest.mark.parametrize("end, effect, own, words", [
    ("done", False, None, ["done without an effect"]),
    ("declined", True, None, ["declined, but it happened"]),
    ("discarded", True, None, ["discarded after it was sent"]),
    ("done", True, "prov_other", ["the provider has another id"]),
    ("unknown", True, None, []), ("dead", True, None, []), ("dead", False, None, []),
])
def test_ends_against_effects(history, end, effect, own, words):
    """What a job is said to be agrees with what happened."""
    history.send("k1", effect=effect)
    assert complaint(history, job(end, provider_id=own)) == words


def test_twice(history):
    """Two effects of a job are one too many, even for a target that honours keys."""
    history.send("k1", "reset")
    history.send("k1")
    assert complaint(history, job(), policy=Policy(honours_ms=HOUR)) == ["happened 2 times"]
    assert complaint(history, job()) == ["happened 2 times",
                                         "sent again although it may have happened"]
    assert complaint(history, job(by_person=True)) == []


@pytest.mark.parametrize("told, retry_after, proved", [
    ("429", None, True), ("408", None, True), ("425", None, True), ("401", None, True),
    ("503", 1, True), ("503", None, False), ("500", None, False), ("502", None, False),
    ("reset", None, False), ("half", None, False), ("silence", None, False), (None, None, False),
])
def test_resend(history, told, retry_after, proved):
    """Without keys, only a refusal allows a second sending, though nothing happened."""
    history.send("k1", told, effect=False, retry_after=retry_after)
    history.send("k1")
    assert complaint(history, job()) == (
        [] if proved else ["sent again although it may have happened"])


def test_resend_of_half_a_request(history):
    """A request cut short was a sending too."""
    history.send("k1", None, effect=False, whole=0)
    history.send("k1")
    assert complaint(history, job()) == ["sent again although it may have happened"]


@pytest.mark.parametrize("gap, allowed", [(HOUR - 1000, True), (HOUR + 1000, False)])
def test_resend_with_keys(history, gap, allowed):
    """With keys, a doubtful job is sent again only while the key is remembered,
    counted from the first sending that may have been carried out."""
    history.send("k1", "429", effect=False)
    history.at += HOUR
    history.send("k1", "reset", effect=False)
    history.at += gap
    history.send("k1")
    assert complaint(history, job(), policy=Policy(honours_ms=HOUR)) == (
        [] if allowed else ["sent again although it may have happened"])


@pytest.mark.parametrize("lookups, allowed", [
    ([(6000, "404"), (1000, "404")], True),
    ([(100, "404"), (6000, "404"), (1000, "404")], True),
    ([(6000, "404")], False),
    ([(100, "404"), (6000, "404")], False),
    ([(6000, "404"), (1000, "500")], False),
    ([(6000, "404"), (1000, "200"), (1000, "404")], False),
    ([], False),
])
def test_resend_after_lookups(history, lookups, allowed):
    """"Not found" proves something twice in a row, and after the settling time."""
    history.send("k1", "reset", effect=False)
    for after, told in lookups:
        history.lookup(told, after=after)
    history.send("k1")
    assert complaint(history, job(), policy=Policy(settle_after_ms=5000)) == (
        [] if allowed else ["sent again although it may have happened"])
    assert complaint(history, job()) == ["sent again although it may have happened"]


@pytest.mark.parametrize("change, words", [
    ({"body": b"y"}, ["sent as different requests"]),
    ({"operation": "op2"}, ["sent as different requests", "sent for another operation"]),
])
def test_other_request(history, change, words):
    """A job is sent as it was written."""
    history.send("k1", "429", effect=False)
    history.send("k1", **change)
    assert complaint(history, job()) == words


def test_order(history):
    """The jobs of an operation happen in their order, 10 after 9."""
    for key in ("k2", "k9", "k10", "k1"):
        history.send(key)
    jobs = [job(key=f"k{n}", name=f"step {n}") for n in (1, 2, 9, 10)]
    assert complaint(history, *jobs) == ["out of order"]
    jobs[0].name = "without a number"
    assert complaint(history, *jobs) == []


def test_stranger(history):
    """Nothing is sent that nobody asked for, under a key or under none."""
    history.send("k1")
    history.send("k2", "429", effect=False, operation="op2")
    history.send(None, "429", effect=False, operation="op3")
    assert complaint(history, job()) == ["nobody's job"] * 2


@pytest.mark.parametrize("answers, effects, words", [
    ([(201, b"a"), (201, b"a")], 1, []),
    ([(202, b"a"), (201, b"b")], 1, []),
    ([(409, b"a"), (500, b"b")], 0, []),
    ([(201, b"a"), (201, b"b")], 1, ["two stories"]),
    ([(201, b"a")], 0, ["success without an effect"]),
])
def test_told(history, answers, effects, words):
    """Clients are told the truth, and one story."""
    history.send("k1", "201" if effects else "429", effect=bool(effects))
    end = job("done" if effects else "dead")
    assert complaint(history, end, clients=[Told("op1", answers)]) == words


def test_operation_twice(history):
    """Two jobs' keys for what is one job are found by the operation."""
    history.send("k1")
    history.send("k2")
    found = complaint(history, job(), clients=[Told("op1", [])])
    assert found == ["nobody's job", "happened 2 times"]


def test_named_by_the_body(history):
    """Where the test knows better than the key which job a sending belongs to."""
    history.send("hash1", body=b"k1")
    jobs = [job()]
    assert complaints(history.ledger, jobs, of=lambda row: row.body.decode()) == []
    assert complaints(history.ledger, jobs) != []
