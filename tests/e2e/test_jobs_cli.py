"""Shows that a person can look at what is owed to others and say what is to become
of it with `hapax jobs`, beside a running gateway, and what becomes of the operation
and of its retries then."""
import contextlib
import getpass
import json
import shlex
import sqlite3
import subprocess

import pytest

from conftest import Site, require_program
from harness import postgres
from harness.caller import wait_for
from harness.external_service import ExternalService
from harness.gateway import binary
from harness.operator_command import FAILED, OK, USAGE, Operator, outbox_config, owe
from harness.secret import new_key

WHY = ("--reason", "ticket 812")


class Bench:
    """An external service, a gateway that owes it jobs, and a person."""

    def __init__(self, folder):
        self.external = ExternalService(folder / "external", tls=False)
        (folder / "gateway").mkdir()
        self.config = outbox_config(self.external)
        self.config["targets"]["asked"] = {
            **self.config["targets"]["bank"],
            "reconcile": {"settle_after": "1h", "probe": {
                "get": "/lookup?operation={operation}", "applied": [200], "not_applied": [404]}}}
        self.config["routes"].append({"match": "POST /asked", "deliver": "async", "target": "asked"})
        self.site = Site(folder / "gateway", self.config)
        self.site.__enter__()
        self.gateway = self.site.gateway
        self.operator = Operator(self.gateway)

    def close(self):
        try:
            self.site.__exit__()
        finally:
            self.external.close()

    def of(self, reference):
        """The number of the operation's only job."""
        job, = self.operator.jobs("--operation", reference)
        return job["number"]

    def wait_event(self, event, reference):
        self.gateway.wait_log(f"event={event} .*operation={reference}")

    def done(self, **how):
        reference = owe(self.gateway, **how)
        self.wait_event("job_delivered", reference)
        return reference, self.of(reference)

    def dead(self, **how):
        """A job that is refused once, and has no attempt left."""
        self.external.fault("too_many")
        reference = owe(self.gateway, **how)
        self.wait_event("job_dead", reference)
        return reference, self.of(reference)

    def lost(self, kind="reset_after", **how):
        """A job whose answer is lost; nobody can be asked."""
        self.external.fault(kind)
        reference = owe(self.gateway, **how)
        self.wait_event("left_to_a_person", reference)
        return reference, self.of(reference)

    def retry(self, key, **how):
        return self.gateway.post("/owed", key=key, headers=[("X-Tenant", "alice")],
                                 body=b'{"amount": 10.00, "note": "s3cr3t"}', **how)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    require_program()
    one = Bench(tmp_path_factory.mktemp("jobs"))
    yield one
    one.close()


@pytest.fixture
def operator(bench):
    bench.external.calm()
    return bench.operator


def test_ls(bench, operator):
    """Every job, the newest first; by state, target, operation and number."""
    first, done = bench.done()
    second, dead = bench.dead()
    third, lost = bench.lost()
    rows = {row["number"]: row for row in operator.jobs()}
    assert [rows[n]["state"] for n in (done, dead, lost)] == ["done", "dead", "unknown"]
    assert [rows[n]["status"] for n in (done, dead, lost)] == [201, 429, 0]
    assert [rows[n]["operation"] for n in (done, dead, lost)] == [first, second, third]
    assert rows[done]["method"] == "POST" and rows[done]["path"] == "/owed"
    assert rows[done]["target"] == "bank" and rows[done]["answers"] is True
    assert "body" not in rows[done]
    numbers = [row["number"] for row in operator.jobs()]
    assert numbers == sorted(numbers, reverse=True)
    assert dead in [row["number"] for row in operator.jobs("--state", "dead")]
    assert {row["state"] for row in operator.jobs("--state", "unknown")} == {"unknown"}
    assert operator.jobs("--target", "nobody") == [] and operator.jobs("--target", "bank")
    assert [row["number"] for row in operator.jobs("--operation", first[:12])] == [done]
    assert len(operator.jobs("--limit", 1)) == 1
    assert operator.json("jobs", "ls", "--limit", 1)["looked"] == {"jobs": 1, "all": False}
    only = operator.json("jobs", "ls", "--operation", first, "--limit", 1)
    assert only["looked"] == {"jobs": 1, "all": True} and only["jobs"][0]["number"] == done


