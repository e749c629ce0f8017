"""Which blocks a worker is to give up: as many as Redis said last, less those given up since.

    handing_over.hear(beat)               # each sign of life: what is held, how much is too much
    handing_over.next(blocks.leaving)     # [17, 201]: these are to leave as well
    handing_over.release([17, 201])       # they are on their way back to Redis

A beat may be heard after blocks were released that it still counts; they count as given up then, or
as many again would leave.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from larmspider.cluster.membership import Beat


class HandingOver:
    """Asked and told on the event loop only."""

    def __init__(self) -> None:
        self._held: Mapping[int, int] = {}
        self._excess = 0
        self._released: set[int] = set()

    def hear(self, beat: Beat) -> None:
        """What Redis says now."""
        self._held, self._excess = beat.held, beat.excess
        self._released = (self._released & beat.held.keys()) - beat.given.keys()

    def release(self, blocks: Iterable[int]) -> None:
        """These are given up."""
        self._released.update(blocks)

    def next(self, leaving: Collection[int]) -> list[int]:
        """Blocks that are to leave, beside those that do: those that came last, by their tokens."""
        going = self._held.keys() & (self._released | set(leaving))
        staying = sorted(
            (token, block) for block, token in self._held.items() if block not in going
        )
        number = max(0, self._excess - len(going))
        return [block for _, block in staying[len(staying) - number :]]
