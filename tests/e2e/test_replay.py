"""Shows that a retry gets the original answer: its status, its kept headers and
its body, byte for byte, for as long as the record lives, and nothing that was
meant for one moment or one caller."""
import datetime
import re
import threading

import pytest

from harness import check
from harness.secret import new_key
from harness.wire import Closed

CONFIG = {
    "limits": {"response_body": "64KiB"},
    "routes": [
        {"match": "POST /status", "store": "status"},
        {"match": "POST /brief", "retention": "1h"},
    ],
}
EVERY_BYTE = bytes(range(256)) * 3
RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


@pytest.mark.parametrize("framing", ["", "chunked", "close"])
@pytest.mark.parametrize("name, body", [
    ("every byte", EVERY_BYTE), ("empty", b""), ("NUL", b"\0"), ("text", b"s3cr3t\r\n\r\nHTTP/1.1 200"),
    ("to the limit", b"x" * 65536),
])
def test_body(shared, framing, name, body):
    """Any bytes come back as they were, however they were framed."""
    shared.provider.bodies[name] = body
    key = new_key()
    behave = f"body={name}; {framing}; header=Content-Type:application/octet-stream"
    first = shared.gateway.post(key=key, behave=behave)
    assert first.body == body
    again = shared.gateway.post(key=key)
    check.same_answer(first, again)
    assert again["Content-Type"] == "application/octet-stream"
    assert again["Content-Length"] == str(len(body))


@pytest.mark.parametrize("status", [200, 201, 204, 302, 404, 422])
def test_status(shared, status):
    """The status is the original's; 204 has no body."""
    key = new_key()
    first = shared.gateway.post(key=key, behave=f"status={status}; header=Location:/made/1")
    again = shared.gateway.post(key=key)
    check.same_answer(first, again)
    assert again["Location"] == "/made/1"


KEPT = ["Location:/payments/7", 'ETag:"v1"', "X-Custom:a  b", "Link:</next>; rel=next",
        "Cache-Control:no-cache", "Content-Language:de", "Last-Modified:Mon, 01 Jan 2001 00:00:00 GMT",
        "WWW-Thing:1", "Retry-After:9", "Access-Control-Allow-Origin:*", "Vary:Accept"]
DROPPED = ["Set-Cookie:a=s3cr3t", "Set-Cookie:b=s3cr3t", "Date:Mon, 01 Jan 2001 00:00:00 GMT", "Age:77",
           "Via:1.1 inner", 'Alt-Svc:h3=":443"', 'Clear-Site-Data:"cookies"',
           "Authentication-Info:nextnonce=1", "RateLimit-Limit:10", "RateLimit-Remaining:9",
           "RateLimit-Reset:50", "Server-Timing:db;dur=5"]
HOP = ["Keep-Alive:timeout=5", "Proxy-Connection:x", "Connection:X-Hop", "X-Hop:1", "Trailer:X-T"]


def as_behaviour(rows):
    return "; ".join("header=" + r.replace(";", "%3B").replace(",", "%2C") for r in rows)


@pytest.mark.parametrize("row", KEPT)
def test_kept_header(shared, row):
    """What belongs to the answer is kept, to the letter."""
    key, (name, value) = new_key(), row.split(":", 1)
    first = shared.gateway.post(key=key, behave=as_behaviour([row]))
    again = shared.gateway.post(key=key)
    assert (first[name], again[name]) == (value, value)


@pytest.mark.parametrize("row", DROPPED)
def test_dropped_header(shared, row):
    """What was meant for one moment or one caller reaches the first and nobody else."""
    key, (name, value) = new_key(), row.split(":", 1)
    first = shared.gateway.post(key=key, behave=as_behaviour([row]))
    again = shared.gateway.post(key=key)
    check.same_answer(first, again)
    assert any(value in v for v in first.fields.all(name)), first
    assert not any(value in v for v in again.fields.all(name)), again


def test_hop_by_hop(shared):
    """What belongs to the upstream connection reaches nobody."""
    key = new_key()
    for answer in (shared.gateway.post(key=key, behave=as_behaviour(HOP)), shared.gateway.post(key=key)):
        assert answer["X-Hop"] is None and answer["Proxy-Connection"] is None, answer
        assert "x-hop" not in answer.fields.tokens("Connection")
        assert "timeout=5" not in answer.fields.tokens("Keep-Alive")


