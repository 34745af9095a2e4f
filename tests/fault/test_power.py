"""Shows that a power cut loses nothing that was told and repeats nothing: what a file
system had not been asked to make durable is gone, all of it or in part, in any order.

Once on a real file system, ext4 on a loop device that is shut down by force while
clients never stop, where this machine allows it; and always by a record of all that
the server wrote, from which the disk is built anew as it could be at any moment.
HAPAX_POWER_CUTS asks for more cuts than usual, HAPAX_SEED for the same run again."""
import fcntl
import os
import pathlib
import signal
import struct
import subprocess
import threading

import power_record
import pytest

from generations import SMALL, check_turnover
from harness import check
from harness.gateway import merge
from judge import POLICY, Operation, Task, join, judge, send
from nodes import Crowd, pause
from test_disk import namespace
from test_kill import Site
from timed_ledger import BRIEF, BRIEF_TARGET

CUTS = int(os.environ.get("HAPAX_POWER_CUTS", "25"))
CLIENTS = 4
RECORDED_OPERATIONS = 120
RECORDED = ("", "", "delay=0.02", "status=201", "status=429", "big=9000", "big=100000", "reset=after")
IMAGE_BYTES = 96 << 20
MOUNT = 'mount -o loop "$0" "$1" && shift && exec "$@"'
# _IOR('X', 125, __u32), which ext4 took from XFS. With LOG its journal is written out
# first; without it, what is in memory is gone.
SHUTDOWN, LOG, NO_LOG = 0x8004587D, 1, 2


