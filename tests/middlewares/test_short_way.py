"""larmspider/middlewares/follow.py: when new links go past Scrapy's engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import FAST, records, scrapy
from tests.support.servers.scripted import Reply, ScriptedServer

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
    """How many Requests were made of links; what was stored, with where it came from."""
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
