"""Other ways that are as right as api.py's: a judge that takes one of them for a
mistake is wrong itself."""
import re
import time

from .api import Api, is_gone
from .book import DOUBTFUL, Answer
from . import meaning, work

POLL_SECONDS = 0.01
UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def site(call):
    """Which site is asked: the one of the address, or another."""
    host = call.request["Host"] or ""
    return "" if host.startswith("127.0.0.1") else f"{host}/"


class Plain(Api):
    """As api.py has it."""


class Waits(Api):
    """A retry waits for the first answer."""

    def guarded(self, call, operation):
        while True:
            answer = super().guarded(call, operation)
            if answer.status != 409:
                return answer
            if is_gone(call.request):
                self.waiter_left(operation)
                return answer
            time.sleep(POLL_SECONDS)

    def waiter_left(self, operation):
        """The claim is not the waiter's, and stays."""


class Terse(Api):
    """Whoever meets a key in progress is told 409, and nothing else."""

    def in_progress(self, record):
        return Answer(409, [("Content-Type", "text/plain")], b"Conflict\n")


class OrderOnce(Api):
    """An order has a number of its own, which is taken once, under any key."""

    def execute(self, call, operation, token):
        order = call.order().get("order")
        if call.path == "/payments" and self.book.effects(order):
            answer = work.document(409, {"error": "there is such an order"})
            with self.book.transaction():
                self.book.complete(operation, answer, token)
            return answer
        return super().execute(call, operation, token)


class Limited(Api):
    """So many requests in a second; others are told to come again."""
    each_second = 80
    second, count = 0, 0

    def answer(self, request):
        with self.book.lock:
            now = int(time.time())
            self.count = self.count + 1 if now == self.second else 1
            self.second = now
            is_too_many = self.count > self.each_second
        if is_too_many:
            return work.document(429, {"error": "too many requests"}, ("Retry-After", "1"))
        return super().answer(request)


class SlowLimited(Api):
    """What takes long has a limit of its own: whoever begins it is told to come again, once."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.put_off = set()

    def answer(self, request):
        is_slow = request.target.startswith("/slow")
        if is_slow and request["Idempotency-Key"] not in self.put_off:
            self.put_off.add(request["Idempotency-Key"])
            return work.document(429, {"error": "too many requests"}, ("Retry-After", "1"))
        return super().answer(request)


class Echoes(Api):
    """Tells callers what they sent, credentials included."""

    def answer(self, request):
        answer = super().answer(request)
        said = request["Authorization"] or ""
        answer.fields.append(("X-You-Said", said))
        if (answer["Content-Type"] or "").startswith("application/json") and answer.body.startswith(b"{"):
            answer.body = b'{"you_said": "%s", ' % said.encode() + answer.body[1:]
        return answer


class InDoubt(Api):
    """Effects cannot commit with the record: what a crash leaves in between is
    said to be in doubt, and never executed again."""

    def is_over(self, record):
        if super().is_over(record):
            self.book.mark(record.operation, DOUBTFUL)
        return False

    def begin(self, call, operation):
        answer = super().begin(call, operation)
        if isinstance(answer, Answer) and answer.status == 409:
            return super().begin(call, operation)  # what was just marked is told as such
        return answer

    def execute(self, call, operation, token):
        result = work.run(call, self.book)
        answer = self.dated(result.answer)
        with self.book.transaction():
            self.apply(call, result)
        time.sleep(self.busy)
        with self.book.transaction():
            self.settle(operation, token, result, answer)
        return answer


class Uploads(Api):
    """Takes whatever bytes there are, and finds the order's number in them."""

    def answer(self, request):
        found = UUID.search(request.body)
        if found and not request["X-Order"]:
            request.fields = type(request.fields)([*request.fields, ("X-Order", found[0].decode())])
        return super().answer(request)


class Unlisted(Api):
    """Takes bytes too, and its list of orders does not have them."""

    def apply(self, call, result):
        if (call.request["Content-Type"] or "").startswith("application/octet-stream"):
            return
        super().apply(call, result)


class AnyCase(Api):
    """A method is what it is in capitals, for the keys as for the work."""

    def answer(self, request):
        request.method = request.method.upper()
        return super().answer(request)


class Sites(Api):
    """Two sites on one server: whoever asks by another Host has another ledger, and
    keys of their own."""

    def operation(self, call, key):
        return meaning.digest([site(call), super().operation(call, key)])

    def apply(self, call, result):
        if result.is_effect:
            self.book.effect(call.path, site(call) + call.order()["order"], call.tenant, result.identity)


class Open(Api):
    """Asks nobody who they are."""

    def tenant(self, request):
        return "anybody"


class Opaque(Api):
    """Any printable key is a key, quotes included; and 422 is what it says to another
    request."""

    def key(self, request):
        return meaning.key(request.fields.all("Idempotency-Key"), meaning.opaque_text)


class GetHasEffects(Api):
    """A GET of the payments' own path without a query makes one, as where every path
    is a function's."""

    def unguarded(self, call):
        if call.request.method == "GET" and call.request.target == "/payments":
            with self.book.transaction():
                self.book.effect(call.path, "by a GET", call.tenant, "get")
            return work.document(200, {"made": True})
        return super().unguarded(call)


class SlowToRise(Api):
    """For a moment after its start it cannot reach its store, and says so by a 500."""
    rises_in = 0.4

    def __init__(self, folder, *how):
        self.is_first = not (folder / "book.db").exists()
        super().__init__(folder, *how)
        self.began = time.monotonic()

    def guarded(self, call, operation):
        if not self.is_first and time.monotonic() - self.began < self.rises_in:
            return self.problem(500, "internal", "the pool of connections is empty")
        return super().guarded(call, operation)


class Keyless(Api):
    """Knows no keys at all, as an API behind a gateway may: whatever comes, is done,
    in whatever spelling. By itself it is as wrong as can be."""

    def guards(self, request):
        return False

    def unguarded(self, call):
        call.request.method = call.request.method.upper()
        if call.request.method == "POST":
            return self.unprotected(call)
        return super().unguarded(call)
