"""A shop. Its session cookie keeps its value from the login to the logout."""
import http.cookies
import http.server
import json
import pathlib
import secrets

CLIENT = pathlib.Path(__file__).resolve().parent / "client"  # the folder clients/js
SESSIONS = {}


class Shop(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, kind="application/json", headers=()):
        self.send_response(status)
        for name, value in (("Content-Type", kind), ("Content-Length", len(body)), *headers):
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        name = self.path.removeprefix("/client/")
        if name in {path.name for path in CLIENT.glob("*.js")}:
            self.answer(200, (CLIENT / name).read_bytes(), "text/javascript")
        else:
            self.answer(200, pathlib.Path("page.html").read_bytes(), "text/html; charset=utf-8")

    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/login":  # a password belongs here
            session = secrets.token_urlsafe(24)
            SESSIONS[session] = order["user"]
            cookie = f"session={session}; Path=/; HttpOnly; Secure; SameSite=Strict"
            return self.answer(200, b"{}", headers=[("Set-Cookie", cookie)])
        cookies = http.cookies.SimpleCookie(self.headers.get("Cookie", ""))
        user = SESSIONS.get(cookies["session"].value if "session" in cookies else None)
        if user is None:
            return self.answer(401, b"{}")
        address = self.headers["X-Forwarded-For"].rpartition(",")[2].strip()  # as hapax saw it
        line = (self.headers["Idempotency-Key"], address, user, str(order["amount"]))
        with open("payments.log", "a", encoding="utf-8") as log:  # here the money moves
            log.write("\t".join(line) + "\n")
        self.answer(201, json.dumps({"user": user, "amount": order["amount"]}).encode())


http.server.ThreadingHTTPServer(("127.0.0.1", 9000), Shop).serve_forever()
