"""Shows TLS towards clients: certificates by name, versions and protocols, certificates that
are replaced under load, clients that show certificates, load balancers that send PROXY
headers, and every way in which a client's connection can end; the ledger is the judge."""
import json
import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading

import pytest

from harness import secret
from harness.caller import wait_for
from harness.external_tls import Authority, MemoryTls, client_context
from harness.gateway import free_port
from harness.wire import Closed, Wire

REPLACED = 100
V2 = b"\r\n\r\n\0\r\nQUIT\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


class Door:
    """A listener of the gateway that speaks TLS."""

    def __init__(self, site, authority, config=None, listener=None, **tls):
        self.port = free_port()
        certificate, key = authority.certificate("door")
        self.authority = authority
        self.files = (certificate, key)
        self.site = site({**(config or {}), "listen": [
            {"address": f"127.0.0.1:{self.port}", **(listener or {}),
             "tls": {"certificate": certificate, "key": key, **tls}}]})
        self.gateway, self.provider = self.site.gateway, self.site.provider

    def connect(self, context=None, name="localhost", before=b""):
        sock = socket.create_connection(("127.0.0.1", self.port), 15)
        sock.sendall(before)
        context = context or client_context(self.authority.ca_file)
        return Wire(context.wrap_socket(sock, server_hostname=name))

    def call(self, method="POST", target="/pay", context=None, before=b"", **how):
        with self.connect(context, before=before) as wire:
            wire.send(self.gateway.request(method, target, **how))
            return wire.answer(method)

    def handshakes(self, result):
        return self.gateway.metrics()[
            f'hapax_tls_handshakes_total{{place="127.0.0.1:{self.port}",result="{result}"}}']


@pytest.fixture
def door(site, authority):
    return lambda config=None, **how: Door(site, authority, config, **how)


def test_guarded_over_tls(door):
    """A POST and its retry; what the upstream is told."""
    one, key = door(), secret.new_key()
    first, second = one.call(key=key), one.call(key=key)
    assert first.status == 200 and second.replayed and second.body == first.body
    assert len(one.provider.ledger(key)) == 1
    assert one.provider.seen(key=key)[0]["X-Forwarded-Proto"] == "https"
    assert one.gateway.post().status == 200, "the plain listener beside it"


