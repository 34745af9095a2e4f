"""Shows that `observe` changes nothing for anybody and counts what would have
happened: the way to start before an existing service."""
import json
import subprocess

import pytest

from harness import check
from harness.gateway import binary
from harness.secret import new_key

CONFIG = {"observe": True}


def outcomes(gateway):
    return gateway.observed()


def moved(gateway, before):
    after = outcomes(gateway)
    return {o: after[o] - before.get(o, 0) for o in after if after[o] != before.get(o, 0)}


def becomes(gateway, before, counts):
    """The counter moves when the exchange is over, which may be after its answer was
    read; a retry before that would be one under way."""
    check.until(lambda: moved(gateway, before) == counts, f"{counts} are counted")


@pytest.mark.parametrize("key, auth", [
    (None, "Bearer s3cr3t"), ('"', "Bearer s3cr3t"), ("", "Bearer s3cr3t"), ("s3cr3t ,", None),
    ("s3cr3t-k", "Digest s3cr3t"),
])
def test_nothing_is_refused(shared, key, auth):
    """What would be refused goes up."""
    before = len(shared.provider.seen())
    assert shared.gateway.post(key=key, auth=auth).status == 200
    assert len(shared.provider.seen()) == before + 1


def test_nothing_is_altered(shared):
    """The request and the answer are as if hapax only passed them on."""
    key, before = new_key(), outcomes(shared.gateway)
    answer = shared.gateway.post(key=key, headers=[("Accept-Encoding", "gzip")], behave="header=X-A:1")
    becomes(shared.gateway, before, {"created": 1})
    assert answer["X-A"] == "1"
    for name in ("Hapax-Operation", "Idempotency-Expires", "Idempotent-Replayed"):
        assert answer[name] is None, answer
    request = shared.provider.seen(key=key)[0]
    assert request["Accept-Encoding"] == "gzip"
    for name in ("Hapax-Operation", "Hapax-Attempt", "Hapax-Lease"):
        assert request[name] is None, request


def test_nothing_is_replayed(shared):
    """A retry goes up again, and is counted as what it would have been."""
    key = new_key()
    before = outcomes(shared.gateway)
    bodies = set()
    for counts in ({"created": 1}, {"created": 1, "replay": 1}, {"created": 1, "replay": 2}):
        bodies.add(shared.gateway.post(key=key).body)
        becomes(shared.gateway, before, counts)
    assert len(bodies) == 3 and len(shared.provider.ledger(key)) == 3


def test_mismatch_is_counted(shared):
    """Another body with the same key goes up and is counted."""
    key = new_key()
    before = outcomes(shared.gateway)
    for number, counts in ((1, {"created": 1}), (2, {"created": 1, "mismatch": 1})):
        assert shared.gateway.post(key=key, body=b'{"a": %d}' % number).status == 200
        becomes(shared.gateway, before, counts)
    assert len(shared.provider.ledger(key)) == 2


def test_unkeyed_is_counted(shared):
    """Requests without a key are counted by route."""
    def unkeyed():
        return sum(v for n, v in shared.gateway.metrics().items() if n.startswith("hapax_unkeyed_total"))
    before = unkeyed()
    shared.gateway.post(key=None)
    assert unkeyed() == before + 1


def report(gateway, *flags):
    done = subprocess.run([binary(), "observed", "--admin", f"127.0.0.1:{gateway.admin_port}", *flags],
                          capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_report(site):
    """`hapax observed` says by route and tenant what would have happened, in words and as JSON."""
    one = site({"observe": True, "routes": [{"match": "POST /payments"}, {"match": "POST /notes", "key": "optional"}]})
    gateway, key = one.gateway, new_key()
    assert "Nothing was observed yet" in report(gateway)
    before = outcomes(gateway)
    for body, counts in ((b"{}", {"created": 1}), (b"{}", {"created": 1, "replay": 1}),
                         (b"[]", {"created": 1, "replay": 1, "mismatch": 1})):
        gateway.post("/payments", key=key, body=body, auth="Bearer s3cr3t")
        becomes(gateway, before, counts)
    gateway.post("/payments", key=None)
    gateway.post("/notes", key=None)
    gateway.post("/other", key='"')
    becomes(gateway, before, {"created": 1, "replay": 1, "mismatch": 1, "key_missing": 2, "key_invalid": 1})
    said = json.loads(report(gateway, "--json"))
    assert (said["requests"], said["prevented"]) == (6, 1), said
    routes = {row["route"]: {name: count for name, count in row.items() if name != "route" and count}
              for row in said["routes"]}
    assert routes == {"POST /payments": {"created": 1, "replay": 1, "mismatch": 1, "key_missing": 1},
                      "POST /notes": {"key_missing": 1}, "defaults": {"key_invalid": 1}}
    assert [(row["duplicates"], row["mismatches"]) for row in said["tenants"]] == [(2, 1)]
    assert {"method": "POST", "path": "/payments", "keyed": 3, "unkeyed": 1} in said["operations"]
    words = report(gateway)
    for line in ("hapax would have prevented at least 1 second execution.", "POST /payments: 4 requests",
                 "  1 was a retry that the service executed again", "  1 had the key of another request",
                 "(1 with another body)", "  1 of 4  POST /payments"):
        assert line in words, words
    assert "s3cr3t" not in words and key not in words
    assert max(map(len, words.splitlines())) <= 80, words


def test_the_report_of_nobody(gateway, tmp_path):
    """No gateway there, or not an admin listener: exit code 1, and what to do."""
    for address in (f"unix:{tmp_path}/absent", f"127.0.0.1:{gateway.port}"):
        done = subprocess.run([binary(), "observed", "--admin", address], capture_output=True, text=True,
                              timeout=30, check=False)
        assert done.returncode == 1 and "--admin" in done.stderr, (done.stdout, done.stderr)


def test_nothing_is_buffered(shared):
    """Answers and uploads of any size flow."""
    answer = shared.gateway.post(behave="big=5000000", body=b"x" * 5000000)
    assert (answer.status, len(answer.body)) == (200, 5000000)
    assert shared.provider.seen()[-1].size == 5000000


def test_one_route_only(site):
    """A route can observe while the others guard, and the other way round."""
    one = site({"routes": [{"match": "POST /watched", "observe": True}]})
    key = new_key()
    assert [one.gateway.post("/watched", key=key).replayed for _ in range(2)] == [False, False]
    assert [one.gateway.post("/other", key=key).replayed for _ in range(2)] == [False, True]
