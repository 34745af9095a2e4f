"""A request that must happen once: the caller names it (the intent), this keeps the key
for it until a definite answer is there, across restarts. The request and the key never
change on the way."""
from __future__ import annotations

import json as json_module
import random
import ssl
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional

from .answer import judge
from .attempt import Answer, Request, attempt, read_request
from .errors import HapaxError, refused
from .journal import Entry, Journal, MemoryStorage, Pending, Storage

SENTENCE = {
    "budget": "no definite answer came within the time given",
    "stopped": "the answer is not definite, and asking again at once is no help",
    "expired": "the key may be so old that the server has forgotten it: sending it again could repeat the effect",
}
# A wall clock is corrected by less. One that was set back tells no age.
CORRECTION_S = 300
SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")


@dataclass(frozen=True)
class AttemptEvent:
    """What happened in one attempt. Holds a key: do not send it to a public log."""
    intent: str
    key: str
    attempt: int  # 1, 2, 3... within this call
    status: Optional[int]  # None where no whole answer came
    error: Optional[Exception]
    then: str  # done, again, stop
    doubt: bool
    wait_s: float  # until the next attempt, if there is one
    storage_error: Optional[HapaxError] = None  # the entry could not be dropped


class _Call:
    """A call that is under way in this process; others with its intent wait for it."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.done = threading.Event()
        self.answer: Optional[Answer] = None
        self.error: Optional[BaseException] = None


@dataclass
class _Way:
    key: str
    doubt: bool
    end: float
    attempts: int = 0
    last: Optional[Answer] = None
    cause: Optional[Exception] = None


class Client:
    """Any number of threads may use one. Times are in seconds.

    storage          where keys are kept: FileStorage(folder); by default only in memory
    key_header       "Idempotency-Key"
    bare_key         sends the key without quotes, for an API that wants it so
    budget           how long one call may take in all
    attempt_timeout  how long one attempt may take
    retention        how long the server remembers a key; in doubt, an older one is never
                     sent again
    backoff_base, backoff_cap  exponential, with full jitter
    keep_bytes       the most that is kept of an answer's body
    on_attempt       is told of every attempt
    ssl_context      for https; by default the system's certificates are trusted
    now, sleep, random  for tests
    """

    def __init__(self, *, storage: Optional[Storage] = None, key_header: str = "Idempotency-Key",
                 bare_key: bool = False, budget: float = 60.0, attempt_timeout: float = 30.0,
                 retention: float = 86400.0, backoff_base: float = 0.3, backoff_cap: float = 10.0,
                 keep_bytes: int = 16 << 20, on_attempt: Optional[Callable[[AttemptEvent], None]] = None,
                 ssl_context: Optional[ssl.SSLContext] = None, now: Callable[[], float] = time.time,
                 sleep: Callable[[float], None] = time.sleep, random: Callable[[], float] = random.random) -> None:
        for name, value in (("budget", budget), ("attempt_timeout", attempt_timeout), ("retention", retention)):
            if not value > 0:
                raise refused(f"{name} is a number of seconds above 0")
        if not (backoff_base >= 0 and backoff_cap >= 0 and keep_bytes >= 0):
            raise refused("backoff_base, backoff_cap and keep_bytes are not below 0")
        if budget >= retention:
            raise refused("budget must be below retention")
        self._journal = Journal(storage if storage is not None else MemoryStorage(), now)
        self._key_header, self._bare_key = key_header, bare_key
        self._budget, self._attempt_timeout, self._retention = budget, attempt_timeout, retention
        self._backoff = (backoff_base, backoff_cap)
        self._keep_bytes, self._on_attempt, self._ssl_context = keep_bytes, on_attempt, ssl_context
        self._now, self._sleep, self._random = now, sleep, random
        self._lock = threading.Lock()
        self._under_way: Dict[str, _Call] = {}

    def request(self, method: str, url: str, *, intent: str, headers: Optional[Mapping[str, str]] = None,
                body: "bytes | str | None" = None, json: Any = None) -> Answer:
        """The definite answer, whatever its status; otherwise a HapaxError. `json` is sent as
        JSON; a body that is a str is sent as UTF-8."""
        if not isinstance(intent, str) or not intent:
            raise refused("a request that changes something needs an intent: your own name of what is to happen once")
        if method.upper() in SAFE:
            raise refused(f"{method} changes nothing, and needs no key: send it without this client")
        if json is not None and body is not None:
            raise refused("give json or body, not both")
        fields = dict(headers or {})
        if json is not None:
            body = json_module.dumps(json)
            if not any(name.lower() == "content-type" for name in fields):
                fields["Content-Type"] = "application/json"
        if body is not None and not isinstance(body, (str, bytes)):
            raise refused("a body is bytes or a str: it is sent as often as needed, so a stream cannot be taken")
        request = read_request(method.upper(), url, fields, body.encode() if isinstance(body, str) else body,
                               self._key_header)
        return self._share(intent, request)

    def pending(self) -> List[Pending]:
        """What has no definite answer yet, oldest first."""
        return self._journal.list()

    def forget(self, intent: str) -> None:
        """Drops a key. The next call with this intent makes a new one: a new effect."""
        with self._lock:
            if intent in self._under_way:
                raise HapaxError("intent_in_use", f'the intent "{intent}" is under way', intent=intent)
            self._journal.forget(intent)

    def _share(self, intent: str, request: Request) -> Answer:
        """Of several threads with one intent, one sends and all get its answer."""
        with self._lock:
            call = self._under_way.get(intent)
            is_mine = call is None
            if call is None:
                call = self._under_way[intent] = _Call(request.digest)
        if is_mine:
            return self._lead(intent, request, call)
        if call.digest != request.digest:
            raise HapaxError("intent_in_use", f'the intent "{intent}" is under way with another request', intent=intent)
        call.done.wait()
        if call.answer is None:
            raise HapaxError("unsettled", "the call that this one waited for has no definite answer", intent=intent,
                             doubt=getattr(call.error, "doubt", None) is not False,
                             reason=getattr(call.error, "reason", None) or "stopped") from call.error
        return call.answer

    def _lead(self, intent: str, request: Request, call: _Call) -> Answer:
        try:
            call.answer = self._settle(intent, request)
            return call.answer
        except BaseException as error:
            call.error = error
            raise
        finally:
            with self._lock:
                del self._under_way[intent]
            call.done.set()

    def _settle(self, intent: str, request: Request) -> Answer:
        entry = self._journal.begin(intent, request.digest)
        way = _Way(entry.key, entry.doubt, time.monotonic() + self._budget)
        while True:
            reason = self._obstacle(entry, way)
            if reason is None:
                answer, reason = self._step(intent, request, way)
                if answer is not None:
                    return answer
            if reason is not None:
                raise self._unsettled(intent, entry, way, reason) from way.cause

    def _obstacle(self, entry: Entry, way: _Way) -> Optional[str]:
        """Looked at before each attempt: a computer that slept wakes up hours later in the
        middle of a wait."""
        left, age = way.end - time.monotonic(), self._now() - entry.created / 1000
        if way.doubt and (age < -CORRECTION_S or age + max(left, 0) > self._retention):
            return "expired"
        return None if left > 0 else "budget"

    def _step(self, intent: str, request: Request, way: _Way) -> "tuple[Optional[Answer], Optional[str]]":
        timeout = max(min(self._attempt_timeout, way.end - time.monotonic()), 0.001)
        key = way.key if self._bare_key else f'"{way.key}"'
        answer, error, facts = attempt(request, (self._key_header, key), timeout, self._ssl_context,
                                       self._keep_bytes, self._now())
        verdict = judge(facts, way.doubt)
        way.attempts, way.doubt, way.cause = way.attempts + 1, verdict.doubt, error
        way.last = answer or way.last
        wait = self._delay(way.attempts, facts.retry_after_s) if verdict.then == "again" else 0.0
        storage_error = self._drop(intent, way.key) if verdict.then == "done" else None
        if self._on_attempt is not None:
            self._on_attempt(AttemptEvent(intent, way.key, way.attempts, answer.status if answer else None, error,
                                          verdict.then, way.doubt, wait, storage_error))
        if verdict.then == "done":
            return answer, None
        if verdict.then == "stop":
            return None, "stopped"
        if time.monotonic() + wait >= way.end:
            return None, "budget"
        self._sleep(wait)
        return None, None

    def _delay(self, attempts: int, retry_after_s: Optional[int]) -> float:
        """Full jitter; the later of that and what the server asked for."""
        base, cap = self._backoff
        jitter = self._random() * min(cap, base * float(1 << min(attempts - 1, 50)))
        return max(jitter, float(retry_after_s or 0))

    def _drop(self, intent: str, key: str) -> Optional[HapaxError]:
        """The answer is definite whether or not the entry goes: one that stays makes the next
        call with this intent get the same answer again. So the caller is told, not stopped."""
        try:
            self._journal.end(intent, key)
        except HapaxError as error:
            return error
        return None

    def _unsettled(self, intent: str, entry: Entry, way: _Way, reason: str) -> HapaxError:
        try:
            self._journal.leave(intent, entry, way.doubt)
        except HapaxError:
            pass  # the entry goes on saying doubt, which is never wrong
        return HapaxError("unsettled", SENTENCE[reason], intent=intent, key=way.key, doubt=way.doubt, reason=reason,
                          attempts=way.attempts, last_answer=way.last)
