"""Shows what becomes of a key after its answer has expired: executed and told, refused,
known by a tombstone, kept longer by the upstream's own word, and found in the history."""
import csv
import hashlib
import io
import json
import re
import shlex
import threading
from datetime import datetime, timedelta, timezone

from harness import check
from harness.operator_command import FAILED, USAGE, Operator
from harness.secret import new_key

QUICK = {"reap": {"every": "50ms"}}


def test_refuse(site):
    """expired: refuse answers 410 before and without the reaper, whatever comes with the key."""
    one = site({"defaults": {"retention": "1s", "expired": "refuse"}, "reap": {"every": "1h"}})
    key = new_key()
    first = one.gateway.post(key=key)
    assert first.status == 200
    threading.Event().wait(1.3)  # the passing of time is what is tested
    for body in (None, b'{"amount": 11}'):
        answer = one.gateway.post(key=key, body=body) if body else one.gateway.post(key=key)
        document = check.problem(answer, "idempotency_key_expired")
        assert document["operation"] == first["Hapax-Operation"], document
        assert document["original_status"] == 200, document
    assert len(one.provider.ledger(key)) == 1
    assert one.gateway.metrics()['hapax_reserve_total{outcome="expired"}'] == 2


def test_tombstone(site):
    """A tombstone refuses its key after the answer was reaped, or tells that it is executed
    again; without one the key is new, whatever `expired` says."""
    one = site({"defaults": {"retention": "1s", "expired": "refuse"},
                "routes": [{"match": "POST /kept", "tombstone": "1h"}, {"match": "POST /gone"},
                           {"match": "POST /told", "tombstone": "1h", "expired": "execute"}], **QUICK})
    operator = Operator(one.gateway)
    keys = {path: new_key() for path in ("/kept", "/gone", "/told")}
    # With a second attempt: SQLite reaps such a row by itself, and others with their generation.
    for path, key in keys.items():
        assert one.gateway.post(path, key=key, behave="status=429").status == 429
    first = {path: one.gateway.post(path, key=key, behave="status=201")["Hapax-Operation"] for path, key in keys.items()}
    for path in ("/kept", "/told"):
        check.until(lambda path=path: operator.key(first[path])["kept"] is False, "its answer is reaped", 30)
    check.until(lambda: not operator.json("keys", "ls", "--key", keys["/gone"])["operations"], "it is reaped", 30)
    for restarts in (False, True):
        if restarts:
            one.gateway.stop()
            one.gateway.start()
        for body in (b'{"amount": 10}', b'{"amount": 11}'):
            document = check.problem(one.gateway.post("/kept", key=keys["/kept"], body=body), "idempotency_key_expired")
            assert (document["operation"], document["original_status"]) == (first["/kept"], 201), document
    assert one.gateway.operation(first["/kept"]).status == 410
    assert len(one.provider.ledger(keys["/kept"])) == 1
    anew = {path: one.gateway.post(path, key=keys[path]) for path in ("/gone", "/told")}
    assert all(answer.status == 200 and not answer.replayed for answer in anew.values()), anew
    assert [len(one.provider.ledger(keys[path])) for path in ("/gone", "/told")] == [2, 2]
    metrics = one.gateway.metrics()
    assert metrics['hapax_reserve_total{outcome="after_expiry"}'] == 1
    assert metrics['hapax_reserve_total{outcome="created"}'] == 1
    [line] = one.gateway.events("executed_after_expiry")
    assert f" operation={anew['/told']['Hapax-Operation']}" in line
    assert "had happened and expired" in operator.on("keys", "show", anew["/told"]["Hapax-Operation"])


def test_executed_after_expiry_is_told(site):
    """An execution after expiry that can be seen is counted, logged and among the events."""
    one = site({"defaults": {"retention": "1s"}, "reap": {"every": "1h"}})
    key = new_key()
    one.gateway.post(key=key)
    threading.Event().wait(1.3)  # the passing of time is what is tested
    again = one.gateway.post(key=key)
    assert again.status == 200 and not again.replayed
    metrics = one.gateway.metrics()
    assert metrics['hapax_reserve_total{outcome="after_expiry"}'] == 1
    assert metrics['hapax_reserve_total{outcome="created"}'] == 1
    [line] = one.gateway.events("executed_after_expiry")
    assert f" operation={again['Hapax-Operation']}" in line
    shown = Operator(one.gateway).on("keys", "show", again["Hapax-Operation"])
    assert "had happened and expired" in shown, shown


