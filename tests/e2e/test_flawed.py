"""Shows that the flawed API has each of its flaws, and that the right one has
none: the same look is taken at both, and what is seen differs. Otherwise a judge
that finds nothing would be right by accident."""
import pytest

from harness.flawed import probe
from harness.flawed.__main__ import kinds
from harness.flawed.control import Flawed
from harness.secret import BOB

BUSY = 0.3
RIGHT = ["plain", "waits", "in_doubt", "terse", "echoes", "order_once", "limited", "slow_limited", "keyless",
         "uploads", "unlisted", "any_case", "sites", "open", "opaque", "get_has_effects", "slow_to_rise"]

# flaw: (look, what the right one shows, what this one shows)
LOOKS = {
    "no_tenant": (probe.two_tenants, (201, 2), (201, 1)),
    "no_path": (probe.another(path="/refunds"), (201, 2), (201, 1)),
    "key_is_all": (probe.another(path="/refunds", amount="11"), (201, 2), (201, 1)),
    "no_method": (probe.another(method="PUT"), (405, 1), (201, 1)),
    "no_query": (probe.another(path="/payments?a=b"), (422, 1), (201, 1)),
    "no_override": (probe.another(fields=[("X-HTTP-Method-Override", "PATCH")]), (422, 1), (201, 1)),
    "small_unguarded": (probe.another(method="post"), (405, 1), (201, 2)),
    "connection_strips": (probe.named("Authorization"), (201, 201, 1), (401, 401, 0)),
    "connection_takes_key": (probe.named("Idempotency-Key"), (201, 201, 1), (201, 201, 2)),
    "strangers_served": (probe.another(auth="Bearer nobody"), (401, 1), (201, 1)),
    "host_in_scope": (probe.another(host="other.example"), (201, 1), (201, 2)),
    "sites_share_keys": (probe.alone(host="other.example"), (201, 1), (201, 0)),
    "attaches_silently": (probe.another(amount="11"), (422, 1), (201, 1)),
    "mismatch_executed": (probe.another(amount="11"), (422, 1), (201, 2)),
    "mismatch_is_conflict": (probe.another(amount="11"), (422, 1), (409, 1)),
    "mismatch_stored_over": (probe.after_mismatch, 201, 422),
    "order_is_mismatch": (probe.rewritten('{"amount": 10, "order": "ORDER"}'), (201, 1), (422, 1)),
    "space_is_mismatch": (probe.rewritten('{"order":"ORDER","amount":10}'), (201, 1), (422, 1)),
    "numbers_as_doubles": (probe.trap, 422, 201),
    "numbers_as_text": (probe.rewritten('{"order": "ORDER", "amount": 10.0}'), (201, 1), (422, 1)),
    "body_as_text": (probe.bytes_changed, (422, 1), (201, 1)),
    "replays_cookie": (probe.both("/payments", "Set-Cookie"), (True, False), (True, True)),
    "binary_destroyed": (probe.again("/picture", lambda a: a.body), (True, 1), (False, 1)),
    "body_lost": (probe.again("/payments", lambda a: a.body), (True, 1), (False, 1)),
    "headers_lost": (probe.again("/payments", lambda a: a["Content-Type"]), (True, 1), (False, 1)),
    "location_lost": (probe.again("/payments", lambda a: a["Location"]), (True, 1), (False, 1)),
    "status_changed": (probe.again("/payments", lambda a: a.status), (True, 1), (False, 1)),
    "answer_made_anew": (probe.again("/payments", lambda a: a.body), (True, 1), (False, 1)),
    "too_large_runs_again": (probe.again("/export", lambda a: a.body), (True, 1), (False, 2)),
    "too_large_is_mismatch": (probe.statuses("/export"), (200, 200, 1), (200, 422, 1)),
    "guest_runs_again": (probe.again("/payments", lambda a: a.body, auth=BOB), (True, 1), (True, 2)),
    "large_body_unprotected": (probe.large_body, (201, 1), (201, 2)),
    "no_marker": (probe.both("/payments", "Idempotent-Replayed"), (False, True), (False, False)),
    "marker_on_all": (probe.both("/payments", "Idempotent-Replayed"), (False, True), (True, True)),
    "no_expiry": (probe.expiry, True, None),
    "expiry_is_past": (probe.expiry, True, False),
    "no_retry_after": (probe.while_running, (409, 201, 1, True), (409, 201, 1, False)),
    "client_error_forgotten": (probe.again("/refuse", lambda a: a.body), (True, 0), (False, 0)),
    "server_error_releases": (probe.statuses("/fails"), (500, 500, 1), (500, 500, 2)),
    "outage_pinned": (probe.statuses("/outage"), (503, 201, 1), (503, 503, 0)),
    "get_refused": (probe.plainly("GET", "/hours"), 200, 400),
    "get_replayed": (probe.keyed_twice("GET", "/hours"), (False, 200), (True, 200)),
    "get_replayed_silently": (probe.list_grows, True, False),
    "delete_refused": (probe.plainly("DELETE", "/payments/x"), 204, 400),
    "delete_replayed": (probe.keyed_twice("DELETE", "/payments/NEW"), (False, 404), (True, 204)),
    "delete_replayed_silently": (probe.keyed_twice("DELETE", "/payments/NEW"), (False, 404), (False, 204)),
    "missing_key_executed": (probe.with_key(None), (400, 0), (201, 1)),
    "missing_key_breaks": (probe.with_key(None), (400, 0), (500, 0)),
    "empty_key_accepted": (probe.with_key('""'), (400, 0), (201, 1)),
    "long_key_truncated": (probe.long_keys, ([400, 400], 0), ([201, 201], 1)),
    "long_key_breaks": (probe.long_keys, ([400, 400], 0), ([500, 500], 0)),
    "repeated_key_first_wins": (probe.repeated, (400, 0), (201, 1)),
    "malformed_key_ignored": (probe.with_key('"open'), (400, 0), (201, 1)),
    "bad_key_breaks": (probe.with_key('"open'), (400, 0), (500, 0)),
    "new_key_refused": (probe.another(key="another"), (201, 2), (400, 1)),
    "check_then_act": (probe.at_once, 1, 10),
    "accepts_twice": (probe.at_once, 1, 10),
    "conflict_stored_over": (probe.while_running, (409, 201, 1, True), (409, 409, 1, True)),
    "conflict_breaks": (probe.while_running, (409, 201, 1, True), (500, 201, 1, False)),
    "conflict_pretends": (probe.while_running, (409, 201, 1, True), (201, 201, 1, False)),
    "lease_in_ms": (probe.while_running, (409, 201, 1, True), (201, 201, 2, False)),
    "waiter_deletes_claim": (probe.waiter_leaves, (409, 1), (201, 2)),
    "lock_left_by_read_error": (probe.half_body, (201, 1), (409, 0)),
    "half_body_executed": (probe.half_body, (201, 1), (422, 1)),
    "lock_lost_on_disconnect": (probe.gone_at_once, (201, 1), (201, 2)),
    "kept_once_delivered": (probe.answer_unread, (201, 1), (201, 2)),
    "memory_only": (probe.crashed("answered"), (201, 1), (201, 2)),
    "stuck_after_crash": (probe.crashed("reserved"), (201, 1), (409, 0)),
    "no_reservation": (probe.crashed("done"), (201, 1), (201, 2)),
    "answered_before_kept": (probe.changed_by_a_crash, False, True),
}
CRASHES = {"memory_only", "stuck_after_crash", "no_reservation", "answered_before_kept"}


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with Flawed(tmp_path_factory.mktemp("plain")) as one:
        yield one


