"""Shows what the access log tells of each request and what it never tells, that a file can
be rotated without losing a line, and that neither a full disk nor a pipe that nobody reads
holds up a request."""
import json
import os
import pty
import re
import signal
import socket
import struct
import threading

from harness import check
from harness.gateway import Gateway
from harness.secret import new_key

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = ("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")
ROUTES = [{"match": "POST /pay"}, {"match": "POST /wait", "concurrent": "wait", "wait": "10s"}]


class Lines:
    """The lines of the log on standard output, as they come."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.at = len(gateway.lines)

    def next(self):
        """The next line of the access log, from where the last one stood."""
        text = self.gateway.wait_log(r"^\{", since=self.at)
        self.at = self.gateway.lines.index(text, self.at) + 1
        return json.loads(text)


def post(site, **how):
    return site.gateway.post("/pay?card=s3cr3t", **how)


def test_what_it_did(site):
    """One line for each request: executed, replayed, refused with its code, passed, own."""
    one = site({"access_log": "json", "routes": ROUTES})
    lines = Lines(one.gateway)
    key = new_key()
    first = post(one, key=key, headers=[PARENT])
    line = lines.next()
    assert line["did"] == "executed" and line["status"] == first.status == 200
    assert line["peer"] == "127.0.0.1" and line["method"] == "POST" and line["route"] == "POST /pay"
    assert line["attempt"] == 1 and line["operation"] == first["Hapax-Operation"]
    assert line["trace"] == TRACE and re.fullmatch("[0-9a-f]{12}", line["tenant"])
    assert line["whole_ms"] >= line["upstream_ms"] > 0
    assert line["whole_ms"] >= line["reserve_ms"] > 0 and line["complete_ms"] > 0
    assert "queue_ms" not in line and "code" not in line
    assert line["bytes_in"] > 100 and line["bytes_out"] > len(first.body)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", line["time"])

    again = post(one, key=key)
    line, tenant = lines.next(), line["tenant"]
    assert again["Idempotent-Replayed"] == "true"
    assert (line["did"], line["status"], line["attempt"]) == ("replayed", 200, 1)
    assert line["tenant"] == tenant and "upstream_ms" not in line and "trace" not in line

    check.problem(post(one, key=key, body=b'{"amount": 11}'), "idempotency_key_reused")
    line = lines.next()
    assert (line["did"], line["status"], line["code"]) == ("refused", 422, "idempotency_key_reused")

    check.problem(post(one, key=None), "idempotency_key_missing")
    assert lines.next()["code"] == "idempotency_key_missing"

    one.gateway.get("/x?token=s3cr3t")
    line = lines.next()
    assert (line["did"], line["method"], line["route"]) == ("passed", "GET", "defaults")
    assert line["upstream_ms"] > 0 and "operation" not in line

    one.gateway.get("/.hapax/policy")
    line = lines.next()
    assert (line["did"], line["status"]) == ("own", 200) and "route" not in line


def test_nothing_was_sent(site):
    """A request that never reached the service is refused, and not executed or passed: there is one `executed` for
    each execution."""
    one = site({"access_log": "json", "routes": ROUTES})
    lines, key = Lines(one.gateway), new_key()
    one.provider.stop()
    check.problem(one.gateway.post("/pay", key=key), "upstream_unreachable", status=502)
    line = lines.next()
    assert (line["did"], line["status"], line["code"], line["attempt"]) == ("refused", 502, "upstream_unreachable", 1)
    check.problem(one.gateway.get("/pay"), "upstream_unreachable", status=502)
    line = lines.next()
    assert (line["did"], line["code"]) == ("refused", "upstream_unreachable")


def test_without_an_answer(site):
    """What was executed and not answered is told as both; a client that left got no status."""
    one = site({"access_log": "json", "routes": ROUTES})
    lines = Lines(one.gateway)
    check.problem(post(one, behave="reset=after"), "upstream_outcome_unknown", status=502)
    line = lines.next()
    assert (line["did"], line["status"]) == ("executed", 502)
    assert line["code"] == "upstream_outcome_unknown"

    key = new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=key, behave="hold=x"))
        one.provider.gate("x").wait_arrived()
        # Gone altogether: a client that only sends no more is answered.
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.provider.gate("x").release()
    line = lines.next()
    assert (line["did"], line["status"], line["attempt"]) == ("executed", 0, 1)
    assert line["upstream_ms"] > 0
    assert one.gateway.post("/pay", key=key).status == 200 and lines.next()["did"] == "replayed"


def test_waited(site):
    """A retry that waited for the first request says so."""
    one = site({"access_log": "json", "routes": ROUTES})
    lines = Lines(one.gateway)
    key = new_key()
    with one.gateway.connect() as first, one.gateway.connect() as second:
        first.send(one.gateway.request("POST", "/wait", key=key, behave="hold=w"))
        one.provider.gate("w").wait_arrived()
        second.send(one.gateway.request("POST", "/wait", key=key))
        check.until(lambda: one.gateway.metrics()["hapax_waiting"] == 1, "a request waits")
        one.provider.gate("w").release()
        assert first.answer().status == second.answer().status == 200
    assert sorted([lines.next()["did"], lines.next()["did"]]) == ["executed", "waited"]
    assert len(one.provider.ledger(key)) == 1


def test_nothing_is_forged(site):
    """What a client sends makes no second line and no long one; its path is not shown."""
    one = site({"access_log": "json"})
    lines = Lines(one.gateway)
    long_method = b"Z" * 300 + b" /q HTTP/1.1\r\nHost: x\r\n\r\n"
    one.gateway.raw(long_method)
    line = lines.next()
    assert line["method"] == "Z" * 16 and line["status"] in (200, 400, 404, 501), line
    one.gateway.raw(b"GET /a%0a%7b%22did%22 HTTP/1.1\r\nHost: x\r\ntraceparent: 00-"
                    b"\"}{\"-\r\nConnection: close\r\n\r\n")
    line = lines.next()
    assert line["method"] == "GET" and "trace" not in line
    one.gateway.raw(b"GET /\x01 HTTP/1.1\r\nHost: x\x1b[31m\r\n\r\n")
    line = lines.next()
    assert (line["method"], line["status"], line["did"]) == ("-", 400, "refused")
    for text in one.gateway.lines:
        assert not re.search(r"[\x00-\x1f\x7f]", text) and "/a" not in text


def test_text(site):
    """Text has the same fields, as name=value."""
    one = site({"access_log": "text", "routes": ROUTES})
    answer = post(one)
    line = one.gateway.wait_log("did=executed")
    assert re.match(r'time=\S+ peer=127\.0\.0\.1 method="POST" route="POST /pay" status=200 '
                    rf'did=executed attempt=1 operation={answer["Hapax-Operation"]} tenant=\w+ '
                    r"whole_ms=\d+\.\d{3} ", line), line


def test_a_rotated_file(site, tmp_path):
    """The file is moved, SIGHUP comes: every request is in exactly one of the two files."""
    path = tmp_path / "access.log"
    one = site({"access_log": "json", "access_log_file": str(path)})
    for number in range(20):
        if number == 10:
            path.rename(tmp_path / "access.log.1")
            one.gateway.signal(signal.SIGHUP)
            one.gateway.wait_log("event=reloaded")
        one.gateway.get("/x", headers=[("traceparent", f"00-{number:032x}-00f067aa0ba902b7-01")])
    check.until(path.exists, "a new file")
    one.gateway.signal(signal.SIGTERM)
    assert one.gateway.wait() == 0
    texts = [p.read_text().splitlines() for p in (tmp_path / "access.log.1", path)]
    traces = [json.loads(line).get("trace") for text in texts for line in text]
    # The trace id 0 is none.
    assert sorted(filter(None, traces)) == [f"{n:032x}" for n in range(1, 20)]
    assert len(traces) == 20 and texts[1]
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_rotation_without_a_configuration(site, tmp_path):
    """SIGHUP opens the file anew although the configuration cannot be taken up."""
    path = tmp_path / "access.log"
    one = site({"access_log": "json", "access_log_file": str(path)})
    one.gateway.get("/x")
    check.until(path.read_text, "a line")
    path.rename(tmp_path / "access.log.1")
    (one.gateway.folder / "hapax.yaml").write_text("no: such\noption: here\n")
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log("event=reload_refused")
    one.gateway.get("/x")
    check.until(lambda: path.exists() and path.read_text(), "a line in a new file")


def test_switched_on_and_off(site, tmp_path):
    """SIGHUP changes format and file, and says where the new one cannot be opened."""
    one = site()
    lines = Lines(one.gateway)

    def reload(**config):
        seen = len(one.gateway.lines)
        one.gateway.config.update(config)
        one.gateway.write_config()
        one.gateway.signal(signal.SIGHUP)
        one.gateway.wait_log("event=reloaded", since=seen)

    one.gateway.get("/x")
    reload(access_log="json")
    one.gateway.get("/x")
    assert lines.next()["did"] == "passed"
    reload(access_log_file=str(tmp_path / "no" / "such" / "folder"))
    one.gateway.wait_log("event=log_not_opened .*No such file.* effect=\"stdout is written on\"")
    one.gateway.get("/x")
    assert lines.next()["did"] == "passed"
    reload(access_log="off")
    one.gateway.get("/x")
    reload(access_log="json", access_log_file=str(tmp_path / "now.log"))
    one.gateway.get("/x")
    check.until(lambda: (tmp_path / "now.log").exists() and (tmp_path / "now.log").read_text(), "a line")
    assert len((tmp_path / "now.log").read_text().splitlines()) == 1


def flood(gateway, count):
    """So many requests on one connection, each refused at once."""
    one = gateway.request("POST", "/pay", key=None, body=b"")
    with gateway.connect(60) as wire:
        sender = threading.Thread(target=lambda: wire.send(one * count))
        sender.start()
        for _ in range(count):
            assert wire.answer().status == 400
        sender.join()


def test_a_pipe_that_nobody_reads(site, tmp_path):
    """Requests go on; the lines that are lost are counted and told of; the others are whole."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    one = site({"access_log": "json", "access_log_file": str(path)})
    flood(one.gateway, 14000)
    answer = one.gateway.post()
    assert answer.status == 200
    dropped = one.gateway.metrics()["hapax_access_log_dropped_total"]
    assert dropped > 0
    one.gateway.wait_log("event=log_lines_dropped log=access_log .*nobody reads it")
    os.set_blocking(reader, True)
    kept = []

    def read():
        with os.fdopen(reader) as file:
            kept.extend(json.loads(line) for line in file)

    thread = threading.Thread(target=read)
    thread.start()
    one.gateway.signal(signal.SIGTERM)
    assert one.gateway.wait() == 0
    thread.join(20)
    assert not thread.is_alive() and len(kept) + dropped == 14001


