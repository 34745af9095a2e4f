"""Shows that `hapax work` does what is owed to others apart from any gateway, on
PostgreSQL: it delivers, asks, sweeps and reaps; several share the work; SIGTERM
lets a delivery end, a kill loses nothing; and that `hapax serve` does the same
inside unless it is told not to."""
import signal
import time

import pytest

from conftest import Site, require_program
from harness import postgres, refuse
from harness.collector import Collector
from harness.external_service import ExternalService
from harness.gateway import Gateway, merge
from harness.operator_command import FAILED, USAGE, Operator, outbox_config, owe
from harness.provider import Provider
from harness.work_process import WorkProcess

needs_postgres = pytest.mark.skipif(postgres.programs() is None,
                                    reason="PostgreSQL is not installed")


class Deployment:
    """A gateway that only accepts, the provider, and as many work processes as wanted."""

    def __init__(self, folder, target=None):
        self.folder = folder
        self.external = ExternalService(folder / "external", tls=False)
        self.provider = Provider(folder / "ledger")
        (folder / "gateway").mkdir()
        cluster = postgres.shared()
        config = merge(outbox_config(self.external, target),
                       {"store": cluster.url(cluster.database()), "work": {"inside": False}})
        self.gateway = Gateway(folder / "gateway", self.provider.url, config).start()
        self.operator = Operator(self.gateway)
        self.work_processes = []

    def new_process(self):
        self.work_processes.append(WorkProcess(self.folder, self.gateway, len(self.work_processes)))
        return self.work_processes[-1]

    def work_process(self):
        return self.new_process().start()

    def close(self):
        try:
            for one in [*self.work_processes, self.gateway]:
                one.stop()
        finally:
            for one in [*self.work_processes, self.gateway]:
                one.kill()
            self.provider.close()
            self.external.close()


@pytest.fixture
def deployment(tmp_path):
    require_program()
    made = []

    def found(**how):
        made.append(Deployment(tmp_path, **how))
        return made[-1]

    yield found
    for one in made:
        one.close()


@needs_postgres
def test_signals(deployment):
    """SIGUSR1 and SIGUSR2 mean nothing; a stop that is sent twice is one."""
    work = deployment().work_process()
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        work.signal(number)
        work.wait_log(f"event=signal_ignored signal={int(number)}")
    assert work.admin("/readyz").status == 200
    work.signal(signal.SIGTERM)
    try:
        while work.process.poll() is None:
            work.signal(signal.SIGTERM)
    except ProcessLookupError:
        pass
    assert work.wait() == 0, work.log()


@needs_postgres
def test_no_thread_for_the_drain(deployment, tmp_path):
    """The main thread drains where the system has no other one."""
    work, full = deployment().work_process(), tmp_path / "full"
    work.stop()
    refused = dict(word.split("=", 1) for word in refuse.wrap(tmp_path, **{"while": full})[1:])
    work.start(refused)
    full.touch()
    work.signal(signal.SIGTERM)
    work.wait_log("level=warn event=drain_blocks")
    assert work.wait() == 0, work.log()


@needs_postgres
def test_it_delivers_what_a_gateway_only_accepts(deployment):
    """Nothing is sent without a work process; the first one sends what waited."""
    here = deployment()
    reference = owe(here.gateway)
    assert [job["state"] for job in here.operator.jobs()] == ["queued"]
    work = here.work_process()
    work.wait_log(f"event=job_delivered .*{reference}")
    assert [job["state"] for job in here.operator.jobs()] == ["done"]
    shown = here.gateway.get(f"/.hapax/operations/{reference}", headers=[("X-Tenant", "alice")])
    assert (shown.status, shown.json()["state"]) == (200, "completed")
    assert len(here.external.ledger.effects(operation=reference)) == 1
    assert not any("event=job_delivered" in line for line in here.gateway.lines)


@needs_postgres
def test_it_continues_the_trace(deployment):
    """A delivery by another process is below the request that a gateway accepted; a process that
    ends sends its spans before."""
    with Collector() as collector:
        here = deployment()
        here.gateway.restart({"traces": {"endpoint": collector.url}})
        reference = owe(here.gateway)
        work = here.work_process()
        work.wait_log(f"event=job_delivered .*{reference}")
        work.stop()
        here.gateway.stop()
        found = {span["name"]: span for span in collector.spans()}
        request, deliver = found["POST /owed"], found["hapax.deliver"]
        assert (deliver["traceId"], deliver["parentSpanId"]) == (request["traceId"], request["spanId"])


@needs_postgres
def test_it_needs_no_upstream(deployment):
    """Jobs go to their targets: the file of a process that only delivers names no API."""
    here = deployment()
    reference = owe(here.gateway)
    work = here.new_process()
    del work.config["upstream"]
    work.start().wait_log(f"event=job_delivered .*{reference}")
    assert len(here.external.ledger.effects(operation=reference)) == 1


