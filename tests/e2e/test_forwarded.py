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
    {"match": "POST /headed", "fingerprint": {"headers": ["X-Currency"]}},
]}
SAFE = ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"]
IDEMPOTENT = """PUT DELETE ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT COPY LABEL LINK MERGE MKACTIVITY MKCALENDAR
    MKCOL MKREDIRECTREF MKWORKSPACE MOVE ORDERPATCH PROPPATCH REBIND UNBIND UNCHECKOUT UNLINK UNLOCK UPDATE
    UPDATEREDIRECTREF VERSION-CONTROL""".split()


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
    gateway = shared.gateway
    before = gateway.observed()["bad_request"]
    assert gateway.call("post", "/watched", key=None, body=b"{}").status == 200
    assert [r.method for r in shared.provider.seen("/watched")] == ["post"]
    assert gateway.observed()["bad_request"] == before + 1


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


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PROPFIND"])
@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "x-method-override"])
def test_what_stands_for_another_method_is_guarded(shared, method, header):
    """Some servers execute a GET with POST in such a header as a POST."""
    gateway, path = shared.gateway, f"/instead/{method}/{header}"
    for meant in ("POST", "patch", "CHARGE"):
        key, sent = new_key(), [(header, meant)]
        check.problem(gateway.call(method, path, key=None, headers=sent), "idempotency_key_missing")
        answers = [gateway.call(method, path, key=key, headers=sent, behave="effect=yes") for _ in range(2)]
        check.same_answer(*answers)
        assert len(shared.provider.ledger(key)) == 1
    for meant in ("GET", "PUT", "delete", ""):
        answer = gateway.call(method, path, key=None, headers=[(header, meant)])
        assert (answer.status, answer["Hapax-Operation"]) == (200, None)


def test_policy_lists_methods(shared):
    """The published policy says of each method what happens to it."""
    methods = json.loads(shared.gateway.get("/.hapax/policy").body)["methods"]
    assert methods["passed"] == SAFE
    assert methods["guarded"] == ["POST", "PATCH", "LOCK"] and methods["others"] == "guarded"
    assert methods["passed_unless_a_route_names_them"] == IDEMPOTENT
    assert methods["refused"] == ["CONNECT"]


def test_operation_by_key_in_any_spelling(shared):
    """Whoever asks for an operation by `method=post` means POST."""
    key = new_key()
    reference = shared.gateway.post("/asked", key=key)["Hapax-Operation"]
    answer = shared.gateway.get("/.hapax/operations?method=post&path=/asked", key=key)
    assert answer.json()["operation"] == reference


ACTED_ON = ["Authorization", "Cookie", "X-Api-Key", "Idempotency-Key", "Host", "Origin", "Prefer", "Forwarded",
            "X-Forwarded-For", "x-forwarded-proto", "Hapax-Lease", "Content-Type", "content-encoding",
            "Transfer-Encoding", "X-HTTP-Method-Override", "x-http-method", "X-Method-Override",
            "X-Auth-Token", "X-Forwarded-User", "client_id"]


@pytest.mark.parametrize("named", ACTED_ON + ["close, authorization", "keep-alive ,X-Api-Key"])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_connection_takes_nothing_that_was_acted_on(shared, method, named):
    """A header that hapax went by and then did not send on would make the answer
    that of another request, for all who send the key again."""
    before = len(shared.provider.seen())
    check.problem(shared.gateway.call(method, "/x", headers=[("Connection", named)]), "bad_request")
    assert len(shared.provider.seen()) == before


def test_connection_and_a_fingerprinted_header(shared):
    """Of a route that counts the header, `Connection` cannot take it; elsewhere
    it is one like any other."""
    gateway, key = shared.gateway, new_key()
    sent = {"key": key, "headers": [("X-Currency", "EUR"), ("Connection", "X-Currency")]}
    check.problem(gateway.post("/headed", **sent), "bad_request")
    assert shared.provider.ledger(key) == []
    honest = gateway.post("/headed", key=key, headers=[("X-Currency", "EUR")])
    assert (honest.status, honest.replayed) == (200, False)
    assert shared.provider.seen(key=key)[0]["X-Currency"] == "EUR"
    assert gateway.post("/other", **{**sent, "key": new_key()}).status == 200
    assert shared.provider.seen("/other")[-1]["X-Currency"] is None


def test_connection_and_configured_names(site):
    """The tenant's and the key's header have other names here."""
    one = site({"key_header": "X-Request-Key", "trusted_peers": ["127.0.0.1"],
                "tenant": {"from": "header", "name": "X-Tenant"}})
    sent = [("X-Request-Key", new_key()), ("X-Tenant", "a")]
    for named in ("X-Tenant", "x-request-key"):
        answer = one.gateway.post(key=None, headers=sent + [("Connection", named)])
        check.problem(answer, "bad_request")
    for name in ("X_Tenant", "X-Request_Key"):
        check.problem(one.gateway.post(key=None, headers=sent + [(name, "b")]), "bad_request")
    assert one.provider.ledger() == []
    assert one.gateway.post(key=None, headers=sent).status == 200


