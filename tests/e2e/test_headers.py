"""Shows what travels up and what does not: the provider learns which operation
and attempt it serves, from hapax alone, and nothing that belongs to one
connection crosses to the other."""
import re

import pytest

from harness import check
from harness.secret import new_key


def up(shared, method="POST", headers=(), path=None, **how):
    """The request as the provider saw it."""
    path = path or f"/up/{new_key()[-12:]}"
    answer = shared.gateway.call(method, path, headers=list(headers), **how)
    assert answer.status == 200, answer
    return shared.provider.seen(path)[-1], answer


def test_operation_attempt_lease(shared):
    """The reference stays, the attempt counts, the lease changes with each attempt,
    and none of them is in the reference."""
    gateway, provider, key = shared.gateway, shared.provider, new_key()
    answers = [gateway.post("/lease", key=key, behave=b) for b in ("status=429", "status=429", "")]
    seen = provider.seen(key=key)
    references = {r["Hapax-Operation"] for r in seen} | {a["Hapax-Operation"] for a in answers}
    assert len(references) == 1, references
    identity, mark = references.pop().split(".")
    assert re.fullmatch("[0-9a-f]{64}", identity) and re.fullmatch("[0-9a-f]{32}", mark)
    assert [r["Hapax-Attempt"] for r in seen] == ["1", "2", "3"]
    leases = [r["Hapax-Lease"].split(".") for r in seen]
    assert {l[0] for l in leases} == {identity}
    assert len({l[1] for l in leases} | {mark}) == 4, (mark, leases)
    assert all(r["Hapax-Recovery-Point"] is None for r in seen)


@pytest.mark.parametrize("form", ['{}', '"{}"', '"{}\\"x"'])
def test_key_as_it_came(shared, form):
    """The provider sees the key as the client wrote it."""
    key = form.format(new_key())
    assert up(shared, key=key)[0]["Idempotency-Key"] == key


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("name", ["Hapax-Operation", "Hapax-Attempt", "Hapax-Lease", "hapax-lease",
                                  "Hapax-Recovery-Point", "Hapax-Anything"])
def test_client_cannot_speak_for_hapax(shared, method, name):
    """Hapax-* from a client is dropped."""
    request, _ = up(shared, method, [(name, "forged")])
    assert "forged" not in [v for _, v in request.fields], request


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
def test_forwarded(shared, method):
    """The provider learns who called and how, though no proxy is trusted."""
    forged = [("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https"),
              ("X-Forwarded-Host", "evil.test"), ("Via", "1.0 before")]
    request, _ = up(shared, method, forged)
    assert request["Host"] == "api.test"
    assert [f.strip() for f in ",".join(request.fields.all("X-Forwarded-For")).split(",")] \
        == ["192.0.2.1", "127.0.0.1"]
    assert (request["X-Forwarded-Proto"], request["X-Forwarded-Host"]) == ("http", "api.test")
    via = ", ".join(request.fields.all("Via"))
    assert re.fullmatch(r"1\.0 before, 1\.1 \S+.*", via), via


def test_forwarded_absent(shared):
    """Without any of them, hapax begins them."""
    request, _ = up(shared)
    assert request["X-Forwarded-For"] == "127.0.0.1"
    assert (request["X-Forwarded-Proto"], request["X-Forwarded-Host"]) == ("http", "api.test")
    assert request["Via"].startswith("1.1 ")


def test_forwarded_by_trusted_peer(site):
    """What a trusted peer says of its client is passed on."""
    one = site({"trusted_peers": ["127.0.0.1"]})
    said = [("X-Forwarded-For", "192.0.2.1"), ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Host", "shop.test")]
    request, _ = up(one, headers=said)
    assert (request["X-Forwarded-Proto"], request["X-Forwarded-Host"]) == ("https", "shop.test")
    request, _ = up(one)
    assert (request["X-Forwarded-Proto"], request["X-Forwarded-Host"]) == ("http", "api.test")


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_passed_on(shared, method):
    """What is for the provider reaches it untouched."""
    rows = [("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ("X-Custom", "a  b"), ("Accept", "application/json"), ("X-Empty", ""),
            ("X-Latin", "\xe4\xf6")]
    request, _ = up(shared, method, rows)
    assert [request[n] for n, _ in rows] == [v for _, v in rows]
    assert request["Authorization"] == "Bearer s3cr3t-alice"


@pytest.mark.parametrize("method", ["POST", "GET", "PUT"])
def test_hop_by_hop(shared, method):
    """What belongs to the client's connection stays there."""
    rows = [("Connection", "X-One, keep-alive"), ("Connection", "x-two"), ("X-One", "1"),
            ("X-Two", "2"), ("Keep-Alive", "timeout=9"), ("TE", "trailers"),
            ("Proxy-Connection", "keep-alive"), ("X-Three", "3")]
    request, _ = up(shared, method, rows)
    assert request["X-Three"] == "3"
    for name in ("X-One", "X-Two", "Keep-Alive", "TE", "Proxy-Connection"):
        assert request.fields.all(name) == [], (name, request)
    assert not {"x-one", "x-two"} & set(request.fields.tokens("Connection"))


@pytest.mark.parametrize("sent", [None, "gzip, br", "identity"])
def test_accept_encoding(shared, sent):
    """Guarded requests ask for plain bytes, so that any client can read the replay."""
    rows = [("Accept-Encoding", sent)] if sent else []
    assert up(shared, "POST", rows)[0]["Accept-Encoding"] == "identity"
    assert up(shared, "GET", rows)[0]["Accept-Encoding"] == sent


def test_upgrade_is_not_for_guarded(shared):
    """A guarded request does not upgrade."""
    rows = [("Connection", "Upgrade"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABk")]
    request, _ = up(shared, "POST", rows)
    assert request["Upgrade"] is None and "upgrade" not in request.fields.tokens("Connection")


def test_reference_is_hapaxs_own(shared):
    """An upstream cannot name the operation: one reference comes, the true one."""
    answer = shared.gateway.post(behave="header=Hapax-Operation:forged")
    assert answer["Hapax-Operation"] != "forged", answer


def test_answer_connection_headers(shared):
    """What the upstream's Connection names stays on that side."""
    for method in ("POST", "GET"):
        answer = shared.gateway.call(method, "/x", behave="header=Connection:X-Hop; header=X-Hop:1; header=X-Stay:1")
        assert (answer["X-Hop"], answer["X-Stay"]) == (None, "1")
