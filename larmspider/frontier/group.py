"""Hosts that share their pace because their names resolve to one address.

    wiki:80, docs:80 -> 10.0.0.7    one gap and one limit of requests at once over both

A member's next request comes a gap after the last request to any member: the larger gap of the two
hosts. Members take turns: the member whose last request was longest ago comes first. If a member
waits only for the group, no other member overtakes it. Otherwise a host with a gap of 10 s would
never have a turn beside a host with 2 s.

dispatch.py decides when a member may get a request. Each change of a member costs O(log members):
only the first waiting member of each kind of slot is in the ready queue, for all members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any, Generic, Protocol, TypeVar

from larmspider.frontier.slots import KINDS, Kind


class Pace(Protocol):
    """The part of a member's rule that a group needs."""

    @property
    def connections(self) -> int | None: ...


class Member(Protocol):
    """The part of a host (hosts.py) that a group needs."""

    group: Any
    in_flight: int

    @property
    def rule(self) -> Pace: ...


Host = TypeVar("Host", bound=Member)


class Group(Generic[Host]):
    """``last``: the time of the last request to any member. ``next_time``: no member gets a request
    before it, by the gaps of the members that got one. Both in seconds since the epoch.
    ``in_flight``: requests under way to all members. ``front``: the waiting members that are in the
    ready queue."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.last = self.next_time = 0.0
        self.in_flight = 0
        self.front: list[Host] = []
        self._turns = 0
        self._members: dict[Host, int] = {}
        self._waiting: dict[Host, tuple[Kind, float]] = {}
        self._queues: dict[Kind, list[tuple[int, Host]]] = {kind: [] for kind in KINDS}
        self._queued: set[tuple[Kind, int]] = set()
        self._limits: Counter[int] = Counter()
        self._limit_of: dict[Host, int] = {}

    def __repr__(self) -> str:
        return f"<Group {self.address}: {len(self._members)} hosts, {self.in_flight} in flight>"

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Host]:
        return iter(self._members)

    @property
    def limit(self) -> int:
        """Requests at once: the smallest limit of the members that have requests or wait."""
        return min(self._limits, default=1)

    def join(self, host: Host) -> None:
        """Move a host into this group, out of its earlier group if it had one. The host's last
        request counts for this group, too."""
        if host.group is not None:
            self.last = max(self.last, host.group.last)
            host.group.remove(host)
        host.group = self
        self._turn(host)
        self.in_flight += host.in_flight
        self._count_limit(host)

    def remove(self, host: Host) -> None:
        """The host is not a member from now on."""
        self.release(host)
        self._members.pop(host)
        self.in_flight -= host.in_flight
        host.group = None
        self._count_limit(host)
        if host in self.front:
            self.front.remove(host)

    def asked(self, host: Host, at: float) -> None:
        """A request went to a member; its next turn comes after the turns of the others."""
        self.last = max(self.last, at)
        self._turn(host)
        if host in self._waiting:
            self.wait(host, *self._waiting[host])

    def began(self, host: Host) -> None:
        """A request to a member is under way; its ``in_flight`` counts it already."""
        self.in_flight += 1
        self._count_limit(host)

    def ended(self, host: Host) -> None:
        """The reverse of began()."""
        self.in_flight -= 1
        self._count_limit(host)

    def set_back(self, now: float) -> None:
        """The clock was set back; the members' times are new, and give the next one."""
        self.last, self.next_time = min(self.last, now), 0.0

    # members that only the group holds up

    def waits(self, host: Host) -> bool:
        """Whether only the group holds the member up."""
        return host in self._waiting

    def own_time(self, host: Host) -> float:
        """When a waiting member might get a request if it were alone."""
        return self._waiting[host][1]

    def wait(self, host: Host, kind: Kind, at: float) -> None:
        """Let a member wait for its group alone; without the group it might get a request from
        ``at`` on. ``kind`` is the kind of slot that it needs."""
        self._waiting[host] = kind, at
        entry = kind, self._members[host]
        if entry not in self._queued:
            self._queued.add(entry)
            heappush(self._queues[kind], (entry[1], host))
        self._count_limit(host)

    def release(self, host: Host) -> None:
        """The member does not wait for the group."""
        if self._waiting.pop(host, None) is not None:
            self._count_limit(host)

    def heads(self) -> list[Host]:
        """The waiting member of each kind whose last request is longest ago, in order of their
        turns."""
        found = [host for kind in KINDS if (host := self._first(kind)) is not None]
        return sorted(found, key=self._members.__getitem__)

    def _first(self, kind: Kind) -> Host | None:
        queue = self._queues[kind]
        while queue:
            turn, host = queue[0]
            wanted = self._waiting.get(host)
            if wanted is not None and wanted[0] is kind and self._members[host] == turn:
                return host
            heappop(queue)
            self._queued.discard((kind, turn))
        return None

    def _turn(self, host: Host) -> None:
        """The host is the last of all members from now on. Each turn is given once."""
        self._turns += 1
        self._members.pop(host, None)
        self._members[host] = self._turns

    def _count_limit(self, host: Host) -> None:
        counts = host in self._members and (host in self._waiting or host.in_flight)
        limit = (host.rule.connections or 1) if counts else 0
        before = self._limit_of.pop(host, 0)
        if limit:
            self._limit_of[host] = limit
        if limit != before:
            self._limits[limit] += 1
            self._limits[before] -= 1
            for number in (limit, before):
                if not number or not self._limits[number]:
                    del self._limits[number]
