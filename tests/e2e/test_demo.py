"""Shows that `hapax demo` tells its story, that every step comes out right by
the ledgers, and that nothing of it is left behind, whichever way it ends."""
import os
import re
import signal
import subprocess

import pytest

from conftest import require_program
from harness.gateway import binary
from harness.wire import connect, request_bytes

STEPS = ["A double click", "A lost answer", "A retry storm", "A changed amount",
         "A crash in the middle"]


@pytest.fixture
def demo(tmp_path):
    """demo(…) starts it with its temporary folder inside this test's own."""
    require_program()
    running = []

    def start(*arguments, program=None, **env):
        running.append(subprocess.Popen(
            [program or binary(), "demo", *arguments], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(tmp_path), **env}))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def left(tmp_path):
    return [path.name for path in tmp_path.iterdir()]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def read_until(process, pattern):
    """Lines up to the one that matches, which the demo must print."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if re.search(pattern, line):
            return "".join(lines)
    raise AssertionError(f"no line matches {pattern!r}:\n{''.join(lines)}{process.stderr.read()}")


def test_once(demo, tmp_path):
    """The whole story: each step once with hapax, more than once without; exit 0."""
    process = demo("--once")
    text, errors = process.communicate(timeout=90)
    assert process.returncode == 0, f"exit {process.returncode}:\n{text}{errors}"
    assert errors == ""
    for step in STEPS:
        row = re.search(rf"^ +{step} +(\d+) +([\d.]+) +(\d+) +([\d.]+) ✗ +(\d+) +([\d.]+) ✓$",
                        text, re.M)
        assert row, f"no row for {step!r}:\n{text}"
        intended, amount, without, _, with_hapax, paid = row.groups()
        assert (intended, with_hapax) == ("1", "1") and amount == paid, row.group()
        assert int(without) > 1, row.group()
    assert "idempotency_key_reused" in text and "idempotency_outcome_unknown" in text
    assert "hapax keys resolve" in text
    assert left(tmp_path) == []


def test_narrow_and_plain(demo):
    """In a pipe there is no colour, and no line is wider than a terminal."""
    text, _ = demo("--once").communicate(timeout=90)
    wide = [line for line in text.splitlines() if len(line) > 80 and "--config" not in line]
    assert not wide, wide
    assert "\033" not in text


def test_it_keeps_running(demo, tmp_path):
    """After the story the printed lines work; Ctrl-C ends it and leaves nothing."""
    process = demo()
    text = read_until(process, r"/metrics")
    port = int(re.search(r"curl -i localhost:(\d+)/payments", text).group(1))
    hapaxes = children(process.pid)
    assert len(hapaxes) == 1

    def pay():
        with connect(("127.0.0.1", port)) as wire:
            wire.send(request_bytes("POST", "/payments", [
                ("Idempotency-Key", '"try-1"'), ("Content-Type", "application/json")],
                b'{"order":"try","cents":1500}'))
            return wire.answer("POST")

    first, again = pay(), pay()
    assert first.status == 201 and not first.replayed, first
    assert again.replayed and again.body == first.body, again
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0
    assert left(tmp_path) == []
    assert not os.path.exists(f"/proc/{hapaxes[0]}")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(demo, tmp_path, number):
    """In the middle of the story, too: hapax is gone, the folder is gone."""
    process = demo("--once")
    read_until(process, r"^1\. ")
    hapaxes = children(process.pid)
    process.send_signal(number)
    assert process.wait(15) == 128 + number
    assert left(tmp_path) == []
    assert not any(os.path.exists(f"/proc/{pid}") for pid in hapaxes)


def test_no_folder(demo, tmp_path):
    """Without a place for its files it says so, and what to do."""
    process = demo("--once", TMPDIR=str(tmp_path / "absent"))
    text, errors = process.communicate(timeout=30)
    assert process.returncode == 1 and "TMPDIR" in errors, f"{text}{errors}"


def test_wrong_arguments(demo):
    """Usage mistakes have exit code 2."""
    process = demo("--twice")
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 2 and "--twice" in errors
