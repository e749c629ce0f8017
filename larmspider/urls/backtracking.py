"""Patterns that hang: ``(a+)+x`` tries 2**40 ways before it gives up on http://h/ and forty a's.

Python's ``re`` backtracks and cannot be interrupted, so a pattern is tried before the crawl relies
on it, in a separate process with limited time (backtracking_child.py). The test strings repeat
the repeated parts of the pattern: for ``https?://wiki/(a|b)+(?!c)`` they are
``http://wiki/aaaa...!`` and ``http://wiki/bbbb...!``, and also common parts of URLs, in lengths
from 16 to 5,000 characters.

This is not a proof: a pattern can be slow in an untested way. It catches the usual mistakes.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import warnings
from collections.abc import Iterable
from importlib import resources
from typing import Any

_CANDIDATES = "a1/-._~?=&% !"
_CATEGORIES = {"DIGIT": "1", "WORD": "a", "SPACE": " ", "NOT_DIGIT": "a", "NOT_WORD": "/"}
_MAX_REPETITIONS = 40


LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 5000)
"""Characters of the strings; exponential patterns show at the second length."""
LONGEST_MATCH_SECS = 0.5
"""CPU seconds that one match may take."""
CPU_SECS = 1.5
"""CPU seconds for all strings; after that only the slowest string is tried in greater lengths."""
WALL_SECS = 20
"""Seconds by the clock, if the child gets no CPU or its CPU time cannot be limited."""

_COMMON_PREFIXES = ("", "http://h/", "http://docs.example/library/")
_COMMON_UNITS = ("a", "1", "/", "a/", "-", ".", "&a=1", "%20")
_SUFFIXES = ("!", "")
_CHILD = "backtracking_child.py"


def slow_string(pattern: str, flags: int, method: str) -> str | None:
    """A string on which ``pattern`` takes too long, None without such a string, "" if the child
    gave no answer.

    ``method`` is "fullmatch" or "search"; ``flags`` are flags of ``re.compile``, which must accept
    the pattern. Takes 0.15 s for a harmless pattern, 3 s at most on an idle machine.
    """
    starts = repetitions(pattern, flags)
    prefixes = dict.fromkeys((*_COMMON_PREFIXES, *(prefix for prefix, _ in starts)))
    units = dict.fromkeys((*_COMMON_UNITS, *(unit for _, unit in starts)))
    strings = [(prefix, unit) for prefix in list(prefixes)[:20] for unit in list(units)[:30]]
    job = {
        "pattern": pattern,
        "flags": flags,
        "method": method,
        "strings": [*starts, *strings],
        "suffixes": _SUFFIXES,
        "lengths": LENGTHS,
        "longest_match_secs": LONGEST_MATCH_SECS,
        "cpu_secs": CPU_SECS,
    }
    return _run(json.dumps(job))


def _run(job: str) -> str | None:
    """The string at which the child was stopped or gave up; None if it tried all strings."""
    # as text, because the package may lie in a zip file
    program = resources.files("larmspider.urls").joinpath(_CHILD).read_text("utf-8")
    with subprocess.Popen(  # noqa: S603 - our own file, by this interpreter
        [sys.executable, "-I", "-S", "-W", "ignore", "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="ascii",
    ) as child:
        try:
            output, _ = child.communicate(job, timeout=WALL_SECS)
        except subprocess.TimeoutExpired:
            child.kill()
            output, _ = child.communicate()
    lines = output.splitlines()
    if lines and lines[-1] == "null":
        return None
    # The child names each string before it tries it.
    return str(json.loads(lines[-1])) if lines else ""


def repetitions(pattern: str, flags: int) -> list[tuple[str, str]]:
    """Pairs of a text before a repetition and a text that it repeats, at most 40: ``https?://h/(ab)+``
    gives ("https://h/", "ab").

    They are read from the tree that Python's ``re`` compiles. Its parser is not public: with a
    Python that lacks it there are no pairs, and common strings have to do.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = importlib.import_module("re._parser").parse(pattern, flags)
    except (ImportError, AttributeError):
        return []
    reader = _Reader()
    try:
        reader.read(tree, "")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError):
        pass  # a tree in another shape: the pairs found so far are good
    return list(dict.fromkeys(reader.found))[:_MAX_REPETITIONS]


class _Reader:
    """Walks the tree of a pattern, and makes one matching text of its simple parts."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._groups: dict[int, str] = {}

    def read(self, tree: Iterable[tuple[Any, Any]], before: str) -> str:
        """A text for ``tree``, which follows the text ``before``."""
        text = ""
        for kind, value in tree:
            text += self._node(str(kind), value, before + text)
        return text

    def _node(self, kind: str, value: Any, before: str) -> str:
        match kind:
            case "LITERAL":
                return chr(value)
            case "NOT_LITERAL":
                return next(char for char in _CANDIDATES if ord(char) != value)
            case "ANY":
                return "a"
            case "IN":
                return _member(value)
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, item = value
                unit = self.read(item, before)
                if unit and most > 1:
                    self.found.append((before, unit))
                return unit * min(max(int(least), 0 if int(most) == 1 else 1), 50)
            case "BRANCH":
                return next(iter([self.read(branch, before) for branch in value[1]]))
            case "SUBPATTERN":
                text = self.read(value[-1], before)
                self._groups[value[0]] = text
                return text
            case "ATOMIC_GROUP":
                return self.read(value, before)
            case "GROUPREF":
                return self._groups.get(value, "")
            case "ASSERT" | "ASSERT_NOT":
                self.read(value[1], before)
        return ""


def _member(items: list[tuple[Any, Any]]) -> str:
    """A character of a class such as ``[a-z\\d]`` or ``[^/]``."""
    if str(items[0][0]) == "NEGATE":
        return next((char for char in _CANDIDATES if not _holds(items[1:], char)), "")
    kind, value = str(items[0][0]), items[0][1]
    if kind == "CATEGORY":
        return _CATEGORIES.get(str(value).removeprefix("CATEGORY_"), "")
    return chr(value[0] if kind == "RANGE" else value)


def _holds(items: list[tuple[Any, Any]], char: str) -> bool:
    for kind, value in ((str(kind), value) for kind, value in items):
        if kind == "LITERAL" and ord(char) == value:
            return True
        if kind == "RANGE" and value[0] <= ord(char) <= value[1]:
            return True
        if kind == "CATEGORY" and _category_holds(str(value).removeprefix("CATEGORY_"), char):
            return True
    return False


def _category_holds(category: str, char: str) -> bool:
    tests = {
        "DIGIT": char.isdigit(),
        "WORD": char.isalnum() or char == "_",
        "SPACE": char.isspace(),
    }
    holds = tests.get(category.removeprefix("NOT_"), False)
    return not holds if category.startswith("NOT_") else holds
