"""Shows that the external service tells the truth: every fault looks on the wire
as its name says, and whatever the caller sees, the ledger knows how often it
happened, through a kill as well."""
import json
import os
import socket
import ssl
import time

import pytest

from harness import external_faults
from harness.external_service import LOOKUP_CREDENTIAL, ExternalService
from harness.external_tls import Authority, client_context
from harness.wire import Closed, Malformed, Wire, connect, request_bytes

LOSSES = (Closed, Malformed, ConnectionError)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    with ExternalService(tmp_path_factory.mktemp("external")) as external:
        yield external


@pytest.fixture
def external(one):
    """The module's provider, as it is by default; keys and operations of a test
    are its own."""
    one.set(honours_keys=False, remember_ms=None, lookup_delay_ms=0, credential=None,
            clock_shift_ms=0)
    one.calm()
    return one


@pytest.fixture
def key(request):
    return f"key of {request.node.name}"


def post_bytes(key, body=b'{"amount": 10}', path="/pay", headers=()):
    fields = [("Hapax-Operation", f"op of {key}"), ("Hapax-Attempt", "1"), *headers]
    if key is not None:
        fields.append(("Idempotency-Key", key))
    return request_bytes("POST", path, fields, body)


def post(external, key, body=b'{"amount": 10}', path="/pay", headers=()):
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(post_bytes(key, body, path, headers))
        return wire.answer("POST")


def get(external, target, credential=LOOKUP_CREDENTIAL):
    fields = [("Authorization", credential)] if credential else []
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(request_bytes("GET", target, fields))
        return wire.answer()


def lookup(external, key):
    return get(external, f"/lookup?operation=op%20of%20{key.replace(' ', '%20')}")


def told(external, key):
    return [send.told for send in external.ledger.sends(key=key)]


def test_effect(external, key):
    """A send is one effect, and both are written down with all that came along."""
    answer = post(external, f'"{key}"', b"body", "/pay/1?x=y", [("Authorization", "Bearer s3cr3t")])
    effect, = external.ledger.effects(key=key)
    send, = external.ledger.sends(key=key)
    assert (answer.status, answer.json()) == (201, {"id": effect.id, "status": "succeeded"})
    for row in (effect, send):
        assert (row.path, row.body, row.attempt) == ("/pay/1", b"body", "1")
        assert (row.operation, row.credential) == (f'op of "{key}"', "Bearer s3cr3t")
        assert ["Hapax-Attempt", "1"] in json.loads(row.headers)
        assert row.digest == "230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5"
    assert (send.query, send.told, send.effect, send.lost) == ("x=y", "201", effect.id, 0)


@pytest.mark.parametrize("fault, status, effects, fields", [
    ({"kind": "none"}, 201, 1, {}),
    ({"kind": "none", "before_ms": 1, "after_ms": 1}, 201, 1, {}),
    ({"kind": "too_many", "retry_after": 7}, 429, 0, {"Retry-After": "7"}),
    ({"kind": "unavailable", "retry_after": 3}, 503, 0, {"Retry-After": "3"}),
    ({"kind": "unavailable"}, 503, 0, {"Retry-After": None}),
    ({"kind": "error_before"}, 500, 0, {}),
    ({"kind": "error_after"}, 500, 1, {}),
    ({"kind": "error_after", "status": 502}, 502, 1, {}),
    ({"kind": "decline"}, 402, 0, {}),
    ({"kind": "decline", "status": 422}, 422, 0, {}),
    ({"kind": "big", "bytes": 100000}, 201, 1, {}),
    ({"kind": "say", "status": 307, "headers": {"Location": "/x"}}, 307, 0, {"Location": "/x"}),
], ids=lambda value: value.get("kind") if isinstance(value, dict) else None)
def test_answers(external, key, fault, status, effects, fields):
    """Faults with an answer: its status and headers, and whether it happened."""
    external.script({"fault": fault})
    answer = post(external, key)
    assert (answer.status, len(external.ledger.effects(key=key))) == (status, effects)
    assert {name: answer[name] for name in fields} == fields
    assert told(external, key) == [str(status)]


