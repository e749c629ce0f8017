"""The hosts of a frontier that is shared with other workers: they come and go by partition.

    partitions.enter(loaded, new_run={17})    # what the backend has loaded
    own, _ = partitions.split(entries)        # the others are forwarded to their owners
    partitions.leave([17])                    # its hosts get no more requests ...
    partitions.seal()                         # ... until all that was done with it is in a batch
    partitions.committed()                    # {17}: another worker may have it from here on

Give up a partition in this order: its next owner then finds all changes of this worker in Redis.
Until then this worker owns the partition, and accepts URLs that other workers forward to it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import Any

from larmspider.frontier import dispatch
from larmspider.frontier.state import FrontierState
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import QueuedUrl


class SharedBackend(Backend):
    """A backend that other workers share (cluster/): it knows who owns which partition."""

    @property
    @abstractmethod
    def owned(self) -> frozenset[int]:
        """The partitions that this worker owns."""

    @abstractmethod
    def owns(self, key: bytes) -> bool:
        """Whether this worker owns the partition of a URL, given its key."""

    @abstractmethod
    def partition_of(self, host: str) -> int:
        """The partition of a host, by its name in the queue."""

    @abstractmethod
    def partition_of_key(self, key: bytes) -> int:
        """The partition of a URL."""

    @abstractmethod
    def take(self, loaded: Any) -> list[str]:
        """Own the partitions that were loaded; returns the names of their hosts."""

    @abstractmethod
    def host_records(self, hosts: Iterable[str]) -> dict[str, bytes]:
        """The packed records of these hosts, without hosts that have none."""

    @abstractmethod
    def give_up(self, partitions: Collection[int]) -> None:
        """Stop owning these partitions."""

    @abstractmethod
    def forward(self, entries: Iterable[QueuedUrl]) -> int:
        """Forward URLs to their owners, except URLs that were forwarded lately. Returns the number
        of forwarded URLs."""

    @abstractmethod
    def forward_again(self, entries: Iterable[QueuedUrl]) -> None:
        """Forward entries as forward() does, including URLs that were forwarded lately."""

    @abstractmethod
    def count_visit(self) -> None:
        """Count a revisit against the budget of the whole crawl."""

    @property
    @abstractmethod
    def uncounted_visits(self) -> int:
        """Counted revisits that no commit has yet."""


class AllPartitions:
    """A frontier that no other worker shares: every host is this worker's."""

    shared = False
    uncounted_visits = 0
    """Counted revisits that no commit has yet."""

    def split(self, entries: Sequence[QueuedUrl]) -> tuple[Sequence[QueuedUrl], list[QueuedUrl]]:
        """The entries that this worker has to add, and the entries that were forwarded."""
        return entries, []

    def split_again(
        self, entries: Sequence[QueuedUrl], *, doubted: bool = False
    ) -> Sequence[QueuedUrl]:
        """This worker's entries, to be queued again or ``doubted``. The other entries are
        forwarded: their owners queue refused URLs again, or doubt stored pages."""
        return entries

    def owns(self, key: bytes) -> bool:
        """See SharedBackend.owns()."""
        return True

    def arrived(self, entries: Iterable[QueuedUrl]) -> None:
        """Entries were added. If their partition is leaving, their hosts are leaving, too."""

    def seal(self) -> None:
        """The batch ends. With it, idle partitions are complete in Redis."""

    def count_visit(self) -> None:
        """See SharedBackend.count_visit()."""

    def stored_in_all(self, pages: int) -> None:
        """``pages`` are stored by all workers, as of their last commits; no commit of this worker
        is under way."""


