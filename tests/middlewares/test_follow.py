"""larmspider/middlewares/follow.py: links that no filter rejected become Requests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler

from larmspider.items import Link, Page
from larmspider.middlewares.filter_middleware import SLICE
from larmspider.middlewares.follow import FollowMiddleware
from tests.support.crawling import FAST, records, scrapy
from tests.support.servers.scripted import Reply, ScriptedServer


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


# larmspider/middlewares/follow.py: when new links go past Scrapy's engine.


COUNTING = """
from larmspider.settings import *
from larmspider.middlewares.follow import FollowMiddleware
from scrapy import signals

class Follow(FollowMiddleware):
    def _request(self, link, page):
        self.counters.inc_value("test/requests")
        return super()._request(link, page)

SPIDER_MIDDLEWARES["larmspider.middlewares.follow.FollowMiddleware"] = None
SPIDER_MIDDLEWARES["settings_here.Follow"] = 610

class Listener:
    signal = signals.request_scheduled
    @classmethod
    def from_crawler(cls, crawler):
        one = cls()
        crawler.signals.connect(one.hear, signal=cls.signal)
        return one
    def hear(self):
        pass

class Dropped(Listener):
    signal = signals.request_dropped

class Below:
    async def process_spider_output(self, response, result):
        async for item in result:
            yield item
"""
LONG_WAYS = {
    "a receiver of request_scheduled": 'EXTENSIONS["settings_here.Listener"] = 1',
    "a receiver of request_dropped": 'EXTENSIONS["settings_here.Dropped"] = 1',
    "another middleware": 'SPIDER_MIDDLEWARES["settings_here.Below"] = 600',
    "no scope filter": 'SPIDER_MIDDLEWARES["larmspider.middlewares.scope.ScopeFilter"] = None',
    "Scrapy's scheduler": 'SCHEDULER = "scrapy.core.scheduler.Scheduler"\n'
    'DOWNLOADER = "scrapy.core.downloader.Downloader"',
}


def crawl(server: ScriptedServer, folder: Path, more: str) -> tuple[int, list[tuple[str, ...]]]:
    """The number of Requests made of links, and the stored pages with their referrers."""
    (folder / "settings_here.py").write_text(f"{COUNTING}\n{more}\n")
    options = [f"-s{name}={value}" for name, value in FAST.items()]
    ran = scrapy(
        *("crawl", "intranet", f"-astart={server.url('/')}", *options),
        cwd=folder,
        settings_module="settings_here",
    )
    assert ran.status == 0, ran.err
    found = re.search(r"'test/requests': (\d+)", ran.out + ran.err)
    count = int(found[1]) if found else 0
    wanted = ("url", "from-page", "link-type", "http-code")
    stored = records(folder / "crawl" / "store.log")
    return count, sorted(tuple(line[name] for name in wanted) for line in stored)


@pytest.fixture
def server(scripted_server: Callable[..., ScriptedServer]) -> ScriptedServer:
    return scripted_server(
        {
            "/": b"<a href=a>a</a> <a href=b#x>b</a> <a href=moved>m</a> <iframe src=c></iframe>",
            "/a": b"<a href=/d>d</a> <a href=/>home</a> <a href=http://127.9.9.9/>out</a>",
            "/b": b"<a href='/sp ace'>s</a>",
            "/c": b"c",
            "/d": b"d",
            "/moved": Reply(302, {"Location": "/target"}),
            "/target": b"t",
            "/sp%20ace": b"s",
        }
    )


def test_links_go_straight_into_the_frontier(server: ScriptedServer, tmp_path: Path) -> None:
    """No Request is made before a link's turn; depth, page of origin and type are kept."""
    count, stored = crawl(server, tmp_path, "")
    assert count == 0
    assert (server.url("/target"), server.url("/moved"), "2", "200") in stored
    assert len(stored) == 8


@pytest.mark.parametrize("name", LONG_WAYS)
def test_whoever_stands_on_the_long_way_is_not_passed_by(
    server: ScriptedServer, tmp_path: Path, name: str
) -> None:
    """And the same pages are stored, from the same pages."""
    (tmp_path / "long").mkdir()
    (tmp_path / "short").mkdir()
    count, stored = crawl(server, tmp_path / "long", LONG_WAYS[name])
    assert count >= 7
    if "scope" not in name:
        assert stored == crawl(server, tmp_path / "short", "")[1]
