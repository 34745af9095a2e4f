"""Shows that the recipes of CONTRIBUTING.md work: each has an example here, NAME.patch,
which applies to the tree as it is, builds, and does what it says.

A patch begins with what it adds, and with lines "Check: COMMAND", which run in the
patched tree; $PYTEST there is pytest. All patches are applied together, so that one build serves them all;
each must also apply alone. `tests/recipes/refresh` brings a patch up to date."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PATCHES = sorted(pathlib.Path(__file__).parent.glob("*.patch"))
# For speed; without optimisation gcc sees variables that might not be set.
SETUP = ["meson", "setup", "build", "-Dwerror=true", "-Dtests=enabled", "-Doptimization=0", "-Ddebug=false",
         "-Dc_args=-Wno-maybe-uninitialized"]
PYTEST = "/usr/bin/python3 -B -m pytest -q -p no:cacheprovider"
NAMES = [patch.stem for patch in PATCHES]


def run(command, folder, **options):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=900, check=False, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout[-8000:]}"
    return done.stdout


def tracked():
    """The files of the tree as they are now, without what was built; git need not be there."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False) if shutil.which("git") else None
    if listed and listed.returncode == 0:
        return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
    names = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return [str(name) for name in names if not re.match(r"build|\.", name.parts[0]) and "node_modules" not in name.parts]


def copy(to):
    for name in tracked():
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, to / name)


def apply(patch, folder, *options):
    """It applies as it stands: lines may have moved, their neighbours not changed."""
    run(["patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "-i", str(patch), *options], folder)


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    copy(folder)
    return folder


@pytest.fixture(scope="session")
def patched(tmp_path_factory):
    """All of them applied, and built."""
    folder = tmp_path_factory.mktemp("patched")
    copy(folder)
    for patch in PATCHES:
        apply(patch, folder)
    run(SETUP, folder)
    run(["ninja", "-C", "build", "hapax"], folder)
    return folder


def recipe(name):
    """The recipe that names the patch, out of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = [part for part in re.split(r"^### ", text, flags=re.M)[1:] if f"tests/recipes/{name}.patch" in part]
    assert len(found) == 1, f"{len(found)} recipes name tests/recipes/{name}.patch"
    return found[0]


def is_named(path, text):
    """NAME in a recipe stands for any name, * too."""
    for named in re.findall(r"`([\w*./-]+)`", text):
        pattern = re.escape(named).replace("NAME", r"\w+").replace(r"\*", r"[\w]*")
        if re.fullmatch(pattern if not named.endswith("/") else pattern + ".*", path):
            return True
    return False


def test_every_recipe_has_a_patch():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## Recipes\n")[1]
    missing = [part.splitlines()[0] for part in re.split(r"^### ", text, flags=re.M)[1:]
               if not re.search(r"tests/recipes/[a-z-]+\.patch", part)]
    assert PATCHES and not missing


@pytest.mark.parametrize("name", NAMES)
def test_touches_what_the_recipe_names(name):
    patch = pathlib.Path(__file__).with_name(f"{name}.patch").read_text(encoding="utf-8")
    touched = re.findall(r"^\+\+\+ b/(\S+)", patch, re.M)
    text = recipe(name)
    assert touched and not [path for path in touched if not is_named(path, text)]


@pytest.mark.parametrize("name", NAMES)
def test_applies(tree, name):
    apply(pathlib.Path(__file__).with_name(f"{name}.patch"), tree, "--dry-run")


@pytest.mark.parametrize("name", NAMES)
def test_works(patched, name):
    head = pathlib.Path(__file__).with_name(f"{name}.patch").read_text(encoding="utf-8").split("\ndiff --git ")[0]
    checks = re.findall(r"^Check: (.*)$", head, re.M)
    assert checks, "the patch says no Check:"
    for check in checks:
        run(["sh", "-ec", check], patched, env={**os.environ, "HAPAX_BIN": str(patched / "build/hapax"),
                                                "PYTEST": PYTEST})
