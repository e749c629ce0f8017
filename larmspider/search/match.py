"""A page that a query finds, and operations on a stream of matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from tantivy import DocAddress

from larmspider.index.copies import Groups, near
from larmspider.search.request import MAX_LIMIT, MAX_OFFSET
from larmspider.search.results import Document

LOOKED_AT = MAX_LIMIT + MAX_OFFSET
"""Matches that are looked at for hits that are not copies of better ones."""
COMPARED = 20
"""Copies whose titles are compared with the title of the shown page: 0.1 ms each."""
ROUNDED = 1e-5
"""Largest relative difference of two scores that are equal except for rounding."""
MOST_EVEN = LOOKED_AT
"""Matches with equal scores that are sorted into the order of the index together. These are all
looked-at matches: with fewer, rounding would decide which of them come first."""

Place: TypeAlias = tuple[int, int, int]
"""Number of a shard, segment, number in it."""


class Match(NamedTuple):
    """A page of the shard with this number; ``score`` by date is in seconds since the epoch."""

    score: float
    shard: int
    address: DocAddress
    likeness: int | None
    stored: dict[str, Any] | None = None
    """The stored fields of the page, if they were read."""

    @property
    def place(self) -> Place:
        return self.shard, self.address.segment_ord, self.address.doc


def best_first(match: Match) -> float:
    return -match.score


def each_once(stream: Iterable[Match]) -> Iterator[Match]:
    """The first match of each page."""
    known = set[Place]()
    for match in stream:
        if match.place not in known:
            known.add(match.place)
            yield match


def evened(stream: Iterable[Match]) -> Iterator[Match]:
    """Matches by score; matches with equal scores (except for rounding) come by their place. For a
    reader who does not see all pages, words are weighed in two steps, and the rounding depends on
    hidden pages."""
    run, first = list[Match](), 0.0
    for match in stream:
        if run and (match.score < first * (1 - ROUNDED) or len(run) == MOST_EVEN or not first):
            yield from sorted(run, key=_place)
            run = []
        if not run:
            first = match.score
        run.append(match if match.score == first else match._replace(score=first))
    yield from sorted(run, key=_place)


def _place(match: Match) -> Place:
    return match.place


def grouped(
    stream: Iterable[Match],
    most: int,
    *,
    copies: bool = False,
    least: int = 0,
    stands_alone: Callable[[Match, Match], bool] = lambda _copy, _shown: False,
) -> list[list[Match]]:
    """The first ``most`` matches that are not copies of a better one, each with its looked-at
    copies. With ``copies``, each match is a separate result. A copy for which ``stands_alone``
    returns True is a result beside the shown one, too; at most `COMPARED` copies are checked. At
    least ``least`` matches are examined."""
    known, groups, places, left = Groups(), list[list[Match]](), list[int](), COMPARED
    for number, match in enumerate(islice(stream, LOOKED_AT)):
        at = known.place(None if copies else match.likeness)
        is_copy = at < len(places)
        if is_copy and left and len(groups) < most:
            left -= 1
            if stands_alone(match, groups[places[at]][0]):
                groups.append([match])
                continue
        if is_copy:
            groups[places[at]].append(match)
        elif len(groups) < most:
            places.append(len(groups))
            groups.append([match])
        elif number >= least:
            break
    return groups


def without_copies(stream: Iterable[Match], document: Document) -> Iterator[Match]:
    """Matches that are not copies of ``document``."""
    for match in stream:
        one, other = match.likeness, document.likeness
        if one is None or other is None or not near(one, other):
            yield match


def best_of(copies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Choose from copies that answer a query equally well. Pages that name another page as the
    canonical one come last; then the shortest URL wins."""
    return min(copies, key=lambda one: (one.get("elsewhere", 0), len(one["url"]), one["url"]))
