"""Shows a route with `deliver: async`: the request is accepted durably and at
once, delivered once to its target, and its answer becomes the operation's; what
travels is never a credential; and whoever prefers to wait, waits."""
import json
import sqlite3
import threading

import pytest

from conftest import require_program
from harness import check, postgres
from harness.external_service import CREDENTIAL, ExternalService
from harness.secret import new_key
from harness.wire import Closed

ACME, OTHER = ("X-Tenant", "acme"), ("X-Tenant", "other")
BODY = b'{"to": "a@b.test", "text": "s3cr3t"}'


@pytest.fixture
def external(tmp_path):
    with ExternalService(tmp_path / "external", tls=False, credential=CREDENTIAL, honours_keys=True) as one:
        yield one


def config(external, tmp_path, route=None, honours=True, **more):
    credential = tmp_path / "credential"
    credential.write_text(CREDENTIAL + "\n")
    credential.chmod(0o600)
    return {"tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"},
            "trusted_peers": ["127.0.0.1"],
            "routes": [{"match": "POST /emails", "deliver": "async", "target": "mailer",
                        "wait": "10s", **(route or {})}],
            "targets": {"mailer": {"url": external.url + "/api",
                                   "credentials": {"file": str(credential)},
                                   "backoff": "50ms", "timeout": "5s",
                                   **({"honours_keys": "24h"} if honours else {})}},
            **more}


def send(gateway, key, path="/emails", headers=(), body=BODY, tenant=ACME, **how):
    return gateway.post(path, key=key, auth=None, headers=[tenant, *headers], body=body, **how)


def show(gateway, reference, headers=(), tenant=ACME):
    return gateway.get(f"/.hapax/operations/{reference}", auth=None, headers=[tenant, *headers])


def wait(seconds):
    return ("Prefer", f"wait={seconds}")


def accepted(answer):
    """The 202 of an accepted request; its operation."""
    assert answer.status == 202, answer
    reference = answer["Hapax-Operation"]
    assert answer["Location"] == f"/.hapax/operations/{reference}"
    assert check.retry_after(answer) >= 1
    document = answer.json()
    assert (document["state"], document["operation"]) == ("pending", reference)
    assert answer["Idempotency-Expires"] is None
    return reference


def test_accepted_delivered_replayed(site, external, tmp_path):
    """202, then the target's answer for every retry, and one effect."""
    external.fault("none", before_gate="hold")
    one, key = site(config(external, tmp_path)), new_key()
    reference = accepted(send(one.gateway, key))
    assert accepted(send(one.gateway, key)) == reference
    external.release("hold", 9)
    final = send(one.gateway, key, headers=[wait(10)])
    assert final.status == 201 and final.replayed, final
    assert final["Hapax-Operation"] == reference
    assert final.json()["status"] == "succeeded"
    again = send(one.gateway, key)
    assert (again.status, again.body, again.replayed) == (201, final.body, True)
    assert len(external.ledger.effects(path="/api/emails")) == 1
    assert not one.provider.seen(), "nothing is forwarded"
    metrics = one.gateway.metrics()
    assert metrics['hapax_async_total{result="accepted"}'] == 1
    assert metrics['hapax_reserve_total{outcome="created"}'] == 1


def test_what_is_delivered(site, external, tmp_path):
    """Method, path and query, body, what says how to read it, and the target's own
    credential; nothing of who asked."""
    one, key = site(config(external, tmp_path, {"fingerprint": {"headers": ["X-Currency", "Cookie"]}})), new_key()
    answer = send(one.gateway, key, "/emails?a=%7Eb&c=1",
                  [("X-Currency", "EUR"), ("Cookie", "a=s3cr3t"), ("Authorization", "Bearer s3cr3t"),
                   ("X-Api-Key", "s3cr3t"), ("X-Forwarded-For", "10.0.0.1"), ("Accept", "a/b"),
                   ("X-Other", "1"), ("Forwarded", "for=10.0.0.1"), ("Hapax-Lease", "x"), wait(10)])
    assert answer.status == 201, answer
    sent, = external.ledger.sends()
    assert (sent.method, sent.path, sent.query) == ("POST", "/api/emails", "a=%7Eb&c=1")
    assert sent.body == BODY and sent.operation == answer["Hapax-Operation"]
    fields = {name.lower(): value for name, value in json.loads(sent.headers)}
    assert fields["authorization"] == CREDENTIAL
    assert (fields["content-type"], fields["x-currency"]) == ("application/json", "EUR")
    assert fields["accept"] == "a/b" and fields["idempotency-key"] != key
    assert not set(fields) & {"cookie", "x-api-key", "x-tenant", "x-forwarded-for", "x-other",
                              "forwarded", "hapax-lease", "prefer"}


