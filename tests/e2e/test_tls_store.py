"""Shows the TLS of the store: a PostgreSQL that takes nothing but TLS with a password, its
certificate of a test authority, and `sslmode=verify-full`."""
import os
import shutil
import subprocess

import pytest

from harness import postgres, secret
from harness.caller import wait_for
from harness.external_tls import Authority
from harness.gateway import binary, free_port

PASSWORD = "correct-horse-battery-staple"
FAILED = 1

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


class TlsCluster(postgres.Cluster):
    """On its loopback port it speaks TLS only, and wants a password."""

    def __init__(self, pair):
        self.pair = pair
        super().__init__(["ssl_cert_file=../server.pem", "ssl_key_file=../server.key", "ssl=on"], free_port())
        self.sql(f"ALTER ROLE hapax PASSWORD '{PASSWORD}'")

    def make(self):
        super().make()
        self.put(*self.pair)
        (self.folder / "data" / "pg_hba.conf").write_text(
            "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n", encoding="ascii")

    def put(self, certificate, key):
        """The server's pair, which only its own user may read."""
        for path, name in ((certificate, "server.pem"), (key, "server.key")):
            to = self.folder / name
            shutil.copy(path, to)
            os.chmod(to, 0o600)
            if self.who:
                os.chown(to, self.who["user"], self.who["group"])

    def tls_url(self, database, ca_file, host="localhost", password=PASSWORD, sslmode="verify-full"):
        return (f"postgres://hapax:{password}@{host}:{self.port}/{database}"
                f"?sslmode={sslmode}&sslrootcert={ca_file}")


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def cluster(authority):
    one = TlsCluster(authority.certificate("db", names="DNS:localhost"))
    yield one
    one.close()


def test_right_authority_and_name(site, cluster, authority):
    """Everything goes over TLS, connections that are made anew after an outage too."""
    database = cluster.database()
    one = site({"store": cluster.tls_url(database, authority.ca_file)})
    key = secret.new_key()
    assert one.gateway.post(key=key).status == 200
    used = cluster.sql("SELECT DISTINCT s.ssl, s.version FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) "
                       f"WHERE a.datname = '{database}' AND a.client_addr IS NOT NULL")
    assert used == ["t|TLSv1.3"], used
    cluster.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'")
    later = secret.new_key()
    wait_for(lambda: one.gateway.post(key=later).status == 200)
    assert one.gateway.post(key=key).replayed
    assert len(one.provider.ledger(key)) == len(one.provider.ledger(later)) == 1
    assert PASSWORD not in "\n".join(one.gateway.lines)


@pytest.mark.parametrize("case, told", [
    ("authority", "certificate verify failed"),
    ("name", "does not match host name '127.0.0.1'"),
    ("plain", "no encryption"),
    ("missing", "does not exist"),
    ("password", "password authentication failed"),
])
@pytest.mark.parametrize("command", ["serve", "migrate"])
def test_refused_at_start(tmp_path, cluster, authority, command, case, told):
    """A wrong authority, a wrong name, no TLS, no file of authorities, a wrong password: it
    does not start, says why, and does not show the password."""
    database = cluster.database()
    url = {
        "authority": lambda: cluster.tls_url(database, Authority(tmp_path / "other", "other").ca_file),
        "name": lambda: cluster.tls_url(database, authority.ca_file, host="127.0.0.1"),
        "plain": lambda: cluster.tls_url(database, authority.ca_file, sslmode="disable"),
        "missing": lambda: cluster.tls_url(database, tmp_path / "nothing.pem"),
        "password": lambda: cluster.tls_url(database, authority.ca_file, password=f"{PASSWORD}-not"),
    }[case]()
    config = tmp_path / "hapax.yaml"
    config.write_text(f"listen: 127.0.0.1:{free_port()}\nadmin: 127.0.0.1:{free_port()}\n"
                      f"upstream: http://127.0.0.1:{free_port()}\nupstream_name: provider\nstore: \"{url}\"\n",
                      encoding="ascii")
    how = ["--config", str(config)] if command == "serve" else ["--store", url]
    done = subprocess.run([binary(False), command, *how], capture_output=True, text=True, timeout=60, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == FAILED and told in said, f"exit {done.returncode}:\n{said}"
    assert PASSWORD not in said, said
    assert not cluster.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'hapax'", database), "nothing was made"


def test_a_certificate_of_another_authority_later(site, cluster, authority, tmp_path):
    """Somebody else answers in the database's place after an outage: guarded requests get
    503 and nothing is executed; they go on when the right one is back."""
    one = site({"store": cluster.tls_url(cluster.database(), authority.ca_file)})
    assert one.gateway.post(key=secret.new_key()).status == 200
    other = Authority(tmp_path / "other", "other").certificate("db", names="DNS:localhost")
    cluster.stop()
    cluster.put(*other)
    cluster.start()
    key = secret.new_key()
    try:
        for _ in range(5):
            assert one.gateway.post(key=key).status == 503
        assert one.gateway.metrics()["hapax_store_up"] == 0
        assert not one.provider.ledger(key)
    finally:
        cluster.stop()
        cluster.put(*cluster.pair)
        cluster.start()
    wait_for(lambda: one.gateway.post(key=key).status == 200)
    assert len(one.provider.ledger(key)) == 1
    assert PASSWORD not in "\n".join(one.gateway.lines)
