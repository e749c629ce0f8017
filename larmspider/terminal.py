"""What is written to a terminal: text from the web, of which an escape sequence must not move the
cursor, and how far something long is."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CLEAR = "\r\x1b[K"


def printable(text: str) -> str:
    """``text`` with a replacement character for each one that is not to be seen."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


@contextmanager
def doing(what: str) -> Iterator[Callable[[int, int], None]]:
    """Says on a terminal what is done, and how much of how much once that is known; the line goes
    when it is done. Nothing elsewhere, nor with TERM=dumb.

    with doing("Counting links") as progress:     # Counting links ...
        progress(5, 20)                           # Counting links: 25%
    """
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield lambda _done, _whole: None
        return

    def say(text: str) -> None:
        sys.stderr.write(f"{_CLEAR}{text}")
        sys.stderr.flush()

    say(f"{what} ...")
    try:
        yield lambda done, whole: say(f"{what}: {done / max(1, whole):.0%}")
    finally:
        say("")
