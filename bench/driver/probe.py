"""Checks before anything is measured: a retry of a key gets the same answer, the
upstream saw one request, what makes commits durable is on, and a first execution
really reaches the disk (its syncs are counted with strace)."""
import http.client
import re
import shutil
import subprocess
import time

from . import usage
from .process import Failed, die_with_parent

BODY = '{"amount":4990,"currency":"EUR","customer":"c-1001","note":"probe"}'
# "1234 1700000000.123456 fdatasync(7) = 0": when it was called.
SYNC = re.compile(r"^\s*\d+\s+([0-9.]+) (?:fsync|fdatasync|sync_file_range|msync)\(", re.MULTILINE)
ATTACH_SECONDS = 10


def send(system, key, body=BODY):
    """(status, body) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", system.port, timeout=30)
    try:
        connection.request("POST", system.path("/payments"), body, {
            "Content-Type": "application/json", "Idempotency-Key": key,
            "Authorization": "Bearer bench-credential"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def expect(what, got, wanted):
    if got != wanted:
        raise Failed(f"{what}: {got!r} instead of {wanted!r}")


def check_once(system):
    """A key is executed once, and its retry gets the same."""
    before = system.upstream.count()
    first = send(system, "probe-once")
    again = send(system, "probe-once")
    executed = system.upstream.count() - before
    expect(f"{system.name}: the status of a first execution", first[0], system.status)
    if not system.replays:
        expect(f"{system.name}: executions of two requests", executed, 2)
        return
    expect(f"{system.name}: the answer to a retry", again, first)
    expect(f"{system.name}: executions of one key", executed, 1)


def check_durable(system):
    """What was read back, as text; wrong settings are no benchmark settings."""
    said = []
    for name, (is_, must) in system.durable().items():
        expect(f"{system.name}: {name}", is_, must)
        said.append(f"{name}={is_}")
    return said


def syncs(system):
    """How often the disk is waited for during a first execution; None where strace may
    not look."""
    pids = settled(system)
    log = system.folder / "strace.log"
    words = ["strace", "-f", "-ttt", "-qq", "-o", str(log), "-e", "trace=fsync,fdatasync,sync_file_range,msync"]
    for pid in pids:
        words += ["-p", str(pid)]
    if shutil.which("strace") is None:
        return None
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          preexec_fn=die_with_parent) as tracer:
        try:
            if not attached(tracer, pids):
                return None
            began = time.time()
            send(system, "probe-syncs")
            ended = time.time()
        finally:
            tracer.terminate()
            tracer.wait()
    return sum(began <= float(when) <= ended for when in SYNC.findall(log.read_text(errors="replace")))


def settled(system):
    """Its processes, once none comes or goes any more."""
    before = None
    for _ in range(100):
        pids = sorted(pid for roots in system.roots().values() for pid in usage.tree(roots))
        if pids == before:
            break
        before = pids
        time.sleep(0.05)
    return before


def tracer_of(pid):
    try:
        return usage.fields_of(pid, "status").get("TracerPid", "0")
    except OSError:
        return "it is gone"


def attached(tracer, pids):
    """Until every process has its tracer."""
    end = time.monotonic() + ATTACH_SECONDS
    while time.monotonic() < end and tracer.poll() is None:
        if all(tracer_of(pid) != "0" for pid in pids):
            return True
        time.sleep(0.01)
    return False


def probe(system):
    """What the report says of a system that does what it claims."""
    check_once(system)
    found = {"durable": check_durable(system), "settings": system.described(), "syncs": None}
    if system.replays:
        found["syncs"] = syncs(system)
        if found["syncs"] == 0:
            raise Failed(f"{system.name}: a first execution never waits for the disk")
    return found
