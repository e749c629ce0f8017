"""Which rules refused links of a crawl, and which ones: the filters are asked again.

The crawl keeps no list of what its filters refused, but its links are in links.log. So each target
that the frontier never met goes through the filters that decide by the URL alone, as ``scrapy
explain`` does. What they let pass was refused for what only the crawl knew: nofollow, its depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from larmspider.crawl.reader import CrawlDir
from larmspider.frontier.storage.records import UrlState
from larmspider.items import Link, Page
from larmspider.middlewares.depth import DepthFilter
from larmspider.middlewares.nofollow import NofollowFilter
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.middlewares.visited import VisitedFilter
from larmspider.reports.explain import filters
from larmspider.reports.log_tail import last_fetches

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.crawl.log_index.index import LogIndex
    from larmspider.frontier.storage.lmdb_reader import FrontierReader

EXAMPLES = 5
ASKED_MOST = 200_000
"""Targets that go through the filters; 20 us each."""
OTHER = "nofollow, depth or other"
REFUSED = "robots.txt, a store or the operator"
"""These refuse URLs, the filters reject links. The frontier counts them as one."""
_NOT_BY_URL = (VisitedFilter, DepthFilter, NofollowFilter)


@dataclass(frozen=True, slots=True)
class Example:
    url: str
    reason: str
    from_page: str


@dataclass(slots=True)
class Refusals:
    """By one rule: how many targets, how many pages carry links to them, and some of them."""

    rule: str
    targets: int = 0
    links: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, example: Example, links: int) -> None:
        self.targets += 1
        self.links += links
        if len(self.examples) < EXAMPLES:
            self.examples.append(example)


def refusals(
    crawl: CrawlDir, settings: BaseSettings, index: LogIndex, frontier: FrontierReader
) -> tuple[Sequence[Refusals], bool]:
    """Most targets first, the refused URLs at the end; False: only the first were asked."""
    asked: list[UrlFilter] = [
        one for one in filters(settings, crawl.seeds) if not isinstance(one, _NOT_BY_URL)
    ]
    found: dict[str, Refusals] = {}
    count, whole = 0, True
    for key, target in index.targets():
        if frontier.state(key) is not UrlState.UNKNOWN or not target.places:
            continue
        if count == ASKED_MOST:
            whole = False
            break
        count += 1
        fields = crawl.logs.record("links.log", target.places[0])
        if fields is None:
            continue
        page, url, normalized, _, anchor = fields
        rule, reason = _verdict(asked, Link(url, normalized, anchor=anchor), Page(page))
        found.setdefault(rule, Refusals(rule)).add(Example(url, reason, page), target.pages)
    rows = sorted(found.values(), key=lambda row: -row.targets)
    return [*rows, *_of_urls(crawl, frontier)], whole


def _verdict(asked: Sequence[UrlFilter], link: Link, page: Page) -> tuple[str, str]:
    for one in asked:
        try:
            reason = one.reject_link(link, page)
        except Exception as error:  # noqa: BLE001 - as in a crawl: whatever a filter raises rejects
            reason = f"the filter raised {error!r}"
        if reason is not None:
            return one.name, reason
    return OTHER, ""


def _of_urls(crawl: CrawlDir, frontier: FrontierReader) -> list[Refusals]:
    row = Refusals(REFUSED)
    row.targets = frontier.counts().refused
    for fields in last_fetches(crawl, b"\trobots\t"):
        if len(row.examples) == EXAMPLES:
            break
        if fields[4] == "robots":
            row.examples.append(Example(fields[1], fields[7], fields[3]))
    return [row] if row.targets else []
