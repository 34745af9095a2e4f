"""Shows that two kinds of callers pay once behind hapax as their recipes say: a real
browser with a session cookie, and programs that use Stripe's own SDK; and what the SDK
makes of hapax's refusals under another profile."""
import json
import subprocess

import pytest

import chain
from harness import browser
from harness.secret import ALICE
from harness.shop import CLIENT, Hop
from recipe import missing, require
from test_frameworks import payments


@pytest.fixture
def shop(recipe):
    require("python3", "curl")
    one = recipe("browser-session", replace={"../../../clients/js": str(CLIENT)})
    one.run("Start")
    return one


def login(one, user):
    answer = chain.post(one.port["8080"], "login", auth=None, path="/login", body=json.dumps({"user": user}).encode())
    return answer.headers["Set-Cookie"].partition(";")[0]


def test_session_cookie(shop):
    """By the page's own commands, and against forged headers and another user's session."""
    said = shop.run("Check")
    assert said.lower().count("idempotent-replayed: true") == 1, said
    assert [line[1:] for line in payments(shop, "order-17")] == [["127.0.0.1", "alice", "10"]]
    cookies = {}

    def send(key, auth=ALICE, headers=None):
        user = "alice" if auth == ALICE else "bob"
        cookies[user] = cookies.get(user) or login(shop, user)
        return chain.post(shop.port["8080"], key, auth=None, headers={**(headers or {}), "Cookie": cookies[user]})

    chain.judge(shop, send, lambda key: len(payments(shop, key)), lambda key: tuple(payments(shop, key)[-1][1:3]))
    # Whoever has no session, or one that nobody gave out, gets nothing of it.
    before = payments(shop)
    key = before[0][0]
    assert chain.post(shop.port["8080"], key, auth=None).status == 401
    made_up = chain.post(shop.port["8080"], key, auth=None, headers={"Cookie": "session=made-up"})
    assert (made_up.status, made_up.replayed) == (401, False) and payments(shop) == before


def test_browser(shop, tmp_path):
    """A double click in Chromium, and a second user at the same computer."""
    if browser.missing():
        missing(browser.missing())
    one = browser.Browser(tmp_path / "profile")
    state = "return document.getElementById('state').value == arguments[0]"
    try:
        one.visit(f"http://localhost:{shop.port['8080']}/")
        for user in ("alice", "bob"):
            one.run("document.getElementById('user').value = arguments[0]; document.getElementById('login').click()", user)
            one.until(state, f"{user} is logged in", "logged in")
            one.run("const pay = document.getElementById('pay'); pay.click(); pay.click()")
            one.until(state, f"{user} has paid", f"paid by {user}")
            one.until("return (await navigator.locks.query()).held.length == 0", "both clicks have their answer")
    finally:
        one.close()
    assert [line[2] for line in payments(shop)] == ["alice", "bob"]


@pytest.fixture
def sdk(recipe, provider):
    """Place and start it; sdk(profile) gives the recipe."""
    require("node", "npm")

    def start(replace=None):
        one = recipe("stripe", service=provider.port, replace=replace)
        one.run("Start")
        return one
    return start


def pay(one, *arguments):
    """(exit code, what it printed)"""
    done = subprocess.run(["node", "pay.js", *arguments], cwd=one.folder, env=one.env, capture_output=True, text=True,
                          timeout=60, check=False)
    return done.returncode, done.stdout.strip() + done.stderr


def test_stripe(sdk, provider):
    """Paid once, by its page; a lost answer is the SDK's own to retry; another amount is an error."""
    one = sdk()
    first, again, refusal, echo = one.run("Check").splitlines()
    assert first == again and json.loads(first) and len(provider.ledger("order-17")) == 1
    assert refusal.startswith("StripeIdempotencyError") and echo.startswith("refused"), refusal
    chain.judge(one, lambda key, **how: chain.post(one.port["8080"], key, path="/v1/payment_intents", **how),
                lambda key: len(provider.ledger(key)),
                lambda key: (provider.seen(key=key)[-1]["X-Forwarded-For"].rpartition(",")[2].strip(), "http"))
    hop = Hop(one.port["8080"])
    try:
        hop.cuts = [0, 40]
        script = one.folder / "pay.js"
        script.write_text(script.read_text().replace(str(one.port["8080"]), str(hop.port)))
        code, said = pay(one, "18", "1000")
        assert code == 0 and json.loads(said) and hop.posts == 3, said
    finally:
        hop.close()
    assert len(provider.ledger("order-18")) == 1


def test_stripe_under_ietf(sdk, provider):
    """Why the recipe says `profile: stripe`: the SDK takes a 422 problem document for a payment."""
    one = sdk({"profile: stripe  ": "profile: ietf    "})
    assert pay(one, "17", "1000")[0] == 0
    code, said = pay(one, "17", "2000")
    assert code == 0 and json.loads(said)["code"] == "idempotency_key_reused", said
    assert len(provider.ledger("order-17")) == 1
