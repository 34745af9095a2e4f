"""The databases that systems are given: a PostgreSQL or a Redis of their own, fresh
for each start, on the same disk as everything else, durable."""
import glob
import os
import pathlib
import shutil
import signal
import socket

from .process import Failed, Process, accepts, free_port, run, unprivileged

# What a careful operator of a small dedicated machine would set. What makes commits
# durable is at its default, on, and is read back before anything is measured.
POSTGRES_SETTINGS = {
    "shared_buffers": "1GB", "max_connections": "320", "max_wal_size": "8GB",
    "checkpoint_timeout": "15min", "wal_buffers": "16MB", "effective_io_concurrency": "100",
    "random_page_cost": "1.1", "log_min_messages": "error", "dynamic_shared_memory_type": "mmap",
}
# How long the last checkpoint of a cluster that is kept may take.
CHECKPOINT_SECONDS = 120
DURABLE = ["fsync", "synchronous_commit", "full_page_writes"]


def programs():
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[-2]))
    if not found:
        raise Failed("PostgreSQL is not installed")
    return pathlib.Path(found[-1])


def template(folder):
    """A cluster that was never started, to be copied: made once per benchmark."""
    made = pathlib.Path(folder) / "template"
    if not made.exists():
        made.mkdir()
        own(made)
        run([programs() / "initdb", "-D", made / "data", "-A", "trust", "-U", "bench", "-E", "UTF8",
             "--locale=C"], cwd=made, **unprivileged())
    return made / "data"


def own(path):
    who = unprivileged()
    if who:
        os.chown(path, who["user"], who["group"])


class Postgres:
    title = "PostgreSQL"

    def __init__(self, root, folder, kept=None):
        """With `kept`, a folder whose data stays for the next start."""
        self.kept = kept is not None
        self.folder = pathlib.Path(kept or folder) / "postgres"
        self.folder.mkdir(exist_ok=True)
        own(self.folder)
        data = self.folder / "data"
        if not data.exists():
            # cp keeps the owner and the mode, which the server insists on.
            run(["cp", "-a", template(root), data])
        self.port = free_port()
        command = [programs() / "postgres", "-D", data, "-k", self.folder]
        for name, value in {**POSTGRES_SETTINGS, "port": self.port,
                            "listen_addresses": "127.0.0.1"}.items():
            command += ["-c", f"{name}={value}"]
        log = pathlib.Path(folder)
        self.process = Process("postgres", command, log, **unprivileged())
        self.process.wait_until(self.ready)

    def ready(self):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        try:
            return self.sql("SELECT 1") == "1"
        except Failed:
            return False

    def sql(self, text):
        return run([programs() / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1",
                    "-p", self.port, "-U", "bench", "-d", "postgres", "-c", text]).strip()

    @property
    def url(self):
        return f"postgres://bench@127.0.0.1:{self.port}/postgres"

    def settings(self):
        return "PostgreSQL: " + ", ".join(f"`{name}={value}`" for name, value in POSTGRES_SETTINGS.items()
                                          if name not in ("log_min_messages", "dynamic_shared_memory_type"))

    def durable(self):
        """{setting: (what it is, what it must be)}"""
        return {name: (self.sql(f"SHOW {name}"), "on") for name in DURABLE}

    def stop(self):
        if self.kept:
            self.process.stop(signal.SIGINT, CHECKPOINT_SECONDS)
        else:
            self.process.stop(signal.SIGQUIT)


class Redis:
    title = "Redis"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / "redis"
        self.folder.mkdir()
        self.port = free_port()
        if shutil.which("redis-server") is None:
            raise Failed("redis-server is not installed")
        self.process = Process("redis", ["redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir",
                                         self.folder, "--appendonly", "yes", "--appendfsync", "always",
                                         "--save", ""], folder)
        self.process.wait_until(lambda: accepts(self.port))

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.port}"

    def get(self, name):
        return run(["redis-cli", "-p", self.port, "CONFIG", "GET", name]).split()[-1]

    def settings(self):
        return "Redis: `appendonly=yes`, `appendfsync=always`, no snapshots (`save=\"\"`)"

    def durable(self):
        return {"appendonly": (self.get("appendonly"), "yes"), "appendfsync": (self.get("appendfsync"), "always")}

    def stop(self):
        self.process.stop()
