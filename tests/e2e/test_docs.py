"""Shows that the documentation and the program agree: problem codes, metrics,
commands and flags, named steps, and every link from one page to another."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest

from conftest import require_program
from harness.external_tls import Authority
from harness.gateway import ROOT, binary

DOCS = ROOT / "docs"
PAGES = (sorted(DOCS.rglob("*.md")) + sorted(ROOT.glob("examples/*/README.md")) +
         [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")])
VERBS = {"keys": ["ls", "show", "resolve", "forget", "extend", "accept-clock"],
         "jobs": ["ls", "show", "retry", "discard"]}
# So that every metric has a sample. Any variable that is set will do as a secret:
# no webhook is sent here, and nobody is asked who is calling.
FOLDER = tempfile.TemporaryDirectory()
CERTIFICATE, KEY = Authority(FOLDER.name).certificate()
CONFIG = {"listen": [{"address": "127.0.0.1:0", "tls": {"certificate": CERTIFICATE, "key": KEY}}],
          "tenant": {"from": "subrequest", "url": "http://127.0.0.1:9/", "header": "X-Tenant"},
          "targets": {"mailer": {"url": "http://127.0.0.1:9/"}},
          "webhooks": {"bank": {"scheme": "stripe", "secret_env": "PATH", "operation": "/operation",
                                "verdict": "/status", "applied": ["succeeded"]}}}
HISTOGRAM_PARTS = re.compile(r"_(bucket|sum|count)$")


def read(name):
    return (DOCS / name).read_text(encoding="utf-8")


def section(text, heading):
    """What stands below `## heading`, up to the next heading of that rank."""
    match = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.M | re.S)
    assert match, f"there is no section {heading!r}"
    return match.group(1)


def rows(text):
    """The cells of every table row that begins with `name`."""
    return [[cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines() if re.match(r"\| `", line)]


def program(*arguments, steps=False):
    require_program(steps)
    return subprocess.run([binary(steps), *arguments], capture_output=True, text=True,
                          timeout=30, check=False)


def help_of(*command):
    done = program(*command, "--help")
    assert done.returncode == 0, done.stderr
    return done.stdout


def flags_of(*command):
    return set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", help_of(*command), re.M)) - {"--help"}


def commands():
    return re.findall(r"^  ([a-z]+) {2,}", help_of(), re.M)


def test_every_problem_has_its_row(gateway):
    """Code, status, executed and retry, as the program's own pages have them."""
    documented = {row[0].strip("`"): row[1:4]
                  for row in rows(section(read("reference/http.md"), "Problems"))
                  if len(row) == 5}
    known = {re.search(r'code="(\w+)"', name).group(1)
             for name in gateway.metrics() if name.startswith("hapax_problems_total")}
    assert set(documented) == known
    for code, row in documented.items():
        page = gateway.get(f"/.hapax/problems/{code}").body.decode()
        status = re.search(r"<dt>status</dt>\s*<dd>(\d+)", page).group(1)
        executed = re.search(r"<dt>executed: (\w+)", page).group(1)
        retry = re.search(r"<dt>retry: (\w+)", page).group(1)
        assert row == [status, executed, retry], code


def described(gateway):
    """{name: type} of every metric the program describes."""
    text = gateway.admin("/metrics").body.decode()
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.M))


def test_every_source_of_tenants_is_explained():
    """Each value of tenant.from has its row in the reference; the guide has its line, or says that it needs none."""
    values = re.search(r"^### `tenant.from`\n\n.*\n\nValue: ([^.]*)\.", read("reference/options.md"), re.M)[1]
    wanted = set(re.findall(r"`(\w+)`", values))
    table = section(read("reference/http.md"), "Who is calling").partition("| `tenant.from` |")[2].partition("\n\n")[0]
    assert len(wanted) > 8 and {row[0].split("`")[1] for row in rows(table)} == wanted
    guide = set(re.findall(r"from: (\w+)", read("guide/tenants.md")))
    assert wanted - guide == {"automatic", "authorization"}, wanted - guide


