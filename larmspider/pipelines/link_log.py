"""links.log: every link, in scope or not; one line a link, LARM's five fields.

A page often has one link several times, with the same text: in the menu above and in the one below.
That is one line, unless LARM_LINK_LOG is "all".

A page that may have been stored before has a line without a link before its own, with the time in
place of the text; so has a page that is removed. Earlier lines of the page do not count::

    http://wiki/a           2026-01-31T12:00:00.000Z
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from larmspider import options, stats
from larmspider.formatting import utc
from larmspider.items import ORDINARY, Link, Page, Removed
from larmspider.pipelines.records import LogStore, compression
from larmspider.pipelines.store import MANY_LINKS
from larmspider.urls.syntax import without_userinfo
from larmspider.workdir.frames import SUFFIX

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector

ALL, DISTINCT = "all", "distinct"
LINK_LOG_COLUMNS = ("from-page", "to-page", "to-page-normalized", "link-type", "anchor")


class LinkLogPipeline(LogStore):
    """Writes links.log."""

    file_name = "links.log"
    files = (
        file_name,
        file_name + SUFFIX,
        "logs.idx",
    )  # the index is made from it (crawl/log_index/)
    columns = LINK_LOG_COLUMNS

    def __init__(
        self, directory: Path, counters: StatsCollector, *, every_link: bool = False
    ) -> None:
        """``every_link``: a link that a page repeats is written each time."""
        super().__init__(directory)
        self.counters = counters
        self.every_link = every_link

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        assert crawler.stats is not None
        kept = options.choice(crawler.settings, "LARM_LINK_LOG", (ALL, DISTINCT))
        store = cls(options.larm_dir(crawler.settings), crawler.stats, every_link=kept == ALL)
        store.compressed = compression(crawler.settings)
        return store

    def process_item(self, item: Any) -> Any:
        if isinstance(item, Page) and len(item.links) > MANY_LINKS:
            return self._write_in_turns(item)
        return super().process_item(item)

    def write(self, page: Page) -> None:
        self._write(page, self._wanted(page.links))

    def _wanted(self, links: list[Link]) -> list[Link]:
        if self.every_link:
            return links
        # of equal ones the place of the first
        return list({(link.url, link.anchor, link.type): link for link in links}.values())

    async def _write_in_turns(self, page: Page) -> Page:
        """Make the lines in parts and yield to the crawl between them; they are written at once, so
        that no other page's lines come between."""
        links = self._wanted(page.links)
        records = self._first_lines(page)
        for start in range(0, len(links), MANY_LINKS):
            records += self._records(page, links[start : start + MANY_LINKS])
            await asyncio.sleep(0)
        self._append(records)
        return page

    def remove(self, removed: Removed) -> None:
        self.log.append(*begun_anew(removed.url, removed.time))

    def _write(self, page: Page, links: list[Link]) -> None:
        self._append(self._first_lines(page) + self._records(page, links))

    def _append(self, records: list[tuple[str, ...]]) -> None:
        self.log.extend(records)
        self.counters.inc_value(stats.LINK_LOG_LINKS, len(records))

    def _first_lines(self, page: Page) -> list[tuple[str, ...]]:
        return [begun_anew(page.url, page.fetched)] if self.refreshing else []

    def _records(self, page: Page, links: list[Link]) -> list[tuple[str, ...]]:
        page_url = without_userinfo(page.url)
        return [
            (
                page_url,
                without_userinfo(link.url) if "@" in link.url else link.url,
                link.normalized or "",
                "0" if link.type == ORDINARY else str(link.type),
                link.anchor,
            )
            for link in links
        ]


def begun_anew(url: str, when: float) -> tuple[str, ...]:
    """The record that voids the earlier links of a page."""
    return without_userinfo(url), "", "", "", utc(when)