def make_image(path):
    with open(path, "wb") as file:
        file.truncate(IMAGE_BYTES)
    made = subprocess.run(["mkfs.ext4", "-q", "-F", "-b", "4096", str(path)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr


def require_loop_mount(image, folder):
    """Skips where no file system may be mounted from a file and shut down."""
    command = namespace() + ["sh", "-c", MOUNT, str(image), str(folder), "sleep", "0"]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"no loop device may be mounted here: {mounted.stderr.strip()}")


class Machine:
    """A gateway whose store lies on an ext4 of its own, and whose power can be cut."""

    def __init__(self, ground, folder):
        self.image, self.mount = folder / "disk.img", folder / "disk"
        self.mount.mkdir()
        make_image(self.image)
        require_loop_mount(self.image, self.mount)
        wrap = namespace() + ["sh", "-c", MOUNT, str(self.image), str(self.mount)]
        config = merge(merge(POLICY, BRIEF), {"store": f"sqlite:{self.mount}/hapax.db"})
        self.ground = ground(config, wrap=wrap)
        self.gateway, self.provider = self.ground.gateway, self.ground.provider

    def is_mounted(self):
        """A dead namespace lets go of its device a moment later."""
        return subprocess.run(["losetup", "-j", str(self.image)], capture_output=True, check=True).stdout

    def start(self):
        check.until(lambda: not self.is_mounted(), "the loop device is free", 30)
        self.gateway.start(SMALL)

    def inside(self):
        return pathlib.Path(f"/proc/{self.gateway.pid}/root{self.mount}")

    def is_stopped(self):
        """No thread runs, and none is inside a system call."""
        tasks = pathlib.Path(f"/proc/{self.gateway.pid}/task").glob("*/stat")
        return all(task.read_text(errors="replace").rsplit(")", 1)[1].split()[0] == "T" for task in tasks)

    def cut(self, chance):
        """The server is stopped first: ext4 (seen on Linux 6.18) tells a sync that is under
        way when it is shut down that it was done, which no disk without power does. A cut
        in the middle of a sync is the other test's."""
        self.gateway.signal(signal.SIGSTOP)
        check.until(self.is_stopped, "every thread is stopped")
        root = os.open(self.inside(), os.O_RDONLY)
        try:
            fcntl.ioctl(root, SHUTDOWN, struct.pack("I", chance.choice((LOG, NO_LOG, NO_LOG))))
        except OSError as failure:
            pytest.skip(f"this file system cannot be shut down by force: {failure}")
        finally:
            os.close(root)
        self.gateway.kill()


def test_power_cuts(ground, tmp_path, chance):
    """The power fails again and again, while clients never stop."""
    machine = Machine(ground, tmp_path)
    machine.start()
    crowd = Crowd(Site(machine.ground), chance, CLIENTS).start()
    try:
        for _ in range(CUTS):
            pause(chance.uniform(0.02, 0.3))
            machine.cut(chance)
            machine.start()
            if crowd.failed:
                break
        operations = crowd.finish()
    finally:
        crowd.tell_to_stop()
    ends = list(judge(machine.gateway, machine.provider, operations).values())
    print(f"{CUTS} cuts, {crowd.count()} operations, of those that are kept "
          f"{ends.count('done')} done, {ends.count('unknown')} unknown")
    assert len(operations) > CUTS and ends.count("done") > ends.count("unknown") / 2
    machine.gateway.signal(signal.SIGSTOP)
    check_turnover(machine.inside() / "hapax.db")


# By a record.
class Witness(Operation):
    """An operation that remembers how long the record was at its effect and when its
    client was told: a cut behind that must not undo it."""

    def __init__(self, behave, log):
        super().__init__(behave)
        self.log = log
        self.told_at = None
        self.answers = []

    def now(self):
        return os.stat(self.log).st_size

    def try_once(self, gateway):
        for behave in (self.behave, "", ""):
            answer = send(gateway, self, behave)
            if answer is None:
                continue
            self.answers.append((self.now(), answer))
            if self.saw(answer):
                break

    def told_before(self, position):
        """The body that a client had by then; None where there was none."""
        found = [answer.body for at, answer in self.answers if at <= position and answer.status < 300]
        return found[0] if found else None


class Watched:
    """The provider's effects, each with the length that the record had then."""

    def __init__(self, provider, log):
        self.effects, self.log = {}, log
        self.provider, self.plain = provider, provider.effect
        provider.effect = self.effect

    def effect(self, request):
        self.plain(request)
        self.effects.setdefault(request["Idempotency-Key"].strip('"'), []).append(os.stat(self.log).st_size)

    def close(self):
        """What happens from here on is after a cut."""
        self.provider.effect = self.plain

    def count(self, key, position):
        return sum(at <= position for at in self.effects.get(key, []))


def record_load(one, log, chance, fails):
    """Clients on a server whose writes are recorded, until it is killed."""
    path = one.gateway.folder / "hapax.db"
    one.gateway.start(SMALL)
    one.gateway.stop()
    base = path.read_bytes()
    log.touch()
    watched = Watched(one.provider, log)
    one.gateway.wrap = power_record.wrap(one.gateway.folder, path, log, fails)
    one.gateway.start(SMALL)
    operations = [Witness(chance.choice(RECORDED), log) for _ in range(RECORDED_OPERATIONS)]
    over = threading.Event()
    others = [Task(brief_load, one.gateway, over) for _ in range(2)]
    tasks = [Task(lambda mine: [o.try_once(one.gateway) for o in mine], operations[n::CLIENTS]) for n in range(CLIENTS)]
    join(tasks)
    over.set()
    join(others)
    one.gateway.kill()
    one.gateway.wrap = []
    watched.close()
    return base, operations, watched


def brief_load(gateway, over):
    """What expires and is reaped beside the operations that are judged."""
    while not over.is_set():
        send(gateway, Operation("", BRIEF_TARGET))


def check_witness(one, operation, watched, position):
    """What a retry after the cut shows."""
    answer = send(one.gateway, operation)
    assert answer is not None, f"no answer: {operation}"
    happened, told = watched.count(operation.key, position), operation.told_before(position)
    code = answer.json()["code"] if answer["Content-Type"] == "application/problem+json" else ""
    again = len(one.provider.ledger(operation.key))
    assert happened <= 1 and happened + again <= 1, f"{happened} effects, then {again} more: {operation} {answer}"
    assert code in ("", "response_not_kept", "idempotency_outcome_unknown"), f"{code}: {operation}"
    if told is not None and len(told) <= 65536:
        assert answer.body == told, f"{answer.body[:80]}, not {told[:80]}: {operation} {answer}"
    elif told is not None:
        assert code == "response_not_kept", f"{answer}: {operation}"
    return code or ("replayed" if answer.replayed else "executed")


def judge_cut(one, base, entries, operations, watched, chance):
    """One cut, and all retries after it; what they came to, or the failure with its cut."""
    position = chance.choice(entries).end
    os.truncate(one.provider.ledger_path, 0)
    how = power_record.rebuild(base, entries, position, one.gateway.folder / "hapax.db", chance)
    try:
        one.gateway.start(SMALL)
        found = [check_witness(one, o, watched, position) for o in operations]
    except AssertionError as failure:
        raise AssertionError(f"{how}: {failure}") from None
    finally:
        one.gateway.kill()
    return found


@pytest.mark.parametrize("fails", ["", "30-30,60-63,140-145,230-230,330-333"])
def test_recorded(ground, tmp_path, chance, fails):
    """Cut anywhere, with any part of what was not synced: whatever was told by then is
    there, and nothing that had happened by then happens again; also where syncs failed
    before, and what they were to cover is lost for good."""
    one = ground(merge(merge(POLICY, BRIEF), {"defaults": {"lease": "10s"}}))
    base, operations, watched = record_load(one, tmp_path / "record", chance, fails)
    entries = power_record.read(tmp_path / "record")
    syncs = [sum(e.kind == kind for e in entries) for kind in "SF"]
    found = []
    for _ in range(CUTS):
        found += judge_cut(one, base, entries, operations, watched, chance)
    print(f"{len(entries)} entries, {syncs[0]} syncs, {syncs[1]} failed: {({f: found.count(f) for f in sorted(set(found))})}")
    assert found.count("replayed") > 0 and found.count("executed") > 0, "the cuts were all alike"
    assert bool(fails) == (syncs[1] > 0), f"{syncs[1]} syncs failed"