def test_every_metric_has_its_row(gateway, site):
    """Name, type and labels, both ways. Tenants have one source at a time: two gateways."""
    documented = {row[0].strip("`"): row[1:3] for row in rows(read("reference/metrics.md"))}
    verifying = site({"tenant": {"from": "jwt", "issuer": "i", "audience": [], "keys": "http://127.0.0.1:9/k"}}).gateway
    types = {**described(gateway), **described(verifying)}
    assert set(documented) == set(types)
    labels = {name: set() for name in types}
    for sample in [*gateway.metrics(), *verifying.metrics()]:
        name, _, rest = sample.partition("{")
        if types.get(HISTOGRAM_PARTS.sub("", name)) == "histogram":
            name = HISTOGRAM_PARTS.sub("", name)
        labels[name] |= set(re.findall(r'(\w+)="', rest)) - {"le"}
    for name, (kind, cell) in documented.items():
        assert (kind, set(re.findall(r"`(\w+)`", cell))) == (types[name], labels[name]), name


def test_every_label_value_is_explained(gateway):
    """What a closed set of labels can say is in the metric's row."""
    text = {row[0].strip("`"): row[3] for row in rows(read("reference/metrics.md"))}
    for sample in gateway.metrics():
        match = re.fullmatch(r'(\w+)\{(?:route="[^"]*",)?(outcome|would|state)="(\w+)"\}', sample)
        if match:
            assert f"`{match.group(3)}`" in text[match.group(1)], sample


def promtool():
    """Prometheus' checker: HAPAX_PROMTOOL, the path's, or the one that tools/packages got."""
    got = ROOT / "build-promtool/promtool"
    return os.environ.get("HAPAX_PROMTOOL") or shutil.which("promtool") or \
        (str(got) if got.exists() else None)


def test_alerts_are_about_metrics_that_exist():
    """Every name and every closed label value in a rule is one that the program has."""
    text = (ROOT / "etc/alerts.yaml").read_text(encoding="utf-8")
    expressions = "\n".join(re.findall(r"expr: (.*?)(?=\n +(?:for|labels):)", text, re.S))
    documented = {row[0].strip("`"): row[3] for row in rows(read("reference/metrics.md"))}
    used = set(re.findall(r"hapax_\w+", expressions))
    assert used and used <= set(documented), used - set(documented)
    for name, values in re.findall(r'(hapax_\w+)\{(?:result|kind)=~?"([^"]+)"\}', expressions):
        for value in values.split("|"):
            assert f"`{value}`" in documented[name], (name, value)
    codes = {row[0].strip("`") for row in rows(section(read("reference/http.md"), "Problems"))}
    for values in re.findall(r'code=~?"([^"]+)"', expressions):
        assert set(values.split("|")) <= codes, values


def test_every_alert_has_both_days():
    """Each rule is silent on the calm day and rings on the bad one; promtool shows that they do."""
    names = sorted(re.findall(r"- alert: (\w+)", (ROOT / "etc/alerts.yaml").read_text(encoding="utf-8")))
    calm, bad = (ROOT / "tests/e2e/alerts_test.yaml").read_text(encoding="utf-8").split("- name: a bad one")
    assert len(names) > 20 and sorted(re.findall(r"alertname: (\w+)", calm)) == names
    assert sorted(re.findall(r'alertname="(\w+)"', bad)) == names


def test_alerts_ring_when_they_should(tmp_path):
    """promtool takes the rules; a calm day raises none, a bad one these."""
    if promtool() is None:
        pytest.skip("promtool is not there: tools/packages test gets it, or set HAPAX_PROMTOOL")
    alerts = ROOT / "etc/alerts.yaml"
    days = tmp_path / "days.yaml"
    days.write_text((ROOT / "tests/e2e/alerts_test.yaml").read_text().replace("[ALERTS]", f"[{alerts}]"))
    for arguments in (["check", "rules", alerts], ["test", "rules", days]):
        done = subprocess.run([promtool(), *map(str, arguments)], capture_output=True, text=True,
                              check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("unit", ["hapax.service", "hapax-reconcile.service", "hapax-reconcile.timer"])
def test_units_are_taken(tmp_path, unit):
    """systemd accepts each unit without a remark; the program stands in for the installed one."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not there: the units are not checked")
    require_program()
    for file in (ROOT / "etc").glob("hapax*.[st]*"):
        (tmp_path / file.name).write_text(file.read_text(encoding="utf-8").replace("/usr/bin/hapax", str(binary())))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", str(tmp_path / unit)], capture_output=True,
                          text=True, check=False, timeout=60)
    remarks = [line for line in done.stderr.splitlines() if "hapax" in line]
    assert done.returncode == 0 and not remarks, done.stderr


def test_the_service_stays_confined():
    """systemd's own measure of what the service could do to the machine is below 2.0."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not there: the exposure of the service is not measured")
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager",
                           str(ROOT / "etc/hapax.service")], capture_output=True, text=True, check=False, timeout=60)
    level = re.search(r"Overall exposure level for hapax.service: ([0-9.]+)", done.stdout)
    assert level and float(level.group(1)) < 2.0 and done.returncode == 0, done.stdout[-400:] + done.stderr