def raw_end(wire):
    """Reads beneath TLS to the end, because Python's ssl makes a reset an end of file."""
    with socket.socket(fileno=os.dup(wire.sock.fileno())) as beneath:
        beneath.settimeout(15)
        while beneath.recv(65536):
            pass
    raise Closed("it ended without a reset")


@pytest.mark.parametrize("kind, loss, effects, word", [
    ("reset_before", ConnectionResetError, 0, "reset"),
    ("reset_after", ConnectionResetError, 1, "reset"),
    ("half", Closed, 1, "half"), ("nonsense", Malformed, 1, "nonsense"),
])
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_losses(external, key, kind, loss, effects, word, tls):
    """Faults without a whole answer: how it is lost, and whether it happened."""
    external.fault(kind)
    with secured(external) if tls else connect(("127.0.0.1", external.port)) as wire:
        wire.send(post_bytes(key))
        with pytest.raises(loss):
            if tls and word == "reset":
                raw_end(wire)
            wire.answer("POST")
    assert len(external.ledger.effects(key=key)) == effects
    assert told(external, key) == [word]


@pytest.mark.parametrize("kind, effects", [("hold_before", 0), ("hold_after", 1)])
def test_holds(external, key, kind, effects):
    """A held request is never answered, for as long as the caller waits."""
    external.fault(kind)
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(post_bytes(key))
        external.wait(lambda: told(external, key) == ["silence"])
        wire.sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            wire.answer("POST")
    assert len(external.ledger.effects(key=key)) == effects


@pytest.mark.parametrize("when", ["before", "after"])
def test_gates(external, key, when):
    """At a gate a request stands still, before its effect or after it."""
    external.fault("none", **{f"{when}_gate": key})
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(post_bytes(key))
        seen = external.ledger.sends if when == "before" else external.ledger.effects
        external.wait(lambda: seen(key=key))
        assert len(external.ledger.effects(key=key)) == (0 if when == "before" else 1)
        assert told(external, key) == [None]
        external.release(key)
        assert wire.answer("POST").status == 201


def test_slow(external, key):
    """A slow request takes its time on both sides of the effect."""
    external.fault("none", before_ms=120, after_ms=80)
    began = time.monotonic()
    assert post(external, key).status == 201
    whole_ms = (time.monotonic() - began) * 1000
    send, = external.ledger.sends(key=key)
    effect, = external.ledger.effects(key=key)
    assert effect.at - send.at >= 119 and whole_ms >= 200, (send.at, effect.at, whole_ms)


@pytest.mark.parametrize("honours", [False, True], ids=["plain", "honours keys"])
def test_late(external, key, honours):
    """It happens after the caller has gone; with keys, a resend that was faster
    leaves nothing for the late one to do."""
    external.set(honours_keys=honours)
    external.fault("late", late_ms=100)
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(post_bytes(key))
        external.wait(lambda: told(external, key) == ["silence"])
        assert (external.ledger.effects(key=key), lookup(external, key).status) == ([], 404)
        assert not honours or post(external, key).status == 201
    first = external.wait(lambda: external.ledger.sends(key=key)[0].effect)  # the late one's
    effects = [effect.id for effect in external.ledger.effects(key=key)]
    assert effects == [first]
    assert lookup(external, key).json()["id"] == first


def test_caller_gone_before_answer(external, key):
    """What was told to nobody is marked; it has happened all the same."""
    external.fault("big", after_gate=key, bytes=8 << 20)
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(post_bytes(key))
        external.wait(lambda: external.ledger.effects(key=key))
    external.release(key)
    send = external.wait(lambda: [s for s in external.ledger.sends(key=key) if s.lost])[0]
    assert (send.told, len(external.ledger.effects(key=key))) == ("201", 1)


def test_request_cut_short(external, key):
    """Half a request has no effect, but it was a sending."""
    with connect(("127.0.0.1", external.port)) as wire:
        wire.send(post_bytes(key)[:-3])
    send = external.wait(lambda: external.ledger.sends(key=key))[0]
    assert (send.whole, send.told, external.ledger.effects(key=key)) == (0, None, [])


# Its own idempotency.
def test_no_idempotency(external, key):
    """By default the same key twice is two effects."""
    assert post(external, key).body != post(external, key).body
    assert len(external.ledger.effects(key=key)) == 2


