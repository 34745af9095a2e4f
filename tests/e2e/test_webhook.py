"""Shows POST /.hapax/webhooks/<name>: who may speak, what a message comes to, that
hearing it twice changes nothing, and that the answer tells the sender whether to
send it again."""
import base64
import json
import socket
import sqlite3
import struct
import subprocess
import time

import pytest

from harness import check, external_webhooks
from harness.external_service import ExternalService
from harness.external_webhooks import Hook, event_body, new_event, post
from harness.secret import new_key

SECRET = "whsec_" + base64.b64encode(b"s3cr3t-of-the-bank-0123456789abcd").decode()
ACME = ("X-Tenant", "acme")
MAPPING = {"operation": "/data/object/operation", "verdict": "/data/object/status",
           "applied": ["succeeded"], "declined": ["failed"], "not_applied": ["not_found"],
           "not_yet": ["pending"], "settle_after": "1s"}


def config(tmp_path, webhook=None, **more):
    secret = tmp_path / "bank.secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    return {"webhooks": {"bank": {"scheme": "stripe", "secret_file": str(secret), **MAPPING,
                                  **(webhook or {})}}, **more}


def hook_of(gateway, name="bank", scheme="stripe", **how):
    return Hook(f"http://127.0.0.1:{gateway.port}/.hapax/webhooks/{name}", scheme, SECRET, **how)


def tell(gateway, state, operation=None, effect="ch_1", at=None, hook=None, event=None):
    """One signed message; what hapax answers."""
    hook = hook or hook_of(gateway)
    body = json.dumps(event_body(event or new_event(), effect, state, operation)).encode()
    return post(hook.url, hook.sign(body, event or "evt_1", at), body)


def result(answer):
    assert answer.status == 200, answer
    assert answer["Cache-Control"] == "no-store"
    return answer.json()["result"]


def lose(one, key, effect=True):
    """An operation whose answer was lost; its reference."""
    answer = one.gateway.post(key=key, behave="reset=after" if effect else "reset=before")
    check.problem(answer, "upstream_outcome_unknown", 502)
    return answer["Hapax-Operation"]


def counted(gateway, what):
    return gateway.metrics()[f'hapax_webhooks_total{{webhook="bank",result="{what}"}}']


@pytest.mark.parametrize("scheme", ["stripe", "standard-webhooks", "hmac-body"])
def test_applied(site, tmp_path, scheme):
    """What was unknown is completed; retries are told that it happened."""
    more = {"header": "X-Signature"} if scheme == "hmac-body" else {}
    one, key = site(config(tmp_path, {"scheme": scheme, **more})), new_key()
    reference = lose(one, key)
    hook = hook_of(one.gateway, scheme=scheme)
    assert result(tell(one.gateway, "succeeded", reference, hook=hook)) == "settled"
    check.problem(one.gateway.post(key=key, behave="reset=after"), "response_not_kept")
    assert one.gateway.operation(reference).json()["state"] == "completed"
    assert len(one.provider.ledger(key)) == 1
    assert counted(one.gateway, "settled") == 1


def test_declined(site, tmp_path):
    """It was executed and refused: 402 for every retry."""
    one, key = site(config(tmp_path)), new_key()
    reference = lose(one, key)
    assert result(tell(one.gateway, "failed", reference)) == "settled"
    answer = one.gateway.post(key=key, behave="reset=after")
    assert answer.status == 402 and answer.replayed and answer.json()["code"] == "declined"


def test_heard_twice(site, tmp_path):
    """A second time, and whatever is said later, changes nothing."""
    one, key = site(config(tmp_path)), new_key()
    reference = lose(one, key)
    event = new_event()
    assert result(tell(one.gateway, "succeeded", reference, event=event)) == "settled"
    for state in ("succeeded", "failed", "not_found", "pending"):
        assert result(tell(one.gateway, state, reference, event=event)) == "ignored"
    assert one.gateway.operation(reference).json()["state"] == "completed"


