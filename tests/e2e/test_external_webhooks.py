"""Shows that the external service's webhooks are what a receiver must expect: the
signatures agree with openssl's and with a published example, every twist arrives
as its name says, and the process sends them by itself around its effects."""
import base64
import json
import socket
import subprocess
import threading
import time

import pytest

from harness import external_webhooks
from harness.external_service import ExternalService
from harness.external_webhooks import Hook, event_body
from harness.provider import Provider
from harness.wire import Closed, Wire, connect, request_bytes

SECRETS = {"stripe": "whsec_s3cr3t", "hmac-body": "s3cr3t",
           "standard-webhooks": "whsec_" + base64.b64encode(b"s3cr3t of 24 bytes, this").decode()}


class Receiver:
    """Takes webhooks and answers as it is told; it checks nothing."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/hooks/bank?x=1"
        self.taken = []
        self.statuses = []
        self.news = threading.Condition()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with Wire(sock) as wire:
                self.serve_one(wire)

    def serve_one(self, wire):
        request = Provider.read_head(wire)
        try:
            Provider.read_body(wire, request)
        except Closed:
            return
        with self.news:
            status = self.statuses.pop(0) if self.statuses else 204
            self.taken.append(request)
            self.news.notify_all()
        wire.send(f"HTTP/1.1 {status} Because\r\nContent-Length: 0\r\n\r\n".encode()
                  if status != 204 else b"HTTP/1.1 204 Fine\r\n\r\n")

    def wait(self, count):
        with self.news:
            assert self.news.wait_for(lambda: len(self.taken) >= count, 15), self.taken
            return list(self.taken)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def receiver():
    one = Receiver()
    yield one
    one.close()


def openssl_mac(key, message):
    """The same HMAC, computed by somebody else."""
    done = subprocess.run(["openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt",
                           f"hexkey:{key.hex()}", "-binary"], input=message,
                          capture_output=True, check=True)
    return done.stdout


def verify(scheme, request, secret):
    """Whether openssl agrees with the signature, and the time it names."""
    if scheme == "stripe":
        stamp, *signatures = request["Stripe-Signature"].split(",")
        at = stamp.removeprefix("t=")
        right = "v1=" + openssl_mac(secret.encode(), at.encode() + b"." + request.body).hex()
    elif scheme == "standard-webhooks":
        at, signatures = request["webhook-timestamp"], request["webhook-signature"].split(" ")
        key = base64.b64decode(secret.removeprefix("whsec_"))
        message = f"{request['webhook-id']}.{at}.".encode() + request.body
        right = "v1," + base64.b64encode(openssl_mac(key, message)).decode()
    else:
        at, signatures = str(int(time.time())), request.fields.all("X-Signature")
        right = openssl_mac(secret.encode(), request.body).hex()
    return right in signatures, int(at)


@pytest.mark.parametrize("twist, valid, age, size", [
    ("plain", True, 0, 0), ("wrong_signature", False, 0, 0), ("old", True, 3600, 0),
    ("oversized", True, 0, 1 << 20),
])
@pytest.mark.parametrize("scheme", SECRETS)
def test_sent(receiver, scheme, twist, valid, age, size):
    """A webhook sent by hand: signed as it says, as old and as large as it says."""
    body = event_body("evt_1", "prov_1", "succeeded", "op1")
    answer = external_webhooks.send(Hook(receiver.url, scheme, SECRETS[scheme]), body, twist)
    request, = receiver.wait(1)
    agreed, at = verify(scheme, request, SECRETS[scheme])
    assert (answer.status, request.target) == (204, "/hooks/bank?x=1")
    assert agreed == valid
    assert scheme == "hmac-body" or (time.time() - at >= age) and (age or time.time() - at < 60)
    if size:
        assert request.size > size
    else:
        assert json.loads(request.body) == body


@pytest.mark.parametrize("scheme", SECRETS)
def test_rotation(receiver, scheme):
    """Two secrets give two signatures, and each of them is enough."""
    other, third = ("whsec_" + base64.b64encode(b"another secret, number %d" % n).decode()
                    for n in (2, 3))
    hook = Hook(receiver.url, scheme, [other, SECRETS[scheme]])
    external_webhooks.send(hook, event_body("evt_1", "prov_1"))
    request, = receiver.wait(1)
    agreed = [verify(scheme, request, s)[0] for s in (other, SECRETS[scheme], third)]
    assert agreed == [True, True, False]


def test_published_example():
    """The example that the Standard Webhooks documents give."""
    hook = Hook("", "standard-webhooks", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    fields = dict(hook.sign(b'{"test": 2432232314}', "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330))
    assert fields["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_header_and_prefix():
    """hmac-body under another name, with the prefix that some put before it."""
    hook = Hook("", "hmac-body", "s3cr3t", header="X-Hub-Signature-256", prefix="sha256=")
    assert hook.sign(b"x", "evt_1") == [
        ("X-Hub-Signature-256", "sha256=" + openssl_mac(b"s3cr3t", b"x").hex())]


# By the process itself.
@pytest.fixture
def external(tmp_path, receiver):
    hook = {"url": receiver.url, "scheme": "stripe", "secret": SECRETS["stripe"], "tries": 3,
            "pause_ms": 5}
    with ExternalService(tmp_path, tls=False, webhook=hook) as one:
        yield one


def post(external, key="k", operation="op1"):
    fields = [("Idempotency-Key", key), ("Hapax-Operation", operation)]
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(request_bytes("POST", "/pay", fields, b"x"))
        return wire.answer("POST")


def said(requests):
    return [json.loads(r.body)["data"]["object"]["status"] for r in requests]


@pytest.mark.parametrize("twist, states, events", [
    ("plain", ["succeeded"], 1), ("duplicate", ["succeeded", "succeeded"], 1),
    ("out_of_order", ["succeeded", "pending"], 2), ("early", ["succeeded"], 1),
    ("old", ["succeeded"], 1), ("oversized", ["succeeded"], 1),
    ("wrong_signature", ["succeeded"], 1),
])
def test_after_an_effect(external, receiver, twist, states, events):
    """Every effect is followed, or preceded, by its webhooks."""
    external.set(webhooks=[twist])
    made = post(external).json()["id"]
    requests = receiver.wait(len(states))
    bodies = [json.loads(r.body) for r in requests]
    assert said(requests) == states
    assert {(b["data"]["object"]["id"], b["data"]["object"]["operation"]) for b in bodies} == {
        (made, "op1")}
    assert len({b["id"] for b in bodies}) == events
    assert bodies[-1]["created"] <= bodies[0]["created"]
    agreed = {verify("stripe", r, SECRETS["stripe"])[0] for r in requests}
    assert agreed == {twist != "wrong_signature"}
    external.wait(lambda: len(external.ledger.webhooks(effect=made)) == len(states))
    assert {(w.twist, w.told) for w in external.ledger.webhooks()} == {(twist, "204")}


def test_early(external, receiver):
    """An early webhook was received while the POST is still without an answer."""
    external.fault("none", webhooks=["early"], after_gate="g")
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(request_bytes("POST", "/pay", [("Idempotency-Key", "k")], b"x"))
        receiver.wait(1)
        assert external.ledger.sends(key="k")[0].told is None
        external.release("g")
        assert wire.answer("POST").status == 201


@pytest.mark.parametrize("kind", ["reset_after", "hold_after", "error_after", "late"])
def test_answer_lost(external, receiver, kind):
    """The webhook comes although the answer never does."""
    external.fault(kind)
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(request_bytes("POST", "/pay", [("Idempotency-Key", "k")], b"x"))
        external.wait(lambda: any(send.told for send in external.ledger.sends(key="k")))
    request, = receiver.wait(1)
    effect, = external.ledger.effects()
    assert json.loads(request.body)["data"]["object"]["id"] == effect.id


def test_no_effect_no_webhook(external, receiver):
    """Replays and refusals bring no webhook; an effect's state is what it says."""
    external.set(honours_keys=True)
    external.script({"when": {"nth": 1}, "fault": {"kind": "too_many"}},
                   {"when": {"nth": 2}, "fault": {"kind": "none", "state": "failed"}})
    assert [post(external).status for _ in range(3)] == [429, 201, 201]
    assert post(external, "other").status == 429
    assert external.webhook(effect=None, state="last") == [204]
    assert said(receiver.wait(2)) == ["failed", "last"]


def test_tried_again(external, receiver):
    """A receiver that fails is tried again, one that is not there too."""
    receiver.statuses = [500, 503]
    assert external.webhook(effect="prov_1") == [204]
    assert [w.told for w in external.ledger.webhooks()] == ["500", "503", "204"]
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}/"
    hook = {"url": url, "scheme": "hmac-body", "secret": "s", "tries": 2, "pause_ms": 1}
    assert external.webhook(hook=hook) == [None]
    assert ["Refused" in w.told for w in external.ledger.webhooks()[3:]] == [True, True]
