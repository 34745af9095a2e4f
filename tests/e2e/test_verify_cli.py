"""Shows the manners of `hapax verify`: it keeps its bounds, sends nothing to
anybody else and nothing at all on a dry run, says where a description is wrong,
and its reports agree with each other."""
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import xml.etree.ElementTree as ElementTree

import pytest

from conftest import require_program
from harness import check, secret
from harness.flawed.control import Flawed
from harness.external_tls import Authority
from harness.gateway import binary, free_port
from harness.provider import Provider
from harness.verify import ENV, described, run, verify

FEW = ["first", "retry", "mismatch_body", "retry_marker", "in_progress"]
ONLY_FEW = [word for row in FEW for word in ("--only", row)]


@pytest.fixture(scope="module", autouse=True)
def program_is_there():
    require_program()


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    with Flawed(tmp_path_factory.mktemp("right")) as one:
        yield one


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory):
    with Flawed(tmp_path_factory.mktemp("forgetful"), "no_marker") as one:
        yield one


@pytest.fixture
def provider(tmp_path):
    one = Counting(tmp_path / "ledger")
    yield one
    one.close()


class Counting(Provider):
    """Knows how many connections it had at the same time."""
    most = 0

    def serve(self, sock):
        with self.lock:
            self.most = max(self.most, len(self.open_sockets))
        super().serve(sock)


class Ear:
    """A port where somebody listens, and counts who comes."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.came = 0
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def listen(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.came += 1
            sock.close()

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def plain(provider, *arguments):
    """A run by flags alone, against the test's provider."""
    return run(f"http://127.0.0.1:{provider.port}/pay", "-H", f"Authorization: {secret.ALICE}",
               "-d", '{"amount": 10, "order": "{{uuid}}"}', *arguments)


# What is asked for without sending anything.
def test_list():
    """The rows, without any server."""
    report = run("--list")
    assert report.code == 0 and not report.err, f"{report}"
    for row in ("first", "at_once_100", "crash_settled"):
        assert re.search(rf"^\s*{row}\b", report.out, re.M), f"{report}"
    rows = json.loads(run("--list", "--json").out)
    assert [row["name"] for row in rows] == [line.split()[0] for line in report.out.splitlines()]
    assert all(row["weight"] in ("required", "advised") and row["title"] and row["sends"] for row in rows), rows


def test_dry_run(tmp_path):
    """What would be sent is shown, and no connection is made."""
    with Ear() as ear:
        report = verify(tmp_path, described(f"http://127.0.0.1:{ear.port}"), "--dry-run")
        assert report.code == 0, f"{report}"
        assert ear.came == 0
    assert "POST /payments HTTP/1.1" in report.out and "mismatch_query" in report.out, f"{report}"
    request = report.out.partition("main:")[2].partition("other:")[0]
    assert "Idempotency-Key: " in request and "{{" not in request, f"{report}"


MISTAKES = [
    ("url: http://127.0.0.1:9/p\nmethd: POST\n", 2, "method"),
    ("url: http://127.0.0.1:9/p\nbody: '{{uid}}'\n", 2, "uuid"),
    ("url: http://127.0.0.1:9/p\nheaders: ['Authorization: {{env:NO_SUCH_VARIABLE}}']\n", 2, "NO_SUCH_VARIABLE"),
    ("url: ftp://127.0.0.1/p\n", 1, "http"),
    ("url: http://127.0.0.1:9/p\nrequests:\n  other: {path: 'http://elsewhere.test/x'}\n", 3, "on another host"),
    ("url: http://127.0.0.1:9/p\nrequests:\n  othr: {path: /x}\n", 3, "other"),
    ("url: http://127.0.0.1:9/p\ndialect: iett\n", 2, "ietf"),
    ("url: http://127.0.0.1:9/p\nskip: [retri]\n", 2, "retry"),
    ("url: http://127.0.0.1:9/p\nlimits: {requests: many}\n", 2, "whole number"),
    ("url: http://127.0.0.1:9/p\nlimits: {tme: 5m}\n", 2, "time"),
    ("url: http://127.0.0.1:9/p\nnumber: amount\n", 2, "JSON pointer"),
    ("url: http://127.0.0.1:9/p\neffects: {get: /e, cuont: /n}\n", 2, "count"),
    ("url: http://127.0.0.1:9/p\nbody: '@no-such-file'\n", 2, "cannot be opened"),
    ("url: http://127.0.0.1:9/p\nurl: [\n", 2, ""),
    ("url: http://127.0.0.1:9/p\nbody: {amount: 1}\n", 2, "in quotes"),
    ("url: http://127.0.0.1:9/p\nheaders: 'A: b'\n", 2, "e.g. [\"Name: value\"]"),
    ("url: http://127.0.0.1:9/p\nskip: retry\n", 2, "e.g. [retry, expiry]"),
    ("url: http://127.0.0.1:9/p\nrequests:\n  delete: {method: DELETE}\n", 3, "needs a path"),
]


