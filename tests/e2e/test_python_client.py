"""Shows that the Python client pays once: through lost answers, timeouts, kills and two
processes, before the real gateway. The provider's ledger is the judge. Its own tests run
here as well, over the table of answers that the clients in C and JavaScript obey."""
import re
import shutil
import signal
import ssl
import subprocess
import sys

import pytest

from conftest import require_program
from harness import check
from harness.external_tls import Authority, server_context
from harness.gateway import ROOT
from harness.script import Script, answer
from harness.shop import CLIENT as JS_CLIENT, Shop, result_of

CLIENT = ROOT / "clients" / "python"
AUTHORIZATION = "Bearer s3cr3t-alice"
CHILD = """
import json, sys
from hapax_client import Client, FileStorage
folder, api, intent, behave = sys.argv[1:]
client = Client(storage=FileStorage(folder), backoff_base=0.05)
before = client.pending()
answer = client.request("POST", api + "/pay", intent=intent, body=json.dumps({"order": intent}, separators=(",", ":")),
    headers={"Authorization": "Bearer s3cr3t-alice", "X-Behave": behave, "Content-Type": "application/json"})
print(json.dumps({"key": before[0].key if before else None, "doubt": before[0].doubt if before else None,
    "status": answer.status, "replayed": answer.replayed, "pending": len(client.pending())}))
"""
NODE = """
import { createClient } from "hapax-client";
import { fileStorage } from "hapax-client/node";
const [folder, api, intent, behave] = process.argv.slice(1);
const client = createClient({ storage: fileStorage(folder) });
const headers = { "Content-Type": "application/json", Authorization: "Bearer s3cr3t-alice", "X-Behave": behave };
const [before] = await client.pending();
const answer = await client.fetch(api + "/pay", { method: "POST", headers, body: JSON.stringify({ order: intent }), intent });
console.log(JSON.stringify({ key: before?.key ?? null, status: answer.status,
  replayed: answer.headers.get("Idempotent-Replayed"), pending: (await client.pending()).length }));
"""


@pytest.fixture
def hapax_client(monkeypatch):
    monkeypatch.syspath_prepend(str(CLIENT))
    import hapax_client as module  # only this test sees it
    yield module
    for name in [name for name in sys.modules if name.split(".")[0] == "hapax_client"]:
        del sys.modules[name]


@pytest.fixture
def shop(tmp_path):
    require_program()
    with Shop(tmp_path, cors=False) as one:
        yield one


