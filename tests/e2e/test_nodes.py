"""Shows that several gateways on one PostgreSQL act as one: one executes, the
others refuse or replay; a node that dies leaves a lease that another finds; a
database that is away or busy with others stops nobody for long."""
import os
import re
import select
import signal
import subprocess
import threading

import pytest

from conftest import require_program
from harness import check, postgres
from harness.application import Service, answer
from harness.gateway import Gateway, binary, merge
from harness.provider import Provider
from harness.secret import new_key

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


class Nodes:
    """Gateways before one provider, on one database."""

    def __init__(self, folder, cluster, config=None, count=2):
        self.cluster = cluster
        self.database = cluster.database()
        self.provider = Provider(folder / "ledger")
        self.gateways = []
        for number in range(count):
            (folder / str(number)).mkdir()
            self.gateways.append(Gateway(folder / str(number), self.provider.url,
                                         merge({"store": cluster.url(self.database)}, config or {})))

    def sql(self, text):
        return self.cluster.sql(text, self.database)

    def close(self):
        try:
            for gateway in self.gateways:
                gateway.stop()
        finally:
            for gateway in self.gateways:
                gateway.kill()
            self.provider.close()


@pytest.fixture
def nodes(tmp_path):
    """nodes(config) starts two gateways on a database of their own."""
    require_program()
    made = []

    def start(config=None, cluster=None):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        one = Nodes(folder, cluster or postgres.shared(), config)
        made.append(one)
        for gateway in one.gateways:
            gateway.start()
        return one

    yield start
    for one in made:
        one.close()


@pytest.fixture
def cluster():
    """A server of this test's own, which may be stopped."""
    one = postgres.Cluster()
    yield one
    one.close()


class Held:
    """A request under way on one node, held at the provider."""

    def __init__(self, nodes, gateway, path="/pay", behave=""):
        self.key = new_key()
        self.gate = nodes.provider.gate(self.key)
        self.wire = gateway.connect()
        self.wire.send(gateway.request("POST", path, key=self.key, behave=f"hold={self.key}; {behave}"))
        self.gate.wait_arrived()

    def finish(self):
        self.gate.release()
        with self.wire:
            return self.wire.answer()


def test_one_executes(nodes):
    """While A executes, B says 409; afterwards both give A's answer."""
    both = nodes()
    a, b = both.gateways
    held = Held(both, a)
    check.problem(b.post(key=held.key), "idempotency_key_in_progress")
    check.problem(b.post(key=held.key, body=b"{}"), "idempotency_key_reused")
    done = held.finish()
    assert done.status == 200
    for gateway in (a, b):
        check.same_answer(done, gateway.post(key=held.key))
    assert len(both.provider.ledger(held.key)) == 1


def test_wait(nodes):
    """Who waits on B gets the answer that A stored; a waiter never executes."""
    both = nodes({"routes": [{"match": "POST /wait", "concurrent": "wait", "wait": "10s"}]})
    a, b = both.gateways
    held = Held(both, a, "/wait")
    waiters = [b.connect() for _ in range(5)]
    for wire in waiters:
        wire.send(b.request("POST", "/wait", key=held.key))
    assert select.select([w.sock for w in waiters], [], [], 0.3)[0] == [], "answered too early"
    done = held.finish()
    for wire in waiters:
        with wire:
            check.same_answer(done, wire.answer())
    assert len(both.provider.ledger(held.key)) == 1


@pytest.mark.parametrize("behave, code", [("status=429", "idempotency_key_in_progress"),
                                          ("reset=after", "idempotency_outcome_unknown")])
def test_waited_in_vain(nodes, behave, code):
    """An attempt of A's that ends without an answer ends the wait on B too."""
    both = nodes({"routes": [{"match": "POST /wait", "concurrent": "wait", "wait": "10s"}]})
    a, b = both.gateways
    held = Held(both, a, "/wait", behave=behave)
    with b.connect() as wire:
        wire.send(b.request("POST", "/wait", key=held.key))
        assert select.select([wire.sock], [], [], 0.3)[0] == [], "answered too early"
        held.finish()
        check.problem(wire.answer(), code)
    assert len(both.provider.seen(key=held.key)) == 1


def test_no_standby_is_told(nodes):
    """Without a synchronous standby, the log says once what a failover may do."""
    line = nodes().gateways[0].wait_log("event=store_warning")
    assert "synchronous standby" in line and "failover" in line


