"""Which partitions a worker gives up: surplus ones, and ones that keep it too busy.

A worker has its share of the partitions. With few hosts this is not a share of the work: one worker
may get two of three hosts, and another none. Each worker therefore reports its number of busy hosts
to Redis. The partition of such a host moves to a worker that has at least two fewer (lua/beat.lua
decides, so that two workers never choose the same partition). If that worker then has too many
partitions, it gives up some without busy hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from larmspider.cluster.membership import Beat, Load

if TYPE_CHECKING:
    from larmspider.frontier.frontier import Frontier
    from larmspider.frontier.hosts import Host

BUSY_URLS = 10
"""Queued URLs of a host that are worth a move, which costs a checkpoint and a gap."""
SOON_SECS = 60.0
"""Seconds: a failed host that is due later than this does not count as busy."""
STAY_SECS = 60.0
"""Least seconds that a moved partition stays."""
CANDIDATES = 8
"""Partitions that a worker offers at a time."""
SLICE = 200
"""Hosts that are looked at in a tenth of a second: 0.2 ms."""


class Rebalance:
    """Which partitions a worker should give up: the number that Redis wanted last, less the ones
    given up since, and the ones that Redis moves to a worker that is less busy.

        rebalance.note(beat)                  # each heartbeat: held partitions, and the excess
        rebalance.next(partitions.leaving)    # [17, 201]: these should leave as well
        rebalance.release([17, 201])          # they are on their way back to Redis

    A beat may still count partitions that were released before it is noted. They count as given up
    then; otherwise the same number of partitions would leave again. Called on the event loop only.
    """

    def __init__(self) -> None:
        self._held: Mapping[int, int] = {}
        self._excess = 0
        self._moving: frozenset[int] = frozenset()
        self._released: set[int] = set()

    def note(self, beat: Beat) -> None:
        self._held, self._excess, self._moving = beat.held, beat.excess, beat.going
        self._released = (self._released & beat.held.keys()) - beat.given.keys()

    def release(self, partitions: Iterable[int]) -> None:
        """Note that these partitions were given up."""
        self._released.update(partitions)

    def next(self, leaving: Collection[int], busy: Collection[int] = ()) -> list[int]:
        """Further partitions that should leave: first the ones that are not ``busy``, then the ones
        that came last, by token."""
        if self._excess <= 0 and not self._moving:
            return []
        going = self._held.keys() & (self._released | set(leaving))
        moving = [at for at in self._moving if at in self._held and at not in going]
        number = self._excess - len(going) - len(moving)
        if number <= 0:
            return moving
        staying = [
            (at not in busy, token, at)
            for at, token in self._held.items()
            if at not in going and at not in moving
        ]
        return moving + [at for _, _, at in sorted(staying)[-number:]]


class BusyHosts:
    """Counts the hosts with work, a slice in each tick, for Redis.

    ``partition_of`` a host. ``may_move``: False if hosts share their pace (LARM_GROUP_BY): hosts of
    two workers cannot.
    """

    def __init__(
        self,
        frontier: Frontier,
        partition_of: Callable[[str], int],
        clock: Callable[[], float],
        *,
        may_move: bool = True,
    ) -> None:
        self._frontier, self._partition_of = frontier, partition_of
        self._clock, self._may_move = clock, may_move
        self._names: list[str] = []
        self._counted: Counter[int] = Counter()
        self._came: dict[int, float] = {}
        self._arrived: set[int] = set()
        self.partitions: Counter[int] = Counter()
        """Busy hosts by partition, as of the last time that all were looked at."""

    def came(self, moved: Collection[int]) -> None:
        """Note that these partitions were moved here, and that their hosts were entered."""
        now = self._clock()
        self._came = {at: when for at, when in self._came.items() if now < when + STAY_SECS}
        for partition in moved:
            self._came[partition] = now
            self._arrived.add(partition)
            self.partitions[partition] += 1  # until the next count
        if moved:  # the count under way is of the earlier hosts
            self._names, self._counted = list(self._frontier.hosts), Counter()

    @property
    def staying(self) -> set[int]:
        """Partitions that others leave for: they have busy hosts, or were moved here just now."""
        now = self._clock()
        came = (at for at, when in self._came.items() if now < when + STAY_SECS)
        return {*self.partitions, *came}

    def told(self, arrived: Iterable[int]) -> None:
        """Redis knows that these have arrived."""
        self._arrived.difference_update(arrived)

    def look(self, owned: Callable[[int], bool], leaving: Collection[int]) -> Load:
        """Look at the next hosts. Returns the load as of the last time that all hosts were seen."""
        table, now = self._frontier.hosts, self._frontier.clock()
        for name in self._names[-SLICE:]:
            host = table.get(name)
            if host is not None and self._is_busy(host, now):
                self._counted[self._partition_of(name)] += 1
        del self._names[-SLICE:]
        if not self._names:
            self.partitions, self._counted = self._counted, Counter()
            self._names = list(table)
        return Load(
            self.partitions.total(),
            self._candidates(owned, leaving),
            tuple(at for at in self._arrived if owned(at) and at not in leaving),
        )

    def _is_busy(self, host: Host, now: float) -> bool:
        waits = host.group is not None and host.group.waits(host)
        if host.paused or not (host.ticket or waits or host.in_flight or host.leaving):
            return False
        if host.ticket and host.next_fetch_time > now + SOON_SECS:
            return False
        return self._frontier.backend.counts(host.record.host).queued >= BUSY_URLS

    def _candidates(self, owned: Callable[[int], bool], leaving: Collection[int]) -> dict[int, int]:
        if not self._may_move or self.partitions.total() < 2:
            return {}
        now = self._clock()
        found = (
            (at, hosts)
            for at, hosts in self.partitions.items()
            if owned(at) and at not in leaving and now >= self._came.get(at, -STAY_SECS) + STAY_SECS
        )
        return dict(islice(found, CANDIDATES))