@pytest.mark.skipif(postgres.chosen(), reason="the test reads SQLite's file")
def test_what_is_stored(site, external, tmp_path):
    """No credential of the caller's is in the job's row."""
    external.refuse()
    one = site(config(external, tmp_path, {"fingerprint": {"headers": ["Authorization"]}}))
    accepted(send(one.gateway, new_key(), headers=[("Authorization", "Bearer s3cr3t-caller"),
                                                   ("Cookie", "s=s3cr3t-caller")]))
    database = sqlite3.connect(one.gateway.folder / "hapax.db")
    tables = [name for name, in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        assert "s3cr3t-caller" not in str(database.execute(f"SELECT * FROM {table}").fetchall()), table
    database.close()


def test_where_it_is(site, external, tmp_path):
    """Its page shows the job's state and next try; another tenant sees nothing."""
    external.fault("unavailable", times=1000, retry_after=3600)
    one, key = site(config(external, tmp_path)), new_key()
    reference = accepted(send(one.gateway, key))
    job = check.until(lambda: next((j for j in show(one.gateway, reference).json().get("jobs", [])
                                    if j.get("status")), None), "the first try has failed")
    assert (job["name"], job["state"], job["attempt"], job["status"]) == ("request", "queued", 1, 503)
    assert job["next_try"] > show(one.gateway, reference).json()["changed"]
    document = show(one.gateway, reference).json()
    assert document["state"] == "pending" and document["deliver_until"]
    check.problem(show(one.gateway, reference, tenant=OTHER), "not_found")
    by_key = one.gateway.get(f"/.hapax/operations?path=/emails&key={key}", auth=None, headers=[ACME])
    assert by_key.json()["operation"] == reference


def test_another_request_with_its_key(site, external, tmp_path):
    external.refuse()
    one, key = site(config(external, tmp_path)), new_key()
    accepted(send(one.gateway, key))
    check.problem(send(one.gateway, key, body=b'{"to": "c@d.test"}'), "idempotency_key_reused")
    accepted(send(one.gateway, key, tenant=OTHER))  # its own operation


@pytest.mark.parametrize("who", ["first", "retry", "page"])
def test_prefer_wait(site, external, tmp_path, who):
    """Whoever waits is woken by the end, not by the clock."""
    external.fault("none", before_gate="hold")
    one, key = site(config(external, tmp_path, {"wait": "60s"}, defaults={"wait": "60s"})), new_key()
    reference = None if who == "first" else accepted(send(one.gateway, key))
    got = []

    def ask():
        got.append(show(one.gateway, reference, [wait(50)]) if who == "page" else
                   send(one.gateway, key, headers=[wait(50)], timeout=30))

    thread = threading.Thread(target=ask)
    thread.start()
    check.until(lambda: one.gateway.metrics()["hapax_waiting"] == 1, "it waits")
    external.release("hold")
    thread.join(30)
    answer, = got
    assert answer["Preference-Applied"] == "wait=50"
    if who == "page":
        assert (answer.status, answer.json()["state"]) == (200, "completed")
        assert answer.json()["jobs"][0]["state"] == "done"
    else:
        assert answer.status == 201 and answer.replayed, answer
    assert len(external.ledger.effects()) == 1


@pytest.mark.parametrize("prefer, bound, applied", [
    ("wait=1", "10s", "wait=1"),
    ("wait=30", "1s", "wait=1"),
    ("respond-async, wait=1", "10s", "wait=1"),
    ("wait=0", "10s", None),
    ("wait=soon", "10s", None),
])
def test_prefer_wait_is_bounded(site, external, tmp_path, prefer, bound, applied):
    """By the route's `wait` for the request, by the default's for the page; and
    then it is told as it is."""
    external.fault("none", before_gate="hold")
    one, key = site(config(external, tmp_path, {"wait": bound}, defaults={"wait": bound})), new_key()
    answer = send(one.gateway, key, headers=[("Prefer", prefer)])
    reference = accepted(answer)
    page = show(one.gateway, reference, [("Prefer", prefer)])
    assert page.json()["state"] == "pending"
    assert answer["Preference-Applied"] == page["Preference-Applied"] == applied
    external.release("hold")


def test_a_waiter_that_leaves(site, external, tmp_path):
    """It is forgotten; the delivery goes on."""
    external.fault("none", before_gate="hold")
    one, key = site(config(external, tmp_path)), new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/emails", key=key, auth=None, body=BODY,
                                      headers=[ACME, wait(10)]))
        check.until(lambda: one.gateway.metrics()["hapax_waiting"] == 1, "it waits")
    check.until(lambda: one.gateway.metrics()["hapax_waiting"] == 0, "it is gone")
    external.release("hold")
    assert send(one.gateway, key, headers=[wait(10)]).status == 201


def test_a_final_refusal_is_the_answer(site, external, tmp_path):
    """What the target refuses for good is what retries get."""
    external.fault("decline", status=409)
    one, key = site(config(external, tmp_path)), new_key()
    answer = send(one.gateway, key, headers=[wait(10)])
    assert answer.status == 409 and answer.json() == {"error": "declined"}, answer
    assert send(one.gateway, key).status == 409
    assert not external.ledger.effects()


