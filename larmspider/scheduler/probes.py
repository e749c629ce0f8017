"""Fetches that hang give up their places to hosts that are new or quick.

Of a host that has never answered nobody knows how long it holds a place. While others wait for one,
its first fetch may take LARM_PROBE_SECS: five hosts that are well, behind a hundred that trickle,
wait for 100 / places seconds. And a host that was quick may begin to hang: of fetches that have
lasted LARM_SLOW_SECS no more go on than slow hosts may have places (places.py).

What is let go is no failure, but the host is slow from then on, and asked again with all the time
there is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from scrapy.utils.asyncio import call_later

from larmspider import stats
from larmspider.fetch.downloader import LarmDownloader
from larmspider.frontier.hosts import Lease

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

    from larmspider.frontier.frontier import Frontier

LOOK_SECS = 0.25
"""Between two looks whether others wait."""
NEXT_SECS = 0.005
"""The same while a fetch is being let go."""


class Owner(Protocol):
    """Whose fetches these are: the scheduler."""

    crawler: Crawler
    closed: bool

    @property
    def frontier(self) -> Frontier: ...

    @property
    def leases(self) -> Iterable[Lease]: ...


class Probes:
    """Looks while fetches are under way. ``secs`` are for the first fetch from a host."""

    def __init__(self, scheduler: Owner, secs: float) -> None:
        self.scheduler, self.secs = scheduler, secs
        self._looks = False
        self._cut: Lease | None = None

    def watch(self, request: Request) -> Request:
        """``request`` is handed out."""
        if not self._looks:
            self._look_in(min(LOOK_SECS, self.secs))
        return request

    def _look_in(self, secs: float) -> None:
        self._looks = True
        call_later(secs, self._look, time.monotonic() + secs)

    def _look(self, planned: float) -> None:
        self._looks = False
        out = [] if self.scheduler.closed else list(self.scheduler.leases)
        if not out:
            return
        late = time.monotonic() - planned > LOOK_SECS  # and so are answers: they come first
        if (
            late
            or (self._cut is not None and self._cut.slot is not None)
            or (self.scheduler.frontier.needs_slots() and self._let_go(out))
        ):
            self._look_in(NEXT_SECS)
        else:
            self._look_in(min(LOOK_SECS, self.secs))

    def _let_go(self, out: list[Lease]) -> bool:
        """One of them, if any is overdue."""
        crawler = self.scheduler.crawler
        downloader: object = crawler.engine.downloader
        if not isinstance(downloader, LarmDownloader):
            return False
        for lease in out:
            if self._overdue(lease) and downloader.cancel(lease):
                self._cut, lease.overdue = lease, True
                assert crawler.stats is not None
                crawler.stats.inc_value(stats.SCHEDULER_PROBES_CUT)
                return True
        return False

    def _overdue(self, lease: Lease) -> bool:
        slot = lease.slot
        if slot is None or lease.overdue:
            return False
        if lease.is_probe and lease.host.record.slot_secs is None:
            return time.time() - lease.since >= self.secs
        return slot.turned_slow and self.scheduler.frontier.slots.too_many_slow
