"""What the endpoints do. None of them knows of keys. Each gives a Result: the
answer, whether it is an effect, and whether anything was executed at all."""
import collections
import json
import time
import urllib.parse
import uuid

from .book import Answer

PICTURE = bytes(range(256)) * 4
EXPORT_BYTES = 1536 * 1024
JSON = ("Content-Type", "application/json")

Result = collections.namedtuple("Result", "answer is_effect is_executed identity")


class Call:
    """A request as an endpoint sees it."""

    def __init__(self, request, tenant, work):
        self.request = request
        self.tenant = tenant
        self.work = work
        self.path, _, self.query = request.target.partition("?")
        # As many frameworks do it: the method that is meant may stand in a header.
        self.override = request["X-HTTP-Method-Override"] or ""

    def option(self, name, default):
        return urllib.parse.parse_qs(self.query).get(name, [default])[0]

    def order(self):
        """What is ordered; a ValueError where that cannot be meant."""
        name = self.request["X-Order"]
        if (self.request["Content-Type"] or "").startswith("application/octet-stream"):
            return {"order": name, "bytes": self.request.size}
        found = json.loads(self.request.body)
        if not isinstance(found, dict) or not isinstance(found.get("amount"), (int, float)):
            raise ValueError("an order is an object with an amount")
        return {"order": found.get("order", name), "amount": found["amount"]}


def document(status, value, *fields):
    return Answer(status, [JSON, *fields], json.dumps(value).encode() + b"\n")


def refused(status, why):
    return Result(document(status, {"error": why, "refusal": str(uuid.uuid4())}), False, True, None)


def created(call, kind, answer=None):
    """An effect, by default with the new resource as its answer."""
    order, identity = call.order(), f"{kind}_{uuid.uuid4().hex}"
    time.sleep(call.work)
    place = ("Location", f"{call.path}/{identity}")
    cookie = ("Set-Cookie", f"session={uuid.uuid4().hex}; HttpOnly")
    answer = answer or document(201, {"id": identity, **order}, place, cookie)
    return Result(answer, True, True, identity)


def payment(call, _):
    return created(call, "pay")


def refund(call, _):
    return created(call, "ref")


def slow(call, _):
    time.sleep(float(call.option("seconds", "1.5")))
    return created(call, "slow")


def refuse(call, _):
    call.order()
    return refused(402, "the card was declined")


def fails(call, _):
    return created(call, "pay", document(500, {"error": "paid, and then it broke",
                                               "incident": str(uuid.uuid4())}))


def outage(call, book):
    """Not done at first, and done later."""
    if book.attempts(call.order()["order"]) <= int(call.option("times", "1")):
        answer = document(int(call.option("status", "503")), {"error": "not now"}, ("Retry-After", "0"))
        return Result(answer, False, False, None)
    return created(call, "pay")


def picture(call, _):
    return created(call, "pic", Answer(200, [("Content-Type", "image/png")], PICTURE + uuid.uuid4().bytes))


def export(call, _):
    return created(call, "exp", Answer(200, [("Content-Type", "text/csv")],
                                       uuid.uuid4().hex.encode() * (EXPORT_BYTES // 32)))


POSTS = {"/payments": payment, "/refunds": refund, "/slow": slow, "/refuse": refuse, "/fails": fails,
         "/outage": outage, "/picture": picture, "/export": export}


def run(call, book):
    """Whatever a request asks for, done once more."""
    if (call.override or call.request.method) != "POST":
        return refused(405, "POST is what this takes") if call.path in POSTS else refused(404, "not here")
    if call.path not in POSTS:
        return refused(404, "there is nothing here")
    try:
        return POSTS[call.path](call, book)
    except ValueError as why:
        return refused(400, str(why))


def read(call, book):
    """Requests that only read, and DELETE, which may come twice by itself."""
    if call.request.method == "DELETE":
        is_first = book.attempts(f"DELETE {call.tenant} {call.path}") == 1
        return Answer(204) if is_first else refused(404, "there is nothing here any more").answer
    if call.request.method not in ("GET", "HEAD"):
        return run(call, book).answer
    if call.path == "/payments":
        return document(200, book.effects(call.option("order", None)))
    if call.path == "/count":
        return document(200, {"effects": len(book.effects())})
    if call.path == "/hours":
        return document(200, {"open": "always"})
    found = [e for e in book.effects() if f"{e['path']}/{e['id']}" == call.path]
    return document(200, found[0]) if found else refused(404, "there is nothing here").answer
