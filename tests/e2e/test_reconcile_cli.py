"""Shows that `hapax reconcile` finds every difference between a provider's export
and the store, both ways, changes nothing unless it is told to, and settles an
unknown by the same rules as any other word about it."""
import csv
import datetime
import getpass
import io
import json
import re
import shlex
import time

import pytest

from conftest import Site, require_program
from harness import check
from harness.external_service import ExternalService
from harness.operator_command import FAILED, OK, USAGE, Operator, outbox_config, owe
from harness.secret import new_key

APPLY = ("--apply", "--reason", "the books of november")
RECONCILE = {"settle_after": "1s", "confirm_after": "1s"}
AT_ONCE = ("--settle-after", "1ms")


def now():
    """Later than all that has happened, also in a store that rounds to whole milliseconds."""
    began = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 < began + 2:
        pass
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


class Bench:
    """A gateway, the provider behind it, one beyond its outbox, and an export."""

    def __init__(self, folder):
        self.folder = folder
        self.external = ExternalService(folder / "external", tls=False)
        (folder / "gateway").mkdir()
        config = outbox_config(self.external, {"reconcile": RECONCILE})
        config["routes"].append({"match": "POST /pay", "reconcile": RECONCILE})
        config["routes"].append({"match": "POST /resumed", "on_lost": "resume", "fenced": True, "retention_max": "48h"})
        config["routes"].append({"match": "POST /hashed", "reconcile": RECONCILE, "key_storage": "hash"})
        self.site = Site(folder / "gateway", config)
        self.site.__enter__()
        self.gateway = self.site.gateway
        self.operator = Operator(self.gateway)
        self.start = now()

    def close(self):
        try:
            self.site.__exit__()
        finally:
            self.external.close()

    def pay(self, **how):
        """A reference; the answer's body has the amount 12.50."""
        self.site.provider.bodies["amount"] = b'{"total": {"amount": 12.50}}'
        how.setdefault("behave", "body=amount")
        answer = self.gateway.post("/pay", headers=[("X-Tenant", "alice")], **how)
        return answer["Hapax-Operation"]

    def lose(self, **how):
        """An operation whose answer was lost, and that nobody can be asked about."""
        reference = self.pay(behave="reset=after", **how)
        self.gateway.wait_log(f"event=left_to_a_person .*{reference}")
        return reference

    def deliver(self, **how):
        reference = owe(self.gateway, **how)
        self.gateway.wait_log(f"event=job_delivered .*{reference}")
        return reference

    def lose_job(self, kind="reset_after", **how):
        self.external.fault(kind)
        reference = owe(self.gateway, **how)
        self.gateway.wait_log(f"event=left_to_a_person .*{reference}")
        self.external.calm()
        return reference

    def run(self, rows, *arguments, code=OK, name="bank.csv", by="--operation"):
        """The report on an export with these rows, of what began in this test."""
        path = self.folder / name
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]) if rows else ["id"])
        writer.writeheader()
        writer.writerows(rows)
        path.write_text(text.getvalue())
        how = () if "--from" in arguments or "--since" in arguments else ("--from", self.start)
        self.operator.run("reconcile", "--ledger", path, by, "id", "--json", "--config",
                      self.gateway.write_config(), *how, *arguments, code=code)
        return json.loads(self.operator.out)

    def state(self, reference):
        return self.operator.key(reference)["state"]


@pytest.fixture(scope="module")
def module_bench(tmp_path_factory):
    require_program()
    one = Bench(tmp_path_factory.mktemp("reconcile"))
    yield one
    one.close()


@pytest.fixture
def bench(module_bench):
    module_bench.external.calm()
    module_bench.start = now()
    return module_bench


def found(report, group):
    return [row.get("operation") or row.get("name") for row in report[group]["listed"]]


def others(report, *groups):
    """The groups that something is in, besides these."""
    return [g for g, v in report.items() if isinstance(v, dict) and v["count"] and g not in groups]


