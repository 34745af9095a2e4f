"""Shows what people find who look into the store with SQL, beside a running gateway: the view
has the columns and states that the pages name, and the pages' own statements do what is said."""
import re
import sqlite3

import pytest

from harness import check, postgres
from harness.gateway import ROOT
from harness.secret import new_key
from test_docs import read, rows, section

# What everybody expects of such a table, besides the id.
USUAL = ["tenant", "key", "method", "path", "fingerprint", "status", "recovery_point", "response_code", "response_body",
         "locked_until", "reconcile_after", "last_error", "created_at", "completed_at", "expires_at"]


def blocks(text):
    return re.findall(r"^```sql\n(.*?)^```$", text, re.M | re.S)


class Shell:
    """The SQL shell of a person, who may read."""

    def __init__(self, gateway):
        url = gateway.config["store"]
        self.is_postgres = url.startswith("postgres")
        self.place = url.split("?")[0].rsplit("/", 1)[1] if self.is_postgres else gateway.folder / "hapax.db"
        self.view = "hapax.idempotency_keys" if self.is_postgres else "hapax_idempotency_keys"

    def ask(self, sql):
        """The rows, as lists of text; NULL is empty."""
        if self.is_postgres:
            return [line.split("|") for line in postgres.shared().sql(sql, self.place)]
        with sqlite3.connect(f"file:{self.place}?mode=ro", uri=True) as store:
            return [["" if cell is None else str(cell) for cell in row] for row in store.execute(sql)]

    def wait_for(self, key):
        """On SQLite a new generation is in the view a moment after its first operation."""
        check.until(lambda: self.ask(f"SELECT 1 FROM {self.view} WHERE key = '{key}'"), "the view has it", 10)

    def columns(self):
        if self.is_postgres:
            return [name for name, in self.ask("SELECT attname FROM pg_attribute WHERE attnum > 0 AND attrelid = "
                                               f"'{self.view}'::regclass ORDER BY attnum")]
        return [row[1] for row in self.ask(f"PRAGMA table_info({self.view})")]


def test_the_columns(site):
    """Those of the page, in its order; the usual ones are among them."""
    page = [name for row in rows(section(read("reference/sql.md"), "Looking with SQL"))
            for name in re.findall(r"`([a-z_]+)`", row[0])]
    assert page == ["id", *USUAL]
    assert Shell(site().gateway).columns() == page


def test_a_row_of_each_state(site):
    """Beside the running gateway, with what clients and services have said."""
    one = site({"routes": [{"match": "POST /pay"}, {"match": "POST /lost", "server_error": "unknown"}]})
    shell, gateway = Shell(one.gateway), one.gateway
    done, failed, lost, held = (new_key() for _ in range(4))
    first = gateway.post(key=done, behave="status=201")
    gateway.post(key=failed, behave="status=429")
    gateway.post("/lost", key=lost, behave="status=500")
    shell.wait_for(done)
    columns = "key, status, coalesce(response_code, 0), coalesce(last_error, '-'), method, path, length(fingerprint)"

    def row(key):
        found, = shell.ask(f"SELECT {columns} FROM {shell.view} WHERE key = '{key}'")
        return found[1:]

    assert row(done) == ["completed", "201", "-", "POST", "/pay", "64"]
    assert row(failed) == ["failed_retryable", "0", "status_429", "POST", "/pay", "64"]
    assert row(lost) == ["unknown", "0", "status_500", "POST", "/lost", "64"]
    with gateway.connect() as wire:
        wire.send(gateway.request("POST", "/pay", key=held, behave=f"hold={held}"))
        one.provider.gate(held).wait_arrived()
        assert row(held) == ["in_progress", "0", "-", "POST", "/pay", "64"]
        (locked,), = shell.ask(f"SELECT locked_until IS NOT NULL FROM {shell.view} WHERE key = '{held}'")
        assert locked == ("t" if shell.is_postgres else "0")  # a server's own lease is in its memory
        one.provider.gate(held).release()
        assert wire.answer().status == 200
    (found,), = shell.ask(f"SELECT id FROM {shell.view} WHERE key = '{done}'")
    assert first["Hapax-Operation"].startswith(found + ".")


def test_the_pages_queries(site):
    """Each of the two is for one store, and shows keys, codes and bodies."""
    one, key = site(), new_key()
    answer = one.gateway.post(key=key)
    shell = Shell(one.gateway)
    shell.wait_for(key)
    text = next(block for block in blocks(read("reference/sql.md")) if "-- SQLite" in block)
    of_postgres, of_sqlite = re.split(r"^-- (?:PostgreSQL|SQLite)\n", text, flags=re.M)[1:]
    found = shell.ask(of_postgres if shell.is_postgres else of_sqlite)
    assert found == [[key, str(answer.status), answer.body.decode()]]


def test_the_words_of_the_usual_table(site):
    """The page that maps the usual table names each state of hapax, and columns that the view has."""
    table = section(read("guide/choose-a-store.md"), "The usual table of keys, in hapax's words")
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")]
    states = {name for usual, ours, *_ in lines if usual.startswith("state") for name in re.findall(r"`(\w+)`", ours)}
    header = (ROOT / "src/core/record.h").read_text(encoding="utf-8")
    known = re.search(r"#define HPX_STATE_LIST\(X\)(.*?)\n\n", header, re.S).group(1)
    assert states == set(re.findall(r'"(\w+)"', known)) - {"none"}
    usual = {name for row in lines if not row[0].startswith("state") for name in re.findall(r"`([a-z_]+)`", row[0])}
    assert {"locked_at", "locked_until", "response_code", "response_body", "recovery_point"} <= usual
    assert len(usual & set(Shell(site().gateway).columns())) >= 7


def test_business_rows_outlive_keys():
    """The page's own tables: a key that goes takes no payment with it, and its place is empty; a
    reference is there once."""
    cluster = postgres.shared()
    database = cluster.database()
    text, = blocks(section(read("guide/choose-a-store.md"), "Business rows that point at keys"))
    cluster.sql("CREATE TABLE my_keys (id bigint PRIMARY KEY); INSERT INTO my_keys VALUES (1), (2)", database)
    cluster.sql(text, database)
    cluster.sql("INSERT INTO payments (amount, operation, key_id) VALUES (10, 'a.1', 1), (20, 'b.2', 2)", database)
    cluster.sql("DELETE FROM my_keys WHERE id = 1", database)
    assert cluster.sql("SELECT amount, operation, key_id FROM payments ORDER BY amount", database) == ["10|a.1|", "20|b.2|2"]
    with pytest.raises(AssertionError, match="unique"):
        cluster.sql("INSERT INTO payments (amount, operation) VALUES (10, 'a.1')", database)
