"""One attempt: the request goes out once, on a connection of its own, and the facts come
back. An answer counts only when its body is whole; what was cut off is as good as lost.
Nothing here sends a request a second time, follows a redirect or asks a proxy."""
from __future__ import annotations

import hashlib
import http.client
import io
import json
import re
import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .answer import Facts, read_document, retry_after_seconds
from .errors import refused

DOCUMENT_BYTES_MAX = 1 << 20
PIECE = 1 << 16


@dataclass(frozen=True)
class Answer:
    """A whole answer. `truncated`: its body is longer than the client keeps."""
    status: int
    headers: http.client.HTTPMessage
    body: bytes = b""
    truncated: bool = False

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def replayed(self) -> bool:
        """It is the stored answer of an earlier attempt."""
        return bool(self.headers.get("Idempotent-Replayed") == "true")


@dataclass(frozen=True)
class Request:
    """The same method, address, headers and bytes, each time."""
    method: str
    secure: bool
    host: str
    port: int
    target: str
    headers: List[Tuple[str, str]] = field(repr=False)
    body: bytes = field(repr=False)
    digest: str = ""

    def put_head(self, connection: http.client.HTTPConnection, key: Tuple[str, str]) -> None:
        connection.putrequest(self.method, self.target, skip_accept_encoding=True)
        for name, value in [*self.headers, ("Accept-Encoding", "identity"),
                            ("Content-Length", str(len(self.body))), ("Connection", "close"), key]:
            connection.putheader(name, value)


def read_request(method: str, url: str, headers: Mapping[str, str], body: Optional[bytes], key_header: str) -> Request:
    """What is wrong with a request is found here, before a key is made."""
    own = {"content-length", "connection", "transfer-encoding", "host", "accept-encoding", key_header.lower()}
    given: Dict[str, str] = {}
    if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", method):
        raise refused(f"{method!r} is no method")
    for name, value in headers.items():
        if name.lower() in own:
            raise refused(f"{name} is this client's own header")
        if name.lower() in (one.lower() for one in given):
            raise refused(f"{name} is given twice")
        given[name] = value
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise refused(f"the URL cannot be read: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise refused("the URL begins with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise refused("a credential stands in a header (Authorization), not in the URL")
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    usual = port == (443 if parts.scheme == "https" else 80)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    address = f"{parts.scheme}://{host}{'' if usual else f':{port}'}{target}"
    kind = next((value for name, value in given.items() if name.lower() == "content-type"), "")
    head = json.dumps([method, address, kind], separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(head.encode() + b"\n" + (body or b"")).hexdigest()
    request = Request(method, parts.scheme == "https", parts.hostname, port, target, list(given.items()),
                      body or b"", digest)
    try:
        request.put_head(http.client.HTTPConnection(parts.hostname, port), (key_header, "k"))
    except (ValueError, UnicodeError, http.client.HTTPException, TypeError) as error:
        raise refused(f"the request cannot be sent: {error}") from None
    return request


class _TimedReader(io.RawIOBase):
    """Reads until a moment, however slowly the bytes come."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        super().__init__()
        self._sock, self._end = sock, end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(_left(self._end))
        return self._sock.recv_into(buffer)


class _WholeLines(io.BufferedReader):
    """http.client takes the end of a connection for the end of a head: an answer that was
    cut off there would count as one with fewer headers and no body."""

    def readline(self, size: Optional[int] = -1) -> bytes:
        line = super().readline(size)
        if not line.endswith(b"\n") and (size is None or size < 0 or len(line) < size):
            raise ConnectionError("the connection ended in the middle of an answer")
        return line


class _Reading:
    """What http.client takes for a socket."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self.file = _WholeLines(_TimedReader(sock, end))

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        return self.file


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("no answer in time")
    return left


def attempt(request: Request, key: Tuple[str, str], timeout_s: float, context: Optional[ssl.SSLContext],
            keep_bytes: int, now_s: float) -> "tuple[Optional[Answer], Optional[Exception], Facts]":
    end = time.monotonic() + timeout_s
    connection = (http.client.HTTPSConnection(request.host, request.port, timeout=timeout_s, context=context)
                  if request.secure else http.client.HTTPConnection(request.host, request.port, timeout=timeout_s))
    try:
        try:
            connection.connect()
        except (OSError, UnicodeError) as error:
            return None, error, Facts(lost="unsent")
        try:
            answer = _exchange(connection, request, key, end, keep_bytes)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return None, error, Facts(lost="sent")
    finally:
        connection.close()
    return answer, None, _facts(answer, now_s)


def _exchange(connection: http.client.HTTPConnection, request: Request, key: Tuple[str, str], end: float,
              keep_bytes: int) -> Answer:
    sock = connection.sock
    sock.settimeout(_left(end))
    request.put_head(connection, key)
    connection.endheaders(request.body)
    reading = _Reading(sock, end)
    while True:
        response = http.client.HTTPResponse(reading, method=request.method)  # type: ignore[arg-type]
        response.begin()
        if response.status >= 200:
            return _whole(response, keep_bytes)
        response.fp = None  # type: ignore[assignment]  # it would close what is read next


def _whole(response: http.client.HTTPResponse, keep_bytes: int) -> Answer:
    body = bytearray()
    while piece := response.read(min(PIECE, keep_bytes + 1 - len(body))):
        body += piece
        if len(body) > keep_bytes:
            return Answer(response.status, response.headers, bytes(body[:keep_bytes]), truncated=True)
    if response.length:
        raise http.client.IncompleteRead(bytes(body), response.length)
    return Answer(response.status, response.headers, bytes(body))


def _facts(answer: Answer, now_s: float) -> Facts:
    is_small = len(answer.body) <= DOCUMENT_BYTES_MAX and not answer.truncated
    return Facts(status=answer.status, replayed=answer.replayed, operation="Hapax-Operation" in answer.headers,
                 retry_after_s=retry_after_seconds(answer.headers.get("Retry-After"), now_s),
                 document=read_document(answer.headers.get("Content-Type"), answer.body if is_small else b""))
