"""Extracts pages of ordinary size in a process beside the crawl, and so uses a second core.

    beside = PageProcess(10.0, 1 << 30, AUTO)
    if beside.takes(body):
        page = await beside.read("text/html", body, "http://wiki.example/", "text/html")

Extraction is a third of a page's time in the crawl's own thread. Handing a page over and taking the
answer costs a fifth of that, and two fifths for a page of 2,000 bytes. At most `WAITING` pages are
handed over at a time; the crawl's own thread extracts further ones, so neither waits for the other.
If other programs have the cores, the crawl's thread does most of the work itself.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from larmspider.extraction.formats import extractor_for
from larmspider.extraction.processes.helper_process import (
    WALL,
    Answers,
    ExtractionStopped,
    HelperProcess,
)
from larmspider.extraction.processes.process_child import page_of
from larmspider.items import Page

logger = logging.getLogger(__name__)

AUTO, ON, OFF = MODES = ("auto", "on", "off")
LEAST_BYTES = 2_000
"""Bytes of a body that is handed over. A smaller body would save 0.1 ms here and cost 0.2 more."""
WAITING = 32
"""Pages that are handed over and not read yet. Fetches end in bunches: with 8 the crawl's own
thread had three of five pages to extract, and then the process ran dry."""
SAMPLE = 200
"""Pages over which the load of the crawl's thread is measured."""
BUSY = 0.5
"""Share of one core from which on the thread hands over pages: a polite crawl has time for them."""
_TRIED = 3  # processes in a row that end without an answer
_PIPE_BYTES = 1 << 20
_PROGRAM = "from larmspider.extraction.processes.process_child import main; main({memory_bytes})"


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class PageProcess(HelperProcess):
    """``seconds`` of CPU and ``memory_bytes`` limit one page on POSIX, WALL times the seconds by
    the clock everywhere: the time that a page waits included."""

    def __init__(
        self,
        seconds: float,
        memory_bytes: int,
        mode: str,
        clock: Callable[[], float] = time.monotonic,
        used: Callable[[], float] = time.thread_time,
    ) -> None:
        """``mode``: `AUTO` starts the process once the crawl's thread was busy over `SAMPLE` pages,
        where there is a second core; `ON` for the first page, `OFF` never. ``used``: seconds of CPU
        that this thread has had."""
        super().__init__(_PROGRAM.format(memory_bytes=memory_bytes), "pages")
        self.seconds = seconds
        self._is_wanted = mode == ON or (mode == AUTO and cores() > 1)
        self._is_due = mode == ON
        self._clock, self._used = clock, used
        self._pages, self._since = 0, (0.0, 0.0)
        self._opening: asyncio.Task[Answers | None] | None = None
        self._answers: Answers | None = None
        self._waiting = self._failed = 0

    def takes(self, body: bytes) -> bool:
        """Whether to hand over a page now."""
        if not self._is_wanted or len(body) < LEAST_BYTES:
            return False
        if not self._is_due:
            self._measure()
            return False
        if self._opening is None and self._failed < _TRIED:
            self._opening = asyncio.ensure_future(self._open())
        return self._opening is not None and self._waiting < WAITING

    def _measure(self) -> None:
        """Whether this thread has enough to do; the first page begins the first sample."""
        if self._pages % SAMPLE == 0:
            used, now = self._used(), self._clock()
            before, began = self._since
            self._is_due = self._pages > 0 and used - before >= BUSY * (now - began)
            self._since = used, now
        self._pages += 1

    async def read(self, mime: str, body: bytes, url: str, content_type: str) -> Page | None:
        """The Page of a body that `takes` accepted. None if the process ended, or gave no answer in
        time, for any page. Raises ExtractionStopped, and the errors of the extractor."""
        opening = self._opening
        assert opening is not None
        self._waiting += 1
        try:
            answers = opening.result() if opening.done() else await asyncio.shield(opening)
            if answers is None:
                await self._ended(opening)
                return _extracted(mime, body, url, content_type)
            request = mime, len(body), url, content_type, self.seconds, ""
            answer = await answers.ask(request, body, self.seconds * WALL)
        except (EOFError, OSError):
            await self._ended(opening)
            return None
        finally:
            self._waiting -= 1
        if "ended" in answer:
            return None
        self._failed = 0
        if "refused" in answer:  # it raised: what, the crawl's log shall say
            return _extracted(mime, body, url, content_type)
        return page_of(answer["page"], url, body)

    async def _open(self) -> Answers | None:
        """Start the process. Returns None if no process can be started."""
        with suppress(OSError, ExtractionStopped):
            if self.closed:
                return None
            loop = asyncio.get_running_loop()
            child = await loop.run_in_executor(self.pool, self.started)
            for pipe in (child.stdin, child.stdout):
                _widen(pipe.fileno() if pipe is not None and not pipe.closed else -1)
            self._answers = await Answers.of(child)
            if self.closed:  # meanwhile
                self._answers.close()
            return self._answers
        return None

    async def _ended(self, opening: asyncio.Task[Answers | None]) -> None:
        """Raises ExtractionStopped where the crawl ends."""
        if self._opening is opening:  # the first of the waiting callers
            self._opening = None
            self._failed += 1
            if self._failed == _TRIED:
                logger.error("Pages are extracted by the crawl alone: the process beside it ends")
            if self._answers is not None:
                self._answers.close()
                self._answers = None
            if not self.closed:  # in its thread, which then starts another process
                await asyncio.get_running_loop().run_in_executor(self.pool, self.end)
        if self.closed:
            raise ExtractionStopped("the crawl is being stopped")

    def close(self) -> None:
        """End the process. May be called twice."""
        if self._answers is not None:
            self._answers.close()
        super().close()


def _extracted(mime: str, body: bytes, url: str, content_type: str) -> Page:
    extract = extractor_for(mime)
    return Page(url) if extract is None else extract(body, url, content_type)


def _widen(pipe: int) -> None:
    """Room for a page and more, so that neither side is woken for its parts. Linux only."""
    if sys.platform == "linux" and pipe >= 0:
        from fcntl import F_SETPIPE_SZ, fcntl

        with suppress(OSError):
            fcntl(pipe, F_SETPIPE_SZ, _PIPE_BYTES)
