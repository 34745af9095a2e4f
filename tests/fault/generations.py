"""SQLite's generations as tests see them: how to have small ones, and which there are."""
import contextlib
import os
import re
import shutil
import sqlite3
import tempfile

# Of a build with -Dsteps=true: a generation closes after so many operations, or so long.
SMALL = {"HAPAX_TEST_GENERATION_OPERATIONS": "12", "HAPAX_TEST_GENERATION_MS": "400"}


def numbers(path):
    """The numbers of the generations whose tables are in the file, which nobody writes
    meanwhile; it is copied, for it may lie where only its server's process sees it."""
    with tempfile.TemporaryDirectory() as folder:
        for ending in ("", "-wal"):
            if os.path.exists(f"{path}{ending}"):
                shutil.copy(f"{path}{ending}", f"{folder}/copy.db{ending}")
        with contextlib.closing(sqlite3.connect(f"{folder}/copy.db")) as db:
            tables = [name for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return sorted(int(m[1]) for m in (re.fullmatch(r"hapax_operation_(\d+)", t) for t in tables) if m)


def check_turnover(path):
    """Generations were opened, and some of them reaped: numbers are never used again."""
    there = numbers(path)
    assert len(there) > 1, f"no generation closed: {there}"
    assert max(there) > len(there), f"no generation was reaped: {there}"
