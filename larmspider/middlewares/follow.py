"""Follow, the last step: the links that no filter rejected are queued.

They become Requests, or take the short way into the frontier (short_way.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import Request, signals

from larmspider import stats
from larmspider.items import REDIRECT, Link, Page
from larmspider.middlewares.acknowledge import AcknowledgeMiddleware
from larmspider.middlewares.filter_middleware import SLICE
from larmspider.middlewares.last_check import LastCheckMiddleware
from larmspider.middlewares.scope import ScopeFilter
from larmspider.requests import MAX_NUMBER, SAME_PAGE, SEED, page_request
from larmspider.scheduler.scheduler import scheduler_of

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector


# The short way of new links into the frontier: as one batch, past Scrapy's engine.
#
# On the long way each becomes a Request, passes the spider middlewares below, the engine and the
# signal request_scheduled, and is made an entry of the frontier and forgotten: 0.1 ms of CPU, to
# no
# one's use where nobody stands on that way. Where somebody does, the long way is taken.


class DirectEnqueue:
    """For the middleware ``follow``; looks once, at the first page."""

    def __init__(self, crawler: Crawler, follow: object) -> None:
        self.crawler, self.follow = crawler, follow
        self._open: bool | None = None

    def queue(self, links: Sequence[Link], page: Page) -> bool:
        """Queue the new links of ``page``; False where they have to take the long way."""
        if self._open is None:
            self._open = self._nobody_on_the_long_way()
        if not self._open or any(link.normalized in (None, page.normalized) for link in links):
            return False  # a redirect between two spellings of a page has a key of its own
        scheduler = scheduler_of(self.crawler)
        assert scheduler is not None
        frontier, entries = scheduler.frontier, []
        for link in links:
            redirect = link.type == REDIRECT
            assert link.normalized is not None
            entries.append(
                frontier.entry(
                    link.url,
                    link.normalized,
                    depth=min(MAX_NUMBER, page.depth if redirect else page.depth + 1),
                    link_type=link.type,
                    redirects=min(MAX_NUMBER, page.redirects + 1) if redirect else 0,
                    from_page=page.url,
                )
            )
        frontier.add(entries)
        scheduler.wake()
        return True

    def _nobody_on_the_long_way(self) -> bool:
        """Our scheduler; below us only what lets a Request pass as it is; scope judged above us,
        and no receiver of the signals but the last check, which would judge it again."""
        try:
            engine = self.crawler.engine
        except RuntimeError:
            return False  # Scrapy: it is not set yet
        if scheduler_of(self.crawler) is None:
            return False
        chain = engine.scraper.spidermw.middlewares
        if self.follow not in chain:
            return False
        at = chain.index(self.follow)
        below = [one for one in chain[:at] if hasattr(one, "process_spider_output")]
        return (
            all(isinstance(one, AcknowledgeMiddleware) for one in below)
            and any(isinstance(getattr(one, "filter", None), ScopeFilter) for one in chain[at:])
            and not self._receivers(signals.request_dropped)
            and all(
                isinstance(getattr(one, "__self__", None), LastCheckMiddleware)
                for one in self._receivers(signals.request_scheduled)
            )
        )

    def _receivers(self, signal: object) -> list[object]:
        return list(liveReceivers(getAllReceivers(self.crawler.signals.sender, signal)))


class FollowMiddleware:
    """Queues each link of a Page that passed the filters, or yields a Request for it. The Page is
    last.

    What is no http or https URL is left out, should no filter stand before.
    """

    def __init__(self, crawler: Crawler, spider: Spider, counters: StatsCollector) -> None:
        self.short_way = DirectEnqueue(crawler, self)
        self.spider = spider
        self.counters = counters
        self._hosts: set[str] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        assert crawler.spider is not None
        assert crawler.stats is not None
        return cls(crawler, crawler.spider, crawler.stats)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for item in start:
            if isinstance(item, Request):
                item.meta[SEED] = True
                self._count_new([item.meta.get("normalized") or item.url])
            yield item

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for item in result:
            if isinstance(item, Page):
                # before the Page: when it is acknowledged, its links must be in the frontier
                links = self._links(item)
                for start in range(0, len(links), SLICE):
                    if start:
                        await asyncio.sleep(0)  # as in the filters
                    for request in self._requests(links[start : start + SLICE], item):
                        yield request
            yield item

    def _links(self, page: Page) -> list[Link]:
        """Those to follow."""
        links = [
            link
            for link in page.links
            if link.rejected_by is None and link.url.startswith(("http://", "https://"))
        ]
        if len(page.links) > SLICE:  # the filters did not see all of them together
            first = {link.normalized or link.url: link for link in reversed(links)}
            links = [link for link in links if first[link.normalized or link.url] is link]
        self.counters.inc_value(stats.FOLLOW_PAGES)
        self.counters.inc_value(stats.FOLLOW_LINKS, len(page.links))
        return links

    def _requests(self, links: list[Link], page: Page) -> Iterator[Request]:
        self._count_new([link.normalized or link.url for link in links])
        if self.short_way.queue(links, page):
            return iter(())
        return (self._request(link, page) for link in links)

    def _request(self, link: Link, page: Page) -> Request:
        redirect = link.type == REDIRECT
        request = page_request(
            self.spider,
            link.url,
            normalized=link.normalized,
            from_page=page.url,
            link_type=link.type,
            depth=page.depth if redirect else page.depth + 1,
            redirects=page.redirects + 1 if redirect else 0,
        )
        if redirect and link.normalized == page.normalized:
            request.meta[SAME_PAGE] = True
        return request

    def _count_new(self, urls: list[str]) -> None:
        self.counters.inc_value(stats.FOLLOW_NEW_URLS, len(urls))
        known = len(self._hosts)
        self._hosts.update(url.partition("//")[2].partition("/")[0] for url in urls)
        if len(self._hosts) > known:
            self.counters.set_value(stats.FOLLOW_HOSTS, len(self._hosts))
