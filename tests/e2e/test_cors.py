"""Shows what pages of other origins may read: hapax's own answers and replays,
if their origin is listed; a replay never names whoever asked first, every answer
says that it depends on Origin, and what is stored and passed through is untouched."""
import pytest

from harness import check
from harness.gateway import free_port
from harness.secret import BOB, new_key

SHOP, DESK, EVIL = "https://shop.example", "http://127.0.0.1:3000", "https://evil.example"
CONFIG = {
    "cors": {"origins": [SHOP, DESK]},
    "routes": [
        {"match": "POST /watched", "observe": True},
        {"match": "POST /ignored", "key": "ignore"},
        {"match": "POST /status", "store": "status"},
        {"match": "POST /wait", "concurrent": "wait"},
        {"match": "POST /accepted", "concurrent": "accepted"},
    ],
}
EXPOSED = ["hapax-operation", "idempotent-replayed", "idempotent-reconstructed", "idempotency-expires", "retry-after"]
OWN = EXPOSED + ["location", "link", "ratelimit", "ratelimit-policy"]
ALLOW, CREDENTIALS = "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials"
EXPOSE, VARY = "Access-Control-Expose-Headers", "Vary"
# What an application says to the shop's page, and to everybody.
TO_SHOP = (f"header={ALLOW}:{SHOP};header={CREDENTIALS}:true;"
           f"header={EXPOSE}:X-Total%2C Retry-After;header=Vary:Accept%2C origin")
TO_ALL = f"header={ALLOW}:*;header={EXPOSE}:*"
# Nobody's page, or one that is not listed: also what only looks like one that is.
STRANGERS = [None, EVIL, "null", "*", "https://shop.example.evil.example", "https://shop.example:443",
             "https://SHOP.example", "https://shop.example/", "http://shop.example", "", f"{SHOP} {DESK}",
             f"{SHOP}, {DESK}"]


def origin(value):
    return [] if value is None else [("Origin", value)]


def reads(answer, who, exposed):
    """The page of `who` may read the answer and these headers, without credentials."""
    assert answer[ALLOW] == who and answer[CREDENTIALS] is None, answer
    assert answer.fields.tokens(EXPOSE) == exposed, answer
    assert len(answer.fields.all(EXPOSE)) == 1, answer
    varies(answer)


def varies(answer):
    assert answer.fields.tokens(VARY).count("origin") == 1, answer
    assert len(answer.fields.all(VARY)) == 1, answer


def says_nothing(answer):
    """Nobody is named, and caches are told why."""
    assert answer[ALLOW] is None and answer[CREDENTIALS] is None, answer
    varies(answer)


def untouched(answer):
    assert not [n for n, _ in answer.fields if n.lower().startswith("access-control-")], answer
    assert not answer.fields.all(VARY), answer


def own_answers(gateway, headers):
    """Answers of hapax's own, by what they are."""
    used = new_key()
    gateway.post("/x", key=used)
    yield "400", gateway.post("/x", key=None, headers=headers)
    yield "400", gateway.post("/x", key="a b", headers=headers)
    yield "401", gateway.post("/x", auth="Digest s3cr3t", headers=headers)
    yield "413", gateway.post("/x", body=b"x" * (1 << 20) + b"x", headers=headers)
    yield "422", gateway.post("/x", key=used, body=b"{}", headers=headers)
    yield "502", gateway.post("/x", behave="reset=after", headers=headers)
    yield "502", gateway.get("/x", behave="reset=after", headers=headers)
    reference = gateway.post("/x", key=used)["Hapax-Operation"]
    for path, auth in ((f"/.hapax/operations/{reference}", None), (f"/.hapax/operations/{reference}", BOB),
                       ("/.hapax/policy", None), ("/.hapax/problems/overloaded", None), ("/.hapax/no", None)):
        how = {} if auth is None else {"auth": auth}
        yield path, gateway.get(path, headers=headers, **how)
    yield "405", gateway.post("/.hapax/policy", headers=headers)


@pytest.mark.parametrize("who", [SHOP, DESK])
def test_own_answers(shared, who):
    """Problems, pages and 405s: the listed page reads all of them."""
    for what, answer in own_answers(shared.gateway, origin(who)):
        assert not what.isdigit() or answer.status == int(what), (what, answer)
        reads(answer, who, OWN)


