"""Stored documents by type, the largest, and duplicates; and the refused URLs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge, nlargest
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from larmspider.crawl.logs import REMOVED, STATUS
from larmspider.crawl.reader import CrawlDir, StoredPage, last_visit
from larmspider.frontier.storage.records import UrlState
from larmspider.items import Link, Page
from larmspider.middlewares.depth import DepthFilter
from larmspider.middlewares.language import LanguageFilter
from larmspider.middlewares.nofollow import NofollowFilter
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.middlewares.visited import VisitedFilter
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS
from larmspider.reports.explain import filters

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from larmspider.crawl.log_index.index import LogIndex
    from larmspider.frontier.storage.lmdb_reader import FrontierReader


_SIZE = STORE_LOG_COLUMNS.index("size")
TAIL_BYTES = 2 << 20
_PIECE = 1 << 16


def last_records(
    path: Path,
    columns: int,
    *,
    needle: bytes = b"",
    limit_bytes: int = TAIL_BYTES,
    end: int | None = None,
) -> Iterator[list[str]]:
    """Records whose line holds ``needle``, in the last ``limit_bytes`` of a log. The last record
    comes first. Reads 2 MB, some 10,000 fetches, in 5 ms. ``end``: where the log counts as ended;
    None: where the file ends."""
    for line in last_lines(path, limit_bytes, end):
        if needle in line:
            fields = line.decode("utf-8", "replace").split("\t")
            if len(fields) == columns:
                yield fields


def last_fetches(crawl: CrawlDir, needle: bytes) -> Iterator[list[str]]:
    """last_records() of fetch.log, of all workers by time, each up to its last checkpoint."""
    each = TAIL_BYTES // max(1, len(crawl.parts))
    tails = [
        last_records(
            part.path / "fetch.log",
            len(FETCH_LOG_COLUMNS),
            needle=needle,
            limit_bytes=each,
            end=part.logs.size("fetch.log"),
        )
        for part in crawl.parts
    ]
    return merge(*tails, key=lambda fields: fields[0], reverse=True)


def last_lines(path: Path, limit_bytes: int, end: int | None = None) -> Iterator[bytes]:
    """Lines without their ends; a line that is still being written is left out."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            position = size if end is None else min(end, size)
            least = max(0, position - limit_bytes)
            rest, first = b"", True
            while position > least:
                start = max(least, position - _PIECE)
                file.seek(start)
                lines = (file.read(position - start) + rest).split(b"\n")
                rest = lines[0]
                yield from reversed(lines[1:-1] if first else lines[1:])
                position, first = start, first and len(lines) == 1
            if not position and not first:
                yield rest
    except FileNotFoundError:
        return


MAX_EXAMPLES = 5
MAX_ASKED = 200_000
"""Targets that go through the filters; 20 us each."""
OTHER = "nofollow, depth, language or other"
REFUSED = "robots.txt, a store or the operator"
"""The parts that refuse URLs; filters reject links. The frontier counts all refused URLs as one."""
_NOT_BY_URL = (VisitedFilter, DepthFilter, NofollowFilter, LanguageFilter)


@dataclass(frozen=True, slots=True)
class Example:
    url: str
    reason: str
    from_page: str


@dataclass(slots=True)
class Refusals:
    """Targets that one rule refused, with some examples; ``links`` counts pages that link to
    them."""

    rule: str
    targets: int = 0
    links: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, example: Example, links: int) -> None:
        self.targets += 1
        self.links += links
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(example)


