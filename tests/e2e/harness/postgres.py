"""A PostgreSQL of the test run's own: a cluster in a temporary folder, reached
by a unix socket only, run as an unprivileged user. It dies with the tests."""
import atexit
import ctypes
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time

START_SECONDS = 60
PR_SET_PDEATHSIG = 1


def programs():
    """Where initdb and postgres are; None where PostgreSQL is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return os.environ.get("HAPAX_PG_BIN") or (found[-1] if found else None)


def chosen():
    """Whether the suite runs on PostgreSQL: HAPAX_E2E_STORE=postgres."""
    return os.environ.get("HAPAX_E2E_STORE") == "postgres"


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


class Cluster:
    """One server; every test has a database of its own in it."""

    def __init__(self, settings=()):
        self.settings = list(settings)
        self.bin = programs()
        root = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-pg-", dir=root))
        self.who = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.process = None
        self.databases = 0
        self.lock = threading.Lock()
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "hapax", "-E", "UTF8",
                 "--locale=C", "--no-sync")
        self.start()
        atexit.register(self.close)

    @property
    def data(self):
        return str(self.folder / "data")

    def run(self, program, *arguments, **how):
        done = subprocess.run([f"{self.bin}/{program}", *arguments], capture_output=True, text=True,
                              check=False, cwd=self.folder, **{**self.who, **how})
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self):
        settings = ["listen_addresses=", "shared_buffers=64MB", "max_connections=200",
                    "log_min_messages=fatal", *self.settings]
        command = [f"{self.bin}/postgres", "-D", self.data, "-k", str(self.folder)]
        for setting in settings:
            command += ["-c", setting]
        with open(self.folder / "postgres.log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder, preexec_fn=die_with_parent, **self.who)
        end = time.monotonic() + START_SECONDS
        while subprocess.run([f"{self.bin}/pg_isready", "-q", "-h", str(self.folder)],
                             check=False).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < end, self.log()
            time.sleep(0.02)

    def stop(self, how=signal.SIGINT):
        """SIGINT: fast; SIGQUIT: immediate, as a crash looks."""
        if self.process is None:
            return
        self.process.send_signal(how)
        self.process.wait(START_SECONDS)
        self.process = None

    def close(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        return (self.folder / "postgres.log").read_text(errors="replace")[-4000:]

    def sql(self, text, database="postgres"):
        """Rows as text, columns between |."""
        out = self.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h",
                       str(self.folder), "-U", "hapax", "-d", database, "-c", text)
        return out.splitlines()

    def application(self, database):
        """A session of an application's, which reads SQL line by line."""
        return subprocess.Popen([f"{self.bin}/psql", "-X", "-q", "-A", "-t", "-h", str(self.folder),
                                 "-U", "hapax", "-d", database], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, bufsize=1, cwd=self.folder, **self.who)

    def database(self):
        """A new, empty one."""
        with self.lock:
            self.databases += 1
            name = f"test{self.databases}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE template0")
        return name

    def url(self, database):
        return f"postgres://hapax@/{database}?host={self.folder}"


SHARED = []
STORES = {}


def shared():
    """The cluster of the whole run."""
    if not SHARED:
        SHARED.append(Cluster())
    return SHARED[0]


def store_of(folder):
    """The store of the gateway that lives in this folder; the same again for
    the next that lives there."""
    if not chosen():
        return f"sqlite:{folder}/hapax.db"
    if folder not in STORES:
        STORES[folder] = shared().url(shared().database())
    return STORES[folder]
