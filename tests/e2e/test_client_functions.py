"""Shows that the functions of examples/clients, which people copy into programs in Go, Java
and PHP, do what the clients of hapax do: over the same table of answers, and before the real
gateway through lost answers, timeouts and two processes. The provider's ledger judges."""
import concurrent.futures
import itertools
import json
import os
import shutil
import socket
import struct
import subprocess
import threading
import time

import pytest

from conftest import require_program
from harness.external_tls import Authority, server_context
from harness.gateway import ROOT
from harness.script import Script, answer
from harness.secret import new_key
from harness.shop import Shop

FUNCTIONS = ROOT / "examples" / "clients"
CASES = json.loads((ROOT / "tests" / "client" / "answers.json").read_text())["cases"]
BODY = '{"amount": 499}'
BUDGET_S = 6
# BUDGET KEY BEHAVE URL...: a line for each URL.
GO = """package main

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"copied/once"
)

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[1], 64)
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer s3cr3t-alice"}, "X-Behave": {os.Args[3]}}
	for _, url := range os.Args[4:] {
		answer, err := once.Post(url, header, []byte(`BODY`), os.Args[2], time.Duration(seconds*float64(time.Second)))
		if u, ok := err.(*once.Unsettled); ok {
			fmt.Println("unsettled", u.Doubt)
		} else if err != nil {
			panic(err)
		} else {
			fmt.Println("answer", answer.Status, answer.Header.Get("Idempotent-Replayed"))
		}
	}
}
"""
JAVA = """
import java.net.URI;
import java.time.Duration;
import java.util.Map;

public class Driver {
    public static void main(String[] args) throws Exception {
        if (System.getenv("TRUST_STORE") != null) {
            System.setProperty("javax.net.ssl.trustStore", System.getenv("TRUST_STORE"));
            System.setProperty("javax.net.ssl.trustStorePassword", "trusted");
        }
        for (int i = 3; i < args.length; i++)
            try {
                var answer = Once.post(URI.create(args[i]), Map.of("Content-Type", "application/json",
                    "Authorization", "Bearer s3cr3t-alice", "X-Behave", args[2]), BODY.getBytes(), args[1],
                    Duration.ofMillis((long) (Double.parseDouble(args[0]) * 1000)));
                System.out.println("answer " + answer.statusCode() + " " + answer.headers().firstValue("Idempotent-Replayed").orElse(""));
            } catch (Once.Unsettled error) {
                System.out.println("unsettled " + error.doubt);
            }
    }
}
"""
PHP = """<?php
require $argv[1];
$headers = ['Content-Type' => 'application/json', 'Authorization' => 'Bearer s3cr3t-alice', 'X-Behave' => $argv[4]];
foreach (array_slice($argv, 5) as $url) {
    try {
        $answer = post_once($url, $headers, 'BODY', $argv[3], (float) $argv[2]);
        echo "answer {$answer['status']} ", $answer['headers']['idempotent-replayed'] ?? '', "\\n";
    } catch (Unsettled $error) {
        echo 'unsettled ', $error->doubt ? 'true' : 'false', "\\n";
    }
}
"""


