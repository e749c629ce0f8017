"""Guesses which URLs are views of the page that named them, by their common parts.

    view_of("http://base/rows/17.json", "http://base/rows/17")            # http://base/rows/17
    view_of("http://works/blame/src/a.c", "http://works/tree/src")        # http://works/tree/src/a.c
    view_of("http://works/history?page=Start", "http://works/Start")      # http://works/Start
    view_of("http://manual/5.2/os", "http://manual/5.1/os")               # ""

It is a guess: the page has to be compared to find out whether it says something new.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from larmspider.urls.url_class import WORDS, split_suffix

_VALUES = re.compile("[?&;=]")
_PAGE = re.compile(r"\.(?:x|s)?html?$")
_LEAST_LETTERS = 3


def view_of(url: str, found_on: str) -> str:
    """The URL that ``url`` is likely a view of, or "". Both are absolute URLs."""
    (path, _, query), (base, _, asked) = url.lower().partition("?"), found_on.lower().partition("?")
    one, other = path.split("/"), base.split("/")
    if one[:3] != other[:3] or (path == base and query == asked):
        return ""
    if _is_format(one, other):
        return found_on if {*_VALUES.split(asked)} <= {*_VALUES.split(query)} else ""
    if asked:
        return ""
    if (at := _word_at(one, other)) and (len(one) > len(other) or one[-1] == other[-1]):
        return "/".join([*one[:at], other[at], *one[at + 1 :]])
    if not query:
        return found_on if _has_more(one, other) else ""
    name = other[-1]
    if len(name) < _LEAST_LETTERS or name.isdigit() or path == base:
        return ""
    return found_on if unquote(name) in map(unquote, _VALUES.split(query)) else ""


def is_format_of(url: str, found_on: str) -> bool:
    """Whether ``url`` is the page ``found_on`` in another format: ``/rows/17.json``."""
    return "?" not in url and _is_format(url.lower().split("/"), found_on.lower().split("/"))


def names_formats(url: str, links: Iterable[str]) -> bool:
    """Whether one of the URLs that a page links to is the page in another format."""
    stem = _PAGE.sub("", url) + "."
    return "?" not in url and any(
        link.startswith(stem) and is_format_of(link, url) for link in links
    )


def words_path(path: str) -> str:
    """The path of all views that the first such word of a path names: ``/works/blame/**`` for
    ``/works/blame/src/*``; or ""."""
    segments = path.split("/")
    for at, segment in enumerate(segments[1:-1], 1):
        if segment in WORDS:
            return "/".join([*segments[: at + 1], "**"])
    return ""


def _has_more(one: list[str], other: list[str]) -> bool:
    """``/wiki/special:links/Start`` and ``/wiki/Start``."""
    if len(one) != len(other) + 1 or one[-1] != other[-1] or not one[-1]:
        return False
    return any(one[:at] + one[at + 1 :] == other for at in range(3, len(one) - 1))


def _is_format(one: list[str], other: list[str]) -> bool:
    """``/rows/17.json`` and ``/rows/17`` or ``/rows/17.html``."""
    if one[:-1] != other[:-1] or one[-1] == other[-1]:
        return False
    stem, suffix = split_suffix(one[-1])
    return bool(suffix and stem) and stem in (other[-1], _PAGE.sub("", other[-1]))


def _word_at(one: list[str], other: list[str]) -> int:
    """The place at which ``/blame/src/a.c`` has a word for a view where ``/tree/src/a.c``, or the
    folder ``/tree/src``, has another segment; 0 if the paths differ otherwise."""
    differ = [at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b]
    is_one = len(differ) == 1 and len(one) >= len(other)
    return differ[0] if is_one and one[differ[0]] in WORDS and differ[0] < len(one) - 1 else 0
