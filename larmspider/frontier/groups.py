"""Hosts that share their pace because their names resolve to one address.

    wiki:80, docs:80 -> 10.0.0.7    one gap and one limit of requests at once over both

A member's next request comes a gap after the last one to any member: the larger gap of the two
hosts. Members take turns, the one that was asked longest ago first, and none overtakes a member
that only the gap holds up: else one with a gap of 10 s would never have a turn beside one with 2 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, Protocol, TypeVar


class Member(Protocol):
    """``in_flight`` requests under way; ``group`` it is in, set by join()."""

    in_flight: int
    group: Any


T = TypeVar("T", bound=Member)


class Group(Generic[T]):
    """``last``: when any member was asked last. ``next_time``: none is asked before it, by the gaps
    of the members that were asked. Both in seconds since the epoch."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.last = self.next_time = 0.0
        self._members: dict[T, None] = {}

    def __repr__(self) -> str:
        return f"<Group {self.address}: {len(self._members)} hosts, {self.in_flight} in flight>"

    def __iter__(self) -> Iterator[T]:
        """The members, the one that was asked or joined longest ago first."""
        return iter(self._members)

    @property
    def in_flight(self) -> int:
        """Requests under way to all members."""
        return sum(host.in_flight for host in self)

    def join(self, host: T) -> None:
        """A new member; what is known of its requests counts here from now on."""
        if host.group is not None:
            self.last = max(self.last, host.group.last)
            del host.group._members[host]
        self._members[host] = None
        host.group = self

    def part(self, host: T) -> None:
        """A member less."""
        self._members.pop(host, None)
        host.group = None

    def asked(self, host: T, at: float) -> None:
        """A request to a member; its next turn comes after those of the others."""
        self.last = max(self.last, at)
        del self._members[host]
        self._members[host] = None

    def set_back(self, now: float) -> None:
        """The clock has been: the members' times, which say when the next one may be, are new."""
        self.last, self.next_time = min(self.last, now), 0.0


def name_of(host: str) -> str:
    """The name that is looked up: ``wiki`` for wiki:80, ``[::1]`` for [::1]:80."""
    return host.rpartition(":")[0] or host
