"""Seeds that clients push to Redis while the crawl runs, under scrapy-redis's key and settings.

    redis-cli rpush intranet:start_urls http://wiki/new http://docs/
    redis-cli rpush intranet:start_urls '{"url": "http://wiki/new"}'

The owner of partition 0 reads them, at most one commit's changes at once, and queues them a slice
at a time. They pass the filters like the spider's own seeds, and leave Redis once they are
committed. If more seeds wait, a checkpoint comes as soon as these are queued.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import redis
from scrapy import Request
from scrapy_redis import defaults

from larmspider.cluster.redis_client import SEEDS
from larmspider.errors import ConfigError
from larmspider.frontier.frontier import CHECKPOINT_AT
from larmspider.requests import page_request
from larmspider.urls.seeds import read_seeds

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


T = TypeVar("T")

READ_SECS = 1.0
SLICE = 1000
"""Seeds that are queued before the crawl does something else: 0.2 s."""
_READ = {
    "list": lambda client, key: client.lrange(key, 0, CHECKPOINT_AT - 1),
    "set": lambda client, key: client.srandmember(key, CHECKPOINT_AT),
    "zset": lambda client, key: client.zrevrange(key, 0, CHECKPOINT_AT - 1),
}
_REMOVE = {"list": "LREM", "set": "SREM", "zset": "ZREM"}
_LENGTH = {"list": "llen", "set": "scard", "zset": "zcard"}
_NAME = {"list": "list", "set": "set", "zset": "sorted set"}


class StartUrls:
    """REDIS_START_URLS_KEY, REDIS_START_URLS_AS_SET, REDIS_START_URLS_AS_ZSET."""

    def __init__(self, client: Any, crawler: Crawler) -> None:
        self._client, self._crawler = client, crawler
        settings = crawler.settings
        assert crawler.spider is not None
        key = str(settings.get("REDIS_START_URLS_KEY") or defaults.START_URLS_KEY)
        self.key = key % {"name": crawler.spider.name}
        as_set = settings.getbool("REDIS_START_URLS_AS_SET")
        as_zset = settings.getbool("REDIS_START_URLS_AS_ZSET")
        self._kind = "set" if as_set else "zset" if as_zset else "list"
        self._read: list[bytes] = []  # not queued yet
        self._full = False  # the last read reached its limit
        self._queued: list[bytes] = []  # since the last batch was sealed
        self._sealed: list[bytes] = []
        self._next = 0.0
        self._warned = False
        self._take_out = client.register_script(SEEDS.text)

    async def waiting(self) -> int:
        """How many seeds there are. Raises redis.RedisError."""
        return await self._ask(getattr(self._client, _LENGTH[self._kind]), self.key, otherwise=0)

    @property
    def wants_checkpoint(self) -> bool:
        """Whether a checkpoint allows more to be read: all read seeds are queued, and there may be
        others."""
        return self._full and bool(self._queued) and not self._read

    async def read(self, *, mine: bool) -> None:
        """Queue the next seeds. ``mine``: whether this worker is the one that reads seeds."""
        if not mine:
            self._read = []  # they are in Redis, for the next owner
            return
        loop = asyncio.get_running_loop()
        if not self._read:
            if loop.time() < self._next or self._queued or self._sealed:
                return
            self._next = loop.time() + READ_SECS
            self._read = list(
                await self._ask(_READ[self._kind], self._client, self.key, otherwise=())
            )
            self._full = len(self._read) == CHECKPOINT_AT
        if self._read:
            await self._queue_slice()

    async def _queue_slice(self) -> None:
        values, self._read = self._read[:SLICE], self._read[SLICE:]
        requests = [request async for request in self._filtered(values)]
        for request in requests:
            self._crawler.engine.crawl(request)
        self._queued += values
        logger.info("%d seeds of %s: %d are queued", len(values), self.key, len(requests))

    async def _ask(self, ask: Callable[..., T], *arguments: Any, otherwise: T) -> T:
        """Ask Redis in a thread. Returns ``otherwise`` if the key has another type. Any client that
        may push seeds can cause that, and it must not keep the crawl from ending."""
        try:
            answer = await asyncio.to_thread(ask, *arguments)
        except redis.ResponseError as error:
            if not str(error).startswith("WRONGTYPE"):
                raise
            if not self._warned:
                logger.warning(
                    "%s holds no %s, and nothing is read from it: REDIS_START_URLS_AS_SET and"
                    " REDIS_START_URLS_AS_ZSET say what it is",
                    self.key,
                    _NAME[self._kind],
                )
            self._warned = True
            return otherwise
        self._warned = False
        return answer

    async def _filtered(self, values: Sequence[bytes]) -> AsyncIterator[Request]:
        stream = self._requests(values)
        for method in self._crawler.engine.scraper.spidermw.methods["process_start"]:
            if method is not None:
                stream = method(stream)
        async for item in stream:
            if isinstance(item, Request):
                yield item

    async def _requests(self, values: Sequence[bytes]) -> AsyncIterator[Request]:
        assert self._crawler.spider is not None
        for value in values:
            try:
                urls = read_seeds(_url(value))
            except (ConfigError, ValueError, RecursionError) as error:  # the last by deep JSON
                logger.warning("%s: a value is not a seed: %s", self.key, error)
                continue
            for url in urls:
                yield page_request(self._crawler.spider, url)

    def seal(self) -> None:
        """End the batch that holds the seeds queued so far."""
        self._sealed, self._queued = self._queued, []

    async def committed(self, record: bytes, serial: int) -> None:
        """Remove the queued seeds from Redis, by value: others may have pushed more to either end.
        If the serial of the commit ``record`` is below ``serial``, Redis has lost the commit: the
        seeds stay, and are read again."""
        if self._sealed:
            await asyncio.to_thread(self._remove, self._sealed, record, serial)
            self._sealed = []
            self._next = 0.0

    def _remove(self, values: Sequence[bytes], record: bytes, serial: int) -> None:
        keys = [self.key, record]
        for start in range(0, len(values), SLICE):
            some = values[start : start + SLICE]
            self._take_out(keys=keys, args=[serial, _REMOVE[self._kind], *some])


def _url(value: bytes) -> str:
    """Plain, or in the JSON that scrapy-redis wants now. Raises ValueError."""
    url = value.decode("utf-8").strip()
    if url.startswith("{"):
        url = json.loads(url).get("url")
    if not isinstance(url, str) or not url.strip():
        raise ValueError("it holds no url")
    if url.strip().startswith("@"):
        raise ValueError("a pushed seed cannot name a file")
    return url
