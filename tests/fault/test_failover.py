"""Shows that the loss of the primary loses nothing that was acknowledged and
repeats nothing: two gateways whose address names both hosts refuse while there
is no primary, find the promoted standby by themselves, and replay there what
they told before. What only the lost primary had was told to nobody.
HAPAX_FAILOVERS and HAPAX_KILLS ask for more failovers and kills than usual, HAPAX_SEED
for the same run again."""
import os
import signal

import pytest

from harness import check, postgres
from harness.pair import Pair
from harness.secret import new_key
from judge import Task, join, judge
from nodes import Crowd, Nodes, pause

FAILOVERS = int(os.environ.get("HAPAX_FAILOVERS", "6"))
KILLS = int(os.environ.get("HAPAX_KILLS", "200"))
CLIENTS = 32
KILL_CLIENTS = 6
# A gateway takes two seconds for a host that does not answer.
FOUND_SECONDS = 15

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


@pytest.fixture
def nodes(tmp_path, chance):
    """Two gateways on a primary and its synchronous standby."""
    made = Nodes(tmp_path, Pair(), chance)
    yield made.start()
    made.close()


class Held:
    """A request under way, held at the provider after its effect."""

    def __init__(self, nodes, gateway):
        self.key = new_key()
        self.gate = nodes.provider.gate(self.key)
        self.wire = gateway.connect(60)
        self.wire.send(gateway.request("POST", "/pay", key=self.key, behave=f"hold={self.key}"))
        self.gate.wait_arrived()

    def release(self):
        self.gate.release()

    def answer(self):
        with self.wire:
            return self.wire.answer()


# How a primary is lost.
def crash(pair):
    pair.primary.stop(signal.SIGQUIT)


def lose_machine(pair):
    pair.primary.kill()


def lose_while_behind(pair):
    """The standby hangs; what it has not got by then it never gets."""
    pair.standby.freeze()
    pause(0.3)
    pair.primary.kill()
    pair.standby.kill()
    pair.standby.start()


LOSSES = (crash, lose_while_behind, lose_machine)


def check_refused(nodes):
    """Without a primary, a guarded request is refused and never sent; others pass."""
    for gateway in nodes.gateways:
        key = new_key()
        check.problem(gateway.post(key=key), "idempotency_store_unavailable")
        assert nodes.provider.seen(key=key) == [], "executed without a reservation"
        assert gateway.get("/x").status == 200


def check_found(nodes):
    """Every gateway has found the new primary, with no help."""
    for gateway in nodes.gateways:
        check.until(lambda g=gateway: g.post().status == 200, "it recovers by itself", FOUND_SECONDS)


def replay_of(nodes, key):
    answer = nodes.post(key=key)
    return answer if answer.replayed else None


def fail_over(nodes, lose):
    """One failover, with an answer told before and one that comes meanwhile."""
    told_key = new_key()
    told = nodes.gateways[0].post(key=told_key)
    assert told.status == 200, told
    held = Held(nodes, nodes.gateways[1])
    lose(nodes.cluster)
    check_refused(nodes)
    held.release()
    nodes.cluster.promote()
    meanwhile = held.answer()
    assert meanwhile.status == 200 or check.problem(meanwhile, "upstream_outcome_unknown")
    check_found(nodes)
    for gateway in nodes.gateways:
        check.same_answer(told, gateway.post(key=told_key))
    late = check.until(lambda: replay_of(nodes, held.key), "the late answer is stored")
    assert meanwhile.status != 200 or meanwhile.body == late.body, (meanwhile, late)
    assert (len(nodes.provider.ledger(told_key)), len(nodes.provider.ledger(held.key))) == (1, 1)


def test_primary_lost(nodes, chance):
    """Again and again, while many clients never stop."""
    crowd = Crowd(nodes, chance, CLIENTS).start()
    try:
        for number in range(FAILOVERS):
            if number > 0:
                nodes.cluster.add_standby()
            done = crowd.count()
            check.until(lambda d=done: crowd.failed or crowd.count() > d + 100, "traffic goes on", 30)
            pause(chance.uniform(0.0, 0.3))
            if crowd.failed:
                break
            fail_over(nodes, LOSSES[number % len(LOSSES)])
        operations = crowd.finish()
        ends = list(judge(nodes, nodes.provider, operations, stuck_is_wrong=False).values())
    finally:
        crowd.tell_to_stop()
    refused = sum("idempotency_store_unavailable" in o.codes for o in operations)
    print(f"{FAILOVERS} failovers, {len(operations)} operations: {ends.count('done')} done, "
          f"{ends.count('unknown')} unknown, {refused} refused at first")
    assert refused > 0 and ends.count("done") > ends.count("unknown") / 2
    assert not any(g.gone() for g in nodes.gateways)


def kill_one(nodes, chance):
    """The other one serves meanwhile."""
    gateway = chance.choice(nodes.gateways)
    gateway.kill()
    gateway.start()


