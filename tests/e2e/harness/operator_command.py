"""Operator commands on the store of one gateway; and a gateway that owes jobs to the
external service."""
import json
import os
import subprocess

from .gateway import SANITIZER, binary

OK, FAILED, USAGE = 0, 1, 2


class Operator:
    """`hapax COMMAND …` on the store of one gateway."""

    def __init__(self, gateway):
        self.url = gateway.config["store"]
        self.folder = gateway.folder

    def run(self, *arguments, code=OK, stdin=b""):
        """Standard output, and standard error with it where it is to fail."""
        done = subprocess.run([binary(), *map(str, arguments)], capture_output=True, timeout=60,
                              cwd=self.folder, check=False, input=stdin, env=dict(os.environ))
        self.out = done.stdout.decode("latin-1")
        self.err = done.stderr.decode("utf-8", "backslashreplace")
        both = self.out + self.err
        assert done.returncode == code, f"exit {done.returncode}, not {code}:\n{both}"
        assert not SANITIZER.search(both), both
        return self.out if code == OK else both

    def on(self, *arguments, **how):
        return self.run(*arguments, "--store", self.url, **how)

    def json(self, *arguments, **how):
        self.on(*arguments, "--json", **how)
        return json.loads(self.out)

    def jobs(self, *arguments):
        return self.json("jobs", "ls", *arguments)["jobs"]

    def job(self, number, *arguments):
        return self.json("jobs", "show", number, *arguments)

    def key(self, reference, *arguments):
        return self.json("keys", "show", reference, *arguments)


def outbox_config(external, target=None, **more):
    """A gateway whose POST /owed is delivered later, to the provider as `bank`."""
    bank = {"url": external.url, "timeout": "2s", "connect_timeout": "2s", "attempts": 1, "backoff": "10ms",
            "backoff_max": "10ms", "provider_id": "/id", "breaker": {"failures": 0}}
    return {"tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"}, "trusted_peers": ["127.0.0.1"],
            "targets": {"bank": {**bank, **(target or {})}},
            "routes": [{"match": "POST /owed", "deliver": "async", "target": "bank"}], **more}


def owe(gateway, body=b'{"amount": 10.00, "note": "s3cr3t"}', **how):
    """An accepted operation's reference."""
    answer = gateway.post("/owed", body=body, headers=[("X-Tenant", "alice")], **how)
    assert answer.status == 202, answer
    return answer["Hapax-Operation"]
