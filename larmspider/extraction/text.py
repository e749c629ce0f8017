"""Text for people and indexes: "  Main\\n  page " is "Main page", and nothing grows without end."""

from __future__ import annotations

from lxml import etree

MAX_TEXT = 4 * 1024 * 1024
"""Characters kept of a page's text."""
MAX_TITLE = 1024
"""Characters kept of a title."""
MAX_DESCRIPTION = 1024
"""Characters kept of a meta description."""
MAX_ANCHOR = 512
"""Characters kept of an anchor or ALT text."""

_SLACK = 4
_SPACES = "\xa0\x85\u2028\u2029"
_ANY = etree.Element("any")
_normalize_space = etree.XPath("normalize-space($text)", smart_strings=False)


def one_line(text: str, limit: int) -> str:
    """``text`` with runs of white space collapsed to one space, at most ``limit`` characters.

    What lies beyond four times the limit is not looked at, so that 10 MB of spaces cost nothing.
    """
    if len(text) <= limit:
        return " ".join(text.split())
    return " ".join(text[: limit * _SLACK].split())[:limit].rstrip()


def page_text(pieces: list[str]) -> str:
    """The pieces of a page's text joined, on one line, at most MAX_TEXT characters.

    White space is HTML's, the no-break space and what ends a line; of Unicode's other spaces each
    stays, as the ideographic one between words of Japanese. libxml2 does it in half the time of
    split and join, for it does not make the words one by one.
    """
    text = "".join(pieces)
    if len(text) > MAX_TEXT:
        return one_line(text, MAX_TEXT)
    for space in _SPACES:
        text = text.replace(space, " ")
    try:
        return str(_normalize_space(_ANY, text=text))
    except ValueError:  # holds a form feed, or another control character
        return one_line(text, MAX_TEXT)
