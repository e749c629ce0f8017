"""When each host's turn is, as its state, gap, queue and group allow, and who may go now.

    schedule.set(host)            # after anything that bears on its turn: a link, an answer
    schedule.take(now)            # the host that has been due longest, if it may have a place
    schedule.next_ready_time(now)

turns.py keeps the times in order, places.py shares the places; what they are is decided here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from larmspider.frontier.groups import Group
from larmspider.frontier.hosts import HostState
from larmspider.frontier.lease import Host
from larmspider.frontier.politeness import Politeness
from larmspider.frontier.slots import Kind, Places
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.turns import Turns

_KINDS = tuple(Kind)


class Schedule:
    """``robots``: is robots.txt obeyed, and so renewed while its host is at rest?

    While it is ``crowded`` before the look-up of names, hosts that never answered have no turn.
    """

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        places: Places,
        clock: Callable[[], float],
        hour_of: Callable[[float], float],
        *,
        robots: bool,
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._backend, self._politeness, self._places = backend, politeness, places
        self._crowded = crowded
        self._clock, self._hour_of, self._robots = clock, hour_of, robots
        self._turns: Turns[Host] = Turns()

    def __len__(self) -> int:
        """Hosts that have a turn ahead."""
        return len(self._turns)

    def kind(self, host: Host) -> Kind:
        """Of the place that a fetch from it would hold."""
        return self._places.kind(host.record.hold, host.record.failures + host.record.parks)

    def take(self, now: float) -> Host | None:
        """The host that has been due longest, of those that may have a place now.

        Its turn is used up until set().
        """
        kinds = [kind for kind in _KINDS if self._allows(kind)]
        return self._turns.take(now, self.kind, kinds) if kinds else None

    def _allows(self, kind: Kind) -> bool:
        return self._places.allows(kind) and not (kind is Kind.UNPROVEN and self._crowded())

    def needs_places(self, now: float) -> bool:
        """Whether hosts that are due find no place: quick ones, or some that never answered."""
        self._places.age(now)
        self._turns.advance(now, self.kind)
        return any(
            self._turns.due(kind) and not self._places.allows(kind)
            for kind in (Kind.QUICK, Kind.UNPROVEN)
        )

    def next_ready_time(self, now: float) -> float | None:
        """When take() is worth asking next; None: only after an answer or a new link."""
        places = self._places
        if sum(places.held) >= places.total:
            return None
        due = [kind for kind in _KINDS if self._turns.due(kind)]
        if any(self._allows(kind) for kind in due):
            return now
        times = [self._turns.next_time(), places.next_age() if due else None]
        return min((time for time in times if time is not None), default=None)

    def next_host(self) -> Host | None:
        """The first of those whose turn has not come yet; ``turn_time`` is when it does."""
        return self._turns.next_host()

    def set(self, host: Host) -> None:
        """Its next turn as its state, gap and queue allow; none while there is nothing to do.

        Of a member of a group: the turns of all of them.
        """
        if host.group is None:
            self._put(host, self._turn_time(host))
        else:
            self.set_group(host.group)

    def set_group(self, group: Group[Host]) -> None:
        """The turns of all members, by the order and the gaps of groups.py. O(members).

        The limit of requests at once is the smallest of the members that are asked or could be.
        """
        now = self._clock()
        group.next_time = max([group.next_time, *(host.record.next_time for host in group)])
        own = {host: self._turn_time(host) for host in group}
        times: dict[Host, float] = {}  # of those whom only the group holds up
        for host, at in own.items():
            gap = self._politeness.gap_seconds(host.record)
            shared = max(group.next_time, group.last + gap)
            if at is not None and at <= max(shared, now):
                times[host] = max(at, shared)
        limits = [host.rule.connections or 1 for host in own if host in times or host.in_flight]
        in_flight, limit = group.in_flight, min(limits, default=1)
        earliest = 0.0
        for host, at in own.items():
            if at is not None and in_flight >= min(limit, host.rule.connections or 1):
                self._turns.drop(host)  # until one of them is released; its need is what it was
            elif host in times:
                earliest = max(earliest, times[host])
                self._put(host, earliest, len(times))
            else:
                self._put(host, at)

    def forget(self, host: Host) -> None:
        """It is another worker's now."""
        self._turns.drop(host)
        if host.need:
            self._places.change_need(-host.need)
            host.need = 0

    def _put(self, host: Host, at: float | None, share: int = 1) -> None:
        """``share``: so many have the places together that one of them would need."""
        record = host.record
        need = 0
        if at is None and host.in_flight:
            self._turns.drop(host)
            return  # its need is what it was
        if at is None or at == inf:
            self._turns.drop(host)
        else:
            self._turns.put(host, at)
        if record.state is HostState.READY and at is not None:
            gap = self._politeness.gap_seconds(record)
            need = self._places.need(record.hold, gap, host.rule.connections or 1) // share
        if need != host.need:
            self._places.change_need(need - host.need)
            host.need = need

    def _turn_time(self, host: Host) -> float | None:
        """When it may be asked, whatever its group says; None: not before something happens."""
        record = host.record
        if record.state is HostState.LOADING or host.in_flight >= (host.rule.connections or 1):
            return None
        if host.waits or host.leaves or host.paused:
            return None  # for its address, for another worker, for the operator
        if self._robots and host.in_flight and record.robots_until <= self._clock():
            return None  # the rules are renewed when the host is at rest
        waiting = self._backend.next_time(record.host)
        if waiting is None:
            return None
        if waiting and self._politeness.is_too_far(waiting, self._clock()):
            waiting = 0.0
        at = max(record.next_time, waiting)
        if record.state in (HostState.SNOOZED, HostState.PARKED):
            at = max(at, record.until)
        if host.rule.window is None or at == inf:
            return at
        return host.rule.opens(max(at, self._clock()), self._hour_of)
