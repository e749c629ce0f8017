"""The checkpoint: every LARM_CHECKPOINT_SECS the stores and logs put what they hold on disk."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

from scrapy import signals
from twisted.python.failure import Failure

from larmspider import options, stats
from larmspider import signals as larm_signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class CheckpointExtension:
    """Sends the signal ``checkpoint`` at intervals, one at a time, and reports who failed."""

    def __init__(self, crawler: Crawler, interval: float) -> None:
        self.crawler = crawler
        self.interval = interval
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        interval = options.seconds(crawler.settings, "LARM_CHECKPOINT_SECS", minimum=0.1)
        extension = cls(crawler, interval)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def spider_closed(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.interval)
            await self.checkpoint()

    async def checkpoint(self) -> None:
        """Ask all receivers to flush and wait until they have."""
        results = await self.crawler.signals.send_catch_log_async(larm_signals.checkpoint)
        for receiver, result in results:
            if isinstance(result, (Failure, Exception)):
                logger.error("Checkpoint: %s failed: %s", receiver, result)
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(stats.CHECKPOINTS)
