"""The report: Markdown that says what was measured, how, and what came of it."""
from . import figures, goals, plots as pictures, startup
from .figures import pick
from .loads import LOADS
from .tables import MIB, cpu, milliseconds, others, over, plain, table, with_spread

HOW = """\
- **Rounds.** Every figure is the median over the rounds (here {runs}), with the least and the greatest in brackets. In each round every load is run on every system in turn, so that a noisy minute hits all of them. Ratios are of the medians; their spread is that of the ratios within each round.
- **One machine.** Load generator, system, database and upstream share its {cores} cores, and nothing is pinned. nginx's figure has the same company.
- **The load** comes from `bench-load`: one thread, a closed loop over kept-alive connections, {warm:g} s to warm up, {seconds:g} s measured. Its own CPU is below; it is no part of any figure. In a closed loop a slow answer delays the next request of its connection: latencies are of this load, not of one that arrives by itself.
- **CPU per request** is user and system time of all processes of a system, its database included, in exactly the measured time; the upstream's is not in it.
- **Memory**: RSS of the largest process of the program itself; PSS of all its processes, database included.
- **Bytes written** as the kernel accounts them to those processes (`write_bytes`), pages in full.
- **The upstream** is one nginx worker that answers at once with a fixed 201. Services call it once per execution, so that every system does the same work.
- Before anything was measured, each system was probed: a retry got the same answer, the upstream saw one request, the settings that make commits durable were read back from what runs, and a first execution was seen to wait for the disk.
"""

HEAD = ["", "CPU µs/request", "CPU against nginx", "requests/s", "requests/s against nginx", "p50 ms", "p99 ms",
        "p99.9 ms", "RSS MiB", "PSS MiB", "written B/request", "other answers"]


def plots(result):
    return pictures.all_of(result)


def goal_table(result):
    rows = []
    for goal in goals.rows(result):
        unit, sign = goal["unit"], goal["sign"]
        aim = "–" if goal["aim"] is None else f"{sign} {goal['aim']:,.4g}{unit}"
        rows.append([goal["what"], f"{sign} {goal['must']:,.4g}{unit}", aim, with_spread(goal["seen"], unit),
                     goal["reached"]])
    return table(["goal", "must", "aim", "seen", "reached"], rows)


def row_of(title, samples, base):
    def against(key):
        return with_spread(figures.ratio(samples, base, key)) if base else "–"
    return [title, cpu(samples), against("cpu_us"), with_spread(over(samples, "rps")), against("rps"),
            milliseconds(samples, "p50"), milliseconds(samples, "p99"), milliseconds(samples, "p999"),
            plain((over(samples, "rss", MIB) or [None])[0]), plain((over(samples, "pss", MIB) or [None])[0]),
            plain((over(samples, "written") or [None])[0]), others(samples)]


def titles_of(result):
    titles = {name: about["title"] for name, about in result["systems"].items()}
    return {**titles, "pgbench": "pgbench, one INSERT and one UPDATE"}


def load_section(result, load, links):
    samples = pick(result["samples"], load=load.name)
    if not samples or load.grows or load.phase or load.work == "idle":
        return ""
    out = [f"## {load.title}\n\n{load.about}\n"]
    out += [picture(links, f"throughput-{load.name}"), picture(links, f"latency-{load.name}")]
    for count in sorted({sample["connections"] for sample in samples}):
        here = pick(samples, connections=count)
        base = pick(here, system="nginx")
        rows = [row_of(title, pick(here, system=name), base) for name, title in titles_of(result).items()
                if pick(here, system=name)]
        out.append(f"**{count:,} connection{'s' if count > 1 else ''}**\n\n" + table(HEAD, rows))
    if load.asynchronous:
        out.append(async_table(result, samples))
    return "\n".join(part for part in out if part)


