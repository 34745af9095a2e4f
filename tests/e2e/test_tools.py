"""Shows that tools/test tells what came: every step to its end, one table, the
reasons of what was skipped, the totals as the last line, and the exit code; and that
tools/packages says what to install where it may not."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest

from harness.gateway import ROOT


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """tools/test as a module, with its logs in this test's folder."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = importlib.machinery.SourceFileLoader("hapax_tools_test", str(ROOT / "tools/test"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOGS", tmp_path)
    return module


def shell(tool, name, script, **how):
    return tool.Step(name, [["sh", "-c", script]], **how)


def run(tool, capsys, *steps):
    """(whether all is well, what was printed)"""
    tool.run_all(steps)
    good = tool.table(steps, 0)
    return good, capsys.readouterr().out


def row(out, name):
    """The numbers beside a step's name in the table: passed, failed, skipped."""
    table = out[out.index("\nstep "):]
    line = next(line for line in table.splitlines() if line.startswith(name))
    return [int(word) for word in line[len(name):].split()[:3]]


def test_every_step_is_run(tool, capsys):
    """One that fails ends nothing but what needs its build."""
    good, out = run(tool, capsys,
                    shell(tool, "build", "echo the compiler is unhappy; exit 3", builds="it"),
                    shell(tool, "needs it", "touch never", needs=["it"]),
                    shell(tool, "another", "true"))
    assert not good
    assert "the compiler is unhappy" in out and "not run: it was not built" in out
    assert row(out, "build") == [0, 1, 0] and row(out, "needs it") == [0, 1, 0] and row(out, "another") == [1, 0, 0]
    assert not (tool.ROOT / "never").exists()
    assert out.splitlines()[-1] == "1 passed, 2 failed, 0 skipped"


def test_all_is_well(tool, capsys):
    good, out = run(tool, capsys, shell(tool, "one", "true"), shell(tool, "two", "true"))
    assert good and out.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


def test_programs_that_skip(tool, capsys, tmp_path):
    """What Meson calls skipped is not passed, and what a passed program left out shows."""
    rows = [("OK", ""), ("SKIP", "SKIPPED: no database\n"), ("OK", "SKIPPED: no IPv6\n[ RUN ] x\n"),
            ("FAIL", ""), ("TIMEOUT", "")]
    log = tmp_path / "folder/meson-logs/testlog.json"
    log.parent.mkdir(parents=True)
    log.write_text("".join(json.dumps({"result": r, "stdout": text}) + "\n" for r, text in rows))
    step = tool.programs("programs", "folder")
    step.commands = [["true"]]
    good, out = run(tool, capsys, step)
    assert not good and row(out, "programs") == [2, 2, 2]
    assert "1 skipped: no database" in out and "1 skipped: no IPv6" in out


TESTS = """
import pytest
def test_good(): pass
def test_bad(): assert 1 == 2, "one is not two"
@pytest.mark.skip(reason="there is no moon")
def test_skipped(): pass
"""


@pytest.mark.parametrize("text, counts, said", [
    (TESTS, [1, 1, 1], ["one is not two", "1 skipped: there is no moon"]),
    ("raise SystemExit(3)", [0, 1, 0], []),
    ("", [0, 1, 0], []),
], ids=["each kind", "the suite dies", "no test at all"])
def test_pytest_is_read(tool, capsys, tmp_path, text, counts, said):
    """Counts and reasons out of a real run, side by side; a suite that runs nothing failed."""
    path = pathlib.Path(tmp_path) / "test_it.py"
    path.write_text(text)
    good, out = run(tool, capsys, tool.whole("suite", "a", "b", str(path)))
    assert not good and row(out, "suite") == counts, out
    assert not [words for words in said if words not in out], out


def test_one_that_hangs_is_ended(tool, capsys, monkeypatch):
    monkeypatch.setattr(tool, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(tool, "STEP_SECONDS", 0.2)
    good, out = run(tool, capsys, shell(tool, "hangs", "echo '[3/9] x'; sleep 600"))
    assert not good and "ended after" in out and "3 of 9" in out


def test_check_is_small(tool):
    """One build, and of each kind of test some, which are there."""
    steps = tool.chosen(["check"])
    assert [step.builds for step in steps if step.builds] == ["build"]
    assert {folder for step in steps for folder in step.needs} == {"build"}
    for name in (*tool.CHECK, *tool.NOT_IN_CHECK):
        file, _, test = name.partition("::")
        assert f"def {test}" in (ROOT / "tests/e2e" / file).read_text(), name


@pytest.mark.parametrize("sets", [["build"], ["build", "run"], ["build", "run", "test"]], ids=" ".join)
def test_nobody_may_install(tmp_path, sets):
    """Without root and sudo, every missing package is named in a line to give to root."""
    for name, script in {"dpkg-query": "exit 1", "id": "echo 1000", "apt-get": "touch called",
                         "npm": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("dirname", "cat"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    done = subprocess.run(["/bin/sh", str(ROOT / "tools/packages"), *sets], cwd=tmp_path, env={"PATH": str(tmp_path)},
                          capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and "not found" not in done.stderr, done.stderr
    text = (ROOT / "tools/packages").read_text()
    lists = dict(re.findall(r'^(\w+)="(.*)"$', text, re.M))
    wanted = re.sub(r"\$(\w+)", lambda named: lists[named[1]], " ".join(lists[name] for name in sets))
    assert re.search("apt-get install.*", done.stderr).group().split()[3:] == wanted.split()
    assert not list(tmp_path.glob("called"))


@pytest.fixture
def without_cmocka(tmp_path, monkeypatch):
    """meson in a folder of its own, where pkg-config knows everything but cmocka."""
    script = tmp_path / "pkg-config"
    script.write_text('#!/bin/sh\ncase " $* " in *" cmocka "*) exit 1;; esac\nexec pkg-config "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PKG_CONFIG", str(script))

    def meson(*words):
        command = ["meson", words[0], *words[1:]]
        done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=300, check=False)
        return done.returncode, done.stdout + done.stderr

    return meson


def test_no_tests_are_no_success(without_cmocka, tmp_path):
    """A folder without cmocka can be built, but a run of its tests fails, and says what
    to install; where tests are asked for, the setup fails."""
    folder = str(tmp_path / "build")
    code, out = without_cmocka("setup", folder)
    assert code == 0, out
    code, out = without_cmocka("test", "-C", folder, "--no-rebuild", "--print-errorlogs")
    assert code != 0 and "libcmocka-dev" in out, out
    code, out = without_cmocka("setup", str(tmp_path / "asked"), "-Dtests=enabled")
    assert code != 0 and "cmocka" in out, out
    code, out = without_cmocka("setup", str(tmp_path / "off"), "-Dtests=disabled")
    assert code == 0, out
