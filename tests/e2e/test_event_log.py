"""Shows that events never hold up a request, whoever reads standard error or does not, and that
the lines which people wait for are printed."""
import json
import os
import signal

from harness import check
from harness.gateway import Gateway
from harness.secret import new_key


def with_stderr(site, tmp_path, fd, config=None):
    """A gateway that is not started yet, with this descriptor as its standard error."""
    one = site()
    one.gateway.stop()
    gateway = Gateway(tmp_path, one.provider.url, {"store": "memory:", **(config or {})})
    gateway.wrap = ["sh", "-c", f'exec "$@" 2>/proc/{os.getpid()}/fd/{fd}', "sh"]
    return one.provider, gateway


def is_ready(gateway):
    try:
        return gateway.admin("/readyz").status == 200
    except OSError:
        return False


def fill(fd):
    """Until nothing more fits."""
    os.set_blocking(fd, False)
    try:
        while True:
            os.write(fd, b"." * 4096)
    except BlockingIOError:
        pass
    os.set_blocking(fd, True)


def read_until(fd, word):
    seen = b""
    while word not in seen:
        seen += os.read(fd, 65536)
    return seen.lstrip(b".").decode()


def test_a_full_pipe(site, tmp_path):
    """The pipe was full before the start: hapax starts and answers, logs an event for each
    request, reloads, and is told by the lines once somebody reads; a retry executes nothing."""
    reader, writer = os.pipe()
    fill(writer)
    provider, gateway = with_stderr(site, tmp_path, writer)
    gateway.spawn()
    check.until(lambda: is_ready(gateway), "it is ready")
    for _ in range(20):
        check.problem(gateway.post(behave="reset=after"), "upstream_outcome_unknown", status=502)
    key = new_key()
    assert gateway.post(key=key).status == gateway.post(key=key).status == 200
    assert len(provider.ledger(key)) == 1
    assert gateway.metrics()["hapax_log_dropped_total"] == 0
    gateway.signal(signal.SIGHUP)
    text = read_until(reader, b"event=reloaded")
    assert text.count("event=outcome_unknown") == 20 and "event=ready" in text
    gateway.signal(signal.SIGTERM)
    assert gateway.wait() == 0
    assert "event=draining" in read_until(reader, b"event=stopped")
    os.close(reader)
    os.close(writer)


def test_an_end_with_a_full_pipe(site, tmp_path):
    """Nobody ever reads: neither the drain nor the end of the process waits for it."""
    reader, writer = os.pipe()
    fill(writer)
    _, gateway = with_stderr(site, tmp_path, writer)
    gateway.spawn()
    check.until(lambda: is_ready(gateway), "it is ready")
    gateway.signal(signal.SIGTERM)
    assert gateway.wait(15) == 0
    os.close(reader)
    os.close(writer)


def test_a_refused_start(site, tmp_path):
    """The reason is the last line, also as JSON."""
    one = site()
    one.gateway.stop()
    bad = Gateway(tmp_path, one.provider.url, {"store": f"sqlite:{tmp_path}/no/such/folder/x.db"})
    for form in ("text", "json"):
        bad.config["log_format"] = form
        bad.lines.clear()
        bad.spawn()
        assert bad.wait(15) != 0
        last = bad.wait_log("no/such/folder")
        assert bad.lines[-1] == last
        if form == "json":
            assert json.loads(last)["event"] == "not_started"
        else:
            assert last.startswith("hapax: ")


def test_a_start_with_warnings(site):
    """With log_format: json every line is JSON from the first one on, what the configuration is
    warned of too."""
    one = site({"log_format": "json", "log_level": "error", "store": "memory:"})
    one.gateway.post()
    lines = [json.loads(line) for line in one.gateway.log().splitlines()]
    warned = [line for line in lines if line["event"] == "configuration"]
    assert [line["option"] for line in warned] == ["store", "defaults.server_error"], lines
    assert warned[0]["severity"] == "warning" and warned[0]["line"] > 0 and "memory" in warned[0]["text"]


def test_a_reload_with_mistakes(site):
    """Each mistake is an event, in the format of the others; the old configuration stays."""
    one = site({"log_format": "json"})
    seen = len(one.gateway.lines)
    path = one.gateway.folder / "hapax.yaml"
    path.write_text("no_such_option: 1\ndefaults:\n  lease: never\n")
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log("reload_refused", since=seen)
    events = [json.loads(line) for line in one.gateway.lines[seen:]]
    mistakes = [e for e in events if e["event"] == "configuration" and e["severity"] == "mistake"]
    assert {(1, "no_such_option"), (3, "defaults.lease")} <= {(e["line"], e["option"]) for e in mistakes}
    assert all(e["file"] == str(path) and e["level"] == "error" and e["text"] for e in mistakes)
    assert events[-1]["event"] == "reload_refused"
    assert one.gateway.post().status == 200
