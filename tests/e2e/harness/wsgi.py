"""An upstream behind Python's own WSGI server, as many services are. The server
reads `-` and `_` in a header's name as one, and the application, as Django and
Werkzeug do, writes the method in capitals before it looks."""
import socketserver
import threading
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer


class Handler(WSGIRequestHandler):
    def log_message(self, *_):
        """Nothing: the test judges by the effects."""


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


class WsgiUpstream:
    """Every request that changes something is one effect: (method, path, environ)."""

    def __init__(self):
        self.effects = []
        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.set_app(self.application)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def application(self, environ, start_response):
        method = environ["REQUEST_METHOD"].upper()
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        if method not in ("GET", "HEAD", "OPTIONS"):
            self.effects.append((method, environ["PATH_INFO"], environ))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"effect %d" % len(self.effects)]

    def of(self, path):
        """The effects on one path."""
        return [effect for effect in self.effects if effect[1] == path]

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()
