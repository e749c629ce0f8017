"""The queues of all hosts: the front of each in memory (queue_head.py), the rest on disk.

    queues.put("wiki:80", place, packed)
    place = queues.next_place("wiki:80", now)     # None: none may go now
    packed = queues.lease("wiki:80", place)

A host's queue has two runs (keys.py): URLs ready for their turn, and those that wait for a time.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import closing
from heapq import heapify, heappop, heappush

from larmspider.frontier.storage import records as k
from larmspider.frontier.storage.overlay import WriteOverlay
from larmspider.frontier.storage.records import Counts, pack_counts, unpack_counts

# The front of one host's queue in memory, the rest on disk.
#
# A host with 100,000 queued URLs has some 60 of them here. What was added since the last commit is
# not on disk, so it is here too, however much it is.


class QueueHead:
    """One run (keys.READY or DELAYED) of a host's queue, in key order.

    Invariant: in memory are all keys up to ``loaded_to``, and of the keys after it those of the
    pending batch. ``complete``: there are no others. Removal is lazy: a key without a value is
    gone.
    """

    __slots__ = ("complete", "heap", "loaded_to", "values")

    def __init__(self, prefix: bytes, complete: bool) -> None:
        self.heap: list[bytes] = []
        self.values: dict[bytes, bytes] = {}
        self.loaded_to = prefix
        self.complete = complete

    def put(self, key: bytes, value: bytes) -> None:
        """Add an entry that is in the pending batch, or one that comes back to its old place."""
        self.values[key] = value
        heappush(self.heap, key)

    def remove(self, key: bytes) -> None:
        """Take an entry out, wherever it stands; nothing if it is not in memory."""
        self.values.pop(key, None)

    def first(self, load: Callable[[QueueHead], None]) -> bytes | None:
        """The smallest key, loading from disk with ``load`` as needed; None when there is none."""
        heap, values = self.heap, self.values
        while True:
            while heap and heap[0] not in values:
                heappop(heap)
            if self.complete or (heap and heap[0] <= self.loaded_to):
                return heap[0] if heap else None
            load(self)

    def trim(self, size: int, pending: Container[bytes]) -> None:
        """After a commit: keep ``size`` entries of those that are on disk, and all that are not."""
        on_disk = sorted(key for key in self.values if key not in pending)
        if not self.complete:
            on_disk = [key for key in on_disk if key <= self.loaded_to]
        if len(on_disk) > size:
            on_disk = on_disk[:size]
            self.loaded_to, self.complete = on_disk[-1], False
        elif self.complete and on_disk:
            self.loaded_to = max(self.loaded_to, on_disk[-1])
        kept = {key: self.values[key] for key in on_disk}
        kept.update((key, value) for key, value in self.values.items() if key in pending)
        self.values = kept
        self.heap = list(kept)
        heapify(self.heap)


# Numbers of URLs by state, of each host and of all together; kept as they change, never counted.
#
# tally.count("wiki:80", queued=-1, leased=1)


class HostCounters:
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


class HostQueues:
    """``head_entries`` are held in memory over all hosts, beside those not yet committed.

    ``serial`` is the number of the last place given; it goes on over restarts.
    """

    def __init__(self, layers: WriteOverlay, tally: HostCounters, head_entries: int) -> None:
        self._layers, self._tally, self._head_entries = layers, tally, head_entries
        self._heads: dict[tuple[str, int], QueueHead] = {}
        self._grown: set[tuple[str, int]] = set()  # heads that hold what is not on disk
        self._leased: set[bytes] = set()
        self.serial = 0

    def ready_place(self, host: str, priority: int) -> bytes:
        """A new place behind those of its host that have this priority."""
        self.serial += 1
        return k.ready_key(host, priority, self.serial)

    def put(self, host: str, place: bytes, packed: bytes, *, new_place: bool = True) -> None:
        """``new_place``: there was no entry at this place. The tally counts it after this."""
        self._layers.put_entry(place, packed, new_place=new_place)
        run = host, k.run_of(place)
        self._head(*run).put(place, packed)
        self._grown.add(run)

    def remove(self, host: str, place: bytes) -> None:
        """Take out an entry that waits, wherever it stands."""
        self._head(host, k.run_of(place)).remove(place)
        self._layers.delete_entry(place)

    def next_place(self, host: str, now: float) -> bytes | None:
        """Of the entry that goes next: one whose time has come, else the first that is ready."""
        counts = self._tally.by_host.get(host)
        if counts is None or not counts.queued:
            return None
        if counts.delayed:
            place = self._head(host, k.DELAYED).first(self._load)
            if place is not None and k.earliest_of(place) <= now:
                return place
        return self._head(host, k.READY).first(self._load)

    def next_time(self, host: str) -> float | None:
        """0.0: an entry is ready; else the earliest time; None: the queue is empty."""
        counts = self._tally.by_host.get(host)
        if counts is None or not counts.queued:
            return None
        if counts.queued > counts.delayed:
            return 0.0
        place = self._head(host, k.DELAYED).first(self._load)
        return None if place is None else k.earliest_of(place)

    def lease(self, host: str, place: bytes) -> bytes:
        """Hand out the entry at next_place(). On disk it stays until its lease is over."""
        self._leased.add(place)
        return self._head(host, k.run_of(place)).values.pop(place)

    def end_lease(self, place: bytes) -> None:
        """put() or Layers.delete_entry() says what becomes of it."""
        self._leased.discard(place)

    def _head(self, host: str, run: int) -> QueueHead:
        head = self._heads.get((host, run))
        if head is None:
            counts = self._tally.by_host.get(host) or Counts()
            waiting = counts.delayed if run == k.DELAYED else counts.queued - counts.delayed
            # nothing queued, nothing on disk that is not leased: no need to look
            prefix = k.host_prefix(host) + bytes((run,))
            head = self._heads[host, run] = QueueHead(prefix, complete=waiting == 0)
        return head

    def _head_size(self) -> int:
        return min(256, max(2, self._head_entries // max(1, len(self._tally.by_host))))

    def _load(self, head: QueueHead) -> None:
        """The next chunk of a run from disk into its head, without what is leased or deleted."""
        wanted = self._head_size()
        with closing(self._layers.stored_run(head.loaded_to[:9], head.loaded_to)) as run:
            for key, packed in run:
                head.loaded_to = key
                if packed is not None and key not in self._leased:
                    head.put(key, packed)
                    wanted -= 1
                    if not wanted:
                        return
        head.complete = True

    def forget(self, host: str) -> None:
        """Another worker has this queue now. Nothing of it is leased or uncommitted."""
        for run in (k.READY, k.DELAYED):
            self._heads.pop((host, run), None)
            self._grown.discard((host, run))

    def settle(self) -> None:
        """After a commit: what is on disk now may leave memory."""
        size, pending = self._head_size(), self._layers.new.queue
        grown, self._grown = self._grown, set()
        for run in grown:
            head = self._heads[run]
            head.trim(size, pending)
            if any(key in pending for key in head.values):
                self._grown.add(run)
            if not head.values and head.complete:
                del self._heads[run]
