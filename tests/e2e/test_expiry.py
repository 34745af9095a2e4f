"""Shows what becomes of a key after its answer has expired: executed and told, refused,
known by a tombstone, kept longer by the upstream's own word, and found in the history."""
import threading

from harness import check
from harness.operator_command import Operator
from harness.secret import new_key

QUICK = {"reap": {"every": "50ms"}}


def test_refuse(site):
    """expired: refuse answers 410 before and without the reaper, whatever comes with the key."""
    one = site({"defaults": {"retention": "1s", "expired": "refuse"}, "reap": {"every": "1h"}})
    key = new_key()
    first = one.gateway.post(key=key)
    assert first.status == 200
    threading.Event().wait(1.3)  # the passing of time is what is tested
    for body in (None, b'{"amount": 11}'):
        answer = one.gateway.post(key=key, body=body) if body else one.gateway.post(key=key)
        document = check.problem(answer, "idempotency_key_expired")
        assert document["operation"] == first["Hapax-Operation"], document
        assert document["original_status"] == 200, document
    assert len(one.provider.ledger(key)) == 1
    assert one.gateway.metrics()['hapax_reserve_total{outcome="expired"}'] == 2


def test_tombstone(site):
    """A tombstone refuses its key after the answer was reaped; without one the key is new."""
    one = site({"defaults": {"retention": "1s", "expired": "refuse"},
                "routes": [{"match": "POST /kept", "tombstone": "1h"}, {"match": "POST /gone"}], **QUICK})
    kept, gone = new_key(), new_key()
    assert one.gateway.post("/kept", key=kept).status == 200
    assert one.gateway.post("/gone", key=gone).status == 200
    reference = one.gateway.post("/kept", key=kept)["Hapax-Operation"]
    threading.Event().wait(1.3)  # the passing of time is what is tested
    check.problem(one.gateway.post("/kept", key=kept), "idempotency_key_expired")
    assert one.gateway.operation(reference).status == 410
    one.gateway.stop()
    one.gateway.start()
    check.problem(one.gateway.post("/kept", key=kept), "idempotency_key_expired")
    assert len(one.provider.ledger(kept)) == 1


def test_executed_after_expiry_is_told(site):
    """An execution after expiry that can be seen is counted, logged and among the events."""
    one = site({"defaults": {"retention": "1s"}, "reap": {"every": "1h"}})
    key = new_key()
    one.gateway.post(key=key)
    threading.Event().wait(1.3)  # the passing of time is what is tested
    again = one.gateway.post(key=key)
    assert again.status == 200 and not again.replayed
    metrics = one.gateway.metrics()
    assert metrics['hapax_reserve_total{outcome="after_expiry"}'] == 1
    assert metrics['hapax_reserve_total{outcome="created"}'] == 1
    assert f"event=executed_after_expiry operation={again['Hapax-Operation']}" in one.gateway.log()
    shown = Operator(one.gateway).on("keys", "show", again["Hapax-Operation"])
    assert "had happened and expired" in shown, shown


def test_retention_by_the_upstream(site):
    """Hapax-Retention keeps one answer longer, up to retention_max, and no client sees it."""
    one = site({"defaults": {"retention": "1s"},
                "routes": [{"match": "POST /long", "retention_max": "1h"}, {"match": "POST /short"}]})
    answers = {}
    for path, value in (("/long", "30m"), ("/long", "9d"), ("/long", "soon"), ("/short", "30m")):
        key = new_key()
        answer = one.gateway.post(path, key=key, behave=f"header=Hapax-Retention:{value}")
        assert answer.status == 200 and answer["Hapax-Retention"] is None, answer
        answers[path, value] = key, answer
    threading.Event().wait(1.3)  # the passing of time is what is tested
    for (path, value), (key, first) in answers.items():
        again = one.gateway.post(path, key=key)
        assert again.replayed == (path == "/long" and value != "soon"), (path, value, again)
        if again.replayed:
            check.same_answer(first, again)
    assert one.gateway.log().count("event=retention_unreadable") == 1