@pytest.mark.parametrize("who", [None, EVIL])
def test_own_answers_to_strangers(shared, who):
    """Anybody else gets them without being named; no Origin is ever echoed."""
    for _, answer in own_answers(shared.gateway, origin(who)):
        says_nothing(answer)
        assert answer[EXPOSE] is None, answer


@pytest.mark.parametrize("path, status", [("/x", 409), ("/accepted", 202)])
def test_under_way(shared, path, status):
    """What a retry gets while the first is running."""
    gateway, key = shared.gateway, new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", path, key=key, behave=f"hold={key}"))
        shared.provider.gate(key).wait_arrived()
        answer = gateway.post(path, key=key, headers=origin(SHOP))
        assert answer.status == status and answer["Retry-After"], answer
        reads(answer, SHOP, OWN)
        shared.provider.gate(key).release()
        wire.answer()


@pytest.mark.parametrize("behave, exposed", [
    ("", EXPOSED),
    (TO_SHOP, ["x-total", "retry-after"] + [n for n in EXPOSED if n != "retry-after"]),
    (TO_ALL, ["*"] + EXPOSED),
    (f"header={ALLOW}:{EVIL};header={CREDENTIALS}:true", EXPOSED),
    (f"header={EXPOSE}:X-One;header={EXPOSE}:X-Two;header=Vary:Accept;header=vary:Cookie",
     ["x-one", "x-two"] + EXPOSED),
])
@pytest.mark.parametrize("first", [None, SHOP, EVIL])
def test_replay(shared, behave, exposed, first):
    """A replay names this asker, once, whoever asked first; and exposes what the original did."""
    gateway, key = shared.gateway, new_key()
    gateway.post(key=key, behave=behave, headers=origin(first))
    for who in (SHOP, DESK, SHOP):
        again = gateway.post(key=key, behave=behave, headers=origin(who))
        assert again.replayed, again
        reads(again, who, exposed)


@pytest.mark.parametrize("behave", ["", TO_SHOP, TO_ALL])
@pytest.mark.parametrize("who", STRANGERS)
def test_replay_to_strangers(shared, behave, who):
    """Who is not listed is not named, nor is whoever was there first."""
    gateway, key = shared.gateway, new_key()
    gateway.post(key=key, behave=behave, headers=origin(SHOP))
    again = gateway.post(key=key, behave=behave, headers=origin(who))
    assert again.replayed, again
    says_nothing(again)


def test_two_origins(shared):
    """More than one Origin is nobody's."""
    gateway, key = shared.gateway, new_key()
    gateway.post(key=key)
    says_nothing(gateway.post(key=key, headers=origin(SHOP) * 2))


def test_vary_everything(shared):
    """Vary: * stays: it says more than any name."""
    gateway, key = shared.gateway, new_key()
    answers = [gateway.post(key=key, behave="header=Vary:*", headers=origin(SHOP)) for _ in range(2)]
    assert [a[VARY] for a in answers] == ["*", "*"], answers
    assert answers[1][ALLOW] == SHOP


def test_waiter(shared):
    """Who waited for another's answer gets it as its own page may read it."""
    gateway, key = shared.gateway, new_key()
    behave = f"hold={key};{TO_SHOP}"
    met = 'hapax_reserve_total{outcome="in_progress"}'
    before = gateway.metrics()[met]
    with gateway.connect() as one, gateway.connect() as two:
        one.send(gateway.request("POST", "/wait", key=key, behave=behave, headers=origin(SHOP)))
        shared.provider.gate(key).wait_arrived()
        two.send(gateway.request("POST", "/wait", key=key, behave=behave, headers=origin(DESK)))
        check.until(lambda: gateway.metrics()[met] > before, "a waiter")
        shared.provider.gate(key).release()
        assert one.answer()[ALLOW] == SHOP
        assert two.answer()[ALLOW] == DESK


