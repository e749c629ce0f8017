"""Keeps one gap at a host together with other crawls of this machine (LARM_SHARED_GAPS).

    gaps = SharedGaps(Path("home/gaps/wiki"))        # lists the hosts that other crawls share
    at = gaps.take("wiki.example:80", now, 0.5)      # 0.0: go; else the time to try again
    gaps.give_back()                                 # nothing was requested after all

A server (server/runs/gaps.py) writes the list, and again when crawls come and go. Each host has a
file in the folder ``hosts`` beside the list, with the time of the last request and its gap. A crawl
locks the file for some 20 us a request. The larger gap of two crawls counts for both.
"""

from __future__ import annotations

import fcntl
import logging
import os
import struct
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from urllib.parse import quote

logger = logging.getLogger(__name__)

HOSTS = "hosts"
"""The folder of the files of hosts."""
EVERY_HOST = "*"
"""A line of the list: any host may be shared."""
MAX_GAP = 3_600.0
"""Seconds; a longer gap of another crawl is cut to it."""
READ_SECS = 5.0
"""Seconds between two readings of the list."""
_LONGEST_NAME = 100
_RECORD = struct.Struct("<dd")


class SharedGaps:
    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock = path, clock
        self._folder = path.parent / HOSTS
        self._shared: frozenset[str] = frozenset()
        self._seen: tuple[int, int] | None = None
        self._looked = float("-inf")
        self._before: tuple[Path, float, bytes] | None = None
        self._failed = False

    def take(self, host: str, now: float, gap: float) -> float:
        """0.0 if a request to the host may begin ``now``, which is noted; else the time when to try
        again. The crawl's own ``gap`` is in seconds."""
        self._before = None
        if not self._is_shared(host):
            return 0.0
        try:
            return self._take(self._folder / file_name(host), now, gap)
        except OSError as error:
            if not self._failed:
                logger.error("%s: gaps are no longer shared: %s", self._folder, error.strerror)
            self._failed = True  # this crawl's own gap holds
            return 0.0

    def give_back(self) -> None:
        """Undo the last take(), unless another crawl has come in between."""
        if self._before is None:
            return
        path, at, before = self._before
        self._before = None
        try:
            with path.open("r+b", buffering=0) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                if _unpacked(file.read(_RECORD.size))[0] == at:
                    file.seek(0)
                    file.write(before)
        except OSError:
            pass  # one gap is waited for nothing

    def _take(self, path: Path, now: float, gap: float) -> float:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = os.pread(file, _RECORD.size, 0)
            last, kept = _unpacked(before)
            free = min(last, now) + max(gap, min(kept, MAX_GAP))
            if last and free > now:
                return free
            os.pwrite(file, _RECORD.pack(now, gap), 0)
            self._before = path, now, before or _RECORD.pack(0.0, 0.0)
            return 0.0
        finally:
            os.close(file)

    def _is_shared(self, host: str) -> bool:
        if (now := self._clock()) - self._looked >= READ_SECS:
            self._looked = now
            self._look()
        return host in self._shared or EVERY_HOST in self._shared

    def _look(self) -> None:
        try:
            found = self._path.stat()
            if (seen := (found.st_mtime_ns, found.st_ino)) != self._seen:
                self._shared = frozenset(self._path.read_text("utf-8").split())
                self._seen = seen
        except (OSError, ValueError):
            self._shared, self._seen = frozenset(), None


def file_name(host: str) -> str:
    """The name of a host's file."""
    name = quote(host, safe=":")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}-{blake2b(host.encode(), digest_size=8).hexdigest()}"


def _unpacked(record: bytes) -> tuple[float, float]:
    return _RECORD.unpack(record) if len(record) == _RECORD.size else (0.0, 0.0)
