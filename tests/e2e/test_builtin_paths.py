"""Shows what hapax says of itself under /.hapax/: the state of an operation to
whom it belongs, the published policy, the page of every problem; and that
nothing there is ever forwarded."""
import json
import re
import urllib.parse

import pytest

from harness import check
from harness.gateway import ROOT
from harness.secret import ALICE, BOB, new_key

CONFIG = {
    "defaults": {"retention": "12h"},
    "routes": [
        {"match": "POST /payments/{id}", "server_error": "unknown", "retention": "48h", "concurrent": "wait"},
        {"match": "PATCH /notes/*", "key": "optional"},
        {"match": "PUT /things/{id}", "scope": "route"},
    ],
}


def by_key(gateway, key, method="POST", path="/pay", auth=ALICE):
    query = urllib.parse.urlencode({"key": key, "method": method, "path": path})
    return gateway.get(f"/.hapax/operations?{query}", auth=auth)


@pytest.mark.parametrize("behave, state", [
    ("", "completed"), ("status=404", "completed"), ("status=429", "failed_retryable"),
    ("status=502", "unknown"), ("reset=after", "unknown"),
])
def test_operation(shared, behave, state):
    """State, attempt, expiry and links, by reference and by key."""
    gateway, key = shared.gateway, new_key()
    reference = gateway.post(key=key, behave=behave)["Hapax-Operation"]
    for answer in (gateway.operation(reference), by_key(gateway, key), by_key(gateway, f'"{key}"')):
        assert answer.status == 200 and answer["Content-Type"] == "application/json", answer
        assert "no-store" in answer.fields.tokens("Cache-Control"), answer
        document = answer.json()
        assert (document["state"], document["attempt"]) == (state, 1), document
        assert document["operation"] == reference, document
        assert "links" in document, document
        assert bool(document.get("expires")) == (state != "unknown"), document
        assert b"s3cr3t" not in answer.body, "an operation's page shows no key, query or body"


def test_operation_under_way(shared):
    """An operation in progress says so, and a look changes nothing."""
    gateway, key = shared.gateway, new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/pay", key=key, behave=f"hold={key}"))
        shared.provider.gate(key).wait_arrived()
        assert by_key(gateway, key).json()["state"] == "in_progress"
        shared.provider.gate(key).release()
        done = wire.answer()
    assert gateway.operation(done["Hapax-Operation"]).json()["state"] == "completed"


@pytest.mark.parametrize("auth", [BOB, None, "Bearer s3cr3t-alicf"])
def test_another_tenant(shared, auth):
    """Another tenant's operation is as good as absent."""
    gateway, key = shared.gateway, new_key()
    reference = gateway.post(key=key)["Hapax-Operation"]
    assert gateway.operation(reference, auth=auth).status == 404
    assert by_key(gateway, key, auth=auth).status == 404


def test_unusable_credentials(shared):
    """Who cannot be told from others is told so."""
    reference = shared.gateway.post()["Hapax-Operation"]
    answer = shared.gateway.operation(reference, auth="Digest s3cr3t")
    assert answer.status in (401, 404), answer


@pytest.mark.parametrize("target", [
    "/.hapax/operations/" + "0" * 64 + "." + "0" * 32, "/.hapax/operations/nonsense",
    "/.hapax/operations/", "/.hapax/operations/%00", "/.hapax/", "/.hapax/nothing", "/.hapax",
    "/.hapax/problems/", "/.hapax/problems/no_such_code", "/.hapax/webhooks/bank",
    "/x/../.hapax/nothing", "/%2Ehapax/nothing", "/.hapax/operations?key=s3cr3tzz&method=POST&path=/pay",
    "/.hapax/policy/x",
])
def test_not_there(shared, target):
    """What is not there is 404, or 400 where the request itself is odd; it never goes up."""
    before = len(shared.provider.seen())
    answer = shared.gateway.get(target)
    assert answer.status in (400, 404), answer
    assert answer["Content-Type"] == "application/problem+json", answer
    assert len(shared.provider.seen()) == before


