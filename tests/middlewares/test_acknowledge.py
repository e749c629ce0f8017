"""larmspider/middlewares/acknowledge.py: a lease ends with its own Request's output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from larmspider.frontier.hosts import Host, HostPace, HostRecord, Lease
from larmspider.frontier.storage.records import QueuedUrl, url_key
from larmspider.middlewares.acknowledge import AcknowledgeMiddleware
from larmspider.middlewares.default_headers import DefaultHeadersMiddleware
from larmspider.requests import LEASE
from larmspider.scheduler.scheduler import FrontierScheduler


def test_no_request_of_the_spider_takes_the_lease_along(
    crawler_for: Callable[..., Crawler],
) -> None:
    """Neither one with the meta of its parent nor its parent once more, the very same Request."""
    entry = QueuedUrl("http://h/", "http://h/", url_key("http://h/"), "h:80")
    lease = Lease(entry.url, Host(HostRecord("h:80"), HostPace()), entry, 0.0, None)
    request = Request(entry.url, meta={LEASE: lease, "mine": 1})
    lease.holder = request

    async def output() -> AsyncIterator[Any]:
        yield Request("http://h/a", meta=request.meta)
        yield request
        yield {"an": "item"}

    async def run() -> list[Any]:
        crawler = crawler_for()
        crawler.engine = SimpleNamespace(scheduler=FrontierScheduler(crawler))
        middleware = AcknowledgeMiddleware(crawler)
        response = Response(entry.url, request=request)
        return [item async for item in middleware.process_spider_output(response, output())]

    child, again, _ = asyncio.run(run())
    assert child.meta == again.meta == {"mine": 1}
    assert again.url == entry.url
    assert request.meta[LEASE] is lease


# larmspider/middlewares/default_headers.py: what every request says.


def test_adds_the_headers_of_the_settings(crawler_for: Callable[..., Crawler]) -> None:
    """DEFAULT_REQUEST_HEADERS, None taking one out, and USER_AGENT."""
    middleware = DefaultHeadersMiddleware.from_crawler(
        crawler_for(
            USER_AGENT="me/1", DEFAULT_REQUEST_HEADERS={"accept": "text/html", "x-none": None}
        )
    )
    first, second = Request("http://h/a"), Request("http://h/b")
    middleware.process_request(first)
    first.headers.appendlist("Accept", "text/plain")
    middleware.process_request(second)
    assert second.headers.to_unicode_dict() == {"Accept": "text/html", "User-Agent": "me/1"}


def test_keeps_what_a_request_says_itself(crawler_for: Callable[..., Crawler]) -> None:
    middleware = DefaultHeadersMiddleware.from_crawler(crawler_for(USER_AGENT="me/1"))
    request = Request("http://h/a", headers={"user-agent": "other"})
    middleware.process_request(request)
    assert request.headers.getlist("User-Agent") == [b"other"]


def test_a_spider_may_have_a_name_of_its_own(crawler_for: Callable[..., Crawler]) -> None:
    """As for Scrapy's UserAgentMiddleware: its attribute user_agent outranks the setting."""
    crawler = crawler_for(USER_AGENT="me/1")
    assert crawler.spider is not None
    crawler.spider.user_agent = "mine/2"  # type: ignore[attr-defined]
    request = Request("http://h/a")
    DefaultHeadersMiddleware.from_crawler(crawler).process_request(request)
    assert request.headers.getlist("User-Agent") == [b"mine/2"]
