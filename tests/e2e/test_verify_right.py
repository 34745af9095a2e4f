"""Shows that `hapax verify` lets everybody pass who is right: an API with keys of
its own, in both dialects and in other ways that are as right, and the examples.
Servers are killed and started again where that is part of it."""
import os
import shlex
import shutil

import pytest

from conftest import require_program
from harness import postgres
from harness.flawed.control import Flawed
from harness.payments import House, install_node, program
from harness.verify import described, holds, verify

CRASHES = {"crash_once", "crash_kept", "crash_settled"}


# An API that keeps its own keys.
@pytest.mark.parametrize("dialect, asked, not_applicable", [
    ("ietf", "ietf", set()),
    ("ietf", "auto", set()),
    ("stripe", "stripe", {"outage"}),
    ("stripe", "auto", {"outage"}),
])
def test_right_by_itself(tmp_path, dialect, asked, not_applicable):
    """All rows, and the dialect is found out where it is not told."""
    require_program()
    with Flawed(tmp_path, "plain", dialect) as api:
        report = verify(tmp_path, described(api.url), "--dialect", asked)
    holds(report, not_applicable=not_applicable | CRASHES)
    assert report.document["dialect"] == dialect


@pytest.mark.parametrize("kind, over, not_applicable", [
    ("waits", {}, {"retry_after"}),
    ("order_once", {"second_tenant": None}, {"new_key", "tenants"}),
    ("limited", {"limits": {"settle": "20s", "timeout": "10s"}}, set()),
    ("slow_limited", {}, set()),
    ("plain", {"effects": {"get": "/count", "count": "/effects"}}, set()),
    ("plain", {"effects": None}, {"server_error"}),
    ("plain", {"effects": None, "resource": None}, {"server_error"}),
], ids=["waits", "an order once", "limited", "slow limited", "all effects counted together",
        "effects not counted", "answers alone"])
def test_right_however_it_is_looked_at(tmp_path, kind, over, not_applicable):
    """Whatever the description lacks, nobody is called wrong for it."""
    require_program()
    with Flawed(tmp_path, kind) as api:
        report = verify(tmp_path, described(api.url, **over))
    holds(report, not_applicable=not_applicable | CRASHES)


def test_right_in_few_words(tmp_path):
    """A 409 without a word of why is an answer too: only the advice is missed."""
    require_program()
    with Flawed(tmp_path, "terse", busy=0.05) as api:
        report = verify(tmp_path, described(api.url))
    assert report.code == 0 and not report.named("undecided"), f"{report}"
    assert report.named("broken") == {"retry_after"}, f"{report}"


@pytest.mark.parametrize("kind", ["plain", "waits", "in_doubt"])
def test_right_through_crashes(tmp_path, kind):
    """Killed again and again, and nothing is lost, doubled or stuck."""
    require_program()
    rows = ["first", "in_progress", "waiter_gone", "at_once_10", *sorted(CRASHES)]
    with Flawed(tmp_path, kind, busy=0.02) as api:
        report = verify(tmp_path, described(api.url), "--crash-cmd", api.crash_cmd, "--start-cmd", api.start_cmd,
                        "--crashes", "6", *[word for row in rows for word in ("--only", row)])
        assert len(api.ledger()) > 6
    assert report.code == 0 and report.named("holds") == set(rows), f"{report}"


def only(rows):
    return [word for row in ["first", *rows] for word in ("--only", row)]


# Headers that do not say which order it is.
BARE = ["Authorization: {{env:VERIFY_ALICE}}", "Content-Type: application/json"]


@pytest.mark.parametrize("kind, over, row, verdict", [
    ("uploads", {"headers": BARE}, "binary_body", "holds"),
    ("unlisted", {}, "binary_body", "holds"),
    ("any_case", {}, "method_case", "holds"),
    ("sites", {}, "other_host", "holds"),
    ("open", {}, "foreign_caller", "not_applicable"),
    ("open", {"headers": ["Content-Type: application/json"], "second_tenant": None}, "foreign_caller",
     "not_applicable"),
    ("opaque", {}, "key_empty", "holds"),
    ("opaque", {}, "key_malformed", "holds"),
])
def test_right_in_another_way(tmp_path, kind, over, row, verdict):
    """What a row would take for a mistake if it knew one way only."""
    require_program()
    with Flawed(tmp_path, kind) as api:
        report = verify(tmp_path, described(api.url, **over), *only(["mismatch_body", row]))
    assert report.rows[row]["verdict"] == verdict, f"{report}"
    assert report.code == 0, f"{report}"


