"""A line for each page only where somebody reads it.

Scrapy makes "Crawled (200)" and "Scraped from" for each page at level DEBUG and lets the handler
throw them away (its root logger takes every level): 30 us a page for nothing at LOG_LEVEL INFO.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self

from scrapy.logformatter import LogFormatter

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.logformatter import LogFormatterResult
    from twisted.python.failure import Failure


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
