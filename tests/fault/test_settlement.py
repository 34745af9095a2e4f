"""Shows that settlements neither repeat nor lose an effect when the gateway dies at any
moment: a person (`hapax keys resolve`), the provider's webhooks and a team's own pipeline
(hapax.settle, hapax_settle) settle what clients find unknown, with tombstones and a history
on, while it is killed at random times, and at each step of a batch. The ledger is the judge,
on both stores. HAPAX_KILLS asks for more kills, HAPAX_SEED for the same run again."""
import json
import os
import random
import subprocess
import threading
import time

import pytest

from expiring import EXPIRING, TARGETS, conclude
from generations import SMALL
from harness import postgres
from harness.external_webhooks import Hook, post
from harness.gateway import merge
from harness.operator_command import Operator
from harness.wire import Closed
from judge import POLICY, Operation, Task, join, judge, workload
from nodes import Crowd
from test_kill import Site, kill_often
from test_settle import settle

KILLS = int(os.environ.get("HAPAX_KILLS", "20"))
CLIENTS = 3
# A service that was asked answers within this time; before, nobody says "not applied".
SETTLE_SECONDS = 3
SECRET = "whsec_fault-0123456789abcdef0123"
STORES = ("sqlite", "postgres")


def settled_config(store, folder):
    if store == "postgres" and postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    secret = folder / "bank.secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    more = {"defaults": {"reconcile": {"settle_after": f"{SETTLE_SECONDS}s", "confirm_after": "1s"}},
            "webhooks": {"bank": {"scheme": "stripe", "secret_file": str(secret), "operation": "/operation",
                                  "verdict": "/status", "applied": ["succeeded"], "not_applied": ["not_found"],
                                  "settle_after": f"{SETTLE_SECONDS}s", "answer": {"status": 201, "body": "/object"}}}}
    if store == "postgres":
        more["store"] = postgres.shared().url(postgres.shared().database())
    return merge(POLICY, more)


class Settler:
    """Knows the ledger, and tells the truth about what the store holds as unknown: applied
    where there is an effect, not applied where there is none after SETTLE_SECONDS.
    `cluster`: a database of its own, which may be away."""

    def __init__(self, one, seed, cluster=None):
        self.one = one
        self.cluster = cluster
        self.chance = random.Random(seed)
        self.operator = Operator(one.gateway)
        self.answer = one.gateway.folder / "answer.http"
        self.answer.write_bytes(b'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n\r\n{"by": "a person"}')
        self.over = threading.Event()
        self.seen = {}      # reference: when it was first found unknown
        self.told = {}      # (way, ruling, result): how often
        self.applied = set()  # references that were settled so
        self.task = None

    def happened(self, reference):
        return any(reference == effect[1].strip('"') for effect in list(self.one.provider.effects))

    def by_webhook(self, reference, ruling):
        body = json.dumps({"operation": reference, "object": {"by": "a webhook"},
                           "status": "succeeded" if ruling == "applied" else "not_found"}).encode()
        hook = Hook(f"http://127.0.0.1:{self.one.gateway.port}/.hapax/webhooks/bank", "stripe", SECRET)
        try:
            answer = post(hook.url, hook.sign(body, "evt"), body)
        except (OSError, Closed):
            return "no answer"
        return answer.json().get("result") or answer.json()["code"]

    def by_pipeline(self, reference, ruling):
        try:
            return settle(self.one, reference, ruling, 201 if ruling == "applied" else None, "",
                          "by the pipeline" if ruling == "applied" else "", cluster=self.cluster)
        except (AssertionError, subprocess.CalledProcessError):
            return "refused"

    def by_person(self, reference, ruling):
        how = ("--applied", "--response", self.answer) if ruling == "applied" else ("--not-applied",)
        try:
            self.operator.on("keys", "resolve", reference, *how, "--reason", "seen in the ledger")
        except AssertionError:
            assert "hapax keys resolve:" in self.operator.err, self.operator.err
            return "refused"
        return "settled"

    def rule(self, reference):
        """One word about one operation, where it is not too early for one."""
        first = self.seen.setdefault(reference, time.monotonic())
        happened = self.happened(reference)
        if not happened and time.monotonic() - first < SETTLE_SECONDS:
            return
        way = self.chance.choice((self.by_webhook, self.by_pipeline, self.by_person))
        ruling = "applied" if happened else "not_applied"
        result = way(reference, ruling)
        self.told[(way.__name__, ruling, result)] = self.told.get((way.__name__, ruling, result), 0) + 1
        if result == "settled" and happened:
            self.applied.add(reference)

    def unknown(self):
        try:
            rows = self.operator.json("keys", "ls", "--state", "unknown", "--limit", 20)["operations"]
        except AssertionError:
            assert self.cluster is not None and "hapax keys ls:" in self.operator.err, self.operator.err
            return []
        return [row["reference"] for row in rows]

    def run(self):
        while not self.over.is_set():
            for reference in self.unknown():
                self.rule(reference)
            self.over.wait(0.05)

    def start(self):
        self.task = Task(self.run)
        return self

    def finish(self):
        self.over.set()
        join([self.task])


