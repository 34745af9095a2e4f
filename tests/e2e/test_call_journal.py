"""Shows that the journal of `hapax call` has what a resume needs and no credential:
what is written, who may take it up again, and that nothing is sent without it."""
import re
import resource
import signal
import sqlite3
import stat

import pytest

from harness.caller import (BODY, DONE, FAILED, IN_DOUBT, NOT_YET, PAID, QUICK, USAGE, UUID7, WORD,
                            caller, keys_of, script)  # noqa: F401
from harness.script import CLOSE, HOLD, answer


def test_resumed_until_done(caller, script):
    """Given up, stopped and refused: each resume is the same request; done, it is
    not sent any more, and the exit code is still that of its answer."""
    server = script(answer(500), CLOSE, answer(401), PAID)
    secret = ["-H", f"X-Api-Key: {WORD}"]
    caller.post(server.url, "--attempts", "1", "-H", "X-Tag: a", *secret, exit_code=IN_DOUBT)
    for exit_code in (IN_DOUBT, IN_DOUBT, DONE):
        done = caller.run("--resume", "1", "--attempts", "1", *secret, exit_code=exit_code)
    assert done.stdout == b'{"id": 1}\n'
    assert len(server.requests) == 4 and len(set(server.requests)) == 1
    assert caller.entry()["attempts"] == 4
    assert caller.run("--resume", "1", *secret, exit_code=DONE).errors == (
        "hapax call: call 1 is done: it was answered with 201\n")
    assert caller.run("--resume", exit_code=DONE).stdout == b""
    assert len(server.requests) == 4


def test_resume_takes_the_same_credentials_only(caller, script):
    """Without them it stays as it is, and the exit code says what is known of it."""
    server = script(CLOSE, PAID)
    caller.post(server.url, "--attempts", "1", "-H", f"Authorization: Bearer {WORD}",
                exit_code=IN_DOUBT)
    missing = caller.run("--resume", "1", exit_code=IN_DOUBT)
    assert "call 1: this call was sent with Authorization, which is never written" in missing.errors
    other = caller.run("--resume", "1", "-H", "Authorization: Bearer other", exit_code=IN_DOUBT)
    assert "call 1: Authorization is another one" in other.errors
    assert "it may have happened" in other.errors and "`hapax call --forget 1`" in other.errors
    more = caller.run("--resume", "1", "-H", f"Authorization: Bearer {WORD}", "-H", "X-New: 1",
                      exit_code=IN_DOUBT)
    assert "X-New" in more.errors
    assert len(server.requests) == 1, "nothing was sent with the wrong one"
    caller.run("--resume", "1", "-H", f"authorization:Bearer {WORD} ", exit_code=DONE)
    assert len(set(server.requests)) == 1


def test_resume_of_what_did_not_happen(caller, script):
    """A credential that is missing does not make it a refusal: nothing has happened."""
    server = script(answer(425))
    caller.post(server.url, "--attempts", "1", "-H", f"Authorization: {WORD}", exit_code=NOT_YET)
    done = caller.run("--resume", exit_code=NOT_YET)
    assert "nothing has happened: give what it was sent with" in done.errors
    assert len(server.requests) == 1


def test_resume_of_a_refusal(caller, script):
    """Refused is refused, also when it is asked about again."""
    server = script(answer(402))
    caller.post(server.url, exit_code=FAILED)
    assert "with 402" in caller.run("--resume", "1", exit_code=FAILED).errors


@pytest.mark.parametrize("command", [["--resume"], ["--list"], ["--forget", "1"]])
def test_a_journal_that_is_not_there(caller, command):
    """A mistyped name is said, and no empty journal is made of it."""
    done = caller.run(*command, "--journal", "payments.jurnal", exit_code=FAILED)
    assert "the journal payments.jurnal: No such file" in done.errors
    assert not (caller.home / "payments.jurnal").exists()


def test_resume_changes_nothing(caller):
    for flags in (["-d", "x"], ["--key", "x"], ["--key-header", "X"], ["--bare-key"]):
        assert caller.run("--resume", "1", *flags).returncode == USAGE


