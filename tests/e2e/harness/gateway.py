"""hapax as its user runs it: a process, a configuration file, two ports and a
log. Stopping it is a check too: it must drain, exit 0, and have kept every
secret out of its log."""
import functools
import itertools
import json
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import threading

from . import postgres, secret
from .wire import Closed, connect, request_bytes

ROOT = pathlib.Path(__file__).resolve().parents[3]
READY_SECONDS = 30
STOP_SECONDS = 40
# Below the ephemeral range, so that no outgoing connection takes a port away.
PORTS_FIRST, PORTS_LAST = 12000, 30000
PORTS_BLOCK = 400
PORTS_LOCK = threading.Lock()
SANITIZER = re.compile(r"(Address|Leak|Thread|UndefinedBehavior)Sanitizer|runtime error:")
NEW = object()
MINE = object()


def binary(steps=False):
    """The program under test; `steps`: the build that can be made to die."""
    name = "HAPAX_BIN_STEPS" if steps else "HAPAX_BIN"
    default = ROOT / ("build-steps/hapax" if steps else "build/hapax")
    return os.environ.get(name) or str(default)


def is_sanitized(path):
    """Whether this build brings a sanitizer, which multiplies its memory."""
    with open(path, "rb") as file:
        data = file.read()
    return b"__asan_init" in data or b"__tsan_init" in data


@functools.cache
def ports():
    """A block of ports that no other test process takes from, as long as this one
    lives: a port is free when it is chosen and bound a moment later, and several
    processes test at the same time. The lock is a name among abstract sockets: it is
    there for whoever shares the ports, also from a chroot, and goes with the process."""
    blocks = list(range(PORTS_FIRST, PORTS_LAST, PORTS_BLOCK))
    random.shuffle(blocks)
    for first in blocks:
        lock = socket.socket(socket.AF_UNIX)
        try:
            lock.bind(f"\0hapax-test-ports-{first}")
        except OSError:
            lock.close()
            continue
        return lock, itertools.cycle(range(first, first + PORTS_BLOCK))
    raise AssertionError("every block of ports is taken by a test process")


def free_port():
    """A port on which nobody listens."""
    while True:
        with PORTS_LOCK:
            port = next(ports()[1])
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


def merge(base, over):
    """`over` laid on `base`, tables member by member; None takes a member away."""
    result = dict(base)
    for name, value in over.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, dict) and isinstance(result.get(name), dict):
            result[name] = merge(result[name], value)
        else:
            result[name] = value
    return result


