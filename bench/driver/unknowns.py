"""make bench-unknowns: what a backlog of unknown outcomes costs those who have
nothing to do with it, and how fast it is settled. UNKNOWNS are in the store against
none, and against as many completed operations, because what comes of the store's
size is not the unknowns' doing; in turn, forwards and backwards. Then SETTLED of them
are asked about by a probe that takes 20 ms."""
import contextlib
import json
import time

from . import figures, measure, tables
from .catalogue import LOADS, SYSTEMS
from .figures import pick
from .fill import Filled
from .loads import RETENTION_SECONDS, Load
from .process import Failed, run, temporary
from .settings import number, read, run_mark
from .upstream import Slow

ROUTE = "POST /payments"
CONNECTIONS = 64
SLOTS = 64
ANSWER_MS = 20
RESTED = 2             # per cent of one core
CPU_MOST, P99_MOST = 1.1, 1.3
SETTLED_LEAST = 0.8
SETTLE_SECONDS_MAX = 600
RESOLVED = 'hapax_reconcile_total{result="resolved"}'
DEAD = 'hapax_dead{kind="operation"}'
# What is in the store: (name, whether its outcome is unknown, whether somebody is asked).
KINDS = {"none": "none", "completed": "completed", "person": "unknown, nobody to ask",
         "asked": "unknown, asked at the default rate"}


class Backlog(Load):
    """First executions, with what the configuration says of the route's probe."""
    probe = ()

    def hapax(self, upstream):
        return ["tenant: {from: anonymous}", "routes:",
                f"  - match: {ROUTE}", "    server_error: unknown", *self.probe]


def probe_of(url, more=()):
    return ["    reconcile:", "      settle_after: 1h", "      probe:", f"        url: {url}",
            '        get: "/{operation}"', "        applied: [200]", *[f"        {line}" for line in more]]


def backlog(probe=()):
    load = Backlog(**{field: getattr(LOADS["first"], field) for field in LOADS["first"].__dataclass_fields__})
    object.__setattr__(load, "probe", tuple(probe))
    return load


@contextlib.contextmanager
def slow(settings, folder, milliseconds):
    service = Slow(settings, folder, milliseconds)
    try:
        yield service
    finally:
        service.stop()


class Unknowns:
    """Its stores are kept for all rounds."""

    def __init__(self, settings, folder, upstream):
        self.settings, self.folder, self.upstream = settings, folder, upstream
        self.number = 0
        self.count, self.settled = number("UNKNOWNS", 1000000), number("SETTLED", 100000)
        self.filled = Filled(settings, folder)
        self.samples = []

    @contextlib.contextmanager
    def started(self, name, load, store):
        with temporary(self.folder, f"{name}-") as folder:
            system = SYSTEMS[name](self.settings, self.folder, folder, self.upstream, load, store)
            system.start()
            try:
                yield system
            finally:
                system.stop()

    def store(self, system, kind, count):
        """An empty one that is given up afterwards, or one that is filled once."""
        if kind == "none":
            return None
        return self.filled.keep(f"{system}-{kind}-{count}", SYSTEMS[system], count, RETENTION_SECONDS,
                                lambda text: print(f"{system}, {kind}: {text}", flush=True),
                                route=None if kind == "completed" else ROUTE)

    # ---- What it costs others ----

    def rest(self, running):
        """The share of one core, in per cent, that it takes while nobody asks for anything."""
        before, began = measure.Snapshot(running).cpu(), time.monotonic()
        time.sleep(max(5, self.settings.seconds))
        return 100 * (measure.Snapshot(running).cpu() - before) / (time.monotonic() - began)

    def one(self, system, kind, load):
        with self.started(system, load, self.store(system, kind, self.count)) as running:
            if kind == "person":
                self.wait(running, self.count, DEAD)   # marked once, in small steps
            measure.settle(running)
            rest = self.rest(running)
            self.number += 1
            sample = measure.measure(running, load, CONNECTIONS, f"{run_mark()}u{self.number}")
            return {**sample, "rest": rest, "kind": kind}

    def compare(self, system, probed):
        """All kinds in turn, every second time backwards, so that a noisy minute hits all."""
        loads = {kind: probed if kind == "asked" else backlog() for kind in KINDS}
        for turn in range(1, self.settings.runs + 1):
            for kind in list(KINDS) if turn % 2 else reversed(KINDS):
                sample = {**self.one(system, kind, loads[kind]), "round": turn}
                self.samples.append(sample)
                print(f"[{turn}/{self.settings.runs}] {system}, {KINDS[kind]}: {sample['cpu_us']:.0f} µs CPU, "
                      f"{sample['rps']:.0f}/s, p99 {sample['p99'] / 1000:.1f} ms; at rest {sample['rest']:.2f} % "
                      "of a core", flush=True)

    # ---- How fast it is settled ----

    def bare(self, port):
        """What the same service gives to a plain load over as many connections."""
        words = [self.settings.tool("bench-load"), "--to", f"127.0.0.1:{port}", "--work", "get", "--connections",
                 SLOTS, "--warm-ms", 500, "--measure-ms", 3000]
        said = json.loads(run([str(word) for word in words]).splitlines()[-1])
        return said["latency_us"]["count"] / said["seconds"]

    def settle(self, system):
        """Settled per second, from a tenth to nine tenths of them, and what each cost. The
        store is used up."""
        place = self.folder / f"{system}-settle"
        place.mkdir(mode=0o755)
        store = self.filled.fill(SYSTEMS[system], place, self.settled, RETENTION_SECONDS,
                                 lambda text: print(f"{system}, to be settled: {text}", flush=True), route=ROUTE)
        with slow(self.settings, self.folder, ANSWER_MS) as service:
            bare = self.bare(service.port)
            load = backlog(probe_of(service.url, (f"concurrency: {SLOTS}", "rate: 100000")))
            with self.started(system, load, store) as running:
                first = self.wait(running, self.settled * 0.1)
                last = self.wait(running, self.settled * 0.9)
        count, seconds = last[0] - first[0], last[1] - first[1]
        return {"cpu_us": (last[2] - first[2]) * 1e6 / count, "rps": count / seconds, "bare_rps": bare}

    def wait(self, running, wanted, name=RESOLVED):
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            count = running.metric(name)
            if count >= wanted:
                return count, time.monotonic(), measure.Snapshot(running).cpu()
            time.sleep(0.02)
        raise Failed(f"{name} is {count:.0f} after {SETTLE_SECONDS_MAX} s, not {wanted:.0f}")