def async_table(result, samples):
    rows = []
    for name, title in titles_of(result).items():
        ours = pick(samples, system=name)
        if ours:
            rows.append([title, with_spread(over(ours, "rps")), with_spread(over(ours, "delivered_rps")),
                         with_spread(over(ours, "backlog")), with_spread(over(ours, "drained_rps")),
                         plain(sum(sample["undelivered"] for sample in ours))])
    head = ["", "accepted/s", "delivered/s meanwhile", "left when the load ended", "of those delivered/s",
            "not delivered in time"]
    return table(head, rows)


def growth_section(result, links):
    samples = [sample for sample in result["samples"] if LOADS[sample["load"]].grows]
    if not samples:
        return ""
    out = ["## Growth\n", LOADS["growth"].about + "\n"]
    out += [picture(links, f"growth-{key}") for key in ("cpu_us", "rps", "written")]
    for name in ("growth", "growth-replay"):
        rows = []
        for system in sorted({sample["system"] for sample in pick(samples, load=name)}):
            for stored in sorted({sample["stored"] for sample in samples}):
                here = pick(samples, load=name, system=system, stored=stored)
                base = pick(samples, load=name, system=system, stored=0)
                if here:
                    busy = "" if all(sample.get("rested", True) for sample in here) else ", still busy with itself"
                    rows.append([*row_of(f"{system}, {stored:,} stored{busy}", here, base),
                                 plain((over(here, "reaped_rps") or [None])[0])])
        head = [*(cell.replace("nginx", "none stored") for cell in HEAD), "reaped/s meanwhile"]
        if rows:
            out.append(f"**{LOADS[name].title}**\n\n" + table(head, rows))
    return "\n".join(part for part in out if part)


def latency_section(result):
    """At one connection: what each system adds to the upstream, beside two appends."""
    samples = pick(result["samples"], load="first", connections=1)
    rows = []
    for name, title in titles_of(result).items():
        ours = pick(samples, system=name)
        added = figures.spread(goals.added_latency(samples, name).values())
        if ours and added is not None:
            rows.append([title, cpu(ours), with_spread(added), with_spread(over(ours, "p50")),
                         with_spread(over(ours, "p99"))])
    if not rows:
        return ""
    appends = with_spread(over(result["limits"], "sync_p50_us", 0.5), " µs")
    return ("## Latency at one connection\n\nFirst execution. Two appends of 4 KiB with fdatasync on the same disk take "
            f"{appends} (p50).\n\n" +
            table(["", "CPU µs/request", "added p50 µs", "p50 µs", "p99 µs"], rows))


def phase_section(result):
    """What goes on beside the load for a part of the time, against the rest of that run."""
    rows = []
    for load in ("closing", "reaping", "reaping-kept"):
        for name in titles_of(result):
            ours = pick(result["samples"], load=load, system=name)
            during, quiet = ([{**sample[part], "round": sample["round"]} for sample in ours if sample.get(part)]
                             for part in ("during", "quiet"))
            if during:
                rows += [phase_row(f"{name}, {load}", during, quiet), phase_row(f"{name}, the rest", quiet, [])]
    if not rows:
        return ""
    head = ["", "CPU µs/request", "against the rest", "requests/s", "against the rest", "p50 ms", "p99 ms",
            "p99 against the rest", "greatest ms", "seconds"]
    return ("## While a generation closes, and while one is reaped\n\n" +
            f"{LOADS['closing'].about} {LOADS['reaping'].about} {LOADS['reaping-kept'].about}\n\n" + table(head, rows))


def phase_row(title, samples, base):
    def against(key):
        return with_spread(figures.ratio(samples, base, key)) if base else "–"
    return [title, with_spread(over(samples, "cpu_us")), against("cpu_us"), with_spread(over(samples, "rps")),
            against("rps"), milliseconds(samples, "p50"), milliseconds(samples, "p99"), against("p99"),
            milliseconds(samples, "max"), with_spread(over(samples, "seconds"))]


