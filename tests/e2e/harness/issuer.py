"""An issuer of signed tokens, for `tenant: {from: jwt}`: keys made by openssl, and a server
that publishes them. It can be told to hold its answers, or to answer something else."""
import base64
import hashlib
import hmac
import json
import re
import socket
import subprocess
import threading
import time

from .gateway import free_port
from .wire import Closed, Malformed, Wire

NAME = "https://login.test"
AUDIENCE = "payments"


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def run_openssl(*arguments, data=None):
    done = subprocess.run(["openssl", *arguments], input=data, capture_output=True, check=False)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stdout


class RsaKey:
    """A key pair; its public half as a JWK."""

    alg = "RS256"

    def __init__(self, folder, kid):
        self.kid, self.path = kid, str(folder / f"{kid}.pem")
        run_openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", self.path)
        modulus = run_openssl("rsa", "-in", self.path, "-noout", "-modulus").decode()
        number = bytes.fromhex(re.match("Modulus=([0-9A-F]+)", modulus).group(1))
        self.jwk = {"kty": "RSA", "use": "sig", "kid": kid, "n": encode(number), "e": "AQAB"}

    def sign(self, data):
        return run_openssl("dgst", "-sha256", "-sign", self.path, data=data)


class SecretKey:
    alg = "HS256"

    def __init__(self, kid, secret=b"s3cr3t" * 8):
        self.kid, self.secret = kid, secret
        self.jwk = {"kty": "oct", "kid": kid, "k": encode(secret)}

    def sign(self, data):
        return hmac.new(self.secret, data, hashlib.sha256).digest()


def token(key, header=None, sign=None, **claims):
    """Signed by the key. A claim that is None is left out."""
    head = {"alg": key.alg, "kid": key.kid, "typ": "JWT", **(header or {})}
    body = {"iss": NAME, "aud": AUDIENCE, "sub": "alice", "exp": int(time.time()) + 300,
            "jti": base64.b64encode(time.time_ns().to_bytes(8, "big")).decode(), **claims}
    parts = [encode(json.dumps({k: v for k, v in part.items() if v is not None}).encode())
             for part in (head, body)]
    signed = ".".join(parts).encode()
    return "Bearer " + ".".join([*parts, encode((sign or key.sign)(signed))])


class Issuer:
    """Publishes `keys`; `text` and `status`, where they are set, instead."""

    def __init__(self, keys, context=None):
        self.keys, self.context = keys, context
        self.text, self.status = None, 200
        self.port = free_port()
        self.asked = 0
        self.news = threading.Condition()
        self.open = threading.Event()
        self.open.set()
        self.listener = None
        self.start()

    @property
    def url(self):
        scheme = "https" if self.context else "http"
        return f"{scheme}://127.0.0.1:{self.port}/jwks.json"

    def start(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self.accept_all, args=(self.listener,), daemon=True).start()

    def stop(self):
        self.open.set()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def accept_all(self, listener):
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        sock.settimeout(60)
        try:
            if self.context:
                sock = self.context.wrap_socket(sock, server_side=True)
            wire = Wire(sock)
            wire.line(), wire.fields()
            with self.news:
                self.asked += 1
                self.news.notify_all()
            self.open.wait(60)
            body = self.text or json.dumps({"keys": [key.jwk for key in self.keys]})
            wire.send(f"HTTP/1.1 {self.status} X\r\nConnection: close\r\nContent-Length: "
                      f"{len(body)}\r\n\r\n{body}".encode())
            sock.close()
        except (OSError, Closed, Malformed):
            sock.close()

    def wait_asked(self, count):
        with self.news:
            assert self.news.wait_for(lambda: self.asked >= count, 15), self.asked
