"""Two external services, a configuration that owes them jobs, and requests that
make it owe them. One provider honours keys; the other does not, and is asked what
became of things, and tells it by webhooks."""
import collections
import json
import threading
import time

from .external_service import CREDENTIAL, LOOKUP_CREDENTIAL, ExternalService
from .gateway import merge
from .secret import new_key
from .wire import Closed, Malformed

TENANT = ("X-Tenant", "acme")
SECRET = "s3cr3t-of-the-bank"
SETTLE_AFTER_MS = 2500
TARGET = {"timeout": "500ms", "connect_timeout": "1s", "attempts": 1000, "backoff": "20ms",
          "backoff_max": "200ms", "retry_after_max": "1s", "concurrency": 8, "provider_id": "/id",
          "breaker": {"failures": 20, "pause_max": "1s"}}
RECONCILE = {"settle_after": f"{SETTLE_AFTER_MS}ms", "confirm_after": "1s", "tries": 1000,
             "backoff": "100ms", "backoff_max": "500ms", "retry_after_max": "1s"}
PROBE = {"get": "/lookup?operation={operation}&key={key}", "timeout": "1s", "connect_timeout": "1s",
         "applied": [200], "not_applied": [404]}
FINAL_SECONDS = 60


def pause(seconds):
    """Time passes; that is what is tested."""
    threading.Event().wait(seconds)


class Providers:
    """Both providers, and the configuration that leads to them."""

    def __init__(self, folder, **settings):
        self.folder = folder
        self.keyed = ExternalService(folder / "keyed", credential=CREDENTIAL, honours_keys=True)
        self.plain = ExternalService(folder / "plain", credential=CREDENTIAL, **settings)
        self.all = {"keyed": self.keyed, "plain": self.plain}

    def secret_file(self, name, value):
        path = self.folder / name
        path.write_text(value + "\n")
        path.chmod(0o600)
        return str(path)

    def target(self, external):
        return {**TARGET, "url": external.tls_url, "ca_file": external.ca_file,
                "credentials": {"file": self.secret_file("target.credential", CREDENTIAL)}}

    def config(self, **more):
        probe = {**PROBE, "credentials": {"file": self.secret_file("probe.credential",
                                                                   LOOKUP_CREDENTIAL)}}
        plain = {**self.target(self.plain), "reconcile": {**RECONCILE, "probe": probe}}
        webhook = {"scheme": "stripe", "secret_file": self.secret_file("bank.secret", SECRET),
                   "operation": "/data/object/operation", "verdict": "/data/object/status",
                   "applied": ["succeeded"], "not_yet": ["pending"], "rate": 1000}
        return merge({
            "tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"},
            "trusted_peers": ["127.0.0.1"], "sweep": {"every": "1s"}, "log_level": "info",
            "limits": {"free_space": 0},
            "routes": [{"match": f"POST /{name}", "deliver": "async", "target": name}
                       for name in self.all],
            "targets": {"keyed": {**self.target(self.keyed), "honours_keys": "1h"}, "plain": plain},
            "webhooks": {"bank": webhook}}, more)

    def tell(self, port):
        """Webhooks go to the gateway on this port."""
        hook = {"url": f"http://127.0.0.1:{port}/.hapax/webhooks/bank", "scheme": "stripe",
                "secret": SECRET, "tries": 2, "pause_ms": 200}
        self.plain.set(webhook=hook)

    def script(self, chance, faults, lookups, share=0.6):
        """Random faults of sends and of lookups from now on."""
        for external in self.all.values():
            external.script(
                {"random": {"seed": chance.randrange(1 << 32), "share": share, "faults": faults}},
                {"when": {"kind": "lookup"},
                 "random": {"seed": chance.randrange(1 << 32), "share": 0.3, "faults": lookups}})

    def calm(self):
        for external in self.all.values():
            external.calm()

    def faults(self):
        """How many requests met a fault of the script, by kind."""
        rows = [r for o in self.all.values() for r in o.ledger.matching("request") if r.rule]
        return collections.Counter(json.loads(row.fault)["kind"] for row in rows)

    def close(self):
        for external in self.all.values():
            external.close()


class Debt:
    """One request to an async route, and all that its clients were told."""

    def __init__(self, path):
        self.path = path
        self.key = new_key()
        self.reference = None
        self.answers = []
        self.lock = threading.Lock()

    def ask(self, gateway, wait=0):
        """One try; None where no whole answer came."""
        headers = [TENANT] + ([("Prefer", f"wait={wait}")] if wait else [])
        try:
            answer = gateway.post(self.path, key=self.key, auth=None, headers=headers, timeout=20)
        except (OSError, Closed, Malformed) as failure:
            assert not isinstance(failure, Malformed), f"not HTTP: {failure}"
            return None
        with self.lock:
            self.answers.append((answer.status, answer.body))
            named = answer["Hapax-Operation"]
            assert named in (None, self.reference) or self.reference is None, self
            self.reference = self.reference or named
        return answer

    def accept(self, gateway, wait=0):
        """Until it is accepted: from then on it is hapax's."""
        end = time.monotonic() + FINAL_SECONDS
        while True:
            answer = self.ask(gateway, wait)
            if answer is not None and answer.status != 503:
                return answer
            assert time.monotonic() < end, f"never accepted: {self}"
            pause(0.03)

    def final(self, gateway):
        """What it is told when everything is over."""
        answer = self.accept(gateway, wait=5)
        assert answer.status in (201, 402, 409), f"no final state: {self}"
        if answer.status == 409:
            assert answer.json()["code"] == "response_not_kept", f"not settled: {self}"
        again = self.accept(gateway)
        assert (again.status, again.body) == (answer.status, answer.body), f"two answers: {self}"
        return answer.status

    def __repr__(self):
        return f"<{self.path} {self.reference} {self.answers[-4:]}>"
