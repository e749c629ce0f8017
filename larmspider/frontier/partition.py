"""The hosts of a frontier that is shared with other workers: they come and go with their blocks.

    blocks.enter(loaded, new_run={17})    # what the backend has loaded; a gap from now they may go
    own, _ = blocks.split(entries)        # the others are posted to their owners
    blocks.leave([17])                    # no host of it is asked any more ...
    blocks.close()                        # ... at the cut of a commit: those that are at rest
    blocks.given_up()                     # when it is done: they are another worker's from here on

A block is given up in this order, so that the next owner finds in Redis all that this one did with
it. Until then it is owned, and what others post for it is taken in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

from larmspider.frontier.dispatch import PolitenessGroups, Schedule
from larmspider.frontier.hosts import HostTable
from larmspider.frontier.politeness import Politeness
from larmspider.frontier.robots import RobotsCache
from larmspider.frontier.storage.records import Counts, QueuedUrl


class SharedBackend(Protocol):
    """What is asked of the backend here (redis_backend.py)."""

    @property
    def owned(self) -> frozenset[int]: ...

    def owns(self, key: bytes) -> bool: ...

    def block_of(self, host: str) -> int: ...

    def take(self, loaded: Any) -> list[str]: ...

    def host_records(self, hosts: Iterable[str]) -> dict[str, bytes]: ...

    def give_up(self, blocks: Collection[int]) -> None: ...

    def post(self, entries: Iterable[QueuedUrl], *, count: bool = False) -> int: ...

    def post_links(self, keys: Iterable[bytes]) -> None: ...

    def counts(self, host: str | None = None) -> Counts: ...


class Partitions:
    """For a frontier whose backend knows owners. ``block_of_key`` gives the block of a URL key."""

    def __init__(
        self,
        backend: SharedBackend,
        block_of_key: Callable[[bytes], int],
        hosts: HostTable,
        schedule: Schedule,
        grouping: PolitenessGroups,
        politeness: Politeness,
        clock: Callable[[], float],
        robots: RobotsCache | None,
        robots_expires: float,
    ) -> None:
        self._backend, self._block_of_key = backend, block_of_key
        self._hosts, self._schedule, self._grouping = hosts, schedule, grouping
        self._politeness, self._clock = politeness, clock
        self._robots, self._robots_expires = robots, robots_expires
        self.leaving: set[int] = set()
        """Blocks whose hosts are not asked any more."""
        self._closing: frozenset[int] = frozenset()  # of these, those that the commit empties
        self.stored_by_others = 0
        """Pages in all that are not in the counts of the blocks that are owned."""
        self._committed = 0  # stored pages of owned blocks, as of the last commit
        self._cut = 0

    def __repr__(self) -> str:
        return f"<Blocks {len(self._backend.owned)} owned, {len(self.leaving)} leaving>"

    # links

    def split(
        self, entries: Sequence[QueuedUrl], *, count: bool = False
    ) -> tuple[Sequence[QueuedUrl], list[QueuedUrl]]:
        """Those that this worker is to add, and the others, which are on their way to theirs.
        ``count``: those that were posted lately are links that count."""
        foreign = [entry for entry in entries if not self._stays(entry.key)]
        if not foreign:
            return entries, foreign
        self._backend.post(foreign, count=count)
        posted = {id(entry) for entry in foreign}
        return [entry for entry in entries if id(entry) not in posted], foreign

    def post_links(self, keys: Sequence[bytes]) -> list[bool]:
        """One more link to each: whether this worker is to count it. The others are posted."""
        stay = [self._stays(key) for key in keys]
        self._backend.post_links([key for key, own in zip(keys, stay, strict=True) if not own])
        return stay

    def _stays(self, key: bytes) -> bool:
        if not self._backend.owns(key):
            return False
        return not self.leaving or self._block_of_key(key) not in self.leaving

    def brought(self, entries: Iterable[QueuedUrl]) -> None:
        """These were added although their block may be leaving: then their hosts are, too."""
        if not self.leaving:
            return
        for entry in entries:
            if self._block_of_key(entry.key) in self.leaving:
                self._stop(entry.host)

    # coming

    def enter(self, loaded: Any, new_run: Collection[int] = ()) -> int:
        """Take blocks that were loaded: how many hosts came with them.

        ``new_run``: blocks that nobody had in this run, whose given-up hosts are tried again.
        """
        before, now = self._stored(), self._clock()
        names = self._backend.take(loaded)
        records = self._backend.host_records(names)
        for name in {*names, *records}:
            fresh = self._backend.block_of(name) in new_run
            host = self._hosts.enter(name, records.get(name), new_run=fresh)
            self._politeness.take_up(host.record, now, self._robots_expires)
            host.paused = self._politeness.orders.is_paused(name)
            self._schedule.set(host)
        self._committed += self._stored() - before
        return len(names)

    # going

    def leave(self, blocks: Iterable[int]) -> None:
        """Hand out no URL of these any more."""
        going = self._backend.owned & frozenset(blocks)
        self.leaving |= going
        for name in self._names(going):
            self._stop(name)

    def _stop(self, name: str) -> None:
        host = self._hosts.by_name[name]
        host.leaves = True
        self._schedule.set(host)

    @property
    def resting(self) -> frozenset[int]:
        """Blocks that are leaving and of which nothing is fetched or stored any more."""
        if not self.leaving:
            return frozenset()
        busy = set()
        for name in self._names(self.leaving):
            if self._hosts.by_name[name].in_flight or self._backend.counts(name).leased:
                busy.add(self._backend.block_of(name))
        return frozenset(self.leaving - busy)

    def close(self) -> None:
        """The batch ends: with it blocks at rest are complete in Redis."""
        self._closing = self.resting
        self._cut = self._stored()

    def given_up(self) -> frozenset[int]:
        """After the commit: these blocks are given up, and may be released."""
        self._committed = self._cut
        gone, self._closing = self._closing, frozenset()
        if not gone:
            return gone
        before, names = self._stored(), self._names(gone)
        self._backend.give_up(gone)
        for name in names:
            host = self._hosts.by_name[name]
            self._schedule.forget(host)
            self._grouping.forget(host)
            if self._robots is not None:
                self._robots.forget(name)
            self._hosts.leave(name)
        self.leaving -= gone
        self._committed += self._stored() - before
        return gone

    def _names(self, blocks: Collection[int]) -> list[str]:
        of = self._backend.block_of
        return [name for name in self._hosts.by_name if of(name) in blocks] if blocks else []

    # budgets

    def stored_in_all(self, pages: int) -> None:
        """So many pages are stored by all workers, as of the last commits; no own one is under
        way."""
        self.stored_by_others = max(0, pages - self._committed)

    def _stored(self) -> int:
        return self._backend.counts().stored
