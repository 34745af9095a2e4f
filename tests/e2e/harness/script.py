"""A server that does what a list says, one act for each connection, and keeps the
bytes of every request: what a client's retries are judged by."""
import socket
import struct
import threading

# Acts besides the bytes of an answer, which are sent behind the whole request.
DEAF = "deaf"       # closes before anything is read
CLOSE = "close"     # reads the whole request, then closes
RESET = "reset"     # the same, with a reset
HOLD = "hold"       # reads the request and says nothing until release()


def answer(status, body=b"", **fields):
    """The bytes of an answer; `Retry_After=1` is Retry-After: 1."""
    lines = [f"HTTP/1.1 {status} Because", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


class Script:
    """Behind its last act nobody is answered any more: connections are closed. `tls`: a context,
    or a list with one for each connection, of which the last serves the rest."""

    def __init__(self, *acts, tls=None):
        self.acts = list(acts)
        self.contexts = tls if isinstance(tls, list) else [tls]
        self.requests = []
        self.connections = 0
        self.news = threading.Condition()
        self.released = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"{'https' if self.contexts[0] else 'http'}://127.0.0.1:{self.port}/pay"

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self.news:
                self.connections += 1
                act = self.acts.pop(0) if self.acts else DEAF
                tls = self.contexts[min(self.connections, len(self.contexts)) - 1]
            threading.Thread(target=self.serve, args=(sock, act, tls), daemon=True).start()

    def serve(self, sock, act, tls):
        with sock:
            sock.settimeout(30)
            try:
                self.perform(tls.wrap_socket(sock, server_side=True) if tls else sock, act)
            except OSError:
                return

    def perform(self, sock, act):
        if act == DEAF:
            return
        request = self.read(sock)
        with self.news:
            self.requests.append(request)
            self.news.notify_all()
        if act == RESET:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif act == HOLD:
            self.released.wait(30)
        elif act != CLOSE:
            sock.sendall(act)
        sock.close()

    @staticmethod
    def read(sock):
        data = b""
        while b"\r\n\r\n" not in data:
            data += Script.more(sock)
        head, _, body = data.partition(b"\r\n\r\n")
        length = [int(line.split(b":")[1]) for line in head.split(b"\r\n")
                  if line.lower().startswith(b"content-length:")]
        while len(body) < sum(length):
            body += Script.more(sock)
        return head + b"\r\n\r\n" + body

    @staticmethod
    def more(sock):
        piece = sock.recv(65536)
        if not piece:
            raise ConnectionError("the request is not whole")
        return piece

    def wait_requests(self, count, timeout=20):
        with self.news:
            assert self.news.wait_for(lambda: len(self.requests) >= count, timeout), \
                f"{len(self.requests)} requests came, not {count}"

    def release(self):
        self.released.set()

    def close(self):
        self.release()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
