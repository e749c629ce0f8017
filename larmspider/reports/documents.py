"""What is stored: by type, the largest, and what is stored more than once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING

from larmspider.crawl.reader import CrawlDir, StoredPage, last_visit
from larmspider.frontier.storage.records import UrlState

if TYPE_CHECKING:
    from larmspider.frontier.storage.lmdb_reader import FrontierReader

LARGEST = 20
GROUPS = 20
COPIES_SHOWN = 5
DIGESTS_MOST = 2_000_000
"""Different contents that are told apart; 100 bytes of memory each."""


@dataclass(slots=True)
class Documents:
    """Of the pages that are stored by the frontier's count. ``of_failed``: how many more the page
    files have, the last answers of URLs that failed, with ``of_failed_bytes``."""

    count: int = 0
    bytes: int = 0
    types: list[tuple[str, int, int]] = field(default_factory=list)
    """Type, documents, bytes; the most frequent first."""
    largest: list[StoredPage] = field(default_factory=list)
    of_failed: int = 0
    of_failed_bytes: int = 0


def documents(crawl: CrawlDir, frontier: FrontierReader) -> Documents:
    """5 us a page."""
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    largest: list[StoredPage] = []
    failed: list[int] = []
    for page in crawl.pages():
        if page.status >= 400 and _has_failed(frontier, page):
            failed.append(page.size)
            continue
        counts[page.mime] += 1
        sizes[page.mime] += page.size
        largest.append(page)
        if len(largest) > 1_000:
            largest = _largest(largest)
    types = [(mime, number, sizes[mime]) for mime, number in counts.most_common()]
    return Documents(
        counts.total(), sizes.total(), types, _largest(largest), len(failed), sum(failed)
    )


def _has_failed(frontier: FrontierReader, page: StoredPage) -> bool:
    visit = last_visit(frontier, page.normalized)
    return visit is not None and visit.state is UrlState.FAILED


def _largest(pages: list[StoredPage]) -> list[StoredPage]:
    return nlargest(LARGEST, pages, key=lambda page: page.size)


@dataclass(frozen=True, slots=True)
class Group:
    """URLs with the same content: ``copies`` of them, ``urls`` the first ones."""

    copies: int
    urls: Sequence[str]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """``urls`` beyond the first one of each content; ``whole``: all were compared."""

    urls: int
    groups: Sequence[Group]
    whole: bool


def duplicates(frontier: FrontierReader) -> Duplicates:
    """Stored pages with status 200 by the digest of their bodies, in two passes."""
    counts: Counter[bytes] = Counter()
    whole = True
    for _, visit in frontier.visits():
        if visit.state is UrlState.STORED and visit.status == 200 and visit.digest:
            key = visit.digest[:12]
            if key in counts or len(counts) < DIGESTS_MOST:
                counts[key] += 1
            else:
                whole = False
    most = {key: number for key, number in counts.most_common(GROUPS) if number > 1}
    urls: dict[bytes, list[str]] = {key: [] for key in most}
    for _, visit in frontier.visits() if most else ():
        found = urls.get(visit.digest[:12])
        if found is not None and len(found) < COPIES_SHOWN and visit.status == 200:
            found.append(visit.url)
    groups = [Group(number, sorted(urls[key])) for key, number in most.items()]
    beyond = sum(number - 1 for number in counts.values())
    return Duplicates(beyond, groups, whole)