@pytest.mark.parametrize("over", [{}, {"effects": None}, {"effects": None, "requests": {}}],
                         ids=["effects", "a GET", "neither"])
def test_who_starts_again_is_asked_nothing_else(tmp_path, over):
    """By the GET of the effects, by the description's own, or by a connection: a GET
    of the payments' path makes one here."""
    require_program()
    with Flawed(tmp_path, "get_has_effects", busy=0.02) as api:
        report = verify(tmp_path, described(api.url, **over), *only(sorted(CRASHES)), "--crashes", "2",
                        "--crash-cmd", api.crash_cmd, "--start-cmd", api.start_cmd)
        assert not api.ledger("by a GET")
    assert report.code == 0 and report.named("holds") == {"first"} | CRASHES, f"{report}"


def test_a_server_may_rise_slowly(tmp_path):
    """A 500 behind a start is no last word while there is time to settle."""
    require_program()
    with Flawed(tmp_path, "slow_to_rise", busy=0.02) as api:
        report = verify(tmp_path, described(api.url), *only(sorted(CRASHES)), "--crashes", "2",
                        "--crash-cmd", api.crash_cmd, "--start-cmd", api.start_cmd)
        assert api.ledger()
    assert report.code == 0 and report.named("holds") == {"first"} | CRASHES, f"{report}"


# The examples.
def order(house, folder):
    """The description of their POST /payments. Where there are effects, no GET
    counts them: that is the provider's ledger, which is looked at afterwards."""
    port = house.gateway.port if house.gateway else house.port
    pid = folder / "service.pid"
    pid.write_text(str(house.service.process.pid))
    body = '{"customer": "cus_{{n}}", "amount": 1250, "currency": "EUR"}'
    return {
        "url": f"http://127.0.0.1:{port}/payments",
        "headers": ["Authorization: Bearer test_key_alice"],
        "body": body,
        "resource": "/id",
        "second_tenant": ["Authorization: Bearer test_key_bob"],
        "dialect": "ietf",
        "limits": {"settle": "20s", "timeout": "20s"},
        "requests": {"client_error": {"method": "POST", "path": "/payments",
                                      "body": body.replace("1250", "1000000")}},
        "crash": {"kill": f'kill -9 "$(cat {shlex.quote(str(pid))})"', "times": 3,
                  "start": f"echo $$ >{shlex.quote(str(pid))} && exec {shlex.join(house.command())}"},
    }


# What their API has nothing for.
LACKS = {"retry_cookie", "other_endpoint", "in_progress", "waiter_gone", "binary_body", "binary_answer",
         "large_answer", "server_error", "outage", "delete_alone"}


@pytest.mark.parametrize("name, lacks, unadvised", [
    ("sqlite-direct", {"number_same", "number_traps", "method_override"}, {"expiry"}),
    ("sqlite-gateway", {"number_traps"}, set()),
    ("postgres-node", set(), set()),
])
def test_the_examples(tmp_path, name, lacks, unadvised):
    """Every row that their API has something for."""
    require_program()
    kind, way = name.split("-")
    if not os.access(program("payments"), os.X_OK):
        pytest.skip("the examples were not built: meson option `examples`")
    if kind == "postgres" and postgres.programs() is None:
        pytest.skip("PostgreSQL is not installed")
    if way == "node" and (not shutil.which("npm") or install_node(tmp_path)):
        pytest.skip("the packages of the Node example cannot be installed")
    house = House(tmp_path, kind, way)
    try:
        report = verify(tmp_path, order(house, tmp_path))
        house.ledger()  # says so where the provider did an order twice
    finally:
        house.close()
    # Whether two of a crowd meet is up to chance, and with it this row.
    by_chance = {"retry_after"}
    assert report.code == 0, f"{report}"
    assert report.named("broken") == unadvised and not report.named("undecided"), f"{report}"
    assert report.named("not_applicable") - by_chance == LACKS | lacks, f"{report}"
