"""How rare a word is over several indexes, for each weighs its words by its own pages alone.

BM25 multiplies what a word earns by idf = ln(1 + (N - n + 0.5) / (n + 0.5)), n of N pages having
it (Robertson and Zaragoza 2009, 3.3; Tantivy's ``idf()``). Where all pages of an index are of the
wiki, "wiki" earns nothing there and much elsewhere, so scores of two indexes do not compare. Each
index's query is therefore boosted, word by word, by idf over all indexes / idf of its own:

    rarity = Rarity([(searcher_a, 1200), (searcher_b, 40)])     # with the pages of each
    boost = rarity.of(0)                       # boost("body", ["wiki"]) -> 7.3

What is left between one index and several are the average lengths of pages, which each index takes
from its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log

import tantivy

Boost = Callable[[str, Sequence[str]], float]
"""By which factor a word, or a phrase, of a field counts more in an index than that says."""


def idf(pages: int, having: int) -> float:
    """Inverse document frequency; more for rarer words, never negative."""
    return log(1 + (max(pages, having) - having + 0.5) / (having + 0.5))


class Rarity:
    """Of the words of one query; asks each index once for a word, 0.3 us."""

    def __init__(self, indexes: Sequence[tuple[tantivy.Searcher, int]]) -> None:
        self._indexes = indexes
        self._pages = sum(pages for _, pages in indexes)
        self._overall: dict[tuple[str, str], float] = {}

    def of(self, number: int) -> Boost:
        """The boost for queries to one of the indexes. A phrase's idf is the sum of its words'."""
        searcher, pages = self._indexes[number]

        def boost(field: str, words: Sequence[str]) -> float:
            own = sum(idf(pages, searcher.doc_freq(field, word)) for word in words)
            return sum(self._idf(field, word) for word in words) / own if own else 1.0

        return boost

    def _idf(self, field: str, word: str) -> float:
        found = self._overall.get((field, word))
        if found is None:
            having = sum(searcher.doc_freq(field, word) for searcher, _ in self._indexes)
            found = self._overall[field, word] = idf(self._pages, having)
        return found
