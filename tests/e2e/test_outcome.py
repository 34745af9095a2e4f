"""Shows what becomes of an operation after each way its attempt can end, row by
row of the table of outcomes, and what a retry gets then; the ledger is the judge."""
import pytest

from harness import check
from harness.conclude import AGAIN, REPLAY, UNKNOWN, conclude
from harness.secret import new_key

CONFIG = {
    "timeouts": {"first_byte": "1s", "idle": "1s"},
    "routes": [
        {"match": "POST /replay", "server_error": "replay"},
        {"match": "POST /unknown", "server_error": "unknown"},
        {"match": "POST /retry", "server_error": "retry"},
    ],
}


@pytest.mark.parametrize("status", [200, 201, 202, 204, 301, 303, 307, 400, 402, 404, 405, 409, 410,
                                    412, 413, 415, 418, 422, 428, 451])
def test_answered(shared, status):
    """2xx, 3xx, 4xx: completed, and every retry gets the answer."""
    conclude(shared, "/pay", f"status={status}; effect=yes", status, REPLAY)


@pytest.mark.parametrize("behave, status", [
    ("status=408", 408), ("status=425", 425), ("status=429", 429),
    ("status=429; header=Retry-After:7", 429), ("status=503; header=Retry-After:7", 503),
])
def test_not_executed(shared, behave, status):
    """Answers that prove nothing happened: the retry is executed, as attempt 2."""
    conclude(shared, "/unknown", behave, status, AGAIN)


@pytest.mark.parametrize("status", [401, 403, 407, 421])
def test_released(shared, status):
    """Who was not let in leaves no record: the key is free, for any request."""
    gateway, provider, key = shared.gateway, shared.provider, new_key()
    first = gateway.post(key=key, behave=f"status={status}")
    assert first.status == status and not first.replayed
    assert gateway.operation(first["Hapax-Operation"]).status == 404
    second = gateway.post(key=key, body=b'{"quite": "another s3cr3t"}')
    assert second.status == 200 and not second.replayed, second
    assert second["Hapax-Operation"] != first["Hapax-Operation"]
    assert [r["Hapax-Attempt"] for r in provider.seen(key=key)] == ["1", "1"]


def test_released_later_attempt(shared):
    """Only a first attempt leaves nothing: a later one keeps the record, and its number."""
    gateway, provider, key = shared.gateway, shared.provider, new_key()
    rows = [gateway.post(key=key, behave=f"status={s}").status for s in (429, 403, 200)]
    assert rows == [429, 403, 200]
    assert [r["Hapax-Attempt"] for r in provider.seen(key=key)] == ["1", "2", "3"]


@pytest.mark.parametrize("path", ["/retry", "/replay", "/unknown"])
@pytest.mark.parametrize("status", [502, 504])
def test_somebody_further_on_lost_it(shared, path, status):
    """502 and 504 from the upstream: unknown, whatever the route says of 5xx."""
    conclude(shared, path, f"status={status}; effect=yes", status, UNKNOWN)


@pytest.mark.parametrize("status", [500, 501, 503, 507, 599])
@pytest.mark.parametrize("path, after", [
    ("/pay", AGAIN), ("/retry", AGAIN), ("/replay", REPLAY), ("/unknown", UNKNOWN),
])
def test_server_error(shared, path, after, status):
    """Other 5xx: what the route says."""
    conclude(shared, path, f"status={status}", status, after)


@pytest.mark.parametrize("path, behave, event, why", [
    ("/pay", "status=500", "assumed_not_executed", "nobody has said what a 5xx means here; "
                                                   "server_error: retry, the default"),
    ("/retry", "status=500", "assumed_not_executed", "server_error: retry takes a 5xx for rolled back"),
    ("/unknown", "status=500", "outcome_unknown", "server_error: unknown says that it may have happened"),
    ("/pay", "status=429", "not_executed", "the upstream's answer"),
    ("/pay", "status=500; header=Hapax-Outcome:not-applied", "not_executed", "Hapax-Outcome"),
    ("/pay", "status=502", "outcome_unknown", "somebody behind the upstream lost an answer"),
])
def test_the_log_tells_what_was_assumed(shared, path, behave, event, why):
    """What a route takes a 5xx for is no fact: the log says so, and who said it."""
    since = len(shared.gateway.lines)
    answer = shared.gateway.post(path, behave=behave)
    line = shared.gateway.wait_log(f"operation={answer['Hapax-Operation']}", since=since)
    assert f"event={event} " in line and why in line, line


