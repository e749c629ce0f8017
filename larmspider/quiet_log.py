"""The log of ``larmspider crawl``: into a file, with warnings and a few lines of progress on the
screen.

    log = QuietLog(Path("crawl"), "INFO")
    log.install()     # crawl/crawl.log has the log; sys.stderr warnings, and the monitor's line

The screen shows at most MAX_WARNINGS warnings, then where the others are. On a terminal the
progress extension draws a line that lives; elsewhere the monitor's line comes after 10 s, 20 s,
40 s, ... and then every LONGEST_SECS. The file is at most KEPT + 1 times MAX_BYTES.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import TextIO

from larmspider.formatting import printable

LOG_NAME = "crawl.log"
MAX_BYTES, KEPT = 10_000_000, 3
MAX_HELD = 2_000
"""Records that are kept in memory until the directory is the crawl's."""
MAX_WARNINGS = 8
FIRST_SECS, LONGEST_SECS = 10.0, 600.0
MONITOR, WEB = "larmspider.status.monitor", "larmspider.web.extension"
"""Loggers whose information is for the screen, too."""
ON_SCREEN = {"on_screen": True}
"""``extra`` of a record that was printed: it goes to the file alone."""


class QuietLog:
    """``directory`` is the crawl's; ``level`` the least level in the file; ``clock`` in seconds."""

    def __init__(
        self,
        directory: Path,
        level: str | int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.file = FileOfCrawl(directory, level)
        self.screen = Screen(sys.stderr if stream is None else stream, directory, clock)

    def install(self) -> None:
        """Replaces Scrapy's handler: LOG_INSTALL_ROOT_HANDLER has to be False."""
        logging.root.setLevel(logging.NOTSET)
        for handler in (self.file, self.screen):
            logging.root.addHandler(handler)


class FileOfCrawl(logging.Handler):
    """Writes to crawl.log once the directory holds crawl.json, so that a directory that the crawl
    refuses stays unchanged."""

    def __init__(self, directory: Path, level: str | int) -> None:
        super().__init__(level)
        self.path = directory / LOG_NAME
        self._manifest = directory / "crawl.json"
        self._held: deque[logging.LogRecord] = deque(maxlen=MAX_HELD)
        self._file: RotatingFileHandler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._file is None:
            self._held.append(record)
            if not self._manifest.exists():
                return
            self._file = RotatingFileHandler(
                self.path, maxBytes=MAX_BYTES, backupCount=KEPT, encoding="utf-8"
            )
            self._file.setFormatter(
                logging.Formatter("%(asctime)s [%(name)s] %(levelname)s: %(message)s")
            )
            while self._held:
                self._file.emit(self._held.popleft())
        else:
            self._file.emit(record)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


class Screen(logging.StreamHandler[TextIO]):
    """Warnings and errors as a line each, and progress."""

    def __init__(self, stream: TextIO, directory: Path, clock: Callable[[], float]) -> None:
        super().__init__(stream)
        self._file = directory / LOG_NAME
        self._clock = clock
        self._warnings = 0
        self._wait = FIRST_SECS
        self._next = clock() + FIRST_SECS
        self._draws = stream.isatty()
        self.addFilter(self._is_for_people)

    def format(self, record: logging.LogRecord) -> str:
        text = printable(record.getMessage().partition("\n")[0])
        if record.levelno < logging.WARNING:
            return text
        if record.levelno == logging.WARNING and self._warnings == MAX_WARNINGS:
            return f"warning: {text} (further warnings are in {self._file})"
        return f"{record.levelname.lower()}: {text}"

    def _is_for_people(self, record: logging.LogRecord) -> bool:
        if getattr(record, "on_screen", False):
            return False
        if record.levelno > logging.WARNING:
            return True
        if record.levelno == logging.WARNING:
            self._warnings += 1
            return self._warnings <= MAX_WARNINGS
        if record.levelno < logging.INFO or record.name not in (MONITOR, WEB):
            return False
        return record.name == WEB or self._is_due()

    def _is_due(self) -> bool:
        now = self._clock()
        if self._draws or now < self._next:
            return False
        self._next, self._wait = now + self._wait, min(2 * self._wait, LONGEST_SECS)
        return True
