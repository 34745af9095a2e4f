"""make bench-unknowns: what a backlog of unknown outcomes costs those who have
nothing to do with it, and how fast it is settled. UNKNOWNS are in the store against
none, in turn; then SETTLED of them are asked about by a probe that takes 20 ms."""
import contextlib
import json
import subprocess
import time

from . import database, figures, measure, tables
from .catalogue import LOADS, SYSTEMS
from .loads import Load
from .process import Failed, die_with_parent, run, temporary
from .settings import number, read
from .upstream import Slow

ROUTE = "POST /payments"
CONNECTIONS = 64
SLOTS = 64
ANSWER_MS = 20
RESTED = 0.02          # of one core
CPU_MOST, P99_MOST = 1.1, 1.3
SETTLED_LEAST = 0.8
SETTLE_SECONDS_MAX = 600
RESOLVED = 'hapax_reconcile_total{result="resolved"}'
DEAD = 'hapax_dead{kind="operation"}'


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
        self.stores = {}

    @contextlib.contextmanager
    def started(self, name, load, store):
        with temporary(self.folder, f"{name}-") as folder:
            system = SYSTEMS[name](self.settings, self.folder, folder, self.upstream, load, store)
            system.start()
            try:
                yield system
            finally:
                system.stop()

    def store(self, system, name, count):
        """An empty one, or one that is filled."""
        if (system, name) not in self.stores:
            place = self.folder / f"{system}-{name}"
            place.mkdir(mode=0o755)
            if "postgres" in system:
                server = database.Postgres(self.folder, self.folder, place)
                try:
                    self.fill(server.url, count)
                    server.sql("VACUUM ANALYZE")
                finally:
                    server.stop()
                self.stores[(system, name)] = place
            else:
                self.stores[(system, name)] = f"sqlite:{place}/hapax.db"
                self.fill(self.stores[(system, name)], count)
        return self.stores[(system, name)]

    def fill(self, url, count):
        if count == 0:
            return
        print(f"{count:,} unknowns are made", flush=True)
        words = [self.settings.tool("bench-fill"), url, str(count), "86400", ROUTE]
        done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=die_with_parent)
        if done.returncode != 0:
            raise Failed(f"bench-fill: {done.stderr.strip()}")

    # ---- What it costs others ----

    def rest(self, running):
        """The share of one core that it takes while nobody asks for anything."""
        before, began = measure.Snapshot(running).cpu(), time.monotonic()
        time.sleep(max(5, self.settings.seconds))
        return (measure.Snapshot(running).cpu() - before) / (time.monotonic() - began)

    def one(self, system, name, count, load):
        with self.started(system, load, self.store(system, name, count)) as running:
            if not load.probe:
                self.wait(running, count, DEAD)   # marked once, in small steps
            measure.settle(running)
            rest = self.rest(running)
            self.number += 1
            sample = measure.measure(running, load, CONNECTIONS, f"u{self.number}")
            return {**sample, "rest": rest, "stored": count}

    def compare(self, system, kind, load):
        """In turn, so that a noisy minute hits both."""
        found = {0: [], self.count: []}
        for turn in range(1, self.settings.runs + 1):
            for count in (0, self.count):
                sample = self.one(system, f"{kind}-{count}", count, load)
                found[count].append(sample)
                print(f"[{turn}/{self.settings.runs}] {system}, {kind}, {count:,} unknowns: at rest "
                      f"{100 * sample['rest']:.2f} % of a core; {sample['cpu_us']:.0f} µs CPU, "
                      f"p99 {sample['p99'] / 1000:.1f} ms, {sample['rps']:.0f}/s", flush=True)
        return found

    # ---- How fast it is settled ----

    def bare(self, port):
        """What the same service gives to a plain load over as many connections."""
        words = [self.settings.tool("bench-load"), "--to", f"127.0.0.1:{port}", "--work", "get", "--connections",
                 SLOTS, "--warm-ms", 500, "--measure-ms", 3000]
        said = json.loads(run([str(word) for word in words]).splitlines()[-1])
        return said["latency_us"]["count"] / said["seconds"]

    def settle(self, system):
        """Settled per second, from a tenth to nine tenths of them, and what each cost."""
        with slow(self.settings, self.folder, ANSWER_MS) as service:
            bare = self.bare(service.port)
            load = backlog(probe_of(service.url, (f"concurrency: {SLOTS}", "rate: 100000")))
            with self.started(system, load, self.store(system, "settle", self.settled)) as running:
                first = self.wait(running, self.settled * 0.1)
                last = self.wait(running, self.settled * 0.9)
        count, seconds = last[0] - first[0], last[1] - first[1]
        return {"rps": count / seconds, "cpu_us": (last[2] - first[2]) * 1e6 / count, "bare_rps": bare}

    def wait(self, running, wanted, name=RESOLVED):
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        while time.monotonic() < deadline:
            count = running.metric(name)
            if count >= wanted:
                return count, time.monotonic(), measure.Snapshot(running).cpu()
            time.sleep(0.02)
        raise Failed(f"{name} is {count:.0f} after {SETTLE_SECONDS_MAX} s, not {wanted:.0f}")


def show_costs(found, count):
    rows = []
    for (system, kind), samples in found.items():
        many, none = samples[count], samples[0]
        for title, key, scale, goal in (("CPU at rest, % of a core", "rest", 100, f"< {100 * RESTED:.0f}"),
                                        ("CPU µs per first execution", "cpu_us", 1, f"≤ {CPU_MOST} ×"),
                                        ("p99 ms", "p99", 0.001, f"≤ {P99_MOST} ×"), ("requests/s", "rps", 1, "")):
            medians = [figures.median([sample[key] * scale for sample in side]) for side in (none, many)]
            rows.append([f"{system}, {kind}", title, *[tables.plain(value) for value in medians],
                         f"{medians[1] / medians[0]:.2f}" if medians[0] else "–", goal])
    print(f"\nFirst executions over {CONNECTIONS} connections beside {count:,} unknowns (medians):\n")
    print(tables.table(["", "figure", "none", f"{count:,}", "ratio", "goal"], rows))


def show_settled(found, count):
    ideal = SLOTS * 1000 / ANSWER_MS
    rows = [[system, tables.plain(one["rps"]), f"{one['rps'] / ideal:.2f}", tables.plain(one["bare_rps"]),
             f"{one['rps'] / one['bare_rps']:.2f}", tables.plain(one["cpu_us"])] for system, one in found.items()]
    print(f"\n{count:,} unknowns, a probe of {ANSWER_MS} ms, {SLOTS} at once (goal: {SETTLED_LEAST} of {ideal:.0f}/s):\n")
    print(tables.table(["", "settled/s", f"of {ideal:.0f}", "the bare probe/s", "of that", "CPU µs each"], rows))


def main():
    settings = read(list(LOADS), [name for name in SYSTEMS if name in ("hapax-sqlite", "hapax-postgres")], ["first"])
    with temporary(settings.folder, "hapax-bench-") as folder, slow(settings, folder, 0) as upstream:
        bench = Unknowns(settings, folder, upstream)
        settled = {system: bench.settle(system) for system in settings.systems}
        show_settled(settled, bench.settled)
        costs = {}
        for system in settings.systems:
            costs[(system, "nobody to ask")] = bench.compare(system, "person", backlog())
            with slow(settings, folder, ANSWER_MS) as service:
                costs[(system, "asked at the default rate")] = bench.compare(
                    system, "asked", backlog(probe_of(service.url)))
        show_costs(costs, bench.count)
    return 0
