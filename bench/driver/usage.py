"""What processes have used so far, from /proc: CPU time, memory, bytes written.
A process that ended meanwhile is in its parent's account, so that the sum over a
tree never loses anything."""
import contextlib
import dataclasses
import os
import pathlib

TICK = os.sysconf("SC_CLK_TCK")
PROC = pathlib.Path("/proc")


def children(pid):
    found = []
    for task in (PROC / str(pid) / "task").iterdir():
        found += [int(word) for word in (task / "children").read_text(encoding="ascii").split()]
    return found


def tree(roots):
    """These processes and all below them."""
    found = []
    left = list(roots)
    while left:
        pid = left.pop()
        try:
            left += children(pid)
            found.append(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def cpu_of(pid):
    """Seconds: its own, and its dead children's."""
    own, dead = ticks_of(pid)
    return max(own, run_time_of(pid)) + dead


def ticks_of(pid):
    """Its own seconds and its dead children's, each cut to hundredths: fields 14 to 17
    of stat; the name before them may have spaces."""
    fields = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    user, system, dead_user, dead_system = (int(field) / TICK for field in fields[11:15])
    return user + system, dead_user + dead_system


def run_time_of(pid):
    """Exact seconds of its living threads: two hundred database processes that each
    used a few milliseconds are nothing in hundredths. 0 where the kernel does not tell."""
    total = 0
    for task in (PROC / str(pid) / "task").iterdir():
        try:
            total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        except OSError:
            continue
    return total / 1e9


def waited_by(pids):
    """Exact seconds in which threads of these processes could have run, and others did."""
    total = 0
    for pid in pids:
        for task in (PROC / str(pid) / "task").iterdir():
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text(encoding="ascii").split()[1])
    return total / 1e9


def threads_of(pids):
    """{thread: exact seconds} of all living threads of these processes."""
    found = {}
    for pid in pids:
        for task in (PROC / str(pid) / "task").iterdir():
            try:
                found[task.name] = int((task / "schedstat").read_text(encoding="ascii").split()[0]) / 1e9
            except OSError:
                continue
    return found


def fields_of(pid, name):
    pairs = (line.split(":", 1) for line in (PROC / str(pid) / name).read_text(encoding="ascii").splitlines()
             if ":" in line)
    return {key: value.split()[0] for key, value in pairs if value.split()}


def written_by(pid):
    """None where this kernel or user may not know."""
    try:
        return int(fields_of(pid, "io")["write_bytes"])
    except (OSError, KeyError):
        return None


def memory_of(pid):
    """Resident bytes, and its share of them where others hold the same pages."""
    try:
        found = fields_of(pid, "smaps_rollup")
        return int(found["Rss"]) * 1024, int(found["Pss"]) * 1024
    except (OSError, KeyError):
        return 0, 0


@dataclasses.dataclass
class Use:
    """Of one group of processes up to now."""
    cpu: float
    written: int


def use(roots):
    cpu, written = 0.0, 0
    for pid in tree(roots):
        try:
            cpu += cpu_of(pid)
            written += written_by(pid) or 0
        except (FileNotFoundError, ProcessLookupError):
            continue
    return Use(cpu, written)


def memory(roots):
    """(largest resident set, the sum of all shares)."""
    sets = [memory_of(pid) for pid in tree(roots)]
    return max((rss for rss, _ in sets), default=0), sum(pss for _, pss in sets)


def device_of(folder):
    """The major and minor number of the disk below a folder."""
    where = os.stat(folder).st_dev
    return f"{os.major(where)}:{os.minor(where)}"


def device_written(device):
    """Bytes written to a disk since it was started; None where it has no account."""
    try:
        fields = (pathlib.Path("/sys/dev/block") / device / "stat").read_text(encoding="ascii").split()
        return int(fields[6]) * 512
    except OSError:
        return None