def test_idempotency(external, key):
    """A remembered key gives the stored answer, even of a send whose own was lost."""
    external.set(honours_keys=True)
    external.fault("error_after")
    assert post(external, key).status == 500
    answers = {post(external, key).body for _ in range(2)}
    effect, = external.ledger.effects(key=key)
    assert [json.loads(body)["id"] for body in answers] == [effect.id]
    assert [(s.told, s.effect, s.replay) for s in external.ledger.sends(key=key)] == [
        ("500", effect.id, 0), ("201", effect.id, 1), ("201", effect.id, 1)]


def test_idempotency_of_refusals(external, key):
    """A decline is remembered; what was not carried out is not."""
    external.set(honours_keys=True)
    external.script({"when": {"nth": 1}, "fault": {"kind": "too_many"}},
                   {"when": {"nth": 2}, "fault": {"kind": "decline"}})
    assert [post(external, key).status for _ in range(3)] == [429, 402, 402]
    assert external.ledger.effects(key=key) == []


def test_key_with_another_body(external, key):
    """A remembered key with another body is refused."""
    external.set(honours_keys=True)
    assert [post(external, key, body).status for body in (b"1", b"2", b"1")] == [201, 422, 201]
    assert len(external.ledger.effects(key=key)) == 1


def test_forgetting(external, key):
    """A key is remembered for its time and no longer."""
    external.set(honours_keys=True, remember_ms=3600_000)
    ids = [post(external, key).json()["id"]]
    for shift in (3500_000, 3700_000):
        external.set(clock_shift_ms=shift)
        ids.append(post(external, key).json()["id"])
    assert (ids[0] == ids[1], ids[1] == ids[2]) == (True, False)
    external.forget(key)
    assert post(external, key).json()["id"] != ids[2]
    assert len(external.ledger.effects(key=key)) == 3


# Lookups.
def test_lookups(external, key):
    """Effects are found by operation and by id, with the lookup's own credential."""
    assert lookup(external, key).status == 404
    made = post(external, key).json()["id"]
    assert lookup(external, key).json()["id"] == made
    assert get(external, f"/lookup/{made}").json()["status"] == "succeeded"
    assert get(external, "/lookup/prov_0").status == 404
    for credential in (None, "Bearer other"):
        assert get(external, f"/lookup/{made}", credential).status == 401
    external.set_state(made, "failed")
    assert get(external, f"/lookup/{made}").json()["status"] == "failed"
    assert external.ledger.lookups(operation=f"op of {key}")[0].told == "404"


def test_lookup_delayed(external, key):
    """A new effect is seen only after a time."""
    external.set(lookup_delay_ms=3600_000)
    made = post(external, key).json()["id"]
    assert [lookup(external, key).status, get(external, f"/lookup/{made}").status] == [404, 404]
    external.set(clock_shift_ms=3600_001)
    assert [lookup(external, key).status, get(external, f"/lookup/{made}").status] == [200, 200]


@pytest.mark.parametrize("fault, status, state", [
    ({"kind": "error_before"}, 500, None),
    ({"kind": "none", "state": "pending"}, 200, "pending"),
    ({"kind": "none", "state": "failed"}, 200, "failed"),
    ({"kind": "say", "status": 200, "json": {"status": "requires_action"}}, 200, "requires_action"),
    ({"kind": "too_many", "retry_after": 1}, 429, None),
    ({"kind": "say", "status": 404}, 404, None),
])
def test_lookup_faults(external, key, fault, status, state):
    """A lookup can say anything, or fail."""
    post(external, key)
    external.script({"when": {"kind": "lookup"}, "fault": fault})
    answer = lookup(external, key)
    assert (answer.status, answer.json().get("status")) == (status, state)


def test_credential(external, key):
    """Without the target's credential nothing happens."""
    external.set(credential="Bearer s3cr3t-target")
    assert post(external, key).status == 401
    right = [("Authorization", "Bearer s3cr3t-target")]
    assert post(external, key, headers=right).status == 201
    assert len(external.ledger.effects(key=key)) == 1


