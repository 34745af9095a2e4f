"""Shows that the JavaScript client pays once: in Node and in Chromium, through lost
answers, reloads, kills and two tabs, before the real gateway. The provider's ledger is
the judge. Its own tests, in Node, run here as well, and its types are compiled."""
import json
import re
import shutil
import signal
import subprocess

import pytest

from conftest import require_program
from harness import browser, check
from harness.gateway import ROOT
from harness.shop import CLIENT, Shop, result_of

STATES = "return window.shop && [shop.results[arguments[0]], shop.events]"
CHILD = """
import { createClient } from "hapax-client";
import { fileStorage } from "hapax-client/node";
const [folder, api, intent, behave] = process.argv.slice(1);
const client = createClient({ storage: fileStorage(folder) });
const headers = { "Content-Type": "application/json", Authorization: "Bearer s3cr3t-alice", "X-Behave": behave };
const init = { method: "POST", headers, body: JSON.stringify({ order: intent }), intent };
const [before] = await client.pending();
const answer = await client.fetch(api + "/pay", init);
console.log(JSON.stringify({ key: before?.key ?? null, doubt: before?.doubt, status: answer.status,
  replayed: answer.headers.get("Idempotent-Replayed"), pending: await client.pending() }));
"""


def require_node():
    if not shutil.which("node"):
        pytest.skip("Node is not installed")


def keys(shop):
    """The key of every side effect, in order."""
    return [line[2].strip('"') for line in shop.provider.ledger()]


# In Node.
def test_its_own_tests():
    """Every case of tests/client/answers.json, and the rest that needs no gateway."""
    require_node()
    done = subprocess.run(["node", "--test", "test/"], cwd=CLIENT, capture_output=True, text=True,
                          timeout=300, check=False)
    failures = re.findall(r"^not ok.*?^  \.\.\.$", done.stdout, re.M | re.S)
    assert done.returncode == 0, "\n".join(failures) or done.stdout[-3000:] + done.stderr
    assert int(re.search(r"^# pass (\d+)", done.stdout, re.M)[1]) > 100, done.stdout[-500:]


def test_its_types(tmp_path):
    """TypeScript takes what the client takes, and refuses what it refuses: with the types of a
    browser, of Node, and with neither; nothing of a library is left unchecked."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    copy = tmp_path / "js"
    shutil.copytree(CLIENT, copy, ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=copy, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"npm ci did not get TypeScript: {done.stderr[-300:]}")
    for project in ("test", "test/tsconfig.node.json", "test/tsconfig.plain.json"):
        done = subprocess.run(["node_modules/.bin/tsc", "-p", project], cwd=copy, capture_output=True, text=True, check=False)
        assert done.returncode == 0, project + done.stdout


PACKED = {"LICENSE", "README.md", "package.json", "hapax.d.ts", "file-storage.d.ts",
          *(path.name for path in CLIENT.glob("*.js"))}


def test_it_can_be_published(tmp_path):
    """What npm would publish is the client, its types, its licence and its page, and nothing
    else; installed from that archive it can be imported by its two names and no others."""
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    done = subprocess.run(["npm", "pack", "--json", "--pack-destination", str(tmp_path)], cwd=CLIENT,
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (packed,) = json.loads(done.stdout)
    assert {file["path"] for file in packed["files"]} == PACKED
    described = json.loads((CLIENT / "package.json").read_text())
    assert "private" not in described and described["license"] == "Apache-2.0"
    assert described["version"] == packed["version"] == library_version()
    assert (CLIENT / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert "](" not in (CLIENT / "README.md").read_text(), "what it says stands there: no page is linked"
    (tmp_path / "package.json").write_text('{"name": "shop", "type": "module"}')
    done = subprocess.run(["npm", "install", "--offline", "--no-audit", "--no-fund", str(tmp_path / packed["filename"])],
                          cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    script = """
import { createClient, HapaxError } from "hapax-client";
import { fileStorage } from "hapax-client/node";
const refused = await import("hapax-client/journal.js").catch((error) => error.code);
const code = await createClient({ storage: fileStorage("keys") }).fetch("/", { method: "POST" }).catch((error) =>
  error instanceof HapaxError && error.code);
