"""Shows that nothing a client, an upstream or an operator does at the wrong
moment makes an operation happen twice, loses its answer, or leaves the gateway
stuck, swollen or out of step with its connections."""
import collections
import contextlib
import os
import random
import signal
import socket
import sqlite3
import struct
import threading
import time

import pytest

from harness import check
from harness.operator_command import Operator
from harness.library import STALE, Library
from harness.secret import new_key
from harness.wire import Closed, chunked, request_bytes

MINE = [("Authorization", "Bearer s3cr3t-alice")]


@contextlib.contextmanager
def store_locked(gateway):
    """Somebody else holds the store's write lock meanwhile."""
    other = sqlite3.connect(gateway.folder / "hapax.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield other
    finally:
        if other.in_transaction:
            other.execute("ROLLBACK")
        other.close()


def abort(wire):
    """Leaves without a goodbye: the other side sees a reset."""
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.close()


def rss(gateway):
    with open(f"/proc/{gateway.pid}/status", encoding="ascii") as file:
        return next(int(l.split()[1]) * 1024 for l in file if l.startswith("VmRSS"))


def is_quiet(gateway):
    """Nothing is left of anybody: no connection, no byte of a body, no waiter."""
    m = gateway.metrics()
    return m["hapax_connections"] == 0 and m["hapax_bodies_bytes"] == 0 and m["hapax_waiting"] == 0


def settled(gateway, path, key, **how):
    """The answer of a key once nothing is under way any more."""
    def ask():
        answer = gateway.post(path, key=key, **how)
        busy = answer.status == 409 and answer.json()["code"] == "idempotency_key_in_progress"
        return None if busy or answer.status == 503 else answer
    return check.until(ask, "the operation is settled", 30)


# ---- who it came from ----

def test_forwarded_for_of_a_client_that_left(site):
    """Who leaves before the request goes up is named all the same, and is not believed."""
    one = site()
    key = new_key()
    headers = [("X-Forwarded-For", "6.6.6.6"), ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "evil.test")]
    with store_locked(one.gateway):
        wire = one.gateway.connect()
        wire.send(one.gateway.request("POST", "/pay", key=key, headers=headers))
        check.until(lambda: one.gateway.metrics()["hapax_bodies_bytes"] > 0, "its body is read")
        abort(wire)
        check.until(lambda: one.gateway.metrics()["hapax_connections"] == 0, "it is gone")
    check.until(lambda: one.provider.seen(key=key), "the attempt goes on without its client")
    request = one.provider.seen(key=key)[0]
    got = (request["X-Forwarded-For"], request["X-Forwarded-Proto"], request["X-Forwarded-Host"])
    assert got == ("6.6.6.6, 127.0.0.1", "http", "api.test")


# ---- memory ----

def test_pipelined_replays_are_not_heaped_up(site):
    """A client that asks for replay after replay and reads none of them does
    not fill the memory: the next request waits until the last answer is out."""
    one = site({"loops": 1})
    key, size = new_key(), 1 << 20
    assert len(one.gateway.post(key=key, behave=f"big={size}").body) == size
    data = one.gateway.request("POST", "/pay", key=key)
    before = rss(one.gateway)
    with one.gateway.connect(20) as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.sock.settimeout(3)
        try:
            for _ in range(300):
                wire.send(data)
        except socket.timeout:
            pass
        time.sleep(1)
        grown = rss(one.gateway) - before
        abort(wire)
    assert grown < 100 << 20, f"{grown >> 20} MiB for one connection"


def test_pipelined_passes_are_not_heaped_up(site):
    """The same for small answers that pass through."""
    one = site({"loops": 1})
    one.provider.bodies["some"] = b"x" * 60000
    data = one.gateway.request("GET", "/some", behave="body=some")
    before = rss(one.gateway)
    with one.gateway.connect(20) as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.sock.settimeout(5)
        try:
            for _ in range(3000):
                wire.send(data)
        except socket.timeout:
            pass
        time.sleep(1)
        served = len(one.provider.seen("/some"))
        grown = rss(one.gateway) - before
        abort(wire)
    assert grown < 60 << 20, f"{grown >> 20} MiB for one connection, {served} served"


def test_announced_bodies_are_not_yet_there(site):
    """Those who announce bodies and send none do not keep others out."""
    one = site()
    wires = []
    try:
        for _ in range(70):
            wire = one.gateway.connect()
            wire.send(request_bytes("POST", "/pay", MINE + [("Idempotency-Key", new_key()),
                                                           ("Content-Length", "1048576")]))
            wires.append(wire)
        check.until(lambda: one.gateway.metrics()["hapax_connections"] == 70, "all are connected")
        answer = one.gateway.post()
        assert answer.status == 200, answer
    finally:
        for wire in wires:
            abort(wire)


def test_many_small_chunks(site):
    """A body of very many chunks is one body, and is counted as it is."""
    one = site()
    key = new_key()
    fields = MINE + [("Transfer-Encoding", "chunked"), ("Idempotency-Key", key)]
    body = b"1\r\nx\r\n" * 200000 + b"0\r\n\r\n"
    with one.gateway.connect(60) as wire:
        wire.send(request_bytes("POST", "/chunks", fields) + body)
        assert wire.answer().status == 200
    assert one.provider.seen(key=key)[0].body == b"x" * 200000
    over = b"1\r\nx\r\n" * ((1 << 20) + 1) + b"0\r\n\r\n"
    fields[-1] = ("Idempotency-Key", new_key())
    with one.gateway.connect(60) as wire:
        with contextlib.suppress(OSError):
            wire.send(request_bytes("POST", "/chunks", fields) + over)
        check.problem(wire.answer(), "request_too_large")
    check.until(lambda: is_quiet(one.gateway), "everything is given back")


