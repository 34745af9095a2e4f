"""An external service that jobs are delivered to, as a test holds it: a process which
survives the death of hapax and can be killed itself. Its ledger (external_ledger.py)
is the judge; its faults come from a script (external_faults.py); it can send
webhooks (external_webhooks.py). Port, settings, script and ledger outlive a kill.

Settings:
  honours_keys       its own idempotency: a remembered key gets the stored answer
  remember_ms        how long it remembers keys; None: for ever
  lookup_delay_ms    how long a new effect cannot be seen by lookups
  credential, lookup_credential   the Authorization it wants; None: anything
  webhook, webhooks  the arguments of external_webhooks.Hook, and the twists that
                     every effect's webhooks have
  clock_shift_ms     how far its clock is ahead, so that no test waits for it"""
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

from . import external_faults
from .external_ledger import Ledger
from .external_tls import Authority
from .gateway import free_port

E2E = pathlib.Path(__file__).resolve().parents[1]
CREDENTIAL = "Bearer s3cr3t-target"
LOOKUP_CREDENTIAL = "Bearer s3cr3t-lookup"
DEFAULTS = {"honours_keys": False, "remember_ms": None, "lookup_delay_ms": 0, "credential": None,
            "lookup_credential": LOOKUP_CREDENTIAL, "webhook": None, "webhooks": ["plain"],
            "clock_shift_ms": 0, "rules": []}


class ExternalService:
    """`certificate`: (chain, key) other than its authority's own; None with tls
    off. close() ends it."""

    def __init__(self, folder, tls=True, certificate=None, **settings):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        authority = Authority(self.folder) if tls else None
        self.ca_file = authority.ca_file if tls else None
        self.port, self.tls_port, self.control_port = free_port(), free_port(), free_port()
        self.ledger = Ledger(self.folder / "ledger.db")
        self.process = None
        self.rules_made = 0
        self.settings = {**DEFAULTS, "port": self.port, "tls_port": self.tls_port,
                         "control_port": self.control_port,
                         "certificate": certificate or (authority.certificate() if tls else None)}
        self.set(**settings)
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def tls_url(self):
        return f"https://localhost:{self.tls_port}"

    # The process.
    def start(self):
        with open(self.folder / "external.log", "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "harness.external_process", str(self.folder)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                env={**os.environ, "PYTHONPATH": str(E2E)})
        line = self.process.stdout.readline()
        assert line == b"ready\n", f"the provider did not start:\n{self.log()}"
        return self

    def log(self):
        return (self.folder / "external.log").read_text()

    def kill(self):
        """As kill -9 does: nothing is finished, nothing is told."""
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process = None

    def restart(self):
        self.kill()
        return self.start()

    def close(self):
        """Ends it; an exception in one of its threads is the test's failure."""
        self.kill()
        assert "Traceback" not in self.log(), f"the provider failed:\n{self.log()}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Control.
    def command(self, do, **arguments):
        with socket.create_connection(("127.0.0.1", self.control_port), timeout=60) as sock:
            sock.sendall(json.dumps({"do": do, **arguments}).encode() + b"\n")
            with sock.makefile("r", encoding="utf-8") as lines:
                line = lines.readline()
        assert line, f"the provider did not obey {do}:\n{self.log()}"
        return json.loads(line)

    def set(self, **settings):
        """Changes settings, from the next request on and for every later start."""
        unknown = set(settings) - set(DEFAULTS)
        assert not unknown, f"no such setting: {unknown}"
        self.settings.update(settings)
        half = self.folder / "external.json.new"
        half.write_text(json.dumps(self.settings))
        os.replace(half, self.folder / "external.json")
        if self.process:
            self.command("reload")

    def script(self, *rules):
        """These rules instead of the earlier ones; their `times` count from now."""
        external_faults.check(rules)
        made = []
        for rule in rules:
            self.rules_made += 1
            made.append({**rule, "id": f"rule {self.rules_made}"})
        self.set(rules=made)

    def fault(self, kind, times=1, when=None, **how):
        """One fault for the next requests, and calm for the others."""
        self.script({"when": when or {}, "times": times, "fault": {"kind": kind, **how}})

    def calm(self):
        self.script()

    def release(self, gate, count=1):
        self.command("release", gate=gate, count=count)

    def forget(self, key=None):
        """The key, or every key, is remembered no longer."""
        self.command("forget", key=key)

    def set_state(self, effect, state):
        """What lookups say of an effect from now on."""
        self.command("state", effect=effect, state=state)

    def refuse(self):
        """Connections are refused until it accepts again."""
        self.command("doors", is_open=False)

    def accept(self):
        self.command("doors", is_open=True)

    def webhook(self, twist="plain", effect=None, state="succeeded", operation=None, hook=None):
        """Has the process send webhooks now, for an effect or for none; the statuses."""
        return self.command("webhook", hook=hook or self.settings["webhook"], twist=twist,
                            effect=effect, state=state, operation=operation)

    def wait(self, happened, timeout=15):
        """Waits until happened() is true of the ledger, and returns what it gave.
        It looks again whenever something was written, so nothing is missed."""
        end = time.monotonic() + timeout
        version = -1
        while True:
            seconds = min(30, max(0, end - time.monotonic()))
            version = self.command("wait", since=version, seconds=seconds)
            found = happened()
            if found:
                return found
            assert time.monotonic() < end, f"it did not happen: {self.ledger.sends()[-5:]}"
