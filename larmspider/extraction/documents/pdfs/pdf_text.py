"""The text of a page of a PDF: PDFium's, with corrections where PDFium loses words.

    text_of(text_page)        # "word 3", for a raised 3 after "word"; turned words in one piece

- Numbers of notes stand apart (note_numbers.py) if their baseline is above the word's baseline.
- PDFium puts single letters of turned text (sideways headings of a table, stamps) on lines of their
  own, or joins lines. Words and lines are found by the gaps there.
- Cells of a spreadsheet that are cut off at their border stand apart.
- Words of groff stand apart; PDFium joins them if the gap between them is small.
- Letters that are spaced out make words again.
- An accent that TeX has drawn over a letter is part of the letter.
- Arabic by Chromium has the letters of each word from left to right; they are turned round.

Looking at a letter takes 0.5 us. Only numbers after a word and the first letter of each line are
looked at, and all letters of a page with turned text.
"""

from __future__ import annotations

import ctypes
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cached_property
from statistics import median_low
from typing import Any

import pypdfium2.raw as pdfium_c

from larmspider.extraction.pages.note_numbers import LEAST_LETTERS, is_note_behind

HYPHENS = ("\ufffe", "\x02")
"""PDFium's marks for a hyphen at the end of a line, where a word goes on."""
_END, _BEGINNING = re.compile(r"[0-9ivx](?!\w)"), re.compile(r"[0-9](?=[^\W\d_]{3})")
"""Numbers of notes begin and end so; endnotes mostly have small Roman numbers."""
_MAX_DIGITS = 12
_RAISED = 0.1
"""A raised number is higher by 0.1 of the font's size; most are higher by a third."""
_LEAST_RAISED = 0.3  # points: a font of size 1 may be scaled
_SPACED = re.compile(r"(?<!\w)[^\W\d_](?: [^\W\d_]){3,}(?!\w)")
_WIDER, _WIDEST_SPACED = 1.7, 0.5
"""The gap between spaced words is 1.7 times the gap between their letters, which is below half of a
letter's height."""
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]{2,}")
_SHEETS = re.compile(r"(?i)\b(?:calc|excel)\b")
"""Programs for spreadsheets."""
_TIGHT, _WORD = re.compile(r"(?i)\bg?roff\b"), re.compile(r"[^\W\d_]{8,}")
"""PDFium takes some gaps of groff, which writes no spaces, for none. Looked at are words of this
length, which may be two."""
_SPACE = 0.2  # least gap between words, in font sizes; gaps between letters have at most 0.15
_LETTERS = re.compile(r"(?<=[^\W\u2e80-\U0010ffff])[^\W\u2e80-\U0010ffff]")
"""Letters after a letter, except Chinese and similar letters, which are drawn one by one."""
_ACCENTS = dict(
    zip(
        "´`¨ˆ˜ˇ˚˘˝¯˙",
        "\u0301\u0300\u0308\u0302\u0303\u030c\u030a\u0306\u030b\u0304\u0307",
        strict=True,
    )
)
_ACCENTED = re.compile(f"[{''.join(_ACCENTS)}]")
_MAX_LINES = 500
"""Lines of a page whose first letter is looked at."""
_LEAST_ANGLE = 0.02  # radians
_GAP, _WIDEST = 0.15, 3
"""A gap over 0.15 of a letter's height is a space; a gap over 3 heights begins another line."""


def text_of(text_page: Any, creator: str = "") -> str:
    """The text, without the hyphens that end lines. ``creator``: the program that wrote it."""
    text: str = text_page.get_text_bounded() if text_page.count_chars() > 0 else ""
    if changes := _changes(text_page, text, creator):
        pieces, done = list[str](), 0
        for at in sorted(changes):
            end, new = changes[at]
            if at >= done:
                pieces += text[done:at], new
                done = end
        text = "".join(pieces) + text[done:]
    for mark in HYPHENS:
        text = text.replace(mark, "")
    return text


def _changes(text_page: Any, text: str, creator: str) -> dict[int, tuple[int, str]]:
    """The replacements in the text: start -> (end, new)."""
    letters = _Letters(text_page, text)
    changes = {at: (at, " ") for at in _notes(letters, text)}
    if _SHEETS.search(creator):
        changes |= {at: (at, " ") for at in _cells(letters, text)}
    elif _TIGHT.search(creator):
        changes |= {at: (at, " ") for at in _lost_spaces(letters, text)}
    if _begins_turned(letters, text):
        changes |= _joined(letters, text)
    for spaced in _SPACED.finditer(text):
        changes |= _closed_up(letters, *spaced.span())
    changes |= _accented(letters, text)
    if _RIGHT_TO_LEFT.search(text):
        changes |= _turned_round(letters, text)
    return changes


