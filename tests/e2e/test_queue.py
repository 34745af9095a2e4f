"""Shows that a full pool of upstream connections is a queue: whoever waits has
reserved nothing, what is known is answered without a connection, only what would
begin an attempt is refused, and tunnels and pass-through leave guarded requests
their share. The provider's ledger says what happened."""
import contextlib
import random
import signal
import socket
import sqlite3
import struct
import threading

import pytest

from harness import check, postgres
from harness.secret import new_key
from harness.wire import Closed, request_bytes

UPGRADE = [("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
           ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]
# Without answers in memory, so that the store itself is asked.
ONE = {"loops": 1, "cache": 0, "limits": {"upstream_connections": 1},
       "routes": [{"match": "POST /wait", "concurrent": "wait", "wait": "10s"}]}


def send(site, path="/pay", **how):
    """A request on a connection of its own, not yet answered."""
    wire = site.gateway.connect(60)
    wire.send(site.gateway.request("POST", path, **how))
    return wire


def hold(site, path="/pay"):
    """A request that has reached the provider and stays there: its key and connection."""
    key = new_key()
    wire = send(site, path, key=key, behave=f"status=201; hold={key}")
    site.provider.gate(key).wait_arrived()
    return key, wire


def finish(site, held):
    key, wire = held
    site.provider.gate(key).release()
    with wire:
        return wire.answer()


def until_queued(site, count, kind="guarded"):
    name = f'hapax_upstream_waiting{{kind="{kind}"}}'
    check.until(lambda: site.gateway.metrics().get(name) == count, f"{count} are queued")


def test_refusals_are_spread(site):
    """Where everybody is refused at once, they are not all told to come back at once."""
    one = site({**ONE, "limits": {"upstream_connections": 1, "upstream_queue": 0}})
    held = hold(one)
    seconds = []
    for _ in range(40):
        answer = one.gateway.post(key=new_key())
        check.problem(answer, "overloaded")
        seconds.append(check.retry_after(answer))
    assert set(seconds) == {1, 2, 3, 4}, seconds
    assert finish(one, held).status == 201


def test_a_burst_larger_than_the_pool(site):
    """Fifty times as many requests as connections: all are executed, once, none is turned away."""
    one = site({"loops": 1, "limits": {"upstream_connections": 4}})
    keys = [new_key() for _ in range(200)]
    wires = [send(one, key=key, behave="status=201; delay=0.01") for key in keys]
    answers = []
    for wire in wires:
        with wire:
            answers.append(wire.answer())
    assert {a.status for a in answers} == {201}, [a.status for a in answers]
    assert sorted(line[2].strip('"') for line in one.provider.ledger()) == sorted(keys)
    assert {line[1] for line in one.provider.ledger()} == {"1"}
    for key, answer in list(zip(keys, answers))[::20]:
        check.same_answer(answer, one.gateway.post(key=key))
    metrics = one.gateway.metrics()
    assert metrics['hapax_upstream_queue_total{result="granted"}'] > 0
    assert metrics["hapax_upstream_queue_seconds_count"] == metrics['hapax_upstream_queue_total{result="granted"}']
    until_queued(one, 0)


def test_a_full_queue(site):
    """Replays, 409, 422 and waiting need no connection and no place; a new key is refused before
    anything is reserved, and executed once when it comes again."""
    one = site({**ONE, "limits": {"upstream_connections": 1, "upstream_queue": 1}})
    known = new_key()
    first = one.gateway.post(key=known, behave="status=201")
    held = hold(one, "/wait")
    queued_key, new = new_key(), new_key()
    queued = send(one, key=queued_key, behave="status=201")
    until_queued(one, 1)

    check.same_answer(first, one.gateway.post(key=known))
    check.problem(one.gateway.post(key=known, body=b'{"amount": 11}'), "idempotency_key_reused")
    check.problem(one.gateway.post("/wait", key=held[0], body=b"[]"), "idempotency_key_reused")
    waiter = send(one, "/wait", key=held[0])
    check.until(lambda: one.gateway.metrics()["hapax_waiting"] == 1, "one waits for the answer")
    for _ in range(2):
        refused = one.gateway.post(key=new)
        check.problem(refused, "overloaded")
        assert check.retry_after(refused) >= 1
    assert one.gateway.metrics()['hapax_reserve_total{outcome="created"}'] == 2, "nothing queued is reserved"

    done = finish(one, held)
    assert done.status == 201
    with waiter:
        check.same_answer(done, waiter.answer())
    with queued:
        assert queued.answer().status == 201
    assert one.gateway.post(key=new, behave="status=201").status == 201
    for key in (known, held[0], queued_key, new):
        assert [line[1] for line in one.provider.ledger(key)] == ["1"], key


def test_conflict_without_a_place(site):
    """A queue of none: the key under way is still 409, and a new one 503 at once."""
    one = site({**ONE, "limits": {"upstream_connections": 1, "upstream_queue": 0}})
    held = hold(one)
    check.problem(one.gateway.post(key=held[0]), "idempotency_key_in_progress")
    check.problem(one.gateway.post(), "overloaded")
    assert finish(one, held).status == 201
    assert one.gateway.post(behave="status=201").status == 201


def test_the_time_in_the_queue_is_bounded(site):
    """After timeouts.queue the store is asked once more: what began meanwhile is told, and only
    what would begin is refused."""
    one = site({**ONE, "timeouts": {"queue": "1s"}})
    held = hold(one)
    key = new_key()
    first = send(one, key=key, behave=f"status=201; hold={key}")
    until_queued(one, 1)
    again = send(one, key=key, behave=f"status=201; hold={key}")
    until_queued(one, 2)
    assert finish(one, held).status == 201
    one.provider.gate(key).wait_arrived()
    check.problem(one.gateway.post(), "overloaded")
    with again:
        check.problem(again.answer(), "idempotency_key_in_progress")
    assert finish(one, (key, first)).status == 201
    assert len(one.provider.ledger()) == 2
    assert one.gateway.metrics()['hapax_upstream_queue_total{result="timed_out"}'] == 2


def test_half_a_lease_counts_from_the_reservation(site):
    """Waiting in the queue for longer than half a lease takes nothing from the attempt."""
    one = site({**ONE, "defaults": {"lease": "1s"}})
    first = send(one, behave="status=201; delay=0.8")
    second = send(one, behave="status=201")
    with first, second:
        assert (first.answer().status, second.answer().status) == (201, 201)
    assert [line[1] for line in one.provider.ledger()] == ["1", "1"]


def test_the_only_slot_while_the_store_is_locked(site):
    """Who takes a slot and then waits for the store in vain gives it back with the 503."""
    one = site({**ONE, "timeouts": {"store": "300ms", "queue": "5s"}})
    other = sqlite3.connect(one.gateway.folder / "hapax.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        check.problem(one.gateway.post(), "idempotency_store_unavailable")
        name = 'hapax_upstream_slots{kind="guarded"}'
        check.until(lambda: one.gateway.metrics()[name] == 0, "the slot is free again")
    finally:
        other.execute("ROLLBACK")
        other.close()
    check.until(lambda: one.gateway.post(behave="status=201").status == 201, "the store takes writes again")


def test_what_is_delivered_later_needs_no_slot(site):
    """A route with `deliver: async` sends nothing now: it is accepted although no connection is free."""
    mine = {"auth": None, "headers": [("X-Tenant", "acme")]}
    one = site({**ONE, "limits": {"upstream_connections": 1, "upstream_queue": 0},
                "tenant": {"from": "header", "name": "X-Tenant", "anonymous": "refuse"},
                "trusted_peers": ["127.0.0.1"], "targets": {"later": {"url": "http://127.0.0.1:9"}},
                "routes": [{"match": "POST /later", "deliver": "async", "target": "later"}]})
    key = new_key()
    held = send(one, key=key, behave=f"status=201; hold={key}", **mine)
    one.provider.gate(key).wait_arrived()
    check.problem(one.gateway.post(**mine), "overloaded")
    assert one.gateway.post("/later", **mine).status == 202
    assert finish(one, (key, held)).status == 201


def test_a_client_that_leaves_the_queue(site):
    """Reset while queued: nothing happened, and its key is executed once when it comes again."""
    one = site(ONE)
    held = hold(one)
    key = new_key()
    wire = send(one, key=key, behave="status=201")
    until_queued(one, 1)
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.sock.close()
    until_queued(one, 0)
    assert finish(one, held).status == 201
    assert one.provider.ledger(key) == []
    answer = one.gateway.post(key=key, behave="status=201")
    assert answer.status == 201 and not answer.replayed
    assert [line[1] for line in one.provider.ledger(key)] == ["1"]
    assert one.gateway.metrics()['hapax_upstream_queue_total{result="left"}'] == 1


def test_stopping_while_some_are_queued(site):
    """SIGTERM: who gets a connection within the drain is served, who does not gets 503, and
    nothing was reserved for it."""
    one = site({**ONE, "timeouts": {"drain": "2s", "queue": "60s"}})
    held, stuck, key = hold(one), new_key(), new_key()
    served = send(one, key=stuck, behave=f"status=201; hold={stuck}")
    until_queued(one, 1)
    late = send(one, key=key)
    until_queued(one, 2)
    one.gateway.signal(signal.SIGTERM)
    one.gateway.wait_log("event=draining")
    assert finish(one, held).status == 201
    one.provider.gate(stuck).wait_arrived()
    with late:
        check.problem(late.answer(), "overloaded")
    with served:
        check.problem(served.answer(), "upstream_outcome_unknown")
    assert one.gateway.wait() == 0
    one.provider.gate(stuck).release()
    one.gateway.restart()
    assert one.gateway.post(key=key, behave="status=201").status == 201
    assert [line[1] for line in one.provider.ledger(key)] == ["1"]


def test_more_connections_by_a_reload(site):
    """A reload that allows one more serves the first in the queue at once."""
    one = site(ONE)
    held = hold(one)
    queued = send(one, behave="status=201")
    until_queued(one, 1)
    one.gateway.config["limits"] = {"upstream_connections": 2}
    one.gateway.write_config()
    one.gateway.signal(signal.SIGHUP)
    with queued:
        assert queued.answer().status == 201
    assert finish(one, held).status == 201


def test_a_refused_connection_gives_its_slot_back(site):
    """With the upstream down every request is told so, and none holds the only slot."""
    one = site(ONE)
    one.provider.stop()
    for _ in range(5):
        check.problem(one.gateway.post(), "upstream_unreachable")
    one.provider.start()
    assert one.gateway.post(behave="status=201").status == 201


def upgraded(site):
    """A WebSocket through the gateway, and the status of its head."""
    wire = site.gateway.connect()
    wire.send(request_bytes("GET", "/ws", UPGRADE))
    try:
        return wire, wire.head().status
    except Closed:
        return wire, None


def test_tunnels_leave_the_others_their_connections(site):
    """Idle WebSockets have a quarter of the pool, whoever opened them; a closed one makes room."""
    one = site({"loops": 1, "limits": {"upstream_connections": 8}})
    opened = [upgraded(one) for _ in range(20)]
    assert [status for _, status in opened] == [101, 101] + [503] * 18
    assert one.gateway.post(behave="status=201").status == 201
    assert one.gateway.get("/x").status == 200
    opened[0][0].sock.close()
    check.until(lambda: one.gateway.metrics()['hapax_upstream_slots{kind="tunnel"}'] == 1, "one is closed")
    wire, status = upgraded(one)
    assert status == 101
    for open_wire in [wire] + [w for w, _ in opened[1:]]:
        open_wire.sock.close()


def test_pass_through_leaves_guarded_requests_their_share(site):
    """Slow downloads wait in a queue of their own at three quarters of the pool."""
    one = site({"loops": 1, "limits": {"upstream_connections": 4, "upstream_queue": 5}})
    gate, wires = one.provider.gate("slow"), []
    for _ in range(8):
        wires.append(one.gateway.connect(60))
        wires[-1].send(one.gateway.request("GET", "/slow", behave="hold=slow"))
    until_queued(one, 5, "pass")
    assert one.gateway.metrics()['hapax_upstream_slots{kind="pass"}'] == 3
    refused = one.gateway.get("/slow")
    check.problem(refused, "overloaded")
    assert check.retry_after(refused) >= 1
    assert one.gateway.post(behave="status=201").status == 201
    gate.release(8)
    for wire in wires:
        with wire:
            assert wire.answer().status == 200


@pytest.mark.parametrize("observe", [False, True])
def test_an_upload_that_was_queued_arrives_whole(site, observe):
    """A body that came while its request was queued passes through whole, observed or not."""
    one = site({"loops": 1, "observe": observe, "limits": {"upstream_connections": 1}})
    gate, body = one.provider.gate("slow"), bytes(range(256)) * 800
    with one.gateway.connect(60) as slow, one.gateway.connect(60) as upload:
        slow.send(one.gateway.request("GET", "/slow", behave="hold=slow"))
        gate.wait_arrived()
        upload.send(one.gateway.request("PUT", "/upload", body=body))
        until_queued(one, 1, "pass")
        gate.release()
        assert (slow.answer().status, upload.answer().status) == (200, 200)
    request, = one.provider.seen("/upload")
    assert request.size == len(body)


def test_an_answer_whose_head_does_not_fit_any_more(site):
    """A request that was queued when larger heads were allowed: an answer that fits but for its
    framing ends the connection, and nothing else."""
    one = site({"loops": 1, "limits": {"upstream_connections": 1, "head": "1KiB"}})
    gate, room = one.provider.gate("slow"), 2 * 1024 + 4096
    for size in range(room - 60, room, 15):
        head = b"HTTP/1.1 200 OK\r\nX-Long: %s\r\n" % (b"x" * (size - 27))
        one.provider.raws[str(size)] = head + b"Content-Length: 2\r\n\r\nok"
    with one.gateway.connect(60) as slow, contextlib.ExitStack() as queued:
        slow.send(one.gateway.request("GET", "/slow", behave="hold=slow"))
        gate.wait_arrived()
        wires = [queued.enter_context(one.gateway.connect(60)) for _ in one.provider.raws]
        for wire, name in zip(wires, one.provider.raws):
            wire.send(one.gateway.request("GET", "/long", behave=f"raw={name}"))
        until_queued(one, len(wires), "pass")
        since = len(one.gateway.lines)
        one.gateway.config["limits"]["head"] = "32KiB"
        one.gateway.write_config()
        one.gateway.signal(signal.SIGHUP)
        one.gateway.wait_log("event=reloaded", since=since)
        gate.release()
        assert slow.answer().status == 200
        ends = []
        for wire in wires:
            try:
                ends.append(wire.answer().status)
            except (Closed, ConnectionError):
                ends.append(None)
    assert ends[0] == 200 and ends[-1] is None
    assert one.gateway.get("/after").status == 200


COUNTS = [f'hapax_upstream_{what}' for what in
          ('slots{kind="guarded"}', 'slots{kind="pass"}', 'slots{kind="tunnel"}',
           'waiting{kind="guarded"}', 'waiting{kind="pass"}')]
ENDINGS = ("status=201", "status=201; delay=0.03", "reset=before", "reset=after", "half-body",
           "status=429", "big=200000", "twice=0.002", "no-answer")


def disturb(one, chance):
    """One request of any kind, given up half way now and then."""
    kind = chance.choice(("POST", "POST", "POST", "GET", "PUT", "tunnel"))
    key, behave = new_key() if kind == "POST" else None, chance.choice(ENDINGS)
    with one.gateway.connect(60) as wire:
        if kind == "tunnel":
            wire.send(request_bytes("GET", "/ws", UPGRADE))
        else:
            data = one.gateway.request(kind, "/x", key=key, behave=behave)
            wire.send(data[:-3] if chance.random() < 0.1 else data)
        if chance.random() < 0.4:
            wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            wire.sock.settimeout(chance.random() * 0.05)
        try:
            wire.head() if kind == "tunnel" else wire.answer()
        except (Closed, OSError):
            pass


def test_no_slot_is_lost(site):
    """Clients that leave, an upstream that breaks off, a locked store, and limits that change
    meanwhile: at the end no slot is held, nobody is queued, and nothing happened twice."""
    one = site({"loops": 2, "cache": 0, "limits": {"upstream_connections": 3, "upstream_queue": 4},
                "timeouts": {"queue": "150ms", "store": "200ms", "first_byte": "500ms", "head": "500ms",
                             "body": "500ms"}})
    over = threading.Event()

    def client(seed):
        chance = random.Random(seed)
        while not over.is_set():
            disturb(one, chance)

    clients = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(16)]
    for thread in clients:
        thread.start()
    # PostgreSQL is not locked.
    lock = sqlite3.connect(":memory:" if postgres.chosen() else one.gateway.folder / "hapax.db",
                           isolation_level=None)
    for most in (1, 5, 2, 4, 3):
        over.wait(0.4)  # the load is what is waited for
        one.gateway.config["limits"] = {"upstream_connections": most, "upstream_queue": 5 - most}
        one.gateway.write_config()
        one.gateway.signal(signal.SIGHUP)
        lock.execute("BEGIN IMMEDIATE")
        over.wait(0.3)
        lock.execute("ROLLBACK")
    lock.close()
    over.set()
    for thread in clients:
        thread.join(60)

    def idle():
        metrics = one.gateway.metrics()
        return not any(metrics[name] for name in COUNTS)

    check.until(idle, "all are given back", 30)
    keys = [line[2] for line in one.provider.ledger() if line[2] != "-"]
    assert keys and len(keys) == len(set(keys)), "an effect happened twice"
    metrics = one.gateway.metrics()
    assert all(metrics[f'hapax_upstream_queue_total{{result="{r}"}}'] for r in ("granted", "full", "timed_out", "left"))
