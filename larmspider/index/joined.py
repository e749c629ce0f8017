"""Words that are written in several parts, as one term: a code is found however it is separated.

    joined_words("Teil 6178-4B40-40B2, HIST_IGNORE_DUPS und en-tete")
    # ["61784b4040b2", "histignoredups", "entete"]
    joined_words("Vor- und Nachteil")      # ["vorteil", ...]: "Vor" with each ending of "Nachteil"
    joined_word("AB-12/3")                 # "ab123"

The index has these terms beside the words of the parts, in the field ``signs``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain

MAX_JOINED = 1_000
"""Different terms of one text."""
_LEAST, MOST = 3, 40
"""Characters of a term."""
_MOST_PARTS = 8
_LEAST_SPACED = 8
"""Characters of a code with spaces: 6178 4B40 40B2, and not "5 10"."""
_KNOWN = 100_000  # words whose terms are remembered

_HYPHENS = r"\-\u2010\u2011"
_RUN = re.compile(rf"[^\W_]+(?:[{_HYPHENS}_./:,][^\W_]+)+")
_SEPARATOR = re.compile(rf"[{_HYPHENS}_./:,]")
_DIGIT = re.compile("[0-9]")
_MARK = b"0"
_CLASSES = bytes(ord("0") if chr(code) in "0123456789-_" else code for code in range(256))
"""A digit, hyphen or underscore is b"0": to look for one byte takes a tenth of the time of an
expression."""
_OTHER_SPACES = "\n\t\f\r"
_LONGEST_WORD = 200
_THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_PART_OF_CODE = re.compile(
    rf"[(\[\"']?([A-Za-z]{{0,4}}\d[A-Za-z\d{_HYPHENS}/.]{{0,11}}?)[)\]\"',;:.?!]*"
)
_LEFT_OUT = re.compile(r"- (?:und|oder|bzw\.|sowie|en|och|og) (-?)(?=([^\W\d_]{5,}))")
_WORD_BEFORE = re.compile(r"[^\W\d_]{2,30}\Z")
"""Vor- und Nachteil, in- en uitgang: the first word lacks its end."""
_LEAST_END, _LEAST_BEGINNING = 4, 2  # letters of the end, and of what stands before it


def joined_word(text: str) -> str:
    """The term of one word or code in several parts, in lower case; "" for another text."""
    if "://" in text or "@" in text:
        return ""
    parts = _SEPARATOR.split(text)
    if not 2 <= len(parts) <= _MOST_PARTS or not all(map(str.isalnum, parts)):
        return ""
    joined = "".join(parts)
    if not _LEAST <= len(joined) <= MOST:
        return ""
    if joined.isalpha():  # the hyphens and underscores of names
        is_name = not any(mark in text for mark in "./:,")
        return joined.lower() if is_name and len(joined) > _LEAST else ""
    if joined.isdigit() and len(parts) == 2 and any(mark in text for mark in ".:,"):
        return joined if _THOUSANDS.fullmatch(text) else ""  # 3.11 and 14:30 are two numbers
    return joined.lower()


def joined_parts(words: Sequence[str]) -> str:
    """The term of a code whose parts have spaces between them; "" for other words."""
    if not 2 <= len(words) <= _MOST_PARTS:
        return ""
    found = [_PART_OF_CODE.fullmatch(word) for word in words]
    joined = "".join([_SEPARATOR.sub("", one[1]) for one in found if one])
    return joined.lower() if all(found) and _LEAST_SPACED <= len(joined) <= MOST else ""


def joined_words(text: str) -> list[str]:
    """The terms of a normalized text, each once; the first `MAX_JOINED`."""
    if not text.isascii():
        text = text.replace("\u2010", "-")
    if any(space in text for space in _OTHER_SPACES):
        text = " ".join(text.split())
    plain = text.encode("latin-1", "replace").translate(_CLASSES) + b" "
    find, rfind, known_of = plain.find, plain.rfind, _known.get
    found: tuple[list[str], ...] = ([], [], [])  # by mark
    run, last, hangs = list[str](), -2, False
    at = find(_MARK)
    while at >= 0:  # this loop takes most of the time
        start, end = rfind(b" ", 0, at) + 1, find(b" ", at)
        word = text[start:end]
        mark, is_part, terms = known_of(word) or _learned(word)
        if terms:
            found[mark].extend(terms)
        if is_part:
            if start != last + 1:
                if len(run) > 1:
                    found[0].append(joined_parts(run))
                run = []
            run.append(word)
            last = end
        hangs = hangs or (word[-1] == "-" and end - start > 1)
        at = find(_MARK, end)
    if len(run) > 1:
        found[0].append(joined_parts(run))
    ends = completed(text) if hangs else ()
    terms_of_all = dict.fromkeys(chain(*found, ends))
    terms_of_all.pop("", None)
    return list(terms_of_all)[:MAX_JOINED]


_known: dict[str, tuple[int, bool, tuple[str, ...]]] = {}
"""Words with digits (0), else hyphens (1), else underscores (2): this number, whether the word may
be part of a code, and its terms."""


def _learned(word: str) -> tuple[int, bool, tuple[str, ...]]:
    if len(_known) >= _KNOWN:
        _known.clear()
    terms = () if _is_address(word) else map(joined_word, _RUN.findall(word))
    mark = 0 if _DIGIT.search(word) else 1 if "-" in word else 2
    is_part = not mark and _PART_OF_CODE.fullmatch(word) is not None
    known = _known[word] = mark, is_part, tuple(filter(None, terms))
    return known


def _is_address(word: str) -> bool:
    return "://" in word or "@" in word or len(word) > _LONGEST_WORD


def completed(text: str) -> Iterator[str]:
    """The first words of pairs whose end is in the second word only."""
    for found in _LEFT_OUT.finditer(text):
        at = found.start()
        before = _WORD_BEFORE.search(text, max(0, at - MOST), at)
        if before is None:
            continue
        first, second = before[0].lower(), found[2].lower()
        if found[1]:  # Warenein- und -ausgang: the second word lacks its beginning
            starts = range(_LEAST, min(len(first) - 1, MOST - len(second) + 1))
            yield from [first[:end] + second for end in starts]
            continue
        for start in range(_LEAST_BEGINNING, len(second) - _LEAST_END + 1):
            if len(first) + len(second) - start <= MOST:
                yield first + second[start:]
