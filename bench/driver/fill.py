"""Stores with many operations in them, for the growth loads: filled once by
bench-fill, through hapax's own store, and kept for all rounds."""
import subprocess

from . import database
from .process import Failed, die_with_parent

SAY_EVERY = 1000000


class Filled:
    """All of one benchmark's."""

    def __init__(self, settings, root):
        self.settings, self.root = settings, root
        self.places = {}

    def place(self, system, load, say):
        """What the system is given as its store; None for an empty one."""
        if not load.stored:
            return None
        wanted = (system, load.stored)
        if wanted not in self.places:
            say(f"a store is filled with {load.stored:,} operations")
            folder = self.root / f"filled-{system}-{load.stored}"
            folder.mkdir(mode=0o755)
            fill = self.fill_postgres if "postgres" in system else self.fill_sqlite
            self.places[wanted] = fill(folder, load, say)
        return self.places[wanted]

    def fill_sqlite(self, folder, load, say):
        url = f"sqlite:{folder}/hapax.db"
        self.fill(url, load, say)
        return url

    def fill_postgres(self, folder, load, say):
        server = database.Postgres(self.root, self.root, folder)
        try:
            self.fill(server.url, load, say)
        finally:
            server.stop()
        return folder

    def fill(self, url, load, say):
        words = [self.settings.tool("bench-fill"), url, str(load.stored), str(load.retention)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=die_with_parent) as process:
            for line in process.stdout:
                if int(line) % SAY_EVERY == 0:
                    say(f"{int(line):,} of them are there")
            words = process.stderr.read().strip()
        if process.returncode != 0:
            raise Failed(f"bench-fill: {words}")
