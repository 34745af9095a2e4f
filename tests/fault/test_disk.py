"""Shows that a full disk and a failing fsync cost availability and nothing
else: what cannot be made durable is refused before anything happens, replays go
on, and it recovers by itself. HAPAX_FILLS asks for more full disks than usual,
HAPAX_SEED for the same run again."""
import os
import pathlib
import shutil
import signal
import subprocess

import power_record
import pytest

from generations import SMALL, check_turnover
from harness import check
from harness.gateway import merge
from harness.secret import new_key
from judge import BEHAVIOURS, POLICY, Operation, Task, join, judge, see_through, try_once
from nodes import Crowd, pause
from timed_ledger import BRIEF

FILLS = int(os.environ.get("HAPAX_FILLS", "8"))
FULL_WRITES = 3000
FULL_BYTES = 6 << 20


def namespace():
    """The command that gives a process mounts of its own; skips where none may."""
    for command in (["unshare", "-m"], ["unshare", "-rm"]):
        probe = command + ["sh", "-c", "mount -t tmpfs -o size=1m tmpfs /mnt"]
        try:
            if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
                return command
        except FileNotFoundError:
            pytest.skip("unshare (util-linux) is not installed")
    pytest.skip("no mount namespace may be made here, so no small disk")
    return None


class SmallDisk:
    """A gateway whose store lies on a tmpfs that only it sees."""

    def __init__(self, ground, folder, size, config, env=None):
        self.mount = folder / "disk"
        self.mount.mkdir()
        script = f'mount -t tmpfs -o size={size},mode=700 tmpfs "$0" && exec "$@"'
        config = merge(merge(POLICY, {"store": f"sqlite:{self.mount}/hapax.db"}), config)
        self.ground = ground(config, wrap=namespace() + ["sh", "-c", script, str(self.mount)])
        self.gateway, self.provider = self.ground.gateway, self.ground.provider
        self.gateway.start(env)

    def refused(self):
        """How many requests the store's state has refused so far."""
        return self.gateway.metrics()["hapax_store_errors_total"]

    @property
    def filler(self):
        return pathlib.Path(f"/proc/{self.gateway.pid}/root{self.mount}/filler")

    def fill(self, leave=0):
        """Takes all of the space but `leave` bytes."""
        free = shutil.disk_usage(self.filler.parent).free
        with open(self.filler, "ab", buffering=0) as file:
            try:
                while free > leave:
                    file.write(bytes(4096))
                    free -= 4096
            except OSError:
                return

    def free(self):
        self.filler.unlink()


def fill_until_refused(disk):
    """The first operations may still find room in the log; then they are refused."""
    for _ in range(500):
        disk.fill()
        key = new_key()
        answer = disk.gateway.post(key=key)
        if answer.status == 503:
            check.problem(answer, "idempotency_store_unavailable")
            return key
        assert answer.status in (200, 504), answer
    raise AssertionError("500 operations on a full disk")


def test_disk_full(ground, tmp_path):
    """Full: 503 and nothing executed, replays go on; with space again, so does all."""
    disk = SmallDisk(ground, tmp_path, "2m", {"limits": {"free_space": 0}})
    gateway, provider = disk.gateway, disk.provider
    stored = new_key()
    first = gateway.post(key=stored)
    with gateway.connect(60) as wire:
        held = new_key()
        wire.send(gateway.request("POST", "/pay", key=held, behave=f"hold={held}"))
        provider.gate(held).wait_arrived()
        refused = fill_until_refused(disk)
        assert provider.seen(key=refused) == [], "executed without a reservation"
        check.same_answer(first, gateway.post(key=stored))
        provider.gate(held).release()
        late = wire.answer()
    assert late.status == 200 or check.problem(late, "upstream_outcome_unknown"), late
    disk.free()
    check.until(lambda: gateway.post(key=refused).status == 200, "it recovers by itself")
    check.until(lambda: gateway.post(key=held).replayed, "the late answer is stored", 30)
    assert (len(provider.ledger(refused)), len(provider.ledger(held))) == (1, 1)
    assert gateway.metrics()["hapax_store_errors_total"] > 0
    assert gateway.admin("/readyz").status == 200


def test_not_ready_is_not_store_down(ground, tmp_path):
    """A store that is down does not make it unready: restarting would not help."""
    disk = SmallDisk(ground, tmp_path, "2m", {"limits": {"free_space": 0}})
    fill_until_refused(disk)
    assert disk.gateway.admin("/readyz").status == 200
    assert disk.gateway.get("/x").status == 200


def test_observe_fails_open(ground, tmp_path):
    """While only observing, a full disk stops nobody."""
    disk = SmallDisk(ground, tmp_path, "2m", {"limits": {"free_space": 0}, "observe": True})
    disk.fill()
    assert [disk.gateway.post().status for _ in range(100)] == [200] * 100