@pytest.mark.parametrize("behave, allow, credentials, exposed", [
    ("", None, None, EXPOSED),
    (TO_SHOP, SHOP, "true", ["x-total", "retry-after"] + [n for n in EXPOSED if n != "retry-after"]),
    (TO_ALL, "*", None, ["*"] + EXPOSED),
    (TO_SHOP + ";chunked", SHOP, "true", ["x-total", "retry-after"] + [n for n in EXPOSED if n != "retry-after"]),
    (TO_ALL + ";big=2000000", "*", None, ["*"] + EXPOSED),
    (TO_ALL + ";status=500", "*", None, ["*"] + EXPOSED),
])
@pytest.mark.parametrize("path", ["/x", "/status"])
def test_first_answer(shared, path, behave, allow, credentials, exposed):
    """Who may read it is the application's word; hapax adds the names of its headers."""
    answer = shared.gateway.post(path, behave=behave, headers=origin(SHOP))
    assert (answer[ALLOW], answer[CREDENTIALS]) == (allow, credentials), answer
    assert answer.fields.tokens(EXPOSE) == exposed, answer
    varies(answer)


@pytest.mark.parametrize("who", [None, EVIL])
def test_first_answer_to_strangers(shared, who):
    """To anybody else the application's answer is as it was, but for Vary."""
    answer = shared.gateway.post(behave=TO_SHOP, headers=origin(who))
    assert answer[ALLOW] == SHOP and answer[EXPOSE] == "X-Total, Retry-After", answer
    assert answer[VARY] == "Accept, origin", answer
    assert shared.gateway.post(headers=origin(who))[VARY] == "Origin"


def test_not_kept(shared):
    """What is not kept is told with its Location, and that may be read."""
    gateway, key = shared.gateway, new_key()
    how = {"key": key, "behave": "status=201;header=Location:/things/1", "headers": origin(SHOP)}
    gateway.post("/status", **how)
    again = gateway.post("/status", **how)
    assert again.status == 409 and again["Location"] == "/things/1", again
    reads(again, SHOP, OWN)


@pytest.mark.parametrize("method, path", [("GET", "/x"), ("POST", "/ignored"), ("POST", "/watched"),
                                          ("OPTIONS", "/x")])
@pytest.mark.parametrize("who", [None, SHOP, EVIL])
def test_passed_through(shared, method, path, who):
    """Unguarded and observed answers are the application's alone, preflights too."""
    asks = [("Access-Control-Request-Method", "POST")] if method == "OPTIONS" else []
    answer = shared.gateway.call(method, path, headers=origin(who) + asks)
    assert answer.status == 200, answer
    untouched(answer)
    answer = shared.gateway.call(method, path, headers=origin(who) + asks, behave=TO_SHOP)
    assert [v for n, v in answer.fields if n.lower().startswith("access-control-") or n == VARY] \
        == [SHOP, "true", "X-Total, Retry-After", "Accept, origin"], answer


PREFLIGHT = [("Access-Control-Request-Method", "GET"),
             ("Access-Control-Request-Headers", "x-api-key,authorization, X-Trace,hapax-lease,connection,a b,")]


@pytest.mark.parametrize("path", ["/.hapax/policy", "/.hapax/operations?key=k&path=/pay", "/.hapax/nothing"])
def test_own_preflight(shared, path):
    """Preflights to own paths are answered, without credentials, and never forwarded."""
    before = len(shared.provider.seen())
    answer = shared.gateway.call("OPTIONS", path, auth=None, headers=origin(SHOP) + PREFLIGHT)
    assert answer.status == 204 and answer["Content-Type"] is None, answer
    assert answer[ALLOW] == SHOP, answer
    assert answer["Access-Control-Allow-Methods"] == "GET, HEAD"
    assert answer["Access-Control-Allow-Headers"] \
        == "Idempotency-Key, Authorization, Content-Type, Prefer, x-api-key, X-Trace"
    assert answer["Access-Control-Max-Age"] == "600"
    varies(answer)
    assert len(shared.provider.seen()) == before


@pytest.mark.parametrize("headers", [
    PREFLIGHT, origin(EVIL) + PREFLIGHT, origin(SHOP), origin(SHOP) * 2 + PREFLIGHT,
])
def test_own_preflight_of_strangers(shared, headers):
    """From anybody else, and without a question, it is an OPTIONS that is not there."""
    answer = shared.gateway.call("OPTIONS", "/.hapax/policy", headers=headers)
    assert answer.status == 405 and answer["Access-Control-Allow-Methods"] is None, answer
    varies(answer)


