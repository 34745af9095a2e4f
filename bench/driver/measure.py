"""One measurement: a load on a running system, with what its processes used in
exactly the time that the load was measured."""
import json
import subprocess
import time

from . import figures, phases, usage
from .process import Failed, die_with_parent

RUN_SECONDS_MAX = 120
# Seconds of CPU within one second: the reaper's share of a day's expiries is less.
SETTLED = 0.05


class Snapshot:
    """What everything has used up to now."""

    def __init__(self, system):
        self.has_processes = any(system.roots().values())
        self.parts = {part: usage.use(pids) for part, pids in system.roots().items()}
        self.threads = usage.threads_of(system.roots()["program"])
        upstream = system.upstream.process
        self.upstream = usage.use([upstream.pid]).cpu if upstream is not None else 0.0
        self.device = usage.device_written(usage.device_of(system.folder))

    def cpu(self):
        return sum(part.cpu for part in self.parts.values())


def command(system, load, connections, run_name):
    settings = system.settings
    path = system.asynchronous if load.asynchronous else load.path
    words = [settings.tool("bench-load"), "--to", f"127.0.0.1:{system.port}", "--work", load.work,
             "--connections", connections, "--path", system.path(path) if load.work not in ("get", "idle") else path,
             "--run", run_name, "--body", load.body, "--warm-ms", round(settings.warm * 1000),
             "--measure-ms", round(seconds_of(settings, load) * 1000)]
    if load.tls:
        words += ["--tls", system.pair()[0]]
    if load.asynchronous:
        words += ["--header", "X-Tenant: bench"]
    if load.phase:
        words += ["--slice-ms", phases.SLICE_MS]
    return [str(word) for word in words]


def seconds_of(settings, load):
    if load.name == "soak":
        return settings.soak_minutes * 60
    return phases.SECONDS_MAX + 1 if load.phase else settings.seconds


class Generator:
    """bench-load, line by line."""

    def __init__(self, words):
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=die_with_parent)

    def line(self, wanted=None):
        line = self.process.stdout.readline().strip()
        if not line or (wanted is not None and line != wanted):
            self.stop()
            raise Failed(f"bench-load: {self.process.stderr.read().strip() or 'it ended early'}")
        return line

    def stop(self):
        self.process.kill()
        self.process.wait()


def differences(before, after, requests):
    """Per request, of everything that was used between two snapshots; nothing of a
    system without processes of its own."""
    if not requests or not after.has_processes:
        return {}
    each = {}
    for part in after.parts:
        each[f"cpu_us_{part}"] = (after.parts[part].cpu - before.parts[part].cpu) * 1e6 / requests
    each["cpu_us"] = sum(value for name, value in each.items() if name.startswith("cpu_us_"))
    used = (after.threads[thread] - before.threads.get(thread, 0) for thread in after.threads)
    each["threads_us"] = sorted((seconds * 1e6 / requests for seconds in used), reverse=True)
    each["written"] = sum(after.parts[part].written - before.parts[part].written for part in after.parts) / requests
    each["upstream_cpu_us"] = (after.upstream - before.upstream) * 1e6 / requests
    if after.device is not None and before.device is not None:
        each["device_written"] = (after.device - before.device) / requests
    return each


def memory(system):
    parts = {part: usage.memory(pids) for part, pids in system.roots().items()}
    return {"rss": parts["program"][0], "pss": sum(pss for _, pss in parts.values())}


def sample_of(system, load, connections, said, before, after):
    """The figures of one run."""
    latency = said["latency_us"]
    fine = said["statuses"].get(str(load.fine(system)), 0)
    sample = {
        "system": system.name, "load": load.name, "connections": connections, "stored": load.stored,
        "requests": latency["count"], "seconds": said["seconds"], "rps": fine / said["seconds"],
        "statuses": said["statuses"], "broken": said["broken"],
        "generator_cpu": said["generator_cpu"] / said["seconds"],
        "distribution": figures.distribution(latency["buckets"]),
        **{name: latency[name] if latency["count"] else None for name in ("p50", "p99", "p999", "mean", "max")},
        **differences(before, after, fine),
        "other": latency["count"] - fine, "answered": said["answered"],
    }
    if "again_us" in said:
        sample["again_p50"], sample["again_p99"] = said["again_us"]["p50"], said["again_us"]["p99"]
    return sample