@pytest.mark.parametrize("text, line, words", MISTAKES)
def test_mistakes(tmp_path, text, line, words):
    """A mistake in the file is told with its line, and what to do; nothing is sent."""
    path = tmp_path / "wrong.yaml"
    path.write_text(text)
    report = run("--file", path)
    assert report.code == 2 and not report.out, f"{report}"
    assert re.search(rf"wrong\.yaml:{line}\b", report.err) or f"line {line}" in report.err, f"{report}"
    assert words in report.err, f"{report}"


@pytest.mark.parametrize("arguments, words", [
    ([], "URL"),
    (["http://127.0.0.1:9/", "--only", "retri"], "retry"),
    (["http://127.0.0.1:9/", "--requests", "-1"], "requests"),
    (["http://127.0.0.1:9/", "--time", "5 parsecs"], "time"),
    (["http://127.0.0.1:9/", "--dialect", "stripy"], "stripe"),
    (["http://127.0.0.1:9/", "-H", "no colon"], "no colon"),
    (["http://127.0.0.1:9/", "-H", "Idempotency-Key: mine"], "Idempotency-Key"),
    (["http://127.0.0.1:9/", "--effects", "http://elsewhere.test/count"], "on another host"),
    (["http://127.0.0.1:9/", "--crash-cmd", "true"], "start"),
    (["http://127.0.0.1:9/", "--no-such-flag"], "no-such-flag"),
])
def test_usage(arguments, words):
    report = run(*arguments)
    assert report.code == 2 and words in report.err, f"{report}"


# Bounds.
def test_requests_are_bounded(provider):
    """Not one more, and the report says why rows are open."""
    report = plain(provider, "--requests", "20", "--json")
    assert len(provider.requests) <= 20
    assert report.code == 1 and "undecided" in report.out, f"{report}"
    assert any("--requests" in row["came"] for row in report.document["rows"]), f"{report}"


def test_time_is_bounded(provider):
    """A server that takes its time does not keep it."""
    began = time.monotonic()
    report = plain(provider, "-H", "X-Behave: delay=0.5", "--time", "2s", "--json")
    assert time.monotonic() - began < 15
    assert report.code == 1, f"{report}"
    assert any("--time" in row["came"] for row in report.document["rows"]), f"{report}"


def test_concurrency_is_bounded(provider):
    report = plain(provider, "--concurrency", "5", "--only", "first", "--only", "at_once_100", "--json")
    assert provider.most <= 5, provider.most
    assert report.code in (0, 1), f"{report}"


def test_redirects_are_not_followed(provider):
    with Ear() as ear:
        report = plain(provider, "-H", f"X-Behave: status=307; header=Location:http://127.0.0.1:{ear.port}/x")
        assert ear.came == 0
    assert report.code == 1 and "307" in report.out, f"{report}"


def test_no_proxy_of_the_environment(provider):
    with Ear() as ear:
        place = f"http://127.0.0.1:{ear.port}"
        run(f"http://127.0.0.1:{provider.port}/pay", "-d", "{}", "--only", "first",
            env={"http_proxy": place, "HTTP_PROXY": place, "ALL_PROXY": place})
        assert ear.came == 0 and provider.requests


# Reports.
def verdicts_of(table):
    """{row: verdict} of the table for people."""
    words = {"holds": "holds", "broken": "broken", "undecided": "undecided", "skipped": "skipped",
             "not applicable": "not_applicable"}
    found = {}
    for line in table.splitlines():
        for word, verdict in words.items():
            match = re.match(rf"\s*{word}\s+([a-z_0-9]+)\b", line) or re.match(rf"\s+([a-z_0-9]+)\s+{word}\b", line)
            if match:
                found[match[1]] = verdict
    return found


