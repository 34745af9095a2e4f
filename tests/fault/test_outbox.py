"""Shows that through random faults of the providers and kills of whoever delivers,
on both stores, no job is lost and nothing happens twice: everything settles, in
order, and every client that was told 202 finds one final answer. HAPAX_FAULTS asks
for more kills than usual, HAPAX_SEED for the same run again."""
import os
import signal
import threading

import pytest

from harness import postgres
from harness.gateway import Gateway
from harness.provider import Provider
from harness.providers import Providers, pause
from harness.work_process import WorkProcess
from outbox import Client, Shop, finish, judge_all

KILLS = int(os.environ.get("HAPAX_FAULTS", "60"))
FAULTS_MIN = 200
CLIENTS = 8
# Longer than a claim's lease: 2 * (connect_timeout + 10 s) + timeout, and then some
# for the sweeper and the questions of the reconciler.
BEYOND_LEASE = 28

HOOKS = (["plain"], ["early"], ["duplicate"], ["out_of_order"], ["wrong_signature"], ["old"],
         ["none"], ["wrong_signature", "plain"])
SENDS = [{"kind": kind, "webhooks": hooks} for hooks in HOOKS
         for kind in ("error_after", "reset_after", "half", "none")]
SENDS += [{"kind": "too_many", "retry_after": 1}, {"kind": "too_many", "retry_after": 0},
          {"kind": "unavailable", "retry_after": 0}, {"kind": "unavailable"},
          {"kind": "error_before"}, {"kind": "reset_before"}, {"kind": "hold_before"},
          {"kind": "none", "before_ms": 150, "after_ms": 150},
          {"kind": "none", "before_ms": 1200, "webhooks": ["plain"]},
          {"kind": "none", "before_ms": 1200, "webhooks": ["none"]},
          {"kind": "hold_after", "webhooks": ["early"]}] * 2
# Bounded from the caller's end on, which a stopped caller never reaches.
LATE = [{"kind": "late", "late_ms": 900, "webhooks": [hook]} for hook in ("none", "plain")] * 2
LOOKUPS = [{"kind": kind} for kind in ("error_before", "reset_before", "half")]
LOOKUPS += [{"kind": "too_many", "retry_after": 1}, {"kind": "none", "before_ms": 1200}]


def decline_requests(providers, chance):
    """One request in ten of the async routes is declined; no step of an order is,
    because the next one would wait for a person."""
    for external in providers.all.values():
        rules = list(external.settings["rules"])
        for rule in rules:
            rule.pop("id")
        seed = chance.randrange(1 << 32)
        for path in ("/keyed", "/plain"):
            rules.insert(0, {"when": {"path": path},
                             "random": {"seed": seed, "share": 0.1, "faults": [{"kind": "decline"}]}})
        external.script(*rules)


