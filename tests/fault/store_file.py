"""The pages of a stopped SQLite file, and ways to damage one: a flipped bit, a page
of zeros, an end that is missing. What lies where is read from the sound file."""
import contextlib
import os
import shutil
import sqlite3

FILE_HEADER = 100
# The beginning of the name of a table or index, with a blank behind it the whole name: only
# its pages are damaged.
ONLY = os.environ.get("HAPAX_FLIP_ONLY", "")


class Page:
    """One page: its number from 1, the table or index it belongs to, its kind there."""

    def __init__(self, number, owner, kind):
        self.number = number
        self.owner = owner
        self.kind = kind

    def __repr__(self):
        return f"page {self.number} ({self.kind} of {self.owner})"


class StoreFile:
    """A sound file, which stays as it is; damage is done to copies of it."""

    def __init__(self, path):
        self.path = str(path)
        self.data = bytearray(open(self.path, "rb").read())
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)) as db:
            self.page_size = db.execute("PRAGMA page_size").fetchone()[0]
            found = {number: Page(number, name, kind) for name, number, kind in
                     db.execute("SELECT name, pageno, pagetype FROM dbstat")}
        count = len(self.data) // self.page_size
        assert count * self.page_size == len(self.data), (len(self.data), self.page_size)
        self.pages = [found.get(n, Page(n, "nothing", "free page")) for n in range(1, count + 1)]

    def kinds(self):
        """{(owner, kind): its pages}; what the generations have in common is one owner."""
        groups = {}
        for page in self.pages:
            owner = page.owner.rstrip("0123456789")
            groups.setdefault((owner, page.kind), []).append(page)
        return groups

    def choose(self, chance):
        """A page; each kind is as likely as another, however few pages it has."""
        groups = {kind: pages for kind, pages in self.kinds().items() if f"{kind[0]} ".startswith(ONLY)}
        assert groups, f"no page of {ONLY}: {sorted(self.kinds())}"
        return chance.choice(groups[chance.choice(sorted(groups))])

    def choose_byte(self, page, chance):
        """Where in the file: a third of all in the page's head and its cell pointers,
        the others among the bytes of it that are in use."""
        start = (page.number - 1) * self.page_size
        data = self.data[start:start + self.page_size]
        head = FILE_HEADER if page.number == 1 else 0
        if page.kind not in ("leaf", "internal"):
            return start + chance.randrange(self.page_size)
        cells = int.from_bytes(data[head + 3:head + 5], "big")
        pointers_end = min(head + 12 + 2 * cells, self.page_size)
        if chance.random() < 1 / 3:
            return start + chance.randrange(pointers_end)
        content = int.from_bytes(data[head + 5:head + 7], "big") or 65536
        return start + chance.randrange(min(content, self.page_size - 1), self.page_size)

    def copy_to(self, path):
        """A stopped file has no log beside it; neither has the copy."""
        for end in ("-wal", "-shm"):
            with contextlib.suppress(FileNotFoundError):
                (path.parent / (path.name + end)).unlink()
        shutil.copyfile(self.path, path)

    # The damages. Each writes a damaged copy to `path` and says what it did.
    def flip(self, path, chance):
        page = self.choose(chance)
        at, bit = self.choose_byte(page, chance), chance.randrange(8)
        self.copy_to(path)
        with open(path, "r+b") as file:
            file.seek(at)
            file.write(bytes([self.data[at] ^ (1 << bit)]))
        return f"bit {bit} of byte {(at % self.page_size)} flipped, {page}"

    def zero(self, path, chance):
        page = self.choose(chance)
        self.copy_to(path)
        with open(path, "r+b") as file:
            file.seek((page.number - 1) * self.page_size)
            file.write(bytes(self.page_size))
        return f"zeroed: {page}"

    def truncate(self, path, chance):
        """To a whole number of pages, or in the middle of one; never to nothing, which
        is what a new file looks like."""
        length = chance.randrange(1, len(self.data) // 512) * 512
        if chance.random() < 0.5:
            length = max(1, length // self.page_size) * self.page_size
        self.copy_to(path)
        with open(path, "r+b") as file:
            file.truncate(length)
        return f"truncated to {length} of {len(self.data)} bytes"
