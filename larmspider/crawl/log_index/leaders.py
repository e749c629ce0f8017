"""Who leads, in counts that only grow: exact without a look at all of them.

A count that changed is offered. Whoever ends among the first N was among them when its count
changed last, since what it is compared with only grows.

>>> leaders = Leaders(2)
>>> for key, count in ((b"a", 1), (b"b", 5), (b"c", 3), (b"a", 4)): leaders.offer(key, count)
>>> leaders.first()
[(5, b'b'), (4, b'a')]
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import nlargest


class Leaders:
    """The first ``size`` of all that was offered; ``known`` are those of an earlier round."""

    def __init__(self, size: int, known: Iterable[tuple[int, bytes]] = ()) -> None:
        self.size = size
        self._counts = {key: count for count, key in known}
        self._least = 0
        self._cut()

    def offer(self, key: bytes, count: int) -> None:
        """``count`` is the new one of ``key``, not smaller than before."""
        if count >= self._least:
            self._counts[key] = count
            if len(self._counts) > 2 * self.size:
                self._cut()

    def _cut(self) -> None:
        first = self.first()
        if len(first) == self.size:
            self._least = first[-1][0]
        self._counts = {key: count for count, key in first}

    def first(self) -> list[tuple[int, bytes]]:
        """Count and key, the largest first; of equal ones the larger key."""
        return nlargest(self.size, ((count, key) for key, count in self._counts.items()))
