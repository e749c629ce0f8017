"""Fetches sitemaps and feeds for the scheduler: they name pages that are new, or have changed.

    http://wiki/sitemap.xml    200: 812 URLs, 3 of them new, 5 changed since their last visit

A source is asked as robots.txt is: by the scheduler, in its host's turn, with redirects to the same
host or to one that is crawled. It is no page: no store and no counter of URLs has it. New URLs pass
the filters as links of a page do. A source that fails is asked again a day later.

The made-up URL of a host is asked the same way (delete_gate.py). The answer is read as that of any
page is: a document, and a large page, in a process of its own.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from scrapy.signals import engine_stopped

from larmspider import signals as larm_signals
from larmspider import stats
from larmspider.errors import InvalidURL
from larmspider.extraction.formats import extractor_for
from larmspider.extraction.helper_process import ExtractionStopped
from larmspider.extraction.process import ExtractionRefused, Readers
from larmspider.extraction.sitemap import MAX_BYTES, Entry, Signals, read_aside
from larmspider.fetch.errors import kind_of, retry_after
from larmspider.fetch.response_type import body_type
from larmspider.formatting import counted, printable
from larmspider.frontier.hosts import Lease
from larmspider.frontier.storage.records import host_of
from larmspider.items import REDIRECT, Link, Outcome, Page
from larmspider.requests import LEASE, page_request
from larmspider.scheduler.robots_fetch import RobotsFetch, began_at
from larmspider.urls.canonical import Forms
from larmspider.urls.media_types import is_closed
from larmspider.urls.normalizer import forms_from_settings
from larmspider.urls.resolve import location_of, resolve

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from larmspider.scheduler.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

_BATCH = 200
"""URLs that are looked up at a time, with the event loop's turn between."""


