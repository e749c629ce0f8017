"""Fetches that hang give up their slots to hosts that are new or quick.

A host that has never answered may hold a slot for long. While other hosts wait for a slot, its
first fetch may take LARM_PROBE_SECS: five healthy hosts behind 100 hosts that trickle wait for
100 / slots seconds. A host that was quick may begin to hang, too. Fetches that have lasted
LARM_SLOW_SECS may have only the slots of slow hosts (frontier/slots.py); the others are cancelled.

A cancelled fetch is not a failure, but its host counts as slow from then on. The retry has the
whole DOWNLOAD_TIMEOUT.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from larmspider import stats
from larmspider.fetch.downloader import LarmDownloader
from larmspider.frontier.hosts import Lease

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.learned.learning import LearningFrontier
    from larmspider.scheduler.leases import Leases

LOOK_SECS = 0.25
"""Seconds between two checks whether other hosts wait for a slot."""
NEXT_SECS = 0.005
"""Seconds between two checks while a fetch is being cancelled."""


class Probes:
    """Checks regularly while fetches are under way. ``secs``: the time that the first fetch from a
    host may take."""

    def __init__(
        self, crawler: Crawler, frontier: LearningFrontier, leases: Leases, secs: float
    ) -> None:
        self.crawler, self.frontier, self.leases, self.secs = crawler, frontier, leases, secs
        self._timed = self._closed = False
        self._cancelled: Lease | None = None

    def watch(self) -> None:
        """A fetch has begun."""
        if not self._timed:
            self._look_in(min(LOOK_SECS, self.secs))

    def close(self) -> None:
        """Stop cancelling fetches."""
        self._closed = True

    def _look_in(self, secs: float) -> None:
        self._timed = True
        call_later(secs, self._look, time.monotonic() + secs)

    def _look(self, planned: float) -> None:
        self._timed = False
        out = [] if self._closed else list(self.leases)
        if not out:
            return
        late = time.monotonic() - planned > LOOK_SECS  # and so are answers: they come first
        if (
            late
            or (self._cancelled is not None and self._cancelled.slot is not None)
            or (self.frontier.needs_slots() and self._cancel_one(out))
        ):
            self._look_in(NEXT_SECS)
        else:
            self._look_in(min(LOOK_SECS, self.secs))

    def _cancel_one(self, out: list[Lease]) -> bool:
        """Cancel one overdue fetch, if there is one."""
        downloader: object = self.crawler.engine.downloader
        if not isinstance(downloader, LarmDownloader):
            return False
        for lease in out:
            if self._overdue(lease) and downloader.cancel(lease):
                self._cancelled, lease.overdue = lease, True
                assert self.crawler.stats is not None
                self.crawler.stats.inc_value(stats.SCHEDULER_PROBES_CUT)
                return True
        return False

    def _overdue(self, lease: Lease) -> bool:
        slot = lease.slot
        if slot is None or lease.overdue:
            return False
        if lease.host.record.slot_secs is None:
            return time.time() - lease.since >= self.secs
        return slot.turned_slow and self.frontier.slots.too_many_slow
