"""Shows how the process meets what is done to it: signals, crashes, an upstream
that is not there, and a start at which something was left unsaid."""
import concurrent.futures
import contextlib
import os
import re
import resource
import signal
import subprocess
import threading
import time

import pytest

from conftest import require_program
from harness import check, refuse
from harness.gateway import Gateway, binary, free_port, is_sanitized
from harness.provider import Provider
from harness.secret import new_key

QUESTION = "does a 500 of this service mean that it rolled back, or may it have happened?"


def test_two_stops_within_a_second(site):
    """To the process and to its group, as timeout(1) sends it, is one stop: what is
    under way is finished, and nobody is told that it is unknown."""
    one = site()
    key = new_key()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/x", key=key, behave="hold=x"))
        one.provider.gate("x").wait_arrived()
        one.gateway.signal(signal.SIGTERM)
        one.gateway.wait_log("event=draining")
        one.gateway.signal(signal.SIGTERM)
        one.gateway.wait_log("event=signal_ignored signal=15")
        one.provider.gate("x").release()
        assert wire.answer().status == 200
    assert one.gateway.wait() == 0
    assert len(one.provider.ledger(key)) == 1


def test_two_stops_of_an_idle_one(site):
    """However close together, and however far the first has come."""
    one = site()
    for _ in range(8):
        one.gateway.signal(signal.SIGTERM)
        try:
            while one.gateway.process.poll() is None:
                one.gateway.signal(signal.SIGTERM)
        except ProcessLookupError:
            pass
        assert one.gateway.wait() == 0, one.gateway.log()
        one.gateway.start()


def test_a_later_stop_ends_the_drain(site):
    """A person who asks again after a second does not want to wait."""
    one = site()
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/x", behave="hold=x"))
        one.provider.gate("x").wait_arrived()
        one.gateway.signal(signal.SIGTERM)
        one.gateway.wait_log("event=draining")
        time.sleep(1.1)  # the time is what this is about
        one.gateway.signal(signal.SIGTERM)
        assert one.gateway.wait() == 1
    one.gateway.wait_log("event=stopped .*a second signal")
    one.gateway.process = None


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_user_signals(site, number):
    """They mean nothing here, and a line says so."""
    one = site()
    one.gateway.signal(number)
    one.gateway.wait_log(f"event=signal_ignored signal={int(number)}")
    assert one.gateway.post().status == 200


