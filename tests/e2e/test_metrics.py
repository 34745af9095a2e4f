"""Shows that a published parser reads the page of metrics, in both formats, and that requests
are counted by route and class of status, over all loops."""
import time

import pytest

from harness import check
from harness.secret import new_key
from harness.wire import connect, request_bytes

openmetrics = pytest.importorskip("prometheus_client.openmetrics.parser")
prometheus = pytest.importorskip("prometheus_client.parser")

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
CONFIG = {"loops": 2, "routes": [{"match": "POST /pay"}, {"match": "POST a.example/x"}]}


def page(gateway, accept=None):
    """{name of the family: family}, by the parser of the format that came."""
    fields = [("Accept", accept)] if accept else []
    with connect(("127.0.0.1", gateway.admin_port)) as wire:
        wire.send(request_bytes("GET", "/metrics", fields, host=f"127.0.0.1:{gateway.admin_port}"))
        answer = wire.answer()
    parser = openmetrics if answer["Content-Type"] == OPENMETRICS else prometheus
    families = list(parser.text_string_to_metric_families(answer.body.decode()))
    assert answer["Content-Type"] == (OPENMETRICS if accept else "text/plain; version=0.0.4; charset=utf-8")
    assert len({f.name for f in families}) == len(families)
    return {family.name: family for family in families}


def values(family, **labels):
    """The sum of the samples with these labels."""
    return sum(s.value for s in family.samples if labels.items() <= s.labels.items())


@pytest.mark.parametrize("accept", [None, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"])
def test_a_published_parser_reads_it(shared, accept):
    """Every sample has a family, a series stands once, and no label is of a loop."""
    shared.gateway.post()
    families = page(shared.gateway, accept)
    assert len(families) > 50
    for family in families.values():
        series = [(s.name, tuple(sorted(s.labels.items()))) for s in family.samples]
        assert len(set(series)) == len(series), family.name
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family.name
        assert not any("loop" in s.labels for s in family.samples), family.name


def test_by_route_and_status(shared):
    """Each answer counts once, at its route and the class of its status."""
    gateway, key = shared.gateway, new_key()
    before = page(gateway)["hapax_requests"]
    assert gateway.post("/pay", key=key).status == gateway.post("/pay", key=key).status == 200
    assert gateway.post("/pay", key=None).status == 400
    assert gateway.get("/x", behave="status=503").status == 503
    assert gateway.get("/.hapax/policy").status == 200
    gateway.raw(request_bytes("POST", "/x", [("Idempotency-Key", new_key())], b"", host="a.example"))

    def counted():
        after = page(gateway)["hapax_requests"]
        return [values(after, **row) - values(before, **row) for row in (
            {"route": "POST /pay", "status": "2xx"}, {"route": "POST /pay", "status": "4xx"},
            {"route": "defaults", "status": "5xx"}, {"route": "(own)", "status": "2xx"},
            {"route": "POST a.example/x", "status": "2xx"})]

    check.until(lambda: counted() == [2, 1, 1, 1, 1], "every answer is counted")
    times = page(gateway)["hapax_request_seconds"]
    bounds = {float(s.labels["le"]) for s in times.samples if s.name.endswith("_bucket")}
    assert max(b for b in bounds if b != float("inf")) >= 120
    assert sum(s.value for s in times.samples if s.name.endswith("_count")) == \
        sum(s.value for s in page(gateway)["hapax_requests"].samples)


def test_the_process(shared):
    """What Prometheus wants to know of every process."""
    families = page(shared.gateway, OPENMETRICS)
    one = {name: family.samples[0].value for name, family in families.items() if len(family.samples) == 1}
    assert families["hapax_build_info"].samples[0].labels["version"]
    assert one["hapax_build_info"] == 1
    assert abs(time.time() - one["process_start_time_seconds"]) < 600
    assert 0 < one["process_cpu_seconds"] < 600
    assert 1 << 20 < one["process_resident_memory_bytes"] <= one["process_virtual_memory_bytes"]
    assert 5 < one["process_open_fds"] < one["process_max_fds"]
