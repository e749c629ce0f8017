"""Patterns of users for URLs: ``https?://[^/]*\\.example/.*`` is a crawl's scope.

They are "Perl5-like", as LARM compiled them: case does not matter, ``.`` matches every character,
and the whole canonical URL must match (``Perl5Matcher.matches``), unless the caller searches.

RE2 runs them: no pattern can hang the crawl, and fifty cost one pass. It refuses look-around
(``(?!x)``), back-references (``\\1``), possessive quantifiers (``a++``) and counts above 1,000.
Python's ``re`` runs such a pattern, with a warning, after a test against catastrophic backtracking
(backtracking.py). Without google-re2 it runs every pattern.
"""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

from larmspider.errors import ConfigError
from larmspider.urls.backtracking import LONGEST_MATCH_SECS, slow_string

logger = logging.getLogger(__name__)


try:
    import re2
except ImportError:  # there is no wheel for musl: Python's re does the work
    re2 = None

Mode = Literal["fullmatch", "search"]
Engine = Literal["re2", "re"]

_FLAGS = re.IGNORECASE | re.DOTALL
SET_BYTES = 32 << 20
"""Memory of a set; RE2's default of 8 MiB is too little for 500 patterns with counts."""
_SENTINEL = "\0"
"""The last member of each set, which matches no URL: shows that RE2 can run the set."""


class Pattern:
    """A compiled pattern, made by ``compile_pattern``."""

    __slots__ = ("_matches", "engine", "text")

    def __init__(self, text: str, engine: Engine, matches: Callable[[str], object]) -> None:
        self.text = text
        self.engine = engine
        self._matches = matches

    def __repr__(self) -> str:
        return f"<Pattern {self.text!r} on {self.engine}>"

    def fullmatch(self, url: str) -> bool:
        """Whether the whole of ``url``, in canonical form, matches. 0.8 us on RE2."""
        return self._matches(url) is not None


def compile_pattern(text: str, *, name: str) -> Pattern:
    """Compile ``text``, which messages call ``name``: a setting, or a file and line.

    Raises ConfigError, with position and reason, if neither RE2 nor Python's ``re`` compiles it, or
    if only the latter does and it backtracks catastrophically.
    """
    why = refusal(text)
    if why is None:
        try:
            return Pattern(text, "re2", Re2Set([text], "fullmatch").first)
        except TooLarge:
            why = "too large"
    return Pattern(text, "re", _python_pattern(text, name, "fullmatch", why).fullmatch)


class PatternSet:
    """Finds the first of its patterns that matches a URL.

    ``mode`` is "fullmatch" (the whole URL must match) or "search" (a part is enough). Raises
    ConfigError as ``compile_pattern`` does. An empty set never matches.
    """

    def __init__(self, patterns: Sequence[str], *, name: str, mode: Mode = "fullmatch") -> None:
        self.patterns = tuple(patterns)
        self._re2_indexes: list[int] = []
        self._others: list[tuple[int, Callable[[str], object]]] = []
        for index, text in enumerate(self.patterns):
            why = refusal(text)
            if why is None:
                self._re2_indexes.append(index)
            else:
                pattern = _python_pattern(text, f"{name}[{index}]", mode, why)
                self._others.append((index, getattr(pattern, mode)))
        try:
            self._re2 = Re2Set([self.patterns[index] for index in self._re2_indexes], mode)
        except TooLarge as error:
            raise ConfigError(
                f"{name}: pattern {str(error)!r} needs too much memory; expected smaller counts"
            ) from error

    def __len__(self) -> int:
        return len(self.patterns)

    def __repr__(self) -> str:
        return f"<PatternSet {len(self._re2_indexes)} on re2, {len(self._others)} on re>"

    def match(self, url: str) -> str | None:
        """The text of the first pattern that matches ``url``, in canonical form, or None.

        All patterns on RE2 take one pass (1 us for 50); patterns on ``re`` are tried one by one.
        """
        found = self._re2.first(url)
        first = len(self.patterns) if found is None else self._re2_indexes[found]
        for index, matches in self._others:
            if index > first:
                break
            if matches(url) is not None:
                first = index
                break
        return self.patterns[first] if first < len(self.patterns) else None


def _python_pattern(text: str, name: str, mode: Mode, why: str) -> re.Pattern[str]:
    """``text`` on Python's ``re``, because RE2 does not take it (``why``)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FutureWarning for "[[": a matter of taste here
            compiled = re.compile(text, _FLAGS)
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigError(
            f"{name}: pattern {text!r} does not compile: {error} (RE2: {why}); expected a "
            "regular expression in the syntax of RE2 or of Python's re"
        ) from error
    slow = slow_string(text, _FLAGS, mode)
    if slow == "":
        raise ConfigError(
            f"{name}: pattern {text!r} could not be tried in a process of its own, and RE2 does "
            f"not take it ({why}); expected a pattern that RE2 takes"
        )
    if slow is not None:
        raise ConfigError(
            f"{name}: pattern {text!r} takes more than {LONGEST_MATCH_SECS} s for a URL such as "
            f"{slow[:60]!a} ({len(slow)} characters), and RE2 does not take it ({why}); expected "
            "a pattern without nested repetition or without what RE2 refuses"
        )
    logger.warning("%s: pattern %r runs on Python's re, not on RE2 (%s)", name, text, why)
    return compiled


class TooLarge(Exception):  # noqa: N818 - it becomes a ConfigError
    """One pattern alone needs more than SET_BYTES."""


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
    """Patterns that RE2 takes, matched in one pass. Raises TooLarge.

    A set that is too large for its memory is split. A set that RE2 compiled but cannot run is also
    split: it would never match, silently.
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
