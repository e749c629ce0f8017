"""Which words tell a page from the others: those it has often and few others have (tf-idf).

Tantivy has a query for that, more_like_this; it counts deleted pages in one place and not in the
other, and panics (0.27.0: "57 >= 67", idf in bm25.rs), so after any page was indexed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import log

SALIENT_WORDS = 20
"""Words by which similar pages are looked for."""
_LOOKED_UP = 200  # the most frequent words of a page, among which they are found
_SHORTEST = 3  # letters
_TOO_OFTEN = 0.5  # share of the pages that have a word which says nothing,
_FEW_PAGES = 50  # where there are as many as that


def salient_words(words: Iterable[str], frequency: Callable[[str], int], pages: int) -> list[str]:
    """The words that say most about a page, best first.

    ``words`` are all of the page's, ``frequency`` says how many of the ``pages`` have one. A word
    that only this page has finds no other and is left out.
    """
    counted = Counter(word for word in words if len(word) >= _SHORTEST and not word.isdigit())
    weights: dict[str, float] = {}
    for word, times in counted.most_common(_LOOKED_UP):
        having = frequency(word)
        if having >= 2 and (having <= _TOO_OFTEN * pages or pages < _FEW_PAGES):
            weights[word] = (1 + log(times)) * log(1 + pages / having)
    return sorted(weights, key=lambda word: (-weights[word], word))[:SALIENT_WORDS]
