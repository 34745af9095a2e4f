"""Shows what an upstream that answers twice can do: on a kept connection its
second answer would be the next caller's, so one stray byte ends the use of kept
connections, and with `reuse: never` there is nothing to be seen at all."""
import random
import threading

from harness import check
from harness.secret import new_key

CALLERS = 8
TRIES = 60


class Caller(threading.Thread):
    """Posts in a row, each to a path of its own; the provider's answer names the
    path that it belongs to."""

    def __init__(self, gateway, number, tries=TRIES, behave=None):
        super().__init__(daemon=True)
        self.gateway = gateway
        self.number = number
        self.tries = tries
        self.behave = behave or (lambda: f"twice={random.uniform(0.001, 0.020):.4f}")
        self.foreign = []
        self.good = 0

    def run(self):
        with self.gateway.connect() as wire:
            for n in range(self.tries):
                self.one(wire, f"/caller/{self.number}/{n}")

    def one(self, wire, path):
        wire.send(self.gateway.request("POST", path, auth=f"Bearer s3cr3t-{self.number}",
                                       behave=self.behave()))
        answer = wire.answer()
        if answer.status != 200:
            check.problem(answer, "upstream_outcome_unknown", status=answer.status)
        elif answer.json()["path"] != path:
            self.foreign.append((path, answer.json()["path"]))
        else:
            self.good += 1


def post_all(gateway, callers=CALLERS, **how):
    """The foreign answers among those that several callers got at once."""
    threads = [Caller(gateway, n, **how) for n in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "callers hang"
    foreign = [pair for thread in threads for pair in thread.foreign]
    answered = sum(thread.good for thread in threads) + len(foreign)
    assert answered > 0.9 * callers * threads[0].tries
    return foreign


def shares_connections(one):
    """Whether posts in close succession use kept connections."""
    before = one.provider.connections
    for _ in range(3):
        assert one.gateway.post("/warm").status == 200
    return one.provider.connections == before


def test_an_upstream_that_answers_twice(site):
    """At most one foreign answer among many callers, then a quarantine that is
    logged with the upstream's name and counted."""
    one = site({"upstream_name": "till"})
    foreign = post_all(one.gateway)
    assert len(foreign) <= 1, f"{len(foreign)} of {CALLERS * TRIES}: {foreign[:10]}"
    line = one.gateway.wait_log("event=upstream_stray_bytes")
    assert "level=error" in line and "name=till" in line and one.provider.url in line, line
    metrics = one.gateway.metrics()
    assert metrics["hapax_upstream_stray_total"] >= 1
    assert metrics["hapax_upstream_quarantined"] == 1


def test_one_that_begins_to_answer_twice(site):
    """Also where the upstream was good for a while and its connections are used
    again at once, one foreign answer is the most."""
    one = site({"loops": 1})
    check.until(lambda: shares_connections(one), "connections are used again")
    foreign = post_all(one.gateway, callers=1)
    assert len(foreign) <= 1, foreign
    assert one.gateway.metrics()["hapax_upstream_stray_total"] >= 1


def test_silence_takes_no_connections_from_a_slow_upstream(site):
    """It may have a thread for each: no more are open than requests are under way."""
    one = site({"loops": 1})
    check.until(lambda: shares_connections(one), "connections are used again")
    assert not post_all(one.gateway, callers=4, tries=15, behave=lambda: "delay=0.03")
    assert len(one.provider.open_sockets) <= 5


def test_never_reused(site):
    """`reuse: never`: a connection for each request, and no foreign answer."""
    one = site({"defaults": {"reuse": "never"}})
    assert not post_all(one.gateway)
    assert one.provider.connections == CALLERS * TRIES
    assert all(request["Connection"] == "close" for request in one.provider.seen())


def test_never_reused_on_one_route(site):
    """The other routes go on using kept connections."""
    one = site({"loops": 1, "routes": [{"match": "POST /till", "reuse": "never"}]})
    check.until(lambda: shares_connections(one), "connections are used again")
    before = one.provider.connections
    for _ in range(5):
        assert one.gateway.post("/till").status == 200
    assert one.provider.connections == before + 5
    check.until(lambda: shares_connections(one), "connections are used again")


def test_a_stray_byte_closes_all_kept_connections(site):
    """On every loop, at once, whoever they were kept for; and when the quarantine
    is over, connections are used again."""
    one = site({"loops": 2, "timeouts": {"reuse_quarantine": "1s"}})
    gate = one.provider.gate("all")
    # With the one below no more than a loop keeps before it trusts the upstream.
    wires = [one.gateway.connect() for _ in range(3)]
    try:
        for wire in wires:
            wire.send(one.gateway.request("GET", "/x", behave="hold=all"))
        check.until(lambda: len(one.provider.seen("/x")) == 3, "all are under way")
        gate.release(3)
        assert all(wire.answer().status == 200 for wire in wires)
    finally:
        for wire in wires:
            wire.close()
    assert len(one.provider.open_sockets) == 3
    assert one.gateway.get("/y", behave="twice=0.01").status == 200
    check.until(lambda: not one.provider.open_sockets, "the kept connections are closed", 5)
    assert one.gateway.metrics()["hapax_upstream_stray_total"] == 1
    key = new_key()
    assert one.gateway.post(key=key).status == 200
    check.until(lambda: not one.gateway.metrics()["hapax_upstream_quarantined"], "it is over")
    check.until(lambda: shares_connections(one), "connections are used again", 20)