@pytest.mark.parametrize("path, behave, runs_again", [
    ("/pay", "status=200", False), ("/pay", "status=422", False), ("/replay", "status=500", False),
    ("/pay", "status=429", True), ("/pay", "status=401", True), ("/pay", "status=500", True),
    ("/pay", "status=200; header=Hapax-Outcome:not-applied", True),
    ("/pay", "status=503; header=Retry-After:1", True),
])
def test_no_expiry_where_a_retry_runs(shared, path, behave, runs_again):
    """`Idempotency-Expires` says until when the key is kept; where the next request
    with it is executed, it is kept for nothing."""
    answer = shared.gateway.post(path, behave=behave)
    assert answer["Hapax-Operation"], answer
    assert (answer["Idempotency-Expires"] is None) == runs_again, answer


@pytest.mark.parametrize("said, status, after", [
    ("applied", 500, REPLAY), ("applied", 429, REPLAY), ("applied", 401, REPLAY),
    ("applied", 502, REPLAY), ("not-applied", 200, AGAIN), ("not-applied", 422, AGAIN),
    ("not-applied", 502, AGAIN), ("unknown", 200, UNKNOWN), ("unknown", 429, UNKNOWN),
    ("unknown", 403, UNKNOWN),
])
def test_hapax_outcome(shared, said, status, after):
    """The upstream's own word overrides the status, and does not travel on."""
    conclude(shared, "/unknown", f"status={status}; effect=no; header=Hapax-Outcome:{said}", status, after)


