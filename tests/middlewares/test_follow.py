"""larmspider/middlewares/follow.py: links that no filter rejected become Requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from scrapy import Request
from scrapy.crawler import Crawler

from larmspider.items import Link, Page
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
    urls = ["mailto:a@b", "http://h/a", "tel:1", "", "no url"]
    page = Page("http://h/", links=[Link(url) for url in urls])
    found = asyncio.run(_all(follow.process_spider_output(None, _each([page]))))
    assert [item.url for item in found] == ["http://h/a", "http://h/"]


def test_a_seed_without_a_host_is_no_error(crawler_for: Callable[..., Crawler]) -> None:
    """Scrapy's own schemes have none."""
    follow = FollowMiddleware.from_crawler(crawler_for())
    seeds = [Request("data:,x"), Request("http://h/")]
    assert asyncio.run(_all(follow.process_start(_each(seeds)))) == seeds
