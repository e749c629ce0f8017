"""Sections of a long page, as the index keeps them: where they begin in the main text, by what
anchor a link leads to them, and their headings (extraction/page_builder.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

LONG_TEXT = 1_500
"""Characters of a text whose sections are kept."""
_END = 1 << 62
"""Behind any text."""


def kept_sections(
    text: str, spans: Sequence[tuple[int, int]], sections: Iterable[Sequence[Any]]
) -> list[tuple[int, str, str]]:
    """The sections of ``text`` in what is left of it without ``spans``, stripped. Both in order."""
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