def test_the_reconciliation_unit_runs(tmp_path):
    """Its command, run as systemd would, takes an export of yesterday and finds nothing open."""
    text = (ROOT / "etc/hapax-reconcile.service").read_text(encoding="utf-8")
    line = re.search(r"^ExecStart=(.*)$", text, re.M).group(1).replace("%%", "%")
    config = tmp_path / "hapax.json"
    config.write_text(json.dumps({"upstream": "http://127.0.0.1:9", "store": f"sqlite:{tmp_path}/hapax.db",
                                  "targets": {"bank": {"url": "http://127.0.0.1:9"}}}))
    command = [word.replace("/usr/bin/hapax", str(binary())).replace("/etc/hapax/hapax.yaml", str(config))
               for word in shlex.split(line)]
    (tmp_path / "ledger.csv").write_text("reference,amount,status\n")
    done = program("migrate", "--store", f"sqlite:{tmp_path}/hapax.db")
    assert done.returncode == 0, done.stderr
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30,
                          env={**os.environ, "STATE_DIRECTORY": str(tmp_path)})
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_shipped_configuration_is_right():
    """/etc/hapax/hapax.yaml of an installation has no mistake, and names the store of the unit's folder."""
    file = ROOT / "etc/service.yaml"
    done = program("check", "--config", str(file))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\nstore: sqlite:/var/lib/hapax/hapax.db\n" in file.read_text(encoding="utf-8")


def test_man_pages_have_every_flag(tmp_path):
    """A page for each command, and in it each flag of its --help and of its verbs', and each way to
    call it as one line; the libraries' functions, the members of their structs, and their results too."""
    require_program()
    headers = {"libhapax.3": ROOT / "include/hapax/hapax.h", "libhapax-client.3": ROOT / "include/hapax/client.h"}
    subprocess.run([ROOT / "tools/manual", str(binary()), "1.2.3", str(tmp_path), *map(str, headers.values())],
                   check=True, timeout=60)
    names = re.findall(r"^  (\w+) ", program("--help").stdout, re.M)
    assert len(names) > 10
    for name in names:
        page = (tmp_path / f"hapax-{name}.1").read_text(encoding="utf-8").replace("\\-", "-")
        helps = [program(name, "--help").stdout]
        helps += [program(name, verb, "--help").stdout for verb in re.findall(rf"^  hapax {name} ([\w-]+)", helps[0], re.M)]
        for flag in {flag for text in helps for flag in re.findall(r"^  (?:-\w, )?(--[\w-]+)", text, re.M)}:
            assert f"\\fB{flag}\\fR" in page, (name, flag)
        for text in helps:
            for usage in re.split(r"\n +(?=hapax )", text.split("\n\n")[0].removeprefix("Usage: ")):
                assert f"\\fB{' '.join(usage.split())}\\fR" in page, (name, usage)
    shared = (ROOT / "include/hapax/common.h").read_text(encoding="utf-8")
    for name, header in headers.items():
        page = (tmp_path / name).read_text(encoding="utf-8").replace("\\-", "-")
        declared = header.read_text(encoding="utf-8")
        functions = re.findall(r"^HAPAX_API [^(]*?(\w+)\(", declared, re.M)
        assert len(functions) > 5 and all(f"{function}(" in page for function in functions)
        bodies = re.findall(r"^(?:struct|enum) hapax\w* \{\n(.*?)^\};", shared + declared, re.S | re.M)
        code = re.sub(r"/\*.*?\*/", "", "".join(bodies), flags=re.S)
        members = [" ".join(member.split()) for member in re.findall(r"(\S[^\n]*)[;,]\s*\n", code)]
        assert len(members) > 30 and [member for member in members if f".TP\n\\fB{member}\\fR" not in page] == []


