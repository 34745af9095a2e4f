"""How the provider answers one request, as its X-Behave header says:

  status=N         the answer's status (200)
  effect=yes|no    write the ledger line; without it: unsafe method, status below 400
  header=N:V       another header, repeatable; a comma in V is written as %2C
  body=NAME        the bytes the test put into provider.bodies[NAME]
  raw=NAME         the bytes of provider.raws[NAME] instead of an answer, then close
  stay=NAME        after raw, keep the connection open until a permit of the gate
  big=N            a body of N bytes
  chunked, close   framed by chunks, or by the end of the connection
  delay=S          wait S seconds after the effect
  hold=NAME        wait for a permit of provider.gate(NAME) after the effect
  sse=NAME         an event stream, one event per permit of the gate, three in all
  reset=before|after   reset the connection, before or after the effect
  half-body        half of the answer, then close
  no-answer        the effect, then silence until the other side closes
  1xx              103 Early Hints before the answer
  early            answer before the body is read, then close
  stray            bytes after the end of the answer
  twice=S          the whole answer once more, S seconds after the first
"""
import json
import socket
import struct
import time

FILLER = bytes(range(256)) * 256


def parse(text):
    """X-Behave as a dict; `header` is a list."""
    found = {"header": []}
    for part in (text or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == "header":
            found["header"].append(value.replace("%2C", ",").replace("%3B", ";"))
        elif name:
            found[name] = value
    return found


class Behaviour:
    """One request's answer."""

    def __init__(self, provider, request):
        self.provider = provider
        self.request = request
        self.wants = parse(", ".join(request.fields.all("X-Behave")))
        self.early = "early" in self.wants
        self.status = int(self.wants.get("status", "200"))

    def answer(self, wire):
        """Answers; whether the connection may carry another request."""
        if self.request["Upgrade"] == "websocket":
            return self.tunnel(wire)
        if self.wants.get("reset") == "before":
            return self.reset(wire)
        if self.has_effect():
            self.provider.effect(self.request)
        self.wait()
        if self.wants.get("reset") == "after":
            return self.reset(wire)
        if "no-answer" in self.wants:
            wire.ended()
            return False
        if "raw" in self.wants:
            wire.send(self.provider.raws[self.wants["raw"]])
            if "stay" in self.wants:
                self.provider.gate(self.wants["stay"]).pass_through()
            return False
        if "1xx" in self.wants:
            wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        if "sse" in self.wants:
            return self.event_stream(wire)
        kept = self.send_answer(wire)
        if "twice" in self.wants:
            time.sleep(float(self.wants["twice"]))
            self.send_answer(wire)
        return kept

    def has_effect(self):
        default = self.request.method in ("POST", "PATCH", "PUT", "DELETE") and self.status < 400
        return {"yes": True, "no": False}.get(self.wants.get("effect"), default)

    def wait(self):
        if "delay" in self.wants:
            time.sleep(float(self.wants["delay"]))
        if "hold" in self.wants:
            self.provider.gate(self.wants["hold"]).pass_through()

    @staticmethod
    def reset(wire):
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False

    def tunnel(self, wire):
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                  b"Upgrade: websocket\r\n\r\n")
        while True:
            if not wire.pending:
                wire.fill()
            data, wire.pending = wire.pending, b""
            wire.send(data)

    def body(self):
        if "body" in self.wants:
            return self.provider.bodies[self.wants["body"]]
        return json.dumps({"n": self.provider.next_serial(), "path": self.request.target,
                           "attempt": self.request["Hapax-Attempt"]}).encode()

    def head(self, framing):
        lines = [f"HTTP/1.1 {self.status} Because"] + framing
        names = [h.partition(":")[0].lower() for h in self.wants["header"]]
        if "content-type" not in names:
            lines.append("Content-Type: application/json")
        lines += [h.replace(":", ": ", 1) for h in self.wants["header"]]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def event_stream(self, wire):
        self.wants["header"].append("Content-Type:text/event-stream")
        wire.send(self.head(["Transfer-Encoding: chunked"]))
        gate = self.provider.gate(self.wants["sse"])
        for number in (1, 2, 3):
            gate.pass_through()
            event = b"data: %d\n\n" % number
            wire.send(b"%x\r\n%s\r\n" % (len(event), event))
        wire.send(b"0\r\n\r\n")
        return True

    def send_answer(self, wire):
        size = int(self.wants["big"]) if "big" in self.wants else None
        body = self.body() if size is None else b""
        bodiless = self.request.method == "HEAD" or self.status in (204, 304)
        if "close" in self.wants:
            framing = ["Connection: close"]
        elif "chunked" in self.wants:
            framing = ["Transfer-Encoding: chunked"]
        elif self.status == 204:
            framing = []
        else:
            framing = [f"Content-Length: {len(body) if size is None else size}"]
        if self.early:
            framing.append("Connection: close")
        wire.send(self.head(framing))
        if not bodiless:
            self.send_body(wire, body, size)
        if "stray" in self.wants:
            wire.send(b"HTTP/1.1 200 Stray\r\nContent-Length: 5\r\n\r\nstray")
        return not ("close" in self.wants or "half-body" in self.wants or self.early)

    def send_body(self, wire, body, size):
        if "half-body" in self.wants:
            wire.send(body[:len(body) // 2] if size is None else FILLER[:size // 2])
            return
        for piece in self.body_pieces(body, size):
            if "chunked" in self.wants:
                piece = b"%x\r\n%s\r\n" % (len(piece), piece)
            wire.send(piece)
            self.provider.bytes_sent += len(piece)
        if "chunked" in self.wants:
            wire.send(b"0\r\n\r\n")

    def body_pieces(self, body, size):
        if size is None:
            middle = len(body) // 2
            return [p for p in (body[:middle], body[middle:]) if p]
        return (FILLER[:min(len(FILLER), size - at)] for at in range(0, size, len(FILLER)))
