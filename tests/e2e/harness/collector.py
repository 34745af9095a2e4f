"""A collector of traces for tests: keeps the requests that it takes, and can be slow, refuse,
hang up or answer nonsense. And the published decoder, which reads what was kept."""
import json
import pathlib
import shutil
import socket
import subprocess
import threading
import time

FOLDER = pathlib.Path(__file__).resolve().parent / "otlp"
HTTP = "HTTP/1.1 {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}"


def answer(status="200 OK", body="{}", headers=""):
    text = HTTP.format(status, len(body), body)
    return text.replace("\r\n", "\r\n" + headers, 1).encode()


class Collector:
    """`mode` is what it does with a request: take, hold (until released), close, or the bytes of
    an answer. Every whole request is in `requests`, whatever becomes of it."""

    def __init__(self):
        self.mode, self.requests, self.heads = "take", [], []
        self.release = threading.Event()
        self.changed = threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.release.set()
        self.listener.close()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        with sock, sock.makefile("rb") as stream:
            try:
                while self.serve_one(sock, stream):
                    pass
            except OSError:
                pass

    def serve_one(self, sock, stream):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return False
            head += line
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
        body = stream.read(int(fields["Content-Length"]))
        mode = self.mode
        with self.changed:
            self.heads.append((head.decode().split("\r\n")[0], fields))
            self.requests.append(body.decode())
            self.changed.notify_all()
        if mode == "close":
            return False
        if mode == "hold":
            self.release.wait(60)
            return False
        sock.sendall(answer() if mode == "take" else mode)
        return mode == "take"

    def wait(self, happened, timeout=20):
        """Until happened(self), which is asked after every request."""
        until = time.monotonic() + timeout
        with self.changed:
            while not happened(self):
                left = until - time.monotonic()
                assert left > 0, f"the collector got {len(self.requests)} requests: {self.requests[-1:]}"
                self.changed.wait(left)

    def spans(self):
        """As they came, without a decoder."""
        return [span for request in self.requests for span in spans_of(json.loads(request))]

    def wait_spans(self, count, timeout=20):
        self.wait(lambda one: len(one.spans()) >= count, timeout)
        return self.spans()


def spans_of(request):
    return [span for resource in request["resourceSpans"] for scope in resource["scopeSpans"] for span in scope["spans"]]


def attributes(span):
    values = {one["key"]: one["value"] for one in span["attributes"]}
    return {key: value.get("stringValue", value.get("intValue")) for key, value in values.items()}


def install(folder):
    """A copy of the decoder with its packages in `folder`; what npm says where it cannot."""
    if not shutil.which("npm"):
        return "npm is not installed"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder,
                          capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"npm ci did not get the decoder: {done.stderr[-300:]}"


def decode(folder, requests):
    done = subprocess.run(["node", "decode.js"], cwd=folder, input="\n".join(one.strip() for one in requests),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
