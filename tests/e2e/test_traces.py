"""Shows traces: a traceparent is continued to the upstream, a replay is linked to its first
execution, jobs and probes have spans of their own, and what arrives at the collector is read by
the published decoder. And that a collector that is down, slow, closing or talking nonsense costs
dropped spans and one log line, never a request."""
import json
import pathlib
import re
import subprocess
import time

import pytest

from harness import collector as otlp
from harness import postgres
from harness.collector import Collector, answer, attributes
from harness.external_service import CREDENTIAL, ExternalService
from harness.gateway import binary, free_port
from harness.secret import new_key

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
ROUTES = [{"match": "POST /pay/{id}"}]


@pytest.fixture
def collector():
    with Collector() as one:
        yield one


def traces(collector, **more):
    return {"traces": {"endpoint": collector.url, **more}, "routes": ROUTES}


def by_name(spans):
    return {span["name"]: span for span in spans}


def sampled(fields):
    """The trace's id and the parent's in what was sent on."""
    return TRACEPARENT.fullmatch(fields).groups()


def counted(gateway, result):
    return gateway.metrics()[f'hapax_trace_spans_total{{result="{result}"}}']


def wait_metric(gateway, result, count, timeout=20):
    until = time.monotonic() + timeout
    while counted(gateway, result) < count:
        assert time.monotonic() < until, f"{result}: {counted(gateway, result)}, want {count}"
        time.sleep(0.05)


def test_read_by_the_published_decoder(site, collector, tmp_path):
    """Every kind of request; what the decoder reads is what was sent, and holds no secret."""
    folder = tmp_path / "decoder"
    trouble = otlp.install(folder)
    if trouble:
        pytest.skip(trouble)
    one, key = site(traces(collector, service_name="payments-gateway")), new_key()
    for _ in range(2):
        assert one.gateway.post("/pay/s3cr3t-path?q=s3cr3t", key=key, body=b'{"card": "s3cr3t"}',
                                headers=[("traceparent", PARENT)]).status == 200
    one.gateway.post("/pay/1", key=key, body=b"{}")
    one.gateway.get("/items?q=s3cr3t")
    one.gateway.post("/pay/1", key=None)
    one.gateway.call("S3CR3T", "/pay/1", key=new_key())
    one.gateway.post("/pay/1", headers=[("X-Behave", "status=500")])
    collector.wait_spans(16)
    read = otlp.decode(folder, collector.requests)
    spans = [span for request in read for span in otlp.spans_of(request)]
    assert len(spans) == len(collector.spans()) >= 16
    names = [{"key": "service.name", "value": {"stringValue": "payments-gateway"}}]
    assert all(resource["resource"]["attributes"][:1] == names for request in read for resource in request["resourceSpans"])
    assert {"POST /pay/{id}", "GET", "_OTHER", "hapax.reserve", "hapax.upstream", "hapax.complete"} <= {span["name"] for span in spans}
    text = "".join(collector.requests)
    assert "s3cr3t" not in text.lower() and key not in text and "Bearer" not in text
    for span in spans:
        assert int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
        assert abs(int(span["startTimeUnixNano"]) / 1e9 - time.time()) < 300
    first, fields = collector.heads[0]
    assert first == "POST /v1/traces HTTP/1.1" and fields["Content-Type"] == "application/json"


def test_continued_and_linked(site, collector):
    """The first request's spans are below the client's; the upstream is told the span of its own
    exchange; the replay, in a trace of its own, names the first one; and no client sees how."""
    one, key = site(traces(collector)), new_key()
    headers = [("traceparent", PARENT), ("tracestate", "vendor=1"), ("tracestate", "other=2")]
    first = one.gateway.post("/pay/7", key=key, body=b"{}", headers=headers)
    spans = by_name(collector.wait_spans(4))
    request, upstream = spans["POST /pay/{id}"], spans["hapax.upstream"]
    assert (request["traceId"], request["parentSpanId"], request["kind"]) == (TRACE, SPAN, 2)
    for name in ("hapax.reserve", "hapax.upstream", "hapax.complete"):
        assert (spans[name]["traceId"], spans[name]["parentSpanId"]) == (TRACE, request["spanId"])
    seen = one.provider.seen(key=key)[0]
    assert sampled(seen["traceparent"]) == (TRACE, upstream["spanId"], "01")
    assert seen.fields.all("tracestate") == ["vendor=1", "other=2"]
    found = attributes(request)
    assert found["hapax.operation"] == first["Hapax-Operation"] and found["hapax.decision"] == "created"
    assert (found["http.response.status_code"], found["hapax.attempt"]) == ("200", "1")
    assert re.fullmatch("[0-9a-f]{12}", found["hapax.tenant"])
    order = [int(spans[name]["startTimeUnixNano"]) for name in
             ("POST /pay/{id}", "hapax.reserve", "hapax.upstream", "hapax.complete")]
    assert order == sorted(order)

    one.gateway.restart()  # the link is in the store, not in memory
    again = one.gateway.post("/pay/7", key=key, body=b"{}")
    assert again.replayed and again.body == first.body
    assert [name for name, _ in again.fields if name.lower().startswith("hapax-")] == ["Hapax-Operation"]
    collector.wait(lambda c: any(span.get("links") for span in c.spans()))
    replay = next(span for span in collector.spans() if span.get("links"))
    assert replay["links"] == [{"traceId": TRACE, "spanId": request["spanId"], "flags": 1}]
    assert replay["traceId"] != TRACE and attributes(replay)["hapax.decision"] == "replay"
    assert "parentSpanId" not in replay


