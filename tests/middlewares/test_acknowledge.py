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
