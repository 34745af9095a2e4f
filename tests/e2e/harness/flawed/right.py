"""Other ways that are as right as api.py's: a judge that takes one of them for a
mistake is wrong itself."""
import time

from .api import Api, is_gone
from .book import DOUBTFUL, Answer
from . import work

POLL_SECONDS = 0.01


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


class InDoubt(Api):
    """Effects cannot commit with the record: what a crash leaves in between is
    openly in doubt, and never executed again."""

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


class Keyless(Api):
    """Knows no keys at all, as an API behind a gateway may: whatever comes, is
    done. By itself it is as wrong as can be."""

    def guards(self, request):
        return False

    def unguarded(self, call):
        if call.request.method == "POST":
            return self.unprotected(call)
        return super().unguarded(call)
