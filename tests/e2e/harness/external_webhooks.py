"""Webhooks as providers sign and send them. A test calls send() or deliver()
itself; the external service's process calls deliver() after its effects.

Schemes:
  stripe              Stripe-Signature: t=T,v1=hex(HMAC(secret, T "." body))
  standard-webhooks   webhook-id, webhook-timestamp, webhook-signature:
                      v1,base64(HMAC(secret bytes, id "." T "." body));
                      the secret is whsec_ and the base64 of those bytes
  hmac-body           a header with the hex HMAC of the body
All with SHA-256; several secrets give several signatures, as in a rotation.

Twists, what may go wrong with an effect's webhook:
  plain               one event, after the answer
  early               one event, received before the answer is sent
  duplicate           the same event, twice
  out_of_order        the last event first, then the one that was made before it
  wrong_signature     signed with a secret that nobody has
  old                 signed properly, long ago
  oversized           a body of OVERSIZED bytes more
  none                no webhook"""
import base64
import hashlib
import hmac
import json
import time
import urllib.parse
import uuid

from .wire import Closed, Malformed, connect, request_bytes

TWISTS = ("plain", "early", "duplicate", "out_of_order", "wrong_signature", "old", "oversized",
          "none")
OLD_SECONDS = 24 * 3600
OVERSIZED = 2 << 20


def mac(secret, message):
    return hmac.new(secret, message, hashlib.sha256).digest()


def secret_bytes(secret):
    """The bytes of a standard-webhooks secret."""
    return base64.b64decode(secret.removeprefix("whsec_"), validate=True)


def sign_stripe(secrets, body, at):
    message = f"{at}.".encode() + body
    parts = [f"t={at}"] + [f"v1={mac(s.encode(), message).hex()}" for s in secrets]
    return [("Stripe-Signature", ",".join(parts))]


def sign_standard(secrets, body, at, event):
    message = f"{event}.{at}.".encode() + body
    parts = ["v1," + base64.b64encode(mac(secret_bytes(s), message)).decode() for s in secrets]
    return [("webhook-id", event), ("webhook-timestamp", str(at)),
            ("webhook-signature", " ".join(parts))]


def sign_body(secrets, body, header, prefix):
    return [(header, prefix + mac(s.encode(), body).hex()) for s in secrets]


class Hook:
    """Where webhooks go, and how they are signed. `header` and `prefix` are for
    hmac-body only."""

    def __init__(self, url, scheme, secret, header="X-Signature", prefix="", tries=1, pause_ms=100):
        assert scheme in ("stripe", "standard-webhooks", "hmac-body"), scheme
        self.url = url
        self.scheme = scheme
        self.secrets = [secret] if isinstance(secret, str) else list(secret)
        self.header = header
        self.prefix = prefix
        self.tries = tries
        self.pause_ms = pause_ms

    def sign(self, body, event, at=None, secrets=None):
        """The header fields that vouch for this body."""
        at = int(time.time()) if at is None else at
        secrets = secrets or self.secrets
        if self.scheme == "stripe":
            return sign_stripe(secrets, body, at)
        if self.scheme == "standard-webhooks":
            return sign_standard(secrets, body, at, event)
        return sign_body(secrets, body, self.header, self.prefix)

    def forged(self):
        """Secrets of the right form that nobody has."""
        return ["whsec_" + base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()
                for s in self.secrets]


def event_body(event, effect, state="succeeded", operation=None, created=None):
    """What a webhook says: which effect, of which operation, and what became of it."""
    return {"id": event, "type": f"payment.{state}", "created": created or int(time.time()),
            "data": {"object": {"id": effect, "operation": operation, "status": state}}}


def new_event():
    return f"evt_{uuid.uuid4().hex}"


def post(url, fields, body, timeout=15):
    """One POST on its own connection, and its answer."""
    parts = urllib.parse.urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    with connect((parts.hostname, parts.port), timeout) as wire:
        try:
            wire.send(request_bytes("POST", target or "/", fields, body, host=parts.netloc))
        except ConnectionError:
            pass  # refused half-way, as an oversized body may be: the answer may be there
        return wire.answer("POST")


def send(hook, body, twist="plain"):
    """Sends one signed webhook, twisted where a single one can be; the answer."""
    event = body.get("id") or new_event()
    data = json.dumps(body).encode()
    if twist == "oversized":
        data = json.dumps({**body, "padding": "x" * OVERSIZED}).encode()
    at = int(time.time()) - (OLD_SECONDS if twist == "old" else 0)
    fields = hook.sign(data, event, at, hook.forged() if twist == "wrong_signature" else None)
    return post(hook.url, fields + [("Content-Type", "application/json")], data)


def bodies(twist, effect, state="succeeded", operation=None):
    """The events of one effect, in the order in which they are sent."""
    if twist == "none":
        return []
    last = event_body(new_event(), effect, state, operation)
    if twist == "duplicate":
        return [last, last]
    if twist == "out_of_order":
        return [last, event_body(new_event(), effect, "pending", operation, last["created"] - 5)]
    return [last]


def deliver(hook, twist, effect, state="succeeded", operation=None, record=None):
    """Sends an effect's webhooks, each until it is answered or its tries are
    spent. record(event, told) hears of every try. Returns the last answers."""
    assert twist in TWISTS, twist
    return [deliver_one(hook, body, twist, record or (lambda event, told: None))
            for body in bodies(twist, effect, state, operation)]


def deliver_one(hook, body, twist, record):
    for left in range(hook.tries - 1, -1, -1):
        try:
            answer = send(hook, body, twist)
        except (OSError, Closed, Malformed) as failure:
            answer = None
            record(body["id"], f"{type(failure).__name__}: {failure}")
        else:
            record(body["id"], str(answer.status))
            if answer.status < 500:
                return answer
        if left:
            time.sleep(hook.pause_ms / 1000)  # a provider's own pause before it tries again
    return answer