def test_too_many_1xx(shared):
    """An upstream that only ever says 1xx has not answered; nothing is repeated."""
    key = new_key()
    shared.provider.raws["1xx"] = b"HTTP/1.1 103 Early Hints\r\nX-A: b\r\n\r\n" * 5000
    answer = shared.gateway.post("/1xx", key=key, behave="raw=1xx")
    check.problem(answer, "upstream_outcome_unknown", 502)
    assert len(answer.interim) <= 32
    check.problem(shared.gateway.post("/1xx", key=key), "idempotency_outcome_unknown")
    assert len(shared.provider.ledger(key)) == 1


# ---- the last answer ----

@pytest.mark.parametrize("how", ["close", "HTTP/1.0"])
def test_a_slow_reader_gets_the_last_answer_whole(site, how):
    """An answer that ends the connection is not cut off under a slow reader."""
    one = site({"limits": {"response_body": "16MiB"}})
    size = 12 << 20
    key = new_key()
    headers = [("Connection", "close")] if how == "close" else []
    version = "HTTP/1.0" if how == "HTTP/1.0" else "HTTP/1.1"
    with one.gateway.connect(30) as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.send(one.gateway.request("POST", "/pay", key=key, behave=f"big={size}", headers=headers,
                                      version=version))
        answer = wire.head()
        time.sleep(4)
        try:
            got = sum(len(p) for p in wire.body_pieces(answer, "POST"))
        except (Closed, ConnectionError):
            got = "cut off"
    assert got == size


def test_half_close_behind_a_replay(site):
    """A client that has finished sending gets a large replay whole."""
    one = site({"limits": {"response_body": "16MiB"}})
    size = 12 << 20
    key = new_key()
    assert len(one.gateway.post(key=key, behave=f"big={size}").body) == size
    with one.gateway.connect(30) as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.send(one.gateway.request("POST", "/pay", key=key))
        wire.sock.shutdown(socket.SHUT_WR)
        try:
            got = len(wire.answer().body)
        except (Closed, ConnectionError):
            got = "cut off"
    assert got == size


def test_half_close_behind_a_passing_request(shared):
    """The same where nothing is guarded."""
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("GET", "/x", behave="delay=0.3", headers=[("Connection", "close")]))
        wire.sock.shutdown(socket.SHUT_WR)
        try:
            got = wire.answer().status
        except (Closed, ConnectionError):
            got = "cut off"
    assert got == 200


def test_half_close_behind_two_requests(shared):
    """Both requests in front of the end are answered."""
    keys = [new_key(), new_key()]
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("POST", "/two", key=keys[0], behave="delay=0.2")
                  + shared.gateway.request("POST", "/two", key=keys[1]))
        wire.sock.shutdown(socket.SHUT_WR)
        assert wire.answer().status == 200
        try:
            got = wire.answer().status
        except (Closed, ConnectionError):
            got = "cut off"
    assert got == 200


def test_half_an_answer_is_not_whole_for_http_1_0(shared):
    """Where only the end of the connection ends the answer, half of it ends in a reset."""
    shared.provider.raws["half10"] = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                                      b"5\r\n12345\r\n")
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("GET", "/x", behave="raw=half10", version="HTTP/1.0"))
        try:
            answer = wire.answer()
        except (Closed, ConnectionError):
            return
    assert answer.status == 502, f"half an answer came as a whole one: {answer}"


def test_tunnel_half_close(shared):
    """In a tunnel, the end of one direction is not the end of the other."""
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
    data = b"x" * 3000000
    with shared.gateway.connect() as wire:
        wire.send(request_bytes("GET", "/ws", upgrade))
        assert wire.head().status == 101
        sender = threading.Thread(target=lambda: (wire.send(data), wire.sock.shutdown(socket.SHUT_WR)))
        sender.start()
        time.sleep(0.5)
        try:
            got = len(wire.rest())
        except ConnectionError:
            got = "reset"
        sender.join()
    assert got == len(data)


# ---- bounds that are options ----

def test_large_heads_where_they_are_allowed(site):
    """limits.head may be raised, and then holds."""
    one = site({"limits": {"head": "256KiB"}})
    answer = one.gateway.raw(request_bytes("GET", "/x", [("X-Large", "a" * 150000)]), timeout=20)
    assert answer is not None and answer.status == 200, answer


def test_no_keep_alive(site):
    """timeouts.keep_alive: 0 still serves the first request of a connection."""
    one = site({"timeouts": {"keep_alive": "0s"}})
    with one.gateway.connect() as wire:
        time.sleep(0.5)
        try:
            wire.send(one.gateway.request("GET", "/x"))
            got = wire.answer().status
        except (Closed, ConnectionError):
            got = "cut off"
    assert got == 200


