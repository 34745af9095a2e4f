"""make bench-attack: what honest callers notice of an attack. ATTACK connections under
`limits.preset: public`, half of them honest, each an address and a credential of its
own that sends a first execution every two seconds; the other half attack in six
ways (attackers.py). The honest half is measured alone, beside eight connections of
bombs, and beside the attack, on one gateway each. Everything is on 127.0.0.0/8, and
everything ends by itself."""
import contextlib
import json
import pathlib
import subprocess
import sys

from . import tables
from .attackers import KINDS
from .catalogue import LOADS, SYSTEMS
from .loads import Load
from .process import Failed, die_with_parent, raise_file_limit, run, temporary
from .settings import number, read, run_mark
from .upstream import Slow

PAUSE_MS = 2000
BOMBS = 8
ATTACK_P99_MOST, BOMBS_P99_MOST = 3, 2
LEAD_SECONDS = 15      # for all connections to be made


class Public(Load):
    """First executions before a gateway with the limits of a public deployment."""

    def hapax(self, upstream):
        return ["limits:", "  preset: public", f"  connections: {number('ATTACK', 10000) + 1000}"]


def parts(count):
    """As many of each kind."""
    return {kind: count // len(KINDS) for kind in KINDS}


@contextlib.contextmanager
def attacked(port, counts, seconds):
    """The attack goes on inside; gives a list that has what each kind got, after it."""
    got = []
    if not counts:
        yield got
        return
    words = [sys.executable, pathlib.Path(__file__).with_name("attackers.py"), port, seconds,
             *[f"{kind}={count}" for kind, count in counts.items()]]
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                          preexec_fn=die_with_parent) as process:
        try:
            yield got
            said = process.communicate(timeout=seconds + 60)[0]
        finally:
            process.kill()
    if process.returncode != 0:
        raise Failed("the attackers failed")
    got.append(json.loads(said))


def honest(settings, port, count):
    """What bench-load says of the honest half."""
    words = [settings.tool("bench-load"), "--to", f"127.0.0.1:{port}", "--work", "first", "--run", run_mark(),
             "--connections", count, "--callers", count, "--pause-ms", PAUSE_MS,
             "--warm-ms", LEAD_SECONDS * 1000, "--measure-ms", int(settings.seconds * 1000)]
    return json.loads(run(words).splitlines()[-1])


def measure(settings, folder, upstream, system, honest_count, counts):
    load = Public("attack", "", "first")
    with temporary(folder, f"{system}-") as place:
        running = SYSTEMS[system](settings, folder, place, upstream, load, None)
        running.start()
        try:
            with attacked(running.port, counts, LEAD_SECONDS + settings.seconds + 5) as got:
                said = honest(settings, running.port, honest_count)
                said["open"] = running.metric("hapax_connections")
        finally:
            running.stop()
    return said, got[0] if got else {}


def refused(said):
    """Of the honest: answers that are no success, and connections that were broken."""
    return sum(count for status, count in said["statuses"].items() if int(status) >= 300) + said["broken"]


def show(system, found):
    alone = found["alone"][0]["latency_us"]["p99"]
    rows = []
    for name, (said, _) in found.items():
        latency = said["latency_us"]
        rows.append([f"{system}, {name}", f"{said['open']:.0f}", str(latency["count"]), str(refused(said)),
                     f"{latency['p50'] / 1000:.1f}", f"{latency['p99'] / 1000:.1f}", f"{latency['p99'] / alone:.2f}"])
    print(f"\nThe honest callers (goals: nothing refused; p99 of the attack ≤ {ATTACK_P99_MOST} ×, of {BOMBS} "
          f"connections of bombs ≤ {BOMBS_P99_MOST} ×):\n")
    print(tables.table(["", "attackers connected", "answers", "refused", "p50 ms", "p99 ms", "p99 against alone"], rows))
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
