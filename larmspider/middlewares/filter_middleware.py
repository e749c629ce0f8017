"""How Scrapy runs a Rule: over a Page's links, over Requests, and over seeds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from scrapy import Request, signals

from larmspider import options, stats
from larmspider import signals as larm_signals
from larmspider.errors import InvalidURL
from larmspider.items import KNOWN, Link, Page
from larmspider.pipelines.records import RecordLog
from larmspider.requests import count_depth, normalized_of
from larmspider.urls.canonical import Forms
from larmspider.urls.normalizer import forms_from_settings
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)

SLICE = 2_000
"""Links of a page that are filtered before the crawl has a turn: 30 ms at most."""
SLICE_CHARS = 200_000
"""Characters of their URLs: 50 ms at most, if all are escapes."""
MAX_ERRORS_LOGGED = 100
"""Errors of one filter in the crawl's log; the first has a traceback."""

FILTER_LOG_COLUMNS = ("url", "verdict", "reason")


class Rule(Protocol):
    """A UrlFilter (url_filter.py), without importing that module."""

    @property
    def name(self) -> str: ...

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]: ...

    def reject_request(self, request: Request, normalized: str) -> str | None: ...


def log_name(filter_class: type) -> str:
    """``ScopeFilter.log``, of the class ScopeFilter."""
    return filter_class.__name__.removesuffix("Filter") + "Filter.log"