def test_floor_of_free_space(ground, tmp_path):
    """Below the floor new keys are refused while replays and completions go on."""
    disk = SmallDisk(ground, tmp_path, "32m", {"limits": {"free_space": "16MiB"}})
    gateway, provider = disk.gateway, disk.provider
    stored = new_key()
    first = gateway.post(key=stored)
    with gateway.connect() as wire:
        held = new_key()
        wire.send(gateway.request("POST", "/pay", key=held, behave=f"hold={held}"))
        provider.gate(held).wait_arrived()
        disk.fill(leave=8 << 20)
        check.until(lambda: gateway.post().status == 503, "new keys are refused")
        refused = new_key()
        check.problem(gateway.post(key=refused), "idempotency_store_unavailable")
        check.same_answer(first, gateway.post(key=stored))
        provider.gate(held).release()
        done = wire.answer()
    assert done.status == 200, done
    check.same_answer(done, gateway.post(key=held))
    disk.free()
    check.until(lambda: gateway.post(key=refused).status == 200, "it recovers by itself")
    assert (len(provider.ledger(refused)), len(provider.ledger(held))) == (1, 1)


MIB = 1 << 20


def large(disk, key=None):
    return disk.gateway.post(key=key or new_key(), behave="big=3900000")


def fill_by_answers(disk):
    """Stores large answers until new keys are refused although the log has been cut."""
    def settled():
        metrics = disk.gateway.metrics()
        return metrics["hapax_space_low"] == 0 or metrics.get("hapax_store_log_bytes", 0) < MIB

    for _ in range(100):
        answer = large(disk)
        if answer.status == 503:
            check.problem(answer, "idempotency_store_unavailable")
            check.until(settled, "the log is cut")
            if disk.gateway.metrics()["hapax_space_low"] == 1:
                return
    raise AssertionError("the disk does not get full")


def test_space_heals(ground, tmp_path):
    """A store that has filled its disk takes new keys again, without a restart, when its records
    have expired: into the pages that are free inside its file, which does not grow. The reaper
    does not wait for its time. The log still needs room on the disk itself."""
    disk = SmallDisk(ground, tmp_path, "64m", {
        "limits": {"free_space": "32MiB", "response_body": "4MiB"}, "cache": 0,
        "defaults": {"retention": "5s", "lease": "30s"}, "reap": {"every": "1h", "batch": 1}})
    gateway, provider = disk.gateway, disk.provider
    file = disk.filler.parent / "hapax.db"
    with gateway.connect(60) as wire:
        held = new_key()
        wire.send(gateway.request("POST", "/pay", key=held, behave=f"hold={held}; big=900000"))
        provider.gate(held).wait_arrived()
        fill_by_answers(disk)
        provider.gate(held).release()
        assert wire.answer().status == 200, "a completion is what the space was kept for"
    gateway.wait_log(r"event=space_low .*free pages inside the file together")
    refused = new_key()
    check.until(lambda: gateway.post(key=refused).status == 200, "new keys are taken again", 30)
    gateway.wait_log("event=space_enough")
    size, used = file.stat().st_size, shutil.disk_usage(file.parent)
    assert used.free < 32 * MIB, "the file has grown beyond what would be free without its pages"
    for _ in range(3):
        check.until(lambda: large(disk).status == 200, "a large answer is stored again")
    assert file.stat().st_size - size < MIB, "it is written into the free pages"
    assert len(provider.ledger(refused)) == 1

    since = len(gateway.lines)

    def squeezed():
        disk.fill(leave=4 * MIB)  # once more: what the log gives back is taken too
        return gateway.post().status == 503 and any("which the log needs" in line for line in gateway.lines[since:])

    check.until(squeezed, "there is no room for the log")
    disk.free()
    check.until(lambda: gateway.post().status == 200, "new keys are taken again")


class OneSite:
    """A small disk's gateway, for clients who else have several."""

    def __init__(self, disk):
        self.provider = disk.provider
        self.post = disk.gateway.post


def judge_healed(one, crowd, restart):
    """Nothing is left to wait for: all of it is definite now, and after the next start."""
    check.until(lambda: one.gateway.post().status == 200, "new keys are taken again", 30)
    operations = crowd.finish()
    judge(one.gateway, one.provider, operations, stuck_is_wrong=False)
    restart()
    return list(judge(one.gateway, one.provider, operations).values())


