"""Numbers of URLs by state, of each host and of all together; kept as they change, never counted.

tally.count("wiki:80", queued=-1, leased=1)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from larmspider.frontier.storage.records import Counts, pack_counts, unpack_counts


class Tally:
    """``by_host`` has every host that has or had a URL: some 500 bytes each."""

    def __init__(self) -> None:
        self.by_host: dict[str, Counts] = {}
        self.total = Counts()
        self._changed: set[str] = set()

    def count(
        self,
        host: str,
        *,
        discovered: int = 0,
        queued: int = 0,
        leased: int = 0,
        stored: int = 0,
        failed: int = 0,
        refused: int = 0,
        delayed: int = 0,
    ) -> None:
        """Add to the numbers of a host and of all."""
        own = self.by_host.get(host)
        if own is None:
            own = self.by_host[host] = Counts()
        for counts in (own, self.total):
            if discovered:
                counts.discovered += discovered
            if queued:
                counts.queued += queued
            if leased:
                counts.leased += leased
            if stored:
                counts.stored += stored
            if failed:
                counts.failed += failed
            if refused:
                counts.refused += refused
            if delayed:
                counts.delayed += delayed
        self._changed.add(host)

    def load(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """At the start: packed counts by host."""
        for host, packed in rows:
            self.put(host, unpack_counts(packed))

    def put(self, host: str, counts: Counts) -> None:
        """The counts of a host that is new here."""
        self.by_host[host] = counts
        for name in Counts.__slots__:
            setattr(self.total, name, getattr(self.total, name) + getattr(counts, name))

    def forget(self, host: str) -> None:
        """Another worker counts this host now."""
        counts = self.by_host.pop(host, Counts())
        self._changed.discard(host)
        for name in Counts.__slots__:
            setattr(self.total, name, getattr(self.total, name) - getattr(counts, name))

    def changes(self) -> Iterator[tuple[str, bytes]]:
        """Packed counts of the hosts that have changed since the last time."""
        changed, self._changed = self._changed, set()
        for host in changed:
            yield host, pack_counts(self.by_host[host])
