"""Shows `profile: stripe` as a whole: a client written for Stripe finds what it
expects, and each of its defaults can still be overridden."""
import pytest

from harness import check
from harness.secret import BOB, new_key

CONFIG = {"profile": "stripe"}


def stripe_error(answer, status, kind):
    assert answer.status == status, answer
    assert answer["Content-Type"].startswith("application/json"), answer
    error = answer.json()["error"]
    assert error["type"] == kind, error
    assert error["message"], error
    return error


def test_key_is_optional(shared):
    """Without a key the request passes, each time."""
    for _ in range(2):
        assert shared.gateway.post("/v1/charges", key=None).status == 200
    assert len(shared.provider.seen("/v1/charges")) == 2


def test_bare_keys(shared):
    """Keys are bare bytes: quotation marks are part of the key."""
    key = new_key()
    answers = [shared.gateway.post("/v1/a", key=k) for k in (key, f'"{key}"', key)]
    assert [(a.status, a.replayed) for a in answers] == [(200, False), (200, False), (200, True)]


def test_replay(shared):
    """A retry gets the first answer, marked as Stripe marks it."""
    key = new_key()
    check.same_answer(shared.gateway.post("/v1/b", key=key), shared.gateway.post("/v1/b", key=key))
    assert len(shared.provider.ledger(key)) == 1


def test_mismatch(shared):
    """Other parameters with the same key: 400, idempotency_error."""
    key = new_key()
    shared.gateway.post("/v1/c", key=key, body=b'{"a":1}')
    answer = shared.gateway.post("/v1/c", key=key, body=b'{"a":2}')
    stripe_error(answer, 400, "idempotency_error")
    assert len(shared.provider.ledger(key)) == 1


def test_scope_is_the_tenant(shared):
    """A key is unique in the whole account: another path is another request."""
    key = new_key()
    shared.gateway.post("/v1/d", key=key)
    stripe_error(shared.gateway.post("/v1/e", key=key), 400, "idempotency_error")
    assert shared.gateway.post("/v1/e", key=key, auth=BOB).status == 200


@pytest.mark.parametrize("status", [500, 503])
def test_server_errors_are_replayed(shared, status):
    """A 500 is the answer, for every retry."""
    key = new_key()
    first = shared.gateway.post("/v1/f", key=key, behave=f"status={status}")
    check.same_answer(first, shared.gateway.post("/v1/f", key=key))
    assert len(shared.provider.seen(key=key)) == 1


def test_in_progress(shared):
    """While it runs: 409."""
    gateway, key = shared.gateway, new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/v1/g", key=key, behave=f"hold={key}"))
        shared.provider.gate(key).wait_arrived()
        stripe_error(gateway.post("/v1/g", key=key), 409, "idempotency_error")
        shared.provider.gate(key).release()
        assert wire.answer().status == 200


@pytest.mark.parametrize("key", ["", "x" * 256])
def test_bad_key(shared, key):
    """A key that is empty or too long is refused in Stripe's shape."""
    answer = shared.gateway.post("/v1/h", key=key)
    assert answer.status == 400 and answer.json()["error"]["message"], answer


def test_lost_answer(shared):
    """Other errors of hapax's own have the same shape."""
    answer = shared.gateway.post("/v1/i", behave="reset=after")
    assert answer.status in (502, 504)
    assert answer.json()["error"]["type"] == "api_error", answer


def test_too_many_connections(site):
    """So has the answer to a connection that is one too many."""
    one = site({"profile": "stripe", "limits": {"connections": 1}})
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("GET", "/x"))
        assert wire.answer().status == 200
        stripe_error(one.gateway.post("/v1/j"), 503, "api_error")


def test_overridden(site):
    """An option in the file beats the profile's default."""
    one = site({"profile": "stripe", "mismatch_status": 422,
                "defaults": {"key": "required", "scope": "path", "server_error": "unknown"}})
    assert one.gateway.post(key=None).status == 400
    key = new_key()
    assert [one.gateway.post(p, key=key).status for p in ("/a", "/b")] == [200, 200]
    assert one.gateway.post("/a", key=key, body=b'{"other": 1}').status == 422
    lost = new_key()
    assert one.gateway.post(key=lost, behave="status=500").status == 500
    assert one.gateway.post(key=lost).status == 409
