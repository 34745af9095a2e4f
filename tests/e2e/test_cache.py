"""Shows that answers kept in memory are those of the store: byte for byte, each
caller's own, never past their expiry; that an operator's removal reaches every
node within a second, and that a node which cannot hear of it falls silent."""
import subprocess
import time

import pytest

from conftest import require_program
from harness import check, postgres, secret
from harness.gateway import binary
from harness.secret import new_key
from test_async import ACME, config as asynchronous, external  # noqa: F401, a fixture
from test_nodes import Nodes

CONFIG = {"cache": "1MiB"}
# What the documentation promises.
WITHIN_SECONDS = 1.0

needs_postgres = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def cluster():
    """A server of this module's own, which may be stopped."""
    one = postgres.Cluster()
    yield one
    one.close()


@pytest.fixture
def nodes(tmp_path, cluster):
    """nodes(config) starts two gateways on a database of their own."""
    require_program()
    made = []

    def start(config=None):
        made.append(Nodes(tmp_path, cluster, config))
        for gateway in made[-1].gateways:
            gateway.start()
        return made[-1]

    yield start
    for one in made:
        one.close()


def hits(gateway):
    return gateway.metrics()['hapax_cache_total{result="hit"}']


def hit(gateway, key, **how):
    """The answer from memory; until it is there, from the store."""
    def look():
        before = hits(gateway)
        answer = gateway.post(key=key, **how)
        return answer if hits(gateway) == before + 1 else None
    return check.until(look, "an answer from memory")


def forget(gateway, reference):
    done = subprocess.run([binary(), "keys", "forget", "--store", gateway.config["store"], reference,
                           "--reason", "a test"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def gone_within(gateway, key, reference, since, **how):
    """Until another answer comes; what is asked later than promised must get one."""
    while True:
        asked = time.monotonic()
        answer = gateway.post(key=key, **how)
        if answer["Hapax-Operation"] != reference:
            return answer
        assert asked < since + WITHIN_SECONDS, "served for too long"


def without_date(answer):
    return [field for field in answer.fields if field[0] != "Date"]


def test_byte_for_byte(gateway):
    """From memory as from the store, as the first time."""
    key = new_key()
    first = gateway.post(key=key, behave="status=201")
    from_memory = hit(gateway, key)
    check.same_answer(first, from_memory)
    gateway.restart({"cache": "0"})
    from_store = gateway.post(key=key)
    assert hits(gateway) == 0
    gateway.restart(CONFIG)
    assert (from_memory.status, from_memory.body) == (from_store.status, from_store.body)
    assert without_date(from_memory) == without_date(from_store)


def test_everybody_gets_their_own_verdict(gateway, provider):
    """Another body, another path, another caller: as without a cache."""
    key = new_key()
    first = gateway.post(key=key)
    hit(gateway, key)
    check.problem(hit(gateway, key, body=b'{"amount": 11}'), "idempotency_key_reused")
    assert not gateway.post("/other", key=key).replayed
    assert not gateway.post(key=key, auth=secret.BOB).replayed
    check.same_answer(first, hit(gateway, key))
    assert len(provider.ledger(key)) == 3


def test_what_is_not_an_answer_is_not_kept(gateway):
    """Failures and unknown outcomes are the store's to tell."""
    for behave, code in (("status=500", 200), ("reset=after", 409)):
        key = new_key()
        gateway.post(key=key, behave=behave)
        before = hits(gateway)
        assert gateway.post(key=key).status == code
        assert hits(gateway) == before


def test_never_past_its_expiry(site):
    one = site({**CONFIG, "defaults": {"retention": "2s"}})
    key = new_key()
    reference = one.gateway.post(key=key)["Hapax-Operation"]
    answered = time.monotonic()
    assert hit(one.gateway, key)["Hapax-Operation"] == reference
    gone_within(one.gateway, key, reference, answered + 2 - WITHIN_SECONDS)
    assert len(one.provider.ledger(key)) == 2


@pytest.mark.skipif(postgres.chosen(), reason="among many, it takes a moment")
def test_a_removal_is_at_once(gateway, provider):
    """On SQLite the very next request finds it gone."""
    for _ in range(20):
        key = new_key()
        reference = gateway.post(key=key)["Hapax-Operation"]
        hit(gateway, key)
        forget(gateway, reference)
        assert not gateway.post(key=key).replayed
        assert len(provider.ledger(key)) == 2


def test_a_removal_is_heard(gateway, provider):
    """By `hapax keys`, another process; the key is executed anew, and cached anew."""
    key = new_key()
    reference = gateway.post(key=key)["Hapax-Operation"]
    hit(gateway, key)
    forget(gateway, reference)
    again = gone_within(gateway, key, reference, time.monotonic())
    assert not again.replayed
    check.same_answer(again, hit(gateway, key))
    assert len(provider.ledger(key)) == 2


def test_what_a_job_answered(site, external, tmp_path):
    """An async route's retries are served from memory once the job has answered,
    and not before; what is removed is accepted anew."""
    external.fault("none", before_gate="hold")
    one, key = site(asynchronous(external, tmp_path, **CONFIG)), new_key()
    how = {"target": "/emails", "auth": None, "headers": [ACME]}
    assert [one.gateway.post(key=key, **how).status for _ in range(2)] == [202, 202]
    assert hits(one.gateway) == 0
    external.release("hold", 9)
    first = check.until(lambda: (a := one.gateway.post(key=key, **how)).status == 201 and a, "the answer")
    kept = hit(one.gateway, key, **how)
    assert kept.replayed and (kept.status, kept.body) == (first.status, first.body)
    assert kept["Hapax-Operation"] == first["Hapax-Operation"]
    forget(one.gateway, kept["Hapax-Operation"])
    again = gone_within(one.gateway, key, kept["Hapax-Operation"], time.monotonic(), **how)
    assert again.status == 202
    assert hit(one.gateway, key, **how)["Hapax-Operation"] == again["Hapax-Operation"]
    assert len(external.ledger.effects(path="/api/emails")) == 2


@needs_postgres
def test_a_removal_reaches_every_node(nodes):
    both = nodes()
    key = new_key()
    reference = both.gateways[0].post(key=key)["Hapax-Operation"]
    for gateway in both.gateways:
        assert hit(gateway, key)["Hapax-Operation"] == reference
    forget(both.gateways[0], reference)
    since = time.monotonic()
    answers = [gone_within(gateway, key, reference, since) for gateway in both.gateways]
    assert [answer.replayed for answer in answers] == [False, True]
    assert len(both.provider.ledger(key)) == 2


@needs_postgres
@pytest.mark.parametrize("how", ["stopped", "frozen"])
def test_a_node_that_cannot_hear_falls_silent(nodes, cluster, how):
    """A database that is away, or does not answer: 503, and replays again later."""
    both = nodes({"timeouts": {"store": "100ms"}})
    key = new_key()
    first = both.gateways[0].post(key=key)
    for gateway in both.gateways:
        hit(gateway, key)
    (cluster.stop if how == "stopped" else cluster.freeze)()
    since = time.monotonic()
    for gateway in both.gateways:
        refused = gone_within(gateway, key, first["Hapax-Operation"], since)
        check.problem(refused, "idempotency_store_unavailable")
        for _ in range(3):
            check.problem(gateway.post(key=key), "idempotency_store_unavailable")
    (cluster.start if how == "stopped" else cluster.thaw)()
    for gateway in both.gateways:
        check.until(lambda: gateway.post(key=key).replayed, "replays again")
        check.same_answer(first, hit(gateway, key))
    assert len(both.provider.ledger(key)) == 1
