"""The checkpoint: every LARM_CHECKPOINT_SECS stores and frontier are made durable at one moment.

    1. each store hands over its buffers and names its position; the frontier ends its batch
    2. files are synced and the index commits, while the crawl continues
    3. the frontier commits its batch and the positions in one transaction

After a crash the stores go back to the positions of 3, and URLs that were not acknowledged by then
are fetched again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Self

from scrapy import signals
from twisted.python.failure import Failure

from larmspider import options, stats
from larmspider import signals as larm_signals
from larmspider.errors import LarmspiderError
from larmspider.scheduler.checkpoint import CheckpointError, receiver_name, store_positions
from larmspider.scheduler.scheduler import FrontierScheduler, scheduler_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

LOST_SECS = 5.0
"""A lease that is held for 5 s while nothing is fetched or stored is lost."""
_TICK_SECS = 0.1
_REST_SECS = 0.001  # how often a checkpoint looks whether the stores are quiescent


class CheckpointExtension:
    """Takes checkpoints while the spider is open, one at a time."""

    def __init__(self, crawler: Crawler, interval: float) -> None:
        self.crawler = crawler
        self.interval = interval
        self._failure = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: asyncio.Task[None] | None = None  # the end does not cancel this one

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        interval = options.seconds(crawler.settings, "LARM_CHECKPOINT_SECS", minimum=0.1)
        extension = cls(crawler, interval)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._run()), loop.create_task(self._watch())]

    def spider_closed(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            end, due = loop.time() + self.interval, False
            while not due:  # a tick at least: no checkpoint is taken once the crawl closes
                await asyncio.sleep(min(_TICK_SECS, self.interval))
                due = loop.time() >= end or self._urgent()
            try:
                await self.checkpoint()
            except LarmspiderError as error:
                self._failure = str(error)
            except Exception as error:  # without this task nothing would ever be committed
                logger.critical("Error while taking a checkpoint", exc_info=True)
                self._failure = " ".join(f"{type(error).__name__}: {error}".split())
            if self._failure:
                self._broken()  # _watch() closes the crawl
                return

    def _urgent(self) -> bool:
        scheduler = self.crawler.engine.scheduler
        return isinstance(scheduler, FrontierScheduler) and scheduler.wants_checkpoint

    async def checkpoint(self) -> None:
        """Take a checkpoint. Raises LarmspiderError if something could not be written."""
        scheduler = self.crawler.engine.scheduler
        send = self.crawler.signals.send_catch_log_async
        if not isinstance(scheduler, FrontierScheduler):
            positions = store_positions(self.crawler)
            await send(larm_signals.commit)
            self.crawler.signals.send_catch_log(larm_signals.committed, positions=positions)
        else:
            async with scheduler.checkpointing:
                await self._quiesce(scheduler)
                if scheduler.closed or scheduler.broken:
                    return
                positions = scheduler.seal()
                for receiver, result in await send(larm_signals.commit):
                    if isinstance(result, (Failure, Exception)):
                        error = getattr(result, "value", result)
                        raise CheckpointError(f"{receiver_name(receiver)} cannot write: {error}")
                if scheduler.broken:
                    return
                await asyncio.to_thread(scheduler.commit, positions)
                await scheduler.discard(positions)
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(stats.CHECKPOINTS)

    async def _quiesce(self, scheduler: FrontierScheduler) -> None:
        """Wait until no page is between the first store and its acknowledgement; further pages wait
        before the first store."""
        scheduler.gate.clear()
        try:
            while (slot := self.crawler.engine.scraper.slot) and slot.itemproc_size:
                await asyncio.sleep(_REST_SECS)
        finally:
            scheduler.gate.set()

    async def _break_off(self, reason: str) -> None:
        logger.critical("The crawl stops because of an error: %s", reason)
        await self.crawler.engine.close_spider_async(reason="broken")

    def _broken(self) -> str:
        """Why the crawl has to stop; "" while it can continue."""
        scheduler = self.crawler.engine.scheduler
        if not isinstance(scheduler, FrontierScheduler):
            return self._failure
        scheduler.break_off(self._failure)
        return scheduler.broken

    async def _watch(self) -> None:
        """Stop the crawl when a store is broken; end lost leases."""
        loop = asyncio.get_running_loop()
        alive = loop.time()
        while True:
            await asyncio.sleep(_TICK_SECS)
            scheduler = scheduler_of(self.crawler)
            if scheduler is None or not scheduler.lost():
                alive = loop.time()
            elif loop.time() > alive + LOST_SECS:
                scheduler.end_lost()
            if self._closing is None and (broken := self._broken()):
                self._closing = loop.create_task(self._break_off(broken))
