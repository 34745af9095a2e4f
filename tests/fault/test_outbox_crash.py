"""Shows that whoever delivers may die at any named step of a job's way: with a
target that honours keys it is sent again under the same key, without one it is
asked about and not sent again; nothing is lost and nothing happens twice."""
import os
import signal
import time

import pytest

from harness import check, postgres
from harness.gateway import Gateway
from harness.operator_command import Operator
from harness.provider import Provider
from harness.providers import Debt, Providers
from harness.work_process import WorkProcess
from judge import Task, join
from outbox import judge_all, rows_of

SETTLE_AFTER_MS = 1000
QUICK = {"targets": {"plain": {"reconcile": {"settle_after": f"{SETTLE_AFTER_MS}ms"}}}}
LEASE_SECONDS = 60
# A question that was asked by a dead process is asked again after 20 s: the
# reconciler's steps have one test each.
DELIVERER = ("job_claimed", "job_sending", "job_answered", "job_stored")


class Yard:
    """The providers, and a gateway that is not started yet."""

    def __init__(self, folder, **config):
        self.folder = folder
        self.providers = Providers(folder)
        self.provider = Provider(folder / "ledger")
        (folder / "gateway").mkdir()
        self.gateway = Gateway(folder / "gateway", self.provider.url,
                               self.providers.config(**{**QUICK, **config}), True)
        self.operator = Operator(self.gateway)
        self.work_processes = []

    def work_process(self, **env):
        self.work_processes.append(WorkProcess(self.folder, self.gateway, len(self.work_processes), steps=True))
        return self.work_processes[-1].start(env)

    def is_settled(self):
        return all(row["state"] == "done" for row in rows_of(self.operator))

    def judge(self, debts):
        return judge_all(self.gateway, self.providers, debts, settle_after_ms=SETTLE_AFTER_MS)

    def close(self):
        for process in [self.gateway, *self.work_processes]:
            process.kill()
            process.check_log()
        self.provider.close()
        self.providers.close()


@pytest.fixture
def yard(tmp_path):
    made = []

    def make(**config):
        made.append(Yard(tmp_path, **config))
        return made[-1]

    yield make
    for one in made:
        one.close()


def is_over(one, debts):
    """Killed, or there is nothing left to be killed at."""
    rows = rows_of(one.operator)
    return one.gateway.gone() or (len(rows) == len(debts) and one.is_settled())


def run_to_death(one, step, passing):
    """With some answers lost before and after the effect, killed at the n-th passing
    of a step; then started again, and judged. Whether it was killed."""
    one.providers.keyed.fault("reset_after", times=1)
    one.providers.plain.script({"when": {"number": 1}, "fault": {"kind": "reset_after"}},
                            {"when": {"number": [2, 3]}, "fault": {"kind": "reset_before"}})
    debts = [Debt(path) for path in ("/keyed", "/plain", "/plain", "/plain", "/keyed")]
    one.gateway.spawn({"HAPAX_CRASH_AT": f"{step}:{passing}"}).wait_ready(may_die=True)
    clients = [Task(debt.accept, one.gateway) for debt in debts]
    check.until(lambda: is_over(one, debts), "killed, or settled", 30)
    killed = one.gateway.gone()
    one.gateway.kill()
    one.gateway.start()
    join(clients)
    one.judge(debts)
    return killed


def test_killed_at(yard, owed_step):
    assert run_to_death(yard(), owed_step, 1), f"{owed_step} was never passed"


@pytest.mark.parametrize("at", DELIVERER)
def test_killed_later(yard, at):
    run_to_death(yard(), at, 3)


@pytest.mark.parametrize("at", DELIVERER)
def test_killed_again_and_again(yard, at):
    """At the same step of what is done after each start: it still ends well."""
    one = yard()
    one.providers.plain.fault("reset_after", times=1)
    debts = [Debt(path) for path in ("/keyed", "/plain")]
    clients = []
    for passing in (1, 2, 1):
        one.gateway.spawn({"HAPAX_CRASH_AT": f"{at}:{passing}"}).wait_ready(may_die=True)
        clients = clients or [Task(debt.accept, one.gateway) for debt in debts]
        check.until(lambda: is_over(one, debts), "killed, or settled", 30)
        one.gateway.kill()
    one.gateway.start()
    join(clients)
    one.judge(debts)


