"""make bench-quick: CPU per request first, then throughput and latency, of a few
systems in short rounds, as one small table. With AGAINST=PROGRAM each hapax is
measured beside the same one with that program. Fit for a machine that is shared:
odd rounds go forwards and even ones backwards, and what is compared is of one
round."""
import os

from . import figures, goals, tables
from .bench import Bench
from .catalogue import LOADS, SYSTEMS
from .figures import pick
from .process import temporary
from .schedule import Progress, visits
from .settings import read

ENVIRONMENT = {"BENCH": "first replay pass", "SYSTEMS": "nginx hapax-sqlite", "RUNS": "5", "SECONDS": "2",
               "WARM": "0.3", "CONNECTIONS": "64 256"}
HEAD = ["", "CPU µs", "CPU against nginx", "CPU against AGAINST", "least against least", "by thread", "requests/s",
        "against nginx", "against AGAINST", "p50 ms", "p99 ms", "written B", "other answers"]


def needless(visit, settings):
    """nginx does the same with old keys as with new ones: its first executions are
    enough. The machine's limits and pgbench's are for the whole benchmark."""
    if visit.system == "nginx":
        return visit.load.name == "replay" and "first" in settings.loads
    return visit.system in ("limits", "pgbench")


def planned(settings, present):
    """Every second round is the one before it, backwards."""
    found = [visit for visit in visits(settings, present) if not needless(visit, settings)]
    in_order = []
    for number in range(1, settings.runs + 1):
        one = [visit for visit in found if visit.round == number]
        in_order += one if number % 2 else reversed(one)
    return in_order


def least(samples, base, key="cpu_us"):
    """The ratio of the least figures: what a neighbour adds is in neither."""
    ours = [sample[key] for sample in samples if sample.get(key)]
    theirs = [sample[key] for sample in base if sample.get(key)]
    return tables.plain(min(ours) / min(theirs)) if ours and theirs else "–"


def row(everything, name, load, stored, connections):
    """One system under one load."""
    samples = [sample for sample in everything if sample["load"] != load or sample["stored"] == stored]
    ours = pick(samples, system=name, load=load, connections=connections)
    other = pick(samples, system=f"{name}-against", load=load, connections=connections)

    def nginx(key):
        if name == "nginx":
            return "–"
        return tables.with_spread(goals.against_nginx(samples, name, load, connections, key))

    def against(key):
        return tables.with_spread(figures.ratio(ours, other, key))
    title = f"{load} at {stored:,}" if LOADS[load].grows else load
    return [f"{title}, {connections}: {name}", tables.cpu(ours), nginx("cpu_us"), against("cpu_us"),
            least(ours, other), tables.threads(ours), tables.with_spread(tables.over(ours, "rps")), nginx("rps"), against("rps"),
            tables.milliseconds(ours, "p50"), tables.milliseconds(ours, "p99"),
            tables.plain((tables.over(ours, "written") or [None])[0]), tables.others(ours)]


def without_empty(head, rows):
    """The table without the columns in which nothing stands."""
    kept = [number for number in range(len(head)) if number == 0 or any(row[number] != "–" for row in rows)]
    return tables.table([head[number] for number in kept], [[row[number] for number in kept] for row in rows])


def show(result):
    samples = result["samples"]
    order = list(LOADS)
    seen = sorted({(order.index(sample["load"]), sample["stored"], sample["connections"]) for sample in samples})
    rows = []
    for number, stored, connections in seen:
        rows += [row(samples, name, order[number], stored, connections) for name in result["systems"]
                 if pick(samples, system=name, load=order[number], stored=stored, connections=connections)]
    print(f"\nMedians of {result['settings']['runs']} rounds, least and greatest; ratios of the same round:\n")
    print(without_empty(HEAD, rows))


def main():
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    settings = read(list(LOADS), list(SYSTEMS), ["first"])
    with temporary(settings.folder, "hapax-bench-") as folder:
        bench = Bench(settings, folder)
        try:
            present = {name: system for name, system in bench.systems.items() if bench.prepare(name)}
            plan = planned(settings, present)
            bench.go_through(plan, Progress(settings, plan))
        finally:
            bench.close()
    show(bench.result)
    return 1 if bench.result["failures"] else 0
