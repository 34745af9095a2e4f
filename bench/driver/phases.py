"""What goes on beside a load for a part of the time: a generation closes, or is
reaped. One run is measured in slices of time, and those in which it goes on are
compared with the others of the same run."""
import contextlib
import sqlite3
import threading
import time

from . import figures, usage
from .process import Failed

EVERY_SECONDS = 0.1
SLICE_MS = 50
# A generation that is not full or not deleted by then never will be.
SECONDS_MAX = 120


class Watch(threading.Thread):
    """Notes the CPU of a system, and what its store is doing, again and again."""

    def __init__(self, system, look):
        super().__init__(daemon=True)
        self.system, self.look = system, look
        self.notes = []        # (microseconds of the monotonic clock, CPU seconds, what was seen)
        self.over = threading.Event()
        self.error = None

    def run(self):
        try:
            while not self.over.is_set():
                seen = self.look()
                cpu = sum(usage.use(pids).cpu for pids in self.system.roots().values())
                self.notes.append((time.monotonic_ns() // 1000, cpu, seen))
                self.over.wait(EVERY_SECONDS)
        except (Failed, OSError, sqlite3.Error) as error:
            self.error = error

    def wait_over(self, rest_seconds):
        """Until what is watched began, ended, and was quiet for a while; or for too long."""
        deadline = time.monotonic() + SECONDS_MAX
        while time.monotonic() < deadline and not rested(self.notes, rest_seconds) and self.is_alive():
            time.sleep(EVERY_SECONDS)

    def end(self):
        self.over.set()
        self.join()
        if self.error is not None:
            raise Failed(f"the store could not be watched: {self.error}")
        return self.notes


@contextlib.contextmanager
def watched(system, load):
    """Yields the watch of a system for a load's phase."""
    with contextlib.ExitStack() as stack:
        generations = generations_of(system, stack, LEAVING if load.kept else GENERATIONS)
        watch = Watch(system, closing(generations) if load.phase == "closing" else reaping(system, generations))
        watch.start()
        try:
            yield watch
        finally:
            watch.over.set()
            watch.join()


# One look at the list of generations: how many there are, how many of them are closed
# and have no filter yet, and how many are being deleted.
GENERATIONS = """SELECT count(*),
	count(*) FILTER (WHERE state = 2 AND number NOT IN (SELECT generation FROM hapax_filter)),
	count(*) FILTER (WHERE state = 3) FROM hapax_generation"""
# The same, where a generation whose rows leave something behind is being deleted too.
LEAVING = GENERATIONS.replace("state = 3", "state = 3 OR moved > 0")


def generations_of(system, stack, question):
    """A function that looks, by a connection to the file that only reads; None where the
    store is no file."""
    if not system.store.startswith("sqlite:"):
        return None
    path = system.store.removeprefix("sqlite:")
    connection = stack.enter_context(contextlib.closing(
        sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5, check_same_thread=False)))
    return lambda: connection.execute(question).fetchone()


# Both give (a number that changes with what is watched, whether it goes on at this moment).

def closing(generations):
    def look():
        count, unfiltered, _ = generations()
        return count, unfiltered > 0
    return look


def reaping(system, generations):
    def look():
        return system.metric("hapax_reaped_total"), generations is not None and generations()[2] > 0
    return look


# ---- Arithmetic ----

def intervals(notes):
    """When it went on, in microseconds: between two notes whose numbers differ, or while
    it was seen to go on."""
    found = []
    for (begin, _, before), (end, _, after) in zip(notes, notes[1:]):
        if before[0] != after[0] or before[1] or after[1]:
            if found and found[-1][1] == begin:
                found[-1] = (found[-1][0], end)
            else:
                found.append((begin, end))
    return found


def rested(notes, seconds):
    """Whether it went on, and was over so long before the last note."""
    went_on = intervals(notes)
    return bool(went_on) and notes[-1][0] - went_on[-1][1] >= seconds * 1e6


def cpu_at(notes, at):
    """CPU seconds up to a moment, on a straight line between the notes around it."""
    for (begin, first, _), (end, last, _) in zip(notes, notes[1:]):
        if begin <= at <= end:
            return first + (last - first) * (at - begin) / (end - begin)
    return notes[0][1] if at < notes[0][0] else notes[-1][1]


def merged(slices):
    """The counts of several slices as one list."""
    counts = {}
    for buckets in slices:
        for value, count in buckets:
            counts[value] = counts.get(value, 0) + count
    return sorted(counts.items())


def figures_of(slices, notes, each_us):
    """Of some slices [(when it began, its counts)]; {} where there are none."""
    pairs = merged(buckets for _, buckets in slices)
    count = sum(number for _, number in pairs)
    if not count:
        return {}
    used = sum(cpu_at(notes, began + each_us) - cpu_at(notes, began) for began, _ in slices)
    seconds = len(slices) * each_us / 1e6
    return {"cpu_us": used * 1e6 / count, "rps": count / seconds, "p50": figures.percentile(pairs, 0.5),
            "p99": figures.percentile(pairs, 0.99), "p999": figures.percentile(pairs, 0.999), "max": pairs[-1][0],
            "seconds": seconds}


def split(said, notes):
    """{"during": figures, "quiet": figures, "times": how often it began}"""
    went_on = intervals(notes)
    each_us, began = said["each_us"], said["began_us"]
    during, quiet = [], []
    for number, buckets in enumerate(said["buckets"]):
        begin = began + number * each_us
        if begin + each_us > notes[-1][0]:
            break   # nobody looked any more
        busy = any(begin < last and begin + each_us > first for first, last in went_on)
        (during if busy else quiet).append((begin, buckets))
    return {"during": figures_of(during, notes, each_us), "quiet": figures_of(quiet, notes, each_us),
            "times": len(went_on)}
