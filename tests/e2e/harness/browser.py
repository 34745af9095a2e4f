"""Debian's Chromium without a window, driven through chromedriver by plain WebDriver
calls (W3C). Its profile is a folder of the test's own, which a second one may open
when the first was killed."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

from . import check

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync",
             "--disable-dev-shm-usage", "--no-proxy-server"]
# Whatever the environment says of proxies, chromedriver is here.
HERE = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def missing():
    """What is not installed, or None."""
    names = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return f"not installed: {', '.join(names)}" if names else None


class Browser:
    """One chromedriver with one Chromium on the profile `folder`."""

    def __init__(self, folder):
        self.driver = subprocess.Popen(["chromedriver", "--port=0", "--allowed-ips="], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       start_new_session=True)
        self.base = f"http://127.0.0.1:{self.read_port()}"
        # Said only once, so nothing of its log has to be read later.
        self.driver.stdout.close()
        try:
            self.start(str(folder))
        except BaseException:
            self.end_driver()
            raise

    def start(self, folder):
        options = {"binary": shutil.which("chromium"), "args": ARGUMENTS + [f"--user-data-dir={folder}"]}
        made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options}}})
        self.session = f"/session/{made['sessionId']}"
        self.pid = self.browser_pid(folder)

    def read_port(self):
        lines = []
        for line in self.driver.stdout:
            lines.append(line)
            match = re.search(r"started successfully on port (\d+)", line)
            if match:
                return int(match[1])
        raise AssertionError("chromedriver did not start:\n" + "".join(lines))

    def browser_pid(self, folder):
        """The process that holds the profile: the child of chromedriver."""
        lists = pathlib.Path(f"/proc/{self.driver.pid}/task").glob("*/children")
        children = [int(pid) for one in lists for pid in one.read_text(encoding="ascii").split()]
        for pid in children:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                if folder in file.read():
                    return pid
        raise AssertionError(f"no browser among {children}")

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with HERE.open(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.read().decode()[:600]}") from None

    def ask(self, method, path, body=None):
        return self.call(method, self.session + path, body)

    def visit(self, url):
        self.ask("POST", "/url", {"url": url})

    def reload(self):
        self.ask("POST", "/refresh", {})

    def run(self, script, *values):
        """The value of the script's `return`; a promise is waited for."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(values)})

    def until(self, script, what, *values, seconds=30):
        return check.until(lambda: self.run(script, *values), what, seconds)

    # Tabs.
    def tab(self):
        return self.ask("GET", "/window")

    def new_tab(self):
        return self.ask("POST", "/window/new", {"type": "tab"})["handle"]

    def turn_to(self, tab):
        self.ask("POST", "/window", {"handle": tab})

    # The end.
    def kill(self):
        """As a crash: nothing is written any more."""
        os.kill(self.pid, signal.SIGKILL)
        check.until(lambda: not os.path.exists(f"/proc/{self.pid}") or self.is_zombie(), "the browser is gone")
        self.end_driver()

    def is_zombie(self):
        try:
            with open(f"/proc/{self.pid}/stat", encoding="ascii", errors="replace") as file:
                return file.read().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    def end_driver(self):
        """And whatever it has started: they are one group."""
        os.killpg(self.driver.pid, signal.SIGKILL)
        self.driver.wait(30)

    def close(self):
        if self.driver.poll() is None:
            try:
                self.call("DELETE", self.session)
            finally:
                self.end_driver()
