"""What a client makes of an answer: pure, over the few facts that matter. The cases
stand in tests/client/answers.json of hapax, which the clients in C and JavaScript obey
as well.

    done   definite: the key may be dropped
    again  the same request with the same key
    stop   not definite, and sending it again at once is no help: the key is kept

Doubt: this attempt or an earlier one may have happened, and its answer is not known. It
stays until a definite answer comes. That is why 401 and its like, which say nothing about
what was lost before them, are definite only without doubt.
"""
from __future__ import annotations

import datetime
import email.utils
import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Optional

TURNED_AWAY = (408, 425, 429)
LOST_FURTHER_ON = (502, 503, 504)
NOT_LET_IN = (401, 403, 407, 421)
EXECUTED = ("no", "yes", "unknown")
YEAR_S = 31536000  # whatever is longer counts as this long


@dataclass(frozen=True)
class Document:
    """The members of a body that say what to do."""
    retry: Optional[str] = None
    executed: Optional[str] = None
    state: Optional[str] = None
    in_progress: bool = False


@dataclass(frozen=True)
class Facts:
    """Of one attempt. `lost` is "unsent" or "sent" where no whole answer came."""
    lost: Optional[str] = None
    status: int = 0
    replayed: bool = False
    operation: bool = False  # it came through a gateway
    retry_after_s: Optional[int] = None
    document: Document = field(default_factory=Document)


@dataclass(frozen=True)
class Verdict:
    then: str
    doubt: bool


def judge(facts: Facts, doubt: bool) -> Verdict:
    then = "again" if facts.lost else _then(facts, doubt)
    return Verdict(then, then != "done" and (doubt or _may_have_happened(facts)))


def _then(facts: Facts, doubt: bool) -> str:
    if _is_under_way(facts):
        return "again"
    if facts.status < 400 or facts.replayed:
        return "done"
    if facts.document.retry == "same_key":
        return "again"
    if facts.document.retry == "never":
        return "done"
    if facts.document.retry == "after_fix":
        return "stop" if doubt or not _was_refused(facts) else "done"
    return _by_status(facts, doubt)


def _by_status(facts: Facts, doubt: bool) -> str:
    if facts.status in TURNED_AWAY or facts.status in LOST_FURTHER_ON or _is_in_progress(facts, doubt):
        return "again"
    if facts.status in NOT_LET_IN:
        return "stop" if doubt else "done"
    return "done" if facts.status < 500 else "stop"


def _is_under_way(facts: Facts) -> bool:
    """The first attempt runs on, and nobody knows yet how it ends (`concurrent: accepted`).
    What is delivered later is pending instead, and sure to be tried."""
    return facts.status == 202 and facts.operation and facts.document.state == "in_progress"


def _is_in_progress(facts: Facts, doubt: bool) -> bool:
    """In doubt, a 409 that says no more may be about the attempt that was lost."""
    return facts.status == 409 and (doubt or facts.retry_after_s is not None or facts.document.in_progress)


def _was_refused(facts: Facts) -> bool:
    """What is to be mended was not executed, unless the answer says so, or is a failure."""
    executed = facts.document.executed
    return executed == "no" if executed in EXECUTED else facts.status < 500


def _may_have_happened(facts: Facts) -> bool:
    """A 503 that names a time is somebody who refused; without one, it may be anybody."""
    if facts.lost:
        return facts.lost == "sent"
    if facts.document.executed in EXECUTED:
        return facts.document.executed != "no"
    refused = facts.status in TURNED_AWAY or facts.status in NOT_LET_IN
    return not refused and not (facts.status == 503 and facts.retry_after_s is not None)


def read_document(content_type: Optional[str], body: bytes) -> Document:
    """Of a problem document, or of Stripe's shape."""
    kind = (content_type or "").split(";")[0].strip().lower()
    if kind not in ("application/problem+json", "application/json"):
        return Document()
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return Document()  # then it counts by its status
    if kind == "application/problem+json":
        return Document(_word(found, "retry"), _word(found, "executed"))
    error = found.get("error") if isinstance(found, dict) else None
    return Document(_word(error, "retry"), _word(error, "executed"), _word(found, "state"),
                    _word(error, "type") == "idempotency_error")


def _word(found: Any, name: str) -> Optional[str]:
    value = found.get(name) if isinstance(found, dict) else None
    return value if isinstance(value, str) else None


def retry_after_seconds(value: Optional[str], now_s: float) -> Optional[int]:
    """RFC 9110 section 10.2.3: whole seconds from now, or None where the value is none."""
    text = (value or "").strip(" \t")
    if re.fullmatch(r"[0-9]+", text):
        return min(int(text[:12]), YEAR_S) if len(text) <= 12 else YEAR_S
    if not re.fullmatch(r"[A-Z][a-z]{2,8},? [0-9A-Za-z :-]{17,24}", text):
        return None
    parsed = email.utils.parsedate_tz(text)
    if parsed is None:
        return None
    try:
        date = datetime.datetime(*parsed[:6], tzinfo=datetime.timezone.utc)
    except ValueError:
        return None
    return min(max(math.ceil(date.timestamp() - now_s), 0), YEAR_S)
