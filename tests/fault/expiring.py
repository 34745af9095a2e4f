"""Operations that expire while the test runs and leave something behind: routes with
tombstones, with `expired: refuse` and with a history; and their judge, who compares the
provider's ledger with what the store still tells."""
import contextlib
import sqlite3

from harness import postgres
from judge import judge, settle
from nodes import pause
from timed_ledger import BRIEF_TARGET, ROUNDING_SECONDS, judge_brief

# Never executed again: its tombstone outlives the test.
BURIED = "/buried"
# Executed again when the tombstone, of another second, is over too.
SHORT = "/short"
SHORT_SECONDS = 2.0
TARGETS = (BRIEF_TARGET, BURIED, SHORT)

EXPIRING = {
    "routes": [{"match": f"POST {BRIEF_TARGET}", "retention": "1s"},
               {"match": f"POST {BURIED}", "retention": "1s", "tombstone": "1h", "expired": "refuse"},
               {"match": f"POST {SHORT}", "retention": "1s", "tombstone": "1s", "expired": "refuse"}],
    "reap": {"every": "1s"},
    "history": {"retention": "1d"},
}

COMPLETED, UNKNOWN = 3, 4


def rows_of_file(path, table, columns):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return db.execute(f"SELECT {columns} FROM {table}").fetchall()


def rows_of_database(cluster, url, table, columns):
    database = url.split("?")[0].rsplit("/", 1)[1]
    lines = cluster.sql(f"SELECT {columns} FROM {table}", database)
    return [(*line.split("|")[:-1], int(line.split("|")[-1])) for line in lines]


def told(store, cluster=None):
    """What the store tells, while nobody writes it: the history as (reference, key, state),
    and what is there as (key, state)."""
    if store.startswith("sqlite:"):
        path = store.removeprefix("sqlite:")
        return (rows_of_file(path, "hapax_history", "lower(hex(id)) || '.' || lower(hex(mark)), key, state"),
                rows_of_file(path, "hapax_operation", "key, state"))
    digits = "replace(id::text || rest::text || '.' || mark::text, '-', ''), key, state"
    cluster = cluster or postgres.shared()
    return (rows_of_database(cluster, store, "hapax.history", digits),
            rows_of_database(cluster, store, "hapax.operation", "key, state"))


def by_key(pairs):
    found = {}
    for key, value in pairs:
        found.setdefault(key.strip('"'), []).append(value)
    return found


def judge_told(store, provider, operations, cluster=None):
    """Each finished operation is told exactly once: an effect has its entry in the history,
    or is that of the row which is there; a completed row or entry has its effect. Gives the
    number of entries of completed operations."""
    history, there = told(store, cluster)
    references = [reference for reference, _, _ in history]
    assert len(set(references)) == len(references), "an operation is in the history twice: " + str(
        sorted(r for r in set(references) if references.count(r) > 1))
    entries = by_key((key, reference) for reference, key, state in history if state == COMPLETED)
    states = by_key(there)
    effects = by_key((key, reference.strip('"')) for _, reference, key in provider.effects)
    for operation in operations:
        happened, gone = set(effects.get(operation.key, [])), set(entries.get(operation.key, []))
        rows = states.get(operation.key, [])
        case = f"{operation}: effects {happened}, history {gone}, there {rows}"
        assert len(rows) <= 1, f"a key has two rows: {case}"
        assert gone <= happened, f"told and never happened: {case}"
        left = len(happened - gone)
        if rows == [COMPLETED]:
            assert left == 1, f"told twice, or lost: {case}"
        else:
            assert left <= (1 if rows == [UNKNOWN] else 0), f"happened and is not told: {case}"
    return sum(len(e) for e in entries.values())


def judge_expiring(provider, operations):
    """By the ledger alone: none of its effects while its record or a tombstone refused."""
    judge_brief(provider, operations)
    times = by_key((key, (at, reference)) for at, reference, key in provider.effects)
    for operation in operations:
        effects = sorted(times.get(operation.key, []))
        if operation.target == BURIED:
            assert len(effects) <= 1, f"executed again under a tombstone: {operation} {effects}"
            happened = operation.successes or operation.not_kept or operation.expired
            assert not happened or len(effects) == 1, f"success without an effect: {operation}"
        if operation.target == SHORT:
            for before, after in zip(effects, effects[1:]):
                gap = after[0] - before[0]
                assert gap >= SHORT_SECONDS - ROUNDING_SECONDS, f"again after {gap:.3f} s: {operation} {effects}"


def judge_all(gateways, provider, kept, brief, cluster=None):
    """Through the first of the gateways, which hold one store and have nothing under way:
    lets everything expire, and judges the keys that are kept, those that expired, and, once
    the gateways are stopped, what the store tells of them."""
    gateway = gateways[0]
    ends = judge(gateway, provider, kept, stuck_is_wrong=len(gateways) == 1)
    pause(SHORT_SECONDS + 1)
    for operation in brief:
        if operation.target == BURIED:
            settle(gateway, operation)
    judge_expiring(provider, brief)
    for each in gateways:
        each.stop()
    entries = judge_told(gateway.config["store"], provider, kept + brief, cluster)
    refused = sum(o.expired for o in brief)
    print(f"{len(kept)} kept, {len(brief)} expired, {refused} refused afterwards, {entries} in the history")
    assert entries > 0 and refused > 0
    return ends


def conclude(one, crowd, sizes):
    """Ends the crowd, kills once more, and judges all of it."""
    kept, brief = crowd.finish(), crowd.brief
    one.gateway.kill()
    one.gateway.start(sizes)
    return judge_all([one.gateway], one.provider, kept, brief)
