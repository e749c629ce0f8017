"""The front of one host's queue in memory, the rest on disk.

A host with 100,000 queued URLs has some 60 of them here. What was added since the last commit is
not on disk, so it is here too, however much it is.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from heapq import heapify, heappop, heappush


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
