"""Hosts in the order of their next fetch time.

queue.put(host, at)
queue.take(now, [Kind.QUICK])     # the quick host that has been due longest
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush

from larmspider.frontier.hosts import Host
from larmspider.frontier.slots import Kind


class ReadyQueue:
    """Hosts in the order of their next fetch time; each at most once. O(log hosts) a change.

    One heap holds the hosts whose time has not come; when it has, a host moves to the heap of its
    kind, so that a kind that may have no slot now does not stand in the way of the others. A stale
    entry stays until it reaches the front of its heap. ``Host.ticket`` is the number of the valid
    entry.
    """

    def __init__(self, kind_of: Callable[[Host], Kind]) -> None:
        self._kind_of = kind_of
        self._later: list[tuple[float, int, Host]] = []
        self._due: dict[Kind, list[tuple[float, int, Host]]] = {kind: [] for kind in Kind}
        self._last_ticket = 0
        self._size = 0

    def __len__(self) -> int:
        """Hosts that have a fetch ahead."""
        return self._size

    def __iter__(self) -> Iterator[Host]:
        heaps = self._later, *self._due.values()
        return (host for heap in heaps for _, ticket, host in heap if host.ticket == ticket)

    def put(self, host: Host, at: float) -> None:
        """Set the host's next fetch time, in place of an earlier one."""
        if host.ticket and host.next_fetch_time == at:
            return  # a snoozed host that is given a thousand links has one entry, not a thousand
        self._last_ticket += 1
        self._size += not host.ticket
        host.ticket, host.next_fetch_time = self._last_ticket, at
        heappush(self._later, (at, self._last_ticket, host))

    def drop(self, host: Host) -> None:
        """The host has no fetch ahead until the next put()."""
        self._size -= bool(host.ticket)
        host.ticket = 0

    def advance(self, now: float) -> None:
        """Move the hosts that are due by now to the heaps of their kinds."""
        later = self._later
        while later and later[0][0] <= now:
            item = heappop(later)
            if item[2].ticket == item[1]:
                heappush(self._due[self._kind_of(item[2])], item)

    def take(self, now: float, kinds: Sequence[Kind]) -> Host | None:
        """Remove the host of these kinds that has been due longest."""
        self.advance(now)
        due = self._due
        for kind in kinds:  # all of them first: what one moves may be the best of another
            self._clean(kind)
        best: Kind | None = None
        for kind in kinds:
            if due[kind] and (best is None or due[kind][0] < due[best][0]):
                best = kind
        if best is None:
            return None
        host = heappop(due[best])[2]
        self.drop(host)
        return host

    def _clean(self, kind: Kind) -> None:
        """Drop stale entries from the front; move a host that has changed its kind since."""
        heap = self._due[kind]
        while heap:
            item = heap[0]
            if item[2].ticket == item[1]:
                actual = self._kind_of(item[2])
                if actual is kind:
                    return
                heappush(self._due[actual], item)
            heappop(heap)

    def due(self, kind: Kind) -> bool:
        """Is a host of that kind due, as of the last advance()?"""
        heap = self._due[kind]
        while heap and heap[0][2].ticket != heap[0][1]:
            heappop(heap)
        return bool(heap)

    def next_time(self) -> float | None:
        """The first time that has not come yet, as of the last take()."""
        host = self.next_host()
        return None if host is None else host.next_fetch_time

    def next_host(self) -> Host | None:
        """The host that is due at next_time()."""
        later = self._later
        while later and later[0][2].ticket != later[0][1]:
            heappop(later)
        return later[0][2] if later else None