def test_agreement(bench):
    """What both have is no difference: exit code 0, from cron nothing to do."""
    references = [bench.pay(), bench.pay()]
    report = bench.run([{"id": r} for r in references])
    assert (report["rows"], report["matched"], report["ours"], report["open"]) == (2, 2, 2, 0)
    assert others(report) == []


def test_keys_that_are_stored_as_their_hash(bench):
    """An export that has the keys themselves agrees with operations that have only their
    hashes, and settles them; what it lacks is told by the hash."""
    def pay(key, behave=""):
        return bench.gateway.post("/hashed", key=key, behave=behave, headers=[("X-Tenant", "alice")])["Hapax-Operation"]

    both, lost, ours, theirs = (new_key() for _ in range(4))
    pay(both)
    only, unknown = pay(ours), pay(lost, "reset=after")
    bench.gateway.wait_log(f"event=left_to_a_person .*{unknown}")
    rows = [{"id": key, "state": "paid"} for key in (both, lost, theirs)]
    report = bench.run(rows, "--status", "state", "--applied", "paid", "--apply", "--reason", "nightly", code=FAILED, by="--key")
    assert report["rows"] == 3 and report["matched"] == 2, report
    assert found(report, "they_only") == [theirs] and found(report, "we_only") == [only], report
    assert bench.state(unknown) == "completed"


def test_they_have_it_and_we_do_not(bench):
    """An operation we do not know, one that we say did not happen, and nonsense."""
    ours, failed = bench.pay(), bench.pay(behave="status=429")
    declined = bench.pay(behave="status=422")
    stranger = "0" * 64 + "." + "1" * 32
    report = bench.run([{"id": r} for r in (ours, failed, declined, stranger, "tip")], code=FAILED)
    assert found(report, "they_only") == [failed, declined, stranger, "tip"]
    texts = [row["text"] for row in report["they_only"]["listed"]]
    assert "failed_retryable" in texts[0] and "without success" in texts[1]
    assert "has no such operation" in texts[2] and "not an operation's reference" in texts[3]
    assert [row["line"] for row in report["they_only"]["listed"]] == [3, 4, 5, 6]
    assert report["open"] == 4 and others(report, "they_only") == []


def test_an_earlier_use_of_the_key_is_another(bench):
    """The reference tells them apart: a forgotten key used again is not what they have."""
    key = new_key()
    first = bench.pay(key=key)
    bench.operator.on("keys", "forget", first, "--reason", "x")
    # With PostgreSQL, within a second: answers are kept in memory.
    second = check.until(lambda: (r := bench.pay(key=key)) != first and r, "executed anew")
    report = bench.run([{"id": first}], code=FAILED)
    assert found(report, "they_only") == [first] and found(report, "we_only") == [second]


class NOBODY:  # pylint: disable=too-few-public-methods
    """A target that nobody answers for."""
    url = "http://127.0.0.1:9"


RESTORE = ("--restore", "--reason", "the backup of the morning")


def retry(bench, key, **how):
    return bench.gateway.post("/pay", key=key, headers=[("X-Tenant", "alice")], **how)


def look(bench, what, tenant):
    return bench.gateway.get(f"/.hapax/operations{what}", headers=[("X-Tenant", tenant)])