def test_not_applied_counts_twice_and_late(site, tmp_path):
    """Signed too early it counts for nothing; twice, far enough apart, it settles,
    and only then is the request executed again."""
    one, key = site(config(tmp_path)), new_key()
    reference = lose(one, key, effect=False)
    now = int(time.time())
    assert result(tell(one.gateway, "not_found", reference, at=now - 100)) == "kept"
    assert one.gateway.operation(reference).json()["state"] == "unknown"
    # Its time must be past the last byte by settle_after: asked until it is.
    results = []

    def said():
        results.append(result(tell(one.gateway, "not_found", reference)))
        return results[-1] == "settled"

    check.until(said, "said twice, at least a second apart")
    assert set(results[:-1]) == {"kept"} and len(results) >= 2
    assert time.time() - now >= 2
    again = one.gateway.post(key=key, behave="reset=before")
    check.problem(again, "upstream_outcome_unknown", 502)
    assert len(one.provider.seen(key=key)) == 2


def test_the_same_message_is_one(site, tmp_path):
    """The same signed bytes a hundred times are one saying."""
    one, key = site(config(tmp_path)), new_key()
    reference = lose(one, key, effect=False)
    hook = hook_of(one.gateway)
    at = int(time.time()) + 5  # past settle_after whatever the clock
    body = json.dumps(event_body("evt_1", "ch", "not_found", reference)).encode()
    for _ in range(100):
        assert result(post(hook.url, hook.sign(body, "evt_1", at - 5), body)) == "kept"
    assert one.gateway.operation(reference).json()["state"] == "unknown"


def test_too_early(site, tmp_path):
    """What comes while the request is under way is kept, and settles it when its
    answer is lost."""
    one, key = site(config(tmp_path)), new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key, behave=f"hold={key}; reset=after"))
        one.provider.gate(key).wait_arrived()
        reference = one.provider.seen(key=key)[0]["Hapax-Operation"]
        assert result(tell(one.gateway, "succeeded", reference)) == "kept"
        one.provider.gate(key).release()
        wire.answer("POST")
    check.until(lambda: one.gateway.operation(reference).json()["state"] == "completed",
                "the evidence settles it")
    assert counted(one.gateway, "kept") == 1


@pytest.mark.parametrize("body, why", [
    (lambda ref: event_body("e", "x", "succeeded", "0" * 64 + "." + "1" * 32), "nobody's operation"),
    (lambda ref: event_body("e", "x", "succeeded", ref[:-1] + ("0" if ref[-1] != "0" else "1")),
     "another use of the key"),
    (lambda ref: event_body("e", "x", "succeeded", "no-reference"), "no reference"),
    (lambda ref: event_body("e", "x", "succeeded", None), "no operation at all"),
    (lambda ref: event_body("e", "x", "something_else", ref), "a verdict nobody knows"),
    (lambda ref: {"id": "e"}, "nothing of all that"),
    (lambda ref: [1, 2], "no object"),
])
def test_of_no_use(site, tmp_path, body, why):
    """Sending it again would not help: 200."""
    one, key = site(config(tmp_path)), new_key()
    reference = lose(one, key)
    hook, data = hook_of(one.gateway), json.dumps(body(reference)).encode()
    assert result(post(hook.url, hook.sign(data, "e"), data)) == "ignored", why
    assert one.gateway.operation(reference).json()["state"] == "unknown"


def test_no_json(site, tmp_path):
    one = site(config(tmp_path))
    hook = hook_of(one.gateway)
    assert result(post(hook.url, hook.sign(b"{", "e"), b"{")) == "ignored"


@pytest.mark.parametrize("twist, what", [
    ("wrong_signature", "wrong"),
    ("old", "too_old"),
    ("oversized", "too_large"),
])
def test_refused(site, tmp_path, twist, what):
    """One problem for every kind of wrong signature; only the metrics tell which."""
    one, key = site(config(tmp_path)), new_key()
    reference = lose(one, key)
    body = event_body(new_event(), "ch_1", "succeeded", reference)
    answer = external_webhooks.send(hook_of(one.gateway), body, twist)
    check.problem(answer, "request_too_large" if twist == "oversized" else "webhook_unverified")
    if twist != "oversized":
        assert what not in answer.body.decode() and answer["WWW-Authenticate"]
    assert counted(one.gateway, what) == 1
    assert one.gateway.operation(reference).json()["state"] == "unknown"


