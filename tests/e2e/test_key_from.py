"""Shows that a route takes its key from where the API has it: another header, a member of
the body, the query; that two keys which differ are refused; and that the profiles of
PayPal and Square behave as those APIs do."""
import json

import pytest

from harness.secret import new_key

CONFIG = {
    "routes": [
        {"match": "POST /any", "key_from": [{"header": "X-Once"}, {"body": "/meta/key"}, {"query": "request_id"}]},
        {"match": "POST /body", "key_from": [{"body": "/idempotency_key"}]},
        {"match": "POST /maybe", "key": "optional", "key_from": [{"body": "/idempotency_key"}]},
        {"match": "POST /query", "key_from": [{"query": "request_id"}]},
        {"match": "POST /ignored", "key_from": [{"body": "/sent/key"}], "fingerprint": {"ignore": ["/sent"]}},
        {"match": "POST /short", "key_max": 8},
        {"match": "POST /watched", "observe": True, "key_from": [{"body": "/idempotency_key"}]},
    ],
}


def problem(answer, status, code):
    assert answer.status == status, answer
    assert answer.json()["code"] == code, answer.body
    return answer.json()


def body(**members):
    return json.dumps({"amount": 1, **members}).encode()


def post(shared, target, *, headers=(), sent=None):
    return shared.gateway.post(target, key=None, headers=headers, body=sent if sent is not None else body())


@pytest.mark.parametrize("how", [
    lambda k: {"target": "/any", "headers": [("X-Once", k)]},
    lambda k: {"target": "/any", "sent": body(meta={"key": k})},
    lambda k: {"target": f"/any?request_id={k}"},
    lambda k: {"target": "/any", "headers": [("X-Once", k)], "sent": body(meta={"key": k})},
    lambda k: {"target": "/body", "sent": body(idempotency_key=k)},
    lambda k: {"target": f"/query?a=1&request_id={k}"},
])
def test_places(shared, how):
    """A retry is a replay, and the provider saw one request, whole."""
    key = new_key()
    sent = how(key)
    target = sent.pop("target")
    path, before = target.split("?")[0], len(shared.provider.seen(target.split("?")[0]))
    first, again = post(shared, target, **sent), post(shared, target, **sent)
    assert (first.status, first.replayed, again.status, again.replayed) == (200, False, 200, True)
    assert again.body == first.body
    assert len(shared.provider.seen(path)) == before + 1


def test_one_key_wherever_it_is(shared):
    """The key is the key: the header and the member are one operation, where all else is equal."""
    key = new_key()
    assert post(shared, "/ignored", sent=body(sent={"key": key})).status == 200
    assert post(shared, "/ignored", sent=body(sent={"key": key, "at": 2})).replayed


def test_member_counts_in_the_fingerprint(shared):
    """Left out only where fingerprint.ignore says so: the same key in another place of the
    request is another request."""
    key = new_key()
    assert post(shared, "/any", sent=body(meta={"key": key})).status == 200
    problem(post(shared, "/any", headers=[("X-Once", key)]), 422, "idempotency_key_reused")


@pytest.mark.parametrize("how", [
    {"target": "/any", "headers": [("X-Once", "k-one")], "sent": body(meta={"key": "k-two"})},
    {"target": "/any?request_id=k-one", "sent": body(meta={"key": "k-two"})},
    {"target": "/any?request_id=k-one", "headers": [("X-Once", "k-two")]},
    {"target": "/query?request_id=k-one&request_id=k-two"},
    {"target": "/any", "headers": [("X-Once", "k-one"), ("X-Once", "k-one")]},
])
def test_two_that_differ(shared, how):
    """400, and nothing reaches the provider."""
    how = dict(how)
    target = how.pop("target")
    before = len(shared.provider.seen())
    problem(post(shared, target, **how), 400, "idempotency_key_invalid")
    assert len(shared.provider.seen()) == before


@pytest.mark.parametrize("target,sent", [
    ("/body", body()), ("/body", body(idempotency_key=None)), ("/body", b""), ("/body", b"no JSON"),
    ("/body", b"[1]"), ("/query?other=1", body()), ("/any", body(meta={})),
])
def test_missing(shared, target, sent):
    before = len(shared.provider.seen())
    problem(post(shared, target, sent=sent), 400, "idempotency_key_missing")
    assert len(shared.provider.seen()) == before


@pytest.mark.parametrize("value", ["", 7, True, "x" * 256, "two words\n"])
def test_malformed_member(shared, value):
    problem(post(shared, "/body", sent=body(idempotency_key=value)), 400, "idempotency_key_invalid")


