"""Shows that `hapax verify` can fail: for each flaw of the flawed API the row
that it breaks is found broken, and no row that it does not touch. A judge that
cries wolf is no judge."""
import concurrent.futures

import pytest

from conftest import require_program
from harness.flawed.__main__ import kinds
from harness.flawed.control import Flawed
from harness.verify import described, verify
from test_flawed import RIGHT

# Rows that take no time: every flaw is judged by all of them.
QUICK = {
    "first", "retry", "retry_headers", "retry_cookie", "retry_marker", "expiry", "mismatch_body", "mismatch_query",
    "mismatch_path", "mismatch_method", "method_case", "method_override", "connection_named", "foreign_caller",
    "other_host", "other_endpoint", "tenants", "key_missing", "key_empty", "key_too_long",
    "key_repeated", "key_malformed", "new_key", "member_order", "white_space", "number_same", "number_traps",
    "binary_body", "binary_answer", "large_body", "large_answer", "client_error", "server_error", "outage",
    "get_alone", "delete_alone", "cut_before_answer",
}
# Rows that compare a replay with the first answer, among other things.
REPLAYED = {"retry", "connection_named", "foreign_caller", "other_endpoint", "tenants", "member_order", "white_space", "number_same", "binary_body",
            "binary_answer", "large_body", "large_answer", "client_error", "outage", "cut_before_answer"}
AT_ONCE = {"at_once_2", "at_once_10", "at_once_100"}
ADVISED = {"retry_marker", "retry_after", "expiry", "number_same"}
# How long an order takes, so that a crash finds what the flaw leaves open.
BUSY = {"memory_only": 0.005, "stuck_after_crash": 0.08, "no_reservation": 0.005, "answered_before_kept": 0.005}
# Each that is stuck is waited for until it counts as such: one crash is enough.
CRASHES = {"stuck_after_crash": 1}
AT_A_TIME = 4