def test_what_a_backup_lacks_is_restored(bench):
    """Forgotten keys stand for what a copy does not know: once told of them, no retry executes one again,
    whatever its body, beside a running gateway too."""
    keys = [new_key() for _ in range(3)]
    references = [bench.pay(key=key) for key in keys]
    for reference in references:
        bench.operator.on("keys", "forget", reference, "--reason", "x")
    rows = [{"id": references[0], "state": "paid"}, {"id": references[1], "state": "void"}, {"id": references[2], "state": "never"}]
    how = ("--status", "state", "--applied", "paid", "--declined", "void", "--not-applied", "never")
    report = bench.run(rows, *how, *RESTORE)
    assert [row["name"] for row in report["they_only"]["listed"]] == references[:2], report
    assert all(row["settled"] for row in report["they_only"]["listed"]) and report["open"] == 0
    for reference, status in zip(references, (0, 402)):
        shown = bench.operator.key(reference)
        assert shown["state"] == "completed" and shown["status"] == status, shown
        assert shown["history"][-1]["what"] == "restored" and "bank.csv: the backup" in shown["history"][-1]["reason"]
    for key, original in zip(keys, (None, 402)):
        # With PostgreSQL, within a second: answers are kept in memory.
        told = check.until(lambda key=key: (r := retry(bench, key)).status != 200 and r, "not replayed any more")
        told = [told, retry(bench, key, body=b'{"another": "request"}')]
        assert [(t.status, t.json()["code"], t.json()["executed"]) for t in told] == 2 * [(409, "response_not_kept", "yes")], told
        assert told[0].json().get("original_status") == original and len(bench.site.provider.ledger(key)) == 1
        # By its key the operation is its own tenant's; a reference does not say whose it is.
        page, other = (look(bench, f"?path=/pay&key={key}", tenant) for tenant in ("alice", "bob"))
        assert page.status == 200 and (page.json()["state"], page.json()["kept"]) == ("completed", False), page
        reference, void = page.json()["operation"], page.json()["operation"].split(".")[0] + "." + "0" * 32
        assert [other.status, *(look(bench, f"/{name}", tenant).status for name in (reference, void) for tenant in ("alice", "bob"))] == 5 * [404]
    # What never happened is executed. The same export again finds nothing to do.
    assert check.until(lambda: len(bench.site.provider.ledger(keys[2])) == 2 or retry(bench, keys[2]) and None, "executed")
    report = bench.run([*rows[:2], {"id": retry(bench, keys[2])["Hapax-Operation"], "state": "paid"}], *how, *RESTORE)
    assert others(report) == [] and report["matched"] == 3, report


def test_what_is_not_restored_stays_open(bench):
    """A key that stands for another operation here, nonsense, and an answer that was no success."""
    key = new_key()
    first = bench.pay(key=key)
    bench.operator.on("keys", "forget", first, "--reason", "x")
    second = check.until(lambda: (r := bench.pay(key=key)) != first and r, "executed anew")
    declined, failed = bench.pay(behave="status=422"), bench.pay(behave="status=429")
    report = bench.run([{"id": r} for r in (first, "tip", declined, second, failed)], *RESTORE, code=FAILED)
    texts = [row["text"] for row in report["they_only"]["listed"]]
    assert "stands for another operation" in texts[0] and "not an operation's reference" in texts[1], texts
    assert "without success" in texts[2] and report["open"] == 3 and others(report, "they_only") == []
    assert report["they_only"]["listed"][3]["settled"] and bench.state(failed) == "completed"


def test_what_its_application_goes_on_with_is_not_restored(bench):
    """It failed in the backup, and a retry goes on from its recovery point: what the bank saw may be a part."""
    failed = bench.gateway.post("/resumed", behave="status=429", headers=[("X-Tenant", "alice")])["Hapax-Operation"]
    [row] = bench.run([{"id": failed}], *RESTORE, code=FAILED)["they_only"]["listed"]
    assert "not restored: what they have may be a part of it" in row["text"] and "another operation" not in row["text"], row
    assert not row["settled"] and bench.state(failed) == "failed_retryable"


@pytest.mark.parametrize("path, text", [("/pay", "it becomes unknown when hapax starts; --apply settles it then"),
                                        ("/resumed", "a retry goes on with it once hapax has started")])
