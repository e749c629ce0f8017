"""Follow, the last step: queues the links that no filter rejected.

The links of a page enter the frontier as one batch, past Scrapy's engine. As Requests they would
pass the spider middlewares below, the engine and the signal request_scheduled, only to be taken
apart again: 0.1 ms of CPU each. They become Requests at once only if a component expects Requests:

    a SCHEDULER other than ours
    a spider middleware below this one that reads spider output (except CopiesMiddleware and
        AcknowledgeMiddleware)
    a receiver of request_dropped, or of request_scheduled (except LastCheckMiddleware)
    no ScopeFilter above this one: then LastCheckMiddleware, which sees Requests, judges the scope
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import Request, signals

from larmspider import stats
from larmspider.errors import InvalidURL
from larmspider.frontier.storage.records import host_of
from larmspider.items import REDIRECT, REQUISITE, Link, Page, Requisite
from larmspider.middlewares.acknowledge import AcknowledgeMiddleware
from larmspider.middlewares.copies import CopiesMiddleware
from larmspider.middlewares.filter_middleware import SLICE
from larmspider.middlewares.last_check import LastCheckMiddleware
from larmspider.middlewares.scope import ScopeFilter
from larmspider.requests import MAX_NUMBER, SEED, link_request
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.urls.normalizer import forms_from_settings
from larmspider.urls.schemes import is_source

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector


_MARK = "#requisite"
"""Follows the exact form of a requisite: its URL may become known as a page's URL, too."""
_OURS = AcknowledgeMiddleware | CopiesMiddleware
"""Middlewares that ignore Requests."""


class FollowMiddleware:
    """Queues each link of a Page that passed the filters, or yields a Request for it. The Page is
    last.

    Links that are not http, https or file URLs are left out, even if no filter runs before.
    """

    def __init__(self, crawler: Crawler, spider: Spider, counters: StatsCollector) -> None:
        self.crawler, self.spider, self.counters = crawler, spider, counters
        self._hosts: set[str] = set()
        self._forms = forms_from_settings(crawler.settings)
        self._longest = crawler.settings.getint("URLLENGTH_LIMIT")

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        assert crawler.spider is not None
        assert crawler.stats is not None
        return cls(crawler, crawler.spider, crawler.stats)

    @cached_property
    def passes_engine(self) -> bool:
        """Whether links become Requests. Decided at the first page, when all components exist."""
        chain = self.crawler.engine.scraper.spidermw.middlewares
        if self not in chain or scheduler_of(self.crawler) is None:
            return True
        at = chain.index(self)
        below = [one for one in chain[:at] if hasattr(one, "process_spider_output")]
        scheduled = [
            getattr(receiver, "__self__", None)
            for receiver in self._receivers(signals.request_scheduled)
        ]
        return not (
            all(isinstance(one, _OURS) for one in below)
            and any(isinstance(getattr(one, "filter", None), ScopeFilter) for one in chain[at:])
            and all(isinstance(one, LastCheckMiddleware) for one in scheduled)
            and not self._receivers(signals.request_dropped)
        )

    def _receivers(self, signal: object) -> list[object]:
        return list(liveReceivers(getAllReceivers(self.crawler.signals.sender, signal)))

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for item in start:
            if isinstance(item, Request):
                item.meta[SEED] = True
                self._count_new([item.meta.get("exact") or item.url])
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
                        await asyncio.sleep(0)  # like the filters
                    batch = links[start : start + SLICE]
                    self._count_new([link.normalized or link.url for link in batch])
                    if self._is_queueable(batch, item):
                        self.enqueue(batch, item)
                    else:
                        for link in batch:
                            yield self._request(link, item)
            if isinstance(item, Page | Requisite):
                self._queue_requisites(item.page if isinstance(item, Requisite) else item)
            yield item

    def _links(self, page: Page) -> list[Link]:
        """The links to follow."""
        links = [
            link
            for link in page.links
            if link.rejected_by is None
            and (link.url.startswith(("http://", "https://")) or is_source(link.url))
        ]
        if len(page.links) > SLICE:  # the filters did not see all of them together
            first = {link.exact or link.url: link for link in reversed(links)}
            links = [link for link in links if first[link.exact or link.url] is link]
        self.counters.inc_value(stats.FOLLOW_PAGES)
        self.counters.inc_value(stats.FOLLOW_LINKS, len(page.links))
        return links

    def _is_queueable(self, links: Sequence[Link], page: Page) -> bool:
        """Whether a link can be queued without a Request. A redirect between two spellings of a
        page cannot: it needs a key of its own, which only Requests have."""
        if self.passes_engine:
            return False
        here = page.exact or page.normalized
        return all((link.exact or link.normalized) not in (None, here) for link in links)

    def queue(self, links: Sequence[Link], page: Page) -> None:
        """Queue links of a stored page that pass the filters now."""
        if self._is_queueable(links, page):
            self.enqueue(links, page)
        else:
            for link in links:
                self.crawler.engine.crawl(self._request(link, page))

    def enqueue(self, links: Sequence[Link], page: Page) -> None:
        """Add the links to the frontier as one batch."""
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
                    exact=link.exact,
                    depth=min(MAX_NUMBER, page.depth if redirect else page.depth + 1),
                    link_type=link.type,
                    redirects=min(MAX_NUMBER, page.redirects + 1) if redirect else 0,
                    from_page=page.url,
                )
            )
        frontier.add(entries)
        scheduler.wake()

    def _queue_requisites(self, page: Page) -> None:
        """Queue the requisites of the page, each once: on its host, and on hosts of the frontier.
        A requisite that is also a page of the crawl is fetched as a page."""
        scheduler = scheduler_of(self.crawler) if page.requisites else None
        if scheduler is None:
            return
        frontier, here, named = scheduler.frontier, host_of(page.url), {}
        for url in page.requisites:
            host = host_of(url)
            if len(url) <= self._longest and (host == here or host in frontier.hosts):
                with suppress(InvalidURL):
                    forms = self._forms(url)
                    named[forms.exact] = url, forms.normalized
        pages = frontier.known(list(named), count=False)
        marked = [f"{exact}{_MARK}" for exact in named]
        known = frontier.known(marked, count=False)
        redirects = min(MAX_NUMBER, page.redirects + 1) if page.link_type == REQUISITE else 0
        added = frontier.add(
            [
                frontier.entry(
                    url,
                    normalized,
                    exact=mark,
                    depth=page.depth,
                    link_type=REQUISITE,
                    redirects=redirects,
                    from_page=page.url,
                )
                for (url, normalized), mark, is_page, is_known in zip(
                    named.values(), marked, pages, known, strict=True
                )
                if not is_page and not is_known
            ]
        )
        queued = len(added.new) + added.forwarded
        self.counters.inc_value(stats.REQUISITES.format(state="queued"), queued)
        scheduler.wake()

    def _request(self, link: Link, page: Page) -> Request:
        return link_request(self.spider, link, page)

    def _count_new(self, urls: list[str]) -> None:
        self.counters.inc_value(stats.FOLLOW_NEW_URLS, len(urls))
        known = len(self._hosts)
        self._hosts.update(url.partition("//")[2].partition("/")[0] for url in urls)
        if len(self._hosts) > known:
            self.counters.set_value(stats.FOLLOW_HOSTS, len(self._hosts))
