"""The history of a page: its visits, its versions, and what changed from one to another.

found = history(crawl, "http://wiki/start")
version = found.at(moment("2026-01-31"))                    # that day's last one
changes(text_of(crawl, version.page, settings), ...)        # ("-", "Old."), ("+", "New.")
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from datetime import time as time_of_day
from difflib import SequenceMatcher
from itertools import islice
from typing import TYPE_CHECKING
from zlib import crc32

from larmspider import program
from larmspider.crawl.logs import REMOVED, STATUS
from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.formatting import counted, utc
from larmspider.pipelines.deleted_log import DELETED_LOG_COLUMNS, kept_for_now
from larmspider.pipelines.fetch_log import KEPT
from larmspider.pipelines.records import read_records
from larmspider.reports.explain import read_again
from larmspider.reports.page_history import old_urls

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

TAKEN_OUT, MOVED = "taken out", "moved"
MAX_VISITS = 1_000
"""Visits that are kept: the latest."""
MAX_BLOCKS = 5_000
"""Blocks of a text that are compared."""
MAX_CHANGES = 200
"""Lines that are shown."""
LONG_SENTENCE = 12
"""Words after which a block may end inside of a sentence: menus and tables have no full stops."""
_COPIES = ("same page as ", "fetched again, to compare ", "asked ", "differs from ")
_SENTENCE_END = re.compile(r"[.!?\u2026\u3002]['\")\u201d]*\Z")


@dataclass(frozen=True, slots=True)
class Visit:
    """``result`` and ``message`` as in fetch.log; TAKEN_OUT and why, as in deleted.log; MOVED for
    the end of an old URL. ``url``: the old URL of the page then, "" for its URL of now."""

    time: str
    result: str
    message: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Version:
    """``time`` as in fetch.log, "" if it is not known. ``page`` is None if it is not stored
    any more, ``why`` says why. ``url`` as in Visit."""

    time: str
    status: int
    size: int
    page: StoredPage | None
    why: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """The visits and versions of a page, in the order of time."""

    url: str
    visits: list[Visit] = field(default_factory=list)
    versions: list[Version] = field(default_factory=list)

    def at(self, when: float) -> tuple[Version, StoredPage]:
        """The version that was the last one then. Raises CrawlDirError if there was none."""
        text = utc(when)
        until = [visit for visit in self.visits if visit.time <= text]
        then = [version for version in self.versions if version.time <= text]
        if not then:
            first = f"; the first version is of {self.versions[0].time}" if self.versions else ""
            raise CrawlDirError(f"{self.url} was not stored by {text}{first}")
        version = then[-1]
        out = [visit for visit in until if visit.result == TAKEN_OUT and visit.time >= version.time]
        if out:
            raise CrawlDirError(f"{self.url} was removed {out[-1].time}: {out[-1].message}")
        if version.page is None:
            raise CrawlDirError(f"{self.url}: the version of {version.time} {version.why}")
        return version, version.page


def moment(text: str) -> float:
    """Seconds since the epoch of ``2026-01-31`` (its end) or ``2026-01-31T12:00`` (UTC, where it
    names no zone). Raises ConfigError."""
    try:
        found = datetime.fromisoformat(text)
        if "T" not in text and " " not in text:
            found = datetime.combine(found, time_of_day.max)
        when = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        utc(when)  # within the years that can be written
        return when
    except (ValueError, OverflowError):
        raise ConfigError(
            f"--at {text}: expected a date such as 2026-01-31 or 2026-01-31T12:00"
        ) from None


def history(
    crawl: CrawlDir,
    exact: str,
    now: float | None = None,
    may_see: Callable[[str], bool] = lambda _url: True,
) -> History:
    """Everything in the logs about a URL, by its exact form; of several workers by time. Visits and
    versions of its old URLs, from which it has moved, are included if the reader ``may_see``
    them."""
    exact, now = crawl.name_of(exact), time.time() if now is None else now
    found = History(exact)
    moved = [one for one in old_urls(crawl, exact) if may_see(one[0])]
    for part in crawl.parts:
        fetches = list(part.logs.all_of("fetch.log", exact))
        found.visits.extend(Visit(one[0], one[4], one[7]) for one in fetches[-MAX_VISITS:])
        found.visits.extend(_taken_out(part, exact))
        found.versions.extend(_versions(part, exact, fetches, now))
        for url, old, until in moved:
            fetches = [one for one in part.logs.all_of("fetch.log", old) if one[0] <= until]
            found.visits.extend(Visit(one[0], one[4], one[7], url) for one in fetches[-MAX_VISITS:])
            versions = _versions(part, old, fetches, now, moved=True)
            found.versions.extend(replace(one, url=url) for one in versions)
    found.visits.extend(Visit(until, MOVED, f"from {url}", url) for url, _, until in moved)
    found.visits.sort(key=lambda visit: visit.time)
    found.versions.sort(key=lambda version: version.time)
    return found


def _taken_out(part: CrawlDir, exact: str) -> Iterator[Visit]:
    path = part.path / "deleted.log"
    if path.exists():
        for when, _, of, reason in read_records(path, len(DELETED_LOG_COLUMNS)):
            if of == exact:
                yield Visit(when, TAKEN_OUT, reason)


def _versions(
    part: CrawlDir, exact: str, fetches: Iterable[list[str]], now: float, *, moved: bool = False
) -> Iterator[Version]:
    """The versions of a page. Records of store.log have no time: the last record
    belongs to the last fetch, and so on. Records of a ``moved`` page stay, for its new URL."""
    stored: list[StoredPage] = []
    gone = ""
    for fields in part.logs.all_of("store.log", exact):
        if fields[STATUS] == REMOVED:
            if not moved and (fields[7], fields[1]) not in kept_for_now(part.path, now):
                stored, gone = [], fields[7]
        else:
            stored.append(part.page_of(fields))
    got = [one for one in fetches if one[4].isdecimal() and not one[7].startswith((KEPT, *_COPIES))]
    for before_last, (when, _, _, _, result, size, _, _) in zip(
        range(len(got) - 1, -1, -1), got, strict=True
    ):
        if before_last < len(stored):
            page = stored[-1 - before_last]
            yield Version(when, page.status, page.size, page)
            continue
        why = f"was deleted by {program.NAME} compact (LARM_VERSIONS says how many stay)"
        if when <= gone:
            why = f"does not count since the page was removed {gone}"
        yield Version(when, int(result), int(size or 0), None, why)
    if not got:  # no fetch.log
        yield from (Version("", page.status, page.size, page) for page in stored)


def text_of(crawl: CrawlDir, page: StoredPage, settings: BaseSettings) -> list[str]:
    """The blocks of a version's text, its title first: sentences, or parts of them that end where
    they did before if words come in or go. Raises CrawlDirError."""
    read = read_again(crawl.body(page), page, settings)
    texts = [read.text, *(f"{part.name}: {part.title} {part.text}" for part in read.parts)]
    blocks = (block for text in texts for block in _blocks(text))
    return [read.title or page.title, *islice(blocks, MAX_BLOCKS)]


def _blocks(text: str) -> Iterator[str]:
    block: list[str] = []
    for word in text.split():
        block.append(word)
        ends = _SENTENCE_END.search(word)
        if ends or (
            len(block) >= LONG_SENTENCE and crc32(word.encode("utf-8", "replace")) % 4 == 0
        ):
            yield " ".join(block)
            block = []
    if block:
        yield " ".join(block)


def changes(old: list[str], new: list[str]) -> tuple[list[tuple[str, str]], str]:
    """Blocks that went ("-"), came ("+") or stand beside them (" "), and what was left out."""
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    found: list[tuple[str, str]] = []
    for group in matcher.get_grouped_opcodes(1):
        if found:
            found.append((" ", "\u2026"))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                found += ((" ", block) for block in old[old_from:old_to])
            else:
                found += (("-", block) for block in old[old_from:old_to])
                found += (("+", block) for block in new[new_from:new_to])
    more = len(found) - MAX_CHANGES
    left = f"{counted(more, 'further line')} not shown" if more > 0 else ""
    if max(len(old), len(new)) > MAX_BLOCKS:
        left = "; ".join(
            filter(None, (left, f"only the first {MAX_BLOCKS:,} blocks were compared"))
        )
    return found[:MAX_CHANGES], left
