"""python3 attackers.py PORT SECONDS RATE KIND=COUNT...: connections to 127.0.0.1:PORT
that attack, each from an address of 127.2.0.0/16, for so many seconds; says what each
kind got as one line of JSON. Each kind goes on as soon as it is answered or thrown out;
what bounds it is its share of RATE, the requests and new connections of all kinds in a
second. Loopback only: no other address can be given."""
import asyncio
import base64
import collections
import gzip
import itertools
import json
import os
import random
import resource
import sys

ADDRESSES = 250        # of each kind
TICK_SECONDS = 0.005
LATE_TICKS = 4         # a machine that is behind by more does not catch up
BODY_BYTES = 1_000_000         # below limits.request_body
BODIES_BYTES = 128 << 20       # twice limits.bodies: what all slow bodies send at once
BODY_BYTES_PER_SECOND = 64 << 20  # of those that were thrown out and come back
DRIPPED = b"x" * 300           # a second: above limits.body_rate, which would end it sooner
HEAD_BYTES = 16 << 10          # half of limits.head
RATIO = 60                     # hapax inflates to 64 times the size
NUMBERS = itertools.count(1)
MARK = f"{os.getpid():x}"


def head(line, *fields):
    return "\r\n".join((line, "Host: bench.example", *fields, "", "")).encode("ascii")


def post(key, caller, body=b"{}", *fields):
    return head("POST /payments HTTP/1.1", f"Authorization: Bearer {caller}", f"Idempotency-Key: {key}",
                "Content-Type: application/json", f"Content-Length: {len(body)}", *fields) + body


def bombs():
    """Two of about 16 KB: one to 16 MiB, which is far above the ratio that hapax inflates
    to; one just below that ratio, which is inflated and read to its end."""
    noise = base64.b64encode(random.Random(1).randbytes(15 << 10)).decode("ascii")
    most = gzip.compress(b'{"a":"' + b"0" * (16 << 20) + b'"}', mtime=0)
    whole = gzip.compress(json.dumps({"a": noise, "b": "0" * (RATIO * len(noise) * 3 // 4)}).encode("ascii"), mtime=0)
    return itertools.cycle((most, whole))


BOMBS = bombs()


def slow_head(_):
    return head("POST /payments HTTP/1.1", "X-Long: " + "x" * HEAD_BYTES)[:-2] + b"X-Slow: "


def begun_bytes(count):
    return min(BODY_BYTES - len(DRIPPED) * 600, BODIES_BYTES // count)


def slow_body(count):
    number = next(NUMBERS)
    begun = b"x" * begun_bytes(count)
    return head("POST /payments HTTP/1.1", f"Authorization: Bearer {MARK}-slow-{number}",
                f"Idempotency-Key: {MARK}-slow-{number}", f"Content-Length: {BODY_BYTES}") + begun


def storm(_):
    return post(f"{MARK}-storm", f"{MARK}-storm")


def spray(_):
    """A credential for each key: no tenant's limit ever counts two of them."""
    number = next(NUMBERS)
    return post(f"{MARK}-spray-{number}", f"{MARK}-spray-{number}")


def bomb(_):
    number = next(NUMBERS)
    return post(f"{MARK}-bomb-{number}", f"{MARK}-bomb-{number}", next(BOMBS), "Content-Encoding: gzip")


def tunnel(_):
    return head("GET /tunnel HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket")


# How a request begins, and what is sent of it in each second after that.
KINDS = {"slow-head": (slow_head, b"x"), "slow-body": (slow_body, DRIPPED), "storm": (storm, None),
         "spray": (spray, None), "bomb": (bomb, None), "tunnel": (tunnel, None)}


class Kind:
    """All attackers of a kind: those whose turn it is wait in `ready`."""

    def __init__(self, name, count, rate, port, addresses):
        self.make, self.dripped = KINDS[name]
        self.count, self.port = count, port
        self.rate = min(rate, BODY_BYTES_PER_SECOND / begun_bytes(count)) if self.make is slow_body else rate
        self.seen = collections.Counter()
        self.asking = set()
        self.allowed = 0.0
        self.attackers = [Attacker(self, f"{addresses}.{i % ADDRESSES + 1}") for i in range(count)]
        self.ready = collections.deque(self.attackers)

    def tick(self):
        self.allowed = min(self.allowed + self.rate * TICK_SECONDS, self.rate * TICK_SECONDS * LATE_TICKS + 1)
        while self.allowed >= 1 and self.ready:
            self.allowed -= 1
            self.ready.popleft().act()

    def drip(self):
        if self.dripped is not None:
            for one in list(self.asking):
                one.transport.write(self.dripped)


class Attacker(asyncio.Protocol):
    """One connection after another from one address; one request under way, or none."""

    def __init__(self, kind, address):
        self.kind, self.address = kind, address
        self.transport = self.making = None
        self.held = b""

    def act(self):
        """Its turn: one request, on the connection that it has or on a new one."""
        if self.transport is not None:
            self.ask()
        else:
            self.making = asyncio.ensure_future(self.connect())

    async def connect(self):
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self.kind.port,
                                                               local_addr=(self.address, 0))
        except OSError:
            self.kind.seen["not connected"] += 1
            self.kind.ready.append(self)

    def connection_made(self, transport):
        self.transport = transport
        self.ask()

    def ask(self):
        self.held = b""
        self.kind.asking.add(self)
        self.transport.write(self.kind.make(self.kind.count))

    def data_received(self, data):
        """One answer; what would follow an upgrade is nobody's business."""
        self.held += data
        top, end, body = self.held.partition(b"\r\n\r\n")
        if not end or self not in self.kind.asking:
            return
        lines = top.lower().split(b"\r\n")
        length = next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
        if len(body) < length:
            return
        status = lines[0].split()[1].decode("ascii")
        self.kind.seen[status] += 1
        self.kind.asking.discard(self)
        if status == "101":
            return
        if self.kind.dripped is not None or b"connection: close" in lines:
            self.gone()
        self.kind.ready.append(self)

    def gone(self):
        transport, self.transport = self.transport, None
        if transport is not None:
            transport.abort()

    def connection_lost(self, _):
        """Unanswered, or with an idle connection or a tunnel, it comes back in its turn."""
        if self.transport is None:
            return
        self.transport = None
        waited = self in self.kind.asking
        self.kind.asking.discard(self)
        self.kind.seen["closed"] += 1
        if waited or self not in self.kind.ready:
            self.kind.ready.append(self)


async def attack(port, seconds, rate, counts):
    loop = asyncio.get_running_loop()
    kinds = {name: Kind(name, count, rate / len(counts), port, f"127.2.{number}")
             for number, (name, count) in enumerate(counts.items())}
    begun = loop.time()
    ticks = 0
    while loop.time() < begun + seconds:
        for kind in kinds.values():
            kind.tick()
            if ticks % round(1 / TICK_SECONDS) == 0:
                kind.drip()
        ticks += 1
        await asyncio.sleep(max(TICK_SECONDS * ticks - (loop.time() - begun), 0))
    # A connection that is being made while the time is up is nobody's any more.
    making = [one.making for kind in kinds.values() for one in kind.attackers if one.making is not None]
    for task in making:
        task.cancel()
    failed = [found for found in await asyncio.gather(*making, return_exceptions=True) if isinstance(found, Exception)]
    if failed:
        raise failed[0]
    print(json.dumps({name: dict(kind.seen) for name, kind in kinds.items()}), flush=True)


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    counts = {kind: int(count) for kind, count in (word.split("=") for word in sys.argv[4:])}
    asyncio.run(attack(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), counts))


if __name__ == "__main__":
    main()