# flaw: (rows that must be broken, rows that may be as well)
FLAWS = {
    "no_tenant": ({"tenants"}, set()),
    "no_path": ({"mismatch_path", "other_endpoint"}, set()),
    "key_is_all": ({"mismatch_body", "mismatch_path", "mismatch_query", "mismatch_method", "other_endpoint",
                    "method_override", "number_traps", "binary_body"}, set()),
    "no_method": ({"mismatch_method"}, set()),
    "no_query": ({"mismatch_query"}, set()),
    "no_override": ({"method_override"}, set()),
    "small_unguarded": ({"method_case"}, set()),
    "connection_strips": ({"connection_named"}, set()),
    "connection_takes_key": ({"connection_named"}, set()),
    "strangers_served": ({"foreign_caller"}, set()),
    "host_in_scope": ({"other_host"}, set()),
    "sites_share_keys": ({"other_host"}, set()),
    "attaches_silently": ({"mismatch_body", "number_traps", "binary_body"}, set()),
    "mismatch_executed": ({"mismatch_body", "mismatch_query"}, {"number_traps", "binary_body", "original_kept"}),
    "mismatch_is_conflict": ({"mismatch_body"}, {"mismatch_query"}),
    "mismatch_stored_over": ({"original_kept"}, set()),
    "order_is_mismatch": ({"member_order"}, set()),
    "space_is_mismatch": ({"white_space", "member_order", "number_same"}, set()),
    "numbers_as_doubles": ({"number_traps"}, set()),
    "numbers_as_text": ({"number_same"}, set()),
    "body_as_text": ({"binary_body"}, set()),
    "replays_cookie": ({"retry_cookie"}, set()),
    "binary_destroyed": ({"binary_answer"}, set()),
    "body_lost": ({"retry", "client_error"}, REPLAYED),
    "headers_lost": ({"retry_headers"}, {"expiry"}),
    "location_lost": ({"retry_headers"}, set()),
    "status_changed": ({"retry", "client_error"}, set()),
    "answer_made_anew": ({"retry", "client_error"}, REPLAYED),
    "too_large_runs_again": ({"large_answer"}, set()),
    "too_large_is_mismatch": ({"large_answer"}, set()),
    "guest_runs_again": ({"tenants"}, set()),
    "large_body_unprotected": ({"large_body"}, set()),
    "no_marker": ({"retry_marker"}, set()),
    "marker_on_all": ({"retry_marker"}, set()),
    "no_expiry": ({"expiry"}, set()),
    "expiry_is_past": ({"expiry"}, set()),
    "no_retry_after": ({"retry_after"}, set()),
    "client_error_forgotten": ({"client_error"}, set()),
    "server_error_releases": ({"server_error"}, set()),
    "outage_pinned": ({"outage"}, set()),
    "get_refused": ({"get_alone"}, set()),
    "get_replayed": ({"get_alone"}, set()),
    "get_replayed_silently": ({"get_alone"}, set()),
    "delete_refused": ({"delete_alone"}, set()),
    "delete_replayed": ({"delete_alone"}, set()),
    "delete_replayed_silently": ({"delete_alone"}, set()),
    "missing_key_executed": ({"key_missing"}, set()),
    "missing_key_breaks": ({"key_missing"}, set()),
    "empty_key_accepted": ({"key_empty"}, set()),
    "long_key_truncated": ({"key_too_long"}, set()),
    "long_key_breaks": ({"key_too_long"}, set()),
    "repeated_key_first_wins": ({"key_repeated"}, set()),
    "malformed_key_ignored": ({"key_malformed"}, set()),
    "bad_key_breaks": ({"key_malformed", "key_empty", "key_too_long", "key_repeated"}, set()),
    "new_key_refused": ({"new_key"}, set()),
    "check_then_act": (AT_ONCE, {"original_kept"}),
    "accepts_twice": (AT_ONCE, {"original_kept"}),
    "conflict_stored_over": ({"in_progress"}, AT_ONCE | {"waiter_gone", "original_kept"}),
    "conflict_breaks": ({"in_progress"}, AT_ONCE | {"waiter_gone"}),
    "conflict_pretends": ({"in_progress"}, AT_ONCE | {"waiter_gone"}),
    "lease_in_ms": ({"in_progress"}, {"waiter_gone"}),
    "waiter_deletes_claim": ({"waiter_gone"}, set()),
    "lock_left_by_read_error": ({"cut_head", "cut_half_body"}, set()),
    "half_body_executed": ({"cut_half_body"}, set()),
    "lock_lost_on_disconnect": ({"cut_whole_body"}, set()),
    "kept_once_delivered": ({"cut_before_answer"}, {"cut_whole_body"}),
    "memory_only": ({"crash_kept"}, {"crash_once"}),
    "stuck_after_crash": ({"crash_settled"}, set()),
    "no_reservation": ({"crash_once"}, set()),
    "answered_before_kept": ({"crash_kept"}, {"crash_once"}),
}
# The guarantees that a flaw breaks, where its rows stand for several or for others.
BROKEN = {
    "no_tenant": {5}, "key_is_all": {5}, "mismatch_executed": {2}, "mismatch_is_conflict": {0},
    "guest_runs_again": {2}, "too_large_runs_again": {2}, "too_large_is_mismatch": {4},
    "small_unguarded": {2}, "no_override": {5}, "connection_strips": {5}, "connection_takes_key": {2},
    "strangers_served": {5}, "host_in_scope": {2}, "sites_share_keys": {5}, "half_body_executed": {8},
    "lock_lost_on_disconnect": {2}, "kept_once_delivered": {2}, "stuck_after_crash": {8},
}
# Beside the quick rows, and held by the flaw.
BESIDE = {
    "waiter_deletes_claim": {"in_progress"},
    "no_retry_after": {"in_progress"},
    "lock_lost_on_disconnect": {"cut_head", "cut_half_body"},
    "stuck_after_crash": {"crash_once", "crash_kept"},
    "no_reservation": {"crash_settled"},
    "memory_only": {"crash_settled"},
    "answered_before_kept": {"crash_settled"},
}


def test_every_flaw_is_judged():
    assert sorted(FLAWS) == sorted(set(kinds()) - set(RIGHT))


def judge(folder, flaw, rows, dialect="ietf", busy=None, **over):
    """The report about this flaw."""
    only = [word for row in sorted(rows) for word in ("--only", row)]
    with Flawed(folder, flaw, dialect, busy=BUSY.get(flaw, 0) if busy is None else busy) as api:
        if flaw in BUSY:
            only += ["--crash-cmd", api.crash_cmd, "--start-cmd", api.start_cmd,
                     "--crashes", str(CRASHES.get(flaw, 4)), "--seed", "5"]
        return verify(folder, described(api.url, **over), "--dialect", dialect, *only)


def judge_flaw(folder, flaw):
    must, may = FLAWS[flaw]
    folder.mkdir()
    return judge(folder, flaw, (set() if flaw in BUSY else QUICK) | must | may | BESIDE.get(flaw, set()) | {"first"})


@pytest.fixture(scope="module")
def reports(request, tmp_path_factory):
    """All that are asked for, some at a time: most of a run is waiting."""
    require_program()
    folder = tmp_path_factory.mktemp("flaws")
    wanted = [item.callspec.params["flaw"] for item in request.session.items
              if item.module is request.module and item.originalname == "test_found"]
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {flaw: pool.submit(judge_flaw, folder / flaw, flaw) for flaw in wanted}


@pytest.mark.parametrize("flaw", FLAWS)
def test_found(reports, flaw):
    """The row is broken, and says so by the exit code where it is required."""
    must, may = FLAWS[flaw]
    report = reports[flaw].result()
    broken = report.named("broken")
    assert must <= broken <= must | may, f"broken: {sorted(broken)}\n{report}"
    assert not report.named("undecided"), f"{report}"
    assert report.code == (1 if broken - ADVISED else 0), f"{report}"
    assert report.document["holds"] == (report.code == 0)
    blamed = {g["number"] for g in report.document["guarantees"] if g["verdict"] == "broken"}
    assert blamed == BROKEN.get(flaw, blamed), f"{report.document['guarantees']}"