def test_what_was_in_progress_in_a_backup_is_told(bench, path, text):
    """What becomes of it is its route's word."""
    key, headers = new_key(), [("X-Tenant", "alice")]
    with bench.gateway.connect() as wire:
        wire.send(bench.gateway.request("POST", path, key=key, behave=f"hold={key}", headers=headers))
        bench.site.provider.gate(key).wait_arrived()
        [sent] = bench.site.provider.seen(key=key)
        [row] = bench.run([{"id": sent["Hapax-Operation"]}], *RESTORE, code=FAILED)["they_only"]["listed"]
        bench.site.provider.gate(key).release()
        assert row["text"] == f"in progress in the backup: {text}" and wire.answer().status == 200


def test_what_was_under_way_in_a_backup_is_told(site):
    """A job that is still queued would be sent again: it is open, until a person discards it."""
    there = site(outbox_config(NOBODY, {"attempts": 5, "backoff": "1h", "backoff_max": "1h"}))
    operator = Operator(there.gateway)
    reference = owe(there.gateway)
    check.until(lambda: operator.jobs("--state", "queued"), "the job waits for its second attempt")
    (there.gateway.folder / "bank.csv").write_text(f"id\n{reference}\n")
    reconcile = ("reconcile", "--ledger", "bank.csv", "--operation", "id", "--retention", "1h", *RESTORE)
    said = operator.on(*reconcile, code=FAILED)
    assert "its job is queued here, and would be sent again" in said
    [job] = operator.jobs("--state", "queued")
    look = re.search(r"`(hapax jobs ls [^`]*)`", said).group(1)
    assert re.search(rf"^ *{job['number']}  queued", operator.run(*shlex.split(look)[1:]), re.M), look
    operator.on("jobs", "discard", job["number"], "--reason", "the bank has it")
    assert operator.jobs("--state", "queued") == []
    assert operator.key(reference)["state"] != "pending"


def lifetime(shown):
    times = [datetime.datetime.fromisoformat(shown[name].replace("Z", "+00:00")) for name in ("created", "expires")]
    return times[1] - times[0]


def test_restored_text_and_time(bench):
    """The text counts them, and without a configuration --retention says how long they are known; with one,
    the longest time for which any answer may be kept."""
    reference = "7" * 64 + "." + "1" * 32
    (bench.folder / "one.csv").write_text(f"id\n{reference}\n")
    bench.operator.on("reconcile", "--ledger", bench.folder / "one.csv", "--operation", "id", "--from", bench.start,
                      "--retention", "2h", *RESTORE)
    assert "restored: a retry learns that it happened" in bench.operator.out and "1 restored, 0 open" in bench.operator.out
    assert lifetime(bench.operator.key(reference)) == datetime.timedelta(hours=2)
    another = "8" * 64 + "." + "1" * 32
    bench.run([{"id": reference}, {"id": another}], *RESTORE)
    assert lifetime(bench.operator.key(another)) == datetime.timedelta(hours=48)


def test_we_say_it_happened(bench):
    """What they lack, or call declined; not what failed here, nor what is older or newer."""
    before, old = bench.start, bench.pay()
    bench.start = now()
    ours, other = bench.pay(), bench.pay()
    bench.pay(behave="status=429")
    report = bench.run([{"id": other, "status": "void"}], "--status", "status", "--applied", "ok",
                       "--declined", "void", code=FAILED)
    assert sorted(found(report, "we_only")) == sorted([ours, other])
    assert "they say declined" in [r["text"] for r in report["we_only"]["listed"]]
    assert old not in found(report, "we_only") and others(report, "we_only") == []
    assert bench.run([{"id": old}], "--from", before, "--to", bench.start)["ours"] == 1
    seen = found(bench.run([{"id": old}], "--since", "1h", code=FAILED), "we_only")
    assert ours in seen and old not in seen


def test_twice(bench):
    """What they have in two rows happened twice, unless the rows say otherwise."""
    one, two = bench.pay(), bench.pay()
    rows = [{"id": one, "status": "ok"}, {"id": one, "status": "ok"}, {"id": two, "status": "ok"},
            {"id": two, "status": "void"}]
    report = bench.run([{"id": row["id"]} for row in rows[:3]], code=FAILED)
    assert found(report, "twice") == [one] and others(report, "twice") == []
    report = bench.run(rows[2:], "--status", "status", "--applied", "ok", "--declined", "void",
                       "--route", "POST /pay", code=FAILED)
    assert report["twice"]["count"] == 0


