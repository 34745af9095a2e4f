"""Shows that keys of two callers never meet, that nobody is taken for a caller
on a credential that cannot tell them apart, and what a key is unique within."""
import pytest

from harness import check
from harness.provider import Provider
from harness.secret import ALICE, BASIC, BOB, new_key

DIGEST = 'Digest username="s3cr3t", nonce="1", response="2"'


def send(gateway, headers, key, path="/pay", **how):
    return gateway.post(path, key=key, auth=None, headers=headers, **how)


@pytest.mark.parametrize("one, other, same", [
    ([("Authorization", ALICE)], [("Authorization", ALICE)], True),
    ([("Authorization", ALICE)], [("Authorization", BOB)], False),
    ([("Authorization", ALICE)], [], False),
    ([("Authorization", "Basic " + BASIC)], [("Authorization", "Basic " + BASIC)], True),
    ([("Authorization", "Basic " + BASIC)], [("Authorization", "Bearer " + BASIC)], False),
    ([("X-Api-Key", "s3cr3t-1")], [("X-Api-Key", "s3cr3t-1")], True),
    ([("X-Api-Key", "s3cr3t-1")], [("X-Api-Key", "s3cr3t-2")], False),
    ([("X-Api-Key", "s3cr3t-1")], [("Authorization", "Bearer s3cr3t-1")], False),
    ([("Authorization", ALICE), ("X-Api-Key", "s3cr3t-1")],
     [("Authorization", ALICE), ("X-Api-Key", "s3cr3t-2")], False),
    ([], [], True),
    ([("Authorization", ALICE), ("Cookie", "s=s3cr3t1")],
     [("Authorization", ALICE), ("Cookie", "s=s3cr3t2")], True),
])
def test_same_tenant(gateway, provider, one, other, same):
    """Two requests with one key meet only where their credentials are one caller's."""
    key = new_key()
    first, second = send(gateway, one, key), send(gateway, other, key)
    assert (first.status, second.status) == (200, 200), (first, second)
    assert second.replayed == same
    assert len(provider.ledger(key)) == (1 if same else 2)
    if not same:
        assert first["Hapax-Operation"] != second["Hapax-Operation"]
        assert first.body != second.body


@pytest.mark.parametrize("headers", [
    [("Cookie", "session=s3cr3t")],
    [("Authorization", DIGEST)],
    [("Authorization", "AWS4-HMAC-SHA256 Credential=s3cr3t, Signature=2")],
    [("Authorization", "Negotiate s3cr3t")],
    [("Authorization", DIGEST), ("X-Api-Key", "s3cr3t-1")],
    [("Authorization", ALICE), ("Authorization", BOB)],
])
def test_unusable_credentials(gateway, provider, headers):
    """A credential that cannot name a caller gets 401 with the remedy, not the
    anonymous tenant, where anybody could be given its answer."""
    before = len(provider.seen())
    answer = send(gateway, headers, new_key())
    if answer.status == 400:  # a repeated Authorization may count as malformed
        check.problem(answer, "bad_request")
        assert headers[0][0] == headers[-1][0] == "Authorization" and len(headers) == 2
    else:
        check.problem(answer, "unauthenticated")
        assert answer["WWW-Authenticate"]
    assert len(provider.seen()) == before


def test_unguarded_needs_no_tenant(gateway):
    """A cookie alone is good enough for what passes through."""
    assert gateway.get("/page", auth=None, headers=[("Cookie", "session=s3cr3t")]).status == 200


HEADER = {"tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"}}


def test_header_from_trusted_peer(site):
    """`from: header` tells tenants apart by what a trusted peer says."""
    one = site({**HEADER, "trusted_peers": ["127.0.0.0/8"]})
    key = new_key()
    answers = [send(one.gateway, [("X-Tenant", t)], key) for t in ("a", "b", "a")]
    assert [a.replayed for a in answers] == [False, False, True]
    check.problem(send(one.gateway, [], new_key()), "unauthenticated")
    assert len(one.provider.ledger()) == 2