def crash(command, folder):
    """Whether a core was dumped when a process that could is made to crash."""
    def unlimited():
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (most, most))

    with open(folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   cwd=folder, preexec_fn=unlimited)
    check.until(lambda: b"ready" in (folder / "log").read_bytes(), "it runs", 30)
    os.kill(process.pid, signal.SIGSEGV)
    _, status = os.waitpid(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert os.WTERMSIG(status) == signal.SIGSEGV
    return os.WCOREDUMP(status)


@pytest.mark.parametrize("asked", [False, True])
def test_core_dumps(tmp_path, asked):
    """A crash leaves no core, which would have every credential, unless asked to."""
    require_program()
    if is_sanitized(binary()):
        pytest.skip("a sanitizer has its own way with cores")
    if not crash(["sh", "-c", "echo ready; while :; do sleep 1; done"], tmp_path):
        pytest.skip("this system dumps no core for anybody")
    gateway = Gateway(tmp_path, "http://127.0.0.1:9", {"core_dumps": asked} if asked else None)
    dumped = crash([gateway.program, "serve", "--config", gateway.write_config()], tmp_path)
    for core in tmp_path.glob("core*"):
        core.unlink()
    assert dumped == asked


def test_upstream_down(site):
    """One event when it begins and one when it ends, and no line for each request
    that finds it so."""
    one = site({"upstream_name": "till"})
    assert one.gateway.metrics()["hapax_upstream_up"] == 1
    one.provider.stop()
    for _ in range(20):
        check.problem(one.gateway.post(), "upstream_unreachable")
    assert one.gateway.get("/x").status == 502
    [line] = one.gateway.events("upstream_down")
    assert "level=warn" in line and "name=till" in line and one.provider.url in line, line
    assert all("level=debug" in line for line in one.gateway.lines if "event=not_executed " in line)
    assert one.gateway.metrics()["hapax_upstream_up"] == 0
    one.provider.start()
    check.until(lambda: one.gateway.post().status == 200 and one.gateway.metrics()["hapax_upstream_up"] == 1,
                "it is up again")
    one.gateway.events("upstream_up")
    one.gateway.events("upstream_down")


def test_a_name_without_an_address(site):
    """It is told of at the start, which it does not stop."""
    one = site({"upstream": "http://nobody.invalid:9"})
    line = one.gateway.wait_log("event=upstream_down")
    assert "no address" in line and "nobody.invalid" in line, line
    assert one.gateway.admin("/readyz").status == 200


def test_unsaid_without_a_file(tmp_path):
    """`hapax serve` without a file asks what a 500 means."""
    require_program()
    port = free_port()
    command = [binary(), "serve", "--upstream", "http://127.0.0.1:9", "--admin", "off", "--listen",
               f"127.0.0.1:{port}"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        lines = []
        while not lines or "event=ready" not in lines[-1]:
            lines.append(process.stderr.readline())
            assert lines[-1], lines
        process.terminate()
    asked = [line for line in lines if QUESTION in line]
    assert len(asked) == 1 and "server_error: unknown" in asked[0], lines


def test_unsaid_on_many_routes(site):
    """The start has one line for all routes; none where it is said."""
    routes = [{"match": f"POST /thing{n}"} for n in range(300)]
    one = site({"routes": routes})
    asked = [line for line in one.gateway.lines if QUESTION in line]
    assert len(asked) == 1 and "POST /thing0, POST /thing1" in asked[0] and "more" in asked[0], asked
    assert len(asked[0]) < 600
    said = site({"routes": routes, "defaults": {"server_error": "unknown"}})
    assert not [line for line in said.gateway.lines if QUESTION in line]


# ---- what the system refuses ----

def test_no_thread_for_a_reload(site, tmp_path):
    """The old configuration stays in force, with a line; the next SIGHUP finds a
    thread again, and a drain goes on without one."""
    full = tmp_path / "full"
    one = site({}, wrap=refuse.wrap(tmp_path, **{"while": full}))
    gateway = one.gateway
    gateway.config["routes"] = [{"match": "POST /free", "key": "ignore"}]
    gateway.write_config()
    full.touch()
    gateway.signal(signal.SIGHUP)
    assert "no thread" in gateway.wait_log("level=error event=reload_refused")
    check.problem(gateway.post("/free", key=None), "idempotency_key_missing")
    key = new_key()
    assert gateway.post(key=key).status == 200 and gateway.post(key=key).replayed
    full.unlink()
    gateway.signal(signal.SIGHUP)
    gateway.wait_log("event=reloaded")
    assert gateway.post("/free", key=None).status == 200
    full.touch()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/x", behave="hold=x"))
        one.provider.gate("x").wait_arrived()
        gateway.signal(signal.SIGTERM)
        gateway.wait_log("level=warn event=drain_blocks")
        one.provider.gate("x").release()
        assert wire.answer().status == 200
    assert gateway.wait() == 0, gateway.log()


def test_no_thread_at_the_start(tmp_path):
    """Whichever thread cannot be made, the start fails with a message, and nothing
    is left behind that runs."""
    require_program()
    number, code = 0, 1
    while code != 0:
        number += 1
        gateway = Gateway(tmp_path, "http://127.0.0.1:9", {"loops": 3},
                          wrap=refuse.wrap(tmp_path, thread=number)).spawn()
        with gateway.news:
            gateway.news.wait_for(lambda g=gateway: g.ready or g.gone(), 30)
        if gateway.ready:
            gateway.signal(signal.SIGTERM)
        code = gateway.wait()
        check.until(lambda g=gateway: not g.lines or g.process.stdout.closed, "the log is read")
        assert code in (0, 1) and (code == 0) == gateway.ready, f"thread {number}: exit {code}\n{gateway.log()}"
        assert code == 0 or re.search("^hapax: .* cannot .*: ", gateway.log(), re.M), gateway.log()
        gateway.check_log()
    assert number > 5, "hapax serve has at least a committer, three loops and a worker"


def test_no_random_bytes(tmp_path):
    """Without them no token can be made, and a message says so."""
    require_program()
    gateway = Gateway(tmp_path, "http://127.0.0.1:9", wrap=refuse.wrap(tmp_path, random=1))
    command = gateway.wrap + [gateway.program, "serve", "--config", gateway.write_config()]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 1 and "no random bytes" in run.stderr, run


def move(gateway, url):
    """The service is at another address, by SIGHUP."""
    seen = len(gateway.lines)
    gateway.config["upstream"] = url
    gateway.write_config()
    gateway.signal(signal.SIGHUP)
    gateway.wait_log("event=reloaded", since=seen)


@pytest.fixture
def moved(site, tmp_path):
    """A site, and a second provider that its service may move to."""
    with contextlib.closing(Provider(tmp_path / "second")) as second:
        yield site(), second


def test_the_service_moves(moved):
    """What is under way ends where it began, new requests go to the new address, and keys go
    on: what was executed at the old address is replayed."""
    one, second = moved
    before, held, after = new_key(), new_key(), new_key()
    assert one.gateway.post(key=before).status == 200
    with one.gateway.connect() as wire:
        wire.send(one.gateway.request("POST", "/pay", key=held, behave="hold=h"))
        one.provider.gate("h").wait_arrived()
        move(one.gateway, second.url)
        one.gateway.wait_log(rf"event=upstream_changed .*now={second.url}")
        assert one.gateway.post(key=after).status == 200
        one.provider.gate("h").release()
        assert wire.answer().status == 200
    for key in (before, held, after):
        assert one.gateway.post(key=key)["Idempotent-Replayed"] == "true"
    assert [len(one.provider.ledger(key)) for key in (before, held, after)] == [1, 1, 0]
    assert [len(second.ledger(key)) for key in (before, held, after)] == [0, 0, 1]
    move(one.gateway, one.provider.url)
    assert one.gateway.get("/x").status == 200


def test_the_service_moves_away_from_a_dead_address(moved):
    """A key that failed there is executed at the new address."""
    one, second = moved
    key = new_key()
    move(one.gateway, f"http://127.0.0.1:{free_port()}")
    check.problem(one.gateway.post(key=key), "upstream_unreachable")
    move(one.gateway, second.url)
    assert one.gateway.post(key=key).status == 200
    assert len(second.ledger(key)) == 1 and not one.provider.ledger(key)


def test_the_service_moves_to_and_fro(moved):
    """Under load, through several moves, every key is executed once at one of the two."""
    one, second = moved
    keys, over = [], threading.Event()

    def send():
        with one.gateway.connect(30) as wire:
            while not over.is_set():
                key = new_key()
                keys.append(key)
                wire.send(one.gateway.request("POST", "/pay", key=key))
                assert wire.answer().status == 200, key

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        senders = [pool.submit(send) for _ in range(4)]
        for number in range(6):
            count = len(keys)
            check.until(lambda: len(keys) > count + 20, "requests go on")
            move(one.gateway, (second if number % 2 == 0 else one.provider).url)
        over.set()
        for sender in senders:
            sender.result(30)
    executed = {key: len(one.provider.ledger(key)) + len(second.ledger(key)) for key in keys}
    assert set(executed.values()) == {1}
    assert second.ledger() and one.provider.ledger()


def test_another_scheme_needs_a_restart(site):
    """http against https is refused, by a line that says so; the old one stays in force."""
    one = site()
    one.gateway.config["upstream"] = "https://127.0.0.1:1"
    one.gateway.write_config()
    one.gateway.signal(signal.SIGHUP)
    one.gateway.wait_log(r'event=reload_refused needs_restart="upstream \(http or https')
    assert one.gateway.post().status == 200