def test_header_file(caller, script):
    """Its name is kept, not its content; a resume reads it again, and refuses
    another content."""
    server = script(CLOSE, PAID)
    path = caller.home / "auth"
    path.write_text(f"# who I am\nAuthorization: Bearer {WORD}\r\n\nX-Trace: {WORD}-2\n")
    caller.post(server.url, "--attempts", "1", "-H", "@auth", exit_code=IN_DOUBT)
    on_disk = caller.bytes_on_disk()
    assert WORD.encode() not in on_disk and str(path).encode() in on_disk
    path.write_text("Authorization: Bearer other\nX-Trace: 2\n")
    assert "another caller" in caller.run("--resume", exit_code=IN_DOUBT).errors
    path.unlink()
    assert f"call 1: {path}: No such file" in caller.run("--resume", exit_code=IN_DOUBT).errors
    path.write_text(f"Authorization: Bearer {WORD}\nX-Trace: {WORD}-2\n")
    caller.run("--resume", exit_code=DONE)
    assert len(server.requests) == 2 and len(set(server.requests)) == 1


def test_what_is_on_the_disk(caller, script):
    """Modes; no credential at any time; of a call that is done neither body nor
    headers nor query."""
    server = script(HOLD, PAID)
    secrets = ["Authorization: Bearer", "Cookie: session=", "X-Api-Key:", "X-Auth-Token:",
               "Client-Secret:", "X-Auth:", "X-Session-Id:", "X-Hub-Signature:", "X-Amz-Credential:"]
    flags = [part for s in secrets for part in ("-H", f"{s} {WORD}")]
    process = caller.start("POST", f"{server.url}?q=qqqqq", "-d", "bbbbb", "-H", "X-Tag: ttttt",
                           *flags, *QUICK)
    server.wait_requests(1)
    on_disk = caller.bytes_on_disk()
    assert WORD.encode() not in on_disk
    assert all(word in on_disk for word in (b"qqqqq", b"bbbbb", b"ttttt"))
    assert stat.S_IMODE(caller.journal.parent.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in caller.journal.parent.iterdir()} == {0o600}
    server.release()
    process.communicate(timeout=30)
    assert process.returncode == DONE
    assert all(server.requests[0].count(WORD.encode()) == len(secrets) for _ in server.requests)
    on_disk = caller.bytes_on_disk()
    assert not [w for w in (b"qqqqq", b"bbbbb", b"ttttt", WORD.encode()) if w in on_disk]
    assert caller.entry()["url"] == server.url


def test_written_down_before_the_first_byte(caller, script):
    """While the request is on its way, the entry is there, and taken."""
    server = script(HOLD, PAID)
    process = caller.start("POST", server.url, "-d", BODY, *QUICK)
    server.wait_requests(1)
    assert caller.entry()["state"] == "sending"
    assert "another process" in caller.run("--resume", "1", exit_code=IN_DOUBT).errors
    assert "another process" in caller.run("--forget", "1", exit_code=FAILED).errors
    process.kill()
    process.communicate()
    assert (caller.entry()["state"], caller.entry()["in_doubt"]) == ("open", True)
    caller.run("--resume", exit_code=DONE)
    assert len(server.requests) == 2 and len(set(server.requests)) == 1


def test_two_resume_one_sends(caller, script):
    """Of two that resume at the same time one gets it; the other is told."""
    server = script(CLOSE, HOLD)
    caller.post(server.url, "--attempts", "1", exit_code=IN_DOUBT)
    first = caller.start("--resume", "1", "--attempts", "1")
    server.wait_requests(2)
    assert "another process" in caller.run("--resume", "1", exit_code=IN_DOUBT).errors
    server.release()
    first.communicate(timeout=30)
    assert first.returncode == IN_DOUBT and len(server.requests) == 2


