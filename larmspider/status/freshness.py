"""Estimates how fresh a crawl is, from its revisits: without a request, from the frontier.

found = freshness(frontier, now)
found.current                   # 0.93: this share of its pages is thought to be unchanged
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING, Any

from larmspider import stats
from larmspider.formatting import count, counted
from larmspider.frontier.storage.records import UrlState, host_of
from larmspider.learned.deletes.table import Observation
from larmspider.learned.revisits.host import NOTE, HostKnowledge
from larmspider.learned.revisits.refresh import DAY, likely, prior
from larmspider.learned.revisits.revisiting import Purpose

if TYPE_CHECKING:
    from larmspider.frontier.storage.lmdb_reader import FrontierReader
    from larmspider.status.totals import Totals

LOOK_SECS = 1.0
"""CPU seconds for reading records, some 8 us each."""
HOSTS = 12
"""Hosts whose changes are listed."""
WHEN = {"now": 0.0, "within a day": DAY, "within a week": 7 * DAY}
"""Seconds from now until which pages are due."""
LEAST_CHECKED = 10
"""Pages chosen at random that have to be visited before they may contradict the estimate."""
LATER = "later"
_SEEN = {*map(str, Observation), "removed"}


@dataclass(frozen=True, slots=True)
class Freshness:
    """The estimated freshness of stored pages.

    pages      stored pages
    looked_at  pages that were counted; in a large crawl these are fewer
    current    share of the pages that are thought to be unchanged since their last visit
    due        numbers of pages, by when they are due
    changes    changes a day by host, most first, for hosts with known changes
    checked    pages that were chosen at random and visited within 30 days
    as_stored  checked pages that were unchanged
    missing    pages that were missing at their last visit; they count as not current
    """

    pages: int = 0
    looked_at: int = 0
    current: float = 1.0
    due: Mapping[str, int] = field(default_factory=dict)
    changes: Mapping[str, float] = field(default_factory=dict)
    checked: int = 0
    as_stored: int = 0
    missing: int = 0

    @property
    def is_known(self) -> bool:
        """Whether any page was visited again."""
        return bool(self.changes)

    @property
    def between(self) -> tuple[float, float]:
        """The range of the share of current pages, from the pages chosen at random, with a
        confidence of 95%."""
        return likely(self.as_stored, self.checked)

    @property
    def agrees(self) -> bool:
        """Whether ``current`` is in this range; True for fewer than LEAST_CHECKED pages."""
        low, high = self.between
        return self.checked < LEAST_CHECKED or low <= self.current <= high

    @property
    def sentences(self) -> list[str]:
        """Both in words; the second only where pages were checked."""
        of = f" (of {count(self.looked_at)} that were looked at)"
        found = [
            f"{self.current:.1%} of {counted(self.pages, 'page')} are as stored (estimate)"
            f"{of if self.looked_at < self.pages else ''}"
        ]
        if self.missing:
            found[0] += f"; {counted(self.missing, 'page')} not reached at the last visit"
        if self.checked:
            low, high = self.between
            if not self.agrees:
                found[0] += "; random pages show something else: trust these"
            found.append(
                f"{count(self.as_stored)} of {counted(self.checked, 'page')} chosen at random, and"
                f" visited in the last 30 days, were as stored: {low:.1%} to {high:.1%} of all with"
                " a confidence of 95%"
            )
        return found


def freshness(frontier: FrontierReader, now: float, seconds: float = LOOK_SECS) -> Freshness:
    """A copy of age t is current with the chance (b / (b + t)) ** a
    (learned/revisits/refresh.py)."""
    hosts: dict[str, HostKnowledge] = {}
    current, looked_at, missing = 0.0, 0, 0
    due: Counter[str] = Counter()
    checked = as_stored = 0
    changes: Counter[str] = Counter()
    ends = time.monotonic() + seconds
    for number, (_, visit) in enumerate(frontier.visits()):
        if not number % 1_000 and time.monotonic() > ends:
            break
        if visit.state is not UrlState.STORED:
            continue
        host = host_of(visit.url)
        if (known := hosts.get(host)) is None:
            known = hosts[host] = HostKnowledge.unpack(frontier.note(NOTE.format(host=host)))
            visited, as_they_were = known.checks.lately(now)
            checked, as_stored = checked + visited, as_stored + as_they_were
        a, b = (visit.a, visit.b) if visit.b else prior(known.rate)
        looked_at += 1
        if visit.missing_as:
            missing += 1
        else:
            current += (b / (b + known.pace.elapsed(visit.time, now))) ** a
        if known.exposure:
            changes[host] += 1
        if visit.due:
            left = visit.due - now
            due[next((word for word, limit in WHEN.items() if left <= limit), LATER)] += 1
    a_day = {host: number * hosts[host].rate * DAY for host, number in changes.items()}
    return Freshness(
        pages=frontier.counts().stored,
        looked_at=looked_at,
        current=current / looked_at if looked_at else 1.0,
        due={word: due[word] for word in (*WHEN, LATER)},
        checked=checked,
        missing=missing,
        as_stored=as_stored,
        changes=dict(nlargest(HOSTS, a_day.items(), key=lambda item: item[1])),
    )


def requests_by_purpose(counters: Mapping[str, Any]) -> dict[str, int]:
    """All requests of refreshes by purpose, in words: ``{"visits": 20, "second looks": 3, ...}``;
    empty if none was counted."""
    found = {
        purpose.replace("_", " "): int(counters.get(stats.REFRESH_SPENT.format(purpose=purpose), 0))
        for purpose in Purpose
    }
    return found if any(found.values()) else {}


def requests_in_words(by_purpose: Mapping[str, int]) -> str:
    """``26 requests in all: 20 visits, 3 second looks, 2 proofs, 1 other``; "" for none."""
    if not by_purpose:
        return ""
    parts = ", ".join(f"{count(number)} {purpose}" for purpose, number in by_purpose.items())
    return f"{counted(sum(by_purpose.values()), 'request')} in all: {parts}"


def visits_again(totals: Totals) -> dict[str, int]:
    """The number of revisits, by observation."""
    seen = totals.matching(stats.REFRESH)
    return {word: number for word, number in seen.items() if word in _SEEN}