@pytest.mark.parametrize("query", ["", "?key=s3cr3t", "?method=POST&path=/pay", "?key=%22&method=POST&path=/pay"])
def test_incomplete_question(shared, query):
    """A question that names no operation is refused, and never goes up."""
    before = len(shared.provider.seen())
    answer = shared.gateway.get("/.hapax/operations" + query)
    assert answer.status in (400, 404), answer
    assert len(shared.provider.seen()) == before


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/.hapax/operations", "/.hapax/policy", "/.hapax/webhooks/bank"])
def test_other_methods(shared, method, path):
    """Nothing under /.hapax/ is forwarded, whatever the method."""
    before = len(shared.provider.seen())
    assert shared.gateway.call(method, path).status in (404, 405)
    assert len(shared.provider.seen()) == before


def test_old_reference(shared):
    """A reference of an earlier use of the key finds nothing of the later one."""
    gateway, key = shared.gateway, new_key()
    old = gateway.post(key=key, behave="status=403")["Hapax-Operation"]
    new = gateway.post(key=key)["Hapax-Operation"]
    assert old.split(".")[0] == new.split(".")[0] and old != new
    assert gateway.operation(old).status == 404
    assert gateway.operation(new).status == 200


def test_policy(shared):
    """The published policy names every route and what holds there."""
    answer = shared.gateway.get("/.hapax/policy")
    assert answer.status == 200 and answer["Content-Type"] == "application/json"
    text = answer.body.decode()
    for pattern in ("POST /payments/{id}", "PATCH /notes/*", "PUT /things/{id}"):
        assert pattern in text, f"{pattern} is not in the policy: {text}"
    document = answer.json()
    assert len(document["routes"]) >= 3, document
    assert "Idempotency-Key" in text, text
    for word in ("required", "optional", "unknown", "wait"):
        assert f'"{word}"' in text, f"{word} is not in the policy: {text}"


def test_the_pages_policy(site):
    """The reference shows the policy of a gateway that nothing was said to, and names what a route has besides."""
    text = (ROOT / "docs/reference/http.md").read_text(encoding="utf-8").partition("`GET /.hapax/policy`:")[2]
    shown = json.loads(text.partition("```json\n")[2].partition("```")[0].replace(',…]', ']'))
    one = site({"routes": [{"match": "POST /all", "key_from": [{"header": "X-Key"}], "concurrent": "wait",
                            "max_age": {"header": "X-Sent-At"}}]})
    policy = one.gateway.get("/.hapax/policy").json()
    route, = policy["routes"]
    listed = text.partition("Only where they are configured")[2].partition("\n")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == (set(route) - set(policy["defaults"])) | set(route["max_age"])
    cut = "passed_unless_a_route_names_them"
    names = shown["methods"].pop(cut)
    assert policy["methods"].pop(cut)[:len(names)] == names
    assert shown == {**policy, "routes": []}


@pytest.mark.parametrize("code", sorted(check.PROBLEMS))
def test_problem_page(shared, code):
    """Every code of the table has its page."""
    answer = shared.gateway.get(f"/.hapax/problems/{code}", auth=None)
    assert answer.status == 200 and answer["Content-Type"].startswith("text/"), answer
    assert code.encode() in answer.body


def test_described_by(shared):
    """The Link of a problem leads to its page."""
    link = shared.gateway.post(key=None)["Link"]
    target = link[link.index("/.hapax"):link.index(">")]
    assert shared.gateway.get(target).status == 200


def test_off(site):
    """`own_paths: off` hides them; they are still not forwarded."""
    one = site({"own_paths": False})
    reference = one.gateway.post()["Hapax-Operation"]
    for path in (f"operations/{reference}", "policy", "problems/bad_request", "webhooks/x"):
        assert one.gateway.get("/.hapax/" + path).status == 404, path
    assert len(one.provider.seen()) == 1
