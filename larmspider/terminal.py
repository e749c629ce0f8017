"""Text from the web on a terminal: an escape sequence in a title must not move the cursor."""

from __future__ import annotations


def printable(text: str) -> str:
    """``text`` with a replacement character for each one that is not to be seen."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