def test_a_link_without_traces(site, collector):
    """With traces off again, a replay has the stored headers and nothing of the trace."""
    one, key = site(traces(collector)), new_key()
    first = one.gateway.post("/pay/7", key=key, body=b"{}")
    one.gateway.config.pop("traces")
    one.gateway.restart()
    again = one.gateway.post("/pay/7", key=key, body=b"{}")
    assert again.replayed and again.body == first.body
    assert not any("trace" in name.lower() for name, _ in again.fields)


@pytest.mark.skipif(not postgres.chosen(), reason="hapax.begin is PostgreSQL's")
def test_the_line_in_sql():
    """An application that reads a gateway's answer by SQL does not see the gateway's line."""
    cluster = postgres.shared()
    database = cluster.database()
    subprocess.run([binary(), "migrate", "--store", cluster.url(database)], check=True, capture_output=True)
    line, other = f"Hapax-Trace: {PARENT}\r\n", "Content-Type: text/plain\r\n"
    rows = {line: "", other + line: other, other: other, line + other: line + other, "X-" + line: "X-" + line,
            other + "X: \xe9\r\n" + line: other + "X: \xe9\r\n"}
    for stored, wanted in rows.items():
        for encoding in ("utf-8", "latin-1"):
            got = cluster.sql("SELECT encode(convert_to(hapax.header_text("
                              f"'\\x{stored.encode(encoding).hex()}'), 'UTF8'), 'hex')", database)
            assert bytes.fromhex("".join(got)).decode() == wanted, (stored, encoding)


def test_the_access_log_names_the_trace(site, collector, tmp_path):
    """Also where hapax began it; and the tenant is the same there and here."""
    log = tmp_path / "access.log"
    one = site({**traces(collector), "access_log": "json", "access_log_file": str(log)})
    one.gateway.post("/pay/1")
    one.gateway.post("/pay/1", headers=[("traceparent", PARENT)])
    one.gateway.stop()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    spans = [span for span in collector.spans() if span["kind"] == 2]
    assert [line["trace"] for line in lines] == [span["traceId"] for span in spans]
    assert [line["tenant"] for line in lines] == [attributes(span)["hapax.tenant"] for span in spans]
    assert lines[1]["trace"] == TRACE


def test_what_is_sent_on(site, collector):
    """Malformed values begin a new trace and lose their tracestate; a parent that is not sampled
    stays as it came, and makes no span; without one, the share decides."""
    one = site(traces(collector, sample="0"))
    rows = [  # traceparent fields, what the upstream gets (None: a new trace, not sampled)
        ([PARENT[:-2] + "00"], PARENT[:-2] + "00"),
        ([], None),
        (["00-" + "0" * 32 + f"-{SPAN}-01"], None),
        ([PARENT.upper()], None),
        ([PARENT + "-more"], None),
        ([PARENT, PARENT], None),
        ([f"ff-{TRACE}-{SPAN}-01"], None),
        (["garbage"], None),
    ]
    for fields, wanted in rows:
        for method in ("POST", "GET"):
            key = new_key()
            headers = [("traceparent", value) for value in fields] + [("tracestate", "a=1")]
            assert one.gateway.call(method, "/pay/1", key=key, headers=headers).status == 200
            seen = one.provider.seen(key=key)[0]
            got = seen.fields.all("traceparent")
            assert len(got) == 1, (fields, got)
            assert seen["tracestate"] == ("a=1" if wanted else None), fields
            if wanted:
                assert got == [wanted]
            else:
                assert sampled(got[0])[0] != TRACE and sampled(got[0])[2] == "02", (fields, got)
    one.gateway.post("/pay/1", headers=[("traceparent", PARENT)])
    spans = collector.wait_spans(4)
    assert {span["traceId"] for span in spans} == {TRACE}, "only what its client sampled"