# ---- The tables ----

def cost_rows(samples):
    """One for each system and each kind of store, CPU first."""
    for system in dict.fromkeys(sample["system"] for sample in samples):
        for kind, title in KINDS.items():
            ours = pick(samples, system=system, kind=kind)
            ratios = [figures.ratio(ours, pick(samples, system=system, kind=base), key) if base != kind else None
                      for key in ("cpu_us", "p99") for base in ("none", "completed")]
            yield [f"{system}, {title}", tables.cpu(ours), *map(tables.with_spread, ratios[:2]),
                   tables.with_spread(tables.over(ours, "rps")), tables.milliseconds(ours, "p99"),
                   *map(tables.with_spread, ratios[2:]), tables.with_spread(tables.over(ours, "rest")),
                   tables.plain((tables.over(ours, "written") or [None])[0])]


def show_costs(samples, count):
    print(f"\nFirst executions over {CONNECTIONS} connections beside {count:,} operations (medians; goals: CPU "
          f"≤ {CPU_MOST} ×, p99 ≤ {P99_MOST} ×, at rest below {RESTED} % of a core):\n")
    print(tables.table(["in the store", "CPU µs", "against none", "against completed", "requests/s", "p99 ms",
                        "p99 against none", "p99 against completed", "at rest, % of a core", "written B"],
                       list(cost_rows(samples))))


def show_settled(found, count):
    ideal = SLOTS * 1000 / ANSWER_MS
    rows = [[system, tables.plain(one["cpu_us"]), tables.plain(one["rps"]), f"{one['rps'] / ideal:.2f}",
             tables.plain(one["bare_rps"]), f"{one['rps'] / one['bare_rps']:.2f}"] for system, one in found.items()]
    print(f"\n{count:,} unknowns, a probe of {ANSWER_MS} ms, {SLOTS} at once (goal: {SETTLED_LEAST} of {ideal:.0f}/s):\n")
    print(tables.table(["", "CPU µs each", "settled/s", f"of {ideal:.0f}", "the bare probe/s", "of that"], rows))


def main():
    settings = read(list(LOADS), [name for name in SYSTEMS if name in ("hapax-sqlite", "hapax-postgres")], ["first"])
    with temporary(settings.folder, "hapax-bench-") as folder, slow(settings, folder, 0) as upstream:
        bench = Unknowns(settings, folder, upstream)
        show_settled({system: bench.settle(system) for system in settings.systems}, bench.settled)
        with slow(settings, folder, ANSWER_MS) as service:
            for system in settings.systems:
                bench.compare(system, backlog(probe_of(service.url)))
        show_costs(bench.samples, bench.count)
    return 0
