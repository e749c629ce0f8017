"""Text for people and indexes: "  Main\\n  page " is "Main page", and nothing grows without end."""

from __future__ import annotations

MAX_TEXT = 4 * 1024 * 1024
"""Characters kept of a page's text."""
MAX_TITLE = 1024
"""Characters kept of a title."""
MAX_DESCRIPTION = 1024
"""Characters kept of a meta description."""
MAX_ANCHOR = 512
"""Characters kept of an anchor or ALT text."""

_SLACK = 4


def one_line(text: str, limit: int) -> str:
    """``text`` with runs of white space collapsed to one space, at most ``limit`` characters.

    What lies beyond four times the limit is not looked at, so that 10 MB of spaces cost nothing.
    """
    if len(text) <= limit:
        return " ".join(text.split())
    return " ".join(text[: limit * _SLACK].split())[:limit].rstrip()


def page_text(pieces: list[str]) -> str:
    """The pieces of a page's text joined, on one line, at most MAX_TEXT characters."""
    return one_line("".join(pieces), MAX_TEXT)
