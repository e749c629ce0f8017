"""Recognizes error pages with status 200, also if some of their words vary with each answer.

    known = pairs_to_keep(answer) & pairs_to_keep(another)     # of two made-up URLs
    likeness(known, answer, stored).is_error       # whether a page has become the error page

Pairs of neighbouring words are compared. A page is the error page if it has lost its own pairs, and
has half of the pairs that the made-up URLs share and the stored page lacked. A page that really
changed lacks the sentence of the error page, though both share the navigation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

from larmspider.extraction.texts.fingerprint import error_words
from larmspider.items import Page

Pairs = frozenset[int]
LEAST_PAIRS = 3
"""Fewer pairs say nothing: two pages may share them by chance."""
_MOST_KEPT = 0.05  # share of its own pairs; with more it is still this page, in a new design
_LEAST_SHARED = 0.5  # share of the error page's pairs; made-up URLs share some pairs by chance
_MOST_ALIKE = 0.2  # share of pairs that two different answers have in common, at most
_MOST_LEFT = 1 / 3  # share of its pairs that a lost page has left; with more it was edited
_LEAST_OTHERS = 1  # other lost pages of the host with the same new pairs, at least
_KEPT_WORDS = 400  # first words of an answer to a made-up URL: 25 KB of memory for a host
_MOST_WORDS = 20_000  # first words of a page that are compared: 10 ms


class Likeness(NamedTuple):
    """``is_lost``: the page has lost its own words. ``shared``: the share of the error page's own
    pairs that the page has; None if the error page has too few pairs of its own."""

    is_lost: bool
    shared: float | None

    @property
    def is_error(self) -> bool:
        return self.is_lost and self.shared is not None and self.shared >= _LEAST_SHARED


class Lost(NamedTuple):
    """A page that has lost most of its pairs. ``before`` and ``new``: its earlier and its new
    pairs, within the first 400 words."""

    url: str
    before: Pairs
    new: Pairs


def lost(page: Page, stored: Page) -> Lost | None:
    """The lost pairs of a page; None if the page still has a good part of its words."""
    before, now = pairs_of(stored), pairs_of(page)
    if not before or len(before & now) > _MOST_LEFT * len(before):
        return None
    return Lost(page.url, pairs_to_keep(stored), pairs_to_keep(page) - before)


def is_fault(page: Lost, first: Page, others: Sequence[Lost]) -> bool:
    """Whether a lost page is a fault of the server: it has a new sentence, and its other words were
    not in the ``first`` answer, 2 s earlier. ``others``: other lost pages of the host. A short
    sentence must be on at least one of them."""
    new = pairs_to_keep(first) - page.before
    stays = page.new & new
    if len(stays) >= LEAST_PAIRS and len(stays) <= _MOST_LEFT * len(page.new):
        return True
    found = Counter(pair for one in others for pair in one.new)
    sentence = {pair for pair, number in found.items() if number >= _LEAST_OTHERS} & page.new
    rest = page.new - sentence
    return (
        len(sentence) >= LEAST_PAIRS and bool(rest) and len(rest & new) <= _MOST_ALIKE * len(rest)
    )


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
