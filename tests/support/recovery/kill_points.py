"""A settings module that ends the crawl at a named point, as kill -9 would.

    KILL_POINT=popped KILL_AFTER=7 SCRAPY_SETTINGS_MODULE=tests.support.recovery.kill_points ...

The product has no hooks for this: its components are wrapped here. KILL_AFTER is how often the
point is passed before, or for the points "during" something the milliseconds that it may last.
Workers have KILLS={"atlas-1": ["popped", 7]}, and a folder KILLED in which each that was killed has
a file: it is killed once.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.signals import item_scraped

from larmspider import signals
from larmspider.frontier.frontier import Frontier
from larmspider.frontier.hosts import Lease
from larmspider.scheduler.scheduler import FrontierScheduler
from larmspider.settings import *  # noqa: F403
from larmspider.settings import EXTENSIONS, ITEM_PIPELINES

LARM_LANGUAGES, LARM_SITEMAPS, LARM_TRAPS = "", False, "off"
POINT = os.environ.get("KILL_POINT", "")
AFTER = float(os.environ.get("KILL_AFTER", "0"))
_MARK: Path | None = None
for _word in sys.argv if "KILLS" in os.environ else ():
    if _word.startswith("LARM_WORKER="):
        _MARK = Path(os.environ["KILLED"], _name := _word.partition("=")[2])
        POINT, AFTER = json.loads(os.environ["KILLS"]).get(_name, ("", 0.0))
        POINT = "" if _MARK.exists() else POINT
POINTS = (
    "popped",
    "after-page-files",
    "after-link-log",
    "after-fetch-log",
    "after-all-stores",
    "acknowledged",
    "positions-named",
    "stores-committed",
    "during-index-commit",
    "written-not-committed",
    "during-commit",
    "committed",
    "before-recovery",
    "page-files-recovered",
    "recovered",
    "opened",
)
REFRESH_POINTS = (*POINTS, "looking-for-pages", "looking-again", "taken-out")
"""The points of a run with refresh=."""
_passed = 0


def _mark() -> None:
    if _MARK is not None:
        _MARK.touch()


def passes(point: str) -> None:
    """The process ends here if this is its point, and it has been here often enough."""
    global _passed
    if point == POINT:
        if _passed >= AFTER:
            _mark()
            os.kill(os.getpid(), signal.SIGKILL)
        _passed += 1


def passes_soon(point: str) -> None:
    """The process ends some milliseconds from now, wherever it is then."""
    if point == POINT:
        _mark()
        # the default action of SIGALRM: the kernel ends the process, no Python runs
        signal.setitimer(signal.ITIMER_REAL, max(AFTER, 0.01) / 1000)


class KilledScheduler(FrontierScheduler):
    """Points in the scheduler, the frontier and its backend."""

    def open(self, spider: Spider) -> None:
        # connected after the stores' receivers, and so called after them
        self.crawler.signals.connect(self._all_recovered, signal=signals.recovered)
        passes("before-recovery")
        super().open(spider)
        passes("opened")
        frontier = self.frontier
        commit, write = frontier.commit, frontier.backend.files._write

        def killed_commit(positions: Mapping[str, bytes]) -> None:
            passes("stores-committed")
            commit(positions)
            passes("committed")

        def killed_write(batch: Any) -> None:
            passes_soon("during-commit")
            if POINT == "written-not-committed":
                env = frontier.backend.files.env
                with env.begin(write=True) as txn:
                    pairs = sorted(batch.urls.items())
                    txn.cursor(frontier.backend.files.urls).putmulti(pairs)
                    passes("written-not-committed")
                    txn.abort()
            write(batch)

        self._watch_visits(frontier)
        frontier.commit = killed_commit  # type: ignore[method-assign]
        frontier.backend.files._write = killed_write

    def _watch_visits(self, frontier: Frontier) -> None:
        assert frontier.refresh is not None
        work, look_again, forget = frontier.refresh.work, frontier.look_again, frontier.forget

        def killed_work(now: float) -> bool:
            worked = work(now)
            passes("looking-for-pages")
            return worked

        def killed_look_again(lease: Lease, seconds: float) -> None:
            look_again(lease, seconds)
            passes("looking-again")

        def killed_forget(lease: Lease) -> None:
            forget(lease)
            passes("taken-out")

        frontier.refresh.work = killed_work  # type: ignore[method-assign]
        frontier.look_again = killed_look_again  # type: ignore[method-assign]
        frontier.forget = killed_forget  # type: ignore[method-assign]

    def _all_recovered(self) -> None:
        passes("recovered")

    def next_request(self) -> Request | None:
        request = super().next_request()
        if request is not None:
            passes("popped")
        return request

    def seal(self) -> dict[str, bytes]:
        positions = super().seal()
        passes("positions-named")
        return positions


class _Pipeline:
    """Stands between two stores."""

    point = ""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        pipeline = cls()
        crawler.signals.connect(pipeline.recovered, signal=signals.recovered)
        return pipeline

    def recovered(self) -> None:
        if self.point == "after-page-files":
            passes("page-files-recovered")

    def process_item(self, item: Any) -> Any:
        passes(self.point)
        return item


class AfterPageFiles(_Pipeline):
    point = "after-page-files"


class AfterLinkLog(_Pipeline):
    point = "after-link-log"


class AfterFetchLog(_Pipeline):
    point = "after-fetch-log"


class AfterAllStores(_Pipeline):
    point = "after-all-stores"


class KillExtension:
    """Points that signals mark."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls()
        crawler.signals.connect(extension.commit, signal=signals.commit)
        crawler.signals.connect(extension.item_scraped, signal=item_scraped)
        return extension

    def commit(self) -> None:
        passes_soon("during-index-commit")

    def item_scraped(self) -> None:
        passes("acknowledged")


SCHEDULER = KilledScheduler
ITEM_PIPELINES = {
    **ITEM_PIPELINES,
    AfterPageFiles: 250,
    AfterLinkLog: 350,
    AfterFetchLog: 450,
    AfterAllStores: 900,
}
EXTENSIONS = {**EXTENSIONS, KillExtension: 900}