class Partitions(AllPartitions):
    shared = True

    def __init__(self, frontier: FrontierState, backend: SharedBackend) -> None:
        self._frontier, self._backend = frontier, backend
        self.leaving: set[int] = set()
        """Partitions whose hosts get no more requests."""
        self._sealed: frozenset[int] = frozenset()  # leaving ones that the next commit completes
        self._committed_pages = 0  # stored pages of owned partitions, as of the last commit
        self._sealed_pages = 0

    def __repr__(self) -> str:
        return f"<Partitions {len(self._backend.owned)} owned, {len(self.leaving)} leaving>"

    # links

    def split(self, entries: Sequence[QueuedUrl]) -> tuple[Sequence[QueuedUrl], list[QueuedUrl]]:
        foreign = [entry for entry in entries if not self._stays(entry.key)]
        if not foreign:
            return entries, foreign
        self._backend.forward(foreign)
        forwarded = {id(entry) for entry in foreign}
        return [entry for entry in entries if id(entry) not in forwarded], foreign

    def split_again(
        self, entries: Sequence[QueuedUrl], *, doubted: bool = False
    ) -> list[QueuedUrl]:
        own = [entry for entry in entries if self._stays(entry.key)]
        foreign = [entry for entry in entries if not self._stays(entry.key)]
        for entry in foreign:
            entry.again, entry.doubted = not doubted, doubted
        self._backend.forward_again(foreign)
        return own

    def owns(self, key: bytes) -> bool:
        return self._backend.owns(key)

    def _stays(self, key: bytes) -> bool:
        if not self._backend.owns(key):
            return False
        return not self.leaving or self._backend.partition_of_key(key) not in self.leaving

    def arrived(self, entries: Iterable[QueuedUrl]) -> None:
        if not self.leaving:
            return
        for entry in entries:
            if self._backend.partition_of_key(entry.key) in self.leaving:
                self._stop(entry.host)

    # coming

    def enter(self, loaded: Any, new_run: Collection[int] = ()) -> list[str]:
        """Take loaded partitions; returns their hosts. A host may get a request after a full gap.

        ``new_run``: partitions that no worker had in this run, whose given-up hosts are tried
        again.
        """
        frontier = self._frontier
        before, now = self._stored(), frontier.clock()
        names = self._backend.take(loaded)
        records = self._backend.host_records(names)
        for name in {*names, *records}:
            fresh = self._backend.partition_of(name) in new_run
            host = frontier.hosts.enter(name, records.get(name), new_run=fresh)
            host.record.on_probation &= frontier.gives_up_at_once
            frontier.politeness.take_up(host.record, now, frontier.limits.robots_expires)
            host.paused = frontier.politeness.overrides.is_paused(name)
            for enter in frontier.parts.enter:
                enter(name)
            dispatch.schedule(frontier, host)
        came = self._stored() - before
        self._committed_pages += came
        for entered in frontier.parts.entered if came else ():
            entered()
        return list(names)

    # going

    def leave(self, partitions: Iterable[int]) -> None:
        """Stop handing out URLs of these partitions."""
        going = self._backend.owned & frozenset(partitions)
        self.leaving |= going
        for name in self._hosts_of(going):
            self._stop(name)

    def _stop(self, name: str) -> None:
        host = self._frontier.hosts[name]
        host.leaving = True
        dispatch.schedule(self._frontier, host)

    @property
    def idle(self) -> frozenset[int]:
        """Leaving partitions without any fetch or store under way."""
        if not self.leaving:
            return frozenset()
        frontier, busy = self._frontier, set()
        for name in self._hosts_of(self.leaving):
            out = frontier.backend.counts(name).leased + frontier.backend.visiting(name)
            if frontier.hosts[name].in_flight or out:
                busy.add(self._backend.partition_of(name))
        return frozenset(self.leaving - busy)

    def seal(self) -> None:
        self._sealed = self.idle
        self._sealed_pages = self._stored()

    def committed(self) -> frozenset[int]:
        """The partitions that are given up now, and may be released. Called after the commit."""
        self._committed_pages = self._sealed_pages
        gone, self._sealed = self._sealed, frozenset()
        if not gone:
            return gone
        frontier = self._frontier
        before, names = self._stored(), self._hosts_of(gone)
        self._backend.give_up(gone)
        for name in names:
            dispatch.forget(frontier, frontier.hosts[name])
            frontier.robots.forget(name)
            for forget in frontier.parts.forget:
                forget(name)
            frontier.hosts.leave(name)
        self.leaving -= gone
        self._committed_pages += self._stored() - before
        return gone

    def _hosts_of(self, partitions: Collection[int]) -> list[str]:
        of = self._backend.partition_of
        return (
            [name for name in self._frontier.hosts if of(name) in partitions] if partitions else []
        )

    # budgets

    def count_visit(self) -> None:
        self._backend.count_visit()

    @property
    def uncounted_visits(self) -> int:  # type: ignore[override]
        """See SharedBackend.uncounted_visits."""
        return self._backend.uncounted_visits

    def stored_in_all(self, pages: int) -> None:
        self._frontier.stored_elsewhere = max(0, pages - self._committed_pages)

    def _stored(self) -> int:
        return self._frontier.backend.counts().stored
