"""What the machine itself can do: the disk, PostgreSQL with two transactions per
request and nobody in between, and the generator against the bare upstream."""
import contextlib
import json
import os
import pathlib
import re
import resource
import subprocess
import time

from . import database, figures, usage
from .process import Failed, die_with_parent, run
from .upstream import ANSWER

# The usual pattern, as node-postgres has it: a new key, then its answer.
TABLE = ("CREATE TABLE idempotency_key (key text PRIMARY KEY, fingerprint bytea NOT NULL, "
         "created timestamptz NOT NULL DEFAULT now(), status integer, type text, body bytea)")
SCRIPT = """\\set n random(1, 9000000000000000000)
INSERT INTO idempotency_key (key, fingerprint) VALUES ('run-' || :n, sha256('fingerprint')) ON CONFLICT DO NOTHING;
UPDATE idempotency_key SET status = 201, type = 'application/json', body = '{answer}' WHERE key = 'run-' || :n;
"""


CONNECT_SECONDS = 0.02
CONNECT_SECONDS_MAX = 30


def disk(settings, folder):
    words = [settings.tool("bench-disk"), pathlib.Path(folder) / "disk", round(settings.seconds * 500)]
    return json.loads(run(words))


def direct(settings, upstream):
    """The generator, and wrk beside it, without anything before the upstream."""
    words = [settings.tool("bench-load"), "--to", f"127.0.0.1:{upstream.port}", "--work", "get", "--connections", 64,
             "--warm-ms", 200, "--measure-ms", round(settings.seconds * 500)]
    said = json.loads(run(words).splitlines()[-1])
    found = {"generator_rps": said["latency_us"]["count"] / said["seconds"],
             "generator_cpu": said["generator_cpu"] / said["seconds"]}
    seconds = max(1, round(settings.seconds / 2))
    try:
        text = run(["wrk", "-t", 1, "-c", 64, "-d", seconds, f"{upstream.url}/payments"])
        found["wrk_rps"] = float(re.search(r"Requests/sec:\s*([0-9.]+)", text).group(1))
    except (Failed, FileNotFoundError):
        found["wrk_rps"] = None
    return found


class Pgbench:
    """pgbench with that script; its figures look like those of a system."""
    name = "pgbench"
    title = "pgbench, one INSERT and one UPDATE"

    def __init__(self, settings, root, folder):
        self.settings, self.folder = settings, pathlib.Path(folder)
        self.database = database.Postgres(root, folder)
        self.database.sql(TABLE)
        self.script = self.folder / "pgbench.sql"
        self.script.write_text(SCRIPT.replace("{answer}", ANSWER), encoding="ascii")

    def stop(self):
        self.database.stop()

    def measure(self, connections):
        """Counts what ended within the measured time, by pgbench's own log."""
        logs = self.folder / f"pgbench-{connections}"
        roots = [self.database.process.pid]
        # The time it runs for includes making its connections.
        whole = self.settings.warm + self.settings.seconds + CONNECT_SECONDS * connections + 1
        words = [database.programs() / "pgbench", "-n", "-M", "prepared", "-h", "127.0.0.1", "-p",
                 self.database.port, "-U", "bench", "-f", self.script, "-c", connections, "-j", 1, "-T",
                 round(whole + 0.5), "-l", "--log-prefix", logs, "postgres"]
        cpu = resource.getrusage(resource.RUSAGE_CHILDREN)
        with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, preexec_fn=die_with_parent) as bench:
            wait_connected(bench.pid, connections)
            time.sleep(self.settings.warm)
            before, begin = usage.use(roots), time.time()
            time.sleep(self.settings.seconds)
            after, end = usage.use(roots), time.time()
            _, said = bench.communicate()
            if bench.returncode != 0:
                raise Failed(f"pgbench: {said.strip()[-500:]}")
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        times = sorted(read_log(logs, begin, end))
        return self.sample(connections, times, end - begin, before, after, {
            "generator_cpu": (used.ru_utime + used.ru_stime - cpu.ru_utime - cpu.ru_stime) / whole})

    def sample(self, connections, times, seconds, before, after, more):
        if not times:
            raise Failed("pgbench did nothing in the measured time")
        count = len(times)
        cpu = (after.cpu - before.cpu) * 1e6 / count
        pairs = [[value, 1] for value in times]
        return {
            "system": self.name, "load": "first", "connections": connections, "stored": 0, "requests": count,
            "seconds": seconds, "rps": count / seconds, "statuses": {}, "broken": 0, "other": 0,
            "p50": figures.percentile(pairs, 0.5), "p99": figures.percentile(pairs, 0.99),
            "p999": figures.percentile(pairs, 0.999), "mean": sum(times) / count, "max": times[-1],
            "distribution": figures.distribution(pairs), "cpu_us": cpu, "cpu_us_database": cpu,
            "written": (after.written - before.written) / count, "rss": 0,
            "pss": usage.memory([self.database.process.pid])[1], **more}


def wait_connected(pid, connections):
    """Until it has its sockets, or has ended."""
    end = time.monotonic() + CONNECT_SECONDS_MAX
    while time.monotonic() < end and sockets_of(pid) < connections:
        time.sleep(0.02)


def sockets_of(pid):
    """How many it has now; a file that is closed while it is looked at is none."""
    count = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
    return count


def read_log(prefix, begin, end):
    """Microseconds of each transaction that ended between the two times."""
    for path in prefix.parent.glob(prefix.name + ".*"):
        for line in path.read_text(encoding="ascii").splitlines():
            fields = line.split()
            if begin <= int(fields[4]) + int(fields[5]) / 1e6 < end:
                yield int(fields[2])
        path.unlink()
