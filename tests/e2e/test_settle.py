"""Shows a team's own pipeline settling what a gateway lost, beside the running gateway:
by hapax.settle in SQL on PostgreSQL, by hapax_settle of the library on SQLite."""
import pytest

from harness import check, postgres
from harness.library import Library
from harness.secret import new_key

RULES = {"defaults": {"reconcile": {"settle_after": "1s", "confirm_after": "1s"}}}
WORDS = ["ignored", "settled", "kept", "too_early"]


def settle(one, reference, ruling, status=None, headers="", body="", reason="the nightly run"):
    """What came of it."""
    url = one.gateway.config["store"]
    if not url.startswith("postgres:"):
        library = Library(url)
        try:
            return WORDS[library.settle(reference, ruling, status, headers, body, reason)]
        finally:
            library.close()
    arguments = "'%s', '%s', %s, '%s', '%s', '%s'" % (
        reference, ruling, "NULL" if status is None else status, headers, body, reason)
    return postgres.shared().sql(f"SET ROLE hapax_settler; SELECT hapax.settle({arguments})",
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


def test_not_known(site):
    """Where no settle_after is configured, "not applied" is refused, and says what to do."""
    one, key = site(), new_key()
    reference = lose(one, key)
    with pytest.raises(Exception, match="settle_after"):
        settle(one, reference, "not_applied")
    assert one.gateway.operation(reference).json()["state"] == "unknown"
    assert settle(one, reference, "applied") == "settled"
    check.problem(one.gateway.post(key=key, behave="reset=after"), "response_not_kept")
