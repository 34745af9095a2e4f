"""Fixtures of the whole-program tests. The program is HAPAX_BIN, or
build/hapax under the source root."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from harness.gateway import Gateway, binary  # noqa: E402
from harness.provider import Provider  # noqa: E402


def require_program(steps=False):
    if not os.access(binary(steps), os.X_OK):
        pytest.fail(f"{binary(steps)} is not there: build it, or set HAPAX_BIN", pytrace=False)


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
