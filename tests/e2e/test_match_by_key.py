"""Shows webhooks and probes that know only the client's key: they settle where the key
selects exactly one operation of the route, over all tenants and states, and the amount
agrees where that is configured; otherwise nothing is settled, and the answer says why."""
import base64
import json
import sqlite3
import subprocess

import pytest

from harness import check, postgres
from harness.external_webhooks import Hook, post
from harness.gateway import binary
from harness.secret import BOB, new_key
from test_reconstruct import lookup  # noqa: F401, a fixture

SECRET = "whsec_" + base64.b64encode(b"s3cr3t-of-the-bank-0123456789abcd").decode()
ROUTES = [{"match": "POST /pay"}, {"match": "POST /refund"}]
AMOUNTS = {"amount": "/amount", "amount_request": "/money/amount"}


def config(tmp_path, webhook=None, **more):
    secret = tmp_path / "bank.secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    bank = {"scheme": "stripe", "secret_file": str(secret), "key": "/metadata/key", "route": "POST /pay",
            "verdict": "/status", "applied": ["succeeded"], "declined": ["failed"]}
    return {"webhooks": {"bank": {**bank, **(webhook or {})}}, "routes": ROUTES, **more}


def tell(one, key, **more):
    """What became of a message that names the key and nothing else."""
    hook = Hook(f"http://127.0.0.1:{one.gateway.port}/.hapax/webhooks/bank", "stripe", SECRET)
    body = json.dumps({"metadata": {"key": key}, "status": "succeeded", **more}).encode()
    answer = post(hook.url, hook.sign(body, "evt_1"), body)
    assert answer.status == 200, answer
    return answer.json()["result"]


def lose(one, key, target="/pay", **how):
    answer = one.gateway.post(target, key=key, behave="reset=after", **how)
    check.problem(answer, "upstream_outcome_unknown", 502)
    return answer["Hapax-Operation"]


def state(one, reference, **how):
    return one.gateway.operation(reference, **how).json()["state"]


def forget(one, reference, *flags):
    subprocess.run([binary(), "keys", "forget", "--store", one.gateway.config["store"], reference,
                    "--reason", "test", *flags], check=True)


def rows(one):
    """How many rows the index has."""
    url = one.gateway.config["store"]
    if url.startswith("postgres:"):
        return int(postgres.shared().sql("SELECT count(*) FROM hapax.route_key",
                                         url.split("?")[0].rsplit("/", 1)[1])[-1])
    with sqlite3.connect(url.removeprefix("sqlite:")) as db:
        return db.execute("SELECT count(*) FROM hapax_route_key").fetchone()[0]


@pytest.mark.parametrize("storage", ["plain", "hash"])
def test_one(site, tmp_path, storage):
    """One operation has the key: it is settled, and a retry executes nothing."""
    one, key = site(config(tmp_path, defaults={"key_storage": storage})), new_key()
    assert tell(one, key) == "ignored"
    reference = lose(one, key)
    assert tell(one, key + "x") == "ignored"
    assert tell(one, key) == "settled"
    assert state(one, reference) == "completed"
    check.problem(one.gateway.post(key=key, behave="reset=after"), "response_not_kept")
    assert tell(one, key) == "ignored"
    assert len(one.provider.ledger(key)) == 1


def test_another_route(site, tmp_path):
    """The same key on a route that the webhook does not mean is neither found nor in the
    way; such a route writes no row."""
    one, key = site(config(tmp_path)), new_key()
    refund = lose(one, key, "/refund")
    assert rows(one) == 0
    assert tell(one, key) == "ignored"
    reference = lose(one, key)
    assert rows(one) == 1
    assert tell(one, key) == "settled"
    assert (state(one, reference), state(one, refund)) == ("completed", "unknown")


