"""The API's process, as a test starts it; the commands by which `hapax verify`
kills it and starts it again; and its ledger, read from the file."""
import os
import pathlib
import shlex
import signal
import sqlite3
import subprocess

from ..gateway import free_port
from ..secret import ALICE
from ..wire import connect, request_bytes

E2E = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
MINE = object()


class Flawed:
    """One API in one folder."""

    def __init__(self, folder, flaw="plain", dialect="ietf", busy=0.0, tls=None):
        self.folder = pathlib.Path(folder)
        self.port = free_port()
        self.command = [PYTHON, "-m", "harness.flawed", "--port", str(self.port), "--state", str(self.folder),
                        "--flaw", flaw, "--dialect", dialect, "--busy", str(busy)]
        self.command += ["--tls", *tls] if tls else []
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.process = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()

    def start(self):
        self.process = subprocess.Popen(self.command, cwd=E2E, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line == "ready\n", f"{self.command} said {line!r}"
        return self

    def kill(self):
        """Whichever process of it runs: ours, or the one that a start command left."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
        try:
            pid = int((self.folder / "pid").read_text())
            if str(self.port) in pathlib.Path(f"/proc/{pid}/cmdline").read_text().split("\0"):
                os.kill(pid, signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            return  # it is gone already

    @property
    def crash_cmd(self):
        return f'kill -9 "$(cat {shlex.quote(str(self.folder / "pid"))})"'

    @property
    def start_cmd(self):
        return f"cd {shlex.quote(str(E2E))} && exec {shlex.join(self.command)}"

    # A client of its own, for looking at the API without the judge.
    def request(self, method, target, key=None, body=None, auth=ALICE, fields=(), media="application/json",
                host=None):
        lines = [("Authorization", auth), *fields]
        lines += [("Idempotency-Key", key)] if key is not None else []
        lines += [("Content-Type", media)] if body is not None else []
        return request_bytes(method, target, lines, body, host=host or f"127.0.0.1:{self.port}")

    def call(self, *what, **how):
        with connect(("127.0.0.1", self.port)) as wire:
            wire.send(self.request(*what, **how))
            return wire.answer(what[0])

    def rows(self, sql):
        with sqlite3.connect(f"file:{self.folder}/book.db?mode=ro", uri=True, timeout=15) as db:
            return db.execute(sql).fetchall()

    def ledger(self, name=None):
        """The effects, as the file has them: (path, order, tenant)."""
        rows = self.rows("SELECT path, name, tenant FROM effect ORDER BY n")
        return [row for row in rows if name is None or row[1] == name]

    def reserved(self):
        """How many keys are reserved and nothing else."""
        return self.rows("SELECT count(*) FROM record WHERE state = 'running'")[0][0]
