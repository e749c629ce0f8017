"""larmspider/middlewares/filter_middleware.py: a filter over Pages, Requests and seeds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector
from scrapy.utils.test import get_crawler

from larmspider import stats
from larmspider.items import Link, Page
from larmspider.middlewares.filter_middleware import MAX_ERRORS_LOGGED, FilterMiddleware
from larmspider.middlewares.normalize import NormalizeFilter
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.requests import page_request
from larmspider.urls.normalizer import forms_from_settings

RESPONSE = Response("http://h/start", request=Request("http://h/start", meta={"depth": 2}))


class NoPrivate(UrlFilter):
    name = "no-private"

    def reject_reason(self, url: str) -> str | None:
        if "explode" in url:
            raise ZeroDivisionError("boom")
        return "private" if "/private/" in url else None


@pytest.fixture
def counters() -> MemoryStatsCollector:
    return MemoryStatsCollector(get_crawler())


@pytest.fixture
def middleware(counters: MemoryStatsCollector) -> FilterMiddleware:
    return FilterMiddleware(NoPrivate(), counters, forms_from_settings(Settings()))


def spider_output(middleware: FilterMiddleware, items: Iterable[Any]) -> list[Any]:
    async def source() -> AsyncIterator[Any]:
        for item in items:
            yield item

    async def run() -> list[Any]:
        return [item async for item in middleware.process_spider_output(RESPONSE, source())]

    return asyncio.run(run())


def test_marks_the_links_of_a_page_and_keeps_them(middleware: FilterMiddleware) -> None:
    """The link log needs rejected links too; the mark keeps them out of the queue."""
    page = Page("http://h/", links=[Link("http://h/a"), Link("http://H/Private/b")])
    assert spider_output(middleware, [page]) == [page]
    assert [(link.normalized, link.rejected_by) for link in page.links] == [
        ("http://h/a", None),
        ("http://h/private/b", "no-private"),
    ]


def test_leaves_links_alone_that_another_filter_rejected(middleware: FilterMiddleware) -> None:
    """The first filter's verdict stands and is counted once."""
    page = Page("http://h/", links=[Link("http://h/private/", rejected_by="scope")])
    spider_output(middleware, [page])
    assert page.links[0].rejected_by == "scope"


def test_drops_plain_requests(middleware: FilterMiddleware) -> None:
    """A foreign spider's Requests pass or go no further; items of other kinds pass."""
    good, bad, item = Request("http://h/x"), Request("http://h/private/"), {"a": 1}
    assert spider_output(middleware, [good, bad, item]) == [good, item]
    assert good.meta["normalized"] == "http://h/x"


def test_a_plain_request_is_a_step_from_its_page(middleware: FilterMiddleware) -> None:
    """As under Scrapy's DepthMiddleware, whatever meta it was made with, and however many filters
    see it; a Request that page_request() made of a link of that page knows better."""
    plain, copied = Request("http://h/x"), Request("http://h/y", meta=RESPONSE.meta)
    link = page_request(Spider("test"), "http://h/z", from_page="http://h/start", depth=2)
    for _ in range(2):
        spider_output(middleware, [plain, copied, link])
    assert [request.meta["depth"] for request in (plain, copied, link)] == [3, 3, 2]


def test_drops_seeds(middleware: FilterMiddleware) -> None:
    """Seeds are filtered like links."""

    async def seeds() -> AsyncIterator[Any]:
        yield Request("http://h/private/")
        yield Request("http://h/")

    async def run() -> list[str]:
        return [request.url async for request in middleware.process_start(seeds())]

    assert asyncio.run(run()) == ["http://h/"]


def test_a_filter_that_raises_rejects(
    middleware: FilterMiddleware, counters: MemoryStatsCollector, caplog: pytest.LogCaptureFixture
) -> None:
    """Fail closed: the URL is rejected, counted twice, and the error is logged with the URL."""
    page = Page("http://h/", links=[Link("http://h/explode"), Link("http://h/b")])
    assert spider_output(middleware, [page, Request("http://h/explode")]) == [page]
    assert [link.rejected_by for link in page.links] == ["no-private", None]
    assert counters.get_value(stats.filter_errors("no-private")) == 2
    assert counters.get_value(stats.filter_rejected("no-private")) == 2
    assert "http://h/explode" in caplog.text


def test_a_filter_that_always_raises_does_not_fill_the_log(
    middleware: FilterMiddleware, caplog: pytest.LogCaptureFixture
) -> None:
    """A traceback for the first, a line for some more, and the count for all."""
    page = Page("http://h/", links=[Link(f"http://h/explode/{n}") for n in range(1000)])
    spider_output(middleware, [page])
    assert {link.rejected_by for link in page.links} == {"no-private"}
    assert len(caplog.records) == MAX_ERRORS_LOGGED
    assert caplog.text.count("Traceback") == 1
    assert "ZeroDivisionError('boom') on http://h/explode/98;" in caplog.text
    assert caplog.text.endswith("; further ones are only counted\n")
    assert middleware.counters.get_value(stats.filter_errors("no-private")) == 1000


