"""links.log: every link found, in scope or not; one line a link, LARM's five fields."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Self

from larmspider import options, stats
from larmspider.items import Page
from larmspider.pipelines.records import RecordLog, truncate_file
from larmspider.pipelines.store import Store

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

LINK_LOG_COLUMNS = ("from-page", "to-page", "to-page-normalized", "link-type", "anchor")


class LinkLogPipeline(Store):
    """Writes links.log."""

    needs = ("url", "links")

    def __init__(self, directory: Path, counters: StatsCollector) -> None:
        self.directory = directory
        self.counters = counters
        self._log: RecordLog | None = None

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        assert crawler.stats is not None
        return cls(options.larm_dir(crawler.settings), crawler.stats)

    def open_spider(self) -> None:
        options.writable_dir(self.directory)
        self._log = RecordLog(self.directory / "links.log", LINK_LOG_COLUMNS)

    def write(self, page: Page) -> None:
        assert self._log is not None
        self._log.extend(
            [
                (page.url, link.url, link.normalized or "", str(link.type), link.anchor)
                for link in page.links
            ]
        )
        self.counters.inc_value(stats.LINK_LOG_LINKS, len(page.links))

    def recover(self, position: bytes) -> None:
        truncate_file(self.directory / "links.log", position)

    def flush(self) -> bytes:
        return b"" if self._log is None else self._log.flush()

    async def commit(self) -> None:
        if self._log is not None:
            await asyncio.to_thread(self._log.sync)

    def close_spider(self) -> None:
        if self._log is not None:
            self._log.close()
