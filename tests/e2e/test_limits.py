"""Shows that one greedy caller, one slow caller or a crowd takes from the others
neither the gateway's descriptors, its memory, its connections nor its time: who asks
for too much is told so, and whoever does not is served."""
import contextlib
import http.client
import resource
import socket

from harness import check
from harness.secret import new_key


def idle_sockets(address, count, stack):
    """Connections that send nothing, as many as can be made."""
    sockets = []
    for _ in range(count):
        sock = socket.socket()
        stack.callback(sock.close)
        with contextlib.suppress(OSError):
            sock.connect(address)
            sockets.append(sock)
    return sockets


def admin_says(gateway, path="/healthz"):
    connection = http.client.HTTPConnection("127.0.0.1", gateway.admin_port, timeout=10)
    with contextlib.closing(connection):
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


# ---- descriptors ----

def test_idle_connections_on_the_admin_listener(site):
    """3,000 connections that ask for nothing do not keep a health check out."""
    one = site()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        with contextlib.ExitStack() as stack:
            idle_sockets(("127.0.0.1", one.gateway.admin_port), 3000, stack)
            assert admin_says(one.gateway) == (200, b"ok\n")
            assert one.gateway.post().status == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_descriptors_run_out(site):
    """A crowd on the main listener uses up the descriptors for clients, and no others:
    health and metrics answer, the log has a line, the metric counts."""
    one = site({"loops": 1}, wrap=["prlimit", "--nofile=200:200"])
    one.gateway.wait_log("event=descriptors_short limit=200 wanted=10")
    with contextlib.ExitStack() as stack:
        idle_sockets(one.gateway.address, 400, stack)
        line = one.gateway.wait_log("event=descriptors_exhausted")
        assert "remedy=" in line
        assert admin_says(one.gateway) == (200, b"ok\n")
        assert one.gateway.metrics()["hapax_descriptors_exhausted_total"] >= 200
        assert one.gateway.metrics()["hapax_connections"] > 50
    check.until(lambda: one.gateway.metrics()["hapax_connections"] == 0, "the crowd is gone")
    key = new_key()
    assert one.gateway.post(key=key).status == 200
    assert len(one.provider.ledger(key)) == 1


def test_descriptor_limit_is_raised(site):
    """The soft limit is raised to what the configuration can need, without a word."""
    one = site({"limits": {"connections": 3000}}, wrap=["prlimit", "--nofile=1024:8192"])
    with open(f"/proc/{one.gateway.pid}/limits", encoding="ascii") as file:
        line = next(l for l in file if l.startswith("Max open files"))
    assert 3000 < int(line.split()[3]) <= 8192
    assert not [l for l in one.gateway.lines if "descriptors_short" in l]