def test_man_reads_every_page(tmp_path):
    """man has nothing to say about a page, and says so of one that is wrong."""
    require_program()
    if not shutil.which("man"):
        pytest.skip("man is not installed")
    subprocess.run([ROOT / "tools/manual", str(binary()), "1.2.3", str(tmp_path), ROOT / "include/hapax/hapax.h",
                    ROOT / "include/hapax/client.h"], check=True, timeout=60)
    (tmp_path / "wrong.1").write_text(".TH WRONG 1\n.SH NAME\n.XX\n")
    pages = sorted([*tmp_path.glob("*.1"), *tmp_path.glob("*.3")])
    assert len(pages) > 15
    for page in pages:
        done = subprocess.run(["man", "--warnings=w", "--local-file", str(page)], capture_output=True, text=True,
                              check=False, timeout=60, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
        assert done.returncode == 0 and "NAME" in done.stdout, page
        assert bool(done.stderr) == (page.name == "wrong.1"), (page, done.stderr)


def test_completions_are_read(tmp_path):
    """bash takes the completions; a command, a verb and a flag are completed."""
    require_program()
    subprocess.run([ROOT / "tools/manual", str(binary()), "1.2.3", str(tmp_path)], check=True, timeout=60)
    for words, wanted in ((["hapax", "recon"], "reconcile"), (["hapax", "keys", "sh"], "show"),
                          (["hapax", "keys", "ls", "--sta"], "--state"), (["hapax", "serve", "--lis"], "--listen")):
        quoted = " ".join(map(shlex.quote, words))
        script = f". {tmp_path}/hapax.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _hapax; echo ${{COMPREPLY[*]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=20)
        assert done.stdout.strip() == wanted, (words, done.stdout, done.stderr)


def test_zsh_completions_are_read(tmp_path):
    """zsh takes the completions; its own functions stand in that would put the words on a line."""
    require_program()
    if not shutil.which("zsh"):
        pytest.skip("zsh is not installed")
    subprocess.run([ROOT / "tools/manual", str(binary()), "1.2.3", str(tmp_path)], check=True, timeout=60)
    stand_in = "compadd() { print -l -- ${@:2} }; _describe() { print -l -- $commands }; _files() { }"
    for words, wanted in ((["hapax", ""], "serve:Stands in front of an HTTP API: a retried POST happens once."),
                          (["hapax", "keys", ""], "accept-clock"), (["hapax", "keys", "ls", "-"], "--state"),
                          (["hapax", "serve", "-"], "--listen")):
        quoted = " ".join(map(shlex.quote, words))
        script = f"{stand_in}; words=({quoted}); CURRENT={len(words)}; . {tmp_path}/_hapax"
        done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, check=False, timeout=20)
        assert done.returncode == 0 and wanted in done.stdout.splitlines() and not done.stderr, (words, done)


THREAT_COLUMNS = ["threat", "what hapax does", "options", "tests", "metrics", "what remains"]


def threats():
    """{column: cell} of every row of the threat model."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")]
             for line in read("reference/threat-model.md").splitlines() if line.startswith("| ")]
    return [dict(zip(THREAT_COLUMNS, line, strict=True)) for line in lines if line != THREAT_COLUMNS]


def has_test(name):
    """Whether `tests/…::test_…` is a function of that file, in Python or in C."""
    file, _, test = name.partition("::")
    path = ROOT / file
    return path.is_file() and re.search(rf"^(def|static void) {re.escape(test)}\(", path.read_text(encoding="utf-8"), re.M)


def test_threats_name_what_exists():
    """Every option, test and metric on the threat model's page is there; no row goes without a test."""
    options = set(re.findall(r"^### `([^`]+)`$", read("reference/options.md"), re.M))
    metrics = {row[0].strip("`") for row in rows(read("reference/metrics.md"))}
    table = threats()
    assert len(table) > 25 and len(options) > 100
    for row in table:
        named = {column: re.findall(r"`([^`]+)`", row[column]) for column in ("options", "tests", "metrics")}
        assert named["tests"], row["threat"]
        missing = [name for name in named["options"] if name not in options] + \
            [name for name in named["metrics"] if name not in metrics] + \
            [name for name in named["tests"] if not has_test(name)]
        assert not missing, (row["threat"], missing)


