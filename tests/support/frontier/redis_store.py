"""A Redis that backends of several workers share, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path
from typing import Any

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.shared_backend import RedisBackend

_crawls = count(1)


class Killed(BaseException):
    """Ends a worker in the tests: none of its code runs any more."""


class DyingLink(RedisLink):
    """Sends one command at a time, and dies instead of sending one more than ``lives``."""

    lives = 1_000_000

    def _send(self, commands: Any) -> list[Any]:
        answers = []
        for command in commands:
            if self.lives <= 0:
                raise Killed
            self.lives -= 1
            answers += super()._send([command])
        return answers


class WatchedLink(RedisLink):
    """Sends one command at a time; after the command number ``moment`` something ``happens``."""

    moment = sent = 0
    happens: Callable[[], object] = staticmethod(lambda: None)

    def _send(self, commands: Any) -> list[Any]:
        answers = []
        for command in commands:
            answers += super()._send([command])
            self.sent += 1
            if self.sent == self.moment:
                self.happens()
        return answers


_IMAGE = """
local image = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  table.insert(image, key)
  table.insert(image, redis.call('DUMP', key))
end
return image
"""
_BACK = """
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  redis.call('DEL', key)
end
for at = 2, #ARGV, 2 do
  redis.call('RESTORE', ARGV[at], 0, ARGV[at + 1])
end
"""


class RewindingLink(DyingLink):
    """Notes what the crawl of ``prefix`` in Redis is before each command. Before command ``at``
    Redis goes back to what it was before command ``to``."""

    prefix = ""
    at = to = 0

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.images: list[list[bytes]] = []

    def note(self) -> None:
        self.images.append(self.client.eval(_IMAGE, 0, f"{self.prefix}:*"))

    def go_back(self, to: int) -> None:
        self.client.eval(_BACK, 0, f"{self.prefix}:*", *self.images[to])

    def _send(self, commands: Any) -> list[Any]:
        answers = []
        for command in commands:
            if self.prefix:
                self.note()
                if len(self.images) == self.at + 1:
                    self.go_back(self.to)
            answers += super()._send([command])
        return answers


class RedisStore:
    """A crawl of its own in ``client``'s server; worker w1, alone, unless another is named."""

    def __init__(self, client: Any, path: Path, *, blocks: int = 8, **options: Any) -> None:
        self.client, self.path, self.options = client, path, options
        self._opened: list[RedisBackend] = []
        self.keys = Keys(f"crawl{next(_crawls)}", blocks)

    def link(self, kind: type[RedisLink] = RedisLink) -> RedisLink:
        link = kind(self.client, "test")
        link.check()
        return link

    def open(self, worker: str = "w1", **options: Any) -> RedisBackend:
        folder = self.path / worker / "frontier"
        options = self.options | options
        link = options.pop("link", None) or self.link()
        backend = RedisBackend(folder, link, self.keys, worker=worker, **options)
        self._opened.append(backend)
        return backend

    def close(self) -> None:
        """Whatever a test left open."""
        for backend in self._opened:
            backend.close()

    def crash(self, backend: RedisBackend) -> None:
        backend.close()

    # several workers, as the membership has them

    def join(self, worker: str, blocks: Iterable[int] = (), **options: Any) -> RedisBackend:
        """A worker among others, recovered, that owns these blocks."""
        epoch = self.client.incr(self.keys.crawl("token"))
        self.client.hset(self.keys.crawl("workers"), worker, f"{epoch} 9999999999999")
        backend = self.open(worker, epoch=epoch, **options)
        backend.recover()
        self.assign(backend, blocks)
        return backend

    def assign(self, backend: RedisBackend, blocks: Iterable[int]) -> list[str]:
        """Blocks become this worker's: the hosts that they have."""
        tokens = {block: self.client.incr(self.keys.crawl("token")) for block in blocks}
        return backend.take(backend.load(tokens))

    def fence(self, worker: str) -> None:
        """Its lease has run out."""
        self.client.hdel(self.keys.crawl("workers"), worker)
