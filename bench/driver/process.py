"""Processes that the benchmark starts, and their end: whatever happens to the
benchmark, none of them outlives it."""
import contextlib
import ctypes
import os
import pwd
import random
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import pathlib

PR_SET_PDEATHSIG = 1
START_SECONDS = 60
STOP_SECONDS = 5
# Below the range that the kernel takes for outgoing connections, and above the
# ports of the tests, which may run at the same time.
PORTS = range(30000, 32000)

LIBC = ctypes.CDLL(None)


class Failed(Exception):
    """A system did not do what it was started for."""


def die_with_parent():
    """A signal that lets a server end its own children."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def free_port():
    for _ in range(1000):
        port = random.choice(PORTS)
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", port))
                return port
    raise Failed("no port is free")


def unprivileged():
    """How a program that refuses to run as root is started."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class Process:
    """One program, with its output in a file."""

    def __init__(self, name, command, folder, env=None, **how):
        self.name = name
        self.log = pathlib.Path(folder) / f"{name}.log"
        with open(self.log, "ab") as log:
            self.handle = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log, cwd=folder, preexec_fn=die_with_parent,
                                           env={**os.environ, **(env or {})}, **how)

    @property
    def pid(self):
        return self.handle.pid

    def tail(self):
        return self.log.read_text(errors="replace")[-1500:].strip()

    def wait_until(self, is_ready, seconds=START_SECONDS):
        """Until it is; a program that ends before that has failed."""
        end = time.monotonic() + seconds
        while not is_ready():
            if self.handle.poll() is not None:
                raise Failed(f"{self.name} ended with {self.handle.returncode}: {self.tail()}")
            if time.monotonic() > end:
                raise Failed(f"{self.name} is not ready after {seconds} s: {self.tail()}")
            time.sleep(0.02)

    def stop(self, how=signal.SIGTERM, seconds=STOP_SECONDS):
        if self.handle.poll() is not None:
            return
        self.handle.send_signal(how)
        try:
            self.handle.wait(seconds)
        except subprocess.TimeoutExpired:
            self.handle.kill()
            self.handle.wait()


def accepts(port):
    """Whether somebody listens there."""
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def raise_file_limit():
    """As many open files as may be had; whatever is started inherits it."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


@contextlib.contextmanager
def temporary(parent, prefix):
    """A folder that everybody may enter (PostgreSQL is another user), and that is gone after."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run(command, **how):
    """Runs to its end and gives what it printed; a failure is told with its last words."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **how)
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip()
        raise Failed(f"{pathlib.Path(str(command[0])).name}: {words[-800:]}")
    return done.stdout
