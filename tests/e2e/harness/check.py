"""What the contract says of hapax's own answers, asked in one place."""
import re
import time

# code: (status, executed, retry), as docs/reference/http.md lists them.
PROBLEMS = {
    "idempotency_key_missing": (400, "no", "after_fix"),
    "idempotency_key_invalid": (400, "no", "after_fix"),
    "unauthenticated": (401, "no", "after_fix"),
    "idempotency_key_reused": (422, "no", "never"),
    "idempotency_key_in_progress": (409, "unknown", "same_key"),
    "idempotency_outcome_unknown": (409, "unknown", "same_key"),
    "idempotency_store_unavailable": (503, "no", "same_key"),
    "overloaded": (503, "no", "same_key"),
    "upstream_unreachable": (502, "no", "same_key"),
    "upstream_outcome_unknown": (504, "unknown", "same_key"),
    "upstream_not_executed": (502, "no", "same_key"),
    "idempotency_key_expired": (410, "yes", "never"),
    "response_not_kept": (409, "yes", "never"),
    "request_too_large": (413, "no", "after_fix"),
    "headers_too_large": (431, "no", "after_fix"),
    "bad_request": (400, "no", "after_fix"),
    "request_too_old": (400, "no", "after_fix"),
    "forbidden": (403, "no", "after_fix"),
    "tenant_unavailable": (503, "no", "same_key"),
    "rate_limited": (429, "no", "same_key"),
    "too_many_keys": (429, "no", "same_key"),
    "request_timeout": (408, "no", "same_key"),
    "not_delivered": (408, "no", "never"),
    "declined": (402, "yes", "never"),
    "webhook_unverified": (401, "no", "after_fix"),
    "not_found": (404, "no", "after_fix"),
}


def problem(answer, code, status=None, executed=None):
    """`answer` is the problem document `code`, complete in every member."""
    assert answer is not None, f"the connection ended, no {code} came"
    assert answer["Content-Type"] == "application/problem+json", answer
    document = answer.json()
    expected_status, usually, retry = PROBLEMS[code]
    got = (document.get("code"), answer.status, document.get("executed"), document.get("retry"))
    assert got == (code, status or expected_status, executed or usually, retry), answer
    assert document["status"] == answer.status, document
    assert document["type"].endswith(f"/.hapax/problems/{code}"), document
    assert document["title"] and document["detail"], document
    assert "no-store" in answer.fields.tokens("Cache-Control"), answer
    links = answer.fields.all("Link")
    wanted = re.compile(rf'<[^>]*/\.hapax/problems/{code}>\s*;\s*rel="?describedby"?')
    assert any(wanted.search(link) for link in links), f"no describedby link in {links}"
    return document


def retry_after(answer):
    """The whole seconds of Retry-After, which must be there."""
    value = answer["Retry-After"]
    assert value is not None and value.isdigit(), f"Retry-After is {value!r}: {answer}"
    return int(value)


def same_answer(first, again):
    """`again` is the replay of `first`: status and bytes."""
    assert again.replayed, f"not a replay: {again}"
    assert not first.replayed, f"a replay already: {first}"
    assert (again.status, again.body) == (first.status, first.body)
    assert again["Hapax-Operation"] == first["Hapax-Operation"]


def until(probe, what, seconds=15):
    """Asks again until `probe` gives something true; for states that only
    become visible, never for synchronising with a test's own step."""
    end = time.monotonic() + seconds
    while True:
        result = probe()
        if result:
            return result
        assert time.monotonic() < end, f"never came true: {what}"
        time.sleep(0.02)
