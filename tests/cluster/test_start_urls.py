"""larmspider/cluster/start_urls.py: many seeds at once, and each out of Redis only when
it is committed."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from larmspider.cluster import start_urls as scheduler_start_urls
from larmspider.cluster.start_urls import StartUrls

KEY = "intranet:start_urls"
AT_ONCE, SLICE = 50, 20


class Waiting:
    """A key of one kind, filled by somebody else, and what was queued from it."""

    def __init__(self, client, kind):
        self.client, self.kind = client, kind
        self.owned, self.queued = {0}, []
        engine = SimpleNamespace(
            crawl=lambda request: self.queued.append(request.url),
            scraper=SimpleNamespace(spidermw=SimpleNamespace(methods={"process_start": []})),
        )
        settings = Settings({"REDIS_START_URLS_KEY": "%(name)s:start_urls"})
        settings.set("REDIS_START_URLS_AS_SET", kind == "set")
        settings.set("REDIS_START_URLS_AS_ZSET", kind == "zset")
        crawler = SimpleNamespace(spider=Spider("intranet"), settings=settings, engine=engine)
        self.seeds = StartUrls(client, crawler)

    def push(self, *urls, head=False):
        if self.kind == "list":
            (self.client.lpush if head else self.client.rpush)(KEY, *urls)
        elif self.kind == "set":
            self.client.sadd(KEY, *urls)
        else:
            self.client.zadd(KEY, {url: (n if head else -n) for n, url in enumerate(urls)})

    @property
    def left(self):
        """In Redis."""
        if self.kind == "list":
            found = self.client.lrange(KEY, 0, -1)
        elif self.kind == "set":
            found = self.client.smembers(KEY)
        else:
            found = self.client.zrange(KEY, 0, -1)
        return {url.decode() for url in found}

    def commit(self):
        """A checkpoint."""
        self.seeds.seal()
        asyncio.run(self.seeds.committed())

    def read(self, times=1):
        """So many ticks; each queues a slice."""
        for _ in range(times):
            asyncio.run(self.seeds.read(mine=0 in self.owned))


@pytest.fixture(params=["list", "set", "zset"])
def waiting(request, redis_server, monkeypatch):
    monkeypatch.setattr(scheduler_start_urls, "CHECKPOINT_AT", AT_ONCE)
    monkeypatch.setattr(scheduler_start_urls, "SLICE", SLICE)
    return Waiting(redis_server().client(), request.param)


def urls(*numbers):
    return [f"http://wiki/{number}" for number in numbers]


def test_as_many_as_a_commit_holds_are_read_at_once_and_then_it_is_due(waiting):
    """In slices, so that the crawl goes on; the next ones follow without a wait."""
    every = set(urls(*range(120)))
    waiting.push(*sorted(every))
    for queued in (20, 40):
        waiting.read()
        assert len(waiting.queued) == queued
        assert not waiting.seeds.wants_checkpoint
    waiting.read()
    assert len(waiting.queued) == AT_ONCE
    assert waiting.seeds.wants_checkpoint
    waiting.read(3)
    assert len(waiting.queued) == AT_ONCE, "no more are kept in memory"
    waiting.commit()
    assert not waiting.seeds.wants_checkpoint
    waiting.read(3)
    assert len(waiting.queued) == 2 * AT_ONCE
    waiting.commit()
    waiting.read(2)
    assert not waiting.seeds.wants_checkpoint, "the last ones wait for the time that is set"
    waiting.commit()
    assert waiting.left == set()
    assert set(waiting.queued) == every
    assert len(waiting.queued) == len(every)


def test_what_is_not_committed_stays_in_redis(waiting):
    """A commit in the middle takes out what was queued by then, whatever was pushed meanwhile."""
    every = set(urls(*range(45)))
    waiting.push(*sorted(every))
    waiting.read()
    assert waiting.left == every
    waiting.push(*urls(901), head=True)
    waiting.push(*urls(902))
    waiting.commit()
    gone = set(waiting.queued)
    assert len(gone) == SLICE
    assert waiting.left == every - gone | set(urls(901, 902))
    waiting.read(2)
    waiting.commit()
    assert waiting.left == set(urls(901, 902))


def test_the_next_owner_finds_what_this_one_has_not_queued(waiting):
    """The block leaves while seeds that were read wait for their slice."""
    waiting.push(*urls(*range(45)))
    waiting.read()
    waiting.owned.clear()
    waiting.read(3)
    assert len(waiting.queued) == SLICE
    waiting.commit()
    assert len(waiting.left) == 45 - SLICE