def test_reports_agree(tmp_path, forgetful):
    """Table, JSON and JUnit tell the same, and the log has every exchange."""
    paths = {name: tmp_path / name for name in ("junit", "log")}
    report = verify(tmp_path, described(forgetful.url), *ONLY_FEW, "--dialect", "stripe",
                    "--junit", paths["junit"], "--log", paths["log"])
    rows = {name: row["verdict"] for name, row in report.rows.items()}
    assert {name for name, verdict in rows.items() if verdict != "skipped"} == set(FEW)

    table = run("--file", tmp_path / "verify.yaml", *ONLY_FEW, "--dialect", "stripe", "--all")
    assert verdicts_of(table.out) == rows, f"{table}"
    assert table.code == report.code == 1

    suite = ElementTree.parse(paths["junit"]).getroot()
    suite = suite if suite.tag == "testsuite" else suite.find("testsuite")
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert set(cases) == set(rows)
    failed = {name for name, case in cases.items() if case.find("failure") is not None}
    skipped = {name for name, case in cases.items() if case.find("skipped") is not None}
    assert (int(suite.get("tests")), int(suite.get("failures")), int(suite.get("skipped"))) == (
        len(cases), len(failed), len(skipped))
    assert failed == {name for name, verdict in rows.items() if verdict == "broken"}
    assert skipped == {name for name, verdict in rows.items() if verdict in ("skipped", "not_applicable")}

    exchanges = [json.loads(line) for line in paths["log"].read_text().splitlines()]
    assert [e["number"] for e in exchanges] == list(range(1, len(exchanges) + 1))
    cited = {number for row in report.document["rows"] for number in row.get("exchanges", [])}
    assert cited and cited <= set(range(1, len(exchanges) + 1))
    assert not secret.leaks(paths["log"].read_text().splitlines())


def test_every_request_is_in_the_log(tmp_path, provider):
    report = plain(provider, "--only", "at_once_10", "--log", tmp_path / "log")
    assert report.code in (0, 1), f"{report}"
    assert len((tmp_path / "log").read_text().splitlines()) == len(provider.requests) >= 10


def test_nothing_is_shown(tmp_path, api):
    """The credentials of the description are in no report."""
    report = verify(tmp_path, described(api.url), "--only", "first", "--only", "tenants",
                    "--log", tmp_path / "log", "--junit", tmp_path / "junit.xml")
    texts = [report.out, report.err, (tmp_path / "log").read_text(), (tmp_path / "junit.xml").read_text()]
    assert not secret.leaks("\n".join(texts).splitlines())


def test_advised_rows_do_not_fail(tmp_path, forgetful):
    """A marker is good manners in one dialect, and required in the other."""
    for dialect, code in (("ietf", 0), ("stripe", 1)):
        report = verify(tmp_path, described(forgetful.url), "--only", "retry_marker", "--dialect", dialect)
        assert report.named("broken") == {"retry_marker"} and report.code == code, f"{report}"


def test_skip(tmp_path, api):
    report = verify(tmp_path, described(api.url), *ONLY_FEW, "--skip", "retry")
    assert "retry" in report.named("skipped") and "first" in report.named("holds"), f"{report}"


def test_flags_alone(api):
    """No file is needed."""
    report = run(f"{api.url}/payments", "-X", "POST", "-H", "Authorization: {{env:VERIFY_ALICE}}",
                 "-d", '{"order": "{{uuid}}", "amount": 3}', "--other-body", '{"order": "{{uuid}}", "amount": 4}',
                 "--resource", "/id", "--effects", "/payments?order={{uuid}}", "--effects-count", "",
                 "--second-tenant", "Authorization: {{env:VERIFY_BOB}}", "--only", "first", "--only", "tenants",
                 "--only", "mismatch_body", "--json")
    assert report.code == 0 and report.named("holds") == {"first", "tenants", "mismatch_body"}, f"{report}"


def test_a_flag_wins(tmp_path, api):
    """What the file says is changed by a flag."""
    report = verify(tmp_path, described(api.url, dialect="stripe", only=["first"]), "--dialect", "ietf")
    assert report.code == 0 and report.document["dialect"] == "ietf", f"{report}"


# Servers that are not there, or not well.
def test_nobody_there():
    report = run(f"http://127.0.0.1:{free_port()}/", "-d", "{}", "--json")
    assert report.code == 1 and "refused" in report.rows["first"]["came"], f"{report}"
    report = run("http://no-such-host.invalid/", "-d", "{}")
    assert report.code == 2 and "no-such-host.invalid" in report.err, f"{report}"
    assert "nothing was sent" in report.err, f"{report}"


@pytest.mark.parametrize("behave, words", [
    ("no-answer", "timeout|time|no answer"),
    ("raw=nonsense", "HTTP|nonsense|malformed"),
    ("half-body", "closed|ended|whole"),
    ("reset=before", "reset|closed"),
    ("status=401", "401"),
    ("status=500", "500"),
])
def test_not_well(provider, behave, words):
    """It says once what is wrong with the request itself, and stops."""
    provider.raws["nonsense"] = b"who knows\r\n\r\n"
    report = plain(provider, "-H", f"X-Behave: {behave}", "--timeout", "1s", "--settle", "2s", "--json")
    assert report.code == 1 and report.rows["first"]["verdict"] in ("broken", "undecided"), f"{report}"
    assert re.search(words, report.rows["first"]["came"]), f"{report}"
    assert len(provider.requests) <= 3
    assert not report.named("holds"), f"{report}"


