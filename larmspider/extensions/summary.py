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

_REJECTED = re.compile(stats.FILTER_REJECTED.format(filter="([^/]+)"))
_FAILED = re.compile(stats.FETCH_FAILED_KIND.format(kind="([^/]+)"))
_STATUS = re.compile(stats.PAGE_FILES_STATUS.format(status="([0-9]+)"))


@dataclass(frozen=True, slots=True)
class Summary:
    """Totals of one crawl. ``refused`` counts links by filter (one URL may be linked often);
    links to pages already known are in ``known``."""

    directory: Path
    reason: str
    pages: int
    bytes: int
    statuses: dict[str, int]
    known: int
    refused: dict[str, int]
    failed: dict[str, int]

    @classmethod
    def of(cls, crawler: Crawler) -> Self:
        assert crawler.stats is not None
        counters = crawler.stats.get_stats()
        refused = _matching(counters, _REJECTED)
        known = refused.pop("visited", 0)
        return cls(
            directory=options.larm_dir(crawler.settings),
            reason=str(counters.get("finish_reason", "unknown")),
            pages=counters.get(stats.PAGE_FILES_PAGES, 0),
            bytes=counters.get(stats.PAGE_FILES_BYTES, 0),
            statuses=_matching(counters, _STATUS),
            known=known,
            refused=refused,
            failed=_matching(counters, _FAILED),
        )

    @property
    def exit_status(self) -> int:
        """0, or 1 for a crawl that ended by itself and has nothing to show."""
        return 1 if self.reason == "finished" and not self.pages else 0

    def lines(self) -> Iterator[str]:
        yield f"{'ended':<9} {self.reason}"
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