console.log(refused, code);
"""
    done = subprocess.run(["node", "--input-type=module", "-e", script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.stdout == "ERR_PACKAGE_PATH_NOT_EXPORTED request_refused\n", done


def library_version():
    done = subprocess.run([ROOT / "tools/version", ROOT / "include/hapax/common.h"], capture_output=True, text=True,
                          check=True)
    return done.stdout.strip()


def test_no_registry_is_named():
    """The lock file holds versions and digests, and no place to get them from."""
    text = (CLIENT / "package-lock.json").read_text()
    assert "resolved" not in text and "://" not in text
    assert "dependencies" not in json.loads((CLIENT / "package.json").read_text()), "it has none"


@pytest.fixture
def shop(tmp_path):
    require_program()
    with Shop(tmp_path) as one:
        yield one


def start_child(folder, shop, intent, behave=""):
    return subprocess.Popen(["node", "--input-type=module", "-e", CHILD, str(folder), shop.hop.url, intent, behave],
                            cwd=CLIENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_programs_of_its_readme(shop, tmp_path):
    """As they stand, but for the address and the folder of keys: one payment with keys in memory, one with a folder."""
    require_node()
    first, second = re.findall(r"```js\n(.*?)```", (CLIENT / "README.md").read_text(encoding="utf-8"), re.S)
    first = first.replace("https://api.example", shop.hop.url)
    imports, making = second.replace("/var/lib/shop/keys", str(tmp_path / "keys")).strip().split("\n\n")
    assert "const client = createClient();" in first
    for times, text in enumerate((first, f"{imports}\n{first}".replace("const client = createClient();", making)
                                  .replace('import { createClient } from "hapax-client";', "", 1)), 1):
        done = subprocess.run(["node", "--input-type=module", "-e", f"{text}\nconsole.log(answer.status);"], cwd=CLIENT,
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "200\n", (text, done)
        assert len(keys(shop)) == times
    assert (tmp_path / "keys").is_dir()


def test_node_killed(shop, tmp_path):
    """Killed while the provider held its answer, and started again: the same key."""
    require_node()
    child = start_child(tmp_path / "keys", shop, "cart-1", "hold=bank")
    shop.provider.gate("bank").wait_arrived()
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)
    shop.provider.gate("bank").release(10)
    again = result_of(start_child(tmp_path / "keys", shop, "cart-1", "hold=bank"))
    assert keys(shop) == [again["key"]]
    assert (again["status"], again["doubt"], again["replayed"], again["pending"]) == (200, True, "true", [])


def test_node_twice_at_once(shop, tmp_path):
    """Two processes on one folder with one intent: one key, one effect."""
    require_node()
    children = [start_child(tmp_path / "keys", shop, "cart-1", "hold=bank") for _ in range(2)]
    check.until(lambda: shop.hop.posts >= 2, "both have asked", 30)
    shop.provider.gate("bank").release(10)
    assert [result_of(child)["status"] for child in children] == [200, 200]
    assert len(keys(shop)) == 1


def test_node_answers_lost(shop, tmp_path):
    """Cut before the first byte of an answer, and in the middle of it."""
    require_node()
    shop.hop.cuts = [0, 40]
    done = result_of(start_child(tmp_path / "keys", shop, "cart-1"))
    assert (done["status"], done["replayed"], len(keys(shop)), shop.hop.posts) == (200, "true", 1, 3)


# In Chromium.
class Visit:
    """One browser, with the shop's page open."""

    def __init__(self, shop, folder):
        self.shop = shop
        self.browser = browser.Browser(folder)
        self.open()

    def open(self):
        self.browser.visit(self.shop.origin + "/")
        self.wait_page()

    def wait_page(self):
        self.browser.until("return Boolean(window.shop)", "the page has its client")

    def reload(self):
        self.browser.reload()
        self.wait_page()

    def pay(self, intent, behave="", init=None):
        """Begins; nobody waits."""
        self.browser.run("void shop.pay(...arguments)", self.shop.hop.url, intent, behave, init or {})

    def result(self, intent):
        """What the page was given in the end, and the attempts on the way."""
        return check.until(lambda: self.state(intent) if self.state(intent)[0] else None, f"{intent} has ended", 60)

    def state(self, intent):
        return self.browser.run(STATES, intent)

    def pending(self):
        return self.browser.run("return shop.client.pending()")


@pytest.fixture
def visit(shop, tmp_path):
    if browser.missing():
        pytest.skip(f"{browser.missing()}: tools/packages test gets them")
    visits = []

    def start():
        visits.append(Visit(shop, tmp_path / "profile"))
        return visits[-1]

    yield start
    for one in visits:
        one.browser.close()


def test_browser_pays(shop, visit):
    """It reads the answer and the gateway's own headers, and keeps nothing."""
    page = visit()
    page.pay("cart-1")
    result, events = page.result("cart-1")
    assert (result["status"], result["replayed"], len(events)) == (200, None, 1), result
    assert result["operation"] == shop.provider.ledger()[0][0]
    assert (page.pending(), keys(shop)) == ([], [events[0]["key"]])


