"""Shows that with `tenant: {from: subrequest}` a service says who is calling: its
word decides, is remembered for a while under nothing but a hash, and where it
cannot be had nothing is executed."""
import threading

import pytest

from harness import check
from harness.directory import Directory
from harness.secret import ALICE, BOB, new_key

@pytest.fixture
def directory():
    one = Directory()
    yield one
    one.open.set()
    one.stop()


def config(directory, **tenant):
    return {"tenant": {"from": "subrequest", "url": directory.url, "header": "X-Caller",
                       "cache": "1h", **tenant}}


def test_its_word_names_the_tenant(site, directory):
    """Two credentials of one caller are one tenant; another's are not."""
    directory.names(ALICE, "acme")
    directory.names("k-s3cr3t", "acme")
    directory.names(BOB, "other")
    one, key = site(config(directory)), new_key()
    first = one.gateway.post(key=key, auth=ALICE)
    again = one.gateway.post(key=key, auth=None, headers=[("X-Api-Key", "k-s3cr3t")])
    strange = one.gateway.post(key=key, auth=BOB)
    assert first.status == again.status == strange.status == 200
    assert (first.replayed, again.replayed, strange.replayed) == (False, True, False)
    assert len(one.provider.ledger(key)) == 2
    reference = first["Hapax-Operation"]
    assert one.gateway.operation(reference, ALICE).json()["state"] == "completed"
    check.problem(one.gateway.operation(reference, BOB), "not_found")


def test_what_it_is_told(site, directory):
    """The credentials, the request's method and address, and the client's."""
    directory.names(ALICE, "acme")
    one = site(config(directory))
    one.gateway.post("/pay?x=1", auth=ALICE, headers=[("Cookie", "a=s3cr3t"), ("X-Other", "1")])
    line, fields = directory.asked[0]
    assert line == "GET /verify HTTP/1.1"
    assert fields.get("Authorization") == ALICE and fields.get("Cookie") == "a=s3cr3t"
    assert fields.get("X-Original-Method") == "POST"
    assert fields.get("X-Original-URI") == "/pay?x=1"
    assert fields.get("X-Forwarded-For") == "127.0.0.1"
    assert fields.get("X-Other") is None and fields.get("Idempotency-Key") is None


@pytest.mark.parametrize("answer, code", [
    ((401, ""), "unauthenticated"),
    ((403, ""), "forbidden"),
    ((200, ""), "unauthenticated"),
    ((204, "X-Caller: \r\n"), "unauthenticated"),
    ((200, "X-Caller: a\r\nX-Caller: b\r\n"), "tenant_unavailable"),
    ((302, "Location: /elsewhere\r\n"), "tenant_unavailable"),
    ((404, ""), "tenant_unavailable"),
    ((500, "X-Caller: acme\r\n"), "tenant_unavailable"),
])
def test_it_refuses(site, directory, answer, code):
    """Nobody is taken for a caller that it has not named; nothing is executed."""
    directory.known[ALICE] = answer
    one = site(config(directory))
    for path in (lambda: one.gateway.post(auth=ALICE),
                 lambda: one.gateway.get("/.hapax/operations?path=/pay&key=k", auth=ALICE)):
        refused = path()
        check.problem(refused, code)
        if code == "tenant_unavailable":
            assert 1 <= int(refused["Retry-After"]) <= 4
    assert not one.provider.seen()


def test_no_credential_is_asked_about_too(site, directory):
    """The service may know anonymous callers; hapax does not decide for it."""
    directory.known[None] = (200, "X-Caller: visitor\r\n")
    one, key = site(config(directory)), new_key()
    assert one.gateway.post(key=key, auth=None).status == 200
    assert one.gateway.post(key=key, auth=None).replayed
    assert len(directory.asked) == 1


def test_it_is_remembered(site, directory):
    """One question for many requests, and none for what is passed through."""
    directory.names(ALICE, "acme")
    one = site(config(directory))
    for _ in range(5):
        assert one.gateway.post(auth=ALICE).status == 200
    assert one.gateway.get("/anything", auth=BOB).status == 200
    assert len(directory.asked) == 1
    metrics = one.gateway.metrics()
    assert metrics['hapax_subrequests_total{result="named"}'] == 1
    assert metrics['hapax_subrequests_total{result="cached"}'] == 4


def test_it_is_asked_every_time_without_a_cache(site, directory):
    directory.names(ALICE, "acme")
    one = site(config(directory, cache="0s"))
    for _ in range(3):
        assert one.gateway.post(auth=ALICE).status == 200
    assert len(directory.asked) == 3


def test_one_question_for_all_who_come_meanwhile(site, directory):
    """Twenty requests with one credential: one question; all get its answer."""
    directory.names(ALICE, "acme")
    directory.open.clear()
    one = site(config(directory))
    answers, threads = [], []
    for _ in range(20):
        threads.append(threading.Thread(target=lambda: answers.append(one.gateway.post(auth=ALICE))))
        threads[-1].start()
    shared = 'hapax_subrequests_total{result="shared"}'
    check.until(lambda: one.gateway.metrics()[shared] == 19, "nineteen wait for the first")
    directory.open.set()
    for thread in threads:
        thread.join(30)
    assert [a.status for a in answers] == [200] * 20
    assert len(directory.asked) == 1
    assert len(one.provider.ledger()) == 20