def test_every_end_of_a_tls_connection_has_a_test():
    """Each row of both tables in guide/tls.md names tests that are there."""
    tables = read("guide/tls.md").partition("## How a connection can end")[2]
    found = [line for line in tables.splitlines() if line.startswith("| ") and "what happens" not in line]
    assert len(found) >= 19
    for line in found:
        named = re.findall(r"`(tests/[^`]+)`", line.rstrip(" |").rpartition(" | ")[2])
        assert named and all(has_test(name) for name in named), line


@pytest.mark.parametrize("word", ["races", "cross-tenant", "mismatch", "partial failure", "incomplete coverage",
                                  "fail-open", "worker replay", "enumeration", "replay after expiry",
                                  "error caching", "expiry races", "key spraying", "stale answers"])
def test_the_usual_checklist_has_its_rows(word):
    assert any(row["threat"].lower().startswith(word) for row in threats())


def test_every_command_is_documented():
    headings = re.findall(r"^## hapax (\w+)$", read("reference/cli.md"), re.M)
    assert sorted(headings) == sorted(commands())


def test_help_fits_a_terminal():
    """80 columns, of every command and verb."""
    pages = [[], *([c] for c in commands()), *([c, v] for c, vs in VERBS.items() for v in vs)]
    wide = [line for page in pages for line in help_of(*page).splitlines() if len(line) > 80]
    assert not wide, "\n".join(wide)


def documented_flags(command):
    return set(re.findall(r"`(--[a-z-]+)", section(read("reference/cli.md"), f"hapax {command}")))


@pytest.mark.parametrize("command", ["serve", "check", "coverage", "demo", "history", "migrate", "observed", "reconcile", "repair", "work",
                                     "call", "verify", "version"])
def test_every_flag_is_documented(command):
    """--steps is hidden outside of a steps build and documented all the same."""
    hidden = {"--steps"} if command == "version" else set()
    assert documented_flags(command) - hidden == flags_of(command) - hidden


@pytest.mark.parametrize("command", VERBS)
def test_every_verb_and_its_flags_are_documented(command):
    verbs = VERBS[command]
    text = section(read("reference/cli.md"), f"hapax {command}")
    listed = re.findall(rf"^  hapax {command} ([a-z-]+)", help_of(command), re.M)
    assert listed == verbs
    documented = {verb: set() for verb in verbs}
    for row in rows(text):
        if row[0].startswith("`--"):
            for verb in verbs_in(row[1], verbs):
                documented[verb].add(re.search(r"--[a-z-]+", row[0]).group())
        else:
            assert row[0].strip("`").split()[0] in verbs, row
    assert documented == {verb: flags_of(command, verb) for verb in verbs}


def verbs_in(cell, verbs):
    """`ls`, `show`; "all"; "all but `ls`"."""
    named = re.findall(r"`([a-z-]+)`", cell)
    return [verb for verb in verbs if verb not in named] if cell.startswith("all") else named


def test_every_exit_code_is_documented():
    documented = {row for row in re.findall(r"^\| (\d) \|", read("reference/cli.md"), re.M)}
    seen = {str(program(*arguments).returncode)
            for arguments in (["version"], ["check"], ["no-such-command"])}
    assert seen == documented


def test_every_variable_is_documented():
    """Of the environment: each that a command's sources read is in the table, for that command, and no other one is."""
    found = {}
    for path in (ROOT / "src").rglob("*.c"):
        for name in re.findall(r'(?:getenv|number_of_environment)\("(\w+)"', path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path)
    table = {}
    for row in rows(section(read("reference/cli.md"), "Environment")):
        for name in re.findall(r"`(\w+)`", row[0]):
            table.setdefault(name, set()).update(re.findall(r"`(\w+)`", row[1]))
    assert set(table) - set(found) <= {"http_proxy", "https_proxy", "no_proxy", "HAPAX_CRASH_AT", "HAPAX_STOP_AT"}
    assert set(found) <= set(table), set(found) - set(table)
    for name, files in found.items():
        for command in {re.sub(r"_.*", "", file.stem) for file in files if file.parent.name == "cli"} & set(commands()):
            assert command in table[name], (name, command)
    assert "serve" in table["NO_COLOR"]                 # read where the access log is written


def test_every_step_is_named():
    """What a death leaves at each step is told, in the order of the steps."""
    done = program("version", "--steps", steps=True)
    assert done.returncode == 0, done.stderr
    steps = [line.split("\t")[0] for line in done.stdout.splitlines()]
    text = section(read("internals/request-path.md"), "What a death leaves, step by step")
    assert [row[0].strip("`") for row in rows(text)] == steps


