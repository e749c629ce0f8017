"""One open handle a path in a process, however many threads want it: LMDB's rule for environments.

_readers = SharedHandles(FrontierReader)
with _readers.of(path) as reader:      # opened by the first, closed by the last
    ...
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, Protocol, TypeVar


class Closes(Protocol):
    def close(self) -> object: ...


T = TypeVar("T", bound=Closes)


class SharedHandles(Generic[T]):
    """``make`` opens a handle for a path; what it raises, `of` raises."""

    def __init__(self, make: Callable[[Path], T]) -> None:
        self._make = make
        self._open: dict[Path, tuple[T, int]] = {}
        self._lock = threading.Lock()

    @contextmanager
    def of(self, path: Path) -> Iterator[T]:
        """The handle for ``path``, for as long as the block runs."""
        path = path.absolute()
        with self._lock:
            handle, users = self._open.get(path) or (self._make(path), 0)
            self._open[path] = handle, users + 1
        try:
            yield handle
        finally:
            with self._lock:
                handle, users = self._open[path]
                if users > 1:
                    self._open[path] = handle, users - 1
                else:
                    del self._open[path]
                    handle.close()
