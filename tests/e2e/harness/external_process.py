"""The external service as a process of its own: python3 -m harness.external_process
FOLDER. It reads FOLDER/external.json, writes FOLDER/ledger.db, listens for HTTP,
for HTTPS, and on a control port, where a line of JSON is a command and its answer
is another. It ends when its standard input does, so that it outlives no test."""
import json
import os
import pathlib
import socket
import sys
import threading

from . import external_webhooks
from .external_exchange import exchange
from .external_ledger import Book
from .external_tls import server_context
from .provider import Provider
from .wire import Closed, Malformed, Wire


class Gates:
    """Where requests are held until the test lets one go on per permit."""

    def __init__(self):
        self.lock = threading.Lock()
        self.permits = {}

    def permit(self, name):
        with self.lock:
            return self.permits.setdefault(name, threading.Semaphore(0))

    def pass_through(self, name):
        self.permit(name).acquire()


class Door:
    """A listening port that can be closed, so that connections are refused, and
    opened again."""

    def __init__(self, port, serve):
        self.port = port
        self.serve = serve
        self.listener = None

    def open(self):
        if self.listener:
            return
        self.listener = socket.socket(socket.AF_INET)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.port))
        self.listener.listen(512)
        threading.Thread(target=self.accept_all, args=(self.listener,), daemon=True).start()

    def close(self):
        if self.listener:
            self.listener.shutdown(socket.SHUT_RDWR)
            self.listener.close()
            self.listener = None

    def accept_all(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()


class Process:
    """Everything that the threads share."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.settings = {}
        self.gates = Gates()
        self.book = Book(self.folder / "ledger.db")
        self.reload()
        self.doors = [Door(self.settings["port"], self.serve)]
        if self.settings["certificate"]:
            self.tls = server_context(*self.settings["certificate"])
            self.doors.append(Door(self.settings["tls_port"], self.serve_tls))
        self.control = Door(self.settings["control_port"], self.obey_all)

    def reload(self):
        self.settings = json.loads((self.folder / "external.json").read_text())
        self.book.shift_ms = self.settings["clock_shift_ms"]

    def start(self):
        for door in self.doors + [self.control]:
            door.open()

    # Requests.
    def serve(self, sock):
        wire = Wire(sock)
        try:
            sock.settimeout(120)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while exchange(self, wire, Provider.read_head, Provider.read_body):
                pass
        except (OSError, Closed, Malformed, ValueError):
            pass  # whoever hung up, or spoke no HTTP, is in the ledger if it got that far
        finally:
            wire.sock.close()

    def serve_tls(self, sock):
        try:
            sock.settimeout(30)
            secured = self.tls.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()
            return
        self.serve(secured)

    # Control.
    def obey_all(self, sock):
        """One command per connection."""
        with sock, sock.makefile("r", encoding="utf-8") as lines:
            command = json.loads(lines.readline())
            answer = getattr(self, f"do_{command.pop('do')}")(**command)
            sock.sendall(json.dumps(answer).encode() + b"\n")

    def do_reload(self):
        self.reload()

    def do_release(self, gate, count):
        self.gates.permit(gate).release(count)

    def do_wait(self, since, seconds):
        return self.book.wait_news(since, seconds)

    def do_forget(self, key):
        self.book.forget(key)

    def do_state(self, effect, state):
        self.book.set_state(effect, state)

    def do_doors(self, is_open):
        for door in self.doors:
            if is_open:
                door.open()
            else:
                door.close()

    def do_webhook(self, hook, twist, effect, state, operation):
        """Webhooks of an effect, or of one that never was; the statuses told."""
        hook = external_webhooks.Hook(**hook)
        answers = external_webhooks.deliver(
            hook, twist, effect, state, operation,
            lambda event, told: self.book.sent_webhook(event, effect, twist, hook.url, told))
        return [answer and answer.status for answer in answers]


def main():
    Process(sys.argv[1]).start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
