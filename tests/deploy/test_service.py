"""Shows that hapax as a service does what its recipes say, by the commands of the unit
itself: it starts, reloads only what is right, drains when it is stopped, and goes on
with the same keys after an upgrade. No systemd runs here: tests/deploy/systemctl stands
in for it, and systemd-analyze, where it is there, judges unit and drop-in."""
import concurrent.futures
import pathlib
import shutil
import subprocess

import pytest

import chain
from harness import check
from harness.gateway import ROOT, SANITIZER, binary
from harness.secret import new_key
from recipe import require
from test_operate import address, cluster, place_postgres, send  # noqa: F401

HELD = {"X-Behave": "hold=bank"}


class Service:
    """The recipe `systemd`, installed below a folder of the test's own."""

    def __init__(self, recipe, provider, folder):
        self.units, self.etc = folder / "units", folder / "etc"
        self.units.mkdir()
        self.place = {"/etc/hapax": str(self.etc), "/etc/systemd/system": str(self.units), "/var/lib/hapax": str(folder / "lib"),
                      "runuser -u hapax -- ": "", "-o hapax -g hapax ": ""}
        self.env = {"HAPAX_UNITS": str(self.units)}
        self.recipe = recipe("systemd", service=provider.port, replace=self.place, env=self.env)
        self.bin = pathlib.Path(f"{self.recipe.folder}.bin")
        (self.bin / "systemctl").symlink_to(ROOT / "tests/deploy/systemctl")
        unit = self.recipe.own((ROOT / "etc/hapax.service").read_text(encoding="utf-8"))
        (self.units / "hapax.service").write_text(unit.replace("/usr/bin/hapax", str(self.bin / "hapax")), encoding="utf-8")
        self.recipe.run("Start")
        check.until(lambda: "event=ready" in self.journal(), "the service is ready")

    def journal(self):
        return (self.units / "journal").read_text(errors="replace")

    def systemctl(self, verb):
        return subprocess.run([self.bin / "systemctl", verb, "hapax"], env=self.recipe.env, capture_output=True, text=True,
                              timeout=120, check=False)

    def drain(self, provider, key, work):
        """Does `work`, which stops the service, while the provider keeps a request back; when the service
        drains, the provider lets go. The request's answer."""
        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            answer = threads.submit(chain.post, self.recipe.port["8080"], key, headers=HELD)
            provider.gate("bank").wait_arrived()
            work = threads.submit(work)
            try:
                check.until(lambda: "event=draining" in self.journal(), "it drains")
            finally:
                provider.gate("bank").release()
            work.result(60)
            return answer.result(60)


@pytest.fixture
def service(recipe, provider, tmp_path):
    require("install", "curl")
    one = Service(recipe, provider, tmp_path)
    yield one
    if one.systemctl("is-active").returncode == 0:
        assert one.systemctl("stop").returncode == 0, one.journal()
    assert not SANITIZER.search(one.journal()), one.journal()


def test_systemd(service, provider):
    """From the page's own commands to the judge; a reload with a mistake changes nothing."""
    said = service.recipe.run("Check")
    assert said.startswith("active") and said.lower().count("idempotent-replayed: true") == 1, said
    assert len(provider.ledger("order-17")) == 1 and said.count("completed") == 1
    chain.judge(service.recipe, send(service.recipe), lambda key: len(provider.ledger(key)), address(provider))
    config = service.etc / "hapax.yaml"
    right = config.read_text()
    config.write_text(right + "nonsense: 1\n")
    done = service.systemctl("reload")
    assert done.returncode != 0 and "nonsense" in done.stdout + done.stderr, done
    assert service.systemctl("is-active").returncode == 0 and "reload_refused" not in service.journal()
    config.write_text(right)
    assert service.systemctl("reload").returncode == 0
    check.until(lambda: "event=reloaded" in service.journal(), "the right file is reloaded")


def test_systemd_stop_drains(service, provider):
    """What is under way when it is stopped gets its answer, and is replayed after the start."""
    key = new_key()
    answer = service.drain(provider, key, lambda: service.systemctl("stop"))
    assert answer.status == 200 and service.systemctl("is-active").returncode == 3
    assert service.systemctl("start").returncode == 0
    check.until(lambda: service.journal().count("event=ready") == 2, "it is ready again")
    assert chain.post(service.recipe.port["8080"], key, headers=HELD).replayed and len(provider.ledger(key)) == 1


def test_unit_and_drop_in(service):
    """systemd takes both without a remark."""
    require("systemd-analyze")
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(service.units / "hapax.service")],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and "hapax" not in done.stderr, done.stderr


def test_upgrade(service, provider, recipe):
    """Another program on the same store, with a request under way: nothing is lost or done twice."""
    key = new_key()
    page = recipe("upgrade", env={**service.env, "PATH": service.recipe.env["PATH"]})
    page.replace = service.recipe.replace
    newer = service.bin / "hapax-newer"
    shutil.copy(binary(), newer)
    (service.bin / "hapax").unlink()
    (service.bin / "hapax").symlink_to(newer)
    answer = service.drain(provider, key, lambda: page.run("One gateway, on SQLite"))
    assert answer.status == 200
    pid = int((service.units / "hapax.pid").read_text(encoding="ascii"))
    assert pathlib.Path(f"/proc/{pid}/exe").readlink() == newer
    said = page.run("Check")
    assert "is up to date" in said and key not in said, said
    again = chain.post(service.recipe.port["8080"], key, headers=HELD)
    assert again.replayed and again.body == answer.body and len(provider.ledger(key)) == 1


def test_upgrade_postgres(recipe, provider, cluster):  # noqa: F811
    """`hapax migrate` beside a running gateway; and an older program refuses a newer schema."""
    require("psql")
    one = place_postgres(recipe, "postgres-roles", cluster, service=provider.port)
    one.run("Start")
    key = new_key()
    assert chain.post(one.port["8080"], key).status == 200
    assert "up to date" in place_postgres(recipe, "upgrade", cluster).run("Many gateways, on PostgreSQL")
    assert chain.post(one.port["8080"], key).replayed and len(provider.ledger(key)) == 1
    one.stop("hapax serve")
    cluster.sql("INSERT INTO hapax.schema_version VALUES (99)", "payments")
    done = subprocess.run([binary(), "serve", "--config", "hapax.yaml"], cwd=one.folder, capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 1 and "use the newer program" in done.stdout + done.stderr, done