def test_a_client_that_leaves_meanwhile(site, directory):
    """It is forgotten, and nothing is executed for it; the others go on."""
    directory.names(ALICE, "acme")
    directory.open.clear()
    one, key = site(config(directory)), new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key))
        directory.wait_asked(1)
    check.until(lambda: one.gateway.metrics()["hapax_connections"] == 0, "the client is gone")
    directory.open.set()
    assert one.gateway.post(auth=ALICE).status == 200
    assert not one.provider.seen(key=key)


def test_a_body_that_waits_meanwhile(site, directory):
    """A body of several reads, and the next request behind it, wait until the tenant is
    known; then each is executed once, with all of its body."""
    directory.names(ALICE, "acme")
    directory.open.clear()
    one, keys = site(config(directory)), [new_key(), new_key()]
    body = b'{"pad":"' + b"x" * 300_000 + b'"}'
    with one.gateway.connect(60) as wire:
        sent = threading.Thread(target=wire.send, args=(
            one.gateway.request("POST", "/pay", key=keys[0], body=body) +
            one.gateway.request("POST", "/pay", key=keys[1]),))
        sent.start()
        directory.wait_asked(1)
        directory.open.set()
        answers = [wire.answer(), wire.answer()]
        sent.join(30)
    assert [a.status for a in answers] == [200, 200]
    assert [len(one.provider.ledger(key)) for key in keys] == [1, 1]
    assert one.provider.seen(key=keys[0])[0].body == body


def test_it_is_slow(site, directory):
    """Past its timeout: 503, and nothing is executed."""
    directory.names(ALICE, "acme")
    directory.open.clear()
    one, key = site(config(directory, timeout="200ms")), new_key()
    check.problem(one.gateway.post(key=key, auth=ALICE), "tenant_unavailable")
    given_up = 'hapax_subrequests_total{result="unavailable"}'
    check.until(lambda: one.gateway.metrics()[given_up] == 1, "the question is over")
    directory.open.set()
    assert one.gateway.post(key=key, auth=ALICE).status == 200
    assert len(one.provider.ledger(key)) == 1


def test_it_is_down(site, directory):
    """503 while it is away, told once in the log; then requests go on."""
    directory.names(ALICE, "acme")
    one, key = site(config(directory)), new_key()
    directory.stop()
    for _ in range(3):
        check.problem(one.gateway.post(key=key, auth=ALICE), "tenant_unavailable")
    one.gateway.wait_log("event=subrequest_down")
    directory.start()
    assert one.gateway.post(key=key, auth=ALICE).status == 200
    one.gateway.wait_log("event=subrequest_up")
    one.gateway.events("subrequest_down")


def test_drained_while_asking(site, directory):
    """A stop does not wait for the service."""
    directory.open.clear()
    one = site({**config(directory), "timeouts": {"drain": "500ms"}})
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay"))
        directory.wait_asked(1)
        one.gateway.stop()
    assert not one.provider.seen()


def test_every_credential_is_told_and_remembered_by(site, directory):
    """Two callers with X-Auth-Token are asked about apart, and so are those who
    differ in a header of `with`; what is ignored or harmless is neither told
    nor part of it."""
    directory.judge = lambda fields: (200, f"X-Caller: {fields.get('X-Auth-Token')}\r\n")
    one, key = site(config(directory, **{"with": ["Stripe-Account", "Host"],
                                         "ignore": ["X-Session-Token"]})), new_key()

    def send(token, account, session, csrf):
        return one.gateway.post(key=key, auth=None, headers=[
            ("X-Auth-Token", token), ("Stripe-Account", account), ("X-Session-Token", session),
            ("X-CSRF-Token", csrf)])
    answers = [send("s3cr3t-a", "1", "x", "x"), send("s3cr3t-b", "1", "x", "x"),
               send("s3cr3t-a", "2", "x", "x"), send("s3cr3t-a", "1", "y", "y")]
    assert [(a.status, a.replayed) for a in answers] == [(200, False)] * 3 + [(200, True)]
    assert len({a.body for a in answers}) == 3 == len(one.provider.ledger(key))
    assert len(directory.asked) == 3
    _, fields = directory.asked[0]
    assert fields.get("Stripe-Account") == "1" and fields.get("X-Original-Host") == "api.test"
    assert fields.get("X-Session-Token") is None and fields.get("X-CSRF-Token") is None


def test_a_credential_sent_twice(site, directory):
    one = site(config(directory))
    twice = [("X-Api-Key", "s3cr3t-1"), ("X-Api-Key", "s3cr3t-2")]
    check.problem(one.gateway.post(auth=None, headers=twice), "bad_request")
    own = one.gateway.get("/.hapax/operations?path=/pay", key=new_key(), auth=None, headers=twice)
    check.problem(own, "unauthenticated")
    assert not directory.asked


def test_observed(site, directory):
    """Observing refuses nobody, whatever the service says."""
    directory.names(ALICE, "acme")
    one = site({**config(directory), "observe": True})
    assert one.gateway.post(auth=ALICE).status == 200
    assert one.gateway.post(auth=BOB).status == 200
    for would in ("created", "unauthenticated"):
        check.until(lambda: one.gateway.observed()[would] == 1, would)
