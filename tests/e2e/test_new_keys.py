"""Shows what a route may demand of a new key: its length, that no personal data is in it,
and the age of its request. A key that is known already is answered as before, whatever is
demanded now: its client must not be told that nothing happened."""
import json
import time
from email.utils import formatdate

import pytest

from harness import check
from harness.secret import new_key

CONFIG = {"routes": [
    {"match": "POST /long", "key_min": 16},
    {"match": "POST /clean", "key_refuse": ["email", "card"]},
    {"match": "POST /young", "max_age": {"header": "X-Sent-At", "within": "5m", "skew": "30s"}},
    {"match": "POST /alike", "fingerprint": {"only": ["/amount", "/to/id"]}},
]}


@pytest.mark.parametrize("path, key, words", [
    ("/long", "k" * 15, "fewer than 16"),
    ("/long", "1", "fewer than 16"),
    ("/clean", "jane.doe@example.com", "e-mail"),
    ("/clean", "order-4111111111111111", "card"),
])
def test_refused(gateway, provider, path, key, words):
    """A new key that does not meet the route's demand is refused, and nothing is sent."""
    before = len(provider.seen())
    answer = gateway.post(path, key=key)
    check.problem(answer, "idempotency_key_invalid")
    assert words in answer.json()["detail"], answer
    assert len(provider.seen()) == before


@pytest.mark.parametrize("path, key", [
    ("/long", "k" * 16), ("/clean", "someone@localhost"), ("/clean", "order-1763400000006"), ("/clean", "1"),
])
def test_taken(gateway, provider, path, key):
    """A key that meets the demand is executed once; other routes demand nothing."""
    assert gateway.post(path, key=key).status == 200
    assert gateway.post(path, key=key)["Idempotent-Replayed"] == "true"
    assert len(provider.ledger(key)) == 1


def stamp(form, seconds):
    at = time.time() + seconds
    if form == "seconds":
        return str(int(at))
    if form == "milliseconds":
        return str(int(at * 1000))
    if form == "date":
        return formatdate(at, usegmt=True)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


@pytest.mark.parametrize("form", ["seconds", "milliseconds", "date", "rfc3339"])
@pytest.mark.parametrize("seconds, taken", [(-10, True), (-320, True), (-340, False), (20, True), (45, False)])
def test_age(gateway, provider, form, seconds, taken):
    """A time of now is taken in every form; one that is old or in the future is not."""
    key = new_key()
    answer = gateway.post("/young", key=key, headers=[("X-Sent-At", stamp(form, seconds))])
    if taken:
        assert answer.status == 200, answer
    else:
        check.problem(answer, "request_too_old")
    assert len(provider.ledger(key)) == int(taken)


@pytest.mark.parametrize("headers", [
    [], [("X-Sent-At", "")], [("X-Sent-At", "yesterday")], [("X-Sent-At", "99999999999")],
    [("X-Sent-At", "2026-02-30T00:00:00Z")], [("X-Sent-At", str(int(time.time())))] * 2,
])
def test_no_time(gateway, provider, headers):
    """A new key without one readable time is refused."""
    key = new_key()
    check.problem(gateway.post("/young", key=key, headers=headers), "request_too_old")
    assert provider.ledger(key) == []


def test_an_old_retry_is_answered(gateway, provider):
    """The retry of what was executed is replayed however old it is."""
    key = new_key()
    assert gateway.post("/young", key=key, headers=[("X-Sent-At", stamp("rfc3339", 0))]).status == 200
    for headers in ([("X-Sent-At", stamp("rfc3339", -86400))], []):
        answer = gateway.post("/young", key=key, headers=headers)
        assert answer.status == 200 and answer["Idempotent-Replayed"] == "true", answer
    assert len(provider.ledger(key)) == 1


def test_a_demand_made_later(site):
    """A reload that raises the demand does not disown keys from before it."""
    one = site({})
    gateway, provider = one.gateway, one.provider
    for key in ("7", "jane@example.com"):
        assert gateway.post("/pay", key=key).status == 200
    gateway.config["defaults"] = {"key_min": 16, "key_refuse": ["email"]}
    gateway.write_config()
    gateway.signal(1)
    gateway.wait_log("event=reloaded")
    for key in ("7", "jane@example.com"):
        answer = gateway.post("/pay", key=key)
        assert answer.status == 200 and answer["Idempotent-Replayed"] == "true", answer
        assert len(provider.ledger(key)) == 1
    for key in ("8", "john.b.smith@example.com"):
        check.problem(gateway.post("/pay", key=key), "idempotency_key_invalid")
        assert provider.ledger(key) == []


def test_another_body(gateway, provider):
    """A refused key that is known keeps its own rules: another body is a mismatch."""
    key = new_key()
    sent = [("X-Sent-At", stamp("seconds", 0))]
    assert gateway.post("/young", key=key, headers=sent, body=b"a").status == 200
    check.problem(gateway.post("/young", key=key, body=b"b"), "idempotency_key_reused")


def test_only(gateway, provider):
    """With `fingerprint.only`, nothing else of a JSON body counts."""
    key, json_type = new_key(), [("Content-Type", "application/json")]

    def send(body):
        return gateway.post("/alike", key=key, headers=json_type, body=json.dumps(body).encode())

    assert send({"amount": 499, "to": {"id": 7, "name": "x"}, "sent": 1}).status == 200
    again = send({"to": {"name": "y", "id": 7.0}, "amount": 499, "sent": 2})
    assert again["Idempotent-Replayed"] == "true", again
    check.problem(send({"amount": 500, "to": {"id": 7}}), "idempotency_key_reused")
    check.problem(send({"amount": 499}), "idempotency_key_reused")
    assert len(provider.ledger(key)) == 1


def test_published(gateway):
    """The policy says what a new key must be."""
    routes = {r["match"]: r for r in gateway.call("GET", "/.hapax/policy").json()["routes"]}
    assert routes["POST /long"]["key_bytes_min"] == 16
    assert routes["POST /clean"]["key_bytes_min"] == 1
    assert routes["POST /clean"]["key_refuses"] == ["email", "card"]
    assert routes["POST /young"]["max_age"] == {"header": "X-Sent-At", "within_seconds": 300, "skew_seconds": 30}
    assert routes["POST /alike"]["fingerprint_only"] == ["/amount", "/to/id"]


def test_observed(site):
    """While observing, personal keys are counted on every route, and nothing is refused."""
    one = site({"observe": True})
    name = 'hapax_observed_total{would="key_personal"}'
    for key in ("jane@example.com", "4111111111111111", new_key()):
        assert one.gateway.post("/pay", key=key).status == 200
    check.until(lambda: one.gateway.metrics()[name] == 2, "two personal keys are counted")
