"""Shows that what is shipped for containers is right: the objects of etc/kubernetes and
examples/compose.yaml are what published schemas want, every configuration in them is what
`hapax check` wants, and the example before its API pays once. The image itself is tried in
tests/install/test_image.py."""
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import textwrap
import time

import pytest

from conftest import require_program
from harness.gateway import ROOT, binary, free_port

KUBERNETES = sorted((ROOT / "etc/kubernetes").glob("*.yaml"))
COMPOSE = ROOT / "examples/compose.yaml"
CONTAINER = ROOT / "etc/container.yaml"
# timeouts.drain, and what writing the rest may take.
DRAIN_SECONDS = 25 + 5
WAIT_SECONDS = 30


def block(text, head):
    """What stands indented below a line that ends with `|`."""
    indent, rest = re.search(rf"^( *){re.escape(head)} \|\n(.*)", text, re.M | re.S).groups()
    lines = []
    for line in rest.splitlines():
        if line.strip() and not line.startswith(indent + "  "):
            break
        lines.append(line)
    return textwrap.dedent("\n".join(lines)) + "\n"


def checked(path, *flags):
    return subprocess.run([binary(), "check", "--config", str(path), *flags], capture_output=True, text=True,
                          timeout=30, check=False)


@pytest.mark.parametrize("path", KUBERNETES, ids=lambda path: path.stem)
def test_configuration_in_an_object(path, tmp_path):
    """Tenants are said: a pod listens on every address."""
    require_program()
    config = tmp_path / "hapax.yaml"
    config.write_text(block(path.read_text(), "hapax.yaml:"))
    done = checked(config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0.0.0.0:8080" in config.read_text() and "without it: 401" in done.stdout


def test_configuration_of_the_image():
    """It lacks one thing, the API, and the refusal says the line to write."""
    require_program()
    done = checked(CONTAINER)
    assert done.returncode == 1 and "upstream: is missing; say where the API is" in done.stdout, done
    done = checked(CONTAINER, "--upstream", "http://api:9000")
    assert done.returncode == 0 and "without it: 401" in done.stdout, done


@pytest.fixture(scope="module")
def schemas(tmp_path_factory):
    """A folder with the schemas, as the lock file names them."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("schemas") / "schemas"
    shutil.copytree(ROOT / "tests/schemas", folder, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm ci did not get the schemas: {done.stderr[-300:]}")
    return folder


def judge(folder, paths):
    """(what is wrong, {file: documents}): by the schemas, and by TypeScript, which knows every member."""
    done = subprocess.run(["node", "check.mjs", *map(str, paths)], cwd=folder, capture_output=True, text=True,
                          timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    done = subprocess.run(["node_modules/.bin/tsc", "-p", "."], cwd=folder, capture_output=True, text=True,
                          timeout=120, check=False)
    return said["problems"] + done.stdout.splitlines(), said["read"]


def pods(documents):
    return [one["spec"]["template"]["spec"] for one in documents if one["kind"] in ("Deployment", "StatefulSet")]


def check_pod(pod):
    """The parts that keep a payment whole when a pod goes, and strangers out."""
    hapax = next(one for one in pod["containers"] if one["name"] == "hapax")
    sleeps = hapax["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > sleeps + DRAIN_SECONDS
    for other in pod["containers"]:
        if other is not hapax:
            assert other["lifecycle"]["preStop"]["sleep"]["seconds"] >= sleeps + DRAIN_SECONDS, "hapax ends first"
    assert pod["securityContext"]["runAsNonRoot"] and hapax["securityContext"]["runAsUser"] == 65532
    assert hapax["securityContext"]["readOnlyRootFilesystem"]
    assert not hapax["securityContext"]["allowPrivilegeEscalation"]
    assert hapax["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    ports = {one["name"]: one["containerPort"] for one in hapax["ports"]}
    assert ports == {"http": 8080, "admin": 8081}
    asked = {name: hapax[name]["httpGet"] for name in ("livenessProbe", "readinessProbe", "startupProbe")}
    assert {one["port"] for one in asked.values()} == {"admin"}
    assert [asked[name]["path"] for name in asked] == ["/healthz", "/readyz", "/readyz"]
    version = subprocess.run([binary(), "version"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert hapax["image"] == f"hapax:{version}"


def test_objects_and_schemas(schemas):
    """Everything shipped is what the schemas want."""
    require_program()
    assert len(KUBERNETES) == 3
    problems, read = judge(schemas, [*KUBERNETES, COMPOSE])
    assert problems == []
    for path in KUBERNETES:
        (pod,) = pods(read[path.name])
        check_pod(pod)
    hapax = read[COMPOSE.name][0]["services"]["hapax"]
    assert hapax["read_only"] and int(hapax["stop_grace_period"].rstrip("s")) > DRAIN_SECONDS
    assert hapax["image"] == pods(read[KUBERNETES[0].name])[0]["containers"][0]["image"]


def test_the_line_of_the_guide():
    """It puts the registry's image into the objects, and changes nothing else; kubectl itself has no cluster here."""
    line, = re.findall(r"^(sed .*) \| kubectl apply -f -$", (ROOT / "docs/guide/install.md").read_text(encoding="utf-8"), re.M)
    for path in KUBERNETES:
        of_this = re.sub(r"etc/kubernetes/\S+", f"etc/kubernetes/{path.name}", line)
        done = subprocess.run(["sh", "-c", of_this], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True,
                              env={**os.environ, "REGISTRY": "registry.test/team"})
        before, after = path.read_text().splitlines(), done.stdout.splitlines()
        changed = [(old.strip(), new.strip()) for old, new in zip(before, after, strict=True) if old != new]
        (old, new), = changed
        assert old.startswith("image: hapax:") and new == old.replace(" hapax", " registry.test/team/hapax"), changed
    # The Service that the next line forwards to.
    named = (ROOT / re.search(r"etc/kubernetes/\S+", line)[0]).read_text()
    assert re.search(r"^kind: Service\nmetadata:\n  name: hapax\nspec:\n.*\n  ports:\n    - \{name: http, port: 80,", named, re.M)


@pytest.mark.parametrize("path, right, wrong", [
    (KUBERNETES[0], "livenessProbe:", "livenessProb:"),
    (KUBERNETES[0], "replicas: 2", "replicas: two"),
    (KUBERNETES[0], "httpGet: {path: /readyz, port: admin}", "httpGet: {path: /readyz}"),
    (COMPOSE, "read_only: true", "readonly: true"),
], ids=["misspelt member", "wrong kind of value", "member that is missing", "misspelt member of a service"])
def test_a_mistake_is_found(schemas, tmp_path, path, right, wrong):
    """The judge of the test above accuses what is wrong."""
    text = path.read_text()
    assert right in text
    broken = tmp_path / path.name
    broken.write_text(text.replace(right, wrong, 1))
    problems, _ = judge(schemas, [broken])
    assert problems


def ask(port, method="GET", key=None, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        if key:
            headers.update({"Idempotency-Key": f'"{key}"', "Content-Type": "application/json"})
        connection.request(method, "/payments", '{"amount": 499}' if method == "POST" else None, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read()
    finally:
        connection.close()


def wait_until(answers):
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        try:
            return answers()
        except OSError:
            time.sleep(0.05)
    raise AssertionError("nobody listens")


def test_compose_pays_once(tmp_path):
    """The API of the example, and the image's configuration before it: one payment for two
    requests with one key, and none for somebody without a credential."""
    require_program()
    if not shutil.which("node"):
        pytest.skip("Node is not installed")
    port, api_port, admin_port = free_port(), free_port(), free_port()
    api = subprocess.Popen(["node", "-e", block(COMPOSE.read_text(), "-").replace("9000", str(api_port))])
    hapax = subprocess.Popen([binary(), "serve", "--config", str(CONTAINER), "--listen", f"0.0.0.0:{port}",
                              "--admin", f"127.0.0.1:{admin_port}", "--store", f"sqlite:{tmp_path}/hapax.db",
                              "--upstream", f"http://127.0.0.1:{api_port}"], stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: ask(api_port))[2] == b'{"paid":0}\n'
        alice = {"Authorization": "Bearer alice"}
        assert wait_until(lambda: ask(port, "POST", "order-42"))[0] == 401
        first = ask(port, "POST", "order-42", **alice)
        again = ask(port, "POST", "order-42", **alice)
        assert first[0] == again[0] == 201 and first[2] == again[2]
        assert again[1]["Idempotent-Replayed"] == "true"
        assert ask(api_port)[2] == b'{"paid":1}\n'
        hapax.send_signal(signal.SIGTERM)
        assert hapax.wait(40) == 0
    finally:
        for process in (hapax, api):
            process.kill()
            process.wait()
