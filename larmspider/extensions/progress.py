"""On a terminal: the progress of the crawl in a few lines below its log; LARM_PROGRESS=no: none.

12.4 pages/s   1.2 MB/s   310.2 MB memory   12 min 05 s running
4,501 stored   12,876 queued   16 in flight   3 failed   41 refused
end  in 2 h 05 min: slow.example:80 takes longest: one every 10 s (robots.txt Crawl-delay).

Nothing is shown with TERM=dumb, or where the log does not go to a terminal. Drawing takes SHARE of
a processor at most: the CPU time of one picture decides when the next is due, a second later at the
earliest. With 1,000 hosts a picture takes 2.7 ms and reading the hosts 15 ms, 0.5% of a processor
in all; a log line takes 5 us.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from larmspider import options
from larmspider.control.controller import LocalController
from larmspider.errors import CrawlDirError
from larmspider.formatting import duration
from larmspider.status.crawl_view import Source
from larmspider.status.snapshot import Gauges
from larmspider.status.status import CrawlStatus, Status

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.extensions.progress_view import Progress

SHARE = 0.004
"""Share of a processor for drawing, and once more for reading hosts and forecast."""
LEAST_SECS = 1.0
"""Seconds between two pictures."""
RATE_SECS = 10.0
"""Seconds over which rates are averaged."""
MAX_PARKED = 5
LINE, LINE_AND_CURSOR = "line", 3
"""LARM_PROGRESS for a single line; the least height of a window for that."""
LOOK_SECS = 5.0
"""Least seconds between two readings of hosts and forecast."""


def next_after(spent: float, least: float) -> float:
    """Seconds to wait after work that took ``spent`` seconds of CPU time."""
    return max(least, spent / SHARE)


class ProgressExtension:
    """Draws while the spider is open."""

    def __init__(self, crawler: Crawler, *, is_line: bool) -> None:
        """``is_line``: a single line, whatever the size of the terminal."""
        from larmspider.extensions.progress_view import Region, View

        self.crawler = crawler
        self._most_lines = LINE_AND_CURSOR if is_line else inf
        self._region = Region(sys.stderr)
        self._view = View()
        self._handlers: list[tuple[logging.StreamHandler[Any], Any]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._began = time.time()
        self._found: tuple[Status, list[tuple[str, str]]] | None = None
        self._recent: deque[Gauges] = deque()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        is_line = str(options.raw(crawler.settings, "LARM_PROGRESS")).strip().lower() == LINE
        wanted = is_line or options.boolean(crawler.settings, "LARM_PROGRESS")
        if not wanted or not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
            raise NotConfigured
        extension = cls(crawler, is_line=is_line)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        settings = BaseSettings()  # a copy that is not frozen: an operator may change the scope
        settings.update(self.crawler.settings)
        controller = LocalController(self.crawler, settings, self._began)
        crawl_status = CrawlStatus(Source(options.larm_dir(settings), lambda _: settings))
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr:
                self._handlers.append((handler, handler.setStream(self._region)))
                handler.addFilter(_shown_anyway)
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._draw(controller)),
            loop.create_task(self._look(controller, crawl_status)),
        ]

    def spider_closed(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._region.close()
        for handler, stream in self._handlers:
            handler.removeFilter(_shown_anyway)
            handler.setStream(stream)
        self._handlers = []

    async def _draw(self, controller: LocalController) -> None:
        while True:
            began = time.thread_time()
            gauges = await controller.gauges()
            if gauges is not None:
                width, height = self._region.size()
                height = int(min(height, self._most_lines))
                self._region.show(self._view.lines(self._progress(gauges), width, height))
            await asyncio.sleep(next_after(time.thread_time() - began, LEAST_SECS))

    async def _look(self, controller: LocalController, crawl_status: CrawlStatus) -> None:
        """Read what takes longer: hosts, as of the last checkpoint, and the forecast."""
        while True:
            spent = 0.0
            with suppress(CrawlDirError):  # before the first checkpoint
                spent = await asyncio.to_thread(
                    self._timed_look, crawl_status, await controller.gauges()
                )
            await asyncio.sleep(next_after(spent, LOOK_SECS))

    def _timed_look(self, crawl_status: CrawlStatus, gauges: Gauges | None) -> float:
        began = time.thread_time()
        status = crawl_status.status(gauges, wait=True)  # this runs in a separate thread
        rows = [row for row in crawl_status.source.hosts().values() if row.state == "parked"]
        rows.sort(key=lambda row: -row.counts.queued)
        self._found = (
            status,
            [
                (row.host, f"{row.reason}, {_again(row.next_time - status.time)}")
                for row in rows[:MAX_PARKED]
            ],
        )
        return time.thread_time() - began

    def _progress(self, gauges: Gauges) -> Progress:
        from larmspider.extensions.progress_view import Progress

        recent = self._recent
        recent.append(gauges)
        while len(recent) > 1 and recent[0].time < gauges.time - RATE_SECS:
            recent.popleft()
        first = recent[0]
        passed = max(LEAST_SECS, gauges.time - first.time)
        plain = Progress(
            seconds=gauges.time - self._began,
            pages=(gauges.pages - first.pages) / passed,
            bytes=(gauges.bytes - first.bytes) / passed,
            memory=gauges.memory,
            urls={**gauges.urls, "in flight": gauges.in_flight},
            state=gauges.broken or gauges.waiting or ("paused" if gauges.paused else "running"),
        )
        if self._found is None:
            return plain
        status, parked = self._found
        end = status.forecast.seconds
        return replace(
            plain,
            hosts=status.hosts,
            end=None if end is None else max(0.0, end - (gauges.time - status.time)),
            reasons=status.forecast.reasons,
            slowest=status.forecast.slowest,
            parked=parked,
        )


def _again(seconds: float) -> str:
    if seconds == float("inf"):
        return "not in this run"
    return f"again in {duration(max(0.0, seconds))}"


def _shown_anyway(record: logging.LogRecord) -> bool:
    """Whether a log line is also shown. The monitor's lines are not: the picture replaces them, and
    Monitor.log has them."""
    return record.name != "larmspider.status.monitor" or record.levelno > logging.INFO