# The script.
def test_script(external, key):
    """The first rule that matches decides: by number, path, key, so many times."""
    number = len(external.ledger.sends()) + 1
    external.script({"when": {"number": [number + 1]}, "fault": {"kind": "say", "status": 418}},
                   {"when": {"path": "/slow/*"}, "fault": {"kind": "say", "status": 419}},
                   {"when": {"key": key}, "times": 2, "fault": {"kind": "say", "status": 420}})
    seen = [post(external, key, path=path).status
            for path in ("/a", "/slow/b", "/slow/c", "/d", "/e", "/f")]
    assert seen == [420, 418, 419, 420, 201, 201]


def test_random_script(external, key):
    """A seed gives the same faults for the same numbers, and others give others."""
    faults = [{"kind": "say", "status": status} for status in range(410, 450)]
    first = len(external.ledger.sends()) + 1
    external.script({"random": {"seed": 7, "share": 0.5, "faults": faults}})
    seen = [post(external, key).status for _ in range(20)]
    assert 201 in seen and len(set(seen)) > 5
    again = {number: draw(7, number, faults) for number in range(first, first + 20)}
    assert list(again.values()) == seen
    assert [draw(8, number, faults) for number in again] != seen


def draw(seed, number, faults):
    row = {"kind": "send", "number": number, "nth": 1, "path": "/"}
    rule = {"id": "r", "random": {"seed": seed, "share": 0.5, "faults": faults}}
    return external_faults.choose([rule], row, lambda _: 0)[1].get("status", 201)


@pytest.mark.parametrize("rule", [
    {"fault": {"kind": "explode"}}, {"fault": {"kind": "none", "after": 3}}, {"when": {}},
    {"when": {"pth": "/"}, "fault": {"kind": "none"}}, {"often": 1, "fault": {"kind": "none"}},
])
def test_misspelt_script(external, rule):
    """A script that says nothing known is refused, not ignored."""
    with pytest.raises(AssertionError):
        external.script(rule)


# The process.
def secured(external, ca_file=None, name="localhost"):
    plain = socket.create_connection(("127.0.0.1", external.tls_port), timeout=15)
    try:
        context = client_context(ca_file or external.ca_file)
        return Wire(context.wrap_socket(plain, server_hostname=name))
    except OSError:
        plain.close()
        raise


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_https(external, key, name):
    """HTTPS works for whoever trusts the test's authority."""
    with secured(external, name=name) as wire:
        for _ in range(2):
            wire.send(post_bytes(key))
            assert wire.answer("POST").status == 201
    assert len(external.ledger.effects(key=key)) == 2


def test_untrusted(external, tmp_path):
    """Who trusts another authority, or wanted another name, does not get through."""
    stranger = Authority(tmp_path, "stranger")
    for how in ({"ca_file": stranger.ca_file}, {"name": "bank.test"}):
        with pytest.raises(ssl.SSLCertVerificationError):
            secured(external, **how)


def test_refuses(external, key):
    """With its doors closed, connections are refused; then they are not."""
    external.refuse()
    for port in (external.port, external.tls_port):
        with pytest.raises(ConnectionRefusedError):
            connect(("127.0.0.1", port))
    external.accept()
    assert post(external, key).status == 201


def test_survives_kill(tmp_path):
    """After kill -9 the ledger has every effect that was ever told, and the
    process started again knows keys, script and numbers."""
    with ExternalService(tmp_path, tls=False, honours_keys=True) as external:
        external.script({"times": 1, "fault": {"kind": "error_after"}},
                       {"when": {"key": "held"}, "fault": {"kind": "none", "after_gate": "g"}})
        assert [post(external, key).status for key in ("a", "b")] == [500, 201]
        with connect(("127.0.0.1", external.port)) as wire:
            wire.send(post_bytes("held"))
            external.wait(lambda: external.ledger.effects(key="held"))
            external.kill()
            with pytest.raises(LOSSES):
                wire.answer("POST")
        before = external.ledger.effects()
        assert [(e.key, told(external, e.key)) for e in before] == [
            ("a", ["500"]), ("b", ["201"]), ("held", [None])]
        with pytest.raises(ConnectionRefusedError):
            post(external, "a")
        external.start()
        assert [post(external, key).json()["id"] for key in ("a", "b")] == [e.id for e in before[:2]]
        assert external.ledger.effects() == before
        assert [s.number for s in external.ledger.sends()] == [1, 2, 3, 4, 5]