def test_the_program_of_its_readme(shop, tmp_path, hapax_client, capsys):
    """As it stands, but for the address and the folder of keys; run again, it is another payment."""
    text = re.search(r"```python\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.S)[1]
    text = text.replace("https://api.example", shop.hop.url).replace("/var/lib/shop/keys", str(tmp_path / "keys"))
    for times in (1, 2):
        exec(compile(text, "README.md", "exec"), {})  # pylint: disable=exec-used
        assert capsys.readouterr().out.startswith("200 {"), text
        assert len(keys(shop)) == times


def keys(shop):
    """The key of every side effect, in order."""
    return [line[2].strip('"') for line in shop.provider.ledger()]


def start_child(folder, shop, intent, behave=""):
    return subprocess.Popen([sys.executable, "-B", "-c", CHILD, str(folder), shop.hop.url, intent, behave],
                            cwd=CLIENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def pay(client, shop, intent="cart-1", behave="", order=1):
    return client.request("POST", shop.hop.url + "/pay", intent=intent, json={"order": order},
                          headers={"Authorization": AUTHORIZATION, "X-Behave": behave})


def test_its_own_tests():
    """Every case of tests/client/answers.json, and the rest that needs no gateway."""
    done = subprocess.run([sys.executable, "-B", "-m", "unittest", "discover", "-s", "tests"], cwd=CLIENT,
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_package(hapax_client):
    """What is built is what is here: the name, the version, the licence, the types."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == [] and project["version"] == hapax_client.__version__
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (CLIENT / "hapax_client" / "py.typed").exists()


def test_its_types():
    """Strictly typed, for the oldest Python that it takes."""
    if not shutil.which("mypy"):
        pytest.skip("mypy is not installed: tools/packages clients")
    done = subprocess.run(["mypy", "--strict", "--no-incremental", "--cache-dir=/dev/null", "--python-version=3.9",
                           "hapax_client"], cwd=CLIENT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


def test_killed(shop, tmp_path):
    """Killed while the provider held its answer, and started again: the same key."""
    child = start_child(tmp_path / "keys", shop, "cart-1", "hold=bank")
    shop.provider.gate("bank").wait_arrived()
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)
    shop.provider.gate("bank").release(10)
    again = result_of(start_child(tmp_path / "keys", shop, "cart-1", "hold=bank"))
    assert keys(shop) == [again["key"]]
    assert (again["status"], again["doubt"], again["replayed"], again["pending"]) == (200, True, True, 0)


def test_begun_in_python_ended_in_node(shop, tmp_path):
    """Both keep their keys in the same way: one may go on with what the other began."""
    if not shutil.which("node"):
        pytest.skip("Node is not installed")
    child = start_child(tmp_path / "keys", shop, "cart-1", "hold=bank")
    shop.provider.gate("bank").wait_arrived()
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)
    shop.provider.gate("bank").release(10)
    again = result_of(subprocess.Popen(
        ["node", "--input-type=module", "-e", NODE, str(tmp_path / "keys"), shop.hop.url, "cart-1", "hold=bank"],
        cwd=JS_CLIENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    assert (keys(shop), again["status"], again["replayed"], again["pending"]) == ([again["key"]], 200, "true", 0)


def test_twice_at_once(shop, tmp_path):
    """Two processes on one folder with one intent: 409 for the second, one key, one effect."""
    children = [start_child(tmp_path / "keys", shop, "cart-1", "hold=bank") for _ in range(2)]
    check.until(lambda: shop.hop.posts >= 2, "both have asked", 30)
    shop.provider.gate("bank").release(10)
    assert [result_of(child)["status"] for child in children] == [200, 200]
    assert len(keys(shop)) == 1


def test_answers_lost(shop, tmp_path):
    """Cut before the first byte of an answer, and in the middle of it."""
    shop.hop.cuts = [0, 40]
    done = result_of(start_child(tmp_path / "keys", shop, "cart-1"))
    assert (done["status"], done["replayed"], len(keys(shop)), shop.hop.posts) == (200, True, 1, 3)


def test_timeout(shop, hapax_client):
    """The client gives up waiting, asks again with the key, and gets the first one's answer."""
    events = []

    def note(event):
        events.append((event.status, event.then, event.doubt))
        if event.status == 409:
            shop.provider.gate("bank").release(10)

    client = hapax_client.Client(attempt_timeout=0.5, backoff_base=0.05, on_attempt=note)
    answer = pay(client, shop, behave="hold=bank")
    assert (answer.status, answer.replayed, len(keys(shop))) == (200, True, 1)
    assert events[0] == (None, "again", True) and (409, "again", True) in events and events[-1][1:] == ("done", False)


@pytest.mark.parametrize("status, more", [(429, ";header=Retry-After:1"), (503, ";header=Retry-After:1")])
def test_turned_away(shop, hapax_client, status, more):
    """The server's time is waited for, and the same key sent again; then nothing has happened."""
    waits = []
    client = hapax_client.Client(budget=2.5, backoff_base=0, on_attempt=lambda event: waits.append(event.wait_s))
    with pytest.raises(hapax_client.HapaxError) as caught:
        pay(client, shop, behave=f"status={status}{more}")
    error = caught.value
    assert (error.code, error.reason, error.doubt, error.last_answer.status) == ("unsettled", "budget", False, status)
    assert error.attempts >= 2 and set(waits) == {1} and keys(shop) == []
    assert [one.doubt for one in client.pending()] == [False]
    answer = pay(client, shop, behave=f"status={status}{more}".replace(str(status), "200"))
    assert (answer.status, keys(shop)) == (200, [error.key])


def test_key_of_another_request(shop, hapax_client, monkeypatch):
    """422 is definite: nothing happened, and no other key is made by itself."""
    client = hapax_client.Client()
    assert pay(client, shop).status == 200
    monkeypatch.setattr("hapax_client.journal.new_key", lambda _: keys(shop)[0])
    answer = pay(client, shop, intent="cart-2", order=2)
    assert (answer.status, answer.json()["code"], len(keys(shop))) == (422, "idempotency_key_reused", 1)
    assert client.pending() == []


def test_server_error(shop, hapax_client):
    """A 500 may have happened: it is not sent again by itself, and its key is kept."""
    client = hapax_client.Client()
    with pytest.raises(hapax_client.HapaxError) as caught:
        pay(client, shop, behave="status=500;effect=yes")
    assert (caught.value.reason, caught.value.doubt, caught.value.attempts) == ("stopped", True, 1)
    assert [one.key for one in client.pending()] == keys(shop)


def test_tls(hapax_client, tmp_path):
    """A certificate that nobody vouches for: no byte leaves, so there is no doubt."""
    authority = Authority(tmp_path / "ca")
    server = Script(*[answer(201)] * 2, tls=server_context(*authority.certificate()))
    try:
        with pytest.raises(hapax_client.HapaxError) as caught:
            hapax_client.Client(budget=0.5, backoff_base=9, random=lambda: 1).request("POST", server.url, intent="one", json=1)
        assert (caught.value.reason, caught.value.doubt, server.requests) == ("budget", False, [])
        client = hapax_client.Client(ssl_context=ssl.create_default_context(cafile=str(authority.ca_file)))
        assert client.request("POST", server.url, intent="one", json=1).status == 201
    finally:
        server.close()


def test_nobody_listens(shop, hapax_client):
    """What never left is no doubt; the same intent goes on when the gateway is back."""
    client = hapax_client.Client(budget=0.5, backoff_base=9, random=lambda: 1)
    shop.gateway.stop()
    with pytest.raises(hapax_client.HapaxError) as caught:
        client.request("POST", f"http://127.0.0.1:{shop.gateway.port}/pay", intent="cart-1", json={"order": 1},
                       headers={"Authorization": AUTHORIZATION})
    assert (caught.value.reason, caught.value.doubt) == ("budget", False)
    shop.gateway.start()
    answer = client.request("POST", f"http://127.0.0.1:{shop.gateway.port}/pay", intent="cart-1", json={"order": 1},
                            headers={"Authorization": AUTHORIZATION})
    assert (answer.status, keys(shop)) == (200, [caught.value.key])
