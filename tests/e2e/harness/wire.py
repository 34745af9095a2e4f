"""One end of an HTTP/1.1 connection over a blocking socket. It reads strictly,
because a test that forgives a malformed answer shows nothing."""
import json
import re
import socket

PIECE = 262144
STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9]) ?([^\r\n\0]*)")
FIELD = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*([^\r\n\0]*?)[ \t]*")


class Closed(Exception):
    """The other side ended the connection before the message was whole."""


class Malformed(Exception):
    """The other side sent something that is not HTTP/1.1."""


class Fields(list):
    """Header fields in their order, as (name, value)."""

    def all(self, name):
        return [v for n, v in self if n.lower() == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        assert len(values) <= 1, f"{name} came {len(values)} times: {values}"
        return values[0] if values else default

    def tokens(self, name):
        return [t.strip().lower() for v in self.all(name) for t in v.split(",") if t.strip()]


class Response:
    """A whole answer; `interim` holds the 1xx answers that came before it."""

    def __init__(self, version, status, fields):
        self.version = version
        self.status = status
        self.fields = fields
        self.body = b""
        self.interim = []

    def __getitem__(self, name):
        return self.fields.get(name)

    def json(self):
        return json.loads(self.body)

    @property
    def replayed(self):
        return self["Idempotent-Replayed"] == "true"

    def __repr__(self):
        return f"<{self.status} {self.fields} {self.body[:300]!r}>"


class Wire:
    """Bytes in and out of one socket, with a buffer for what came early."""

    def __init__(self, sock):
        self.sock = sock
        self.pending = b""

    def send(self, data):
        self.sock.sendall(data)

    def fill(self):
        data = self.sock.recv(PIECE)
        if not data:
            raise Closed(f"the connection ended after {self.pending[:200]!r}")
        self.pending += data

    def line(self):
        while b"\n" not in self.pending:
            if len(self.pending) > 1 << 20:
                raise Malformed("a line without an end")
            self.fill()
        line, self.pending = self.pending.split(b"\n", 1)
        if not line.endswith(b"\r"):
            raise Malformed(f"a bare LF after {line!r}")
        return line[:-1]

    def pieces(self, count):
        """Exactly `count` bytes, as they come."""
        while count > 0:
            if not self.pending:
                self.fill()
            piece, self.pending = self.pending[:count], self.pending[count:]
            count -= len(piece)
            yield piece

    def exactly(self, count):
        return b"".join(self.pieces(count))

    def fields(self):
        found = Fields()
        while True:
            line = self.line()
            if not line:
                return found
            match = FIELD.fullmatch(line)
            if not match:
                raise Malformed(f"not a header line: {line!r}")
            found.append((match[1].decode("latin-1"), match[2].decode("latin-1")))

    def chunk(self):
        """The next chunk's data, or None after the last one and its trailers."""
        size = self.line().split(b";", 1)[0]
        if not re.fullmatch(rb"[0-9A-Fa-f]+", size):
            raise Malformed(f"not a chunk size: {size!r}")
        data = self.exactly(int(size, 16))
        if not data:
            self.fields()
            return None
        if self.line() != b"":
            raise Malformed("a chunk longer than its size")
        return data

    def chunks(self):
        while (data := self.chunk()) is not None:
            yield data

    def rest(self):
        """Everything until the other side closes."""
        try:
            while True:
                self.fill()
        except Closed:
            data, self.pending = self.pending, b""
            return data

    def head(self):
        """One status line and its fields; 1xx are heads like any other."""
        line = self.line()
        match = STATUS_LINE.fullmatch(line)
        if not match:
            raise Malformed(f"not a status line: {line!r}")
        return Response(f"1.{match[1].decode()}", int(match[2]), self.fields())

    def body_pieces(self, response, method="GET"):
        """The body as it arrives; framing is checked as RFC 9112 section 6.3 has it."""
        codings = response.fields.all("Transfer-Encoding")
        length = response.fields.get("Content-Length")
        if codings and length is not None:
            raise Malformed("both Content-Length and Transfer-Encoding")
        if method == "HEAD" or response.status < 200 or response.status in (204, 304):
            return iter(())
        if codings:
            if codings != ["chunked"] or response.version == "1.0":
                raise Malformed(f"Transfer-Encoding {codings} in HTTP/{response.version}")
            return self.chunks()
        if length is not None:
            if not length.isdigit():
                raise Malformed(f"Content-Length {length!r}")
            return self.pieces(int(length))
        return iter([self.rest()])

    def answer(self, method="GET"):
        """The next final answer, whole."""
        interim = []
        response = self.head()
        while response.status < 200 and response.status != 101:
            interim.append(response)
            response = self.head()
        response.interim = interim
        response.body = b"".join(self.body_pieces(response, method))
        return response

    def ended(self):
        """Whether the other side closes, sending nothing more."""
        if self.pending:
            return False
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True
        except socket.timeout:
            return False

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def connect(address, timeout=15):
    """A Wire to ("127.0.0.1", port), or to a unix socket's path."""
    if isinstance(address, str):
        sock = socket.socket(socket.AF_UNIX)
    else:
        sock = socket.socket(socket.AF_INET)
    sock.settimeout(timeout)
    try:
        sock.connect(address)
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError:
        sock.close()
        raise
    return Wire(sock)


def request_bytes(method, target, fields=(), body=None, version="HTTP/1.1", host="api.test"):
    """A request as it goes on the wire; `body` brings its Content-Length."""
    lines = [f"{method} {target} {version}"]
    if host is not None:
        lines.append(f"Host: {host}")
    lines += [f"{name}: {value}" for name, value in fields]
    if body is not None and not any(n.lower() == "transfer-encoding" for n, _ in fields):
        lines.append(f"Content-Length: {len(body)}")
    head = "\r\n".join(lines) + "\r\n\r\n"
    return head.encode("latin-1") + (body or b"")


def chunked(*pieces, trailer=b""):
    """A chunked body of these pieces."""
    data = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces)
    return data + b"0\r\n" + trailer + b"\r\n"
