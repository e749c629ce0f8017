"""Puts matches behind that were not reached at their last visit (index/unreached.py).

Their scores count for UNREACHED_FACTOR. None comes before a match with the same text that was
reached, however many links it has::

    for index, match in demoted(matches, [places], copies): ...
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, TypeAlias

from tantivy import DocAddress

from larmspider.index.unreached import UNREACHED_FACTOR

if TYPE_CHECKING:
    from larmspider.search.searcher import Match

Place: TypeAlias = tuple[int, int, int]
"""Number of an index, segment, number in it."""


def place_of(address: DocAddress) -> tuple[int, int]:
    """In one index."""
    return address.segment_ord, address.doc


def demoted(
    stream: Iterable[tuple[int, Match]],
    missed: Sequence[Collection[tuple[int, int]]],
    copies: Callable[[int, Match], Iterable[Place]],
) -> Iterator[tuple[int, Match]]:
    """Matches by score, each with the number of its index. ``missed``: of each index the places of
    pages that were not reached; ``copies`` gives those of the same text that were, and match."""
    waiting: list[tuple[float, int, int, Match]] = []  # a heap
    behind: dict[Place, list[tuple[float, int, int, Match]]] = {}  # a copy that comes first
    shown, order = set[Place](), count()

    def due(score: float) -> Iterator[tuple[int, Match]]:
        while waiting and -waiting[0][0] >= score:
            one = heappop(waiting)
            first = next((at for at in copies(one[2], one[3]) if at not in shown), None)
            if first is None:
                yield one[2:]
            else:
                behind.setdefault(first, []).append(one)

    for number, match in stream:
        place = place_of(match.address)
        if place in missed[number]:
            low = match._replace(score=match.score * UNREACHED_FACTOR)
            heappush(waiting, (-low.score, next(order), number, low))
            continue
        yield from due(match.score)
        yield number, match
        here = number, *place
        shown.add(here)
        for one in behind.pop(here, ()):
            heappush(waiting, one)
    yield from due(-1.0)
    for left in sorted(one for each in behind.values() for one in each):
        yield left[2:]