def test_ls_as_a_table(bench, operator):
    bench.done()  # so that --limit 1 leaves one out
    reference, number = bench.done()
    text = operator.on("jobs", "ls", "--operation", reference)
    assert text.splitlines()[0].split() == ["JOB", "STATE", "TRY", "TARGET", "REQUEST", "HTTP",
                                            "AGE", "OPERATION", "DUE"]
    assert text.splitlines()[1].split()[:7] == [str(number), "done", "1", "bank", "POST", "/owed",
                                                "201"]
    assert reference[:12] in text and reference not in text
    assert reference in operator.on("jobs", "ls", "--operation", reference, "--full")
    assert operator.on("jobs", "ls", "--target", "nobody") == "no jobs\n"
    operator.on("jobs", "ls", "--limit", 1)
    assert "older ones were not looked at: --limit N shows more" in operator.err
    operator.on("jobs", "ls", "--operation", reference, "--limit", 1)
    assert operator.err == ""


def test_show(bench, operator):
    """What is sent, with which key, where it stands and how it came there."""
    reference, number = bench.done()
    send, = bench.external.ledger.sends(operation=reference)
    effect, = bench.external.ledger.effects(operation=reference)
    job = operator.job(number)
    assert job["key"] == send.key and job["provider_id"] == effect.id
    assert (job["state"], job["operation_state"], job["attempt"]) == ("done", "completed", 1)
    assert [event["what"] for event in job["history"]] == ["job_delivered", "completed"]
    assert job["body_bytes"] == len(send.body) and "body" not in job
    assert job["created"] and job["first_sent"] and job["due"] is None
    text = operator.on("jobs", "show", number)
    for line in (f"key        {send.key}", f"their id   {effect.id}", f"operation  {reference}",
                 "answers    yes", "target     bank"):
        assert line in text, text
    assert send.body.decode() not in text


def test_show_body(bench, operator):
    """Byte for byte, and only where it is asked for."""
    body = b'{"amount": 10, "note": "s3cr3t \\u00e9"}'
    _, number = bench.done(body=body)
    assert operator.on("jobs", "show", number, "--body").encode("latin-1") == body
    assert operator.job(number, "--body")["body"].encode() == body


def test_show_what_to_do(bench, operator):
    """The page of a dead job and of an unknown one name the commands."""
    _, dead = bench.dead()
    text = operator.on("jobs", "show", dead)
    assert f"hapax jobs retry {dead} --reason" in text and f"hapax jobs discard {dead}" in text
    reference, lost = bench.lost()
    text = operator.on("jobs", "show", lost)
    assert f"hapax jobs retry {lost} --force" in text
    assert f"hapax keys resolve {reference[:12]} --applied" in text
    assert "a person has to settle it" in text and operator.job(lost)["asked"]["person"] is True


def test_needs_person(bench, operator):
    """One list for who is on call: dead jobs, and lost ones that nobody is asked about any more."""
    _, done = bench.done()
    _, dead = bench.dead()
    _, lost = bench.lost()
    bench.external.script({"when": {}, "times": 1, "fault": {"kind": "reset_after"}},
                         {"when": {"kind": "lookup"}, "fault": {"kind": "unavailable"}})
    asked = bench.gateway.post("/asked", headers=[("X-Tenant", "alice")])["Hapax-Operation"]
    bench.wait_event("job_lost", asked)
    bench.external.wait(lambda: bench.external.ledger.lookups(operation=asked))
    rows = operator.jobs("--needs-person")
    numbers = [row["number"] for row in rows]
    assert numbers == sorted(numbers, reverse=True)
    assert {dead, lost} <= set(numbers) and not {done, bench.of(asked)} & set(numbers)
    assert {row["state"] for row in rows} == {"dead", "unknown"}
    wait_for(lambda: bench.gateway.metrics()['hapax_dead{kind="job"}'] == len(rows))
    assert [row["number"] for row in operator.jobs("--needs-person", "--limit", 1)] == numbers[:1]
    assert operator.jobs("--needs-person", "--target", "asked") == []
    operator.on("jobs", "discard", dead, *WHY)
    assert dead not in [row["number"] for row in operator.jobs("--needs-person")]
    assert "leave --state out" in operator.on("jobs", "ls", "--needs-person", "--state", "dead", code=USAGE)


def hints(text):
    """The commands that a page prints, with TEXT and FILE as they stand."""
    return [line.strip() for line in text.splitlines() if line.startswith("  hapax ")]