def test_unchanged_while_off_or_observing(site, collector):
    """Off, the client's own travels unchanged, even a malformed one; so it does where observe
    mode alters nothing, though there are spans."""
    off, observing = site({"routes": ROUTES}), site({**traces(collector), "observe": True})
    for one in (off, observing):
        for value in (PARENT, "garbage"):
            key = new_key()
            one.gateway.post("/pay/1", key=key, headers=[("traceparent", value), ("tracestate", "a=1")])
            seen = one.provider.seen(key=key)[0]
            assert (seen.fields.all("traceparent"), seen["tracestate"]) == ([value], "a=1")
        key = new_key()
        one.gateway.post("/pay/1", key=key)
        assert one.provider.seen(key=key)[0]["traceparent"] is None
    names = by_name(collector.wait_spans(6))
    assert attributes(names["POST /pay/{id}"])["hapax.decision"] == "observed"


def test_the_share(site, collector):
    """Of requests without a parent, about the share is traced; a reload changes it."""
    one = site(traces(collector, sample="0.5"))
    for _ in range(200):
        one.gateway.get("/items")
    one.gateway.config["traces"]["sample"] = "0"
    one.gateway.write_config()
    since = len(one.gateway.lines)
    one.gateway.signal(1)
    one.gateway.wait_log("reloaded", since=since)
    one.gateway.get("/items", headers=[("traceparent", PARENT)])
    collector.wait(lambda c: any(span["traceId"] == TRACE for span in c.spans()))
    requests = [span for span in collector.spans() if span["kind"] == 2]
    # Five standard deviations of 200 fair coins are 35.
    assert 65 <= len(requests) - 1 <= 135


def test_reload_of_the_collector_is_refused(site, collector):
    one = site(traces(collector))
    one.gateway.config["traces"]["endpoint"] = "http://127.0.0.1:1"
    one.gateway.write_config()
    one.gateway.signal(1)
    one.gateway.wait_log(r'reload_refused.*needs_restart="traces\.endpoint"')


def test_jobs_and_probes(site, collector, tmp_path):
    """A delivery is below its request, whose trace the target is told; a replay of its answer is
    linked to the delivery; a probe has a trace of its own, which its service is told."""
    credential = tmp_path / "credential"
    credential.write_text(CREDENTIAL + "\n")
    credential.chmod(0o600)
    with ExternalService(tmp_path / "external", tls=False, credential=CREDENTIAL, honours_keys=True) as external:
        config = {**traces(collector), "tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"},
                  "trusted_peers": ["127.0.0.1"],
                  "routes": [{"match": "POST /emails", "deliver": "async", "target": "mailer", "wait": "10s"},
                             {"match": "POST /pay/{id}", "reconcile": {
                                 "settle_after": "1s", "confirm_after": "1s", "backoff": "100ms",
                                 "probe": {"get": "/probe?operation={operation}", "applied": [200]}}}],
                  "targets": {"mailer": {"url": external.url + "/api", "credentials": {"file": str(credential)},
                                         "honours_keys": "24h"}}}
        one, key = site(config), new_key()
        how = {"auth": None, "body": b"{}"}
        tenant = ("X-Tenant", "acme")
        done = one.gateway.post("/emails", key=key, headers=[tenant, ("traceparent", PARENT), ("Prefer", "wait=10")], **how)
        assert done.status == 201, done
        collector.wait(lambda c: "hapax.deliver" in by_name(c.spans()))
        again = one.gateway.post("/emails", key=key, headers=[tenant], **how)
        assert again.replayed and not any("trace" in name.lower() for name, _ in again.fields)
        collector.wait(lambda c: any(span.get("links") for span in c.spans()))
        spans = by_name([span for span in collector.spans() if span["traceId"] == TRACE])
        deliver = spans["hapax.deliver"]
        assert deliver["parentSpanId"] == spans["POST /emails"]["spanId"]
        found = attributes(deliver)
        assert (found["hapax.target"], found["hapax.decision"], found["http.response.status_code"]) == ("mailer", "delivered", "201")
        links = [span["links"] for span in collector.spans() if span.get("links")]
        assert {"traceId": TRACE, "spanId": deliver["spanId"], "flags": 1} in links[0]

        lost = one.gateway.post("/pay/9", key=new_key(), headers=[tenant, ("X-Behave", "reset=after")], **how)
        assert lost.status in (502, 504), lost
        collector.wait(lambda c: "hapax.probe" in by_name(c.spans()))
        probe = by_name(collector.spans())["hapax.probe"]
        assert attributes(probe)["hapax.operation"] == lost["Hapax-Operation"]
        asked = [request for request in one.provider.seen() if request.target.startswith("/probe")]
        assert sampled(asked[0]["traceparent"])[:2] == (probe["traceId"], probe["spanId"])
        failed = next(span for span in collector.spans()
                      if span["name"] == "hapax.upstream" and span["status"].get("code") == 2)
        assert attributes(failed)["error.type"] == "no answer"


