"""The payments example as its reader runs it: the provider, the service, a
store, and for some a gateway before it. The judges are the provider's ledger,
the shop's rows, and the jobs that are owed."""
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import threading

from . import check, postgres
from .gateway import ROOT, SANITIZER, Gateway, binary, free_port
from .wire import Closed, connect, request_bytes

ALICE, BOB = "Bearer test_key_alice", "Bearer test_key_bob"
ORDERS = ("screening", "authorisation", "capture")
READY_SECONDS = 30


def program(name):
    """examples/payments/NAME of the build that HAPAX_BIN is from."""
    return str(pathlib.Path(binary()).parent / "examples" / "payments" / name)


class Process:
    """One program that says "ready", and its log."""

    def __init__(self, command, accident=None):
        env = {"PAYMENTS_BREAK": accident} if accident else {}
        self.accident = accident
        self.lines = []
        self.news = threading.Condition()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env={**os.environ, **env},
                                        text=True, errors="replace")
        threading.Thread(target=self.read_log, daemon=True).start()
        self.wait_log("ready")

    def read_log(self):
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.rstrip("\n"))
                self.news.notify_all()
        self.process.stdout.close()
        self.process.wait()
        with self.news:
            self.news.notify_all()

    def wait_log(self, text):
        def found():
            return any(text in line for line in self.lines)
        with self.news:
            self.news.wait_for(lambda: found() or self.process.poll() is not None, READY_SECONDS)
        assert found(), f"{self.process.args}: no {text!r} in its log:\n" + "\n".join(self.lines)

    def stands_still(self):
        stat = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii")
        return stat.rpartition(")")[2].split()[0] == "T"

    def wait_gone(self):
        self.process.wait(READY_SECONDS)

    def kill(self):
        self.process.kill()
        self.process.wait(READY_SECONDS)
        assert not any(SANITIZER.search(line) for line in self.lines), "\n".join(self.lines)


def install_node(folder):
    """A copy of the examples with their packages; what npm says where it cannot."""
    shutil.copytree(ROOT / "examples", folder / "examples",
                    ignore=shutil.ignore_patterns("node_modules"))
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=folder / "examples/payments-node",
                          capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr


