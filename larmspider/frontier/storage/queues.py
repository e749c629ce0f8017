"""The queues of all hosts: the head of each in memory, the rest on disk.

    queues.put("wiki:80", place, packed)
    place = queues.next_place("wiki:80", now)     # None: no URL may be fetched now
    packed = queues.lease("wiki:80", place)

A host's queue has two runs: READY, in order of priority and age, and DELAYED, in order of earliest
time, with the held URLs after it. A host with 100,000 queued URLs has some 60 of them in memory,
and all URLs that were added since the last commit, because these are not on disk yet.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import closing
from heapq import heapify, heappop, heappush

from larmspider.frontier.storage import records
from larmspider.frontier.storage.overlay import WriteOverlay
from larmspider.frontier.storage.records import Counts, pack_counts, unpack_counts


class QueueHead:
    """The part of one run of a host's queue that is in memory, in key order.

    Invariant: in memory are all keys up to ``loaded_to``, and the later keys that are not
    committed. ``complete``: the run has no other keys. Removal is lazy: a key in ``heap`` without a
    value in ``values`` is gone.
    """

    __slots__ = ("complete", "heap", "loaded_to", "values")

    def __init__(self, prefix: bytes, complete: bool) -> None:
        self.heap: list[bytes] = []
        self.values: dict[bytes, bytes] = {}
        self.loaded_to = prefix
        self.complete = complete

    def put(self, key: bytes, value: bytes) -> None:
        """Add an entry that is not committed, or one that comes back to its old place."""
        self.values[key] = value
        heappush(self.heap, key)

    def remove(self, key: bytes) -> None:
        """Take an entry out; a key that is not in memory is ignored."""
        self.values.pop(key, None)

    def first(self, load: Callable[[QueueHead], None]) -> bytes | None:
        """The smallest key, after loading from disk with ``load`` as needed; None: no key."""
        heap, values = self.heap, self.values
        while True:
            while heap and heap[0] not in values:
                heappop(heap)
            if self.complete or (heap and heap[0] <= self.loaded_to):
                return heap[0] if heap else None
            load(self)

    def trim(self, size: int, uncommitted: Container[bytes]) -> None:
        """Keep ``size`` entries that are on disk, and all uncommitted entries. Called after a
        commit."""
        on_disk = sorted(key for key in self.values if key not in uncommitted)
        if not self.complete:
            on_disk = [key for key in on_disk if key <= self.loaded_to]
        if len(on_disk) > size:
            on_disk = on_disk[:size]
            self.loaded_to, self.complete = on_disk[-1], False
        elif self.complete and on_disk:
            self.loaded_to = max(self.loaded_to, on_disk[-1])
        kept = {key: self.values[key] for key in on_disk}
        kept.update((key, value) for key, value in self.values.items() if key in uncommitted)
        self.values = kept
        self.heap = list(kept)
        heapify(self.heap)


class HostCounters:
    """Numbers of URLs by state, for each host and for all, kept as they change.

    ``counters.count("wiki:80", queued=-1, leased=1)``. ``by_host`` has every host that has or had a
    URL: some 500 bytes each.
    """

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
        merged: int = 0,
        held: int = 0,
    ) -> None:
        """Add to the numbers of a host, and of all."""
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
            if merged:
                counts.merged += merged
            if held:
                counts.held += held
        self._changed.add(host)

    def load(self, rows: Iterable[tuple[str, bytes]]) -> None:
        """Start with these packed counts by host."""
        for host, packed in rows:
            self.put(host, unpack_counts(packed))

    def put(self, host: str, counts: Counts) -> None:
        """Start with these counts for one more host."""
        self.by_host[host] = counts
        for name in Counts.__slots__:
            setattr(self.total, name, getattr(self.total, name) + getattr(counts, name))

    def forget(self, host: str) -> None:
        """Drop the counts of a host that another worker owns now."""
        counts = self.by_host.pop(host, Counts())
        self._changed.discard(host)
        for name in Counts.__slots__:
            setattr(self.total, name, getattr(self.total, name) - getattr(counts, name))

    def changes(self) -> Iterator[tuple[str, bytes]]:
        """Packed counts of the hosts that have changed since the last call."""
        changed, self._changed = self._changed, set()
        for host in changed:
            yield host, pack_counts(self.by_host[host])


class HostQueues:
    """``head_entries`` of all hosts together are held in memory, beside the entries not yet
    committed.

    ``serial`` is the number of the last place given, over all runs of the crawl.
    """

    def __init__(self, overlay: WriteOverlay, counters: HostCounters, head_entries: int) -> None:
        self._overlay, self._counters, self._head_entries = overlay, counters, head_entries
        self._heads: dict[tuple[str, int], QueueHead] = {}
        self._grown: set[tuple[str, int]] = set()  # heads that hold what is not on disk
        self._leased: set[bytes] = set()
        self.serial = 0

    def ready_place(self, host: str, priority: int) -> bytes:
        """A new place after all places of its host with this priority."""
        self.serial += 1
        return records.ready_key(host, priority, self.serial)

    def put(self, host: str, place: bytes, packed: bytes, *, new_place: bool = True) -> None:
        """Put an entry into the queue. ``new_place``: there was no entry at this place. Count the
        URL after this call."""
        self._overlay.put_entry(place, packed, new_place=new_place)
        run = host, records.run_of(place)
        self._head(*run).put(place, packed)
        self._grown.add(run)

    def held(self, host: str, group: int | None, limit: int) -> list[tuple[bytes, bytes]]:
        """Places and entries of at most ``limit`` held URLs of a host and group; ``group`` None: of
        all groups."""
        first = records.held_prefix(host, group or 0)
        prefix = first if group is not None else first[:9]
        found = {
            place: packed
            for batch in (self._overlay.sealed.queue, self._overlay.new.queue)
            for place, packed in batch.items()
            if place.startswith(prefix) and records.is_held(place)
        }
        kept = [(place, packed) for place, packed in found.items() if packed is not None][:limit]
        with closing(self._overlay.stored_run(prefix, first[: len(prefix) + 1])) as run:
            for place, packed in run:
                if len(kept) == limit:
                    break
                if place not in found and packed is not None and records.is_held(place):
                    kept.append((place, packed))
        return kept

    def remove(self, host: str, place: bytes) -> None:
        """Take out an entry that is not leased."""
        self._head(host, records.run_of(place)).remove(place)
        self._overlay.delete_entry(place)

    def next_place(self, host: str, now: float) -> bytes | None:
        """The place of the next entry: a delayed one whose time has come, else the first ready."""
        counts = self._counters.by_host.get(host)
        if counts is None or not counts.queued:
            return None
        if counts.delayed:
            place = self._head(host, records.DELAYED).first(self._load)
            if place is not None and records.earliest_of(place) <= now:
                return place
        return self._head(host, records.READY).first(self._load)

    def next_time(self, host: str) -> float | None:
        """See Backend.next_time()."""
        counts = self._counters.by_host.get(host)
        if counts is None or not counts.queued:
            return None
        if counts.queued > counts.delayed + counts.held:
            return 0.0
        if not counts.delayed:
            return None
        place = self._head(host, records.DELAYED).first(self._load)
        return None if place is None else records.earliest_of(place)

    def lease(self, host: str, place: bytes) -> bytes:
        """Hand out the entry at next_place(). It stays on disk until its lease ends."""
        self._leased.add(place)
        return self._head(host, records.run_of(place)).values.pop(place)

    def end_lease(self, place: bytes) -> None:
        """End a lease. Call put() or WriteOverlay.delete_entry() next."""
        self._leased.discard(place)

    def _head(self, host: str, run: int) -> QueueHead:
        head = self._heads.get((host, run))
        if head is None:
            counts = self._counters.by_host.get(host) or Counts()
            late = counts.delayed + counts.held
            waiting = late if run == records.DELAYED else counts.queued - late
            # nothing is queued: whatever is on disk is leased, and need not be looked at
            prefix = records.host_prefix(host) + bytes((run,))
            head = self._heads[host, run] = QueueHead(prefix, complete=waiting == 0)
        return head

    def _head_size(self) -> int:
        return min(256, max(2, self._head_entries // max(1, len(self._counters.by_host))))

    def _load(self, head: QueueHead) -> None:
        """Load the next chunk of a run, without leased and deleted URLs."""
        wanted = self._head_size()
        with closing(self._overlay.stored_run(head.loaded_to[:9], head.loaded_to)) as run:
            for key, packed in run:
                head.loaded_to = key
                if packed is not None and key not in self._leased:
                    head.put(key, packed)
                    wanted -= 1
                    if not wanted:
                        return
        head.complete = True

    def forget(self, host: str) -> None:
        """Drop a host that another worker owns now. None of its URLs may be leased or
        uncommitted."""
        for run in (records.READY, records.DELAYED):
            self._heads.pop((host, run), None)
            self._grown.discard((host, run))

    def trim(self) -> None:
        """Drop entries from memory that a commit has written to disk."""
        size, uncommitted = self._head_size(), self._overlay.new.queue
        grown, self._grown = self._grown, set()
        for run in grown:
            head = self._heads[run]
            head.trim(size, uncommitted)
            if any(key in uncommitted for key in head.values):
                self._grown.add(run)
            if not head.values and head.complete:
                del self._heads[run]