def test_two_tenants(site, tmp_path):
    """Two tenants have the key: nothing is settled, whatever state the other's is in, until
    that is gone."""
    one, key = site(config(tmp_path)), new_key()
    reference = lose(one, key)
    other = one.gateway.post(key=key, auth=BOB)
    assert other.status == 200, other
    assert tell(one, key) == "ambiguous"
    assert state(one, reference) == "unknown"
    assert one.gateway.metrics()['hapax_webhooks_total{webhook="bank",result="ambiguous"}'] == 1
    assert key not in one.gateway.wait_log("webhook_not_matched")
    forget(one, other["Hapax-Operation"])
    assert tell(one, key) == "settled"
    assert rows(one) == 1


@pytest.mark.parametrize("said, came_to", [
    ("10.0", "settled"), (10, "settled"), ("1e1", "settled"), ("10.01", "amount_differs"),
    (10.000000000000000001, "settled"), ("10.000000000000000001", "amount_differs"),
    (None, "amount_differs"), ("ten", "amount_differs")])
def test_amount(site, tmp_path, said, came_to):
    """The amount of the message must be that of the request, as an exact decimal."""
    one, key = site(config(tmp_path, AMOUNTS)), new_key()
    reference = lose(one, key, body=b'{"money": {"amount": "10.00"}}')
    assert tell(one, key, amount=said) == came_to
    assert state(one, reference) == ("completed" if came_to == "settled" else "unknown")


def test_a_request_without_amount(site, tmp_path):
    one, key = site(config(tmp_path, AMOUNTS)), new_key()
    lose(one, key, body=b'{"money": 10}')
    assert tell(one, key, amount=10) == "amount_differs"
    lose(one, key + "2", body=b'no json')
    assert tell(one, key + "2", amount=10) == "amount_differs"


def test_too_early(site, tmp_path):
    """What comes while the request is under way is kept, and settles it when its answer is
    lost."""
    one, key = site(config(tmp_path)), new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key, behave=f"hold={key}; reset=after"))
        one.provider.gate(key).wait_arrived()
        reference = one.provider.seen(key=key)[0]["Hapax-Operation"]
        assert tell(one, key) == "kept"
        one.provider.gate(key).release()
        wire.answer("POST")
    check.until(lambda: state(one, reference) == "completed", "the evidence settles it")


def test_after_a_crash(site, tmp_path):
    """The row is written with the reservation: whoever dies in between leaves both."""
    one, key = site(config(tmp_path)), new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key, behave=f"hold={key}; reset=after"))
        one.provider.gate(key).wait_arrived()
        one.gateway.kill()
    one.provider.gate(key).release()
    one.gateway.start()
    reference = one.provider.seen(key=key)[0]["Hapax-Operation"]
    assert rows(one) == 1
    assert tell(one, key) in ("settled", "kept")
    check.until(lambda: state(one, reference) == "completed", "it is settled", 60)
    assert len(one.provider.ledger(key)) == 1


def test_what_began_before(site, tmp_path):
    """An operation of before the webhook knew keys could be the one that is meant."""
    one, key = site({"routes": ROUTES}), new_key()
    old = lose(one, key)
    assert rows(one) == 0
    one.gateway.restart(config(tmp_path))
    reference = lose(one, key, auth=BOB)
    assert tell(one, key) == "ambiguous"
    forget(one, old, "--force")
    assert tell(one, key) == "settled"
    assert state(one, reference, auth=BOB) == "completed"


def test_probe(site):
    """A probe that asks by the key alone settles where one operation of the route has it,
    whatever another route has; of two tenants' it asks nothing."""
    probe = {"get": "/find?key={key}", "applied": [200]}
    one = site({"routes": [{"match": "POST /pay", "reconcile": {"backoff": "10ms", "probe": probe}},
                           {"match": "POST /refund"}]})
    key, shared = new_key(), new_key()
    refund = lose(one, key, "/refund")
    reference = lose(one, key)
    assert rows(one) == 1
    check.until(lambda: state(one, reference) == "completed", "the probe settles it")
    assert state(one, refund) == "unknown"
    assert one.gateway.post(key=shared, auth=BOB).status == 200
    reference = lose(one, shared)
    one.gateway.wait_log("another operation of the route has the same key")
    assert state(one, reference) == "unknown"
    assert not [seen for seen in one.provider.seen() if f"key={shared}" in seen.target]


