"""`hapax verify` as its user runs it, and what it says: the table, the JSON, the
exit code. A run is described by a file, which is JSON and hence YAML; credentials
come from the environment, so that none is in the file or on the command line."""
import json
import os
import pathlib
import subprocess

from . import secret
from .gateway import SANITIZER, binary

ENV = {"VERIFY_ALICE": secret.ALICE, "VERIFY_BOB": secret.BOB}
RUN_SECONDS = 240
BODY = '{"order": "{{uuid}}", "amount": 10, "note": {"by": "caf\u00e9", "lines": [1, 2]}}'


def described(url, **over):
    """A description of the API in harness.flawed, or of a gateway before it."""
    def post(path):
        return {"method": "POST", "path": path, "body": BODY}
    whole = {
        "url": f"{url}/payments",
        "method": "POST",
        "headers": ["Authorization: {{env:VERIFY_ALICE}}", "Content-Type: application/json", "X-Order: {{uuid}}"],
        "body": BODY,
        "resource": "/id",
        "effects": {"get": "/payments?order={{uuid}}", "count": ""},
        "second_tenant": ["Authorization: {{env:VERIFY_BOB}}"],
        "limits": {"settle": "2s", "timeout": "10s"},
        "requests": {
            "other": post("/refunds"),
            "slow": post("/slow?seconds=1"),
            "client_error": post("/refuse"),
            "server_error": post("/fails"),
            "outage": post("/outage"),
            "binary": post("/picture"),
            "large_answer": post("/export"),
            "get": {"method": "GET", "path": "/hours"},
            "delete": {"method": "DELETE", "path": "/payments/{{uuid}}"},
        },
    }
    return {name: value for name, value in {**whole, **over}.items() if value is not None}


class Report:
    """What one run said."""

    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr

    @property
    def document(self):
        return json.loads(self.out)

    @property
    def rows(self):
        """{name: row}"""
        return {row["name"]: row for row in self.document["rows"]}

    def named(self, verdict):
        """The names of the rows with this verdict."""
        return {name for name, row in self.rows.items() if row["verdict"] == verdict}

    def __str__(self):
        """What a failing test shows: the rows that do not hold."""
        try:
            said = "\n".join(f"{name}: {row['verdict']}: expected {row['expected']}; came {row['came']}"
                             for name, row in self.rows.items() if row["verdict"] not in ("holds", "skipped"))
        except ValueError:
            said = self.out[-6000:]
        return f"exit {self.code}\n{said}\n{self.err[-3000:]}"


def run(*arguments, env=None, timeout=RUN_SECONDS):
    """`hapax verify` with these arguments."""
    done = subprocess.run([binary(), "verify", *map(str, arguments)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=timeout,
                          env={**os.environ, **ENV, **(env or {})}, check=False)
    report = Report(done)
    assert not SANITIZER.search(report.err), report
    shown = secret.leaks((report.out + report.err).splitlines())
    assert not shown, f"a secret is shown: {shown[:3]}"
    return report


def verify(folder, description, *arguments, **how):
    """A run by a description, with its report as JSON."""
    path = pathlib.Path(folder) / "verify.yaml"
    path.write_text(json.dumps(description, indent=2) + "\n")
    return run("--file", path, "--json", *arguments, **how)


def holds(report, not_applicable=frozenset()):
    """Every row holds, but for these, for which there is nothing."""
    assert report.code == 0, f"{report}"
    assert report.named("not_applicable") == set(not_applicable), f"{report}"
    assert report.named("holds") == set(report.rows) - set(not_applicable), f"{report}"
    assert report.document["holds"]
