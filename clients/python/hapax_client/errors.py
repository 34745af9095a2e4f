"""The one kind of error that this client makes."""
from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from .attempt import Answer


class HapaxError(Exception):
    """`code` tells which:

    request_refused      the call makes no sense as it is; nothing was sent or written
    intent_in_use        the intent stands for another request; nothing was sent
    storage_unavailable  the key cannot be written down; nothing was sent by this call
    unsettled            no definite answer. `reason` says why: "budget", "stopped" or
                         "expired". The key is kept; `doubt` says whether it may have
                         happened.
    """

    def __init__(self, code: str, message: str, *, intent: Optional[str] = None, key: Optional[str] = None,
                 doubt: Optional[bool] = None, reason: Optional[str] = None, attempts: int = 0,
                 last_answer: Optional[Answer] = None) -> None:
        super().__init__(message)
        self.code = code
        self.intent = intent
        self.key = key
        self.doubt = doubt
        self.reason = reason
        self.attempts = attempts
        self.last_answer = last_answer


def refused(message: str) -> HapaxError:
    return HapaxError("request_refused", message)
