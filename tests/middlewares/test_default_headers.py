"""larmspider/middlewares/default_headers.py: what every request says."""

from __future__ import annotations

from collections.abc import Callable

from scrapy import Request
from scrapy.crawler import Crawler

from larmspider.middlewares.default_headers import DefaultHeadersMiddleware


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
