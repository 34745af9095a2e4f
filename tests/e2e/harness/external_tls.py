"""Certificates for the external service, made by openssl when a test starts, so
that none lies in the tree and none ever expires there."""
import pathlib
import ssl
import subprocess

NAMES = "DNS:localhost,IP:127.0.0.1"


def openssl(folder, *arguments):
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, f"openssl {' '.join(arguments)}:\n{done.stderr}"


def new_key(folder, name):
    openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")


class Authority:
    """A certificate authority in a folder; `ca_file` is what a client has to trust."""

    def __init__(self, folder, name="ca"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.ca_file = str(self.folder / f"{name}.pem")
        new_key(self.folder, name)
        openssl(self.folder, "req", "-x509", "-new", "-key", f"{name}.key", "-sha256",
                "-days", "2", "-subj", f"/CN=test {name}", "-out", self.ca_file,
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def certificate(self, name="server", names=NAMES, usage="serverAuth", subject=None, days=1):
        """A chain and its key, as paths; `names`: whom it speaks for; `days` below 0: it has
        expired."""
        new_key(self.folder, name)
        openssl(self.folder, "req", "-new", "-key", f"{name}.key", "-subj", subject or f"/CN={name}",
                "-out", f"{name}.csr")
        (self.folder / f"{name}.ext").write_text(
            f"subjectAltName={names}\nextendedKeyUsage={usage}\nbasicConstraints=CA:FALSE\n")
        openssl(self.folder, "x509", "-req", "-in", f"{name}.csr", "-CA", self.ca_file,
                "-CAkey", f"{self.name}.key", "-CAcreateserial", "-days", str(days), "-sha256",
                "-extfile", f"{name}.ext", "-out", f"{name}.pem")
        return str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")

    def client(self, name="client", **how):
        """The same for a client."""
        return self.certificate(name, **{"names": f"DNS:{name}.test,URI:spiffe://test/{name}",
                                         "usage": "clientAuth", **how})


def server_context(certificate, key):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


def client_context(ca_file):
    """Trusts this authority and nobody else, and checks the name."""
    return ssl.create_default_context(cafile=ca_file)


class MemoryTls:
    """TLS on a socket with the records in the test's hands, so that it can send an alert of
    its own."""

    def __init__(self, sock, context, **how):
        self.sock, self.incoming, self.outgoing = sock, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, **how)
        self.step(self.tls.do_handshake)

    def step(self, call):
        """Until it needs no more bytes."""
        while True:
            try:
                result = call()
                self.sock.sendall(self.outgoing.read())
                return result
            except ssl.SSLWantReadError:
                self.sock.sendall(self.outgoing.read())
                data = self.sock.recv(65536)
                if not data:
                    raise ConnectionError("the other side ended") from None
                self.incoming.write(data)

    def recv(self, most):
        return self.step(lambda: self.tls.read(most))

    def sendall(self, data):
        self.step(lambda: self.tls.write(data))

    def alert(self):
        """A fatal one, encrypted as it must be: this side's own answer to a record that it
        cannot read."""
        self.incoming.write(b"\x17\x03\x03\x00\x20" + b"\xaa" * 32)
        try:
            self.tls.read(1)
        except ssl.SSLWantReadError as unread:
            raise AssertionError("the broken record was not looked at") from unread
        except ssl.SSLError:
            pass
        data = self.outgoing.read()
        assert data, "no alert was made"
        self.sock.sendall(data)
