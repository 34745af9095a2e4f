"""What is written down before the first byte leaves: one entry for each intent that has
no definite answer yet. It holds the key, a digest of the request, the time and the doubt;
never a body, an address or a credential.

While a call is under way its entry says doubt: if the process ends now, the request may
have happened. Whoever finds it saying so joins somebody who may be under way still: from
then on only a definite answer ends the doubt. What is stored and cannot be read is never
taken for "none". Files and entries are those of the JavaScript client.
"""
from __future__ import annotations

import hashlib
import json
import os
import threading
import uuid
from dataclasses import dataclass, replace
from typing import Callable, Dict, List, Optional, Protocol

from .errors import HapaxError

PREFIX = "hapax:"
VERSION = 1


class Storage(Protocol):
    """Where keys are kept. Errors are raised: a write that returns is durable."""

    def get(self, name: str) -> Optional[str]: ...

    def set(self, name: str, value: str) -> None: ...

    def add(self, name: str, value: str) -> None:
        """As set, but what is there already stays."""

    def remove(self, name: str) -> None: ...

    def names(self) -> List[str]: ...


class MemoryStorage:
    """For tests, and where nothing outlives the process anyway."""

    def __init__(self) -> None:
        self._items: Dict[str, str] = {}

    def get(self, name: str) -> Optional[str]:
        return self._items.get(name)

    def set(self, name: str, value: str) -> None:
        self._items[name] = value

    def add(self, name: str, value: str) -> None:
        self._items.setdefault(name, value)

    def remove(self, name: str) -> None:
        self._items.pop(name, None)

    def names(self) -> List[str]:
        return list(self._items)


class FileStorage:
    """A folder with one small file for each unsettled intent, for any number of threads and
    processes. A file is added whole or not at all (link), and replaced whole or not at all
    (rename). What is written is on the disk, file and folder, before anything is sent."""

    def __init__(self, folder: "str | os.PathLike[str]") -> None:
        self.folder = os.fspath(folder)
        if not self.folder:
            raise ValueError("FileStorage needs the name of a folder")

    def get(self, name: str) -> Optional[str]:
        text = self._read(self._path(name))
        if text is None:
            return None
        try:
            return str(json.loads(text)["value"])
        except (ValueError, TypeError, KeyError):
            return text  # damaged: the client says so, and takes it for no entry of its own

    def set(self, name: str, value: str) -> None:
        aside = self._write_aside(name, value)
        os.rename(aside, self._path(name))
        self._sync_folder()

    def add(self, name: str, value: str) -> None:
        aside = self._write_aside(name, value)
        try:
            os.link(aside, self._path(name))
        except FileExistsError:
            pass  # another process was faster: its value stays
        finally:
            os.unlink(aside)
        self._sync_folder()

    def remove(self, name: str) -> None:
        try:
            os.unlink(self._path(name))
        except FileNotFoundError:
            return
        self._sync_folder()

    def names(self) -> List[str]:
        try:
            files = sorted(os.listdir(self.folder))
        except FileNotFoundError:
            return []
        found = [self._name_in(os.path.join(self.folder, file)) for file in files
                 if file.endswith(".json") and not file.startswith(".")]
        return [name for name in found if name is not None]

    def _path(self, name: str) -> str:
        """Names may hold anything; files may not."""
        return os.path.join(self.folder, hashlib.sha256(name.encode()).hexdigest() + ".json")

    def _write_aside(self, name: str, value: str) -> str:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        aside = os.path.join(self.folder, f".{uuid.uuid4()}.tmp")
        handle = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps({"name": name, "value": value}).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            os.unlink(aside)
            raise
        return aside

    def _sync_folder(self) -> None:
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    @staticmethod
    def _read(path: str) -> Optional[str]:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _name_in(self, path: str) -> Optional[str]:
        text = self._read(path)
        try:
            return None if text is None else str(json.loads(text)["name"])
        except (ValueError, TypeError, KeyError):
            raise OSError(f"{path} is damaged: look at it, then remove it") from None


@dataclass(frozen=True)
class Entry:
    key: str
    hash: str
    created: int  # milliseconds
    doubt: bool
    joined: bool = False

    def text(self) -> str:
        return json.dumps({"v": VERSION, "key": self.key, "hash": self.hash, "created": self.created,
                           "doubt": self.doubt, **({"joined": True} if self.joined else {})})


@dataclass(frozen=True)
class Pending:
    """An intent without a definite answer. `key` is None where what is stored cannot be read."""
    intent: str
    key: Optional[str]
    created: Optional[int]
    doubt: bool