class House:
    """One shop. `way` is direct, gateway or node; `kind` is sqlite or postgres."""

    def __init__(self, folder, kind, way):
        self.folder, self.kind, self.way = folder, kind, way
        self.cluster = postgres.shared() if kind == "postgres" else None
        self.database = self.cluster.database() if self.cluster else None
        self.store = self.cluster.url(self.database) if self.cluster else f"sqlite:{folder}/shop.db"
        self.provider_port, self.port = free_port(), free_port()
        self.provider = self.service = self.gateway = None
        self.start_provider()
        if way != "direct":
            self.gateway = Gateway(folder, self.upstream(self.port), self.gateway_config())
            self.gateway.start()
        self.start_service()

    def start_provider(self):
        self.provider = Process([program("provider"), str(self.provider_port)])

    @staticmethod
    def upstream(port):
        return f"http://127.0.0.1:{port}"

    def gateway_config(self):
        route = {"match": "POST /payments", "completes": "application", "on_lost": "resume",
                 "fenced": "yes", "server_error": "retry", "lease": "2s"}
        return {"store": self.store, "upstream_name": "payments", "routes": [route],
                "sweep": {"every": "100ms"}, "timeouts": {"first_byte": "2s"}}

    def command(self):
        if self.way == "node":
            return ["node", str(self.folder / "examples/payments-node/server.js"), self.store,
                    str(self.port), str(self.provider_port)]
        behind = ["--behind-gateway"] if self.gateway else ["--lease", "1"]
        return [program("payments"), "--port", str(self.port), "--provider", str(self.provider_port),
                *behind, self.store]

    def start_service(self, accident=None):
        """`accident`: what PAYMENTS_BREAK is set to."""
        self.service = Process(self.command(), accident)
        return self.service

    def restart_service(self, accident=None):
        self.service.kill()
        return self.start_service(accident)

    def move_service(self):
        """A second process, at another address; clients go there from now on."""
        self.port = free_port()
        self.start_service()
        if self.gateway:
            self.gateway.restart({"upstream": self.upstream(self.port)})

    def restore(self):
        if self.service.accident or self.service.process.poll() is not None:
            self.restart_service()

    # The client.
    def call(self, method, path, fields, body=None):
        with connect(("127.0.0.1", self.gateway.port if self.gateway else self.port), 60) as wire:
            wire.send(request_bytes(method, path, fields, body))
            return wire.answer(method)

    def pay(self, key, amount=1250, auth=ALICE, **order):
        """The answer; None where none came."""
        body = json.dumps({"customer": "cus_1", "amount": amount, "currency": "EUR", **order}).encode()
        fields = [("Authorization", auth), ("Idempotency-Key", f'"{key}"'),
                  ("Content-Type", "application/json")]
        try:
            return self.call("POST", "/payments", fields, body)
        except (Closed, ConnectionError):
            return None

    def pay_until_done(self, key):
        """As a client does it: the same key again, until there is an answer that
        is final. Every other one must allow for that."""
        def final():
            answer = self.pay(key)
            if answer is None or answer.status in (409, 502, 503, 504):
                return None
            return answer
        return check.until(final, f"a final answer for {key}", 60)

    def show(self, identity, auth=ALICE):
        return self.call("GET", f"/payments/{identity}", [("Authorization", auth)])

    # The judges.
    def rows(self, sql):
        """Cells as text."""
        if self.cluster:
            return [tuple(row.split("|")) for row in self.cluster.sql(sql, self.database)]
        with sqlite3.connect(f"file:{self.folder}/shop.db?mode=ro", uri=True, timeout=15) as db:
            return [tuple(str(cell) for cell in row) for row in db.execute(sql)]

    def ledger(self):
        """{reference: {order: how often the provider was asked for it}}; an order
        stands in its ledger once for each time that it was executed."""
        with connect(("127.0.0.1", self.provider_port), 60) as wire:
            wire.send(request_bytes("GET", "/ledger"))
            text = wire.answer().body.decode()
        found = {}
        for line in text.splitlines():
            kind, key, _, _, _, calls = line.split("\t")
            orders = found.setdefault(key.strip('"').rpartition(".")[0], {})
            assert kind not in orders, f"executed twice: {line}"
            orders[kind] = int(calls)
        return found

    def jobs(self):
        """{reference: [(name, target), …]}"""
        reference = ("hapax.hex(operation) || hapax.hex(rest) || '.' || hapax.hex(mark)" if self.cluster else
                     "lower(hex(operation)) || '.' || lower(hex(mark))")
        table = "hapax.job" if self.cluster else "hapax_job"
        found = {}
        for one, name, target in self.rows(f"SELECT {reference}, name, target FROM {table}"):
            found.setdefault(one, []).append((name, target))
        return found

    def payments(self):
        """{id: (reference, state, amount, its ledger rows)}"""
        accounts = "(SELECT {} FROM ledger WHERE payment = id AND account = '{}')"
        return {row[0]: row[1:] for row in self.rows(
            "SELECT id, operation, state, amount, (SELECT count(*) FROM ledger WHERE payment = id), "
            f"{accounts.format('sum(amount)', 'provider')}, {accounts.format('sum(amount)', 'merchant')} "
            "FROM payment")}

    def judge(self, *answers):
        """Each is one payment: one order of each kind, two ledger rows, one
        receipt. How often the provider was asked for the last one's."""
        payments, jobs, ledger = self.payments(), self.jobs(), self.ledger()
        assert len({row[0] for row in payments.values()}) == len(payments)
        calls = None
        for answer in answers:
            assert answer.status == 201, answer
            amount = answer.json()["amount"]
            reference, *row = payments[answer.json()["id"]]
            assert row == ["paid", str(amount), "2", str(amount), str(-amount)], answer
            assert jobs[reference] == [("receipt", "mailer")]
            calls = ledger[reference]
            assert set(calls) == set(ORDERS), calls
        return calls

    def close(self):
        for one in (self.service, self.provider):
            if one:
                one.kill()
        if self.gateway:
            try:
                self.gateway.stop()
            finally:
                self.gateway.kill()