def test_own_preflight_of_webhooks(site, tmp_path):
    """A webhook's path is for its sender alone: no page is told that it may post there."""
    secret = tmp_path / "bank.secret"
    secret.write_text("s3cr3t-of-the-bank-0123456789abcd\n")
    secret.chmod(0o600)
    one = site({"cors": {"origins": [SHOP]},
                "webhooks": {"bank": {"scheme": "stripe", "secret_file": str(secret), "operation": "/id",
                                      "verdict": "/status", "applied": ["yes"]}}})
    asks = origin(SHOP) + [("Access-Control-Request-Method", "POST")]
    answer = one.gateway.call("OPTIONS", "/.hapax/webhooks/bank", headers=asks)
    assert answer.status == 405 and answer["Access-Control-Allow-Methods"] is None, answer


def test_own_preflight_without_own_paths(site):
    """Where own paths are off, there is nothing to ask about."""
    one = site({"cors": {"origins": [SHOP]}, "own_paths": False})
    answer = one.gateway.call("OPTIONS", "/.hapax/policy", headers=origin(SHOP) + PREFLIGHT)
    assert answer.status == 404, answer


def test_everybody(site):
    """"*" is said as such, and needs no list."""
    gateway, key = site({"cors": {"origins": ["*"]}}).gateway, new_key()
    gateway.post(key=key, behave=TO_SHOP, headers=origin(SHOP))
    for who in (SHOP, EVIL, "null"):
        assert gateway.post(key=key, behave=TO_SHOP, headers=origin(who))[ALLOW] == "*"
    says_nothing(gateway.post(key=key, behave=TO_SHOP))


def test_credentials(site):
    """With credentials, answers and replays to listed origins say so; "null" only if it is written."""
    gateway, key = site({"cors": {"origins": [SHOP, "null"], "credentials": True}}).gateway, new_key()
    gateway.post(key=key)
    for who in (SHOP, "null"):
        for answer in (gateway.post(key=key, headers=origin(who)), gateway.get("/.hapax/policy", headers=origin(who))):
            assert (answer[ALLOW], answer[CREDENTIALS]) == (who, "true"), answer
    says_nothing(gateway.post(key=key, headers=origin(EVIL)))


def test_nothing_is_stored(site):
    """The record holds the application's answer: without cors, a replay is as it was."""
    one, key = site({"cors": {"origins": [SHOP]}}), new_key()
    one.gateway.post(key=key, headers=origin(SHOP))
    says = new_key()
    one.gateway.post(key=says, behave=TO_SHOP, headers=origin(SHOP))
    one.gateway.restart({"cors": None})
    untouched(one.gateway.post(key=key, headers=origin(SHOP)))
    again = one.gateway.post(key=says, behave=TO_SHOP, headers=origin(DESK))
    assert again.replayed and again[ALLOW] == SHOP, again
    assert (again[EXPOSE], again[VARY]) == ("X-Total, Retry-After", "Accept, origin"), again
    untouched(one.gateway.post("/x", key=None, headers=origin(SHOP)))
    assert one.gateway.call("OPTIONS", "/.hapax/policy", headers=origin(SHOP) + PREFLIGHT).status == 405


def test_reload(site):
    """Origins can be listed while hapax runs."""
    gateway = site().gateway
    untouched(gateway.get("/.hapax/policy", headers=origin(SHOP)))
    gateway.config["cors"] = {"origins": [SHOP]}
    gateway.write_config()
    gateway.signal(1)
    gateway.wait_log("event=reloaded")
    reads(gateway.get("/.hapax/policy", headers=origin(SHOP)), SHOP, OWN)


def test_accepted_for_later(site):
    """A route that delivers later: its 202 can be read, and so can the operation's page."""
    one = site({
        "cors": {"origins": [SHOP, DESK]},
        "trusted_peers": ["127.0.0.1"],
        "tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"},
        "routes": [{"match": "POST /mail", "deliver": "async", "target": "mailer"}],
        "targets": {"mailer": {"url": f"http://127.0.0.1:{free_port()}/", "attempts": 1}},
    })
    headers = [("X-Tenant", "t1")]
    answer = one.gateway.post("/mail", headers=headers + origin(SHOP))
    assert answer.status == 202 and answer["Location"], answer
    reads(answer, SHOP, OWN)
    page = one.gateway.get(answer["Location"], headers=headers + origin(DESK))
    assert page.status == 200, page
    reads(page, DESK, OWN)
