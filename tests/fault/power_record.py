"""The disk as a power cut could leave it at any moment of a record (record_writes.c):
what a sync covered is there; of what was written since, everything, nothing, or any
part, down to single sectors, in any order. What a failed sync was to cover may be on
the disk or lost for good, whatever later syncs say, as on Linux."""
import os
import pathlib
import struct
import subprocess

ENTRY = struct.Struct("=cc2xIQ")
SECTOR = 512
FILES = {"D": "", "W": "-wal", "J": "-journal"}


def wrap(folder, path, log, fails="", full=""):
    """The words before a command that have its writes to `path` recorded in `log`; `fails`
    and `full`: which syncs and which writes fail."""
    library = pathlib.Path(folder) / "record_writes.so"
    source = pathlib.Path(__file__).with_name("record_writes.c")
    subprocess.run([os.environ.get("CC") or "cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return ["env", f"LD_PRELOAD={library}", f"RECORD_FILE={path}", f"RECORD_LOG={log}", f"RECORD_FAIL={fails}",
            f"RECORD_FULL={full}"]


class Entry:
    """One write, cut or sync; `at` is the record's length before it, `end` behind it."""

    def __init__(self, kind, file, data, offset, at, end):
        self.kind, self.file, self.data, self.offset, self.at, self.end = kind, file, data, offset, at, end

    def sectors(self):
        """The parts that a disk writes at once, as (offset, bytes)."""
        start = 0
        while start < len(self.data):
            room = SECTOR - (self.offset + start) % SECTOR
            yield self.offset + start, self.data[start:start + room]
            start += room


def read(log):
    """The entries of a record, in order."""
    data = pathlib.Path(log).read_bytes()
    entries, at = [], 0
    while at + ENTRY.size <= len(data):
        kind, file, length, offset = ENTRY.unpack_from(data, at)
        length = length if kind == b"W" else 0
        end = at + ENTRY.size + length
        entries.append(Entry(kind.decode(), file.decode(), data[at + ENTRY.size:end], offset, at, end))
        at = end
    assert at == len(data), f"the record ends in the middle of an entry: {at}, not {len(data)}"
    return entries


def put(content, offset, data):
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset:offset + len(data)] = data


class Disk:
    """The files as they surely are, and what was written since the last sync of each."""

    def __init__(self, base, chance):
        self.sure = {"D": bytearray(base), "W": bytearray(), "J": bytearray()}
        self.unsure = {file: [] for file in FILES}
        self.chance = chance

    def apply(self, entry, part=1.0, torn=False):
        """`part` of a write, by whole sectors where it is torn."""
        content = self.sure[entry.file]
        if entry.kind == "C":
            if self.chance.random() < part:
                del content[entry.offset:]
                put(content, entry.offset, b"")
            return
        if not torn:
            if self.chance.random() < part:
                put(content, entry.offset, entry.data)
            return
        for offset, data in entry.sectors():
            if self.chance.random() < part:
                put(content, offset, data)

    def take(self, entry):
        pending = self.unsure[entry.file]
        if entry.kind in "WC":
            pending.append(entry)
            return
        part = 1.0 if entry.kind == "S" else self.chance.choice((0.0, 0.5, 1.0))
        for one in [p for p in pending if p.at < entry.offset]:
            self.apply(one, part, torn=entry.kind == "F")
        self.unsure[entry.file] = [p for p in pending if p.at >= entry.offset]

    def cut(self):
        """The power is gone: how much of the rest got there is chance."""
        part, torn = self.chance.choice((0.0, 0.3, 0.8, 1.0)), self.chance.random() < 0.5
        for pending in self.unsure.values():
            for entry in pending:
                self.apply(entry, part, torn)
        return f"{part} of the unsynced writes kept{', torn' if torn else ''}"

    def write(self, path):
        for file, ending in FILES.items():
            if self.sure[file] or file == "D":
                pathlib.Path(f"{path}{ending}").write_bytes(self.sure[file])


def rebuild(base, entries, position, path, chance):
    """The files at `path` as a cut leaves them when the record had that length; how."""
    for ending in ("-wal", "-shm", "-journal"):
        pathlib.Path(f"{path}{ending}").unlink(missing_ok=True)
    disk = Disk(base, chance)
    for entry in entries:
        if entry.end > position:
            break
        disk.take(entry)
    how = disk.cut()
    disk.write(path)
    return f"cut at {position} of {entries[-1].end}, {how}"