def test_resource_that_is_not_there(tmp_path, api):
    """A mistyped pointer is told of; it would tell no two answers apart."""
    report = verify(tmp_path, described(api.url), "--resource", "/idd")
    assert report.code == 1 and report.rows["first"]["verdict"] == "undecided", f"{report}"
    assert "`resource` is /idd" in report.rows["first"]["came"], f"{report}"
    assert not report.named("holds"), f"{report}"


@pytest.mark.parametrize("crash, start, words", [
    ("echo no such luck; exit 3", "true", "no such luck"),
    (None, "echo cannot start >&2; exit 1", "cannot start"),
    (None, "true", "no connection in time"),
])
def test_commands_that_fail(tmp_path, crash, start, words):
    """A server that cannot be killed, or does not come back, is not judged."""
    with Flawed(tmp_path) as one:
        report = verify(tmp_path, described(one.url), "--only", "first", "--only", "crash_once",
                        "--crash-cmd", crash or one.crash_cmd, "--start-cmd", start, "--settle", "1s")
    assert report.code == 1 and report.named("undecided") == {"crash_once"}, f"{report}"
    assert words in report.rows["crash_once"]["came"], f"{report}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_stopped(tmp_path, number):
    """Ctrl-C, or a closed terminal, ends the run, and what was found so far is told."""
    path = tmp_path / "verify.yaml"
    with Flawed(tmp_path) as one:
        path.write_text(json.dumps(described(one.url)))
        process = subprocess.Popen([binary(), "verify", "--file", path, "--only", "first", "--only", "in_progress"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **ENV})
        check.until(lambda: process.poll() is not None or len(one.ledger()) == 1 and one.reserved(),
                    "the slow one is under way")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 1 and "stopped" in err, err
    assert verdicts_of(out) == {"first": "holds", "in_progress": "undecided"}, out


# TLS.
@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority(folder / "ca")
    state = folder / "state"
    state.mkdir()
    with Flawed(state, tls=authority.certificate()) as one:
        yield authority, one


def test_tls(tmp_path, secured):
    authority, one = secured
    report = verify(tmp_path, described(one.url), "--cacert", authority.ca_file, *ONLY_FEW, "--only", "at_once_10")
    assert report.code == 0 and report.document["holds"], f"{report}"


def test_tls_is_checked(tmp_path, secured):
    """Somebody else's certificate is refused, before anything is sent."""
    _, one = secured
    before = len(one.ledger())
    report = verify(tmp_path, described(one.url), *ONLY_FEW)
    assert report.code == 1 and "certificate" in report.rows["first"]["came"], f"{report}"
    assert len(one.ledger()) == before


def test_tls_names_are_checked(tmp_path, tmp_path_factory):
    authority = Authority(tmp_path / "ca")
    state = tmp_path_factory.mktemp("elsewhere")
    with Flawed(state, tls=authority.certificate(names="DNS:elsewhere.test")) as one:
        report = verify(tmp_path, described(one.url), "--cacert", authority.ca_file, "--only", "first")
    assert report.code == 1 and "certificate" in report.rows["first"]["came"], f"{report}"


def test_insecure_is_said_loudly(tmp_path, secured):
    _, one = secured
    report = verify(tmp_path, described(one.url), "--insecure", "--only", "first")
    assert report.code == 0 and "certificates are not checked" in report.err, f"{report}"


def test_an_answer_that_repeats_a_credential(tmp_path):
    """Neither the report nor the log has it; the answers are told apart all the same."""
    log, junit = tmp_path / "log", tmp_path / "junit.xml"
    with Flawed(tmp_path, "echoes") as api:
        report = verify(tmp_path, described(api.url), *ONLY_FEW, "--only", "tenants", "--log", log, "--junit", junit)
    assert report.code == 0, f"{report}"
    assert "you_said" in log.read_text() and "you_said" in report.out
    shown = secret.leaks((log.read_text() + junit.read_text() + report.out).splitlines())
    assert not shown, f"a secret is shown: {shown[:3]}"


def test_nothing_judged_is_no_good_news(tmp_path, api):
    """Rows that are all left out, or lack what they need, do not make CI green."""
    for arguments in (["--only", "retry", "--skip", "retry"], ["--only", "crash_once"]):
        report = verify(tmp_path, described(api.url), *arguments)
        assert report.code == 1 and not report.document["holds"], f"{report}"
        assert not report.named("broken") and not report.named("undecided"), f"{report}"
    assert "No row was judged." in run(f"{api.url}/payments", "--only", "crash_once").out