def test_every_thread_and_hold_is_named():
    """architecture.md has each file that starts a thread of a serving process, and
    request-path.md what holds a request: each file that takes a hold has a word there."""
    threads = section(read("internals/architecture.md"), "Threads")
    holds = section(read("internals/request-path.md"), "Holds")
    sources = {path.relative_to(ROOT / "src"): path.read_text(encoding="utf-8")
               for path in (ROOT / "src").rglob("*.c")}
    starts = {str(path) for path, text in sources.items()
              if path.parts[0] != "base" and not path.name.startswith("demo_")
              and re.search(r"hpx_thread_(start|run|repeat)\(&", text)}
    assert len(starts) >= 10, starts
    assert not [path for path in starts if f"`{path}`" not in threads], threads
    words = {"request.c": "hpx_request_go", "wait.c": "wait list", "forward.c": "exchange", "pass.c": "exchange",
             "subrequest.c": "subrequest", "fingerprint_work.c": "large body"}
    takers = {path.name for path, text in sources.items() if re.search(r"hpx_(request_hold|resume_arm)\(", text)}
    assert takers == set(words), "a new file holds requests: does the table have it?"
    assert not [word for word in words.values() if word not in holds], holds
    assert "query of the store" in holds and "queue for a slot" in holds and "committer" in holds, holds


def test_every_crash_point_that_is_named_exists():
    """The example of a header or a page works."""
    header = (ROOT / "src/base/crash_point.h").read_text(encoding="utf-8")
    points = set(re.findall(r'^\tX\((\w+), "', header, re.M))
    assert len(points) > 20
    pages = [header] + [page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"HAPAX_(?:CRASH|STOP)_AT=([\w.]+)", page)}
    named |= set(re.findall(r"HPX_CRASH_POINT\((\w+)\) does", header))
    assert len(named) >= 2 and named <= points, named - points


