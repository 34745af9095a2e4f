"""Shows that the pages of docs/recipes are what the tests run: every file they show is
the file in examples/recipes, every recipe has its parts and its test, and the index and
the list of packages have all of them."""
import json
import re

import pytest

from harness.gateway import ROOT
from recipe import FILES, PAGES, blocks, commands, shown_files

NAMES = sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "README")
ONE_SCREEN = 65
NPM = ("package-lock.json", ".npmrc")


def page(name):
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_it_shows_its_files(name):
    """Byte for byte; and what the folder has is on the page, or linked."""
    for file, content in shown_files(name).items():
        assert content == (FILES / name / file).read_text(encoding="utf-8"), f"{name}.md shows another {file}"
    for file in (FILES / name).glob("*"):
        assert f"examples/recipes/{name}/{file.name})" in page(name) or file.name in NPM, file


@pytest.mark.parametrize("name", NAMES)
def test_it_has_its_parts(name):
    """What you get, commands, what to check, a pitfall; about one screen; and a test names it."""
    headings = re.findall(r"^## (.*)$", page(name), re.M)
    assert "Check" in headings and headings[-1].startswith("Pitfall"), headings
    assert commands(name) and commands(name, "Check")
    assert len([line for line in page(name).splitlines() if line.strip() and not line.startswith("```")]) <= ONE_SCREEN
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/deploy").glob("test_*.py"))
    assert f'"{name}"' in tests, f"no test runs {name}.md"


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_found(name):
    assert f"({name}.md)" in page("README")


@pytest.mark.parametrize("name", ["express", "stripe"])
def test_it_installs_what_is_pinned(name):
    """A reader with nothing but the page gets the version that the test runs."""
    for package, version in json.loads((FILES / name / "package.json").read_text(encoding="utf-8"))["dependencies"].items():
        assert any(line.startswith("npm install") and f"{package}@{version}" in line for line in commands(name))


def test_every_block_is_closed():
    for name in NAMES:
        assert page(name).count("\n```") == 2 * len(blocks(page(name))), name


def test_every_folder_has_its_page():
    assert {path.name for path in FILES.iterdir()} <= set(NAMES)
