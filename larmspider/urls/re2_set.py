"""Fifty patterns in one pass: which of them matches http://h/private/x? RE2 reads the URL once.

A set that is too large for its memory is split; a set that RE2 compiled but cannot run would never
match, in silence, and is split as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

try:
    import re2
except ImportError:  # there is no wheel for musl: Python's re does the work (patterns.py)
    re2 = None

Mode = Literal["fullmatch", "search"]

SET_BYTES = 32 << 20
"""Memory of a set at most: RE2's default of 8 MiB ends below 500 patterns that hold counts."""
_SENTINEL = "\0"
"""The last member of each set, matched by itself and no URL: shows that the set works."""


class TooLarge(Exception):  # noqa: N818 - a fact about the pattern, turned into an error by patterns.py
    """One pattern alone needs more memory than a set may have."""


def refusal(pattern: str) -> str | None:
    """Why RE2 does not take ``pattern``, in its own words; None if it does."""
    if re2 is None:
        return "google-re2 is not installed"
    try:
        re2.compile(pattern, _options())
    except re2.error as error:
        said = error.args[0]
        return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    except UnicodeEncodeError:
        return "lone surrogate"
    return None


class Re2Set:
    """Patterns that RE2 takes, in one pass. Raises TooLarge for a pattern beyond all bounds.

    ``mode`` says whether the whole text must match. Case does not matter, ``.`` is any character.
    """

    def __init__(self, patterns: Sequence[str], mode: Mode) -> None:
        self._parts: list[tuple[int, int, Any]] = []
        if patterns:
            self._add(list(patterns), 0, mode)

    def first(self, text: str) -> int | None:
        """The index of the first pattern that matches ``text``, a canonical URL, or None."""
        for start, size, part in self._parts:
            if (matching := part.Match(text)) and (index := min(matching)) < size:
                return start + int(index)
        return None

    def _add(self, patterns: list[str], start: int, mode: Mode) -> None:
        if (compiled := _compile(patterns, mode)) is not None:
            self._parts.append((start, len(patterns), compiled))
            return
        if len(patterns) == 1:
            raise TooLarge(patterns[0])
        half = len(patterns) // 2
        self._add(patterns[:half], start, mode)
        self._add(patterns[half:], start + half, mode)


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = False
    options.dot_nl = True
    options.never_capture = True
    return options


def _compile(patterns: list[str], mode: Mode) -> Any:
    """The working set of ``patterns``, or None if they are too many for one."""
    options = _options()
    options.max_mem = SET_BYTES
    compiled = re2.Set.FullMatchSet(options) if mode == "fullmatch" else re2.Set.SearchSet(options)
    try:
        for pattern in [*patterns, r"\x00"]:
            compiled.Add(pattern)
        compiled.Compile()
    except re2.error:
        return None
    return compiled if len(patterns) in (compiled.Match(_SENTINEL) or ()) else None
