"""Shows that `hapax coverage` says which operations of an API carry no key: from
descriptions, with what fails and what does not, and in every form of report."""
import json
import re
import subprocess

import pytest

from conftest import require_program
from harness.gateway import ROOT, binary

OK, GAPS, UNREADABLE = 0, 1, 2

API = """\
openapi: 3.0.3
info: {title: Shop, version: '1'}
servers: [{url: 'https://api.example.com/v1'}]
x-speakeasy-retries: {strategy: backoff}
paths:
  /payments:
    post:
      tags: [money]
      parameters:
        - {in: header, name: Idempotency-Key, required: true, schema: {type: string, maxLength: 64}}
  /payments/{id}/refunds:
    post:
      tags: [money]
  /notes:
    post:
      tags: [notes]
      description: Takes an Idempotency-Key, says the text.
    put:
      tags: [notes]
"""


@pytest.fixture(autouse=True)
def program():
    require_program()


@pytest.fixture
def coverage(tmp_path):
    """Runs the command in a folder with api.yaml; its output, and its messages, as text."""
    (tmp_path / "api.yaml").write_text(API, encoding="utf-8")

    def run(*arguments, code):
        done = subprocess.run([binary(), "coverage", *map(str, arguments)], capture_output=True,
                              timeout=60, cwd=tmp_path, check=False, encoding="utf-8")
        assert done.returncode == code, f"exit {done.returncode}, not {code}:\n{done.stdout}{done.stderr}"
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
        return done
    run.folder = tmp_path
    return run


def test_text(coverage):
    """A bar for each tag and the total; each operation with its class, file and line."""
    lines = coverage("api.yaml", code=GAPS).stdout.splitlines()
    assert "money  ██████████░░░░░░░░░░  1 of 2, 50 %" in lines
    assert "notes  ░░░░░░░░░░░░░░░░░░░░  0 of 1, 0 %; 1 safe by design" in lines
    assert "total  ██████░░░░░░░░░░░░░░  1 of 3, 33 %; 1 safe by design" in lines
    assert "  required  POST   /v1/payments  api.yaml:10  Idempotency-Key: a required parameter" in lines
    assert "  absent    POST   /v1/payments/{id}/refunds  api.yaml:12  no key is declared" in lines
    assert "  prose     POST   /v1/notes  api.yaml:17  the text speaks of a key" in lines
    assert "  safe      PUT    /v1/notes  api.yaml:18  the method is idempotent" in lines
    assert any(line.startswith("error: retries_without_key: POST /v1/payments/{id}/refunds  api.yaml:4")
               for line in lines)
    assert lines[-1] == "gaps: 4"


def test_json(coverage):
    report = json.loads(coverage("api.yaml", "--json", code=GAPS).stdout)
    assert report["total"] == {"needing": 3, "covered": 1, "safe": 1}
    first = report["operations"][0]
    assert (first["method"], first["path"], first["class"]) == ("POST", "/v1/payments", "required")
    assert first["key"] == {"where": "header", "name": "Idempotency-Key", "required": True,
                            "max_length": 64, "file": "api.yaml", "line": 10,
                            "reason": "a required parameter"}
    assert report["gaps"] == 4 and report["errors"] == []


