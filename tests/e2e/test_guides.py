"""Shows that the command lines of the guides work as they stand. Each guide is walked
through with real servers; only ports, folders, references and invented hosts are others."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import textwrap

import pytest

from conftest import require_program
from harness import check, postgres
from harness.gateway import ROOT, binary, free_port
from harness.secret import ALICE, BOB, new_key
from harness.verify import RUN_SECONDS

GUIDE = ROOT / "docs/guide"


def code_blocks(page):
    """The blocks of code of a page, with continued lines joined."""
    blocks = re.findall(r"^ *```\w*\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.M | re.S)
    return [re.sub(r"\\\n *", "", block) for block in blocks]


def reachable(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def environment(**more):
    """Where `hapax` is the program under test."""
    return {**os.environ, "PATH": f"{pathlib.Path(binary()).parent}:{os.environ['PATH']}", **more}


class Walk:
    """The commands of one guide, in a folder of their own."""

    def __init__(self, name, folder, exchanges=()):
        require_program()
        self.folder, self.running = folder, []
        self.ports = {port: free_port() for port in (8080, 8081, 9000)}
        self.blocks = []
        for block in code_blocks(GUIDE / name):
            for there, here in (*exchanges, *self.addresses()):
                block = block.replace(there, here)
            self.blocks.append(block)

    def addresses(self):
        for port, other in self.ports.items():
            yield f"127.0.0.1:{port}", f"127.0.0.1:{other}"
            yield f'"127.0.0.1", {port}', f'"127.0.0.1", {other}'

    def block(self, words):
        """The only block that begins with these words."""
        found = [block for block in self.blocks if block.startswith(words)]
        assert len(found) == 1, (words, found)
        return found[0]

    def line(self, words):
        """The only line that begins with these words, whichever block it is in."""
        found = {line.strip() for block in self.blocks for line in block.splitlines() if line.strip().startswith(words)}
        assert len(found) == 1, (words, found)
        return found.pop()

    def lines(self, words):
        return list(dict.fromkeys(line.strip() for block in self.blocks for line in block.splitlines()
                                  if line.strip().startswith(words)))

    def run(self, command, code=0, seconds=60, **env):
        """What a line that a person types prints, on both streams."""
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, capture_output=True, text=True, timeout=seconds,
                              check=False, env=environment(**env))
        assert done.returncode == code, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def start(self, command, port):
        """A server in the background, until its port takes connections."""
        self.running.append(subprocess.Popen(["sh", "-c", f"exec {command}"], cwd=self.folder, env=environment(),
                                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=subprocess.STDOUT, text=True))
        check.until(lambda: reachable(self.ports[port]), f"{command} listens")

    def serve(self, command):
        """The page's `hapax serve`, on the ports of this walk."""
        self.start(f"{command} --listen 127.0.0.1:{self.ports[8080]} --admin 127.0.0.1:{self.ports[8081]}", 8080)

    def stop(self):
        """What each server printed."""
        for process in self.running:
            process.terminate()
        said = [process.communicate(timeout=30)[0] for process in self.running]
        self.running = []
        return said


@pytest.fixture
def walk(tmp_path):
    """walk(name, …) begins one; its servers end with the test."""
    begun = []

    def begin(name, **how):
        begun.append(Walk(name, tmp_path, **how))
        return begun[-1]

    yield begin
    for one in begun:
        one.stop()


def start_service(one):
    """The service of first steps, which other guides have on port 9000 too."""
    text = next(block for block in code_blocks(GUIDE / "first-steps.md") if block.startswith("# payments.py"))
    (one.folder / "payments.py").write_text(text.replace('"127.0.0.1", 9000', f'"127.0.0.1", {one.ports[9000]}'))
    one.start("/usr/bin/python3 payments.py", 9000)


# Guides whose lines other tests run.
RUN_ELSEWHERE = {"demo.md": "tests/e2e/test_demo.py", "install.md": "tests/install/test_image.py"}
# Its one line checks the reader's own file.
RUN_BY_CONFIGURATIONS = {"tenants.md"}


