"""libhapax as an application uses it, by way of ctypes: an operation that owes
jobs to others, on any store. The library is the one beside the program."""
import ctypes
import hashlib
import os
import pathlib
import threading
import time

from .gateway import binary

OK, STALE, BUSY, UNAVAILABLE, UNCERTAIN = 0, 4, 7, 8, 9
EXECUTE, REPLAY, IN_PROGRESS, UNKNOWN = range(4)
LOST_UNKNOWN, LOST_REPEAT = 0, 2
PROBLEM_SIZE, LEASE_SIZE, POINT_SIZE = 512, 98, 64
INSIST_SECONDS = 25


class Sized(ctypes.Structure):
    """Every public struct begins with its size."""

    def __init__(self, *members):
        super().__init__(ctypes.sizeof(self), *members)


class Begin(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("tenant", ctypes.c_char_p), ("scope", ctypes.c_char_p),
                ("key", ctypes.c_char_p),
                ("fingerprint", ctypes.c_char_p), ("lease_ms", ctypes.c_int64),
                ("retention_ms", ctypes.c_int64), ("on_lost", ctypes.c_int)]


class Answer(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_uint), ("headers", ctypes.c_char_p),
                ("body", ctypes.c_char_p),
                ("body_len", ctypes.c_size_t)]


class Operation(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("memory", ctypes.c_void_p), ("verdict", ctypes.c_int),
                ("attempt", ctypes.c_uint),
                ("reference", ctypes.c_char * LEASE_SIZE), ("lease", ctypes.c_char * LEASE_SIZE),
                ("point", ctypes.c_char * POINT_SIZE), ("data", ctypes.c_void_p),
                ("data_len", ctypes.c_size_t), ("answer", ctypes.POINTER(Answer)),
                ("kept", ctypes.c_int)]


class Job(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("target", ctypes.c_char_p),
                ("method", ctypes.c_char_p), ("path", ctypes.c_char_p), ("headers", ctypes.c_char_p),
                ("body", ctypes.c_char_p), ("body_len", ctypes.c_size_t)]


class Settlement(Sized):
    _fields_ = [("size", ctypes.c_size_t), ("reference", ctypes.c_char_p), ("ruling", ctypes.c_int),
                ("answer", ctypes.POINTER(Answer)), ("reason", ctypes.c_char_p)]


class Library:
    """A handle with connections of its own; any thread may use it."""

    def __init__(self, url):
        # One that is built with a sanitizer cannot be loaded into Python: HAPAX_LIBRARY.
        beside = pathlib.Path(binary()).parent / "libhapax.so"
        self.calls = ctypes.CDLL(os.environ.get("HAPAX_LIBRARY") or str(beside))
        self.handle = ctypes.c_void_p()
        problem = ctypes.create_string_buffer(PROBLEM_SIZE)
        result = self.calls.hapax_open(url.encode(), None, ctypes.byref(self.handle), problem)
        assert result == OK, problem.value

    def close(self):
        self.calls.hapax_close(self.handle)

    def insist(self, call, *arguments):
        """Again for as long as the store cannot be used: the same call tells."""
        problem = ctypes.create_string_buffer(PROBLEM_SIZE)
        end = time.monotonic() + INSIST_SECONDS
        while True:
            result = call(self.handle, *arguments, problem)
            if result == OK:
                return
            assert result in (BUSY, UNAVAILABLE, UNCERTAIN), (result, problem.value)
            assert time.monotonic() < end, problem.value
            threading.Event().wait(0.05)

    def forge(self, lease):
        """What each writing call says to a lease that somebody made up."""
        answer = Answer(200, None, b"forged", 6)
        job = Job(b"mail", b"mailer", b"POST", b"/", None, b"", 0)
        problem = ctypes.create_string_buffer(PROBLEM_SIZE)
        lease, calls = lease.encode(), self.calls
        return [calls.hapax_complete(self.handle, lease, ctypes.byref(answer), problem),
                calls.hapax_fail(self.handle, lease, problem),
                calls.hapax_advance(self.handle, lease, b"done", None, ctypes.c_size_t(0), problem),
                calls.hapax_enqueue(self.handle, lease, ctypes.byref(job), problem),
                calls.hapax_lose(self.handle, lease, problem),
                calls.hapax_provider_id(self.handle, lease, b"ch_1", problem),
                calls.hapax_renew(self.handle, lease, ctypes.c_int64(60_000), problem)]

    def settle(self, reference, ruling, status, headers, body, reason):
        """The number of what came of it (enum hapax_settled)."""
        problem, settled = ctypes.create_string_buffer(PROBLEM_SIZE), ctypes.c_int(-1)
        answer = Answer(status or 0, headers.encode(), body.encode(), len(body.encode()))
        settlement = Settlement(reference.encode(), ["applied", "declined", "not_applied"].index(ruling),
                                ctypes.pointer(answer) if status else None, reason.encode())
        result = self.calls.hapax_settle(self.handle, ctypes.byref(settlement),
                                         ctypes.byref(settled), problem)
        assert result == OK, problem.value
        return settled.value

    def begin(self, tenant, scope, key, lease_ms, on_lost=LOST_UNKNOWN):
        """The operation, with the verdict; of a request that has no body."""
        begin = Begin(tenant.encode(), scope.encode(), key.encode(), hashlib.sha256(b"").digest(), lease_ms, 0, on_lost)
        operation = Operation()
        self.insist(self.calls.hapax_begin, ctypes.byref(begin), ctypes.byref(operation))
        return operation

    def owe(self, key, jobs):
        """An operation that owes `jobs`, (name, target, path) each, and is
        completed; its reference. Each is enqueued twice, as after a crash."""
        operation = self.begin("shop", "POST /orders", key, 60_000, LOST_REPEAT)
        assert operation.verdict == EXECUTE, operation.verdict
        for name, target, path in [job for job in jobs for _ in range(2)]:
            body = f'{{"step": "{name}", "note": "s3cr3t"}}'.encode()
            job = Job(name.encode(), target.encode(), b"POST", path.encode(),
                      b"Content-Type: application/json\r\n", body, len(body))
            self.insist(self.calls.hapax_enqueue, operation.lease, ctypes.byref(job))
        answer = Answer(201, None, b"ordered", 7)
        self.insist(self.calls.hapax_complete, operation.lease, ctypes.byref(answer))
        reference = operation.reference.decode()
        self.calls.hapax_operation_clear(ctypes.byref(operation))
        return reference
