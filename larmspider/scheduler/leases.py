"""The leases that are out: each belongs to a Request, and each has to end.

    leases.take(lease)
    leases.retry(request, "timeout") or leases.free(request, "timeout")
    leases.settle(request, Visit(UrlState.STORED, ...))

What ends them are the middlewares that hear of answers (middlewares/answers.py) and of stored items
(middlewares/acknowledge.py). A component that swallows its Request or response loses one: that is
noticed here, or the crawl would wait for ever.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

from larmspider import stats
from larmspider.frontier.hosts import HostState, Lease
from larmspider.frontier.storage.records import UrlState, Visit
from larmspider.requests import LEASE, REQUEUED
from larmspider.scheduler.counters import keys_of
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.statscollectors import StatsCollector

    from larmspider.frontier.frontier import Frontier

logger = logging.getLogger(__name__)


class Leases:
    """Of one crawl. The lease stays in Request.meta until its URL has its final state."""

    def __init__(self, frontier: Frontier, counters: StatsCollector) -> None:
        self.frontier, self.counters = frontier, counters
        self._out: set[Lease] = set()
        self._parked: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._out)

    def __iter__(self) -> Iterator[Lease]:
        return iter(list(self._out))

    def take(self, lease: Lease) -> None:
        """It is handed out."""
        self._out.add(lease)

    def give_back(self, request: Request) -> Request:
        """The fetch was not made: its URL returns to its place. Scrapy drops the Request."""
        lease = request.meta.pop(LEASE)
        self._out.discard(lease)
        self.frontier.give_back(lease)
        request.meta[REQUEUED] = True
        return request

    def retry(
        self, request: Request, kind: str, retry_after: float | None = None
    ) -> Request | None:
        """Queue a failed fetch again, with backoff; None if it has had its attempts."""
        lease = request.meta[LEASE]
        if not self.frontier.retries(lease, kind):
            return None
        request.meta.pop(LEASE)
        self._out.discard(lease)
        self.frontier.failed(lease, kind, elapsed(request), retry_after=retry_after)
        self._tell_if_parked(lease)
        request.meta[REQUEUED] = True
        return request

    def free(self, request: Request, kind: str = "", retry_after: float | None = None) -> None:
        """A last attempt is over: its place is free, its host judged at once, or the host's next
        URL would go out before the stores are through with this one. ``kind`` as in failures.py,
        "" where the fetch says nothing about its host."""
        lease = request.meta[LEASE]
        self.frontier.freed(lease, kind, elapsed(request), retry_after=retry_after)
        self._tell_if_parked(lease)

    def settle(self, request: Request, visit: Visit) -> None:
        """The URL's final state; nothing if it has one already."""
        lease = request.meta.pop(LEASE, None)
        if lease is not None and not lease.is_robots:
            self.settle_lease(lease, visit, elapsed(request))

    def settle_lease(self, lease: Lease, visit: Visit, seconds: float = 0.0) -> None:
        """The same by the lease; the fetch took ``seconds``."""
        self._out.discard(lease)
        for key in keys_of(visit):
            self.counters.inc_value(key)
        if visit.state is UrlState.FAILED and visit.reason:
            self.frontier.failed_for_good(lease, visit, seconds)
            self._tell_if_parked(lease)
        else:
            self.frontier.done(lease, visit)

    def end_robots(self, lease: Lease) -> None:
        """The robots.txt of a lease was answered, or failed."""
        self._out.discard(lease)
        self._tell_if_parked(lease)

    def end_lost(self) -> None:
        """Nobody will end those that are out: their fetches failed."""
        for lease in self:
            shown = without_userinfo(lease.url)
            logger.error("Nobody ended the fetch of %s; it counts as failed", shown)
            if lease.is_robots:
                self.frontier.failed(lease, "lost", 0.0)
                self.end_robots(lease)
            else:
                self.settle_lease(lease, Visit(UrlState.FAILED, time=time.time(), reason="lost"))

    def _tell_if_parked(self, lease: Lease) -> None:
        """After a failure: say so where it was one too many for the host."""
        record = lease.host.record
        if record.state is not HostState.PARKED:
            self._parked.pop(record.host, None)
            return
        if self._parked.get(record.host) == record.parks:
            return  # another of the fetches that were under way
        self._parked[record.host] = record.parks
        if record.until == inf:
            self.counters.inc_value(stats.HOSTS_GIVEN_UP)
            logger.warning("Host %s: %s; until the next run", record.host, record.reason)
        else:
            seconds = record.until - time.time()
            logger.warning(
                "Host %s: left alone for %.0f s: %s", record.host, seconds, record.reason
            )


def elapsed(request: Request) -> float:
    """Seconds since the download of this Request began; 0.0 if it did not. Not by the time of day,
    which may be set, or jump over hours that the machine slept: a host would be left alone so long.
    """
    started = request.meta.get("download_started")
    return 0.0 if started is None else max(0.0, time.monotonic() - started)
