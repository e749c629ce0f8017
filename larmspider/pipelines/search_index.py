"""The search index: pages, and the texts of the links to them (larmspider/index/ writes them).

Indexed are pages with status 200, without noindex and without a refresh to another page. Links to a
page are often found long after the page, so link texts of indexed pages are updated at each
checkpoint, a few at a time, and all of them when nothing is left to fetch. A crawl that is stopped
meanwhile stops; the next run continues there.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import scrapy.signals
from scrapy.exceptions import DontCloseSpider

from larmspider import options, signals, stats
from larmspider.errors import CrawlDirError, InvalidURL
from larmspider.extraction.language import is_in_another, languages_in
from larmspider.extraction.process import Readers
from larmspider.formatting import counted, duration
from larmspider.index.rebuild import Documents, finish, rebuild
from larmspider.index.schema import SCHEMA_VERSION, STEMMERS, page_fields
from larmspider.index.version import META_NAME, outdated, version_of
from larmspider.index.writer import HEAP_MIN_BYTES, IndexWriter
from larmspider.items import REDIRECT, Page, Removed
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS, KEPT
from larmspider.pipelines.page_files import stored_pages
from larmspider.pipelines.records import read_records
from larmspider.pipelines.store import Store
from larmspider.urls.canonical import Forms

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)

REFRESH_PAGES = 200
"""Pages whose link texts a checkpoint updates, in a thread, about 1 ms each."""

_PROGRESS_SECS = 5.0
_EXISTS = b"index"
_IN_CRAWL = frozenset({None, "visited", "nofollow", "depth", "language"})
"""Verdicts on links whose targets may be in the index."""


class SearchIndexPipeline(Store):
    """Writes index/."""

    needs = ("url", "text")
    files = ("index", "index.new", "index.old")

    def __init__(
        self,
        directory: Path,
        heap_bytes: int,
        stemmer: str,
        counters: StatsCollector,
        wake: Callable[[], object] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
        given_up: Callable[[], bool] = lambda: False,
        readers: Callable[[], Readers] = Readers,
        languages: Collection[str] = (),
    ) -> None:
        """``wake`` is called when the crawl may end, ``stopping`` tells whether it has to,
        ``given_up`` whether it was told to stop while it opens. Of pages in other languages than
        ``languages``, if there are any, none is indexed."""
        self.directory = directory
        self.heap_bytes = heap_bytes
        self.stemmer = stemmer
        self.counters = counters
        self.languages = languages
        self.wake, self.stopping, self.given_up = wake, stopping, given_up
        self._readers = readers
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
            given_up=lambda: not crawler.crawling,
            readers=partial(Readers.from_settings, settings),
            languages=languages_in(settings, "LARM_INDEX_LANGUAGES"),
        )
        crawler.signals.connect(store.spider_idle, signal=scrapy.signals.spider_idle)
        return store

    def open_spider(self) -> Coroutine[Any, Any, None] | None:
        options.writable_dir(self.directory.parent)
        finish(self.directory)
        if outdated(self.directory):
            return self._open_anew()
        self._open()
        return None

    def _open(self) -> None:
        self._writer = IndexWriter(self.directory, heap_bytes=self.heap_bytes, stemmer=self.stemmer)

    async def _open_anew(self) -> None:
        """Rebuild the index while the crawl waits, and keep its lease."""
        await asyncio.to_thread(self._rebuild)
        self._open()

    def _rebuild(self) -> None:
        telling = RebuildLog(self.directory, self.given_up)
        with self._readers() as readers:
            rebuild(
                self.directory,
                partial(from_page_files, self.directory.parent, self._forms, readers),
                heap_bytes=self.heap_bytes,
                progress=telling,
            )
        telling.end()

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
        other = self.languages and is_in_another(page, self.languages)
        if other:
            self.counters.inc_value(stats.SEARCH_INDEX_LANGUAGE)
        if _is_for_readers(page) and not other:
            writer.add(page, page.digest or None)
            self.counters.inc_value(stats.SEARCH_INDEX_PAGES)
        else:
            writer.remove(page.name)  # it may have been indexed before a crash
        if page.noindex:
            self.counters.inc_value(stats.SEARCH_INDEX_NOINDEX)
        here = page.name
        writer.add_anchors(
            here,
            {
                (name, link.anchor)
                for link in page.links
                if link.anchor
                and (name := link.exact or link.normalized) is not None
                and name != here
                and link.rejected_by in _IN_CRAWL
            },
        )

    def remove(self, removed: Removed) -> None:
        assert self._writer is not None
        self._up_to_date = False
        with self._failure_kept():
            self._writer.remove(removed.exact)
        self._writer.add_anchors(removed.exact, ())

    def flush(self) -> bytes:
        """The index needs no position: pages added twice are there once. Raises the first
        CrawlDirError again, since which pages may be missing."""
        if self._failure is not None:
            raise self._failure
        return _EXISTS

    def recover(self, position: bytes) -> None:
        """Raises CrawlDirError if the index is gone."""
        finish(self.directory)
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
        except CrawlDirError as error:
            logger.error("%s", error)  # and flush() raises it
        finally:
            self._writer = None  # not before: a checkpoint meanwhile must wait for this commit


class RebuildLog:
    """Says in the log how far a rebuild is, every 5 s; False ends it when the crawl stops."""

    def __init__(self, directory: Path, stopping: Callable[[], bool] = lambda: False) -> None:
        self.directory, self.stopping = directory, stopping
        self._began = self._said = time.monotonic()
        self._done = 0
        logger.info(
            "The search index %s has version %s: it is made anew in version %s, beside the old one",
            *(directory, version_of(directory), SCHEMA_VERSION),
        )

    def __call__(self, done: int, total: int) -> bool:
        self._done = done
        now = time.monotonic()
        if now - self._said >= _PROGRESS_SECS:
            self._said = now
            left = (now - self._began) / done * max(0, total - done)
            logger.info(
                "Making the search index anew: %s of %s, about %s left",
                *(f"{done:,}", counted(total, "page"), duration(left)),
            )
        return not self.stopping()

    def end(self) -> None:
        took = duration(time.monotonic() - self._began)
        logger.info("The search index is new: %s in %s", counted(self._done, "page"), took)


def from_page_files(
    directory: Path, forms: Callable[[str], Forms], readers: Readers
) -> tuple[int, Documents]:
    """The number of pages in store.log, and what the index would have of each. What only the server
    said is not known: a charset or noindex in a header, Last-Modified."""
    total = sum(1 for _ in stored_pages(directory))
    return total, _from_page_files(directory, forms, readers)


def _from_page_files(directory: Path, forms: Callable[[str], Forms], readers: Readers) -> Documents:
    times = _FetchTimes(directory / "fetch.log")
    depths: dict[int, int] = {}
    last = {hash(fields[1]): number for number, (fields, _) in enumerate(stored_pages(directory))}
    for number, (fields, body) in enumerate(stored_pages(directory)):
        from_page, url, normalized, link_type, status, mime, _, title, _, _ = fields
        if status == "0":  # it was taken out
            continue
        depth = depths.get(hash(from_page), -1) + (link_type != str(REDIRECT))
        depths[hash(url)], fetched = depth, times.of(url)
        if last[hash(url)] != number:  # there is a later version
            continue
        page = Page(url)
        if status == "200":
            page = readers.read_again(mime, body(), url)
            for link in page.links:
                with suppress(InvalidURL):
                    link.normalized, link.exact = forms(link.url)
        with suppress(InvalidURL):
            page.exact = forms(url).exact
        page.normalized, page.status, page.mime = normalized, int(status), mime
        page.title, page.depth, page.fetched = page.title or title, max(0, depth), fetched
        digest = hashlib.sha1(page.body, usedforsecurity=False).hexdigest()
        yield page.name, page_fields(page, digest) if _is_for_readers(page) else None


class _FetchTimes:
    """When pages were fetched, by fetch.log, which has them in nearly the order of store.log."""

    def __init__(self, path: Path) -> None:
        self._records = iter(read_records(path, len(FETCH_LOG_COLUMNS)) if path.exists() else ())
        self._passed: dict[str, float] = {}
        self._last = 0.0

    def of(self, url: str) -> float:
        while url not in self._passed:
            fields = next(self._records, None)
            if fields is None:
                return self._last
            if fields[4].isdecimal() and not fields[7].startswith(KEPT):
                with suppress(ValueError):
                    self._last = datetime.fromisoformat(fields[0]).timestamp()
                self._passed[fields[1]] = self._last
        return self._passed.pop(url)


def _is_for_readers(page: Page) -> bool:
    return page.status == 200 and not page.noindex and not _has_moved(page)


def _has_moved(page: Page) -> bool:
    """Whether a refresh leads to another page at once (to the page itself it is a reload)."""
    return page.moved and any(
        link.type == REDIRECT and (link.exact or link.normalized) != page.name
        for link in page.links
    )
