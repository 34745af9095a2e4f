"""Shows that a person can look into the store and settle what is unknown with
`hapax keys`, beside a running gateway, and that every mistake says what to do."""
import fcntl
import getpass
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import sqlite3
import ssl
import struct
import subprocess
import tempfile
import termios

import pytest

from conftest import require_program
from harness import check, postgres
from harness.gateway import binary
from harness.secret import ALICE, BOB, new_key

OK, FAILED, USAGE = 0, 1, 2
LOST = "reset=after"


class Cli:
    """`hapax …` on the store of one gateway."""

    def __init__(self, gateway):
        self.url = gateway.config["store"]
        self.folder = gateway.folder

    def run(self, *arguments, env=None):
        return subprocess.run([binary(), *arguments], capture_output=True, timeout=30,
                              cwd=self.folder, check=False, env={**os.environ, **(env or {})})

    def keys(self, verb, *arguments, code=OK, env=None):
        """What it prints; fails with everything where the exit code is another."""
        done = self.run("keys", verb, "--store", self.url, *arguments, env=env)
        both = done.stdout.decode("latin-1") + done.stderr.decode()
        assert done.returncode == code, f"exit {done.returncode}, not {code}:\n{both}"
        assert "Sanitizer" not in both and "runtime error" not in both, both
        return done.stdout if code == OK else both

    def json(self, verb, *arguments, code=OK, env=None):
        return json.loads(self.keys(verb, "--json", *arguments, code=code, env=env))

    def ls(self, *arguments):
        return self.json("ls", *arguments)["operations"]

    def states(self, key):
        return [row["state"] for row in self.ls("--key", key)]


@pytest.fixture
def cli(gateway):
    return Cli(gateway)


def lose(gateway, key, **how):
    """An operation whose answer was lost behind hapax: its reference."""
    answer = gateway.post(key=key, behave=LOST, **how)
    assert answer.status in (502, 504), answer
    return answer["Hapax-Operation"]


def test_ls_shows_each_state(shared, cli):
    """The list says of every operation where it stands, newest first."""
    gateway, gate = shared.gateway, shared.provider.gate("ls")
    done, failed, lost = new_key(), new_key(), new_key()
    gateway.post(key=done)
    gateway.post(key=failed, behave="status=429")
    lose(gateway, lost)
    rows = {row["key"]: row for row in cli.ls()}
    assert [rows[k]["state"] for k in (done, failed, lost)] == [
        "completed", "failed_retryable", "unknown"]
    assert rows[done]["status"] == 200 and rows[failed]["status"] == 429
    assert [rows[k]["last_error"] for k in (done, failed, lost)] == ["", "status_429", "upstream_reset"]
    for error, key in (("status_429", failed), ("upstream_reset", lost)):
        rows_of_error = cli.ls("--error", error)
        assert key in [row["key"] for row in rows_of_error]
        assert {row["last_error"] for row in rows_of_error} == {error}
        assert error in cli.keys("ls", "--error", error).decode()
    assert cli.ls("--error", "status_429", "--key", lost) == []
    for wrong in ("NOPE", "status_42", "other", ""):
        refused = cli.keys("ls", "--error", wrong, code=2)
        assert f'there is no error "{wrong}"; the errors are' in refused, refused
        assert " lease_lost" in refused and " upstream_reset" in refused and " other" not in refused, refused
    assert "last error upstream_reset" in cli.keys("show", "--key", lost).decode()
    assert (rows[done]["method"], rows[done]["path"]) == ("POST", "/pay")
    assert rows[done]["expires"] and rows[lost]["expires"] is None
    with gateway.connect() as wire:
        running = new_key()
        wire.send(gateway.request("POST", "/pay", key=running, behave="hold=ls"))
        gate.wait_arrived()
        assert cli.states(running) == ["in_progress"]
        gate.release()
        wire.answer("POST")
    assert cli.states(running) == ["completed"]
    changed = [row["changed"] for row in cli.ls()]
    assert changed == sorted(changed, reverse=True)


def test_ls_filters(gateway, cli):
    """--state, --key and --limit choose; the table has a line for each."""
    key = new_key()
    reference = lose(gateway, key)
    rows = cli.ls("--state", "unknown")
    assert {row["state"] for row in rows} == {"unknown"}
    assert [row["reference"] for row in cli.ls("--key", key)] == [reference]
    assert len(cli.ls("--limit", "1")) == 1
    table = cli.keys("ls", "--key", key).decode().splitlines()
    assert len(table) == 2 and table[1].startswith(reference[:12] + "  unknown"), table
    assert reference in cli.keys("ls", "--key", key, "--full").decode()
    assert cli.keys("ls", "--key", "nobody-has-this").decode() == "no operations\n"


