"""Shows how connections are kept, shared and ended: answers come in order, the
protocol's older forms are served, and a client that goes away changes nothing
about its operation."""
import pytest

from harness import check
from harness.secret import new_key
from harness.wire import chunked, request_bytes


def test_keep_alive(shared):
    """Many requests on one connection."""
    with shared.gateway.connect() as wire:
        for method in ("POST", "GET", "POST", "HEAD", "PUT", "POST"):
            wire.send(shared.gateway.request(method, "/x"))
            assert wire.answer(method).status == 200


def test_refusals_keep_the_connection(shared):
    """A refusal by the rules of keys, not of HTTP, leaves the connection usable."""
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("POST", "/x", key=None))
        check.problem(wire.answer(), "idempotency_key_missing")
        wire.send(shared.gateway.request("POST", "/x"))
        assert wire.answer().status == 200


def test_close(shared):
    """`Connection: close` ends it after the answer."""
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("POST", "/x", headers=[("Connection", "close")]))
        answer = wire.answer()
        assert answer.status == 200 and "close" in answer.fields.tokens("Connection")
        assert wire.ended()


def test_pipelining(shared):
    """Requests in one write are answered in their order, whichever takes longer."""
    gateway, key = shared.gateway, new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/first", key=key, behave="delay=0.2")
                  + gateway.request("GET", "/second")
                  + gateway.request("POST", "/first", key=key)
                  + gateway.request("POST", "/fourth", key=None))
        answers = [wire.answer() for _ in range(4)]
    assert [a.json().get("path") for a in answers] == ["/first", "/second", "/first", None]
    check.same_answer(answers[0], answers[2])
    check.problem(answers[3], "idempotency_key_missing")
    assert len(shared.provider.ledger(key)) == 1


def test_byte_by_byte(shared):
    """A request may come in any pieces."""
    key = new_key()
    with shared.gateway.connect() as wire:
        for byte in shared.gateway.request("POST", "/bytes", key=key):
            wire.send(bytes([byte]))
        assert wire.answer().status == 200
    assert len(shared.provider.ledger(key)) == 1


@pytest.mark.parametrize("method, path, behave", [
    ("GET", "/x", "big=100000; chunked"), ("GET", "/x", "big=100000"), ("POST", "/x", "chunked"),
    ("POST", "/x", "big=3000000; chunked"), ("GET", "/x", "close"),
])
def test_http_1_0(shared, method, path, behave):
    """HTTP/1.0 gets no chunks, and a body that is whole."""
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request(method, path, behave=behave, version="HTTP/1.0"))
        answer = wire.answer()
        assert answer.status == 200 and answer["Transfer-Encoding"] is None
        assert len(answer.body) == (int(behave[4:].split(";")[0]) if "big" in behave else len(answer.body))
        assert wire.ended()


def test_http_1_0_without_host(shared):
    """HTTP/1.0 needs no Host."""
    with shared.gateway.connect() as wire:
        wire.send(request_bytes("GET", "/x", version="HTTP/1.0", host=None))
        assert wire.answer().status == 200


def test_http_1_0_retry(shared):
    """A retry in another version is the same request."""
    key = new_key()
    first = shared.gateway.post(key=key, behave="chunked")
    check.same_answer(first, shared.gateway.post(key=key, version="HTTP/1.0"))


def test_expect_continue(shared):
    """hapax answers `Expect` of a guarded request itself; it does not go up."""
    key = new_key()
    data = shared.gateway.request("POST", "/expect", key=key, headers=[("Expect", "100-continue")])
    head, body = data.split(b"\r\n\r\n")
    with shared.gateway.connect() as wire:
        wire.send(head + b"\r\n\r\n")
        assert wire.head().status == 100
        assert shared.provider.seen(key=key) == []
        wire.send(body)
        assert wire.answer().status == 200
    assert shared.provider.seen(key=key)[0]["Expect"] is None


@pytest.mark.parametrize("how, code", [
    ({"key": None}, "idempotency_key_missing"),
    ({"auth": "Digest s3cr3t"}, "unauthenticated"),
])
def test_expect_refused(shared, how, code):
    """Who is refused anyway is told so instead of being asked for the body."""
    data = shared.gateway.request("POST", "/expect", headers=[("Expect", "100-continue")], **how)
    with shared.gateway.connect() as wire:
        wire.send(data.split(b"\r\n\r\n")[0] + b"\r\n\r\n")
        answer = wire.answer()
        check.problem(answer, code)
        assert answer.interim == []


def test_expect_too_large(shared):
    """Nor is a body asked for that is too large."""
    with shared.gateway.connect() as wire:
        fields = [("Idempotency-Key", new_key()), ("Expect", "100-continue"), ("Content-Length", "99999999")]
        wire.send(request_bytes("POST", "/expect", fields))
        check.problem(wire.answer(), "request_too_large")


