"""larmspider/middlewares/acknowledge.py: a lease ends with its own Request's output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response
from twisted.python.failure import Failure

from larmspider.frontier.ending import Ending, GiveBack, LookAgain, Merge
from larmspider.frontier.hosts import Host, HostPace, HostRecord, Lease
from larmspider.frontier.storage.records import (
    Counts,
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    url_key,
)
from larmspider.items import Page
from larmspider.middlewares.acknowledge import AcknowledgeMiddleware
from larmspider.middlewares.default_headers import DefaultHeadersMiddleware
from larmspider.requests import LEASE, page_request
from larmspider.scheduler.scheduler import FrontierScheduler

OTHER, URL = "http://127.0.0.1/", "http://127.0.0.1/a"
ENTRY = QueuedUrl(URL, URL, url_key(URL), "127.0.0.1:80", exact=URL)
MERGE = Merge(Page(URL), "same page", MergedUrl(ENTRY, 1, url_key(OTHER)))
STATES = ("queued", "leased", "stored", "failed", "refused", "merged")


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


@pytest.mark.parametrize(
    ("ending", "states"),
    [
        (None, {"stored": 2}),
        (GiveBack(), {"queued": 1, "stored": 1}),
        (LookAgain(60.0), {"queued": 1, "stored": 1}),
        (MERGE, {"stored": 1, "merged": 1}),
    ],
)
def test_a_fetch_ends_as_the_reader_of_its_response_says(
    crawler_for: Callable[..., Crawler], ending: Ending | None, states: dict[str, int]
) -> None:
    """Else the URL is stored; here the spider yields nothing."""
    counts = ended(crawler_for, ending)
    assert {name: getattr(counts, name) for name in STATES if getattr(counts, name)} == states


def test_a_page_that_is_merged_has_failed_if_its_spider_raises(
    crawler_for: Callable[..., Crawler],
) -> None:
    assert ended(crawler_for, MERGE, ValueError("no")).failed == 1


def ended(
    crawler_for: Callable[..., Crawler],
    ending: Ending | None,
    error: Exception | None = None,
) -> Counts:
    """The counts of a crawl of two pages; the spider has ended or raised at the second one."""

    async def output() -> AsyncIterator[Any]:
        for item in ():
            yield item

    async def run() -> Counts:
        settings: dict[str, Any] = {
            "ROBOTSTXT_OBEY": False,
            "LARM_SITEMAPS": False,
            "DOWNLOAD_DELAY": 0,
        }
        settings |= {"CONCURRENT_REQUESTS_PER_DOMAIN": 2, "LARM_CANONICAL_RULES": "never"}
        crawler = crawler_for(**settings)
        scheduler = FrontierScheduler(crawler)
        crawler.engine = SimpleNamespace(scheduler=scheduler, downloader=None)
        scheduler.open(crawler.spider)
        for url in (OTHER, URL):
            scheduler.enqueue_request(page_request(crawler.spider, url))
        first, request = scheduler.next_request(), scheduler.next_request()
        assert first is not None
        assert request is not None
        visit = FetchRecord(UrlState.STORED, time=1.0, status=200)
        scheduler.leases.acknowledge(first, visit)
        request.meta[LEASE].ending = ending
        middleware, response = AcknowledgeMiddleware(crawler), Response(URL, request=request)
        if error is None:
            async for _ in middleware.process_spider_output(response, output()):
                pass
        else:
            middleware.spider_error(response, Failure(error))
        counts = scheduler.frontier.backend.counts()
        await scheduler.close_async("finished")
        return counts

    return asyncio.run(run())


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
