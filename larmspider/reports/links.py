"""Which pages are linked most, and which links are broken, with the pages that carry them.

>>> with crawl.logs.index() as index: broken_links(crawl.logs, index, limit=100)
[BrokenLink(url='http://wiki/gone', result='404', ..., pages=12, carriers=[...])]
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from larmspider.crawl.log_index.index import LogIndex
from larmspider.crawl.log_index.records import LinkedHost
from larmspider.crawl.logs import CrawlLogs


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """``pages`` have a link to it; ``anchor`` is the text of the first one that has a text."""

    url: str
    normalized: str
    pages: int
    anchor: str


@dataclass(frozen=True, slots=True)
class Carrier:
    """A page with a link to a broken target: ``url`` as it stands there, and the link's text."""

    page: str
    url: str
    anchor: str


@dataclass(frozen=True, slots=True)
class BrokenLink:
    """``result`` is an HTTP status from 400 on, or the word for a failure; ``pages`` carry the
    link, ``carriers`` are the first of them."""

    url: str
    normalized: str
    result: str
    message: str
    time: str
    pages: int
    carriers: Sequence[Carrier]


class BrokenCache:
    """The rows of LogIndex.broken(), read once for each state of the index; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: tuple[object, Sequence[tuple[int, bytes, int]]] = (None, ())

    def rows(self, index: LogIndex) -> Sequence[tuple[int, bytes, int]]:
        """Those of the index as it is now."""
        state = index.state()
        seen = (state.get("began"), state.get("marks"))
        with self._lock:
            if self._rows[0] != seen:
                self._rows = seen, index.broken()
            return self._rows[1]


def most_linked(logs: CrawlLogs, index: LogIndex, start: int, limit: int) -> list[LinkedPage]:
    """From number ``start`` on, counted from 0; the first 1,000 are known."""
    found = []
    for pages, key in index.most_linked()[start : start + limit]:
        target = index.target_of(key)
        places = () if target is None else target.places[:3]
        links = [link for link in logs.records_at("links.log", places) if link]
        if links:
            anchor = next((link[4] for link in links if link[4]), "")
            found.append(LinkedPage(links[0][1], links[0][2], pages, anchor))
    return found


def most_linked_hosts(index: LogIndex, limit: int) -> list[LinkedHost]:
    """By links from any page."""
    return index.most_linked_hosts()[:limit]


def broken_links(
    logs: CrawlLogs,
    index: LogIndex,
    rows: Sequence[tuple[int, bytes, int]],
    carriers: int,
) -> list[BrokenLink]:
    """Of ``rows``, as LogIndex.broken() gives them: who carries each, ``carriers`` at most."""
    targets = [index.target_of(key) for _, key, _ in rows]
    places = [() if target is None else target.places[:carriers] for target in targets]
    links = logs.records_at("links.log", (place for some in places for place in some))
    found = []
    fetches = logs.records_at("fetch.log", (place for _, _, place in rows))
    for (pages, _, _), some, fields in zip(rows, places, fetches, strict=True):
        carried = [next(links) for _ in some]
        if fields is None:
            continue
        time, url, normalized, _, result, _, _, message = fields
        carrying = [Carrier(link[0], link[1], link[4]) for link in carried if link]
        found.append(BrokenLink(url, normalized, result, message, time, pages, carrying))
    return found


BROKEN_COLUMNS = ("result", "url", "pages", "page", "link", "anchor", "message", "time")


def broken_rows(links: Iterable[BrokenLink]) -> Iterator[tuple[object, ...]]:
    """A row for each page that carries a broken link; one for a target that no page is known for,
    such as a seed."""
    for link in links:
        for carrier in link.carriers or (Carrier("", "", ""),):
            yield (
                link.result, link.url, link.pages, carrier.page, carrier.url, carrier.anchor,
                link.message, link.time,
            )  # fmt: skip
