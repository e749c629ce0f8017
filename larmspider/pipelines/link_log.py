"""links.log: every link found, in scope or not; one line a link, LARM's five fields."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Self

from larmspider import options, stats
from larmspider.items import Page
from larmspider.pipelines.log_store import LogStore
from larmspider.userinfo import without_userinfo

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

LINK_LOG_COLUMNS = ("from-page", "to-page", "to-page-normalized", "link-type", "anchor")


class LinkLogPipeline(LogStore):
    """Writes links.log."""

    file_name = "links.log"
    files = (file_name,)
    columns = LINK_LOG_COLUMNS

    def __init__(self, directory: Path, counters: StatsCollector) -> None:
        super().__init__(directory)
        self.counters = counters

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        assert crawler.stats is not None
        return cls(options.larm_dir(crawler.settings), crawler.stats)

    def write(self, page: Page) -> None:
        url, shown = without_userinfo(page.url), without_userinfo
        self.log.extend(
            [
                (url, shown(link.url), link.normalized or "", str(link.type), link.anchor)
                for link in page.links
            ]
        )
        self.counters.inc_value(stats.LINK_LOG_LINKS, len(page.links))