def refusals(
    crawl: CrawlDir, settings: BaseSettings, index: LogIndex, frontier: FrontierReader
) -> tuple[Sequence[Refusals], bool]:
    """The rules with most targets first, the refused URLs at the end; False: only the first
    MAX_ASKED targets were judged.

    The crawl keeps no list of refused URLs, but its links are in links.log. Each target that is
    unknown to the frontier therefore goes through the filters that decide by the URL alone. A
    target that passes was refused for a reason that only the crawl knew: nofollow, depth.
    """
    asked: list[UrlFilter] = [
        one for one in filters(settings, crawl.seeds) if not isinstance(one, _NOT_BY_URL)
    ]
    found: dict[str, Refusals] = {}
    unknown = (
        (target.offsets[0], target.pages)
        for key, target in index.targets()
        if target.offsets and frontier.state(key) is UrlState.UNKNOWN
    )
    targets = list(islice(unknown, MAX_ASKED))
    whole = next(unknown, None) is None
    records = crawl.logs.records_at("links.log", (offset for offset, _ in targets))
    for (_, pages), fields in zip(targets, records, strict=True):
        if fields is not None:
            page, url, normalized, _, anchor = fields
            rule, reason = _verdict(asked, Link(url, normalized, anchor=anchor), Page(page))
            found.setdefault(rule, Refusals(rule)).add(Example(url, reason, page), pages)
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
        if len(row.examples) == MAX_EXAMPLES:
            break
        if fields[4] == "robots":
            row.examples.append(Example(fields[1], fields[7], fields[3]))
    return [row] if row.targets else []


LARGEST = 20
MAX_GROUPS = 20
MAX_COPIES = 5
MAX_DIGESTS = 2_000_000
"""Different contents that are compared; 100 bytes of memory each."""


@dataclass(slots=True)
class Documents:
    """The stored pages. ``of_failed``: the number of further bodies in the page files, which are
    the last answers of failed URLs. ``of_failed_bytes``: their size."""

    count: int = 0
    bytes: int = 0
    types: list[tuple[str, int, int]] = field(default_factory=list)
    """Type, documents, bytes; the most frequent first."""
    largest: list[StoredPage] = field(default_factory=list)
    of_failed: int = 0
    of_failed_bytes: int = 0
    of_old: int = 0
    """Old versions, and pages that were removed, that scrapy compact would take away if
    LARM_VERSIONS were 0; ``of_old_bytes`` of page files."""
    of_old_bytes: int = 0


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
    every = [
        int(fields[_SIZE])
        for part in crawl.parts
        for _, fields in part.logs.search("store.log", None, 0)
        if fields[STATUS] != REMOVED and fields[_SIZE].isdecimal()
    ]
    return Documents(
        counts.total(),
        sizes.total(),
        types,
        _largest(largest),
        len(failed),
        sum(failed),
        max(0, len(every) - counts.total() - len(failed)),
        max(0, sum(every) - sizes.total() - sum(failed)),
    )


def _has_failed(frontier: FrontierReader, page: StoredPage) -> bool:
    visit = last_visit(frontier, page.exact)
    return visit is not None and visit.state is UrlState.FAILED


def _largest(pages: list[StoredPage]) -> list[StoredPage]:
    return nlargest(LARGEST, pages, key=lambda page: page.size)


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """URLs with the same content: the number of all ``copies``, and the first ``urls``."""

    copies: int
    urls: Sequence[str]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """``urls``: the number of URLs beyond the first one of each content. ``whole``: whether all
    pages were compared."""

    urls: int
    groups: Sequence[DuplicateGroup]
    whole: bool


def duplicates(frontier: FrontierReader) -> Duplicates:
    """Stored pages with status 200 by the digest of their bodies, in two passes."""
    counts: Counter[bytes] = Counter()
    whole = True
    for _, visit in frontier.visits():
        if visit.state is UrlState.STORED and visit.status == 200 and visit.digest:
            key = visit.digest[:12]
            if key in counts or len(counts) < MAX_DIGESTS:
                counts[key] += 1
            else:
                whole = False
    most = {key: number for key, number in counts.most_common(MAX_GROUPS) if number > 1}
    urls: dict[bytes, list[str]] = {key: [] for key in most}
    for _, visit in frontier.visits() if most else ():
        found = urls.get(visit.digest[:12])
        if found is not None and len(found) < MAX_COPIES and visit.status == 200:
            found.append(visit.url)
    groups = [DuplicateGroup(number, sorted(urls[key])) for key, number in most.items()]
    beyond = sum(number - 1 for number in counts.values())
    return Duplicates(beyond, groups, whole)
