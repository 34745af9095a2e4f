"""Shows that `make site` makes a whole site of the documents: every page is in the
navigation, no link is dead, no page is wider than a screen or a telephone, and the search
finds. The screenshots of some pages stay in build-site/screenshots."""
import base64
import functools
import html.parser
import http.server
import os
import pathlib
import shutil
import subprocess
import threading
import urllib.parse

import pytest

from harness import browser
from harness.gateway import ROOT

WIDTHS = (1280, 360)
PICTURED = ("index.html", "docs/guide/troubleshooting.html", "docs/reference/options.html")


class Page(html.parser.HTMLParser):
    """The links, the pictures and the anchors of a page."""

    def __init__(self, file):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.targets += [attrs[name] for name in ("href", "src") if attrs.get(name)]
        self.ids |= {attrs[name] for name in ("id", "name") if attrs.get(name)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder with the pages."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run([ROOT / "tools/site", str(folder)], capture_output=True, text=True, check=False, timeout=120)
    if done.returncode == 1 and "tools/packages site" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


def files_of(site):
    return sorted(site.rglob("*.html"))


def test_no_link_is_dead(site):
    """Each link of each page leads to a file of the site, and to an anchor that is in it."""
    pages = {file: Page(file) for file in files_of(site)}
    assert len(pages) > 40
    dead = []
    for file, page in pages.items():
        for target in page.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or file.name == "404.html":     # that page is for any place: its links begin at the root
                continue
            to = pathlib.Path(os.path.normpath(file.parent / urllib.parse.unquote(parts.path))) if parts.path else file
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file() or parts.fragment and to.suffix == ".html" and parts.fragment not in pages[to].ids:
                dead.append(f"{file.relative_to(site)}: {target}")
    assert not dead, "\n".join(dead)


def test_every_page_is_in_the_navigation(site):
    """Also one that somebody adds in a folder: the navigation is made from the folders."""
    index = Page(site / "index.html")
    for folder in ("guide", "recipes", "reference", "internals"):
        for page in (ROOT / "docs" / folder).glob("*.md"):
            name = "index.html" if page.name == "README.md" else f"{page.stem}.html"
            assert f"docs/{folder}/{name}" in index.targets, page


def test_nothing_is_loaded_from_elsewhere(site):
    """No script, style or picture of another server."""
    for file in files_of(site):
        text = file.read_text(encoding="utf-8")
        assert not [part for part in text.split("<")
                    if part.startswith(("script", "link", "img")) and ('src="http' in part or 'href="http' in part)], file


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if browser.missing():
        pytest.skip(browser.missing())
    one = browser.Browser(tmp_path_factory.mktemp("profile"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def address(site):
    """The site, served on a port of its own."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def set_width(chromium, width):
    chromium.ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}})


def photograph(chromium, name, width):
    folder = ROOT / "build-site/screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    picture = base64.b64decode(chromium.ask("GET", "/screenshot"))
    (folder / f"{name.replace('/', '-').removesuffix('.html')}-{width}.png").write_bytes(picture)
    assert len(picture) > 10000, name


# Shows a page of the site in place of the one that is open, which is quicker than to open it.
SHOW = """const name = NAME;
const answer = await fetch("/" + name);
const page = new DOMParser().parseFromString(await answer.text(), "text/html");
document.body.replaceWith(document.adoptNode(page.body));
const whole = document.documentElement;
return [whole.clientWidth, whole.scrollWidth];"""


def test_no_page_scrolls_sideways(site, chromium, address):
    """In a real browser, on every page, on a screen and on a telephone; some are photographed."""
    names = [str(file.relative_to(site)) for file in files_of(site)]
    wide = []
    for width in WIDTHS:
        set_width(chromium, width)
        for name in PICTURED:
            chromium.visit(f"{address}/{name}")
            photograph(chromium, name, width)
        for name in names:
            inner, whole = chromium.run(f"return (async () => {{{SHOW.replace('NAME', repr(name))}}})()")
            if whole > inner or inner > width:
                wide.append((name, inner, whole))
    assert not wide, wide
    inner, whole = chromium.run("""document.querySelector('.rst-content').innerHTML = '<p style="width:3000px">wide</p>';
        const e = document.documentElement; return [e.clientWidth, e.scrollWidth]""")
    assert whole > inner, "a wide page would not be seen"


def test_the_search_finds(chromium, address):
    """A word of one page leads to that page."""
    chromium.visit(f"{address}/search.html?q=tombstone")
    chromium.until("return document.querySelectorAll('#mkdocs-search-results article').length > 0", "something is found")
    found = chromium.run("return document.querySelector('#mkdocs-search-results').innerHTML")
    assert "docs/" in found and "ombstone" in found, found[:400]


def test_without_mkdocs_it_says_what_to_install(tmp_path):
    """As a plain failure, with the line to write."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    (tmp_path / "mkdocs.py").write_text("raise ImportError('gone', name='mkdocs')\n")
    done = subprocess.run([tmp_path / "tools/site"], capture_output=True, text=True, check=False, timeout=60,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1 and "mkdocs is not there: tools/packages site" in done.stderr, done.stderr
