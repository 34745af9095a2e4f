"""A recipe as its reader runs it: the files and the command lines of a page of
docs/recipes, in a folder of their own. Only ports and names that would collide on one
machine are replaced; page and test cannot differ, because the test has no other source.

A page shows a file of examples/recipes/NAME below a line with nothing but a link to it,
and command lines in blocks of `sh`. A line that ends with & is a server: it runs until
the test ends, and the next line waits until its port answers."""
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess

import pytest

from harness import check
from harness.gateway import ROOT, SANITIZER, binary, free_port

PAGES = ROOT / "docs" / "recipes"
FILES = ROOT / "examples" / "recipes"
READY_SECONDS = 30
COMMAND_SECONDS = 60
STOP_SECONDS = 40
# As the pages write them: TLS in front, the gateway, its admin listener, the service.
PORTS = ("8443", "8080", "8081", "9000")


def require_program():
    if not os.access(binary(), os.X_OK):
        pytest.fail(f"{binary()} is not there: build it, or set HAPAX_BIN", pytrace=False)


def missing(reason):
    """What is not installed is a visible skip, or a failure where everything was asked for."""
    if os.environ.get("HAPAX_RECIPES") == "all":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def require(*programs):
    """Programs of this machine; /usr/sbin has some of them, and not every PATH has it."""
    absent = [name for name in programs if not shutil.which(name, path=search_path())]
    if absent:
        missing(f"not installed: {', '.join(absent)} (make recipes installs it)")


def search_path():
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def blocks(text):
    """(language, content, the line before it that is not empty, the heading it stands under)"""
    found = []
    before = heading = ""
    fence = None
    for line in text.splitlines():
        if fence is None and line.startswith("```"):
            fence, content = line[3:].strip(), []
        elif fence is not None and line.startswith("```"):
            found.append((fence, "\n".join(content) + "\n", before, heading))
            fence = None
        elif fence is not None:
            content.append(line)
        elif line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.strip():
            before = line.strip()
    return found


def shown_files(name):
    """{file: content} of what the page shows."""
    link = re.compile(rf"\[[^]]+\]\(\.\./\.\./examples/recipes/{re.escape(name)}/([^)]+)\):?")
    return {match[1]: content for _, content, before, _ in blocks((PAGES / f"{name}.md").read_text(encoding="utf-8"))
            if (match := link.fullmatch(before))}


def commands(name, heading=None):
    """What the `sh` blocks (below that heading) have to run: a block with servers line by line, those
    that end with \\ joined; another block as one script."""
    found = []
    for language, content, _, stands_under in blocks((PAGES / f"{name}.md").read_text(encoding="utf-8")):
        if language == "sh" and heading in (None, stands_under):
            lines = content.replace("\\\n", " ").splitlines()
            found += lines if any(line.endswith(" &") for line in lines) else [content]
    return found


class Recipe:
    """One recipe in `folder`. `replace`: {text of the page: text here}, besides the ports; `service`: the
    port of one that the test has started; `unprivileged`: programs that root must not be."""

    def __init__(self, name, folder, replace=None, env=None, service=None, unprivileged=()):
        require_program()
        self.name, self.folder = name, pathlib.Path(folder)
        self.port = {port: free_port() for port in PORTS}
        self.port["9000"] = service or self.port["9000"]
        self.replace = {**{port: str(own) for port, own in self.port.items()}, **(replace or {})}
        self.env = {**os.environ, "HOME": str(self.folder), "NO_PROXY": "*",
                    "PATH": f"{self.folder}.bin{os.pathsep}{search_path()}", **(env or {})}
        self.servers = []
        self.unprivileged = unprivileged if os.geteuid() == 0 else ()
        source = FILES / name
        if source.is_dir():
            shutil.copytree(source, self.folder, ignore=shutil.ignore_patterns("node_modules"))
        else:
            self.folder.mkdir()
        pathlib.Path(f"{self.folder}.bin").mkdir()
        pathlib.Path(f"{self.folder}.bin/hapax").symlink_to(binary())
        for path in self.folder.rglob("*"):
            if path.is_file() and path.name != "package-lock.json":
                path.write_text(self.own(path.read_text(encoding="utf-8")), encoding="utf-8")

    def own(self, text):
        """The text with this test's ports and names, each of them once, also where one holds another."""
        pattern = "|".join(re.escape(word) for word in sorted(self.replace, key=len, reverse=True))
        return re.sub(pattern, lambda match: self.replace[match[0]], text)

    # Its commands.
    def run(self, heading, only=""):
        """What stands under the heading (and has this word in it); what it printed."""
        found = [command for command in commands(self.name, heading) if only in command]
        assert found, f"{self.name}.md has no command with {only!r} under {heading!r}"
        return "".join(self.execute(self.own(command)) for command in found)

    def execute(self, line):
        if line.rstrip().endswith("&"):
            self.serve(line.rstrip()[:-1])
            return ""
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=self.folder, env=self.env, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS, check=False)
        if done.returncode != 0 and line.startswith("npm install"):
            missing(f"npm did not get its packages: {done.stderr[-300:]}")
        assert done.returncode == 0, f"$ {line}\nexit {done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}"
        return done.stdout

    def serve(self, line):
        """Starts a server, and waits until its port answers."""
        log = self.folder.parent / f"{len(self.servers)}.log"
        with open(log, "wb") as file:
            process = subprocess.Popen(["bash", "-c", f"exec {line}"], cwd=self.folder, env=self.env, stdout=file,
                                       stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True,
                                       **self.user_of(line))
        self.servers.append((line, process, log))
        door = self.door_of(line)
        check.until(lambda: process.poll() is not None or self.answers(door), f"{door} of {line}", READY_SECONDS)
        assert process.poll() is None, f"$ {line} &\nexit {process.returncode}\n{self.logs()}"

    def user_of(self, line):
        """Another user than root, who may write into the folder."""
        if line.split()[0] not in self.unprivileged:
            return {}
        user = pwd.getpwnam("www-data")
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}

    def door_of(self, line):
        """Where a server listens: a port of PORTS, or a socket in the folder."""
        doors = {"hapax": "8080", "caddy": "8443", "haproxy": "8443", "php-fpm8.2": "php-fpm.sock",
                 "nginx": "9000" if self.name == "php-fpm" else "8443"}
        door = doors.get(line.split()[0], "9000")
        return ("127.0.0.1", self.port[door]) if door in self.port else str(self.folder / door)

    @staticmethod
    def answers(door):
        with socket.socket(socket.AF_UNIX if isinstance(door, str) else socket.AF_INET) as sock:
            return sock.connect_ex(door) == 0

    def logs(self):
        return "\n".join(f"--- {line}\n{log.read_text(errors='replace')[-3000:]}" for line, _, log in self.servers)

    def stop(self, word=""):
        """The servers whose command has the word, the last one first; hapax must have drained well."""
        ending = [one for one in reversed(self.servers) if word in one[0]]
        for one in ending:
            line, process, log = one
            self.servers.remove(one)
            alive = process.poll() is None
            self.signal(process, signal.SIGTERM)
            try:
                process.wait(STOP_SECONDS)
            finally:
                self.signal(process, signal.SIGKILL)
            text = log.read_text(errors="replace")
            if line.startswith("hapax"):
                assert alive and process.returncode == 0 and not SANITIZER.search(text), f"$ {line}\n{text[-4000:]}"

    @staticmethod
    def signal(process, number):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
