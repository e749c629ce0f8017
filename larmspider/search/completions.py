"""Labels (link texts and titles) that begin with the typed text, most pages first, within a time
limit.

Tantivy looks through all terms with the typed beginning, 2 us each, however few are wanted: 100 ms
where the titles of 50,000 pages begin with the name of a company. Another thread looks through the
terms, without Python's lock, and the reader waits `WAIT_SECS` at most. Results are remembered, and
serve longer beginnings, too. An earlier request gets the labels of an earlier commit or of a
shorter beginning, and the titles of some pages::

    labels = Labels()
    asked = Asked("installation gui", 8, commit, access, look_through, pages, titles)
    for term, pages in labels.most_frequent(asked, until=time.monotonic() + WAIT_SECS): ...
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

WAIT_SECS = 0.008
"""Seconds that a reader waits for the terms: enough for 4,000 terms on an idle machine."""
LIMITED_WAIT_SECS = 0.05
"""The same limit for a reader who does not see all pages. The search takes twice as long. Titles of
some pages are not replacements: Tantivy takes them from the first 50 labels of all pages."""
SMALL = 2_000
"""Pages of an index up to which labels are looked through at once, without another thread."""
KEPT = 500
"""Labels with the most pages that are remembered for one beginning."""
REMEMBERED = 100
"""Beginnings that are remembered, the most recently used: 9 MB with labels of 60 letters."""
MAX_THREADS = 2
"""Beginnings that are looked through at a time."""
LOOKED_UP = 50
"""Labels beyond the wanted number whose visible pages are counted. Each takes 0.03 ms; where pages
are hidden 0.1 ms, and 1 ms for a label of more than 100 pages."""

Counted: TypeAlias = list[tuple[str, int]]
"""Labels and their numbers of pages, most pages first."""
LookThrough: TypeAlias = Callable[[str, int], Counted]
"""Takes a beginning and a limit. Looks through all labels with the beginning and returns the
labels of the most pages."""


@dataclass(frozen=True)
class Asked:
    """A question for the labels of a commit that begin with ``head``. A reader who does not see all
    pages has a list of visible labels only: the order of a list of all labels would reveal how many
    hidden pages have each."""

    head: str
    limit: int
    commit: object
    reader: Hashable
    """A reader who may see only some pages; None for a reader of all pages."""
    look_through: LookThrough
    """Counts the pages that the reader sees."""
    pages: Callable[[str], int]
    """Counts the pages with a label that exist and that the reader sees."""
    titles: Callable[[], tuple[Iterable[str], bool]]
    """Gives labels of some pages, the best-known first, and whether there are more; for a reader
    who sees all pages."""
    at_once: bool = False
    """Whether to look through all labels, however long it takes, and to remember none."""


class _Listed(NamedTuple):
    labels: Counted
    complete: bool
    """Whether these are all labels that begin so."""
    commit: object = None

    def of(self, head: str) -> _Listed:
        return self._replace(labels=[one for one in self.labels if one[0].startswith(head)])


_Key: TypeAlias = tuple[Hashable, str]


class Labels:
    """The remembered labels of an index, shared by all readers."""

    def __init__(self) -> None:
        self._known = dict[_Key, _Listed]()  # the most recently used one is the last
        self._begun = dict[_Key, Future[Counted]]()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="larm-labels")

    def most_frequent(self, asked: Asked, until: float) -> Counted:
        """The labels of the most pages. Only some of them, if looking through all labels takes
        longer than ``until`` (`time.monotonic`)."""
        listed = self._list(asked, until)
        if listed is not None:
            return _counted(asked, listed)
        found = _counted(asked, self._earlier(asked))
        if len(found) >= asked.limit or asked.reader is not None:
            return found
        titles, others = asked.titles()
        if not others:  # few labels begin like this, but the threads are busy
            return _counted(asked, _listed(asked.look_through(asked.head, KEPT)))
        more = [one for one in dict.fromkeys(titles) if one not in dict(found)]
        counted = [(title, asked.pages(title)) for title in more]
        return _most_first([*found, *(one for one in counted if one[1])])[: asked.limit]

    def look_ahead(self, asked: Asked) -> None:
        """Begin the search for a question that will come."""
        if not asked.at_once:
            self._look(asked)

    def _list(self, asked: Asked, until: float) -> _Listed | None:
        if asked.at_once:
            return _listed(asked.look_through(asked.head, KEPT))
        for shorter in (True, False):
            found = self._look(asked, shorter=shorter)
            if not isinstance(found, Future):
                return found
            try:
                listed = _listed(found.result(max(0.0, until - time.monotonic())))
            except TimeoutError:
                return None
            if narrowed := _narrowed(listed, asked):
                return narrowed
        return None

    def _look(self, asked: Asked, *, shorter: bool = True) -> _Listed | Future[Counted] | None:
        """A remembered list, or the running search for it. With ``shorter``, a search for a shorter
        beginning counts, too. None if `MAX_THREADS` searches run already."""
        reader = asked.reader
        key = (reader, asked.head)
        with self._lock:
            for head in _from_longest(asked.head):
                listed = self._known.get((reader, head))
                if listed is not None and listed.commit == asked.commit:
                    if narrowed := _narrowed(listed, asked):
                        return narrowed
                elif (reader, head) in self._begun and (shorter or head == asked.head):
                    return self._begun[reader, head]
            if len(self._begun) >= MAX_THREADS:
                return None
            future = self._begun[key] = self._pool.submit(asked.look_through, asked.head, KEPT)
        future.add_done_callback(partial(self._remember, key, asked.commit))
        return future

    def _remember(self, key: _Key, commit: object, future: Future[Counted]) -> None:
        with self._lock:
            self._begun.pop(key, None)
            if future.exception() is None:
                self._known.pop(key, None)
                self._known[key] = _listed(future.result(), commit)
                if len(self._known) > REMEMBERED:
                    del self._known[next(iter(self._known))]

    def _earlier(self, asked: Asked) -> _Listed:
        """Labels of an earlier commit, or of a shorter beginning."""
        with self._lock:
            for head in _from_longest(asked.head):
                if listed := self._known.get((asked.reader, head)):
                    return listed.of(asked.head)
        return _listed([])


def _listed(labels: Counted, commit: object = None) -> _Listed:
    return _Listed(labels, len(labels) < KEPT, commit)


def _narrowed(listed: _Listed, asked: Asked) -> _Listed | None:
    """The list for a longer beginning, made from this list; None if the longer beginning needs its
    own search."""
    found = listed.of(asked.head)
    # a dropped label never has more pages than a kept one
    enough = listed.complete or len(found.labels) >= min(asked.limit, len(listed.labels))
    return found if enough else None


def _counted(asked: Asked, listed: _Listed) -> Counted:
    """The labels on the most pages, among pages that are there and seen."""
    found = Counted()
    for number, (label, at_most) in enumerate(listed.labels):
        if len(found) >= asked.limit and _most_first(found)[asked.limit - 1][1] >= at_most:
            break
        if number == asked.limit + LOOKED_UP:
            break
        if pages := asked.pages(label):
            found.append((label, pages))
    return _most_first(found)[: asked.limit]


def _most_first(labels: Counted) -> Counted:
    return sorted(labels, key=lambda one: -one[1])


def _from_longest(head: str) -> list[str]:
    return [head[:end] for end in range(len(head), 0, -1)]