@needs_postgres
def test_several_work_processes_share_the_jobs(deployment):
    """Every job is sent once, whoever takes it."""
    here = deployment(target={"concurrency": 2})
    here.work_process()
    here.work_process()
    references = [owe(here.gateway) for _ in range(60)]
    here.external.wait(lambda: len(here.external.ledger.effects()) >= 60, timeout=60)
    assert sorted(e.operation for e in here.external.ledger.effects()) == sorted(references)


@needs_postgres
def test_admin(deployment):
    """/healthz, /readyz and /metrics where --admin says, with the target's counters and
    the store's, and without those of requests."""
    here = deployment()
    work = here.work_process()
    assert work.admin("/healthz").status == 200 and work.admin("/readyz").status == 200
    reference = owe(here.gateway)
    work.wait_log(f"event=job_delivered .*{reference}")
    metrics = work.metrics()
    assert metrics['hapax_jobs_total{target="bank",result="delivered"}'] == 1
    assert metrics["hapax_store_up"] == 1
    assert not any(name.startswith("hapax_requests_total") for name in metrics)


@needs_postgres
def test_sigterm_lets_a_delivery_end(deployment):
    """What is under way is finished and stored; the next job is left queued."""
    here = deployment(target={"timeout": "30s", "concurrency": 1})
    work = here.work_process()
    here.external.fault("none", before_gate="slow")
    first = owe(here.gateway)
    here.external.wait(lambda: here.external.ledger.sends(operation=first))
    second = owe(here.gateway)
    work.signal(signal.SIGTERM)
    work.wait_log("event=draining")
    assert work.admin("/readyz").status == 503
    here.external.release("slow")
    assert work.wait() == 0
    states = {job["operation"]: job["state"] for job in here.operator.jobs()}
    assert states == {first: "done", second: "queued"}


@needs_postgres
def test_a_killed_work_process_loses_nothing(deployment):
    """With honours_keys, another sends it again under the same key: one effect."""
    here = deployment(target={"honours_keys": "1h", "attempts": 5, "timeout": "1s",
                        "connect_timeout": "1s"})
    here.external.set(honours_keys=True)
    here.external.fault("none", after_gate="killed")
    work = here.work_process()
    reference = owe(here.gateway)
    here.external.wait(lambda: here.external.ledger.effects(operation=reference))
    work.kill()
    work.process = None
    here.external.calm()
    other = here.work_process()
    other.wait_log(f"event=job_delivered .*{reference}", timeout=60)
    sends = here.external.ledger.sends(operation=reference)
    assert len({send.key for send in sends}) == 1 and len(sends) >= 2
    assert len(here.external.ledger.effects(operation=reference)) == 1


def test_on_sqlite_serve_does_it(tmp_path):
    """It says so, and why, and starts nothing."""
    require_program()
    gateway = Gateway(tmp_path, "http://127.0.0.1:9",
                      {"store": f"sqlite:{tmp_path}/hapax.db", "admin": "off"})
    operator = Operator(gateway)
    text = operator.run("work", "--config", gateway.write_config(), code=FAILED)
    assert "needs a PostgreSQL store" in text and "hapax serve itself does the background work" in text
    assert not (tmp_path / "hapax.db").exists()
    assert "--config FILE is missing" in operator.run("work", code=USAGE)
    assert "one argument too many" in operator.run("work", "x", code=USAGE)
    assert operator.run("work", "--config", "/no/such/file", code=FAILED)


def test_serve_works_inside(tmp_path):
    """Unless work.inside is false; what is left is delivered by the next that may."""
    require_program()
    with ExternalService(tmp_path / "external", tls=False) as external:
        (tmp_path / "site").mkdir()
        config = outbox_config(external, work={"inside": False})
        with Site(tmp_path / "site", config) as site:
            operator = Operator(site.gateway)
            reference = owe(site.gateway)
            assert [job["state"] for job in operator.jobs()] == ["queued"]
            site.gateway.restart({"work": {"inside": True}})
            site.gateway.wait_log(f"event=job_delivered .*{reference}")
            assert [job["state"] for job in operator.jobs()] == ["done"]
            assert len(external.ledger.effects()) == 1


def test_finished_jobs_are_cleared(tmp_path):
    """After jobs.retention. A dead letter stays as long as its operation waits for it;
    when that is given up, its job is discarded, and goes too."""
    require_program()
    with ExternalService(tmp_path / "external", tls=False) as external:
        (tmp_path / "site").mkdir()
        config = outbox_config(external, jobs={"retention": "1s"},
                               defaults={"retention": "1s"})
        with Site(tmp_path / "site", config) as site:
            operator = Operator(site.gateway)
            external.fault("too_many")
            dead = owe(site.gateway)
            site.gateway.wait_log(f"event=job_dead .*{dead}")
            done = owe(site.gateway)
            site.gateway.wait_log(f"event=job_delivered .*{done}")
            end = time.monotonic() + 30
            while operator.jobs():
                assert time.monotonic() < end, operator.jobs()
            text = operator.on("keys", "show", dead, code=FAILED)
            assert "job_postponed" in text and "abandoned" in text
