"""Shows that the provider itself tells the truth: every request it carries out
is one line in its ledger, twice if it comes twice, and every way in which it
can misbehave looks on the wire as its name says."""
import pytest

from harness.provider import Provider
from harness.wire import Closed, Malformed, connect, request_bytes


@pytest.fixture
def bare(tmp_path):
    one = Provider(tmp_path / "ledger")
    yield one
    one.close()


def ask(provider, behave="", method="POST", body=b"x"):
    with connect(("127.0.0.1", provider.port)) as wire:
        wire.send(request_bytes(method, "/p", [("Idempotency-Key", "k"), ("X-Behave", behave)], body))
        return wire.answer(method)


def test_ledger_counts_twice(bare):
    """Two requests with one key are two effects: the provider keeps no keys."""
    assert ask(bare).body != ask(bare).body
    assert [line[2] for line in bare.ledger()] == ["k", "k"]


@pytest.mark.parametrize("behave, status, lines, size", [
    ("status=201", 201, 1, None),
    ("status=500", 500, 0, None),
    ("status=500; effect=yes", 500, 1, None),
    ("effect=no", 200, 0, None),
    ("big=100000", 200, 1, 100000),
    ("big=100000; chunked", 200, 1, 100000),
    ("big=100000; close", 200, 1, 100000),
    ("status=204", 204, 1, 0),
])
def test_answers(bare, behave, status, lines, size):
    """A wanted status, body and framing come as wanted."""
    answer = ask(bare, behave)
    assert (answer.status, len(bare.ledger())) == (status, lines)
    assert size is None or len(answer.body) == size


@pytest.mark.parametrize("behave, lines", [
    ("reset=before", 0), ("reset=after", 1), ("half-body", 1), ("raw=nonsense", 1),
])
def test_losses(bare, behave, lines):
    """A lost answer is lost, its effect is not."""
    bare.raws["nonsense"] = b"who knows\r\n\r\n"
    with pytest.raises((Closed, Malformed, ConnectionError)):
        ask(bare, behave)
    assert len(bare.ledger()) == lines


def test_gate(bare):
    """A held answer comes after its release, and the effect before it."""
    with connect(("127.0.0.1", bare.port)) as wire:
        wire.send(request_bytes("POST", "/p", [("X-Behave", "hold=a")], b""))
        bare.gate("a").wait_arrived()
        assert len(bare.ledger()) == 1
        bare.gate("a").release()
        assert wire.answer().status == 200
