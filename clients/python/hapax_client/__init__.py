"""Requests that must happen once: one key per intended effect, kept until the answer is
definite. See README.md."""
from .attempt import Answer
from .client import AttemptEvent, Client
from .errors import HapaxError
from .journal import FileStorage, MemoryStorage, Pending, Storage

__all__ = ["Answer", "AttemptEvent", "Client", "FileStorage", "HapaxError", "MemoryStorage", "Pending", "Storage"]
__version__ = "0.2.0"
