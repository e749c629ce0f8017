"""Moves matches down that were not reached at their last visit (index/unreached.py).

UNREACHED_FACTOR lowers their scores. None comes before a reached match with the same text,
whatever its links::

    for match in demoted(matches, is_missed, copies): ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from itertools import count

from larmspider.index.unreached import UNREACHED_FACTOR
from larmspider.search.match import Match, Place


def demoted(
    stream: Iterable[Match],
    is_missed: Callable[[Place], bool],
    copies: Callable[[Match], Iterable[Place]],
) -> Iterator[Match]:
    """The matches by score. ``is_missed`` returns whether a page was not reached. ``copies``
    returns the places of reached matches with the same text."""
    waiting: list[tuple[float, int, Match]] = []  # a heap
    behind: dict[Place, list[tuple[float, int, Match]]] = {}  # a copy that comes first
    shown, order = set[Place](), count()

    def due(score: float) -> Iterator[Match]:
        while waiting and -waiting[0][0] >= score:
            one = heappop(waiting)
            first = next((at for at in copies(one[2]) if at not in shown), None)
            if first is None:
                yield one[2]
            else:
                behind.setdefault(first, []).append(one)

    for match in stream:
        if is_missed(match.place):
            low = match._replace(score=match.score * UNREACHED_FACTOR)
            heappush(waiting, (-low.score, next(order), low))
            continue
        yield from due(match.score)
        yield match
        shown.add(match.place)
        for one in behind.pop(match.place, ()):
            heappush(waiting, one)
    yield from due(-1.0)
    for left in sorted(one for each in behind.values() for one in each):
        yield left[2]
