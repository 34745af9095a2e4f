"""The upstream of every test: a payments API that never forgets a side effect.
Each one is a line in its ledger, appended in one write; it keeps no keys of its
own, so whatever hapax sends twice happens twice. How a request is answered is
said by its X-Behave header (behave.py) and by gates that the test opens."""
import hashlib
import os
import socket
import threading

from .behave import Behaviour
from .wire import Closed, Fields, Malformed, Wire

BODY_KEPT = 4 << 20
UNSAFE = ("POST", "PATCH", "PUT", "DELETE")


class Gate:
    """Where an answer is held: the test learns that the request is there, and
    lets it go on, once per permit."""

    def __init__(self):
        self.arrived = threading.Event()
        self.permits = threading.Semaphore(0)

    def wait_arrived(self, timeout=15):
        assert self.arrived.wait(timeout), "the request never reached the provider"

    def release(self, count=1):
        self.permits.release(count)

    def pass_through(self):
        self.arrived.set()
        self.permits.acquire(timeout=60)


class Request:
    """What reached the provider; bodies above BODY_KEPT are only counted and hashed."""

    def __init__(self, method, target, version, fields):
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
        self.body = b""
        self.size = 0
        self.digest = hashlib.sha256()
        self.trailers = Fields()

    def __getitem__(self, name):
        return self.fields.get(name)

    def take(self, piece):
        self.size += len(piece)
        self.digest.update(piece)
        if self.size <= BODY_KEPT:
            self.body += piece

    def __repr__(self):
        return f"<{self.method} {self.target} {self.fields} {self.size} bytes>"


class Provider:
    """Listens on a loopback port, or on a unix socket where `path` is given."""

    def __init__(self, ledger_path, path=None):
        self.ledger_path = str(ledger_path)
        self.path = str(path) if path else None
        self.lock = threading.Lock()
        self.requests = []
        self.connections = 0
        self.bytes_sent = 0
        self.gates = {}
        self.bodies = {}
        self.raws = {}
        self.serial = 0
        self.port = 0
        self.open_sockets = set()
        self.ledger_fd = os.open(self.ledger_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.listener = None
        self.start()

    # The test's side.
    @property
    def url(self):
        return f"unix:{self.path}" if self.path else f"http://127.0.0.1:{self.port}"

    def gate(self, name):
        with self.lock:
            return self.gates.setdefault(name, Gate())

    def seen(self, path=None, key=None):
        """The requests that came, in their order, of one path or one key."""
        with self.lock:
            found = list(self.requests)
        if path is not None:
            found = [r for r in found if r.target.split("?")[0] == path]
        if key is not None:
            found = [r for r in found if (r["Idempotency-Key"] or "").strip('"') == key]
        return found

    def ledger(self, key=None):
        """The side effects so far: (operation, attempt, key, body hash)."""
        with open(self.ledger_path, encoding="latin-1") as file:
            lines = [tuple(line.rstrip("\n").split("\t")) for line in file]
        return [line for line in lines if key is None or line[2].strip('"') == key]

    def start(self):
        if self.path:
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(self.path)
        else:
            self.listener = socket.socket(socket.AF_INET)
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.listener.bind(("127.0.0.1", self.port))
            self.port = self.listener.getsockname()[1]
        self.listener.listen(512)
        threading.Thread(target=self.accept_all, args=(self.listener,), daemon=True).start()

    def stop(self):
        """Connections are refused from here on, and the open ones end."""
        if self.listener is None:
            return
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.listener = None
        if self.path:
            os.unlink(self.path)
        self.drop_connections()

    def drop_connections(self):
        with self.lock:
            sockets = list(self.open_sockets)
        for sock in sockets:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue

    def close(self):
        self.stop()
        for gate in list(self.gates.values()):
            gate.release(1000)
        os.close(self.ledger_fd)

    # The provider's side.
    def accept_all(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.open_sockets.add(sock)
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        sock.settimeout(120)
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire = Wire(sock)
        try:
            while self.serve_one(wire):
                pass
        except (OSError, Closed, Malformed):
            pass
        finally:
            with self.lock:
                self.open_sockets.discard(sock)
            sock.close()

    def serve_one(self, wire):
        request = self.read_head(wire)
        behaviour = Behaviour(self, request)
        with self.lock:
            self.requests.append(request)
        if not behaviour.early:
            self.read_body(wire, request)
        return behaviour.answer(wire)

    @staticmethod
    def read_head(wire):
        line = wire.line().decode("latin-1")
        method, target, version = line.split(" ")
        return Request(method, target, version, wire.fields())

    @staticmethod
    def read_body(wire, request):
        if (request["Expect"] or "").lower() == "100-continue":
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if request.fields.tokens("Transfer-Encoding"):
            for piece in wire.chunks():
                request.take(piece)
        for piece in wire.pieces(int(request["Content-Length"] or 0)):
            request.take(piece)

    def effect(self, request):
        """The thing that must happen once."""
        line = "\t".join((request["Hapax-Operation"] or "-", request["Hapax-Attempt"] or "-",
                          request["Idempotency-Key"] or "-", request.digest.hexdigest()[:16]))
        os.write(self.ledger_fd, (line + "\n").encode("latin-1"))

    def next_serial(self):
        with self.lock:
            self.serial += 1
            return self.serial