def compile_go(folder):
    (folder / "once").mkdir()
    shutil.copy(FUNCTIONS / "once.go", folder / "once")
    (folder / "main.go").write_text(GO.replace("BODY", BODY))
    (folder / "go.mod").write_text("module copied\n\ngo 1.18\n")
    env = {**os.environ, "GOCACHE": str(ROOT / "build-go"), "GOPATH": str(folder / "path"), "GOPROXY": "off",
           "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    subprocess.run(["go", "build", "-o", "driver", "."], cwd=folder, env=env, check=True, timeout=300)
    return [str(folder / "driver")]


def compile_java(folder):
    (folder / "Driver.java").write_text(JAVA.replace("BODY", json.dumps(BODY)))
    subprocess.run(["javac", "-Xlint:all,-serial", "-Werror", "--release", "11", "-d", str(folder), str(FUNCTIONS / "Once.java"),
                    str(folder / "Driver.java")], check=True, timeout=300)
    return ["java", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", str(folder), "Driver"]


def compile_php(folder):
    (folder / "driver.php").write_text(PHP.replace("BODY", BODY))
    return ["php", "-d", "error_reporting=E_ALL", "-d", "display_errors=stderr", str(folder / "driver.php"), str(FUNCTIONS / "once.php")]


LANGUAGES = {"go": ("go", compile_go), "java": ("javac", compile_java), "php": ("php", compile_php)}


@pytest.fixture(scope="module", params=LANGUAGES)
def function(request, tmp_path_factory):
    """Runs the copied function: (budget, key, behave, URLs) to its lines."""
    program, compile_it = LANGUAGES[request.param]
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed: tools/packages clients")
    command = compile_it(tmp_path_factory.mktemp(request.param))

    def run(budget, key, behave, *urls, env=None):
        done = subprocess.run([*command, str(budget), key, behave, *urls], capture_output=True, text=True, timeout=120,
                              check=False, env={**os.environ, **(env or {})})
        assert done.returncode == 0 and done.stderr == "", done
        return done.stdout.splitlines()

    run.language = request.param
    return run


class Scripted:
    """Answers one case of the table: lost, the case, and a 201 behind it."""

    def __init__(self, case):
        self.case, self.seen, self.times = case, [], []
        step = "lost" if case.get("lost") == "sent" else None if "lost" in case else case
        self.steps = ["lost"] * bool(case.get("doubt")) + ([step, {"status": 201}] if step else [])
        self.listener = socket.create_server(("127.0.0.1", 0), reuse_port=True)
        self.port = self.listener.getsockname()[1]
        # Holds the port when nobody listens any more, or the next script would be given it.
        self.holder = socket.socket()
        self.holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.holder.bind(("127.0.0.1", self.port))
        if not self.steps:
            self.listener.close()
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        for number, step in enumerate(self.steps):
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            if number + 1 == len(self.steps):
                self.listener.close()  # from here on nobody listens
            with sock:
                self.play(sock, step)

    def play(self, sock, step):
        sock.settimeout(30)
        data = b""
        while not data.endswith(BODY.encode()):
            piece = sock.recv(65536)
            if not piece:
                return
            data += piece
        self.seen.append(data)
        self.times.append(time.monotonic())
        if step == "lost":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return
        body = step.get("body", "")
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        kind = step.get("type", "text/plain" if isinstance(body, str) else "application/json")
        fields = {"Content-Type": kind, "Connection": "close", **step.get("headers", {})}
        if step["status"] != 204:
            fields["Content-Length"] = len(text)
        head = [f"HTTP/1.1 {step['status']} Because", *(f"{name}: {value}" for name, value in fields.items())]
        sock.sendall(("\r\n".join(head) + "\r\n\r\n").encode() + text)
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)  # until the client has read it

    def expected(self):
        case = self.case
        waits_too_long = case.get("wait_s", 0) > BUDGET_S
        if case["then"] == "stop" or case.get("lost") == "unsent" or waits_too_long:
            return f"unsettled {str(case['doubt_after']).lower()}", len(self.steps) - (case.get("lost") != "unsent")
        return f"answer {case['status'] if case['then'] == 'done' else 201}", len(self.steps) - (case["then"] == "done")


def test_the_table(function):
    """Every case of tests/client/answers.json: the end, the number of requests, the wait, and
    the same bytes each time."""
    scripts = [Scripted(case) for case in CASES]
    urls = [f"http://127.0.0.1:{script.port}/pay" for script in scripts]
    order = sorted(range(len(CASES)), key=lambda n: CASES[n].get("wait_s", 0))
    shares = [order[k::8] for k in range(8)]  # so that the waits run side by side
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda share: function(BUDGET_S, "k-1", "", *[urls[n] for n in share]), shares))
    for number, line in itertools.chain.from_iterable(zip(share, run) for share, run in zip(shares, runs)):
        check_case(scripts[number], line.strip())
    for script in scripts:
        script.holder.close()


def check_case(script, line):
    case = script.case
    want, requests = script.expected()
    assert line.startswith(want) and len(script.seen) == requests, (case, line, want, len(script.seen), requests)
    assert all(b'Idempotency-Key: "k-1"' in head for head in script.seen), script.seen
    assert len(set(script.seen)) <= 1, script.seen
    if case["then"] == "again" and case.get("wait_s") and want.startswith("answer"):
        assert script.times[-1] - script.times[-2] >= case["wait_s"], (case, script.times)


@pytest.fixture
def shop(tmp_path):
    require_program()
    with Shop(tmp_path, cors=False) as one:
        yield one