def start_section(result):
    rows = []
    starts = result.get("starts", [])
    for system, stored in sorted({(sample["system"], sample["stored"]) for sample in starts}):
        for kind, title in startup.KINDS.items():
            ours = pick(starts, system=system, stored=stored, kind=kind)
            if ours:
                rows.append([f"{system}, {stored:,} stored, {title}", *(with_spread(over(ours, key)) for key in
                             ("cpu_ms", "ready_ms", "answer_ms")), with_spread(over(ours, "rss", MIB))])
    if not rows:
        return ""
    return f"## {LOADS['start'].title}\n\n{LOADS['start'].about}\n\n" + table(
        ["", "CPU ms", "ready after ms", "executes after ms", "RSS MiB"], rows)


def idle_section(result):
    samples = pick(result["samples"], load="idle")
    rows = [[title, plain(max(sample["open"] for sample in ours)), with_spread(over(ours, "rss", MIB)),
             with_spread(over(ours, "pss", MIB))]
            for name, title in titles_of(result).items() if (ours := pick(samples, system=name))]
    if not rows:
        return ""
    return f"## Idle connections\n\n{LOADS['idle'].about}\n\n" + table(
        ["", "connections", "RSS MiB", "PSS MiB"], rows)


def limit_section(result):
    def cell(key, scale=1.0):
        return with_spread(over(result["limits"], key, scale))
    rows = [["4 KiB appended and fdatasync, one at a time, per second", cell("syncs_per_second")],
            ["one of them, p50 µs", cell("sync_p50_us")], ["one of them, p99 µs", cell("sync_p99_us")],
            ["one of them, CPU µs", cell("sync_cpu_us")],
            ["appending, MiB/s", cell("append_bytes_per_second", MIB)],
            ["the generator against the bare upstream, 64 connections, requests/s", cell("generator_rps")],
            ["its CPU then, cores", cell("generator_cpu")],
            ["wrk against the bare upstream, 64 connections, requests/s", cell("wrk_rps")],
            ["the generator's CPU in the measured runs, cores, at most",
             plain(max((sample["generator_cpu"] for sample in result["samples"]), default=None))]]
    return "## The machine's own limits\n\n" + table(["", "median (least–greatest)"], rows)


def system_section(result):
    rows = []
    for name, about in result["systems"].items():
        if "missing" in about:
            rows.append([name, f"**not measured**: {about['missing'].splitlines()[0][:200]}", "–", "–"])
            continue
        syncs = "not seen (strace may not look)" if about["syncs"] is None else about["syncs"]
        rows.append([name, "; ".join(about["settings"]), ", ".join(about["durable"]) or "–",
                     syncs if about["kind"] != "limit" else "–"])
    return ("## The systems and their settings\n\n" +
            table(["", "settings", "read back from what runs", "syncs seen in one first execution"], rows, text=True))


def picture(links, name):
    return f"![{name}]({links[name]})\n" if name in links else ""


def markdown(result, links):
    """`links` says where each plot is."""
    settings, machine = result["settings"], result["machine"]
    about = "; ".join(f"{name}: {value}" for name, value in machine.items())
    how = HOW.format(runs=settings["runs"], cores=machine["cores"], warm=settings["warm"], seconds=settings["seconds"])
    few = ("" if settings["runs"] >= 5 else
           f"**Only {settings['runs']} round(s): these figures are for trying things out.**\n")
    failures = "".join(f"- {failure}\n" for failure in result["failures"])
    parts = [f"# Benchmark of {result['began']}\n", few, f"{about}\n", "## Goals\n", goal_table(result),
             picture(links, "cpu"), *(load_section(result, load, links) for load in LOADS.values()),
             idle_section(result), growth_section(result, links), phase_section(result), start_section(result),
             latency_section(result), picture(links, "soak"), limit_section(result),
             system_section(result), "## How it was measured\n", how,
             f"## What did not work\n\n{failures}" if failures else ""]
    return "\n".join(part for part in parts if part)