def test_other_expectation(shared):
    """An expectation that nobody knows is refused (RFC 9110 section 10.1.1)."""
    answer = shared.gateway.post(headers=[("Expect", "miracles")])
    assert answer.status == 417, answer


def test_expect_pass_through(shared):
    """`Expect` on what passes through works too."""
    data = shared.gateway.request("PUT", "/expect", headers=[("Expect", "100-continue")])
    head, body = data.split(b"\r\n\r\n")
    with shared.gateway.connect() as wire:
        wire.send(head + b"\r\n\r\n")
        assert wire.head().status == 100
        wire.send(body)
        assert wire.answer().status == 200


def test_client_goes_away(shared):
    """The attempt goes on without its client, and the answer is stored."""
    gateway, provider, key = shared.gateway, shared.provider, new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/gone", key=key, behave=f"hold={key}"))
        provider.gate(key).wait_arrived()
    check.problem(gateway.post("/gone", key=key), "idempotency_key_in_progress")
    provider.gate(key).release()
    answer = check.until(lambda: (lambda a: a if a.status == 200 else None)(gateway.post("/gone", key=key)),
                         "the answer is stored")
    assert answer.replayed
    assert len(provider.ledger(key)) == 1


def test_half_closed_client(shared):
    """A client that has finished sending still gets its answer."""
    key = new_key()
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("POST", "/half", key=key, behave="delay=0.1",
                                         headers=[("Connection", "close")]))
        wire.sock.shutdown(1)
        try:
            assert wire.answer().status == 200
        finally:
            check.until(lambda: shared.provider.ledger(key), "the attempt goes on")
    assert len(shared.provider.ledger(key)) == 1


def test_absolute_form(shared):
    """An absolute-form target is the same operation (RFC 9112 section 3.2.2)."""
    key = new_key()
    first = shared.gateway.post("http://api.test/absolute?q=s3cr3t", key=key)
    assert first.status == 200
    check.same_answer(first, shared.gateway.post("/absolute?q=s3cr3t", key=key))
    request = shared.provider.seen(key=key)[0]
    assert (request.target, request["Host"]) == ("/absolute?q=s3cr3t", "api.test")


def test_absolute_form_replaces_host(shared):
    """Its authority counts, not the Host beside it."""
    data = request_bytes("GET", "http://api.test/authority", host="other.test")
    assert shared.gateway.raw(data).status in (200, 400)
    seen = shared.provider.seen("/authority")
    assert [r["Host"] for r in seen] in ([], ["api.test"])


def test_chunked_request(shared):
    """A chunked body is the same body; extensions and trailers do not travel."""
    gateway, key = shared.gateway, new_key()
    fields = [("Transfer-Encoding", "chunked"), ("Idempotency-Key", key), ("Trailer", "X-T"),
              ("Authorization", "Bearer s3cr3t-alice"), ("Content-Type", "application/json")]
    body = chunked(b'{"a"', b":1}", trailer=b"X-T: forged\r\n").replace(b"\r\n", b";x=y\r\n", 1)
    first = gateway.raw(request_bytes("POST", "/chunked", fields) + body)
    assert first.status == 200, first
    check.same_answer(first, gateway.post("/chunked", key=key, body=b'{"a":1}'))
    request = shared.provider.seen(key=key)[0]
    assert request.body == b'{"a":1}' and request["X-T"] is None


def test_empty_lines_before_a_request(shared):
    """One empty line before a request is passed over (RFC 9112 section 2.2)."""
    answer = shared.gateway.raw(b"\r\n" + request_bytes("GET", "/x"))
    assert answer.status == 200


def test_unix_sockets(site, tmp_path):
    """Listener and upstream may be unix sockets."""
    one = site({"listen": f"unix:{tmp_path}/gateway.sock"}, unix_upstream=True)
    key = new_key()
    first = one.gateway.post(key=key)
    assert first.status == 200, first
    check.same_answer(first, one.gateway.post(key=key))
    assert one.gateway.get("/x").status == 200
    assert len(one.provider.ledger(key)) == 1


def test_unix_socket_survives_a_crash(site, tmp_path):
    """A socket file that a dead process left is no obstacle."""
    one = site({"listen": f"unix:{tmp_path}/gateway.sock"})
    one.gateway.kill()
    one.gateway.start()
    assert one.gateway.post().status == 200


def test_upstream_connections_are_reused(site):
    """Requests in close succession share upstream connections, once the upstream
    was seen to be silent behind its answers."""
    one = site({"loops": 1})

    def opened():
        before = one.provider.connections
        with one.gateway.connect() as wire:
            for _ in range(10):
                wire.send(one.gateway.request("POST", "/x"))
                assert wire.answer().status == 200
        return one.provider.connections - before

    check.until(lambda: opened() < 3, "kept connections are used")
