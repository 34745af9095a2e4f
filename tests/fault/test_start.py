"""Shows that one server has a SQLite file at any time: of several that start at once one
serves and the others say why they do not; a start waits for a server that is being
killed, and finds everything that it left."""
import os
import random

import pytest

from generations import SMALL
from harness.gateway import Gateway, READY_SECONDS
from judge import BEHAVIOURS, POLICY, Operation, Task, join, judge, settle, try_once

ROUNDS = int(os.environ.get("HAPAX_STARTS", "4"))
TOGETHER = 3


def siblings(one, count):
    """More gateways on the same file, with ports and logs of their own."""
    store = {**POLICY, "store": f"sqlite:{one.gateway.folder}/hapax.db"}
    made = []
    for number in range(count):
        folder = one.gateway.folder / f"sibling-{number}"
        folder.mkdir(exist_ok=True)
        made.append(Gateway(folder, one.provider.url, store, True))
    return made


def wait_decided(gateway):
    """Whether it serves; if not, that it said why."""
    with gateway.news:
        gateway.news.wait_for(lambda: gateway.ready or gateway.gone(), READY_SECONDS)
    if gateway.ready:
        return True
    code = gateway.wait()
    assert code == 1, f"exit {code}, not 1:\n{gateway.log()}"
    gateway.wait_log(r"hapax\.db.*(lock|server|another)")
    return False


def end(gateways):
    for gateway in gateways:
        gateway.kill()
        gateway.check_log()


@pytest.mark.parametrize("is_new", [True, False])
def test_started_at_once(ground, chance, is_new):
    """Three starts in the same moment, on a file that is there and on one that is not."""
    one = ground(POLICY)
    operations = []
    if not is_new:
        one.gateway.start(SMALL)
    for _ in range(ROUNDS):
        if is_new:
            for path in one.gateway.folder.glob("hapax.db*"):
                path.unlink()
            operations.clear()
        one.gateway.kill()
        racers = siblings(one, TOGETHER)
        for gateway in racers:
            gateway.spawn(SMALL)
        serving = [gateway for gateway in racers if wait_decided(gateway)]
        assert len(serving) == 1, f"{len(serving)} serve the same file, not 1"
        operations += [Operation(chance.choice(BEHAVIOURS)) for _ in range(4)]
        for operation in operations[-4:]:
            try_once(serving[0], operation)
        judge(serving[0], one.provider, operations)
        end(racers)


def test_started_while_another_dies(ground, chance):
    """A server is killed under load while the next one already waits for its lock: what
    was told is answered by the next, and nothing runs again."""
    one = ground(POLICY)
    operations, serving = [], one.gateway
    serving.start(SMALL)
    for _ in range(ROUNDS):
        fresh = [Operation(chance.choice(BEHAVIOURS)) for _ in range(8)]
        operations += fresh
        tasks = [Task(try_once, serving, operation) for operation in fresh]
        waiting = siblings(one, 1)[0].spawn(SMALL)
        random.Random(chance.random()).shuffle(fresh)
        for operation in fresh[:chance.randrange(8)]:
            try_once(serving, operation)
        serving.kill()
        join(tasks)
        assert wait_decided(waiting), f"it did not take over:\n{waiting.log()}"
        for operation in fresh:
            settle(waiting, operation, stuck_is_wrong=True)
        serving = waiting
    judge(serving, one.provider, operations)
    end([serving])


def test_one_is_enough(ground):
    """A second server on a file that is served gives up, and the first goes on."""
    one = ground(POLICY)
    one.gateway.start(SMALL)
    second = siblings(one, 1)[0].spawn(SMALL)
    assert not wait_decided(second)
    operation = Operation("")
    try_once(one.gateway, operation)
    judge(one.gateway, one.provider, [operation])
