"""What is measured in which order, and how long it will take. Rounds are the outer
loop and systems the inner one, so that a noisy minute hits all of them alike."""
import dataclasses
import sys
import time

from .catalogue import takes_part
from .fill import stored_for
from .loads import LOADS, REAPED_SECONDS
from .measure import seconds_of

# What a start costs besides measuring, roughly; learned anew as it goes.
START_SECONDS = 3.0
FILL_SECONDS = 60e-6


@dataclasses.dataclass(frozen=True)
class Visit:
    """One start of a system, for one load, with its numbers of connections."""
    round: int
    system: str          # "limits" and "pgbench" are no systems, and are visited like one
    load: object
    connections: tuple

    def seconds(self, settings):
        if self.system == "limits":
            return 2 * settings.seconds + 2
        each = settings.warm + seconds_of(settings, self.load)
        if self.load.phase:
            each = 3 * settings.phase_seconds + stored_for(self.load, settings) * FILL_SECONDS + REAPED_SECONDS
        fills = self.load.stored if self.round == 1 and self.load.grows else 0
        return START_SECONDS + len(self.connections) * each + fills * FILL_SECONDS


def connections_of(load, settings):
    if load.work == "same":
        return (settings.storm,)
    if load.work == "idle":
        return (settings.idle,)
    return load.connections or tuple(settings.connections)


def loads_of(name, settings):
    """A load that grows is one for each number of stored operations."""
    load = LOADS[name]
    return [load.with_stored(count) for count in settings.stored] if load.grows else [load]


def visits(settings, present):
    """All of them, in order; `present` are the systems that were installed, by name. The
    machine's limits stand beside first executions."""
    found = []
    for number in range(1, settings.runs + 1):
        if "first" in settings.loads:
            found.append(Visit(number, "limits", None, ()))
        for name in settings.loads:
            if name == "soak" and number > 1:
                continue  # an hour says enough
            for load in loads_of(name, settings):
                for system in present:
                    if takes_part(present[system], load, settings):
                        found.append(Visit(number, system, load, connections_of(load, settings)))
            if name == "first" and "hapax-postgres" in present:
                found.append(Visit(number, "pgbench", LOADS[name], connections_of(LOADS[name], settings)))
    return found


def words(seconds):
    seconds = round(seconds)
    if seconds < 90:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Progress:
    """Says where it is, and how much is left, by what the visits took so far."""

    def __init__(self, settings, planned, out=sys.stdout):
        self.settings, self.out = settings, out
        self.total = sum(visit.seconds(settings) for visit in planned)
        self.done = 0.0
        self.began = self.finished = time.monotonic()

    def left(self):
        """As long as the rest would take at the pace of all visits that are over."""
        pace = (self.finished - self.began) / self.done if self.done > 0 else 1.0
        return max(0.0, (self.total - self.done) * pace - (time.monotonic() - self.finished))

    def say(self, visit, text):
        load = visit.load.name if visit.load is not None else "disk, generator"
        if visit.load is not None and visit.load.grows:
            load += f" at {visit.load.stored:,}"
        print(f"[{visit.round}/{self.settings.runs}, {words(self.left())} left] {load}: {visit.system}: {text}",
              file=self.out, flush=True)

    def finish(self, visit):
        self.done += visit.seconds(self.settings)
        self.finished = time.monotonic()
