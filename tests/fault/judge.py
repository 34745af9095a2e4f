"""The judge of every fault test: clients that never give up a key before they
have a definite answer, and at the end the provider's ledger. At most one line
per operation; exactly one where any client saw success; nothing stuck.

Policy under test: `server_error: unknown`, so that no 5xx is ever the
operator's word for "it rolled back"."""
import threading
import time

from harness.secret import new_key
from harness.wire import Closed, Malformed

POLICY = {
    "defaults": {"server_error": "unknown", "lease": "1s"},
    "limits": {"response_body": "64KiB", "free_space": 0},
    "sweep": {"every": "1s"},
    "log_level": "info",
}
# How a first attempt may end; what has an effect has it before the answer.
BEHAVIOURS = ("", "delay=0.03", "reset=after", "status=429", "big=100000", "chunked",
              "status=500; effect=yes", "status=503; header=Retry-After:1", "delay=0.01; status=201")
DEFINITE_SECONDS = 30


class Operation:
    """One intended effect, and everything its clients saw."""

    def __init__(self, behave, target="/pay"):
        self.key = new_key()
        self.behave = behave
        self.target = target
        self.lock = threading.Lock()
        self.successes = set()   # bodies of 2xx answers
        self.not_kept = False    # told that it happened
        self.expired = False     # told that it had happened, and is refused
        self.codes = []          # of hapax's own answers

    def saw(self, answer):
        """Files an answer; what it settles: 'done', 'unknown' or None."""
        with self.lock:
            if 200 <= answer.status < 300:
                self.successes.add(answer.body)
                return "done"
            if answer["Content-Type"] != "application/problem+json":
                return None
            code = answer.json()["code"]
            self.codes.append(code)
            if code == "response_not_kept":
                self.not_kept = True
                return "done"
            if code == "idempotency_key_expired":
                self.expired = True
                return "done"
            return "unknown" if code == "idempotency_outcome_unknown" else None

    def __repr__(self):
        return f"<{self.key} {self.behave!r} {len(self.successes)} successes, {self.codes[-6:]}>"


def send(gateway, operation, behave=""):
    """One try; None where no whole answer came."""
    try:
        return gateway.post(operation.target, key=operation.key, behave=behave, timeout=DEFINITE_SECONDS)
    except (OSError, Closed, Malformed) as failure:
        assert not isinstance(failure, Malformed), f"not HTTP: {failure}"
        return None


def settle(gateway, operation, stuck_is_wrong=False):
    """Retries until the answer is definite. `stuck_is_wrong`: nothing of it can
    be under way, so "in progress" would be a stuck key."""
    end = time.monotonic() + DEFINITE_SECONDS
    while time.monotonic() < end:
        answer = send(gateway, operation)
        if answer is not None:
            settled = operation.saw(answer)
            if settled:
                return settled
            if stuck_is_wrong:
                assert operation.codes[-1:] != ["idempotency_key_in_progress"], f"stuck: {operation}"
        time.sleep(0.02)
    raise AssertionError(f"no definite answer: {operation}")


class Task(threading.Thread):
    """A thread whose failure is the test's failure, when it is joined."""

    def __init__(self, function, *arguments):
        super().__init__()
        self.work = lambda: function(*arguments)
        self.failure = None
        self.start()

    def run(self):
        try:
            self.work()
        except AssertionError as failure:
            self.failure = failure


def try_once(gateway, operation):
    """The first try of an operation, with its behaviour; what it settled."""
    answer = send(gateway, operation, operation.behave)
    return operation.saw(answer) if answer is not None else None


def see_through(gateway, operations):
    """One after the other, each until it is definite."""
    for operation in operations:
        if not try_once(gateway, operation):
            settle(gateway, operation)


def workload(gateway, operations, copies=1):
    """Sends every operation once, all at the same time; the first ones twice."""
    return [Task(try_once, gateway, o) for o in operations + operations[:copies]]


def join(tasks):
    for task in tasks:
        task.join(DEFINITE_SECONDS * 4)
        assert not task.is_alive(), "a client waits for ever"
    failures = [str(t.failure) for t in tasks if t.failure]
    assert not failures, "\n".join(failures)


def judge(gateway, provider, operations, stuck_is_wrong=True):
    """Retries everything, then lets the ledger speak. Returns how they ended."""
    ends = {o: settle(gateway, o, stuck_is_wrong) for o in operations}
    lines = {}
    for line in provider.ledger():
        lines.setdefault(line[2].strip('"'), []).append(line)
    for operation, end in ends.items():
        effects = lines.get(operation.key, [])
        assert len(effects) <= 1, f"happened {len(effects)} times: {operation} {effects}"
        happened = bool(operation.successes) or operation.not_kept
        assert not happened or len(effects) == 1, f"success without an effect: {operation}"
        assert not (happened and end == "unknown"), f"a success that was seen is lost: {operation}"
        kept = {b for b in operation.successes if len(b) <= 65536}
        assert len(kept) <= 1, f"two answers of one operation: {operation} {kept}"
        again = operation.saw(send(gateway, operation))
        assert again == end, f"{end} did not last: {operation}"
    return ends
