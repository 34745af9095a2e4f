"""Flaws in how a key is read."""
from . import meaning
from .api import Api


class MissingKeyExecuted(Api):
    """Keys are required, says the documentation; without one it runs all the same."""

    def key_missing(self, call):
        return self.unprotected(call)


class MissingKeyBreaks(Api):
    """Without a key something falls over."""

    def key_missing(self, call):
        return self.problem(500, "internal", "None has no attribute strip")


class EmptyKeyAccepted(Api):
    """The empty key is a key like any other."""

    def key(self, request):
        values = request.fields.all("Idempotency-Key")
        return "" if values in ([""], ['""']) else super().key(request)


class LongKeyTruncated(Api):
    """A column of 255 characters, and nobody looks."""

    def key(self, request):
        return meaning.key(request.fields.all("Idempotency-Key"),
                           lambda value: meaning.key_text(value)[:meaning.KEY_MAX])


class LongKeyBreaks(Api):
    """A column of 255 characters, and the database complains."""

    def key_refused(self, call, why):
        if "bytes, not 1 to" in why and " 0 bytes" not in why:
            return self.problem(500, "internal", "value too long for type character varying(255)")
        return super().key_refused(call, why)


class RepeatedKeyFirstWins(Api):
    """Of two keys the first counts."""

    def key(self, request):
        return meaning.key(request.fields.all("Idempotency-Key")[:1])


class MalformedKeyIgnored(Api):
    """What is no key is no key line: it runs unprotected."""

    def key_refused(self, call, why):
        if "neither" in why:
            return self.unprotected(call)
        return super().key_refused(call, why)


class BadKeyBreaks(Api):
    """Whatever is wrong with a key is a fault of the server."""

    def key_refused(self, call, why):
        return self.problem(500, "internal", why)


class NewKeyRefused(Api):
    """The same body under a new key is taken for a duplicate."""

    def begin(self, call, operation):
        twin = meaning.digest(["twin", call.tenant, self.meaning(call)])
        with self.book.transaction():
            first = self.book.record(twin)
            if first is None:
                self.book.reserve(twin, operation, "", 0)
        if first is not None and first.owner != operation:
            return self.problem(400, "duplicate", "this was ordered already")
        return super().begin(call, operation)
