"""The right one: a key is reserved before anything happens, effect and answer
commit together, and every retry gets that answer. A flaw is a subclass that gets
one thing wrong; hence every decision is a method of its own."""
import datetime
import json
import select
import socket
import time
import uuid

from . import meaning, work
from .book import DONE, DOUBTFUL, Answer, Book, stored

TENANTS = {"Bearer s3cr3t-alice": "alice", "Bearer s3cr3t-bob": "bob"}
ONE_DELIVERY = {"set-cookie", "date"}
KEPT_FOR = datetime.timedelta(hours=24)


def is_gone(request):
    """Whether whoever sent this went away."""
    sock = request.wire.sock
    try:
        return bool(select.select([sock], [], [], 0)[0]) and sock.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


class Api:
    is_forgetful = False

    def __init__(self, folder, dialect="ietf", busy=0.0):
        self.book = Book(folder, self.is_forgetful)
        self.dialect = dialect
        self.busy = busy
        self.owner = str(uuid.uuid4())

    # One request's way.
    def head_came(self, request):
        """Before the body is read."""

    def body_broke(self, request):
        """The body ended early; the answer, if there is one to such a thing."""
        return None

    def answer(self, request):
        call = work.Call(request, self.tenant(request), self.busy)
        if call.tenant is None:
            return self.problem(401, "unauthenticated", "the credential is not known")
        if not self.guards(request):
            return self.unguarded(call)
        try:
            key = self.key(request)
        except meaning.BadKey as why:
            return self.key_refused(call, str(why))
        if key is None:
            return self.key_missing(call)
        return self.guarded(call, self.operation(call, key))

    def delivered(self, request, answer, is_sent):
        """After the answer went out, or could not."""

    def guarded(self, call, operation):
        claim = self.begin(call, operation)
        return claim if isinstance(claim, Answer) else self.execute(call, operation, claim)

    def begin(self, call, operation):
        """A token, or the answer to a request that is not executed."""
        told = self.meaning(call)
        with self.book.transaction():
            record = self.book.record(operation)
            if record is None or self.is_over(record):
                return self.book.reserve(operation, self.owner, told, time.time())
            return self.known(call, record, told)

    def execute(self, call, operation, token):
        result = work.run(call, self.book)
        answer = self.dated(result.answer)
        with self.book.transaction():
            self.apply(call, result)
            self.settle(operation, token, result, answer)
        return answer

    def settle(self, operation, token, result, answer):
        if self.is_kept(result):
            self.book.complete(operation, self.kept(answer), token)
        else:
            self.book.release(operation, token)

    def apply(self, call, result):
        if result.is_effect:
            self.book.effect(call.path, call.order()["order"], call.tenant, result.identity)

    # Who, which key, which operation, what it means.
    def guards(self, request):
        return request.method in ("POST", "PATCH")

    def tenant(self, request):
        return TENANTS.get(request["Authorization"] or request["X-Auth-Token"])

    def key(self, request):
        text_of = meaning.key_text if self.dialect == "ietf" else meaning.opaque_text
        return meaning.key(request.fields.all("Idempotency-Key"), text_of)

    def operation(self, call, key):
        """ietf: unique within tenant, method and path; stripe: within the tenant."""
        scope = (call.request.method, call.path) if self.dialect == "ietf" else ()
        return meaning.digest([call.tenant, *scope, key])

    def parts(self, call):
        media = (call.request["Content-Type"] or "").partition(";")[0].strip().lower()
        return {"method": call.request.method, "override": call.override, "path": call.path, "query": call.query,
                "media": media, "body": self.canonical(call.request.body)}

    def canonical(self, body):
        return meaning.canonical(body)

    def meaning(self, call):
        return meaning.digest(self.parts(call).values())

    # What is known of a key.
    def is_over(self, record):
        """A claim whose process died: the effect commits with the record, so
        none happened."""
        return record.state not in (DONE, DOUBTFUL) and record.owner != self.owner

    def known(self, call, record, told):
        if record.meaning != told:
            return self.mismatch(record)
        if record.state == DOUBTFUL:
            return self.problem(409, "idempotency_outcome_unknown", "nobody knows what became of it",
                                ("Retry-After", "60"))
        if record.state != DONE:
            return self.in_progress(record)
        return self.replay(call, record)

    def mismatch(self, record):
        return self.problem(422 if self.dialect == "ietf" else 400, "idempotency_key_reused",
                            "this key stands for another request")

    def in_progress(self, record):
        return self.problem(409, "idempotency_key_in_progress", "the first one is still running",
                            ("Retry-After", "1"))

    def replay(self, call, record):
        answer = stored(record)
        answer.fields.append(("Idempotent-Replayed", "true"))
        return answer

    def is_kept(self, result):
        return result.is_executed

    def kept(self, answer):
        fields = [(n, v) for n, v in answer.fields if n.lower() not in ONE_DELIVERY]
        return Answer(answer.status, fields, answer.body)

    def dated(self, answer):
        expires = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + KEPT_FOR
        answer.fields.append(("Idempotency-Expires", expires.isoformat().replace("+00:00", "Z")))
        return answer

    # Requests without a key.
    def unguarded(self, call):
        return work.read(call, self.book)

    def unprotected(self, call):
        result = work.run(call, self.book)
        with self.book.transaction():
            self.apply(call, result)
        return result.answer

    def key_missing(self, call):
        if self.dialect == "stripe":
            return self.unprotected(call)
        return self.problem(400, "idempotency_key_missing", "send an Idempotency-Key")

    def key_refused(self, call, why):
        return self.problem(400, "idempotency_key_invalid", why)

    def problem(self, status, code, detail, *fields):
        if self.dialect == "stripe":
            value = {"error": {"type": "idempotency_error", "code": code, "message": detail}}
            return work.document(status, value, *fields)
        value = {"title": detail, "status": status, "code": code}
        return Answer(status, [("Content-Type", "application/problem+json"), *fields],
                      json.dumps(value).encode())
