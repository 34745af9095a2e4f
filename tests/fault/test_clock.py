"""Shows that a wall clock which jumps, ahead or back, under a running server or between
two, makes nothing expire early and nothing happen again; when a person has accepted
the clock, records expire as they should."""
import os
import pathlib
import struct
import subprocess

import pytest

from generations import SMALL
from harness import check
from harness.gateway import merge
from harness.operator_command import Operator
from judge import POLICY, Operation, Task, join, judge, see_through
from nodes import pause

HOUR = 3600
OPERATIONS = 40
BEYOND_REAP = 2.2
# Expired in an hour, as a wrong clock sees it; generations close and are reaped meanwhile.
CONFIG = merge(POLICY, {"defaults": {"retention": "10m"}, "reap": {"every": "1s"}, "cache": 0})
SET = ("", "", "delay=0.01", "status=201", "reset=after", "big=100000")


class Clock:
    """The wall clock of the processes that are wrapped in it."""

    def __init__(self, folder):
        self.path = folder / "shift"
        self.set(0)
        library = folder / "shift_clock.so"
        source = pathlib.Path(__file__).with_name("shift_clock.c")
        subprocess.run([os.environ.get("CC") or "cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        self.environment = {"LD_PRELOAD": str(library), "SHIFT_FILE": str(self.path)}
        self.wrap = ["env", *(f"{name}={value}" for name, value in self.environment.items())]

    def set(self, seconds):
        """In place: processes have the file mapped."""
        with open(self.path, "r+b" if self.path.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds))


def more(one, count=OPERATIONS):
    """Operations that are seen through, several at a time."""
    operations = [Operation(SET[n % len(SET)]) for n in range(count)]
    join([Task(see_through, one.gateway, operations[n::4]) for n in range(4)])
    return operations


@pytest.mark.parametrize("seconds", [48 * HOUR, -48 * HOUR])
@pytest.mark.parametrize("restarts", [False, True])
def test_clock_jumps(ground, tmp_path, seconds, restarts):
    """Far beyond every retention: all answers stay what they were, before the jump, after
    it, and after the clock has come back."""
    clock = Clock(tmp_path)
    one = ground(CONFIG, wrap=clock.wrap)
    one.gateway.start(SMALL)
    operations = more(one)
    clock.set(seconds)
    if restarts:
        one.gateway.kill()
        one.gateway.start(SMALL)
    check.until(lambda: one.gateway.metrics()["hapax_expiry_held"] == 1, "expiry is held")
    operations += more(one)
    pause(BEYOND_REAP)
    judge(one.gateway, one.provider, operations)
    clock.set(0)
    operations += more(one)
    judge(one.gateway, one.provider, operations)
    one.gateway.kill()
    one.gateway.start(SMALL)
    judge(one.gateway, one.provider, operations)
    assert one.gateway.metrics().get("hapax_reaped_total", 0) == 0


def test_accepted(ground, tmp_path):
    """A clock that a person has accepted counts: what it says has expired is executed
    again, once, and what is new is kept."""
    clock = Clock(tmp_path)
    one = ground(CONFIG, wrap=clock.wrap)
    one.gateway.start(SMALL)
    old = [o for o in more(one) if o.successes]
    clock.set(48 * HOUR)
    check.until(lambda: one.gateway.metrics()["hapax_expiry_held"] == 1, "expiry is held")
    judge(one.gateway, one.provider, old)
    os.environ.update(clock.environment)
    try:
        Operator(one.gateway).on("keys", "accept-clock", "--reason", "the time server was wrong before")
    finally:
        for name in clock.environment:
            del os.environ[name]
    check.until(lambda: one.gateway.metrics()["hapax_expiry_held"] == 0, "expiry goes on")
    check.until(lambda: one.gateway.metrics()["hapax_reaped_total"] >= len(old), "the expired are reaped", 30)
    before = {o.key: len(one.provider.ledger(o.key)) for o in old}
    again = [one.gateway.post(key=o.key) for o in old]
    assert [(a.status, a.replayed) for a in again] == [(200, False)] * len(old)
    assert [one.gateway.post(key=o.key).replayed for o in old] == [True] * len(old)
    assert [len(one.provider.ledger(o.key)) - before[o.key] for o in old] == [1] * len(old)
    judge(one.gateway, one.provider, more(one))
