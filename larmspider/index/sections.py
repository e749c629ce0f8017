"""Sections of a long page, as the index stores them: where they begin in the main text, the anchor
that a link uses, and the heading (page_builder.py). For all pages, this also knows where
headings part the text, which otherwise runs on as if they were part of a sentence::

    text = "Sirens A siren chops a stream of air."
    breaks = breaks_of(text, [(0, "", "Sirens")])
    parted(text, breaks)   # "Sirens\\nA siren chops a stream of air."
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

LONG_TEXT = 1_500
"""Characters of a text whose sections are kept."""
_WHOLE_HEADING = 118
"""Characters of a heading that has not been cut off."""
_END = 1 << 62
"""A place after any text."""


def kept_sections(
    text: str, spans: Sequence[tuple[int, int]], sections: Iterable[Sequence[Any]]
) -> list[tuple[int, str, str]]:
    """The sections of ``text`` after removing ``spans`` and stripping. Both in order."""
    first = 0  # character that is left
    for start, end in spans:
        if start > first:
            break
        first = max(first, end)
    lead = len(text[first : first + 9]) - len(text[first : first + 9].lstrip())
    removed = iter((*spans, (_END, _END)))
    start, end = next(removed)
    before = lead  # characters that are not left
    kept = []
    for at, anchor, heading in sections:
        while at >= end:
            before += end - start
            start, end = next(removed)
        if at < start:
            kept.append((at - before if at > before else 0, anchor, heading))
    return kept


def breaks_of(text: str, sections: Iterable[Sequence[Any]]) -> list[int]:
    """The places of the spaces before and after the headings of ``text``, in order: each place
    times two, plus one after a heading. A heading that is not found at its place has no break. A
    heading that may be cut off has no break after it."""
    breaks = dict[int, int]()
    for at, _, heading in sections:
        if text.startswith(heading, at):
            end = at + len(heading)
            if at and text[at - 1] == " ":
                breaks.setdefault(at - 1, 0)
            if len(heading) <= _WHOLE_HEADING and text[end : end + 1] == " ":
                breaks[end] = 1
    return sorted(2 * at + ends for at, ends in breaks.items())


def kept_breaks(text: str, spans: Sequence[tuple[int, int]], breaks: Iterable[int]) -> list[int]:
    """The breaks of ``text`` after removing ``spans``, as in `kept_sections`."""
    kept = kept_sections(text, spans, [(at // 2, "", "x" * (at % 2)) for at in breaks])
    return [2 * at + len(ends) for at, _, ends in kept if at]


def parted(text: str, breaks: Sequence[int], start: int = 0) -> str:
    """``text`` with a line end in place of the space at each break. It begins at ``start`` of the
    text that ``breaks`` refer to. Takes time in proportion to its own breaks."""
    first = bisect_left(breaks, 2 * start)
    last = bisect_left(breaks, 2 * (start + len(text)), first)
    pieces, end = [], 0
    for at in breaks[first:last]:
        pieces.append(text[end : at // 2 - start])
        end = at // 2 - start + 1
    pieces.append(text[end:])
    return "\n".join(pieces)


def ends_heading(breaks: Sequence[int], place: int) -> bool:
    """Whether a heading ends at a place of the text."""
    at = bisect_left(breaks, 2 * place + 1)
    return at < len(breaks) and breaks[at] == 2 * place + 1
