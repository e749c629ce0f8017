"""Fetches sitemaps and feeds for the scheduler: they name pages that are new, or have changed.

    http://wiki/sitemap.xml    200: 812 URLs, 3 of them new, 5 changed since their last visit

A source is fetched as robots.txt is: by the scheduler, in its host's turn, with redirects to the
same host or to a crawled host. It is not a page: no store and no counter of URLs has it. New URLs
pass the filters as links of a page do. A source that fails is fetched again a day later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from larmspider import stats
from larmspider.errors import InvalidURL
from larmspider.extraction.pages.sitemap import MAX_BYTES, Entry, Signals, read_aside
from larmspider.formatting import counted, printable
from larmspider.frontier.hosts import Lease
from larmspider.frontier.storage.records import host_of
from larmspider.requests import page_request
from larmspider.scheduler.own_fetches import OwnFetches, cut_at
from larmspider.urls.canonical import Forms
from larmspider.urls.normalizer import forms_from_settings

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from larmspider.items import Page

logger = logging.getLogger(__name__)

_BATCH = 200
"""URLs that are looked up at a time, with the event loop's turn between."""


class SourceFetch(OwnFetches):
    """Fetches sitemaps and feeds. Also looks up the URLs that listings and feeds among the pages
    name."""

    meta = cut_at(MAX_BYTES)
    accept = "gzip, deflate"
    name = "sitemap or feed"
    answer_key = stats.SOURCES_ASKED

    @cached_property
    def _forms(self) -> Callable[[str], Forms]:
        return forms_from_settings(self.crawler.settings)

    async def read(self, lease: Lease, response: Response) -> AsyncIterator[Request] | None:
        if response.status != 200:
            return await super().read(lease, response)
        found = await read_aside(response.body, response.url, now=self.frontier.clock())
        answer = found.trouble or ("200" if found.kind else "no-sitemap")
        self.end(lease, answer, entries=len(found.entries))
        if found.kind == "index":
            self._take_index(lease, found)
            return None
        return self._named(lease, found, is_whole=found.kind == "sitemap" and answer == "200")

    def end(self, lease: Lease, answer: str, *, entries: int = 0, page: Page | None = None) -> None:
        level = logging.DEBUG if answer == "http-404" else logging.INFO
        shown = printable(lease.url[:300])
        logger.log(level, "Sitemap or feed %s: %s, %s", shown, answer, counted(entries, "URL"))
        super().end(lease, answer, entries=entries)

    async def _named(
        self, lease: Lease, found: Signals, *, is_whole: bool
    ) -> AsyncIterator[Request]:
        async for request in self.take(found.entries, lease.url):
            yield request
        if is_whole:
            self._compare(found.entries, lease.url)

    def _take_index(self, lease: Lease, found: Signals) -> None:
        """The sitemaps that an index names are separate sources."""
        sources = self.frontier.sources
        depth = next(
            (one.depth for one in sources.of(lease.host.record.host) if one.url == lease.url), 0
        )
        urls = [entry.url for entry in found.entries]
        sources.found(lease.host.record.host, urls, lease.url, depth + 1)
        for entry in found.entries:
            sources.index_says(entry.url, entry.changed)
        self.frontier.reschedule(lease.host)

    async def take(self, entries: Sequence[Entry], source: str) -> AsyncIterator[Request]:
        """Requests for the new URLs of a source. Known URLs that have changed since their last
        visit become due. A source may name URLs of other hosts: these pass the filters, but their
        times are ignored."""
        spider = self.crawler.spider
        assert spider is not None
        async for entry, normalized, exact in self._new(entries, source):
            self._count(stats.SOURCES_NEW)
            yield page_request(
                spider, entry.url, normalized=normalized, exact=exact,
                from_page=source, depth=1,
            )  # fmt: skip

    def _compare(self, entries: Sequence[Entry], sitemap: str) -> None:
        """Compare the pages of a sitemap with the pages that it named earlier. Only pages of its
        own host count."""
        host = host_of(sitemap)
        own = [entry for entry in entries if host_of(entry.url) == host]
        names = (exact for _, _, exact in self._with_forms(own))
        number = self.frontier.sitemap_read(sitemap, names)
        self._count(stats.SOURCES_NAMED_NO_MORE, number)

    async def note_times(self, entries: Sequence[Entry], page: str) -> None:
        """Make the rows of a listing due that have changed since their last visit. New rows are
        links of the page, which the filters have judged."""
        async for _ in self._new(entries, page):
            pass

    async def _new(
        self, entries: Sequence[Entry], source: str
    ) -> AsyncIterator[tuple[Entry, str, str]]:
        """The unknown URLs, in canonical and exact form; known ones are due if they have
        changed."""
        frontier = self.frontier
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
        for entry in entries:
            try:
                normalized, exact = self._forms(entry.url)
            except InvalidURL:
                continue
            yield entry, normalized, exact