AMOUNTS = [("12.5", None), ("12.50", None), (" 12.500 ", None), ("1.25e1", None),
           ("12.51", "amounts"), ("1250", "amounts"), ("12,50", "amounts"), ("", "amounts")]


@pytest.mark.parametrize("theirs, group", AMOUNTS, ids=[row[0] for row in AMOUNTS])
def test_amounts(bench, theirs, group):
    """Compared by their exact decimal value, with the stored answer's."""
    reference = bench.pay()
    report = bench.run([{"id": reference, "amount": theirs}], "--amount", "amount",
                       "--amount-pointer", "/total/amount", code=FAILED if group else OK)
    assert others(report) == ([group] if group else [])
    if group:
        assert report[group]["listed"][0]["text"] == f"theirs {theirs}, ours 12.50"


def test_no_amount(bench):
    """Where ours has none, nobody can say that they agree."""
    report = bench.run([{"id": bench.pay(), "amount": "12.50"}], "--amount", "amount",
                       "--amount-pointer", "/total/sum", code=FAILED)
    assert "no amount of ours at /total/sum" in report["unclear"]["listed"][0]["text"]


@pytest.mark.parametrize("status, ruling, state, answer", [
    ("ok", "applied", "completed", (409, "response_not_kept")),
    ("void", "declined", "completed", (402, "declined")),
])
def test_unknown_is_settled(bench, status, ruling, state, answer):
    """Shown first, and applied only on one's word, which is in the history."""
    key = new_key()
    reference = bench.lose(key=key)
    how = ("--status", "status", "--applied", "ok", "--declined", "void")
    report = bench.run([{"id": reference, "status": status}], *how, code=FAILED)
    assert found(report, "unknown") == [reference] and report["open"] == 1
    assert f"they say {ruling}; --apply settles it" in report["unknown"]["listed"][0]["text"]
    assert bench.state(reference) == "unknown"
    report = bench.run([{"id": reference, "status": status}], *how, *APPLY)
    assert report["unknown"]["listed"][0]["settled"] is True and report["open"] == 0
    assert bench.state(reference) == state
    last = bench.operator.key(reference)["history"][-1]
    assert last["what"] == f"ruled_{ruling}"
    assert last["reason"] == "ledger bank.csv: the books of november"
    assert last["actor"] == getpass.getuser()
    replay = bench.gateway.post("/pay", key=key, headers=[("X-Tenant", "alice")])
    assert (replay.status, replay.json()["code"]) == answer


def test_unclear_status_settles_nothing(bench):
    """A value in no list, or in two, is no verdict."""
    reference = bench.lose()
    for applied in ("ok", "ok,pending"):
        report = bench.run([{"id": reference, "status": "pending"}], "--status", "status",
                           "--applied", applied, "--not-applied", "gone,pending" if "," in applied
                           else "gone", *APPLY, code=FAILED)
        assert found(report, "unknown") == [reference] and report["open"] == 1
    assert bench.state(reference) == "unknown"


def test_an_amount_that_differs_settles_nothing(bench):
    """They have something under this name, but not this."""
    reference = bench.lose_job()
    report = bench.run([{"id": reference, "amount": "99"}], "--amount", "amount", "--amount-pointer",
                       "/amount", "--target", "bank", *APPLY, code=FAILED)
    assert found(report, "amounts") == [reference] and report["unknown"]["count"] == 0
    assert bench.state(reference) == "unknown"
    report = bench.run([{"id": reference, "amount": "10"}], "--amount", "amount", "--amount-pointer",
                       "/amount", "--target", "bank", *APPLY)
    assert bench.state(reference) == "completed"


