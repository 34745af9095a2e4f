"""Shows that `hapax coverage` says which operations of an API carry no key: from
descriptions, with what fails and what does not, and in every form of report."""
import json
import subprocess

import pytest

from conftest import require_program
from harness.gateway import binary

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
    assert "POST /v1/notes key_in_prose\n" in done.stderr and "take it out" in done.stderr
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


def test_misuse(coverage):
    assert "nothing to read" in coverage(code=UNREADABLE).stderr
    assert "unknown flag" in coverage("--nonsense", code=UNREADABLE).stderr


def test_control_bytes_stay_off_the_terminal(coverage):
    (coverage.folder / "odd.yaml").write_text(
        'openapi: 3.0.0\npaths:\n  "/a\\e[31m":\n    post: {tags: ["\\e[2J"]}\n', encoding="utf-8")
    assert "\x1b" not in coverage("odd.yaml", code=GAPS).stdout
