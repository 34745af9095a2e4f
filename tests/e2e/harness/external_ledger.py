"""The external service's memory, a SQLite file: what was sent to it, what it did,
what it told, which keys it remembers, which webhooks it sent. The process writes
it before it answers; a test reads it as judge, while the process runs or after
it was killed. Times are milliseconds of the provider's own clock.

A row is in the file when the write returns, so the death of the process loses
nothing. It is not synced: no test cuts the machine's power."""
import json
import sqlite3
import threading
import time
import types
import uuid

SCHEMA = """
CREATE TABLE IF NOT EXISTS request(  -- one row per request that reached the provider
  n INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  kind TEXT NOT NULL,          -- send, lookup
  number INTEGER NOT NULL,     -- the how-manieth of its kind
  nth INTEGER NOT NULL,        -- the how-manieth send of this key
  method TEXT NOT NULL, path TEXT NOT NULL, query TEXT NOT NULL,
  key TEXT, operation TEXT, attempt TEXT, credential TEXT, headers TEXT NOT NULL,
  digest TEXT NOT NULL, body BLOB NOT NULL,
  whole INTEGER NOT NULL,      -- 0: the caller went away in the middle of it
  rule TEXT, fault TEXT,       -- which rule of the script met it, and what that does
  effect TEXT,                 -- the effect it had, or was given the answer of
  replay INTEGER NOT NULL DEFAULT 0,
  told TEXT,                   -- a status, or reset, half, nonsense, silence; NULL: nothing yet
  retry_after INTEGER,
  lost INTEGER NOT NULL DEFAULT 0);  -- 1: the caller was gone before it was told
CREATE INDEX IF NOT EXISTS request_key ON request(key);
CREATE INDEX IF NOT EXISTS request_rule ON request(rule);
CREATE TABLE IF NOT EXISTS effect(   -- the thing that must happen once
  n INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  visible_at INTEGER NOT NULL,
  request INTEGER NOT NULL,
  key TEXT, operation TEXT, path TEXT NOT NULL, attempt TEXT, credential TEXT,
  headers TEXT NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL,
  state TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS effect_operation ON effect(operation);
CREATE TABLE IF NOT EXISTS answer(   -- what its own idempotency remembers
  key TEXT PRIMARY KEY, at INTEGER NOT NULL, digest TEXT NOT NULL,
  effect TEXT, status INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS webhook(  -- one row per try
  n INTEGER PRIMARY KEY, at INTEGER NOT NULL, event TEXT, effect TEXT, twist TEXT NOT NULL,
  url TEXT NOT NULL, told TEXT NOT NULL);
"""
REQUEST = ("kind", "number", "nth", "method", "path", "query", "key", "operation", "attempt",
           "credential", "headers", "digest", "body", "whole")
COPIED = "key, operation, path, attempt, credential, headers, digest, body"


class KeyReused(Exception):
    """A remembered key came with another body."""


def new_id():
    return f"prov_{uuid.uuid4().hex}"


class Ledger:
    """The reading side. Each question is a transaction of its own."""

    def __init__(self, path):
        self.path = str(path)

    def rows(self, question, *values):
        db = sqlite3.connect(self.path, timeout=30)
        db.row_factory = sqlite3.Row
        try:
            return [types.SimpleNamespace(**dict(row)) for row in db.execute(question, values)]
        finally:
            db.close()

    def matching(self, table, order="n", **wanted):
        wanted = {name: value for name, value in wanted.items() if value is not None}
        where = " AND ".join(f"{name} = ?" for name in wanted) or "1"
        return self.rows(f"SELECT * FROM {table} WHERE {where} ORDER BY {order}", *wanted.values())

    def sends(self, key=None, operation=None, path=None):
        return self.matching("request", kind="send", key=key, operation=operation, path=path)

    def lookups(self, operation=None):
        return self.matching("request", kind="lookup", operation=operation)

    def effects(self, key=None, operation=None, path=None):
        return self.matching("effect", key=key, operation=operation, path=path)

    def effect(self, effect_id):
        return next(iter(self.matching("effect", id=effect_id)), None)

    def webhooks(self, effect=None):
        return self.matching("webhook", effect=effect)


