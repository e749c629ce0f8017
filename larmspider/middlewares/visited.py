"""Visited: each URL once, whatever its spelling (http://h/%7Ea and http://h/~a are one).

A redirect that closes a ring is rejected for that: ``redirect loop: http://h/a -> http://h/b ->
http://h/a``.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Self

from larmspider.items import KNOWN, REDIRECT, Link, Page
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.scheduler.scheduler import scheduler_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from larmspider.frontier.frontier import Frontier


class SeenFilter(UrlFilter):
    """Rejects links that were seen lately, in the name of VisitedFilter, before other filters see
    them.

    97% of a page's links are known, and a known link has passed each filter that judges by URL.
    Without this filter a crawl has the same pages, but a page of 140 links costs 0.1 ms more, and
    known links on pages at DEPTH_LIMIT are counted for "depth". Redirects (they may close a ring)
    and links marked nofollow are left to the other filters.

    ``lately`` says for each URL, in exact form, whether the frontier has it in memory.
    """

    name = "visited"

    def __init__(self, lately: Callable[[Sequence[str]], list[bool]] | None = None) -> None:
        self._lately = lately or _Memory().seen_lately

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        memory = _memory_of(crawler)
        return cls(lambda exact: memory().seen_lately(exact))

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        if page.nofollow:
            return [None] * len(links)
        lately = self._lately([link.exact or link.normalized or link.url for link in links])
        return [
            KNOWN if seen and not link.nofollow and link.type != REDIRECT else None
            for link, seen in zip(links, lately, strict=True)
        ]


class VisitedFilter(UrlFilter):
    """Rejects a URL that the crawl knows. The last filter: a URL that another filter rejects does
    not become known.

    ``known`` says for each URL, in exact form, whether the crawl knows it.
    """

    name = "visited"

    def __init__(self, known: Callable[[Sequence[str]], list[bool]] | None = None) -> None:
        self._known = known or _Memory().known
        self._rings = _Rings()

    @classmethod
    def build(cls, crawler: Crawler) -> Self:
        memory = _memory_of(crawler)
        return cls(lambda exact: memory().known(exact))

    def reject_reason(self, url: str) -> str | None:
        return KNOWN if self._known([url])[0] else None

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        names = [link.exact or link.normalized or link.url for link in links]
        known = self._known(names)
        here: set[str] = set()
        reasons: list[str | None] = []
        to_itself = False
        for link, name, met in zip(links, names, known, strict=True):
            ring = self._rings.closed_by(link, page) if link.type == REDIRECT else None
            if ring is not None:
                reasons.append(f"redirect loop: {' -> '.join(ring)}")
                continue
            fresh = not (met or name in here)
            if _leads_to_itself(link, page):
                fresh = not to_itself and (fresh or name == page.name)
                to_itself = to_itself or fresh
            reasons.append(None if fresh else KNOWN)
            here.add(name)
        return reasons

    def reject_request(self, request: Request, normalized: str) -> str | None:
        reason = self.reject_reason(request.meta.get("exact") or normalized)
        return None if request.dont_filter else reason


def _leads_to_itself(link: Link, page: Page) -> bool:
    """http://h/index.html redirects to http://h/: perhaps one page, but only the target has its
    content. One link of this kind on a page passes. The frontier accepts one for each number of
    redirects in a row: at most LARM_MAX_REDIRECTS for a canonical form, in a ring or a chain."""
    if link.type != REDIRECT or link.url == page.url:
        return False
    return link.normalized == page.normalized or _name(link) == page.name


def _name(link: Link) -> str:
    return link.exact or link.normalized or link.url


class _Rings:
    """The targets of the last 10,000 redirects of this run: enough to name a ring. A ring that was
    begun in an earlier run also ends, but is named only if it has two members."""

    SIZE, LONGEST = 10_000, 20

    def __init__(self) -> None:
        self._leads: OrderedDict[str, str] = OrderedDict()

    def closed_by(self, link: Link, page: Page) -> list[str] | None:
        """The URLs of the redirect loop from ``page`` to ``page``; None if this redirect closes no
        loop."""
        if link.url == page.url:
            return [page.url, page.url]
        if page.link_type == REDIRECT and page.from_page == link.url:
            return [page.url, link.url, page.url]
        here, at = page.name, _name(link)
        if link.normalized is None or here == at:
            return None
        self._leads[here] = at
        if len(self._leads) > self.SIZE:
            self._leads.popitem(last=False)
        ring = [here]
        while at != here and at in self._leads and len(ring) < self.LONGEST:
            ring.append(at)
            at = self._leads[at]
        return [*ring, at] if at == here else None


class _Memory:
    """The known URLs if another scheduler runs the crawl."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def known(self, exact: Sequence[str]) -> list[bool]:
        known = []
        for url in exact:
            known.append(url in self._known)
            self._known.add(url)
        return known

    def seen_lately(self, exact: Sequence[str]) -> list[bool]:
        return [False] * len(exact)


def _memory_of(crawler: Crawler) -> Callable[[], Frontier | _Memory]:
    """Looks the frontier up once, at the first call: Scrapy makes its scheduler after the
    filters."""

    @cache
    def memory() -> Frontier | _Memory:
        scheduler = scheduler_of(crawler)
        return _Memory() if scheduler is None else scheduler.frontier

    return memory
