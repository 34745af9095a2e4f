"""The flaws: of scope, of meaning and of what is replayed. Each is the right API
with one thing wrong. More are in flaws_time.py (races, clients that go away,
crashes) and flaws_key.py."""
from . import meaning, right, work
from .api import Api
from .book import Answer, stored


def named(request, name):
    """Whether Connection names this header."""
    options = (request["Connection"] or "").lower().split(",")
    return name.lower() in [option.strip() for option in options]


# What a key is unique within.
class NoTenant(Api):
    """The key alone tells whose answer it is."""

    def operation(self, call, key):
        tenant, call.tenant = call.tenant, ""
        try:
            return super().operation(call, key)
        finally:
            call.tenant = tenant


class NoPath(Api):
    """A key is good for the whole tenant, and the path does not count."""

    def operation(self, call, key):
        return meaning.digest([call.tenant, call.request.method, key])

    def parts(self, call):
        return {**super().parts(call), "path": ""}


class KeyIsAll(Api):
    """Whoever comes with the key gets its answer, whatever is asked for."""

    def operation(self, call, key):
        return meaning.digest([call.tenant, key])

    def meaning(self, call):
        return ""


class NoMethod(Api):
    """The method does not count."""

    def guards(self, request):
        return request.method in ("POST", "PATCH", "PUT")

    def operation(self, call, key):
        return meaning.digest([call.tenant, call.path, key])

    def parts(self, call):
        return {**super().parts(call), "method": ""}


class NoQuery(Api):
    """The query is left out of the fingerprint."""

    def parts(self, call):
        return {**super().parts(call), "query": ""}


class HostInScope(Api):
    """Another name of the same service is another set of keys."""

    def operation(self, call, key):
        return meaning.digest([call.request["Host"], super().operation(call, key)])


class SitesShareKeys(right.Sites):
    """Two sites on one server, and one set of keys."""

    def operation(self, call, key):
        return Api.operation(self, call, key)


class StrangersServed(Api):
    """Who is not known is refused, but not before what is stored for the first
    account was looked at."""

    def answer(self, request):
        answer = super().answer(request)
        if answer.status != 401 or not self.guards(request) or not request["Idempotency-Key"]:
            return answer
        call = work.Call(request, "alice", self.busy)
        with self.book.transaction():
            record = self.book.record(self.operation(call, self.key(request)))
            return answer if record is None else self.known(call, record, self.meaning(call))


# What a request means.
class NoOverride(Api):
    """The method is taken from a header, and the key does not know."""

    def parts(self, call):
        return {**super().parts(call), "override": ""}


class SmallUnguarded(Api):
    """The guard knows POST, and what stands behind it takes post for the same."""

    def unguarded(self, call):
        if call.request.method == "post":
            call.request.method = "POST"
            return self.unprotected(call)
        return super().unguarded(call)


class ConnectionStrips(Api):
    """What Connection names is taken off between the guard and the work, and the
    refusal that follows is stored."""

    def execute(self, call, operation, token):
        if not named(call.request, "Authorization"):
            return super().execute(call, operation, token)
        answer = self.problem(401, "unauthenticated", "there is no credential")
        with self.book.transaction():
            self.book.complete(operation, answer, token)
        return answer


class ConnectionTakesKey(Api):
    """What Connection names is taken off before the guard, and without a key it runs."""

    def key(self, request):
        return None if named(request, "Idempotency-Key") else super().key(request)

    def key_missing(self, call):
        return self.unprotected(call) if named(call.request, "Idempotency-Key") else super().key_missing(call)


class AttachesSilently(Api):
    """Another body gets the first one's answer."""

    def parts(self, call):
        return {**super().parts(call), "body": b"", "media": ""}


class MismatchExecuted(Api):
    """Another body under the same key is done as well."""

    def operation(self, call, key):
        return meaning.digest([super().operation(call, key), self.meaning(call)])


class MismatchIsConflict(Api):
    """Another body is told to come again later."""

    def mismatch(self, record):
        return self.in_progress(record)


class MismatchStoredOver(Api):
    """The refusal of another body is stored over the original answer."""

    def mismatch(self, record):
        answer = super().mismatch(record)
        self.book.complete(record.operation, answer)
        return answer


class OrderIsMismatch(Api):
    """Members in another order are another request."""

    def canonical(self, body):
        return meaning.canonical(body, is_sorted=False)


class SpaceIsMismatch(Api):
    """The bytes count, and white space with them."""

    def canonical(self, body):
        return body


class NumbersAsDoubles(Api):
    """Two amounts that a double cannot tell apart are one."""

    def canonical(self, body):
        return meaning.canonical(body, number=lambda text: repr(float(text)))


class NumbersAsText(Api):
    """1 and 1.0 are two requests."""

    def canonical(self, body):
        return meaning.canonical(body, number=lambda text: f"#{text}")


class BodyAsText(Api):
    """Bodies are compared as text, with replacement characters in it."""

    def canonical(self, body):
        return super().canonical(body.decode("utf-8", "replace").encode())


# What is replayed.
class ReplaysCookie(Api):
    """Set-Cookie is kept and given to whoever asks again."""

    def kept(self, answer):
        return answer


