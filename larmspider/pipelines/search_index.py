"""The search index: pages, and the texts of the links to them (larmspider/index/ writes them).

Indexed are pages with status 200, without noindex and without a refresh to another page. Links to a
page are often found long after the page, so link texts of indexed pages are updated at each
checkpoint, a few at a time, and all of them when nothing is left to fetch. A crawl that is stopped
meanwhile stops; the next run continues there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

import scrapy.signals
from scrapy.exceptions import DontCloseSpider

from larmspider import options, signals, stats
from larmspider.errors import CrawlDirError
from larmspider.index.schema import STEMMERS
from larmspider.index.version import META_NAME
from larmspider.index.writer import HEAP_MIN_BYTES, IndexWriter
from larmspider.items import REDIRECT, Page
from larmspider.pipelines.store import Store

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)

REFRESH_PAGES = 200
"""Pages whose link texts a checkpoint updates, in a thread, about 1 ms each."""

_EXISTS = b"index"
_IN_CRAWL = frozenset({None, "visited", "nofollow", "depth"})
"""Verdicts on links whose targets may be in the index."""


class SearchIndexPipeline(Store):
    """Writes index/."""

    needs = ("url", "text")
    files = ("index",)

    def __init__(
        self,
        directory: Path,
        heap_bytes: int,
        stemmer: str,
        counters: StatsCollector,
        wake: Callable[[], object] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        """``wake`` is called when the crawl may end, ``stopping`` tells whether it has to."""
        self.directory = directory
        self.heap_bytes = heap_bytes
        self.stemmer = stemmer
        self.counters = counters
        self.wake, self.stopping = wake, stopping
        self._writer: IndexWriter | None = None
        self._up_to_date = False  # the link texts, as far as pages were written
        self._refresh: asyncio.Task[None] | None = None
        self._closing = False
        self._failure: CrawlDirError | None = None  # pages may be missing since

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        heap_bytes = options.integer(settings, "LARM_INDEX_HEAP_BYTES", minimum=HEAP_MIN_BYTES)
        stemmer = options.choice(settings, "LARM_INDEX_STEMMER", STEMMERS)
        assert crawler.stats is not None
        store = cls(
            options.larm_dir(settings) / "index",
            heap_bytes,
            stemmer,
            crawler.stats,
            wake=partial(crawler.signals.send_catch_log, signals.wake),
            stopping=lambda: not (crawler.crawling and crawler.engine.running),
        )
        crawler.signals.connect(store.spider_idle, signal=scrapy.signals.spider_idle)
        return store

    def open_spider(self) -> None:
        options.writable_dir(self.directory.parent)
        self._writer = IndexWriter(self.directory, heap_bytes=self.heap_bytes, stemmer=self.stemmer)

    def spider_idle(self) -> None:
        """Nothing is queued or in flight: update all link texts before the crawl ends."""
        if self._up_to_date or self._writer is None or self._failure is not None:
            return
        if self._refresh is None:
            logger.info("Bringing the link texts in the search index up to date")
            self._refresh = asyncio.ensure_future(self._bring_up_to_date(self._writer))
        raise DontCloseSpider

    async def _bring_up_to_date(self, writer: IndexWriter) -> None:
        self._up_to_date = True  # until the next write()
        try:
            with self._failure_kept():
                await asyncio.to_thread(writer.refresh_all_anchors, self._must_end)
        except CrawlDirError as error:
            logger.error("%s", error)  # and flush() raises it
        finally:
            self._refresh = None
            self.wake()

    def _must_end(self) -> bool:
        return self._closing or self.stopping()

    def write(self, page: Page) -> None:
        assert self._writer is not None
        self._up_to_date = False
        with self._failure_kept():
            self._index(page, self._writer)

    def _index(self, page: Page, writer: IndexWriter) -> None:
        if page.status == 200 and not page.noindex and not _has_moved(page):
            writer.add(page, page.digest or None)
            self.counters.inc_value(stats.SEARCH_INDEX_PAGES)
        else:
            writer.remove(page.name)  # it may have been indexed before a crash
        if page.noindex:
            self.counters.inc_value(stats.SEARCH_INDEX_NOINDEX)
        writer.add_anchors(
            [
                (name, link.anchor)
                for link in page.links
                if link.anchor
                and (name := link.exact or link.normalized) is not None
                and name != page.name
                and link.rejected_by in _IN_CRAWL
            ]
        )

    def flush(self) -> bytes:
        """The index needs no position: pages added twice are there once. Raises the first
        CrawlDirError again, since which pages may be missing."""
        if self._failure is not None:
            raise self._failure
        return _EXISTS

    def recover(self, position: bytes) -> None:
        """Raises CrawlDirError if the index is gone."""
        if position == _EXISTS and not (self.directory / META_NAME).exists():
            raise CrawlDirError(
                f"{self.directory}: the search index is gone; put it back,"
                " or start over with -a fresh=force"
            )

    async def commit(self) -> None:
        if self._writer is not None:
            with self._failure_kept():
                await asyncio.to_thread(self._commit, self._writer)
        self.flush()

    @contextmanager
    def _failure_kept(self) -> Iterator[None]:
        try:
            yield
        except CrawlDirError as error:
            self._failure = self._failure or error
            raise

    def _commit(self, writer: IndexWriter) -> None:
        writer.commit()
        writer.refresh_anchors(REFRESH_PAGES)
        self._share()

    def _share(self) -> None:
        """Give Tantivy's metadata, which it makes for its user alone, the mode of other files."""
        with suppress(OSError):  # it is just being replaced
            mode = (self.directory / META_NAME).stat().st_mode & 0o777
            for name in ("meta.json", ".managed.json"):
                (self.directory / name).chmod(mode)

    async def close_spider(self) -> None:
        writer = self._writer
        if writer is None:
            return
        self._closing = True
        if self._refresh is not None:
            await self._refresh
        try:
            with self._failure_kept():
                await asyncio.to_thread(writer.close, self.stopping)
            self._share()
        except CrawlDirError as error:
            logger.error("%s", error)  # and flush() raises it
        finally:
            self._writer = None  # not before: a checkpoint meanwhile must wait for this commit


def _has_moved(page: Page) -> bool:
    """Whether a refresh leads to another page at once (to the page itself it is a reload)."""
    return page.moved and any(
        link.type == REDIRECT and (link.exact or link.normalized) != page.name
        for link in page.links
    )