class Scene:
    """Providers, a gateway, clients and an application, in bad weather."""

    def __init__(self, folder, chance, store=None, faults=SENDS):
        self.folder, self.chance = folder, chance
        self.providers = Providers(folder, lookup_delay_ms=200)
        self.provider = Provider(folder / "ledger")
        (folder / "gateway").mkdir()
        config = self.providers.config(**({"store": store} if store else {}))
        self.gateway = Gateway(folder / "gateway", self.provider.url, config, True)
        self.providers.tell(self.gateway.port)
        self.providers.script(chance, faults, LOOKUPS)
        decline_requests(self.providers, chance)
        self.processes = [self.gateway]
        self.env = {}
        self.makers = []

    def work_process(self, **env):
        work = WorkProcess(self.folder, self.gateway, len(self.processes), steps=True)
        self.processes.append(work)
        self.env[work] = env
        return work

    def start(self):
        for process in self.processes:
            process.start(self.env.get(process))
        self.shop = Shop(self.gateway.config["store"], self.chance.random())
        self.makers = [Client(self.gateway, self.chance.random()) for _ in range(CLIENTS)]
        self.makers.append(self.shop)

    @property
    def failed(self):
        return any(maker.task.failure for maker in self.makers)

    def end(self, done):
        """Faults off; everything settles, and is judged."""
        finish(self.makers)
        self.providers.calm()
        debts = [debt for maker in self.makers[:-1] for debt in maker.debts]
        finals = judge_all(self.gateway, self.providers, debts, self.shop.orders)
        faults = self.providers.faults()
        print(f"{done}, {dict(faults)}; {len(debts)} requests, {len(self.shop.orders)} orders: "
              f"{dict(finals)}")
        assert faults.total() + sum(done.values()) >= FAULTS_MIN
        assert finals[201] > finals[402] and self.shop.orders
        # Webhooks of every kind came through, and only the signed ones were heard.
        heard = {(w.twist, w.told) for w in self.providers.plain.ledger.webhooks()}
        assert {("plain", "200"), ("early", "200"), ("duplicate", "200"), ("out_of_order", "200"),
                ("wrong_signature", "401"), ("old", "401")} <= heard, heard
        assert not heard & {("wrong_signature", "200"), ("old", "200")}, heard

    def close(self):
        for maker in self.makers:
            maker.over.set()
        for process in self.processes:
            process.kill()
        if self.makers:
            self.shop.task.join()
            self.shop.library.close()
        for process in self.processes:
            process.check_log()
        self.provider.close()
        self.providers.close()


def kill(process):
    process.kill()
    process.start()


def test_on_sqlite(tmp_path, chance):
    """`hapax serve`, killed and started again."""
    scene = Scene(tmp_path, chance, f"sqlite:{tmp_path}/hapax.db", SENDS + LATE)
    try:
        scene.start()
        for _ in range(KILLS):
            pause(chance.uniform(0.1, 0.5))
            kill(scene.gateway)
            if scene.failed:
                break
        scene.end({"kill": KILLS})
    finally:
        scene.close()


# The faults on PostgreSQL. Each leaves everything running again.
def stop_briefly(scene, process, chance):
    process.signal(signal.SIGSTOP)
    pause(chance.uniform(0.05, 0.6))
    process.signal(signal.SIGCONT)


def cut(scene, _, chance):
    scene.cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                      f"application_name = 'hapax' AND random() < {chance.choice((0.3, 1.0))}")


def restart(how):
    def stop_and_start(scene, *_):
        scene.cluster.stop(how)
        scene.cluster.start()
    return stop_and_start


KINDS = {
    "kill": (lambda scene, process, chance: kill(process), 40),
    "stop": (stop_briefly, 20),
    "cut": (cut, 25),
    "restart": (restart(signal.SIGINT), 5),
    "crash": (restart(signal.SIGQUIT), 5),
}


@pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
def test_on_postgres(tmp_path, chance):
    """`hapax serve` and two `hapax work`: one of those stops in the middle of a
    delivery for longer than its claims last, while the others come to harm."""
    cluster = postgres.Cluster()
    scene = Scene(tmp_path, chance, cluster.url(cluster.database()))
    scene.cluster = cluster
    step = chance.choice(("job_claimed", "job_sending", "job_answered"))
    sleeper = scene.work_process(HAPAX_STOP_AT=f"{step}:{chance.randint(3, 8)}")
    other = scene.work_process()
    done = dict.fromkeys([*KINDS, "stop beyond the lease"], 0)
    try:
        scene.start()
        os.waitid(os.P_PID, sleeper.pid, os.WSTOPPED | os.WNOWAIT)
        awake = threading.Timer(BEYOND_LEASE, lambda: sleeper.signal(signal.SIGCONT))
        awake.start()
        for _ in range(KILLS):
            pause(chance.uniform(0.05, 0.35))
            kind = chance.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
            KINDS[kind][0](scene, chance.choice((scene.gateway, other)), chance)
            done[kind] += 1
            if scene.failed:
                break
        finish(scene.makers)
        awake.join()
        done["stop beyond the lease"] = 1
        scene.end(done)
    finally:
        scene.close()
        cluster.close()
