"""Shows that a server and an application with libhapax on the same SQLite file are one:
where both reserve the same keys at the same time, while generations open and close,
exactly one of them executes each, whichever of them dies meanwhile."""
import contextlib
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import threading

import pytest

from generations import SMALL, numbers
from harness.gateway import binary
from harness.operator_command import Operator
from judge import POLICY, Operation, Task, join, judge, settle, try_once

KEYS = 320
TOGETHER = 8
KILLS = int(os.environ.get("HAPAX_LIBRARY_KILLS", "40"))
PROCESS = pathlib.Path(__file__).with_name("library_process.py")
# A fast provider, so that the server wins its share.
BEHAVIOURS = ("", "", "", "delay=0.01")


class LibraryProcess:
    """library_process.py on the store of one gateway, and what it told so far."""

    def __init__(self, one, mode, names, lease_ms=1000):
        options = {"url": one.gateway.config["store"], "mode": mode, "ledger": one.provider.ledger_path,
                   "tenant": names["tenant"], "scope": names["scope"], "lease_ms": lease_ms}
        # One that is built with a sanitizer cannot be loaded into Python: HAPAX_LIBRARY_STEPS.
        beside = pathlib.Path(binary(steps=True)).parent / "libhapax.so"
        library = os.environ.get("HAPAX_LIBRARY_STEPS") or beside
        self.errors = open(one.gateway.folder / "library.log", "a+", encoding="utf-8")
        self.process = subprocess.Popen([sys.executable, "-B", str(PROCESS), json.dumps(options)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors,
                                        env={**os.environ, **SMALL, "HAPAX_LIBRARY": str(library)})
        self.told = {}
        self.news = threading.Condition()
        assert self.process.stdout.readline() == "ready\n", self.log()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def log(self):
        self.errors.seek(0)
        return self.errors.read()

    def read(self):
        for line in self.process.stdout:
            if line.endswith("}\n"):
                found = json.loads(line)
                with self.news:
                    self.told[found["key"]] = found
                    self.news.notify_all()
        self.process.wait()
        with self.news:
            self.news.notify_all()

    def ask(self, keys):
        with contextlib.suppress(BrokenPipeError):  # killed by the test
            self.process.stdin.write("\n".join(keys) + "\n")
            self.process.stdin.flush()

    def wait(self, keys):
        """Until it has told what became of all of them, or is dead."""
        with self.news:
            done = self.news.wait_for(lambda: self.process.poll() is not None or all(k in self.told for k in keys), 120)
        assert done, f"no answer for {[k for k in keys if k not in self.told]}\n{self.log()}"

    def close(self):
        """Its exit code."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        code = self.process.wait(60)
        self.reader.join(60)
        self.process.stdout.close()
        assert code in (0, -9), f"exit {code}:\n{self.log()}"
        self.errors.close()
        return code


def names_of(one):
    """Tenant and scope of the gateway's requests, as its records have them."""
    answer = one.gateway.post()
    return Operator(one.gateway).key(answer["Hapax-Operation"])


def through(gateway, operation):
    """One operation by the gateway, until it is definite."""
    if not try_once(gateway, operation):
        settle(gateway, operation)


def rows_of(one):
    """The effects that the application committed to its own table."""
    path = one.gateway.config["store"].partition(":")[2]
    with contextlib.closing(sqlite3.connect(path)) as db:
        if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'effect'").fetchone():
            return []
        return [key for key, in db.execute("SELECT key FROM effect")]


def effects_of(one):
    lines = [line[2].strip('"') for line in one.provider.ledger()]
    return lines + rows_of(one)


def race(one, process, operations, chance):
    """Both on the same few keys at the same moment; then the next few."""
    for start in range(0, len(operations), TOGETHER):
        block = operations[start:start + TOGETHER]
        keys = [o.key for o in block]
        chance.shuffle(keys)
        process.ask(keys)
        tasks = [Task(through, one.gateway, o) for o in block]
        join(tasks)
        process.wait(keys)


def check_told(operation, effects, told):
    """One effect at most, one where anybody was told of success, and one answer."""
    count = effects.count(operation.key)
    bodies = {body.decode("latin-1") for body in operation.successes} | {t["body"] for t in told if "body" in t}
    assert count <= 1, f"{count} effects: {operation} {told}"
    assert not bodies or count == 1, f"success without an effect: {operation} {told}"
    assert len(bodies) <= 1, f"two answers: {bodies} {operation} {told}"
    return bodies


@pytest.mark.parametrize("mode", ["own", "borrowed"])
def test_one_wins(ground, chance, mode):
    """Both at the same time: one effect for each key, and one answer for all who ask."""
    one = ground(POLICY)
    one.gateway.start(SMALL)
    operations = [Operation(chance.choice(BEHAVIOURS)) for _ in range(KEYS)]
    process = LibraryProcess(one, mode, names_of(one))
    race(one, process, operations, chance)
    assert process.close() == 0
    told = process.told
    effects = effects_of(one)
    for operation in operations:
        assert check_told(operation, effects, [told[operation.key]]), f"nobody did it: {operation} {told[operation.key]}"
    won = sum(told[o.key]["verdict"] == "executed" for o in operations)
    print(f"of {KEYS} keys the application executed {won}; generations {numbers(one.gateway.folder / 'hapax.db')}")
    assert 0 < won < KEYS, f"{won} of {KEYS}: they did not meet"
    assert len(numbers(one.gateway.folder / "hapax.db")) > 2, "no generation closed meanwhile"


def kill_at_random(one, process, over, chance):
    """The server again and again, and the application once."""
    last = chance.randrange(2, 10)
    for number in range(KILLS):
        if over.wait(chance.uniform(0.02, 0.15)):
            break
        one.gateway.kill()
        one.gateway.start(SMALL)
        if number == last:
            process.kill()


@pytest.mark.parametrize("mode", ["own", "borrowed"])
def test_killed_beside_each_other(ground, chance, mode):
    """The server dies again and again and the application once, both in the middle of
    attempts: no key has two effects, and what either of them told stays true."""
    one = ground(POLICY)
    one.gateway.start(SMALL)
    names = names_of(one)
    operations = [Operation(chance.choice(BEHAVIOURS)) for _ in range(2 * KEYS)]
    process, over = LibraryProcess(one, mode, names), threading.Event()
    killer = Task(kill_at_random, one, process.process, over, random.Random(chance.random()))
    race(one, process, operations, chance)
    over.set()
    join([killer])
    killed = process.close()
    again = LibraryProcess(one, mode, names)
    again.ask([o.key for o in operations])
    again.wait([o.key for o in operations])
    assert again.close() == 0
    effects = effects_of(one)
    for operation in operations:
        check_told(operation, effects, [p.told[operation.key] for p in (process, again) if operation.key in p.told])
    verdicts = [found["verdict"] for found in again.told.values()]
    print(f"exit {killed}, then", {v: verdicts.count(v) for v in sorted(set(verdicts))})
    assert killed == -9 and verdicts.count("replayed") > KEYS
    if mode == "own":
        judge(one.gateway, one.provider, operations, stuck_is_wrong=False)
