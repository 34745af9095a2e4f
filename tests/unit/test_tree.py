#!/usr/bin/python3
"""Shows that the source tree is in order: a folder of src/ includes only what stands
above it, a base name of a .c file stands once, and so does the tag of a struct; and
the pages for contributors name only files, functions and types that exist.

The order of includes has no exceptions. Names and tags that stand more than once
today are listed below. The lists may only become shorter: a new one fails, and so
does a listed exception that is no longer needed."""
import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
SRC = ROOT / "src"

# A folder includes itself and what stands before it here.
ORDER = ["base", "core", "http", "settings", "store", "net", "egress", "config", "service", "gateway",
         "worker", "lib", "client", "verify", "coverage", "cli"]
# What the order alone would allow, and is wrong all the same.
NEVER = {
    "store": {"settings"},
    "service": {"egress"},
    "gateway": {"config"},
    "worker": {"config", "gateway"},
    "lib": {"net", "egress", "config", "service", "gateway", "worker"},
    "client": {"store", "net", "config", "service", "gateway", "worker", "lib"},
    "verify": {"gateway", "worker", "lib"},
    "coverage": {"store", "net", "egress", "config", "service", "gateway", "worker", "lib", "client",
                 "verify"},
}

# Drivers of the store mirror each other: a name counts once for all of them.
DRIVERS = {"store/memory", "store/sqlite", "store/postgres"}
# The table of drivers, and the URLs that come from it: the only files outside a
# driver's folder that name the driver to the compiler.
DRIVER_TABLE = {"store/store.c", "store/store.h"}
# Known exceptions: in how many folders a base name stands.
SAME_NAME = {
}
# Known exceptions: how often the tag of a struct, union or enum is defined.
SAME_TAG = {
}


def sources(*patterns):
    return sorted(path for pattern in patterns for path in SRC.rglob(pattern))


def folder(path):
    return path.parent.relative_to(SRC).as_posix()


def includes(path):
    """What a file includes out of other folders of src/, as it is written there."""
    named = re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), re.M)
    return [name for name in named if not (path.parent / name).exists() and (SRC / name).exists()]


def against_the_order():
    """{(folder, header): the files of that folder that include it}"""
    found = collections.defaultdict(list)
    for path in sources("*.c", "*.h"):
        own = path.relative_to(SRC).parts[0]
        for name in includes(path):
            other = name.split("/")[0]
            if ORDER.index(other) > ORDER.index(own) or other in NEVER.get(own, ()):
                found[own, name].append(path.relative_to(ROOT).as_posix())
    return found


def same_names():
    """{base name: the folders where it stands, all drivers as one}"""
    found = collections.defaultdict(set)
    for path in sources("*.c"):
        found[path.name].add("a driver of the store" if folder(path) in DRIVERS else folder(path))
    return {name: sorted(folders) for name, folders in found.items() if len(folders) > 1}


def same_tags():
    """{tag: the files that define it}"""
    found = collections.defaultdict(list)
    for path in sources("*.c", "*.h"):
        for tag in re.findall(r"\b(?:struct|union|enum)\s+(\w+)\s*\{", path.read_text(encoding="utf-8")):
            found[tag].append(path.relative_to(ROOT).as_posix())
    return {tag: files for tag, files in found.items() if len(files) > 1}


def pages():
    """What explains the source tree."""
    return sorted((ROOT / "docs/internals").glob("*.md")) + [ROOT / "CONTRIBUTING.md", ROOT / "README.md"]


