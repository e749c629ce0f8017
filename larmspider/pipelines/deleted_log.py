"""deleted.log: which pages were removed from the crawl, when and why; one line each.

The first store, because it refuses pages that an operator removed (removed.txt) while they were
being fetched.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from scrapy.exceptions import DropItem

from larmspider import options
from larmspider.formatting import utc
from larmspider.items import Page, Removed
from larmspider.pipelines.records import LogStore, read_records
from larmspider.urls.canonical import Forms
from larmspider.urls.syntax import without_userinfo
from larmspider.workdir.removals import REASON, CurrentRemovals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

DELETED_LOG_COLUMNS = ("time", "url", "url-exact", "reason")
KEPT_SECS = 30 * 86_400.0
"""The last version of a removed page stays for 30 days, unless an operator removed it."""


class DeletedLogPipeline(LogStore):
    """Writes deleted.log."""

    file_name = "deleted.log"
    files = (file_name,)
    columns = DELETED_LOG_COLUMNS

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        store = super().build(crawler)
        store._removals = CurrentRemovals(options.crawl_root(crawler.settings))
        return store

    @cached_property
    def _removals(self) -> CurrentRemovals:
        return CurrentRemovals(self.directory)

    def write(self, page: Page) -> None:
        removals = self._removals.get()
        if removals and removals.has(Forms(page.normalized or page.url, page.name)):
            raise DropItem(REASON)

    def requisite(self, page: Page) -> None:
        self.write(page)

    def remove(self, removed: Removed) -> None:
        if not removed.reason:
            return
        url = without_userinfo(removed.url)
        self.log.append(utc(removed.time), url, removed.exact, removed.reason)


def successor_of(reason: str) -> str:
    """The exact form of the new URL of a page that has moved, by the reason of its removal; "" for
    another reason."""
    what, _, new = reason.rpartition(", to ")
    return new if what.startswith("moved ") else ""


def moves_in(directory: Path) -> Iterator[tuple[str, str, str, str]]:
    """Time, URL and exact form of pages that have moved, and the exact forms of their new URLs."""
    if (path := directory / DeletedLogPipeline.file_name).exists():
        for when, url, exact, reason in read_records(path, len(DELETED_LOG_COLUMNS)):
            if new := successor_of(reason):
                yield when, url, exact, new


def kept_for_now(directory: Path, now: float) -> set[tuple[str, str]]:
    """Time and URL of the removals after which the page's last version is still kept."""
    if not (path := directory / DeletedLogPipeline.file_name).exists():
        return set()
    since = utc(now - KEPT_SECS)
    rows = read_records(path, len(DELETED_LOG_COLUMNS))
    return {(when, url) for when, url, _, why in rows if when > since and why != REASON}