def test_storm(nodes):
    """However many send one key to both at once, it happens once."""
    both = nodes()
    keys = [new_key() for _ in range(10)]
    seen = {key: [] for key in keys}

    def send(gateway):
        for key in keys:
            seen[key].append(gateway.post(key=key, timeout=30).status)

    threads = [threading.Thread(target=send, args=(both.gateways[n % 2],)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for key in keys:
        assert len(both.provider.ledger(key)) == 1, seen[key]
        assert set(seen[key]) <= {200, 409} and 200 in seen[key], seen[key]


def test_a_node_dies(nodes):
    """The lease of a dead node is found by another's sweeper."""
    both = nodes({"defaults": {"lease": "1s"}, "sweep": {"every": "1s"}})
    a, b = both.gateways
    held = Held(both, a)
    a.kill()
    a.process = None
    b.wait_log("event=lease_lost")
    check.problem(b.post(key=held.key), "idempotency_outcome_unknown")
    held.gate.release()
    held.wire.close()
    a.start()
    check.problem(a.post(key=held.key), "idempotency_outcome_unknown")
    assert len(both.provider.ledger(held.key)) == 1


@pytest.mark.parametrize("route, state", [({}, "unknown"),
                                          ({"on_lost": "resume", "fenced": True}, "in_progress")])
def test_a_retry_finds_a_lost_lease(nodes, route, state):
    """A retry finds the lease of a dead node before a sweeper does: counted once, told once."""
    both = nodes({"defaults": {"lease": "2s"}, "sweep": {"every": "1h"},
                  "routes": [{"match": "POST /pay", **route}]})
    a, b = both.gateways
    held = Held(both, a)
    a.kill()
    a.process = None
    held.gate.release()
    held.wire.close()
    names = ("hapax_leases_lost_total", 'hapax_attempt_errors_total{error="lease_lost"}')
    assert [b.metrics()[name] for name in names] == [0, 0]
    check.until(lambda: b.post(key=held.key).json().get("code") != "idempotency_key_in_progress",
                "the lease has run out")
    assert b.wait_log("event=lease_lost").endswith(f" state={state}")
    b.post(key=held.key)
    assert [b.metrics()[name] for name in names] == [1, 1]
    b.events("lease_lost")


def test_a_slow_request_keeps_its_lease(nodes):
    """As long as the upstream's connection lives, other nodes leave it alone."""
    both = nodes({"defaults": {"lease": "1s"}, "sweep": {"every": "1s"}})
    a, b = both.gateways
    held = Held(both, a)
    check.until(lambda: both.sql("SELECT 1 FROM hapax.lease"), "the lease is renewed")
    renewed = both.sql("SELECT until FROM hapax.lease")
    check.until(lambda: both.sql("SELECT until FROM hapax.lease") != renewed, "and again")
    check.problem(b.post(key=held.key), "idempotency_key_in_progress")
    assert held.finish().status == 200
    assert b.post(key=held.key).status == 200


def test_an_operators_word_reaches_every_node(nodes):
    """What `hapax keys forget` removes, no node replays, at once where none is kept in memory."""
    both = nodes({"cache": "0"})
    a, b = both.gateways
    key = new_key()
    reference = a.post(key=key)["Hapax-Operation"]
    assert b.post(key=key)["Idempotent-Replayed"] == "true"
    done = subprocess.run([binary(), "keys", "forget", "--store", a.config["store"], reference,
                           "--reason", "a test"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b.post(key=key)["Idempotent-Replayed"] is None
    assert len(both.provider.ledger(key)) == 2


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
def test_the_database_goes_and_comes(nodes, cluster, how):
    """Meanwhile 503 before anything happens; afterwards all is as before."""
    both = nodes(cluster=cluster)
    before, meanwhile = new_key(), new_key()
    done = both.gateways[0].post(key=before)
    assert done.status == 200
    cluster.stop(how)
    for gateway in both.gateways:
        for _ in range(5):
            check.problem(gateway.post(key=meanwhile), "idempotency_store_unavailable")
        gateway.wait_log("event=store_down")
    assert both.provider.ledger(meanwhile) == []
    cluster.start()
    for gateway in both.gateways:
        check.until(lambda: gateway.post(key=meanwhile).status == 200, "served again")
        check.same_answer(done, gateway.post(key=before))
    assert len(both.provider.ledger(meanwhile)) == 1


def test_an_answer_outlives_the_database(nodes, cluster):
    """An answer that arrives while the database is away is stored when it is back."""
    both = nodes({"timeouts": {"store": "500ms"}}, cluster=cluster)
    held = Held(both, both.gateways[0])
    cluster.stop(signal.SIGQUIT)
    check.problem(held.finish(), "upstream_outcome_unknown")
    cluster.start()
    check.until(lambda: both.gateways[1].post(key=held.key).status == 200, "the answer is there")
    assert len(both.provider.ledger(held.key)) == 1


def test_an_application_holds_a_row(nodes):
    """An application's open transaction slows no other key, and its own is put off."""
    both = nodes()
    a, b = both.gateways
    held = Held(both, a)
    app = both.cluster.application(both.database)
    app.stdin.write("BEGIN;\nSELECT 'locked' FROM hapax.operation FOR UPDATE;\n")
    assert app.stdout.readline().strip() == "locked"
    for gateway in (a, b):
        assert gateway.post().status == 200
    check.problem(b.post(key=held.key), "idempotency_key_in_progress")
    held.gate.release()
    assert a.post().status == 200
    app.stdin.write("COMMIT;\n\\q\n")
    app.communicate()
    with held.wire:
        assert held.wire.answer().status == 200
    assert b.post(key=held.key)["Idempotent-Replayed"] == "true"


def test_a_password_stays_out_of_the_log(nodes):
    """Stopping checks the log; here the password is one of the words looked for."""
    cluster = postgres.shared()
    one = nodes({"store": cluster.url(cluster.database()).replace("hapax@", "hapax:s3cr3t@")})
    ready = one.gateways[0].wait_log("event=ready")
    assert re.search(r"store=postgres://hapax@/test\d+\?host=", ready), ready


# ---- whose keys they are ----

def test_one_service_at_several_addresses(tmp_path):
    """Gateways of one service, each before another address of it: a slash more,
    a name instead of a number, another instance on another port. A key that any
    of them took is executed once, and replayed by all; a gateway of another
    service has keys of its own."""
    require_program()
    url = postgres.shared().url(postgres.shared().database())
    blue, green = Provider(tmp_path / "ledger"), Provider(tmp_path / "ledger")
    places = [blue.url, f"{blue.url}/", f"http://localhost:{blue.port}", green.url]
    ours, started = [], []

    def gateway(upstream, name):
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Gateway(folder, upstream, {"store": url, "upstream_name": name}))
        return started[-1].start()

    try:
        ours = [gateway(place, "payments") for place in places]
        other = gateway(blue.url, "refunds")
        for number in range(len(ours)):
            key = new_key()
            first = ours[number].post(key=key)
            assert (first.status, first.replayed) == (200, False), first
            for one in ours:
                check.same_answer(first, one.post(key=key))
            assert len(blue.ledger(key)) == 1, places[number]
        assert not other.post(key=key).replayed
        assert len(blue.ledger(key)) == 2
        for one in started:
            assert "event=upstream_" not in one.log()
            one.stop()
    finally:
        for one in started:
            one.kill()
        blue.close()
        green.close()


def test_nobody_asks_about_another_services_operation(tmp_path):
    """Two services with the same routes on one database. What became of an
    operation is asked of its own service alone, even while only the other's
    gateway runs: that one would say that it never happened."""
    require_program()
    url = postgres.shared().url(postgres.shared().database())
    services, gateways = [], []

    def work(service):
        def answered(request):
            if request.method == "GET":
                known = request.target.partition("=")[2] in {line[0] for line in service.ledger()}
                return answer(200 if known else 404)
            service.effect(request)
            return None if request["X-Behave"] else answer(201)
        return answered

    def completed(gateway, answer):
        reference = answer["Hapax-Operation"]
        check.until(lambda: gateway.operation(reference).json()["state"] == "completed", "it is settled", 60)

    route = {"match": "POST /pay", "reconcile": {
        "settle_after": "1s", "confirm_after": "1s", "backoff": "100ms", "backoff_max": "500ms",
        "probe": {"get": "/pay?operation={operation}", "applied": [200], "not_applied": [404], "timeout": "1s"}}}
    try:
        for name in ("payments", "refunds"):
            (tmp_path / name).mkdir()
            services.append(Service(tmp_path / name / "ledger"))
            services[-1].work = work(services[-1])
            gateways.append(Gateway(tmp_path / name, services[-1].url,
                                    {"store": url, "upstream_name": name, "routes": [route]}))
        (payments, refunds), (ours, other), key = services, gateways, new_key()
        ours.start()
        lost = ours.post(key=key, behave="reset")
        check.problem(lost, "upstream_outcome_unknown", 502)
        ours.kill()
        other.start()
        theirs = other.post(behave="reset")
        check.problem(theirs, "upstream_outcome_unknown", 502)
        completed(other, theirs)
        asked = {r.target.partition("=")[2] for r in refunds.seen() if r.method == "GET"}
        assert asked == {theirs["Hapax-Operation"]}
        ours.start()
        completed(ours, lost)
        assert ours.post(key=key).status == 409   # it happened; its answer is not known
        assert len(payments.ledger(key)) == 1
        for one in gateways:
            one.stop()
    finally:
        for one in gateways:
            one.kill()
        for one in services:
            one.close()


def test_a_shared_database_wants_the_upstreams_name(tmp_path):
    """Without `upstream_name`, `serve`, `work` and `check` refuse, with the line to
    write and why; a flag says it as well. Who only looks into the store is not
    asked."""
    require_program()
    url = postgres.shared().url(postgres.shared().database())
    (tmp_path / "hapax.yaml").write_text(f"upstream: http://127.0.0.1:9\nstore: {url}\nlisten: 127.0.0.1:0\n"
                                         "admin: off\n", encoding="ascii")

    def run(command, *more):
        done = subprocess.run([binary(), *command.split(), "--config", "hapax.yaml", *more], cwd=tmp_path, timeout=60,
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    for command in ("serve", "work", "check"):
        code, said = run(command)
        assert code == 1 and "upstream_name: is missing" in said, said
        for words in ("write e.g. upstream_name: payments", "--upstream-name payments",
                      "the same name for all gateways of one service", "another name for another service"):
            assert words in said, (words, said)
    assert run("check", "--upstream-name", "payments")[0] == 0
    subprocess.run([binary(), "migrate", "--store", url], check=True, capture_output=True)
    code, said = run("keys ls")
    assert code == 0 and "upstream_name" not in said, said


def test_migrate(tmp_path):
    """The schema is made, found, and not made again."""
    require_program()
    url = postgres.shared().url(postgres.shared().database()).replace("hapax@", "hapax:s3cr3t@")
    rows = [(["--check"], 1, "run `hapax migrate --store URL`"), ([], 0, "is new: schema"),
            ([], 0, "is up to date: schema"), (["--check"], 0, "is up to date")]
    for arguments, code, said in rows:
        done = subprocess.run([binary(), "migrate", "--store", url, *arguments], cwd=tmp_path,
                              capture_output=True, text=True, check=False)
        both = done.stdout + done.stderr
        assert done.returncode == code and said in both and "s3cr3t" not in both, both


def test_a_role_with_only_the_rights_it_needs(nodes):
    """What hapax_gateway has, and nothing else, is enough to serve, also where an expired key is used again."""
    cluster = postgres.shared()
    database = cluster.database()
    url = cluster.gateway_url(database)
    both = nodes({"store": url, "sweep": {"every": "1s"}, "reap": {"every": "1h"}, "history": {"retention": "30d"},
                  "routes": [{"match": "POST /soon", "retention": "1s"}]})
    key = new_key()
    assert both.gateways[0].post("/soon", key=key).status == 200
    check.until(lambda: not both.gateways[1].post("/soon", key=key).replayed, "the key has expired, and runs again")
    assert len(both.provider.ledger(key)) == 2
    assert cluster.sql("SELECT count(*) FROM hapax.history", database) == ["1"]
    check.problem(both.gateways[0].post(key=key, behave="reset=after"), "upstream_outcome_unknown", 502)
    assert both.gateways[1].post().status == 200
    # Nobody can be asked about it: the reconciler leaves it to a person, by the same rights.
    check.until(lambda: cluster.sql("SELECT what FROM hapax.event ORDER BY seq", database)[-2:] ==
                ["outcome_lost", "left_to_a_person"], "the loss is told, and left to a person")


def test_a_role_that_may_not_create(tmp_path):
    """Who may not make the schema is told what to run."""
    require_program()
    cluster = postgres.shared()
    database = cluster.database()
    cluster.sql("DROP ROLE IF EXISTS nobody_here; CREATE ROLE nobody_here LOGIN")
    one = Gateway(tmp_path, "http://127.0.0.1:9",
                  {"store": cluster.url(database).replace("hapax@", "nobody_here@")})
    one.spawn()
    assert one.wait(20) == 1
    one.wait_log("hapax migrate")
    assert not os.path.exists(tmp_path / "hapax.db")