def test_compressed_body_has_no_readable_key(shared):
    answer = post(shared, "/body", headers=[("Content-Encoding", "gzip")], sent=b"\x1f\x8b")
    assert "compressed" in problem(answer, 400, "idempotency_key_invalid")["detail"]


@pytest.mark.parametrize("chunked", [False, True])
def test_optional_without_a_key_passes_whole(shared, chunked):
    """The body was read to look for a key, and reaches the provider as it was."""
    sent = body(note="x" * 5000)
    before = len(shared.provider.seen("/maybe"))
    if chunked:
        head = (b"POST /maybe HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer s3cr3t\r\nExpect: 100-continue\r\n"
                b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        answer = shared.gateway.raw(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(sent), sent))
    else:
        answer = post(shared, "/maybe", sent=sent)
    assert answer.status == 200 and not answer.replayed
    seen = shared.provider.seen("/maybe")
    assert len(seen) == before + 1 and seen[-1].body == sent and seen[-1]["Expect"] is None


def test_optional_with_a_key_is_guarded(shared):
    sent = body(idempotency_key=new_key())
    assert [post(shared, "/maybe", sent=sent).replayed for _ in range(2)] == [False, True]


def test_expect_is_answered(shared):
    """100 comes before the body, because the key is in it."""
    sent = body(idempotency_key=new_key())
    with shared.gateway.connect() as wire:
        wire.send(shared.gateway.request("POST", "/body", key=None, headers=[("Expect", "100-continue")],
                                         body=sent)[:-len(sent)])
        status = wire.line()
        assert b"100" in (status if isinstance(status, bytes) else status.encode())


def test_too_large_before_the_key_is_known(site):
    """Limits hold for the body before anybody knows whether there is a key."""
    one = site({"limits": {"request_body": "1KiB"}, **CONFIG})
    sent = body(idempotency_key=new_key(), note="x" * 2000)
    problem(one.gateway.post("/maybe", key=None, body=sent), 413, "request_too_large")


def test_key_max(shared):
    """A longer new key is refused; the gateway's own bound stays."""
    assert shared.gateway.post("/short", key="12345678").status == 200
    assert "more characters" in problem(shared.gateway.post("/short", key="123456789"), 400,
                                        "idempotency_key_invalid")["detail"]


def test_observed(shared):
    """While observing nothing is buffered: such a request passes."""
    for _ in range(2):
        answer = post(shared, "/watched", sent=body(idempotency_key="same"))
        assert answer.status == 200 and not answer.replayed


def test_policy_says_it(shared):
    routes = {r["match"]: r for r in shared.gateway.get("/.hapax/policy").json()["routes"]}
    assert routes["POST /body"]["key_from"] == [{"body": "/idempotency_key"}]
    assert routes["POST /short"]["key_bytes_max"] == 8 and "key_from" not in routes["POST /short"]


# ---- profiles ----

def test_paypal(site):
    """PayPal-Request-Id, bare, optional, 422 with DUPLICATE_REQUEST_ID in PayPal's shape."""
    gateway = site({"profile": "paypal"}).gateway

    def send(key, sent=None, **how):
        return gateway.post("/v2/orders", key=None, headers=[("PayPal-Request-Id", key)] if key else (),
                            body=sent or body(), **how)
    key = new_key()
    assert [send(key).replayed for _ in range(2)] == [False, True]
    assert not send(None).replayed
    answer = send(key, body(more=1))
    assert answer.status == 422 and answer["Content-Type"] == "application/json"
    error = answer.json()
    assert error["name"] == "UNPROCESSABLE_ENTITY" and error["details"][0]["issue"] == "DUPLICATE_REQUEST_ID"
    assert error["retry"] == "never" and error["message"] and error["debug_id"]
    assert send("k" * 108).status == 200 and send("k" * 109).status == 400


def test_square(site):
    """idempotency_key in the body, optional, 400 with IDEMPOTENCY_KEY_REUSED in Square's shape."""
    gateway = site({"profile": "square"}).gateway

    def send(**members):
        return gateway.post("/v2/payments", key=None, body=body(**members))
    key = new_key()
    assert [send(idempotency_key=key).replayed for _ in range(2)] == [False, True]
    assert not send().replayed
    answer = send(idempotency_key=key, more=1)
    assert answer.status == 400 and answer["Content-Type"] == "application/json"
    error = answer.json()["errors"][0]
    assert (error["category"], error["code"]) == ("INVALID_REQUEST_ERROR", "IDEMPOTENCY_KEY_REUSED")
    assert answer.json()["retry"] == "never"
    assert send(idempotency_key="k" * 192).status == 200
    assert send(idempotency_key="k" * 193).json()["errors"][0]["code"] == "INVALID_VALUE"
