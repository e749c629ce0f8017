"""Sections of a long page, as the index keeps them: where they begin in the main text, by what
anchor a link leads to them, and their headings (extraction/page_builder.py)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

LONG_TEXT = 1_500
"""Characters of a text whose sections are kept."""


def kept_sections(
    text: str, spans: Sequence[tuple[int, int]], sections: Iterable[Sequence[Any]]
) -> list[tuple[int, str, str]]:
    """The sections of ``text`` in what is left of it without ``spans``, stripped."""
    ends, removed = [0], [0]
    for start, end in spans:
        ends.append(end)
        removed.append(removed[-1] + end - start)
    first = 0  # character that is left
    for start, end in spans:
        if start > first:
            break
        first = max(first, end)
    lead = len(text[first : first + 9]) - len(text[first : first + 9].lstrip())
    kept = []
    for at, anchor, heading in sections:
        span = bisect_right(ends, at) - 1
        if span < len(spans) and spans[span][0] <= at:
            continue
        kept.append((max(0, at - removed[span] - lead), anchor, heading))
    return kept