class FilterMiddleware:
    """The spider middleware around one filter; counts verdicts, and logs them if wanted.

    A rejected link stays in its Page, marked with the filter's name, for the link log; a rejected
    Request or seed is dropped.
    """

    def __init__(
        self,
        url_filter: Rule,
        counters: StatsCollector,
        forms: Callable[[str], Forms],
        log_dir: Path | None = None,
    ) -> None:
        self.filter = url_filter
        self.counters = counters
        self.forms = forms
        self.log_dir = log_dir
        self.log: RecordLog | None = None
        self.errors = 0
        self.crawler: Crawler | None = None
        self._row: Sequence[FilterMiddleware] = (self,)
        """The filters that it runs, in order."""

    @classmethod
    def from_filter(cls, url_filter: Rule, crawler: Crawler) -> Self:
        settings = crawler.settings
        wants_log = options.boolean(settings, "LARM_FILTER_LOGS")
        assert crawler.stats is not None
        middleware = cls(
            url_filter,
            crawler.stats,
            forms_from_settings(settings),
            options.larm_dir(settings) if wants_log else None,
        )
        middleware.crawler = crawler
        crawler.signals.connect(middleware.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(middleware.stand_in_row, signal=signals.spider_opened)
        crawler.signals.connect(middleware.flush, signal=larm_signals.commit)
        for signal in (larm_signals.ended, signals.spider_closed):
            crawler.signals.connect(middleware.spider_closed, signal=signal)
        return middleware

    def spider_opened(self) -> None:
        if self.log_dir is not None:
            path = options.writable_dir(self.log_dir) / log_name(type(self.filter))
            self.log = RecordLog(path, FILTER_LOG_COLUMNS, summed=True)

    def flush(self) -> None:
        if self.log is not None:
            self.log.flush()

    def spider_closed(self) -> None:
        if self.log is not None:
            self.log.close()
            self.log = None

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for found in start:
            item = _without_credentials(found) if isinstance(found, Request) else found
            if not isinstance(item, Request) or (reason := self._rejected_request(item)) is None:
                yield item
            elif reason != KNOWN:
                url = without_userinfo(item.url)
                logger.warning("Seed refused: %s (%s: %s)", url, self.filter.name, reason)

    def stand_in_row(self) -> None:
        """Let the last of several adjacent filters run all of them. An item then passes one
        generator, instead of two generators for each filter. With 11 filters this saves 25 us a
        page."""
        assert self.crawler is not None
        manager = self.crawler.engine.scraper.spidermw
        chain = manager.middlewares[::-1]
        if self not in chain:
            return
        at = end = chain.index(self)
        while at and _is_plain(chain[at - 1]):
            at -= 1
        self._row = chain[at : end + 1]
        if _is_plain(self) and end + 1 < len(chain) and _is_plain(chain[end + 1]):
            manager.methods["process_spider_output"][end] = None

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for found in result:
            item = _without_credentials(found) if isinstance(found, Request) else found
            if isinstance(item, Page):
                await self._filter_links(item)
            elif isinstance(item, Request):
                count_depth(item, response)
                if any(one._rejected_request(item) is not None for one in self._row):
                    continue
            yield item

    async def _filter_links(self, page: Page) -> None:
        if _is_one_slice(page):
            links = _not_rejected(page.links)
            for one in self._row:
                if not links:  # the first two filters reject all links of most pages
                    return
                links = one._filter_slice(links, page)
            return
        parts = [_not_rejected(part) for part in _slices(page.links)]
        for one in self._row:
            for number, part in enumerate(parts):
                if number and part:
                    await asyncio.sleep(0)  # a page of 100,000 links must not hold up others
                parts[number] = one._filter_slice(part, page)

    def _filter_slice(self, links: list[Link], page: Page) -> list[Link]:
        """The links that pass."""
        rejected = 0
        if None in [link.normalized for link in links]:
            links, rejected = self._normalize_links(links)
        marked = self._mark(links, self.reasons(links, page))
        rejected += marked
        if rejected:
            self.counters.inc_value(stats.filter_rejected(self.filter.name), rejected)
        return _not_rejected(links) if marked else links

    def _normalize_links(self, links: list[Link]) -> tuple[list[Link], int]:
        """Set the canonical forms of links. Returns the links that have one, and the number of
        links that have none."""
        forms, found, rejected = self.forms, [], 0
        for link in links:
            try:
                if link.normalized is None:
                    both = forms(link.url)
                    link.normalized, link.exact = both[0], both[1]  # unpacked it takes longer
            except InvalidURL as error:
                rejected += self._mark([link], [str(error)])
            else:
                found.append(link)
        return found, rejected

    def reasons(self, links: Sequence[Link], page: Page) -> list[str | None]:
        """Why each link is rejected; None for a link that passes. If the filter raises, the link is
        rejected."""
        try:
            reasons = self.filter.reject_links(links, page)
            if len(reasons) == len(links):
                return reasons
        except Exception:  # noqa: BLE001, S110 - whatever a filter raises rejects
            pass
        # one by one, to find the link for which the filter raises
        return [self._reason(link, page) for link in links]

    def _reason(self, link: Link, page: Page) -> str | None:
        try:
            return self.filter.reject_links([link], page)[0]
        except Exception as error:  # noqa: BLE001 - whatever a filter raises rejects
            return self._raised(link.url, error)

    def _mark(self, links: list[Link], reasons: list[str | None]) -> int:
        """Log and mark the verdicts; return the number of rejections."""
        if self.log is not None:
            for link, reason in zip(links, reasons, strict=True):
                self._log_verdict(link.normalized or without_userinfo(link.url), reason)
        if reasons.count(None) == len(reasons):  # most filters reject no link of most pages
            return 0
        name, rejected = self.filter.name, 0
        for link, reason in zip(links, reasons, strict=True):
            if reason is not None:
                link.rejected_by, link.reason = name, reason
                rejected += 1
        return rejected

    def _rejected_request(self, request: Request) -> str | None:
        normalized = None
        try:
            normalized = normalized_of(request, self.forms)
            reason = self.filter.reject_request(request, normalized)
        except InvalidURL as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - whatever a filter raises rejects
            reason = self._raised(request.url, error)
        if reason is not None:
            self.counters.inc_value(stats.filter_rejected(self.filter.name))
        if self.log is not None:
            self._log_verdict(normalized or without_userinfo(request.url), reason)
        return reason

    def _raised(self, url: str, error: Exception) -> str:
        self.counters.inc_value(stats.filter_errors(self.filter.name))
        self.errors += 1
        if self.errors <= MAX_ERRORS_LOGGED:
            logger.error(
                "Filter %s raised %r on %s; the URL is rejected%s",
                self.filter.name,
                error,
                without_userinfo(url),
                "" if self.errors < MAX_ERRORS_LOGGED else "; further ones are only counted",
                exc_info=error if self.errors == 1 else None,
            )
        return f"the filter raised {error!r}"

    def _log_verdict(self, url: str, reason: str | None) -> None:
        assert self.log is not None
        self.log.append(url, "pass" if reason is None else "reject", reason or "")


def _is_plain(middleware: object) -> bool:
    """Whether it treats items as this class does."""
    treats = getattr(type(middleware), "process_spider_output", None)
    return treats is FilterMiddleware.process_spider_output


def _not_rejected(links: list[Link]) -> list[Link]:
    return [link for link in links if link.rejected_by is None]


def _is_one_slice(page: Page) -> bool:
    if len(page.links) > SLICE:
        return False
    if len(page.body) <= SLICE_CHARS // 3:  # 6 characters for "ü"
        return True
    return sum([len(link.url) for link in page.links]) <= SLICE_CHARS


def _slices(links: list[Link]) -> Iterator[list[Link]]:
    """Slices of at most SLICE links and SLICE_CHARS characters each, but at least one link."""
    start = chars = 0
    for at, link in enumerate(links):
        chars += len(link.url)
        if at - start == SLICE or (chars > SLICE_CHARS and at > start):
            yield links[start:at]
            start, chars = at, len(link.url)
    if links:
        yield links[start:]


def _without_credentials(request: Request) -> Request:
    """The Request without user name and password in its URL; credentials come from
    LARM_SITES_FILE."""
    url = without_userinfo(request.url)
    return request if url == request.url else request.replace(url=url)
