"""larmspider/middlewares/follow.py: links that no filter rejected become Requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler

from larmspider.items import Link, Page
from larmspider.middlewares.filter_middleware import SLICE
from larmspider.middlewares.follow import FollowMiddleware


async def _each(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


async def _all(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


def test_what_cannot_be_fetched_is_left_out_without_a_filter(
    crawler_for: Callable[..., Crawler],
) -> None:
    """NormalizeFilter, which rejects these, may not be in the chain."""
    follow = FollowMiddleware.from_crawler(crawler_for())
    follow.passes_engine = True
    urls = ["mailto:a@b", "http://h/a", "tel:1", "", "no url"]
    page = Page("http://h/", links=[Link(url) for url in urls])
    found = asyncio.run(_all(follow.process_spider_output(None, _each([page]))))
    assert [item.url for item in found] == ["http://h/a", "http://h/"]


def test_a_seed_without_a_host_is_no_error(crawler_for: Callable[..., Crawler]) -> None:
    """Scrapy's own schemes have none."""
    follow = FollowMiddleware.from_crawler(crawler_for())
    seeds = [Request("data:,x"), Request("http://h/")]
    assert asyncio.run(_all(follow.process_start(_each(seeds)))) == seeds


def test_a_page_of_very_many_links_lets_others_go_on(crawler_for: Callable[..., Crawler]) -> None:
    """Between slices; 100,000 different links would take most of a second."""
    follow = FollowMiddleware.from_crawler(crawler_for())
    queued: list[int] = []
    turns: list[int] = []

    def enqueue(links: list[Link], page: Page) -> None:
        queued.append(len(links))

    async def others() -> None:
        while True:
            turns.append(sum(queued))
            await asyncio.sleep(0)

    async def both() -> None:
        other = asyncio.ensure_future(others())
        links = [Link(f"http://h/{n}", f"http://h/{n}") for n in range(3 * SLICE)]
        await _all(follow.process_spider_output(None, _each([Page("http://h/", links=links)])))
        other.cancel()

    follow.passes_engine = False
    follow.enqueue = enqueue
    asyncio.run(both())
    assert queued == [SLICE] * 3
    assert {SLICE, 2 * SLICE} <= set(turns)
