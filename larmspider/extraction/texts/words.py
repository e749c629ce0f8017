"""The words of texts as numbers, all at once, for simhashes (fingerprint.py) and rows of words that
many pages have (navigation.py). numpy takes 0.15 ms for 10 KB, with many texts in one pass; a loop
over the words takes ten times as long. The process that compares all texts of a crawl loads numpy.

    texts = Words(["Many people call a page", "and another"])
    texts.simhashes()                 # as fingerprint.simhash() has them
    texts.rows(5, sample=8)           # [([3], [8133...]), ([], [])]: of five words from the 4th on
    texts.places(0, [(1, 3)])         # [(5, 16)]: characters of the first text
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
from numpy.typing import NDArray

from larmspider.extraction.texts.fingerprint import (
    LONG_WORD,
    MIXED,
    PLACES,
    ROW,
    SEPARATOR,
    SHIFTS,
    SLOT_BITS,
    WORD,
)

_Numbers = NDArray[np.uint64]
_BITS = np.arange(8, dtype=np.uint64)[:, np.newaxis]
_ONE_OF_EACH = np.uint64(0x0101010101010101)  # the last bit of each byte
_ROW_BITS = np.uint64(34)
"""30 bits of a row are left, which are one digit of an int: hashed and compared at once."""
_LANE = 255  # rows whose votes on a bit fit a byte


class Words:
    """The words of some texts, with numbers as in fingerprint.py."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._data = [text.encode("utf-8", "surrogatepass") for text in texts]
        padding = bytes(WORD)
        padded = _lower(b"".join((padding, b" ".join(self._data), padding)))
        is_space = padded[WORD - 1 : -WORD + 1] <= SEPARATOR
        edges = np.flatnonzero(is_space[1:] != is_space[:-1])
        self._starts, self._ends = edges[::2], edges[1::2]
        sizes = self._ends - self._starts
        eights: _Numbers = np.ndarray((len(padded) - WORD + 1,), "<u8", padded, strides=(1,))
        unused = ((WORD - np.minimum(sizes, WORD)) * 8).astype(np.uint64)  # bits
        first = eights[self._starts + WORD] << unused >> unused
        last = eights[self._ends] >> unused
        sums = first * _factor(0) + last * _factor(1)
        long = np.flatnonzero(sizes > 2 * WORD)
        longer = sizes[long]
        middle = eights[self._starts[long] + (longer + WORD >> 1)]
        sums[long] += middle * _factor(2) + longer.view(np.uint64) * _factor(3)
        self._numbers = _mixed(sums)
        begins = np.cumsum([0, *(len(data) + 1 for data in self._data)])
        self._begins: list[int] = begins.tolist()
        self._firsts: list[int] = np.searchsorted(self._starts, begins).tolist()

    def __len__(self) -> int:
        return len(self._texts)

    def number(self, text: int) -> int:
        """How many words a text has."""
        return self._firsts[text + 1] - self._firsts[text]

    def simhashes(self) -> list[int]:
        pieces = [self._voting(text) for text in range(len(self))]
        rows = _rows(np.concatenate([*pieces, np.zeros(ROW - 1, np.uint64)]), ROW)
        kept = _each_once(rows, [len(piece) for piece in pieces])
        ones = _mixed(np.concatenate(kept)) >> _BITS
        ones &= _ONE_OF_EACH
        sizes = [len(some) for some in kept]
        lanes: list[int] = []
        firsts: list[int] = []
        for begin, end in pairwise([0, *accumulate(sizes)]):
            firsts.append(len(lanes))
            lanes += range(begin, end, _LANE)
        sums = np.add.reduceat(ones, lanes, axis=1).astype("<u8", copy=False)
        by_lane = sums.view(np.uint8).reshape(8, -1, 8)
        counts = np.add.reduceat(by_lane, firsts, axis=1, dtype=np.int64)
        is_most = np.array(sizes)[:, np.newaxis, np.newaxis] < 2 * counts.transpose(1, 2, 0)
        found = np.packbits(is_most.reshape(-1, 64), axis=1, bitorder="little").view("<i8")
        hashes: list[int] = found.ravel().tolist()
        return hashes

    def _voting(self, text: int) -> _Numbers:
        """The words of a text, or its characters where it has no spaces; as many as a row, at
        least."""
        numbers = self._numbers[self._firsts[text] : self._firsts[text + 1]]
        if len(numbers) * LONG_WORD < len(self._data[text]):
            characters = "".join(self._texts[text].split()).encode("utf-32-le", "surrogatepass")
            numbers = _mixed(np.frombuffer(characters, "<u4").astype(np.uint64) * _factor(0))
        missing = ROW - len(numbers)
        return np.append(numbers, np.zeros(missing, np.uint64)) if missing > 0 else numbers

    def rows(self, size: int, sample: int) -> list[tuple[list[int], list[int]]]:
        """For each text, the places of words that begin a row of ``size`` words, and these rows. 1
        word in ``sample`` (a power of two) begins a row; which one depends on the words alone."""
        starts = np.flatnonzero(self._numbers & np.uint64(sample - 1) == 0)
        padded = np.append(self._numbers, np.zeros(size - 1, np.uint64))
        sums = _sum(padded[starts + place] for place in range(size)) >> _ROW_BITS
        edges = [(begin, max(begin, end - size + 1)) for begin, end in pairwise(self._firsts)]
        bounds = np.searchsorted(starts, edges).tolist()
        return [
            ((starts[a:b] - begin).tolist(), sums[a:b].tolist())
            for (a, b), (begin, _) in zip(bounds, edges, strict=True)
        ]

    def places(self, text: int, blocks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Words of a text from and to, in order, as characters from and to."""
        first, begin, data = self._firsts[text], self._begins[text], self._data[text]
        spans = [
            (int(self._starts[first + start]) - begin, int(self._ends[first + end - 1]) - begin)
            for start, end in blocks
        ]
        if len(data) == len(self._texts[text]):
            return spans
        at = characters = 0
        found = []
        for place in chain.from_iterable(spans):
            characters += len(data[at:place].decode("utf-8", "surrogatepass"))
            found.append(characters)
            at = place
        return list(zip(found[::2], found[1::2], strict=True))


def _lower(data: bytes) -> NDArray[np.uint8]:
    """As ``data.lower()``, in a third of the time."""
    found = np.frombuffer(data, np.uint8)
    is_capital = found - np.uint8(ord("A")) < np.uint8(26)
    return found + is_capital * np.uint8(ord("a") - ord("A"))


def _factor(place: int) -> np.uint64:
    return np.uint64(PLACES[place])


def _rows(numbers: _Numbers, size: int) -> _Numbers:
    """The row of each number and the ``size`` - 1 numbers after it."""
    rows = len(numbers) - size + 1
    return _sum(numbers[place : place + rows] for place in range(size))


def _each_once(rows: _Numbers, sizes: Iterable[int]) -> list[_Numbers]:
    """The different rows of each text. ``sizes`` are the numbers of words. Sorting the rows would
    take as long with AVX-512, and 0.05 ms more for 6 KB without AVX2."""
    slots = (rows >> np.uint64(64 - SLOT_BITS)).view(np.int64)
    places = np.arange(len(rows), dtype=np.uint32)
    last = np.empty(1 << SLOT_BITS, np.uint32)  # nothing is read that was not written before
    found = []
    for begin, behind in pairwise([0, *accumulate(sizes)]):
        one = slice(begin, behind - ROW + 1)  # later rows reach into the next text
        mine, there = places[one], slots[one]
        last[there] = mine  # among equal slots the last place wins
        found.append(rows[one][last[there] == mine])
    return found


def _sum(words: Iterable[_Numbers]) -> _Numbers:
    """The sums of the words at each place of all rows."""
    first, *others = words
    found = first * _factor(0)
    for place, numbers in enumerate(others, 1):
        found += numbers * _factor(place)
    return found


def _mixed(numbers: _Numbers) -> _Numbers:
    for shift, factor in zip(SHIFTS, MIXED, strict=True):
        numbers = (numbers ^ numbers >> np.uint64(shift)) * np.uint64(factor)
    return numbers ^ numbers >> np.uint64(SHIFTS[0])
