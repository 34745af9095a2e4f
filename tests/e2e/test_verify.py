"""Shows that the gateway keeps its promise in the eyes of `hapax verify`: before
an API that knows no keys every row holds, in both dialects, while the gateway is
killed and started again."""
import shlex
import subprocess

import pytest

from conftest import require_program
from harness import check
from harness.flawed.control import Flawed
from harness.gateway import Gateway
from harness.verify import BODY, described, holds, verify
from harness.wire import connect


class Door:
    """A gateway that is started by a shell command, as verify does it."""

    def __init__(self, folder, upstream, config):
        self.gateway = Gateway(folder, upstream, config)
        self.pid_path = folder / "gateway.pid"
        self.log_path = folder / "gateway.log"
        quoted = [shlex.quote(str(p)) for p in (folder, self.pid_path, self.gateway.program,
                                                self.gateway.write_config(), self.log_path)]
        self.start_cmd = ("cd {} && echo $$ >{} && exec {} serve --config {} >>{} 2>&1").format(*quoted)
        self.crash_cmd = f'kill -9 "$(cat {quoted[1]})"'
        self.url = f"http://127.0.0.1:{self.gateway.port}"

    def is_open(self):
        try:
            connect(self.gateway.address).close()
            return True
        except OSError:
            return False

    def __enter__(self):
        self.process = subprocess.Popen(["/bin/sh", "-c", self.start_cmd])
        check.until(self.is_open, "the gateway listens", 30)
        return self

    def __exit__(self, *_):
        subprocess.run(["/bin/sh", "-c", self.crash_cmd], check=False, capture_output=True)
        self.process.wait()
        self.gateway.lines = self.log_path.read_text(errors="replace").splitlines()
        self.gateway.check_log()


@pytest.mark.parametrize("profile, not_applicable", [("ietf", set()), ("stripe", {"outage"})])
def test_the_gateway(tmp_path, profile, not_applicable):
    """Before an API that knows no keys: every row holds, crashes included."""
    require_program()
    config = {"profile": profile, "defaults": {"lease": "2s"}, "sweep": {"every": "100ms"},
              "routes": [{"match": "POST /fails", "server_error": "replay"}]}
    with Flawed(tmp_path, "keyless") as api, Door(tmp_path, api.url, config) as door:
        report = verify(tmp_path, described(door.url, limits={"settle": "10s", "timeout": "10s"}),
                        "--dialect", profile, "--crash-cmd", door.crash_cmd, "--start-cmd", door.start_cmd,
                        "--crashes", "4")
    holds(report, not_applicable=not_applicable)


@pytest.mark.parametrize("profile, not_applicable", [
    ("paypal", set()),
    ("square", {"key_missing", "key_empty", "key_too_long", "key_repeated", "key_malformed", "new_key",
                "binary_body"}),
])
def test_the_gateway_as_others(tmp_path, profile, not_applicable):
    """The profiles of PayPal and Square, in the eyes of their dialects: the key in another header,
    or in the body."""
    require_program()
    body = BODY if profile == "paypal" else BODY[:-1] + ', "idempotency_key": "{{key}}"}'
    config = {"profile": profile, "defaults": {"lease": "2s", "server_error": "retry"},
              "sweep": {"every": "100ms"}, "routes": [{"match": "POST /fails", "server_error": "replay"}]}
    with Flawed(tmp_path, "keyless") as api, Door(tmp_path, api.url, config) as door:
        description = described(door.url, body=body, limits={"settle": "10s", "timeout": "10s"})
        for request in description["requests"].values():
            if "body" in request:
                request["body"] = body
        report = verify(tmp_path, description, "--dialect", profile)
    holds(report, not_applicable=not_applicable | {"crash_once", "crash_kept", "crash_settled"})


def test_the_gateway_by_another_credential(tmp_path):
    """Callers whose credential is not Authorization, and an order that is named by a
    header: nobody gets another one's answer, or that of a request whose header was
    taken off on the way."""
    require_program()
    config = {"tenant": {"from": "credential", "name": "X-Auth-Token"},
              "defaults": {"fingerprint": {"headers": ["X-Order"]}}}
    rows = {"first", "retry", "tenants", "connection_named", "foreign_caller", "other_host", "method_override"}
    with Flawed(tmp_path, "keyless") as api, Door(tmp_path, api.url, config) as door:
        description = described(
            door.url, second_tenant=["X-Auth-Token: {{env:VERIFY_BOB}}"], body='{"amount": 10}',
            headers=["X-Auth-Token: {{env:VERIFY_ALICE}}", "Content-Type: application/json", "X-Order: {{uuid}}"])
        report = verify(tmp_path, description, *[word for row in sorted(rows) for word in ("--only", row)])
    assert report.code == 0 and report.named("holds") == rows, f"{report}"
