"""Fixtures of the fault tests. The program is HAPAX_BIN_STEPS, a build with
-Dsteps=true, which can be told to die or stop at a named step; what needs no
step also runs with it, so that one build is judged here."""
import os
import pathlib
import random
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness.gateway import Gateway, binary  # noqa: E402
from harness.parallel import pytest_xdist_make_scheduler  # noqa: E402, F401
from timed_ledger import TimedProvider  # noqa: E402


OWED = ("async_", "job_", "reconcile_")
# Of the client, which is another process: test_call.py.
CALL = ("call_",)
# Of SQLite's generations, which open, close and go beside the requests: test_crash.py.
GENERATION = ("generation_", "filter_")
# Of what the reaper leaves behind of operations that expired: test_crash.py. Those of the
# first tuple are SQLite's alone.
EXPIRY_SQLITE = ("expired_moved", "aside_reaped")
EXPIRY = (*EXPIRY_SQLITE, "reap_done")


def steps():
    """The named steps of the program, in the order of a request's way."""
    program = binary(steps=True)
    if not os.access(program, os.X_OK):
        return []
    done = subprocess.run([program, "version", "--steps"], capture_output=True, text=True, check=True)
    return [line.split("\t")[0] for line in done.stdout.splitlines() if line]


def pytest_generate_tests(metafunc):
    """`step`: of a request that is forwarded; `owed_step`: of one that is delivered
    later, and of the question what became of it; `generation_step`: of the generations
    that requests are stored in; `expiry_step`: of the reaper, with the store."""
    owed = [step for step in steps() if step.startswith(OWED)]
    if "step" in metafunc.fixturenames:
        metafunc.parametrize("step", [s for s in steps() if not s.startswith(OWED + CALL + GENERATION + EXPIRY)] or ["none"])
    if "generation_step" in metafunc.fixturenames:
        metafunc.parametrize("generation_step", [s for s in steps() if s.startswith(GENERATION)] or ["none"])
    if "expiry_step" in metafunc.fixturenames:
        found = [s for s in steps() if s.startswith(EXPIRY)] or ["none"]
        metafunc.parametrize("expiry_store, expiry_step", [("sqlite", s) for s in found] + [
            ("postgres", s) for s in found if not s.startswith(EXPIRY_SQLITE)])
    if "owed_step" in metafunc.fixturenames:
        metafunc.parametrize("owed_step", owed or ["none"])


class Ground:
    """A provider, and a gateway that may die at any time."""

    def __init__(self, folder, config=None, wrap=()):
        self.provider = TimedProvider(folder / "ledger")
        self.gateway = Gateway(folder, self.provider.url, config, True, wrap)

    def close(self):
        self.gateway.kill()
        self.provider.close()
        self.gateway.check_log()


@pytest.fixture
def ground(tmp_path):
    """ground(config) makes a provider and a gateway that is not started yet."""
    if not os.access(binary(steps=True), os.X_OK):
        pytest.fail(f"{binary(steps=True)} is not there: build it with -Dsteps=true, "
                    "or set HAPAX_BIN_STEPS", pytrace=False)
    made = []

    def make(config=None, **how):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Ground(folder, config, **how))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def chance():
    """Randomness that can be had again: HAPAX_SEED is the seed that a failure printed."""
    seed = int(os.environ.get("HAPAX_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"HAPAX_SEED={seed}")
    return random.Random(seed)