# Collectors that fail.
BAD = {
    "down": None,
    "closing": "close",
    "no http": b"\x15\x03\x01 what?\r\n\r\n",
    "half an answer": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
    "html": answer(body="<html>Please log in</html>"),
    "refusing": answer("400 Bad Request", '{"code": 3}'),
    "overloaded": answer("503 Service Unavailable", "", "Retry-After: 1\r\n"),
    "redirecting": answer("302 Found", "", "Location: http://127.0.0.1:1/\r\n"),
    "taking none": answer(body='{"partialSuccess": {"rejectedSpans": "999999999999"}}'),
}


@pytest.mark.parametrize("how", BAD)
def test_a_bad_collector(site, how):
    """Requests are answered as ever, there is one log line, and the spans are counted: those
    that cannot be delivered when hapax ends, or are refused for good."""
    port = free_port()
    with Collector() as collector:
        collector.mode = BAD[how]
        config = traces(collector)
        if BAD[how] is None:
            config["traces"]["endpoint"] = f"http://127.0.0.1:{port}"
        one = site(config)
        for _ in range(20):
            assert one.gateway.post("/pay/1").status == 200
        if how == "taking none":
            wait_metric(one.gateway, "dropped", 80)
            one.gateway.events("traces_down", 0)
            return
        one.gateway.wait_log("traces_down")
        if how in ("html", "refusing", "redirecting"):
            wait_metric(one.gateway, "dropped", 80)
        assert counted(one.gateway, "exported") == 0
        began = time.monotonic()
        one.gateway.stop()
        assert time.monotonic() - began < 15
        one.gateway.events("traces_down")


def test_slow_and_back(site, collector):
    """A collector that hangs holds up nothing, costs bounded memory, and is told nothing twice in
    the log; when it is back, spans arrive again, with one more line."""
    collector.mode = "hold"
    one = site({**traces(collector, spans="512", timeout="1s")})
    for _ in range(400):
        assert one.gateway.post("/pay/1").status == 200
    assert counted(one.gateway, "dropped") >= 400 * 4 - 2 * 512, "the buffer and one batch, and no more"
    one.gateway.wait_log("traces_down")
    collector.mode = "take"
    collector.release.set()
    one.gateway.wait_log("traces_up", timeout=60)
    one.gateway.events("traces_down")
    wait_metric(one.gateway, "exported", 512)


def test_stops_beside_a_hanging_collector(site, collector):
    """SIGTERM does not wait for the collector's timeout."""
    collector.mode = "hold"
    one = site(traces(collector, timeout="1m"))
    one.gateway.post("/pay/1")
    collector.wait(lambda c: c.requests)
    began = time.monotonic()
    one.gateway.stop()
    assert time.monotonic() - began < 15


def test_the_last_spans_are_sent(site, collector):
    """What is in memory at the end is flushed."""
    one = site(traces(collector))
    one.gateway.post("/pay/1")
    one.gateway.stop()
    assert len(collector.spans()) == 4


def test_credentials_travel_to_the_collector_only(site, collector, tmp_path):
    secret = tmp_path / "collector.key"
    secret.write_text("s3cr3t-collector\n")
    secret.chmod(0o600)
    one = site(traces(collector, credentials={"header": "X-Api-Key", "file": str(secret)}))
    one.gateway.post("/pay/1")
    collector.wait_spans(4)
    assert collector.heads[0][1]["X-Api-Key"] == "s3cr3t-collector"
    assert "s3cr3t" not in one.gateway.log() and "s3cr3t" not in "".join(collector.requests)
    assert one.provider.seen()[0]["X-Api-Key"] is None


def test_the_example_of_the_guide(site, collector):
    """The lines of docs/guide/traces.md work as they stand, but for the address."""
    text = (ROOT / "docs/guide/traces.md").read_text(encoding="utf-8")
    block = re.search(r"```yaml\n(.*?)```", text, re.S)[1]
    lines = [line.split("#")[0].strip() for line in block.splitlines()]
    options = dict(line.split(": ", 1) for line in lines[lines.index("traces:") + 1:])
    assert options["endpoint"] == "http://127.0.0.1:4318"
    one = site({"traces": {**options, "endpoint": collector.url}})
    one.gateway.post("/pay/1", headers=[("traceparent", PARENT)])
    collector.wait_spans(4)
    assert collector.heads[0][0] == "POST /v1/traces HTTP/1.1"
    assert f'"stringValue":"{options["service_name"]}"' in collector.requests[0]


def test_no_registry_is_named():
    """The lock file holds versions and digests, and no place to get them from."""
    text = (otlp.FOLDER / "package-lock.json").read_text()
    assert "resolved" not in text and "://" not in text