def new_key(now_ms: int) -> str:
    """A UUID of version 7 (RFC 9562): 48 bits of time and 74 of chance."""
    value = (now_ms & (1 << 48) - 1) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xf << 76) | 0x7 << 76
    return str(uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62))


class Journal:
    def __init__(self, storage: Storage, now: Callable[[], float]) -> None:
        self._storage = storage
        self._now = now
        self._lock = threading.Lock()

    def begin(self, intent: str, digest: str) -> Entry:
        """The entry to send with; its doubt is that of earlier attempts."""
        with self._lock, _Guard():
            entry = self._read(intent)
            is_new = entry is None
            if entry is None:
                entry, is_new = self._add(intent, digest)
            if entry.hash != _hash(entry.key, digest):
                raise HapaxError("intent_in_use", f'the intent "{intent}" stands for another request that is not '
                                 "settled", intent=intent, key=entry.key, doubt=entry.doubt)
            if is_new:
                return replace(entry, doubt=False)
            # Without doubt nothing has happened, so the key is as good as new.
            taken = replace(entry, joined=True) if entry.doubt else replace(entry, created=self._ms(), doubt=True)
            self._storage.set(PREFIX + intent, taken.text())
            return replace(taken, doubt=entry.doubt)

    def end(self, intent: str, key: str) -> None:
        """Somebody else may have ended it, and begun anew: that is not ours."""
        with self._lock, _Guard():
            standing = self._read(intent)
            if standing is not None and standing.key == key:
                self._storage.remove(PREFIX + intent)

    def leave(self, intent: str, entry: Entry, doubt: bool) -> None:
        """Gone meanwhile: another process has its answer, or the storage was cleared. What
        this call does not know it writes down again, or the next would be a second effect."""
        with self._lock, _Guard():
            standing = self._read(intent)
            if standing is None and doubt:
                self._storage.set(PREFIX + intent, replace(entry, doubt=True).text())
            elif standing is not None and standing.key == entry.key:
                self._storage.set(PREFIX + intent, replace(standing, doubt=doubt or standing.joined).text())

    def forget(self, intent: str) -> None:
        with self._lock, _Guard():
            self._storage.remove(PREFIX + intent)

    def list(self) -> List[Pending]:
        found = []
        with self._lock, _Guard():
            for name in self._storage.names():
                text = self._storage.get(name) if name.startswith(PREFIX) else None
                if text is not None:
                    found.append(_shown(name[len(PREFIX):], _parsed(text)))
        return sorted(found, key=lambda one: one.created or 0)

    def _add(self, intent: str, digest: str) -> "tuple[Entry, bool]":
        """The entry that stands in the end: this one, or that of somebody who was faster."""
        key = new_key(self._ms())
        self._storage.add(PREFIX + intent, Entry(key, _hash(key, digest), self._ms(), True).text())
        standing = self._read(intent)
        if standing is None:
            raise OSError("the storage does not keep what is written to it")
        return standing, standing.key == key

    def _read(self, intent: str) -> Optional[Entry]:
        text = self._storage.get(PREFIX + intent)
        if text is None:
            return None
        entry = _parsed(text)
        if entry is None:
            raise OSError(f'what is stored for "{intent}" cannot be read; forget() removes it')
        return entry

    def _ms(self) -> int:
        return int(self._now() * 1000)


class _Guard:
    """Whatever fails in a storage: nothing is sent without a key that is kept."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: Optional[BaseException], trace: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, HapaxError):
            raise HapaxError("storage_unavailable", f"the key cannot be kept: {error}") from error


def _hash(key: str, digest: str) -> str:
    """The key salts it: a stored digest tells nothing about any other one."""
    return hashlib.sha256(f"{key}\n{digest}".encode()).hexdigest()


def _parsed(text: str) -> Optional[Entry]:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or found.get("v") != VERSION:
        return None
    key, digest, created, doubt = (found.get(name) for name in ("key", "hash", "created", "doubt"))
    if not (isinstance(key, str) and isinstance(digest, str) and isinstance(doubt, bool)
            and isinstance(created, (int, float)) and not isinstance(created, bool)):
        return None
    return Entry(key, digest, int(created), doubt, found.get("joined") is True)


def _shown(intent: str, entry: Optional[Entry]) -> Pending:
    if entry is None:
        return Pending(intent, None, None, True)
    return Pending(intent, entry.key, entry.created, entry.doubt)
