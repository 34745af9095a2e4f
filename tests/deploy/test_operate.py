"""Shows that the recipes for those who run hapax do what they say: a gateway under a role
that can do nothing but its work, a backup of a running store that is restored, what such
a store has forgotten, an upgrade under load, and the service unit."""
import json
import re
import subprocess

import pytest

import chain
from harness import postgres
from harness.secret import new_key
from recipe import PAGES, blocks, missing, require

HOST = "host=/run/postgresql"
# What a gateway's role must not be able to do, each for itself.
FORBIDDEN = ["DROP TABLE hapax.operation", "ALTER TABLE hapax.operation ADD COLUMN x int", "TRUNCATE hapax.operation",
             "CREATE TABLE hapax.mine (x int)", "DROP SCHEMA hapax CASCADE", "CREATE INDEX ON hapax.operation (key)",
             "CREATE OR REPLACE FUNCTION hapax.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
             "DROP FUNCTION hapax.complete(text, integer, text, bytea, bigint)", "DROP TRIGGER moved ON hapax.operation",
             "ALTER TABLE hapax.operation DISABLE TRIGGER moved", "INSERT INTO hapax.schema_version VALUES (99)",
             "DELETE FROM hapax.schema_version", "UPDATE hapax.recipe SET text = ''", "DELETE FROM hapax.lane",
             "GRANT ALL ON hapax.operation TO shop", "CREATE SCHEMA mine", "CREATE ROLE mine",
             "SELECT hapax.settle('x', 'applied')", "SELECT hapax.complete('x', 200, '', '')"]


@pytest.fixture
def cluster():
    """A PostgreSQL of the test's own: roles belong to all databases of one."""
    if postgres.programs() is None:
        missing("not installed: postgresql")
    one = postgres.Cluster()
    yield one
    one.close()


def place_postgres(recipe, name, cluster, **how):
    return recipe(name, replace={HOST: f"host={cluster.folder}", **how.pop("replace", {})},
                  env={"PGHOST": str(cluster.folder), "PGUSER": "hapax"}, **how)


def send(one):
    return lambda key, **how: chain.post(one.port["8080"], key, **how)


def address(provider):
    """(client's address, scheme) by what hapax wrote: the last address is the one that it saw."""
    def arrived(key):
        request = provider.seen(key=key)[-1]
        return request["X-Forwarded-For"].rpartition(",")[2].strip(), request["X-Forwarded-Proto"]
    return arrived


def psql(cluster, role, sql, database="payments"):
    return subprocess.run([f"{cluster.bin}/psql", "-X", "-h", str(cluster.folder), "-U", role, "-d", database, "-c", sql],
                          capture_output=True, text=True, check=False)


def test_postgres_roles(recipe, provider, cluster):
    """The gateway runs under its role, and the role can do nothing else."""
    require("psql", "curl")
    one = place_postgres(recipe, "postgres-roles", cluster, service=provider.port)
    one.run("Start")
    said = one.run("Check")
    assert said.lower().count("idempotent-replayed: true") == 1 and len(provider.ledger("order-17")) == 1, said
    chain.judge(one, send(one), lambda key: len(provider.ledger(key)), address(provider))
    for sql in FORBIDDEN:
        done = psql(cluster, "payments_gateway", sql)
        assert re.search("must be owner|permission denied|no privileges were granted", done.stderr), (sql, done)
    allowed = psql(cluster, "payments_gateway", "SELECT count(*) FROM hapax.operation")
    assert allowed.returncode == 0, allowed.stderr


def test_postgres_roles_by_hand(recipe, cluster):
    """The GRANT lines of the page come to the same as what `hapax migrate` grants."""
    require("psql")
    granted = ("SELECT coalesce(c.relname, p.proname), x.privilege_type FROM (SELECT oid, relname, relacl FROM pg_class) c "
               "FULL JOIN (SELECT oid, proname, proacl FROM pg_proc) p ON false, "
               "aclexplode(coalesce(c.relacl, p.proacl)) x WHERE x.grantee = 'hapax_gateway'::regrole "
               "UNION SELECT nspname, x.privilege_type FROM pg_namespace, aclexplode(nspacl) x "
               "WHERE x.grantee = 'hapax_gateway'::regrole ORDER BY 1, 2")
    one = place_postgres(recipe, "postgres-roles", cluster)
    one.run("Start", only="psql")
    one.run("Start", only="hapax migrate")
    by_migrate = cluster.sql(granted, "payments")
    assert len(by_migrate) == 11 * 4 + 3 + 2 + 2 * 2 + 1 + 1 + 1, by_migrate
    cluster.sql("DROP OWNED BY hapax_gateway", "payments")
    assert cluster.sql(granted, "payments") == []
    [lines] = [text for language, text, _, heading in blocks((PAGES / "postgres-roles.md").read_text(encoding="utf-8"))
               if language == "sql" and heading == "Start"]
    done = psql(cluster, "payments_owner", lines)
    assert done.returncode == 0, done.stderr
    assert cluster.sql(granted, "payments") == by_migrate


