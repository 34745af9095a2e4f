"""Flaws that need the right moment: two at once, a client that goes away, a
crash."""
import threading
import time

from . import meaning, right, work
from .api import Api, is_gone
from .book import DONE, Answer

RACE_SECONDS = 0.05
LEASE_SECONDS = 0.3
LATE_SECONDS = 0.2
LEAVES_SECONDS = 0.2
POLL_SECONDS = 0.01


# Two at once.
class CheckThenAct(Api):
    """First it looks whether the key is known, a little later it writes it down."""

    def begin(self, call, operation):
        told = self.meaning(call)
        with self.book.transaction():
            record = self.book.record(operation)
            if record is not None:
                return self.known(call, record, told)
        time.sleep(RACE_SECONDS)
        with self.book.transaction():
            return self.book.reserve(operation, self.owner, told, time.time())


class AcceptsTwice(CheckThenAct):
    """The same, where an order is only accepted: 202, and a place to ask."""

    def dated(self, answer):
        answer.status = 202 if answer.status == 201 else answer.status
        return super().dated(answer)


class ConflictStoredOver(Api):
    """The answer "in progress" is stored as if it were the first one's."""

    def in_progress(self, record):
        answer = super().in_progress(record)
        self.book.complete(record.operation, answer)
        return answer

    def settle(self, operation, token, result, answer):
        if self.book.record(operation).state != DONE:
            super().settle(operation, token, result, answer)


class ConflictBreaks(Api):
    """Two at once, and one of them is a fault of the server."""

    def in_progress(self, record):
        return self.problem(500, "internal", "duplicate key value violates unique constraint")


class ConflictPretends(Api):
    """While the first one runs, a retry is told that all is well."""

    def in_progress(self, record):
        return work.document(201, {"status": "ok"})


class LeaseInMs(Api):
    """Seconds are compared with milliseconds: the claim ends while it runs."""

    def is_over(self, record):
        return record.state != DONE and time.time() - record.began > LEASE_SECONDS

    def settle(self, operation, token, result, answer):
        super().settle(operation, None, result, answer)


class WaiterDeletesClaim(right.Waits):
    """Who waits and gives up takes the claim with it, which is not its own."""

    def waiter_left(self, operation):
        with self.book.transaction():
            self.book.release(operation)


# A client that goes away.
class LockLeftByReadError(Api):
    """The key is reserved before the body is there, and never given back."""

    def head_came(self, request):
        request.lock = None
        if self.guards(request):
            values = request.fields.all("Idempotency-Key")
            request.lock = meaning.digest(["lock", self.tenant(request), request.target, *values])
            with self.book.transaction():
                request.is_locked = self.book.record(request.lock) is not None
                if not request.is_locked:
                    self.book.reserve(request.lock, self.owner, "", 0)

    def answer(self, request):
        if request.lock is None:
            return super().answer(request)
        if request.is_locked:
            return self.in_progress(None)
        try:
            return super().answer(request)
        finally:
            with self.book.transaction():
                self.book.release(request.lock)


class HalfBodyExecuted(Api):
    """A body that ended early is taken for the whole one."""

    def body_broke(self, request):
        if request.size:
            request.fields = type(request.fields)(
                ("Content-Type", "application/octet-stream") if name.lower() == "content-type" else (name, value)
                for name, value in request.fields)
            return self.answer(request)
        return None


class LockLostOnDisconnect(Api):
    """The client is gone, and its claim with it, while the work goes on; slow
    enough to see who leaves."""

    def execute(self, call, operation, token):
        until = time.monotonic() + LEAVES_SECONDS
        while not is_gone(call.request) and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        if is_gone(call.request):
            with self.book.transaction():
                self.book.release(operation, token)
        return super().execute(call, operation, token)


class KeptOnceDelivered(right.Waits):
    """The answer is kept when the client has read it, and not before."""

    def settle(self, operation, token, result, answer):
        answer.undelivered = (operation, token, result)

    def delivered(self, request, answer, is_sent):
        if not hasattr(answer, "undelivered"):
            return
        operation, token, result = answer.undelivered
        is_read = is_sent and self.is_read(request)
        with self.book.transaction():
            if is_read:
                Api.settle(self, operation, token, result, answer)
            else:
                self.book.release(operation, token)

    @staticmethod
    def is_read(request):
        """A client that has read everything says goodbye; one that has not, resets."""
        try:
            request.wire.sock.settimeout(1)
            return request.wire.sock.recv(1) == b""
        except TimeoutError:
            return True
        except OSError:
            return False


# A crash.
class MemoryOnly(Api):
    """The keys are gone with the process."""
    is_forgetful = True


class StuckAfterCrash(Api):
    """What was under way in a crash is in progress for ever."""

    def is_over(self, record):
        return False


class NoReservation(Api):
    """Only what is done is written down, and that a moment later."""

    def __init__(self, *how):
        super().__init__(*how)
        self.running = set()
        self.running_lock = threading.Lock()

    def guarded(self, call, operation):
        with self.running_lock:
            if operation in self.running:
                return self.in_progress(None)
            self.running.add(operation)
        try:
            return super().guarded(call, operation)
        finally:
            with self.running_lock:
                self.running.discard(operation)

    def begin(self, call, operation):
        told = self.meaning(call)
        with self.book.transaction():
            record = self.book.record(operation)
            return told if record is None else self.known(call, record, told)

    def execute(self, call, operation, token):
        result = work.run(call, self.book)
        answer = self.dated(result.answer)
        with self.book.transaction():
            self.apply(call, result)
        time.sleep(LATE_SECONDS)
        with self.book.transaction():
            if self.is_kept(result):
                self.book.reserve(operation, self.owner, token, time.time())
                self.book.complete(operation, self.kept(answer))
        return answer


class AnsweredBeforeKept(Api):
    """The answer goes out first, and the effect is written down a little later."""

    def __init__(self, *how):
        super().__init__(*how)
        self.soon = {}

    def guarded(self, call, operation):
        told, answer = self.soon.get(operation, (None, None))
        if answer is None:
            return super().guarded(call, operation)
        if told != self.meaning(call):
            return self.mismatch(None)
        return Answer(answer.status, [*self.kept(answer).fields, ("Idempotent-Replayed", "true")], answer.body)

    def unguarded(self, call):
        """Who reads is not shown what is late."""
        while self.soon:
            time.sleep(right.POLL_SECONDS)
        return super().unguarded(call)

    def execute(self, call, operation, token):
        result = work.run(call, self.book)
        answer = self.dated(result.answer)
        self.soon[operation] = (self.meaning(call), answer)
        threading.Thread(target=self.write, args=(call, operation, token, result, answer), daemon=True).start()
        return answer

    def write(self, call, operation, token, result, answer):
        time.sleep(LATE_SECONDS)
        with self.book.transaction():
            self.apply(call, result)
            self.settle(operation, token, result, answer)
        del self.soon[operation]
