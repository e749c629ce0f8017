"""One spelling for each word. Indexed text and queries are normalized; stored and shown text stays
as it is.

An accent may be a letter of its own (NFD), a ligature one character, and a soft hyphen or a
zero-width space may stand anywhere inside a word; none of that is seen on a page::

    normalized("cafe\u0301 co\u00adoperate \ufb01le 5\u338f")  # "caf\u00e9 cooperate file 5 kg "
    normalized("\u0130stanbul")                               # "Istanbul"

The normal form is NFKC without invisible characters (U+00AD, U+200B to U+200D, U+FEFF). Signs of
letters or digits stay apart from the word before them: the sign for kg and the fraction one half
are words of their own, a trade mark is not a word. Letters that people write either way are folded,
too: the Turkish capital I with a dot, Russian io as ie, alef with hamza, and the kaf, yeh and heh
of Persian and Urdu as in Arabic (Lucene's PersianNormalizationFilter). The vowel marks and the
stretching of Arabic are left out. The digits of all scripts are 0 to 9.
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
    """Signs that NFKC turns into letters or digits, and their indexed forms."""
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
"""The frequent characters that are not normal: ellipses, full-width punctuation."""
_SIGN = re.compile(f"[{''.join(_SIGNS)}]")
_SECOND = (
    *(range(0x1161, 0x1176), range(0x11A8, 0x11C3), range(0x903, 0xE00), range(0x102B, 0x1036)),
    range(0x1B35, 0x1B36),
)
"""Letters of Hangul, and vowel signs, that join the letter before them though they are not
marks."""


@cache
def _stretches() -> re.Pattern[str]:
    """An expression for characters that NFKC may change, or join to the character before. It limits
    the work: to normalize a whole page for one ellipsis would take 6 ms. Computed once, in 60
    ms."""
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
    # kaf, yeh and heh of Persian and Urdu
    | dict.fromkeys("\u06a9\u06aa", "\u0643")
    | dict.fromkeys("\u06cc\u06d2", "\u064a")
    | dict.fromkeys("\u06c0\u06c1", "\u0647")
    # the sign of an abbreviation in Hebrew
    | {"\u05f4": ""}
)
"""Letters written either way."""
_ZEROS = (
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6,
    0xD66, 0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0,
    0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0,
    0xAA50, 0xABF0, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0,
    0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0,
    0x16B50, 0x1E140, 0x1E2F0, 0x1E950,
)  # fmt: skip
DIGITS = MappingProxyType({chr(zero + digit): str(digit) for zero in _ZEROS for digit in range(10)})
"""The digits of all other scripts, unless NFKC changes them."""
_DIGITS_BY_BYTES: dict[bytes, list[str]] = {}
"""The same by the first byte of UTF-8, or two of four: an expression takes 1 ms for 9,000
letters."""
for _char in DIGITS:
    _first = _char.encode()[: 2 if len(_char.encode()) == 4 else 1]
    _DIGITS_BY_BYTES.setdefault(_first, []).append(_char)


_GERSHAYIM = re.compile('"(?<=[\u05d0-\u05ea]")(?=[\u05d0-\u05ea])')
"""The sign of an abbreviation in Hebrew, as typed."""


def _plain(text: str) -> str:
    return normalize("NFKC", _SIGN.sub(lambda sign: _SIGNS[sign[0]], text))


def normalized(text: str) -> str:
    """The normal form of ``text``, in which words are compared; ``text`` itself if it has that
    form."""
    if text.isascii():
        return text
    text = _composed(text)
    if '"' in text:
        text = _GERSHAYIM.sub("", text)
    for char, plain in FOLDED.items():
        if char in text:
            text = text.replace(char, plain)
    coded = text.encode("utf-8", "surrogatepass")
    for first, chars in _DIGITS_BY_BYTES.items():
        if first[:1] in coded and first in coded:
            for char in chars:
                if char in text:
                    text = text.replace(char, DIGITS[char])
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
        start = max(done, found.start() - 1)  # include the letter that an accent belongs to
        pieces += text[done:start], _plain(text[start : found.end()])
        done = found.end()
    pieces.append(text[done:])
    return "".join(pieces)


def offset_in(text: str, offset: int) -> int:
    """The offset in ``text`` whose place in the normal form is ``offset``."""
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
        """The whole characters of the text whose normal form covers ``start`` to ``end``."""
        last = self._up_to(end)
        return self._up_to(start), last + (self._size(last) < end)

    def _up_to(self, offset: int) -> int:
        return bisect_right(range(len(self._text) + 1), offset, key=self._size) - 1

    def _size(self, end: int) -> int:
        return len(normalized(self._text[:end]))
