"""The whole benchmark: installs, probes, measures round by round, and writes what
came of it."""
import contextlib
import datetime
import json
import os

from . import limits, machine, measure, probe, report, startup
from .catalogue import chosen
from .fill import Filled
from .process import Failed, raise_file_limit, temporary
from .schedule import Progress, visits
from .settings import BENCH, Mistake, run_mark
from .upstream import Held, Refused, Upstream

SPARE_FILES = 500


class Bench:
    """The state of one run of the benchmark."""

    def __init__(self, settings, folder):
        self.settings, self.folder = settings, folder
        for program in (settings.hapax, settings.tool("bench-load")):
            if not os.access(program, os.X_OK):
                raise Mistake(f"{program} is not there: make bench builds it")
        self.result = {"began": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
                       "settings": {name: value for name, value in vars(settings).items()
                                    if name not in ("folder", "build", "filled", "against")},
                       "machine": machine.describe(settings), "systems": {}, "limits": [], "samples": [],
                       "starts": [], "failures": []}
        self.systems = chosen(settings)
        self.upstream = Upstream(folder)
        self.filled = Filled(settings, folder)
        self.mark, self.number = run_mark(), 0

    def close(self):
        self.upstream.stop()

    # ---- Before anything is measured ----

    def fail(self, what, error):
        self.result["failures"].append(f"{what}: {error}")
        print(f"FAILED {what}: {error}", flush=True)

    def prepare(self, name):
        """Installs and probes a system; whether it can be measured."""
        system = self.systems[name]
        about = self.result["systems"][name] = {"title": system.title, "kind": system.kind}
        try:
            print(f"install {name}", flush=True)
            system.install()
        except (Failed, OSError) as error:
            about["missing"] = str(error)
            print(f"  not installed: {error}", flush=True)
            return False
        try:
            with self.started(name) as running:
                about.update(probe.probe(running))
        except (Failed, OSError) as error:
            about["missing"] = f"it does not do what it should: {error}"
            self.fail(f"the probe of {name}", error)
            return False
        print(f"  {name} does what it claims; {', '.join(about['durable']) or 'nothing to be durable'}; "
              f"syncs in a first execution: {about['syncs']}", flush=True)
        return True

    @contextlib.contextmanager
    def made(self, name, load=None, store=None):
        """A system with a folder and an empty store of its own, or with a store that is kept;
        not started."""
        with temporary(self.folder, f"{name}-") as folder, self.upstream_for(load, folder) as upstream:
            system = self.systems[name](self.settings, self.folder, folder, upstream, load, store)
            try:
                yield system
            finally:
                system.stop()

    @contextlib.contextmanager
    def started(self, name, load=None, store=None):
        with self.made(name, load, store) as system:
            yield system.start()

    @contextlib.contextmanager
    def upstream_for(self, load, folder):
        if load is None or not (load.work == "same" or load.refused):
            yield self.upstream
            return
        other = Refused() if load.refused else Held(folder, self.settings.warm + self.settings.seconds + 5)
        try:
            yield other
        finally:
            other.stop()

    # ---- Measuring ----

    def visit(self, visit, progress):
        if visit.system == "limits":
            found = {"round": visit.round, **limits.disk(self.settings, self.folder),
                     **limits.direct(self.settings, self.upstream)}
            self.result["limits"].append(found)
            progress.say(visit, f"{found['syncs_per_second']:.0f} syncs/s, p50 {found['sync_p50_us']} µs")
        elif visit.system == "pgbench":
            self.visit_pgbench(visit, progress)
        else:
            with self.filled.place(self.systems[visit.system], visit.load,
                                   lambda text: progress.say(visit, text)) as store:
                self.visit_system(visit, progress, store)

    def visit_system(self, visit, progress, store):
        if visit.load.starts:
            with self.made(visit.system, visit.load, store) as system:
                self.number += 1
                for sample in startup.starts(system, visit.load, f"{self.mark}s{self.number}"):
                    self.result["starts"].append({**sample, "round": visit.round})
                    progress.say(visit, startup.text_of(sample))
            return
        with self.started(visit.system, visit.load, store) as system:
            for connections in visit.connections:
                self.keep(visit, progress, self.measure(system, visit.load, connections))

    def visit_pgbench(self, visit, progress):
        with temporary(self.folder, "pgbench-") as folder:
            bench = limits.Pgbench(self.settings, self.folder, folder)
            try:
                for connections in visit.connections:
                    self.keep(visit, progress, bench.measure(connections))
            finally:
                bench.stop()

    def measure(self, system, load, connections):
        self.number += 1
        name = f"{self.mark}r{self.number}"
        if load.asynchronous:
            return measure.measure_async(system, load, connections, name)
        if load.phase:
            return measure.measure_phase(system, load, connections, name)
        if load.grows:
            return measure.measure_growth(system, load, connections, name)
        during = None
        if load.name == "soak":
            during = measure.watch_memory(system, self.settings.soak_minutes * 60)
        return measure.measure(system, load, connections, name, during)

    def keep(self, visit, progress, sample):
        self.result["samples"].append({**sample, "round": visit.round})
        if visit.load.work == "idle":
            text = f"{sample['open']} open, {sample['rss'] / 2**20:.1f} MiB"
        elif not sample["requests"]:
            text = f"{sample['connections']} connections: not one answer in the measured time"
        else:
            text = (f"{sample['connections']} connections: {sample['rps']:.0f}/s, p99 {sample['p99'] / 1000:.1f} ms, "
                    f"{sample.get('cpu_us', 0):.0f} µs CPU")
        if not sample.get("rested", True):
            text += "; it was still busy with itself"
        if "during" in sample:
            text += "; " + phase_text(sample)
        if sample["other"] or sample["broken"]:
            text += f"; other answers {sample['statuses']}, broken {sample['broken']}"
        progress.say(visit, text)

    def go(self):
        present = {name: system for name, system in self.systems.items() if self.prepare(name)}
        planned = visits(self.settings, present)
        self.go_through(planned, Progress(self.settings, planned))

    def go_through(self, planned, progress):
        for visit in planned:
            try:
                self.visit(visit, progress)
            except (Failed, OSError) as error:
                self.fail(f"round {visit.round}, {visit.system}, {visit.load.name if visit.load else 'limits'}", error)
            progress.finish(visit)