def named(page):
    """What stands in `code` or in a block of it. Links are tests/e2e/test_docs.py's."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```.*?^```$", text, re.M | re.S)
    return blocks + re.findall(r"`[^`\n]+`", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def missing_paths(text, files):
    """The paths in it that are nowhere: src/... as it stands, guard.c or sqlite/batch.c below src/.
    NAME stands for a name that the reader chooses; bench/results is made by the benchmark."""
    for path in re.findall(r"(?<![\w/.*-])[\w*][\w*/.-]*", text):
        whole = re.match(r"(src|tests|sql|tools|docs|etc|include|bench|clients|examples)/", path)
        if "NAME" in path or path.startswith("bench/results") or not (whole or re.search(r"\w\.[ch]$", path)):
            continue
        if whole and not any(ROOT.glob(path.rstrip("/."))):
            yield path
        if not whole and not any(name.endswith("/" + path) for name in files):
            yield path


def drivers_named():
    """{file: how it names a driver}: by including out of its folder, or by a string
    that is a URL's scheme and nothing else, which only a comparison or the making of a
    URL needs. Texts for people may name drivers."""
    found = {}
    scheme = re.compile(r'"(?:memory|sqlite|postgres|postgresql)(?::(?://)?)?"')
    for path in sources("*.c", "*.h"):
        name, own = path.relative_to(SRC).as_posix(), folder(path)
        if name in DRIVER_TABLE:
            continue
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
        how = [header for header in includes(path)
               if header.rpartition("/")[0] in DRIVERS and header.rpartition("/")[0] != own]
        if own not in DRIVERS:
            how += scheme.findall(text)
        if how:
            found[name] = how
    return found


def misplaced(text):
    """What a page says to be in a file, "`name` in `src/…`", and is not."""
    for names, path in re.findall(r"((?:`\w+`(?:, | and )?)+) in `(src/[\w/.]+\.[ch])`", text):
        code = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else ""
        yield from (f"{name} in {path}" for name in re.findall(r"`(\w+)`", names)
                    if not re.search(rf"\b{name}\b", code))


def arguments(text, at):
    """The arguments of the call whose parenthesis is open before `at`."""
    found, begin, depth, quoted = [], at, 0, False
    while True:
        char = text[at]
        if quoted:
            at += char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char in "([{":
            depth += 1
        elif char == "," and depth == 0 or char == ")" and depth == 0:
            found.append(text[begin:at].strip())
            begin = at + 1
            if char == ")":
                return found
        elif char in ")]}":
            depth -= 1
        at += 1


def log_formats():
    """(file, format) of every event that is logged."""
    for path in sources("*.c"):
        text = path.read_text(encoding="utf-8")
        for call in re.finditer(r"^\t.*?\bhpx_log\(", text, re.M):
            pieces = re.findall(r'"((?:[^"\\]|\\.)*)"', arguments(text, call.end())[2])
            yield path.name, "".join(pieces).replace('\\"', '"')


class Tree(unittest.TestCase):
    maxDiff = None

    def compare(self, found, known, name):
        """Neither more than is known nor less: known is {what: how often}."""
        more = {what: where for what, where in found.items() if len(where) > known.get(what, 0)}
        self.assertFalse(more, "not allowed, and not on the list of known exceptions")
        less = {what: (number, len(found.get(what, ()))) for what, number in known.items()
                if len(found.get(what, ())) < number}
        self.assertFalse(less, f"{name} lists more than there is (listed, found; 0 is none): "
                               "make the list shorter")

    def test_there_is_a_tree(self):
        """Every folder with sources has its place in the order, and there are sources."""
        folders = {path.relative_to(SRC).parts[0] for path in sources("*.c", "*.h")}
        self.assertLessEqual({"base", "core", "http", "store", "gateway", "cli"}, folders)
        self.assertLessEqual(folders, set(ORDER))

    def test_order_of_includes(self):
        found = dict(against_the_order())
        self.assertFalse(found, f"a folder includes only what stands above it: {' '.join(ORDER)}; "
                                f"and never {NEVER}")

    def test_drivers_are_named_in_one_table(self):
        self.assertFalse(drivers_named(), "ask for a capability (enum hpx_capability in src/store/store.h)")

    def test_base_names_stand_once(self):
        self.compare(same_names(), SAME_NAME, "SAME_NAME")

    def test_tags_stand_once(self):
        self.compare(same_tags(), SAME_TAG, "SAME_TAG")

    def test_pages_name_what_exists(self):
        """Every file, and every hpx_ or HPX_ name, on a page about the code is one of the code."""
        roots = ("src", "include", "tests", "bench", "examples")
        code = [path for root in roots for path in (ROOT / root).rglob("*.[ch]") if path.is_file()]
        files = {"/" + path.relative_to(ROOT).as_posix() for path in code}
        words = {word for path in sources("*.c", "*.h")
                 for word in re.findall(r"\b(?:hpx|HPX)_\w+", path.read_text(encoding="utf-8"))}
        missing = {}
        for page in pages():
            text = "\n".join(named(page))
            unknown = {word for word in re.findall(r"\b(?:hpx|HPX)_\w*[a-zA-Z0-9]\b(?!_|\*)", text)
                       if "NAME" not in word and "MODULE" not in word and word not in words}
            found = sorted(unknown | set(missing_paths(text, files)) | set(misplaced(page.read_text(encoding="utf-8"))))
            if found:
                missing[page.relative_to(ROOT).as_posix()] = found
        self.assertFalse(missing, "a page names what is not there (renamed or gone?)")

    def test_events_are_fields(self):
        """The format of every event is name=value …, which log_format: json makes members of."""
        formats = list(log_formats())
        self.assertGreater(len(formats), 60)
        wrong = [found for found in formats
                 if not re.fullmatch(r'(?:[a-z0-9_]+=(?:"[^"]*"|[^" ]+)(?: (?=.)|$))+', found[1])]
        self.assertFalse(wrong, "an event is a list of fields (base/log.h)")

    def test_one_version(self):
        """What carries the version has that of the public header."""
        header = (ROOT / "include/hapax/common.h").read_text(encoding="utf-8")
        version = ".".join(re.findall(r"^#define HAPAX_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", header, re.M))
        places = {"debian/changelog": r"\Ahapax \(([^)]+)\)", "CHANGELOG.md": r"^## (\S+)",
                  "clients/js/package.json": r'"version": "([^"]+)"',
                  "clients/js/package-lock.json": r'"version": "([^"]+)"',
                  "clients/python/pyproject.toml": r'^version = "([^"]+)"',
                  "clients/python/hapax_client/__init__.py": r'^__version__ = "([^"]+)"',
                  "docs/guide/install.md": r"hapax[:-](\d+\.\d+\.\d+)",
                  "examples/compose.yaml": r"hapax[:-](\d+\.\d+\.\d+)",
                  **{path.relative_to(ROOT).as_posix(): r"image: hapax:(\S+)"
                     for path in (ROOT / "etc/kubernetes").glob("*-*.yaml")}}
        said = {place: re.search(pattern, (ROOT / place).read_text(encoding="utf-8"), re.M)
                for place, pattern in places.items()}
        self.assertEqual({place: found and found[1] for place, found in said.items()},
                         dict.fromkeys(places, version))

    def test_glossary_is_in_order(self):
        """Each word once, in the order of the alphabet."""
        rows = (ROOT / "docs/internals/glossary.md").read_text(encoding="utf-8").splitlines()
        words = [row.split("|")[1].strip().lower() for row in rows if row.startswith("| ")][1:]
        self.assertGreater(len(words), 50)
        self.assertEqual(words, sorted(set(words)))


if __name__ == "__main__":
    unittest.main()
