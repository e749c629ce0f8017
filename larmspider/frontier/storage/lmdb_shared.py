"""One LMDB environment a process and directory, as LMDB wants it, for all who read there.

    files = borrow(Path("crawl/frontier"))      # the crawl's own where this process runs it
    ...
    give_back(files)

A crawl lends its environment to the pages that it serves; ``scrapy serve`` has one for all threads.
"""

from __future__ import annotations

import threading
from pathlib import Path

from larmspider.frontier.storage.lmdb_env import LmdbFiles

_LOCK = threading.Lock()
_OWNED: dict[Path, LmdbFiles] = {}
_READ: dict[Path, list[LmdbFiles]] = {}
"""One entry for each who has borrowed it; the last one closes."""


def lend(files: LmdbFiles) -> None:
    """The environment of a crawl in this process: who reads there takes it from now on."""
    with _LOCK:
        _OWNED[files.path.resolve()] = files


def withdraw(files: LmdbFiles) -> None:
    """It is about to be closed. May be called twice."""
    with _LOCK:
        if _OWNED.get(files.path.resolve()) is files:
            del _OWNED[files.path.resolve()]


def borrow(path: Path) -> LmdbFiles:
    """For reading, until give_back(). Raises as LmdbFiles does."""
    where = path.resolve()
    with _LOCK:
        if where in _OWNED:
            return _OWNED[where]
        borrowed = _READ.setdefault(where, [])
        try:
            borrowed.append(borrowed[0] if borrowed else LmdbFiles(path, readonly=True))
            return borrowed[-1]
        finally:
            if not borrowed:
                del _READ[where]


def give_back(files: LmdbFiles) -> None:
    """What borrow() gave, once."""
    where = files.path.resolve()
    with _LOCK:
        borrowed = _READ.get(where, [])
        if borrowed and borrowed[0] is files:
            borrowed.pop()
            if not borrowed:
                del _READ[where]
                files.close()