def test_header_of_any_bytes(site):
    """A name is whatever the proxy says; the page of metrics stays readable."""
    one = site({"trusted_peers": ["127.0.0.1"], "tenant": {"from": "header", "name": "X-Tenant"}})
    names = [b"caf\xe9", b"caf\xe8", b"tab\there", b'"q\\', b"a" + "\u00e9".encode() * 30]
    for name in names:
        head = b"POST /pay HTTP/1.1\r\nHost: x\r\nIdempotency-Key: s3cr3t-k\r\nContent-Length: 0\r\nX-Tenant: "
        answers = [one.gateway.raw(head + name + b"\r\n\r\n") for _ in range(2)]
        assert [(a.status, a.replayed) for a in answers] == [(200, False), (200, True)], name
    labels = {n.split("tenant=")[1] for n in one.gateway.metrics() if n.startswith("hapax_duplicates_total")}
    assert labels >= {r'"header:caf\\xe9"}', r'"header:caf\\xe8"}', r'"header:tab\\x09here"}',
                      r'"header:\"q\\"}', '"header:a' + "\u00e9" * 19 + r'\\xc3"}'}, labels


def test_header_not_required(site):
    """`anonymous: allow`: without the header, the anonymous tenant."""
    one = site({"tenant": {**HEADER["tenant"], "anonymous": "allow"}, "trusted_peers": ["127.0.0.1"]})
    key = new_key()
    answers = [send(one.gateway, [], key), send(one.gateway, [("X-Tenant", "a")], key),
               send(one.gateway, [], key)]
    assert [(a.status, a.replayed) for a in answers] == [(200, False), (200, False), (200, True)]


def test_header_from_stranger(site):
    """Who is no trusted peer cannot name its tenant."""
    one = site({**HEADER, "trusted_peers": ["10.0.0.0/8"]})
    check.problem(send(one.gateway, [("X-Tenant", "a")], new_key()), "unauthenticated")
    assert one.provider.seen() == []


def test_repeated_tenant_header(site):
    """Two tenant headers name nobody: the first proxy's word could be the client's."""
    one = site({**HEADER, "trusted_peers": ["127.0.0.1"]})
    answer = send(one.gateway, [("X-Tenant", "a"), ("X-Tenant", "b")], new_key())
    assert answer.status in (400, 401), answer
    assert one.provider.seen() == []


def test_header_over_unix_socket(site, tmp_path):
    """Over a unix socket the peer is trusted."""
    one = site({**HEADER, "listen": f"unix:{tmp_path}/gw.sock"})
    key = new_key()
    answers = [send(one.gateway, [("X-Tenant", t)], key) for t in ("a", "b", "b")]
    assert [a.replayed for a in answers] == [False, False, True]


def test_cookie(site):
    """`from: cookie` tells tenants apart by one cookie, whatever stands beside it."""
    one = site({"tenant": {"from": "cookie", "name": "session", "anonymous": "refuse"}})
    key = new_key()
    cookies = ["session=s3cr3tA; x=1", "x=2; session=s3cr3tA", "session=s3cr3tB", "xsession=s3cr3tA"]
    answers = [send(one.gateway, [("Cookie", c)], key) for c in cookies]
    assert [(a.status, a.replayed) for a in answers[:3]] == [(200, False), (200, True), (200, False)]
    check.problem(answers[3], "unauthenticated")
    assert len(one.provider.ledger(key)) == 2


def test_anonymous(site):
    """`from: anonymous` is one tenant for all, whatever they bring."""
    one = site({"tenant": {"from": "anonymous"}})
    key = new_key()
    rows = [[("Cookie", "a=s3cr3t")], [("Authorization", DIGEST)], [("Authorization", BOB)]]
    assert [send(one.gateway, r, key).replayed for r in rows] == [False, True, True]


CONFIG = {"routes": [
    {"match": "POST /route/{id}", "scope": "route"},
    {"match": "POST /tenant/*", "scope": "tenant"},
    {"match": "PATCH /tenant/*", "scope": "tenant"},
]}