def test_sarif(coverage):
    """Every result has a rule of the driver and a place in a file; known ones are suppressed."""
    (coverage.folder / "known").write_text("POST /v1/notes key_in_prose\n", encoding="utf-8")
    report = json.loads(coverage("api.yaml", "--sarif", "--baseline", "known", code=GAPS).stdout)
    assert report["version"] == "2.1.0"
    run = report["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "api.yaml"
        assert place["region"]["startLine"] in (4, 12, 17)
    assert [r["ruleId"] for r in run["results"] if "suppressions" in r] == ["key_in_prose"]


def test_routes_can_be_pasted(coverage):
    """`hapax check` takes what --routes prints."""
    routes = coverage("api.yaml", "--routes", code=OK).stdout
    assert '  - match: "POST /v1/payments"\n    key: required\n' in routes
    assert '  - match: "POST /v1/payments/{id}/refunds"\n    key: optional\n' in routes
    assert "PUT" not in routes
    config = coverage.folder / "hapax.yaml"
    config.write_text(f"upstream: http://127.0.0.1:1\n{routes}", encoding="utf-8")
    done = subprocess.run([binary(), "check", "--config", config], capture_output=True, check=False,
                          timeout=60, encoding="utf-8")
    assert done.returncode == OK and "POST /v1/payments/{id}/refunds" in done.stdout, done.stdout


def test_ratchet(coverage):
    """A printed baseline accepts what is there; a new gap fails, and so does a stale entry."""
    baseline = coverage.folder / "known"
    baseline.write_text(coverage("api.yaml", "--print-baseline", code=OK).stdout, encoding="utf-8")
    coverage("api.yaml", "--baseline", "known", code=OK)
    api = coverage.folder / "api.yaml"
    api.write_text(API + "  /more:\n    post: {}\n", encoding="utf-8")
    assert "gaps: 2; in the baseline: 4" in coverage("api.yaml", "--baseline", "known", code=GAPS).stdout
    api.write_text(API.replace("description: Takes", "x-hapax-safe: Takes"), encoding="utf-8")
    done = coverage("api.yaml", "--baseline", "known", code=GAPS)
    assert "gaps: 0" in done.stdout
    assert "POST /v1/notes key_in_prose\n" in done.stderr and "remove these lines" in done.stderr
    baseline.write_text("POST\n", encoding="utf-8")
    assert "known:1: is no entry" in coverage("api.yaml", "--baseline", "known", code=UNREADABLE).stderr
    coverage("api.yaml", "--baseline", "nowhere", code=UNREADABLE)


def test_critical(coverage):
    """Only what matches fails."""
    done = coverage("api.yaml", "--critical", "POST */refunds", code=GAPS)
    assert "gaps: 2; not critical: 2" in done.stdout
    coverage("api.yaml", "--critical", "/v1/payments", code=OK)
    coverage("api.yaml", "--critical", "/v1/payments", "--critical", "/v1/notes", code=GAPS)


def test_broken_file(coverage):
    """The mistake is told with its line, the other files are still read, and it fails."""
    (coverage.folder / "broken.json").write_text('{"openapi": "3.0.0",\n"paths": {\n', encoding="utf-8")
    (coverage.folder / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    done = coverage("broken.json", "missing.yaml", "other.yaml", "api.yaml", code=UNREADABLE)
    assert "broken.json:3: this is not JSON" in done.stderr
    assert "missing.yaml: there is no such file" in done.stderr
    assert "other.yaml:1: is no description of an API" in done.stderr
    assert "POST   /v1/payments " in done.stdout
    nothing = coverage("missing.yaml", code=UNREADABLE)
    assert nothing.stdout == "" and "missing.yaml: there is no such file" in nothing.stderr


def test_misuse(coverage):
    assert "nothing to read" in coverage(code=UNREADABLE).stderr
    assert "unknown flag" in coverage("--nonsense", code=UNREADABLE).stderr


def test_control_bytes_stay_off_the_terminal(coverage):
    (coverage.folder / "odd.yaml").write_text(
        'openapi: 3.0.0\npaths:\n  "/a\\e[31m":\n    post: {tags: ["\\e[2J"]}\n', encoding="utf-8")
    assert "\x1b" not in coverage("odd.yaml", code=GAPS).stdout


def test_the_guide(coverage):
    """The page's own description gives what the page shows: the report, the baseline, the routes."""
    page = (ROOT / "docs/guide/coverage.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S)
    (coverage.folder / "openapi.yaml").write_text(blocks[0][1], encoding="utf-8")
    shown = [text for _, text in blocks]
    assert coverage("openapi.yaml", code=GAPS).stdout in shown
    baseline = coverage("openapi.yaml", "--print-baseline", code=OK).stdout
    assert baseline in shown
    assert coverage("openapi.yaml", "--routes", code=OK).stdout in shown
    (coverage.folder / "coverage-baseline.txt").write_text(baseline, encoding="utf-8")
    coverage("openapi.yaml", "--baseline", "coverage-baseline.txt", code=OK)
    coverage("openapi.yaml", "--critical", "POST /v1/payments*", "--critical", "POST /v1/orders", code=GAPS)


# ---- the configuration ----

CONFIG = """\
upstream: http://127.0.0.1:1
defaults: {server_error: retry}
routes:
  - match: POST /v1/payments
    key: ignore
  - match: POST /v1/notes
    key: required
"""


def rules(report):
    return {(f["rule"], f["method"], f["path"]) for f in report["findings"]}


def test_config(coverage):
    """The description's key that a route ignores, and a guard that no description tells."""
    (coverage.folder / "hapax.yaml").write_text(CONFIG, encoding="utf-8")
    report = json.loads(coverage("api.yaml", "--config", "hapax.yaml", "--json", code=GAPS).stdout)
    assert rules(report) == {("key_ignored", "POST", "/v1/payments"),
                             ("guard_undocumented", "POST", "/v1/payments/{id}/refunds"),
                             ("guard_undocumented", "POST", "/v1/notes")}
    ignored = next(f for f in report["findings"] if f["rule"] == "key_ignored")
    assert (ignored["file"], ignored["line"]) == ("hapax.yaml", 4)
    assert "its key is `ignore`" in ignored["message"] and "api.yaml:10" in ignored["message"]
    assert all(o["covered"] for o in report["operations"])


@pytest.mark.parametrize("old,new,words", [
    ("key: ignore", "observe: true", "it only observes"),
    ("upstream:", "key_header: X-Key\nupstream:", "its key is `ignore`"),
    ("    key: ignore\n", "", None),
])
def test_config_faults(coverage, old, new, words):
    """Why a route does not use the declared key; and without a fault, the limit that differs."""
    (coverage.folder / "hapax.yaml").write_text(CONFIG.replace(old, new), encoding="utf-8")
    report = json.loads(coverage("api.yaml", "--config", "hapax.yaml", "--json",
                                 code=GAPS if words else OK).stdout)
    messages = [f["message"] for f in report["findings"] if f["rule"] in ("key_ignored", "key_limit_differs")]
    assert len(messages) == 1 and (words or "up to 64 characters are declared; the route takes up to 255") \
        in messages[0], messages


def test_another_header(coverage):
    (coverage.folder / "hapax.yaml").write_text(
        "key_header: X-Key\n" + CONFIG.replace("    key: ignore\n", ""), encoding="utf-8")
    assert "it takes keys from elsewhere" in coverage("api.yaml", "--config", "hapax.yaml", code=GAPS).stdout


def test_key_from(coverage):
    """--routes prints where the description has the key, and the comparison knows such routes."""
    (coverage.folder / "square.yaml").write_text("""\
openapi: 3.1.0
paths:
  /pay:
    post:
      requestBody: {content: {application/json: {schema: {required: [idempotency_key],
        properties: {idempotency_key: {type: string, maxLength: 45}}}}}}
  /order:
    post: {parameters: [{in: header, name: PayPal-Request-Id}]}
""", encoding="utf-8")
    routes = coverage("square.yaml", "--routes", code=OK).stdout
    assert '  - match: "POST /pay"\n    key: required\n    key_from: [{body: "/idempotency_key"}]\n' in routes
    assert '    key_from: [{header: "PayPal-Request-Id"}]\n' in routes
    (coverage.folder / "hapax.yaml").write_text("upstream: http://127.0.0.1:1\n" + routes, encoding="utf-8")
    report = json.loads(coverage("square.yaml", "--config", "hapax.yaml", "--json", code=OK).stdout)
    assert rules(report) == {("key_limit_differs", "POST", "/pay")}
    (coverage.folder / "hapax.yaml").write_text("upstream: http://127.0.0.1:1\nprofile: square\n", encoding="utf-8")
    report = json.loads(coverage("square.yaml", "--config", "hapax.yaml", "--json", code=GAPS).stdout)
    assert rules(report) == {("key_limit_differs", "POST", "/pay"), ("key_ignored", "POST", "/order")}


def test_config_with_a_mistake(coverage):
    (coverage.folder / "hapax.yaml").write_text("upstreem: x\n", encoding="utf-8")
    assert "hapax.yaml:1" in coverage("api.yaml", "--config", "hapax.yaml", code=UNREADABLE).stderr


def test_check_openapi(coverage):
    """The same comparison among the remarks of `hapax check`, with its own exit codes."""
    (coverage.folder / "hapax.yaml").write_text(CONFIG, encoding="utf-8")

    def check(file, code):
        done = subprocess.run([binary(), "check", "--config", "hapax.yaml", "--openapi", file],
                              capture_output=True, check=False, timeout=60, encoding="utf-8",
                              cwd=coverage.folder)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout
    text = check("api.yaml", OK)
    assert "hapax.yaml:4:1: warning: key_ignored: POST /v1/payments" in text
    assert "guard_undocumented: POST /v1/notes (api.yaml:15)" in text
    assert "key_absent" not in text
    assert "nowhere.yaml:0: there is no such file" in check("nowhere.yaml", 1)


# ---- traffic ----

COMBINED = '10.0.0.1 - ada [18/Nov/2026:01:00:00 +0000] "{} HTTP/1.1" 200 12 "-" "curl/8"\n'


def test_combined_log(coverage):
    """Requests are counted at their operation; what is in no description is a finding, with a
    template that a person can correct."""
    log = coverage.folder / "access.log"
    log.write_text("".join(COMBINED.format(line) for line in (
        "POST /v1/payments?x=1", "POST /v1/payments/77/refunds", "POST /v1/payments/78/refunds",
        "GET /v1/payments", "POST /v1/shops/acme/orders/17", "POST /v1/shops/emca/orders/18"))
        + "torn line\n", encoding="utf-8")
    report = json.loads(coverage("api.yaml", "--traffic", "access.log", "--json", code=GAPS).stdout)
    seen = {o["path"]: o["traffic"] for o in report["operations"] if "traffic" in o}
    assert seen["/v1/payments/{id}/refunds"] == {"requests": 2, "keyed": 0, "unkeyed": 0,
                                                 "example": "/v1/payments/77/refunds"}
    assert seen["/v1/shops/acme/orders/{x}"]["requests"] == 1
    assert ("unknown_traffic", "POST", "/v1/shops/acme/orders/{x}") in rules(report)
    report = json.loads(coverage("api.yaml", "--traffic", "access.log", "--json", "--template",
                                 "/v1/shops/{shop}/orders/{order}", code=GAPS).stdout)
    seen = {o["path"]: o["traffic"]["requests"] for o in report["operations"] if "traffic" in o}
    assert seen["/v1/shops/{shop}/orders/{order}"] == 2


@pytest.mark.parametrize("line,keyed,unkeyed", [
    ({"method": "POST", "path": "/v1/payments", "idempotency_key": "k"}, 1, 0),
    ({"method": "POST", "path": "/v1/payments", "idempotency_key": "-"}, 0, 1),
    ({"method": "POST", "path": "/v1/payments"}, 0, 0),
    ({"request_method": "POST", "request_uri": "/v1/payments?a", "http_idempotency_key": ""}, 0, 1),
    ({"request": "POST /v1/payments HTTP/1.1", "http_idempotency_key": "k"}, 1, 0),
    ({"request": {"method": "POST", "uri": "/v1/payments", "headers": {"Idempotency-Key": ["k"]}}}, 1, 0),
    ({"request": {"method": "POST", "uri": "/v1/payments", "headers": {"Host": ["a"]}}}, 0, 1),
    ({"RequestMethod": "POST", "RequestPath": "/v1/payments", "request_Idempotency-Key": "k"}, 1, 0),
])
def test_json_lines(coverage, line, keyed, unkeyed):
    (coverage.folder / "a.log").write_text(json.dumps(line) + "\n\n", encoding="utf-8")
    report = json.loads(coverage("api.yaml", "--traffic", "a.log", "--json", code=GAPS).stdout)
    seen = [o["traffic"] for o in report["operations"] if "traffic" in o]
    assert seen == [{"requests": 1, "keyed": keyed, "unkeyed": unkeyed, "example": "/v1/payments"}]


def test_traffic_alone(coverage):
    """Without a description, requests without a key are the gaps."""
    lines = [{"method": "POST", "path": "/a/1", "idempotency_key": "k"},
             {"method": "POST", "path": "/b/2", "idempotency_key": ""},
             {"method": "PUT", "path": "/c/3", "idempotency_key": ""}]
    (coverage.folder / "a.log").write_text("".join(json.dumps(x) + "\n" for x in lines), encoding="utf-8")
    report = json.loads(coverage("--traffic", "a.log", "--json", code=GAPS).stdout)
    assert rules(report) == {("unkeyed_traffic", "POST", "/b/{x}")}


def test_no_log(coverage):
    (coverage.folder / "a.log").write_text("one\ntwo\n", encoding="utf-8")
    assert "a.log:1: is no line of an access log" in \
        coverage("api.yaml", "--traffic", "a.log", code=UNREADABLE).stderr
    assert "no such file" in coverage("api.yaml", "--traffic", "b.log", code=UNREADABLE).stderr
    (coverage.folder / "a.har").write_text("{}", encoding="utf-8")
    assert "is no HAR file" in coverage("api.yaml", "--traffic", "a.har", code=UNREADABLE).stderr


def entry(second, key, status, body='{"amount": 1}', path="/v1/payments"):
    headers = [{"name": "Idempotency-Key", "value": key}] if key else []
    return {"startedDateTime": f"2026-11-18T01:00:{second:02}.000Z",
            "request": {"method": "POST", "url": f"https://api.example.com{path}", "headers": headers,
                        "postData": {"mimeType": "application/json", "text": body}},
            "response": {"status": status}}


@pytest.mark.parametrize("entries,want", [
    # A new key for each try, after no answer and after a 503.
    ([entry(1, "a", 0), entry(3, "b", 201)], {"key_per_try"}),
    ([entry(1, "a", 503), entry(3, "b", 201, '{"amount":1.0}')], {"key_per_try"}),
    # The key is in the body: it does not make two bodies of one.
    ([entry(1, "", 0, '{"idempotency_key": "a", "n": 1}'),
      entry(2, "", 0, '{"n": 1, "idempotency_key": "b"}')], {"key_per_try"}),
    # The same key, another body, another path, much later, or after success.
    ([entry(1, "a", 0), entry(3, "a", 201)], set()),
    ([entry(1, "a", 0), entry(3, "b", 201, '{"amount": 2}')], set()),
    ([entry(1, "a", 0), entry(3, "b", 201, path="/v1/notes")], set()),
    ([entry(1, "a", 201), entry(3, "b", 201)], {"body_repeated"}),
    ([entry(1, "", 0), entry(3, "", 201)], {"key_left_out"}),
])
def test_har(coverage, entries, want):
    """A client that makes a new key per try is found; others are not accused."""
    (coverage.folder / "a.har").write_text(json.dumps({"log": {"entries": entries}}), encoding="utf-8")
    done = coverage("api.yaml", "--traffic", "a.har", "--json", code=GAPS)
    found = {rule for rule, _, _ in rules(json.loads(done.stdout))}
    assert found - {"key_absent", "key_in_prose", "retries_without_key"} == want


# ---- a running gateway ----

def seen(gateway):
    answer = gateway.admin("/api/v1/coverage")
    assert answer.status == 200 and answer["Content-Type"] == "application/json"
    page = json.loads(answer.body)
    return {(o["method"], o["path"]): (o["keyed"], o["unkeyed"]) for o in page["operations"]}, page["left_out"]


@pytest.mark.parametrize("observe", [False, True])
def test_gateway_keeps_a_list(site, coverage, observe):
    """Method and path template with keyed and unkeyed counts, guarded and observed; a route says
    what a template is; `hapax coverage --admin` reads them."""
    one = site({"observe": observe, "defaults": {"key": "optional"},
                "routes": [{"match": "POST /shops/{shop}/pay"}, {"match": "POST /free/*", "key": "ignore"}]})
    gateway = one.gateway
    for target, key in (("/pay/17", "k1"), ("/pay/18", None), ("/pay/18", None), ("/shops/acme/pay", "k2"),
                        ("/shops/emca/pay", "k3"), ("/free/deals/9", None)):
        assert gateway.post(target, key=key).status == 200
    assert gateway.call("PUT", "/notes/1", key=None).status == 200
    assert gateway.get("/pay/17").status in (200, 404, 405)
    want = {("POST", "/pay/{x}"): (1, 2), ("POST", "/shops/{shop}/pay"): (2, 0),
            ("POST", "/free/deals/{x}"): (0, 1), ("PUT", "/notes/{x}"): (0, 1)}
    assert seen(gateway) == (want, 0)
    report = json.loads(coverage("--admin", f"http://127.0.0.1:{gateway.admin_port}", "--json",
                                 code=GAPS).stdout)
    assert {(o["method"], o["path"]): (o["traffic"]["keyed"], o["traffic"]["unkeyed"])
            for o in report["operations"]} == want
    assert rules(report) == {("unkeyed_traffic", "POST", "/pay/{x}"),
                             ("unkeyed_traffic", "POST", "/free/deals/{x}")}


def test_list_is_bounded(site):
    """Beyond its rows, requests are only counted: nobody can make it grow."""
    gateway = site({"loops": 1, "defaults": {"key": "optional"}}).gateway
    letters = "abcdefghijklmnopqrstuvwxyz"
    paths = [f"/{a}{b}" for a in letters for b in letters][:600]
    with gateway.connect() as wire:
        for path in paths:
            wire.send(gateway.request("POST", path, key=None))
            assert wire.answer("POST").status == 200
    rows, left_out = seen(gateway)
    assert len(rows) == 512 and left_out == len(paths) - 512


def test_no_gateway(coverage, site):
    """An address where nobody listens, or somebody else does."""
    done = coverage("--admin", "http://127.0.0.1:1", code=UNREADABLE)
    assert "http://127.0.0.1:1: " in done.stderr
    provider = site().provider
    assert "is no admin listener" in coverage("--admin", provider.url, code=UNREADABLE).stderr
