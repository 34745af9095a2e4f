"""Fixtures of the recipes' tests. The program is HAPAX_BIN, or build/hapax under the
source root. A recipe whose programs are not installed is skipped, and the reason says
what is missing; with HAPAX_RECIPES=all, as `make recipes` sets it, that is a failure."""
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness.parallel import pytest_xdist_make_scheduler  # noqa: E402, F401
from harness.provider import Provider  # noqa: E402
from recipe import Recipe  # noqa: E402


@pytest.fixture
def recipe():
    """recipe(name) places one in a folder of the test's own, which other users may enter; what it starts
    ends with the test."""
    placed, folders = [], []

    def place(name, **how):
        folders.append(tempfile.mkdtemp(prefix="hapax-recipe-"))
        os.chmod(folders[-1], 0o755)
        placed.append(Recipe(name, pathlib.Path(folders[-1]) / name, **how))
        return placed[-1]

    yield place
    try:
        for one in placed:
            one.stop()
    finally:
        for folder in folders:
            shutil.rmtree(folder)


@pytest.fixture
def provider(tmp_path):
    """The service, where the recipe has none of its own: it never forgets an effect."""
    one = Provider(tmp_path / "ledger")
    yield one
    one.close()
