"""One request at the external service, from its arrival to what the caller is
told, through the fault that the script has for it. Sends have an effect; lookups
(GET /lookup?operation=O, GET /lookup/ID) show effects, once they are visible."""
import json
import socket
import struct
import threading
import time
import urllib.parse

from . import external_webhooks
from .external_faults import KINDS, NONE, choose
from .external_ledger import KeyReused
from .wire import Closed, Malformed

NONSENSE = b"220 mail.test ESMTP\r\n\r\n"


def until_closed(wire):
    """Waits, for as long as it takes, until the caller has gone."""
    wire.sock.settimeout(None)
    try:
        while wire.sock.recv(65536):
            pass
    except OSError:
        return


def described(request):
    """A request as a row of the ledger."""
    target = urllib.parse.urlsplit(request.target)
    query = dict(urllib.parse.parse_qsl(target.query))
    lookup = request.method in ("GET", "HEAD")
    key = query.get("key") if lookup else request["Idempotency-Key"]
    if key and len(key) > 1 and key[0] == key[-1] == '"':
        key = key[1:-1]
    return {"kind": "lookup" if lookup else "send", "method": request.method,
            "path": target.path, "query": target.query, "key": key,
            "operation": query.get("operation") if lookup else request["Hapax-Operation"],
            "attempt": request["Hapax-Attempt"], "credential": request["Authorization"],
            "headers": json.dumps(request.fields), "digest": "", "body": b"", "whole": 0}


