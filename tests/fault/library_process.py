"""An application with libhapax in a process of its own, which may be killed at any time:
for each key on its standard input it begins the operation, has the effect, and stores
the answer, until the outcome is definite, and prints one line of JSON for it.

`own`: by connections of the library's own; the effect is a line in the provider's
ledger. `borrowed`: in a transaction of the application, where the effect is a row of
its own table that commits with the answer."""
import concurrent.futures
import ctypes
import json
import os
import pathlib
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from harness import library as lib  # noqa: E402
from harness.secret import MARKER  # noqa: E402

REPLAY, IN_PROGRESS, UNKNOWN = 1, 2, 3
LOST_UNKNOWN = 0
THREADS = 4
DEFINITE_SECONDS = 60
BODY = b'{"amount": 10, "note": "%s"}' % MARKER.encode()
EFFECTS = "CREATE TABLE IF NOT EXISTS effect (key TEXT, reference TEXT)"


class Request(lib.Sized):
    """struct hapax_request"""
    _fields_ = [("size", ctypes.c_size_t), ("method", ctypes.c_char_p), ("path", ctypes.c_char_p),
                ("query", ctypes.c_char_p), ("content_type", ctypes.c_char_p), ("body", ctypes.c_char_p),
                ("body_len", ctypes.c_size_t)]


class Stored(ctypes.Structure):
    """struct hapax_answer as the library gives it: its body has no end but its length."""
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_uint), ("headers", ctypes.c_void_p),
                ("body", ctypes.c_void_p), ("body_len", ctypes.c_size_t)]


class Refused(Exception):
    """The store could not be used; the same call again tells."""


def fingerprint(calls):
    """Of the request that the gateway's clients send."""
    request = Request(b"POST", b"/pay", None, b"application/json", BODY, len(BODY))
    made = ctypes.create_string_buffer(32)
    assert calls.hapax_fingerprint(ctypes.byref(request), made) == lib.OK
    return made.raw


class Own:
    """Connections of the library's own; any thread may use them."""
    on_lost = LOST_UNKNOWN

    def __init__(self, options):
        self.library = lib.Library(options["url"])
        self.calls, self.handle = self.library.calls, self.library.handle
        self.ledger = os.open(options["ledger"], os.O_WRONLY | os.O_APPEND)

    def effect(self, key, operation):
        line = f"{operation.reference.decode()}\t{operation.attempt}\t{key}\tlibrary\n"
        os.write(self.ledger, line.encode())

    def run(self, call, *arguments):
        problem = ctypes.create_string_buffer(lib.PROBLEM_SIZE)
        result = call(self.handle, *arguments, problem)
        if result in (lib.BUSY, lib.UNAVAILABLE, lib.UNCERTAIN):
            raise Refused(problem.value)
        assert result == lib.OK, (result, problem.value)

    def begin(self):
        """Nothing: each call is a transaction of its own."""

    def commit(self):
        """Nothing, either."""

    def roll_back(self):
        """Nothing to take back."""

    def complete(self, lease, answer):
        """What happened must be stored: again until it is."""
        end = time.monotonic() + DEFINITE_SECONDS
        while True:
            try:
                self.run(self.calls.hapax_complete, lease, ctypes.byref(answer))
                return
            except Refused:
                assert time.monotonic() < end, "the answer cannot be stored"


class Borrowed(Own):
    """A connection of the application's, one for each thread."""
    on_lost = lib.LOST_REPEAT

    def __init__(self, options):
        beside = os.environ["HAPAX_LIBRARY"]
        self.calls = ctypes.CDLL(beside)
        self.sqlite = ctypes.CDLL("libsqlite3.so.0")
        self.db, self.handle = ctypes.c_void_p(), ctypes.c_void_p()
        path = options["url"].partition(":")[2].encode()
        assert self.sqlite.sqlite3_open(path, ctypes.byref(self.db)) == 0
        self.sqlite.sqlite3_busy_timeout(self.db, 5000)
        self.execute(EFFECTS)
        problem = ctypes.create_string_buffer(lib.PROBLEM_SIZE)
        result = self.calls.hapax_on_sqlite(self.db, ctypes.byref(self.handle), problem)
        assert result == lib.OK, problem.value

    def execute(self, sql):
        result = self.sqlite.sqlite3_exec(self.db, sql.encode(), None, None, None)
        if result & 0xff in (5, 6):  # BUSY, LOCKED
            raise Refused(sql)
        assert result == 0, (result, sql)

    def effect(self, key, operation):
        self.execute(f"INSERT INTO effect VALUES ('{key}', '{operation.reference.decode()}')")

    def begin(self):
        self.execute("BEGIN IMMEDIATE")

    def commit(self):
        self.execute("COMMIT")

    def roll_back(self):
        self.sqlite.sqlite3_exec(self.db, b"ROLLBACK", None, None, None)

    def complete(self, lease, answer):
        self.run(self.calls.hapax_complete, lease, ctypes.byref(answer))


class Application:
    """Does what its keys ask for."""

    def __init__(self, options):
        self.options = options
        self.kind = {"own": Own, "borrowed": Borrowed}[options["mode"]]
        self.shared = Own(options) if options["mode"] == "own" else None
        self.local = threading.local()

    def store(self):
        if self.shared:
            return self.shared
        if not hasattr(self.local, "store"):
            self.local.store = self.kind(self.options)
        return self.local.store

    def attempt(self, store, key):
        """One try: what it came to, or None where the outcome is not definite."""
        begin = lib.Begin(self.options["tenant"].encode(), self.options["scope"].encode(), key.encode(),
                          fingerprint(store.calls), self.options["lease_ms"], 0, store.on_lost)
        operation = lib.Operation()
        store.begin()
        try:
            store.run(store.calls.hapax_begin, ctypes.byref(begin), ctypes.byref(operation))
            verdict = operation.verdict
            if verdict == lib.EXECUTE:
                body = b'{"by": "library %d", "key": "%s"}' % (os.getpid(), key.encode())
                store.effect(key, operation)
                store.complete(operation.lease, lib.Answer(200, b"Content-Type: application/json\r\n", body, len(body)))
            elif verdict == REPLAY:
                answer = ctypes.cast(operation.answer, ctypes.POINTER(Stored)).contents
                body = ctypes.string_at(answer.body, answer.body_len)
            store.commit()
        except Refused:
            store.roll_back()
            return None
        finally:
            store.calls.hapax_operation_clear(ctypes.byref(operation))
        if verdict in (lib.EXECUTE, REPLAY):
            return {"verdict": ["executed", "replayed"][verdict], "body": body.decode("latin-1")}
        return {"verdict": "unknown"} if verdict == UNKNOWN else None

    def settle(self, key):
        end = time.monotonic() + DEFINITE_SECONDS
        while time.monotonic() < end:
            found = self.attempt(self.store(), key)
            if found:
                return {"key": key, **found}
            threading.Event().wait(0.005)
        return {"key": key, "verdict": "none"}


def main():
    application = Application(json.loads(sys.argv[1]))
    application.store()
    print("ready", flush=True)
    with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
        told = [pool.submit(lambda key: print(json.dumps(application.settle(key)) + "\n", end="", flush=True), line.strip())
                for line in sys.stdin]
    for one in told:
        one.result()


if __name__ == "__main__":
    main()
