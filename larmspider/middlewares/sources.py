"""Pages that name changed pages: feeds that a page links to, and directory listings.

    http://wiki/feed/        <link rel=alternate> led here: fetched once a day from now on
    http://files/docs/       "Index of /docs": a.html 2026-11-22 10:00

A spider middleware in front of the filters, because a feed's entries become Requests for filters.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from larmspider.extraction.pages.sitemap import is_likely, listed, read_aside
from larmspider.items import Page
from larmspider.scheduler.scheduler import WithScheduler

if TYPE_CHECKING:
    from scrapy.http import Response

    from larmspider.scheduler.scheduler import FrontierScheduler


class SourcesMiddleware(WithScheduler):
    """Remembers feeds and sitemaps that come as pages, and reads them and listings at once."""

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        scheduler = self.scheduler
        if scheduler is not None and not scheduler.frontier.sources.is_on:
            scheduler = None  # no source is fetched
        async for item in result:
            yield item
            if scheduler is None or not isinstance(item, Page) or item.status != 200:
                continue
            if is_likely(item.mime, item.body):
                async for request in self._read(item, scheduler):
                    yield request
            elif rows := listed(item, item.fetched):
                await scheduler.sources.note_times(rows, item.url)

    async def _read(self, page: Page, scheduler: FrontierScheduler) -> AsyncIterator[Any]:
        frontier = scheduler.frontier
        found = await read_aside(page.body, page.url, now=page.fetched)
        if not found.kind:
            return
        frontier.found_sources([page.url], "feed")
        if found.kind != "index":  # the entries of an index are fetched when their turn comes
            frontier.sources.asked(page.url, page.fetched, "200", len(found.entries))
            async for request in scheduler.sources.take(found.entries, page.url):
                yield request