LOST = {
    "nonsense": b"who knows\r\n\r\n",
    "nothing": b"",
    "half a status line": b"HTTP/1.1 20",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
    "half a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345",
    "no last chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n",
    "bad chunk size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n12345\r\n0\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    "length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                         b"5\r\n12345\r\n0\r\n\r\n",
    "odd length": b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n12345",
    "status 99": b"HTTP/1.1 099 What\r\nContent-Length: 0\r\n\r\n",
    "status 1000": b"HTTP/1.1 1000 What\r\nContent-Length: 0\r\n\r\n",
    "another protocol": b"HTTP/3.0 200 OK\r\nContent-Length: 0\r\n\r\n",
    "bare LF": b"HTTP/1.1 200 OK\nContent-Length: 5\n\n12345",
    "a folded header": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\n12345",
    "only 1xx": b"HTTP/1.1 103 Early Hints\r\n\r\n",
    "a switch nobody asked for": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "endless head": b"HTTP/1.1 200 OK\r\n" + b"X-Fill: " + b"y" * 2000000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("name", LOST)
def test_no_complete_answer(shared, name):
    """Bytes went out and no complete answer came back: unknown."""
    shared.provider.raws[name] = LOST[name]
    conclude(shared, "/pay", f"raw={name}", (502, 504), UNKNOWN, "upstream_outcome_unknown")


@pytest.mark.parametrize("path, behave, error", [
    ("/pay", "status=429", "status_429"), ("/pay", "status=500", "status_500"),
    ("/unknown", "status=507", "status_5xx"), ("/pay", "status=502", "status_502"),
    ("/pay", "status=200; header=Hapax-Outcome:not-applied", "status_other"),
    ("/pay", "reset=after", "upstream_reset"), ("/pay", "half-body", "upstream_reset"),
    ("/pay", "raw=nonsense", "upstream_invalid"), ("/pay", "no-answer", "upstream_timeout"),
])
def test_last_error(shared, path, behave, error):
    """What went wrong is one word, on the operation's page and counted."""
    gateway = shared.gateway
    shared.provider.raws["nonsense"] = LOST["nonsense"]
    before = gateway.metrics()
    reference = gateway.post(path, behave=behave)["Hapax-Operation"]
    check.until(lambda: gateway.operation(reference).json().get("last_error") == error,
                f"the page says {error}")
    after = gateway.metrics()
    changed = {n: v - before[n] for n, v in after.items()
               if n.startswith("hapax_attempt_errors_total") and v != before[n]}
    assert changed == {f'hapax_attempt_errors_total{{error="{error}"}}': 1}


def test_last_error_stays_after_success(shared):
    """A success tells what the failed attempt before it came to; a plain one has nothing."""
    gateway, key = shared.gateway, new_key()
    gateway.post(key=key, behave="status=503")
    done = gateway.post(key=key)
    page = gateway.operation(done["Hapax-Operation"]).json()
    assert (page["state"], page["attempt"], page["last_error"]) == ("completed", 2, "status_503")
    plain = gateway.operation(gateway.post()["Hapax-Operation"]).json()
    assert "last_error" not in plain, plain


def test_upstream_time_by_route(shared):
    """How long attempts take is counted for each route, with buckets up to two minutes."""
    gateway = shared.gateway
    name = 'hapax_upstream_seconds_count{route="%s"}'
    before = gateway.metrics()
    for path in ("/retry", "/retry", "/unknown"):
        gateway.post(path)
    after = gateway.metrics()
    changed = {n: v - before[n] for n, v in after.items()
               if n.startswith("hapax_upstream_seconds_count") and v != before[n]}
    assert changed == {name % "POST /retry": 2, name % "POST /unknown": 1}
    last = 'hapax_upstream_seconds_bucket{route="POST /retry",le="134.217728"}'
    assert after[last] == after[name % "POST /retry"]


@pytest.mark.parametrize("behave, lines", [("reset=before", 0), ("reset=after", 1), ("half-body", 1)])
def test_reset(shared, behave, lines):
    """A reset connection is unknown either way: hapax cannot see which it was."""
    key = conclude(shared, "/pay", behave, (502, 504), UNKNOWN, "upstream_outcome_unknown")
    assert len(shared.provider.ledger(key)) == lines


def test_first_byte_timeout(shared):
    """Silence ends with 504, and nothing is sent again."""
    conclude(shared, "/pay", "no-answer", 504, UNKNOWN, "upstream_outcome_unknown")


def test_body_stalls(site):
    """An answer that stops half-way is no answer, though the connection stays open."""
    one = site({"timeouts": {"idle": "1s"}})
    gate = one.provider.gate("stall")
    one.provider.raws["stall"] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"
    conclude(one, "/pay", "raw=stall; stay=stall", (502, 504), UNKNOWN, "upstream_outcome_unknown")
    gate.release()


def test_whole_timeout(site):
    """The whole exchange is bounded, however patient the single waits are."""
    one = site({"timeouts": {"whole": "1s", "first_byte": "60s"}})
    conclude(one, "/pay", "no-answer", 504, UNKNOWN, "upstream_outcome_unknown")


def test_refused(site):
    """Nobody listens: proved not executed, and the retry is carried out."""
    one = site()
    one.provider.stop()
    key = new_key()
    first = one.gateway.post(key=key)
    check.problem(first, "upstream_unreachable")
    operation = one.gateway.operation(first["Hapax-Operation"]).json()
    assert operation["state"] == "failed_retryable", operation
    one.provider.start()
    second = one.gateway.post(key=key)
    assert second.status == 200 and not second.replayed, second
    assert [r["Hapax-Attempt"] for r in one.provider.seen(key=key)] == ["2"]
    check.same_answer(second, one.gateway.post(key=key))


def test_name_not_found(site):
    """An upstream without an address: proved not executed."""
    one = site({"upstream": "http://nobody.invalid:9", "timeouts": {"connect": "2s"}})
    check.problem(one.gateway.post(timeout=30), "upstream_unreachable")


def test_dead_kept_alive_connection(site):
    """A kept-alive connection that the upstream has closed is not used, and
    nothing is ever sent twice on its account."""
    one = site({"timeouts": {"reuse_idle": "30s"}})
    for round_number in range(10):
        key = new_key()
        assert one.gateway.post(key=key).status == 200
        one.provider.drop_connections()
        key = new_key()
        answer = one.gateway.post(key=key)
        assert answer.status in (200, 502, 504), (round_number, answer)
        assert len(one.provider.ledger(key)) <= 1
        if answer.status != 200:
            retry = one.gateway.post(key=key)
            assert len(one.provider.ledger(key)) <= 1, retry


def test_stray_bytes_poison_nobody(shared):
    """What an upstream sends beyond its answer is never the next caller's answer."""
    gateway = shared.gateway
    for _ in range(5):
        assert b"stray" not in gateway.post(behave="stray").body
        assert b"stray" not in gateway.get("/x").body
        assert b"stray" not in gateway.post().body
