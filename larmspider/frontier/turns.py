"""Whose turn it is: hosts by the time from which they may be asked. O(log hosts) a turn.

One heap for hosts whose time has not come; when it has, a host moves to the heap of its kind
(places.Kind), so that a kind that may have no place now does not stand in the way of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from typing import Generic, Protocol, TypeVar

from larmspider.frontier.slots import Kind


class HasTurn(Protocol):
    """``turn`` is the number of the entry that counts, 0 for none; older entries are stale.

    ``turn_time`` is when it is.
    """

    turn: int
    turn_time: float


T = TypeVar("T", bound=HasTurn)


class Turns(Generic[T]):
    """A host has at most one turn ahead."""

    def __init__(self) -> None:
        self._later: list[tuple[float, int, T]] = []
        self._due: dict[Kind, list[tuple[float, int, T]]] = {kind: [] for kind in Kind}
        self._number = 0
        self._live = 0

    def __len__(self) -> int:
        """Hosts that have a turn ahead."""
        return self._live

    def put(self, host: T, at: float) -> None:
        """Its turn is at that time, no longer at an earlier one that was set."""
        if host.turn and host.turn_time == at:
            return  # a snoozed host that is given a thousand links has one entry, not a thousand
        self._number += 1
        self._live += not host.turn
        host.turn, host.turn_time = self._number, at
        heappush(self._later, (at, self._number, host))

    def drop(self, host: T) -> None:
        """It has no turn until the next put()."""
        self._live -= bool(host.turn)
        host.turn = 0

    def advance(self, now: float, kind_of: Callable[[T], Kind]) -> None:
        """It is ``now``: who is due by then?"""
        later, due = self._later, self._due
        while later and later[0][0] <= now:
            item = heappop(later)
            if item[2].turn == item[1]:
                heappush(due[kind_of(item[2])], item)

    def take(self, now: float, kind_of: Callable[[T], Kind], kinds: Sequence[Kind]) -> T | None:
        """The host of these kinds that has been due longest; its turn is used up."""
        self.advance(now, kind_of)
        due = self._due
        for kind in kinds:  # all of them first: what one moves may be the best of another
            self._clean(due[kind], kind, kind_of)
        best: Kind | None = None
        for kind in kinds:
            if due[kind] and (best is None or due[kind][0] < due[best][0]):
                best = kind
        if best is None:
            return None
        host = heappop(due[best])[2]
        self.drop(host)
        return host

    def _clean(
        self, heap: list[tuple[float, int, T]], kind: Kind, kind_of: Callable[[T], Kind]
    ) -> None:
        """Stale entries go; one whose host has changed kind since moves."""
        while heap:
            item = heap[0]
            if item[2].turn == item[1]:
                actual = kind_of(item[2])
                if actual is kind:
                    return
                heappush(self._due[actual], item)
            heappop(heap)

    def due(self, kind: Kind) -> bool:
        """Is there an entry of that kind whose time has come? As of the last advance()."""
        heap = self._due[kind]
        while heap and heap[0][2].turn != heap[0][1]:
            heappop(heap)
        return bool(heap)

    def next_time(self) -> float | None:
        """The first time that has not come yet, as of the last take()."""
        host = self.next_host()
        return None if host is None else host.turn_time

    def next_host(self) -> T | None:
        """Whose time that is."""
        later = self._later
        while later and later[0][2].turn != later[0][1]:
            heappop(later)
        return later[0][2] if later else None
