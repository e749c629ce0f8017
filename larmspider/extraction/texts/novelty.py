"""Measures the share of a page's text that is new to its host.

    shown = Sketch()
    shown.share(rows_of(page))        # 1.0; they are remembered
    shown.share(rows_of(page))        # 0.0: the same page once more

It compares a sample of rows of three words. The words themselves decide which rows are sampled, so
two pages with the same paragraph have the same rows of it. Words and numbers of the page's own URL
do not count, nor do the numbers next to these, hashes, GUIDs and numbers of 9 digits: a calendar or
an error page repeats its request, and ids. A page with the words of another one in another order,
as a sorted table, says nothing either.

Words repeated from a page several times as long count as new: a mail is not a copy of its thread,
nor a file a copy of the commit that has added it.

A menu in a plain ``div`` drowns the few words of a page's own. A page that is mostly links
(index/outside_links.py) may therefore also be new by its text outside of links. For such a page, a
list whose links come in another order, or which shows only some of them, says nothing. Some of the
words have to be new, too: otherwise lists with lines of plain text would be new.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import NamedTuple, Self
from urllib.parse import unquote
from zlib import crc32

import msgspec

from larmspider.index.outside_links import outside_links
from larmspider.items import Page

ROW = 3
MAX_TEXT = 20_000
"""Characters that are looked at."""
_SHORT, _LONG = 100, 1_000
"""Words of a page: in a shorter page all rows count, then 1 in 4, in a longer page 1 in 16."""
_LEAST = 12
"""Rows that are enough to judge a page by."""
_SMALLEST = 5
"""Pages of up to 31 words are of one size."""
_NEW_WORDS = 3
"""New words outside of links that make a page new that is mostly links."""
_MAX_WORDS = 20_000
_SMALL_BYTES, _FIRST_BYTES, _MAX_BYTES = 256, 2_048, 65_536
_BITS = 16
"""Bits of a filter for each number: 1 new number in 70 looks known."""
_SIZES, _TIMES, _32_BITS = 0x9E3779B1, 0x85EBCA6B, 0xFFFFFFFF
_WORD = re.compile(r"\w{2,}")
_LONG_NUMBER = 12  # digits
_LONG_TEXT, _DASHES = 4_000, 4  # characters of a page in which a GUID counts, and its dashes
_UTF_8 = ("utf-8", "surrogatepass")
_HASH = re.compile(r"(?:(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,}|\d{9,})$")
"""A hash, or a number of 9 digits or more: a reference, a time in seconds."""
_GUID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")


class Rows(NamedTuple):
    """``rows`` are hashes; ``words`` is a hash of all words in no order; ``judged`` are the rows
    that the sample of a longer page has, too. ``size``: binary logarithm of the number of words."""

    rows: set[int]
    words: int
    judged: set[int]
    size: int


class Apart(NamedTuple):
    """The text of a page outside of links: its rows as (hash of the first word, hash of the row),
    and the hashes of its words."""

    rows: list[tuple[int, int]]
    words: set[int]


class _Hashes(dict[str, int]):
    def __missing__(self, word: str) -> int:
        if len(self) >= _MAX_WORDS:
            self.clear()
        found = self[word] = crc32(word.encode("utf-8", "surrogatepass"))
        return found


_hashes = _Hashes()


def rows_of(page: Page) -> Rows:
    """0.2 ms for 5 KB of text. A document without text is known by its bytes."""
    url = unquote(page.url).lower()
    words = _words(f"{page.title}\n{page.text}", url, _own_words(url))
    if not words:
        body = set() if page.text else {crc32(page.body or page.digest.encode())}
        return Rows(body, 0, body, _SMALLEST)
    step = _step(len(words))
    hashes = [_hashes[word] for word in words]
    starts = [at for at, one in enumerate(hashes) if one % step == 0] or [0]
    rows = {at: crc32(" ".join(words[at : at + ROW]).encode(*_UTF_8)) for at in starts}
    judged = set(rows.values())
    for rarer in (16, 4):
        few = {rows[at] for at in starts if hashes[at] % rarer == 0}
        if len(few) >= _LEAST:
            judged = few
            break
    size = max(_SMALLEST, len(words).bit_length())
    return Rows(set(rows.values()), sum(hashes) & 0xFFFFFFFF, judged, size)


def apart_of(page: Page) -> Apart | None:
    """The text outside of links, for a page that is mostly links; else None. Rows end at a link and
    have no numbers: a row of prices, hours or found pages is not text. 400 links take 0.6 ms."""
    url = unquote(page.url).lower()
    own = _own_words(url)
    left, found = MAX_TEXT, list[list[str]]()
    for piece in outside_links(page):
        found.append(_words(piece[: max(0, left)], url, own))
        left -= len(piece)
    step = _step(sum(map(len, found)))
    rows, said = list[tuple[int, int]](), set[int]()
    for words in found:
        if len(words) < ROW:
            continue
        hashes = [_hashes[word] for word in words]
        said.update(one for one, word in zip(hashes, words, strict=True) if word.isalpha())
        for at, one in enumerate(hashes[: 1 - ROW]):
            if one % step == 0 and all(map(str.isalpha, row := words[at : at + ROW])):
                rows.append((one, crc32(" ".join(row).encode(*_UTF_8))))
    return Apart(rows, said) if len(rows) >= _LEAST else None


def _step(words: int) -> int:
    """The number N for a text of this length: 1 word in N begins a row that is looked at."""
    return 1 if words < _SHORT else 4 if words < _LONG else 16


def _own_words(url: str) -> set[str]:
    """Words that a page may repeat from its URL. A page with a number names its neighbours."""
    words = set(_WORD.findall(url))
    numbers = [int(word) for word in words if word.isdecimal() and len(word) <= _LONG_NUMBER]
    return words.union(*((f"{one - 1}", f"{one + 1}") for one in numbers))


def _words(text: str, url: str, own: Container[str]) -> list[str]:
    """The words that are counted."""
    text = text[:MAX_TEXT].lower()
    if len(text) < _LONG_TEXT and text.count("-") >= _DASHES:
        text = _GUID.sub(" ", text)
    return [
        word
        for word in _WORD.findall(text)
        if word not in own and (word.isalpha() or not (word in url or _HASH.match(word)))
    ]


class Bloom:
    """A set of numbers of 32 bits that only grows: Bloom filters, each four times as large as the
    one before it, until the largest ones are forgotten in turn. At most 180 KB."""

    def __init__(self, first: int = _SMALL_BYTES) -> None:
        self._parts: list[bytearray] = [bytearray(first)]
        self._last = 0  # numbers in the last part
        self.size = 0
        """The number of all added numbers."""

    def __len__(self) -> int:
        """Bytes."""
        return sum(map(len, self._parts))

    def __contains__(self, one: int) -> bool:
        return self._has(one)

    def add(self, one: int) -> None:
        if not self._has(one):
            self._put(one)
            self.size += 1

    def _has(self, one: int) -> bool:
        second = one * _SIZES >> 17
        for part in self._parts:
            mask = 8 * len(part) - 1
            bit = one & mask
            if part[bit >> 3] >> (bit & 7) & 1:
                bit = second & mask
                if part[bit >> 3] >> (bit & 7) & 1:
                    return True
        return False

    def _put(self, one: int) -> None:
        if self._last * _BITS >= 8 * len(self._parts[-1]):
            self._grow()
        part = self._parts[-1]
        mask = 8 * len(part) - 1
        for bit in (one & mask, one * _SIZES >> 17 & mask):
            part[bit >> 3] |= 1 << (bit & 7)
        self._last += 1

    def _grow(self) -> None:
        size = len(self._parts[-1])
        if size == _MAX_BYTES and len(self._parts) > 1 and len(self._parts[-2]) == size:
            self._parts.pop(-2)
        self._parts.append(bytearray(min(4 * size, _MAX_BYTES)))
        self._last = 0

    def pack(self) -> bytes:
        return msgspec.msgpack.encode(_Filters(self._last, self.size, self._parts))

    @classmethod
    def unpack(cls, data: bytes | None) -> Self:
        """Restore the state of a host; None if nothing is known of the host."""
        found = cls()
        if data is not None:
            kept = msgspec.msgpack.decode(data, type=_Filters)
            found._last, found.size, found._parts = kept.last, kept.size, kept.parts
        return found


class _Filters(msgspec.Struct, array_like=True):
    """The kept form of a Bloom. New fields go to the end, with a default."""

    last: int
    size: int
    parts: list[bytearray]


class Sketch(Bloom):
    """The rows that a host's pages have shown."""

    def __init__(self) -> None:
        super().__init__(_FIRST_BYTES)
        self.mark = 0
        """A row of the last page that was new; 0 if the page had none."""
        self._news: set[int] = set()
        """All rows of the last page that were new."""

    def share(self, page: Rows, *, of_any: bool = False) -> float:
        """The share of a page's rows that are new, also to pages several times as long with
        ``of_any``. They are remembered."""
        known = {one for one in page.rows if of_any and self._has(one)}
        new = [one for one in self._add(page.rows, page.size) if one not in known]
        self.mark = min((one for one in new if one in page.judged), default=0)
        self._news = set(new)
        if page.words and not self._add([page.words], _SMALLEST):
            return 0.0
        return sum(one in page.judged for one in new) / len(page.judged) if page.judged else 0.0

    def share_apart(self, apart: Apart, size: int, *, of_any: bool = False) -> float:
        """The share of new text outside of links, of the last judged page, which had this ``size``.
        It is the smaller of two shares: of all rows, and of the rows in longer pages' samples. A
        part of a longer page is therefore not new. 0 if the words are known."""
        every = {row for _, row in apart.rows}
        known = {row for row in every - self._news if of_any and self._has(row)}
        news = self._news & every
        news |= {*self._add(every - self._news, size)} - known
        words = [word for word in apart.words if not self._has(word)]
        for word in words:
            self._put(word)
        self.size += len(words)
        if len(words) < _NEW_WORDS:
            return 0.0
        self.mark = self.mark or min(news, default=0)
        samples = ([row for first, row in apart.rows if first % one == 0] for one in (1, 4, 16))
        return min(sum(row in news for row in rows) / len(rows) for rows in samples if rows)

    def times_said(self, page: Rows, least: float, most: int) -> int:
        """The number of judged pages with the same text as this page, except for the share
        ``least``; at most ``most``. From now on the page counts as one of them."""
        for times in range(1, most + 1):
            of_so_many = {one ^ _TIMES * times & _32_BITS for one in page.judged}
            more = [one for one in of_so_many if not self._has(one)]
            if len(more) >= max(1, least * len(of_so_many)):
                for one in more:
                    self._put(one)
                self.size += len(more)
                return times - 1
        return most

    def _add(self, hashes: Iterable[int], size: int) -> list[int]:
        """Returns the hashes that no page has that is smaller, equally large, or about twice as
        large."""
        sizes = [_SIZES * at for at in (size, size + 1, *range(size - 1, _SMALLEST - 1, -1))]
        new = []
        for one in hashes:
            is_known = self._has(one)
            if is_known and any(self._has(one ^ at & _32_BITS) for at in sizes):
                continue
            new.append(one)
            self._put(one ^ sizes[0] & _32_BITS)
            if not is_known:
                self._put(one)
        self.size += len(new)
        return new