def test_random_kills(nodes, chance):
    """Gateways killed at random times, and a promotion at a third and at two thirds of
    them, while clients never stop and what they do expires and is reaped."""
    crowd = Crowd(nodes, chance, KILL_CLIENTS).start()
    promotions = {KILLS // 3: crash, 2 * KILLS // 3: lose_machine}
    try:
        for number in range(KILLS):
            if number in promotions:
                promotions[number](nodes.cluster)
                nodes.cluster.promote()
                nodes.cluster.add_standby()
            pause(chance.uniform(0.0, 0.15))
            kill_one(nodes, chance)
            if crowd.failed:
                break
        operations = crowd.finish()
        ends = list(judge(nodes, nodes.provider, operations, stuck_is_wrong=False).values())
    finally:
        crowd.tell_to_stop()
    print(f"{KILLS} kills, {crowd.count()} operations, of those that are kept "
          f"{ends.count('done')} done, {ends.count('unknown')} unknown")
    assert len(operations) > KILLS and ends.count("done") > ends.count("unknown") / 2


def test_old_primary_goes_on(nodes):
    """A primary that hangs is left for the new one. When it comes back to life
    and nobody stopped it, it has no standby: whoever meets it is told nothing
    that it alone has, and nothing of what it does not have runs again."""
    a, b = nodes.gateways
    told_key, later_key = new_key(), new_key()
    told = a.post(key=told_key)
    old = nodes.cluster.primary
    old.freeze()
    nodes.cluster.standby.promote()
    for gateway in (a, b):
        check.until(lambda g=gateway: g.post(timeout=60).status == 200, "it is left", 60)
        check.same_answer(told, gateway.post(key=told_key))
    later = a.post(key=later_key)
    old.thaw()
    b.kill()
    b.start()
    assert old.sql("SELECT 1 FROM pg_stat_activity WHERE application_name = 'hapax'"), "b never met it"
    check.problem(b.post(key=later_key), "idempotency_store_unavailable")
    old.kill()
    check.until(lambda: b.post(key=later_key).replayed, "it recovers by itself", FOUND_SECONDS)
    check.same_answer(later, b.post(key=later_key))
    assert len(nodes.provider.ledger(later_key)) == 1


# A commit that only the lost primary had.
CANCEL = ("SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
          "WHERE application_name = 'hapax' AND wait_event = 'SyncRep'")
COMPLETED = "3"


def cancelling(nodes, ask):
    """What `ask` gets while every wait for the standby is cancelled, as an
    impatient operator does it."""
    got = []
    task = Task(lambda: got.append(ask()))
    cancelled = 0
    while task.is_alive():
        cancelled += len(nodes.cluster.sql(CANCEL))
    join([task])
    assert cancelled > 0, "no commit waited for the standby"
    return got[0]


def states(nodes, key):
    return nodes.cluster.sql(f"SELECT state FROM hapax.operation WHERE key = '{key}'", nodes.database)


def promote_what_was_frozen(nodes, key):
    """Both machines are lost, and the standby is started again with what it
    had; nobody writes before its rows were looked at. The state it has."""
    running = [g for g in nodes.gateways if not g.gone()]
    for gateway in running:
        gateway.signal(signal.SIGSTOP)
    nodes.cluster.primary.kill()
    nodes.cluster.standby.kill()
    nodes.cluster.standby.start()
    nodes.cluster.promote()
    found = states(nodes, key)
    for gateway in running:
        gateway.signal(signal.SIGCONT)
    return found


@pytest.mark.parametrize("dies", [False, True])
def test_answer_of_the_lost_primary(nodes, dies):
    """An answer whose wait for the standby was cancelled is told to nobody. Who
    has it stores it on the new primary; if that gateway dies too, its outcome
    is unknown, and nothing runs again."""
    a, b = nodes.gateways
    held = Held(nodes, a)
    nodes.cluster.standby.freeze()
    held.release()
    check.problem(cancelling(nodes, held.answer), "upstream_outcome_unknown")
    assert states(nodes, held.key) == [COMPLETED], "the lost primary never had it"
    again = cancelling(nodes, lambda: a.post(key=held.key))
    check.problem(again, "idempotency_store_unavailable")
    if dies:
        a.kill()
    assert promote_what_was_frozen(nodes, held.key) not in ([], [COMPLETED])
    if dies:
        check.until(lambda: b.post(key=held.key).json().get("code") == "idempotency_outcome_unknown",
                    "the lease of the dead is found", 30)
        a.start()
        check.problem(a.post(key=held.key), "idempotency_outcome_unknown")
    else:
        for gateway in (a, b):
            check.until(lambda g=gateway: g.post(key=held.key).replayed, "the answer is stored", 30)
    assert len(nodes.provider.ledger(held.key)) == 1


def test_reservation_of_the_lost_primary(nodes):
    """A reservation whose wait was cancelled sends nothing upstream; the new
    primary has never heard of it, and there it happens once."""
    a, key = nodes.gateways[0], new_key()
    assert a.post().status == 200
    nodes.cluster.standby.freeze()
    check.problem(cancelling(nodes, lambda: a.post(key=key)), "idempotency_store_unavailable")
    assert states(nodes, key) != [], "the lost primary never had it"
    assert nodes.provider.seen(key=key) == [], "sent without a reservation that lasts"
    assert promote_what_was_frozen(nodes, key) == []
    check_found(nodes)
    done = a.post(key=key)
    assert done.status == 200, done
    for gateway in nodes.gateways:
        check.same_answer(done, gateway.post(key=key))
    assert len(nodes.provider.ledger(key)) == 1
