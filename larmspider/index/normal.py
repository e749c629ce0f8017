"""One spelling for each word: what is indexed and what is looked for is normalized, never what is
stored and shown.

An accent may be a letter of its own (NFD), a ligature one character, and a soft hyphen or a
zero-width space may stand anywhere inside a word; none of that is seen on a page::

    normalized("cafe\u0301 co\u00adoperate \ufb01le 5\u338f")  # "caf\u00e9 cooperate file 5 kg "
    normalized("\u0130stanbul")                               # "Istanbul"

That is NFKC without characters that are not shown (U+00AD, U+200B to U+200D, U+FEFF), but for signs
of letters or digits, which stay apart from the word before them: the sign for kg and the fraction
one half are words of their own, a trade mark is none. Folded too are letters that people write
either way: the Turkish capital I with a dot, Russian io as ie, alef with hamza; and the vowel marks
and the stretching of Arabic are left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from types import MappingProxyType
from unicodedata import category, combining, is_normalized, normalize

IGNORED = "\u00ad\u200b\u200c\u200d\ufeff"
"""Soft hyphen, zero-width space, non-joiner and joiner, byte order mark."""
_FRACTION_SLASH = "\u2044"
_NO_WORDS = frozenset("\u2120\u2122\U0001f16a\U0001f16b\U0001f16c")  # service and trade marks
_SIGN_BLOCKS = (
    *(range(0xBC, 0xBF), range(0x2100, 0x2190), range(0x2460, 0x2500)),
    *(range(0x3200, 0x3400), range(0x1F100, 0x1F300)),
)
_BLOCK = 200  # characters normalized together to find a place


def _signs() -> dict[str, str]:
    """Signs that NFKC makes letters or digits of, and what is indexed in their place."""
    found = {}
    for char in (chr(code) for block in _SIGN_BLOCKS for code in block):
        plain = normalize("NFKC", char)
        is_sign = category(char)[0] == "S" or _FRACTION_SLASH in plain
        if is_sign and plain != char and any(map(str.isalnum, plain)):
            found[char] = " " if char in _NO_WORDS else f" {plain} "
    return found


_SIGNS = _signs()
_COMMON = {"\u2026": "...", "\xa0": " ", "\u2122": " "} | {
    char: plain
    for char in map(chr, (0x3000, *range(0xFF01, 0xFF5F)))
    if not (plain := normalize("NFKC", char)).isalnum()
}
"""What most pages hold that are not normal: ellipses, full-width punctuation."""
_SIGN = re.compile(f"[{''.join(_SIGNS)}]")
_SECOND = (
    *(range(0x1161, 0x1176), range(0x11A8, 0x11C3), range(0x903, 0xE00), range(0x102B, 0x1036)),
    range(0x1B35, 0x1B36),
)
"""Letters of Hangul, and vowel signs, that join the letter before them though they are no marks."""


@cache
def _stretches() -> re.Pattern[str]:
    """Characters that NFKC may change or join to the one before. All of a page takes 6 ms to
    normalize, for the ellipsis that it has. Found once, in 60 ms."""
    changed = [
        chr(code)
        for code in (*range(0x80, 0xD800), *range(0xE000, 0x10000))
        if combining(char := chr(code))
        or not is_normalized("NFKC", char)
        or (category(char)[0] in "ML" and any(code in block for block in _SECOND))
    ]
    return re.compile(f"[{''.join(changed)}\U00010000-\U0010ffff]+")


FOLDED = MappingProxyType(
    {"\u0130": "I", "\u0451": "\u0435", "\u0401": "\u0415", "\u0640": ""}
    | dict.fromkeys("\u0622\u0623\u0625\u0671", "\u0627")
    | dict.fromkeys(map(chr, (*range(0x64B, 0x653), 0x670)), "")
)
"""Letters written either way."""


def _plain(text: str) -> str:
    return normalize("NFKC", _SIGN.sub(lambda sign: _SIGNS[sign[0]], text))


def normalized(text: str) -> str:
    """``text`` as words are compared; ``text`` itself where it is so already."""
    if text.isascii():
        return text
    text = _composed(text)
    for char, plain in FOLDED.items():
        if char in text:
            text = text.replace(char, plain)
    return text


def _composed(text: str) -> str:
    for char in IGNORED:
        if char in text:
            text = text.replace(char, "")
    if is_normalized("NFKC", text):
        return text
    for char, plain in _COMMON.items():
        if char in text:
            text = text.replace(char, plain)
    if is_normalized("NFKC", text):
        return text
    pieces: list[str] = []
    done = 0
    for found in _stretches().finditer(text):
        start = max(done, found.start() - 1)  # with the letter that an accent belongs to
        pieces += text[done:start], _plain(text[start : found.end()])
        done = found.end()
    pieces.append(text[done:])
    return "".join(pieces)


def offset_in(text: str, offset: int) -> int:
    """The offset in ``text`` of what has this ``offset`` in its normal form."""
    start = done = 0
    while start < len(text):
        end = start + _BLOCK
        if end < len(text):  # no accent is parted from its letter
            end = text.rfind(" ", start, end) + 1 or end
        size = len(normalized(text[start:end]))
        if done + size > offset:
            return start + Offsets(text[start:end]).span(offset - done, offset - done)[0]
        start, done = end, done + size
    return len(text)


class Offsets:
    """`offset_in` for many offsets in a short text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def span(self, start: int, end: int) -> tuple[int, int]:
        """What makes the normal form from ``start`` to ``end``, whole characters of the text."""
        last = self._up_to(end)
        return self._up_to(start), last + (self._size(last) < end)

    def _up_to(self, offset: int) -> int:
        return bisect_right(range(len(self._text) + 1), offset, key=self._size) - 1

    def _size(self, end: int) -> int:
        return len(normalized(self._text[:end]))
