"""The operator's control of a running frontier: pause, slow down, hosts, queued URLs.

    frontier.control.pause_host("wiki:80")
    while frontier.control.purge_host("wiki:80"):
        ...

Overrides go to the backend as a note, and so to disk with the next commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from math import inf

from larmspider.frontier.dispatch import reschedule, schedule
from larmspider.frontier.hosts import Host, HostState
from larmspider.frontier.overrides import NOTE, Overrides
from larmspider.frontier.partition import AllPartitions
from larmspider.frontier.state import FrontierState
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState

PURGED = "purged by the operator"
"""Why URLs that were queued are refused."""
BATCH = 500
"""URLs that one call changes; some 10 ms."""


class Control:
    """Raises KeyError for a host that the frontier does not know, except where an override is set
    for a host that may come from another worker later."""

    def __init__(self, frontier: FrontierState, partitions: AllPartitions) -> None:
        self._frontier, self._partitions = frontier, partitions
        self._threads = frontier.slots.total  # of the settings
        self.paused = False
        """The whole crawl hands nothing out."""
        self.orders = 0
        """The number of orders so far: the ``since`` of merge()."""
        self._ordered: dict[str, int] = {}  # by host, or field of Overrides: its last one

    @property
    def overrides(self) -> Overrides:
        return self._frontier.politeness.overrides

    def recover(self) -> None:
        """Apply the overrides of the last commit. Call it after the hosts are loaded. Orders for an
        earlier run end. An order of threads also ends if the setting that it replaced has
        changed."""
        found = Overrides.unpack(self._frontier.backend.note(NOTE))
        overrides = found.after_run()
        if overrides.threads_instead_of != self._threads:
            overrides.threads, overrides.threads_instead_of = None, 0
        self._apply(overrides)
        if overrides != found:
            self.save()

    def merge(self, overrides: Overrides, since: int) -> None:
        """Apply ``overrides``, read from Redis. Orders given here since then win, including orders
        that were given and taken back. ``since``: the value of ``orders`` when the reading began.
        """
        own = self.overrides
        ordered = {name for name, number in self._ordered.items() if number > since}
        for name in ordered & own.hosts.keys():
            overrides.hosts[name] = own.hosts[name]
        if not ordered.isdisjoint(("factor", "threads")):
            # Redis knows no more of these than the factor
            names = ("factor", "threads", "threads_instead_of")
            overrides = replace(
                overrides,
                **{n: getattr(own, n) for n in names if n != "factor" or n in ordered},
                for_run=dict(own.for_run),
            )
        if overrides != own:
            self._apply(overrides)
            self.save()

    def _apply(self, overrides: Overrides) -> None:
        self._frontier.politeness.overrides = overrides
        for name in list(overrides.hosts):
            if host := self._frontier.hosts.get(name):
                host.rule = self._frontier.politeness.pace_of(name)
                self._pause(host, overrides.is_paused(name))
        self._frontier.slots.resize(overrides.threads or self._threads)

    def _order(self, name: str) -> None:
        """A host, or a field of Overrides, was given an order."""
        self.orders += 1
        self._ordered[name] = self.orders
        self.save()

    def save(self) -> None:
        """The overrides have changed."""
        self._frontier.backend.put_note(NOTE, self.overrides.pack())

    @property
    def waiting_hosts(self) -> list[str]:
        """Hosts that are paused and have URLs: a crawl does not end over their heads."""
        paused = (name for name, own in self.overrides.hosts.items() if own.paused)
        return [name for name in paused if self._frontier.backend.counts(name).to_fetch]

    # pace

    # each for this and further runs or, without ``keep``, until this run ends

    def slow_down(self, factor: float, *, keep: bool = True) -> None:
        """Multiply all gaps by ``factor``, from the next request of each host on."""
        self.overrides.order("factor", factor, keep=keep)
        self._order("factor")

    def set_threads(self, threads: int | None, *, keep: bool = True) -> None:
        """Set the fetches at a time; None: as the settings say. Running fetches beyond this number
        end as usual."""
        self.overrides.order("threads", threads, keep=keep)
        self.overrides.threads_instead_of = self._threads
        self._frontier.slots.resize(threads or self._threads)
        self._order("threads")

    def set_delay(self, name: str, seconds: float | None, *, keep: bool = True) -> None:
        """Set the delay of one host, which the frontier may not know yet. None: the value of the
        settings."""
        self.overrides.of(name).order("delay", seconds, keep=keep)
        self._order(name)

    def set_connections(self, name: str, connections: int | None, *, keep: bool = True) -> None:
        """Fetches from one host at a time, as set_delay()."""
        self.overrides.of(name).order("connections", connections, keep=keep)
        self._order(name)
        if host := self._frontier.hosts.get(name):
            host.rule = self._frontier.politeness.pace_of(name)
            schedule(self._frontier, host)

    # hosts

    def pause_host(self, name: str) -> None:
        """Send no further request to the host. Fetches in flight continue."""
        self._set_paused(name, paused=True)

    def resume_host(self, name: str) -> None:
        self._set_paused(name, paused=False)

    def _set_paused(self, name: str, *, paused: bool) -> None:
        self.overrides.of(name).paused = paused
        self._order(name)
        if host := self._frontier.hosts.get(name):
            self._pause(host, paused)

    def _pause(self, host: Host, paused: bool) -> None:
        host.paused = paused
        schedule(self._frontier, host)

    def retry_host(self, name: str) -> int:
        """Forget the host's failures: it gets a request as soon as its gap allows, and at most
        BATCH URLs that wait for another attempt are due at once, with all their attempts. Returns
        how many."""
        frontier = self._frontier
        host, now, backend = frontier.hosts[name], frontier.clock(), frontier.backend
        record = host.record
        record.failures = record.parks = record.level = 0
        if record.state in (HostState.SNOOZED, HostState.PARKED):
            record.wake()
        record.next_time = min(record.next_time, now + frontier.politeness.gap_seconds(record))
        late = min(BATCH, backend.counts(name).delayed)
        entries = backend.pop(name, inf, late) if late else []
        backend.release([(entry.key, 0.0, 0) for entry in entries])
        frontier.hosts.touch(host)
        schedule(frontier, host)
        return len(entries)

    def purge_host(self, name: str, most: int = BATCH) -> int:
        """Refuse at most ``most`` of the host's queued URLs. Returns their number. Call it until it
        returns 0; it returns 0 if another worker has the host, or is about to get it."""
        host, now = self._frontier.hosts.get(name), self._frontier.clock()
        if host is None or host.leaving:
            return 0
        self._frontier.backend.unhold(name, None, most)
        entries = self._frontier.backend.pop(name, inf, most)
        visit = [
            (entry.key, FetchRecord(UrlState.REFUSED, now, reason=PURGED)) for entry in entries
        ]
        self._frontier.backend.acknowledge(visit)
        schedule(self._frontier, host)
        return len(entries)

    # queued URLs

    def reopen(self, entries: Sequence[QueuedUrl]) -> tuple[int, int]:
        """Queue refused URLs again. Returns the numbers of queued and of forwarded URLs. A URL of
        another worker's host is forwarded to that worker, which queues it."""
        frontier, number = self._frontier, len(entries)
        entries = self._partitions.split_again(entries)
        reopened = frontier.backend.reopen(entries)
        for entry in compress(entries, reopened):
            frontier.seen.add(entry.exact)
            host = frontier.hosts.get(entry.host)
            if host is None:
                host = frontier.hosts.of(entry.host, entry.url.partition(":")[0].lower())
            schedule(frontier, host)
        return sum(reopened), number - len(entries)

    def refuse(self, entries: Sequence[QueuedUrl], reason: str) -> int:
        """Refuse the entries that are still queued. Returns their number."""
        before = self._frontier.backend.counts().refused
        self._frontier.backend.refuse([(entry, reason) for entry in entries])
        visit = FetchRecord(UrlState.REFUSED, reason=reason)
        for final in self._frontier.parts.final:
            for entry in entries:
                final(entry.host, entry.key, visit)
        for name in {entry.host for entry in entries}:
            reschedule(self._frontier, name)
        return self._frontier.backend.counts().refused - before
