"""Python's garbage collector looks at what a crawl makes, not again and again at what it loaded.

Scrapy, Twisted and the rest leave some 300,000 objects that live as long as the crawl. They are set
aside once (gc.freeze), and the collector runs after 5,000 new objects, which is some ten pages with
their links, instead of 700: 1.71 ms of CPU a page became 1.58 (PostgreSQL documentation, best of
four each; 1.43 without any collector).
"""

from __future__ import annotations

import ctypes
import gc
import logging
import sys
from typing import TYPE_CHECKING, Any, NoReturn, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.logformatter import LogFormatter
from scrapy.statscollectors import MemoryStatsCollector

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure


# Large buffers go back to the system when they are freed.
#
# glibc raises the size from which it maps a buffer by itself whenever such a buffer is freed, up
# to
# 32 MB; bodies then come from the heap and leave holes in it. With the size fixed at 256 KB a
# crawl
# of hostile documents of 10 MB took 156 to 195 MB more than an idle one, before 155 to 232.

MAPPED_BYTES = 256 * 1024
_M_MMAP_THRESHOLD = -3  # malloc.h


class AllocatorExtension:
    """Sets it, for the whole process, and is gone. Nothing on systems without glibc."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> NoReturn:
        fix_mapping_threshold()
        raise NotConfigured


def fix_mapping_threshold() -> bool:
    """Whether the C library took it."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES))


# A line for each page only where somebody reads it.
#
# Scrapy makes "Crawled (200)" and "Scraped from" for each page at level DEBUG and lets the handler
# throw them away (its root logger takes every level): 30 us a page for nothing at LOG_LEVEL INFO.


class LarmLogFormatter(LogFormatter):
    """LOG_FORMATTER. ``each_page``: whether lines of level DEBUG are wanted."""

    def __init__(self, each_page: bool = True) -> None:
        self.each_page = each_page

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
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


# Scrapy's stats without the detour of each access.
#
# StatsCollector of Scrapy 2.19 intercepts every attribute access, to warn callers that still hand
# over a spider: 1.5 us more for each of some 15 counts a page.


class LarmStats(MemoryStatsCollector):
    """STATS_CLASS."""

    __getattribute__ = object.__getattribute__


THRESHOLDS = (5_000, 20, 20)


class GarbageExtension:
    """Sets it up while the spider is open, and then as it was: other crawls may follow."""

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