TWINS = ["Idempotency_Key", "idempotency_KEY", "X_Api_Key", "X-Api_Key", "Content_Type",
         "Content_Length", "Transfer_Encoding", "X_Forwarded_For", "X-Forwarded_Proto", "Hapax_Lease", "hapax_x",
         "X_HTTP_Method_Override", "X-HTTP_Method", "x_method_override", "X_Auth_Token"]


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_twins_never_arrive(wsgi, method, name):
    """A WSGI server takes X_Y for X-Y, so that such a name would speak for a
    header that hapax went by; observed, it passes."""
    gateway, watching, upstream = wsgi
    path = f"/twin/{method}/{name}"
    detail = check.problem(gateway.call(method, path, headers=[(name, "1")]), "bad_request")["detail"]
    assert name in detail and upstream.of(path) == []
    assert watching.call(method, path, headers=[(name, "1")]).status == 200


def test_twin_of_a_fingerprinted_header(shared):
    """Only where the route counts it."""
    sent = [("X_Currency", "EUR")]
    check.problem(shared.gateway.post("/headed", headers=sent), "bad_request")
    assert shared.gateway.post("/unheaded", headers=sent).status == 200
    assert shared.provider.seen("/unheaded")[0]["X_Currency"] == "EUR"


@pytest.mark.parametrize("name", ["X_Custom", "trace_id", "X_Csrf_Token", "_", "X_"])
@pytest.mark.parametrize("method", ["POST", "GET"])
def test_other_underscores_pass(shared, method, name):
    """A name that nobody takes for one of hapax's goes its way."""
    path = f"/free/{name}"
    assert shared.gateway.call(method, path, headers=[(name, "1")]).status == 200
    assert shared.provider.seen(path)[-1][name] == "1"


def test_underscores_dropped(site):
    """`underscore_headers: drop` sends none on, but for the names that are
    configured, and refuses none; observed, they pass."""
    one = site({"underscore_headers": "drop", "key_header": "request_key",
                "routes": [{"match": "POST /counting", "fingerprint": {"headers": ["x_note"]}},
                           {"match": "POST /watched", "observe": True}]})
    sent = [("request_key", new_key()), ("x_note", "n"), ("X_Custom", "1"), ("Content_Type", "x"),
            ("X_Api_Key", "forged"), ("Hapax_Lease", "forged")]

    def arrived(method, path):
        assert one.gateway.call(method, path, key=None, headers=sent).status == 200
        return [n for n, _ in one.provider.seen(path)[-1].fields if "_" in n]
    assert arrived("POST", "/counting") == ["request_key", "x_note"]
    assert arrived("POST", "/pay") == ["request_key"]
    assert arrived("GET", "/pay") == ["request_key"]
    assert len(arrived("POST", "/watched")) == len(sent) - 1    # Hapax_* never travels
    check.problem(one.gateway.post(key=None, headers=sent + [("Request-Key", "k")]), "bad_request")


REPEATED = [("Content-Type", "application/json", "text/plain"), ("content-type", "application/json", "application/json"),
            ("Authorization", "Bearer s3cr3t-a", "Bearer s3cr3t-b"), ("Origin", "https://a.test", "https://b.test"),
            ("X-Api-Key", "s3cr3t-a", "s3cr3t-b"), ("X-Auth-Token", "s3cr3t-a", "s3cr3t-b")]


@pytest.mark.parametrize("name, one, two", REPEATED)
def test_repeated(wsgi, name, one, two):
    """Which of two a server reads is its own choice: a guarded request has one
    of each that says whose it is or what it means. Nothing else is refused."""
    gateway, watching, upstream = wsgi
    path = f"/repeated/{name}"
    auth = None if name == "Authorization" else "Bearer s3cr3t-alice"
    sent = {"auth": auth, "headers": [(name, one), (name.upper(), two)]}
    detail = check.problem(gateway.post(path, **sent), "bad_request")["detail"]
    assert name.lower() in detail.lower() and upstream.of(path) == []
    assert gateway.get(path, **sent).status == 200
    assert watching.post(path, **sent).status == 200 and len(upstream.of(path)) == 1


OWN = "header=Idempotent-Replayed:true; header=Idempotency-Expires:2030-01-01; header=Hapax-Operation:forged"


@pytest.mark.parametrize("method", ["POST", "GET", "PUT", "DELETE", "PROPFIND"])
def test_only_hapax_speaks_for_hapax(shared, method):
    """An upstream's own Idempotent-Replayed, Idempotency-Expires and Hapax-* reach
    nobody, guarded or not."""
    answer = shared.gateway.call(method, "/own", behave=OWN)
    assert answer.status == 200 and not answer.replayed, answer
    assert answer["Idempotency-Expires"] != "2030-01-01" and answer["Hapax-Operation"] != "forged"


def test_observed_answers_are_not_altered(shared):
    """An observed service may have marks of its own."""
    answer = shared.gateway.post("/watched", behave=OWN)
    assert (answer["Idempotent-Replayed"], answer["Idempotency-Expires"]) == ("true", "2030-01-01")