def test_hints_can_be_run(bench, operator, tmp_path):
    """A printed command names the store or the configuration that the person named: run as it
    is, from another folder, it does what it says."""
    owed, dead = bench.dead()
    reference, lost = bench.lost()
    config = tmp_path / "it's here.json"
    config.write_text(json.dumps(bench.gateway.config))
    for where in (["--store", operator.url], ["--config", config]):
        pages = [operator.run("jobs", "show", dead, *where), operator.run("jobs", "show", lost, *where),
                 operator.run("keys", "show", reference, *where)]
        found = [hint for page in pages for hint in hints(page)]
        assert len(found) == 6
        for hint in found:
            assert shlex.split(hint)[-2:] == [str(word) for word in where], hint
    bench.external.calm()
    retry = next(hint for hint in found if hint.startswith(f"hapax jobs retry {dead} "))
    done = subprocess.run(retry.replace("hapax", str(binary()), 1), shell=True, cwd=tmp_path, timeout=30,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith(f"job {dead}: queued"), done
    bench.wait_event("job_delivered", owed)
    assert f"hapax jobs ls --store {shlex.quote(operator.url)}" in operator.on("jobs", "show", "987654321", code=FAILED)


def test_hints_of_refusals_can_be_run(bench, operator, tmp_path):
    """So does a command that is named where something is refused, or as the consequence of a
    decision, on the way to it and before the store was opened."""
    reference, lost = bench.lost()
    _, unreadable = bench.lost()
    harm(bench, unreadable)
    config = tmp_path / "it's here.json"
    config.write_text(json.dumps(bench.gateway.config))
    refused = [("keys", "forget", reference, *WHY), ("jobs", "retry", unreadable, *WHY),
               ("jobs", "show", "987654321"), ("jobs", "show", "x"), ("keys", "show", "0" * 64),
               ("history", "--state", "unknown")]
    for where in (["--store", operator.url], ["--config", config]):
        words = [str(word) for word in where]
        for arguments in refused:
            code = USAGE if arguments[-1] in ("x", "unknown") else FAILED
            said = operator.run(*arguments, *where, code=code)
            commands = said.split("`")[1::2]
            assert commands and all(shlex.split(command)[-2:] == words for command in commands), said
    told, = hints(operator.run("jobs", "discard", lost, *WHY, *where))
    done = subprocess.run(told.replace("hapax", str(binary()), 1), shell=True, cwd=tmp_path, timeout=30,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and f"hapax keys resolve {reference[:12]} --applied" in done.stdout, done
    told, = hints(operator.run("jobs", "discard", unreadable, "--force", *WHY, *where))
    assert shlex.split(told)[-2:] == words, told


def test_keys_show_has_the_jobs(bench, operator):
    """The operation's page has its jobs, and its history begins with the acceptance."""
    reference, number = bench.dead()
    shown = operator.key(reference)
    assert [(job["number"], job["state"]) for job in shown["jobs"]] == [(number, "dead")]
    assert shown["state"] == "pending" and shown["history"][0]["what"] == "accepted"
    text = operator.on("keys", "show", reference)
    assert "given up" in text and "\njobs\n" in text
    assert reference in [row["reference"] for row in operator.json("keys", "ls", "--state", "pending")["operations"]]


def test_keys_show_who_is_asked(bench, operator):
    """With the configuration, an unknown's page says by what it is asked about next."""
    bench.external.script({"when": {}, "times": 1, "fault": {"kind": "reset_after"}},
                         {"when": {"kind": "lookup"}, "fault": {"kind": "unavailable"}})
    answer = bench.gateway.post("/asked", headers=[("X-Tenant", "alice")])
    reference = answer["Hapax-Operation"]
    bench.wait_event("job_lost", reference)
    bench.external.wait(lambda: bench.external.ledger.lookups(operation=reference))
    config = bench.gateway.write_config()
    text = operator.run("keys", "show", reference, "--config", config)
    assert "by the probe GET /lookup?operation={operation}" in text
    asked = json.loads(operator.run("keys", "show", reference, "--config", config, "--json"))["asked"]
    assert asked["person"] is False and "probe" in asked["by"]
    assert reference in [row["reference"] for row in operator.json("keys", "ls", "--state", "unknown")["operations"]]
    assert "by the probe" in operator.run("jobs", "show", bench.of(reference), "--config", config)


def test_no_secret_is_needed(bench, operator, tmp_path):
    """Who is on call has neither the variables of the service nor the rights on its files;
    and what is only a warning to a server is not told at every look."""
    _, number = bench.done()
    targets = {name: {**target, "credentials": {"env": "HAPAX_TEST_NOT_SET"}}
               for name, target in bench.config["targets"].items()}
    config = tmp_path / "elsewhere.json"
    config.write_text(json.dumps({**bench.gateway.config, "targets": targets}))
    assert "names a variable that is not set" in operator.run("check", "--config", config, code=FAILED)
    assert f"job        {number}\n" in operator.run("jobs", "show", number, "--config", config)
    assert operator.err == ""
    assert "credentials" not in operator.run("keys", "ls", "--config", config) and operator.err == ""


def test_a_job_whose_target_is_not_configured(bench, operator, tmp_path):
    """It stays queued; its page says why, and what can be done."""
    reference, number = bench.dead()
    others = {"asked": bench.config["targets"]["asked"]}
    config = tmp_path / "without.json"
    config.write_text(json.dumps({**bench.gateway.config, "targets": others, "routes": []}))
    bench.site.gateway.stop()
    try:
        operator.on("jobs", "retry", number, *WHY)
        text = operator.run("jobs", "show", number, "--config", config)
        assert "the configuration has no target of that name" in text
        assert f"hapax jobs discard {number} --reason TEXT" in text
        assert "no target of that name" not in operator.on("jobs", "show", number)
    finally:
        bench.site.gateway.start()
    bench.wait_event("job_delivered", reference)


def test_retry_of_a_dead_job(bench, operator):
    """It is sent again with the same key and a new budget, and its answer is the operation's."""
    key = new_key()
    reference, number = bench.dead(key=key)
    assert bench.retry(key).status == 202
    bench.external.calm()
    text = operator.on("jobs", "retry", number, *WHY)
    assert text.startswith(f"job {number}: queued; it is sent again; its operation is pending")
    bench.wait_event("job_delivered", reference)
    first, second = bench.external.ledger.sends(operation=reference)
    assert first.key == second.key and len(bench.external.ledger.effects(operation=reference)) == 1
    retried = next(e for e in operator.job(number)["history"] if e["what"] == "job_retried")
    assert (retried["actor"], retried["reason"]) == (getpass.getuser(), "ticket 812")
    answer = bench.retry(key)
    assert (answer.status, answer["Idempotent-Replayed"]) == (201, "true")
    assert "1 of them before it was last retried" in operator.on("jobs", "show", number)


def test_retry_of_an_unknown_needs_force(bench, operator):
    """And says what that risks; here it happens a second time, which is the person's word."""
    reference, number = bench.lost()
    text = operator.on("jobs", "retry", number, *WHY, code=FAILED)
    assert "it may have happened" in text and "--force" in text
    bench.external.calm()
    done = operator.json("jobs", "retry", number, "--force", *WHY)
    assert (done["number"], done["state"], done["operation_state"]) == (number, "queued", "pending")
    assert (done["actor"], done["reason"]) == (getpass.getuser(), "ticket 812")
    assert "it happens twice" in operator.err
    bench.wait_event("job_delivered", reference)
    assert len(bench.external.ledger.effects(operation=reference)) == 2


def test_discard_of_a_dead_job(bench, operator):
    """Nothing happened, so its operation is completed with 408, for every retry."""
    key = new_key()
    reference, number = bench.dead(key=key)
    text = operator.on("jobs", "discard", number, *WHY)
    assert text.startswith(f"job {number}: discarded; it is never sent")
    assert "completed with 408" in text
    answer = bench.retry(key)
    assert (answer.status, answer["Idempotent-Replayed"]) == (408, "true")
    assert answer.json()["executed"] == "no"
    assert operator.on("jobs", "discard", number, *WHY) == text, "the same word again changes nothing"
    assert operator.key(reference)["state"] == "completed"
    assert bench.external.ledger.effects(operation=reference) == []


def test_discard_of_an_unknown(bench, operator):
    """It may have happened: the operation stays unknown until somebody settles it."""
    key = new_key()
    reference, number = bench.lost(key=key)
    done = operator.json("jobs", "discard", number, *WHY)
    assert (done["state"], done["operation_state"]) == ("discarded", "unknown")
    assert bench.retry(key).status == 409
    operator.on("keys", "resolve", reference, "--applied", "--status", 201, *WHY)
    assert bench.retry(key).json()["code"] == "response_not_kept"


def harm(bench, number):
    """Damages the job's row behind the store's back; it is no job any more."""
    url = bench.gateway.config["store"]
    if url.startswith("postgres:"):
        postgres.shared().sql(f"UPDATE hapax.job SET due = -5 WHERE id = {number}",
                              url.split("?")[0].rsplit("/", 1)[1])
        return
    with contextlib.closing(sqlite3.connect(bench.gateway.folder / "hapax.db")) as store, store:
        assert store.execute("UPDATE hapax_job SET due = -5 WHERE seq = ?", (number,)).rowcount == 1


def test_discard_of_a_job_that_cannot_be_read(bench, operator):
    """Only by force, which the command and the job's page say; the row goes, the operation
    that it names is left alone, and a person settles it as any other."""
    key = new_key()
    reference, number = bench.lost(key=key)
    harm(bench, number)
    shown = operator.on("jobs", "show", number)
    assert "its row cannot be read" in shown
    assert f"hapax jobs discard {number} --force --reason TEXT --store" in shown, shown
    assert number in [job["number"] for job in operator.jobs("--needs-person", "--limit", 1000)]
    for verb in (("retry", number, "--force"), ("discard", number)):
        text = operator.on("jobs", *verb, *WHY, code=FAILED)
        assert "cannot be read" in text and "discard" in text and "--force" in text, text
    done = operator.json("jobs", "discard", number, "--force", *WHY)
    assert (done["number"], done["state"], done["reason"]) == (number, "removed", "ticket 812")
    assert "operation" not in done
    assert "there is no job" in operator.on("jobs", "show", number, code=FAILED)
    assert number not in [job["number"] for job in operator.jobs("--needs-person", "--limit", 1000)]
    assert operator.key(reference)["state"] == "unknown"
    assert "job_discarded" not in [e["what"] for e in operator.key(reference)["history"]]
    operator.on("keys", "resolve", reference, "--applied", "--status", 201, *WHY)
    assert bench.retry(key).json()["code"] == "response_not_kept"
    _, another = bench.lost()
    harm(bench, another)
    text = operator.on("jobs", "discard", another, "--force", *WHY)
    assert text.startswith(f"job {another}: removed; its row could not be read"), text


def test_a_person_settles_the_operation_of_a_job(bench, operator):
    """`keys resolve` settles the job with it; not applied lets a retry deliver it."""
    key = new_key()
    reference, number = bench.lost("reset_before", key=key)
    operator.on("keys", "resolve", reference, "--not-applied", *WHY)
    bench.external.calm()
    assert bench.retry(key).status == 202
    bench.wait_event("job_delivered", reference)
    assert operator.job(number)["state"] == "done"
    assert len(bench.external.ledger.effects(operation=reference)) == 1
    reference, number = bench.lost()
    operator.on("keys", "resolve", reference, "--applied", "--status", 201, *WHY)
    assert operator.job(number)["state"] == "done"


REFUSED = [
    (["retry"], "done", "it is done, and nothing overrides that"),
    (["discard"], "done", "it is done, and nothing overrides that"),
    (["retry", "--force"], "discarded", "it was discarded, and that is final"),
]


@pytest.mark.parametrize("verb, state, sentence", REFUSED,
                         ids=[f"{row[0][0]} {row[1]}" for row in REFUSED])
def test_what_is_refused(bench, operator, verb, state, sentence):
    """What is over is over, and the message says why."""
    _, number = bench.done() if state == "done" else bench.dead()
    if state == "discarded":
        operator.on("jobs", "discard", number, *WHY)
    assert sentence in operator.on("jobs", verb[0], number, *verb[1:], *WHY, code=FAILED)


MISTAKES = [
    (["jobs"], USAGE, "Usage: hapax jobs VERB"),
    (["jobs", "lst"], USAGE, 'there is no "lst"; did you mean "ls"?'),
    (["jobs", "ls", "--state", "lost"], USAGE, "the states are queued, sending, done"),
    (["jobs", "ls", "--limit", "0"], USAGE, "--limit is a number from 1"),
    (["jobs", "ls", "--operation", "xyz"], USAGE, "is not a reference"),
    (["jobs", "show"], USAGE, "name one job by its NUMBER"),
    (["jobs", "show", "x"], USAGE, "name one job by its NUMBER"),
    (["jobs", "show", "0"], USAGE, "name one job by its NUMBER"),
    (["jobs", "show", "987654321"], FAILED, "there is no job 987654321"),
    (["jobs", "retry", "1"], USAGE, "say why: --reason TEXT"),
    (["jobs", "discard", "1", "--reason", ""], USAGE, "say why: --reason TEXT"),
    (["jobs", "show", "1", "--reason", "x"], USAGE, "unknown flag --reason"),
]


@pytest.mark.parametrize("arguments, code, sentence", MISTAKES, ids=lambda v: str(v)[:40])
def test_mistakes(operator, arguments, code, sentence):
    """Each says what is wrong and what to do; nothing is written."""
    more = ("--store", operator.url) if len(arguments) > 1 and arguments[1] != "lst" else ()
    assert sentence in operator.run(*arguments, *more, code=code)


def test_no_jobs_of_a_store_in_memory(operator):
    assert "lives and dies with the process" in operator.run("jobs", "ls", "--store", "memory:",
                                                         code=FAILED)


def test_help(operator):
    """Each verb has its page."""
    for verb in ("ls", "show", "retry", "discard"):
        assert f"hapax jobs {verb}" in operator.run("jobs", verb, "--help", code=OK)
    assert "hapax jobs retry NUMBER" in operator.run("jobs", "--help")