def ledger_csv(one, provider):
    """The provider's export: its ledger, by the references that it was sent."""
    rows = [f"{line[0]},10" for line in provider.ledger()]
    (one.folder / "export.csv").write_text("\n".join(["operation,amount", *rows]) + "\n")


def restored(one, provider, before, since):
    """What is known is replayed; what was executed since the copy was made is not executed again."""
    port, executed = one.port["8080"], len(provider.ledger())
    again = chain.post(port, before)
    assert again.replayed and len(provider.ledger(before)) == 1, again
    for key in since:
        for body in (chain.BODY, b'{"amount": 11}'):
            told = chain.post(port, key, body=body)
            assert told.status == 409 and json.loads(told.body)["code"] == "response_not_kept", told
    assert len(provider.ledger()) == executed
    # A key of its own is as good as before, and so is a caller of its own.
    assert chain.post(port, new_key()).status == 200
    assert chain.post(port, since[0], auth=chain.BOB).status == 200 and len(provider.ledger(since[0])) == 2


def test_backup_sqlite(recipe, provider, tmp_path):
    """Made while requests go on; the page's check finds what was executed since."""
    require("sqlite3")
    store, backups = tmp_path / "lib", tmp_path / "backups"
    store.mkdir()
    backups.mkdir()
    one = recipe("backup", service=provider.port, replace={"/var/lib/hapax": str(store), "/var/backups": str(backups),
                                                           "/etc/hapax/hapax.yaml": "hapax.yaml"})
    (one.folder / "hapax.yaml").write_text(one.own(json.dumps({
        "listen": "127.0.0.1:8080", "admin": "127.0.0.1:8081", "upstream": "http://127.0.0.1:9000",
        "store": "sqlite:/var/lib/hapax/hapax.db", "tenant": {"from": "authorization"}})))
    one.serve("hapax serve --config hapax.yaml")
    chain.judge(one, send(one), lambda key: len(provider.ledger(key)), address(provider))
    before, held, failed, since = new_key(), new_key(), new_key(), [new_key() for _ in range(5)]
    assert chain.post(one.port["8080"], before).status == 200
    assert chain.post(one.port["8080"], failed, headers={"X-Behave": "status=429"}).status == 429
    # One is under way while the copy is made.
    with subprocess.Popen(["curl", "-s", "-m", "30", f"http://127.0.0.1:{one.port['8080']}/payments", "-d", "x", "-H",
                           "Authorization: Bearer s3cr3t-alice", "-H", f"Idempotency-Key: {held}", "-H",
                           "X-Behave: hold=bank"], stdout=subprocess.DEVNULL) as slow:
        provider.gate("bank").wait_arrived()
        assert one.run("SQLite", only=".backup").strip() == "ok"
        provider.gate("bank").release()
        assert slow.wait(30) == 0
    assert (backups / "hapax.db").stat().st_mode & 0o077 == 0
    for key in (*since, failed):
        assert chain.post(one.port["8080"], key).status == 200
    one.stop("hapax serve")
    ledger_csv(one, provider)
    one.run("SQLite", only="rm -f")
    said = one.run("Check", only="--restore")
    assert "6 restored, 1 open" in said and "Something is open" in said, said
    one.serve("hapax serve --config hapax.yaml")
    [lost] = chain.operations(one, held)
    assert lost["state"] == "unknown", lost
    told = chain.post(one.port["8080"], failed)
    assert told.status == 409 and len(provider.ledger(failed)) == 1, told
    restored(one, provider, before, since)
    ledger_csv(one, provider)
    one.run("Check", only="--apply")
    [lost] = chain.operations(one, held)
    assert lost["state"] == "completed", lost


def test_backup_postgres(recipe, provider, cluster, tmp_path):
    """The same by pg_dump, under the gateway's role before and after."""
    require("psql", "pg_dump", "pg_restore", "createdb")
    roles = place_postgres(recipe, "postgres-roles", cluster, service=provider.port)
    roles.run("Start")
    before, since = new_key(), [new_key() for _ in range(5)]
    assert chain.post(roles.port["8080"], before).status == 200
    backup = place_postgres(recipe, "backup", cluster, replace={"/var/backups": str(tmp_path), "/etc/hapax/hapax.yaml": str(roles.folder / "hapax.yaml")})
    backup.run("PostgreSQL")
    for key in since:
        assert chain.post(roles.port["8080"], key).status == 200
    roles.stop("hapax serve")
    config = roles.folder / "hapax.yaml"
    config.write_text(config.read_text().replace("/payments?", "/payments_restored?"))
    ledger_csv(backup, provider)
    said = backup.run("Check", only="--restore")
    assert "5 restored, 0 open" in said, said
    roles.serve("hapax serve --config hapax.yaml")
    restored(roles, provider, before, since)
