"""Shows that the payments examples keep their promise: however they are killed,
stopped and asked again, there is one payment, one order of each kind at the
provider, one receipt that is owed, and one answer. The C program runs on SQLite
and on PostgreSQL, by itself and behind a gateway; the Node service behind one."""
import os
import random
import re
import shutil
import signal
import subprocess
import threading

import pytest

from conftest import require_program
from harness import check, postgres
from harness.gateway import ROOT, binary
from harness.payments import BOB, ORDERS, House, install_node, program
from harness.secret import new_key

HOUSES = ["sqlite-direct", "postgres-direct", "sqlite-gateway", "postgres-gateway", "postgres-node"]
PHASES = ["screened", "authorised", "captured", "paid"]
KILLS = 12
MOMENTS = [f"{moment}:{phase}" for phase in PHASES for moment in ("asked", "committed")]


@pytest.fixture(scope="module", params=HOUSES)
def shared_house(request, tmp_path_factory):
    kind, way = request.param.split("-")
    require_program()
    if not os.access(program("payments"), os.X_OK):
        pytest.skip("the examples were not built: meson option `examples`")
    if kind == "postgres" and postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    if way == "node":
        if not shutil.which("npm"):
            pytest.skip("npm is not installed")
        trouble = install_node(folder)
        if trouble:
            pytest.skip(f"npm ci did not get its packages: {trouble[-300:]}")
    one = House(folder, kind, way)
    yield one
    one.close()


@pytest.fixture
def house(shared_house):
    """The service runs; after an accident, it is started again."""
    yield shared_house
    shared_house.restore()


def test_a_payment(house):
    """It is made once, and can be looked at by its merchant alone."""
    answer = house.pay(new_key())
    assert house.judge(answer) == {order: 1 for order in ORDERS}
    paid = answer.json()
    assert {**paid, "id": ""} == {"id": "", "state": "paid", "customer": "cus_1", "amount": 1250, "currency": "EUR"}
    assert answer["Location"] == f"/payments/{paid['id']}"
    assert house.show(paid["id"]).json() == paid
    assert house.show(paid["id"], BOB).status == 404


def test_the_same_again(house):
    """A retry gets the same bytes, and nothing happens."""
    key = new_key()
    first = house.pay(key)
    again = house.pay(key)
    assert (again.status, again.body, again.replayed) == (201, first.body, True), again
    assert again["Location"] == first["Location"]
    assert house.judge(first) == {order: 1 for order in ORDERS}


def test_another_amount(house):
    """The key of one payment is refused for another."""
    key = new_key()
    first = house.pay(key, 1250)
    assert house.pay(key, 9999).status == 422
    house.judge(first)


def test_another_merchant(house):
    """The same key of somebody else is another payment."""
    key = new_key()
    mine, theirs = house.pay(key), house.pay(key, auth=BOB)
    assert mine.json()["id"] != theirs.json()["id"] and not theirs.replayed
    house.judge(mine)
    house.judge(theirs)
    assert house.pay(key, auth="Bearer nobody").status == 401


def test_a_mistake_costs_nothing(house):
    """What cannot be meant is refused, and nothing happened. The service itself
    does so before it reserves the key, which is still good for the corrected
    request; a gateway, which cannot know, has the key stand for what was sent."""
    for wrong in ({"currency": "euro"}, {"customer": ""}, {"customer": None}, {"amount": -1},
                  {"amount": 12.5}, {"amount": "12"}):
        key = new_key()
        assert house.pay(key, **wrong).status == 400, wrong
        if house.gateway:
            assert house.pay(key, **wrong).status == 400 and house.pay(key).status == 422
        else:
            house.judge(house.pay(key))


@pytest.mark.parametrize("amount, orders", [(1000000, {"screening": 1}), (100000000, {})],
                         ids=["authorisation", "screening"])
def test_declined(house, amount, orders):
    """"No" is final: a retry gets it too, and the provider is not asked again."""
    key = new_key()
    first = house.pay(key, amount)
    assert (first.status, first.json()["state"]) == (402, "declined"), first
    again = house.pay(key, amount)
    assert (again.status, again.body, again.replayed) == (402, first.body, True)
    identity = first.json()["id"]
    assert house.show(identity).json()["state"] == "declined"
    reference = house.payments()[identity][0]
    assert house.ledger().get(reference, {}) == orders and reference not in house.jobs()


