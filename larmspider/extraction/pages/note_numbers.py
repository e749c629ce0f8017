"""Raised numbers of notes after a word: ``word<sup>3</sup>`` is "word 3", not "word3".

    is_note_behind("word")              # True
    is_note_behind("x")                 # False: "x2", a power

A raised number is a note's if it follows three letters or more, or a digit ("1998", note 3). Behind
one or two letters it is a power: cm2, mc2. A link to a place of the page always means a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LEAST_LETTERS = 3
"""Letters of a word that has notes and no powers."""
LONGEST = 5
"""Characters of a number, as "12,13"."""
_NOTE = re.compile(r"[0-9]{1,3}|[ivx]{1,3}|\*{1,3}")


def is_note_behind(before: str) -> bool:
    """Whether a raised number after the text ``before`` names a note."""
    last = before[-LEAST_LETTERS:]
    return before[-1:].isdigit() or (len(last) == LEAST_LETTERS and last.isalpha())


def is_note_before(behind: str) -> bool:
    """Whether a raised number before the text ``behind`` names a note. It does not in 14C."""
    first = behind[:LEAST_LETTERS]
    return len(first) == LEAST_LETTERS and first.isalpha()


def is_note_link(attributes: Mapping[str, str | None], text: str) -> bool:
    """Whether a link with this text leads to a note, or back from it."""
    return _NOTE.fullmatch(text) is not None and leads_to_place(attributes)


def leads_to_place(attributes: Mapping[str, str | None]) -> bool:
    """Whether a link leads to a place of a page, or says that it is one to a note (EPUB 3 SSV,
    DPUB-ARIA 1.0)."""
    said = (attributes.get(name) or "" for name in ("epub:type", "role"))
    return "#" in (attributes.get("href") or "") or any("noteref" in one for one in said)
