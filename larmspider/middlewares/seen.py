"""Seen: links that the frontier has met already are not judged again.

Of a page's links 97% are known, and what is known has passed each filter that judges by URL. So
those that the frontier's memory has are settled first, and the filters below see the rest; what
the memory does not tell, the filter "visited" asks at the end. Without this filter a crawl has the
same pages, but a page of 140 links costs 0.1 ms more, and known links on pages at DEPTH_LIMIT are
counted for "depth".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from larmspider.items import KNOWN, REDIRECT, Link, Page
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.scheduler.scheduler import scheduler_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class SeenFilter(UrlFilter):
    """Rejects links that were seen lately, in the name of VisitedFilter.

    Left to the other filters are redirects (they may close a ring) and what is marked nofollow.
    ``lately`` says of each of some canonical URLs whether the frontier remembers it; under another
    scheduler nothing is remembered.
    """

    name = "visited"

    def __init__(self, lately: Callable[[Sequence[str]], list[bool]] | None = None) -> None:
        self._lately = lately or _nothing

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        def lately(normalized: Sequence[str]) -> list[bool]:
            scheduler = scheduler_of(crawler)
            return (_nothing if scheduler is None else scheduler.seen_lately)(normalized)

        return cls(lately)

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        if page.nofollow:
            return [None] * len(links)
        lately = self._lately([link.normalized or link.url for link in links])
        return [
            KNOWN if seen and not link.nofollow and link.type != REDIRECT else None
            for link, seen in zip(links, lately, strict=True)
        ]


def _nothing(normalized: Sequence[str]) -> list[bool]:
    return [False] * len(normalized)
