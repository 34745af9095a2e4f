"""What was asked for: the variables of the environment that make bench passes on."""
import dataclasses
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "bench"


class Mistake(Exception):
    """Something that whoever started the benchmark can put right."""


def number(name, default, kind=int, least=1):
    text = os.environ.get(name, "")
    try:
        value = kind(text) if text else default
    except ValueError:
        value = None
    if value is None or value < least:
        raise Mistake(f"{name}={text}: give a number of at least {least}")
    return value


def run_mark():
    """Begins the keys of one run: a store that is kept has those of earlier runs."""
    return f"{int(time.time()):x}"


def names(name, known, default):
    """A list of words, each of which must be known."""
    chosen = os.environ.get(name, "").split() or list(default)
    strange = [word for word in chosen if word not in known]
    if strange:
        raise Mistake(f"{name}: there is no {', '.join(strange)}; there are: {', '.join(known)}")
    return chosen


@dataclasses.dataclass
class Settings:
    loads: list
    systems: list
    runs: int
    seconds: float
    warm: float
    connections: list
    stored: list
    growth: list
    idle: int
    storm: int
    soak_minutes: int
    generation: int          # operations that close a generation
    settle_seconds: int      # until a system that was given a full store is taken as it is
    phase_seconds: float     # measured after a generation closed, or was reaped
    folder: pathlib.Path
    build: pathlib.Path
    filled: pathlib.Path | None = None   # where filled stores stay for a later run
    against: str = ""      # another hapax program, measured beside the one that was built

    def tool(self, name):
        return str(self.build / "bench" / name)

    @property
    def hapax(self):
        return str(self.build / "hapax")


def read(loads, systems, default_loads):
    """Everything, from the environment."""
    return Settings(
        loads=names("BENCH", loads, default_loads), systems=names("SYSTEMS", systems, systems),
        runs=number("RUNS", 5), seconds=number("SECONDS", 5.0, float, 0.1),
        warm=number("WARM", 1.0, float, 0), stored=numbers("STORED", "0 1000000 10000000", 0),
        connections=numbers("CONNECTIONS", "1 64 256", 1),
        growth=names("GROWTH", systems, ["hapax-sqlite", "hapax-postgres"]), idle=number("IDLE", 10000),
        storm=number("STORM", 1000), soak_minutes=number("SOAK_MINUTES", 60),
        generation=number("GENERATION", 250000), settle_seconds=number("SETTLE", 900),
        phase_seconds=number("PHASE_SECONDS", 4.0, float, 0.5),
        folder=folder("BENCH_FOLDER", "/var/tmp"), filled=kept("FILLED"),
        build=ROOT / os.environ.get("BUILD", "build"), against=program("AGAINST"))


def numbers(name, default, least):
    words = (os.environ.get(name) or default).split()
    if not all(word.isdigit() and int(word) >= least for word in words):
        raise Mistake(f"{name}={' '.join(words)}: give whole numbers of at least {least}, with spaces between them")
    return [int(word) for word in words]


def program(name):
    """The full path of a program that can be run; empty where none is given."""
    path = os.environ.get(name, "")
    if path and not (os.path.isfile(path) and os.access(path, os.X_OK)):
        raise Mistake(f"{name}={path}: give the path of a program")
    return os.path.abspath(path) if path else ""


def kept(name):
    """A folder that is made where it is not there; None: nothing is kept."""
    if not os.environ.get(name):
        return None
    pathlib.Path(os.environ[name]).mkdir(mode=0o755, exist_ok=True)
    return folder(name, "").resolve()


def folder(name, default):
    """Where stores are: what is in memory syncs to nowhere."""
    path = pathlib.Path(os.environ.get(name) or default)
    if not path.is_dir() or not os.access(path, os.W_OK):
        raise Mistake(f"{name}={path}: give a folder that can be written to")
    kind = subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True).stdout.strip()
    if kind in ("tmpfs", "ramfs"):
        raise Mistake(f"{name}={path}: that is a file system in memory; give a folder on a disk")
    return path