def test_browser_answers_lost(shop, visit):
    """Cut before the first byte of an answer, and in the middle of it: asked again
    with the same key, and the replay says that it is one."""
    page = visit()
    shop.hop.cuts = [0, 40]
    page.pay("cart-1")
    result, events = page.result("cart-1")
    assert (result["status"], result["replayed"]) == (200, "true"), (result, events)
    assert keys(shop) == [events[0]["key"]] and shop.hop.posts == 3 and page.pending() == []


def test_browser_reloaded(shop, visit):
    """Reloaded while the provider held its answer. The page goes on with the same key,
    is told to wait, by a header that it can read, and gets the first answer."""
    page = visit()
    page.pay("cart-1", "hold=bank")
    shop.provider.gate("bank").wait_arrived()
    [entry] = page.pending()
    assert (entry["intent"], entry["doubt"]) == ("cart-1", True)
    page.reload()
    assert page.pending() == [entry]
    page.pay("cart-1", "hold=bank")
    busy = check.until(lambda: next(iter(page.state("cart-1")[1]), None), "it was told to wait")
    assert (busy["status"], busy["then"], busy["key"]) == (409, "again", entry["key"])
    assert busy["waitMs"] >= 1000, "Retry-After was not read"
    shop.provider.gate("bank").release(10)
    result, _ = page.result("cart-1")
    assert (result["status"], result["replayed"], page.pending()) == (200, "true", [])
    assert keys(shop) == [entry["key"]]


def test_browser_killed(shop, visit):
    """Killed as soon as the request had arrived: a new one on the same profile has the key."""
    page = visit()
    page.pay("cart-1", "hold=bank")
    shop.provider.gate("bank").wait_arrived()
    page.browser.kill()
    shop.provider.gate("bank").release(10)
    page = visit()
    [entry] = page.pending()
    page.pay("cart-1", "hold=bank")
    result, events = page.result("cart-1")
    assert (result["status"], result["replayed"], page.pending()) == (200, "true", [])
    assert {event["key"] for event in events} == {entry["key"]} and keys(shop) == [entry["key"]]


def test_two_tabs(shop, visit):
    """Both pay at the same message: one key, one effect, the same answer in both."""
    page = visit()
    tabs = [page.browser.tab(), page.browser.new_tab()]
    page.browser.turn_to(tabs[1])
    page.open()
    page.browser.run("shop.channel.postMessage(arguments[0]); void shop.pay(...arguments[0])",
                     [shop.hop.url, "cart-1", "hold=bank"])
    check.until(lambda: shop.hop.posts >= 2, "both have asked", 30)
    shop.provider.gate("bank").release(10)
    bodies, seen = [], set()
    for tab in tabs:
        page.browser.turn_to(tab)
        result, events = page.result("cart-1")
        assert result["status"] == 200, result
        bodies.append(result["body"])
        seen |= {event["key"] for event in events}
    assert bodies[0] == bodies[1] and [*seen] == keys(shop) and page.pending() == []


def test_another_request(shop, visit):
    """The same intent for another request is refused as long as the first is open."""
    page = visit()
    page.pay("cart-1", "hold=bank")
    shop.provider.gate("bank").wait_arrived()
    page.reload()
    page.pay("cart-1", "", {"body": '{"order": "another"}'})
    assert page.result("cart-1")[0]["code"] == "intent_in_use"
    shop.provider.gate("bank").release(10)
    assert len(keys(shop)) == 1


def test_redirect(shop, visit):
    """A redirect is an answer, though a browser hides where to."""
    page = visit()
    page.pay("cart-1", "status=303;header=Location:/elsewhere")
    result, events = page.result("cart-1")
    assert (result["type"], events[0]["then"], page.pending()) == ("opaqueredirect", "done", [])
    assert len(keys(shop)) == 1 and not shop.provider.seen("/elsewhere")


def test_without_cors(tmp_path):
    """A gateway that was not told of the page's origin: the page cannot read its 409, which
    counts as lost. The key stays, and the stored answer is the application's own."""
    if browser.missing():
        pytest.skip(f"{browser.missing()}: tools/packages test gets them")
    require_program()
    with Shop(tmp_path, cors=False) as one:
        page = Visit(one, tmp_path / "profile")
        try:
            page.pay("cart-1", "hold=bank")
            one.provider.gate("bank").wait_arrived()
            page.reload()
            page.pay("cart-1", "hold=bank")
            lost = check.until(lambda: next(iter(page.state("cart-1")[1]), None), "an attempt has ended")
            assert (lost["status"], lost["then"], lost["doubt"]) == (None, "again", True)
            one.provider.gate("bank").release(10)
            result, _ = page.result("cart-1")
            assert (result["status"], result["replayed"]) == (200, None), result
            assert keys(one) == [lost["key"]] and page.pending() == []
        finally:
            page.browser.close()
