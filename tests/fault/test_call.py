"""Shows that a client killed anywhere goes on with the same key: at each of its
named steps, at random moments, and with the gateway away for a while. The
provider's ledger has one line for each call, and no call is left over."""
import json
import os
import subprocess
import threading
import time

import pytest

from conftest import steps
from harness.gateway import SANITIZER, binary
from judge import POLICY

STEPS = [step for step in steps() if step.startswith("call_")] or ["none"]
KILLS = int(os.environ.get("HAPAX_KILLS", "150")) // 3
# 0: definite success; 3: not definite; 4: nothing happened.
KNOWN = (0, 3, 4)


class Client:
    """`hapax call` with a journal of its own, killed and started again."""

    def __init__(self, ground, folder):
        self.gateway = ground.gateway
        self.provider = ground.provider
        self.journal = folder / "calls.db"
        self.sent = 0

    def start(self, *arguments, **env):
        command = [binary(steps=True), "call", *arguments, "--journal", str(self.journal)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env={**os.environ, **env})

    def post(self, **env):
        host, port = self.gateway.address
        self.sent += 1
        body = json.dumps({"n": self.sent})
        # Long enough for a kill to find it there.
        return self.start("POST", f"http://{host}:{port}/pay", "-d", body, "-H",
                          "X-Behave: delay=0.03", *self.patience(), **env)

    @staticmethod
    def patience():
        return ["--backoff", "20ms", "--backoff-max", "200ms", "--budget", "20s",
                "-H", "Authorization: Bearer s3cr3t-alice"]

    def end(self, process, *codes):
        _, errors = process.communicate(timeout=60)
        assert not SANITIZER.search(errors.decode()), errors.decode()
        assert process.returncode in codes, f"{process.returncode}: {errors.decode()}"
        return process.returncode

    def entries(self):
        done = self.start("--list", "--json")
        output, errors = done.communicate(timeout=60)
        assert done.returncode == 0, errors
        return json.loads(output)

    def settle(self):
        """Resumes until nothing is left; then the ledger and the journal agree."""
        for _ in range(5):
            if self.end(self.start("--resume", *self.patience()), *KNOWN) == 0:
                break
        entries = self.entries()
        assert [e["state"] for e in entries] == ["done"] * len(entries), entries
        lines = [line[2].strip('"') for line in self.provider.ledger()]
        assert sorted(lines) == sorted(e["key"] for e in entries)
        assert all(200 <= e["status"] < 300 for e in entries)
        return entries


@pytest.fixture
def client(ground, tmp_path):
    one = ground(POLICY)
    one.gateway.start()
    return Client(one, tmp_path)


@pytest.mark.parametrize("passing", [1, 2])
@pytest.mark.parametrize("call_step", STEPS)
def test_killed_at(client, call_step, passing):
    """Killed at a step; while it is resumed, killed there again; then resumed."""
    crash = {"HAPAX_CRASH_AT": f"{call_step}:{passing}"}
    code = client.end(client.post(**crash), -9, 0)
    assert code == -9 or passing == 2, f"{call_step} was never passed"
    if code == -9:
        client.end(client.start("--resume", *client.patience(), **crash), -9, 0)
    entries = client.settle()
    assert len(entries) == 1


def length_of_a_call(client):
    """How long a call takes that nobody disturbs, in this build on this machine."""
    began = time.monotonic()
    client.end(client.post(), 0)
    return time.monotonic() - began


def test_random_kills(client, chance):
    """Killed at random moments, new calls and resumes alike."""
    length = length_of_a_call(client)
    killed = 0
    for _ in range(KILLS):
        process = client.post() if chance.random() < 0.7 else \
            client.start("--resume", *client.patience())
        threading.Event().wait(chance.uniform(0.0, 1.1 * length))
        process.kill()
        killed += client.end(process, -9, *KNOWN) == -9
    entries = client.settle()
    print(f"{killed} kills, {len(entries)} calls")
    assert killed > KILLS / 10 and len(entries) > KILLS / 10


def test_both_are_killed(client, chance):
    """Client and gateway, at random moments: at most one line for each call, exactly
    one where the client says done, and what is not known is said to be so."""
    length = length_of_a_call(client)
    for _ in range(KILLS // 5):
        processes = [client.post() for _ in range(3)]
        threading.Event().wait(chance.uniform(0.0, 2 * length))
        client.gateway.kill()
        processes[0].kill()
        client.gateway.start()
        for process in processes:
            client.end(process, -9, *KNOWN)
    client.end(client.start("--resume", *client.patience()), *KNOWN)
    lines = [line[2].strip('"') for line in client.provider.ledger()]
    assert len(lines) == len(set(lines)), "a call happened twice"
    entries = client.entries()
    assert set(lines) <= {e["key"] for e in entries}
    for entry in entries:
        if entry["state"] == "done":
            assert entry["key"] in lines, f"done without an effect: {entry}"
        else:
            assert entry["in_doubt"], entry
    states = [e["state"] for e in entries]
    print(f"{len(entries)} calls: {states.count('done')} done")


def test_gateway_away_meanwhile(client):
    """The gateway stops and comes back, while calls are under way: all are done."""
    client.gateway.stop()
    processes = [client.post() for _ in range(5)]
    client.gateway.start()
    for process in processes:
        assert client.end(process, 0) == 0
    assert len(client.settle()) == 5
