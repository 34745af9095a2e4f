"""Shows that `hapax demo` tells its story, that every step comes out right by
the ledgers, and that nothing of it is left behind, whichever way it ends."""
import os
import re
import signal
import subprocess

import pytest

from conftest import require_program
from harness.gateway import ROOT, binary

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


def test_the_recording_is_of_this_demo():
    """docs/pictures/demo.svg says line by line what the demo says now; times, ids and folders aside."""
    require_program()
    done = subprocess.run([ROOT / "tools/recording", "--check", str(binary())], capture_output=True, text=True,
                          timeout=90, check=False)
    assert done.returncode == 0, f"if this is right, run tools/recording:\n{done.stdout}{done.stderr}"


def test_no_proxy_is_asked(demo):
    """The proxies of the environment lead nowhere near the demo's own ports."""
    process = demo("--once", http_proxy="http://127.0.0.1:1", no_proxy="")
    text, errors = process.communicate(timeout=90)
    assert process.returncode == 0, f"exit {process.returncode}:\n{text}{errors}"


def test_narrow_and_plain(demo):
    """In a pipe there is no colour, and no line is wider than a terminal."""
    text, _ = demo("--once").communicate(timeout=90)
    wide = [line for line in text.splitlines() if len(line) > 80 and "--config" not in line]
    assert not wide, wide
    assert "\033" not in text


def commands(text):
    """The command lines in a page or in what the demo printed, each whole."""
    text = re.sub(r"\\\n +", "", text)
    return [line.strip() for line in text.splitlines() if re.match(r" *(curl|\S*/hapax) ", line)]


def run(command, cwd):
    """What a line that a person types prints; it must succeed."""
    done = subprocess.run(["sh", "-c", command], cwd=cwd, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_it_keeps_running(demo, tmp_path):
    """After the story the printed lines work; Ctrl-C ends it and leaves nothing."""
    process = demo()
    text = read_until(process, r"/metrics")
    hapaxes = children(process.pid)
    assert len(hapaxes) == 1
    pay, without, with_hapax, show, ls, metrics = commands(text[text.index("Try in another terminal"):])
    first, again = run(pay, tmp_path), run(pay, tmp_path)
    assert first.startswith("HTTP/1.1 201 ") and "Idempotent-Replayed" not in first, first
    assert again.startswith("HTTP/1.1 201 ") and "Idempotent-Replayed: true" in again, again
    assert again.splitlines()[-1] == first.splitlines()[-1]
    assert "order-1001" not in run(without, tmp_path)
    assert run(with_hapax, tmp_path).count("order-1001") == 1
    assert "completed" in run(show, tmp_path)
    assert len(run(ls, tmp_path).splitlines()) > len(STEPS)
    assert "hapax_reserve_total" in run(metrics, tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0
    assert left(tmp_path) == []
    assert not os.path.exists(f"/proc/{hapaxes[0]}")


def test_the_minute_of_the_readme(demo, tmp_path):
    """Word for word, on the demo; only the port and the folder may be others, where
    somebody has 8080."""
    process = demo()
    text = read_until(process, r"/metrics")
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    minute = re.search(r"^## One minute with curl$(.*?)^## ", page, re.M | re.S).group(1)
    minute = minute.replace("http://127.0.0.1:8080/", re.search(r"http://127\.0\.0\.1:\d+/", text).group())
    minute = minute.replace("sqlite:/tmp/hapax-demo/", f"sqlite:{tmp_path}/hapax-demo/")
    folder = tmp_path / "elsewhere"
    (folder / "build").mkdir(parents=True)
    (folder / "build/hapax").symlink_to(binary())
    block = re.search(r"^```sh$(.*?)^```$", minute, re.M | re.S).group(1)
    first, again, other, show = [run(command, folder) for command in commands(block)]
    assert first.startswith("HTTP/1.1 201 "), first
    assert again.startswith("HTTP/1.1 201 ") and "Idempotent-Replayed: true" in again, again
    assert again.splitlines()[-1] == first.splitlines()[-1]
    assert other.startswith("HTTP/1.1 422 ") and "idempotency_key_reused" in other, other
    operation = re.search(r"^Hapax-Operation: (\S+)", first, re.M).group(1)
    assert operation in show and "completed" in show, show


def test_the_known_folder_is_taken(demo, tmp_path):
    """Somebody's file of that name stays as it is, and the printed line works."""
    (tmp_path / "hapax-demo").write_text("mine")
    process = demo()
    text = read_until(process, r"/metrics")
    pay, _, _, show, *_ = commands(text[text.index("Try in another terminal"):])
    run(pay, tmp_path)
    assert "completed" in run(show, tmp_path)
    process.send_signal(signal.SIGINT)
    assert process.wait(15) == 0
    assert (tmp_path / "hapax-demo").read_text() == "mine" and left(tmp_path) == ["hapax-demo"]


def test_what_a_killed_demo_left(demo, tmp_path):
    """It is removed by the next one, which has the known folder again; a running one keeps its own."""
    killed = demo()
    read_until(killed, r"/metrics")
    killed.kill()
    killed.wait(15)
    (tmp_path / "hapax-demo/mark").touch()
    demos = [demo(), demo()]
    stores = [re.search(r"sqlite:(\S+)/hapax\.db", read_until(one, r"/metrics")).group(1) for one in demos]
    assert f"{tmp_path}/hapax-demo" in stores and len(set(stores)) == 2, stores
    assert not (tmp_path / "hapax-demo/mark").exists()
    for one in demos:
        one.send_signal(signal.SIGINT)
        assert one.wait(15) == 0
    assert left(tmp_path) == []


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