@pytest.mark.parametrize("fields, what", [
    ([], "missing"),
    ([("Stripe-Signature", "t=1")], "missing"),
    ([("Stripe-Signature", "nonsense")], "malformed"),
])
def test_unsigned(site, tmp_path, fields, what):
    one = site(config(tmp_path))
    answer = post(hook_of(one.gateway).url, fields, b"{}")
    check.problem(answer, "webhook_unverified")
    assert counted(one.gateway, what) == 1


def test_rate(site, tmp_path):
    """More than its rate is 429; what is not signed uses nothing of it up."""
    one = site(config(tmp_path, {"rate": 2}))
    for _ in range(20):
        assert post(hook_of(one.gateway).url, [], b"{}").status == 401
    answers = [tell(one.gateway, "succeeded") for _ in range(20)]
    refused = [a for a in answers if a.status == 429]
    assert len(answers) - len(refused) >= 2 and refused
    check.problem(refused[0], "rate_limited")
    assert check.retry_after(refused[0]) == 1
    assert counted(one.gateway, "rate_limited") == len(refused)
    check.until(lambda: tell(one.gateway, "succeeded").status == 200, "its rate goes on")


def test_paths(site, tmp_path):
    """An unknown name is 404, another method 405; own_paths: off hides them."""
    one = site(config(tmp_path))
    hook = hook_of(one.gateway, "nobody")
    check.problem(post(hook.url, hook.sign(b"{}", "e"), b"{}"), "not_found")
    get = one.gateway.get("/.hapax/webhooks/bank", auth=None)
    assert get.status == 405 and get["Allow"] == "POST"
    hidden = site({"own_paths": False})
    check.problem(tell(hidden.gateway, "succeeded"), "not_found")


def test_said_while_the_store_is_locked(site, tmp_path):
    """503: the sender keeps it, and says it again."""
    one, key = site(config(tmp_path, timeouts={"store": "300ms"})), new_key()
    reference = lose(one, key)
    other = sqlite3.connect(one.gateway.folder / "hapax.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    check.problem(tell(one.gateway, "succeeded", reference), "idempotency_store_unavailable")
    other.execute("ROLLBACK")
    other.close()
    check.until(lambda: tell(one.gateway, "succeeded", reference).status == 200, "the store is back")
    assert one.gateway.operation(reference).json()["state"] == "completed"


def test_the_sender_leaves_while_the_store_is_locked(site, tmp_path):
    """Nobody is told anything late: what it said counts once the store is back."""
    one, key = site(config(tmp_path, timeouts={"store": "1s"})), new_key()
    reference = lose(one, key)
    other = sqlite3.connect(one.gateway.folder / "hapax.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    hook = hook_of(one.gateway)
    body = json.dumps(event_body(new_event(), "ch_1", "succeeded", reference)).encode()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/.hapax/webhooks/bank", key=None, auth=None,
                                      headers=hook.sign(body, "evt_1", None), body=body))
        time.sleep(0.1)  # the store is asked
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(1.6)  # its time is over, and a few ticks
    assert counted(one.gateway, "unavailable") == 0
    other.execute("ROLLBACK")
    other.close()
    check.until(lambda: one.gateway.operation(reference).json()["state"] == "completed", "it counted")


def test_it_is_an_event(site, tmp_path):
    """The history says who said it."""
    one, key = site(config(tmp_path)), new_key()
    reference = lose(one, key)
    assert result(tell(one.gateway, "succeeded", reference)) == "settled"
    shown = subprocess.run([one.gateway.program, "keys", "show", "--config",
                            one.gateway.write_config(), reference], capture_output=True, text=True,
                           cwd=one.gateway.folder, check=False)
    assert "webhook bank: applied" in shown.stdout, shown


# Jobs.
@pytest.fixture
def external(tmp_path):
    with ExternalService(tmp_path / "external", tls=False) as one:
        yield one


def async_config(external, tmp_path, webhook=None, **target):
    return config(tmp_path, webhook, trusted_peers=["127.0.0.1"],
                  tenant={"from": "header", "name": "X-Tenant", "anonymous": "refuse"},
                  routes=[{"match": "POST /emails", "deliver": "async", "target": "mailer"}],
                  targets={"mailer": {"url": external.url, "backoff": "50ms",
                                      "provider_id": "/id", **target}})