def test_resume_all_oldest_first(caller, script):
    """Each with a line; the exit code is the worst of them; no body is printed."""
    server = script(CLOSE, CLOSE, CLOSE, PAID, answer(500), PAID)
    for body in "abc":
        caller.run("POST", server.url, "-d", body, "--attempts", "1", exit_code=IN_DOUBT)
    done = caller.run("--resume", "--attempts", "1", "-v", exit_code=IN_DOUBT)
    assert re.findall(r"(?m)^call (\d):$", done.errors) == ["1", "2", "3"]
    assert [r[-1:] for r in server.requests] == [b"a", b"b", b"c", b"a", b"b", b"c"]
    assert done.stdout == b"" and "call 1: answered with 201" in done.errors
    assert [e["state"] for e in caller.entries()] == ["stopped", "done", "done"]


def test_two_resume_all(caller, script):
    """What the other has settled, or is at, since it was listed is nothing to complain of."""
    server = script(CLOSE, CLOSE, CLOSE, HOLD, PAID, PAID)
    for body in "abc":
        caller.run("POST", server.url, "-d", body, "--attempts", "1", exit_code=IN_DOUBT)
    first = caller.start("--resume", "--attempts", "1")
    server.wait_requests(4)
    caller.run("--resume", exit_code=DONE)
    server.release()
    _, errors = first.communicate(timeout=30)
    assert first.returncode == IN_DOUBT, errors
    assert b"call 2" not in errors and b"call 3" not in errors and len(server.requests) == 6


def test_resume_all_interrupted(caller, script):
    """The exit code speaks of those too that it did not get to."""
    server = script(answer(425), CLOSE, answer(425))
    for exit_code in (NOT_YET, IN_DOUBT):
        caller.post(server.url, "--attempts", "1", exit_code=exit_code)
    process = caller.start("--resume", "--backoff", "1h", "--backoff-max", "1h", "--budget", "1d")
    server.wait_requests(3)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == IN_DOUBT and server.connections == 3


def test_forgotten_keys_are_not_sent(caller, script):
    """What may have happened is not sent again later than the API remembers; what
    did not happen is."""
    server = script(CLOSE, answer(425), PAID)
    caller.post(server.url, "--attempts", "1", exit_code=IN_DOUBT)
    caller.post(server.url, "--attempts", "1", exit_code=NOT_YET)
    with sqlite3.connect(caller.journal) as db:
        db.execute("UPDATE call SET first_ms = first_ms - 86400000")
    done = caller.run("--resume", "1", exit_code=IN_DOUBT)
    assert "forgotten" in done.errors and len(server.requests) == 2
    caller.run("--resume", "2", exit_code=DONE)
    caller.run("--resume", "1", "--attempts", "1", "--remembered", "30d", exit_code=IN_DOUBT)
    assert server.connections == 4


def test_the_journal_knows_how_long_a_key_is_remembered(caller, script):
    """A resume that says nothing of it must not take an API for a better one."""
    server = script(CLOSE, PAID)
    caller.post(server.url, "--attempts", "1", "--remembered", "10m", exit_code=IN_DOUBT)
    age(caller, 3600)
    assert "forgotten" in caller.run("--resume", exit_code=IN_DOUBT).errors
    assert len(server.requests) == 1
    caller.run("--resume", "--remembered", "2h", exit_code=DONE)


def test_a_clock_that_was_set_back_tells_no_age(caller, script):
    server = script(CLOSE, PAID)
    caller.post(server.url, "--attempts", "1", exit_code=IN_DOUBT)
    age(caller, -3600)
    assert "forgotten" in caller.run("--resume", exit_code=IN_DOUBT).errors
    assert len(server.requests) == 1
    age(caller, 3540)
    caller.run("--resume", exit_code=DONE)


def test_without_doubt_an_old_key_is_as_good_as_new(caller, script):
    """A call that was turned away long ago, and is lost now, is a minute old."""
    server = script(answer(425), CLOSE, PAID)
    caller.post(server.url, "--attempts", "1", exit_code=NOT_YET)
    age(caller, 3 * 86400)
    caller.run("--resume", *QUICK, exit_code=DONE)
    assert len(set(server.requests)) == 1 and len(server.requests) == 3


def age(caller, seconds):
    """The entry's first attempt was so much earlier."""
    with sqlite3.connect(caller.journal) as db:
        db.execute("UPDATE call SET first_ms = first_ms - ?", [seconds * 1000])


