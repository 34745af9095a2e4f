"""make bench-attack: what honest callers notice of an attack. ATTACK connections under
`limits.preset: public`, half of them honest, each an address and a credential of its
own that sends a first execution every two seconds; the other half attack in six
ways (attackers.py) with ATTACK_RATE requests and new connections in a second. The
honest half is measured alone, beside eight connections of bombs, and beside the attack,
on one gateway each. Everything is on 127.0.0.0/8, and everything ends by itself."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys

from . import tables, usage
from .attackers import KINDS
from .catalogue import LOADS, SYSTEMS
from .loads import Load
from .measure import Generator
from .process import Failed, die_with_parent, raise_file_limit, temporary
from .settings import number, read, run_mark
from .upstream import Slow

PAUSE_MS = 2000
BOMBS = 8
RATE = 6000            # a second, of all attackers together
ATTACK_P99_MOST, BOMBS_P99_MOST = 3, 2
LEAD_SECONDS = 15      # for all connections to be made


class Public(Load):
    """First executions before a gateway with the limits of a public deployment."""

    def hapax(self, upstream):
        return ["limits:", "  preset: public", f"  connections: {number('ATTACK', 10000) + 1000}"]


def parts(count):
    """As many of each kind."""
    return {kind: count // len(KINDS) for kind in KINDS}


class Attack:
    """The attackers' process, and in the end what each kind got."""

    def __init__(self, process=None):
        self.process = process
        self.got = {}

    def cpu(self):
        return usage.use([self.process.pid]).cpu if self.process is not None else 0.0


@contextlib.contextmanager
def attacked(port, counts, seconds):
    """The attack goes on inside."""
    if not counts:
        yield Attack()
        return
    words = [sys.executable, pathlib.Path(__file__).with_name("attackers.py"), port, seconds,
             number("ATTACK_RATE", RATE), *[f"{kind}={count}" for kind, count in counts.items()]]
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                          preexec_fn=die_with_parent) as process:
        attack = Attack(process)
        try:
            yield attack
            said = process.communicate(timeout=seconds + 60)[0]
        finally:
            process.kill()
    if process.returncode != 0:
        raise Failed("the attackers failed")
    attack.got = json.loads(said)


def honest(settings, running, attack, count):
    """What bench-load says of the honest half, and the cores that everybody used meanwhile."""
    def used():
        return {**{part: usage.use(pids).cpu for part, pids in running.roots().items()},
                "waited": usage.waited_by(running.roots()["program"]),
                "upstream": usage.use([running.upstream.process.pid]).cpu, "attackers": attack.cpu()}

    words = [settings.tool("bench-load"), "--to", f"127.0.0.1:{running.port}", "--work", "first", "--run", run_mark(),
             "--connections", count, "--callers", count, "--pause-ms", PAUSE_MS,
             "--warm-ms", LEAD_SECONDS * 1000, "--measure-ms", int(settings.seconds * 1000)]
    generator = Generator([str(word) for word in words])
    try:
        generator.line("begin")
        before = used()
        attackers = running.metric("hapax_connections") - count
        generator.line("end")
        after = used()
        said = json.loads(generator.line())
    finally:
        generator.stop()
    said["cores"] = {part: (after[part] - before[part]) / said["seconds"] for part in after}
    said["cores"]["honest"] = said["generator_cpu"] / said["seconds"]
    said["attackers"] = attackers
    return said


def measure(settings, folder, upstream, system, honest_count, counts):
    load = Public("attack", "", "first")
    with temporary(folder, f"{system}-") as place:
        running = SYSTEMS[system](settings, folder, place, upstream, load, None)
        running.start()
        try:
            with attacked(running.port, counts, LEAD_SECONDS + settings.seconds + 5) as attack:
                said = honest(settings, running, attack, honest_count)
        finally:
            running.stop()
    return said, attack.got


def refused(said):
    """Of the honest: answers that are no success, and connections that were broken."""
    return sum(count for status, count in said["statuses"].items() if int(status) >= 300) + said["broken"]


def verdict(name, said, alone):
    """Which goals were missed; nothing is wanted of a row that is the measure itself."""
    most = {"alone": None, "under attack": ATTACK_P99_MOST}.get(name, BOMBS_P99_MOST)
    missed = []
    if refused(said):
        missed.append("refused")
    if most is not None and said["latency_us"]["p99"] > most * alone:
        missed.append(f"p99 > {most} ×")
    return ", ".join(missed) or "met"


def cores(said, *parts):
    return f"{sum(said['cores'].get(part, 0.0) for part in parts):.2f}"


def show(system, found):
    alone = found["alone"][0]["latency_us"]["p99"]
    rows = []
    for name, (said, _) in found.items():
        latency = said["latency_us"]
        rows.append([f"{system}, {name}", f"{said['attackers']:.0f}", str(latency["count"]),
                     str(refused(said)), f"{latency['p50'] / 1000:.1f}", f"{latency['p99'] / 1000:.1f}",
                     f"{latency['p99'] / alone:.2f}", cores(said, "program", "database"), cores(said, "waited"),
                     cores(said, "attackers"), cores(said, "honest", "upstream"), verdict(name, said, alone)])
    print(f"\nThe honest callers (goals: nothing refused; p99 of the attack ≤ {ATTACK_P99_MOST} ×, of {BOMBS} "
          f"connections of bombs ≤ {BOMBS_P99_MOST} ×). CPU in cores, of {os.cpu_count()}:\n")
    print(tables.table(["", "attackers connected", "answers", "refused", "p50 ms", "p99 ms", "p99 against alone",
                        "hapax CPU", "hapax waited for CPU", "attackers' CPU", "honest and upstream CPU", "goals"], rows))
    print("\nWhat the attackers got (statuses, and connections closed on them):\n")
    print(tables.table(["", "answers"], [
        [f"{name}, {kind}", " ".join(f"{status}: {count}" for status, count in sorted(seen.items())) or "nothing"]
        for name, (_, got) in found.items() for kind, seen in got.items()]), flush=True)


def main():
    settings = read(list(LOADS), [name for name in SYSTEMS if name in ("hapax-sqlite", "hapax-postgres")],
                    ["first"])
    count = number("ATTACK", 10000)
    raise_file_limit()
    kinds = {"alone": {}, f"{BOMBS} connections of bombs": {"bomb": BOMBS}, "under attack": parts(count // 2)}
    with temporary(settings.folder, "hapax-bench-") as folder:
        upstream = Slow(settings, folder, 0)
        try:
            for system in settings.systems:
                show(system, {name: measure(settings, folder, upstream, system, count // 2, counts)
                              for name, counts in kinds.items()})
        finally:
            upstream.stop()
    return 0
