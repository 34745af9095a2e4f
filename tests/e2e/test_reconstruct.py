"""Shows that a settled "applied" is a success for the client: the provider's own object
becomes the operation's answer, by a probe, a webhook or a ledger, and says that it is not
the original. Where no answer is configured, no status is invented."""
import http.server
import json
import threading

import pytest

from harness import check
from harness.operator_command import Operator
from harness.secret import new_key
from test_webhook import config as webhook_config
from test_webhook import lose, result, tell

PAYMENT = {"id": "pay_7", "amount": 499}


class Lookup:
    """Answers every probe with one object."""

    def __init__(self, status, body, headers):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def lookup():
    made = []

    def start(body, status=200, **headers):
        made.append(Lookup(status, body, {name.replace("_", "-"): value for name, value in headers.items()}))
        return made[-1].url

    yield start
    for one in made:
        one.close()


def probed(site, url, answer):
    probe = {"url": url, "get": "/find?operation={operation}", "applied": [200]}
    if answer:
        probe["answer"] = answer
    return site({"routes": [{"match": "POST /pay", "reconcile": {"backoff": "10ms", "probe": probe}}]})


def wait_settled(one, reference):
    check.until(lambda: Operator(one.gateway).key(reference)["state"] == "completed", "it is settled")


def lose_and_wait(one):
    key = new_key()
    wait_settled(one, lose(one, key))
    return key


def reconstructed(answer):
    return answer.replayed and answer["Idempotent-Reconstructed"] == "true"


def test_probe(site, lookup):
    """The probe's object is the answer, with headers made of it and copied from it."""
    url = lookup(json.dumps({"data": PAYMENT}).encode(), Content_Type="application/vnd.bank+json", ETag='"3"')
    one = probed(site, url, {"status": 201, "body": "/data", "headers": ["Location: /payments/{/data/id}", "ETag"]})
    key = lose_and_wait(one)
    for _ in range(2):
        answer = one.gateway.post(key=key, behave="reset=after")
        assert answer.status == 201 and reconstructed(answer), answer
        assert answer.json() == PAYMENT
        assert (answer["Location"], answer["ETag"], answer["Content-Type"]) == ("/payments/pay_7", '"3"',
                                                                                "application/json")
    assert len(one.provider.ledger(key)) == 1


def test_the_whole_answer(site, lookup):
    """`body: answer`, the default: all of it, byte for byte, of its own type."""
    body = b'{ "id" :1.0,\n "id2": 2 }'
    one = probed(site, lookup(body, Content_Type="application/vnd.bank+json"), {"status": 200})
    answer = one.gateway.post(key=lose_and_wait(one), behave="reset=after")
    assert (answer.status, answer.body, answer["Content-Type"]) == (200, body, "application/vnd.bank+json")
    assert reconstructed(answer)


@pytest.mark.parametrize("body", [b"{}", b"no JSON", b'{"data": 1, "id": "a\\r\\nX: 1"}'])
def test_an_object_that_gives_none(site, lookup, body):
    """The outcome is settled all the same, without an answer and without an invented status."""
    one = probed(site, lookup(body), {"status": 201, "body": "/data", "headers": ["Location: /p/{/id}"]})
    problem = check.problem(one.gateway.post(key=lose_and_wait(one), behave="reset=after"), "response_not_kept")
    assert "original_status" not in problem, problem
    one.gateway.wait_log("event=answer_not_reconstructed")


def test_none_configured(site, lookup):
    """Nobody saw the status of the lost answer: none is given."""
    one = probed(site, lookup(b"{}"), None)
    problem = check.problem(one.gateway.post(key=lose_and_wait(one), behave="reset=after"), "response_not_kept")
    assert "original_status" not in problem, problem


def test_an_error_that_was_seen(site, lookup):
    """It was applied although the service answered 500: that is not what it came to."""
    probe = {"url": lookup(b"{}"), "get": "/find?operation={operation}", "applied": [200]}
    one = site({"routes": [{"match": "POST /pay", "server_error": "unknown",
                            "reconcile": {"backoff": "10ms", "probe": probe}}]})
    key = new_key()
    first = one.gateway.post(key=key, behave="status=500")
    assert first.status == 500
    wait_settled(one, first["Hapax-Operation"])
    problem = check.problem(one.gateway.post(key=key, behave="status=500"), "response_not_kept")
    assert "original_status" not in problem, problem


def test_webhook(site, tmp_path):
    """A webhook's object, too."""
    one = site(webhook_config(tmp_path, {"answer": {"status": 201, "body": "/data/object",
                                                   "headers": ["Location: /charges/{/data/object/id}"]}}))
    key = new_key()
    reference = lose(one, key)
    assert result(tell(one.gateway, "succeeded", reference, effect="ch_9")) == "settled"
    answer = one.gateway.post(key=key, behave="reset=after")
    assert answer.status == 201 and reconstructed(answer), answer
    assert answer.json()["id"] == "ch_9" and answer["Location"] == "/charges/ch_9", answer
    assert len(one.provider.ledger(key)) == 1


def test_webhook_declined(site, tmp_path):
    """What was declined is no success, whatever the rule for applied ones."""
    one = site(webhook_config(tmp_path, {"answer": {"status": 201}}))
    key = new_key()
    assert result(tell(one.gateway, "failed", lose(one, key))) == "settled"
    answer = one.gateway.post(key=key, behave="reset=after")
    assert answer.status == 402 and answer["Idempotent-Reconstructed"] is None, answer


def test_ledger(site, tmp_path):
    """A row of JSON lines, too."""
    one, key = site({}), new_key()
    reference = lose(one, key)
    ledger = tmp_path / "bank.jsonl"
    ledger.write_text(json.dumps({"operation": reference, "object": PAYMENT}) + "\n")
    Operator(one.gateway).run("reconcile", "--ledger", ledger, "--operation", "operation", "--since", "1h",
                              "--config", one.gateway.write_config(), "--apply", "--reason", "a test",
                              "--answer-status", "201", "--answer-body", "/object",
                              "--answer-header", "Location: /payments/{/object/id}", code=0)
    answer = one.gateway.post(key=key, behave="reset=after")
    assert answer.status == 201 and reconstructed(answer), answer
    assert answer.json() == PAYMENT and answer["Location"] == "/payments/pay_7", answer


def test_an_upstream_cannot_claim_it(site):
    """The mark is hapax's own: an upstream's header of that name is not stored."""
    one, key = site({}), new_key()
    assert one.gateway.post(key=key, behave="header=Idempotent-Reconstructed:true").status == 200
    again = one.gateway.post(key=key, behave="header=Idempotent-Reconstructed:true")
    assert again.replayed and again["Idempotent-Reconstructed"] is None, again