def measure(system, load, connections, run_name, during=None):
    """Runs the load once; `during` is called while it is measured."""
    generator = Generator(command(system, load, connections, run_name))
    try:
        generator.line("begin")
        before = Snapshot(system)
        watched = during(generator) if during is not None else {}
        generator.line("end")
        after = Snapshot(system)
        held = memory(system)
        said = json.loads(generator.line())
        generator.process.wait(RUN_SECONDS_MAX)
    finally:
        generator.stop()
    if load.work == "replay" and said["primed"] < 1000:
        raise Failed(f"only {said['primed']} of 1000 keys were executed before their replay")
    sample = {**sample_of(system, load, connections, said, before, after), **held, **watched}
    if "slices" in said:
        sample["slices"] = said["slices"]
    if load.work == "idle":
        sample["open"] = said["open"]
    elif sample["requests"] and not sample["rps"]:
        raise Failed(f"no answer was {load.fine(system)} in the measured time: {said['statuses']}")
    return sample


def watch_memory(system, seconds, every=10):
    """For the soak: resident memory over time."""
    def during(_):
        series = []
        began = time.monotonic()
        while time.monotonic() < began + seconds - every:
            time.sleep(every)
            series.append([round(time.monotonic() - began), memory(system)["rss"]])
        return {"memory_series": series}
    return during


def settle(system):
    """Until a system that was given a full store has done what it does only once: what
    expired while it was down is deleted, filters are made, a database has vacuumed what
    it was filled with. False where it is still busy with itself after SETTLE seconds."""
    deadline = time.monotonic() + system.settings.settle_seconds
    while time.monotonic() < deadline:
        before = Snapshot(system).cpu()
        time.sleep(1)
        if Snapshot(system).cpu() - before < SETTLED:
            return True
    return False


def measure_growth(system, load, connections, run_name):
    """Also how many expired operations were deleted meanwhile: the reaper was there."""
    begun = {}
    rested = settle(system)

    def during(_):
        begun["count"] = system.metric("hapax_reaped_total")
        return {}

    sample = measure(system, load, connections, run_name, during)
    sample["reaped_rps"] = (system.metric("hapax_reaped_total") - begun["count"]) / sample["seconds"]
    return {**sample, "rested": rested}


def measure_phase(system, load, connections, run_name):
    """Also what it was while the phase went on, and in the rest of the time."""
    with phases.watched(system, load) as watch:
        def during(generator):
            watch.wait_over(system.settings.phase_seconds)
            generator.process.terminate()
            return {}

        sample = measure(system, load, connections, run_name, during)
        found = phases.split(sample.pop("slices"), watch.end())
    if not found["during"]:
        raise Failed(f"no {load.phase} was seen in {load.name}: {sample['requests']} requests in "
                     f"{sample['seconds']:.1f} s")
    return {**sample, **found}


def measure_async(system, load, connections, run_name):
    """Also what reached the upstream: while accepting, and how fast the rest of it did."""
    upstream = system.upstream
    begun = {}

    def during(_):
        begun["count"] = upstream.count()
        return {}

    start = upstream.count()
    sample = measure(system, load, connections, run_name, during)
    count = upstream.count()
    sample["delivered_rps"] = (count - begun["count"]) / sample["seconds"]
    deadline = time.monotonic() + RUN_SECONDS_MAX / 2
    return {**sample, **drain(upstream, count, start + sample["answered"], deadline)}


def drain(upstream, count, wanted, deadline):
    """Waits until nothing more arrives, and says how fast the backlog went."""
    began, last, last_at = time.monotonic(), count, time.monotonic()
    now = count
    while time.monotonic() < deadline and time.monotonic() - last_at < 3 and now < wanted:
        time.sleep(0.1)
        now = upstream.count()
        if now > last:
            last, last_at = now, time.monotonic()
    took = last_at - began
    return {"backlog": last - count, "drained_rps": (last - count) / took if took > 0.2 else None,
            "undelivered": max(0, wanted - last)}


