"""Patterns that hang: ``(a+)+x`` tries 2**40 ways before it gives up on http://h/ and forty a's.

Python's ``re`` backtracks and cannot be interrupted, so a pattern is tried before the crawl relies
on it, in a process of its own with limited time (backtracking_child.py). The strings to try repeat
what the pattern repeats: for ``https?://wiki/(a|b)+(?!c)`` they are ``http://wiki/aaaa...!`` and
``http://wiki/bbbb...!``, besides common parts of URLs, in lengths from 16 to 5,000 characters.

No proof: a pattern can be slow in a way that was not tried. It catches the usual mistakes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources

from larmspider.urls.pattern_samples import repetitions

LENGTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 5000)
"""Characters of the strings that are tried; exponential patterns show at the second."""
LONGEST_MATCH_SECS = 0.5
"""CPU seconds that one match may take."""
CPU_SECS = 1.5
"""CPU seconds for all strings; after that only the slowest string is tried in greater lengths."""
WALL_SECS = 20
"""For a child that gets no CPU, and where CPU time cannot be limited."""

_COMMON_PREFIXES = ("", "http://h/", "http://docs.example/library/")
_COMMON_UNITS = ("a", "1", "/", "a/", "-", ".", "&a=1", "%20")
_SUFFIXES = ("!", "")
_CHILD = "backtracking_child.py"


def slow_string(pattern: str, flags: int, method: str) -> str | None:
    """A string on which ``pattern`` takes too long, or None if none was found.

    The empty string where the child gave no answer at all.

    ``method`` is "fullmatch" or "search"; ``flags`` are those of ``re.compile``, which must accept
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
    """The string that the child was at when it was stopped or gave up; None if it came through."""
    # as text, for the package may lie in a zip file
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