def test_every_guide_with_commands_is_walked():
    """A guide that prints a line with hapax or curl has a test of its own here, or the one that is named."""
    source = pathlib.Path(__file__).read_text(encoding="utf-8")
    walked = set(re.findall(r'walk\("([\w-]+\.md)"', source))
    pages = {page.name for page in GUIDE.glob("*.md")
             if any(re.match(r"\s*(hapax|curl) ", line) for block in code_blocks(page) for line in block.splitlines())}
    assert len(pages) > 12 and pages - walked == set(RUN_ELSEWHERE) | RUN_BY_CONFIGURATIONS, pages - walked
    for page, file in RUN_ELSEWHERE.items():
        test = (ROOT / file).read_text(encoding="utf-8")
        assert page in test or "hapax demo" in test, (page, file)


# What a machine without the files and the neighbours of an example may say of it.
ABSENT = ("cannot be opened", "no such file", "system lib", "names a variable that is not set", "is none of routes")


def configurations():
    """(page, text) of every block that is a whole configuration: its members are options."""
    options = set(re.findall(r"^### `([a-z_]+)", (ROOT / "docs/reference/options.md").read_text(encoding="utf-8"), re.M))
    options |= {"defaults", "routes", "targets", "webhooks"}
    for page in sorted([*GUIDE.glob("*.md"), *ROOT.glob("docs/recipes/*.md"), ROOT / "README.md"]):
        for block in re.findall(r"^ *```yaml\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.M | re.S):
            text = textwrap.dedent(block)
            names = set(re.findall(r"^([\w.-]+):", text, re.M))
            if names and names <= options:
                yield page.name, text if "upstream" in names else "upstream: http://127.0.0.1:9000\n" + text


def test_configurations_are_right(tmp_path):
    """`hapax check` takes every configuration of the documents; only what they refer to is missing here."""
    require_program()
    found = list(configurations())
    assert len(found) > 20
    for page, text in found:
        file = tmp_path / "hapax.yaml"
        file.write_text(text, encoding="utf-8")
        done = subprocess.run([binary(), "check", "--config", str(file)], capture_output=True, text=True, timeout=30,
                              check=False)
        wrong = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith(str(file)) and
                 not re.search(r": (note|warning): ", line) and not any(words in line for words in ABSENT)]
        assert done.returncode in (0, 1) and not wrong, f"{page}:\n{text}\n" + "\n".join(wrong)


def test_dead_letters(walk, site):
    """A job that its target refuses is listed, shown, retried and discarded by the lines of the guide."""
    there = site({"tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"}, "trusted_peers": ["127.0.0.1/32"],
                  "targets": {"mailer": {"url": "http://127.0.0.1:9/", "attempts": 1, "honours_keys": "1h"}},
                  "routes": [{"match": "POST /emails", "deliver": "async", "target": "mailer"}]})
    store = f" --store {there.gateway.config['store']}"
    one = walk("dead-letters.md")
    accepted = there.gateway.post("/emails", key=new_key(), headers=[("X-Tenant", "a")])
    assert accepted.status == 202, accepted

    def job():
        return re.search(r"^ *(\d+) +dead", one.run(one.line("hapax jobs ls --needs-person") + store), re.M)
    check.until(job, "the job is a dead letter")
    number = job().group(1)
    assert "POST" in one.run(one.line("hapax jobs show").replace("17", number) + store)
    one.run(one.line("hapax jobs retry 17").replace("17", number, 1) + store)
    check.until(job, "it is dead again")
    one.run(one.line("hapax jobs discard").replace("16", number, 1) + store)
    assert there.gateway.post("/emails", key=new_key(), headers=[("X-Tenant", "a")]).status == 202
    assert not re.search(rf"^ *{number} ", one.run(one.line("hapax jobs ls --needs-person") + store), re.M)
    # Many at once.
    check.until(job, "the other one is a dead letter")
    many = one.block("hapax jobs ls --state dead").replace("--target bank", "--target mailer")
    for command in ("hapax jobs ls", "hapax jobs retry"):
        assert command in many
        many = many.replace(command, command + store)
    if not shutil.which("jq"):
        pytest.skip("not installed: jq (make test installs it)")
    assert job().group(1) in one.run(many)


