"""Shows that services of the usual frameworks, behind hapax as their recipes say, do
what is sent twice once, for the right caller, and know that caller's address whatever
the caller writes into X-Forwarded-For."""
import importlib.util

import pytest

import chain
from recipe import missing, require

PROGRAMS = {
    "express": ["node", "npm"],
    "flask": ["gunicorn"],
    "django": ["gunicorn"],
    "php-fpm": ["php-fpm8.2", "nginx"],
    "go": ["go"],
}
MODULES = {"flask": "flask", "django": "django"}


def require_module(name):
    """Of Debian's Python, which runs Debian's gunicorn."""
    if name and importlib.util.find_spec(name) is None:
        missing(f"not installed: python3-{name} (make recipes installs it)")


def payments(recipe, key=None):
    """The service's ledger: (key, address, scheme, amount) of each payment."""
    lines = [line.split("\t") for line in (recipe.folder / "payments.log").read_text().splitlines()]
    return [line for line in lines if key is None or line[0].strip('"') == key]


@pytest.mark.parametrize("name", PROGRAMS)
def test_framework(recipe, name):
    """From the page's own commands to the judge."""
    require(*PROGRAMS[name], "curl")
    require_module(MODULES.get(name))
    one = recipe(name, unprivileged=("php-fpm8.2", "nginx"))
    one.run("Start")
    said = one.run("Check")
    assert said.lower().count("idempotent-replayed: true") == 1 and said.lower().count(" 201 created") == 2, said
    assert [line[1:] for line in payments(one, "order-17")] == [["127.0.0.1", "http", "10"]]

    def arrived(key):
        return tuple(payments(one, key)[-1][1:3])

    def send(key, **how):
        return chain.post(one.port["8080"], key, **how)

    chain.judge(one, send, lambda key: len(payments(one, key)), arrived)
    assert {line[2] for line in payments(one)} == {"http"}
