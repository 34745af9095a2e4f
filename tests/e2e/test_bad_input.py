"""Shows that whatever breaks a rule of HTTP/1.1 that decides where a message
ends, or whom it is for, gets a clear problem document, and that no byte of it
reaches the provider."""
import select
import socket

import pytest

from harness import check
from harness.secret import new_key
from harness.wire import Closed, Wire, chunked

CONFIG = {
    "limits": {"head": "16KiB", "fields": 100, "request_body": "64KiB"},
    "timeouts": {"head": "1s", "body": "1s"},
}
BODY = b'{"s3cr3t":1}'


def post(*lines, line=b"POST /bad HTTP/1.1", host=b"Host: api.test", body=BODY, end=b"\r\n"):
    """A POST with these header lines, as raw as they are."""
    head = [line] + ([host] if host else []) + [b"Idempotency-Key: s3cr3t-bad",
                                                b"Authorization: Bearer s3cr3t"] + list(lines)
    return end.join(head) + end + end + body


LENGTH = b"Content-Length: %d" % len(BODY)
TE = b"Transfer-Encoding: chunked"
CHUNKED = chunked(BODY)

BAD = {
    # RFC 9112 section 6.1, 6.3: one framing, and a plain one.
    "length and chunked": post(LENGTH, TE, body=CHUNKED),
    "chunked and length": post(TE, LENGTH, body=CHUNKED),
    "two equal lengths": post(LENGTH, LENGTH),
    "two lengths": post(LENGTH, b"Content-Length: 5"),
    "a list of lengths": post(b"Content-Length: 12, 12"),
    "signed length": post(b"Content-Length: +12"),
    "negative length": post(b"Content-Length: -1"),
    "hex length": post(b"Content-Length: 0xc"),
    "length with space": post(b"Content-Length: 1 2"),
    "empty length": post(b"Content-Length:"),
    "length beyond 64 bits": post(b"Content-Length: 18446744073709551628"),
    "length with garbage": post(b"Content-Length: 12a"),
    "gzip coding": post(b"Transfer-Encoding: gzip", body=CHUNKED),
    "gzip, chunked": post(b"Transfer-Encoding: gzip, chunked", body=CHUNKED),
    "chunked twice": post(b"Transfer-Encoding: chunked, chunked", body=CHUNKED),
    "two coding lines": post(TE, TE, body=CHUNKED),
    "coding with parameter": post(b"Transfer-Encoding: chunked;a=1", body=CHUNKED),
    "xchunked": post(b"Transfer-Encoding: xchunked", body=CHUNKED),
    "quoted chunked": post(b'Transfer-Encoding: "chunked"', body=CHUNKED),
    "vertical tab chunked": post(b"Transfer-Encoding: \x0bchunked", body=CHUNKED),
    "empty coding": post(b"Transfer-Encoding:", body=CHUNKED),
    "chunked in HTTP/1.0": post(TE, line=b"POST /bad HTTP/1.0", body=CHUNKED),
    "bad chunk size": post(TE, body=b"xyz\r\nabc\r\n0\r\n\r\n"),
    "signed chunk size": post(TE, body=b"+3\r\nabc\r\n0\r\n\r\n"),
    "0x chunk size": post(TE, body=b"0x3\r\nabc\r\n0\r\n\r\n"),
    "huge chunk size": post(TE, body=b"ffffffffffffffffff\r\nabc"),
    "chunk without its end": post(TE, body=b"3\r\nabcd\r\n0\r\n\r\n"),
    "chunk with bare LF": post(TE, body=b"3\nabc\n0\n\n"),
    "bad trailer": post(TE, body=b"3\r\nabc\r\n0\r\nno colon\r\n\r\n"),
    # RFC 9112 section 2.2, 5: lines and names.
    "bare LF": post(LENGTH, end=b"\n"),
    "one bare LF": post(b"X-A: 1\nX-B: 2", LENGTH),
    "bare CR": post(b"X-A: 1\rX-B: 2", LENGTH),
    "folded": post(b"X-A: 1\r\n folded", LENGTH),
    "folded first": post(LENGTH, host=b" folded\r\nHost: api.test"),
    "empty name": post(b": value", LENGTH),
    "no colon": post(b"X-A", LENGTH),
    "space before colon": post(b"X-A : 1", LENGTH),
    "space in length's name": post(b"Content-Length : 12"),
    "tab before colon": post(b"X-A\t: 1", LENGTH),
    "NUL in name": post(b"X\0A: 1", LENGTH),
    "NUL in value": post(b"X-A: a\0b", LENGTH),
    "control byte in value": post(b"X-A: a\x01b", LENGTH),
    "DEL in value": post(b"X-A: a\x7fb", LENGTH),
    "non-ASCII name": post(b"X-\xc4: 1", LENGTH),
    # RFC 9112 section 3: the request line.
    "no version": post(LENGTH, line=b"POST /bad"),
    "two spaces": post(LENGTH, line=b"POST  /bad HTTP/1.1"),
    "space in target": post(LENGTH, line=b"POST /b ad HTTP/1.1"),
    "tab in line": post(LENGTH, line=b"POST\t/bad HTTP/1.1"),
    "lower-case version": post(LENGTH, line=b"POST /bad http/1.1"),
    "version 1.10": post(LENGTH, line=b"POST /bad HTTP/1.10"),
    "method with control": post(LENGTH, line=b"PO\x01ST /bad HTTP/1.1"),
    "NUL in target": post(LENGTH, line=b"POST /b\0ad HTTP/1.1"),
    "control in target": post(LENGTH, line=b"POST /b\x1fad HTTP/1.1"),
    "DEL in target": post(LENGTH, line=b"POST /b\x7fad HTTP/1.1"),
    "non-ASCII target": post(LENGTH, line=b"POST /b\xc4d HTTP/1.1"),
    "backslash": post(LENGTH, line=b"POST /b\\ad HTTP/1.1"),
    "escaped backslash": post(LENGTH, line=b"POST /b%5Cad HTTP/1.1"),
    "escaped NUL": post(LENGTH, line=b"POST /b%00ad HTTP/1.1"),
    "escaped LF": post(LENGTH, line=b"POST /b%0aad HTTP/1.1"),
    "bad escape": post(LENGTH, line=b"POST /b%zzad HTTP/1.1"),
    "cut escape": post(LENGTH, line=b"POST /bad%4 HTTP/1.1"),
    "fragment": post(LENGTH, line=b"POST /bad#x HTTP/1.1"),
    "relative target": post(LENGTH, line=b"POST bad HTTP/1.1"),
    "asterisk": post(LENGTH, line=b"POST * HTTP/1.1"),
    "CONNECT": b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test\r\n\r\n",
    "other scheme": post(LENGTH, line=b"POST ftp://api.test/bad HTTP/1.1"),
    # RFC 9112 section 3.2: Host.
    "no Host": post(LENGTH, host=None),
    "two Hosts": post(b"Host: api.test", LENGTH),
    "two different Hosts": post(b"Host: other.test", LENGTH),
    "bad Host": post(LENGTH, host=b"Host: api test"),
    "Host with a path": post(LENGTH, host=b"Host: api.test/x"),
    "Host with userinfo": post(LENGTH, host=b"Host: me@api.test"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(shared, name):
    """Refused with 400, closed, and nothing of it goes up."""
    before = len(shared.provider.seen())
    with shared.gateway.connect() as wire:
        wire.send(BAD[name])
        answer = wire.answer()
        check.problem(answer, "bad_request", answer.status)
        assert answer.status in ((400, 405, 501) if name == "CONNECT" else
                                 (400, 505) if "version" in name else (400,)), answer
        assert "close" in answer.fields.tokens("Connection"), answer
        assert wire.ended(), "the connection went on after a malformed request"
    assert len(shared.provider.seen()) == before


@pytest.mark.parametrize("name", ["length and chunked", "bare LF", "two Hosts", "bad chunk size"])
def test_refused_byte_by_byte(shared, name):
    """How the bytes arrive changes nothing."""
    before = len(shared.provider.seen())
    with shared.gateway.connect() as wire:
        for byte in BAD[name]:
            if select.select([wire.sock], [], [], 0)[0]:
                break  # it has seen enough
            wire.send(bytes([byte]))
        check.problem(wire.answer(), "bad_request")
    assert len(shared.provider.seen()) == before


@pytest.mark.parametrize("preface", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                     b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
                                     b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", b"GET /\r\n\r\n",
                                     b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 64])
def test_other_protocols(shared, preface):
    """HTTP/2, HTTP/0.9 and TLS are told so, or hung up on; nothing goes up."""
    before = len(shared.provider.seen())
    answer = shared.gateway.raw(preface)
    assert answer is None or answer.status in (400, 505), answer
    assert len(shared.provider.seen()) == before


@pytest.mark.parametrize("head", [
    [b"X-Long: " + b"x" * 20000], [b"X-%d: 1" % n for n in range(150)],
    [b"X" * 20000 + b": 1"],
], ids=["long value", "many lines", "long name"])
def test_head_too_large(shared, head):
    """Head and number of headers are bounded: 431."""
    before = len(shared.provider.seen())
    check.problem(shared.gateway.raw(post(LENGTH, *head)), "headers_too_large")
    assert len(shared.provider.seen()) == before


def test_target_too_large(shared):
    """The request line counts towards the head."""
    answer = shared.gateway.raw(post(LENGTH, line=b"POST /" + b"x" * 20000 + b" HTTP/1.1"))
    check.problem(answer, "headers_too_large")


def test_endless_head(shared):
    """A head without an end is refused at its bound, not collected."""
    with shared.gateway.connect() as wire:
        wire.send(b"POST /x HTTP/1.1\r\nHost: a\r\nX-A: " + b"x" * 40000)
        check.problem(wire.answer(), "headers_too_large")


def test_body_too_large(shared):
    """413 by the announced length, before the body is there."""
    before = len(shared.provider.seen())
    with shared.gateway.connect() as wire:
        wire.send(post(b"Content-Length: 65537", body=b""))
        check.problem(wire.answer(), "request_too_large")
    assert len(shared.provider.seen()) == before


def test_chunked_body_too_large(shared):
    """413 as soon as the chunks exceed the bound."""
    before = len(shared.provider.seen())
    with shared.gateway.connect() as wire:
        wire.send(post(TE, body=b"10001\r\n" + b"x" * 65537 + b"\r\n"))
        check.problem(wire.answer(), "request_too_large")
    assert len(shared.provider.seen()) == before


def test_body_at_the_limit(shared):
    """The bound itself is allowed."""
    assert shared.gateway.post(body=b"x" * 65536).status == 200


@pytest.mark.parametrize("part", [
    b"POST /slow HTTP/1.1\r\nHost: api", post(b"Content-Length: 100", body=b"half"),
    post(TE, body=b"5\r\nhal"),
], ids=["head", "body", "chunk"])
def test_slow_sender(shared, part):
    """Who stops in the middle is timed out, and nothing goes up."""
    before = len(shared.provider.seen())
    with shared.gateway.connect() as wire:
        wire.send(part)
        answer = wire.answer()
        assert answer.status == 408 and answer.json()["executed"] == "no", answer
        assert wire.ended()
    assert len(shared.provider.seen()) == before


def test_dripping_head(shared):
    """A head that comes a byte at a time does not get more time for it."""
    with shared.gateway.connect() as wire:
        wire.sock.settimeout(0.1)
        wire.send(b"GET /x HTTP/1.1\r\nHost: a\r\n")
        for _ in range(60):
            try:
                wire.send(b"X")
                assert wire.head().status == 408
                return
            except TimeoutError:
                continue
            except (Closed, ConnectionError):
                return
    raise AssertionError("six seconds of a head that may take one")


def test_cut_off(shared):
    """A request that ends before its time is not carried out."""
    before = len(shared.provider.seen())
    for part in (b"POST /x HT", post(b"Content-Length: 100", body=b"half"), post(TE, body=b"5\r\nhal")):
        with shared.gateway.connect() as wire:
            wire.send(part)
            wire.sock.shutdown(1)
            assert wire.rest().split(b"\r\n")[0].split(b" ")[1:2] in ([], [b"400"], [b"408"])
    assert len(shared.provider.seen()) == before


def test_connections_are_bounded(site):
    """Over the bound: 503, and not all are told to come back at once; when one leaves, another may come."""
    one = site({"limits": {"connections": 4}})
    # Each from an address of its own: one alone gets three of them (test_limits.py).
    wires = [Wire(socket.create_connection(one.gateway.address, 15, source_address=(f"127.0.0.{i}", 0)))
             for i in range(2, 6)]
    for wire in wires:
        wire.send(one.gateway.request("GET", "/x"))
        assert wire.answer().status == 200
    seconds = []
    for _ in range(40):
        answer = one.gateway.post()
        check.problem(answer, "overloaded")
        seconds.append(check.retry_after(answer))
    assert set(seconds) == {1, 2, 3, 4}, seconds
    assert len(one.provider.ledger()) == 0
    for wire in wires:
        wire.close()
    check.until(lambda: one.gateway.get("/x").status == 200, "a place becomes free")


def test_bodies_are_bounded(site):
    """All bodies together are bounded: 503 for whom it does not reach."""
    one = site({"limits": {"request_body": "200KiB", "response_body": "1KiB", "bodies": "256KiB"}})
    gateway, wires = one.gateway, []
    for _ in range(4):
        wire = gateway.connect()
        wires.append(wire)
        wire.send(gateway.request("POST", "/x", key=new_key(), body=b"x" * 150000)[:-10])
    ready, _, _ = select.select([w.sock for w in wires], [], [], 15)
    assert ready, "four bodies of 150 kB fit into 256 KiB"
    refused = [w for w in wires if w.sock in ready][0].answer()
    check.problem(refused, "overloaded")
    for wire in wires:
        wire.close()
    check.until(lambda: gateway.post(body=b"x" * 150000).status == 200, "the memory is free again")


def test_still_alive(shared):
    """After all this it serves as before."""
    assert shared.gateway.post().status == 200