def test_first_steps(walk):
    """The service pays once, the retry is replayed, another amount refused."""
    one = walk("first-steps.md")
    start_service(one)
    assert one.block("python3 payments.py").strip() == "python3 payments.py"
    one.serve(one.line("hapax serve"))
    pay = one.block("curl -i")
    first, again = one.run(pay), one.run(pay)
    assert "201 Created" in first and "Idempotent-Replayed" not in first, first
    assert "Idempotent-Replayed: true" in again and '{"id": 1, "amount": 40}' in again, again
    assert "Idempotent-Replayed: true" in one.run(pay.replace('{"amount": 40}', '{ "amount": 4e1 }'))
    assert "422 " in one.run(pay.replace('{"amount": 40}', '{"amount": 400}'))
    assert '"state":"completed"' in one.run(one.block('curl "http'))
    listed = one.run(one.line("hapax keys ls"))
    assert listed.splitlines()[0].split() == one.block("REFERENCE ").splitlines()[0].split(), listed
    assert "completed" in listed and "POST /payments" in listed, listed
    said, logged = one.stop()
    assert said.count("payment 1 {'amount': 40}") == 1 and "payment 2" not in said, said
    # The page tells of each line before the first request, and prints the last of them as it is.
    logged = logged.splitlines()
    ready = next(index for index, line in enumerate(logged) if "event=ready" in line)
    assert ["server_error" in logged[0], "event=tenants" in logged[1], ready] == [True, True, 2], logged
    assert re.findall(r" (\w+)=", logged[ready]) == re.findall(r" (\w+)=", one.line("time=")), logged[ready]


