"""Follow, the last step: the links that no filter rejected become Requests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request

from larmspider import stats
from larmspider.items import REDIRECT, Link, Page

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector


def page_request(
    spider: Spider,
    url: str,
    *,
    normalized: str | None = None,
    from_page: str = "",
    link_type: int = 0,
    depth: int = 0,
    redirects: int = 0,
) -> Request:
    """The Request for one page. Its meta carries what the Page will need to know of its origin.

    Every status is a Page, so Scrapy follows no redirect of it and drops no error. Breadth first:
    the deeper, the later.
    """
    meta = {
        "normalized": normalized,
        "from_page": from_page,
        "link_type": link_type,
        "depth": depth,
        "redirects": redirects,
        "dont_redirect": True,
        "handle_httpstatus_all": True,
    }
    errback = getattr(spider, "fetch_failed", None)
    return Request(url, errback=errback, meta=meta, priority=-depth)


class FollowMiddleware:
    """Yields each Page and after it a Request for each of its links that passed the filters."""

    def __init__(self, spider: Spider, counters: StatsCollector) -> None:
        self.spider = spider
        self.counters = counters
        self._hosts: set[str] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        assert crawler.spider is not None
        assert crawler.stats is not None
        return cls(crawler.spider, crawler.stats)

    async def process_start(self, start: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for item in start:
            if isinstance(item, Request):
                self._count_new([item.meta.get("normalized") or item.url])
            yield item

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for item in result:
            yield item
            if isinstance(item, Page):
                for request in self._requests(item):
                    yield request

    def _requests(self, page: Page) -> Iterator[Request]:
        links = [link for link in page.links if link.rejected_by is None]
        self.counters.inc_value(stats.FOLLOW_PAGES)
        self.counters.inc_value(stats.FOLLOW_LINKS, len(page.links))
        self._count_new([link.normalized or link.url for link in links])
        return (self._request(link, page) for link in links)

    def _request(self, link: Link, page: Page) -> Request:
        redirect = link.type == REDIRECT
        return page_request(
            self.spider,
            link.url,
            normalized=link.normalized,
            from_page=page.url,
            link_type=link.type,
            depth=page.depth if redirect else page.depth + 1,
            redirects=page.redirects + 1 if redirect else 0,
        )

    def _count_new(self, urls: list[str]) -> None:
        if not urls:
            return
        self.counters.inc_value(stats.FOLLOW_NEW_URLS, len(urls))
        known = len(self._hosts)
        self._hosts.update(url.split("/", 3)[2] for url in urls)
        if len(self._hosts) > known:
            self.counters.set_value(stats.FOLLOW_HOSTS, len(self._hosts))
