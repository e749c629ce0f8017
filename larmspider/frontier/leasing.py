"""The next fetch of a host whose turn it is: its robots.txt, or the next URL that it allows.

leasing.lease(host, now)   ->  Lease("http://wiki/robots.txt", entry=None)
leasing.lease(host, now)   ->  None: budget spent, window closed, nothing allowed, ...
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from larmspider.frontier.dispatch import PolitenessGroups, Schedule
from larmspider.frontier.hosts import Host, HostState, HostTable, Lease
from larmspider.frontier.politeness import Politeness
from larmspider.frontier.robots import RobotsCache
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState

ROBOTS_REASON = "robots.txt"
"""Why a URL that robots.txt does not allow is refused."""
MOST_REFUSED = 16
"""URLs of a host that are refused in one turn; the rest in its next one, behind others. 10 us each,
6 ms where robots.txt has as many wildcards as are read (robots.MAX_WILDCARDS)."""


class Leasing:
    """``refused`` are the URLs that robots.txt refused on the way; the caller empties it."""

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        places: SlotPool,
        hosts: HostTable,
        schedule: Schedule,
        grouping: PolitenessGroups,
        hour_of: Callable[[float], float],
        robots: RobotsCache | None,
    ) -> None:
        self._backend, self._politeness, self._places = backend, politeness, places
        self._hosts, self._schedule, self._grouping = hosts, schedule, grouping
        self._hour_of, self._robots = hour_of, robots
        self.refused: list[QueuedUrl] = []

    def lease(self, host: Host, now: float) -> Lease | None:
        """The host is due; None when it turns out that it has nothing to ask for now."""
        record = host.record
        self._hosts.touch(host)
        if host.paused or not self._grouping.ready(host):
            return None
        if host.rule.opens(now, self._hour_of) > now:
            return None  # its window closed while it was due
        record.wake()
        if host.rule.budget is not None and self._budget_spent(host):
            record.change(HostState.PARKED, inf, f"budget of {host.rule.budget} pages")
            return None
        if self._robots is None:
            if record.state is HostState.NEW:
                record.change(HostState.READY)
        elif record.robots_until <= now:
            if host.in_flight:
                return None
            record.change(HostState.LOADING)
            return self._begin(host, None, record.robots_url, now)
        entry = self._next_allowed(host, now)
        return self._begin(host, entry, entry.url, now) if entry else None

    def _next_allowed(self, host: Host, now: float) -> QueuedUrl | None:
        """The next URL that robots.txt allows; those that it does not are refused on the way."""
        rules = None if self._robots is None else self._robots.of(host.record.host)
        for _ in range(MOST_REFUSED):
            entries = self._pop(host.record.host, now)
            if not entries:
                return None
            if rules is None or rules.allowed(entries[0].url):
                return entries[0]
            visit = FetchRecord(UrlState.REFUSED, time=now, reason=ROBOTS_REASON)
            self._backend.acknowledge([(entries[0].key, visit)])
            self.refused.append(entries[0])
        host.record.next_time = max(host.record.next_time, now)  # else its turn is the first again
        return None

    def _pop(self, host: str, now: float) -> list[QueuedUrl]:
        """Also of those that wait for a time that would never come."""
        entries = self._backend.pop(host, now)
        if not entries:
            waiting = self._backend.next_time(host)
            if waiting and self._politeness.is_too_far(waiting, now):
                return self._backend.pop(host, inf)
        return entries

    def _begin(self, host: Host, entry: QueuedUrl | None, url: str, now: float) -> Lease:
        host.in_flight += 1
        host.record.next_time = now + self._politeness.gap_seconds(host.record)
        if host.group is not None:
            host.group.asked(host, now)
        holding = self._places.take(self._schedule.kind(host), now)
        return Lease(url, host, entry, now, holding, is_probe=host.record.hold is None)

    def _budget_spent(self, host: Host) -> bool:
        counts = self._backend.counts(host.record.host)
        return counts.stored + counts.leased >= (host.rule.budget or 0)
