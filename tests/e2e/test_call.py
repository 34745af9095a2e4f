"""Shows that `hapax call` sends one request with one key until the answer is
definite, and that it tells what it knows by its exit code and in words."""
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess

import pytest

from harness.caller import (BODY, DONE, FAILED, IN_DOUBT, NOT_YET, PAID, QUICK, USAGE, UUID7, WORD,
                            caller, keys_of, problem, script, wait_for)  # noqa: F401
from harness.external_tls import Authority, server_context
from harness.gateway import binary, free_port
from harness.script import CLOSE, DEAF, HOLD, RESET, answer

NOT_KEPT = json.dumps({"code": "response_not_kept", "executed": "yes", "retry": "never",
                       "original_status": 201}).encode()
STRIPE = json.dumps({"error": {"type": "idempotency_error"}}).encode()

# What the server does, how many requests reach it, the exit code, the entry's state.
ROWS = {
    "created": ([PAID], 1, DONE, "done"),
    "lost behind the whole request": ([CLOSE, PAID], 2, DONE, "done"),
    "reset": ([RESET, RESET, PAID], 3, DONE, "done"),
    "closed unread": ([DEAF, PAID], 1, DONE, "done"),
    "half a body": ([b"HTTP/1.1 201 X\r\nContent-Length: 50\r\n\r\nhalf", PAID], 2, DONE, "done"),
    "garbage": ([b"what?\r\n\r\n", PAID], 2, DONE, "done"),
    "two lengths": ([b"HTTP/1.1 200 X\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", PAID],
                    2, DONE, "done"),
    "switches protocols": ([b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", PAID],
                           2, DONE, "done"),
    "early hints": ([b"HTTP/1.1 103 X\r\n\r\n" + PAID], 1, DONE, "done"),
    "in progress": ([answer(409, Retry_After=1), PAID], 2, DONE, "done"),
    "in progress by the document": ([problem(409, "unknown", "same_key"), PAID], 2, DONE, "done"),
    "in progress in Stripe's shape": ([answer(409, STRIPE, Content_Type="application/json"), PAID],
                                      2, DONE, "done"),
    "too early": ([answer(425), PAID], 2, DONE, "done"),
    "too many": ([answer(429, Retry_After=1), PAID], 2, DONE, "done"),
    "bad gateway": ([answer(502), PAID], 2, DONE, "done"),
    "unavailable": ([answer(503), PAID], 2, DONE, "done"),
    "gateway timeout": ([answer(504), PAID], 2, DONE, "done"),
    "all of them": ([CLOSE, answer(502), answer(503), answer(504), answer(425), RESET, PAID],
                    7, DONE, "done"),
    "a redirect is not followed": ([answer(303, Location="/elsewhere"), PAID], 1, DONE, "done"),
    "moved": ([answer(301, Location="https://elsewhere/"), PAID], 1, FAILED, "done"),
    "found": ([answer(302, Location="/elsewhere"), PAID], 1, FAILED, "done"),
    "temporarily elsewhere": ([answer(307, Location="/elsewhere"), PAID], 1, FAILED, "done"),
    "for ever elsewhere": ([answer(308, Location="/elsewhere"), PAID], 1, FAILED, "done"),
    "a conflict of the application": ([answer(409), PAID], 1, FAILED, "done"),
    "refused": ([answer(422, b"no"), PAID], 1, FAILED, "done"),
    "the key is another's": ([problem(422, "no", "never"), PAID], 1, FAILED, "done"),
    "a conflict behind a loss": ([CLOSE, answer(409), PAID], 3, DONE, "done"),
    "it happened, not kept": ([CLOSE, answer(409, NOT_KEPT, Content_Type="application/problem+json")],
                              2, DONE, "done"),
    "server error": ([answer(500), PAID], 1, IN_DOUBT, "stopped"),
    "server error that is stored": ([answer(500, Idempotent_Replayed="true"), PAID],
                                    1, FAILED, "done"),
    "server error that says same_key": ([problem(500, "no", "same_key"), PAID], 2, DONE, "done"),
    "unauthorised": ([answer(401), PAID], 1, FAILED, "done"),
    "unauthorised behind a loss": ([CLOSE, answer(401), PAID], 2, IN_DOUBT, "stopped"),
    "forbidden behind a 504": ([answer(504), answer(403), PAID], 2, IN_DOUBT, "stopped"),
    "to be mended, behind a loss": ([CLOSE, problem(413, "no", "after_fix"), PAID],
                                    2, IN_DOUBT, "stopped"),
    "a long time to come back": ([answer(429, Retry_After=3600), PAID], 1, NOT_YET, "gave_up"),
    "a long time to come back, in doubt": ([problem(409, "unknown", "same_key", Retry_After=3600)],
                                           1, IN_DOUBT, "gave_up"),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_it_makes_of_it(caller, script, name):
    """Requests, exit code, output and journal; every attempt is the same bytes."""
    acts, requests, exit_code, state = ROWS[name]
    server = script(*acts)
    done = caller.post(server.url, "-H", f"Authorization: Bearer {WORD}", exit_code=exit_code)
    assert len(server.requests) == requests
    assert len(set(server.requests)) == 1, "an attempt differs from the first"
    entry = caller.entry()
    assert entry["state"] == state
    assert entry["in_doubt"] == (exit_code == IN_DOUBT)
    assert keys_of(server.requests) == {f'"{entry["key"]}"'.encode()}
    if exit_code == DONE and state == "done" and acts[-1] == PAID and requests == len(acts):
        assert (done.stdout, done.errors) == (b'{"id": 1}\n', "")
    if exit_code in (IN_DOUBT, NOT_YET):
        words = "it may have happened" if exit_code == IN_DOUBT else "nothing has happened"
        assert words in done.errors and f"--resume {entry['id']}" in done.errors
        assert done.stdout == b"", "what is not definite is no result"


def test_nobody_there(caller):
    """No byte left: nothing happened, and the exit code says so."""
    done = caller.post(f"http://127.0.0.1:{free_port()}/", "--budget", "100ms", exit_code=NOT_YET)
    assert "nothing has happened" in done.errors
    assert caller.entry()["state"] == "gave_up"


def test_no_answer_in_time(caller, script):
    server = script(HOLD, HOLD)
    caller.post(server.url, "--timeout", "300ms", "--attempts", "2", exit_code=IN_DOUBT)
    assert len(server.requests) == 2


def test_too_large(caller, script):
    """An answer that is not kept is definite by its status all the same."""
    server = script(answer(201, bytes(17 << 20)))
    done = caller.post(server.url, exit_code=DONE)
    assert done.stdout == b"" and "too large" in done.errors
    assert caller.entry()["status"] == 201


@pytest.mark.parametrize("act, exit_code", [(answer(503), IN_DOUBT), (answer(425), NOT_YET)])
def test_interrupted_while_it_waits(caller, script, act, exit_code):
    """A signal ends the wait; the entry stays open."""
    server = script(act)
    process = caller.start("POST", server.url, "-d", BODY, "--backoff", "1h", "--backoff-max", "1h",
                           "--budget", "1d")
    server.wait_requests(1)
    wait_for(lambda: caller_state(caller) == (0, 1))
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == exit_code, errors
    assert "interrupted" in errors.decode()
    assert caller.entry()["state"] == "open"


def test_interrupted_while_it_is_sent(caller, script):
    server = script(HOLD)
    process = caller.start("POST", server.url, "-d", BODY)
    server.wait_requests(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == IN_DOUBT, errors
    assert caller.entry()["state"] == "open"


def caller_state(caller):
    """Whether it is sending, and its attempts, as the file has them."""
    with sqlite3.connect(caller.journal) as db:
        return db.execute("SELECT sending, attempts FROM call").fetchone()


def test_keys(caller, script):
    server = script(*[PAID] * 5)
    caller.post(server.url)
    caller.post(server.url, "--key", 'order "1" \\')
    caller.post(server.url, "--bare-key")
    caller.post(server.url, "--bare-key", "--key", "order-1", "--key-header", "X-Request-Id")
    heads = [r.decode().lower() for r in server.requests]
    assert re.search(rf'\r\nidempotency-key: "{UUID7}"\r\n', heads[0])
    assert '\r\nidempotency-key: "order \\"1\\" \\\\"\r\n' in heads[1]
    assert re.search(rf"\r\nidempotency-key: {UUID7}\r\n", heads[2])
    assert "\r\nx-request-id: order-1\r\n" in heads[3] and "idempotency-key" not in heads[3]
    for flags in (["--key", ""], ["--key", "x" * 256], ["--key", "ä"],
                  ["--bare-key", "--key", "a b"], ["--bare-key", "--key", '"a"'],
                  ["-H", "Idempotency-Key: x"], ["--key-header", "a b"]):
        assert caller.post(server.url, *flags).returncode in (FAILED, USAGE), flags
    assert len(server.requests) == 4


@pytest.mark.parametrize("flags, wanted", [
    (["-d", '{"a":1}'], "application/json"),
    (["-d", "7"], "application/json"),
    (["-d", "a=b"], None),
    (["-d", '{"a":1}', "-H", "Content-Type: application/x-own"], "application/x-own"),
    (["-d", '{"a":1}', "-H", "@typed"], "application/x-file"),
    (["-d", '{"a":1}', "-H", "@plain"], "application/json"),
    ([], None),
])
def test_content_type(caller, script, flags, wanted):
    """JSON is called so, unless a field or a file of fields says something else."""
    (caller.home / "typed").write_text(f"X-Long: {'x' * 1000}\ncontent-type: application/x-file\n")
    (caller.home / "plain").write_text("X-A: b\n")
    server = script(PAID)
    caller.run("POST", server.url, *flags, exit_code=DONE)
    found = re.search(r"(?i)\r\ncontent-type: (.*?)\r\n", server.requests[0].decode())
    assert (found and found.group(1)) == wanted


def test_bodies(caller, script):
    """From a file, from standard input, none; any bytes."""
    server = script(*[PAID] * 4)
    bytes_sent = bytes(range(256)) * 1000
    (caller.home / "body").write_bytes(bytes_sent)
    caller.run("POST", server.url, "-d", "@body", exit_code=DONE)
    caller.run("PUT", server.url, "-d@-", stdin=bytes_sent, exit_code=DONE)
    caller.run("PATCH", server.url, "--data=", exit_code=DONE)
    caller.run("DELETE", server.url, exit_code=DONE)
    bodies = [r.partition(b"\r\n\r\n")[2] for r in server.requests]
    assert bodies == [bytes_sent, bytes_sent, b"", b""]
    assert [r.split(b" ")[0] for r in server.requests] == [b"POST", b"PUT", b"PATCH", b"DELETE"]


@pytest.mark.parametrize("arguments, code, words", [
    (["GET", "http://x/"], USAGE, "for the rest there is curl"),
    (["post", "http://x/"], USAGE, "POST, PUT"),
    (["POST", "ftp://x/"], USAGE, "http"),
    (["POST", "http://u:p@x/"], USAGE, "user name"),
    (["POST", "http://x/ y"], USAGE, "escaped"),
    (["POST"], USAGE, "method and a URL"),
    ([], USAGE, "method and a URL"),
    (["POST", "http://x/", "-H", "no colon"], USAGE, "Name: value"),
    (["POST", "http://x/", "-H", "Content-Length: 1"], USAGE, "connection"),
    (["POST", "http://x/", "-H", "Transfer-Encoding: chunked"], USAGE, "connection"),
    (["POST", "http://x/", "-H", "X: a\nY: b"], USAGE, "control byte"),
    (["POST", "http://x/", "-H", "@/nowhere"], USAGE, "/nowhere"),
    (["POST", "http://x/", "-d", "@/nowhere"], USAGE, "/nowhere"),
    (["POST", "https://x/", "--cacert", "/nowhere"], USAGE, "--cacert /nowhere: No such file"),
    (["POST", "http://x/", "--budget", "soon"], USAGE, "--budget needs a time"),
    (["POST", "http://x/", "--timeout", "0"], USAGE, "--timeout needs a time"),
    (["POST", "http://x/", "-d", "{}", "-o", "/nowhere/a"], USAGE, "/nowhere/a: No such file"),
    (["POST", "http://x/", "-H", "Idempotency-Key: a"], USAGE, "--key"),
    (["POST", "http://x/", "--retries", "3"], USAGE, "`hapax call --help` lists them"),
    (["POST", "http://x/", "--attempts", "0"], USAGE, "--attempts needs a number"),
    (["POST", "http://x/", "--no-journal", "--journal", "x"], USAGE, "not both"),
    (["--resume", "x"], USAGE, "not the number"),
    (["--resume", "--list"], USAGE, "stand alone"),
    (["--list", "POST"], USAGE, "stand alone"),
    (["--list", "--no-journal"], USAGE, "without a journal"),
    (["--resume", "99"], FAILED, "no call 99"),
])
def test_mistakes(caller, arguments, code, words):
    done = caller.run(*arguments, exit_code=code)
    assert words in done.errors and done.stdout == b""


def test_a_file_stays_until_there_is_an_answer(caller, script):
    """What is not definite is not put in its place."""
    server = script(answer(500), PAID)
    (caller.home / "file").write_text("of yesterday, and longer")
    caller.post(server.url, "-o", "file", exit_code=IN_DOUBT)
    assert (caller.home / "file").read_text() == "of yesterday, and longer"
    caller.run("--resume", "1", "-o", "file", exit_code=DONE)
    assert (caller.home / "file").read_bytes() == b'{"id": 1}\n'


def test_output(caller, script):
    """-i, -o, --explain and --json."""
    server = script(PAID, PAID, CLOSE, PAID, answer(201, b"\xff"), answer(503))
    head = caller.post(server.url, "-i", exit_code=DONE).stdout
    assert head.startswith(b"HTTP/1.1 201 Created\r\n") and head.endswith(b'\r\n\r\n{"id": 1}\n')
    assert caller.post(server.url, "-o", "file", exit_code=DONE).stdout == b""
    assert (caller.home / "file").read_bytes() == b'{"id": 1}\n'
    explained = caller.post(server.url, "--explain", exit_code=DONE)
    assert re.match(r"attempt 1: sent, and no answer: .*; again in .*\nattempt 2: 201 Created .*\n"
                    rf"done after 2 attempts, with the key {UUID7}\n$", explained.errors)
    report = json.loads(caller.post(server.url, "--json", exit_code=DONE).stdout)
    assert report["outcome"] == "done" and report["status"] == 201 and report["body_base64"] == "/w=="
    assert "Content-Length: 1" in report["headers"]
    report = json.loads(caller.post(server.url, "--json", "--attempts", "1", exit_code=IN_DOUBT).stdout)
    assert (report["outcome"], report["in_doubt"], report["exit"]) == ("gave_up", True, 3)
    assert [(a["number"], a["end"], a["status"]) for a in report["attempts"]] == [(1, "answered", 503)]


def test_output_that_cannot_be(caller, script):
    """A mistake in -o is found before anything is sent."""
    server = script(PAID)
    for path in ("nowhere/file", str(caller.home), "/proc/version/x", "x" * 5000):
        done = caller.post(server.url, "-o", path, exit_code=USAGE)
        assert "nothing was sent" in done.errors
    assert server.connections == 0


FULL = {
    "-o": (["-o", "/dev/full"], {}),
    "-o, with a report": (["-o", "/dev/full", "--json"], {}),
    "output": ([], {"preexec_fn": lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1)}),
    "a report": (["--json"], {"preexec_fn": lambda: os.dup2(os.open("/dev/full", os.O_WRONLY), 1)}),
    "a pipe that nobody reads": ([], {"preexec_fn": lambda: broken_pipe(1)}),
    "closed": ([], {"preexec_fn": lambda: os.close(1)}),
    "all closed": ([], {"preexec_fn": lambda: os.closerange(0, 3)}),
}


def broken_pipe(number):
    reader, writer = os.pipe()
    os.close(reader)
    os.dup2(writer, number)


@pytest.mark.parametrize("name", FULL)
def test_an_answer_that_nobody_got(caller, script, name):
    """It is not done: the call is kept, and a resume gets the answer, by the same key."""
    arguments, how = FULL[name]
    server = script(CLOSE, PAID, PAID)
    done = caller.post(server.url, *arguments, exit_code=IN_DOUBT, **how)
    assert (caller.entry()["state"], caller.entry()["in_doubt"]) == ("open", True)
    assert name == "all closed" or "--resume 1" in done.errors
    assert caller.run("--resume", exit_code=DONE).stdout == b'{"id": 1}\n'
    assert caller.entry()["state"] == "done" and len(set(server.requests)) == 1
    assert (caller.journal.parent / "calls.db.lock").stat().st_size == 0


def test_an_answer_that_is_not_done(caller, script):
    """What cannot be handed over is no refusal either; without a journal, the key is told."""
    server = script(answer(422, b"no"), PAID)
    done = caller.post(server.url, "-o", "/dev/full", exit_code=IN_DOUBT)
    assert "answered with 422" in done.errors
    done = caller.post(server.url, "-o", "/dev/full", "--no-journal", exit_code=IN_DOUBT)
    assert re.search(rf"--key '{UUID7}'", done.errors)


def test_tls(caller, script, tmp_path):
    """A certificate that is not trusted: no byte left. Trusted by --cacert: done."""
    authority = Authority(tmp_path / "ca")
    server = script(PAID, PAID, tls=server_context(*authority.certificate()))
    caller.post(server.url, "--attempts", "1", exit_code=NOT_YET)
    caller.post(server.url, "--attempts", "1", "--cacert", authority.ca_file, exit_code=DONE)
    assert len(server.requests) == 1


def test_proxy_of_the_environment(caller, script):
    """It is asked, as libcurl's documentation says."""
    proxy = script(PAID)
    env = {**caller.env, "http_proxy": f"http://127.0.0.1:{proxy.port}"}
    caller.post("http://api.invalid/pay", env=env, exit_code=DONE)
    assert proxy.requests[0].startswith(b"POST http://api.invalid/pay HTTP/1.1\r\n")


@pytest.mark.parametrize("proxy", ["nonsense://u:{}@127.0.0.1:9", "http://u:{}@[1"])
def test_a_proxy_that_is_none(caller, proxy):
    """Its password is shown nowhere (which the caller looks for); nothing is sent."""
    env = {**caller.env, "http_proxy": proxy.format(WORD)}
    done = caller.post("http://api.invalid/pay", "--attempts", "1", "--json", env=env, exit_code=NOT_YET)
    assert "cannot be used" in done.errors and WORD.encode() not in done.stdout


def on_terminal(caller, term, *arguments):
    """What is shown on a terminal, and the exit code."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(caller.command(*arguments), stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=theirs, cwd=caller.home,
                               env={**caller.env, "TERM": term})
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    return shown.decode(), process.wait(30)


def test_on_a_terminal(caller, script):
    """The attempts as they happen, and the time until the next one; on a plain
    terminal only lines."""
    server = script(*[CLOSE, answer(429, Retry_After=2), PAID] * 2)
    shown, code = on_terminal(caller, "xterm", "POST", server.url, "-d", BODY, *QUICK)
    assert code == DONE
    assert re.search(r"attempt 1: sent, and no answer: .*; again in 0\.0 s\r\n", shown), shown
    assert re.search(r"attempt 2: 429 Too Many Requests .*; again in [12]\.\d s\r\n", shown), shown
    assert re.search(r"\r\x1b\[Knext attempt in 2 s.*\r\x1b\[Knext attempt in 1 s", shown), shown
    assert re.search(r"\r\x1b\[Kattempt 3: 201 Created \(.*\)\r\n$", shown), shown
    shown, code = on_terminal(caller, "dumb", "POST", server.url, "-d", BODY, *QUICK)
    assert code == DONE and "\x1b" not in shown and shown.count("\n") == 3, shown


def test_silent_elsewhere(caller, script):
    """Not on a terminal, nothing is said of attempts that came to something."""
    server = script(CLOSE, answer(502), PAID)
    assert caller.post(server.url, exit_code=DONE).errors == ""


def test_the_example(caller, script):
    """Killed while it pays, it pays that first when it is started again."""
    pay = os.path.join(os.path.dirname(binary()), "examples/client/pay")
    if not os.access(pay, os.X_OK):
        pytest.skip("the examples were not built: meson option `examples`")
    server = script(HOLD, PAID, PAID)
    command = [pay, server.url]
    env = {**caller.env, "PAY_TOKEN": WORD}
    with subprocess.Popen([*command, "order-1", "100"], cwd=caller.home, env=env) as process:
        server.wait_requests(1)
        process.kill()
    done = subprocess.run([*command, "order-2", "200"], cwd=caller.home, env=env, timeout=60,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("201 after 2 attempts: ") and "\n201 after 1" in done.stdout
    assert server.requests[0] == server.requests[1]
    assert [b'"order-2"' in r and b"200" in r for r in server.requests] == [False, False, True]


@pytest.mark.parametrize("concurrent", ["conflict", "accepted", "wait"])
def test_behind_the_gateway(caller, site, concurrent):
    """Done once: two with one key at the same time, both with the answer, and a server
    error that is unknown; the ledger has one line each."""
    one = site({"defaults": {"server_error": "unknown", "concurrent": concurrent}})
    host, port = one.gateway.address
    url = f"http://{host}:{port}/pay"
    gate = one.provider.gate("slow")
    held = ["-H", "X-Behave: hold=slow", "--key", f"{WORD}-double", "--budget", "30s"]
    first = caller.start("POST", url, "-d", BODY, *held)
    gate.wait_arrived()
    second = caller.start("POST", url, "-d", BODY, *held)
    wait_for(lambda: one.gateway.metrics()['hapax_reserve_total{outcome="in_progress"}'] > 0)
    gate.release()
    outputs = [p.communicate(timeout=40)[0] for p in (first, second)]
    assert (first.returncode, second.returncode) == (DONE, DONE) and outputs[0] == outputs[1]
    lost = ["-H", "X-Behave: status=500; effect=yes", "--key", f"{WORD}-lost", "--budget", "2s"]
    caller.post(url, *lost, exit_code=IN_DOUBT)
    ids = [e["id"] for e in caller.entries() if e["state"] == "stopped"]
    assert len(ids) == 1
    again = caller.run("--resume", ids[0], "--budget", "2s", exit_code=IN_DOUBT)
    assert "come back in" in again.errors
    assert [len(one.provider.ledger(f"{WORD}-{name}")) for name in ("double", "lost")] == [1, 1]
