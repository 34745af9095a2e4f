"""Shows what becomes of an operation after each way in which TLS towards the upstream can
end, row by row of the table in docs/guide/tls.md. The ledger is what the upstream has read
whole: what is not in it cannot have been executed."""
import socket
import ssl
import struct
import threading

import pytest

from harness import check, secret
from harness.external_tls import Authority, MemoryTls, server_context
from harness.gateway import Gateway

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone"
OPEN_ENDED = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ndone"
HALF = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"
CHUNKED_HALF = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"
NOT_EXECUTED, UNKNOWN, ANSWERED = "not executed", "unknown", "answered"


def reset(sock):
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class Upstream:
    """A TLS server with a ledger. `act(upstream, sock)` gets each connection."""

    def __init__(self, act, context=None):
        self.act, self.context, self.ledger = act, context, []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.settimeout(20)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            self.act(self, sock)
        except OSError:
            pass
        finally:
            sock.close()

    def open(self, sock):
        return self.context.wrap_socket(sock, server_side=True)

    def read(self, tls):
        """One whole request, into the ledger."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self.more(tls)
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                      if line.lower().startswith(b"content-length:"))
        while len(body) < length:
            body += self.more(tls)
        self.ledger.append(head)

    @staticmethod
    def more(tls):
        piece = tls.recv(65536)
        if not piece:
            raise ConnectionError("the request is not whole")
        return piece

    def close(self):
        self.listener.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def good(authority):
    return server_context(*authority.certificate())


@pytest.fixture
def run(tmp_path, authority):
    """Starts an upstream that does `act`, and a gateway before it."""
    made = []

    def start(act, context=None, **tls):
        upstream = Upstream(act, context)
        gateway = Gateway(tmp_path, f"https://localhost:{upstream.port}",
                          {"upstream_tls": {"ca": authority.ca_file, **tls},
                           "timeouts": {"connect": "1s", "first_byte": "1s", "idle": "1s"}}).start()
        made.extend((gateway.stop, upstream.close))
        return gateway, upstream
    yield start
    for end in made:
        end()


def judge(gateway, upstream, outcome, timed_out=False):
    """The first answer, what a retry gets, and the ledger."""
    key = secret.new_key()
    first = gateway.post(key=key)
    before = len(upstream.ledger)
    second = gateway.post(key=key)
    executed = len(upstream.ledger)
    if outcome == NOT_EXECUTED:
        assert first.status == 502 and first.json()["code"] == "upstream_unreachable", first
        assert first.json()["executed"] == "no"
        assert before == 0 and second.json()["code"] == "upstream_unreachable", (before, second)
    elif outcome == UNKNOWN:
        assert first.status == (504 if timed_out else 502), first
        assert first.json()["code"] == "upstream_outcome_unknown"
        assert second.status == 409 and second.json()["code"] == "idempotency_outcome_unknown", second
        assert executed == before, "the retry reached the upstream"
    else:
        assert first.status == 200 and first.body == b"done", first
        assert second.status == 200 and second.replayed and second.body == b"done", second
        assert executed == before == 1
    return first


# ---- the handshake ----

@pytest.mark.parametrize("kind, reason", [
    ("expired", "has expired"), ("other name", "another name"), ("unknown authority", "trusted authority"),
])
def test_bad_certificate(run, authority, tmp_path, kind, reason):
    """A certificate that cannot be verified: no byte of the request leaves."""
    if kind == "unknown authority":
        pair = Authority(tmp_path / "other").certificate()
    elif kind == "expired":
        pair = authority.certificate("expired", days=-1)
    else:
        pair = authority.certificate("other", names="DNS:other.test")
    gateway, upstream = run(lambda self, sock: self.read(self.open(sock)), server_context(*pair))
    judge(gateway, upstream, NOT_EXECUTED)
    gateway.wait_log(rf"event=upstream_down.*{reason}")
    assert gateway.metrics()['hapax_tls_handshakes_total{place="upstream",result="certificate_refused"}'] >= 2


def test_only_tls_1_1(run, authority):
    """A peer that speaks TLS 1.1 at most."""
    context = server_context(*authority.certificate("old"))
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    gateway, upstream = run(lambda self, sock: self.read(self.open(sock)), context)
    judge(gateway, upstream, NOT_EXECUTED)
    assert gateway.metrics()['hapax_tls_handshakes_total{place="upstream",result="no_common_version"}'] >= 2


def test_no_common_cipher(run, authority):
    """A peer whose only cipher is none that hapax offers."""
    context = server_context(*authority.certificate("narrow"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES256-SHA")
    gateway, upstream = run(lambda self, sock: self.read(self.open(sock)), context)
    judge(gateway, upstream, NOT_EXECUTED)
    assert gateway.metrics()['hapax_tls_handshakes_total{place="upstream",result="no_common_parameter"}'] >= 2


def plain_http(self, sock):
    sock.recv(65536)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def end_in_handshake(self, sock):
    sock.recv(65536)


def reset_in_handshake(self, sock):
    sock.recv(65536)
    reset(sock)


def half_a_record(self, sock):
    sock.recv(65536)
    sock.sendall(b"\x16\x03\x03\x00\x7a\x02\x00")


def silence(self, sock):
    while sock.recv(65536):
        pass


@pytest.mark.parametrize("act, result", [
    (plain_http, "not_tls"), (end_in_handshake, "closed"), (reset_in_handshake, "closed"),
    (half_a_record, "closed"), (silence, "closed"),
])
def test_handshake_ends(run, act, result):
    """Whatever ends the handshake, nothing was executed."""
    gateway, upstream = run(act)
    judge(gateway, upstream, NOT_EXECUTED)
    assert gateway.metrics()[f'hapax_tls_handshakes_total{{place="upstream",result="{result}"}}'] >= 2


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("shown", ["none", "of an unknown authority"])
def test_our_certificate_is_refused(run, authority, tmp_path, version, shown):
    """The upstream wants a certificate and gets none, or one that it does not trust. With TLS
    1.3 the refusal comes when the request has left; its server has read none of it."""
    context = server_context(*authority.certificate("strict"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca_file)
    context.minimum_version = context.maximum_version = version
    tls = {}
    if shown != "none":
        tls["certificate"], tls["key"] = Authority(tmp_path / "other").client()
    gateway, upstream = run(lambda self, sock: self.read(self.open(sock)), context, **tls)
    judge(gateway, upstream, NOT_EXECUTED)


def test_our_certificate_is_taken(run, authority):
    """The other way round: with a certificate that it trusts, the request is executed."""
    context = server_context(*authority.certificate("strict2"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.ca_file)
    certificate, key = authority.client()

    def act(self, sock):
        tls = self.open(sock)
        self.read(tls)
        tls.sendall(ANSWER)
        tls.unwrap()
    gateway, upstream = run(act, context, certificate=certificate, key=key)
    judge(gateway, upstream, ANSWERED)


# ---- the answer ----

def answering(data, end):
    """Reads the request, sends `data`, and ends the connection in this way."""
    def act(self, sock):
        tls = self.open(sock)
        self.read(tls)
        tls.sendall(data)
        if end == "close_notify":
            try:
                tls.unwrap()
            except OSError:
                pass
        elif end == "reset":
            reset(tls)
        elif end == "garbage":
            raw = socket.socket(fileno=tls.detach())
            raw.sendall(b"\x17\x03\x03\x00\x20" + b"\xaa" * 32)
            raw.close()
        elif end == "plain":
            raw = socket.socket(fileno=tls.detach())
            raw.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
            raw.close()
        elif end == "silence":
            while tls.recv(65536):
                pass
        tls.close()
    return act


@pytest.mark.parametrize("data", [ANSWER, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndone\r\n0\r\n\r\n"],
                         ids=["length", "chunked"])
@pytest.mark.parametrize("end", ["close_notify", "end", "reset", "garbage"])
def test_whole_answer(run, good, data, end):
    """An answer that says itself that it is whole, is, whatever comes behind it."""
    gateway, upstream = run(answering(data, end), good)
    judge(gateway, upstream, ANSWERED)


@pytest.mark.parametrize("end, outcome", [
    ("close_notify", ANSWERED), ("end", UNKNOWN), ("reset", UNKNOWN), ("garbage", UNKNOWN),
])
def test_answer_without_length(run, good, end, outcome):
    """Only close_notify proves that an answer without a length was not cut."""
    gateway, upstream = run(answering(OPEN_ENDED, end), good)
    judge(gateway, upstream, outcome)


@pytest.mark.parametrize("data", [b"", HALF, CHUNKED_HALF, b"HTTP/1.1 200 OK\r\nConte"],
                         ids=["nothing", "half", "chunked", "head"])
@pytest.mark.parametrize("end", ["close_notify", "end", "reset", "garbage", "plain"])
def test_no_whole_answer(run, good, data, end):
    """The request has left, and no whole answer came: unknown, and never sent again."""
    gateway, upstream = run(answering(data, end), good)
    judge(gateway, upstream, UNKNOWN)
    assert len(upstream.ledger) == 1


@pytest.mark.parametrize("data", [b"", HALF], ids=["nothing", "half"])
def test_alert_behind_the_request(run, good, data):
    """An alert of the upstream, once the request has left, says nothing of what it did."""
    def act(self, sock):
        tls = MemoryTls(sock, self.context, server_side=True)
        self.read(tls)
        if data:
            tls.sendall(data)
        tls.alert()
    gateway, upstream = run(act, good)
    judge(gateway, upstream, UNKNOWN)
    assert len(upstream.ledger) == 1


@pytest.mark.parametrize("data", [b"", HALF], ids=["nothing", "half"])
def test_silence_behind_the_request(run, good, data):
    gateway, upstream = run(answering(data, "silence"), good)
    judge(gateway, upstream, UNKNOWN, timed_out=True)
    assert len(upstream.ledger) == 1


def test_a_large_request_is_cut_in_the_middle(run, good):
    """The upstream stops reading in the middle of the body: bytes have left."""
    def act(self, sock):
        tls = self.open(sock)
        tls.recv(1000)
        reset(tls)
    gateway, upstream = run(act, good)
    first = gateway.post(body=b'{"x": "' + b"a" * 900_000 + b'"}')
    assert first.status == 502 and first.json()["code"] == "upstream_outcome_unknown", first
    assert upstream.ledger == []


def test_kept_connections_and_sessions(run, good):
    """Connections are kept; a new one resumes the session; tickets are no stray bytes."""
    connections = []

    def act(self, sock):
        connections.append(sock)
        tls = self.open(sock)
        for _ in range(10):
            self.read(tls)
            tls.sendall(ANSWER)
    gateway, upstream = run(act, good)

    def opened():
        """How many connections forty requests open."""
        before = len(connections)
        for _ in range(40):
            assert gateway.post().status == 200
        return len(connections) - before
    # Until a new upstream has been watched, a connection is used again only after a silence.
    check.until(lambda: opened() <= 20, "connections are kept")
    assert len(upstream.ledger) == gateway.metrics()['hapax_reserve_total{outcome="created"}']
    metrics = gateway.metrics()
    handshakes = [metrics[f'hapax_tls_handshakes_total{{place="upstream",result="{name}"}}']
                  for name in ("done", "resumed")]
    assert sum(handshakes) == len(connections) and handshakes[1] >= 1, handshakes
    assert not any("upstream_stray_bytes" in line for line in gateway.lines)


def test_stray_bytes_on_a_kept_connection(run, good):
    """A second answer that nobody asked for is nobody's: the next request has another connection."""
    def act(self, sock):
        tls = self.open(sock)
        self.read(tls)
        tls.sendall(ANSWER + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")
        self.more(tls)
    gateway, upstream = run(act, good)
    for _ in range(3):
        assert gateway.post().body == b"done"
    assert len(upstream.ledger) == 3
    gateway.wait_log("event=upstream_stray_bytes")
    assert gateway.metrics()["hapax_upstream_stray_total"] >= 1


def test_a_name_of_its_own(run, authority):
    """upstream_tls.name is the name that is asked for, and that the certificate must have."""
    asked = []
    context = server_context(*authority.certificate("named", names="DNS:payments.internal"))
    context.sni_callback = lambda sock, name, ctx: asked.append(name)
    gateway, upstream = run(answering(ANSWER, "close_notify"), context, name="payments.internal")
    judge(gateway, upstream, ANSWERED)
    assert set(asked) == {"payments.internal"}
