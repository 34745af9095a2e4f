"""The machine and the versions, for the report. Nothing that names the machine."""
import json
import os
import pathlib
import platform
import re
import subprocess

from .settings import ROOT


def first_match(pattern, text):
    found = re.search(pattern, text, re.MULTILINE)
    return found.group(1).strip() if found else "not known"


def said_by(*command):
    """The first line a program prints, or that it is not there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    except OSError:
        return "not installed"
    return ((done.stdout or done.stderr).strip().splitlines() or ["not known"])[0]


def file_system(folder):
    return said_by("findmnt", "-n", "-o", "FSTYPE", "-T", str(folder))


def build(folder):
    """How hapax was compiled: a build with sanitizers or test steps is no measure."""
    options = json.loads(subprocess.run(["meson", "introspect", "--buildoptions", str(folder)], capture_output=True,
                                        text=True, check=True).stdout)
    values = {option["name"]: option["value"] for option in options}
    return ", ".join(f"{name}={values.get(name)}" for name in ("buildtype", "b_sanitize", "b_lto", "steps"))


def describe(settings):
    cpu = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    kib = int(first_match(r"^MemTotal:\s*(\d+)", pathlib.Path("/proc/meminfo").read_text(encoding="ascii")))
    return {
        "cpu": first_match(r"^model name\s*:\s*(.*)$", cpu), "cores": os.cpu_count(),
        "memory": f"{kib / 2**20:.1f} GiB",
        "kernel": platform.release(), "file system": file_system(settings.folder),
        "load average before": f"{os.getloadavg()[0]:.2f}",
        "commit": said_by("git", "describe", "--always", "--dirty"),
        "hapax": f"{said_by(settings.hapax, 'version')} ({build(settings.build)})", "nginx": said_by("nginx", "-v"),
        "PostgreSQL": said_by("psql", "--version"), "Redis": said_by("redis-server", "--version"),
        "Node": said_by("node", "--version"),
    }
