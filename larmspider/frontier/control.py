"""What an operator does to a running frontier: pause, slow down, single hosts, what is queued.

    frontier.control.pause_host("wiki:80")
    while frontier.control.purge_host("wiki:80"):
        ...

Orders that last (orders.py) go to the backend as a note, and so to disk with the next commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from larmspider.frontier.dispatch import Schedule
from larmspider.frontier.hosts import Host, HostState, HostTable
from larmspider.frontier.politeness import NOTE, HostOrder, Overrides, Politeness
from larmspider.frontier.storage.backend import Backend
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState

PURGED = "purged by the operator"
"""Why URLs that were queued are refused."""
BATCH = 500
"""URLs that one call takes; some 10 ms."""


class Control:
    """Hosts are those that the frontier knows: KeyError for any other, but for what is ordered of
    one that may come from another worker."""

    def __init__(
        self,
        backend: Backend,
        politeness: Politeness,
        hosts: HostTable,
        schedule: Schedule,
        clock: Callable[[], float],
    ) -> None:
        self._backend, self._politeness = backend, politeness
        self._hosts, self._schedule, self._clock = hosts, schedule, clock
        self.paused = False
        """The whole crawl hands nothing out."""

    @property
    def orders(self) -> Overrides:
        return self._politeness.orders

    def recover(self) -> None:
        """Take up the orders of the last commit; after the hosts are loaded."""
        self._go_by(Overrides.unpack(self._backend.note(NOTE)))

    def take_up(self, orders: Overrides, since: Overrides) -> None:
        """In place of what was ordered here before ``since``, a copy of the orders as they were
        when these were asked for."""
        for name, order in self.orders.hosts.items():
            if order != since.hosts.get(name, HostOrder()):
                orders.hosts[name] = order
        if self.orders.factor != since.factor:
            orders.factor = self.orders.factor
        if orders != self.orders:
            self._go_by(orders)
            self.keep()

    def _go_by(self, orders: Overrides) -> None:
        self._politeness.orders = orders
        for name in list(self.orders.hosts):
            if name in self._hosts.by_name:
                self._pause(self._hosts.by_name[name], self.orders.is_paused(name))

    def keep(self) -> None:
        """The orders have changed."""
        self._backend.put_note(NOTE, self.orders.pack())

    @property
    def waiting_hosts(self) -> list[str]:
        """Hosts that are paused and have URLs: a crawl does not end over their heads."""
        paused = (name for name, order in self.orders.hosts.items() if order.paused)
        return [name for name in paused if self._backend.counts(name).queued]

    # pace

    def slow_down(self, factor: float) -> None:
        """All gaps are so many times as long, from the next request of each host on."""
        self.orders.factor = factor
        self.keep()

    def set_delay(self, name: str, seconds: float | None) -> None:
        """Of one host, which may come later; None: what the settings say."""
        self.orders.of(name).delay = seconds
        self.keep()

    # hosts

    def pause_host(self, name: str) -> None:
        """It is not asked; what is in flight ends as it does."""
        self._set_paused(name, paused=True)

    def resume_host(self, name: str) -> None:
        """It takes its turns again."""
        self._set_paused(name, paused=False)

    def _set_paused(self, name: str, *, paused: bool) -> None:
        self.orders.of(name).paused = paused
        self.keep()
        if host := self._hosts.by_name.get(name):
            self._pause(host, paused)

    def _pause(self, host: Host, paused: bool) -> None:
        host.paused = paused
        self._schedule.set(host)

    def retry_host(self, name: str) -> int:
        """Forget its failures: it is asked as soon as its gap allows, and at most BATCH URLs that
        wait for another attempt are due at once, with all their attempts. Their number."""
        host, now = self._hosts.by_name[name], self._clock()
        record = host.record
        record.failures = record.parks = record.level = 0
        if record.state in (HostState.SNOOZED, HostState.PARKED):
            record.wake()
        record.next_time = min(record.next_time, now + self._politeness.gap_seconds(record))
        late = min(BATCH, self._backend.counts(name).delayed)
        entries = self._backend.pop(name, inf, late) if late else []
        self._backend.give_back([(entry.key, 0.0, 0) for entry in entries])
        self._hosts.touch(host)
        self._schedule.set(host)
        return len(entries)

    def purge_host(self, name: str, most: int = BATCH) -> int:
        """Refuse what is queued of it, at most so many: how many there were. Call it until 0, as it
        is for a host that is another worker's, or about to be."""
        host, now = self._hosts.by_name.get(name), self._clock()
        if host is None or host.leaves:
            return 0
        entries = self._backend.pop(name, inf, most)
        visit = [
            (entry.key, FetchRecord(UrlState.REFUSED, now, reason=PURGED)) for entry in entries
        ]
        self._backend.acknowledge(visit)
        self._schedule.set(host)
        return len(entries)

    # what is queued

    def refuse(self, entries: Sequence[QueuedUrl], reason: str) -> int:
        """Of these, those that are still queued: how many."""
        before = self._backend.counts().refused
        self._backend.refuse([(entry, reason) for entry in entries])
        for name in {entry.host for entry in entries}:
            if name in self._hosts.by_name:
                self._schedule.set(self._hosts.by_name[name])
        return self._backend.counts().refused - before
