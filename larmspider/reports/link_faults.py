"""Broken links that no failed fetch shows: hrefs that are not URLs, redirects that go round in a
ring, and fragments that their page lacks.

    link_faults(crawl)                             # by links.log: no URL, redirects in a ring
    fragments = Fragments(crawl)
    fragments.missing(), fragments.unread          # by the stored pages, each read twice

Fragments are compared as HTML 7.4.6.3 says: as written, then percent-decoded, with the ids of the
page and the names of its anchors.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape
from urllib.parse import unquote_to_bytes

from larmspider.crawl.log_index.index import MAX_REFERRERS
from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.errors import CrawlDirError, InvalidURL
from larmspider.items import REDIRECT
from larmspider.reports.links import BrokenLink, Referrer
from larmspider.reports.stored_copy import HTML_TYPES
from larmspider.urls.resolve import resolve

NO_URL, RING, FRAGMENT = "no-url", "redirect-loop", "fragment"
"""Results of these links, in addition to the results in fetch.log."""
MAX_BYTES = 4_000_000
"""Pages above this size are not read for fragments."""
MAX_PLACES = 500_000
"""Different fragments of other pages that are looked for, some 150 MB."""
MAX_FOUND = 10_000
_SAID_PAGES = 100  # between two calls of progress
_OPENED = re.compile(r"(?:https?|file):", re.IGNORECASE)
"""Schemes of links that a crawl can follow; mailto: and others are not URLs for it."""
_VALUE = rb"\s*=\s*(?:\"([^\"]{0,4096})\"|'([^']{0,4096})'|([^\s\"'>]{1,4096}))"
_HREF = re.compile(rb"<(?:a|area)\s[^<>]*?\bhref" + _VALUE, re.IGNORECASE)
_NAME = re.compile(rb"\s(?:id|name)" + _VALUE, re.IGNORECASE)
_BASE = re.compile(rb"<base\s[^<>]*?\bhref" + _VALUE, re.IGNORECASE)
_NO_PLACE = re.compile(r"top\Z|[!/]|:~:|\Z", re.IGNORECASE)
"""Fragments that name no element: the top, routes of an application, text fragments."""


def link_faults(crawl: CrawlDir) -> list[BrokenLink]:
    """Links that are not URLs, and redirects that go round in a ring."""
    return [*bad_hrefs(crawl), *redirect_rings(crawl)]


def bad_hrefs(crawl: CrawlDir) -> list[BrokenLink]:
    """Links that begin like a URL but are not one, such as `http://[wiki`."""
    found: dict[str, _Pages] = {}
    for fields in _records(crawl, "", 2):
        page, url, anchor = fields[0], fields[1], fields[4]
        if _OPENED.match(url) and (url in found or len(found) < MAX_FOUND):
            found.setdefault(url, _Pages()).add(Referrer(page, url, anchor))
    return [
        BrokenLink(url, "", NO_URL, "the link is no URL", "", pages.number, pages.first)
        for url, pages in found.items()
    ]


@dataclass(slots=True)
class _Pages:
    """Pages with one broken link: their number, and the first of them. A link of a menu is on all
    pages of a site."""

    number: int = 0
    first: list[Referrer] = field(default_factory=list)

    def add(self, page: Referrer) -> None:
        self.number += 1
        if len(self.first) < MAX_REFERRERS:
            self.first.append(page)


def redirect_rings(crawl: CrawlDir) -> list[BrokenLink]:
    """URLs whose redirects end in a ring, as of their last fetch."""
    following: dict[str, tuple[str, str]] = {}
    for fields in _records(crawl, str(REDIRECT), 3):
        with suppress(InvalidURL):
            exact, target = crawl.forms(fields[0]).exact, crawl.forms(fields[1]).exact
            following[exact] = target, fields[0]
    found = []
    for start in _leading_into_rings({one: target for one, (target, _) in following.items()}):
        fetch = crawl.fetched(start)
        if fetch is None or not fetch.result.startswith("3"):
            continue
        way = [start]
        while (target := following[way[-1]][0]) not in way:
            way.append(target)
        shown = " -> ".join([*way, target])
        target_known = crawl.logs.target(start)
        linked = (page for page, kind in crawl.links_to(start) if kind != REDIRECT)
        pages = list(dict.fromkeys(linked))
        carriers = [Referrer(page, start, "") for page in pages[:MAX_REFERRERS]]
        number = max(len(pages), 0 if target_known is None else target_known.pages)
        url = following[start][1]
        found.append(
            BrokenLink(url, crawl.forms(url).normalized, RING, shown, fetch.time, number, carriers)
        )
    return found[:MAX_FOUND]


def _leading_into_rings(following: dict[str, str]) -> list[str]:
    """The keys from which the way never ends. Linear."""
    ends: dict[str, bool] = {}
    for start in following:
        way: dict[str, None] = {}
        at = start
        while at in following and at not in ends and at not in way:
            way[at] = None
            at = following[at]
        ring = at in way or (at in ends and not ends[at])
        ends.update(dict.fromkeys(way, not ring))
    return [one for one, is_end in ends.items() if not is_end]


def _records(crawl: CrawlDir, value: str, field: int) -> Iterator[list[str]]:
    """The records of links.log that hold a value and count, of all workers."""
    for logs in crawl.logs.parts.values():
        since = {fields[0]: at for at, fields in logs.beginnings()}
        for at, fields in logs.search("links.log", value, field):
            if fields[1] and at >= since.get(fields[0], 0):
                yield fields


class Fragments:
    """``unread``: pages that are too large or cannot be read; ``beyond``: fragments that were not
    looked for, because there were too many."""

    def __init__(
        self, crawl: CrawlDir, progress: Callable[[int], object] = lambda _done: None
    ) -> None:
        self._crawl, self._progress = crawl, progress
        self.unread, self.beyond, self._done = 0, 0, 0
        self._wanted: dict[str, dict[str, _Pages]] = {}
        self._missing: list[BrokenLink] = []
        self._places = 0

    def missing(self) -> list[BrokenLink]:
        """The links to places that their pages lack; most pages first."""
        for page, markup in self._pages(lambda _: True):
            self._collect(page, markup)
        for page, markup in self._pages(lambda page: page.exact in self._wanted):
            names = _names(markup)
            for fragment, pages in self._wanted[page.exact].items():
                if not _has(names, fragment):
                    self._add(page, fragment, pages)
        found = sorted(self._missing, key=lambda one: -one.pages)
        return found[:MAX_FOUND]

    def _add(self, page: StoredPage, fragment: str, pages: _Pages) -> None:
        url = f"{page.url.partition('#')[0]}#{fragment}"
        message = "the page has no such place"
        self._missing.append(
            BrokenLink(url, page.normalized, FRAGMENT, message, "", pages.number, pages.first)
        )

    def _collect(self, page: StoredPage, markup: bytes) -> None:
        names, base = None, page.url
        if (found := _BASE.search(markup)) is not None:
            base = resolve(page.url, _text(found)) or page.url
        own: dict[str, None] = {}
        for href in dict.fromkeys(map(_text, _HREF.finditer(markup))):
            path, sign, fragment = href.strip().partition("#")
            if not sign or _NO_PLACE.match(fragment):
                continue
            target = page.exact
            if path:
                url = resolve(base, path)
                try:
                    target = self._crawl.forms(url or "").exact
                except InvalidURL:
                    continue
            if target == page.exact:
                own[fragment] = None
                continue
            self._want(target, fragment, Referrer(page.url, href, ""))
        for fragment in own:
            names = _names(markup) if names is None else names
            if not _has(names, fragment):
                self._add(page, fragment, _Pages(1, [Referrer(page.url, f"#{fragment}", "")]))

    def _want(self, target: str, fragment: str, referrer: Referrer) -> None:
        of_page = self._wanted.get(target)
        if of_page is None or fragment not in of_page:
            if self._places >= MAX_PLACES:
                self.beyond += 1
                return
            self._places += 1
        self._wanted.setdefault(target, {}).setdefault(fragment, _Pages()).add(referrer)

    def _pages(self, wanted: Callable[[StoredPage], bool]) -> Iterator[tuple[StoredPage, bytes]]:
        for part in self._crawl.parts:
            for page in part.pages():
                self._done += 1
                if self._done % _SAID_PAGES == 0:
                    self._progress(self._done)
                if page.status != 200 or page.mime not in HTML_TYPES or not wanted(page):
                    continue
                if page.size > MAX_BYTES:
                    self.unread += 1
                    continue
                try:
                    yield page, _without_scripts(part.body(page))
                except CrawlDirError:
                    self.unread += 1


def _without_scripts(markup: bytes) -> bytes:
    """The markup without comments, scripts and styles. Takes linear time."""
    for begin, end in ((b"<!--", b"-->"), (b"<script", b"</script"), (b"<style", b"</style")):
        pieces, at = [], 0
        while (start := markup.find(begin, at)) >= 0:
            pieces.append(markup[at:start])
            stop = markup.find(end, start + len(begin))
            if stop < 0:
                at = len(markup)
                break
            at = stop + len(end)
        markup = b"".join((*pieces, markup[at:]))
    return markup


def _text(found: re.Match[bytes]) -> str:
    value = next(one for one in found.groups() if one is not None)
    return unescape(value.decode("utf-8", "surrogateescape"))


def _names(markup: bytes) -> frozenset[str]:
    return frozenset(map(_text, _NAME.finditer(markup)))


def _has(names: Iterable[str], fragment: str) -> bool:
    if fragment in names:
        return True
    decoded = unquote_to_bytes(fragment.encode("utf-8", "surrogateescape"))
    return decoded.decode("utf-8", "surrogateescape") in names