class SourceFetch(RobotsFetch):
    """Makes the Requests and takes the answers, for one scheduler."""

    max_bytes = MAX_BYTES
    accept = "gzip, deflate"
    name = "sitemap or feed"
    unless_followed = ""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        super().__init__(scheduler)
        self._forms: Callable[[str], Forms] | None = None
        self._own_readers: Readers | None = None

    async def answered(  # type: ignore[override]
        self, response: Response, **kwargs: Any
    ) -> AsyncIterator[Request]:
        lease = response.meta.pop(LEASE, None)
        if lease is None:
            return
        status, seconds = response.status, time.monotonic() - began_at(response)
        wait, answer, found = None, f"http-{status}", Signals()
        if self.scheduler.frontier.views.is_probe(lease.host, lease.url):
            wait = retry_after(response.headers.get("Retry-After"), time.time())
            self._end_view_probe(lease, answer, seconds, wait)
            return
        if self.scheduler.frontier.gate.is_probe(lease.host.record.host, lease.url):
            await self._end_probe(lease, response, seconds)
            return
        if status == 200:
            now = self.scheduler.frontier.clock()
            found = await read_aside(response.body, response.url, now=now)
            answer = found.trouble or ("200" if found.kind else "no-sitemap")
        elif 300 <= status < 400 and await self._follow(lease, response):
            return
        else:
            wait = retry_after(response.headers.get("Retry-After"), time.time())
        self._end(lease, answer, seconds, wait, len(found.entries))
        if found.kind == "index":
            self._take_index(lease, found)
        else:
            async for request in self.take(found.entries, lease.url):
                yield request
        if found.kind == "sitemap" and answer == "200":
            self._compare(found.entries, lease.url)

    def failed(self, failure: Failure) -> None:
        if (found := self.scheduler.failed_own(failure)) is not None:
            lease, request, error = found
            if self.scheduler.frontier.views.is_probe(lease.host, lease.url):
                seconds = time.monotonic() - began_at(request)
                self._end_view_probe(lease, kind_of(error), seconds, None)
                return
            self._end(lease, kind_of(error), time.monotonic() - began_at(request), None, 0)

    def _end(
        self, lease: Lease, answer: str, seconds: float, wait: float | None, entries: int
    ) -> None:
        self._count(stats.SOURCES_ASKED.format(answer=answer))
        level = logging.DEBUG if answer == "http-404" else logging.INFO
        shown = printable(lease.url[:300])
        logger.log(level, "Sitemap or feed %s: %s, %s", shown, answer, counted(entries, "URL"))
        self.scheduler.frontier.source_read(
            lease, answer, seconds, entries=entries, retry_after=wait
        )
        self.scheduler.end_own(lease)

    def _end_view_probe(
        self, lease: Lease, answer: str, seconds: float, wait: float | None
    ) -> None:
        """A URL that worked was fetched again: its answer says whether the host works."""
        self._count(stats.VIEW_PROBES)
        self.scheduler.frontier.source_read(lease, answer, seconds, retry_after=wait)
        self.scheduler.end_own(lease)

    async def _end_probe(self, lease: Lease, response: Response, seconds: float) -> None:
        frontier = self.scheduler.frontier
        frontier.release_slot(lease)  # a document may wait for its reader
        try:
            page = await self._made_up(response)
        except ExtractionStopped:
            frontier.release(lease)
            self.scheduler.end_own(lease)
            return
        self._count(stats.PROBES)
        wait = retry_after(response.headers.get("Retry-After"), time.time())
        frontier.source_read(lease, f"http-{response.status}", seconds, page=page, retry_after=wait)
        self.scheduler.end_own(lease)

    async def _made_up(self, response: Response) -> Page | None:
        """The page that a host sends for a made-up URL; ``Page.unread`` says why it was not read.
        None if the host says that there is no page. Raises ExtractionStopped."""
        if 300 <= response.status < 400 and (location := response.headers.get("Location")):
            target = resolve(response.url, location_of(location))
            page = Page(response.url, status=response.status)
            page.links = [Link(target, type=REDIRECT)] if target else []
            return page
        if response.status != 200:
            return None
        content_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
        mime, body, url = body_type(response), response.body, response.url
        extract = extractor_for(mime)
        if extract is None or is_closed(mime):
            return None
        readers = self._readers()
        try:
            if readers.is_apart(mime, body, url):
                page = await readers.read(mime, body, url, content_type)
            else:
                page = extract(body, url, content_type)
        except ExtractionStopped:
            raise
        except ExtractionRefused as refused:
            page = Page(url, unread=str(refused))
        except Exception as error:  # an extractor's error ends no crawl
            logger.exception("Extraction failed on %s", printable(url[:300]))
            page = Page(url, unread=f"{Outcome.READER_DIED}: raised {error!r}"[:500])
        page.body = body
        if page.unread:
            shown = printable(url[:300])
            logger.warning("Made-up URL %s: its answer was not read (%s)", shown, page.unread)
        return page

    def _readers(self) -> Readers:
        """The spider's readers, or readers of this object for a spider without any."""
        found = getattr(self.scheduler.crawler.spider, "readers", None) or self._own_readers
        if not isinstance(found, Readers):
            crawler = self.scheduler.crawler
            found = self._own_readers = Readers.from_settings(crawler.settings)
            for signal in (larm_signals.let_go, engine_stopped):
                crawler.signals.connect(found.close, signal=signal)
        return found

    def _take_index(self, lease: Lease, found: Signals) -> None:
        """The sitemaps that an index names are sources of their own."""
        sources = self.scheduler.frontier.sources
        assert sources is not None
        depth = next(
            (one.depth for one in sources.of(lease.host.record.host) if one.url == lease.url), 0
        )
        urls = [entry.url for entry in found.entries]
        sources.found(lease.host.record.host, urls, lease.url, depth + 1)
        for entry in found.entries:
            sources.index_says(entry.url, entry.changed)
        self.scheduler.frontier.reschedule(lease.host)

    async def take(self, entries: Sequence[Entry], source: str) -> AsyncIterator[Request]:
        """Requests for URLs that are new; those that have changed since their last visit are due.
        Of other hosts a source may name URLs, which pass the filters, but no times."""
        spider = self.scheduler.crawler.spider
        assert spider is not None
        async for entry, normalized, exact in self._new(entries, source):
            self._count(stats.SOURCES_NEW)
            yield page_request(
                spider, entry.url, normalized=normalized, exact=exact,
                from_page=source, depth=1,
            )  # fmt: skip

    def _compare(self, entries: Sequence[Entry], sitemap: str) -> None:
        """With what the sitemap named a time ago; of its own host only."""
        host = host_of(sitemap)
        own = [entry for entry in entries if host_of(entry.url) == host]
        names = (exact for _, _, exact in self._with_forms(own))
        number = self.scheduler.frontier.sitemap_read(sitemap, names)
        self._count(stats.SOURCES_NAMED_NO_MORE, number)

    async def note_times(self, entries: Sequence[Entry], page: str) -> None:
        """The rows of a listing that have changed since their last visit are due. New ones are
        links of the page, which the filters have judged as such."""
        async for _ in self._new(entries, page):
            pass

    async def _new(
        self, entries: Sequence[Entry], source: str
    ) -> AsyncIterator[tuple[Entry, str, str]]:
        """Those that nobody knows, in canonical and exact form; the others are due if they have
        changed."""
        frontier = self.scheduler.frontier
        host, left = host_of(source), iter(entries)
        while batch := list(islice(left, _BATCH)):
            named = list(self._with_forms(batch))
            known = frontier.known([exact for _, _, exact in named], count=False)
            pairs = list(zip(named, known, strict=True))
            changed = [
                (exact, entry.changed)
                for (entry, _, exact), old in pairs
                if old and entry.changed is not None and host_of(entry.url) == host
            ]
            self._count(stats.SOURCES_SIGNALLED, frontier.signalled(changed, source))
            for one, old in pairs:
                if not old:
                    yield one
            await asyncio.sleep(0)

    def _with_forms(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, str, str]]:
        if self._forms is None:
            self._forms = forms_from_settings(self.scheduler.crawler.settings)
        for entry in entries:
            try:
                normalized, exact = self._forms(entry.url)
            except InvalidURL:
                continue
            yield entry, normalized, exact
