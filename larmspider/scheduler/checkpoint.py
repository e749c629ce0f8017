"""A checkpoint for the scheduler: stores and frontier move together (extensions/checkpoint.py).

positions = scheduler.seal()           # event loop
scheduler.commit(positions)            # in any thread
await scheduler.discard()              # event loop
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from larmspider import signals
from larmspider.errors import ConfigError, CrawlDirError, LarmspiderError
from larmspider.frontier.storage.backend import Fenced

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.cluster.worker import Sharing
    from larmspider.frontier.frontier import Frontier


# The stores' positions: they name them at a checkpoint, and go back to them at the start.


class CheckpointError(LarmspiderError):
    """A store could not write; nothing was committed."""


def store_positions(crawler: Crawler) -> dict[str, bytes]:
    """Of every store, all of one moment. Raises CheckpointError if one cannot write."""
    positions = {}
    for receiver, result in crawler.signals.send_catch_log(signals.checkpoint):
        if not isinstance(result, tuple):
            error = getattr(result, "value", result)
            raise CheckpointError(f"{receiver_name(receiver)} cannot write: {error}")
        name, position = result
        positions[name] = position
    return positions


def recover_stores(crawler: Crawler, positions: Mapping[str, bytes]) -> None:
    """They drop what was written after these. Raises LarmspiderError: what a store raised."""
    results = crawler.signals.send_catch_log(
        signals.recovered, positions=positions, dont_log=LarmspiderError
    )
    names = [receiver_name(receiver) for receiver, _ in results]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(
            f"ITEM_PIPELINES has two stores called {twice[0]}, by which positions are kept:"
            " give one of the classes another name"
        )
    for receiver, result in results:
        if isinstance(result, Failure):
            error = result.value
            if isinstance(error, LarmspiderError):
                raise error
            raise CrawlDirError(
                f"{receiver_name(receiver)} cannot go back to its last commit: {error}"
            )


def receiver_name(receiver: Any) -> str:
    """The class behind a signal's receiver, for a message."""
    return type(getattr(receiver, "__self__", receiver)).__name__


class Commits:
    """This part of FrontierScheduler."""

    crawler: Crawler
    sharing: Sharing | None

    @property
    def frontier(self) -> Frontier:
        raise NotImplementedError

    def seal(self) -> dict[str, bytes]:
        """Let every store name its position, and end the frontier's batch at the same moment.

        Raises CheckpointError if a store cannot write; then nothing is cut.
        """
        positions = store_positions(self.crawler)
        self.frontier.seal()
        if self.sharing is not None:
            self.sharing.start_urls.seal()
        return positions

    def commit(self, positions: Mapping[str, bytes]) -> None:
        """As Frontier.commit(); in any thread."""
        try:
            self.frontier.commit(positions)
        except Fenced:
            assert self.sharing is not None
            self.sharing.fenced = True
            raise

    async def discard(self) -> None:
        """After a commit that went well, before the next one begins."""
        self.frontier.discard()
        if self.sharing is not None:
            await self.sharing.settled()

    @property
    def wants_checkpoint(self) -> bool:
        """Whether one is due before its time."""
        shared = self.sharing is not None and self.sharing.wants_checkpoint
        return shared or self.frontier.wants_checkpoint

    async def commit_last(self) -> None:
        """The whole of the last checkpoint; the stores' slow part must be done. Where Redis has to
        be waited for, the event loop goes on meanwhile."""
        positions = self.seal()
        if self.sharing is None:
            self.commit(positions)
        else:
            await asyncio.to_thread(self.commit, positions)
        self.frontier.discard()