class Gateway:
    """One store in one folder, and the process that serves it, if it runs."""

    def __init__(self, folder, upstream, config=None, steps=False, wrap=()):
        self.folder = pathlib.Path(folder)
        self.program = binary(steps)
        self.wrap = list(wrap)
        self.port = free_port()
        self.admin_port = free_port()
        self.config = merge({
            "listen": f"127.0.0.1:{self.port}",
            "admin": f"127.0.0.1:{self.admin_port}",
            "upstream": upstream,
            "store": (config or {}).get("store") or postgres.store_of(str(self.folder)),
            "log_level": "debug",
        }, config or {})
        # A list of listeners is one of further ones: the plain one comes first. None comes
        # where clients must show certificates.
        if isinstance(self.config["listen"], list) and "client_ca" not in str(self.config["listen"]):
            self.config["listen"] = [f"127.0.0.1:{self.port}", *self.config["listen"]]
        # A database may be shared: who uses one says whose keys they are.
        if self.config["store"].startswith("postgres"):
            self.config.setdefault("upstream_name", "provider")
        self.process = None
        self.lines = []
        self.news = threading.Condition()
        self.ready = False

    # The process.
    @property
    def pid(self):
        return self.process.pid

    @property
    def address(self):
        listen = self.config["listen"]
        listen = f"127.0.0.1:{self.port}" if isinstance(listen, list) else listen
        return listen[len("unix:"):] if listen.startswith("unix:") else ("127.0.0.1", self.port)

    def write_config(self):
        """JSON is YAML, and nobody has to escape anything."""
        path = self.folder / "hapax.yaml"
        path.write_text(json.dumps(self.config, indent=2) + "\n")
        return str(path)

    def spawn(self, env=None):
        self.ready = False
        command = self.wrap + [self.program, "serve", "--config", self.write_config()]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env={**os.environ, **(env or {})}, cwd=self.folder)
        threading.Thread(target=self.read_log, args=(self.process,), daemon=True).start()
        return self

    def wait_ready(self, may_die=False):
        """Until it is ready, or (`may_die`, where the test has it killed) dead."""
        with self.news:
            self.news.wait_for(lambda: self.ready or self.gone(), READY_SECONDS)
        exit_code = self.process.poll()
        if not self.ready and not (may_die and exit_code == -signal.SIGKILL):
            self.kill()
            raise AssertionError(f"hapax did not get ready (exit {exit_code}):\n{self.log()}")
        return self

    def start(self, env=None):
        return self.spawn(env).wait_ready()

    def gone(self):
        return self.process.poll() is not None

    def read_log(self, process):
        for raw in process.stdout:
            line = raw.decode("utf-8", "replace").rstrip("\n")
            with self.news:
                self.lines.append(line)
                self.ready = self.ready or "event=ready" in line or '"event":"ready"' in line
                self.news.notify_all()
        process.stdout.close()
        process.wait()  # the log ends a moment before the process does
        with self.news:
            self.news.notify_all()

    def log(self):
        return "\n".join(self.lines[-200:])

    def wait_log(self, pattern, timeout=15, since=0):
        """The first line from `since` on that matches; fails with the log if none comes."""
        def found():
            return next((l for l in self.lines[since:] if re.search(pattern, l)), None)
        with self.news:
            self.news.wait_for(found, timeout)
        line = found()
        assert line, f"no log line matches {pattern!r}:\n{self.log()}"
        return line

    def events(self, name, count=1):
        """The lines of an event: so many and no more. What is logged comes a moment after what it tells."""
        def found():
            return [l for l in self.lines if f"event={name} " in l]
        with self.news:
            self.news.wait_for(lambda: len(found()) >= count, 15)
        assert len(found()) == count, f"not {count} times event={name}:\n{self.log()}"
        return found()

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=STOP_SECONDS):
        return self.process.wait(timeout)

    def kill(self):
        """As a power cut looks to everybody else."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(READY_SECONDS)

    def stop(self):
        """Drains; what a stop must leave behind is checked here."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"SIGTERM did not end it:\n{self.log()}") from None
        code, self.process = self.process.returncode, None
        self.check_log()
        assert code == 0, f"exit code {code} after SIGTERM, not 0:\n{self.log()}"

    def check_log(self):
        shown = secret.leaks(self.lines)
        assert not shown, f"the log shows a secret: {shown[:5]}"
        assert not any(SANITIZER.search(l) for l in self.lines), self.log()

    def restart(self, config=None, env=None):
        self.stop()
        self.config = merge(self.config, config or {})
        return self.start(env)

    def rss_peak(self):
        """The most memory it ever had, in bytes."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(l.split()[1]) * 1024 for l in file if l.startswith("VmHWM"))

    # Requests.
    def connect(self, timeout=15):
        return connect(self.address, timeout)

    def request(self, method, target, *, key=NEW, auth=MINE, headers=(), body=None,
                behave=None, version="HTTP/1.1"):
        """The bytes of a request. `key`: a bare key, None for none; by default
        a new one where the method changes something."""
        fields = list(headers)
        if key is NEW:
            key = secret.new_key() if method in ("POST", "PATCH") else None
        if key is not None:
            fields.append(("Idempotency-Key", key))
        if auth is MINE:
            auth = secret.ALICE
        if auth is not None:
            fields.append(("Authorization", auth))
        if behave:
            fields.append(("X-Behave", behave))
        if body is None and method in ("POST", "PATCH", "PUT"):
            body = b'{"amount": 10, "note": "s3cr3t"}'
        if body is not None and not any(n.lower() == "content-type" for n, _ in fields):
            fields.append(("Content-Type", "application/json"))
        return request_bytes(method, target, fields, body, version)

    def call(self, method, target, *, timeout=15, **how):
        """One request on its own connection, and its answer."""
        with self.connect(timeout) as wire:
            wire.send(self.request(method, target, **how))
            return wire.answer(method)

    def post(self, target="/pay", **how):
        return self.call("POST", target, **how)

    def get(self, target, **how):
        return self.call("GET", target, **how)

    def raw(self, data, timeout=15):
        """These very bytes; the first final answer. None where the connection
        ends without one."""
        with self.connect(timeout) as wire:
            try:
                wire.send(data)
            except OSError:
                pass
            try:
                return wire.answer()
            except (Closed, ConnectionError):
                return None

    def operation(self, reference, auth=MINE):
        """What /.hapax/operations/<reference> answers."""
        return self.get(f"/.hapax/operations/{reference}", auth=auth)

    def admin(self, path):
        with connect(("127.0.0.1", self.admin_port)) as wire:
            wire.send(request_bytes("GET", path, host=f"127.0.0.1:{self.admin_port}"))
            return wire.answer()

    def observed(self):
        """{would: count} of hapax_observed_total, over all routes."""
        counts = {}
        for name, value in self.metrics().items():
            if name.startswith("hapax_observed_total{"):
                would = re.search(r'would="(\w+)"', name).group(1)
                counts[would] = counts.get(would, 0) + value
        return counts

    def answered(self):
        """How many requests were answered, whatever the route and the status."""
        return sum(v for n, v in self.metrics().items() if n.startswith("hapax_requests_total{"))

    def metrics(self):
        """{'name{label="x"}': value} of every sample."""
        answer = self.admin("/metrics")
        assert answer.status == 200, answer
        samples = (l.rsplit(" ", 1) for l in answer.body.decode().splitlines()
                   if l and not l.startswith("#"))
        return {name: float(value) for name, value in samples}
