"""The upstream by itself and nginx as a plain proxy, which are the limits, and hapax."""
import urllib.request

from . import database
from .process import Failed, free_port
from .system import System

NGINX = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log crit;
events {{ worker_connections 11000; }}
http {{
	access_log off;
	client_body_temp_path {folder}/body;
	proxy_temp_path {folder}/proxy;
	fastcgi_temp_path {folder}/fastcgi;
	uwsgi_temp_path {folder}/uwsgi;
	scgi_temp_path {folder}/scgi;
	client_max_body_size 4m;
	client_body_buffer_size {body};
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	upstream service {{
		server {upstream};
		keepalive 256;
		keepalive_requests 1000000000;
	}}
	server {{
		listen 127.0.0.1:{port} backlog=4096{tls};
		location / {{
			proxy_pass http://service;
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $host;
			proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
			{buffers}
		}}
	}}
}}
"""


class Bare(System):
    """The upstream itself: what a system adds is its own figure less this one."""
    name = "upstream"
    title = "the upstream, nothing before it"
    kind = "limit"
    replays = False
    refuses = False
    passes = True

    def begin(self):
        self.port = self.upstream.port

    def described(self):
        return ["one nginx worker that answers at once; its own CPU is in no figure"]


class Nginx(System):
    name = "nginx"
    title = "nginx, plain proxy"
    kind = "limit"
    replays = False
    refuses = False
    passes = True

    def begin(self):
        large = self.load is not None and self.load.path == "/large"
        tls = ""
        if self.load is not None and self.load.tls:
            certificate, key = self.pair()
            tls = f" ssl; ssl_protocols TLSv1.3; ssl_certificate {certificate}; ssl_certificate_key {key}"
        config = self.folder / "nginx.conf"
        config.write_text(NGINX.format(
            folder=self.folder, port=self.port, tls=tls, upstream=self.upstream.url.removeprefix("http://"),
            body="512k" if large else "16k", buffers="proxy_buffers 20 16k;" if large else ""), encoding="ascii")
        self.program("nginx", ["nginx", "-c", config, "-p", self.folder])

    def described(self):
        return ["one worker, 256 kept-alive connections to the upstream, no access log; no idempotency at all"]


class Hapax(System):
    kind = "hapax"
    passes = True
    asynchronous = "/payments"
    loops = None
    binary = None         # None: the program that was built

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.admin = free_port()

    def metric(self, name):
        """One of its counters, without labels."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=30) as answer:
            for line in answer.read().decode("utf-8").splitlines():
                if line.startswith(f"{name} "):
                    return float(line.split()[1])
        raise Failed(f"{self.name} has no {name}")

    def config(self):
        listen = f"127.0.0.1:{self.port}"
        if self.load is not None and self.load.tls:
            certificate, key = self.pair()
            listen = f"[{{address: \"{listen}\", tls: {{certificate: \"{certificate}\", key: \"{key}\"}}}}]"
        lines = [f"listen: {listen}", f"admin: 127.0.0.1:{self.admin}", f"upstream: {self.upstream.url}",
                 "upstream_name: payments", f"store: {self.store}"]
        if self.loops is not None:
            lines.append(f"loops: {self.loops}")
        if self.load is not None:
            lines += self.load.hapax(self.upstream)
        return "\n".join(lines) + "\n"

    def open_store(self):
        """Says where the store is; starts its database where it has one."""
        raise NotImplementedError

    def command(self):
        path = self.folder / "hapax.yaml"
        path.write_text(self.config(), encoding="ascii")
        return [self.binary or self.settings.hapax, "serve", "--config", path]

    def begin(self):
        self.open_store()
        self.program("hapax", self.command())

    def described(self):
        loops = "event loops: one per core (the default)" if self.loops is None else f"`loops: {self.loops}`"
        return [f"{loops}; everything else at its default", *super().described()]


class HapaxSqlite(Hapax):
    name = "hapax-sqlite"
    title = "hapax, SQLite, one loop"
    loops = 1

    def open_store(self):
        self.store = self.store or f"sqlite:{self.folder}/hapax.db"

    def durable(self):
        """What the file says; that each commit is synced, the probe sees by itself."""
        with open(self.store.removeprefix("sqlite:"), "rb") as file:
            versions = file.read(20)[18:20]
        return {"journal": ("WAL" if versions == b"\x02\x02" else f"{versions!r}", "WAL")}


class HapaxDefault(HapaxSqlite):
    name = "hapax-sqlite-default"
    title = "hapax, SQLite, defaults"
    loops = None


class HapaxPostgres(Hapax):
    name = "hapax-postgres"
    title = "hapax, PostgreSQL, one loop"
    loops = 1

    def open_store(self):
        self.database = database.Postgres(self.root, self.folder, self.store)
        self.store = self.database.url


def with_program(system, binary):
    """The same system with another hapax program."""
    return type(f"{system.__name__}Against", (system,), {
        "name": f"{system.name}-against", "title": f"{system.title}, the program of AGAINST", "binary": binary,
        "original": system.name})
