"""Fixtures of the recipes' tests. The program is HAPAX_BIN, or build/hapax under the
source root. A recipe whose programs are not installed is skipped, and the reason says
what is missing; with HAPAX_RECIPES=all, as `make recipes` sets it, that is a failure."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness.parallel import pytest_xdist_make_scheduler  # noqa: E402, F401
from harness.provider import Provider  # noqa: E402
from recipe import Recipe  # noqa: E402


@pytest.fixture
def recipe(tmp_path):
    """recipe(name, ports) places one in a folder of the test's own; what it starts ends with the test."""
    placed = []

    def place(name, **how):
        folder = tmp_path / str(len(placed)) / name
        folder.parent.mkdir()
        placed.append(Recipe(name, folder, **how))
        return placed[-1]

    yield place
    for one in placed:
        one.stop()


@pytest.fixture
def provider(tmp_path):
    """The service, where the recipe has none of its own: it never forgets an effect."""
    one = Provider(tmp_path / "ledger")
    yield one
    one.close()
