"""What every measured system is: something that is started before an upstream with
an empty store, listens on a port, and says how it is set up."""
import pathlib
import re
import subprocess

from .process import Failed, Process, accepts, free_port
from .settings import BENCH

# Enough for 256 clients to find one free nearly always, and no more than a database
# of this size likes.
POOL = 64


class System:
    """One of them. A subclass says what to start in `begin`."""
    name = ""
    title = ""
    original = None       # the system that it is, with another program
    kind = "product"      # limit, hapax, product
    replays = True        # gives a stored answer to a retry
    refuses = True        # answers a retry of what is under way with 409
    passes = False        # is a proxy: lets a GET pass
    asynchronous = None   # the path that accepts at once, where there is one
    status = 201          # of a first execution

    def __init__(self, settings, root, folder, upstream, load=None, store=None):
        self.settings, self.root, self.folder = settings, pathlib.Path(root), pathlib.Path(folder)
        self.upstream, self.load, self.store = upstream, load, store
        self.port = free_port()
        self.programs = []
        self.database = None

    def begin(self):
        raise NotImplementedError

    def start(self):
        try:
            self.begin()
        except BaseException:
            self.stop()
            raise
        return self

    def program(self, name, command, env=None, port=None):
        """Started, and listening on its port."""
        process = Process(name, command, self.folder, env)
        self.programs.append(process)
        process.wait_until(lambda: accepts(port or self.port))
        return process

    def stop(self):
        for process in reversed(self.programs):
            process.stop()
        if self.database is not None:
            self.database.stop()

    def pair(self):
        """The files of a certificate that vouches for itself, and of its key."""
        certificate, key = self.folder / "bench.pem", self.folder / "bench.key"
        if not certificate.exists():
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                            "-nodes", "-days", "30", "-subj", "/CN=bench", "-addext", "subjectAltName=IP:127.0.0.1",
                            "-keyout", key, "-out", certificate], check=True, capture_output=True)
        return certificate, key

    def path(self, path):
        """Where a path of the upstream is with this system."""
        return path

    def roots(self):
        """Its processes, by part."""
        parts = {"program": [process.pid for process in self.programs]}
        if self.database is not None:
            parts["database"] = [self.database.process.pid]
        return parts

    def described(self):
        """Its settings, as sentences for the report."""
        return [] if self.database is None else [self.database.settings()]

    def durable(self):
        """{setting: (what it is, what it must be)}, read back from what runs."""
        return {} if self.database is None else self.database.durable()

    @classmethod
    def install(cls):
        """Gets what it needs; raises Failed where that cannot be had."""


def npm(name):
    """Installs a project's packages as its lock file has them."""
    folder = BENCH / "systems" / name
    mark = folder / "node_modules" / ".package-lock.json"
    lock = folder / "package-lock.json"
    if mark.exists() and mark.stat().st_mtime >= lock.stat().st_mtime:
        return
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--engine-strict", "--no-audit", "--no-fund",
                           "--loglevel", "error"], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        # The code says enough; the rest names paths and hosts of this machine.
        found = re.search(r"code (\w+)", done.stderr)
        raise Failed(f"npm ci failed ({found.group(1) if found else 'no code'})")
    mark.touch()


def version_of(name, package):
    """Of an installed package."""
    path = BENCH / "systems" / name / "node_modules" / package / "package.json"
    if not path.exists():
        raise Failed(f"{package} is not installed")
    return path
