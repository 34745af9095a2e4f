"""A shop in a browser: its page on one origin, the gateway with the provider behind it
on another, and between them a hop that can cut answers off."""
import http.server
import json
import socket
import threading

from .gateway import ROOT, Gateway
from .provider import Provider

CLIENT = ROOT / "clients" / "js"
PAGE = b"""<!doctype html><title>shop</title>
<script type="module">
import { createClient } from "/client/hapax.js";
const events = [], results = {};
const client = createClient({ onAttempt: (event) => events.push({ ...event, error: String(event.error) }) });
async function pay(api, intent, behave = "", init = {}) {
  const headers = { "Content-Type": "application/json", Authorization: "Bearer s3cr3t-alice", "X-Behave": behave };
  try {
    const answer = await client.fetch(api + "/pay",
      { method: "POST", headers, body: JSON.stringify({ order: intent }), intent, ...init });
    results[intent] = { status: answer.status, type: answer.type, body: await answer.text(),
                        replayed: answer.headers.get("Idempotent-Replayed"),
                        operation: answer.headers.get("Hapax-Operation") };
  } catch (error) {
    results[intent] = { code: error.code ?? String(error), reason: error.reason, doubt: error.doubt };
  }
  return results[intent];
}
const channel = new BroadcastChannel("shop");
channel.onmessage = ({ data }) => pay(...data);
window.shop = { client, events, results, pay, channel };
</script>
"""


class PageHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/client/")
        is_client = self.path.startswith("/client/") and name.endswith(".js") and "/" not in name
        body = (CLIENT / name).read_bytes() if is_client else PAGE
        self.send_response(200)
        self.send_header("Content-Type", "text/javascript" if is_client else "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """The test's own output is enough."""


class CorsProvider(Provider):
    """Lets the pages of one origin in, as an application with a front end does."""
    origin = ""

    def read_head(self, wire):
        request = super().read_head(wire)
        allow = f"header=Access-Control-Allow-Origin:{self.origin}"
        if request.method == "OPTIONS":
            wants = ("status=204;header=Access-Control-Allow-Methods:POST;header=Access-Control-Allow-Headers:"
                     f"Authorization%2C Content-Type%2C Idempotency-Key%2C X-Behave;{allow}")
        else:
            wants = f"{request['X-Behave'] or ''};{allow}"
        request.fields[:] = [(n, v) for n, v in request.fields if n.lower() != "x-behave"] + [("X-Behave", wants)]
        return request


def end(sock):
    """Now, also where another thread is reading from it."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster


class Hop:
    """Carries bytes to the gateway and back. Of the next answers to a POST it lets through
    only as many bytes as `cuts` says, one number for each, and ends the connection."""

    def __init__(self, port):
        self.target, self.cuts, self.posts, self.lock = port, [], 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept_all, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def accept_all(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self.target))
            state = {"posting": False}
            for work in (self.up, self.down):
                threading.Thread(target=work, args=(near, far, state), daemon=True).start()

    def up(self, near, far, state):
        try:
            while data := near.recv(65536):
                if data.startswith(b"POST "):
                    state["posting"] = True
                    with self.lock:
                        self.posts += 1
                far.sendall(data)
        except OSError:
            return  # one side is gone, and so is the other
        finally:
            end(far)

    def down(self, near, far, state):
        try:
            while data := far.recv(65536):
                with self.lock:
                    cut = self.cuts.pop(0) if state["posting"] and self.cuts else None
                near.sendall(data[:cut])
                if cut is not None:
                    return
        except OSError:
            return
        finally:
            end(near)

    def close(self):
        self.listener.close()


class Shop:
    def __init__(self, folder, cors=True):
        self.pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
        threading.Thread(target=self.pages.serve_forever, daemon=True).start()
        self.origin = f"http://127.0.0.1:{self.pages.server_port}"
        self.provider = CorsProvider(folder / "ledger")
        self.provider.origin = self.origin
        self.gateway = Gateway(folder, self.provider.url, {"cors": {"origins": [self.origin]}} if cors else None)
        self.hop = None

    def __enter__(self):
        try:
            self.gateway.start()
            self.hop = Hop(self.gateway.port)
        except BaseException:
            self.close()
            raise
        return self

    def close(self):
        self.pages.shutdown()
        self.pages.server_close()
        self.provider.close()
        if self.hop:
            self.hop.close()

    def __exit__(self, *_):
        try:
            self.gateway.stop()
        finally:
            self.gateway.kill()
            self.close()


def result_of(child):
    """What a client in a process of its own printed, as JSON."""
    try:
        out, err = child.communicate(timeout=60)
    finally:
        child.kill()
    assert child.returncode == 0, err
    return json.loads(out)
