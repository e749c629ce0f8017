"""The words of a text as numbers, all at once: simhashes (fingerprint.py) and rows of words that
many pages have (navigation.py) are made of them. numpy takes 0.2 ms for 10 KB, a loop over the
words ten times as long; it is loaded by the process that compares all texts of a crawl.

    words = Words("What people call a page")
    words.simhash()                  # as fingerprint.simhash() has it
    words.rows(5, sample=8)          # {3: 8133...}: that of five words from words[3] on
    words.places([(1, 3)])           # [(5, 16)]: characters
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from larmspider.extraction.fingerprint import LONG_WORD, MIXED, PLACES, ROW, SEPARATOR, SHIFTS, WORD

_Numbers = NDArray[np.uint64]
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(WORD + 1)], np.uint64)
_UNUSED = np.array([8 * (WORD - size) for size in range(WORD + 1)], np.uint64)
_BITS = np.arange(8, dtype=np.uint64)[:, np.newaxis]
_ONE_OF_EACH = np.uint64(0x0101010101010101)  # of each byte its last bit
_LANE = 255  # rows whose votes on a bit fit a byte


class Words:
    """With numbers as fingerprint.py has them."""

    def __init__(self, text: str) -> None:
        self._text, self._data = text, text.encode("utf-8", "surrogatepass").lower()
        padding = bytes(WORD)
        padded = b"".join((padding, self._data, padding))
        is_space = np.frombuffer(padded, np.uint8)[WORD - 1 : -WORD + 1] <= SEPARATOR
        edges = np.flatnonzero(is_space[1:] != is_space[:-1])
        self._starts, self._ends = edges[::2], edges[1::2]
        sizes = np.minimum(self._ends - self._starts, WORD)
        eights: _Numbers = np.ndarray((len(padded) - WORD + 1,), "<u8", padded, strides=(1,))
        first = eights[self._starts + WORD] & _MASKS[sizes]
        last = eights[self._ends] >> _UNUSED[sizes]
        self._numbers = _mixed(first * _factor(0) + last * _factor(1))

    def __len__(self) -> int:
        return len(self._starts)

    def simhash(self) -> int:
        numbers = self._numbers
        if len(numbers) * LONG_WORD < len(self._text):
            characters = "".join(self._text.split()).encode("utf-32-le", "surrogatepass")
            numbers = _mixed(np.frombuffer(characters, "<u4").astype(np.uint64) * _factor(0))
        numbers = np.append(numbers, np.zeros(max(0, ROW - len(numbers)), np.uint64))
        rows = len(numbers) - ROW + 1
        votes = _mixed(_sum(numbers[place : place + rows] for place in range(ROW)))
        ones = votes >> _BITS & _ONE_OF_EACH
        sums = np.add.reduceat(ones, range(0, rows, _LANE), axis=1).astype("<u8", copy=False)
        counts = sums.view(np.uint8).reshape(8, -1, 8).sum(axis=1, dtype=np.int64)
        found = np.packbits(rows < 2 * counts.T, bitorder="little").tobytes()
        return int.from_bytes(found, "little", signed=True)

    def rows(self, size: int, sample: int) -> dict[int, int]:
        """Rows of so many words, by the place of the first. Which words begin one, one in
        ``sample`` (a power of two), depends on the words alone."""
        begin = self._numbers[: max(0, len(self) - size + 1)]
        starts = np.flatnonzero(begin & np.uint64(sample - 1) == 0)
        sums = _sum(self._numbers[starts + place] for place in range(size))
        return dict(zip(starts.tolist(), sums.tolist(), strict=True))

    def places(self, blocks: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Words from and to as characters from and to."""
        spans = [(int(self._starts[start]), int(self._ends[end - 1])) for start, end in blocks]
        if len(self._data) == len(self._text):
            return spans
        begins = (np.frombuffer(self._data, np.uint8) & 0xC0) != 0x80
        before = np.concatenate(([0], np.cumsum(begins)))
        return [(int(before[start]), int(before[end])) for start, end in spans]


def _factor(place: int) -> np.uint64:
    return np.uint64(PLACES[place])


def _sum(words: Iterable[_Numbers]) -> _Numbers:
    """Of the words at each place of all rows."""
    first, *others = words
    found = first * _factor(0)
    for place, numbers in enumerate(others, 1):
        found += numbers * _factor(place)
    return found


def _mixed(numbers: _Numbers) -> _Numbers:
    for shift, factor in zip(SHIFTS, MIXED, strict=True):
        numbers = (numbers ^ numbers >> np.uint64(shift)) * np.uint64(factor)
    return numbers ^ numbers >> np.uint64(SHIFTS[0])