class Book(Ledger):
    """The writing side: one connection for all threads of the process."""

    def __init__(self, path, shift_ms=0):
        super().__init__(path)
        self.shift_ms = shift_ms
        self.lock = threading.Lock()
        self.news = threading.Condition()
        self.version = 0
        self.db = sqlite3.connect(self.path, check_same_thread=False, timeout=30,
                                  isolation_level=None)
        self.db.row_factory = sqlite3.Row
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=NORMAL")
        self.db.executescript(SCHEMA)
        self.counts = {kind: self.one("SELECT count(*) FROM request WHERE kind = ?", kind)
                       for kind in ("send", "lookup")}

    def now(self):
        return time.time_ns() // 1_000_000 + self.shift_ms

    def one(self, question, *values):
        return self.db.execute(question, values).fetchone()[0]

    def write(self, work):
        """Runs work() as one transaction, then tells whoever waits for news."""
        with self.lock:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                result = work()
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")
        with self.news:
            self.version += 1
            self.news.notify_all()
        return result

    def wait_news(self, since, timeout):
        with self.news:
            self.news.wait_for(lambda: self.version > since, timeout)
            return self.version

    def arrive(self, row, choose):
        """Writes a request down. choose(row, times_of_rule) names the rule and the
        fault it meets, in the same transaction, so that a rule for two requests
        never meets three."""
        def work():
            self.counts[row["kind"]] += 1
            row["number"] = self.counts[row["kind"]]
            row["nth"] = 1 + self.one("SELECT count(*) FROM request WHERE key = ? AND kind = ?",
                                      row["key"], row["kind"])
            marks = ", ".join("?" for _ in REQUEST)
            row["n"] = self.db.execute(
                f"INSERT INTO request(at, {', '.join(REQUEST)}) VALUES (?, {marks})",
                (self.now(), *(row[name] for name in REQUEST))).lastrowid
            rule, fault = choose(row, self.times_of)
            self.db.execute("UPDATE request SET rule = ?, fault = ? WHERE n = ?",
                            (rule, json.dumps(fault), row["n"]))
            return fault
        return self.write(work)

    def times_of(self, rule):
        return self.one("SELECT count(*) FROM request WHERE rule = ?", rule)

    def remembered(self, row, remember_ms):
        """The answer kept under this key, or None."""
        found = self.db.execute("SELECT * FROM answer WHERE key = ?", (row["key"],)).fetchone()
        if not found or (remember_ms is not None and found["at"] + remember_ms <= self.now()):
            return None
        if found["digest"] != row["digest"]:
            raise KeyReused
        self.db.execute("UPDATE request SET effect = ?, replay = 1 WHERE n = ?",
                        (found["effect"], row["n"]))
        return found["effect"], found["status"], found["body"]

    def execute(self, row, policy, make):
        """Carries a request out, or finds that this was done: (effect, status,
        body, whether it was a replay). make(id) gives (state or None, status,
        body); without a state nothing happens, and only the answer is kept."""
        def work():
            keeps = policy["honours_keys"] and row["key"] is not None
            kept = self.remembered(row, policy["remember_ms"]) if keeps else None
            if kept:
                return (*kept, True)
            effect = new_id()
            state, status, body = make(effect)
            if state is None:
                effect = None
            else:
                self.insert_effect(row["n"], effect, state, policy["lookup_delay_ms"])
            if keeps:
                self.db.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?, ?, ?, ?)",
                                (row["key"], self.now(), row["digest"], effect, status, body))
            return effect, status, body, False
        return self.write(work)

    def insert_effect(self, n, effect, state, delay_ms):
        now = self.now()
        self.db.execute(f"INSERT INTO effect(id, at, visible_at, request, state, {COPIED}) "
                        f"SELECT ?, ?, ?, n, ?, {COPIED} FROM request WHERE n = ?",
                        (effect, now, now + delay_ms, state, n))
        self.db.execute("UPDATE request SET effect = ? WHERE n = ?", (effect, n))

    def tell(self, n, told, retry_after=None):
        """What the caller is told, written before it is."""
        self.write(lambda: self.db.execute(
            "UPDATE request SET told = ?, retry_after = ? WHERE n = ?", (told, retry_after, n)))

    def tell_lost(self, n):
        self.write(lambda: self.db.execute("UPDATE request SET lost = 1 WHERE n = ?", (n,)))

    def set_state(self, effect, state):
        self.write(lambda: self.db.execute("UPDATE effect SET state = ? WHERE id = ?",
                                           (state, effect)))

    def forget(self, key=None):
        """Forgets one key, or all of them."""
        self.write(lambda: self.db.execute("DELETE FROM answer WHERE ?1 IS NULL OR key = ?1",
                                           (key,)))

    def sent_webhook(self, event, effect, twist, url, told):
        self.write(lambda: self.db.execute(
            "INSERT INTO webhook(at, event, effect, twist, url, told) VALUES (?, ?, ?, ?, ?, ?)",
            (self.now(), event, effect, twist, url, told)))