def test_the_log_is_named_for_the_class(crawler_for: Callable[..., Crawler]) -> None:
    """Its name ends in Filter.log whatever the class is called: so it is known for a crawl's."""
    for cls, name in ((NoPrivate, "NoPrivateFilter.log"), (NormalizeFilter, "NormalizeFilter.log")):
        crawler = crawler_for(LARM_FILTER_LOGS=True)
        middleware = cls.from_crawler(crawler)
        middleware.spider_opened()
        middleware.spider_closed()
        assert (Path(crawler.settings["LARM_DIR"]) / name).exists()


@pytest.mark.parametrize("url", ["mailto:a@b", "http://[", "ftp://h/", "", "\ud800"])
def test_a_link_without_canonical_form_is_rejected(middleware: FilterMiddleware, url: str) -> None:
    """Whatever stands in a page, the chain does not raise."""
    page = Page("http://h/", links=[Link(url)])
    spider_output(middleware, [page])
    assert page.links[0].rejected_by == "no-private"
    assert page.links[0].normalized is None


class Short(UrlFilter):
    """One that forgets the last link of a batch."""

    name = "short"

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        return [None for _ in links[1:]]


class NoVerdicts(UrlFilter):
    name = "short"

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        return None  # type: ignore[return-value]  # a "return" that was forgotten


@pytest.mark.parametrize("rule", [Short(), NoVerdicts()])
def test_a_filter_with_too_few_verdicts_rejects(
    counters: MemoryStatsCollector, rule: UrlFilter
) -> None:
    """Whichever link it forgot, none passes unasked."""
    middleware = FilterMiddleware(rule, counters, forms_from_settings(Settings()))
    page = Page("http://h/", links=[Link("http://h/a"), Link("http://h/b")])
    spider_output(middleware, [page])
    assert [link.rejected_by for link in page.links] == ["short", "short"]


class Counts(UrlFilter):
    """Rejects all, and counts how often it was asked."""

    name = "counts"

    def __init__(self) -> None:
        self.times = 0

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        self.times += 1
        return ["never"] * len(links)


def test_no_filter_is_asked_about_no_links(counters: MemoryStatsCollector) -> None:
    """On most pages of a site the first filters reject every link."""
    forms = forms_from_settings(Settings())
    row = [FilterMiddleware(Counts(), counters, forms) for _ in range(3)]
    row[-1]._row = row
    spider_output(row[-1], [Page("http://h/", links=[Link("http://h/a")]), Page("http://h/b")])
    assert [one.filter.times for one in row] == [1, 0, 0]  # type: ignore[attr-defined]


class Adds:
    """A component of another project, between two filters: it has a link of its own to add."""

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        async for page in result:
            page.links[-1] = Link("http://h/private/added")
            yield page


class Asked(UrlFilter):
    """Rejects ``name`` and remembers what it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]
        self.asked: list[str] = []

    def reject_reason(self, url: str) -> str | None:
        self.asked.append(url.rpartition("/")[2])
        return "said so" if url.endswith(self.name) else None


@pytest.mark.parametrize("between", [False, True])
def test_a_filter_sees_what_is_left(crawler_for: Callable[..., Crawler], between: bool) -> None:
    """Links that the filter right before it let pass, or the page's links after others saw it."""
    crawler = crawler_for()
    filters = [Asked("a"), Asked("b"), Asked("private/added"), Asked("none")]
    chain: list[Any] = [FilterMiddleware.from_filter(one, crawler) for one in filters]
    if between:
        chain.insert(2, Adds())
    manager = SimpleNamespace(middlewares=tuple(chain[::-1]))
    methods = deque(one.process_spider_output for one in chain)
    manager.methods = {"process_spider_output": methods}
    engine = SimpleNamespace(scraper=SimpleNamespace(spidermw=manager))
    crawler.engine = engine  # type: ignore[assignment]
    for one in chain:
        if isinstance(one, FilterMiddleware):
            one.stand_in_row()
    assert sum(method is not None for method in methods) == (3 if between else 1)

    async def run(page: Page) -> None:
        async def source() -> AsyncIterator[Any]:
            yield page

        found = source()
        for method in filter(None, methods):
            found = method(RESPONSE, found)
        assert [item async for item in found] == [page]

    asyncio.run(run(Page("http://h/", links=[Link(f"http://h/{name}") for name in "abcd"])))
    assert [one.asked for one in filters] == (
        [[*"abcd"], [*"bcd"], ["c", "added"], ["c"]]
        if between
        else [[*"abcd"], [*"bcd"], ["c", "d"], ["c", "d"]]
    )