def test_a_key_that_is_taken_while_the_probe_is_under_way(site, tmp_path):
    """What the probe found may be of whoever took the key meanwhile: nothing is settled."""
    word = tmp_path / "word"
    word.write_text("hold=probe\n")
    word.chmod(0o600)
    probe = {"get": "/find?key={key}", "applied": [200], "credentials": {"header": "X-Behave", "file": str(word)}}
    one, key = site({"routes": [{"match": "POST /pay", "reconcile": {"backoff": "10ms", "probe": probe}}]}), new_key()
    reference = lose(one, key)
    one.provider.gate("probe").wait_arrived()
    other = one.gateway.post(key=key, auth=BOB)
    assert other.status == 200, other
    one.provider.gate("probe").release()
    one.gateway.wait_log("another operation of the route has the same key")
    assert state(one, reference) == "unknown"
    assert len([seen for seen in one.provider.seen() if f"key={key}" in seen.target]) == 1


def test_a_probe_and_what_began_before(site):
    """An operation of before the route was matched by key counts too: while it is there, nothing
    is asked of another tenant's with the same key."""
    one, key = site({"routes": ROUTES}), new_key()
    old = one.gateway.post(key=key)
    assert old.status == 200 and rows(one) == 0
    probe = {"get": "/find?key={key}", "applied": [200]}
    one.gateway.restart({"routes": [{"match": "POST /pay", "reconcile": {"backoff": "10ms", "probe": probe}}]})
    reference = lose(one, key, auth=BOB)
    assert rows(one) == 1
    one.gateway.wait_log("another operation of the route has the same key")
    assert state(one, reference, auth=BOB) == "unknown"
    assert not [seen for seen in one.provider.seen() if f"key={key}" in seen.target]


@pytest.mark.parametrize("ruling, body, came_to", [
    ("applied", {"amount": 10}, "completed"), ("applied", {"amount": "1e1"}, "completed"),
    ("applied", {"amount": "10.01"}, "unknown"), ("applied", {}, "unknown"), ("applied", None, "unknown"),
    ("declined", {"amount": "10.0"}, "completed"), ("declined", {"amount": 9}, "unknown"),
    ("not_applied", {}, "failed_retryable"), ("not_applied", {"amount": 10}, "failed_retryable"),
    ("not_applied", {"amount": 11}, "unknown")])
def test_amount_of_a_probe(site, lookup, ruling, body, came_to):  # noqa: F811
    """What a probe by the key finds must have the amount of the request; nothing found has
    none, and that it was not applied is believed without one."""
    status = {"applied": 200, "declined": 402, "not_applied": 404}[ruling]
    url = lookup(b"no json" if body is None else json.dumps(body).encode(), status)
    probe = {"url": url, "get": "/find?key={key}", ruling: [status], "amount": "/amount", "amount_request": "/money/amount"}
    one, key = site({"routes": [{"match": "POST /pay", "reconcile": {
        "settle_after": "1s", "confirm_after": "1s", "backoff": "10ms", "probe": probe}}]}), new_key()
    reference = lose(one, key, body=b'{"money": {"amount": "10.00"}}')
    if came_to == "unknown":
        one.gateway.wait_log("event=asked .*the amount is not that of the request")
    else:
        check.until(lambda: state(one, reference) == came_to, "the probe settles it")
    assert state(one, reference) == came_to


def test_a_probe_for_a_request_without_amount(site, lookup):  # noqa: F811
    """Nothing is known of the request's amount, so no amount agrees with it."""
    probe = {"url": lookup(b'{"amount": 10}'), "get": "/find?key={key}", "applied": [200], **AMOUNTS}
    one, key = site({"routes": [{"match": "POST /pay", "reconcile": {"backoff": "10ms", "probe": probe}}]}), new_key()
    reference = lose(one, key, body=b'{"money": 10}')
    one.gateway.wait_log("event=asked .*the amount is not that of the request")
    assert state(one, reference) == "unknown"