def judge_settled(one, settler, ends):
    """What was settled as applied is done for its clients; each way has settled something."""
    keys = {key: reference.strip('"') for _, reference, key in one.provider.effects}
    for operation, end in ends.items():
        if keys.get(operation.key) in settler.applied:
            assert end == "done", f"settled, and {end}: {operation}"
    print(f"{len(settler.applied)} settled as applied; {settler.told}")
    for way in ("by_webhook", "by_pipeline", "by_person"):
        assert any(w == way and result == "settled" for w, _, result in settler.told), (way, settler.told)


@pytest.mark.parametrize("store", STORES)
def test_random_kills(ground, chance, tmp_path, store):
    """Killed again and again, while clients never stop and three settle what they lost."""
    one = ground(merge(settled_config(store, tmp_path), EXPIRING))
    one.gateway.start(SMALL)
    crowd = Crowd(Site(one), chance, CLIENTS, stuck_is_wrong=store == "sqlite", brief_targets=TARGETS).start()
    settler = Settler(one, chance.random()).start()
    try:
        kill_often(one, chance, crowd, KILLS, 0.8)
    finally:
        settler.finish()
        crowd.tell_to_stop()
    ends = conclude(one, crowd, SMALL)
    judge_settled(one, settler, ends)


@pytest.mark.parametrize("store, batch_step", [  # a ruling on PostgreSQL begins without a step
    ("sqlite", "batch_begun"), ("sqlite", "batch_written"), ("sqlite", "batch_committed"),
    ("postgres", "batch_written"), ("postgres", "batch_committed")])
def test_killed_at(ground, tmp_path, store, batch_step):
    """Killed at a step of the very batch that settles, by each of those who go through the
    gateway or beside it; whoever got no answer says it again."""
    one = ground(merge(settled_config(store, tmp_path), {"work": {"inside": False}}))
    operations = [Operation("reset=after") for _ in range(6)]
    one.gateway.start(SMALL)
    join(workload(one.gateway, operations))
    settler = Settler(one, 1)
    references = {key: reference.strip('"') for _, reference, key in one.provider.effects}
    assert len(references) == len(operations), references
    for operation in operations[:4]:
        one.gateway.kill()
        one.gateway.spawn({**SMALL, "HAPAX_CRASH_AT": f"{batch_step}:1"}).wait_ready(may_die=True)
        settler.by_webhook(references[operation.key], "applied")
        assert one.gateway.wait(30) == -9, f"{batch_step} was never passed"
        one.gateway.start(SMALL)
        assert settler.by_webhook(references[operation.key], "applied") in ("settled", "ignored")
    one.gateway.kill()
    assert settler.by_person(references[operations[4].key], "applied") == "settled"
    assert settler.by_pipeline(references[operations[5].key], "applied") == "settled"
    one.gateway.start(SMALL)
    ends = judge(one.gateway, one.provider, operations)
    assert set(ends.values()) == {"done"}, ends
    bodies = [json.loads(next(iter(o.successes))) if o is not operations[5] else None for o in operations]
    assert bodies == 4 * [{"by": "a webhook"}] + [{"by": "a person"}, None]