def test_all_at_once(house):
    """Eight clients with one key: one payment, and one answer for all."""
    key, answers = new_key(), []
    clients = [threading.Thread(target=lambda: answers.append(house.pay_until_done(key))) for _ in range(8)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    assert len(answers) == 8 and {(a.status, a.body) for a in answers} == {(201, answers[0].body)}
    assert house.judge(answers[0]) == {order: 1 for order in ORDERS}


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed(house, moment):
    """It dies at this moment, and the retry goes on behind the last commit: an
    order whose answer was not committed is asked for again, by the same key; no
    other one is."""
    service = house.restart_service(f"kill:{moment}")
    key = new_key()
    first = house.pay(key)
    service.wait_gone()
    if moment == "committed:paid" and house.gateway:
        assert first.status == 201, first
    else:
        assert first is None or first.status == 502, first
    house.start_service()
    # The gateway has seen the service die; without one, only the lease tells.
    again = house.pay(key) if house.gateway else house.pay_until_done(key)
    calls = house.judge(again)
    when, phase = moment.split(":")
    asked_twice = {"screened": "screening", "authorised": "authorisation", "captured": "capture"}.get(phase)
    assert calls == {order: 2 if when == "asked" and order == asked_twice else 1 for order in ORDERS}
    assert again.replayed == (moment == "committed:paid")


@pytest.mark.parametrize("phase", PHASES)
def test_paused(house, phase):
    """It stands still for longer than its lease, and another process finishes the
    payment. When it goes on, it can write nothing."""
    paused = house.restart_service(f"stop:asked:{phase}")
    key = new_key()
    client = threading.Thread(target=house.pay, args=(key,))
    client.start()
    try:
        check.until(paused.stands_still, "the service stands still")
        house.move_service()
        calls = house.judge(house.pay_until_done(key))
        before = house.rows("SELECT * FROM payment ORDER BY id")
        paused.process.send_signal(signal.SIGCONT)
        paused.wait_log("HX001" if house.way == "node" else "overtaken")
        again = house.pay(key)
        assert again.replayed and house.judge(again) == calls
        assert house.rows("SELECT * FROM payment ORDER BY id") == before
    finally:
        paused.kill()
        client.join()


def test_no_provider(house):
    """Nobody answers there: the client may ask again at once, and does."""
    key = new_key()
    house.provider.kill()
    try:
        assert house.pay(key).status == 503
    finally:
        house.start_provider()
    assert house.judge(house.pay(key)) == {order: 1 for order in ORDERS}


def test_killed_at_random(house):
    """Clients that do not give up, and a service that dies again and again."""
    answers, enough = [], threading.Event()
    chance = random.Random(os.environ.get("HAPAX_SEED", "payments"))

    def client():
        while not enough.is_set():
            answers.append(house.pay_until_done(new_key()))

    clients = [threading.Thread(target=client) for _ in range(4)]
    for one in clients:
        one.start()
    for _ in range(KILLS):
        enough.wait(chance.uniform(0.05, 0.5))
        house.restart_service()
    enough.set()
    for one in clients:
        one.join()
    house.judge(*answers)
    assert len(answers) >= len(clients) and len({a.json()["id"] for a in answers}) == len(answers)


# Where each program of the READMEs listens.
PORTS = {"provider": 9100, "payments": 9000, "node": 9000, "hapax": 8080}


def typed(page, *left_out):
    """The page's lines as a person types them: a server's port answers before the next line, and a server that
    is told to end has ended."""
    lines = ["ip link set lo up", "set -u"]
    for line in "".join(re.findall(r"^```\n(.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)).splitlines():
        if line.startswith(left_out):
            continue
        if line.endswith(" &"):
            words = [word for word in line.split() if "=" not in word]
            answers = f"(: < /dev/tcp/127.0.0.1/{PORTS[os.path.basename(words[0])]}) 2>/dev/null"
            lines += [f"! {answers} || exit 8 # its port is taken", line, f"until {answers}; do",
                      "  kill -0 $! && sleep 0.02 || exit 9 # it has ended", "done"]
            continue
        lines.append(line)
        if line.startswith("kill "):
            lines.append(f"wait {line.split()[1]} 2>/dev/null")
    return "\n".join(lines)


def walk(script, folder, **env):
    """What the lines print, in a network of their own, where the ports of the page are free."""
    (folder / "typed.sh").write_text(script)
    alone = ["unshare", *(["--user", "--map-root-user"] if os.geteuid() else []), "--net", "--pid",
             "--mount-proc", "--fork", "--kill-child"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False, timeout=30).returncode != 0:
        pytest.skip("this machine gives no test a network of its own (unshare --net)")
    with open(folder / "said", "w+", encoding="utf-8") as said:
        done = subprocess.run([*alone, "bash", "typed.sh"], cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                              timeout=120, check=False, env={**os.environ, "NO_PROXY": "*", **env})
        said.seek(0)
        text = said.read()
    assert done.returncode == 0, f"exit {done.returncode}\n{text}"
    return text


def counted(text):
    """{order: [how often the provider was asked for it, …]} of the ledgers that were printed."""
    found = {}
    for order, times in re.findall(r"^(\w+)\t.*\t(\d+)$", text, re.M):
        found.setdefault(order, []).append(int(times))
    return {order: sorted(times) for order, times in found.items()}


@pytest.fixture
def clone(tmp_path):
    """A folder that has `build`, as the top of the project."""
    require_program()
    if not os.access(program("payments"), os.X_OK):
        pytest.skip("the examples were not built: meson option `examples`")
    (tmp_path / "build").symlink_to(os.path.dirname(binary()))
    return tmp_path


def test_the_readme_of_the_payments(clone):
    """Its lines, typed one after the other: paid twice with one key, killed and resumed, and behind a gateway."""
    if not shutil.which("sqlite3"):
        pytest.skip("not installed: sqlite3 (make recipes installs it)")
    said = walk(typed(ROOT / "examples/payments/README.md", "make "), clone)
    answers = re.findall(r"^HTTP/1.1 (\d+).*?^\r?$", said, re.M | re.S)
    assert answers == ["201"] * 4 and said.count("Idempotent-Replayed: true") == 1, said
    # The ledger was printed after the first payment, and after the second, whose authorisation was asked for twice.
    assert counted(said) == {"screening": [1, 1, 1], "authorisation": [1, 1, 2], "capture": [1, 1, 1]}, said
    assert len(re.findall(r"^pay_\w+\|paid\|1250$", said, re.M)) == 2, said
    assert "Hapax-Operation: " in said.rpartition("event=ready")[2], said


def test_the_readme_of_the_client(clone):
    """The order is paid, and what the page says of the journal is there."""
    lines = typed(ROOT / "examples/client/README.md", "make ", "cc ") + \
        "\n" + re.search(r"`(build/hapax call --list [^`]*)`", (ROOT / "examples/client/README.md").read_text())[1]
    said = walk(lines, clone)
    assert "pay_" in said and re.search(r"done +.*/payments", said), said


def test_the_readme_of_node(clone, tmp_path):
    """The same flow by SQL alone: paid twice with one key, killed (502), and resumed."""
    if postgres.programs() is None or not shutil.which("npm"):
        pytest.skip("not installed: postgresql or npm")
    trouble = install_node(tmp_path)
    if trouble:
        pytest.skip(f"npm ci did not get its packages: {trouble[-300:]}")
    cluster = postgres.Cluster()
    try:
        path = f"{cluster.bin}{os.pathsep}{os.environ['PATH']}"
        said = walk(typed(ROOT / "examples/payments-node/README.md", "make ", "(cd "), clone,
                    PGHOST=str(cluster.folder), PGUSER="hapax", PATH=path)
    finally:
        cluster.close()
    assert re.findall(r"^HTTP/1.1 (\d+)", said, re.M) == ["201", "201", "502", "201"], said
    assert said.count("Idempotent-Replayed: true") == 1 and '"executed":"no"' in said, said


@pytest.mark.parametrize("example", ["payments", "payments-node"])
def test_its_configuration(example, tmp_path):
    """What the README says to start the gateway with has no mistake in it."""
    require_program()
    folder, path = ROOT / "examples" / example, tmp_path / "hapax.yaml"
    if example == "payments":
        path.write_text(re.search(r"<<'END'\n(.*?)^END$", (folder / "README.md").read_text(), re.S | re.M)[1])
    else:
        shutil.copy(folder / "hapax.yaml", path)
    done = subprocess.run([binary(), "check", "--config", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "warning" not in done.stdout + done.stderr, done


def test_no_registry_is_named():
    """The lock file holds versions and digests, and no place to get them from."""
    text = (ROOT / "examples/payments-node/package-lock.json").read_text()
    assert "resolved" not in text and "://" not in text