def test_the_program_is_found(walk):
    """The line for PATH, typed in the clone after `make`, finds the program that was built."""
    lines = {walk("first-steps.md").line("export PATH"),
             re.search(r"^export PATH.*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.M)[0]}
    assert len(lines) == 1, lines
    found = subprocess.run(["sh", "-c", f"{lines.pop()}; command -v hapax"], cwd=ROOT, capture_output=True, text=True,
                           timeout=10, check=False).stdout
    assert found.strip() == str(ROOT / "build/hapax") or not (ROOT / "build/hapax").exists(), found


def test_in_front_of_your_service(walk):
    """Observe, read what was seen, check the file of step 3, and serve by it."""
    one = walk("before-your-service.md")
    start_service(one)
    one.serve(one.line("hapax serve --upstream"))
    pay = f"curl -s http://127.0.0.1:{one.ports[8080]}/payments -H 'Idempotency-Key: k1' -d '{{\"amount\": 1}}'"
    one.run(pay)
    check.until(lambda: "1 had a new key" in one.run(f"hapax observed --admin 127.0.0.1:{one.ports[8081]}"), "it is seen")
    one.run(pay)
    check.until(lambda: "prevented at least 1 second execution" in
                one.run(f"{one.line('hapax observed')} --admin 127.0.0.1:{one.ports[8081]}"), "the retry is seen")
    one.stop()
    (one.folder / "hapax.yaml").write_text(one.block("upstream: "))
    checked = one.run(one.line("hapax check"))
    assert "POST /payments" in checked and "ok" in checked, checked
    start_service(one)
    one.serve(one.line("hapax serve --config"))
    assert '"id": 1' in one.run(pay) and '"id": 1' in one.run(pay)


def test_the_file_of_the_readme(walk):
    """A person with the README alone, and no folder made before, guards a service by the file that it shows."""
    one = walk("first-steps.md")
    start_service(one)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = textwrap.dedent(re.search(r"^ *```yaml\n(.*?)^ *```$", text, re.M | re.S)[1])
    (one.folder / "hapax.yaml").write_text(shown.replace(":9000", f":{one.ports[9000]}"))
    one.run(re.search(r"`(hapax check --config [^`]*)`", text)[1])
    one.serve(re.search(r"`(hapax serve --config [^`]*)`", text)[1])
    pay = one.block("curl -i")
    assert "201 Created" in one.run(pay) and "Idempotent-Replayed: true" in one.run(pay)


def test_troubleshooting(walk, site):
    """On a store with one operation; only the store is named beside the commands."""
    there = site({})
    assert there.gateway.post("/payments", key="order-1001").status == 200
    one = walk("troubleshooting.md")
    (one.folder / "hapax.yaml").write_text("upstream: http://127.0.0.1:9\n")
    lines = one.lines("hapax ")
    assert len(lines) >= 6, lines
    for line in lines:
        said = one.run(line if " check " in line else f"{line} --store {there.gateway.config['store']}")
        if "order-1001" in line:
            assert "completed" in said, said


def test_on_call(walk, site):
    """An operation whose answer was lost is found, shown, asked about, and settled in three ways."""
    there = site({"routes": [{"match": "POST /payments", "server_error": "unknown"}],
                  "tenant": {"from": "header", "name": "X-Tenant"}, "trusted_peers": ["127.0.0.1"]})
    store, acme = f" --store {there.gateway.config['store']}", [("X-Tenant", "acme")]
    one = walk("on-call.md", exchanges=[("https://api.example", f"http://127.0.0.1:{there.provider.port}")])
    resolves = one.lines("hapax keys resolve")
    assert len(resolves) == 3, resolves
    by_key = one.line("hapax keys ls --key")
    keys = [by_key.split()[-1], new_key(), new_key()]
    for line, retried, key in zip(resolves, (200, 409, 200), keys):
        there.gateway.post("/payments", key=key, behave="reset=after", headers=acme)
        listed = one.run(one.line("hapax keys ls --state unknown") + store)
        short = re.search(r"^([0-9a-f]{12}) +unknown", listed, re.M).group(1)
        assert "outcome" in one.run(one.line("hapax keys show").replace("4c16a6a396e2", short) + store)
        one.run(one.line("curl -i --http1.1"), REFERENCE=short)
        one.run(line.replace("4c16a6a396e2", short) + store)
        answer = there.gateway.post("/payments", key=key, behave="reset=after" if retried == 409 else "", headers=acme)
        assert answer.status == retried, (line, answer)
    one.run(one.line("hapax jobs ls --needs-person") + store)
    assert one.run(by_key + store).count("POST /payments") == 1
    # It goes on until it is interrupted, which is what `timeout` says by 124.
    watched = one.run(f"timeout -s INT 1 {one.line('hapax keys ls --tenant')}{store}", code=124)
    assert watched.count("POST /payments") == 3, watched


def test_for_clients(walk):
    """`hapax call` pays, lists its calls and has nothing to resume."""
    one = walk("client.md", exchanges=[("https://api.example", "http://127.0.0.1:8080")])
    start_service(one)
    one.serve(f"hapax serve --upstream http://127.0.0.1:{one.ports[9000]}")
    (one.folder / "payment.json").write_text('{"amount": 12}')
    (one.folder / "order.json").write_text('{"amount": 13}')
    (one.folder / "credentials").write_text("Authorization: Bearer t\nContent-Type: application/json\n")
    home = {"HOME": str(one.folder), "XDG_STATE_HOME": str(one.folder / "state")}
    inline, from_file = one.lines("hapax call POST http://127.0.0.1")
    assert '"amount": 499' in one.run(inline, **home)
    assert '"amount": 12' in one.run(from_file, **home)
    one.run(one.line('hapax call POST "$url"'), url=f"http://127.0.0.1:{one.ports[8080]}/payments", **home)
    assert json.loads((one.folder / "answer.json").read_text())["amount"] == 13
    listed = one.run(one.line("hapax call --list"), **home)
    assert len(re.findall("POST", listed)) == 3, listed
    everything, one_of_them = one.lines("hapax call --resume")
    one.run(everything, **home)
    assert "there is no call 7" in one.run(one_of_them, code=1, **home)
    assert one.stop()[0].count("payment ") == 3


def test_for_clients_in_scripts(walk):
    """The script's four ends, and the two lines of a crontab."""
    one = walk("client.md", exchanges=[("https://api.example", "http://127.0.0.1:8080"), ("/var/lib/shop/", "")])
    start_service(one)
    one.serve(f"hapax serve --upstream http://127.0.0.1:{one.ports[9000]}")
    (one.folder / "order.json").write_text('{"amount": 13}')
    (one.folder / "report.json").write_text('{"amount": 14}')
    (one.folder / "credentials").write_text("Authorization: Bearer t\nContent-Type: application/json\n")
    home = {"HOME": str(one.folder), "XDG_STATE_HOME": str(one.folder / "state")}
    script = 'ship() { echo shipped; }\nrefuse() { echo "refused: $1"; }\n' + one.block('hapax call POST "$url"')
    gateway = f"http://127.0.0.1:{one.ports[8080]}"
    assert one.run(script, url=f"{gateway}/payments", **home) == "shipped\n"
    assert "refused: {" in one.run(script, url=f"{gateway}/.hapax/nothing", **home)
    assert "shipped" not in one.run(script, code=2, url="nonsense", **home)
    nobody = f"http://127.0.0.1:{free_port()}/payments"
    assert "not settled" in one.run(script.replace("-o answer", "--attempts 1 -o answer"), url=nobody, **home)
    send, resume = one.block("5 * * * *").splitlines()
    for line in (send, resume):
        one.run(line.split(None, 5)[5], HOME="/nonexistent")
    assert re.search(r"done +.*/reports", one.run("hapax call --list --journal calls.db"))
    assert sorted(re.findall(r"payment \d ", one.stop()[0])) == ["payment 1 ", "payment 2 "]


def test_async(walk):
    """202 at once, then the service's answer; a payment waits while the service is away."""
    one = walk("async.md")
    start_service(one)
    (one.folder / "hapax.yaml").write_text(next(block for block in one.blocks if "trusted_peers" in block))
    one.serve(one.line("hapax serve"))
    pay = one.block("curl -i")
    assert "202 Accepted" in one.run(pay)
    check.until(lambda: "201 Created" in one.run(pay), "it is delivered")
    assert "Idempotent-Replayed: true" in one.run(pay)
    service = one.running[0]
    service.terminate()
    service.wait(30)
    later = pay.replace("order-1", "order-2")
    assert "202 Accepted" in one.run(later) and re.search(r"queued|sending", one.run(one.line("hapax jobs ls")))
    one.running.remove(service)
    assert service.communicate()[0].count("payment 1") == 1
    start_service(one)
    check.until(lambda: "201 Created" in one.run(later), "it is delivered when the service is back")


def test_verify(walk):
    """The dry run sends nothing; the run against the gateway reports its rows."""
    one = walk("verify.md", exchanges=[("https://staging.example", "http://127.0.0.1:8080")])
    start_service(one)
    one.serve(one.line("hapax serve"))
    dry = next(line for line in one.lines("hapax verify") if "--dry-run" in line)
    assert "amount" in one.run(dry, TOKEN="s3cr3t")
    real = next(line for line in one.lines("hapax verify http") if "--dry-run" not in line and "amount\": 5}" in line)
    done = subprocess.run(["sh", "-c", real], cwd=one.folder, capture_output=True, text=True, timeout=120, check=False,
                          env=environment())
    assert "nothing happens twice" in done.stdout, done.stdout + done.stderr


def test_verify_by_file(walk):
    """The file of the guide describes an API that is right, and the guide's commands kill and start it."""
    port = free_port()
    one = walk("verify.md", exchanges=[("https://staging.example", f"http://127.0.0.1:{port}"), ("--port 9000", f"--port {port}"),
                                       # This API has another list, and paths of its own for these two.
                                       ("count: /data", 'count: ""'), ("slow: {", 'slow: {path: "/slow?seconds=1", '),
                                       ("client_error: {", "client_error: {path: /refuse, ")])
    (one.folder / "verify.yaml").write_text(one.block("url: "))
    (one.folder / "state").mkdir()
    api = one.folder / "api"
    api.write_text(f"#!/bin/sh\nPYTHONPATH={ROOT / 'tests/e2e'} exec /usr/bin/python3 -m harness.flawed --state {one.folder}/state \"$@\"\n")
    api.chmod(0o755)
    tokens = {"TOKEN": ALICE.split()[1], "OTHER_TOKEN": BOB.split()[1]}
    one.ports["api"] = port
    started = one.block("./api").strip()
    assert started.endswith(" & echo $! > api.pid"), started
    one.start(started.partition(" & ")[0], "api")
    (one.folder / "api.pid").write_text(str(one.running[-1].pid))
    plain, crashing = (next(block for block in one.blocks if block.startswith("hapax verify --file") and
                            ("--crash-cmd" in block) == crashes) for crashes in (False, True))
    assert "crash_" not in one.run(plain, seconds=RUN_SECONDS, **tokens)
    killed = one.run(crashing, seconds=RUN_SECONDS, **tokens)
    assert len(re.findall(r"^  crash_\w+ +holds", killed, re.M)) == 3, killed


def test_coverage(walk):
    """The description of the guide gives the report of the guide, and each of its lines runs."""
    one = walk("coverage.md")
    (one.folder / "openapi.yaml").write_text(one.block("openapi: 3.0.3"))
    whole = one.lines("hapax coverage openapi.yaml")
    assert one.run(whole[0], code=1) == one.block("money ")
    assert one.run(next(line for line in whole if "--critical" in line), code=1)
    one.run(next(line for line in whole if "--print-baseline" in line), code=0)
    assert (one.folder / "coverage-baseline.txt").read_text() == one.block("# Gaps that")
    # What the workflow for CI runs: nothing fails, and SARIF suppresses the gaps of the baseline.
    steps = re.findall(r"run: (hapax coverage .*)", one.block("# .github/workflows"))
    assert len(steps) == 2 and "--sarif > keys.sarif" in steps[1], steps
    for step in steps:
        one.run(step)
    results = json.loads((one.folder / "keys.sarif").read_text())["runs"][0]["results"]
    assert len(results) == 2 and all(result["suppressions"] for result in results), results
    one.run(next(line for line in whole if line.endswith("--baseline coverage-baseline.txt")))
    assert one.run(next(line for line in whole if "--routes" in line)) == one.block("# `required` where")
    start_service(one)
    one.serve(one.line("hapax serve").removesuffix(" &"))
    pay = f"curl -s http://127.0.0.1:{one.ports[8080]}/v1/notes -d x"
    one.run(pay)
    seen = next(line for line in one.lines("hapax coverage --admin"))
    check.until(lambda: "/v1/notes" in one.run(f"{seen} || true"), "the request without a key is seen")
    one.run(next(line for line in whole if "--admin" in line), code=1)
    (one.folder / "hapax.yaml").write_text("upstream: http://127.0.0.1:9\nroutes: [{match: POST /v1/notes}]\n")
    assert "guarded by route POST /v1/notes" in one.run(next(line for line in whole if "--config" in line))
    (one.folder / "access.log").write_text('192.0.2.1 - - [18/Nov/2026:08:00:00 +0000] "POST /v1/notes HTTP/1.1" 201 5\n')
    (one.folder / "checkout.har").write_text('{"log": {"version": "1.2", "entries": []}}')
    one.run(next(line for line in whole if "--traffic" in line), code=1)


def test_logs_and_metrics(walk, site):
    """The line that looks at the metrics finds the reservations."""
    there = site({})
    assert there.gateway.post("/payments").status == 200
    one = walk("logs-and-metrics.md", exchanges=[("http://127.0.0.1:8081", f"http://{there.gateway.config['admin']}")])
    assert 'outcome="created"' in one.run(one.line("curl -s"))


def test_history(walk, site):
    """The reference's two lines: one key, and a month as CSV."""
    there = site({})
    key = "8e03978e-40d5-43dd-bc93-6894a57f9324"
    assert there.gateway.post("/payments", key=key).status == 200
    one = walk("../reference/cli.md", exchanges=[("--since 2026-03-01 --until 2026-04-01", "--since 1h")])
    by_key, month = one.lines("hapax history")
    store = f" --store {there.gateway.config['store']}"
    assert key in one.run(by_key + store)
    one.run(month.replace(" > ", f"{store} > "))
    rows = (one.folder / "march.csv").read_text().splitlines()
    assert len(rows) == 2 and key in rows[1], rows


def test_backup_of_the_guide(walk, site):
    """The copy of a running store is one."""
    if not shutil.which("sqlite3"):
        pytest.skip("not installed: sqlite3 (make recipes installs it)")
    there = site({"store": "sqlite:hapax.db"})
    assert there.gateway.post("/payments").status == 200
    one = walk("operate.md", exchanges=[("/var/lib/hapax", str(there.gateway.folder)), ("/backup/", "")])
    one.run(one.line("sqlite3 "))
    assert "completed" in one.run("hapax keys ls --store sqlite:hapax.db")


def test_migrate(walk, tmp_path):
    """The owner's line makes the schema, which --check then finds."""
    if postgres.programs() is None:
        pytest.skip("not installed: postgresql")
    cluster = postgres.Cluster()
    try:
        cluster.sql("CREATE ROLE owner LOGIN SUPERUSER")
        cluster.sql("CREATE DATABASE payments OWNER owner")
        one = walk("postgres.md", exchanges=[("owner@db.example/payments", f"owner@/payments?host={cluster.folder}")])
        line = one.line("hapax migrate --store")
        assert "schema" in one.run(f"{line} --check", code=1)
        one.run(line)
        one.run(f"{line} --check")
    finally:
        cluster.close()


def test_the_sql_of_the_guides():
    """The statements of taking part, the outbox and one's own pipeline do what their pages say, with the rights that
    the pages grant; only the lease and the reference are filled in."""
    if postgres.programs() is None:
        pytest.skip("not installed: postgresql")
    require_program()
    cluster = postgres.Cluster()

    def ask(text, role="shop"):
        return cluster.sql(f"SET ROLE {role}; {text}", "shop")

    def block(page, words):
        found = [text for text in code_blocks(GUIDE / page) if words in text]
        assert len(found) == 1, (page, words, found)
        return found[0]

    def begin(key, on_lost="repeat"):
        """(verdict, lease, reference, status, body) of what the guide's own begin says of this key."""
        text, = re.findall(r"FROM (hapax\.begin\(.*\));", block("application.md", "hapax.begin("))
        return ask("SELECT verdict, lease, operation, status, convert_from(body, 'UTF8') FROM "
                   + text.replace("'key-1'", f"'{key}'").replace("86400000)", f"86400000, '{on_lost}')"))[0].split("|")

    def fill(text, lease):
        text = re.sub("<the value of Hapax-Lease>|<lease>", lease, text)
        return text.replace("INSERT INTO charge (...) VALUES (...);", "INSERT INTO charge VALUES ('ch_123');")

    try:
        cluster.sql("CREATE ROLE shop LOGIN; CREATE ROLE statements LOGIN;")
        cluster.sql("CREATE DATABASE shop")
        subprocess.run([binary(), "migrate", "--store", cluster.url("shop")], check=True, capture_output=True, timeout=60)
        for grant in (block("application.md", "GRANT hapax_application"),
                      re.search(r"GRANT .*;", block("unknowns.md", "GRANT hapax_settler"))[0]):
            cluster.sql(grant, "shop")
        for table in ("payment (id text, amount integer)", "purchase (id text, amount integer)", "charge (id text)"):
            cluster.sql(f"CREATE TABLE public.{table}; GRANT ALL ON public.{table.split()[0]} TO shop", "shop")
        # The block of a worker, as it stands: begun, and then somebody else's.
        begun = ask(block("application.md", "hapax.begin("))
        assert begun[0].startswith("created|") and begin("key-1")[0] == "in_progress", begun
        # Rows and answer commit together, and the answer is everybody's from then on.
        lease = begin("key-2")[1]
        ask(fill(block("application.md", "INSERT INTO payment (id, amount) VALUES ('p_1', 10)"), lease))
        verdict, _, _, status, body = begin("key-2")
        assert (verdict, status, body) == ("replay", "201", '{"id": "p_1"}') and ask("SELECT * FROM payment") == ["p_1|10"]
        # A phase, and what the next attempt is told of it.
        lease = begin("key-3")[1]
        ask(fill(block("application.md", "hapax.advance"), lease))
        assert ask("SELECT * FROM charge") == ["ch_123"]
        # A job that is owed, once, with the purchase.
        lease = begin("key-4")[1]
        ask(fill(block("outbox.md", "INSERT INTO purchase"), lease))
        assert begin("key-4")[0] == "replay" and ask("SELECT * FROM purchase") == ["p_1|499"]
        assert cluster.sql("SELECT count(*) FROM hapax.job", "shop") == ["1"]
        # An unknown outcome, settled by a role that may do nothing else.
        _, lease, reference, _, _ = begin("key-5", "unknown")
        ask(f"SELECT hapax.mark_unknown('{lease}')")
        assert begin("key-5", "unknown")[0] == "unknown"
        settle, = re.findall(r"SELECT hapax\.settle\(.*?\);", block("unknowns.md", "hapax.settle("), re.S)
        assert ask(settle.replace("<the operation''s reference>", reference), "statements") == ["settled"]
        assert begin("key-5")[0] == "replay"
    finally:
        cluster.close()


def test_the_export_and_the_clock(walk, site):
    """An export without rows leaves nothing open; a clock that is right can be accepted."""
    there = site({"targets": {"bank": {"url": "http://127.0.0.1:9/"}}})
    one = walk("unknowns.md", exchanges=[("/etc/hapax/hapax.yaml", "hapax.yaml")])
    (one.folder / "hapax.yaml").write_text(json.dumps({"upstream": "http://127.0.0.1:9", "upstream_name": "default",
                                                       "store": there.gateway.config["store"],
                                                       "targets": {"bank": {"url": "http://127.0.0.1:9"}}}))
    (one.folder / "settled-2026-11-15.csv").write_text("reference,amount,status\n")
    one.run(one.line("hapax reconcile"))
    operate = walk("operate.md", exchanges=[("sqlite:/var/lib/hapax/hapax.db", there.gateway.config["store"])])
    operate.run(operate.line("hapax keys accept-clock"))
