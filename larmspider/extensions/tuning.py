"""Less CPU and memory a page: tasks, garbage collection, malloc, log lines, stats; visible escapes
in logs."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import re
import sys
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from pydispatch.robustapply import robustApply
from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.logformatter import LogFormatter
from scrapy.signalmanager import SignalManager
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.asyncgen import as_async_generator
from scrapy.utils.defer import aiter_errback, ensure_awaitable, iter_errback

from larmspider.formatting import escaped
from larmspider.redaction import redacted

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.core.scraper import Scraper
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure


logger = logging.getLogger(__name__)

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tab and line feed."""
MAPPED_BYTES = 288 * 1024
"""More than the 256 KB that asyncio asks for whenever it reads from a pipe: to map and unmap them
took 7 us of the 11 us of each read."""
_M_MMAP_THRESHOLD = -3  # malloc.h


class AllocatorExtension:
    """Returns large buffers to the system when they are freed; on Linux with glibc only.

    glibc raises the size from which it maps buffers, up to 32 MB, whenever such a buffer is freed;
    bodies then come from the heap and leave holes in it. With the size fixed (at 256 KB) a crawl of
    hostile documents of 10 MB took 156 to 195 MB more than an idle one, before 155 to 232.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoReturn:
        fix_mapping_threshold()
        raise NotConfigured


def fix_mapping_threshold() -> bool:
    """Whether the C library accepted the setting."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES))


class LarmLogFormatter(LogFormatter):
    """LOG_FORMATTER: no line for each page unless ``each_page``, that is, at LOG_LEVEL DEBUG.

    Scrapy formats "Crawled (200)" and "Scraped from" for each page at level DEBUG, and the handler
    drops them, as the root logger takes every level: 30 us a page for nothing at LOG_LEVEL INFO.
    The process log shows invisible characters and terminal controls as escapes, from any logger.
    """

    def __init__(self, each_page: bool = True) -> None:
        self.each_page = each_page

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        show_invisible_in_logs()
        level = crawler.settings.get("LOG_LEVEL")
        if isinstance(level, str):
            level = logging.getLevelNamesMapping().get(level.upper(), logging.DEBUG)
        return cls(level is None or level <= logging.DEBUG)

    def crawled(  # type: ignore[override]  # None: no line, says Scrapy's documentation
        self, request: Request, response: Response, spider: Spider
    ) -> LogFormatterResult | None:
        return super().crawled(request, response, spider) if self.each_page else None

    def scraped(  # type: ignore[override]
        self, item: Any, response: Response | Failure | None, spider: Spider
    ) -> LogFormatterResult | None:
        return super().scraped(item, response, spider) if self.each_page else None


class _VisibleFormatter(logging.Formatter):
    """``inner``, whose invisible characters and controls are written as in Python, without the
    secrets that are known."""

    def __init__(self, inner: logging.Formatter) -> None:
        self.inner = inner

    def format(self, record: logging.LogRecord) -> str:
        text = redacted(self.inner.format(record), logged=True)
        if text.isascii() and not _CONTROLS.search(text):
            return text
        return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", escaped(text))


def show_invisible_in_logs() -> None:
    """Show invisible characters from now on, in each handler of the root logger: in worker.log,
    LOG_FILE and on stderr."""
    for handler in logging.root.handlers:
        if handler.formatter is not None and not isinstance(handler.formatter, _VisibleFormatter):
            handler.setFormatter(_VisibleFormatter(handler.formatter))


class LarmStats(MemoryStatsCollector):
    """STATS_CLASS: Scrapy's stats without the interception of every attribute access. Scrapy 2.19
    uses it to warn callers that still pass a spider: 1.5 us for each of some 15 counts a page."""

    __getattribute__ = object.__getattribute__


class LarmSignals(SignalManager):
    """Scrapy's signals. Receivers of item_scraped, which is sent once a page, are called one after
    the other: a task for each, as Scrapy has it, makes 39 us of 10."""

    async def send_catch_log_async(self, signal: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        if signal is not signals.item_scraped:
            return await super().send_catch_log_async(signal, **kwargs)
        sender, found = kwargs.pop("sender", self.sender), []
        for receiver in [*liveReceivers(getAllReceivers(sender, signal))]:
            try:
                result = robustApply(receiver, signal=signal, sender=sender, **kwargs)
                if result is not None:
                    result = await ensure_awaitable(result)
            except Exception as error:
                logger.exception("Error caught on signal handler: %s", receiver)
                result = error
            found.append((receiver, result))
        return found


class TasksExtension:
    """Fewer tasks of asyncio a page: `LarmSignals` sends signals, `store_in_turn` stores items. The
    event loop also keeps no list of asynchronous generators, of which a page has 24; it would only
    close the remaining ones at its end."""

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        crawler.signals = LarmSignals(crawler)  # receivers are known by the crawler
        crawler.signals.connect(self.spider_opened, signal=signals.spider_opened)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def spider_opened(self) -> None:
        assert self._crawler.engine is not None
        scraper = self._crawler.engine.scraper
        if scraper.concurrent_items == 1:
            in_turn = partial(store_in_turn, scraper)
            scraper.handle_spider_output_async = in_turn  # type: ignore[method-assign]
        sys.set_asyncgen_hooks(firstiter=None)  # dropped generators are still closed


async def store_in_turn(
    scraper: Scraper,
    result: Iterable[Any] | AsyncIterator[Any],
    request: Request,
    response: Response | Failure,
) -> None:
    """Scraper.handle_spider_output_async for CONCURRENT_ITEMS = 1, without two tasks and a queue
    for each page: 11 us in place of 55."""
    failed = scraper.handle_spider_error
    if isinstance(result, AsyncIterator):
        items = aiter_errback(result, failed, request, response)
    else:
        items = as_async_generator(iter_errback(result, failed, request, response))
    is_first = True
    async for item in items:
        if not is_first:
            await asyncio.sleep(0)  # thousands of items must not hold up others
        is_first = False
        await scraper._process_spidermw_output_async(item, response)


THRESHOLDS = (100_000, 20, 20)


class GarbageExtension:
    """Keeps the garbage collector from objects that live as long as the crawl.

    Scrapy, Twisted and the rest leave some 300,000 such objects. They are frozen once, and the
    collector runs after 100,000 new objects, some two hundred pages with their links, instead of
    700. After 20,000 it took 0.04 ms a page of the JDK documentation more, and found the same
    garbage: 3,275 objects in a crawl of 10,000 pages.
    Reset when the spider closes, as other crawls may follow.
    """

    def __init__(self) -> None:
        self._before = gc.get_threshold()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls()
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        self._before = gc.get_threshold()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)

    def spider_closed(self) -> None:
        gc.set_threshold(*self._before)
        gc.unfreeze()
