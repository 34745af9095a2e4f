"""How long a start takes, and what it uses: after an orderly end, with nothing of the
store's file in memory, and after kill -9 under load."""
import http.client
import os
import signal
import time

from . import measure, usage
from .process import Failed, Process

LOOK_SECONDS = 0.002
READY_SECONDS_MAX = 300
KINDS = {"orderly": "after an orderly end", "cold": "the same, nothing of the file in memory",
         "killed": "after kill -9 under load"}


def status_of(port, method, path, body=None, headers=None):
    """0 while nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, headers or {})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def wait_for(process, answers, what):
    """Seconds are counted by the caller."""
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not answers():
        if process.handle.poll() is not None:
            raise Failed(f"hapax ended with {process.handle.returncode}: {process.tail()}")
        if time.monotonic() > deadline:
            raise Failed(f"{what} after {READY_SECONDS_MAX} s: {process.tail()}")
        time.sleep(LOOK_SECONDS)


def timed_start(system, key):
    """Starts the program; milliseconds until it is ready and until it has executed
    something, and its CPU until then."""
    began = time.monotonic()
    process = Process("hapax", system.command(), system.folder)
    system.programs.append(process)
    wait_for(process, lambda: status_of(system.admin, "GET", "/readyz") == 200, "not ready")
    ready = time.monotonic()
    wait_for(process, lambda: executes(system, key), "nothing executed")
    answered = time.monotonic()
    return {"ready_ms": (ready - began) * 1000, "answer_ms": (answered - began) * 1000,
            "cpu_ms": usage.use([process.pid]).cpu * 1000, "rss": usage.memory([process.pid])[0]}


def executes(system, key):
    return status_of(system.port, "POST", "/payments", "{}", {
        "Content-Type": "application/json", "Idempotency-Key": key,
        "Authorization": "Bearer bench-credential"}) == 201


def forget_file(path):
    """The kernel drops what it holds of a file, once it is on the disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)


def end_program(system, how=signal.SIGTERM):
    """Ends the program and leaves its database."""
    for process in system.programs:
        process.stop(how, READY_SECONDS_MAX)
    system.programs.clear()


def kill_under_load(system, load, run_name):
    """kill -9 in the midst of first executions."""
    generator = measure.Generator(measure.command(system, load, load.connections[0], run_name))
    try:
        generator.line("begin")
        time.sleep(system.settings.seconds / 2)
        end_program(system, signal.SIGKILL)
    finally:
        generator.stop()


def starts(system, load, run_name):
    """Yields a sample for each kind of start. The store was opened by nobody before, so
    what is done only once is done first."""
    system.open_store()
    timed_start(system, f"{run_name}-once")
    measure.settle(system)
    end_program(system)
    for kind in KINDS:
        if kind == "cold":
            if system.database is not None:
                continue   # its pages are in its own memory
            forget_file(system.store.removeprefix("sqlite:"))
        if kind == "killed":
            timed_start(system, f"{run_name}-before")
            kill_under_load(system, load, run_name)
        sample = timed_start(system, f"{run_name}-{kind}")
        end_program(system)
        yield {"system": system.name, "load": load.name, "stored": load.stored, "kind": kind,
               "connections": load.connections[0], **sample}


def text_of(sample):
    return (f"{KINDS[sample['kind']]}: {sample['cpu_ms']:.0f} ms CPU, ready in {sample['ready_ms']:.0f} ms, "
            f"executes after {sample['answer_ms']:.0f} ms, {sample['rss'] / 2**20:.0f} MiB")
