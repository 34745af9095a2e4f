"""What a user would pick instead: services with idempotency inside, in Node. Each
handler calls the same upstream once per execution."""
import json
import os
import platform
import urllib.error
import urllib.request

from . import database
from .process import Failed, free_port, run
from .settings import BENCH
from .system import POOL, System, npm, version_of


class NodeService(System):
    packages = ()

    @classmethod
    def install(cls):
        npm(cls.name)

    def node(self, env, port=None):
        self.program("node", ["node", BENCH / "systems" / self.name / "server.js"],
                     {"PORT": str(port or self.port), "UPSTREAM": self.upstream.url,
                      "NODE_ENV": "production", "POOL": str(POOL), **env}, port)

    def described(self):
        versions = []
        for package in self.packages:
            found = json.loads(version_of(self.name, package).read_text(encoding="utf-8"))
            versions.append(f"{package} {found['version']}")
        return [f"{', '.join(versions)}; one Node process, plain `node:http`", *super().described()]


class NodePostgres(NodeService):
    name = "node-postgres"
    title = "Node, key table in PostgreSQL"
    packages = ("pg",)

    def begin(self):
        self.database = database.Postgres(self.root, self.folder)
        self.node({"DATABASE": self.database.url})

    def described(self):
        return [f"INSERT … ON CONFLICT, call, UPDATE; prepared statements, a pool of {POOL}", *super().described()]


class NodeIdempotency(NodeService):
    name = "node-idempotency"
    title = "@node-idempotency/core, Redis"
    packages = ("@node-idempotency/core", "@node-idempotency/storage-adapter-redis")

    def begin(self):
        self.database = database.Redis(self.folder)
        self.node({"REDIS": self.database.url})


class Dbos(NodeService):
    name = "dbos"
    title = "DBOS, PostgreSQL"
    packages = ("@dbos-inc/dbos-sdk",)
    refuses = False   # a second call waits for the first one's result

    def begin(self):
        self.database = database.Postgres(self.root, self.folder)
        self.node({"DATABASE": self.database.url.replace("postgres://", "postgresql://")})

    def described(self):
        return [f"a workflow of one step, the key as its id; a pool of {POOL}", *super().described()]


class Restate(NodeService):
    name = "restate"
    title = "Restate"
    packages = ("@restatedev/restate-server", "@restatedev/restate-sdk")
    refuses = False   # a second call attaches to the first
    asynchronous = "/payments/pay/send"
    status = 200
    paths = {"/payments": "/payments/pay", "/large": "/payments/large", "/payments/pay/send": "/payments/pay/send"}

    @staticmethod
    def binary():
        machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
        path = (BENCH / "systems" / "restate" / "node_modules" / "@restatedev" /
                f"restate-server-linux-{machine}" / "bin" / "restate-server")
        if not path.exists():
            raise Failed(f"the packages have no restate-server for {machine}")
        return path

    @classmethod
    def install(cls):
        super().install()
        cls.binary()

    def environment(self):
        admin, node = self.ports[1:]
        return {
            "RESTATE_BASE_DIR": str(self.folder / "restate"), "RESTATE_DISABLE_TELEMETRY": "true",
            "RESTATE_LISTEN_MODE": "tcp", "RESTATE_BIND_IP": "127.0.0.1", "RESTATE_LOG_FILTER": "warn",
            "RESTATE_NODE_NAME": "bench", "RESTATE_ADVERTISED_HOST": "127.0.0.1",
            "RESTATE_INGRESS__BIND_PORT": str(self.port), "RESTATE_ADMIN__BIND_PORT": str(admin),
            "RESTATE_BIND_PORT": str(node), "DO_NOT_TRACK": "1",
        }

    def begin(self):
        self.ports = [free_port() for _ in range(3)]
        self.node({}, self.ports[0])
        server = self.program("restate", [self.binary(), "--no-logo"], self.environment())
        server.wait_until(self.register)
        server.wait_until(self.answers)

    def register(self):
        """Tells the server where the handler is; False while it is not up."""
        order = json.dumps({"uri": f"http://127.0.0.1:{self.ports[0]}"}).encode("ascii")
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports[1]}/deployments", order,
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status < 300
        except (urllib.error.URLError, OSError):
            return False

    def answers(self):
        """Its parts take some time to find each other."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/payments/pay", b"{}",
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    def path(self, path):
        return self.paths[path]

    def described(self):
        return ["one server on one node, all settings at their defaults, telemetry off; one handler with one "
                "durable step", *super().described()]

    def durable(self):
        """As the server reads its settings; each of its stores has its own."""
        lines = run([self.binary(), "--dump-config"], env={**os.environ, **self.environment()}).splitlines()
        said = [[part.strip() for part in line.split("=", 1)] for line in lines if "=" in line]
        return {name: (" ".join(sorted({value for key, value in said if key == name})), "false")
                for name in ("rocksdb-disable-wal", "rocksdb-disable-wal-fsync")}
