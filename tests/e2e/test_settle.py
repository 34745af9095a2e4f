"""Shows a team's own pipeline settling what a gateway lost, beside the running gateway:
by hapax.settle in SQL on PostgreSQL, by hapax_settle of the library on SQLite."""
import base64
import json
import sqlite3

import pytest

from harness import check, postgres
from harness.external_webhooks import Hook, event_body, new_event, post
from harness.library import Library
from harness.secret import new_key

RULES = {"defaults": {"reconcile": {"settle_after": "1s", "confirm_after": "1s"}}}
WORDS = ["ignored", "settled", "kept", "too_early"]


def settle(one, reference, ruling, status=None, headers="", body="", reason="the nightly run", cluster=None):
    """What came of it. `cluster`: where the gateway's database is not the test run's."""
    url = one.gateway.config["store"]
    if not url.startswith("postgres:"):
        library = Library(url)
        try:
            return WORDS[library.settle(reference, ruling, status, headers, body, reason)]
        finally:
            library.close()
    arguments = "'%s', '%s', %s, '%s', '%s', '%s'" % (
        reference, ruling, "NULL" if status is None else status, headers, body, reason)
    return (cluster or postgres.shared()).sql(f"SET ROLE hapax_settler; SELECT hapax.settle({arguments})",
                                              url.split("?")[0].rsplit("/", 1)[1])[-1]


def lose(one, key, effect=True):
    answer = one.gateway.post(key=key, behave="reset=after" if effect else "reset=before")
    check.problem(answer, "upstream_outcome_unknown", 502)
    return answer["Hapax-Operation"]


def test_applied(site):
    """A retry gets the pipeline's answer, says that it is not the original, and executes
    nothing; a second settlement changes nothing."""
    one, key = site(RULES), new_key()
    reference = lose(one, key)
    made = {"status": 201, "headers": "Content-Type: application/json", "body": '{"id": "p_1"}'}
    assert settle(one, reference, "applied", **made) == "settled"
    answer = one.gateway.post(key=key, behave="reset=after")
    assert answer.status == 201 and answer.json() == {"id": "p_1"}
    assert answer.replayed and answer["Idempotent-Reconstructed"] == "true"
    assert settle(one, reference, "declined") == "ignored"
    assert one.gateway.post(key=key, behave="reset=after").status == 201
    assert len(one.provider.ledger(key)) == 1


@pytest.mark.parametrize("given", [None, 422])
def test_declined(site, given):
    one, key = site(RULES), new_key()
    reference = lose(one, key)
    assert settle(one, reference, "declined", given, body="no" if given else "") == "settled"
    assert one.gateway.post(key=key, behave="reset=after").status == (given or 402)


def test_not_applied(site):
    """By the route's settle_after and confirm_after, which the gateway made known: too
    early it counts for nothing, and only the second that counts lets it be executed."""
    one, key = site(RULES), new_key()
    reference = lose(one, key, effect=False)
    said = [settle(one, reference, "not_applied")]
    assert said == ["too_early"]
    check.until(lambda: said.append(settle(one, reference, "not_applied")) or said[-1] == "settled",
                "settled", 20)
    assert said.count("kept") == 1 and said[-1] == "settled"
    answer = one.gateway.post(key=key)
    assert answer.status == 200 and not answer.replayed
    assert len(one.provider.ledger(key)) == 1


def test_said_before_the_answer(site):
    """What the pipeline knows while the request is under way is believed, whatever the service
    answers then: an error that would be executed again is not."""
    one, key = site(RULES), new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key, behave=f"hold={key}; status=500"))
        one.provider.gate(key).wait_arrived()
        reference = one.provider.seen(key=key)[0]["Hapax-Operation"]
        assert settle(one, reference, "applied") == "kept"
        one.provider.gate(key).release()
        assert wire.answer("POST").status == 500
    check.until(lambda: one.gateway.operation(reference).json()["state"] == "completed", "the evidence settles it")
    check.problem(one.gateway.post(key=key), "response_not_kept")
    assert len(one.provider.seen(key=key)) == 1


def test_not_known(site):
    """Where no settle_after is configured, "not applied" is refused, and says what to do."""
    one, key = site(), new_key()
    reference = lose(one, key)
    with pytest.raises(Exception, match="settle_after"):
        settle(one, reference, "not_applied")
    assert one.gateway.operation(reference).json()["state"] == "unknown"
    assert settle(one, reference, "applied") == "settled"
    check.problem(one.gateway.post(key=key, behave="reset=after"), "response_not_kept")


SECRET = "whsec_" + base64.b64encode(b"s3cr3t-of-the-bank-0123456789abcd").decode()


def lease_of(one, reference):
    """As the service was given it: what it knows is the reference and the token."""
    url, half = one.gateway.config["store"], reference[:32]
    if url.startswith("postgres:"):
        token = postgres.shared().sql(f"SELECT hapax.hex(token) FROM hapax.operation WHERE id = '{half}'",
                                      url.split("?")[0].rsplit("/", 1)[1])[-1]
    else:
        with sqlite3.connect(url.removeprefix("sqlite:")) as db:
            token = db.execute("SELECT lower(hex(token)) FROM hapax_aside WHERE id = ?",
                               (bytes.fromhex(reference[:64]),)).fetchone()[0]
    return f"{reference[:64]}.{token}"


def give_id(one, reference, provider_id):
    url = one.gateway.config["store"]
    if url.startswith("postgres:"):
        postgres.shared().sql(f"SET ROLE hapax_application; SELECT hapax.provider_id("
                              f"'{lease_of(one, reference)}', '{provider_id}')",
                              url.split("?")[0].rsplit("/", 1)[1])
        return
    library = Library(url)
    library.insist(library.calls.hapax_provider_id, lease_of(one, reference).encode(),
                   provider_id.encode())
    library.close()


def test_found_by_the_providers_id(site, tmp_path):
    """A webhook that names only the provider's own id settles the operation of a direct
    route whose service gave it that id; an id that two of them have names neither."""
    secret = tmp_path / "bank.secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    webhook = {"scheme": "stripe", "secret_file": str(secret), "provider_id": "/data/object/id",
               "verdict": "/data/object/status", "applied": ["succeeded"]}
    one = site({"webhooks": {"bank": webhook}})
    hook = Hook(f"http://127.0.0.1:{one.gateway.port}/.hapax/webhooks/bank", "stripe", SECRET)

    def tell(effect):
        body = json.dumps(event_body(new_event(), effect, "succeeded", None)).encode()
        return post(hook.url, hook.sign(body, "evt_1", None), body).json()["result"]

    keys = [new_key() for _ in range(3)]
    references = [lose(one, key) for key in keys]
    assert tell("ch_1") == "ignored"
    for reference, effect in zip(references, ["ch_1", "ch_2", "ch_2"]):
        give_id(one, reference, effect)
    assert tell("ch_2") == "ignored"
    assert tell("ch_1") == "settled"
    states = [one.gateway.operation(reference).json()["state"] for reference in references]
    assert states == ["completed", "unknown", "unknown"]
    check.problem(one.gateway.post(key=keys[0], behave="reset=after"), "response_not_kept")
