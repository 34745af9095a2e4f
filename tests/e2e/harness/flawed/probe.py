"""Small looks at the API, without the judge: each asks one thing and tells what
it saw, so that a flaw can be shown to be there and to be missing in the right
one."""
import socket
import struct
import threading
import time
import uuid

from .. import check
from ..secret import ALICE, BOB
from ..wire import connect

REPEATED = [("Idempotency-Key", "one"), ("Idempotency-Key", "two")]


class Order:
    """One order, with a key of its own, and as many requests as one likes."""

    def __init__(self, api, path="/payments"):
        self.api = api
        self.path = path
        self.name = str(uuid.uuid4())
        self.key = str(uuid.uuid4())

    def body(self, amount="10"):
        return b'{"order": "%s", "amount": %s}' % (self.name.encode(), amount.encode())

    def send(self, method="POST", path=None, key="", amount="10", **how):
        how.setdefault("body", self.body(amount))
        return self.api.call(method, path or self.path, key=self.key if key == "" else key, **how)

    def effects(self):
        return len(self.api.ledger(self.name))

    def open(self):
        """A connection on which the request is under way."""
        wire = connect(("127.0.0.1", self.api.port))
        wire.send(self.api.request("POST", self.path, key=self.key, body=self.body()))
        return wire

    def until_settled(self):
        """Asks until it is no longer in progress, for two seconds at most."""
        end = time.monotonic() + 2
        while (answer := self.send()).status == 409 and time.monotonic() < end:
            time.sleep(0.05)
        return answer.status, self.effects()


# What a second request gets. Each tells (status, effects), or what its name says.
def another(**how):
    def probe(api):
        order = Order(api)
        order.send()
        return order.send(**how).status, order.effects()
    return probe


def alone(**how):
    def probe(api):
        order = Order(api)
        return order.send(**how).status, order.effects()
    return probe


def named(name):
    """With the header named by Connection, then without that."""
    def probe(api):
        order = Order(api)
        first = order.send(fields=[("Connection", f"close, {name}")])
        return first.status, order.send().status, order.effects()
    return probe


def bytes_changed(api):
    order = Order(api)
    for last in (b"\x80", b"\x81"):
        status = order.send(body=b"\x00" + last, media="application/octet-stream",
                            fields=[("X-Order", order.name)]).status
    return status, order.effects()


def rewritten(text):
    """The same again, written as `text` has it; and `text` is all but the order."""
    def probe(api):
        order = Order(api)
        order.send()
        return order.send(body=text.replace("ORDER", order.name).encode()).status, order.effects()
    return probe


def trap(api):
    order = Order(api)
    order.send(amount="9007199254740993")
    return order.send(amount="9007199254740992").status


def after_mismatch(api):
    order = Order(api)
    order.send()
    order.send(amount="11")
    return order.send().status


def two_tenants(api):
    order = Order(api)
    order.send(auth=ALICE)
    return order.send(auth=BOB).status, order.effects()


def again(path, what=lambda answer: answer, **how):
    """What of the first answer is the same in the second; and the effects."""
    def probe(api):
        order = Order(api, path)
        first, second = order.send(**how), order.send(**how)
        return what(second) == what(first), order.effects()
    return probe


def both(path, name):
    """Whether a field is there in the first answer, and in the second."""
    def probe(api):
        order = Order(api, path)
        return tuple(order.send()[name] is not None for _ in "12")
    return probe


def expiry(api):
    value = Order(api).send()["Idempotency-Expires"]
    return value and value > time.strftime("%Y")


def large_body(api):
    order = Order(api)
    body = order.body() + b" " * 300000
    order.send(body=body)
    return order.send(body=body).status, order.effects()


def statuses(path):
    def probe(api):
        order = Order(api, path)
        return order.send().status, order.send().status, order.effects()
    return probe


# Keys.
def with_key(value):
    def probe(api):
        order = Order(api)
        return order.send(key=value).status, order.effects()
    return probe


def long_keys(api):
    order = Order(api)
    return [order.send(key="k" * 299 + last).status for last in "ab"], order.effects()


def repeated(api):
    order = Order(api)
    return order.send(key=None, fields=REPEATED).status, order.effects()


# Methods that need no key.
def plainly(method, path):
    return lambda api: api.call(method, path).status


def keyed_twice(method, path):
    """Whether the second one says that it is a replay, and its status."""
    def probe(api):
        key, place = str(uuid.uuid4()), path.replace("NEW", str(uuid.uuid4()))
        _, again = (api.call(method, place, key=key) for _ in "12")
        return again.replayed, again.status
    return probe


def list_grows(api):
    """Whether a GET with a key sees what happened since it was first sent."""
    order, key = Order(api), str(uuid.uuid4())
    seen = [api.call("GET", f"/payments?order={order.name}", key=key).body]
    order.send()
    seen.append(api.call("GET", f"/payments?order={order.name}", key=key).body)
    return seen[0] != seen[1]


# Moments.
def at_once(api):
    """Ten at the same moment: how many statuses, and how many effects."""
    order, start, seen = Order(api), threading.Barrier(10), []

    def client():
        with connect(("127.0.0.1", api.port)) as wire:
            start.wait()
            wire.send(api.request("POST", order.path, key=order.key, body=order.body()))
            seen.append(wire.answer().status)
    clients = [threading.Thread(target=client) for _ in range(10)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    return order.effects()


def while_running(api):
    """A retry beside the first one, and one after it; and the effects."""
    order = Order(api, "/slow?seconds=0.6")
    with order.open() as first:
        check.until(api.reserved, "the first one is under way")
        time.sleep(0.35)  # the lapse that is tested: longer than the lease that is too short
        beside = order.send()
        first.answer()
    return beside.status, order.send().status, order.effects(), beside["Retry-After"] is not None


def waiter_leaves(api):
    order = Order(api, "/slow?seconds=0.6")
    with order.open() as first:
        check.until(api.reserved, "the first one is under way")
        with order.open() as waiter:
            waiter.sock.shutdown(socket.SHUT_WR)
            waiter.answer()
        third = order.send()
        first.answer()
    return third.status, order.effects()


def reset(wire):
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.close()


def half_body(api):
    order = Order(api)
    whole = api.request("POST", order.path, key=order.key, body=order.body(), fields=[("X-Order", order.name)])
    with connect(("127.0.0.1", api.port)) as wire:
        wire.send(whole[:-20])
        wire.sock.shutdown(socket.SHUT_WR)
        wire.ended()
    return order.until_settled()


def gone_at_once(api):
    order = Order(api)
    reset(order.open())
    check.until(order.effects, "it is done for nobody")
    return order.until_settled()


def answer_unread(api):
    order = Order(api)
    wire = order.open()
    wire.sock.recv(1)
    reset(wire)
    return order.until_settled()


def crashed(moment):
    """Killed when the order is `reserved`, `done` or `answered`; then settled."""
    def probe(api):
        order = Order(api)
        with order.open() as wire:
            if moment == "reserved":
                check.until(api.reserved, "the key is reserved")
            elif moment == "done":
                check.until(order.effects, "the effect is there")
            else:
                wire.answer()
            api.kill()
        api.start()
        return order.until_settled()
    return probe


def changed_by_a_crash(api):
    """Whether an answer that was seen is another one after a crash."""
    order = Order(api)
    first = order.send()
    api.kill()
    api.start()
    order.until_settled()
    return order.send().body != first.body
