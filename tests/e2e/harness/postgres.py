"""A PostgreSQL of the test run's own: a cluster in a temporary folder, reached
by a unix socket (and by a loopback port, where it is given one), run as an
unprivileged user. It dies with the tests."""
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
DEFAULT_PORT = 5432
PR_SET_PDEATHSIG = 1
IPC_RMID = 0
ROOM = 2 << 30


def programs():
    """Where initdb and postgres are; None where PostgreSQL is not installed."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    return os.environ.get("HAPAX_PG_BIN") or (found[-1] if found else None)


def chosen():
    """Whether the suite runs on PostgreSQL: HAPAX_E2E_STORE=postgres."""
    return os.environ.get("HAPAX_E2E_STORE") == "postgres"


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def memory():
    """/dev/shm, where it has room for the clusters of several test processes; a
    container's has 64 MB as a rule."""
    if not os.access("/dev/shm", os.W_OK):
        return None
    room = os.statvfs("/dev/shm")
    return "/dev/shm" if room.f_bavail * room.f_frsize >= ROOM else None


class Cluster:
    """One server; every test has a database of its own in it."""

    def __init__(self, settings=(), port=None):
        self.settings = list(settings)
        self.port = port
        self.bin = programs()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="hapax-pg-", dir=memory()))
        self.who = {}
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.process = None
        self.frozen = False
        self.databases = 0
        self.has_gateway = False
        self.lock = threading.Lock()
        atexit.register(self.close)
        self.make()
        self.start()

    def make(self):
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "hapax", "-E", "UTF8",
                 "--locale=C", "--no-sync")

    @property
    def data(self):
        return str(self.folder / "data")

    @property
    def where(self):
        return ["-h", str(self.folder), "-p", str(self.port or DEFAULT_PORT)]

    def run(self, program, *arguments, **how):
        done = subprocess.run([f"{self.bin}/{program}", *arguments], capture_output=True, text=True,
                              check=False, cwd=self.folder, **{**self.who, **how})
        assert done.returncode == 0, \
            f"{self.bin}/{program} in {self.folder} (exit {done.returncode}):\n{done.stdout}{done.stderr}"
        return done.stdout

    def start(self):
        settings = [f"listen_addresses={'127.0.0.1' if self.port else ''}",
                    f"port={self.port or DEFAULT_PORT}", "shared_buffers=64MB",
                    "max_connections=200", "log_min_messages=fatal",
                    "dynamic_shared_memory_type=mmap", *self.settings]
        command = [f"{self.bin}/postgres", "-D", self.data, "-k", str(self.folder)]
        for setting in settings:
            command += ["-c", setting]
        self.frozen = False
        with open(self.folder / "postgres.log", "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            cwd=self.folder, preexec_fn=die_with_parent, **self.who)
        end = time.monotonic() + START_SECONDS
        while subprocess.run([f"{self.bin}/pg_isready", "-q", *self.where], check=False).returncode != 0:
            assert self.process.poll() is None and time.monotonic() < end, \
                f"PostgreSQL did not start (exit {self.process.poll()}); {self.folder}/postgres.log:\n{self.log()}"
            time.sleep(0.02)

    def stop(self, how=signal.SIGINT):
        """SIGINT: fast; SIGQUIT: immediate, as a crash looks."""
        if self.process is None:
            return
        self.process.send_signal(how)
        self.process.wait(START_SECONDS)
        self.process = None

    def pids(self):
        """Its processes, the first one first."""
        first = self.process.pid
        children = pathlib.Path(f"/proc/{first}/task/{first}/children").read_text(encoding="ascii")
        return [first, *map(int, children.split())]

    def freeze(self):
        """Nothing of it goes on, and nobody is told. The first one before it
        could see what becomes of the others."""
        if self.frozen:
            return
        self.frozen = True
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        for pid in self.pids()[1:]:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self):
        self.frozen = False
        for pid in reversed(self.pids()):
            os.kill(pid, signal.SIGCONT)

    def kill(self):
        """All of it at once, as the loss of its machine looks."""
        self.freeze()
        for pid in reversed(self.pids()):
            os.kill(pid, signal.SIGKILL)
        self.process.wait(START_SECONDS)
        self.process = None
        # The System V segment, which outlives its users: its id is the last of line 7.
        lines = pathlib.Path(self.data, "postmaster.pid").read_text(encoding="ascii").splitlines()
        ctypes.CDLL(None).shmctl(int(lines[6].split()[1]), IPC_RMID, None)

    def close(self):
        if self.frozen and self.process is not None:
            self.kill()
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        return (self.folder / "postgres.log").read_text(errors="replace")[-4000:]

    def sql(self, text, database="postgres"):
        """Rows as text, columns between |."""
        out = self.run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                       *self.where, "-U", "hapax", "-d", database, "-c", text)
        return out.splitlines()

    def application(self, database):
        """A session of an application's, which reads SQL line by line."""
        return subprocess.Popen([f"{self.bin}/psql", "-X", "-q", "-A", "-t", *self.where, "-U",
                                 "hapax", "-d", database], stdin=subprocess.PIPE,
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

    def gateway_url(self, database):
        """The same for a role with a gateway's rights and no others, in a database that has its schema."""
        program = os.environ.get("HAPAX_BIN") or pathlib.Path(__file__).resolve().parents[3] / "build/hapax"
        subprocess.run([program, "migrate", "--store", self.url(database)], check=True, capture_output=True)
        with self.lock:
            if not self.has_gateway:
                self.sql("CREATE ROLE gateway LOGIN IN ROLE hapax_gateway")
                self.has_gateway = True
        return self.url(database).replace("hapax@", "gateway@")


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
        STORES[folder] = shared().gateway_url(shared().database())
    return STORES[folder]