def _accented(letters: _Letters, text: str) -> dict[int, tuple[int, str]]:
    """Accents that are drawn over the letter beside them, and this letter, as one letter."""
    changes: dict[int, tuple[int, str]] = {}
    if not _ACCENTED.search(text):
        return {}
    for found in _ACCENTED.finditer(text, 0, letters.count):
        at = found.start()
        left, right, *_ = letters.box(at)
        for other in (at + 1, at - 1):
            if not 0 <= other < letters.count or not text[other].isalpha():
                continue
            first, last, *_ = letters.box(other)
            if first <= (left + right) / 2 <= last:
                whole = text[other].replace("ı", "i") + _ACCENTS[text[at]]
                changes[min(at, other)] = max(at, other) + 1, unicodedata.normalize("NFC", whole)
                break
    return changes


class _Letters:
    """Places of the letters of a page, by their index in its text."""

    def __init__(self, text_page: Any, text: str) -> None:
        self._page, self._text = text_page, text
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._box = [ctypes.c_double() for _ in range(4)]

    @cached_property
    def _numbers(self) -> Sequence[int]:
        """PDFium's number of each letter. PDFium's text has line ends, and letters beside the page,
        which are missing in the text within the page."""
        count = self._page.count_chars()
        if count == len(self._text):
            return range(count)
        numbers, every = list[int](), self._page.get_text_range().replace(*HYPHENS)
        if count == len(every):
            at = 0
            for char in self._text.replace(*HYPHENS):
                at = every.find(char, at)
                if at < 0:
                    break
                numbers.append(at)
                at += 1
        return numbers

    @property
    def count(self) -> int:
        """Letters whose places are known."""
        return len(self._numbers)

    def origin(self, at: int) -> tuple[float, float]:
        pdfium_c.FPDFText_GetCharOrigin(self._page, self._numbers[at], self._x, self._y)
        return self._x.value, self._y.value

    def box(self, at: int) -> list[float]:
        """Left, right, bottom, top."""
        pdfium_c.FPDFText_GetCharBox(self._page, self._numbers[at], *self._box)
        return [side.value for side in self._box]

    def size(self, at: int) -> float:
        """The size of the letter's font, in points."""
        return float(pdfium_c.FPDFText_GetFontSize(self._page, self._numbers[at]))

    def angle(self, at: int) -> float:
        """Clockwise, in radians."""
        return float(pdfium_c.FPDFText_GetCharAngle(self._page, self._numbers[at]))

    def is_turned(self, at: int) -> bool:
        numbers = self._numbers
        if at >= len(numbers):
            return False
        angle = pdfium_c.FPDFText_GetCharAngle(self._page, numbers[at])
        return bool(_LEAST_ANGLE < angle < math.tau - _LEAST_ANGLE)

    def width(self, at: int) -> float | None:
        """The width of a letter before a line end that PDFium has put there."""
        number = self._numbers[at]
        if self._text[at + 1 : at + 2] != "\r":
            return None
        pdfium_c.FPDFText_GetCharOrigin(self._page, number + 1, self._x, self._y)
        behind = self._x.value
        return behind - self.origin(at)[0]

    def is_made(self, at: int) -> bool:
        """Whether a space is PDFium's, not the document's."""
        numbers = self._numbers
        return at < len(numbers) and pdfium_c.FPDFText_IsGenerated(self._page, numbers[at]) == 1

    def is_left_of(self, at: int, other: int) -> bool:
        """Whether one letter stands left of another one, on one line."""
        if max(at, other) >= len(self._numbers) or self.is_turned(at):
            return False
        (x, y), (other_x, other_y) = self.origin(at), self.origin(other)
        return x < other_x and y == other_y

    def is_of_another(self, at: int, other: int) -> bool:
        """Whether a letter is drawn apart from another letter, in the same font."""
        if max(at, other) >= len(self._numbers):
            return False
        number = self._numbers[at]
        own = pdfium_c.FPDFText_GetTextObject(self._page, number)
        others = pdfium_c.FPDFText_GetTextObject(self._page, self._numbers[other])
        return _address(own) != _address(others) and _font(own) == _font(others)

    def is_raised(self, at: int, above: int) -> bool:
        """Whether the letter stands higher than the one ``above`` which it may be raised."""
        if max(at, above) >= len(self._numbers):
            return False
        least = _RAISED * pdfium_c.FPDFText_GetFontSize(self._page, self._numbers[above])
        higher = self.origin(at)[1] - self.origin(above)[1]
        return higher > max(least, _LEAST_RAISED) and not self.is_turned(above)


def _address(pointer: Any) -> int:
    return ctypes.cast(pointer, ctypes.c_void_p).value or 0


def _font(drawn: Any) -> int:
    return _address(pdfium_c.FPDFTextObj_GetFont(drawn)) if drawn else 0


