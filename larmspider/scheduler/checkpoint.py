"""A checkpoint for the scheduler: stores and frontier move together (extensions/checkpoint.py).

positions = scheduler.cut()            # event loop
scheduler.commit(positions)            # in any thread
await scheduler.settle()               # event loop
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from larmspider.frontier.storage.backend import Fenced
from larmspider.scheduler.scheduler_stores import store_positions

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.cluster.worker import Sharing
    from larmspider.frontier.frontier import Frontier


class Commits:
    """This part of FrontierScheduler."""

    crawler: Crawler
    sharing: Sharing | None

    @property
    def frontier(self) -> Frontier:
        raise NotImplementedError

    def cut(self) -> dict[str, bytes]:
        """Let every store name its position, and end the frontier's batch at the same moment.

        Raises CheckpointError if a store cannot write; then nothing is cut.
        """
        positions = store_positions(self.crawler)
        self.frontier.cut()
        if self.sharing is not None:
            self.sharing.start_urls.cut()
        return positions

    def commit(self, positions: Mapping[str, bytes]) -> None:
        """As Frontier.commit(); in any thread."""
        try:
            self.frontier.commit(positions)
        except Fenced:
            assert self.sharing is not None
            self.sharing.fenced = True
            raise

    async def settle(self) -> None:
        """After a commit that went well, before the next one begins."""
        self.frontier.settle()
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
        positions = self.cut()
        if self.sharing is None:
            self.commit(positions)
        else:
            await asyncio.to_thread(self.commit, positions)
        self.frontier.settle()