def send(gateway, key):
    return gateway.post("/emails", key=key, auth=None, headers=[ACME, ("Prefer", "wait=10")])


@pytest.mark.parametrize("state, status", [("succeeded", 409), ("failed", 402)])
def test_a_job(site, external, tmp_path, state, status):
    """An async operation is settled through its job, and both end together."""
    external.fault("reset_after")
    one, key = site(async_config(external, tmp_path)), new_key()
    unknown = send(one.gateway, key)
    check.problem(unknown, "idempotency_outcome_unknown")
    reference = unknown["Hapax-Operation"]
    assert result(tell(one.gateway, state, reference)) == "settled"
    assert send(one.gateway, key).status == status
    page = one.gateway.get(f"/.hapax/operations/{reference}", auth=None, headers=[ACME]).json()
    assert page["state"] == "completed"
    assert page["jobs"][0]["state"] == ("done" if state == "succeeded" else "dead")
    assert len(external.ledger.sends()) == 1


def test_a_job_that_did_not_happen(site, external, tmp_path):
    """Said twice: it is sent again, once."""
    external.fault("reset_before")
    one, key = site(async_config(external, tmp_path)), new_key()
    unknown = send(one.gateway, key)
    check.problem(unknown, "idempotency_outcome_unknown")
    reference = unknown["Hapax-Operation"]
    check.until(lambda: result(tell(one.gateway, "not_found", reference)) == "settled",
                "said twice, a second apart")
    assert send(one.gateway, key).status == 201
    assert len(external.ledger.sends()) == 2 and len(external.ledger.effects()) == 1


def test_by_the_providers_id(site, external, tmp_path):
    """An answer that was no answer, but named the effect: its id is enough. An id
    that nobody has is of no use."""
    external.fault("say", status=500, json={"id": "ch_77"})
    by_id = {"provider_id": "/data/object/id"}
    one, key = site(async_config(external, tmp_path, by_id)), new_key()
    unknown = send(one.gateway, key)
    check.problem(unknown, "idempotency_outcome_unknown")
    assert result(tell(one.gateway, "succeeded", None, effect="ch_78")) == "ignored"
    assert result(tell(one.gateway, "succeeded", None, effect="ch_77")) == "settled"
    check.problem(send(one.gateway, key), "response_not_kept")


@pytest.mark.parametrize("by", ["reference", "provider_id"])
def test_another_targets_service(site, external, tmp_path, by):
    """The bank's word settles the bank's jobs. It knows the references of others'
    operations, and may have given the same id: the mailer's job is not its."""
    external.fault("say", status=500, json={"id": "1001"})
    settings = async_config(external, tmp_path, {"provider_id": "/data/object/id", "target": "bank"})
    settings["targets"]["bank"] = {"url": external.url}
    settings["webhooks"]["post"] = {**settings["webhooks"]["bank"], "target": "mailer"}
    one, key = site(settings), new_key()
    unknown = send(one.gateway, key)
    check.problem(unknown, "idempotency_outcome_unknown")
    named = {"operation": unknown["Hapax-Operation"]} if by == "reference" else {"effect": "1001"}
    assert result(tell(one.gateway, "succeeded", **named)) == "ignored"
    check.problem(send(one.gateway, key), "idempotency_outcome_unknown")
    assert result(tell(one.gateway, "succeeded", hook=hook_of(one.gateway, "post"), **named)) == "settled"
    check.problem(send(one.gateway, key), "response_not_kept")
    assert len(external.ledger.sends()) == 1


def test_a_targets_service_settles_no_operation_of_an_upstream(site, external, tmp_path):
    """What a route's upstream did is not the mailer's to say."""
    settings = config(tmp_path, {"target": "mailer"}, targets={"mailer": {"url": external.url}})
    one, key = site(settings), new_key()
    reference = lose(one, key)
    assert result(tell(one.gateway, "succeeded", reference)) == "ignored"
    assert one.gateway.operation(reference).json()["state"] == "unknown"
