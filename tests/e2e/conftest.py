"""Fixtures of the whole-program tests. The program is HAPAX_BIN, or
build/hapax under the source root.

Tests run side by side (pytest -n, as tools/test calls it): several on this machine
at the same moment, in any order, each process with its own ports (free_port), folders
(tmp_path) and PostgreSQL (harness.postgres). So a test takes no fixed port or path,
writes nothing into the source tree, kills only what it started, and asks for no more
time than it needs on a busy machine to be right: it waits for an event, up to a bound
that is generous. What takes ten seconds goes on the list in harness/parallel.py."""
import os
import re
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness import postgres  # noqa: E402
from harness.gateway import Gateway, binary  # noqa: E402
from harness.parallel import pytest_xdist_make_scheduler  # noqa: E402, F401
from harness.provider import Provider  # noqa: E402


# What is about SQLite's file, by test; HAPAX_E2E_STORE=postgres runs the rest.
SQLITE_ONLY = {
    "the test locks SQLite's file": r"store_is_locked|behind_a_reload_that_waits|commits_while_stopping|"
                                    r"test_stored_late|test_reserved_late|forwarded_for_of_a_client_that_left",
    "the test reads or damages SQLite's file": r"unreadable_is_unknown_everywhere|test_drain_ends|"
                                               r"test_reaped|test_damaged_record|test_somebody_elses_file|"
                                               r"record_of_an_older_recipe",
    "on PostgreSQL there may be many servers": r"one_server_per_file|migrate_beside_a_server|test_repair|test_file_mode",
    "among many, only its lease tells that an owner is dead": r"test_dead_owner|lost_leases_are_counted",
}


def pytest_collection_modifyitems(items):
    if not postgres.chosen():
        return
    for item in items:
        for reason, names in SQLITE_ONLY.items():
            if re.search(names, item.name):
                item.add_marker(pytest.mark.skip(reason=reason))


def require_program(steps=False):
    if not os.access(binary(steps), os.X_OK):
        how = "build it with -Dsteps=true, or set HAPAX_BIN_STEPS" if steps else "build it, or set HAPAX_BIN"
        pytest.fail(f"{binary(steps)} is not there: {how}", pytrace=False)


class Site:
    """A provider with a gateway before it; the gateway answers for it."""

    def __init__(self, folder, config=None, steps=False, wrap=(), unix_upstream=False):
        path = folder / "upstream.sock" if unix_upstream else None
        self.provider = Provider(folder / "ledger", path)
        self.gateway = Gateway(folder, self.provider.url, config, steps, wrap)

    def __enter__(self):
        try:
            self.gateway.start()
        except BaseException:
            self.provider.close()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.gateway.stop()
        finally:
            self.gateway.kill()
            self.provider.close()


@pytest.fixture
def site(tmp_path):
    """site(config) starts a provider and a gateway of this test's own."""
    require_program()
    running = []

    def start(config=None, **how):
        folder = tmp_path / str(len(running))
        folder.mkdir()
        one = Site(folder, config, **how)
        one.__enter__()
        running.append(one)
        return one

    yield start
    failures = []
    for one in running:
        try:
            one.__exit__()
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)


@pytest.fixture(scope="module")
def shared(request, tmp_path_factory):
    """One site for all rows of a module; its CONFIG, if the module has one."""
    require_program()
    config = getattr(request.module, "CONFIG", None)
    with Site(tmp_path_factory.mktemp("shared"), config) as one:
        yield one


@pytest.fixture
def gateway(shared):
    return shared.gateway


@pytest.fixture
def provider(shared):
    return shared.provider
