"""Shows what a route may demand of a new key: its length, that no personal data is in it,
and the age of its request. A key that is known already is answered as before, whatever is
demanded now: its client must not be told that nothing happened."""
import hashlib
import json
import subprocess
import time
from email.utils import formatdate

import pytest

from harness import check
from harness.gateway import binary
from harness.secret import new_key

CONFIG = {"routes": [
    {"match": "POST /long", "key_min": 16},
    {"match": "POST /clean", "key_refuse": ["email", "card"]},
    {"match": "POST /young", "max_age": {"header": "X-Sent-At", "within": "5m", "skew": "30s"}},
    {"match": "POST /hashed", "key_storage": "hash"},
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
        assert "X-Sent-At" in answer.json()["detail"], "the problem's page says that it is named"
        assert ("in the future" if seconds > 0 else "too long ago") in answer.json()["detail"], answer
    assert len(provider.ledger(key)) == int(taken)


@pytest.mark.parametrize("headers, words", [
    ([], "missing"), ([("X-Sent-At", "")], "cannot be read"), ([("X-Sent-At", "yesterday")], "cannot be read"),
    ([("X-Sent-At", "99999999999")], "cannot be read"), ([("X-Sent-At", "2026-02-30T00:00:00Z")], "cannot be read"),
    ([("X-Sent-At", str(int(time.time())))] * 2, "more than once"),
])
def test_no_time(gateway, provider, headers, words):
    """A new key without one readable time is refused, and the header is named."""
    key = new_key()
    answer = gateway.post("/young", key=key, headers=headers)
    check.problem(answer, "request_too_old")
    assert words in answer.json()["detail"] and "X-Sent-At" in answer.json()["detail"], answer
    assert provider.ledger(key) == []


def test_an_old_retry_is_answered(gateway, provider):
    """The retry of what was executed is replayed however old it is."""
    key = new_key()
    assert gateway.post("/young", key=key, headers=[("X-Sent-At", stamp("rfc3339", 0))]).status == 200
    for headers in ([("X-Sent-At", stamp("rfc3339", -86400))], []):
        answer = gateway.post("/young", key=key, headers=headers)
        assert answer.status == 200 and answer["Idempotent-Replayed"] == "true", answer
    assert len(provider.ledger(key)) == 1


def test_an_old_retry_of_what_failed(gateway, provider):
    """Where nothing happened, a retry begins anew: refused while it is too old, executed once with a new time."""
    key = new_key()
    now, old = ([("X-Sent-At", stamp("seconds", at))] for at in (0, -86400))
    assert gateway.post("/young", key=key, headers=now, behave="status=503; header=Retry-After:1").status == 503
    before = len(provider.seen(key=key))
    for headers in (old, []):
        answer = gateway.post("/young", key=key, headers=headers)
        check.problem(answer, "request_too_old")
        assert answer.json()["executed"] == "no" and len(provider.seen(key=key)) == before
    for replayed in (None, "true"):
        answer = gateway.post("/young", key=key, headers=now)
        assert answer.status == 200 and answer["Idempotent-Replayed"] == replayed, answer
    assert len(provider.seen(key=key)) == before + 1


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
    assert routes["POST /hashed"]["key_storage"] == "hash"
    assert routes["POST /clean"]["key_storage"] == "plain"
    assert routes["POST /young"]["max_age"] == {"header": "X-Sent-At", "within_seconds": 300, "skew_seconds": 30}
    assert routes["POST /alike"]["fingerprint_only"] == ["/amount", "/to/id"]


def dump(gateway):
    """Everything that the store has, as bytes."""
    url = gateway.config["store"]
    if url.startswith("postgres"):
        owner = url.replace("gateway@", "hapax@")  # who may read what a gateway may not
        return subprocess.run(["pg_dump", "--data-only", "--schema=hapax", owner], check=True, capture_output=True,
                              timeout=60).stdout
    path = gateway.folder / url.removeprefix("sqlite:")
    return b"".join(p.read_bytes() for p in path.parent.glob(path.name + "*"))


def test_hashed(gateway, provider):
    """With key_storage: hash the key itself is nowhere in the store or the log, whatever
    becomes of the operation; people who have the key find it, and a retry is replayed."""
    plain, *keys = (f"{name}-{new_key()}" for name in ("plain", "done", "failed", "lost"))
    gateway.post("/pay", key=plain)
    for key, behave in zip(keys, (None, "status=503", "reset=after")):
        gateway.post("/hashed", key=key, behave=behave)
    assert gateway.post("/hashed", key=keys[0])["Idempotent-Replayed"] == "true"
    assert len(provider.ledger(keys[0])) == 1
    stored = dump(gateway)
    assert plain.encode() in stored
    for key in keys:
        assert key.encode() not in stored, "the key is in the store"
        assert not any(key in line for line in gateway.lines), "the key is in the log"
        hashed = "sha256:" + hashlib.sha256(key.encode()).hexdigest()
        done = subprocess.run([binary(), "keys", "show", "--json", "--key", key, "--store", gateway.config["store"]],
                              cwd=gateway.folder, check=True, capture_output=True, timeout=30)
        assert json.loads(done.stdout)["key"] == hashed


def test_hash_and_a_probe_by_key(tmp_path):
    """A probe that needs the key is refused beside key_storage: hash."""
    file = tmp_path / "hapax.yaml"
    file.write_text("upstream: http://127.0.0.1:9\nroutes:\n  - match: POST /pay\n    key_storage: hash\n"
                    "    server_error: unknown\n    reconcile: {settle_after: 1m, probe: {get: '/p?k={key}', "
                    "applied: [200], not_applied: [404]}}\n")
    done = subprocess.run([binary(), "check", "--config", str(file)], capture_output=True, timeout=30, check=False)
    assert done.returncode != 0 and b"key_storage: is hash, but the probe asks with {key}" in done.stderr + done.stdout
    file.write_text(file.read_text().replace("{key}", "{operation}"))
    done = subprocess.run([binary(), "check", "--config", str(file)], capture_output=True, timeout=30, check=False)
    assert done.returncode == 0, done


def test_what_a_route_would_refuse_is_observed(site):
    """While observing, a new key that would be refused is counted so each time; one that is known is a retry."""
    one = site({"observe": True, "routes": CONFIG["routes"]})
    gateway, sent = one.gateway, [("X-Sent-At", stamp("seconds", 0))]
    known = new_key()

    def counts():
        return {would: count for would, count in gateway.observed().items() if count}

    for path, key, headers in (("/long", "short", []), ("/long", "short", []), ("/clean", "jane@example.com", []),
                               ("/young", new_key(), []), ("/young", known, sent)):
        assert gateway.post(path, key=key, headers=headers).status == 200
    check.until(lambda: counts() == {"key_invalid": 3, "key_personal": 1, "too_old": 1, "created": 1}, "each is counted")
    assert gateway.post("/young", key=known).status == 200
    check.until(lambda: counts().get("replay") == 1, "the retry is known, and may be old")
    said = subprocess.run([binary(), "observed", "--admin", f"127.0.0.1:{gateway.admin_port}"], check=True,
                          capture_output=True, text=True, timeout=30).stdout
    for words in ("2 had malformed keys, or new ones that the route refuses", "1 had a new key and too old a time"):
        assert words in said, said


def test_observed(site):
    """While observing, personal keys are counted on every route, and nothing is refused."""
    one = site({"observe": True})
    for key in ("jane@example.com", "4111111111111111", new_key()):
        assert one.gateway.post("/pay", key=key).status == 200
    check.until(lambda: one.gateway.observed()["key_personal"] == 2, "two personal keys are counted")
