"""The goals, one row for each figure: what it must be, what is aimed at, what was
seen. A goal that was missed is a row like any other; it fails nothing."""
from . import figures
from .figures import pick

MIB = 2 ** 20
# The added latency was wanted where two appends with fdatasync take so long; on
# another disk the goal moves by as much as the two appends do.
APPENDS_US = 274


def row(what, sign, must, aim, seen, unit=""):
    """`seen` is (figure, least, greatest) or None; `aim` may be None."""
    def reaches(goal):
        return seen[0] <= goal if sign == "≤" else seen[0] >= goal
    if seen is None:
        reached = "not measured"
    elif aim is not None and reaches(aim):
        reached = "aim"
    else:
        reached = "must" if reaches(must) else "no"
    return {"what": what, "sign": sign, "must": must, "aim": aim, "seen": seen, "unit": unit, "reached": reached}


def against_nginx(samples, system, load, connections, key):
    """nginx does the same whether a key is new or not; where it was not measured under
    this load, its first executions of that round count."""
    ours = pick(samples, system=system, load=load, connections=connections)
    base = (pick(samples, system="nginx", load=load, connections=connections) or
            pick(samples, system="nginx", load="first", connections=connections))
    return figures.ratio(ours, base, key)


def nginx_rows(samples, what, system, load, connections, cpu, rps):
    """CPU first, then throughput; each goal is (must, aim)."""
    yield row(f"{what}: CPU against nginx", "≤", *cpu, against_nginx(samples, system, load, connections, "cpu_us"))
    if rps is not None:
        yield row(f"{what}: throughput against nginx", "≥", *rps,
                  against_nginx(samples, system, load, connections, "rps"))


def growth_rows(samples):
    """The greatest number stored against none."""
    ours = pick(samples, load="growth", system="hapax-sqlite")
    most = max((sample["stored"] for sample in ours), default=0)
    full, empty = (pick(ours, stored=most), pick(ours, stored=0)) if most else ([], [])
    what = f"{most or 10000000:,} stored against none, SQLite"
    yield row(f"{what}: CPU", "≤", 1.1, 1.05, figures.ratio(full, empty, "cpu_us"))
    yield row(f"{what}: throughput", "≥", 0.9, 0.95, figures.ratio(full, empty, "rps"))
    yield row(f"{what}: p99", "≤", 1.5, 1.3, figures.ratio(full, empty, "p99"))


def added_latency(samples, system):
    """What a system adds to the upstream's own p50 in the same round: {round: µs}."""
    ours = figures.by_round(pick(samples, system=system, load="first", connections=1), "p50")
    base = figures.by_round(pick(samples, system="upstream", load="first", connections=1), "p50")
    return {number: ours[number] - base[number] for number in ours if number in base}


def latency_row(samples, limits):
    """Beside two appends in the same rounds."""
    by_round = added_latency(samples, "hapax-sqlite")
    added = figures.spread(by_round.values())
    syncs = figures.median([limit["sync_p50_us"] for limit in limits if limit["round"] in by_round])
    what = "added latency at one connection, SQLite, p50"
    if syncs is None:
        return row(f"{what}, where two appends with fdatasync take {APPENDS_US} µs", "≤", 420, 350, None, " µs")
    moved = 2 * syncs - APPENDS_US
    return row(f"{what}, where two appends with fdatasync take {2 * syncs:.0f} µs", "≤", 420 + moved, 350 + moved,
               added, " µs")


def postgres_rows(samples):
    for count, cpu in ((64, (5, 4)), (256, (3.7, 3))):
        yield from nginx_rows(samples, f"first execution, PostgreSQL, {count} connections, gateway + database",
                              "hapax-postgres", "first", count, cpu, None)
    for count, goal in ((64, (1.7, 2)), (256, (2.8, 3.2))):
        ours = pick(samples, system="hapax-postgres", load="first", connections=count)
        base = pick(samples, system="pgbench", load="first", connections=count)
        yield row(f"first execution, PostgreSQL, {count} connections: throughput against pgbench's INSERT + UPDATE",
                  "≥", *goal, figures.ratio(ours, base, "rps"))


def best_product(samples, systems, connections):
    """Whichever is the fastest there; None where none was measured."""
    medians = {name: figures.median([sample["rps"] for sample in
                                     pick(samples, system=name, load="first", connections=connections)])
               for name, about in systems.items() if about["kind"] == "product"}
    known = {name: value for name, value in medians.items() if value}
    return max(known, key=known.get, default=None)


def product_rows(samples, systems, connections=64):
    best = best_product(samples, systems, connections)
    base = pick(samples, system=best, load="first", connections=connections) if best else []
    for system, title, goal in (("hapax-sqlite", "SQLite", (3.3, 4)), ("hapax-postgres", "PostgreSQL", (2, 2.5))):
        ours = pick(samples, system=system, load="first", connections=connections)
        yield row(f"first execution, {title}, {connections} connections: throughput against the best product "
                  f"({best or 'none measured'})", "≥", *goal, figures.ratio(ours, base, "rps"))


def written_row(samples, connections=64):
    ours = pick(samples, system="hapax-sqlite", load="first", connections=connections)
    return row(f"bytes written per first execution, SQLite, {connections} connections", "≤", 9000, 6000,
               figures.spread([sample.get("written") for sample in ours]), " B")


def stored_rows(samples, starts):
    """Memory and start with the greatest number stored."""
    grown = pick(samples, load="growth", system="hapax-sqlite")
    most = max((sample["stored"] for sample in grown), default=0)
    yield row(f"memory (RSS) with {most or 10000000:,} stored, SQLite", "≤", 96, 64, figures.spread(
        [sample["rss"] / MIB for sample in pick(grown, stored=most)]) if most else None, " MiB")
    orderly = pick(starts, system="hapax-sqlite", kind="orderly")
    most = max((sample["stored"] for sample in orderly), default=0)
    yield row(f"start with {most or 10000000:,} stored, SQLite: ready after", "≤", 1000, None, figures.spread(
        [sample["ready_ms"] for sample in pick(orderly, stored=most)]) if most else None, " ms")


def rows(result):
    samples = result["samples"]
    return [
        *nginx_rows(samples, "first execution, SQLite, 64 connections", "hapax-sqlite", "first", 64,
                    (2.7, 2.2), (0.42, 0.5)),
        *nginx_rows(samples, "first execution, SQLite, 256 connections", "hapax-sqlite", "first", 256,
                    (2.2, 1.8), (0.5, 0.6)),
        *growth_rows(samples), latency_row(samples, result["limits"]),
        *nginx_rows(samples, "replay, 64 connections", "hapax-sqlite", "replay", 64, (0.58, 0.5), (1.75, 2)),
        *nginx_rows(samples, "pass-through, 64 connections", "hapax-sqlite", "pass", 64, (1.0, 0.9), (1, 1.05)),
        *nginx_rows(samples, "pass-through over TLS, 64 connections", "hapax-sqlite", "pass-tls", 64, (1.1, 1.0), None),
        *postgres_rows(samples), *product_rows(samples, result["systems"]), written_row(samples),
        *stored_rows(samples, result.get("starts", []))]
