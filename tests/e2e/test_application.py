"""Shows what an application gains that takes part from inside its own
transaction: what it committed is the answer, whatever became of its HTTP; what
it did not commit did not happen; and after a crash it goes on where it was."""
import re
import subprocess
import threading

import pytest

from conftest import require_program
from harness import check, postgres
from harness.application import Shop, answer
from harness.gateway import ROOT, binary
from harness.secret import new_key

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")

APPLICATION = {"defaults": {"completes": "application"}}
RESUME = {"defaults": {"on_lost": "resume", "fenced": "yes"}}


@pytest.fixture
def shop(tmp_path):
    """shop(config) starts the service and a gateway on a database of their own."""
    require_program()
    made = []

    def start(config=None):
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(Shop(folder, postgres.shared(), config))
        return made[-1]

    yield start
    for one in made:
        one.close()


class Held:
    """A request whose service waits inside its work until the test lets it go."""

    def __init__(self, one, then):
        self.arrived, self.permit = threading.Event(), threading.Event()
        self.request, self.result = None, None
        self.key = new_key()
        self.done = threading.Event()

        def work(request):
            if request["Idempotency-Key"].strip('"') != self.key or self.request is not None:
                one.pay(request)
                return answer(200)
            self.request = request
            self.arrived.set()
            assert self.permit.wait(60)
            self.result = then(request)
            self.done.set()
            return self.result if isinstance(self.result, bytes) else None

        one.service.work = work
        self.wire = one.gateway.connect(60)
        self.wire.send(one.gateway.request("POST", "/pay", key=self.key))
        assert self.arrived.wait(15)

    def go(self):
        self.permit.set()
        assert self.done.wait(30)
        return self.result


# What becomes of HTTP after the commit, and what the service sends then.
ENDS = {
    "reset": None,
    "500": answer(500),
    "503": answer(503),
    "401": answer(401),
    "502": answer(502),
    "another answer": answer(200, b"something else"),
    "nonsense": b"no HTTP at all\r\n\r\n",
    "too large": answer(200, b"x" * 5000),
}


@pytest.mark.parametrize("completes", ["upstream", "application"])
@pytest.mark.parametrize("end", ENDS)
def test_what_was_committed_is_the_answer(shop, end, completes):
    """The service dies, or says something else, after its commit: the first
    caller and every retry get the committed answer; there is one row."""
    one = shop({"defaults": {"completes": completes}, "limits": {"response_body": "1KiB"}})

    def work(request):
        assert one.pay(request) is None
        return ENDS[end]

    one.service.work = work
    key = new_key()
    first = one.gateway.post(key=key)
    assert (first.status, first.body, first["Content-Type"]) == (201, b"paid by 1", "text/plain"), first
    check.same_answer(first, one.gateway.post(key=key))
    assert one.rows() == ["paid"] and len(one.service.seen()) == 1


def test_an_answer_that_never_comes(shop):
    """The service commits and is silent: the committed answer is given when the
    wait is over."""
    one = shop({"timeouts": {"first_byte": "500ms"}})
    held = Held(one, lambda request: answer(200))
    assert one.pay(held.request) is None
    with held.wire:
        first = held.wire.answer()
    held.go()
    assert (first.status, first.body) == (201, b"paid by 1")
    assert one.rows() == ["paid"]


def test_a_commit_after_unknown(shop):
    """The gateway wrote `unknown` first: the same lease still completes it."""
    one = shop({"timeouts": {"first_byte": "500ms"}})
    held = Held(one, lambda request: one.pay(request))
    with held.wire:
        check.problem(held.wire.answer(), "upstream_outcome_unknown")
    check.problem(one.gateway.post(key=held.key), "idempotency_outcome_unknown")
    assert held.go() is None
    again = one.gateway.post(key=held.key)
    assert (again.status, again.body, again.replayed) == (201, b"paid by 1", True)
    assert one.rows() == ["paid"]


