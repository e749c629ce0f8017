"""Fetches sitemaps and feeds for the scheduler: they name pages that are new, or have changed.

    http://wiki/sitemap.xml    200: 812 URLs, 3 of them new, 5 changed since their last visit

A source is asked as robots.txt is: by the scheduler, in its host's turn, with redirects to the same
host or to one that is crawled. It is no page: no store and no counter of URLs has it. New URLs pass
the filters as links of a page do. A source that fails is asked again a day later.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from larmspider import stats
from larmspider.errors import InvalidURL
from larmspider.extraction.formats import extractor_for, media_type
from larmspider.extraction.markup_guard import is_large
from larmspider.extraction.sitemap import MAX_BYTES, Entry, Signals, read
from larmspider.fetch.errors import kind_of, retry_after
from larmspider.formatting import counted, printable
from larmspider.frontier.hosts import Lease
from larmspider.frontier.storage.records import host_of
from larmspider.items import REDIRECT, Link, Page
from larmspider.requests import LEASE, page_request
from larmspider.scheduler.robots_fetch import RobotsFetch, began_at
from larmspider.urls.canonical import Forms
from larmspider.urls.normalizer import forms_from_settings
from larmspider.urls.resolve import location_of, resolve

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from larmspider.scheduler.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

_LARGE = 64 * 1024
"""A longer document is read in a thread."""
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

    async def answered(  # type: ignore[override]
        self, response: Response, **kwargs: Any
    ) -> AsyncIterator[Request]:
        lease = response.meta.pop(LEASE, None)
        if lease is None:
            return
        status, seconds = response.status, time.monotonic() - began_at(response)
        wait, answer, found = None, f"http-{status}", Signals()
        if self.scheduler.frontier.gate.is_probe(lease.host.record.host, lease.url):
            self._end_probe(lease, response, seconds)
            return
        if status == 200:
            arguments, now = (response.body, response.url), self.scheduler.frontier.clock()
            if len(response.body) > _LARGE:
                found = await asyncio.to_thread(read, *arguments, now=now)
            else:
                found = read(*arguments, now=now)
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

    def failed(self, failure: Failure) -> None:
        if (found := self.scheduler.failed_own(failure)) is not None:
            lease, request, error = found
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

    def _end_probe(self, lease: Lease, response: Response, seconds: float) -> None:
        """What the host says to a URL that nobody has; None where it says that there is none."""
        page, headers = None, response.headers
        if response.status == 200:
            content_type = (headers.get("Content-Type") or b"").decode("latin-1")
            extract = extractor_for(media_type(content_type, response.body))
            if extract is not None and not is_large(response.body):
                page = extract(response.body, response.url, content_type)
                page.body = response.body
        elif 300 <= response.status < 400 and (location := headers.get("Location")):
            target = resolve(response.url, location_of(location))
            page = Page(response.url, status=response.status)
            page.links = [Link(target, type=REDIRECT)] if target else []
        self._count(stats.PROBES)
        frontier, wait = (
            self.scheduler.frontier,
            retry_after(headers.get("Retry-After"), time.time()),
        )
        frontier.source_read(lease, f"http-{response.status}", seconds, page=page, retry_after=wait)
        self.scheduler.end_own(lease)

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