def test_tls(function, tmp_path):
    """A certificate that nobody vouches for: no byte leaves, so there is no doubt, and a refusal
    behind it is definite; with a doubt it would not be."""
    trusted, strange = Authority(tmp_path / "ca"), Authority(tmp_path / "strange")
    refusal = answer(400, b'{"executed": "no", "retry": "after_fix"}', Content_Type="application/problem+json")
    server = Script(refusal, refusal, tls=[server_context(*one.certificate()) for one in (strange, trusted)])
    try:
        assert function(60, "k-1", "", server.url, env=trust(function, trusted.ca_file)) == ["answer 400 "]
        assert (server.connections, len(server.requests)) == (2, 1)
    finally:
        server.close()


def trust(function, ca_file):
    """The environment in which the driver believes this authority."""
    if function.language != "java":
        return {"SSL_CERT_FILE": ca_file}
    store = f"{ca_file}.p12"
    subprocess.run(["keytool", "-importcert", "-noprompt", "-alias", "test", "-file", ca_file, "-keystore", store,
                    "-storetype", "PKCS12", "-storepass", "trusted"], check=True, capture_output=True, timeout=120)
    return {"TRUST_STORE": store}


def test_an_answer_that_is_too_large(function):
    """A part of it is never handed out as the answer: Go's bound makes it as good as lost, Java has none, and
    PHP compares its length with what it says, however much came at once."""
    large = answer(201, b"x" * (17 << 20))
    kept = answer(409, b'{"code": "response_not_kept", "executed": "yes", "retry": "never"}', Content_Type="application/problem+json")
    server = Script(large, kept)
    try:
        told = {"go": ["answer 409 "], "java": ["answer 201 "], "php": ["answer 201 ", "answer 409 "]}[function.language]
        assert function(20, "k-1", "", server.url)[0] in told
    finally:
        server.close()


def effects(shop):
    return len(shop.provider.ledger())


def test_answers_lost(function, shop):
    """Cut before the first byte of an answer, in its head, and in its body."""
    shop.hop.cuts = [0, 40, -1]
    assert function(20, new_key(), "", shop.hop.url + "/pay") == ["answer 200 true"]
    assert (effects(shop), shop.hop.posts) == (1, 4)


def test_no_time_is_left(function):
    """A budget that is over bounds an attempt, also where nobody answers: a sleep before one may last longer."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        [told] = function(0, new_key(), "", f"http://127.0.0.1:{deaf.getsockname()[1]}/pay")
    assert told.startswith("unsettled ")


def test_timeout(function, shop):
    """In doubt when its time is over; the same key gets the answer of the first."""
    key = new_key()
    assert function(1.5, key, "hold=bank", shop.hop.url + "/pay") == ["unsettled true"]
    shop.provider.gate("bank").release(10)
    assert function(20, key, "hold=bank", shop.hop.url + "/pay") == ["answer 200 true"]
    assert effects(shop) == 1


def test_twice_at_once(function, shop):
    """409 for the second; both get the one answer."""
    key = new_key()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        both = [pool.submit(function, 30, key, "hold=bank", shop.hop.url + "/pay") for _ in range(2)]
        shop.provider.gate("bank").wait_arrived()
        while shop.hop.posts < 2:
            time.sleep(0.01)
        shop.provider.gate("bank").release(10)
        assert sorted(one.result()[0].split()[1] for one in both) == ["200", "200"]
    assert effects(shop) == 1


@pytest.mark.parametrize("behave, told", [
    ("status=429;header=Retry-After:30", "unsettled false"),
    ("status=503;header=Retry-After:30", "unsettled false"),
    ("status=500", "unsettled true"),
    ("status=402", "answer 402 "),
])
def test_refusals(function, shop, behave, told):
    """Turned away: nothing happened, and nothing is sent before its time."""
    assert function(10, new_key(), behave, shop.hop.url + "/pay") == [told]
    assert (effects(shop), shop.hop.posts) == (0, 1)


def test_key_of_another_request(function, shop):
    """422 is definite: no other key is made by itself."""
    key = new_key()
    assert shop.gateway.post("/pay", key=key, body=b'{"amount": 500}').status == 200
    before = effects(shop)
    assert function(10, key, "", shop.hop.url + "/pay") == ["answer 422 "]
    assert (effects(shop), shop.hop.posts) == (before, 1)