def test_list_and_forget(caller, script):
    server = script(PAID, CLOSE)
    assert caller.run("--list", exit_code=DONE).stdout == b""
    caller.post(server.url, exit_code=DONE)
    caller.post(server.url, "--attempts", "1", exit_code=IN_DOUBT)
    lines = caller.run("--list", exit_code=DONE).stdout.decode().splitlines()
    assert re.search(r"2 +gave_up +maybe +1 +- ", lines[1]) and " done " in lines[2]
    assert re.search(UUID7, lines[1]) and server.url in lines[1]
    caller.run("--forget", "2", exit_code=DONE)
    assert caller.entry()["id"] == 1
    assert "no call 2" in caller.run("--forget", "2", exit_code=FAILED).errors
    assert "no call 2" in caller.run("--resume", "2", exit_code=FAILED).errors


def test_old_entries_are_pruned(caller, script):
    """Those that are done, after 30 days; never another."""
    server = script(PAID, CLOSE, PAID)
    caller.post(server.url, exit_code=DONE)
    caller.post(server.url, "--attempts", "1", exit_code=IN_DOUBT)
    with sqlite3.connect(caller.journal) as db:
        db.execute("UPDATE call SET changed_ms = changed_ms - 31 * 86400000")
    caller.post(server.url, exit_code=DONE)
    assert [e["id"] for e in caller.entries()] == [2, 3]


def test_no_journal(caller, script):
    """Nothing is written; what is needed to go on is told."""
    server = script(CLOSE)
    done = caller.post(server.url, "--no-journal", "--attempts", "1", exit_code=IN_DOUBT)
    assert not caller.journal.exists()
    assert keys_of(server.requests) == {f'"{re.search(UUID7, done.errors).group()}"'.encode()}


def limit_files():
    """Every write to a file fails, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def test_nothing_is_sent_without_the_journal(caller, script):
    """Absent, foreign, no file at all, or a full disk."""
    server = script(PAID)
    foreign = caller.home / "foreign.db"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE mine (x)")
    text = caller.home / "text"
    text.write_text("This is no database, and it is not touched either. " * 99)
    link = caller.home / "link"
    link.symlink_to(caller.home / "elsewhere.db")
    before = foreign.read_bytes(), text.read_bytes()
    for path, words in ((foreign, "not a journal"), (text, "not a journal"), (link, "regular file"),
                        ("/nowhere/calls.db", "No such file"), (caller.home, "not a regular file"),
                        ("/dev/null", "not a regular file")):
        done = caller.post(server.url, "--journal", path, exit_code=FAILED)
        assert words in done.errors and "nothing was sent" in done.errors, done.errors
    assert (foreign.read_bytes(), text.read_bytes()) == before
    caller.run("--list", exit_code=DONE)
    done = caller.post(server.url, preexec_fn=limit_files, exit_code=FAILED)
    assert "cannot be written" in done.errors
    assert server.connections == 0


def test_a_newer_journal_is_left_alone(caller):
    caller.run("--list", exit_code=DONE)
    with sqlite3.connect(caller.journal) as db:
        db.execute("PRAGMA user_version = 2")
    assert "newer" in caller.run("--list", exit_code=FAILED).errors


def test_default_places(caller, script):
    """XDG_STATE_HOME, else ~/.local/state; else it says so."""
    server = script(PAID, PAID)
    env = {k: v for k, v in caller.env.items() if k != "XDG_STATE_HOME"}
    caller.post(server.url, env={**env, "HOME": str(caller.home)}, exit_code=DONE)
    assert (caller.home / ".local/state/hapax/calls.db").exists()
    env.pop("HOME", None)
    assert "--journal" in caller.post(server.url, env=env, exit_code=FAILED).errors
    nowhere = caller.home / "no" / "such" / "user"
    told = caller.post(server.url, env={**env, "HOME": str(nowhere)}, exit_code=FAILED).errors
    assert f"HOME is {nowhere}, which is not a directory: nothing was sent; name" in told, told
    assert not (caller.home / "no").exists() and server.connections == 1