@pytest.mark.parametrize("flaw, row", [
    ("server_error_releases", "server_error"), ("no_tenant", "tenants"), ("attaches_silently", "mismatch_body"),
    ("mismatch_stored_over", "original_kept"), ("no_marker", "retry_marker"), ("bad_key_breaks", "key_malformed"),
])
def test_found_in_stripes_dialect(tmp_path, flaw, row):
    """Where the marker is no advice but required."""
    require_program()
    report = judge(tmp_path, flaw, {"first", "retry", row}, "stripe")
    assert report.named("broken") == {row} and report.code == 1, f"{report}"


@pytest.mark.parametrize("over", [{"effects": None}, {"effects": None, "resource": None}],
                         ids=["effects not counted", "answers alone"])
@pytest.mark.parametrize("flaw, row", [
    ("check_then_act", "at_once_10"), ("no_tenant", "tenants"), ("no_path", "mismatch_path"),
    ("attaches_silently", "mismatch_body"), ("lease_in_ms", "in_progress"), ("memory_only", "crash_kept"),
    ("numbers_as_doubles", "number_traps"), ("waiter_deletes_claim", "waiter_gone"),
])
def test_found_by_answers(tmp_path, flaw, row, over):
    """What two executions answer differs, also where nothing counts them."""
    require_program()
    report = judge(tmp_path, flaw, {"first", row}, **over)
    assert report.named("broken") == {row} and report.code == 1, f"{report}"


def test_found_where_orders_are_only_accepted(tmp_path):
    """Two that are accepted at the same moment are two, and none is "in progress"."""
    require_program()
    report = judge(tmp_path, "accepts_twice", {"first", "at_once_10"}, effects=None)
    assert report.named("broken") == {"at_once_10"} and report.code == 1, f"{report}"


def test_another_status_is_no_second_effect(tmp_path):
    """A replay that is 200 and not 201 breaks what is said of replays, and nothing else."""
    require_program()
    report = judge(tmp_path, "status_changed", {"first", "retry", "cut_half_body"} | AT_ONCE)
    assert report.named("broken") == {"retry"}, f"{report}"
    verdicts = {g["number"]: g["verdict"] for g in report.document["guarantees"]}
    assert (verdicts[2], verdicts[4], verdicts[8]) == ("holds", "broken", "holds"), verdicts


def test_effects_of_a_round(tmp_path):
    """Where all effects are counted together, no operation is named for a second one."""
    require_program()
    report = judge(tmp_path, "no_reservation", {"first", "crash_once"}, effects={"get": "/count", "count": "/effects"})
    row = report.rows["crash_once"]
    assert row["verdict"] == "broken" and "for 8 operations" in row["came"] and not row["exchanges"], f"{report}"


def test_a_slow_api_forgets_too(tmp_path):
    """An order takes longer than any moment before a crash: one is answered all the same,
    and is not known behind it."""
    require_program()
    report = judge(tmp_path, "memory_only", {"first", "crash_kept"}, busy=0.15)
    assert report.named("broken") == {"crash_kept"} and report.code == 1, f"{report}"


@pytest.mark.parametrize("flaw, over, pays, guarantee_2", [
    ("check_then_act", {}, True, "broken"),
    ("check_then_act", {"effects": None}, False, "broken"),
    ("conflict_breaks", {}, False, "holds"),
    ("conflict_pretends", {}, False, "holds"),
], ids=["two effects", "effects not counted", "a server error", "another answer"])
def test_who_pays_twice(tmp_path, flaw, over, pays, guarantee_2):
    """A crowd's row says that somebody pays again only where two effects were
    counted, and blames what it saw otherwise."""
    require_program()
    report = judge(tmp_path, flaw, {"first"} | AT_ONCE, busy=0.05, **over)
    assert report.named("broken") == AT_ONCE, f"{report}"
    for row in AT_ONCE:
        assert ("pays" in report.rows[row]["why"]) == pays, report.rows[row]
    verdicts = {g["number"]: g["verdict"] for g in report.document["guarantees"]}
    assert verdicts[2] == guarantee_2 and "broken" in verdicts.values(), verdicts


def test_no_keys_at_all(tmp_path):
    """An API that ignores keys breaks whatever is about keys."""
    require_program()
    report = judge(tmp_path, "keyless", QUICK | AT_ONCE)
    assert report.code == 1
    assert {"retry", "mismatch_body", "key_missing", "at_once_10"} <= report.named("broken"), f"{report}"
    assert {"first", "new_key", "get_alone", "delete_alone"} <= report.named("holds"), f"{report}"