def test_retention_by_the_upstream(site):
    """Hapax-Retention keeps one answer longer, up to retention_max, and no client sees it."""
    one = site({"defaults": {"retention": "1s"},
                "routes": [{"match": "POST /long", "retention_max": "1h"}, {"match": "POST /short"}]})
    answers = {}
    for path, value in (("/long", "30m"), ("/long", "9d"), ("/long", "soon"), ("/short", "30m")):
        key = new_key()
        answer = one.gateway.post(path, key=key, behave=f"header=Hapax-Retention:{value}")
        assert answer.status == 200 and answer["Hapax-Retention"] is None, answer
        answers[path, value] = key, answer
    threading.Event().wait(1.3)  # the passing of time is what is tested
    for (path, value), (key, first) in answers.items():
        again = one.gateway.post(path, key=key)
        assert again.replayed == (path == "/long" and value != "soon"), (path, value, again)
        if again.replayed:
            check.same_answer(first, again)
            kept = datetime.fromisoformat(again["Idempotency-Expires"]) - datetime.now(timezone.utc)
            longest = timedelta(minutes=30 if value == "30m" else 60)  # never longer than retention_max
            assert longest - timedelta(minutes=5) < kept <= longest, (path, value, kept)
    one.gateway.events("retention_unreadable")


def history(operator, *arguments):
    operator.on("history", "--json", *arguments)
    return [json.loads(line) for line in operator.out.splitlines()]


def test_did_we_charge_this(site):
    """hapax history finds a charge whose record is gone, and one that is there, alike: by time,
    tenant, key (plain and hashed), status and state. A key that is used again after its expiry
    takes the place of the record and leaves the entry, on every store at once."""
    one = site({"defaults": {"retention": "1s"}, "history": {"retention": "400d"}, "reap": {"every": "1h"},
                "tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"},
                "trusted_peers": ["127.0.0.1"],
                "routes": [{"match": "POST /kept", "retention": "1h"},
                           {"match": "POST /hashed", "key_storage": "hash"}, {"match": "POST /pay"}]})
    charge, hashed, declined, failed = (new_key() for _ in range(4))

    def send(path, key, tenant, behave=None):
        return one.gateway.post(path, key=key, behave=behave, headers=[("X-Tenant", tenant)])["Hapax-Operation"]

    first = {charge: send("/pay", charge, "alice"), hashed: send("/hashed", hashed, "bob"),
             declined: send("/kept", declined, "bob", "status=402"),
             failed: send("/kept", failed, "alice", "status=503")}
    threading.Event().wait(1.3)  # the passing of time is what is tested
    again = {charge: send("/pay", charge, "alice"), hashed: send("/hashed", hashed, "bob")}
    operator = Operator(one.gateway)
    entries = history(operator)
    assert {entry["reference"] for entry in entries[:2]} == set(again.values())
    assert {entry["reference"] for entry in entries[2:]} == set(first.values()) and len(entries) == 6
    assert [entry["created"] for entry in entries] == sorted((entry["created"] for entry in entries), reverse=True)
    for entry in entries:
        gone = entry["reference"] in (first[charge], first[hashed])
        assert entry["reaped"] == gone == (entry["expires"] is None), entry
    assert {entry["path"] for entry in history(operator, "--key", charge)} == {"/pay"}
    bob = history(operator, "--key", hashed)[0]["tenant"]
    digest = "sha256:" + hashlib.sha256(hashed.encode()).hexdigest()
    rows = ((("--key", charge), {charge}), (("--key", hashed), {hashed}), (("--key", digest), {hashed}),
            (("--tenant", bob), {hashed, declined}), (("--status", "402"), {declined}),
            (("--status", "2xx"), {charge, hashed}), (("--state", "failed_retryable"), {failed}),
            (("--since", "1h"), set(first)), (("--until", "1h"), set()), (("--until", "2020-01-01"), set()),
            (("--since", "2020-01-01", "--until", "2099-01-01T00:00:00Z"), set(first)))
    for arguments, wanted in rows:
        references = {r for key in wanted for r in (first[key], again.get(key, first[key]))}
        assert {entry["reference"] for entry in history(operator, *arguments)} == references, arguments
    assert history(operator, "--limit", "1") == entries[:1]
    assert "1 newest are shown" in operator.err
    assert "kept for 400d" in operator.err
    assert "no finished operation" in operator.on("history", "--key", "nobody")
    table = operator.on("history", "--key", charge)
    assert charge[:30] in table and first[charge][:12] in table and again[charge][:12] in table and "POST /pay" in table, table
    for wrong in (("--status", "6xx"), ("--status", "40"), ("--state", "unknown"), ("--since", "soon"),
                  ("--since", "1h", "--until", "2h"), ("--json", "--csv"), ("--limit", "0")):
        operator.on("history", *wrong, code=USAGE)


