"""What the API keeps: a ledger with one line for each effect, which is the
truth, and a record for each key. Both are in one SQLite file, so that an effect
and its record commit together. A killed process loses nothing that was
committed; a power cut is not what is tested here."""
import collections
import contextlib
import json
import sqlite3
import threading
import uuid

RUNNING, DONE, DOUBTFUL = "running", "done", "doubtful"

Record = collections.namedtuple("Record", "operation owner token state meaning began status fields body")


class Answer:
    """A whole answer, without what belongs to one delivery."""

    def __init__(self, status, fields=(), body=b""):
        self.status = status
        self.fields = list(fields)
        self.body = body

    def __getitem__(self, name):
        return next((v for n, v in self.fields if n.lower() == name.lower()), None)


class Book:
    """`is_forgetful`: the records of keys die with the process."""

    def __init__(self, folder, is_forgetful=False):
        self.lock = threading.RLock()
        self.db = sqlite3.connect(folder / "book.db", check_same_thread=False, isolation_level=None)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=OFF")
        self.db.execute("CREATE TABLE IF NOT EXISTS effect(n INTEGER PRIMARY KEY, path, name, tenant, id)")
        self.db.execute("CREATE TABLE IF NOT EXISTS attempt(name PRIMARY KEY, count)")
        self.db.execute(f"CREATE {'TEMP' if is_forgetful else ''} TABLE IF NOT EXISTS record("
                        "operation PRIMARY KEY, owner, token, state, meaning, began, status, fields, body)")

    @contextlib.contextmanager
    def transaction(self):
        with self.lock:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield self
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")

    # The ledger.
    def effect(self, path, name, tenant, identity):
        self.db.execute("INSERT INTO effect(path, name, tenant, id) VALUES (?, ?, ?, ?)",
                        (path, name, tenant, identity))

    def effects(self, name=None):
        """Those of one order, or all."""
        with self.lock:
            rows = self.db.execute("SELECT path, name, tenant, id FROM effect WHERE ?1 IS NULL OR name = ?1 "
                                   "ORDER BY n", (name,)).fetchall()
        return [dict(zip(("path", "order", "tenant", "id"), row)) for row in rows]

    def attempts(self, name):
        """How often this order was tried, this time included."""
        with self.transaction():
            self.db.execute("INSERT INTO attempt VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
                            (name,))
            return self.db.execute("SELECT count FROM attempt WHERE name = ?", (name,)).fetchone()[0]

    # The records; within a transaction.
    def record(self, operation):
        row = self.db.execute("SELECT * FROM record WHERE operation = ?", (operation,)).fetchone()
        return Record(*row) if row else None

    def reserve(self, operation, owner, meaning, now):
        """The new claim's token."""
        token = str(uuid.uuid4())
        self.db.execute("INSERT OR REPLACE INTO record VALUES (?, ?, ?, ?, ?, ?, 0, '[]', x'')",
                        (operation, owner, token, RUNNING, meaning, now))
        return token

    def complete(self, operation, answer, token=None):
        """Whoever holds the claim, or, without a token, anybody."""
        self.db.execute("UPDATE record SET state = ?, status = ?, fields = ?, body = ? "
                        "WHERE operation = ? AND (?6 IS NULL OR token = ?6)",
                        (DONE, answer.status, json.dumps(answer.fields), answer.body, operation, token))

    def mark(self, operation, state):
        self.db.execute("UPDATE record SET state = ? WHERE operation = ?", (state, operation))

    def release(self, operation, token=None):
        self.db.execute("DELETE FROM record WHERE operation = ?1 AND (?2 IS NULL OR token = ?2)",
                        (operation, token))


def stored(record):
    """The answer that a record holds."""
    return Answer(record.status, [tuple(field) for field in json.loads(record.fields)], record.body)
