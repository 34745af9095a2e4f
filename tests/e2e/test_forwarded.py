"""Shows that what hapax acted on is what the upstream gets: no spelling of a
method passes the guard, and no header that was judged is another one, or none,
when it arrives. Judged by the effects behind real readers."""
import json

import pytest

from harness import check
from harness.gateway import Gateway
from harness.secret import new_key
from harness.wsgi import WsgiUpstream

CONFIG = {"routes": [
    {"match": "PUT /kept/{id}"},
    {"match": "CHARGE /charges"},
    {"match": "CHARGE /free", "key": "ignore"},
    {"match": "POST /watched", "observe": True},
]}
SAFE = ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"]
IDEMPOTENT = ["PUT", "DELETE", "MKCOL", "COPY", "MOVE", "UNLOCK", "PROPPATCH", "VERSION-CONTROL",
              "MKCALENDAR", "BIND", "LINK"]


@pytest.fixture(scope="module")
def wsgi(tmp_path_factory):
    """A gateway before Python's WSGI server, and one that only observes it."""
    upstream = WsgiUpstream()
    folder = tmp_path_factory.mktemp("wsgi")
    gateway = Gateway(folder, upstream.url)
    (folder / "watching").mkdir()
    watching = Gateway(folder / "watching", upstream.url, {"observe": True})
    try:
        gateway.start()
        watching.start()
        yield gateway, watching, upstream
        gateway.stop()
        watching.stop()
    finally:
        gateway.kill()
        watching.kill()
        upstream.close()


@pytest.mark.parametrize("method", ["post", "Post", "pOST", "patch", "Patch", "put", "delete", "get",
                                    "lock", "mkcol", "Version-Control", "query"])
def test_other_spellings_never_arrive(wsgi, method):
    """A server that writes methods in capitals executes `post` as POST, so that
    it may not pass the guard; observed, it does, as it came."""
    gateway, watching, upstream = wsgi
    path = f"/spelled/{method}"
    detail = check.problem(gateway.call(method, path, key=None, body=b"{}"), "bad_request")["detail"]
    check.problem(gateway.call(method, path, key=new_key(), body=b"{}"), "bad_request")
    assert method.upper() in detail and upstream.of(path) == []
    assert watching.call(method, path, key=None, body=b"{}").status == 200
    assert [e[0] for e in upstream.of(path)] == ([] if method in ("get",) else [method.upper()])


def test_spelling_of_an_observed_route(shared):
    """A route that observes does so in every spelling of its method, and counts it."""
    gateway, name = shared.gateway, 'hapax_observed_total{would="bad_request"}'
    before = gateway.metrics()[name]
    assert gateway.call("post", "/watched", key=None, body=b"{}").status == 200
    assert [r.method for r in shared.provider.seen("/watched")] == ["post"]
    assert gateway.metrics()[name] == before + 1


@pytest.mark.parametrize("method", ["POST", "PATCH", "LOCK", "CHARGE", "M-POST", "refund"])
def test_what_is_neither_safe_nor_idempotent_is_guarded(shared, method):
    """Without a route, with the default key: once, and replayed; without a key, refused."""
    gateway, key, path = shared.gateway, new_key(), f"/once/{method}"
    check.problem(gateway.call(method, path, key=None, body=b"{}"), "idempotency_key_missing")
    answers = [gateway.call(method, path, key=key, body=b"{}", behave="effect=yes") for _ in range(2)]
    check.same_answer(*answers)
    assert len(shared.provider.ledger(key)) == 1
    assert [r.method for r in shared.provider.seen(path)] == [method]


@pytest.mark.parametrize("method", SAFE + IDEMPOTENT)
def test_the_others_pass(shared, method):
    """Safe and idempotent methods go up each time, key or no key."""
    key, path = new_key(), f"/each/{method}"
    for sent in (None, key, key):
        answer = shared.gateway.call(method, path, key=sent, behave="effect=no")
        assert (answer.status, answer["Hapax-Operation"]) == (200, None), answer
    assert [r.method for r in shared.provider.seen(path)] == [method] * 3


def test_routes_decide_about_methods(shared):
    """A route guards an idempotent method, and lets a custom one pass; another
    spelling of a method that a route names is refused like that of a known one."""
    gateway, key = shared.gateway, new_key()
    check.same_answer(*[gateway.call("PUT", "/kept/1", key=key, body=b"{}") for _ in range(2)])
    check.problem(gateway.call("PUT", "/kept/1", key=None, body=b"{}"), "idempotency_key_missing")
    for _ in range(2):
        assert gateway.call("CHARGE", "/free", key=None, body=b"{}").status == 200
    check.problem(gateway.call("CHARGE", "/charges", key=None, body=b"{}"), "idempotency_key_missing")
    check.problem(gateway.call("charge", "/charges", key=new_key(), body=b"{}"), "bad_request")
    assert shared.provider.seen("/charges") == []


def test_policy_lists_methods(shared):
    """The published policy says of each method what happens to it."""
    methods = json.loads(shared.gateway.get("/.hapax/policy").body)["methods"]
    assert methods["passed"] == sorted(SAFE, key=SAFE.index)
    assert methods["guarded"] == ["POST", "PATCH", "LOCK"] and methods["others"] == "guarded"
    assert set(IDEMPOTENT) < set(methods["passed_unless_a_route_names_them"])
    assert methods["refused"] == ["CONNECT"]


def test_operation_by_key_in_any_spelling(shared):
    """Whoever asks for an operation by `method=post` means POST."""
    key = new_key()
    reference = shared.gateway.post("/asked", key=key)["Hapax-Operation"]
    answer = shared.gateway.get("/.hapax/operations?method=post&path=/asked", key=key)
    assert answer.json()["operation"] == reference
