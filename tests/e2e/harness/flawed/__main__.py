"""python3 -m harness.flawed --port N --state FOLDER [--flaw NAME] [--dialect D]
[--busy SECONDS] [--tls CERTIFICATE KEY]: the API as a process of its own, for it
is killed and started again. FOLDER/pid holds its number."""
import argparse
import os
import pathlib
import re
import socket
import threading

from harness.flawed import flaws, flaws_key, flaws_time, right
from harness.flawed.api import Api
from harness.external_tls import server_context
from harness.provider import Provider
from harness.wire import Closed, Malformed, Wire


def kinds():
    """{name: class}, of all that are right and all that are flawed."""
    found = {}
    for module in (right, flaws, flaws_key, flaws_time):
        for kind in vars(module).values():
            is_ours = isinstance(kind, type) and issubclass(kind, Api) and kind.__module__ == module.__name__
            if is_ours and kind is not flaws.Replays:
                found[re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower()] = kind
    return found


def message(answer):
    lines = [f"HTTP/1.1 {answer.status} Because", "Date: Thu, 01 Jan 2026 00:00:00 GMT"]
    lines += [f"{name}: {value}" for name, value in answer.fields]
    if answer.status != 204:
        lines.append(f"Content-Length: {len(answer.body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + answer.body


def exchange(api, wire):
    """One request and its answer; whether another may follow."""
    request = Provider.read_head(wire)
    request.wire = wire
    api.head_came(request)
    try:
        Provider.read_body(wire, request)
    except (OSError, Closed):
        api.body_broke(request)
        return False
    answer = api.answer(request)
    try:
        data = message(answer)
        wire.send(data if request.method != "HEAD" else data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
    except OSError:
        api.delivered(request, answer, False)
        return False
    api.delivered(request, answer, True)
    return True


def serve(api, sock, tls):
    wire = Wire(sock)
    try:
        sock.settimeout(60)
        if tls:
            wire.sock = tls.wrap_socket(sock, server_side=True)
        wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while exchange(api, wire):
            pass
    except (OSError, Closed, Malformed, ValueError):
        pass  # whoever hung up, or spoke no HTTP, is served no further
    finally:
        wire.sock.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--state", type=pathlib.Path, required=True)
    parser.add_argument("--flaw", default="plain", choices=sorted(kinds()))
    parser.add_argument("--dialect", default="ietf", choices=["ietf", "stripe"])
    parser.add_argument("--busy", type=float, default=0.0)
    parser.add_argument("--tls", nargs=2)
    wanted = parser.parse_args()
    listener = socket.socket(socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", wanted.port))
    api = kinds()[wanted.flaw](wanted.state, wanted.dialect, wanted.busy)
    tls = server_context(*wanted.tls) if wanted.tls else None
    listener.listen(512)
    (wanted.state / "pid").write_text(str(os.getpid()))
    print("ready", flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(api, sock, tls), daemon=True).start()


if __name__ == "__main__":
    main()
