"""make bench-quick: the main ratios in two minutes, as one small table."""
import os

from . import goals, tables
from .bench import Bench
from .catalogue import LOADS, SYSTEMS
from .process import temporary
from .schedule import Progress, Visit
from .settings import read

ENVIRONMENT = {"BENCH": "first replay pass", "SYSTEMS": "nginx hapax-sqlite", "RUNS": "5", "SECONDS": "2",
               "WARM": "0.3"}
# (load, connections, figure, goal): what is asked in each row.
ROWS = [("pass", 64, "rps", "≥ 0.9"), ("pass", 64, "cpu_us", ""), ("replay", 64, "rps", "≥ 2"),
        ("replay", 64, "cpu_us", "≤ 0.5"), ("first", 64, "rps", "≥ 0.5"), ("first", 64, "cpu_us", "≤ 2"),
        ("first", 256, "rps", "≥ 0.6"), ("first", 256, "cpu_us", "≤ 2")]


def planned(settings):
    """nginx does the same with old keys and new ones: its first executions are enough."""
    found = []
    for number in range(1, settings.runs + 1):
        for load, system, connections in (("pass", "nginx", (64,)), ("pass", "hapax-sqlite", (64,)),
                                          ("replay", "hapax-sqlite", (64,)), ("first", "nginx", (64, 256)),
                                          ("first", "hapax-sqlite", (64, 256))):
            found.append(Visit(number, system, LOADS[load], connections))
    return found


def show(result):
    samples = result["samples"]
    rows = []
    for load, connections, key, goal in ROWS:
        ours = [sample for sample in samples if (sample["system"], sample["load"], sample["connections"]) ==
                ("hapax-sqlite", load, connections)]
        ratio = goals.against_nginx(samples, "hapax-sqlite", load, connections, key)
        rows.append([f"{load}, {connections} connections, {'CPU µs/request' if key == 'cpu_us' else 'requests/s'}",
                     tables.with_spread(tables.over(ours, key)), tables.with_spread(ratio), goal])
    print("\nhapax on SQLite, one loop, against nginx as a plain proxy, one worker "
          f"(medians of {result['settings']['runs']} rounds, least and greatest):\n")
    print(tables.table(["", "hapax", "against nginx", "goal"], rows))


def main():
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    settings = read(list(LOADS), list(SYSTEMS), ["first"])
    with temporary(settings.folder, "hapax-bench-") as folder:
        bench = Bench(settings, folder)
        try:
            if all(bench.prepare(name) for name in ("nginx", "hapax-sqlite")):
                visits = planned(settings)
                bench.go_through(visits, Progress(settings, visits))
        finally:
            bench.close()
    show(bench.result)
    return 1 if bench.result["failures"] else 0