@pytest.mark.parametrize("end", ENDS)
def test_what_was_not_committed_did_not_happen(shop, end):
    """completes: application, and the first attempt ends without a commit: a
    retry runs at once, and there is one row."""
    one = shop({**APPLICATION, "limits": {"response_body": "1KiB"}})
    attempts = []

    def work(request):
        attempts.append(request["Hapax-Attempt"])
        if len(attempts) == 1:
            return ENDS[end]
        assert one.pay(request) is None
        return answer(200)

    one.service.work = work
    key = new_key()
    first = one.gateway.post(key=key)
    if ENDS[end] is None or end == "nonsense":
        check.problem(first, "upstream_not_executed")
    else:
        assert first.status == int(ENDS[end][9:12])
    assert one.state() == ["failed_retryable"]
    lost = ENDS[end] is None or end == "nonsense"
    assert one.sql("SELECT status FROM hapax.operation") == ["0" if lost else str(first.status)]
    again = one.gateway.post(key=key)
    assert (again.status, again.body, again.replayed) == (201, b"paid by 2", False)
    check.same_answer(again, one.gateway.post(key=key))
    assert attempts == ["1", "2"] and one.rows() == ["paid"]


@pytest.mark.parametrize("config", [APPLICATION, RESUME], ids=["application", "resume"])
def test_a_late_commit_is_refused(shop, config):
    """The gateway dies, the lease is lost, a retry executes: the first attempt,
    which was only slow, can write nothing any more."""
    one = shop({**config, "defaults": {**config["defaults"], "lease": "1s"}})
    held = Held(one, lambda request: one.pay(request) or answer(200))
    one.gateway.kill()
    one.gateway.process = None
    held.wire.close()
    one.gateway.start()
    check.until(lambda: one.state() == ["failed_retryable"], "the lease is lost")
    again = one.gateway.post(key=held.key)
    assert (again.status, again.body) == (201, b"paid by 2"), again
    assert held.go() == "HX001"
    assert one.rows() == ["paid"]


def test_it_goes_on_where_it_was(shop):
    """Two phases, and a crash after each commit: no phase runs twice, and the
    service is told where it was, with what it saved."""
    one = shop(RESUME)
    seen = []

    def work(request):
        lease, point = request["Hapax-Lease"], request["Hapax-Recovery-Point"]
        saved = one.sql(f"SELECT point, convert_from(data, 'UTF8') FROM hapax.recovery('{lease}')")
        seen.append((request["Hapax-Attempt"], point, saved))
        if point is None:
            assert one.transaction(f"{one.row(request, 'charged')}; "
                                   f"SELECT hapax.advance('{lease}', 'charged', 'ch_1')") is None
            return None
        if point == "charged":
            assert one.transaction(f"{one.row(request, 'shipped')}; "
                                   f"SELECT hapax.advance('{lease}', 'shipped', 'sh_1')") is None
            return answer(500)
        assert one.transaction(one.complete(request)) is None
        return answer(200)

    one.service.work = work
    key = new_key()
    check.problem(one.gateway.post(key=key), "upstream_outcome_unknown", status=502)
    assert one.gateway.post(key=key).status == 500
    third = one.gateway.post(key=key)
    assert (third.status, third.body) == (201, b"paid by 3")
    check.same_answer(third, one.gateway.post(key=key))
    assert seen == [("1", None, ["|"]), ("2", "charged", ["charged|ch_1"]), ("3", "shipped", ["shipped|sh_1"])]
    assert one.rows() == ["charged", "shipped"]


def test_a_committed_part_is_never_not_executed(shop):
    """Without `resume`, a 500 after a committed phase is for a person to look at."""
    one = shop()

    def work(request):
        assert one.transaction(f"{one.row(request)}; SELECT hapax.enqueue('{request['Hapax-Lease']}', "
                               "'mail', 'mailer', 'POST', '/send', '', 'hello')") is None
        return answer(500)

    one.service.work = work
    key = new_key()
    assert one.gateway.post(key=key).status == 500
    check.problem(one.gateway.post(key=key), "idempotency_outcome_unknown")
    assert one.rows() == ["paid"]
    assert one.sql("SELECT name, target, state FROM hapax.job") == ["mail|mailer|1"]