@pytest.mark.parametrize("version, good", [
    (ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True),
])
@pytest.mark.parametrize("least", ["1.2", "1.3"])
def test_versions(door, version, good, least):
    """TLS 1.2 and 1.3; min_version takes 1.2 away."""
    one = door(min_version=least)
    context = client_context(one.authority.ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1
    context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    if good and not (least == "1.3" and version == ssl.TLSVersion.TLSv1_2):
        assert one.call(context=context).status == 200
        return
    with pytest.raises(ssl.SSLError):
        one.call(context=context)
    wait_for(lambda: one.handshakes("no_common_version") == 1)


@pytest.mark.parametrize("offered, chosen", [
    (["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), (None, None), (["h2"], "refused"),
])
def test_alpn(door, offered, chosen):
    one = door()
    context = client_context(one.authority.ca_file)
    if offered:
        context.set_alpn_protocols(offered)
    if chosen == "refused":
        with pytest.raises(ssl.SSLError):
            one.connect(context)
        return
    with one.connect(context) as wire:
        assert wire.sock.selected_alpn_protocol() == chosen


def test_certificates_by_name(door, authority):
    """SNI chooses; who names nobody, or somebody unknown, gets the first."""
    pairs = [authority.certificate(name, names=f"DNS:{name}") for name in ("a.test", "b.test")]
    one = door(certificate=[pair[0] for pair in pairs], key=[pair[1] for pair in pairs])
    context = client_context(authority.ca_file)
    context.check_hostname = False
    for name, want in (("a.test", "a.test"), ("b.test", "b.test"), ("c.test", "a.test"), (None, "a.test")):
        with one.connect(context, name=name) as wire:
            assert dict(x[0] for x in wire.sock.getpeercert()["subject"])["commonName"] == want, name


def test_sessions_are_resumed(door):
    one = door()
    context = client_context(one.authority.ca_file)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with one.connect(context) as wire:
        session = wire.sock.session
    sock = socket.create_connection(("127.0.0.1", one.port), 15)
    with context.wrap_socket(sock, server_hostname="localhost", session=session) as again:
        assert again.session_reused
    wait_for(lambda: one.handshakes("resumed") == 1)


# ---- certificates are replaced ----

def replace(pair, files):
    """Another pair in the place of the old one, each file by a rename."""
    for new, old in zip(pair, files):
        shutil.copy(new, f"{old}.new")
        os.replace(f"{old}.new", old)


def test_replaced_under_load(door, authority):
    """A hundred times new files and SIGHUP, while clients call on kept and on new connections:
    no request fails, and in the end the last certificate is shown."""
    one = door()
    pairs = [authority.certificate(f"new{n}") for n in range(4)]
    stop, failed, done = threading.Event(), [], [0]

    def kept():
        try:
            with one.connect() as wire:
                while not stop.is_set():
                    wire.send(one.gateway.request("POST", "/pay"))
                    assert wire.answer("POST").status == 200
                    done[0] += 1
        except (OSError, Closed, AssertionError) as error:
            failed.append(repr(error))

    def fresh():
        while not stop.is_set():
            try:
                assert one.call().status == 200
                done[0] += 1
            except (OSError, Closed, AssertionError) as error:
                failed.append(repr(error))
    threads = [threading.Thread(target=work) for work in (kept, kept, fresh, fresh)]
    for thread in threads:
        thread.start()
    for n in range(REPLACED):
        before = len(one.gateway.lines)
        replace(pairs[n % 4], one.files)
        one.gateway.signal(1)
        one.gateway.wait_log(r"event=reloaded", since=before)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed, (len(failed), failed[:3], done)
    assert done[0] > REPLACED
    with one.connect() as wire:
        subject = dict(x[0] for x in wire.sock.getpeercert()["subject"])
    assert subject["commonName"] == f"new{(REPLACED - 1) % 4}"


def test_new_files_are_found(door, authority):
    """Without a signal; a key that does not fit yet changes nothing. The time of expiry is
    that of the certificate in force, not of the file."""
    one = door()
    certificate, key = authority.certificate("later", days=30)

    def days_left():
        sample = f'hapax_tls_certificate_expiry_seconds{{place="127.0.0.1:{one.port}",file="{one.files[0]}"}}'
        return one.gateway.metrics()[sample] / 86400
    os.replace(certificate, one.files[0])
    one.gateway.wait_log("event=tls_reload_failed.*not the key of the certificate")
    assert one.call().status == 200, "the old pair is still in force"
    assert 0 < days_left() <= 1
    os.replace(key, one.files[1])
    one.gateway.wait_log("event=tls_reloaded.*why=files")
    with one.connect() as wire:
        assert dict(x[0] for x in wire.sock.getpeercert()["subject"])["commonName"] == "later"
    assert 29 < days_left() <= 30
    assert one.gateway.metrics()['hapax_tls_reloads_total{result="failed"}'] == 1


def test_check_looks_at_the_files(door, authority, tmp_path):
    """What `hapax check` says of files; and such a configuration is not started."""
    one = door()
    other = authority.certificate("other")
    rows = [("/nowhere.pem", one.files[1], "no such file"), (one.files[0], other[1], "not the key"),
            (*authority.certificate("old", days=-1), "has expired"), (one.files[1], one.files[1], "no start line"),
            (*one.files, "expires in")]
    for certificate, key, words in rows:
        config = tmp_path / "checked.yaml"
        config.write_text(json.dumps({"upstream": "http://127.0.0.1:9", "listen": [
            {"address": "127.0.0.1:8443", "tls": {"certificate": certificate, "key": key}}]}))
        done = subprocess.run([one.gateway.program, "check", "--config", str(config)], capture_output=True,
                              text=True, check=False)
        assert words in done.stdout + done.stderr, (words, done)
        assert done.returncode == (0 if words == "expires in" else 1)
        assert "BEGIN" not in done.stdout + done.stderr


# ---- clients with certificates ----

def showing(authority, pair):
    context = client_context(authority.ca_file)
    context.load_cert_chain(*pair)
    return context


def test_tenant_from_certificate(door, authority):
    """The name is the tenant, whatever the request says; a renewed certificate is the same
    caller, another name another one."""
    one = door({"tenant": {"from": "certificate", "certificate": "uri"}}, client_ca=authority.ca_file)
    key = secret.new_key()
    shop = showing(authority, authority.client("shop"))
    assert one.call(key=key, context=shop).status == 200
    assert one.call(key=key, context=shop, auth="Bearer s3cr3t-other").replayed
    renewed = authority.client("renewed", names="DNS:x.test,URI:spiffe://test/shop")
    assert one.call(key=key, context=showing(authority, renewed)).replayed
    other = one.call(key=key, context=showing(authority, authority.client("till")))
    assert other.status == 200 and not other.replayed
    assert len(one.provider.ledger(key)) == 2
    nameless = authority.client("nameless", names="DNS:nameless.test")
    refused = one.call(key=key, context=showing(authority, nameless))
    assert refused.status == 401 and "tenant.certificate" in refused.json()["detail"]


@pytest.mark.parametrize("kind, result", [
    ("none", "certificate_missing"), ("unknown authority", "certificate_refused"),
    ("expired", "certificate_refused"), ("a server's", "certificate_refused"),
])
def test_clients_without_a_good_certificate(door, authority, tmp_path, kind, result):
    """No request of theirs is read."""
    one = door({"tenant": {"from": "certificate"}}, client_ca=authority.ca_file)
    context = client_context(authority.ca_file)
    if kind != "none":
        context.load_cert_chain(*{
            "unknown authority": lambda: Authority(tmp_path / "other").client(),
            "expired": lambda: authority.client("gone", days=-1),
            "a server's": lambda: authority.certificate("server"),
        }[kind]())
    with pytest.raises((OSError, Closed)):
        one.call(context=context)
    wait_for(lambda: one.handshakes(result) == 1)
    assert one.provider.seen() == []


# ---- load balancers ----

def v2_header(address, command=0x21):
    block = socket.inet_aton(address) + socket.inet_aton("10.0.0.1") + struct.pack("!HH", 4711, 443)
    return V2 + bytes([command, 0x11]) + struct.pack("!H", len(block)) + block


@pytest.mark.parametrize("before, seen", [
    (b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 443\r\n", "192.0.2.7"),
    (b"PROXY TCP6 2001:db8::7 2001:db8::1 4711 443\r\n", "2001:db8::7"),
    (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
    (v2_header("192.0.2.7"), "192.0.2.7"),
    (v2_header("192.0.2.7", command=0x20), "127.0.0.1"),
])
def test_proxy_header(door, before, seen):
    """The address in it is the client's, for the upstream and for tenant.anonymous: local."""
    one, key = door({"trusted_peers": ["127.0.0.1"]}, listener={"proxy_protocol": True}), secret.new_key()
    assert one.call(before=before, key=key).status == 200
    assert one.provider.seen(key=key)[0]["X-Forwarded-For"] == seen
    anonymous = one.call(before=before, auth=None)
    assert anonymous.status == (200 if seen == "127.0.0.1" else 401), anonymous


@pytest.mark.parametrize("trusted", [True, False])
def test_no_proxy_header(door, trusted):
    """Without the header, or from somebody who may not send one, nothing is read."""
    peers = ["127.0.0.1"] if trusted else ["192.0.2.1"]
    one = door({"trusted_peers": peers}, listener={"proxy_protocol": True})
    with pytest.raises((OSError, Closed)):
        one.call(before=b"" if trusted else b"PROXY TCP4 192.0.2.7 10.0.0.1 1 2\r\n")
    assert one.gateway.metrics()["hapax_proxy_refused_total"] == 1
    assert one.provider.seen() == []


# ---- the admin listener ----

def test_admin_over_tls(site, authority):
    """With client_ca only who shows a certificate gets the metrics."""
    certificate, key = authority.certificate("admin")
    gateway = site({"admin_tls": {"certificate": certificate, "key": key,
                                  "client_ca": authority.ca_file}}).gateway
    url = f"https://localhost:{gateway.admin_port}/metrics"
    mine = authority.client("ops")
    curl = ["curl", "-sS", "--cacert", authority.ca_file, url]
    shown = subprocess.run([*curl, "--cert", mine[0], "--key", mine[1]], capture_output=True, text=True, check=False)
    assert 'place="admin",result="done"} 1' in shown.stdout, shown
    assert subprocess.run(curl, capture_output=True, check=False).returncode != 0


# ---- how a client's connection ends ----

def executed(one, key):
    return len(one.provider.ledger(key))


def test_plain_http_on_the_tls_port(door):
    one = door()
    with socket.create_connection(("127.0.0.1", one.port), 15) as sock:
        sock.sendall(one.gateway.request("POST", "/pay"))
        while sock.recv(4096):
            pass
    wait_for(lambda: one.handshakes("not_tls") == 1)
    assert one.provider.seen() == []


@pytest.mark.parametrize("how", ["end", "reset", "silence"])
def test_handshake_is_left(door, how):
    """A client that is gone in the handshake, or never goes on with it."""
    one = door({"timeouts": {"head": "500ms"}})
    sock = socket.create_connection(("127.0.0.1", one.port), 15)
    sock.sendall(b"\x16\x03\x01\x00\x80\x01")
    if how == "silence":
        assert sock.recv(100) == b"", "timeouts.head ends it"
    if how == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
    assert one.call().status == 200
    # A reset may come before the connection is accepted; then no handshake began.
    if how != "reset":
        wait_for(lambda: one.handshakes("closed") == 1)


def test_half_close(door):
    """close_notify behind a request: it is executed, and the client gets the answer."""
    one, key = door(), secret.new_key()
    with socket.create_connection(("127.0.0.1", one.port), 15) as sock:
        memory = MemoryTls(sock, client_context(one.authority.ca_file), server_hostname="localhost")
        memory.sendall(one.gateway.request("POST", "/pay", key=key, behave="delay=0.3"))
        with pytest.raises(ssl.SSLWantReadError):
            memory.tls.unwrap()
        sock.sendall(memory.outgoing.read())
        # OpenSSL's own reader stops at its close_notify, so the bytes are counted here.
        got = 0
        while data := sock.recv(65536):
            got += len(data)
        assert got > 200
    assert executed(one, key) == 1
    assert one.call(key=key).replayed


@pytest.mark.parametrize("end", ["close_notify", "end", "reset"])
def test_gone_within_the_body(door, end):
    """Half a request is none."""
    one, key = door(), secret.new_key()
    data = one.gateway.request("POST", "/pay", key=key, body=b"x" * 5000)
    wire = one.connect()
    wire.send(data[:-100])
    finish(wire.sock, end)
    assert one.call(key=key, body=b"x" * 5000).status == 200
    assert executed(one, key) == 1


def finish(tls, end):
    if end == "close_notify":
        try:
            tls.settimeout(1)
            tls.unwrap()
        except OSError:
            pass
    elif end == "reset":
        tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    elif end == "broken record":
        raw = socket.socket(fileno=tls.detach())
        raw.sendall(b"\x17\x03\x03\x00\x20" + b"\xaa" * 32)
        raw.close()
        return
    tls.close()


@pytest.mark.parametrize("end", ["close_notify", "end", "reset", "broken record"])
def test_gone_while_it_is_executed(door, end):
    """The attempt goes on, and its answer is there for the retry."""
    one, key = door(), secret.new_key()
    gate = one.provider.gate("left")
    wire = one.connect()
    wire.send(one.gateway.request("POST", "/pay", key=key, behave="hold=left"))
    gate.wait_arrived()
    finish(wire.sock, end)
    gate.release()
    answers = [one.call(key=key)]
    while answers[-1].status == 409 and answers[-1].json()["code"] == "idempotency_key_in_progress":
        answers.append(one.call(key=key))
    assert answers[-1].replayed and executed(one, key) == 1, answers[-1]


def test_an_alert_while_it_is_executed(door):
    """An alert ends the connection, and not the request that was complete."""
    one, key = door(), secret.new_key()
    gate = one.provider.gate("alerted")
    with socket.create_connection(("127.0.0.1", one.port), 15) as sock:
        memory = MemoryTls(sock, client_context(one.authority.ca_file), server_hostname="localhost")
        memory.sendall(one.gateway.request("POST", "/pay", key=key, behave="hold=alerted"))
        gate.wait_arrived()
        memory.alert()
        while sock.recv(65536):
            pass
    gate.release()
    wait_for(lambda: one.call(key=key).status != 409)
    assert one.call(key=key).replayed and executed(one, key) == 1


@pytest.mark.parametrize("behave", ["big=100000;half-body", "big=100000;chunked;half-body"])
def test_an_answer_is_broken_off(door, behave):
    """Half of an answer that passes through ends with a broken connection, never with close_notify."""
    one = door()
    sock = socket.create_connection(("127.0.0.1", one.port), 15)
    with client_context(one.authority.ca_file).wrap_socket(sock, server_hostname="localhost",
                                                           suppress_ragged_eofs=False) as tls:
        tls.sendall(one.gateway.request("GET", "/list", behave=behave))
        with pytest.raises((ssl.SSLEOFError, ConnectionResetError)):
            while True:
                assert tls.recv(65536) != b"", "an end with close_notify: half an answer looks whole"


def test_a_large_answer_to_a_slow_client(door):
    """Records wait their turn: every byte arrives, in order."""
    one = door()
    with one.connect() as wire:
        for _ in range(50):
            wire.send(one.gateway.request("GET", "/large", behave="big=200000"))
        got = [len(wire.answer("GET").body) for _ in range(50)]
    assert set(got) == {200000}
