"""The upstream, the same for every system: nginx with one worker that answers at
once, counts its requests, and keeps connections. For the storm there is one that
holds its answer (held.py), and for the outage there is none."""
import pathlib
import random
import socket
import string
import sys
import urllib.request

from .process import Failed, Process, accepts, free_port

ANSWER = '{"id":"pay_1001","state":"succeeded","amount":4990,"currency":"EUR"}'
LARGE_BYTES = 256 * 1024

# A POST of a file is 405 to nginx, and error_page makes an answer of it.
CONFIG = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {folder}/upstream.pid;
error_log {folder}/upstream-error.log;
events {{ worker_connections 4096; }}
http {{
	access_log off;
	client_body_temp_path {folder}/upstream-body;
	client_max_body_size 4m;
	client_body_buffer_size 512k;
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	default_type application/json;
	server {{
		listen 127.0.0.1:{port} backlog=4096;
		location / {{ return 201 '{answer}\\n'; }}
		location = /large {{ root {folder}/files; error_page 405 =201 /large; }}
		location = /unavailable {{ return 503 '{{"error":"unavailable"}}\n'; }}
		location = /count {{ stub_status; }}
	}}
}}
"""


class Upstream:
    def __init__(self, folder):
        self.port = free_port()
        self.asked = 0
        files = pathlib.Path(folder) / "files"
        files.mkdir()
        # Letters that no compression makes much of, the same each time.
        note = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=LARGE_BYTES - 12))
        (files / "large").write_text(f'{{"note":"{note}"}}\n', encoding="ascii")
        config = pathlib.Path(folder) / "upstream.conf"
        config.write_text(CONFIG.format(folder=folder, port=self.port, answer=ANSWER), encoding="ascii")
        # Its worker may be another user, who reads the file.
        files.chmod(0o755)
        self.process = Process("upstream", ["nginx", "-c", config, "-p", folder], folder)
        self.process.wait_until(lambda: accepts(self.port))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def count(self):
        """Requests so far, without those that asked for the number."""
        self.asked += 1
        with urllib.request.urlopen(f"{self.url}/count", timeout=10) as answer:
            lines = answer.read().decode("ascii").splitlines()
        return int(lines[2].split()[2]) - self.asked

    def stop(self):
        self.process.stop()


class Refused:
    """A port of which nobody listens, and nobody else can begin to."""

    def __init__(self):
        self.port = free_port()
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", self.port))
        self.process = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def count(self):
        raise Failed("nobody listens, so nobody counts")

    def stop(self):
        self.socket.close()


class Slow:
    """bench-slow: the same time for every answer, for very many at once."""

    def __init__(self, settings, folder, milliseconds):
        self.port = free_port()
        self.process = Process(f"slow-{self.port}", [settings.tool("bench-slow"), self.port, milliseconds], folder)
        self.process.wait_until(lambda: accepts(self.port))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def count(self):
        raise Failed("bench-slow does not count")

    def stop(self):
        self.process.stop()


class Held:
    """Answers each request only after some seconds."""

    def __init__(self, folder, seconds):
        self.port = free_port()
        script = pathlib.Path(__file__).with_name("held.py")
        self.process = Process("held", [sys.executable, script, self.port, seconds], folder)
        self.process.wait_until(lambda: accepts(self.port))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def count(self):
        raise Failed("the held upstream does not count")

    def stop(self):
        self.process.stop()
