"""Stores with many operations in them: filled by bench-fill, through hapax's own
store. python3 -m driver fill fills those of the growth loads ahead. One that loads only add to serves all rounds, and with FILLED later runs too;
one that a load uses up is filled anew for each visit."""
import contextlib
import hashlib
import pathlib
import shutil
import subprocess
import time

from . import database
from .loads import LOADS, TOMBSTONE_SECONDS
from .process import Failed, die_with_parent, temporary
from .settings import ROOT, Mistake

SAY_SECONDS = 5


class Filled:
    """All of one benchmark's."""

    def __init__(self, settings, root):
        self.settings, self.root = settings, root
        self.places = {}

    @contextlib.contextmanager
    def place(self, system, load, say):
        """What the system is given as its store; None for an empty one."""
        if load.phase:
            folder = self.root / f"used-{system.name}"
            folder.mkdir(mode=0o755)
            try:
                yield self.used(system, load, folder, say)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        else:
            yield None if not load.stored else self.keep(
                f"{system.name}-{load.stored}", system, load.stored, load.retention, say,
                spread=is_postgres(system))

    def used(self, system, load, folder, say):
        """One that closes a generation soon, or whose operations have expired."""
        count = stored_for(load, self.settings)
        store = self.fill(system, folder, count, load.retention, say, tombstone=TOMBSTONE_SECONDS if load.kept else 0)
        if load.phase == "reaping":
            time.sleep(load.retention)
        return store

    def keep(self, name, system, count, retention, say, **how):
        """One that is filled once; with FILLED, by an earlier run perhaps."""
        if name not in self.places:
            folder = pathlib.Path(self.settings.filled or self.root) / name
            mark = folder / "filled"
            if not mark.exists() or mark.read_text(encoding="ascii") != schema_of(system):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(mode=0o755)
                self.fill(system, folder, count, retention, say, **how)
                mark.write_text(schema_of(system), encoding="ascii")
            self.places[name] = folder if is_postgres(system) else f"sqlite:{folder}/hapax.db"
        return self.places[name]

    def fill(self, system, folder, count, retention, say, spread=False, route=None, tombstone=0):
        """Gives what the system takes as its store: a URL, or the folder of a database."""
        say(f"a store is filled with {count:,} operations")
        words = [count, retention, *(["--spread"] if spread else []), *(["--unknown", route] if route else []),
                 *(["--tombstone", tombstone] if tombstone else [])]
        if not is_postgres(system):
            url = f"sqlite:{folder}/hapax.db"
            self.run(system, url, words, count, say)
            return url
        server = database.Postgres(self.root, self.root, folder)
        try:
            self.run(system, server.url, words, count, say)
            server.sql("VACUUM ANALYZE")
        finally:
            server.stop()
        return folder

    def tool(self, system):
        """The one that was built with the system's program: it has the same schema."""
        path = pathlib.Path(self.settings.tool("bench-fill"))
        if system.original is not None:
            path = pathlib.Path(system.binary).parent / "bench" / "bench-fill"
        if not path.exists():
            raise Failed(f"{path} is not there: meson compile bench-tools makes it")
        return path

    def run(self, system, url, words, count, say):
        command = [str(word) for word in (self.tool(system), url, *words)]
        began = said = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=die_with_parent) as process:
            for line in process.stdout:
                if time.monotonic() >= said + SAY_SECONDS:
                    said = time.monotonic()
                    left = (said - began) * (count / max(1, int(line)) - 1)
                    say(f"{int(line):,} of {count:,} are there, {left:.0f} s left")
            problem = process.stderr.read().strip()
        if process.returncode != 0:
            raise Failed(f"bench-fill: {problem}")


def schema_of(system):
    """A hash of the schema as it stands in the tree: a store of another one is no use."""
    text = hashlib.sha256()
    for path in sorted((ROOT / "sql" / ("postgres" if is_postgres(system) else "sqlite")).glob("*.sql")):
        text.update(path.read_bytes())
    return text.hexdigest()


def is_postgres(system):
    return "postgres" in system.name


def stored_for(load, settings):
    """Nearly a whole generation, so that the load closes it; or two whole ones that are
    closed, because a third is begun."""
    if load.phase == "closing":
        return settings.generation * 9 // 10
    return 2 * settings.generation + settings.generation // 100


def main(settings, systems):
    """Fills the stores of the growth loads into FILLED, where they are not there yet."""
    if settings.filled is None:
        raise Mistake("fill: give FILLED, the folder where the stores stay")
    with temporary(settings.folder, "hapax-bench-") as folder:
        filled = Filled(settings, folder)
        for name in settings.growth:
            for count in settings.stored:
                with filled.place(systems[name], LOADS["growth"].with_stored(count),
                                  lambda text, name=name: print(f"{name}: {text}", flush=True)) as store:
                    print(f"{name}, {count:,}: {'nothing to fill' if store is None else 'filled'}", flush=True)
    return 0
