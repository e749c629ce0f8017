"""When each host's turn is, as its state, gap, queue and group allow, and who may go now.

    schedule.set(host)            # after anything that bears on its turn: a link, an answer
    schedule.take(now)            # the host that has been due longest, if it may have a place
    schedule.next_ready_time(now)

turns.py keeps the times in order, places.py shares the places; what they are is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import Generic, Protocol, TypeVar

from larmspider.frontier.hosts import Group, Host, HostState, name_of
from larmspider.frontier.politeness import Politeness
from larmspider.frontier.slots import Kind, SlotPool
from larmspider.frontier.storage.backend import Backend

# Whose turn it is: hosts by the time from which they may be asked. O(log hosts) a turn.
#
# One heap for hosts whose time has not come; when it has, a host moves to the heap of its kind
# (places.Kind), so that a kind that may have no place now does not stand in the way of the others.


class HasTurn(Protocol):
    """``turn`` is the number of the entry that counts, 0 for none; older entries are stale.

    ``turn_time`` is when it is.
    """

    turn: int
    turn_time: float


T = TypeVar("T", bound=HasTurn)


class ReadyQueue(Generic[T]):
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


_KINDS = tuple(Kind)


class Schedule:
    """``robots``: is robots.txt obeyed, and so renewed while its host is at rest?

    While it is ``crowded`` before the look-up of names, hosts that never answered have no turn.
    """

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        places: SlotPool,
        clock: Callable[[], float],
        hour_of: Callable[[float], float],
        *,
        robots: bool,
        crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._backend, self._politeness, self._places = backend, politeness, places
        self._crowded = crowded
        self._clock, self._hour_of, self._robots = clock, hour_of, robots
        self._turns: ReadyQueue[Host] = ReadyQueue()

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


# Hosts wait for the address of their name, and those of one address may share their pace.
#
#     grouping.ready(host)                        # False: a look-up began, or it has just joined
#     grouping.address_known("wiki", "10.0.0.7")  # the look-up is over: wiki:80 and wiki:8080 go on
#
# A host that waits holds no download place: a silent server of names would have all of them held.
# groups.py says what the hosts of a group share (LARM_GROUP_BY); schedule.py keeps to it.


@dataclass(frozen=True, slots=True)
class AddressBook:
    """``address_of`` a host's name, None: not known yet, a look-up begins that ends with
    address_known(). ``grouped``: hosts of one address share their pace; else only the hosts wait
    whose robots.txt, by its URL, needs an ``own_address``. ``crowded``: a look-up has to wait, so
    hosts that never answered had better."""

    address_of: Callable[[str], str | None]
    grouped: bool = True
    own_address: Callable[[str], bool] = bool
    crowded: Callable[[], bool] = lambda: False


class PolitenessGroups:
    """Without a ``book`` no host waits, and none are grouped."""

    def __init__(self, book: AddressBook | None, schedule: Schedule) -> None:
        self._book, self._schedule = book, schedule
        self._groups: dict[str, Group[Host]] = {}
        self._waiting: dict[str, list[Host]] = {}  # for the address of their name

    def __len__(self) -> int:
        """Names that hosts wait for."""
        return len(self._waiting)

    def ready(self, host: Host) -> bool:
        """May it be asked? Else it waits for address_known(), or is in the group of its address
        now, whose turn may be another."""
        book = self._book
        if book is None or not (book.grouped or book.own_address(host.record.robots_url)):
            return True
        name = name_of(host.record.host)
        address = book.address_of(name)
        if address is None:
            host.waits = True
            self._waiting.setdefault(name, []).append(host)
            return False
        if not book.grouped:
            return True
        if host.group is not None and host.group.address == address:
            return True
        self._join(host, address)
        return False

    def address_known(self, name: str, address: str) -> None:
        """The look-up that ``address_of`` began is over."""
        for host in self._waiting.pop(name, ()):
            host.waits = False
            if host.group is not None:
                self._join(host, address)
            self._schedule.set(host)  # one without a group joins when it is asked, with others

    def forget(self, host: Host) -> None:
        """It is another worker's now."""
        for hosts in self._waiting.values():
            if host in hosts:
                hosts.remove(host)
        if host.group is not None:
            host.group.part(host)

    def _join(self, host: Host, address: str) -> None:
        before = host.group
        if before is not None and before.address == address:
            return
        self._groups.setdefault(address, Group(address)).join(host)
        if before is not None:
            self._schedule.set_group(before)