def test_an_end_with_a_full_pipe(site, tmp_path):
    """A pipe that nobody reads does not keep the process from ending."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    one = site({"access_log": "json", "access_log_file": str(path)})
    flood(one.gateway, 1000)
    one.gateway.signal(signal.SIGTERM)
    assert one.gateway.wait(15) == 0
    os.close(reader)


def test_a_full_disk(site):
    """Every write fails: every line is counted, and no request is the worse for it."""
    one = site({"access_log": "text", "access_log_file": "/dev/full"})
    key = new_key()
    assert one.gateway.post(key=key).status == one.gateway.post(key=key).status == 200
    check.until(lambda: one.gateway.metrics()["hapax_access_log_dropped_total"] == 2,
                "both are counted")
    one.gateway.wait_log("event=log_lines_dropped .*No space left on device")
    assert len(one.provider.ledger(key)) == 1


def test_a_file_that_cannot_be_opened(site, tmp_path):
    """The start fails and names it."""
    one = site()
    one.gateway.stop()
    bad = Gateway(tmp_path, one.provider.url, {"access_log": "json", "store": "memory:",
                                               "access_log_file": str(tmp_path / "no" / "x")})
    bad.spawn()
    assert bad.wait(15) != 0
    bad.wait_log(r"no/x cannot be opened for writing: No such file or directory")


def on_terminal(site, tmp_path, env):
    """The lines that `hapax serve` prints on a terminal for one request."""
    one = site()
    one.gateway.stop()
    gateway = Gateway(tmp_path, one.provider.url, {"store": "memory:", "routes": ROUTES})
    master, slave = pty.openpty()
    gateway.wrap = ["sh", "-c", f'exec "$@" >/proc/{os.getpid()}/fd/{slave}', "sh"]
    gateway.start(env={"TERM": "xterm", **env})
    gateway.post()
    seen = b""
    while b"POST /pay" not in seen:
        seen += os.read(master, 4096)
    gateway.stop()
    os.close(master)
    os.close(slave)
    return seen.decode().replace("\r\n", "\n")


def test_on_a_terminal(site, tmp_path):
    """A short coloured line, without being asked for."""
    text = on_terminal(site, tmp_path, {"NO_COLOR": ""})
    assert re.search("\x1b\\[32m200 executed\x1b\\[0m +[0-9.]+ ms  POST /pay\n", text), repr(text)


def test_no_color(site, tmp_path):
    """NO_COLOR (no-color.org): the same without colours."""
    text = on_terminal(site, tmp_path, {"NO_COLOR": "1"})
    assert "\x1b" not in text and re.search(r"\d 200 executed +[0-9.]+ ms  POST /pay\n", text), repr(text)


def test_nothing_where_nobody_asked(shared):
    """Standard output is no terminal: no line."""
    shared.gateway.post()
    check.until(lambda: shared.gateway.answered() >= 1, "it is counted")
    assert not [line for line in shared.gateway.lines if "did=" in line or "executed" in line]


def test_events_as_json(site):
    """log_format: json makes an object of each event; format and level change with SIGHUP."""
    one = site({"log_format": "json", "log_level": "info"})
    assert json.loads(one.gateway.wait_log('"event":"ready"'))["level"] == "info"
    check.problem(one.gateway.post(behave="reset=after"), "upstream_outcome_unknown", status=502)
    lost = json.loads(one.gateway.wait_log('"event":"outcome_unknown"'))
    assert lost["attempt"] == 1 and lost["status"] == 0 and lost["operation"] and lost["reason"]
    one.gateway.config.update(log_format="text")
    one.gateway.write_config()
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log("event=reloaded")
    # The line of the access log shows that the loop goes by the new settings.
    one.gateway.config.update(log_level="error", access_log="json")
    one.gateway.write_config()
    one.gateway.signal(signal.SIGHUP)
    check.until(lambda: one.gateway.get("/x") and '"did"' in one.gateway.log(), "a line")
    seen = len(one.gateway.lines)
    assert one.gateway.post(behave="reset=after").status == 502
    one.gateway.wait_log('"status":502', since=seen)
    assert not [line for line in one.gateway.lines[seen:] if "outcome_unknown" in line and "event" in line]
