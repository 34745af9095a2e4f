"""Shows that a process which is stopped beyond its lease and then continued
(a paused machine, a long swap) can do no harm with what it believed before."""
import os
import random
import signal
import threading

import pytest

from harness import check
from harness.gateway import merge
from judge import BEHAVIOURS, POLICY, Operation, Task, join, judge, see_through, settle, workload

BEYOND_LEASE = 1.6
EARLY = ("reserve_submitted", "batch_begun", "batch_written", "batch_committed", "reserve_done",
         "send_before")


def stopped(gateway):
    assert not gateway.gone(), f"exit {gateway.process.returncode}:\n{gateway.log()}"
    with open(f"/proc/{gateway.pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


def start_stopping(gateway, step):
    """Starts it so that it stops at the first passing of the step that comes
    after one whole operation: starting itself, and what workers do at the
    start, pass some steps too, and not always as often."""
    counting = gateway.folder / "counting"
    counting.unlink(missing_ok=True)
    gateway.start({"HAPAX_STOP_AT": step, "HAPAX_STEPS_FROM": str(counting)})
    join(workload(gateway, [Operation("")], copies=0))
    # The client has its answer a moment before the gateway is done with it.
    check.until(lambda: gateway.answered() >= 1, "a whole operation")
    counting.touch()


def pause(seconds):
    """Time passes; that is what is tested."""
    threading.Event().wait(seconds)


def test_stopped_at(ground, step):
    """Stopped at a step, continued after its lease is lost."""
    one = ground(POLICY)
    operations = [Operation(b) for b in ("", "delay=0.03", "reset=after", "status=429")]
    start_stopping(one.gateway, step)
    threads = workload(one.gateway, operations)
    check.until(lambda: stopped(one.gateway), f"stopped at {step}")
    pause(BEYOND_LEASE)
    one.gateway.signal(signal.SIGCONT)
    join(threads)
    judge(one.gateway, one.provider, operations, stuck_is_wrong=False)


@pytest.mark.parametrize("early", EARLY)
def test_no_first_byte_after_the_pause(ground, early):
    """Whoever is paused before the first byte sends none afterwards: it leaves
    within half a lease of the asking, or not at all."""
    quiet = {"sweep": {"every": "1h"}, "reap": {"every": "1h"}, "work": {"inside": False}}
    one = ground(merge(POLICY, quiet))
    start_stopping(one.gateway, early)
    operation = Operation("")
    threads = workload(one.gateway, [operation], copies=0)
    check.until(lambda: stopped(one.gateway), f"stopped at {early}")
    assert one.provider.seen(key=operation.key) == []
    pause(BEYOND_LEASE)
    one.gateway.signal(signal.SIGCONT)
    join(threads)
    attempts = [r["Hapax-Attempt"] for r in one.provider.seen(key=operation.key)]
    assert attempts == [], f"attempt {attempts} was sent after the pause: {operation}"
    judge(one.gateway, one.provider, [operation], stuck_is_wrong=False)


@pytest.mark.parametrize("late", ["send_after", "answer_head", "answer_end", "complete_submitted",
                                  "complete_done", "client_answered"])
def test_late_answer_counts(ground, late):
    """Whoever is paused after the sending still has the answer of its own lease:
    it completes the record, though the lease was lost meanwhile."""
    one = ground(POLICY)
    start_stopping(one.gateway, late)
    operation = Operation("")
    tasks = workload(one.gateway, [operation], copies=0)
    check.until(lambda: stopped(one.gateway), f"stopped at {late}")
    pause(BEYOND_LEASE)
    one.gateway.signal(signal.SIGCONT)
    join(tasks)
    check.until(lambda: settle(one.gateway, operation) == "done", f"completed after all: {operation}")
    judge(one.gateway, one.provider, [operation], stuck_is_wrong=False)


def test_stopped_at_random(ground, chance):
    """Stopped at random times under load, again and again."""
    one = ground(POLICY)
    one.gateway.start()
    over, made = threading.Event(), [[], [], []]

    def client(mine, seed):
        while not over.is_set():
            mine.append(Operation(seed.choice(BEHAVIOURS)))
            see_through(one.gateway, mine[-1:])

    tasks = [Task(client, mine, random.Random(chance.random())) for mine in made]
    for _ in range(int(os.environ.get("HAPAX_STOPS", "4"))):
        pause(chance.uniform(0.05, 0.3))
        one.gateway.signal(signal.SIGSTOP)
        pause(BEYOND_LEASE)
        one.gateway.signal(signal.SIGCONT)
    over.set()
    join(tasks)
    operations = sum(made, [])
    judge(one.gateway, one.provider, operations, stuck_is_wrong=False)
    assert len(operations) > 20, "too little load to show anything"