@pytest.mark.parametrize("flag, name", [("--target", "bnak"), ("--route", "POST /paymnets")])
def test_a_name_that_the_configuration_lacks(bench, flag, name):
    """It finds nothing of ours, and why is told; one that is there is taken silently."""
    bench.run([], flag, name)
    assert bench.operator.err == f'Warning: the configuration has no {flag[2:]} "{name}".\n'
    bench.run([], "--target", "bank")
    assert bench.operator.err == ""


def test_absence_says_nothing(bench):
    """An export may be late or partial: what it lacks is not "not applied"."""
    reference = bench.lose()
    report = bench.run([], "--to", now(), *APPLY, code=FAILED)
    assert report["unknown"]["listed"][0]["text"] == "it is not in the ledger"
    assert bench.state(reference) == "unknown"


def test_absence_from_a_complete_export_counts_twice_in_a_row(bench):
    """One says nothing yet, the same again is no second; a later one settles it."""
    reference = bench.lose()
    early = now()
    report = bench.run([], "--to", early, "--complete", code=FAILED)
    assert "--apply settles it when two exports say so" in report["unknown"]["listed"][0]["text"]
    for _ in range(2):
        report = bench.run([], "--to", early, "--complete", *AT_ONCE, *APPLY, code=FAILED)
        assert "a later export says so again" in report["unknown"]["listed"][0]["text"]
    assert bench.state(reference) == "unknown"
    later = datetime.datetime.fromisoformat(early) + datetime.timedelta(seconds=1)
    while datetime.datetime.now(datetime.timezone.utc) < later:
        report = bench.run([], "--to", early, "--complete", *AT_ONCE, *APPLY, code=FAILED)
    report = bench.run([], "--to", later.isoformat(), "--complete", *AT_ONCE, *APPLY)
    assert report["unknown"]["listed"][0]["settled"] is True
    assert bench.state(reference) == "failed_retryable"


def test_settle_after_holds(bench):
    """An export of a time when the request could still run counts for nothing."""
    reference = bench.lose()
    for _ in range(3):
        report = bench.run([], "--to", now(), "--complete", "--settle-after", "1h", *APPLY,
                           code=FAILED)
    assert report["open"] == 1 and bench.state(reference) == "unknown"


def test_not_applied_needs_its_rule(bench):
    """Without a configuration somebody must say how long a request may run."""
    reference = bench.lose()
    path = bench.folder / "gone.csv"
    path.write_text(f"id,status\n{reference},gone\n")
    how = ("reconcile", "--ledger", path, "--operation", "id", "--status", "status", "--applied",
           "ok", "--not-applied", "gone", "--from", bench.start)
    assert "give --settle-after, or --config" in bench.operator.on(*how, *APPLY, code=FAILED)
    text = bench.operator.on(*how, "--settle-after", "1ms", *APPLY, code=FAILED)
    assert "give --to, the time up to which that holds" in text
    text = bench.operator.on(*how, "--settle-after", "1ms", "--to", now(), *APPLY, code=FAILED)
    assert "a later export says so again" in text


def test_jobs_by_operation(bench):
    """With a target, its jobs are compared, done and unknown ones."""
    done, lost, absent = bench.deliver(), bench.lose_job(), bench.deliver()
    bench.pay()
    report = bench.run([{"id": done}, {"id": lost}], "--target", "bank", code=FAILED)
    assert found(report, "we_only") == [absent] and found(report, "unknown") == [lost]
    assert all(row["job"] > 0 for row in report["unknown"]["listed"])
    assert others(report, "we_only", "unknown") == [] and report["ours"] == 2
    bench.run([{"id": done}, {"id": lost}, {"id": absent}], "--target", "bank", *APPLY)
    assert bench.state(lost) == "completed"


