"""Which URLs are visited again, and when: a queue for each host, beside its queue of new URLs.

    revisits.put("wiki:80", 1_800_000_000.0, key)
    key = revisits.next("wiki:80", now, until=now)     # None: nothing is due
    revisits.lease(key, entry)
    revisits.end(key)                                  # or hold(key, until), or back(key)

A URL has one place here, by its time (records.revisit_key), and its FetchRecord names that time. A
place stays on disk while its URL is leased, so that a crash makes the visit due again. A visit that
failed and will be retried soon is held in memory, and keeps its old place on disk.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from heapq import heappop, heappush

from larmspider.frontier.storage import records
from larmspider.frontier.storage.overlay import WriteOverlay
from larmspider.frontier.storage.queues import QueueHead
from larmspider.frontier.storage.records import QueuedUrl

HEAD = 64
"""Places of a host that are read from disk at a time."""


class RevisitQueues:
    def __init__(self, overlay: WriteOverlay) -> None:
        self._overlay = overlay
        self._heads: dict[str, QueueHead] = {}
        self._grown: set[str] = set()  # hosts whose heads hold what is not on disk
        self.leased: dict[bytes, QueuedUrl] = {}
        """Leased revisits, by URL key."""
        self.by_host: Counter[str] = Counter()
        """The number of leased revisits of each host."""
        self._places: dict[bytes, bytes] = {}  # URL key -> place, for leased and held URLs
        self._held: dict[str, list[tuple[float, bytes]]] = {}  # heaps: time, place

    def put(self, host: str, due: float, key: bytes) -> None:
        """Queue a URL that has no place."""
        place = records.revisit_key(host, due, key)
        self._overlay.new.revisits[place] = b""
        self._head(host).put(place, b"")
        self._grown.add(host)

    def remove(self, host: str, due: float, key: bytes) -> None:
        """Take out a URL that is not leased."""
        place = records.revisit_key(host, due, key)
        self._places.pop(key, None)
        if (head := self._heads.get(host)) is not None:
            head.remove(place)
        self._overlay.new.revisits[place] = None

    def next(self, host: str, now: float, until: float) -> bytes | None:
        """The key of a URL that was held until ``now`` or earlier. Else the key of the URL that is
        due first, if it is due by ``until``."""
        held = self._first_held(host)
        if held is not None and held[0] <= now:
            return held[1][14:]
        place = self._head(host).first(self._load)
        return place[14:] if place is not None and records.due_of(place) <= until else None

    def next_due(self, host: str, until: float) -> float | None:
        """0.0 if next() has a URL by that time. Else the first time until which a URL is held; None
        if there is none."""
        place = self._head(host).first(self._load)
        if place is not None and records.due_of(place) <= until:
            return 0.0
        held = self._first_held(host)
        return None if held is None else held[0]

    def _first_held(self, host: str) -> tuple[float, bytes] | None:
        heap = self._held.get(host)
        while heap and (heap[0][1][14:] in self.leased or not self._is_at(heap[0][1])):
            heappop(heap)  # leased, or scheduled for another time
        return heap[0] if heap else None

    def _is_at(self, place: bytes) -> bool:
        return self._places.get(place[14:]) == place

    def lease(self, key: bytes, due: float, entry: QueuedUrl) -> None:
        """Hand out what next() gave; ``due`` is the time of its place."""
        place = records.revisit_key(entry.host, due, key)
        self._head(entry.host).remove(place)
        self._places[key] = place
        self.leased[key] = entry
        self.by_host[entry.host] += 1

    def _end(self, key: bytes) -> QueuedUrl:
        entry = self.leased.pop(key)
        self.by_host[entry.host] -= 1
        return entry

    def end(self, key: bytes) -> QueuedUrl:
        """The visit was made, and the URL no longer has a place."""
        entry = self._end(key)
        self._overlay.new.revisits[self._places.pop(key)] = None
        return entry

    def back(self, key: bytes) -> None:
        """The visit was not made: the URL is due as before."""
        entry = self._end(key)
        self._head(entry.host).put(self._places.pop(key), b"")
        self._grown.add(entry.host)

    def hold(self, key: bytes, until: float) -> None:
        """The visit failed, and may be tried again from a time on."""
        entry = self._end(key)
        heappush(self._held.setdefault(entry.host, []), (until, self._places[key]))

    def forget(self, host: str) -> None:
        """Drop a host that another worker owns now. None of its URLs may be leased or
        uncommitted."""
        self._heads.pop(host, None)
        self._grown.discard(host)
        for _, place in self._held.pop(host, ()):
            self._places.pop(place[14:], None)

    def _head(self, host: str) -> QueueHead:
        head = self._heads.get(host)
        if head is None:
            head = self._heads[host] = QueueHead(records.host_prefix(host), complete=False)
        return head

    def _load(self, head: QueueHead) -> None:
        wanted = HEAD
        with closing(self._overlay.stored_revisits(head.loaded_to[:8], head.loaded_to)) as places:
            for place, kept in places:
                head.loaded_to = place
                if kept is not None and self._places.get(place[14:]) != place:
                    head.put(place, b"")
                    wanted -= 1
                    if not wanted:
                        return
        head.complete = True

    def trim(self) -> None:
        """Drop entries from memory that a commit has written to disk."""
        uncommitted = self._overlay.new.revisits
        grown, self._grown = self._grown, set()
        for host in grown:
            if (head := self._heads.get(host)) is None:
                continue
            head.trim(HEAD, uncommitted)
            if any(place in uncommitted for place in head.values):
                self._grown.add(host)
            elif not head.values:
                del self._heads[host]
