"""HOME/audit.log: who did what, when, with which result; a line of tabs for each act.

audit.note("operator", "127.0.0.1", "start", "wiki", "wiki starts")
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from larmspider.formatting import printable, utc

FILE = "audit.log"
COLUMNS = ("time", "who", "address", "act", "what", "result")
MAX_BYTES = 20_000_000
"""A log of this size becomes audit.log.1 and replaces the previous one."""
_MAX_TEXT = 2_000
_turning = threading.Lock()
"""A log that two threads turn at once would take the place of the full one."""


class Audit:
    def __init__(self, home: Path, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = home / FILE, clock

    def note(self, who: str, address: str, act: str, what: str, result: str) -> None:
        """Raises OSError: an act that cannot be noted is not done."""
        with _turning, suppress(FileNotFoundError):
            if self._path.stat().st_size > MAX_BYTES:
                self._path.replace(self._path.with_suffix(".log.1"))
        fields = (utc(self._clock()), who, address, act, what, result)
        line = "\t".join(printable(text[:_MAX_TEXT]) for text in fields) + "\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        file = os.open(self._path, flags, 0o600)
        try:
            os.write(file, line.encode("utf-8", "replace"))
        finally:
            os.close(file)

    def last(self, number: int) -> list[list[str]]:
        """The last acts, the newest first."""
        with suppress(OSError):
            with self._path.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - number * 1_000))
                lines = log.read().decode("utf-8", "replace").splitlines()
            split = [line.split("\t") for line in lines]
            return [row for row in reversed(split) if len(row) == len(COLUMNS)][:number]
        return []
