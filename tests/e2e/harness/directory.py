"""A service that says who is calling, for `tenant: {from: subrequest}`."""
import socket
import threading

from .gateway import free_port
from .wire import Closed, Malformed, Wire

ANSWER = "HTTP/1.1 {} X\r\nContent-Length: 0\r\n{}\r\n"


class Directory:
    """The service that knows the callers: credentials to (status, header lines);
    any other are 401. It can be told to hold its answers. `judge`, where it is
    set, is asked instead: fields to (status, header lines)."""

    def __init__(self):
        self.port = free_port()
        self.known = {}
        self.judge = None
        self.asked = []
        self.news = threading.Condition()
        self.open = threading.Event()
        self.open.set()
        self.listener = None
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/verify"

    def names(self, credential, tenant):
        self.known[credential] = (200, f"X-Caller: {tenant}\r\n")

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        threading.Thread(target=self.accept_all, args=(self.listener,), daemon=True).start()

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept_all(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        sock.settimeout(60)
        wire = Wire(sock)
        try:
            while True:
                line, fields = wire.line().decode(), wire.fields()
                with self.news:
                    self.asked.append((line, fields))
                    self.news.notify_all()
                self.open.wait(60)
                status, more = (self.judge or self.look_up)(fields)
                wire.send(ANSWER.format(status, more).encode())
        except (OSError, Closed, Malformed):
            sock.close()

    def look_up(self, fields):
        credential = fields.get("Authorization") or fields.get("X-Api-Key") or fields.get("Cookie")
        return self.known.get(credential, (401, ""))

    def wait_asked(self, count):
        with self.news:
            assert self.news.wait_for(lambda: len(self.asked) >= count, 15), len(self.asked)