def phase_text(sample):
    """What the phase did to the load, in a few words."""
    words = [f"{name} {part['cpu_us']:.0f} µs CPU, p99 {part['p99'] / 1000:.1f} ms, max {part['max'] / 1000:.1f} ms"
             f" ({part['seconds']:.1f} s)" for name in ("during", "quiet") if (part := sample[name])]
    return ", ".join(words)


def write(result, folder):
    """The report, its plots, and the raw numbers; gives the report's path."""
    stamp = result["began"][:19].replace(":", "").replace("T", "-")
    folder.mkdir(exist_ok=True)
    pictures = report.plots(result)
    for name, picture in pictures.items():
        (folder / f"{stamp}-{name}.svg").write_text(picture, encoding="utf-8")
    (folder / f"{stamp}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    path = folder / f"{stamp}.md"
    path.write_text(report.markdown(result, {name: f"{stamp}-{name}.svg" for name in pictures}), encoding="utf-8")
    return path


def main(settings):
    """Everything; the exit code."""
    files = raise_file_limit()
    if "idle" in settings.loads and files < settings.idle + SPARE_FILES:
        raise Mistake(f"a process may open too few files for {settings.idle} connections: raise ulimit -n, or give IDLE")
    with temporary(settings.folder, "hapax-bench-") as folder:
        bench = Bench(settings, folder)
        try:
            bench.go()
        finally:
            bench.close()
            if bench.result["samples"] or bench.result["starts"]:
                path = write(bench.result, BENCH / "results")
                print(f"\n{report.goal_table(bench.result)}\nwritten: {path}", flush=True)
    return 1 if bench.result["failures"] else 0