class Exchange:
    """What happens to one request."""

    def __init__(self, process, wire, request):
        self.settings = process.settings
        self.book = process.book
        self.gates = process.gates
        self.wire = wire
        self.request = request
        self.row = described(request)
        self.fault = dict(NONE)
        self.kind = KINDS["none"]

    def cut_short(self):
        """The caller went away before the request was whole."""
        self.book.arrive(self.row, lambda row, times: (None, NONE))

    def run(self):
        """Answers, or not; whether the connection may carry another request."""
        self.row.update(whole=1, digest=self.request.digest.hexdigest(), body=self.request.body)
        rules = self.settings["rules"]
        self.fault = self.book.arrive(self.row, lambda row, times: choose(rules, row, times))
        self.kind = KINDS[self.fault["kind"]]
        sends = self.row["kind"] == "send"
        wanted = self.settings["credential" if sends else "lookup_credential"]
        if wanted is not None and self.row["credential"] != wanted:
            return self.say(401, {"error": "unauthorised"})
        self.pause("before")
        return self.send_effect() if sends else self.show_effect()

    def pause(self, when):
        time.sleep(self.fault.get(f"{when}_ms", 0) / 1000)
        if f"{when}_gate" in self.fault:
            self.gates.pass_through(self.fault[f"{when}_gate"])

    # Sends.
    def send_effect(self):
        if self.kind.effect == "no":
            return self.end(None, None)
        if self.kind.effect == "late":
            return self.act_late()
        try:
            effect, status, body = self.execute()
        except KeyReused:
            return self.say(422, {"error": "this key came with another body"})
        self.pause("after")
        later = threading.Thread(target=self.webhooks, args=(effect, False), daemon=True)
        if self.kind.ending == "silence":
            later.start()
        try:
            return self.end(status, body)
        finally:  # it is sent to whoever asked, and to whoever went away
            if self.kind.ending != "silence":
                later.start()

    def execute(self):
        """The effect, unless it is there; early webhooks are received before it ends."""
        effect, status, body, replay = self.book.execute(self.row, self.settings, self.outcome)
        new = None if replay else effect
        self.webhooks(new, True)
        return new, status, body

    def outcome(self, effect):
        """(state, status, body) of carrying it out; without a state nothing happens."""
        if self.kind.effect == "declined":
            return None, self.fault.get("status", 402), b'{"error": "declined"}'
        state = self.fault.get("state", "succeeded")
        return state, 201, json.dumps({"id": effect, "status": state}).encode()

    def act_late(self):
        """Carried out when the caller has long given up."""
        self.book.tell(self.row["n"], "silence")
        until_closed(self.wire)
        time.sleep(self.fault.get("late_ms", 0) / 1000)
        try:
            effect, _, _ = self.execute()
        except KeyReused:
            return False
        self.webhooks(effect, False)
        return False

    def webhooks(self, effect, early):
        """Those that belong before the answer, or those that belong after it."""
        if not self.settings["webhook"] or effect is None:
            return
        hook = external_webhooks.Hook(**self.settings["webhook"])
        for twist in self.fault.get("webhooks", self.settings["webhooks"]):
            if (twist == "early") == early:
                external_webhooks.deliver(
                    hook, twist, effect, self.fault.get("state", "succeeded"),
                    self.row["operation"],
                    lambda event, told, twist=twist: self.book.sent_webhook(
                        event, effect, twist, hook.url, told))

    # Lookups.
    def show_effect(self):
        found = self.found()
        self.pause("after")
        if not found:
            return self.end(404, b'{"error": "not found"}')
        shown = [{"id": e.id, "status": self.fault.get("state", e.state), "operation": e.operation,
                  "key": e.key, "path": e.path, "at": e.at} for e in found]
        return self.end(200, json.dumps({**shown[0], "effects": shown}).encode())

    def found(self):
        """The visible effects that this lookup selects."""
        wanted = {n: v for n, v in urllib.parse.parse_qsl(self.row["query"])
                  if n in ("operation", "key", "path")}
        if self.row["path"].startswith("/lookup/"):
            wanted["id"] = urllib.parse.unquote(self.row["path"][len("/lookup/"):])
        if not wanted:
            return []
        now = self.book.now()
        return [e for e in self.book.matching("effect", **wanted) if e.visible_at <= now]

    # What the caller sees.
    def end(self, status, body):
        if self.kind.ending == "status":
            told = self.fault.get("json", {"error": self.fault["kind"]})
            return self.say(self.fault.get("status", self.kind.status), told)
        if self.kind.ending == "answer":
            return self.answer(status, body)
        return getattr(self, self.kind.ending)(status, body)

    def say(self, status, told):
        return self.answer(status, json.dumps(told).encode())

    def head(self, status, size):
        fields = {"Content-Type": "application/json", "Content-Length": size,
                  **self.fault.get("headers", {})}
        if "retry_after" in self.fault:
            fields["Retry-After"] = self.fault["retry_after"]
        lines = [f"HTTP/1.1 {status} Because"] + [f"{n}: {v}" for n, v in fields.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def put(self, told, data, retry_after=None):
        """Writes down what is told, then tells it."""
        self.book.tell(self.row["n"], told, retry_after)
        try:
            self.wire.send(data)
        except OSError:
            self.book.tell_lost(self.row["n"])
            raise

    def answer(self, status, body):
        shown = b"" if self.row["method"] == "HEAD" else body
        self.put(str(status), self.head(status, len(body)) + shown, self.fault.get("retry_after"))
        return True

    def big(self, status, body):
        """The answer with so many bytes of padding."""
        padding = "x" * self.fault.get("bytes", 1 << 20)
        return self.answer(status, json.dumps({**json.loads(body), "padding": padding}).encode())

    def half(self, status, body):
        self.put("half", self.head(status, len(body)) + body[:len(body) // 2])
        return False

    def nonsense(self, *_):
        self.put("nonsense", NONSENSE)
        return False

    def silence(self, *_):
        self.book.tell(self.row["n"], "silence")
        until_closed(self.wire)
        return False

    def reset(self, *_):
        self.book.tell(self.row["n"], "reset")
        self.wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False


def exchange(process, wire, read_head, read_body):
    """Reads one request and sees it through; False ends the connection."""
    one = Exchange(process, wire, read_head(wire))
    try:
        read_body(wire, one.request)
    except (OSError, Closed, Malformed, ValueError):
        one.cut_short()
        return False
    return one.run()