def test_jobs_by_provider_id(bench):
    """As the target's provider_id found it; an unknown one has none."""
    reference, lost = bench.deliver(), bench.lose_job()
    effect, = bench.external.ledger.effects(operation=reference)
    unseen, = bench.external.ledger.effects(operation=lost)
    report = bench.run([{"id": effect.id}, {"id": unseen.id}], by="--provider-id", code=FAILED)
    assert found(report, "they_only") == [unseen.id] and found(report, "unknown") == [lost]
    assert report["matched"] == 1


def test_jobs_by_key(bench):
    """With a target, the key is the job's own, and finds an unknown one."""
    reference, lost = bench.deliver(), bench.lose_job()
    keys = [bench.external.ledger.sends(operation=r)[0].key for r in (reference, lost)]
    bench.run([{"id": key} for key in keys], "--target", "bank", *APPLY, by="--key")
    assert bench.state(lost) == "completed"
    report = bench.run([{"id": key} for key in keys + ["f" * 64]], "--target", "bank", by="--key",
                       code=FAILED)
    assert found(report, "they_only") == ["f" * 64]


def test_a_dead_letter_that_arrived(bench):
    """They have what we gave up: it is settled as applied."""
    bench.external.fault("too_many")
    reference = owe(bench.gateway)
    bench.gateway.wait_log(f"event=job_dead .*{reference}")
    report = bench.run([{"id": reference}], "--target", "bank", code=FAILED)
    assert found(report, "unknown") == [reference]
    bench.run([{"id": reference}], "--target", "bank", *APPLY)
    assert bench.state(reference) == "completed"


def test_operations_by_key(bench):
    """A bare key counts only where it selects exactly one operation."""
    one, shared = new_key(), new_key()
    first = bench.pay(key=one)
    bench.pay(key=shared)
    bench.gateway.post("/pay", key=shared, headers=[("X-Tenant", "bob")])
    report = bench.run([{"id": one}, {"id": shared}], by="--key", code=FAILED)
    assert found(report, "unclear") == [shared] and report["matched"] == 1
    assert first not in found(report, "we_only")


def test_route(bench):
    """Only the operations of one route are expected in its ledger."""
    one = bench.pay()
    bench.gateway.post("/other", headers=[("X-Tenant", "alice")])
    bench.run([{"id": one}], "--route", "POST /pay")
    assert bench.run([{"id": one}], code=FAILED)["we_only"]["count"] == 1


def test_formats(bench):
    """CSV by any of its separators, JSON lines with pointers, and standard input."""
    reference = bench.pay()
    how = ("reconcile", "--from", bench.start)
    for name, text, more in [
            ("a.csv", f"x;id\n1;{reference}\n", ("--separator", ";", "--operation", "id")),
            ("b.csv", f"x\tid\r\n1\t{reference}\r\n", ("--separator", "tab", "--operation", "id")),
            ("c.jsonl", json.dumps({"m": {"op": reference}}) + "\n", ("--operation", "/m/op")),
            ("d.txt", json.dumps({"op": reference}), ("--format", "jsonl", "--operation", "op"))]:
        (bench.folder / name).write_text(text)
        bench.operator.on(*how, "--ledger", bench.folder / name, *more)
    bench.operator.on(*how, "--ledger", "-", "--operation", "id", stdin=f"id\n{reference}\n".encode())


def test_text(bench):
    """For people: groups with headings, and the counts in the last line."""
    ours = bench.pay()
    (bench.folder / "t.csv").write_text("id\ntip \x1b[31m\n")
    text = bench.operator.on("reconcile", "--ledger", bench.folder / "t.csv", "--operation", "id",
                         "--from", bench.start, code=FAILED)
    assert "They have it, and we do not: 1\n  line 2  tip ?[31m" in text
    assert f"We say it happened, and they do not know it: 1\n  {ours[:12]}  completed" in text
    assert text.splitlines()[-1] == ("1 rows, 0 of them known here; 1 of ours happened in that time; "
                                     "0 settled, 2 open")