def test_what_the_reaper_left(site):
    """What the reaper removed is told by hapax history as text, JSON lines and CSV, and found
    by time, tenant, key and status; its record is gone."""
    one = site({"defaults": {"retention": "1s"}, "history": {"retention": "400d"}, "reap": {"every": "1s"},
                "tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"},
                "trusted_peers": ["127.0.0.1"]})
    paid, declined = new_key(), new_key()

    def send(key, tenant, behave=None):
        return one.gateway.post("/pay", key=key, behave=behave, headers=[("X-Tenant", tenant)])["Hapax-Operation"]

    # With a second attempt: SQLite reaps such a row by itself, and others with their generation.
    for key, tenant in ((paid, "alice"), (declined, "bob")):
        send(key, tenant, "status=429")
    references = {paid: send(paid, "alice"), declined: send(declined, "bob", "status=402")}
    operator = Operator(one.gateway)

    def all_reaped():
        found = {entry["key"]: entry for entry in history(operator) if entry["key"] in references}
        assert {key: entry["reference"] for key, entry in found.items()} == references, "told at any time"
        return found if all(entry["reaped"] for entry in found.values()) else None

    entries = check.until(all_reaped, "both are reaped", 30)
    assert "its record was removed; this is its history" in operator.on("keys", "show", references[paid], code=FAILED)
    said = operator.on("keys", "show", "--key", paid, code=FAILED)
    told = re.search(r"`(hapax history --key .*)` has what is left", said).group(1)
    assert references[paid][:12] in operator.run(*shlex.split(told)[1:]), told
    assert (entries[paid]["status"], entries[declined]["status"]) == (200, 402)
    assert entries[paid]["expires"] is None and entries[paid]["method"] == "POST" and entries[paid]["path"] == "/pay"
    rows = ((("--key", paid), [paid]), (("--tenant", entries[declined]["tenant"]), [declined]),
            (("--status", "402"), [declined]), (("--status", "402", "--since", "1h"), [declined]),
            (("--key", paid, "--until", "1h"), []))
    for arguments, keys in rows:
        assert [entry["reference"] for entry in history(operator, *arguments)] == [references[k] for k in keys], arguments
        text = operator.on("history", *arguments)
        assert all(references[k][:12] in text for k in keys) and bool(keys) != ("no finished operation" in text), text
        table = list(csv.DictReader(io.StringIO(operator.on("history", "--csv", *arguments), newline=""), strict=True))
        assert [row["key"] for row in table] == keys and all(row["expires"] == "" for row in table), table


def test_history_without_retention(site):
    """A store that keeps no history says so, so that nothing found proves nothing."""
    one = site()
    operator = Operator(one.gateway)
    assert "no finished operation" in operator.on("history")
    assert "keeps no history" in operator.err


def test_history_as_csv(site):
    """CSV is read back as it was, and no cell is a formula."""
    one = site()
    keys = ['=1+1', '+cmd', '-2', '@sum', 'a,b', 'a"b', 'plain']
    for key in keys:
        quoted = '"' + key.replace('"', '\\"') + '"'
        assert one.gateway.post("/pay?a=1", key=quoted).status == 200
    operator = Operator(one.gateway)
    text = operator.on("history", "--csv")
    assert text.count("\r\n") == len(keys) + 1 and text.count("\n") == len(keys) + 1
    rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    assert {row["key"] for row in rows} == {"'=1+1", "'+cmd", "'-2", "'@sum", 'a,b', 'a"b', 'plain'}
    assert {row["status"] for row in rows} == {"200"}
    assert all(row["created"].endswith("Z") and row["expires"] > row["created"] for row in rows)


def test_extend(site):
    """keys extend keeps an answer longer, tells the new time, never shortens, and refuses
    what has expired; the running server goes by it."""
    one = site({"defaults": {"retention": "2s"}, "reap": {"every": "1h"}})
    kept, gone = new_key(), new_key()
    first = one.gateway.post(key=kept)
    reference = first["Hapax-Operation"]
    expired = one.gateway.post(key=gone)["Hapax-Operation"]
    operator = Operator(one.gateway)
    why = ("--reason", "a dispute")
    done = operator.json("keys", "extend", reference, "--until", "2099-03-31", *why)
    assert (done["expires"], done["extended"]) == ("2099-03-31T00:00:00Z", True), done
    for until in ("1h", "2099-03-30"):
        done = operator.json("keys", "extend", "--key", kept, "--until", until, *why)
        assert (done["expires"], done["extended"]) == ("2099-03-31T00:00:00Z", False), done
    threading.Event().wait(2.3)  # the passing of time is what is tested
    check.same_answer(first, one.gateway.post(key=kept))
    assert operator.key(reference)["expires"] == "2099-03-31T00:00:00Z"
    assert "extended" in operator.on("keys", "show", reference)
    assert "has expired" in operator.on("keys", "extend", expired, "--until", "1h", *why, code=FAILED)
    for until in ("2020-01-01", "0", "soon", "9999-01-01"):
        operator.on("keys", "extend", reference, "--until", until, *why, code=USAGE)
    operator.on("keys", "extend", reference, *why, code=USAGE)
    operator.on("keys", "extend", reference, "--until", "1h", code=USAGE)
    assert len(one.provider.ledger(kept)) == 1