@pytest.mark.parametrize("one, other, expected", [
    (("POST", "/a"), ("POST", "/b"), "executed"),
    (("POST", "/a"), ("PATCH", "/a"), "executed"),
    (("POST", "/a"), ("POST", "/a/"), "executed"),
    (("POST", "/a/b"), ("POST", "/a/./x/../b"), "replayed"),
    (("POST", "/a/~b"), ("POST", "/a/%7Eb"), "replayed"),
    (("POST", "/a%2fb"), ("POST", "/a%2Fb"), "replayed"),
    (("POST", "/a%2Fb"), ("POST", "/a/b"), "executed"),
    (("POST", "/a"), ("POST", "/a?s3cr3t"), "reused"),
    (("POST", "/route/1"), ("POST", "/route/1"), "replayed"),
    (("POST", "/route/1"), ("POST", "/route/2"), "reused"),
    (("POST", "/route/1"), ("POST", "/other"), "executed"),
    (("POST", "/tenant/1"), ("POST", "/tenant/2"), "reused"),
    (("POST", "/tenant/1"), ("PATCH", "/tenant/1"), "reused"),
    (("POST", "/tenant/1"), ("POST", "/tenant/1"), "replayed"),
])
def test_scope(gateway, provider, one, other, expected):
    """Within its scope a key is one operation; outside, another."""
    key = new_key()
    first = gateway.call(*one, key=key)
    second = gateway.call(*other, key=key)
    assert first.status == 200, first
    if expected == "reused":
        check.problem(second, "idempotency_key_reused")
    else:
        assert (second.status, second.replayed) == (200, expected == "replayed"), second
    assert len(provider.ledger(key)) == (2 if expected == "executed" else 1)


def test_scope_tenant_keeps_tenants_apart(gateway):
    """The widest scope still ends at the tenant."""
    key = new_key()
    answers = [gateway.post("/tenant/x", key=key, auth=a) for a in (ALICE, BOB)]
    assert [(a.status, a.replayed) for a in answers] == [(200, False), (200, False)]


def test_a_service_that_moved_keeps_its_keys(site):
    """On SQLite, the same service at another address: what was executed is
    replayed, and one line at start tells the old address and the new. The same
    address, however it is written, is no other one; another name is told too."""
    one = site({"store": "sqlite:hapax.db"})
    gateway, key = one.gateway, new_key()
    green = Provider(one.provider.ledger_path)
    port = one.provider.port
    first = gateway.post(key=key)
    rows = [
        (f"http://127.0.0.1:{port}/", {}, None),
        (f"http://localhost:{port}", {}, f"before=http://127.0.0.1:{port} now=http://localhost:{port} "),
        (green.url, {}, f"before=http://localhost:{port} now={green.url} "),
        (green.url, {}, None),
        (green.url, {"upstream_name": "default"}, None),
    ]
    try:
        for upstream, more, told in rows:
            since = len(gateway.lines)
            gateway.restart({"upstream": upstream, **more})
            check.same_answer(first, gateway.post(key=key))
            assert gateway.post().status == 200
            warnings = [line for line in gateway.lines[since:] if "event=upstream_" in line]
            assert len(warnings) == (told is not None), warnings
            if told:
                assert told in warnings[0] and 'name="default"' in warnings[0] and "keys go on" in warnings[0]
        since = len(gateway.lines)
        gateway.restart({"upstream_name": "payments"})
        warnings = [line for line in gateway.lines[since:] if "event=upstream_" in line]
        assert len(warnings) == 1 and 'before="default" now="payments"' in warnings[0], warnings
        assert "executed again" in warnings[0] and "upstream_name: default" in warnings[0], warnings
        gateway.stop()
    finally:
        green.close()
    assert len(one.provider.ledger(key)) == 1


def test_upstream_is_part_of_the_scope(site):
    """The same key before another upstream is another operation."""
    one = site({"upstream_name": "bank"})
    key = new_key()
    assert not one.gateway.post(key=key).replayed
    one.gateway.restart({"upstream_name": "shop"})
    assert not one.gateway.post(key=key).replayed
    one.gateway.restart({"upstream_name": "bank"})
    assert one.gateway.post(key=key).replayed
    assert len(one.provider.ledger(key)) == 2


ANALYTICS = [("Cookie", "_ga=GA1.2.1111.2222; consent=yes")]


def test_any_cookie_of_a_browser(site):
    """An analytics cookie on a keyed POST is 401, and the answer has the lines that
    settle it; each of them does, as docs/guide/browser.md says."""
    one = site()
    document = check.problem(one.gateway.post(auth=None, headers=ANALYTICS), "unauthenticated")
    assert "tenant: {from: cookie, name: " in document["detail"], document
    assert "tenant: {ignore: [Cookie]}" in document["detail"], document
    assert one.gateway.post(headers=ANALYTICS).status == 200
    for tenant in ({"from": "cookie", "name": "_ga"}, {"ignore": ["Cookie"], "anonymous": "allow"}):
        other = site({"tenant": tenant})
        key = new_key()
        first = other.gateway.post(key=key, auth=None, headers=ANALYTICS)
        assert first.status == 200, (tenant, first)
        check.same_answer(first, other.gateway.post(key=key, auth=None, headers=ANALYTICS))
