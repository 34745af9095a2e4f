"""The pictures of a report."""
from . import figures, svg
from .figures import pick
from .loads import LOADS


# The same colour for a system in every picture.
COLOURS = dict(zip(("nginx", "hapax-sqlite", "hapax-sqlite-default", "hapax-postgres", "node-postgres",
                    "node-idempotency", "restate", "dbos", "pgbench"), svg.COLOURS))


def names_of(result):
    """Systems with figures, in order."""
    measured = {sample["system"] for sample in result["samples"]}
    return [name for name in [*result["systems"], "pgbench"] if name in measured]


def spread_of(result, key, **wanted):
    return figures.spread([sample.get(key) for sample in pick(result["samples"], **wanted)])


def throughput(result):
    """One picture for each load with several systems."""
    pictures = {}
    for load in ("first", "replay", "pass", "mixed", "large"):
        samples = pick(result["samples"], load=load)
        counts = sorted({sample["connections"] for sample in samples})
        names = [name for name in names_of(result) if pick(samples, system=name)]
        groups = [(f"{count} connections", [spread_of(result, "rps", load=load, system=name, connections=count)
                                            for name in names]) for count in counts]
        if groups:
            pictures[f"throughput-{load}"] = svg.bars(
                f"Throughput: {LOADS[load].title.lower()}", "requests per second; bar: median, line: least to greatest",
                groups, names, COLOURS)
    return pictures


def cpu(result, connections=64):
    pictures = {}
    names = [name for name in names_of(result) if spread_of(result, "cpu_us", system=name, connections=connections)]
    groups = []
    for load in ("first", "replay", "pass", "mixed"):
        row = [spread_of(result, "cpu_us", load=load, system=name, connections=connections) for name in names]
        if any(row):
            groups.append((LOADS[load].title.split(",")[0].lower(), row))
    if groups:
        pictures["cpu"] = svg.bars(f"CPU per request, {connections} connections",
                                   "µs by powers of ten, databases included; bar: median, line: least to greatest",
                                   groups, names, COLOURS, log=True)
    return pictures


def latency(result, connections=64):
    """The distribution: each mark to the right is rarer by about ten."""
    pictures = {}
    shares = [0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999]
    for load in ("first", "replay"):
        series = []
        for name in names_of(result):
            runs = [dict(map(tuple, sample["distribution"])) for sample in
                    pick(result["samples"], load=load, system=name, connections=connections)]
            if runs:
                series.append((name, [milliseconds(figures.median([run.get(share) for run in runs]))
                                      for share in shares]))
        if series:
            pictures[f"latency-{load}"] = svg.lines(
                f"Latency: {LOADS[load].title.lower()}, {connections} connections",
                "ms at each percentile, by powers of ten", series, [f"p{100 * share:g}" for share in shares], COLOURS, log=True)
    return pictures


def milliseconds(us):
    return None if us is None else max(us, 1) / 1000


def growth(result):
    """Cost against table size."""
    samples = result["samples"]
    stored = sorted({sample["stored"] for sample in samples if sample["load"] == "growth"})
    pictures = {}
    for key, title, unit in (("rps", "Throughput", "requests per second"), ("cpu_us", "CPU per request", "µs"),
                             ("written", "Bytes written per request", "bytes")):
        series = []
        for load in ("growth", "growth-replay"):
            for system in sorted({sample["system"] for sample in pick(samples, load=load)}):
                row = [spread_of(result, key, load=load, system=system, stored=count) for count in stored]
                series.append((f"{system}, {'first' if load == 'growth' else 'replay'}",
                               [value and value[0] for value in row]))
        if series and stored:
            pictures[f"growth-{key}"] = svg.lines(f"{title} against stored operations, 64 connections", unit, series,
                                                  [f"{count:,}" for count in stored])
    return pictures


def soak(result):
    series = [(sample["system"], [rss / 2 ** 20 for _, rss in sample["memory_series"]])
              for sample in pick(result["samples"], load="soak") if sample.get("memory_series")]
    if not series:
        return {}
    count = max(len(row) for _, row in series)
    labels = [f"{10 * (n + 1) // 60} min" if n % max(1, count // 6) == 0 else "" for n in range(count)]
    return {"soak": svg.lines("Memory under the mixed load", "MiB resident", series, labels)}


def all_of(result):
    return {**throughput(result), **latency(result), **cpu(result), **growth(result), **soak(result)}
