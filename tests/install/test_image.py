"""Shows that the container image does what it is for: it runs as a user, as the first process
of its own process space, on a root that nobody can write, and keeps its store on the volume;
it protects an API, is asked for its health, drains at SIGTERM, leaves no zombie, and a new
container on the same volume knows the old keys. By its own description (user, entry point,
health check), which is read out of the image.

Needs root and buildah, and builds the packages: make test-all. HAPAX_DEBS=FOLDER takes
packages that are there. The network is one of its own: the image's ports are fixed."""
import ctypes
import fcntl
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/e2e"))

from harness.provider import Provider  # noqa: E402

CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
WAIT_SECONDS = 30
STOP_SECONDS = 40
GONE = -1
ALICE = {"Authorization": "Bearer alice"}
# A root as a container has it, and the program as the first of its processes.
CONTAINER = """
set -e
root=$1 volume=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount --bind "$volume" "$root/var/lib/hapax"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
exec env -i "$@"
"""


def run(*command, **how):
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False, **how)
    assert done.returncode == 0, f"{command}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def own_network():
    """From here on, this process and its children have a network with nothing but lo."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        pytest.skip("no network namespaces here")
    with socket.socket() as sock:
        name = struct.pack("16sh", b"lo", 0)
        flags = struct.unpack("16sh", fcntl.ioctl(sock, SIOCGIFFLAGS, name))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh", b"lo", flags | IFF_UP))


class Image:
    """The image, unpacked: its root, and what it says of itself."""

    def __init__(self, archive, folder):
        self.buildah = ["buildah", "--root", f"{folder}/storage", "--runroot", f"{folder}/run",
                        "--storage-driver", "vfs"]
        self.container = run(*self.buildah, "from", "--quiet", f"docker-archive:{archive}").strip()
        self.root = pathlib.Path(run(*self.buildah, "mount", self.container).strip())
        self.config = json.loads(run(*self.buildah, "inspect", self.container))["Docker"]["config"]

    def run(self, *command):
        """Under buildah's own isolation, which may lose what is printed: its exit code counts."""
        run(*self.buildah, "run", "--isolation", "chroot", self.container, "--", *command)

    def close(self):
        run(*self.buildah, "rm", "--all")
        run(*self.buildah, "rmi", "--all", "--force")


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("only root can make a container of its own")
    if not shutil.which("buildah"):
        pytest.skip("buildah is not installed")
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], check=False).returncode != 0:
        pytest.skip("no namespaces here")
    said = run("tools/image", cwd=ROOT) if os.environ.get("HAPAX_DEBS") else run("make", "image", cwd=ROOT)
    own_network()
    one = Image(ROOT / said.split()[-1], tmp_path_factory.mktemp("image"))
    yield one
    one.close()


class Container:
    """hapax as the image says that it is run; its log is a file."""

    def __init__(self, image, volume, *arguments):
        self.image = image
        user, group = image.config["User"].split(":")
        command = image.config["Entrypoint"] + image.config["Cmd"] + list(arguments)
        inside = ["chroot", f"--userspec={user}:{group}", "--groups=", str(image.root)]
        self.log = volume.parent / "log"
        with open(self.log, "ab") as log:
            self.outer = subprocess.Popen(
                ["unshare", "--mount", "--pid", "--fork", "sh", "-c", CONTAINER, "sh", str(image.root),
                 str(volume), *image.config["Env"], *inside, *command], stdout=log, stderr=log)
        self.pid = self.find_first()

    def find_first(self):
        """The first process in there, seen from here; GONE where it has ended already."""
        children = pathlib.Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")

        def found():
            pids = children.read_text().split()
            if pids:
                return int(pids[0])
            return GONE if self.outer.poll() is not None else None

        return wait_for(found)

    def status(self, name):
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(name + ":"))

    def healthy(self):
        """The health check of the image, run inside."""
        test = self.image.config["Healthcheck"]["Test"]
        assert test[0] == "CMD"
        user, group = self.image.config["User"].split(":")
        inside = ["nsenter", "--target", str(self.pid), "--mount", "--pid", "--root", "--setuid", user, "--setgid", group]
        return subprocess.run([*inside, *test[1:]], capture_output=True, timeout=30, check=False).returncode == 0

    def stop(self):
        """SIGTERM, as a runtime sends it; the exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.outer.wait(STOP_SECONDS)

    def close(self):
        if self.outer.poll() is None:
            os.kill(self.pid, signal.SIGKILL)
            self.outer.wait()


def wait_for(find):
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come")


def pay(key, behave="", headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
    try:
        connection.request("POST", "/payments", '{"amount": 499}', {
            "Idempotency-Key": f'"{key}"', "Content-Type": "application/json", "X-Behave": behave,
            **(ALICE if headers is None else headers)})
        answer = connection.getresponse()
        return answer.status, answer.headers.get("Idempotent-Replayed"), answer.read()
    finally:
        connection.close()


@pytest.fixture
def provider(image, tmp_path):
    one = Provider(tmp_path / "ledger")
    yield one
    one.close()


@pytest.fixture
def volume(tmp_path):
    """Owned by the image's user, as a runtime makes one out of the folder in the image."""
    folder = tmp_path / "volume"
    folder.mkdir(mode=0o700)
    os.chown(folder, 65532, 65532)
    return folder


