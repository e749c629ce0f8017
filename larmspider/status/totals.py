"""The counts of a crawl over all its runs, kept in LARM_DIR/totals.json at each checkpoint.

Scrapy's stats begin at 0 with each run. A crash loses the counts since the last checkpoint.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals

from larmspider import options, stats
from larmspider import signals as larm_signals
from larmspider.errors import CrawlDirError
from larmspider.files import replace_file
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.workdir.directory import worker_dirs
from larmspider.workdir.left import changing

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

TOTALS_FILE = "totals.json"
_NO_SUMS = (
    stats.FRONTIER.partition("{")[0],
    stats.LEFT.partition("{")[0],
    stats.OUTBOX_WAITING.partition("{")[0],
    stats.FOLLOW_HOSTS,
    stats.PAGE_FILES_FILES,
    stats.BROKEN,
)


@dataclass(frozen=True, slots=True)
class Totals:
    """``counters`` by stats key. ``paused``: whether the operator had paused the run."""

    runs: int = 0
    counters: Mapping[str, int] = field(default_factory=dict)
    paused: bool = False

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The totals of the directory; empty if the file is missing or cannot be read."""
        try:
            found = json.loads((directory / TOTALS_FILE).read_text("utf-8"))
            counters = {str(key): int(value) for key, value in found["counters"].items()}
            return cls(int(found["runs"]), counters, found.get("paused") is True)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls()

    @classmethod
    def of_crawl(cls, directory: Path) -> Totals:
        """The totals of a crawl, or the sums of its workers here. Raises CrawlDirError for a folder
        that cannot be read."""
        workers = worker_dirs(directory)
        return cls.together(map(cls.read, workers)) if workers else cls.read(directory)

    def with_run(self, counters: Mapping[str, Any]) -> Totals:
        """The totals, plus the stats of one more run."""
        summed = dict(self.counters)
        for key, value in counters.items():
            if stats.is_ours(key) and isinstance(value, int) and not key.startswith(_NO_SUMS):
                summed[key] = summed.get(key, 0) + value
        return Totals(self.runs + 1, summed)

    @classmethod
    def together(cls, found: Iterable[Totals]) -> Totals:
        """The sums of workers that run side by side."""
        workers, summed = list(found), cls()
        for totals in workers:
            summed = summed.with_run(totals.counters)
        runs = max((totals.runs for totals in workers), default=0)
        paused = bool(workers) and all(totals.paused for totals in workers)
        return cls(runs, summed.counters, paused)

    def since(self, before: Totals) -> Totals:
        """The counts since ``before``."""
        earlier = before.counters
        grown = {key: n - earlier.get(key, 0) for key, n in self.counters.items()}
        return Totals(self.runs - before.runs, {key: n for key, n in grown.items() if n})

    def write(self, directory: Path) -> None:
        """Replace the file of the directory at once. Raises OSError."""
        content = {"runs": self.runs, "counters": dict(self.counters), "paused": self.paused}
        replace_file(directory / TOTALS_FILE, json.dumps(content).encode())

    def matching(self, template: str) -> dict[str, int]:
        """The counters of a key of stats.py with one part that varies, by that part, largest first.

        >>> totals.matching(stats.FILTER_REJECTED)
        {'visited': 812, 'scope': 77}
        """
        before, after = template[: template.index("{")], template[template.index("}") + 1 :]
        found = {}
        for key, value in self.counters.items():
            part = key[len(before) : len(key) - len(after)]
            if key.startswith(before) and key.endswith(after) and part and "/" not in part:
                found[part] = value
        return dict(sorted(found.items(), key=lambda item: -item[1]))


class TotalsExtension:
    """Writes at each checkpoint and at the end."""

    files = (TOTALS_FILE, f"{TOTALS_FILE}.new")

    def __init__(self, crawler: Crawler, directory: Path) -> None:
        self.crawler, self.directory = crawler, directory
        self.before = Totals()  # of earlier runs
        self._opened = False  # else the directory may not be this crawl's

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(crawler, options.larm_dir(crawler.settings))
        connect = crawler.signals.connect
        connect(extension.spider_opened, signal=signals.spider_opened)
        connect(extension.write, signal=larm_signals.commit)
        connect(extension.write, signal=signals.spider_closed)
        return extension

    def spider_opened(self) -> None:
        self._opened = True
        found = Totals.read(self.directory)
        self.before = replace(found, paused=False)
        if found.paused:  # as a run left it that was killed
            with suppress(OSError):
                self.before.write(self.directory)

    def now(self) -> Totals:
        """The totals of all runs, including this one."""
        assert self.crawler.stats is not None
        totals = self.before.with_run(self.crawler.stats.get_stats())
        scheduler = scheduler_of(self.crawler)
        paused = scheduler is not None and scheduler.paused
        return replace(totals, paused=paused)

    def _write(self, totals: Totals) -> None:
        with changing(self.directory, TOTALS_FILE):  # the last time after the end of the run
            totals.write(self.directory)

    async def write(self) -> None:
        """Write the file. A full disk gives only a warning here, because no data is lost; the
        stores end the crawl."""
        if not self._opened:
            return
        try:
            await asyncio.to_thread(self._write, self.now())
        except (OSError, CrawlDirError) as error:
            logger.warning("%s is not up to date: %s", self.directory / TOTALS_FILE, error)