def test_repeated_headers_keep_their_order(shared):
    """Headers that repeat come back as often, in their order."""
    key = new_key()
    shared.gateway.post(key=key, behave=as_behaviour(["X-Many:1", "X-Other:x", "X-Many:2", "x-many:3"]))
    assert shared.gateway.post(key=key).fields.all("X-Many") == ["1", "2", "3"]


def test_marks(shared):
    """A replay says that it is one, of which operation, and until when."""
    key = new_key()
    first, again = shared.gateway.post(key=key), shared.gateway.post(key=key)
    check.same_answer(first, again)
    assert re.fullmatch(r"[0-9a-f]{64}\.[0-9a-f]{32}", first["Hapax-Operation"]), first
    assert RFC3339.fullmatch(again["Idempotency-Expires"]), again
    assert first["Idempotency-Expires"] == again["Idempotency-Expires"]


@pytest.mark.parametrize("path, hours", [("/pay", 24), ("/brief", 1)])
def test_expiry(shared, path, hours):
    """The expiry is now and the route's retention."""
    text = shared.gateway.post(path)["Idempotency-Expires"].replace("Z", "+00:00")
    left = datetime.datetime.fromisoformat(text) - datetime.datetime.now(datetime.timezone.utc)
    assert abs(left - datetime.timedelta(hours=hours)) < datetime.timedelta(minutes=1), left


def test_expired(site):
    """After its retention a key is new, reaped or not, whatever comes with it."""
    one = site({"defaults": {"retention": "1s"}, "reap": {"every": "1h"}})
    key = new_key()
    first = one.gateway.post(key=key)
    threading.Event().wait(1.3)  # the passing of time is what is tested
    assert one.gateway.operation(first["Hapax-Operation"]).status == 410
    second = one.gateway.post(key=key, body=b'{"amount": 11}')
    assert second.status == 200 and not second.replayed, second
    assert second["Hapax-Operation"] != first["Hapax-Operation"]
    assert len(one.provider.ledger(key)) == 2


def test_durable(site):
    """An answer that a client saw is there after a power cut."""
    one = site()
    key = new_key()
    first = one.gateway.post(key=key)
    one.gateway.kill()
    one.gateway.start()
    check.same_answer(first, one.gateway.post(key=key))
    assert len(one.provider.ledger(key)) == 1


def not_kept(gateway, path, key, first):
    answer = gateway.post(path, key=key)
    document = check.problem(answer, "response_not_kept")
    assert document["original_status"] == first.status, document
    assert document.get("location") == first["Location"], document
    assert answer["Hapax-Operation"] == first["Hapax-Operation"]


@pytest.mark.parametrize("path, behave, size", [
    ("/pay", "status=201; header=Location:/made/1; big=200000", 200000),
    ("/pay", "status=201; header=Location:/made/1; big=65537", 65537),
    ("/pay", "big=200000; chunked", 200000),
    ("/pay", "big=200000; close", 200000),
    ("/status", "status=201; header=Location:/made/1; big=10", 10),
    ("/status", "big=200000", 200000),
])
def test_not_kept(shared, path, behave, size):
    """An answer that is not kept goes whole to the first; a retry learns that it
    happened, and never makes it happen again."""
    key = new_key()
    first = shared.gateway.post(path, key=key, behave=behave)
    assert first.status in (200, 201) and len(first.body) == size
    not_kept(shared.gateway, path, key, first)
    not_kept(shared.gateway, path, key, first)
    assert len(shared.provider.ledger(key)) == 1


def test_large_answer_breaks_off(shared):
    """The mark "it happened" is durable before the first byte of a large answer."""
    shared.provider.raws["long"] = b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n" + b"x" * 150000
    key = new_key()
    with pytest.raises((Closed, ConnectionError)):
        shared.gateway.post(key=key, behave="raw=long")
    answer = shared.gateway.post(key=key)
    assert check.problem(answer, "response_not_kept")["original_status"] == 200
    assert len(shared.provider.ledger(key)) == 1


def test_event_stream(shared):
    """An event stream on a guarded route arrives event by event and is not kept."""
    key = new_key()
    gate = shared.provider.gate(key)
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("POST", "/stream", key=key, behave=f"sse={key}"))
        first = wire.head()
        assert first["Content-Type"] == "text/event-stream"
        pieces = wire.body_pieces(first)
        for number in (1, 2, 3):
            gate.release()
            assert next(pieces) == b"data: %d\n\n" % number
        assert list(pieces) == []
    not_kept(shared.gateway, "/stream", key, first)
    assert len(shared.provider.ledger(key)) == 1