def test_pictures_are_made_from_their_text():
    """Every picture in docs/pictures is what tools/pictures makes now, or the recording."""
    done = subprocess.run([ROOT / "tools/pictures", "--check"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    described = {file.stem for file in (DOCS / "pictures").glob("*.txt")}
    drawn = {file.stem for file in (DOCS / "pictures").glob("*.svg")}
    assert described < drawn and drawn - described == {"demo", "plot-throughput", "plot-cpu"}
    shown = {pathlib.Path(link).stem for page in PAGES for link in links(page) if link.endswith(".svg")}
    assert shown == drawn, "a picture that no page shows, or the other way round"


def test_a_wrong_description_is_told(tmp_path):
    """With its file and its line."""
    for folder in ("tools", "bench", "docs/internals"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "docs/pictures").mkdir()
    (tmp_path / "docs/pictures/wrong.txt").write_text("title: T\nsize 10 10\narrow a.r b.l: no such boxes\n")
    done = subprocess.run([tmp_path / "tools/pictures"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1 and "docs/pictures/wrong.txt: line 3" in done.stderr, done.stderr


def test_the_drawn_crash_points_exist():
    """In the order of their list, as a request passes them."""
    header = (ROOT / "src/base/crash_point.h").read_text(encoding="utf-8")
    points = re.findall(r'^\tX\((\w+), "', header, re.M)
    text = (DOCS / "pictures/crash-points.txt").read_text(encoding="utf-8")
    drawn = re.findall(r"^crash \w+ (\w+):", text, re.M)
    assert len(drawn) > 5 and drawn == [point for point in points if point in drawn]


def code_blocks(page):
    return re.findall(r"^ *```(\w*)\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.M | re.S)


def command_lines(page):
    """The lines of a page's code that run hapax, each whole."""
    for _, block in code_blocks(page):
        for line in re.sub(r"\\\n *", "", block).splitlines():
            match = re.match(r"\s*(?:\$ )?(?:sudo )?(?:build/|/usr/bin/)?hapax ([a-z].*)", line)
            if match and not re.match(r"runs as|would |serves ", match[1]):
                yield match[1]


def words_of(line):
    """The words of a command line, up to a pipe, a redirection or a comment."""
    parts = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    parts.whitespace_split = True
    words = list(parts)
    end = next((at for at, word in enumerate(words) if set(word) <= set("|&;<>")), len(words))
    return words[:end]


def known_flags(command, verb):
    words = [command, verb] if verb else [command]
    return flags_of(*words) | {"--help"}, set(re.findall(r"^  (-\w), --", help_of(*words), re.M))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_is_one(page):
    """Each line that runs hapax names a command, a verb and flags that exist."""
    for line in command_lines(page):
        words = words_of(line)
        assert words[0] in commands() or words[0] in ("COMMAND", "help"), line
        verb = words[1] if words[0] in VERBS and len(words) > 1 and words[1] in VERBS[words[0]] else None
        assert verb or words[0] not in VERBS or words[1] == "--help", line
        long_flags, letters = known_flags(words[0], verb) if words[0] in commands() else (set(), set())
        for word in words[1:]:
            if word.startswith("--"):
                assert word.partition("=")[0] in long_flags | {"--steps"}, (line, word)
            elif re.match(r"-[A-Za-z]", word):
                assert word[:2] in letters, (line, word)


@pytest.mark.parametrize("page", sorted((DOCS / "guide").glob("*.md")), ids=lambda page: page.name)
def test_guides_name_what_exists(page):
    """Metrics, limits, timeouts and log events that a guide names are those of the program."""
    text = page.read_text(encoding="utf-8")
    metrics = {row[0].strip("`") for row in rows(read("reference/metrics.md"))}
    named = {HISTOGRAM_PARTS.sub("", name) for name in re.findall(r"\bhapax_[a-z_]+_(?:total|seconds|bytes)\b", text)}
    assert named <= metrics | {name for name in named if name + "_seconds" in metrics}, named - metrics
    options = set(re.findall(r"^### `([^`]+)`$", read("reference/options.md"), re.M))
    named = set(re.findall(r"`((?:limits|timeouts)\.[a-z_.]+)`", text))
    assert all(name in options or any(option.startswith(name + ".") for option in options) for name in named), named - options
    sources = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src").rglob("*.c"))
    for event in set(re.findall(r"event=(\w+)", text)):
        assert f'"{event}"' in sources, event


# These compare and answer; nothing is to be run first.
READING = {"choose-a-store.md", "compare.md", "faq.md"}


@pytest.mark.parametrize("page", sorted((DOCS / "guide").glob("*.md")), ids=lambda page: page.name)
def test_something_works_soon(page):
    """A guide comes to its first command or file within two screens: 450 words."""
    before = re.split(r"^ *```", page.read_text(encoding="utf-8"), maxsplit=1, flags=re.M)
    assert page.name in READING or len(before) == 2 and len(before[0].split()) <= 450, len(before[0].split())


def test_the_words_that_users_meet_are_linked():
    """Each has a heading in the glossary, and a guide that leads there."""
    words = re.findall(r"^### (\w+)$", read("internals/glossary.md"), re.M)
    assert len(words) > 10 and words == sorted(words)
    linked = {link.partition("#")[2] for page in (DOCS / "guide").glob("*.md") for link in links(page)
              if "glossary.md#" in link}
    assert set(words) - linked <= {"key", "settle"}, set(words) - linked


def anchor(heading):
    """A heading's anchor as GitHub makes it."""
    plain = re.sub(r"[`*]", "", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def links(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text)
            if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_resolves(page):
    """To a file that is there, and to a heading that is in it."""
    for target in links(page):
        name, _, fragment = target.partition("#")
        file = pathlib.Path(os.path.normpath(page.parent / name)) if name else page
        assert file.exists(), f"{target} leads nowhere"
        if fragment:
            headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.M)
            assert fragment in [anchor(h) for h in headings], f"{target}: no such heading"


def test_every_file_of_a_recipe_is_there():
    """Also those that a pattern stands for; NAME is what somebody adds."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/-])(?:src|tests|docs|etc|sql|tools|include)/[\w.*/-]*", text))
    named = {name for name in named if "NAME" not in name}
    assert len(named) > 50, named
    assert not [name for name in named if not any(ROOT.glob(name))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_page_can_be_found(page):
    """The map of the docs leads to every page, or to a folder's own map that does."""
    assert page.parent == ROOT or page.name == "README.md" or \
        str(page.relative_to(DOCS)) in links(DOCS / "README.md") or \
        (page.parent / "README.md").is_file() and page.name in links(page.parent / "README.md")
