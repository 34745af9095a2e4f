"""`hapax call` as its user runs it, in a home of its own: what its tests share. No
run may show a credential, whatever it is told."""
import json
import os
import re
import subprocess
import threading

import pytest

from .gateway import SANITIZER, binary
from .script import Script, answer

DONE, FAILED, USAGE, IN_DOUBT, NOT_YET = 0, 1, 2, 3, 4
UUID7 = r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
QUICK = ["--backoff", "5ms", "--backoff-max", "20ms"]
WORD = "s3cr3t"
BODY = '{"amount": 499}'
PAID = answer(201, b'{"id": 1}\n', Content_Type="application/json")


def problem(status, executed, retry, **fields):
    body = json.dumps({"code": "x", "executed": executed, "retry": retry}).encode()
    return answer(status, body, Content_Type="application/problem+json", **fields)


class Caller:
    """`hapax call` in a home of its own."""

    def __init__(self, folder):
        self.home = folder
        self.journal = folder / "state/hapax/calls.db"
        self.env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "TERM": "dumb",
                    "no_proxy": "", "http_proxy": ""}

    def command(self, *arguments):
        return [binary(), "call", *map(str, arguments)]

    def start(self, *arguments, **how):
        how.setdefault("env", self.env)
        return subprocess.Popen(self.command(*arguments), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.home, **how)

    def run(self, *arguments, exit_code=None, stdin=b"", **how):
        how.setdefault("env", self.env)
        done = subprocess.run(self.command(*arguments), input=stdin, capture_output=True,
                              cwd=self.home, timeout=60, check=False, **how)
        done.errors = done.stderr.decode()
        assert not SANITIZER.search(done.errors), done.errors
        assert WORD not in done.errors, f"a credential is shown: {done.errors}"
        if exit_code is not None:
            assert done.returncode == exit_code, f"{done.returncode}: {done.errors}"
        return done

    def post(self, url, *arguments, **how):
        return self.run("POST", url, "-d", BODY, *QUICK, *arguments, **how)

    def entries(self):
        return json.loads(self.run("--list", "--json", exit_code=DONE).stdout)

    def entry(self):
        entries = self.entries()
        assert len(entries) == 1, entries
        return entries[0]

    def bytes_on_disk(self):
        return b"".join(path.read_bytes() for path in self.journal.parent.iterdir())


def wait_for(holds, timeout=20):
    tick = threading.Event()
    for _ in range(timeout * 50):
        if holds():
            return
        tick.wait(0.02)
    raise AssertionError("it never came to be")


def keys_of(requests):
    return {re.search(rb"(?i)^idempotency-key: (.*)\r$", r, re.M).group(1) for r in requests}


@pytest.fixture
def caller(tmp_path):
    assert os.access(binary(), os.X_OK), f"{binary()} is not there: build it, or set HAPAX_BIN"
    return Caller(tmp_path)


@pytest.fixture
def script():
    """script(act, …) starts a server with these acts."""
    made = []

    def start(*acts, **how):
        made.append(Script(*acts, **how))
        return made[-1]

    yield start
    for one in made:
        one.close()
