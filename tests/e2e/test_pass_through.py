"""Shows that what is not guarded flows through as it is, both ways, piece by
piece, in little memory, and that a broken upstream is told apart from a short
answer."""
import hashlib
import os

import pytest

from harness import check
from harness.behave import FILLER
from harness.gateway import is_sanitized
from harness.secret import new_key
from harness.wire import Closed, request_bytes

SIZE = (256 << 20) if os.environ.get("HAPAX_E2E_QUICK") else (1 << 30)
MEMORY = 64 << 20


def memory_is_small(gateway):
    if is_sanitized(gateway.program):
        return  # a sanitizer keeps freed memory on purpose
    assert gateway.rss_peak() < MEMORY, f"{gateway.rss_peak() >> 20} MiB"


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"])
def test_as_it_is(shared, method):
    """Method, target, headers and body go up; status, headers and body come down."""
    target = f"/pass/{method}?q=s3cr3t&a=%2F"
    answer = shared.gateway.call(method, target, headers=[("X-Mine", "1")],
                                 behave='status=202; header=X-Theirs:2; header=ETag:"x"')
    assert (answer.status, answer["X-Theirs"], answer["ETag"]) == (202, "2", '"x"')
    assert (answer.body == b"") == (method == "HEAD")
    request = shared.provider.seen(f"/pass/{method}")[0]
    assert (request.method, request.target, request["X-Mine"]) == (method, target, "1")


@pytest.mark.parametrize("sent, forwarded", [
    ("/a/../b", "/b"), ("/a/./b", "/a/b"), ("/%7Ea", "/~a"), ("/a%2fb", "/a%2Fb"),
    ("/../../x", "/x"), ("/a//b", "/a//b"), ("/a/..", "/"), ("/%2e%2e/x", "/x"), ("/", "/"),
])
def test_path_is_normalised_once(shared, sent, forwarded):
    """The path that was judged is the path that goes up (RFC 3986 section 6.2.2)."""
    shared.gateway.get(sent)
    assert shared.provider.seen()[-1].target == forwarded


@pytest.mark.parametrize("status", [200, 204, 301, 304, 404, 500, 503])
def test_status(shared, status):
    """Any status passes, again and again."""
    for _ in range(2):
        assert shared.gateway.get("/s", behave=f"status={status}").status == status


def test_head_keeps_the_length(shared):
    """HEAD's Content-Length speaks of the body that GET would have."""
    answer = shared.gateway.call("HEAD", "/x", behave="big=12345")
    assert (answer["Content-Length"], answer.body) == ("12345", b"")


@pytest.mark.parametrize("framing", ["", "; chunked", "; close"])
def test_download(site, framing):
    """A large download stays intact and out of memory."""
    one = site()
    digest, total = hashlib.sha256(), 0
    with one.gateway.connect(60) as wire:
        wire.send(one.gateway.request("GET", "/big", behave=f"big={SIZE}{framing}"))
        answer = wire.head()
        for piece in wire.body_pieces(answer) if framing != "; close" else read_all(wire, answer):
            digest.update(piece)
            total += len(piece)
    assert total == SIZE
    expected = hashlib.sha256()
    for at in range(0, SIZE, len(FILLER)):
        expected.update(FILLER[:SIZE - at])
    assert digest.digest() == expected.digest()
    memory_is_small(one.gateway)


def read_all(wire, answer):
    """Until close, or chunked: a gateway may choose for a body without a length."""
    if answer["Transfer-Encoding"]:
        yield from wire.chunks()
        return
    while True:
        try:
            if not wire.pending:
                wire.fill()
        except Closed:
            return
        piece, wire.pending = wire.pending, b""
        yield piece


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_upload(site, framing):
    """A large upload stays intact and out of memory."""
    one = site()
    fields = [("Transfer-Encoding", "chunked")] if framing == "chunked" else [("Content-Length", str(SIZE))]
    digest = hashlib.sha256()
    with one.gateway.connect(60) as wire:
        wire.send(request_bytes("PUT", "/sink", fields))
        for _ in range(SIZE // len(FILLER)):
            digest.update(FILLER)
            wire.send(b"%x\r\n%s\r\n" % (len(FILLER), FILLER) if framing == "chunked" else FILLER)
        if framing == "chunked":
            wire.send(b"0\r\n\r\n")
        assert wire.answer().status == 200
    request = one.provider.seen("/sink")[0]
    assert (request.size, request.digest.digest()) == (SIZE, digest.digest())
    memory_is_small(one.gateway)


def test_slow_reader(site):
    """A client that does not read holds the upstream back, not the memory full."""
    one = site()
    with one.gateway.connect(60) as wire:
        wire.send(one.gateway.request("GET", "/big", behave=f"big={SIZE}"))
        answer = wire.head()
        last = [-1]

        def stands_still():
            before, last[0] = last[0], one.provider.bytes_sent
            return before == last[0] > 0
        for _ in range(5):
            check.until(stands_still, "the provider's sending stands still")
        assert one.provider.bytes_sent < SIZE
        memory_is_small(one.gateway)
        assert sum(len(p) for p in wire.body_pieces(answer)) == SIZE


def test_event_stream(shared):
    """Events arrive one by one, not when the stream ends."""
    name = new_key()
    gate = shared.provider.gate(name)
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("GET", "/events", behave=f"sse={name}"))
        answer = wire.head()
        assert answer["Content-Type"] == "text/event-stream"
        pieces = wire.body_pieces(answer)
        for number in (1, 2, 3):
            gate.release()
            assert next(pieces) == b"data: %d\n\n" % number
        assert list(pieces) == []


UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]


def test_tunnel(shared):
    """A WebSocket passes: after 101 bytes flow both ways until one side ends."""
    with shared.gateway.connect() as wire:
        wire.send(request_bytes("GET", "/ws", UPGRADE))
        answer = wire.head()
        assert (answer.status, answer["Upgrade"]) == (101, "websocket")
        for data in (b"\x81\x05hello", bytes(range(256)), b"x" * 200000):
            wire.send(data)
            assert wire.exactly(len(data)) == data
        wire.sock.shutdown(1)
        assert wire.rest() == b""


def test_tunnel_with_early_bytes(shared):
    """Bytes sent along with the upgrade are not lost."""
    with shared.gateway.connect() as wire:
        wire.send(request_bytes("GET", "/ws", UPGRADE) + b"early")
        assert wire.head().status == 101
        assert wire.exactly(5) == b"early"


def test_no_h2c(shared):
    """h2c is never offered on: the upgrade does not go up."""
    rows = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")]
    assert shared.gateway.raw(request_bytes("GET", "/h2c", rows)).status == 200
    request = shared.provider.seen("/h2c")[0]
    assert request["Upgrade"] is None and request["HTTP2-Settings"] is None
    assert "upgrade" not in request.fields.tokens("Connection")


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_early_hints(shared, method):
    """1xx reach the caller as they come; a replay has none."""
    key = new_key() if method == "POST" else None
    answer = shared.gateway.call(method, "/hints", key=key, behave="1xx")
    assert [i.status for i in answer.interim] == [103]
    assert answer.interim[0]["Link"] == "</style.css>; rel=preload"
    if key:
        again = shared.gateway.call(method, "/hints", key=key)
        assert again.replayed and again.interim == []


def test_no_1xx_for_http_1_0(shared):
    """HTTP/1.0 knows no 1xx (RFC 9110 section 15.2)."""
    answer = shared.gateway.get("/hints", behave="1xx", version="HTTP/1.0")
    assert (answer.status, answer.interim) == (200, [])


def test_upstream_down(site):
    """Nobody there: 502, said in hapax's own words; then it recovers."""
    one = site()
    one.provider.stop()
    check.problem(one.gateway.get("/x"), "upstream_unreachable")
    one.provider.start()
    assert one.gateway.get("/x").status == 200


@pytest.mark.parametrize("raw", [
    b"nonsense\r\n\r\n", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
])
def test_upstream_nonsense(shared, raw):
    """An answer that cannot be understood is 502, never guessed at."""
    shared.provider.raws["nonsense"] = raw
    answer = shared.gateway.get("/x", behave="raw=nonsense")
    assert answer.status == 502 and answer["Content-Type"] == "application/problem+json", answer


@pytest.mark.parametrize("raw", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
])
def test_answer_breaks_off(shared, raw):
    """Half an answer does not look like a whole one to the client."""
    shared.provider.raws["half"] = raw
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("GET", "/x", behave="raw=half"))
        try:
            answer = wire.answer()
        except (Closed, ConnectionError):
            return
    assert answer.status == 502, f"half an answer came as a whole one: {answer}"


def test_early_answer(shared):
    """An answer before the upload is out reaches the client."""
    with shared.gateway.connect() as wire:
        wire.send(request_bytes("PUT", "/early", [("Content-Length", "50000000"), ("X-Behave", "early; status=413")]))
        answer = wire.answer()
    assert answer.status == 413


def test_client_hangs_up(shared):
    """A client that leaves a download takes nothing with it."""
    for _ in range(5):
        with shared.gateway.connect() as wire:
            wire.send(shared.gateway.request("GET", "/big", behave="big=10000000"))
            wire.head()
    assert shared.gateway.get("/x").status == 200
