"""A small list of records in one JSON file, which other processes may change: users, tokens.

users = KeptList(home / "users.json", User)
users.all()
with users.changing() as records:          # ConfigError while another process changes it
    records.append(User("anna", "reader"))
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from larmspider.errors import ConfigError
from larmspider.files import lock, replace_file

T = TypeVar("T", bound=Struct)
_WAIT_SECS = 5.0


class KeptList(Generic[T]):
    def __init__(self, path: Path, kind: type[T]) -> None:
        self._path, self._kind = path, kind
        self._seen: object = None
        self._records: list[T] = []
        self._lock = threading.Lock()

    def all(self) -> list[T]:
        """Read again if the file was changed. Raises ConfigError for a file that is damaged."""
        with self._lock:
            try:
                status = self._path.stat()
                seen = (status.st_mtime_ns, status.st_size, status.st_ino)
                if seen != self._seen:
                    content = self._path.read_bytes()
                    self._records = msgspec.json.decode(content, type=list[self._kind])  # type: ignore[name-defined]
                    self._seen = seen
            except FileNotFoundError:
                self._records, self._seen = [], None
            except (OSError, msgspec.DecodeError) as error:
                raise ConfigError(f"{self._path} cannot be read: {error}") from None
            return self._records

    @contextmanager
    def changing(self) -> Iterator[list[T]]:
        """A copy of the records, kept at the end of the block. Raises ConfigError."""
        try:
            with self._claimed():
                records = list(self.all())
                yield records
                replace_file(self._path, msgspec.json.encode(records), private=True)
        except OSError as error:
            raise ConfigError(f"{self._path}: {error.strerror or error}") from None

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        path, last = self._path.with_suffix(".lock"), time.monotonic() + _WAIT_SECS
        while True:
            try:
                file = lock(path)
            except BlockingIOError:
                if time.monotonic() > last:
                    raise ConfigError(f"{self._path}: another process changes it") from None
            else:
                break
        with file:
            yield
