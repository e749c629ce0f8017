"""The queues of all hosts: the front of each in memory (queue_head.py), the rest on disk.

    queues.put("wiki:80", place, packed)
    place = queues.next_place("wiki:80", now)     # None: none may go now
    packed = queues.lease("wiki:80", place)

A host's queue has two runs (keys.py): URLs ready for their turn, and those that wait for a time.
"""

from __future__ import annotations

from contextlib import closing

from larmspider.frontier.storage import keys as k
from larmspider.frontier.storage.overlay import Layers
from larmspider.frontier.storage.queue_head import QueueHead
from larmspider.frontier.storage.records import Counts
from larmspider.frontier.storage.tally import Tally


class HostQueues:
    """``head_entries`` are held in memory over all hosts, beside those not yet committed.

    ``serial`` is the number of the last place given; it goes on over restarts.
    """

    def __init__(self, layers: Layers, tally: Tally, head_entries: int) -> None:
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