def test_who_does_not_read_does_not_hold_the_upstream_for_ever(site):
    """A download that stands still gives its upstream connection back in the end."""
    one = site({"loops": 1, "limits": {"upstream_connections": 1},
                "timeouts": {"idle": "1s", "send": "1s", "first_byte": "2s", "body": "1s", "keep_alive": "1s",
                             "whole": "3s"}})
    with one.gateway.connect(30) as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.send(one.gateway.request("GET", "/big", behave="big=100000000"))
        wire.head()
        check.until(lambda: one.gateway.get("/x").status == 200, "the upstream can be reached again", 12)


# ---- stopping and reloading while the store is away ----

def test_terminate_while_the_store_is_locked(site):
    """SIGTERM ends hapax although the store takes nothing."""
    one = site({"timeouts": {"drain": "1s"}})
    with store_locked(one.gateway):
        check.until(lambda: one.gateway.post().status == 503, "the store is down")
        time.sleep(3)
        one.gateway.signal(signal.SIGTERM)
        try:
            code = one.gateway.wait(25)
        except Exception:  # pylint: disable=broad-except
            code = "still there"
    assert code == 0


def test_reload_while_the_store_is_locked(site):
    """SIGHUP while the store is down leaves health, metrics and SIGTERM alive."""
    one = site({"timeouts": {"drain": "1s"}})
    with store_locked(one.gateway):
        check.until(lambda: one.gateway.post().status == 503, "the store is down")
        one.gateway.signal(signal.SIGHUP)
        time.sleep(1)
        try:
            got = one.gateway.admin("/healthz").status
        except OSError as failure:
            got = repr(failure)
    assert got == 200


