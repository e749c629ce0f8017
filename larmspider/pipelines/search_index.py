"""The search index: each page that may be found, and the texts of the links that point to it.

index/ has the index itself; this store decides what goes in: pages with status 200 that do not say
noindex and do not send their readers on to another page. What points to a page is often found long
after the page, so the link texts of indexed pages are brought up to date at each checkpoint, a few
at a time, and all when the crawl has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy import signals

from larmspider import options, stats
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
"""Pages whose link texts one checkpoint brings up to date; about 1 ms of a thread each."""

_EXISTS = b"index"
_IN_CRAWL = frozenset({None, "visited", "nofollow", "depth"})
"""Verdicts on links whose target may be in the index."""


class SearchIndexPipeline(Store):
    """Writes index/."""

    needs = ("url", "text")

    def __init__(
        self, directory: Path, heap_bytes: int, stemmer: str, counters: StatsCollector
    ) -> None:
        self.directory = directory
        self.heap_bytes = heap_bytes
        self.stemmer = stemmer
        self.counters = counters
        self._writer: IndexWriter | None = None
        self._ended = False
        self._failure: CrawlDirError | None = None  # pages may be missing since

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        heap_bytes = options.integer(settings, "LARM_INDEX_HEAP_BYTES", minimum=HEAP_MIN_BYTES)
        stemmer = options.choice(settings, "LARM_INDEX_STEMMER", STEMMERS)
        assert crawler.stats is not None
        store = cls(options.larm_dir(settings) / "index", heap_bytes, stemmer, crawler.stats)
        crawler.signals.connect(store.spider_idle, signal=signals.spider_idle)
        return store

    def open_spider(self) -> None:
        options.writable_dir(self.directory.parent)
        self._writer = IndexWriter(self.directory, heap_bytes=self.heap_bytes, stemmer=self.stemmer)

    def spider_idle(self) -> None:
        """Nothing is queued or in flight: the crawl ends by itself, and is not being stopped."""
        self._ended = True

    def write(self, page: Page) -> None:
        assert self._writer is not None
        self._ended = False
        with self._failure_kept():
            self._index(page, self._writer)

    def _index(self, page: Page, writer: IndexWriter) -> None:
        if page.noindex:
            self.counters.inc_value(stats.SEARCH_INDEX_NOINDEX)
        elif page.status == 200 and not _has_moved(page):
            writer.add(page, page.digest or None)
            self.counters.inc_value(stats.SEARCH_INDEX_PAGES)
        writer.add_anchors(
            [
                (link.normalized, link.anchor)
                for link in page.links
                if link.anchor
                and link.normalized is not None
                and link.normalized != page.normalized
                and link.rejected_by in _IN_CRAWL
            ]
        )

    def flush(self) -> bytes:
        """That there is an index; it needs no place to go back to, for what is added twice is
        there once. Raises the first CrawlDirError again: what was added before may be lost."""
        if self._failure is not None:
            raise self._failure
        return _EXISTS

    def recover(self, position: bytes) -> None:
        """Raises CrawlDirError where there was an index and is none."""
        if position == _EXISTS and not (self.directory / META_NAME).exists():
            raise CrawlDirError(
                f"{self.directory}: the search index is gone; put it back,"
                " or start over with -a fresh=yes"
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

    async def close_spider(self) -> None:
        writer = self._writer
        if writer is None:
            return
        try:
            with self._failure_kept():
                if self._ended and self._failure is None:
                    logger.info("Bringing the link texts in the search index up to date")
                    await asyncio.to_thread(writer.refresh_anchors, None)
                await asyncio.to_thread(writer.close)
        except CrawlDirError as error:
            logger.error("%s", error)  # and flush() raises it
        finally:
            self._writer = None  # not before: a checkpoint meanwhile must wait for this commit


def _has_moved(page: Page) -> bool:
    """Whether its readers are sent on at once, and not to the page itself (a reload)."""
    return page.moved and any(
        link.type == REDIRECT and link.normalized != page.normalized for link in page.links
    )