def test_many_rows_and_pages(bench):
    """More of ours than a page has, and more differences than are listed."""
    with bench.gateway.connect() as wire:
        references = []
        for _ in range(1100):
            wire.send(bench.gateway.request("POST", "/pay", headers=[("X-Tenant", "alice")]))
            references.append(wire.answer("POST")["Hapax-Operation"])
    report = bench.run([{"id": r} for r in references])
    assert (report["ours"], report["open"]) == (1100, 0)
    report = bench.run([], code=FAILED)
    assert report["we_only"]["count"] == 1100 and len(report["we_only"]["listed"]) == 1000


MISTAKES = [
    ([], USAGE, "say which export: --ledger FILE"),
    (["--ledger", "x"], USAGE, "one of --operation, --provider-id and --key"),
    (["--ledger", "x", "--operation", "a", "--key", "b"], USAGE, "one of --operation"),
    (["--ledger", "x", "--key", "a", "--amount", "b"], USAGE, "--amount and --amount-pointer"),
    (["--ledger", "x", "--key", "a", "--amount", "b", "--amount-pointer", "c"], USAGE,
     "is a JSON pointer"),
    (["--ledger", "x", "--key", "a", "--status", "b"], USAGE, "--status needs to know"),
    (["--ledger", "x", "--key", "a", "--applied", "b"], USAGE, "--status needs to know"),
    (["--ledger", "x", "--key", "a", "--format", "xml"], USAGE, "--format is csv or jsonl"),
    (["--ledger", "x", "--key", "a", "--separator", "|"], USAGE, "--separator is , or ; or tab"),
    (["--ledger", "x.jsonl", "--key", "a", "--separator", ";"], USAGE, "have no --separator"),
    (["--ledger", "x", "--key", "a", "--from", "yesterday"], USAGE, "are times"),
    (["--ledger", "x", "--key", "a", "--to", "2026-02-30"], USAGE, "are times"),
    (["--ledger", "x", "--key", "a", "--since", "soon"], USAGE, "--since is a duration"),
    (["--ledger", "x", "--key", "a", "--since", "1h", "--from", "2026-01-01"], USAGE, "instead of"),
    (["--ledger", "x", "--key", "a", "--from", "2026-01-02", "--to", "2026-01-01"], USAGE, "empty"),
    (["--ledger", "x", "--key", "a", "--complete"], USAGE, "--complete needs --to"),
    (["--ledger", "x", "--key", "a", "--settle-after", "0"], USAGE, "--settle-after is a duration"),
    (["--ledger", "x", "--key", "a", "--apply"], USAGE, "say why: --reason"),
    (["--ledger", "x", "--key", "a", "--target", "t", "--route", "r"], USAGE, "have a --target"),
    (["--ledger", "x", "--operation", "a", "--restore"], USAGE, "say why: --reason"),
    (["--ledger", "x", "--key", "a", *RESTORE], USAGE, "does not say whose it is"),
    (["--ledger", "x", "--operation", "a", "--target", "t", *RESTORE], USAGE, "--restore needs --operation"),
    (["--ledger", "x", "--operation", "a", *RESTORE], USAGE, "how long a restored key is known"),
    (["--ledger", "x", "--operation", "a", "--retention", "0", *RESTORE], USAGE, "--retention is a duration"),
    (["--ledger", "x", "--operation", "a", "--retention", "1h"], USAGE, "--retention needs --restore"),
    (["--ledger", "/no/such.csv", "--key", "a"], FAILED, "/no/such.csv cannot be opened"),
    (["--ledger", "-", "--key", "a"], FAILED, "-, line 1"),
    (["--ledger", "-", "--format", "jsonl", "--key", "/~2"], USAGE, "must be a JSON pointer"),
]


@pytest.mark.parametrize("arguments, code, sentence", MISTAKES, ids=lambda v: str(v)[:60])
def test_mistakes(bench, arguments, code, sentence):
    """Each says what is wrong and what to do."""
    text = bench.operator.on("reconcile", *arguments, code=code, stdin=b"b,c\n1,2\n")
    assert sentence in text, text
