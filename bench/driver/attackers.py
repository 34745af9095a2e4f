"""python3 attackers.py PORT SECONDS KIND=COUNT...: connections to 127.0.0.1:PORT that
attack, each from an address of 127.2.0.0/16, for so many seconds; says what each kind
got as one line of JSON. Loopback only: no other address can be given."""
import asyncio
import collections
import gzip
import itertools
import json
import os
import sys

BOMB = gzip.compress(b'{"a":"' + b"0" * (16 << 20) + b'"}', mtime=0)
ADDRESSES = 250        # of each kind
CONNECT_AT_ONCE = 64
NUMBERS = itertools.count(1)
MARK = f"{os.getpid():x}"


def head(line, *fields):
    return "\r\n".join((line, "Host: bench.example", *fields, "", "")).encode("ascii")


def post(key, caller, body=b"{}", *fields):
    return head("POST /payments HTTP/1.1", f"Authorization: Bearer {caller}", f"Idempotency-Key: {key}",
                "Content-Type: application/json", f"Content-Length: {len(body)}", *fields) + body


async def answer(reader):
    """The status; the body is read and forgotten."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
    length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), 0)
    await reader.readexactly(length)
    return lines[0].split()[1]


async def drip(reader, writer, first, seen):
    """Begins, and goes on by one byte a second until it is refused."""
    writer.write(first)
    status = asyncio.ensure_future(answer(reader))
    try:
        while not status.done():
            await asyncio.wait([status], timeout=1)
            writer.write(b"x")
        seen[status.result()] += 1
    finally:
        status.cancel()


async def ask(reader, writer, make, pause, seen):
    """One request after the other."""
    while True:
        writer.write(make())
        seen[await answer(reader)] += 1
        await asyncio.sleep(pause)


async def slow_head(reader, writer, seen):
    await drip(reader, writer, b"POST /payments HTTP/1.1\r\nX-Slow: ", seen)


async def slow_body(reader, writer, seen):
    number = next(NUMBERS)
    await drip(reader, writer, head("POST /payments HTTP/1.1", f"Authorization: Bearer slow-{number}",
                                    f"Idempotency-Key: {MARK}-slow-{number}", "Content-Length: 1000000"), seen)


async def storm(reader, writer, seen):
    await ask(reader, writer, lambda: post(f"{MARK}-storm", "storm"), 0.5, seen)


async def spray(reader, writer, seen):
    await ask(reader, writer, lambda: post(f"{MARK}-spray-{next(NUMBERS)}", "spray"), 0.5, seen)


async def bomb(reader, writer, seen):
    await ask(reader, writer, lambda: post(f"{MARK}-bomb-{next(NUMBERS)}", "bomb", BOMB, "Content-Encoding: gzip"),
              0.5, seen)


async def tunnel(reader, writer, seen):
    writer.write(head("GET /tunnel HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket"))
    seen[await answer(reader)] += 1
    await reader.read(1)


KINDS = {"slow-head": slow_head, "slow-body": slow_body, "storm": storm, "spray": spray, "bomb": bomb,
         "tunnel": tunnel}


async def attacker(kind, address, port, gate, seen):
    """Comes back a second after it was thrown out, until the time is up."""
    while True:
        writer = None
        try:
            async with gate:
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
            await KINDS[kind](reader, writer, seen)
        except (OSError, asyncio.IncompleteReadError):
            seen["closed"] += 1
        finally:
            if writer is not None:
                writer.transport.abort()
        await asyncio.sleep(1)


async def attack(port, seconds, counts):
    gate = asyncio.Semaphore(CONNECT_AT_ONCE)
    seen = {kind: collections.Counter() for kind in counts}
    tasks = [asyncio.ensure_future(attacker(kind, f"127.2.{number}.{i % ADDRESSES + 1}", port, gate, seen[kind]))
             for number, kind in enumerate(counts) for i in range(counts[kind])]
    _, pending = await asyncio.wait(tasks, timeout=seconds)
    failed = [task.exception() for task in tasks if task.done()]
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    if failed:
        raise failed[0]
    print(json.dumps(seen))


def main():
    counts = {kind: int(count) for kind, count in (word.split("=") for word in sys.argv[3:])}
    asyncio.run(attack(int(sys.argv[1]), float(sys.argv[2]), counts))


if __name__ == "__main__":
    main()