@pytest.fixture
def start(image, provider, volume):
    started = []

    def begin():
        one = Container(image, volume, "--upstream", provider.url)
        started.append(one)
        try:
            wait_for(one.healthy)
        except AssertionError:
            pytest.fail(one.log.read_text())
        return one

    yield begin
    for one in started:
        one.close()


def test_what_the_image_says(image):
    """A user by number, a volume, a signal; and buildah runs it."""
    config = image.config
    assert config["User"] == "65532:65532" and config["Volumes"] == {"/var/lib/hapax": {}}
    assert config["StopSignal"] == "SIGTERM" and config["ExposedPorts"] == {"8080/tcp": {}}
    image.run("/usr/bin/hapax", "check", "--config", "/etc/hapax/hapax.yaml", "--upstream", "http://127.0.0.1:9000")
    assert not list(image.root.glob("bin/*sh")) and not list(image.root.glob("usr/bin/*sh")), "there is no shell"
    owned = (image.root / "var/lib/hapax").stat()
    assert (owned.st_uid, owned.st_mode & 0o777) == (65532, 0o700)
    installed = {path.name for path in (image.root / "var/lib/dpkg/status.d").iterdir()}
    assert {"hapax", "libc6", "libssl3", "libpq5", "libsqlite3-0"} <= installed


def test_no_api_is_a_refusal(image, volume):
    """Without an upstream it does not start, and says the line to write."""
    one = Container(image, volume)
    assert one.outer.wait(STOP_SECONDS) == 1
    assert "upstream: is missing; say where the API is" in one.log.read_text()


def test_it_pays_once(start, provider, volume):
    """Two requests with one key are one payment; who brings no credential pays nothing; the
    store is on the volume, and a new container on it knows the key."""
    one = start()
    assert one.status("NSpid").split()[-1] == "1" and one.status("Uid").split() == ["65532"] * 4
    assert one.status("CapEff") == one.status("CapPrm") == "0" * 16
    mounts = [line.split() for line in pathlib.Path(f"/proc/{one.pid}/mountinfo").read_text().splitlines()]
    assert [row[5].split(",")[0] for row in mounts if row[4] in ("/", "/var/lib/hapax")] == ["ro", "rw"]
    assert pay("order-1", headers={})[0] == 401
    assert pay("order-1")[:2] == (200, None)
    assert pay("order-1")[:2] == (200, "true")
    assert len(provider.ledger()) == 1
    assert (volume / "hapax.db").stat().st_uid == 65532
    assert one.stop() == 0
    start()
    assert pay("order-1")[:2] == (200, "true")
    assert len(provider.ledger()) == 1


@pytest.mark.parametrize("page", ["docs/guide/install.md", "examples/compose.yaml"])
def test_the_documents_request(start, provider, page):
    """The request that the guide and the example print, sent twice as it stands, is one payment."""
    start()
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n#", "")
    (line,) = re.findall(r"curl -i http.*", text)
    first, again = (run("sh", "-c", line, env={**os.environ, "no_proxy": "*"}) for _ in range(2))
    assert "Idempotent-Replayed" not in first and "\nIdempotent-Replayed: true" in again.replace("\r", "")
    assert len(provider.ledger("order-42")) == 1


def test_sigterm_drains(start, provider):
    """What is under way when SIGTERM comes is answered; then the container ends with 0."""
    one = start()
    gate = provider.gate("slow")
    answers = []
    caller = threading.Thread(target=lambda: answers.append(pay("order-2", "hold=slow")))
    caller.start()
    gate.wait_arrived()
    os.kill(one.pid, signal.SIGTERM)
    wait_for(lambda: "event=draining" in one.log.read_text())
    gate.release()
    caller.join(WAIT_SECONDS)
    assert answers and answers[0][0] == 200, answers
    assert one.outer.wait(STOP_SECONDS) == 0
    assert len(provider.ledger()) == 1


def test_no_zombies(start):
    """An orphan in the container becomes hapax's child; when it ends, nothing is left of it."""
    one = start()
    children = pathlib.Path(f"/proc/{one.pid}/task/{one.pid}/children")
    orphan = subprocess.Popen(["nsenter", "--target", str(one.pid), "--pid", "sh", "-c", "sleep 600 & echo"],
                              stdout=subprocess.PIPE, text=True)
    orphan.stdout.readline()
    assert orphan.wait(WAIT_SECONDS) == 0
    adopted = wait_for(lambda: children.read_text().split())
    for pid in adopted:
        os.kill(int(pid), signal.SIGKILL)
    wait_for(lambda: not children.read_text().split())
    assert one.stop() == 0
