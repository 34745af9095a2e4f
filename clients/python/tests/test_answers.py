"""Shows that the client makes of every answer what the shared table of answers says, over
real connections, and that key and bytes are the same in every attempt."""
import json
import pathlib
import re
import socket
import struct
import tempfile
import threading
import time
import unittest

from hapax_client import Client, FileStorage, HapaxError, MemoryStorage
from hapax_client.answer import Facts, judge, read_document, retry_after_seconds

# In hapax's own tree, which has the table; a package without it has nothing to compare.
TABLE = pathlib.Path(__file__).resolve().parents[3] / "tests" / "client" / "answers.json"
CASES = json.loads(TABLE.read_text())["cases"]
LAST = {"status": 201, "body": {"id": 1}}
BODY = '{"amount": 499, "to": "Zo\u00eb"}'
UNSENT, LOST, HOLD, DRIP = "unsent", "lost", "hold", "drip"


class Script:
    """A server that answers by a list, one step for each connection, and keeps what came."""

    def __init__(self, *steps):
        self.steps = [step for step in steps if step != UNSENT]
        self.seen, self.ended = [], threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    url = property(lambda self: f"http://127.0.0.1:{self.port}/pay?x=1")

    def run(self):
        for step in self.steps:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with sock:
                try:
                    self.play(sock, step)
                except OSError:
                    pass  # the client has left

    def play(self, sock, step):
        with sock.makefile("rb") as reader:
            head = b"".join(iter(reader.readline, b"\r\n"))
            length = int(re.search(rb"content-length: (\d+)", head, re.I)[1])
            self.seen.append((head.decode(), reader.read(length)))
        if step == LOST:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif isinstance(step, bytes):
            sock.sendall(step)
        elif step == HOLD:
            self.ended.wait(30)
        elif step == DRIP:
            while not self.ended.wait(0.05):
                sock.sendall(b"H")
        else:
            sock.sendall(self.bytes_of(step))

    @staticmethod
    def bytes_of(step):
        body = step.get("body", "")
        text = (body if isinstance(body, str) else json.dumps(body)).encode()
        kind = step.get("type", "text/plain" if isinstance(body, str) else "application/json")
        fields = {"Content-Type": kind, "Content-Length": str(len(text)), **step.get("headers", {})}
        lines = [f"HTTP/1.1 {step['status']} Because", *(f"{name}: {value}" for name, value in fields.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + text

    def close(self):
        self.ended.set()
        self.listener.close()


def held_port():
    """A port that is taken, and where nobody listens."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    return holder


class Run:
    """One call against a script; a step that is UNSENT finds nobody listening."""

    def __init__(self, *steps, storage=None, **options):
        self.server, self.events, self.result = Script(*steps), [], None
        left, holder = list(steps), held_port()
        self.client = Client(storage=storage, budget=options.pop("budget", 3600), sleep=options.pop("sleep", lambda s: None),
                             on_attempt=self.events.append, **options)
        connect = socket.create_connection

        def to_script(address, *rest, **more):
            unsent = bool(left) and left.pop(0) == UNSENT
            return connect(holder.getsockname() if unsent else address, *rest, **more)

        socket.create_connection = to_script
        try:
            self.result = self.client.request("POST", self.server.url, intent="one", body=BODY,
                                              headers={"Content-Type": "application/json"})
        except HapaxError as error:
            self.result = error
        finally:
            socket.create_connection = connect
            holder.close()
            self.server.close()


class Answers(unittest.TestCase):
    def test_there_are_cases(self):
        self.assertGreaterEqual(len(CASES), 49)

    def test_by_the_rules_alone(self):
        for case in CASES:
            fields = case.get("headers", {})
            body = case.get("body", "")
            text = body if isinstance(body, str) else json.dumps(body)
            facts = Facts(lost=case["lost"]) if "lost" in case else Facts(
                status=case["status"], replayed=fields.get("Idempotent-Replayed") == "true",
                operation="Hapax-Operation" in fields,
                retry_after_s=retry_after_seconds(fields.get("Retry-After"), time.time()),
                document=read_document(case.get("type", "application/json"), text.encode()))
            got = judge(facts, case.get("doubt", False))
            self.assertEqual((got.then, got.doubt), (case["then"], case.get("doubt_after", False)), case["says"])

    def test_over_connections(self):
        for case in CASES:
            with self.subTest(case["says"]):
                self.check(case)

    def check(self, case):
        step = {"sent": LOST, "unsent": UNSENT}.get(case.get("lost"), case)
        before = 1 if case.get("doubt") else 0
        run = Run(*[LOST] * before, step, LAST)
        event = run.events[before]
        self.assertEqual(event.then, case["then"], event)
        if "doubt_after" in case:
            self.assertEqual(event.doubt, case["doubt_after"])
        if case.get("wait_s"):
            self.assertEqual(event.wait_s, case["wait_s"])
        else:
            self.assertLessEqual(event.wait_s, 0.6)
        if case["then"] == "stop":
            self.assertEqual((run.result.code, run.result.reason, run.result.doubt, run.result.last_answer.status,
                              run.result.attempts),
                             ("unsettled", "stopped", case["doubt_after"], case["status"], before + 1))
            self.assertEqual([(p.intent, p.key, p.doubt) for p in run.client.pending()],
                             [("one", run.result.key, case["doubt_after"])])
        else:
            self.assertEqual(run.result.status, case["status"] if case["then"] == "done" else 201)
            self.assertEqual(run.client.pending(), [])
        self.check_requests(run)

    def check_requests(self, run):
        keys = {re.search(r"^Idempotency-Key: (.*)\r$", head, re.M)[1] for head, _ in run.server.seen}
        self.assertEqual(len(keys), 1, keys)
        self.assertRegex(keys.pop(), r'^"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$')
        self.assertEqual(len({(head, body) for head, body in run.server.seen}), 1)
        head, body = run.server.seen[0]
        self.assertTrue(head.startswith("POST /pay?x=1 HTTP/1.1\r\n"), head)
        self.assertEqual(body.decode(), BODY)


class Losses(unittest.TestCase):
    def test_half_an_answer(self):
        """Cut in the status line, in the head, in the body, and in a chunk."""
        chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for piece in (b"", b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nX: y", b"HTTP/1.1 200 OK\r\nX: y\r\n",
                      b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n12345678", chunked, chunked + b"5\r\n123",
                      chunked + b"5\r\n12345\r\n", chunked + b"5\r\n12345\r\n0\r\n", b"nonsense\r\n\r\n"):
            run = Run(piece, LAST)
            self.assertEqual([(e.then, e.doubt, e.status) for e in run.events],
                             [("again", True, None), ("done", False, 201)], piece)
            self.assertEqual(run.result.json(), {"id": 1})

    def test_an_answer_that_never_ends(self):
        """The time is that of the whole attempt, not of each byte."""
        for step in (HOLD, DRIP):
            run = Run(step, attempt_timeout=0.3, budget=0.5, backoff_base=9, random=lambda: 1)
            self.assertEqual(([e.then for e in run.events], run.result.reason), (["again"], "budget"), step)
            self.assertTrue(run.events[0].doubt and isinstance(run.events[0].error, OSError), run.events)

    def test_budget(self):
        """It ends in time, and the next call goes on with the same key."""
        storage = MemoryStorage()
        first = Run(LOST, storage=storage, budget=0.2, backoff_base=5, random=lambda: 1)
        self.assertEqual((first.result.code, first.result.reason, first.result.doubt), ("unsettled", "budget", True))
        # The address is another, and so is the request.
        second = Run(LAST, storage=storage)
        self.assertEqual((second.result.code, second.result.key), ("intent_in_use", first.result.key))
        self.assertEqual(second.server.seen, [])

    def test_retry_after_is_not_cut_short(self):
        slept = []
        run = Run({"status": 503, "headers": {"Retry-After": "7"}}, LAST, sleep=slept.append)
        self.assertEqual((run.result.status, slept), (201, [7]))
        run = Run({"status": 503, "headers": {"Retry-After": "7"}}, LAST, budget=5)
        self.assertEqual((run.result.reason, run.result.doubt, run.result.attempts), ("budget", False, 1))

    def test_informational_answers_are_passed_over(self):
        script_bytes = Script.bytes_of
        early = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
        Script.bytes_of = staticmethod(lambda step: early + script_bytes(step))
        try:
            run = Run(LAST)
        finally:
            Script.bytes_of = staticmethod(script_bytes)
        self.assertEqual((run.result.status, len(run.events)), (201, 1))

    def test_a_large_answer(self):
        run = Run({"status": 200, "body": "x" * 200000}, keep_bytes=70000)
        self.assertEqual((run.result.status, len(run.result.body), run.result.truncated), (200, 70000, True))


class Keys(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "keys"
        self.storage = FileStorage(self.folder)

    def call(self, url, **options):
        client = Client(storage=self.storage, sleep=lambda s: None, **options)
        return client.request("POST", url, intent="one", json={"n": 1})

    def test_a_restart_goes_on(self):
        """The key is on the disk before the first byte, and goes with the definite answer."""
        server = Script(LOST, LAST)
        self.addCleanup(server.close)
        with self.assertRaises(HapaxError) as caught:
            self.call(server.url, budget=0.1, backoff_base=9, random=lambda: 1)
        [waiting] = Client(storage=self.storage).pending()
        self.assertEqual((waiting.intent, waiting.key, waiting.doubt), ("one", caught.exception.key, True))
        self.assertEqual(oct(self.folder.stat().st_mode & 0o777), "0o700")
        self.assertEqual(self.call(server.url).status, 201)
        self.assertEqual(len({re.search(r'Key: "(.*)"', head)[1] for head, _ in server.seen}), 1)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_too_old_a_key(self):
        """In doubt, a key that the server may have forgotten is not sent again."""
        server = Script(LOST, LAST)
        self.addCleanup(server.close)
        with self.assertRaises(HapaxError):
            self.call(server.url, budget=0.1, backoff_base=9, random=lambda: 1)
        for later in (90000, -90000):
            with self.assertRaises(HapaxError) as caught:
                self.call(server.url, now=lambda shift=later: time.time() + shift)
            self.assertEqual((caught.exception.reason, caught.exception.doubt), ("expired", True))
        self.assertEqual(len(server.seen), 1)

    def test_what_cannot_be_kept_is_not_sent(self):
        server = Script(LAST)
        self.addCleanup(server.close)
        self.folder.write_text("a file")
        with self.assertRaises(HapaxError) as caught:
            self.call(server.url)
        self.assertEqual((caught.exception.code, server.seen), ("storage_unavailable", []))

    def test_damage_is_not_taken_for_none(self):
        server = Script(LOST, LAST)
        self.addCleanup(server.close)
        with self.assertRaises(HapaxError):
            self.call(server.url, budget=0.1, backoff_base=9, random=lambda: 1)
        [file] = self.folder.iterdir()
        file.write_text("{")
        with self.assertRaises(HapaxError) as caught:
            self.call(server.url)
        self.assertEqual(caught.exception.code, "storage_unavailable")
        Client(storage=self.storage).forget("one")
        self.assertEqual(self.call(server.url).status, 201)

    def test_threads_share_one_call(self):
        server = Script(HOLD, LAST)
        self.addCleanup(server.close)
        client, answers = Client(storage=self.storage), []
        threads = [threading.Thread(target=lambda: answers.append(
            client.request("POST", server.url, intent="one", json=1).status)) for _ in range(4)]
        for thread in threads:
            thread.start()
        while not server.seen:
            time.sleep(0.01)
        with self.assertRaises(HapaxError) as caught:
            client.request("POST", server.url, intent="one", json=2)
        self.assertEqual(caught.exception.code, "intent_in_use")
        server.ended.set()  # the held one is closed without an answer, and the retry gets its own
        for thread in threads:
            thread.join(30)
        self.assertEqual((answers, len(server.seen)), ([201] * 4, 2))

    def test_refusals(self):
        client = Client(storage=self.storage)
        for method, url, how in [
                ("GET", "http://h/", {}), ("POST", "ftp://h/", {}), ("POST", "http://u:p@h/", {}),
                ("POST", "http://h:port/", {}), ("PO ST", "http://h/", {}), ("POST", "http://h/a b", {}),
                ("POST", "http://h/", {"headers": {"Idempotency-Key": "k"}}),
                ("POST", "http://h/", {"headers": {"X": "a\r\nY: b"}}),
                ("POST", "http://h/", {"body": b"", "json": 1}), ("POST", "http://h/", {"body": iter([b""])}),
                ("POST", "http://h/", {"intent": ""})]:
            with self.assertRaises(HapaxError) as caught:
                client.request(method, url, **{"intent": "one", **how})
            self.assertEqual(caught.exception.code, "request_refused", (method, url, how))
        self.assertFalse(self.folder.exists(), "nothing was written")

    def test_retry_after(self):
        now = 784111777 - 90  # Sun, 06 Nov 1994 08:49:37 GMT
        for text, want in [("0", 0), ("7", 7), ("9" * 40, 31536000), ("-1", None), ("7.5", None), ("soon", None), ("", None),
                           ("Sun, 06 Nov 1994 08:49:37 GMT", 90), ("Sunday, 06-Nov-94 08:49:37 GMT", 90),
                           ("Sun Nov  6 08:49:37 1994", 90), ("Sun, 06 Nov 1984 08:49:37 GMT", 0),
                           ("Sun, 99 Nov 1994 08:49:37 GMT", None)]:
            self.assertEqual(retry_after_seconds(text, now), want, text)


if __name__ == "__main__":
    unittest.main()