def _notes(letters: _Letters, text: str) -> Iterator[int]:
    """The places where a space belongs between a word and the number of a note."""
    for last in _END.finditer(text):
        end = last.end()
        start = end - 1
        is_digit = text[start].isdigit()
        while start and end - start < _MAX_DIGITS and text[start - 1].isdigit() == is_digit:
            if not is_digit and text[start - 1] not in "ivx":
                break
            start -= 1
        if is_note_behind(text[max(0, start - LEAST_LETTERS) : start]):
            if letters.is_raised(start, start - 1):
                yield start
        elif is_digit and end - start > 1 and letters.is_raised(end - 1, start):
            at = end - 1
            while letters.is_raised(at - 1, start):
                at -= 1
            yield at
    for last in _BEGINNING.finditer(text):
        start = end = last.end()
        while start and text[start - 1].isdigit():
            start -= 1
        is_behind = is_note_behind(text[max(0, start - LEAST_LETTERS) : start])
        if (is_behind or not text[start - 1 : start].isalnum()) and letters.is_raised(end - 1, end):
            yield end
            if is_behind:
                yield start


def _cells(letters: _Letters, text: str) -> Iterator[int]:
    """The places where a cell is cut off and the next cell begins without a gap."""
    return (
        at
        for at in map(re.Match.start, _LETTERS.finditer(text))
        if letters.is_of_another(at, at - 1)
    )


def _lost_spaces(letters: _Letters, text: str) -> Iterator[int]:
    """The places where PDFium has joined two words that are drawn apart."""
    for word in _WORD.finditer(text):
        if word.end() > letters.count or letters.is_turned(word.start()):
            continue
        least = _SPACE * letters.size(word.start())
        right = math.inf
        for at in range(*word.span()):
            left, next_right, *_ = letters.box(at)
            if left - right > least:
                yield at
            right = next_right


def _begins_turned(letters: _Letters, text: str) -> bool:
    """Whether a line begins with a turned letter."""
    at = 0
    for _ in range(_MAX_LINES):
        if letters.is_turned(at):
            return True
        at = text.find("\n", at) + 1
        if not at:
            break
    return False


def _joined(letters: _Letters, text: str) -> dict[int, tuple[int, str]]:
    """Replacements for PDFium's line ends between turned letters."""
    changes: dict[int, tuple[int, str]] = {}
    last, angle = -1, 0.0
    for at, char in enumerate(text):
        if char.isspace():
            continue
        turned = letters.angle(at) if letters.is_turned(at) else 0.0
        if turned and abs(turned - angle) < _LEAST_ANGLE:
            between = _between(letters, last, at)
            if between or at - last > 1:
                changes[last + 1] = (at, between)
        last, angle = at, turned
    return changes


def _closed_up(letters: _Letters, start: int, end: int) -> dict[int, tuple[int, str]]:
    """Words of letters that are spaced out ("S p e r r s a t z"), without the spaces that PDFium
    has put between their letters."""
    made = [at for at in range(start + 1, end, 2) if letters.is_made(at)]
    gaps = {at: letters.box(at + 1)[0] - letters.box(at - 1)[1] for at in made}
    if not gaps:
        return {}
    usual = median_low(gaps.values())
    heights = [top - bottom for _, _, bottom, top in map(letters.box, range(start, end, 2))]
    if not 0 < usual < _WIDEST_SPACED * max(heights):
        return {}
    return {at: (at + 1, "") for at, gap in gaps.items() if gap < _WIDER * usual}


def _turned_round(letters: _Letters, text: str) -> dict[int, tuple[int, str]]:
    """Words of Arabic and the like whose letters PDFium has from left to right."""
    return {
        word.start(): (word.end(), word[0][::-1])
        for word in _RIGHT_TO_LEFT.finditer(text)
        if letters.is_left_of(word.start(), word.end() - 1)
    }


def _between(letters: _Letters, one: int, other: int) -> str:
    """Nothing, a space or a line end, by where two letters of one angle stand."""
    angle = letters.angle(one)
    along_x, along_y = math.cos(angle), -math.sin(angle)
    left, right, bottom, top = letters.box(one)
    height = max(right - left, top - bottom)
    (x, y), (next_x, next_y) = letters.origin(one), letters.origin(other)
    across = (next_y - y) * along_x - (next_x - x) * along_y
    along = (next_x - x) * along_x + (next_y - y) * along_y
    width = letters.width(one)
    gap = along - (height if width is None else width)
    if abs(across) > height / 2 or along < -height or gap > _WIDEST * height:
        return "\n"
    if other - one == 1 or not along:  # a ligature has the place of its first letter
        return ""
    return " " if width is None or gap > _GAP * height else ""