class BinaryDestroyed(Api):
    """Bodies are stored as text."""

    def kept(self, answer):
        kept = super().kept(answer)
        kept.body = kept.body.decode("utf-8", "replace").encode()
        return kept


class BodyLost(Api):
    """Only the status is kept."""

    def kept(self, answer):
        return Answer(answer.status, super().kept(answer).fields)


class HeadersLost(Api):
    """Status and body are kept, headers are not."""

    def kept(self, answer):
        return Answer(answer.status, [("Content-Type", "text/plain")], answer.body)


class LocationLost(Api):
    """The Location of the created resource is not kept."""

    def kept(self, answer):
        kept = super().kept(answer)
        return Answer(kept.status, [f for f in kept.fields if f[0] != "Location"], kept.body)


class StatusChanged(Api):
    """A replay is 200, whatever the first answer was."""

    def replay(self, call, record):
        answer = super().replay(call, record)
        answer.status = 200
        return answer


class AnswerMadeAnew(Api):
    """A retry does nothing, but its answer is a new one."""

    def replay(self, call, record):
        answer = super().replay(call, record)
        fresh = work.refuse if answer.status == 402 else work.payment
        return Answer(answer.status, answer.fields, fresh(call, None).answer.body)


class TooLargeRunsAgain(Api):
    """What is too large to store is executed again."""

    def settle(self, operation, token, result, answer):
        if len(answer.body) > 1 << 20:
            self.book.release(operation, token)
        else:
            super().settle(operation, token, result, answer)


class TooLargeIsMismatch(Api):
    """Of what is too large to store, the retry is taken for another request."""

    def replay(self, call, record):
        return self.mismatch(record) if len(record.body) > 1 << 20 else super().replay(call, record)


class GuestRunsAgain(Api):
    """The retry of one tenant gets its answer, and is done once more."""

    def replay(self, call, record):
        if call.tenant == "bob" and call.path == "/payments":
            self.apply(call, work.payment(call, self.book))
        return super().replay(call, record)


class LargeBodyUnprotected(Api):
    """A request that is too large to compare runs without its key."""

    def guarded(self, call, operation):
        if call.request.size > 1 << 18:
            return self.unprotected(call)
        return super().guarded(call, operation)


class NoMarker(Api):
    """A replay is not told from the first answer."""

    def replay(self, call, record):
        return stored(record)


class MarkerOnAll(Api):
    """Every answer says that it is a replay."""

    def dated(self, answer):
        answer.fields.append(("Idempotent-Replayed", "true"))
        return super().dated(answer)

    def replay(self, call, record):
        return stored(record)


class NoExpiry(Api):
    """Nobody is told how long a key is remembered."""

    def dated(self, answer):
        return answer


class ExpiryIsPast(Api):
    """What is told has ended before it began."""

    def dated(self, answer):
        answer.fields.append(("Idempotency-Expires", "2001-01-01T00:00:00Z"))
        return answer


class NoRetryAfter(Api):
    """Whoever is told to come again is not told when."""

    def in_progress(self, record):
        answer = super().in_progress(record)
        return Answer(answer.status, [f for f in answer.fields if f[0] != "Retry-After"], answer.body)


# Errors.
class ClientErrorForgotten(Api):
    """A refusal is not kept: asked again, it is made anew."""

    def is_kept(self, result):
        return super().is_kept(result) and not 400 <= result.answer.status < 500


class ServerErrorReleases(Api):
    """A 5xx gives the key back, although the effect happened."""

    def is_kept(self, result):
        return super().is_kept(result) and result.answer.status < 500


class OutagePinned(Api):
    """A 5xx without effect is stored, and the outage never ends for this key."""

    def is_kept(self, result):
        return True


# Methods that need no key.
class GetRefused(Api):
    """What only reads needs a key too."""

    def unguarded(self, call):
        if call.path == "/hours" and not call.request.fields.all("Idempotency-Key"):
            return self.key_missing(call)
        return super().unguarded(call)


class Replays(Api):
    """What needs no key, and has one, is answered out of the store."""
    path = None

    def guards(self, request):
        return super().guards(request) or bool(request.target.startswith(self.path) and request["Idempotency-Key"])

    def execute(self, call, operation, token):
        if super().guards(call.request):
            return super().execute(call, operation, token)
        answer = self.unguarded(call)
        with self.book.transaction():
            self.book.complete(operation, self.kept(answer), token)
        return answer


class GetReplayed(Replays):
    """What only reads is answered out of the store."""
    path = "/hours"


class GetReplayedSilently(Replays):
    """The list is the one that was read first, and it does not say so."""
    path = "/payments?"

    def replay(self, call, record):
        return stored(record) if call.request.method == "GET" else super().replay(call, record)


class DeleteRefused(Api):
    """DELETE, which may be repeated by itself, needs a key."""

    def unguarded(self, call):
        if call.request.method == "DELETE" and not call.request.fields.all("Idempotency-Key"):
            return self.key_missing(call)
        return super().unguarded(call)


class DeleteReplayed(Replays):
    """A DELETE is not done again, but answered out of the store."""
    path = "/payments/"


class DeleteReplayedSilently(DeleteReplayed):
    """The same, and it does not even say so."""

    def replay(self, call, record):
        return stored(record) if call.request.method == "DELETE" else super().replay(call, record)
