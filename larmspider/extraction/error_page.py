"""Error pages that a server answers with 200, and in which some words are others at each answer.

    known = pairs_to_keep(answer) & pairs_to_keep(another)     # of two made-up URLs
    likeness(known, answer, stored).is_error       # whether a page has become the error page

Pairs of neighbouring words are compared. A page is the error page if it has lost its own pairs, and
has most pairs that the made-up URLs have in common and the stored page had not. A page that really
changed lacks the sentence of the error page, though both share the navigation.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice, pairwise
from typing import NamedTuple

from larmspider.extraction.fingerprint import error_words
from larmspider.items import Page

Pairs = frozenset[int]
LEAST_PAIRS = 3
"""Fewer pairs say nothing: two pages may share them by chance."""
_MOST_KEPT = 0.05  # of the page's own pairs; so a page in a new design is still this page
_LEAST_SHARED = 0.5  # of the error page's pairs; by chance the made-up URLs share a few more
_MOST_ALIKE = 0.2  # of the pairs of two answers that say another thing
_KEPT_WORDS = 400  # of an answer to a made-up URL: 25 KB of memory for a host
_MOST_WORDS = 20_000  # of a page: 10 ms


class Likeness(NamedTuple):
    """``is_lost``: the page has lost its own words. ``shared``: the part of the error page's own
    pairs that the page has; None: the error page has too few of them."""

    is_lost: bool
    shared: float | None

    @property
    def is_error(self) -> bool:
        return self.is_lost and self.shared is not None and self.shared >= _LEAST_SHARED


def pairs_of(page: Page, words: int = _MOST_WORDS) -> Pairs:
    """Pairs of neighbouring words, without numbers and parts of the URL. They are hashes, which
    another process does not understand."""
    return _pairs(islice(error_words(page), words))


def pairs_to_keep(page: Page) -> Pairs:
    """The pairs of the answer to a made-up URL."""
    return pairs_of(page, _KEPT_WORDS)


def likeness(known: Pairs, page: Page, stored: Page) -> Likeness:
    """How like the error page a page has become; ``known``: the pairs of all answers to made-up
    URLs."""
    before, now = pairs_of(stored), pairs_of(page)
    own, errors = before - known, known - before
    kept = len(own & now)
    is_lost = bool(own) and (kept < LEAST_PAIRS or kept <= _MOST_KEPT * len(own))
    shared = len(errors & now) / len(errors) if len(errors) >= LEAST_PAIRS else None
    return Likeness(is_lost, shared)


def says_another_thing(one: Page, other: Page) -> bool:
    """Whether two answers of one URL have next to nothing in common."""
    first, second = pairs_of(one), pairs_of(other)
    return len(first & second) <= _MOST_ALIKE * min(len(first), len(second))


def _pairs(words: Iterable[str]) -> Pairs:
    return frozenset(map(hash, pairwise(words)))
