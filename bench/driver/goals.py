"""The goals, one row for each: what is wanted, what this run reached. A goal that
was missed is a row like any other; it fails nothing."""
from . import figures
from .figures import pick

MIB = 2 ** 20


def row(what, goal, least=None, most=None, reached=None, unit="×"):
    """`reached` is (figure, least, greatest) or None."""
    fine = None
    if reached is not None:
        fine = (least is None or reached[0] >= least) and (most is None or reached[0] <= most)
    return {"what": what, "goal": goal, "reached": reached, "unit": unit, "fine": fine}


def against_nginx(samples, system, load, connections, key):
    """nginx does the same whether a key is new or not; where it was not measured under
    this load, its first executions of that round count."""
    ours = pick(samples, system=system, load=load, connections=connections)
    base = (pick(samples, system="nginx", load=load, connections=connections) or
            pick(samples, system="nginx", load="first", connections=connections))
    return figures.ratio(ours, base, key)


def proxy_rows(samples, connections=64):
    system = "hapax-sqlite"
    yield row(f"pass-through against nginx, {connections} connections", "≥ 0.9", 0.9,
              reached=against_nginx(samples, system, "pass", connections, "rps"))
    yield row(f"replay against nginx, {connections} connections", "≥ 2", 2,
              reached=against_nginx(samples, system, "replay", connections, "rps"))
    yield row(f"replay, CPU per request against nginx, {connections} connections", "≤ 0.5", most=0.5,
              reached=against_nginx(samples, system, "replay", connections, "cpu_us"))
    for count, least in ((64, 0.5), (256, 0.6)):
        yield row(f"first execution on SQLite against nginx, {count} connections", f"≥ {least}", least,
                  reached=against_nginx(samples, system, "first", count, "rps"))
        yield row(f"first execution on SQLite, CPU per request against nginx, {count} connections", "≤ 2", most=2,
                  reached=against_nginx(samples, system, "first", count, "cpu_us"))


def postgres_rows(samples):
    for count in (64, 256):
        ours = pick(samples, system="hapax-postgres", load="first", connections=count)
        base = pick(samples, system="pgbench", load="first", connections=count)
        yield row(f"first execution on PostgreSQL against the pgbench pattern, {count} connections", "≥ 3", 3,
                  reached=figures.ratio(ours, base, "rps"))
        yield row(f"the same, CPU of gateway and database against nginx's, {count} connections", "≤ 2.5", most=2.5,
                  reached=against_nginx(samples, "hapax-postgres", "first", count, "cpu_us"))


def product_rows(samples, systems, connections=(64, 256)):
    """Against whichever of them is the fastest there."""
    products = [name for name, about in systems.items() if about["kind"] == "product"]
    for count in connections:
        medians = {name: figures.median([sample["rps"] for sample in
                                         pick(samples, system=name, load="first", connections=count)])
                   for name in products}
        known = {name: value for name, value in medians.items() if value}
        best = max(known, key=known.get, default=None)
        for system in ("hapax-sqlite", "hapax-postgres"):
            ours = pick(samples, system=system, load="first", connections=count)
            base = pick(samples, system=best, load="first", connections=count) if best else []
            yield row(f"first execution, {system} against the best product ({best or 'none measured'}), "
                      f"{count} connections", "≥ 3", 3, reached=figures.ratio(ours, base, "rps"))


def latency_row(samples, limits):
    """What hapax adds to nginx at one connection, and what two commits take."""
    ours = figures.by_round(pick(samples, system="hapax-sqlite", load="first", connections=1), "p50")
    base = figures.by_round(pick(samples, system="nginx", load="first", connections=1), "p50")
    syncs = figures.median([limit["sync_p50_us"] for limit in limits])
    added = figures.spread([ours[number] - base[number] for number in ours if number in base])
    if syncs is None:
        return row("added latency at one connection, first execution (p50)", "≤ two commits + 100 µs", unit=" µs")
    most = 2 * syncs + 100
    return row(f"added latency at one connection, first execution (p50); a sync takes {syncs:.0f} µs",
               f"≤ {most:.0f} µs", most=most, reached=added, unit=" µs")


def growth_rows(samples):
    for system in sorted({sample["system"] for sample in pick(samples, load="growth")}):
        ours = pick(samples, load="growth", system=system)
        most = max(sample["stored"] for sample in ours)
        full, empty = pick(ours, stored=most), pick(ours, stored=0)
        what = f"{system}, {most:,} operations stored against none"
        yield row(f"{what}, throughput", "≥ 0.8", 0.8, reached=figures.ratio(full, empty, "rps") if most else None)
        yield row(f"{what}, p99", "≤ 1.5", most=1.5, reached=figures.ratio(full, empty, "p99") if most else None)


def flatness(series):
    """Resident memory of the last tenth of a soak against that after its first tenth."""
    if len(series) < 20:
        return None
    tenth = len(series) // 10
    early = figures.median([rss for _, rss in series[tenth:2 * tenth]])
    late = figures.median([rss for _, rss in series[-tenth:]])
    return late / early, late / early, late / early


def memory_rows(samples):
    idle = pick(samples, system="hapax-sqlite", load="idle")
    count = max((sample["open"] for sample in idle), default=10000)
    yield row(f"memory (RSS) with {count:,} idle connections", "≤ 64 MiB", most=64, unit=" MiB",
              reached=figures.spread([sample["rss"] / MIB for sample in idle]))
    soak = pick(samples, system="hapax-sqlite", load="soak")
    minutes = round(soak[0]["seconds"] / 60) if soak else 60
    yield row(f"memory over {minutes} minutes: its end against its beginning", "flat (≤ 1.05)", most=1.05,
              reached=flatness(soak[0].get("memory_series", [])) if soak else None)


def rows(result):
    samples = result["samples"]
    return [*proxy_rows(samples), *postgres_rows(samples), *product_rows(samples, result["systems"]),
            latency_row(samples, result["limits"]), *growth_rows(samples), *memory_rows(samples)]