def test_show_tells_everything(gateway, cli):
    """Record, history and stored answer, by reference, by its beginning and by key."""
    key = new_key()
    answer = gateway.post(key=key, behave="status=201; header=X-Kept:yes; header=Set-Cookie:a=b")
    reference = answer["Hapax-Operation"]
    for how in ([reference], [reference[:64]], [reference[:10]], ["--key", key]):
        shown = cli.json("show", *how)
        assert shown["reference"] == reference, how
    assert [e["what"] for e in shown["history"]] == ["reserved", "completed"], shown
    assert shown["answer"]["status"] == 201
    assert "X-Kept: yes" in shown["answer"]["headers"]
    assert "Set-Cookie" not in shown["answer"]["headers"]
    assert "body" not in shown["answer"]
    text = cli.keys("show", reference).decode()
    for part in (reference, "completed", "POST /pay", key, "reserved", "X-Kept: yes"):
        assert part in text, f"no {part!r} in:\n{text}"


def test_show_body_is_exact(shared, cli):
    """--body writes the stored bytes and nothing else, all 256 of them."""
    shared.provider.bodies["bytes"] = bytes(range(256))
    answer = shared.gateway.post(key=new_key(), behave="body=bytes")
    reference = answer["Hapax-Operation"]
    assert cli.keys("show", reference, "--body") == bytes(range(256))
    assert "body_base64" in cli.json("show", reference, "--body")["answer"]


def test_show_history_of_attempts(gateway, cli):
    """What happened between the first attempt and the last is told in order."""
    key = new_key()
    for behave in ("status=429", "status=429", None):
        reference = gateway.post(key=key, behave=behave)["Hapax-Operation"]
    told = [(e["attempt"], e["what"]) for e in cli.json("show", reference)["history"]]
    assert told == [(1, "reserved"), (1, "not_executed"), (2, "reserved"), (2, "not_executed"),
                    (3, "reserved"), (3, "completed")]


@pytest.mark.parametrize("verb, more", [
    ("show", []),
    ("resolve", ["--not-applied", "--reason", "x"]),
    ("forget", ["--reason", "x"]),
])
def test_one_key_of_two_tenants(gateway, cli, verb, more):
    """A key that two tenants use names nothing: both are listed, nothing is done."""
    key = new_key()
    references = [lose(gateway, key, auth=auth) for auth in (ALICE, BOB)]
    said = cli.keys(verb, "--key", key, *more, code=FAILED)
    assert "name one by its reference" in said
    assert all(reference[:12] in said for reference in references), said
    assert cli.states(key) == ["unknown", "unknown"]


def test_resolve_applied_with_the_answer(gateway, provider, cli):
    """After --applied --response every retry gets that answer; nothing is sent again."""
    key = new_key()
    reference = lose(gateway, key)
    check.problem(gateway.post(key=key), "idempotency_outcome_unknown")
    body = b'{"id": "pay_1"}\0\xff'
    (gateway.folder / "answer.http").write_bytes(
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nSet-Cookie: a=b\r\n"
        b"Transfer-Encoding: chunked\r\nX-From: books\r\n\r\n" + body)
    done = cli.json("resolve", reference, "--applied", "--response", "answer.http",
                    "--reason", "found in the books", env={"SUDO_USER": "ada"})
    assert (done["reference"], done["state"], done["status"]) == (reference, "completed", 201)
    answer = gateway.post(key=key)
    assert answer.status == 201 and answer.replayed, answer
    assert answer.body == body and answer["X-From"] == "books" and answer["Set-Cookie"] is None
    assert len(provider.ledger(key)) == 1
    last = cli.json("show", reference)["history"][-1]
    assert (last["what"], last["actor"], last["reason"]) == (
        "resolved_applied", "ada", "found in the books")


def test_resolve_applied_with_a_status(gateway, provider, cli):
    """Where the answer is lost for good, retries are told that it happened."""
    key = new_key()
    cli.keys("resolve", lose(gateway, key), "--applied", "--status", "201", "--reason", "it is there")
    document = check.problem(gateway.post(key=key), "response_not_kept")
    assert document["original_status"] == 201
    assert len(provider.ledger(key)) == 1


def test_resolve_not_applied(gateway, provider, cli):
    """After --not-applied the next request executes it, and the person was warned."""
    key = new_key()
    reference = lose(gateway, key)
    done = cli.run("keys", "resolve", reference[:12], "--store", cli.url, "--not-applied",
                   "--reason", "they never saw it", "--json")
    assert done.returncode == OK, done
    assert json.loads(done.stdout)["state"] == "failed_retryable"
    assert b"may make it happen twice" in done.stderr
    answer = gateway.post(key=key)
    assert answer.status == 200 and not answer.replayed, answer
    assert [r["Hapax-Attempt"] for r in provider.seen(key=key)] == ["1", "2"]