def test_a_request_behind_a_refused_body_when_the_drain_is_over(site):
    """The rest of a refused body and a new request, after the time to drain:
    the new one is not begun, and hapax ends in good order."""
    one = site({"timeouts": {"drain": "1s"}, "loops": 1})
    key = new_key()
    with one.gateway.connect(20) as wire:
        wire.send(request_bytes("POST", "/pay", MINE + [("Content-Length", "1000")]) + b"x" * 500)
        check.problem(wire.answer(), "idempotency_key_missing")
        one.gateway.signal(signal.SIGTERM)
        one.gateway.wait_log("event=draining")
        time.sleep(2)
        with contextlib.suppress(OSError):
            wire.send(b"x" * 500 + one.gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        code = one.gateway.wait(25)
    one.gateway.check_log()
    assert code == 0, one.gateway.log()
    one.provider.gate(key).release()


def test_a_reservation_that_commits_while_stopping(site):
    """A reservation that the store takes after its request was given up and
    the loops have ended: hapax ends in good order."""
    one = site({"timeouts": {"drain": "0s", "store": "60s"}, "loops": 1,
                "sweep": {"every": "1h"}, "reap": {"every": "1d"}})
    key = new_key()
    assert one.gateway.post().status == 200
    time.sleep(0.5)
    with one.gateway.connect(20) as wire:
        with store_locked(one.gateway):
            wire.send(one.gateway.request("POST", "/pay", key=key))
            time.sleep(0.3)
            one.gateway.signal(signal.SIGTERM)
            time.sleep(3.35)
        code = one.gateway.wait(25)
    one.gateway.check_log()
    assert code == 0, one.gateway.log()
    assert one.provider.ledger(key) == []


def test_drain_with_waiters_and_streams(site):
    """Waiters, streams, tunnels and half requests at the end of the drain."""
    one = site({"timeouts": {"drain": "1s"}, "defaults": {"concurrent": "wait", "wait": "60s"}})
    gateway, key = one.gateway, new_key()
    upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")]
    wires = [gateway.connect(30) for _ in range(8)]
    wires[0].send(gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
    one.provider.gate(key).wait_arrived()
    wires[1].send(gateway.request("POST", "/pay", key=key))
    wires[2].send(gateway.request("POST", "/pay", key=key))
    wires[3].send(gateway.request("GET", "/ev", behave="sse=never"))
    wires[4].send(gateway.request("POST", "/ev", behave="sse=never2"))
    wires[5].send(request_bytes("GET", "/ws", upgrade))
    wires[6].send(gateway.request("GET", "/big", behave="big=100000000"))
    wires[7].send(request_bytes("POST", "/pay", MINE + [("Content-Length", "10")]) + b"123")
    check.until(lambda: gateway.metrics()["hapax_waiting"] == 2, "two wait")
    for wire in (wires[3], wires[4], wires[5], wires[6]):
        wire.head()
    gateway.signal(signal.SIGTERM)
    # Which of two loops ends first decides what the waiter hears: that the
    # first one is under way, or that its outcome is lost.
    waiter = wires[1].answer()
    assert (waiter.status, waiter.json()["executed"]) == (409, "unknown"), waiter
    check.problem(wires[0].answer(), "upstream_outcome_unknown")
    code = gateway.wait(25)
    for wire in wires:
        wire.close()
    gateway.check_log()
    assert code == 0, gateway.log()
    for name in (key, "never", "never2"):
        one.provider.gate(name).release(3)
    gateway.start()
    check.problem(gateway.post(key=key), "idempotency_outcome_unknown")


def test_reload_while_requests_run(site):
    """Settings change under requests in every phase; each keeps its own."""
    one = site({"defaults": {"concurrent": "wait", "wait": "30s"}})
    gateway = one.gateway
    keys = [new_key() for _ in range(6)]
    wires = [gateway.connect(30) for _ in range(12)]
    for key, wire in zip(keys, wires):
        wire.send(gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        one.provider.gate(key).wait_arrived()
    for key, wire in zip(keys, wires[6:]):
        wire.send(gateway.request("POST", "/pay", key=key))
    check.until(lambda: gateway.metrics()["hapax_waiting"] == 6, "six wait")
    for n in range(10):
        gateway.config["routes"] = [{"match": f"POST /r{i}", "fingerprint": {"ignore": [f"/m{i}"]}}
                                    for i in range(n)]
        gateway.config["defaults"] = {"concurrent": "wait", "wait": "30s",
                                      "fingerprint": {"ignore": [f"/n{n}"]}}
        gateway.write_config()
        since = len(gateway.lines)
        gateway.signal(signal.SIGHUP)
        gateway.wait_log("event=reloaded", since=since)
    for key in keys:
        one.provider.gate(key).release()
    for first, second in zip(wires, wires[6:]):
        with first, second:
            check.same_answer(first.answer(), second.answer())
    for key in keys:
        assert gateway.post(key=key).replayed and len(one.provider.ledger(key)) == 1


# ---- the reference, taken for the right to write ----

def test_a_reference_writes_nothing(site):
    """A client hands the `Hapax-Operation` of an answer in as a lease, with all
    the library can write: while the first attempt is under way, after it
    failed, and while the second is. Nothing changes; and what is a lease is
    shown to nobody but the upstream."""
    one = site()
    gateway, provider, key = one.gateway, one.provider, new_key()
    forger, operator, told = Library(gateway.config["store"]), Operator(gateway), []

    def forge(reference, state):
        assert forger.forge(reference) == [STALE] * 7
        shown = gateway.operation(reference)
        assert shown.json()["state"] == state, shown
        told.extend([repr(shown.fields), shown.body.decode(), operator.on("keys", "show", reference),
                     operator.on("keys", "show", reference, "--json")])

    try:
        for behave, after in (("status=500; effect=no", "failed_retryable"), ("", "completed")):
            with gateway.connect(30) as wire:
                gate = provider.gate(f"{key}-{after}")
                wire.send(gateway.request("POST", "/pay", key=key, behave=f"hold={key}-{after}; {behave}"))
                gate.wait_arrived()
                early = gateway.post(key=key)
                check.problem(early, "idempotency_key_in_progress")
                forge(early["Hapax-Operation"], "in_progress")
                gate.release()
                ended = wire.answer()
            forge(ended["Hapax-Operation"], after)
            told.extend([repr(early.fields), early.body.decode(), repr(ended.fields), ended.body.decode()])
    finally:
        forger.close()
    again = gateway.post(key=key)
    check.same_answer(ended, again)
    assert len(provider.ledger(key)) == 1
    tokens = {r["Hapax-Lease"].partition(".")[2] for r in provider.seen(key=key)}
    assert len(tokens) == 2
    for token in tokens:
        assert not any(token in text for text in [*told, gateway.log()]), told


# ---- the store is slow ----

def test_stored_late(site):
    """The store does not take the answer in time: 504, and later the replay."""
    one = site({"timeouts": {"store": "500ms"}})
    gateway, key = one.gateway, new_key()
    with gateway.connect(30) as wire:
        wire.send(gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        one.provider.gate(key).wait_arrived()
        with store_locked(gateway):
            one.provider.gate(key).release()
            late = wire.answer()
            check.problem(late, "upstream_outcome_unknown")
            assert late["Hapax-Operation"]
    answer = settled(gateway, "/pay", key)
    assert (answer.status, answer.replayed) == (200, True), answer
    assert answer["Hapax-Operation"] == late["Hapax-Operation"]
    assert len(one.provider.ledger(key)) == 1
    check.until(lambda: is_quiet(gateway), "everything is given back")


def test_reserved_late(site):
    """The store takes the reservation too late: 503, nothing was sent, and the
    same key is executed once afterwards."""
    one = site({"timeouts": {"store": "300ms"}})
    gateway, key = one.gateway, new_key()
    with store_locked(gateway):
        check.problem(gateway.post(key=key), "idempotency_store_unavailable")
        assert one.provider.seen(key=key) == []
    answer = settled(gateway, "/pay", key)
    assert (answer.status, answer.replayed) == (200, False), answer
    check.same_answer(answer, gateway.post(key=key))
    assert len(one.provider.ledger(key)) == 1
    check.until(lambda: is_quiet(gateway), "everything is given back")


# ---- leaving at the wrong moment ----

def phases(gateway, key):
    """The bytes of one request, cut at every place where a client may leave."""
    fields = MINE + [("Idempotency-Key", key), ("Expect", "100-continue"), ("Content-Length", "10")]
    whole = request_bytes("POST", "/leave", fields)
    yield whole[:1]
    yield whole[:-1]
    yield whole
    yield whole + b"12345"
    yield whole + b"1234567890"
    yield whole + b"1234567890" + whole[:50]
    yield request_bytes("POST", "/leave", MINE + [("Content-Length", "100000")]) + b"x" * 100


@pytest.mark.parametrize("goodbye", ["reset", "end"])
@pytest.mark.parametrize("behave", ["", "delay=0.1", "big=3000000", "big=3000000; chunked", "1xx", "half-body"])
def test_leaving(shared, goodbye, behave):
    """A client leaves at every place: at most one effect, and nothing stays behind."""
    gateway = shared.gateway
    before = gateway.metrics()["hapax_connections"]
    for n in range(7):
        key = new_key()
        for data in list(phases(gateway, key))[n:n + 1] * 3:
            wire = gateway.connect()
            wire.send(data.replace(b"Expect:", b"X-Behave: %s\r\nExpect:" % behave.encode()))
            abort(wire) if goodbye == "reset" else wire.close()
        settled_state(gateway, key)
        assert len(shared.provider.ledger(key)) <= 1
    check.until(lambda: gateway.metrics()["hapax_connections"] <= before, "they are gone")
    check.until(lambda: gateway.metrics()["hapax_bodies_bytes"] == 0, "and their bodies")


def settled_state(gateway, key):
    def ask():
        answer = gateway.get("/.hapax/operations?method=POST&path=/leave", headers=[("Idempotency-Key", key)])
        return answer.status == 404 or answer.json()["state"] != "in_progress"
    check.until(ask, "it is not in progress any more")


# ---- in step with the connection ----

def test_errors_between_pipelined_requests(shared):
    """Refusals with unread bodies, own paths and HEAD between good requests:
    each gets its own answer."""
    gateway, key = shared.gateway, new_key()
    refused = request_bytes("POST", "/r", MINE + [("Content-Length", "30")]) + b"GET /smuggled HTTP/1.1\r\n\r\n    "
    refused_chunked = (request_bytes("POST", "/r", MINE + [("Transfer-Encoding", "chunked")])
                       + chunked(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"))
    row = [
        ("POST", gateway.request("POST", "/ok", key=key), 200),
        ("POST", refused, 400),
        ("HEAD", gateway.request("HEAD", "/ok", behave="big=5000"), 200),
        ("POST", refused_chunked, 400),
        ("GET", gateway.request("GET", "/ok", behave="status=304"), 304),
        ("POST", gateway.request("POST", "/ok", key=key), 200),
        ("POST", request_bytes("POST", "/.hapax/policy", [("Content-Length", "5")]) + b"12345", 405),
        ("HEAD", request_bytes("HEAD", "/.hapax/policy"), 200),
        ("POST", gateway.request("POST", "/ok", key=key, body=b"{}"), 422),
        ("GET", gateway.request("GET", "/ok", behave="status=204"), 204),
        ("HEAD", request_bytes("HEAD", "/.hapax/nothing"), 404),
        ("GET", gateway.request("GET", "/last"), 200),
    ]
    with gateway.connect() as wire:
        wire.send(b"".join(data for _, data, _ in row))
        for method, data, status in row:
            answer = wire.answer(method)
            assert answer.status == status, (data[:60], answer)
        assert answer.json()["path"] == "/last"
    assert shared.provider.seen("/smuggled") == []
    assert len(shared.provider.ledger(key)) == 1


@pytest.mark.parametrize("method, raw", [
    ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345HTTP/1.1 200 OK\r\nX-Stray: 1\r\nContent-Length: 0\r\n\r\n"),
    ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n12345"),
    ("GET", b"HTTP/1.1 204 No Content\r\n\r\n12345"),
    ("GET", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX-Stray: 1\r\nContent-Length: 0\r\n\r\n"),
    ("POST", b"HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nX-Stray: 1\r\nContent-Length: 0\r\n\r\n"),
])
def test_stray_bytes_are_nobodys_answer(shared, method, raw):
    """What an upstream sends behind an answer reaches no client and no next request."""
    name = new_key()
    shared.provider.raws[name] = raw
    with shared.gateway.connect() as wire:
        for _ in range(3):
            wire.send(shared.gateway.request(method, "/stray", behave=f"raw={name}; stay={name}"))
            answer = wire.answer(method)
            assert answer["X-Stray"] is None and answer.status in (200, 201, 204, 304), answer
            wire.send(shared.gateway.request("GET", "/next"))
            assert wire.answer().json()["path"] == "/next"
    shared.provider.gate(name).release(3)


def test_204_has_no_length(shared):
    """A 204 goes down without a length, whatever the upstream wrote (RFC 9110 section 8.6)."""
    shared.provider.raws["204"] = b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"
    for method in ("GET", "POST"):
        answer = shared.gateway.call(method, "/x", behave="raw=204")
        assert answer.status == 502 or answer["Content-Length"] is None, (method, answer)


def test_refused_while_waiting_for_100(shared):
    """Who is refused before being asked for the body may go on with the next
    request, or is told that the connection ends."""
    data = request_bytes("POST", "/x", MINE + [("Expect", "100-continue"), ("Content-Length", "500")])
    with shared.gateway.connect(5) as wire:
        wire.send(data)
        first = wire.answer()
        check.problem(first, "idempotency_key_missing")
        if "close" in first.fields.tokens("Connection"):
            return
        wire.send(request_bytes("GET", "/after-expect"))
        try:
            got = wire.answer().status
        except (Closed, OSError) as failure:
            got = repr(failure)
    assert got == 200


def test_http_1_0_keep_alive(shared):
    """Keep-alive of HTTP/1.0 holds over refusals, replays and bodiless answers."""
    gateway, key = shared.gateway, new_key()
    keep = [("Connection", "keep-alive")]
    row = [("POST", {"key": key}, 200), ("POST", {"key": None}, 400), ("POST", {"key": key}, 200),
           ("HEAD", {}, 200), ("GET", {"behave": "status=304"}, 304), ("GET", {"behave": "big=70000"}, 200)]
    with gateway.connect() as wire:
        for method, how, status in row:
            wire.send(gateway.request(method, "/old", version="HTTP/1.0", headers=keep, **how))
            answer = wire.answer(method)
            assert answer.status == status and "keep-alive" in answer.fields.tokens("Connection"), answer
    assert len(shared.provider.ledger(key)) == 1


@pytest.mark.parametrize("behave, status", [
    ("early; status=413", 413), ("early; status=200; effect=no", 200), ("early; status=401", 401),
    ("early; status=503; header=Retry-After:1", 503),
])
def test_early_answers_to_guarded_requests(site, behave, status):
    """An upstream that answers before it has read the body is believed or
    counts as unknown, and is never asked twice behind the client's back."""
    one = site({"limits": {"request_body": "32MiB"}})
    key = new_key()
    answer = one.gateway.post("/early", key=key, body=b"x" * (24 << 20), behave=behave, timeout=30)
    assert answer.status in (status, 502), answer
    assert len(one.provider.seen(key=key)) == 1
    retry = one.gateway.post("/early", key=key, body=b"x" * (24 << 20), timeout=30)
    assert len(one.provider.seen(key=key)) == (1 if retry.replayed or retry.status == 409 else 2), retry


# ---- the contract ----

@pytest.mark.parametrize("behave", ["", "status=201", "status=404", "status=429", "status=401", "status=500",
                                    "status=502", "half-body", "big=2000000", "status=503; header=Retry-After:1",
                                    "reset=after", "status=204", "chunked", "header=Hapax-Outcome:unknown"])
def test_operation_and_expiry_are_told(shared, behave):
    """Every guarded answer names its operation; replay and first answer agree on the expiry."""
    key = new_key()
    first = shared.gateway.post("/told", key=key, behave=behave)
    assert first["Hapax-Operation"], first
    again = shared.gateway.post("/told", key=key, behave=behave)
    assert again["Hapax-Operation"], again
    if behave != "status=401":
        assert again["Hapax-Operation"] == first["Hapax-Operation"]
    if again.replayed or again.status == 409:
        assert again["Idempotency-Expires"] == first["Idempotency-Expires"], (first, again)


def test_said_twice(shared):
    """An upstream that says two things about the outcome has said nothing certain."""
    key = new_key()
    shared.gateway.post("/said", key=key, behave="header=Hapax-Outcome:not-applied; header=Hapax-Outcome:applied")
    check.problem(shared.gateway.post("/said", key=key), "idempotency_outcome_unknown")
    assert len(shared.provider.ledger(key)) == 1


def test_unreadable_is_unknown_everywhere(site):
    """A record that cannot be read is unknown to whoever asks, never absent. (An
    answer that was read before is in memory, and is given.)"""
    one = site({"cache": "0"})
    key = new_key()
    first = one.gateway.post(key=key)
    db = sqlite3.connect(one.gateway.folder / "hapax.db")
    db.execute("UPDATE hapax_operation_1 SET fingerprint = x'00'")
    db.commit()
    db.close()
    check.problem(one.gateway.post(key=key), "idempotency_outcome_unknown")
    state = one.gateway.operation(first["Hapax-Operation"])
    assert (state.status, state.json().get("state")) == (200, "unknown"), state
    assert len(one.provider.ledger(key)) == 1


def test_answers_are_kept_while_others_fill_the_memory(site):
    """Bodies of strangers do not cost anybody a stored answer."""
    one = site({"limits": {"bodies": "2MiB"}})
    key = new_key()
    with one.gateway.connect() as wire, one.gateway.connect() as other, one.gateway.connect() as third:
        wire.send(one.gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        one.provider.gate(key).wait_arrived()
        # Together nearly 1 MiB: of what is scarce, one address gets no more.
        for slow, taken in ((other, 900000), (third, 140000)):
            slow.send(request_bytes("POST", "/pay", MINE + [("Idempotency-Key", new_key()),
                                                           ("Content-Length", str(taken + 8))]) + b"x" * taken)
        check.until(lambda: one.gateway.metrics()["hapax_bodies_bytes"] >= 1040000, "the memory is taken")
        one.provider.gate(key).release()
        first = wire.answer()
        assert first.status == 200
    check.same_answer(first, one.gateway.post(key=key))


# ---- options that must do what they say ----

def test_required_tenant(site):
    """tenant.anonymous: refuse: who brings no credential at all is refused."""
    one = site({"tenant": {"from": "authorization", "anonymous": "refuse"}})
    answer = one.gateway.post(auth=None)
    check.problem(answer, "unauthenticated")
    assert one.provider.ledger() == []


@pytest.mark.parametrize("limits", [{"waiters": 0}, {"waiters_per_operation": 0}])
def test_no_room_to_wait(site, limits):
    """Past limits.waiters a retry is refused at once; since the operation is
    under way, nobody is told that nothing happens."""
    one = site({"limits": limits, "defaults": {"concurrent": "wait"}})
    key = new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        one.provider.gate(key).wait_arrived()
        answer = one.gateway.post(key=key)
        one.provider.gate(key).release()
        assert wire.answer().status == 200
    check.problem(answer, "overloaded", executed="unknown")
    assert answer["Hapax-Operation"] and check.retry_after(answer) >= 1


def test_larger_heads_after_a_reload(site):
    """limits.head is raised by SIGHUP: open connections have it too."""
    one = site({"limits": {"head": "8KiB"}})
    with one.gateway.connect() as wire:
        wire.send(request_bytes("GET", "/x"))
        assert wire.answer().status == 200
        one.gateway.config["limits"] = {"head": "60KiB"}
        one.gateway.write_config()
        since = len(one.gateway.lines)
        one.gateway.signal(signal.SIGHUP)
        one.gateway.wait_log("event=reloaded", since=since)
        wire.send(request_bytes("GET", "/x", [("X-Large", "a" * 50000)]))
        assert wire.answer().status == 200


def test_a_route_for_a_host_keeps_its_keys_apart(site):
    """Where a route names its host, the same key, path and body for another
    host is not answered with the first host's answer."""
    one = site({"routes": [{"match": "POST shop-a.test/pay"}, {"match": "POST shop-b.test/pay"}]})
    key = new_key()
    fields = MINE + [("Idempotency-Key", key), ("Content-Type", "application/json")]
    for host in ("shop-a.test", "shop-b.test"):
        first = one.gateway.raw(request_bytes("POST", "/pay", fields, b"{}", host=host))
        again = one.gateway.raw(request_bytes("POST", "/pay", fields, b"{}", host=host))
        assert (first.status, first.replayed, again.replayed) == (200, False, True), (first, again)
    assert len(one.provider.ledger(key)) == 2


def test_nothing_answered_where_nothing_was_sent(site):
    """The upstream cannot be reached and the store cannot be told: the client
    is not told that the service answered."""
    one = site({"timeouts": {"store": "500ms", "connect": "1s"}})
    key = new_key()
    one.provider.stop()
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    stalled.bind(("127.0.0.1", one.provider.port))
    stalled.listen(0)
    fillers = []
    for _ in range(3):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex(("127.0.0.1", one.provider.port))
        fillers.append(filler)
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key))
        check.until(lambda: one.gateway.metrics()['hapax_reserve_total{outcome="created"}'] == 1, "it is reserved")
        with store_locked(one.gateway):
            answer = wire.answer()
    for sock in fillers + [stalled]:
        sock.close()
    one.provider.start()
    assert "The service answered" not in answer.json()["detail"], answer
    assert settled(one.gateway, "/pay", key).status == 200


@pytest.mark.parametrize("protocol", ["h2c-14", "HTTP/2.0", "TLS/1.0", "foo"])
def test_only_websockets_are_tunnelled(shared, protocol):
    """A tunnel is a way round the guard, so only WebSockets get one."""
    path = "/up-" + new_key()
    shared.gateway.raw(request_bytes("GET", path, [("Connection", "Upgrade"), ("Upgrade", protocol)]))
    assert shared.provider.seen(path)[0]["Upgrade"] is None


@pytest.mark.parametrize("unlock_after", [0.3, 1.5, 4.5, None])
def test_terminate_behind_a_reload_that_waits(site, unlock_after):
    """SIGHUP waits for the store, SIGTERM comes behind it, and the store comes
    back sooner, later, or not at all: hapax ends in good order."""
    one = site({"timeouts": {"drain": "1s"}})
    with store_locked(one.gateway) as lock, one.gateway.connect() as idle:
        check.until(lambda: one.gateway.post().status == 503, "the store is down")
        idle.send(request_bytes("POST", "/pay", MINE + [("Content-Length", "10")]) + b"1")
        one.gateway.signal(signal.SIGHUP)
        time.sleep(0.3)
        one.gateway.signal(signal.SIGTERM)
        one.gateway.wait_log("event=draining")
        if unlock_after is not None:
            time.sleep(unlock_after)
            lock.execute("ROLLBACK")
        try:
            code = one.gateway.wait(30)
        except Exception:  # pylint: disable=broad-except
            code = "still there"
    one.gateway.check_log()
    assert code == 0, one.gateway.log()


def test_a_slow_reader_is_not_idle(site):
    """timeouts.keep_alive counts from when the answer is out, not before."""
    one = site({"limits": {"response_body": "16MiB"}, "timeouts": {"keep_alive": "1s"}})
    size = 12 << 20
    with one.gateway.connect(30) as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.send(one.gateway.request("POST", "/pay", behave=f"big={size}"))
        answer = wire.head()
        got = 0
        try:
            for n, piece in enumerate(wire.body_pieces(answer, "POST")):
                got += len(piece)
                if n < 30:
                    time.sleep(0.1)
        except (Closed, ConnectionError):
            got = "cut off"
    assert got == size


def test_room_for_one_body(site):
    """A body that limits.request_body allows is not refused for ever by limits.bodies."""
    one = site({"limits": {"bodies": "1MiB", "request_body": "1MiB"}})
    answer = one.gateway.post(body=b"x" * 900000)
    assert answer.status == 200, answer


def test_drain_under_a_slow_reader(site):
    """SIGTERM does not cut an answer that is still on its way to a kept-alive client."""
    one = site({"limits": {"response_body": "16MiB"}})
    size = 12 << 20
    with one.gateway.connect(30) as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        wire.send(one.gateway.request("POST", "/pay", behave=f"big={size}"))
        answer = wire.head()
        one.gateway.signal(signal.SIGTERM)
        one.gateway.wait_log("event=draining")
        got = 0
        try:
            for n, piece in enumerate(wire.body_pieces(answer, "POST")):
                got += len(piece)
                if n < 10:
                    time.sleep(0.1)
        except (Closed, ConnectionError):
            got = "cut off"
    assert got == size
    assert one.gateway.wait(30) == 0


def test_an_event_stream_whose_client_is_gone(site):
    """A client that closes while the upstream is silent gives its upstream connection back."""
    one = site({"loops": 1, "limits": {"upstream_connections": 1}, "timeouts": {"idle": "0s", "send": "1s"}})
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("GET", "/ev", behave="sse=silent"))
        wire.head()
    check.until(lambda: one.gateway.get("/x").status == 200, "the upstream can be reached again", 10)
    one.provider.gate("silent").release(3)


# ---- everything at once ----

STORM_SECONDS = float(os.environ.get("HAPAX_STORM_SECONDS", "5"))
STORM_CLIENTS = int(os.environ.get("HAPAX_STORM_CLIENTS", "60"))
MOODS = ["", "", "", "", "delay=0.05", "chunked", "close", "1xx", "big=200000", "big=1500000", "reset=before",
         "reset=after", "half-body", "no-answer", "status=500", "status=429", "status=401", "status=502",
         "status=503; header=Retry-After:1", "raw=rubbish", "early; status=400", "status=204"]


class Storm:
    """Clients without manners before an upstream without manners; what they
    were told is kept for the judgement."""

    def __init__(self, one, seed):
        self.one = one
        self.random = random.Random(seed)
        self.keys = [new_key() for _ in range(400)]
        self.told = collections.defaultdict(set)
        self.wrong = []
        self.end = time.monotonic() + STORM_SECONDS

    def run(self):
        threads = [threading.Thread(target=self.client, args=(self.random.random(),))
                   for _ in range(STORM_CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def client(self, seed):
        dice = random.Random(seed)
        while time.monotonic() < self.end:
            try:
                with self.one.gateway.connect(10) as wire:
                    self.visit(dice, wire)
            except (OSError, Closed):
                continue
            except Exception as failure:  # pylint: disable=broad-except
                self.wrong.append(repr(failure))

    def visit(self, dice, wire):
        for _ in range(dice.randrange(1, 6)):
            what = dice.random()
            if what < 0.6:
                self.guarded(dice, wire)
            elif what < 0.75:
                wire.send(self.one.gateway.request("GET", "/x", behave=dice.choice(MOODS)))
                wire.answer("GET")
            elif what < 0.85:
                data = self.one.gateway.request("POST", "/pay", key=dice.choice(self.keys))
                wire.send(data[:dice.randrange(len(data))])
                return self.leave(dice, wire)
            elif what < 0.93:
                wire.send(self.one.gateway.request("POST", "/pay", key=dice.choice(self.keys),
                                                   behave=dice.choice(MOODS)) * 2)
                return self.leave(dice, wire)
            else:
                wire.send(dice.choice([b"rubbish\r\n\r\n", b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
                                       self.one.gateway.request("POST", "/pay", key=None)]))
                wire.answer("POST")
        return None

    @staticmethod
    def leave(dice, wire):
        if dice.random() < 0.5:
            abort(wire)

    def guarded(self, dice, wire):
        key = dice.choice(self.keys)
        wire.send(self.one.gateway.request("POST", "/pay", key=key, behave=dice.choice(MOODS)))
        answer = wire.answer("POST")
        if 200 <= answer.status < 300:
            self.told[key].add((answer["Hapax-Operation"], answer.status, hash(answer.body)))


def test_storm(site):
    """Many clients that abort, pipeline, retry and talk rubbish before an
    upstream that fails in every way: at most one effect for each key, exactly
    one where anybody saw success, one answer for each key, and nothing stays."""
    one = site({"timeouts": {"first_byte": "500ms", "idle": "500ms", "whole": "3s", "head": "2s", "body": "2s"},
                "defaults": {"lease": "2s", "concurrent": "wait", "wait": "300ms"}})
    one.provider.raws["rubbish"] = b"HTTP/9.9 what\r\n\r\n"
    storm = Storm(one, 1)
    storm.run()
    check.until(lambda: is_quiet(one.gateway), "everything is given back", 40)
    check.until(lambda: one.gateway.metrics()['hapax_operations{state="in_progress"}'] == 0,
                "nothing is in progress", 40)
    effects = collections.Counter(line[2] for line in one.provider.ledger())
    assert {k: n for k, n in effects.items() if n > 1} == {}
    assert {k: v for k, v in storm.told.items() if len(v) > 1} == {}
    assert {k for k in storm.told if effects[k] != 1} == set()
    assert storm.wrong == []
    assert sum(effects.values()) > 10, "the storm did nothing"
