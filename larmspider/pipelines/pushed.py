"""Ends the orders of pushed documents once every store has them (workdir/pushed.py).

The last store of a push collection. Its position is the list of orders that this checkpoint ends:
after a crash the next run ends the same ones, so that no document is stored twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

import msgpack

from larmspider import options
from larmspider.items import Page, Removed
from larmspider.pipelines.store import Store
from larmspider.workdir.pushed import FILES, Done, Pushed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class PushedPipeline(Store):
    """``numbers``: the orders under way, by the exact form of their URL; each is popped as it
    ends."""

    files = FILES

    def __init__(self, directory: Path, numbers: Callable[[], MutableMapping[str, int]]) -> None:
        self.directory, self._numbers = directory, numbers
        self._done: list[Done] = []
        self._pushed: Pushed | None = None

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        nothing: dict[str, int] = {}
        return cls(
            options.larm_dir(crawler.settings), lambda: getattr(crawler.spider, "numbers", nothing)
        )

    def open_spider(self) -> None:
        self._pushed = Pushed.open(self.directory)

    def write(self, page: Page) -> None:
        if number := self._numbers().pop(page.name, 0):
            self._done.append(Done(number, page.unread or ("noindex" if page.noindex else "")))

    def remove(self, removed: Removed) -> None:
        number = self._numbers().pop(removed.exact, 0)
        self._done.append(Done(number or removed.exact))

    def ended(self, done: Done) -> None:
        """End an order whose document no store has."""
        self._done.append(done)

    def flush(self) -> bytes:
        if self._pushed is None:
            return b""
        packed: bytes = msgpack.packb([self._pushed.id, self._done])
        return packed

    def recover(self, position: bytes) -> None:
        pushed = Pushed.found(self.directory) if position else None
        if pushed is not None:
            with pushed:
                of, done = msgpack.unpackb(position)
                if of == pushed.id:
                    pushed.done([Done(*one) for one in done])

    def committed(self, positions: Mapping[str, bytes]) -> None:
        position = positions.get(type(self).__name__)
        if self._pushed is not None and position:
            done = [Done(*one) for one in msgpack.unpackb(position)[1]]
            self._pushed.done(done)
            del self._done[: len(done)]
