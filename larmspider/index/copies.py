"""Which of many pages are copies: the same text, or nearly so.

A page's *likeness* is 64 bits: the simhash of its main text (fingerprint.py), or a hash
of its bytes if it has little text. If the main text is mostly links (a menu in a plain ``div``),
the likeness is this simhash xor the simhash of the text outside of links (outside_links.py): bits
that differ in either also differ in the likeness, so copies are alike in both. Copies differ in at
most `NEAR` bits. Six differing bits leave one of four blocks of 16 bits unchanged, or change two
blocks by one bit each, and therefore at least one of any three blocks. The blocks are terms of the
search index: possible copies have one of 52 terms, which are the four blocks, and the first three
with one bit changed. No groups need to be kept: a search looks for copies when a page is shown, and
finds them right after a commit::

    near(0x0123456789ABCDEF, 0x0123456789ABCDEE)     # True
    groups = Groups()
    [groups.place(likeness) for likeness in found]   # [0, 1, 0, 2]: two are copies
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import tantivy
from tantivy import DocAddress, Occur, Query

from larmspider.index.queries import kind_of

NEAR = 6
"""Bits in which copies may differ: about 1 word in 70."""
MOST = 1_000
"""Most copies of a page that are counted."""
MANY_PAGES = 100_000
"""Pages of an index up to which all likenesses are read."""

_BITS = (1 << 64) - 1
_BLOCK = 16
_PLACES = tuple(enumerate(range(0, 64, _BLOCK)))
_LOOKED_AT = 3  # blocks that are looked for with one bit changed
_ONE_BIT = tuple(1 << bit for bit in range(_BLOCK))
_FEW = 100  # copies of a page, as a rule
_SEVENTHS = tuple((number, 9 * number, 0x3FF if number == NEAR else 0x1FF) for number in range(7))


def near(one: int, other: int) -> bool:
    """Whether two pages of these likenesses are copies."""
    return ((one ^ other) & _BITS).bit_count() <= NEAR


def blocks(likeness: int) -> list[str]:
    """The terms of a page."""
    return [f"{mark}{likeness >> place & 0xFFFF:04x}" for mark, place in _PLACES]


def like(likeness: int) -> list[str]:
    """Terms of the likeness. Each copy has at least one of them."""
    parts = [(mark, likeness >> place & 0xFFFF) for mark, place in _PLACES]
    return blocks(likeness) + [
        f"{mark}{part ^ bit:04x}" for mark, part in parts[:_LOOKED_AT] for bit in _ONE_BIT
    ]


def of_bytes(digest: str) -> int:
    """The likeness of a page with little text, as a signed number, as all are."""
    return int.from_bytes(blake2b(digest.encode(), digest_size=8).digest(), signed=True)


class Groups:
    """Pages with their copies, each group named by the number of its first page."""

    def __init__(self) -> None:
        self._by_block: dict[int, list[tuple[int, int]]] = {}
        self._number = 0

    def place(self, likeness: int | None) -> int:
        """The number of a page's group. A page that is a copy of the first page of a group joins
        that group; others begin a new group. ``likeness`` is None for a page that is known not to
        be a copy. 3 us."""
        if likeness is not None:
            # NEAR bits leave one of NEAR + 1 blocks as it is
            parts = [number << 10 | likeness >> place & mask for number, place, mask in _SEVENTHS]
            alike = {
                number
                for part in parts
                for first, number in self._by_block.get(part, ())
                if near(first, likeness)
            }
            if alike:
                return min(alike)
            for part in parts:
                self._by_block.setdefault(part, []).append((likeness, self._number))
        self._number += 1
        return self._number - 1


class Likenesses:
    """The likenesses of all pages of a commit, for counting the copies of many pages."""

    def __init__(self, searcher: tantivy.Searcher) -> None:
        import numpy as np  # 0.1 s and 30 MB, for processes that answer many queries

        every = Query.all_query()
        found = searcher.search(every, MANY_PAGES, count=False, order_by_field="likeness").hits
        values: list[Any] = [value for value, _ in found if value is not None]
        self._all = np.array(values, dtype=np.int64).view(np.uint64)

    def near(self, likeness: int) -> int:
        """The number of copies of a page with this likeness, including the page itself; at most
        `MOST`."""
        import numpy as np

        differing = np.bitwise_count(self._all ^ np.uint64(likeness & _BITS))
        return min(MOST, int(np.count_nonzero(differing <= NEAR)))


def copies_in(
    searcher: tantivy.Searcher,
    schema: tantivy.Schema,
    likeness: int,
    pages: int,
    *,
    quickly: bool = False,
    among: Query | None = None,
) -> list[DocAddress]:
    """Where the copies of a page are, including the page itself; at most `MOST`.

    ``pages``: about the number of pages of the index. ``quickly``: among many pages, do not find
    copies if they all differ from the page in each of the four blocks. ``among``: only pages that
    this query finds. Takes 0.1 ms with 10,000 pages, and 0.7 ms with a million; 0.1 ms ``quickly``.
    One query for a set of terms, in place of a query for each, takes 0.5 and 1.2 ms."""
    if quickly and pages > MANY_PAGES:
        found = _near(searcher, schema, blocks(likeness), likeness, pages, among)
        if len(found) < 2:
            return found
    return _near(searcher, schema, like(likeness), likeness, pages, among)


def _near(
    searcher: tantivy.Searcher,
    schema: tantivy.Schema,
    terms: Sequence[str],
    likeness: int,
    pages: int,
    among: Query | None,
) -> list[DocAddress]:
    kind = kind_of(schema)
    query = kind.boolean_query(
        [(Occur.Should, kind.term_query(schema, "blocks", term)) for term in terms]
    )
    if among is not None:
        query = kind.boolean_query([(Occur.Must, query), (Occur.Must, among)])
    # Tantivy makes room for ``limit`` hits in each segment; this is twice what chance gives
    for limit in (_FEW + pages * 2 * len(terms) // (1 << _BLOCK), 10 * MOST):
        found = searcher.search(query, limit, count=False, order_by_field="likeness").hits
        if len(found) < limit:
            break
    alike = [
        address
        for value, address in found
        if value is not None and ((value ^ likeness) & _BITS).bit_count() <= NEAR
    ]
    return alike[:MOST]