# Killed after the provider acted and before that was stored.
def check_keyed(one, debt):
    """Sent again under the same key: one effect, and its own answer."""
    assert debt.final(one.gateway) == 201
    first, *again = one.providers.keyed.ledger.sends(operation=debt.reference)
    effect, = one.providers.keyed.ledger.effects(operation=debt.reference)
    assert again and {send.key for send in again} == {first.key}
    assert all(send.replay and send.effect == effect.id for send in again)
    assert debt.answers[-1][1].decode().find(effect.id) > 0


def check_plain(one, debt):
    """Not sent again but asked about: one effect, and that it happened is known."""
    assert debt.final(one.gateway) == 409
    assert len(one.providers.plain.ledger.sends(operation=debt.reference)) == 1
    assert len(one.providers.plain.ledger.effects(operation=debt.reference)) == 1
    assert one.providers.plain.ledger.lookups(operation=debt.reference)[-1].told == "200"


@pytest.mark.parametrize("path, look", [("/keyed", check_keyed), ("/plain", check_plain)])
def test_acted_and_not_recorded(yard, path, look):
    one, debt = yard(), Debt(path)
    one.gateway.start({"HAPAX_CRASH_AT": "job_answered"})
    debt.accept(one.gateway)
    assert one.gateway.wait() == -9
    assert len(one.providers.all[path[1:]].ledger.effects()) == 1
    one.gateway.start()
    check.until(one.is_settled, "sent again, or asked about", 30)
    look(one, debt)


def put_to_sleep(one, step, debt):
    """A work process that stops at this step of the debt's way, and stays so."""
    work = one.work_process(HAPAX_STOP_AT=step)
    debt.accept(one.gateway)
    os.waitid(os.P_PID, work.pid, os.WSTOPPED | os.WNOWAIT)
    return work


def wake(work):
    """It goes on where it stopped, until what it had is off its hands."""
    since = len(work.lines)
    work.signal(signal.SIGCONT)
    work.wait_log("event=job_(not_stored|delivered|lost|postponed)", since=since)


@pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
def test_among_many(yard):
    """The claims of the dead and of those who sleep are nobody's until their lease
    is over; then another does the same. Who wakes up then sends nothing."""
    cluster = postgres.shared()
    one = yard(store=cluster.url(cluster.database()), work={"inside": False}, log_level="debug")
    one.gateway.start()
    dead = {path: Debt(path) for path in ("/keyed", "/plain")}
    for debt in dead.values():
        work = one.work_process(HAPAX_CRASH_AT="job_answered")
        debt.accept(one.gateway)
        assert work.wait() == -9
    asleep = {step: Debt("/plain") for step in ("job_claimed", "job_sending")}
    sleepers = [put_to_sleep(one, step, debt) for step, debt in asleep.items()]
    began = time.monotonic()
    one.work_process()
    check.until(one.is_settled, "the lease is over", LEASE_SECONDS)
    assert time.monotonic() - began > 10, "a claim was taken away from one who might live"
    check_keyed(one, dead["/keyed"])
    check_plain(one, dead["/plain"])
    sent = len(one.providers.plain.ledger.sends())
    for sleeper in sleepers:
        wake(sleeper)
    assert len(one.providers.plain.ledger.sends()) == sent
    one.judge([*dead.values(), *asleep.values()])


def test_nobody_to_ask(yard):
    """Without keys, probe or webhook it is a person's: never sent again, and listed."""
    one, debt = yard(targets={"plain": {"reconcile": None}}), Debt("/plain")
    one.gateway.start({"HAPAX_CRASH_AT": "job_answered"})
    debt.accept(one.gateway)
    assert one.gateway.wait() == -9
    one.gateway.start()
    one.gateway.wait_log(f"event=left_to_a_person .*{debt.reference}", 30)
    check.problem(debt.ask(one.gateway), "idempotency_outcome_unknown")
    assert [row["operation"] for row in one.operator.jobs("--state", "unknown")] == [debt.reference]
    assert debt.reference in one.operator.on("keys", "ls", "--state", "unknown", "--full")
    assert len(one.providers.plain.ledger.sends()) == 1