def test_full_again_and_again(ground, tmp_path, chance):
    """Full to a random page, and free again, while generations open, close and are
    reaped: nothing is lost or repeated, and each time it heals by itself."""
    disk = SmallDisk(ground, tmp_path, "32m", BRIEF, env=SMALL)
    crowd = Crowd(OneSite(disk), chance, 4).start()
    try:
        for _ in range(FILLS):
            count, refused = crowd.count(), disk.refused()
            check.until(lambda c=count: crowd.failed or crowd.count() > c + 20, "traffic goes on", 30)
            leave = chance.choice((0, 0, chance.randrange(64) * 4096))

            def full(leave=leave, refused=refused):
                disk.fill(leave)  # once more: what is given back is taken too
                return crowd.failed or leave or disk.refused() > refused

            check.until(full, "new keys are refused", 30)
            pause(chance.uniform(0.0, 0.3))
            disk.free()
        ends = judge_healed(disk.ground, crowd, lambda: None)
    finally:
        crowd.tell_to_stop()
    disk.gateway.signal(signal.SIGSTOP)
    check_turnover(disk.filler.parent / "hapax.db")
    print(f"{FILLS} times full, {crowd.count()} operations: {ends.count('done')} done, {ends.count('unknown')} unknown")


def test_any_write_finds_no_room(ground, tmp_path, chance):
    """One write, or several in a row, find no room, wherever in a transaction or a
    checkpoint that is: nothing is lost or repeated, and it heals by itself."""
    one = ground(merge(POLICY, BRIEF))
    first = [chance.randrange(30, 60)]
    while first[-1] < FULL_WRITES:
        first.append(first[-1] + chance.randrange(20, 70))
    full = ",".join(f"{n}-{n + chance.choice((0, 0, 1, 3, 12))}" for n in first)
    path = one.gateway.folder / "hapax.db"
    one.gateway.start(SMALL)
    one.gateway.stop()
    (tmp_path / "record").touch()
    one.gateway.wrap = power_record.wrap(tmp_path, path, tmp_path / "record", full=full)
    one.gateway.start(SMALL)
    crowd = Crowd(OneSite(one), chance, 4).start()

    def over():
        return crowd.failed or os.stat(tmp_path / "record").st_size > FULL_BYTES

    def restart():
        one.gateway.kill()
        one.gateway.wrap = []
        one.gateway.start(SMALL)

    try:
        check.until(over, f"{FULL_BYTES} bytes are written", 60)
        ends = judge_healed(one, crowd, restart)
    finally:
        crowd.tell_to_stop()
    print(f"full at {full}, {crowd.count()} operations: {ends.count('done')} done, {ends.count('unknown')} unknown")
    assert ends.count("done") > 20, ends


def failing_sync(when):
    """strace, which lets some fsyncs of each thread fail; skips where it may not trace."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    return ["strace", "-D", "-f", "-q", "-o", "/dev/null", "-e", "trace=fsync,fdatasync",
            "-e", f"inject=fsync,fdatasync:error=EIO:when={when}"]


# strace traces a sanitizer's leak check out of its own tracing.
NO_LEAK_CHECK = {"ASAN_OPTIONS": "detect_leaks=0"}


@pytest.mark.parametrize("when", ["12+7", "15+3", "11+31"])
def test_fsync_keeps_failing(ground, chance, when):
    """Every n-th fsync fails, for ever: refused or unknown, never twice, and
    nothing that a client saw is lost after the next start."""
    one = ground(merge(POLICY, {"defaults": {"lease": "2s"}}), wrap=failing_sync(when))
    one.gateway.start(NO_LEAK_CHECK)
    operations = [Operation(chance.choice(BEHAVIOURS)) for _ in range(45)]

    def client(mine):
        for operation in mine:
            for _ in range(3):
                if try_once(one.gateway, operation):
                    break

    join([Task(client, operations[n::3]) for n in range(3)])
    assert one.gateway.metrics()["hapax_store_errors_total"] > 0, "no fsync failed"
    one.gateway.kill()
    one.gateway.wrap = []
    one.gateway.start()
    judge(one.gateway, one.provider, operations)


@pytest.mark.parametrize("when", ["13", "13..15", "12..22"])
def test_fsync_fails_for_a_while(ground, chance, when):
    """A few fsyncs fail: it re-opens its store and goes on by itself, and so
    does everybody's operation."""
    one = ground(merge(POLICY, {"defaults": {"lease": "2s"}}), wrap=failing_sync(when))
    one.gateway.start(NO_LEAK_CHECK)
    operations = [Operation(chance.choice(BEHAVIOURS)) for _ in range(45)]
    join([Task(see_through, one.gateway, operations[n::3]) for n in range(3)])
    assert one.gateway.metrics()["hapax_store_errors_total"] > 0, "no fsync failed"
    judge(one.gateway, one.provider, operations, stuck_is_wrong=False)
    assert one.gateway.post().status == 200
