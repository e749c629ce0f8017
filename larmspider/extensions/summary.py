"""What a crawl ends with on the terminal: stored, refused and failed, and where to look."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from larmspider import options, stats

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

UNKNOWN = "unknown"
"""The reason of a crawl that was ended before it could close: by a second Ctrl-C, for one."""
_REJECTED = re.compile(stats.FILTER_REJECTED.format(filter="([^/]+)"))
_FAILED = re.compile(stats.FETCH_FAILED_KIND.format(kind="([^/]+)"))
_FRONTIER = re.compile(stats.FRONTIER.format(state="([a-z]+)"))
_STATUS = re.compile(stats.PAGE_FILES_STATUS.format(status="([0-9]+)"))


@dataclass(frozen=True, slots=True)
class Summary:
    """Totals of one crawl. ``refused`` counts links by filter (one URL may be linked often);
    links to pages already known are in ``known``. ``kept`` are stored pages of earlier
    runs too, ``left`` URLs still to fetch, ``given_up``
    hosts that are not asked any more in this run."""

    directory: Path
    reason: str
    pages: int
    bytes: int
    statuses: dict[str, int]
    known: int
    refused: dict[str, int]
    failed: dict[str, int]
    urls: dict[str, int]
    """URLs of the whole crawl by state, earlier runs included; empty without a frontier."""
    given_up: int = 0
    """Hosts that are left alone until the next run."""
    broken: str = ""
    """Why the crawl broke off."""

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        assert crawler.stats is not None
        counters = crawler.stats.get_stats()
        refused = _matching(counters, _REJECTED)
        known = refused.pop("visited", 0)
        return cls(
            directory=options.larm_dir(crawler.settings),
            reason=str(counters.get("finish_reason", UNKNOWN)),
            pages=counters.get(stats.PAGE_FILES_PAGES, 0),
            bytes=counters.get(stats.PAGE_FILES_BYTES, 0),
            statuses=_matching(counters, _STATUS),
            known=known,
            refused=refused,
            failed=_matching(counters, _FAILED),
            urls=_matching(counters, _FRONTIER),
            given_up=counters.get(stats.HOSTS_GIVEN_UP, 0),
            broken=str(counters.get(stats.BROKEN, "")),
        )

    @property
    def exit_status(self) -> int:
        """0: it ended, or was stopped as asked; 1: it broke off, did not close, or has nothing."""
        if self.broken or self.reason == UNKNOWN:
            return 1
        nothing = not (self.pages or self.urls.get("stored"))
        return 1 if self.reason == "finished" and nothing else 0

    def lines(self) -> Iterator[str]:
        """The last lines of a crawl: of this run, then of the whole crawl."""
        yield f"{'ended':<9} {'broken' if self.broken else self.reason}"
        yield (
            f"{'stored':<9} {self.pages:,} pages, {_size(self.bytes)}"
            f" ({_listed(self.statuses, 'HTTP ')}) in {self.directory}"
        )
        yield (
            f"{'refused':<9} {sum(self.refused.values()):,} links ({_listed(self.refused)});"
            f" {self.known:,} more led to pages already known"
        )
        yield (
            f"{'failed':<9} {sum(self.failed.values()):,} fetches ({_listed(self.failed)}),"
            f" each with its reason in {self.directory / 'fetch.log'}"
        )
        count = self.urls.get
        if self.urls:
            yield (
                f"{'in all':<9} {count('discovered', 0):,} URLs: {count('stored', 0):,} stored,"
                f" {count('refused', 0):,} refused by robots.txt or a store,"
                f" {count('failed', 0):,} failed"
            )
        if left := count("queued", 0):
            hosts = f"; {self.given_up:,} hosts were given up" if self.given_up else ""
            yield f"{'left':<9} {left:,} URLs, for the same command to go on with{hosts}"


def _matching(counters: dict[str, int], key: re.Pattern[str]) -> dict[str, int]:
    """The counters whose key has the form ``key``, by the part that varies, largest first."""
    found = {match[1]: value for name, value in counters.items() if (match := key.fullmatch(name))}
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _size(number: float) -> str:
    """Bytes for people: 32.5 kB, 1.2 GB."""
    if number < 1000:
        return f"{number:,.0f} bytes"
    units = ["kB", "MB", "GB", "TB"]
    step = min(len(units), int(math.log10(number)) // 3)
    return f"{number / 1000**step:,.1f} {units[step - 1]}"


def _listed(counts: dict[str, int], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{name} {count:,}" for name, count in counts.items()) or "none"