def test_the_answer_is_lost(site, external, tmp_path):
    """A target that honours no keys: sent once, then unknown, with the time of the
    next question."""
    external.fault("reset_after")
    one, key = site(config(external, tmp_path, honours=False)), new_key()
    answer = send(one.gateway, key, headers=[wait(10)])
    check.problem(answer, "idempotency_outcome_unknown")
    assert check.retry_after(answer) >= 1
    document = show(one.gateway, answer["Hapax-Operation"]).json()
    assert document["state"] == "unknown" and document["jobs"][0]["state"] == "unknown"
    assert len(external.ledger.sends()) == len(external.ledger.effects()) == 1


def test_the_answer_is_lost_and_keys_are_honoured(site, external, tmp_path):
    """It is sent again under the same key, and happens once."""
    external.fault("reset_after", times=2)
    one, key = site(config(external, tmp_path)), new_key()
    assert send(one.gateway, key, headers=[wait(10)]).status == 201
    sends = external.ledger.sends()
    assert len(sends) == 3 and len({s.key for s in sends}) == 1
    assert len(external.ledger.effects()) == 1


def test_restarted_in_between(site, external, tmp_path):
    """What was accepted is delivered by the next process; where many share a store,
    once the dead one's claim has run out."""
    external.refuse()
    one, key = site(config(external, tmp_path)), new_key()
    reference = accepted(send(one.gateway, key))
    one.gateway.kill()
    external.accept()
    one.gateway.start()
    answers = []

    def is_answered():
        answers.append(send(one.gateway, key, headers=[wait(10)]))
        return answers[-1].status == 201

    check.until(is_answered, "it is delivered", 60)
    assert {a["Hapax-Operation"] for a in answers} == {reference}
    assert len(external.ledger.effects()) == 1


@pytest.mark.parametrize("how, code", [
    ({"path": "/emails?" + "x" * 9000}, "bad_request"),
    ({"key": None}, "idempotency_key_missing"),
])
def test_refused_before_anything(site, external, tmp_path, how, code):
    """What can never be a job, and what has no key."""
    one = site(config(external, tmp_path))
    check.problem(send(one.gateway, **{"key": new_key(), **how}), code)
    assert not external.ledger.sends() and not one.provider.seen()


def test_many_at_once(site, external, tmp_path):
    """Copies of ten requests at once: ten operations, ten effects."""
    one, keys = site(config(external, tmp_path)), [new_key() for _ in range(10)]
    got = []
    threads = [threading.Thread(target=lambda k=k: got.append((k, send(one.gateway, k, headers=[wait(10)]))))
               for k in keys * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [a.status for _, a in got] == [201] * 50, got
    assert len({(k, a.body) for k, a in got}) == 10
    assert len(external.ledger.effects()) == 10


def test_observed(site, external, tmp_path):
    """Passed on untouched, and counted."""
    one, key = site(config(external, tmp_path, observe=True)), new_key()
    answer = send(one.gateway, key)
    assert answer.status == 200 and not answer.replayed
    assert one.provider.seen(key=key)[0].target == "/emails"
    assert not external.ledger.sends()
    assert one.gateway.metrics()['hapax_async_total{result="observed"}'] == 1


def test_accepted_while_the_store_is_locked(site, external, tmp_path):
    """The store says nothing in time: that it may be accepted is told, the same key
    finds out, and it happens once."""
    one, key = site(config(external, tmp_path, timeouts={"store": "300ms"})), new_key()
    other = sqlite3.connect(one.gateway.folder / "hapax.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    check.problem(send(one.gateway, key), "idempotency_store_unavailable", executed="unknown")
    other.execute("ROLLBACK")
    other.close()
    check.until(lambda: send(one.gateway, key, headers=[wait(10)]).status == 201, "it is delivered")
    assert len(external.ledger.effects()) == 1


@pytest.mark.skipif(postgres.chosen(), reason="SQLite's disk is looked at")
def test_refused_for_want_of_space(site, external, tmp_path):
    """Too little space for new keys is known before anything is written: nothing was
    accepted, and that is told."""
    one = site(config(external, tmp_path, limits={"free_space": "1024GiB"}))
    check.problem(send(one.gateway, new_key()), "idempotency_store_unavailable", executed="no")


def test_killed_when_accepted(site, external, tmp_path):
    """Durable, and nobody was told: the retry finds it, and it happens once."""
    require_program(steps=True)
    one, key = site(config(external, tmp_path), steps=True), new_key()
    one.gateway.stop()
    one.gateway.spawn({"HAPAX_CRASH_AT": "async_accepted"}).wait_ready(may_die=True)
    with pytest.raises((Closed, ConnectionError)):
        send(one.gateway, key)
    assert one.gateway.wait() == -9
    one.gateway.start()
    check.until(lambda: send(one.gateway, key, headers=[wait(10)]).status == 201, "it is delivered", 60)
    assert len(external.ledger.effects()) == 1
    assert one.gateway.metrics()['hapax_async_total{result="accepted"}'] == 0
