"""Texts of DOS and of old Macs, which detectors take for Windows-1252: cp850, cp437, macintosh.

    instead_of("windows-1252", "Gr\\u201d\\u00e1e", "Größe".encode("cp850"))    # "cp850"

In the wrong charset a text has signs within words (``Gr”áe``), signs that open or end no word
(``Caf‚``), capitals after small letters (``fŸr``) and controls. It is read in another charset if
one in 8 of its characters beyond ASCII stands so, and in the other charset next to none does.

None of 12,600 texts of 10 to 150 messages in 41 languages and their Windows charsets changes.
docs/internals/documents.md has the share of texts of DOS and Macs that are read right.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

CHARSETS = {"cp850": "cp850", "cp437": "cp437", "macintosh": "mac_roman"}
"""Names, and Python's for the codecs."""
_WESTERN = frozenset("äöüßÄÖÜéèêàâçñáíóúøæôîëïûœùÉÅØÆåãõÑÈÇÀÂÊÎÔÛÁÍÓÚÃÕìòýÿðþÝÞÐ")
_BEYOND_ASCII = re.compile(r"(.?)([^\x00-\x7f]+)(.?)", re.DOTALL)
_WITHIN_WORDS = frozenset("’\xad·\xa0–—…°")
_NOT_BEHIND_LETTERS = frozenset("„‚ˆ‡‰†•¤¢£¥¦")
_COMMON_SIGNS = frozenset("’‘“”„«»§°€©®™·–—…\xa0\xad")
_ALONE = frozenset("ŠŽ")
"""Capitals of Windows-1252 that are "è" in cp850 and "ä" on a Mac."""
_LATIN_ENDS = "\u024f"
_FEW_MISFITS, _NO_MISFITS = 8, 20
"""Misfits of the guess are 1 in 8 characters or more, of the other charset 1 in 20 or fewer."""
_MISFIT_COSTS = 4  # letters that the languages of Western Europe lack


class _Look(NamedTuple):
    """Counts of the characters beyond ASCII."""

    all: int
    misfits: int
    in_words: int
    strange: int

    @property
    def cost(self) -> int:
        return _MISFIT_COSTS * self.misfits + self.strange


def instead_of(guessed: str, text: str, data: bytes) -> str:
    """The charset of ``data``, which is ``text`` in the charset ``guessed``."""
    look = _look(text)
    if not look.misfits or look.misfits * _FEW_MISFITS < look.all:
        return guessed
    looks = {name: _look(codecs.decode(data, codec, "replace")) for name, codec in CHARSETS.items()}
    name = min(looks, key=lambda one: looks[one].cost)
    other = looks[name]
    is_right = (
        other.in_words > 0
        and other.misfits * _NO_MISFITS <= other.all
        and 2 * other.cost < look.cost
        and 2 * other.in_words >= other.all - other.strange
    )
    return name if is_right else guessed


def _look(text: str) -> _Look:
    size = misfits = in_words = strange = 0
    for before, run, behind in _BEYOND_ASCII.findall(text):
        around = f"{before or ' '}{run}{behind or ' '}"
        for at, char in enumerate(run, 1):
            if "\u2500" <= char < "\u25a0":
                continue  # lines of a table
            size += 1
            last, following = around[at - 1], around[at + 1]
            if char.isalpha():
                strange += char not in _WESTERN
                if _is_misfit(char, last, following):
                    misfits += 1
                else:
                    in_words += last.isalpha() or following.isalpha()
            elif _is_odd_sign(char, last, following):
                misfits += 1
            else:
                strange += char not in _COMMON_SIGNS
    return _Look(size, misfits, in_words, strange)


def _is_misfit(char: str, last: str, following: str) -> bool:
    """Whether a letter stands where no text has it."""
    if char.isupper() and (last.islower() or last == char == following):
        return True  # three are a line in a table of DOS
    if char.islower() and last.isupper() and following.isupper():
        return True
    if char in _ALONE and not last.isalpha() and not following.isalpha():
        return True
    return char > _LATIN_ENDS and last.isascii() and last.isalpha()


def _is_odd_sign(char: str, last: str, following: str) -> bool:
    if "\x7f" < char < "\xa0" or char == "\ufffd":
        return True
    if not last.isalpha():
        return False
    return char in _NOT_BEHIND_LETTERS or (following.islower() and char not in _WITHIN_WORDS)
