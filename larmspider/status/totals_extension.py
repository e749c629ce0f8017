"""Keeps the sums of all runs of a crawl in LARM_DIR/totals.json (larmspider/status/totals.py)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy import signals

from larmspider import options
from larmspider import signals as larm_signals
from larmspider.status.totals import TOTALS_FILE, Totals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)


class TotalsExtension:
    """Writes at each checkpoint and at the end."""

    files = (TOTALS_FILE, f"{TOTALS_FILE}.new")

    def __init__(self, crawler: Crawler, directory: Path) -> None:
        self.crawler, self.directory = crawler, directory
        self.before = Totals()  # of the runs before this one

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler, options.larm_dir(crawler.settings))
        connect = crawler.signals.connect
        connect(extension.spider_opened, signal=signals.spider_opened)
        connect(extension.write, signal=larm_signals.commit)
        connect(extension.write, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        self.before = Totals.read(self.directory)

    def now(self) -> Totals:
        """Of all runs, this one included."""
        assert self.crawler.stats is not None
        return self.before.with_run(self.crawler.stats.get_stats())

    def write(self) -> None:
        """Only warns of a full disk: it ends the crawl elsewhere, where something would be lost."""
        try:
            self.now().write(self.directory)
        except OSError as error:
            logger.warning("%s is not up to date: %s", self.directory / TOTALS_FILE, error)
