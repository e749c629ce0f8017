"""PageRank while the crawl runs: links are gathered page by page, ranks computed at intervals.

Off unless LARM_STRATEGY is pagerank. Ranks are computed in a thread; queued URLs are then
reprioritized a part at a time, so that the crawl continues meanwhile. Links are kept in memory:
after a restart they are gathered again, and queued URLs keep their priorities.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured

from larmspider import options, stats
from larmspider.frontier.storage.records import url_key
from larmspider.frontier.strategies import LinkTable
from larmspider.items import Page, Removed
from larmspider.scheduler.scheduler import FrontierScheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

PART = 500
"""URLs that are reprioritized at a time: 10 ms at most."""
_FOLLOWED = (None, "visited")
"""``Link.rejected_by`` of links to pages that are, or will be, part of the crawl."""


class PageRankExtension:
    """Feeds a LinkTable from stored pages, and the frontier from the LinkTable."""

    def __init__(self, crawler: Crawler, interval: float) -> None:
        self.crawler = crawler
        self.interval = interval
        self.links = LinkTable()
        self._fetched: set[bytes] = set()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        interval = options.seconds(crawler.settings, "LARM_PAGERANK_SECS", minimum=0.1)
        if options.text(crawler.settings, "LARM_STRATEGY") != "pagerank":
            raise NotConfigured
        extension = cls(crawler, interval)
        connect = crawler.signals.connect
        connect(extension.spider_opened, signal=signals.spider_opened)
        connect(extension.spider_closed, signal=signals.spider_closed)
        connect(extension.item_scraped, signal=signals.item_scraped)
        return extension

    def spider_opened(self) -> None:
        if isinstance(self.crawler.engine.scheduler, FrontierScheduler):
            self._task = asyncio.get_running_loop().create_task(self._run())

    def spider_closed(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def item_scraped(self, item: Any) -> None:
        if isinstance(item, Removed):
            self.links.remove(url_key(item.exact))
        if not isinstance(item, Page) or item.normalized is None:
            return
        page = url_key(item.name)
        if page in self._fetched:
            self.links.remove(page)
        self._fetched.add(page)
        targets = [
            url_key(link.exact or link.normalized)
            for link in item.links
            if link.normalized is not None and link.rejected_by in _FOLLOWED
        ]
        self.links.add(page, targets)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.interval)
            try:
                await self.reorder()
            except Exception:
                logger.exception("Error while computing PageRank")

    async def reorder(self) -> None:
        """Compute all ranks and reprioritize queued URLs."""
        scheduler = self.crawler.engine.scheduler
        assert isinstance(scheduler, FrontierScheduler)
        ranks = await asyncio.to_thread(self.links.ranks)
        changes = (
            change for change in self.links.priorities(ranks) if change[0] not in self._fetched
        )
        while part := list(islice(changes, PART)):
            scheduler.frontier.reprioritize(part)
            await asyncio.sleep(0)
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(stats.PAGERANK_COMPUTED)