def test_resolve_refuses_what_is_settled(gateway, cli):
    """Nothing overrides a completed operation."""
    key = new_key()
    reference = gateway.post(key=key)["Hapax-Operation"]
    said = cli.keys("resolve", reference, "--not-applied", "--reason", "x", code=FAILED)
    assert "nothing overrides" in said
    assert gateway.post(key=key).replayed


@pytest.mark.parametrize("text, told", [
    (b"HTTP/2 200 \r\n\r\n", "--http1.1"),
    (b"HTTP/1.1 200 OK\nX: y\n\nbody", "CR LF"),
    (b"HTTP/1.1 200 OK\r\nX: y\r\n", "no empty line"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbody", "Content-Length says 9"),
    (b"HTTP/1.1 302 Found\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "more than one answer"),
])
def test_resolve_refuses_a_bad_file(gateway, cli, text, told):
    """A file that is not an answer is refused, with the reason; nothing is settled."""
    key = new_key()
    reference = lose(gateway, key)
    (gateway.folder / "bad.http").write_bytes(text)
    said = cli.keys("resolve", reference, "--applied", "--response", "bad.http", "--reason", "x",
                    code=FAILED)
    assert told in said, said
    assert cli.states(key) == ["unknown"]


def test_forget(gateway, provider, cli):
    """A forgotten key is executed anew; what may have happened needs --force."""
    key = new_key()
    first = gateway.post(key=key)["Hapax-Operation"]
    told = cli.keys("forget", first, "--reason", "test data").decode()
    assert told.startswith(f"{first}: "), "only the whole reference finds it from now on"
    assert cli.states(key) == []
    # With PostgreSQL, within a second: answers are kept in memory.
    answer = check.until(lambda: (a := gateway.post(key=key))["Hapax-Operation"] != first and a,
                         "executed anew")
    assert answer.status == 200 and not answer.replayed
    assert len(provider.ledger(key)) == 2
    assert "in use again" in cli.keys("show", first, code=FAILED)

    lost = lose(gateway, new_key())
    assert "--force" in cli.keys("forget", lost, "--reason", "x", code=FAILED)
    cli.keys("forget", lost, "--reason", "it was a drill", "--force")
    left = cli.keys("show", lost, code=FAILED)
    assert "forgotten" in left and "it was a drill" in left and getpass.getuser() in left


def test_forget_refuses_what_runs(shared, cli):
    """What is in progress is not forgotten under its feet."""
    gateway, gate, key = shared.gateway, shared.provider.gate("forget"), new_key()
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/pay", key=key, behave="hold=forget"))
        gate.wait_arrived()
        for verb, more in (("forget", ()), ("resolve", ("--not-applied",))):
            said = cli.keys(verb, "--key", key, "--reason", "x", *more, code=FAILED)
            assert "in progress" in said
        gate.release()
        assert wire.answer("POST").status == 200
    assert gateway.post(key=key).replayed


def test_accept_clock(cli):
    """The clock's verb takes a reason and gives one object."""
    assert cli.json("accept-clock", "--reason", "time server mended")["reason"] == "time server mended"


@pytest.mark.parametrize("arguments, code, told", [
    (["ls", "--state", "gone"], USAGE, "the states are"),
    (["ls", "--limit", "0"], USAGE, "--limit is a number"),
    (["ls", "--limit", "1e3"], USAGE, "--limit is a number"),
    (["ls", "--since", "soon"], USAGE, "--since is a duration"),
    (["ls", "--stat", "unknown"], USAGE, "did you mean --state"),
    (["show"], USAGE, "REFERENCE"),
    (["show", "my-key"], USAGE, "--key KEY"),
    (["show", "abcdef"], FAILED, "begins with abcdef"),
    (["show", "0" * 64], FAILED, "no such operation"),
    (["show", "--key", "nobody-has-this"], FAILED, "no operation has the key"),
    (["resolve", "abcdef", "--applied", "--status", "200"], USAGE, "--reason"),
    (["resolve", "abcdef", "--reason", "x"], USAGE, "--applied or --not-applied"),
    (["resolve", "abcdef", "--applied", "--reason", "x"], USAGE, "--response FILE"),
    (["resolve", "abcdef", "--not-applied", "--status", "200", "--reason", "x"], USAGE,
     "leave out"),
    (["forget", "abcdef"], USAGE, "--reason"),
    (["forget", "abcdef", "--reason", ""], USAGE, "--reason"),
    (["accept-clock"], USAGE, "--reason"),
    (["burn"], USAGE, "the verbs are"),
    (["list"], USAGE, 'did you mean "ls"?'),
    (["get"], USAGE, 'did you mean "show"?'),
    (["rm"], USAGE, 'did you mean "forget"?'),
    (["reslove"], USAGE, 'did you mean "resolve"?'),
])
def test_mistakes_say_what_to_do(cli, arguments, code, told):
    """Every way to call it wrongly has its own sentence and exit code."""
    assert told in cli.keys(*arguments, code=code)


@pytest.mark.parametrize("command", ["serve", "check", "work", "reconcile", "keys ls", "jobs ls"])
def test_a_file_without_its_flag(tmp_path, command):
    """Whoever forgets --config is told how the file is given, wherever that flag is taken."""
    require_program()
    (tmp_path / "there.conf").write_text("")
    for name, told in (("b.yaml", b"; a configuration is given as --config b.yaml\n"),
                       ("b.yml", b"; a configuration is given as --config b.yml\n"),
                       ("there.conf", b"; a configuration is given as --config there.conf\n"),
                       ("not.there", b"too many\n")):
        done = subprocess.run([binary(), *command.split(), name], cwd=tmp_path, capture_output=True,
                              timeout=30, check=False)
        assert done.returncode == USAGE and told in done.stderr, done


@pytest.mark.parametrize("line, told", [
    ("jobs list", 'did you mean "ls"?'),
    ("jobs rm", 'did you mean "discard"?'),
    ("jobs get", 'did you mean "show"?'),
    ("jobs resend", 'did you mean "retry"?'),
    ("jobs burn", "the verbs are ls, show, retry and discard"),
    ("key", 'did you mean "keys"?'),
    ("run", 'did you mean "serve"?'),
    ("validate", 'did you mean "check"?'),
    ("worker", 'did you mean "work"?'),
    ("xyzzy", "`hapax --help` lists the commands"),
    ("serve --port 80", "did you mean --listen?"),
    ("serve --backend x", "did you mean --upstream?"),
    ("keys ls --db x", "did you mean --store?"),
    ("help kyes", 'did you mean "keys"?'),
    ("jobs forget 1", 'did you mean "discard"?'),
    ("--config x serve", "the command comes first: hapax serve --config"),
    ("keys --store x ls", "the verb comes first: hapax keys ls --store"),
    ("keys show", "name one operation: by its REFERENCE, or by --key KEY"),
    ("jobs show", "name one job by its NUMBER"),
    ("serve --upstream --store x", "--upstream needs a value: --upstream URL"),
    ("keys ls --limit --full", "--limit needs a value: --limit N"),
    ("help keys list", 'did you mean "ls"?'),
])
def test_near_misses(line, told):
    """A mistyped word, and the word of another program, lead to ours."""
    require_program()
    done = subprocess.run([binary(), *line.split()], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, told in done.stderr) == (USAGE, True), done


@pytest.mark.parametrize("words", ["serve", "keys", "keys resolve", "jobs discard", "verify"])
def test_help_of_a_command(words):
    """`hapax help X Y` is `hapax X Y --help`."""
    require_program()
    short, long = [subprocess.run([binary(), *line.split()], capture_output=True, text=True, timeout=30, check=True).stdout
                   for line in (f"help {words}", f"{words} --help")]
    assert short == long and short.startswith(f"Usage: hapax {words}"), short


CHECKED = """upstream: http://127.0.0.1:9000
store: sqlite:x.db
routes:
  - match: POST /payments/{payment}/refunds
    server_error: unknown
  - match: POST /seen
    observe: true
"""


def check_on_terminal(folder, columns):
    """What `hapax check` prints on a terminal of that width, line by line."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    done = subprocess.run([binary(), "check", "--config", "c.yaml"], cwd=folder, stdout=theirs, timeout=30, check=False)
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(ours, 65536):
            said += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert done.returncode == OK, said
    return said.decode().splitlines()


def test_check_fits_the_terminal(tmp_path):
    """Broken between words, and nothing is lost; a table where there is room, and in a file."""
    require_program()
    (tmp_path / "c.yaml").write_text(CHECKED)
    whole = subprocess.run([binary(), "check", "--config", "c.yaml"], cwd=tmp_path, capture_output=True, text=True,
                           timeout=30, check=True).stdout
    assert check_on_terminal(tmp_path, 400) == whole.splitlines()
    table = [line.split()[:8] for line in whole.splitlines() if "retry" in line or "unknown" in line]
    assert ["POST", "/payments/{payment}/refunds", "required", "path", "unknown", "conflict", "now", "24h"] in table, whole
    for columns in (80, 40):
        lines = check_on_terminal(tmp_path, columns)
        assert max(map(len, lines)) <= columns, lines
        text = " ".join(" ".join(lines).split())
        assert ("POST /payments/{payment}/refunds: key required, scope path, server_error unknown, concurrent conflict, "
                "deliver now, retention 24h") in text, lines
        assert "retention 24h; observe: guards nothing" in text, lines


def test_keys_never_creates_a_store(tmp_path):
    """A wrong path is a mistake, not an empty list in a new file."""
    require_program()
    done = subprocess.run([binary(), "keys", "ls"], cwd=tmp_path, capture_output=True, timeout=30,
                          check=False)
    assert done.returncode == FAILED and b"no store" in done.stderr and b"--store" in done.stderr, done
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_must_be_made_is_named(tmp_path):
    """The command that makes it is about the store that was asked for, wherever it is run."""
    require_program()
    done = subprocess.run([binary(), "keys", "ls", "--store", "sqlite:gone.db"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.returncode == FAILED, done
    told, = done.stderr.split("`")[1::2]
    (tmp_path / "elsewhere").mkdir()
    subprocess.run([binary(), *told.split()[1:]], cwd=tmp_path / "elsewhere", capture_output=True, timeout=30, check=True)
    assert (tmp_path / "gone.db").exists() and list((tmp_path / "elsewhere").iterdir()) == []


def test_keys_of_a_memory_store(cli):
    """A store that lives in another process is not shown as an empty one."""
    done = cli.run("keys", "ls", "--store", "memory:")
    assert done.returncode == FAILED and b"memory" in done.stderr, done


def test_keys_by_configuration(gateway, cli):
    """--config reads the store's place from the file that serve runs with."""
    key = new_key()
    gateway.post(key=key)
    done = cli.run("keys", "ls", "--config", str(gateway.folder / "hapax.yaml"), "--key", key,
                   "--json")
    assert done.returncode == OK, done
    assert [row["key"] for row in json.loads(done.stdout)["operations"]] == [key]


def test_ls_is_narrowed(gateway, cli):
    """By tenant, route and time; JSON says how far it looked, and that was at all of them."""
    key = new_key()
    gateway.post(key=key)
    row, = cli.ls("--key", key)
    for wanted in (["--tenant", row["tenant"]], ["--route", row["route"]], ["--since", "1h"],
                   ["--since", row["created"]]):
        assert key in [other["key"] for other in cli.ls(*wanted)], wanted
        assert [other["key"] for other in cli.ls(*wanted, "--key", key)] == [key], wanted
    for wanted in (["--tenant", "nobody"], ["--route", "POST /nowhere"], ["--since", "2999-01-01T00:00:00Z"]):
        answer = cli.json("ls", *wanted)
        assert answer["operations"] == [] and answer["looked"]["all"] is True, answer
    assert cli.json("ls", "--key", key)["looked"]["operations"] >= 1


def test_a_tenant_in_other_words(gateway, cli):
    """A tenant's name that is cut, or without what stands before its colon, finds nothing and
    is told with the whole name, which --full shows."""
    key = new_key()
    gateway.post(key=key)
    row, = cli.ls("--key", key)
    whole = row["tenant"]
    kind, _, value = whole.partition(":")
    assert kind and len(whole) > 20, whole
    table = cli.keys("ls", "--key", key).decode()
    assert whole[:16] in table and whole not in table
    assert whole in cli.keys("ls", "--key", key, "--full").decode()
    for name in (whole[:16], value, value[:9]):
        for command in (["keys", "ls"], ["keys", "ls", "--json"], ["keys", "show", "--key", key], ["history"],
                        ["keys", "show", "--key", key, "--path", row["path"]]):
            said = cli.run(*command, "--store", cli.url, "--tenant", name).stderr.decode()
            assert f'no tenant "{name}"' in said and f"did you mean {whole}?" in said, (command, said)
    for name in (whole, value[1:], "nobody"):
        said = cli.run("keys", "ls", "--store", cli.url, "--tenant", name, "--route", "POST /nowhere").stderr.decode()
        assert said == "", said


def test_a_full_list_says_whether_there_are_more(site):
    """A list of as many as --limit says that there are more, if there are."""
    one = site()
    for _ in range(3):
        one.gateway.post(key=new_key())
    cli = Cli(one.gateway)
    said = [cli.run("keys", "ls", "--store", cli.url, "--limit", limit).stderr.decode() for limit in "234"]
    assert said == ["The 2 newest are shown; --limit N shows more.\n", "", ""], said


# More of another tenant than a list looks at, over the one that is there.
MANY_IN_A_FILE = """WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 210000)
    INSERT INTO hapax_operation_1 (seq, id, rest, token, fingerprint, recipe, tenant_hash, owner, created, retention,
        tombstone, when_lost, tenant, scope, key, method, path, route, crc)
    SELECT i, randomblob(16), rest, token, fingerprint, recipe, tenant_hash, owner, created + i, retention, tombstone,
        when_lost, 'many', scope, 'k' || i, method, path, route, crc FROM hapax_operation_1, n WHERE seq = 1"""
MANY_ON_A_SERVER = """INSERT INTO hapax.operation SELECT (a.o).* FROM (SELECT jsonb_populate_record(NULL::hapax.operation,
        to_jsonb(o) || jsonb_build_object('id', gen_random_uuid(), 'tenant', 'many', 'key', 'k' || i)) AS o
        FROM hapax.operation o, generate_series(1, 12000) i) a;
    INSERT INTO hapax.due (at, ids) SELECT expires + 1, ARRAY[id] FROM hapax.operation WHERE tenant = 'many'"""


def test_a_list_says_how_far_it_looked(site):
    """Where a list did not look at all, it says so and how far; the key alone is searched further."""
    one, key = site(), new_key()
    cli = Cli(one.gateway)
    reference = one.gateway.post(key=key)["Hapax-Operation"]
    one.gateway.stop()
    if cli.url.startswith("postgres"):
        postgres.shared().sql(MANY_ON_A_SERVER, cli.url.split("?")[0].rsplit("/", 1)[1])
    else:
        with sqlite3.connect(one.gateway.folder / "hapax.db") as store:
            store.execute(MANY_IN_A_FILE)
    done = cli.run("keys", "ls", "--store", cli.url, "--tenant", "nobody")
    told = re.fullmatch(r"Looked at (\d+) operations, back to (\S+Z); older ones were not looked at\.\n", done.stderr.decode())
    assert told and done.stdout == b"no operations\n", done
    looked = cli.json("ls", "--tenant", "nobody")["looked"]
    assert looked == {"operations": int(told[1]), "all": False, "back_to": told[2]}
    assert 10000 <= looked["operations"] < 210000
    assert cli.json("show", "--key", key)["reference"] == reference


def test_show_by_request(gateway, cli):
    """Tenant, path and key name an operation without a search, whatever the spelling of the path."""
    key = new_key()
    reference = gateway.post("/payments?x=1", key=key)["Hapax-Operation"]
    row, = cli.ls("--key", key)
    where = ["--key", key, "--tenant", row["tenant"], "--path", row["path"]]
    config = ["--config", str(gateway.folder / "hapax.yaml")]
    assert cli.json("show", *where, *config)["reference"] == reference
    assert cli.json("show", *where, *config, "--method", "POST")["reference"] == reference
    said = cli.keys("show", *where, *config, "--method", "PATCH", code=FAILED)
    assert "no operation has this tenant, key and scope" in said, said
    assert "go with --key" in cli.keys("show", reference, "--path", "/", code=USAGE)
    assert "together" in cli.keys("show", "--key", key, "--path", "/payments", code=USAGE)
    said = cli.keys("show", "--key", "nobody-has-this", code=FAILED)
    assert "it may have expired" in said, said


def test_show_by_request_of_a_route_with_a_host(site):
    """The path is given with its host where the scope is that of a route with a host."""
    one = site({"routes": [{"match": "POST pay.example/payments", "scope": "route"}]})
    cli, key = Cli(one.gateway), new_key()
    reference = one.gateway.post("http://pay.example/payments", key=key)["Hapax-Operation"]
    row, = cli.ls("--key", key)
    where = ["--key", key, "--tenant", row["tenant"], "--config", str(one.gateway.folder / "hapax.yaml"), "--path"]
    assert cli.json("show", *where, "http://pay.example/payments")["reference"] == reference
    assert "no operation has this" in cli.keys("show", *where, "/payments", code=FAILED)


def test_show_by_request_what_was_removed(gateway, cli):
    """A request whose record was removed has its history, as by its reference."""
    key = new_key()
    gateway.post("/payments", key=key)
    row, = cli.ls("--key", key)
    cli.keys("forget", row["reference"], "--reason", "a drill")
    said = cli.keys("show", "--key", key, "--tenant", row["tenant"], "--path", row["path"],
                    "--config", str(gateway.folder / "hapax.yaml"), code=FAILED)
    assert "forgotten" in said and "a drill" in said and "its record was removed" in said, said



def test_watch_into_a_pipe(gateway, cli):
    """--watch prints what is new or has changed, once, and ends cleanly by Ctrl-C."""
    first, second = new_key(), new_key()
    gateway.post(key=first)
    with subprocess.Popen([binary(), "keys", "ls", "--watch", "--json", "--store", cli.url, "--since", "1h",
                           "--limit", "1000"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cli.folder, text=True) as watch:
        seen = []
        while first not in seen:
            seen.append(json.loads(watch.stdout.readline())["key"])
        gateway.post(key=second)
        while second not in seen:
            seen.append(json.loads(watch.stdout.readline())["key"])
        watch.send_signal(signal.SIGINT)
        rest, said = watch.communicate(timeout=30)
        assert watch.returncode == OK and rest == "" and said == "", (watch.returncode, rest, said)
    assert seen.count(first) == 1 and seen.count(second) == 1, seen


def test_watch_on_a_terminal(gateway, cli):
    """Each list takes the place of the one before; Ctrl-C ends it with 0."""
    key = new_key()
    gateway.post(key=key)
    leader, follower = os.openpty()
    with subprocess.Popen([binary(), "keys", "ls", "--watch", "--key", key, "--store", cli.url],
                          stdout=follower, stderr=subprocess.PIPE, cwd=cli.folder) as watch:
        os.close(follower)
        text = b""
        while text.count(b"\033[2J") < 2:
            text += os.read(leader, 65536)
        watch.send_signal(signal.SIGINT)
        assert watch.wait(timeout=30) == OK and watch.stderr.read() == b""
    os.close(leader)
    assert text.count(b"REFERENCE") >= 1 and b"completed" in text, text


def test_migrate(tmp_path):
    """migrate creates and says from what to what; --check changes nothing."""
    require_program()

    def migrate(*arguments):
        return subprocess.run([binary(), "migrate", "--store", "sqlite:x.db", *arguments],
                              cwd=tmp_path, capture_output=True, timeout=30, check=False)

    assert migrate("--check").returncode == FAILED
    assert list(tmp_path.iterdir()) == []
    made = migrate()
    assert made.returncode == OK and b"is new" in made.stdout, made
    assert migrate("--check").returncode == OK
    again = migrate()
    assert again.returncode == OK and b"up to date" in again.stdout, again
    (tmp_path / "x.db").write_text("not a database, and nobody's to overwrite")
    foreign = migrate()
    assert foreign.returncode == FAILED and b"not a hapax store" in foreign.stderr, foreign


def test_the_store_of_the_service(tmp_path):
    """A command of the runbooks as it is printed, without a store: it takes the file in this folder,
    else the store of the installed service's configuration, and says both where there is neither."""
    require_program()
    told = " ".join(subprocess.run([binary(), "keys", "ls", "--help"], capture_output=True, text=True, check=True,
                                   timeout=30).stdout.split())
    config = pathlib.Path(re.search(r"else the store that (\S+/hapax/hapax\.yaml) names", told)[1])
    place = config.parent.parent
    if os.geteuid() != 0 or not place.is_dir():
        pytest.skip(f"only root can put something in the place of {place}")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False, timeout=30).returncode != 0:
        pytest.skip("this machine gives no test mounts of its own (unshare --mount)")
    store = f"sqlite:{tmp_path}/service.db"
    subprocess.run([binary(), "migrate", "--store", store], check=True, capture_output=True, timeout=30)
    (tmp_path / "etc/hapax").mkdir(parents=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def ls():
        """With `etc` in the place of the folder for configurations, seen by this process alone."""
        script = 'mount --bind "$0" "$1" && exec "$2" keys ls'
        return subprocess.run(["unshare", "--mount", "sh", "-c", script, str(tmp_path / "etc"), str(place), binary()],
                              cwd=elsewhere, capture_output=True, text=True, timeout=30, check=False)

    none = ls()
    assert none.returncode == FAILED and f"no store here (sqlite:hapax.db) and no {config}" in none.stderr, none
    file = tmp_path / "etc/hapax/hapax.yaml"
    file.write_text(f"upstream: http://127.0.0.1:1\nstore: {store}\n")
    assert (ls().returncode, ls().stderr) == (OK, "")
    file.write_text(f"upstream: http://127.0.0.1:1\nstore: sqlite:{tmp_path}/gone.db\n")
    gone = ls()
    assert gone.returncode == FAILED and f"{tmp_path}/gone.db" in gone.stderr, gone
    subprocess.run([binary(), "migrate"], cwd=elsewhere, check=True, capture_output=True, timeout=30)
    assert ls().returncode == OK, "the file in this folder comes first"


def test_a_store_made_by_root():
    """A store that root makes in the service's folder belongs to the service, which can open it."""
    require_program()
    if os.geteuid() != 0:
        pytest.skip("only root can make a file for another user")
    user, group = 65534, 65533
    # Not pytest's folder, nor the build's, which the other user may not be able to enter.
    with tempfile.TemporaryDirectory() as outer:
        os.chmod(outer, 0o755)
        program = shutil.copy(binary(), f"{outer}/hapax")
        folder = pathlib.Path(outer, "state")
        folder.mkdir(mode=0o700)
        os.chown(folder, user, group)
        migrate = [program, "migrate", "--store", f"sqlite:{folder}/hapax.db"]
        subprocess.run(migrate, check=True, capture_output=True, timeout=30)
        made = {path.name: path.stat() for path in folder.iterdir()}
        assert {"hapax.db", "hapax.db.lock"} <= set(made)
        for name, about in made.items():
            assert (about.st_uid, about.st_gid, about.st_mode & 0o777) == (user, group, 0o600), (name, about)
        done = subprocess.run(migrate, user=user, group=group, extra_groups=[], cwd=folder, capture_output=True,
                              text=True, timeout=30, check=False)
        assert done.returncode == OK and "up to date" in done.stdout, done


def test_repair_without_a_store(tmp_path):
    """A store that is not there is a name to mend: no store is made, and no damage is spoken of."""
    require_program()
    for arguments in ([], ["--accept"], ["--store", "sqlite:other.db"]):
        done = subprocess.run([binary(), "repair", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=30,
                              check=False)
        store = arguments[-1] if "--store" in arguments else "sqlite:hapax.db"
        assert (done.returncode, done.stdout) == (FAILED, ""), done
        assert f"there is no store at {store}: name the server's with --store sqlite:PATH" in done.stderr, done
        assert not list(tmp_path.iterdir())


def test_repair(site):
    """repair finds nothing in a whole file, beside the server; it accepts only without one;
    and a key that an index has lost is not executed again, neither before nor after."""
    gateway, key = site().gateway, new_key()
    path = gateway.folder / "hapax.db"

    def repair(*arguments):
        return subprocess.run([binary(), "repair", "--store", f"sqlite:{path}", *arguments],
                              capture_output=True, text=True, timeout=60, check=False)
    first = gateway.post(key=key)
    looked = repair()
    assert (looked.returncode, looked.stdout) == (OK, "no damage was found\n")
    assert repair("--accept").returncode == FAILED
    gateway.stop()
    with sqlite3.connect(path) as store:
        root = store.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'hapax_id_1'").fetchone()[0]
    with open(path, "r+b") as file:
        file.seek(root * 4096 - 8)
        byte = file.read(1)[0]
        file.seek(root * 4096 - 8)
        file.write(bytes([byte ^ 1]))
    gateway.start()
    assert gateway.post(key=key).status == 503
    assert gateway.post().status == 503, "a new key may be a lost one"
    told = repair()
    assert told.returncode == FAILED and "missing in the index" in told.stdout, told
    assert f"\n  hapax repair --accept --store sqlite:{path}\n" in told.stdout, told
    gateway.stop()
    mended = repair("--accept")
    assert mended.returncode == OK and "made anew" in mended.stdout, mended
    gateway.start()
    check.same_answer(first, gateway.post(key=key))
    assert gateway.post().status == 200


def test_migrate_beside_a_server(gateway, cli):
    """The store that a gateway serves is left alone."""
    assert gateway.pid
    done = cli.run("migrate", "--store", cli.url)
    assert done.returncode == FAILED and done.stderr, done


# `hapax version`.
# What the program is linked with, and the name under which --verbose tells its version.
LINKED = {"libuv": "libuv", "libssl": "OpenSSL", "libcrypto": "OpenSSL", "libsqlite3": "SQLite", "libpq": "libpq",
          "libcurl": "libcurl", "libz": "zlib", "libjansson": "Jansson", "libyaml-0": "libyaml", "libc": "libc"}
# The compiler's own, and what stands in glibc: its version is libc's.
PARTS_OF_OTHERS = {"libm", "libgcc_s", "libpthread", "libdl", "librt", "libresolv", "libstdc++", "ld-linux-x86-64"}


def version(*flags):
    done = subprocess.run([binary(), "version", *flags], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == OK and not done.stderr, done
    return done.stdout


def test_version_names_every_library():
    """Every library that the program needs is told, with the version that is loaded."""
    require_program()
    told = json.loads(version("--verbose", "--json"))
    needed = subprocess.run(["readelf", "-d", binary()], capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"NEEDED.*\[([\w+-]+?)(?:\.\d[\d.]*)?\.so", needed)) - PARTS_OF_OTHERS
    assert {LINKED[name] for name in names} == set(told["libraries"])
    # Debian's Python is linked with the same two.
    assert told["libraries"]["SQLite"] == sqlite3.sqlite_version
    assert told["libraries"]["OpenSSL"] == ssl.OPENSSL_VERSION.split()[1]
    assert set(told["schemas"]) == {"sqlite", "postgres", "journal"} and all(told["schemas"].values())
    assert re.search(r"\d+\.\d+", told["build"]["compiler"])


def test_version_as_text():
    """The text has what the JSON has; without --verbose it is one line."""
    require_program()
    told = json.loads(version("--verbose", "--json"))
    short = f"hapax {told['version']}\n"
    assert version() == short and json.loads(version("--json")) == {"version": told["version"]}
    text = version("--verbose")
    assert text.startswith(short)
    rows = dict(re.findall(r"^  (\S+) +(.+)$", text, re.M))
    want = {**told["libraries"], **told["build"], **{name: str(number) for name, number in told["schemas"].items()}}
    assert rows == want


def test_version_tells_the_schema_of_the_store(gateway, cli):
    """The number is the one that the store holds."""
    if not gateway.config["store"].startswith("sqlite:"):
        pytest.skip("looks into the file")
    with sqlite3.connect(gateway.config["store"].removeprefix("sqlite:")) as file:
        held = file.execute("SELECT max(version) FROM hapax_schema_version").fetchone()[0]
    assert json.loads(cli.run("version", "--verbose", "--json").stdout)["schemas"]["sqlite"] == held
