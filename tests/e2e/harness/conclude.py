"""One operation from its first attempt to what its retries get: the common
course of every row about outcomes."""
from . import check
from .secret import new_key

REPLAY = "completed"
AGAIN = "failed_retryable"
UNKNOWN = "unknown"


def conclude(site, path, behave, status, after, code=None):
    """Sends one request that ends as `behave` says; the client sees `status`
    (and the problem `code`), the record is `after`, and so is the retry."""
    gateway, provider, key = site.gateway, site.provider, new_key()
    first = gateway.post(path, key=key, behave=behave)
    statuses = status if isinstance(status, tuple) else (status,)
    assert first.status in statuses, f"{behave}: {first}"
    assert first["Hapax-Outcome"] is None, first
    if code:
        check.problem(first, code, first.status)
    state = gateway.operation(first["Hapax-Operation"]).json()
    assert (state["state"], state["attempt"]) == (after, 1), f"{behave}: {state}"
    effects = len(provider.ledger(key))
    judge_retry(gateway, provider, path, key, first, after)
    if after != AGAIN:
        assert len(provider.seen(key=key)) == 1, provider.seen(key=key)
        assert len(provider.ledger(key)) == effects <= 1
    return key


def judge_retry(gateway, provider, path, key, first, after):
    retry = gateway.post(path, key=key)
    if after == REPLAY:
        check.same_answer(first, retry)
        assert retry["Hapax-Outcome"] is None, retry
    elif after == UNKNOWN:
        check.problem(retry, "idempotency_outcome_unknown")
        assert check.retry_after(retry) == 60
        assert retry["Hapax-Operation"] == first["Hapax-Operation"]
        check.problem(gateway.post(path, key=key), "idempotency_outcome_unknown")
    else:
        assert (retry.status, retry.replayed) == (200, False), retry
        assert retry["Hapax-Operation"] == first["Hapax-Operation"]
        assert [r["Hapax-Attempt"] for r in provider.seen(key=key)] == ["1", "2"]
        check.same_answer(retry, gateway.post(path, key=key))