def test_not_executed_is_the_applications_word(shop):
    """hapax.not_executed, then a crash: the retry runs at once."""
    one = shop()

    def work(request):
        if request["Hapax-Attempt"] == "1":
            assert one.transaction(f"SELECT hapax.not_executed('{request['Hapax-Lease']}')") is None
            return None
        assert one.pay(request) is None
        return answer(200)

    one.service.work = work
    key = new_key()
    check.problem(one.gateway.post(key=key), "upstream_outcome_unknown", status=502)
    assert one.gateway.post(key=key).body == b"paid by 2"
    assert one.rows() == ["paid"]


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
def test_a_transaction_stays_open(shop, ends):
    """The application holds its row; its HTTP ends first. Other keys are not
    slowed; its own caller waits for the transaction, and is told the truth."""
    one = shop({**APPLICATION, "timeouts": {"store": "30s"}})
    held = Held(one, lambda request: None)
    session = one.session()
    session.stdin.write(f"{one.row(held.request)};\n{one.complete(held.request)};\nSELECT 'open';\n")
    while session.stdout.readline().strip() != "open":
        pass
    held.go()
    for _ in range(20):
        assert one.gateway.post(timeout=5).status == 201
    check.problem(one.gateway.post(key=held.key), "idempotency_key_in_progress")
    session.stdin.write(f"{ends};\n\\q\n")
    session.communicate()
    with held.wire:
        first = held.wire.answer()
    if ends == "COMMIT":
        assert (first.status, first.body, first.replayed) == (201, b"paid by 1", False)
        check.same_answer(first, one.gateway.post(key=held.key))
    else:
        check.problem(first, "upstream_not_executed")
        assert one.gateway.post(key=held.key).body == b"paid by 2"
    assert one.rows() == ["paid"] * 21


def test_a_transaction_that_outlasts_the_caller(shop):
    """The caller is told that nobody knows yet; the truth is there for its retry."""
    one = shop({**APPLICATION, "timeouts": {"store": "300ms"}})
    held = Held(one, lambda request: None)
    session = one.session()
    session.stdin.write(f"{one.row(held.request)};\n{one.complete(held.request)};\nSELECT 'open';\n")
    while session.stdout.readline().strip() != "open":
        pass
    held.go()
    with held.wire:
        check.problem(held.wire.answer(), "upstream_outcome_unknown")
    session.stdin.write("COMMIT;\n\\q\n")
    session.communicate()
    again = one.gateway.post(key=held.key)
    assert (again.status, again.body, again.replayed) == (201, b"paid by 1", True)
    assert one.rows() == ["paid"]


def test_an_administrator_makes_the_role(tmp_path):
    """`hapax migrate` by a role that may make no roles leaves that to somebody
    who may; what the reference says to run is enough."""
    require_program()
    cluster = postgres.Cluster()
    try:
        database = cluster.database()
        cluster.sql(f"CREATE ROLE plain LOGIN; ALTER DATABASE {database} OWNER TO plain")
        url = cluster.url(database).replace("hapax@", "plain@")
        done = subprocess.run([binary(), "migrate", "--store", url], capture_output=True, text=True,
                              check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert cluster.sql("SELECT 1 FROM pg_roles WHERE rolname = 'hapax_application'") == []
        page = (ROOT / "docs/reference/sql.md").read_text()
        cluster.sql(re.search(r"```sql\n(.*?)```", page.split("## Rights")[1], re.S)[1], database)
        assert cluster.sql("SELECT count(*) FROM pg_proc WHERE pronamespace = 'hapax'::regnamespace AND "
                           "has_function_privilege('hapax_application', oid, 'EXECUTE')", database) == ["9"]
    finally:
        cluster.close()