def test_every_flaw_is_looked_for():
    assert sorted(LOOKS) == sorted(set(kinds()) - set(RIGHT))


@pytest.mark.parametrize("flaw", sorted(set(LOOKS) - CRASHES))
def test_a_flaw_is_there(plain, tmp_path, flaw):
    look, right, wrong = LOOKS[flaw]
    with Flawed(tmp_path, flaw) as api:
        assert look(api) == wrong
    assert look(plain) == right


@pytest.mark.parametrize("flaw", sorted(CRASHES))
def test_a_flaw_is_there_after_a_crash(tmp_path, flaw):
    look, right, wrong = LOOKS[flaw]
    for kind, expected in (("plain", right), (flaw, wrong)):
        folder = tmp_path / kind
        folder.mkdir()
        with Flawed(folder, kind, busy=BUSY) as api:
            assert look(api) == expected, kind


def test_in_doubt_says_so(tmp_path):
    """After a crash between effect and record, nothing is executed again."""
    with Flawed(tmp_path, "in_doubt", busy=BUSY) as api:
        assert probe.crashed("done")(api) == (409, 1)


@pytest.mark.parametrize("dialect, mismatch", [("ietf", 422), ("stripe", 400)])
@pytest.mark.parametrize("kind", RIGHT[:4])
def test_the_right_ones(tmp_path, kind, dialect, mismatch):
    """Whatever else they do, the first answer comes again and another body is
    refused; a key is needed, or not, as the dialect has it."""
    with Flawed(tmp_path, kind, dialect) as api:
        assert probe.again("/payments", lambda a: (a.status, a.body, a["Location"]))(api) == (True, 1)
        assert probe.another(amount="11")(api) == (mismatch, 1)
        assert probe.with_key(None)(api) == ((400, 0) if dialect == "ietf" else (201, 1))
        assert probe.at_once(api) == 1
        assert probe.statuses("/fails")(api) == (500, 500, 1)


def test_waits(tmp_path):
    """The one that waits gives the retry the first one's answer."""
    with Flawed(tmp_path, "waits") as api:
        assert probe.while_running(api) == (201, 201, 1, False)
        assert probe.waiter_leaves(api) == (201, 1)
