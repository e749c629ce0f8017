"""Markup that makes lexbor slow or fat: 20,000 nested ``<div>`` cost it 0.4 s, 100,000 take 27 s.

Four kinds, each measured (selectolax 1.0.2), each harmless to the other parser (deep_html.py):

- deep nesting: a start tag looks up through all open elements;
- formatting elements left open, ``<b id=1><b id=2>...``: every later paragraph opens them all
  again, and 13 KB with 1,000 of them become 500,000 nodes in 370 MB;
- thousands of attributes on one tag: each is compared with all before it (50,000: 9 s);
- many ``<html>`` or ``<body>`` start tags, whose attributes are collected on one element.

A page of ordinary size gets two cheap checks; only a large one is read tag by tag. A false alarm is
harmless: deep_html.py reads ordinary pages as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import repeat
from typing import Any

try:
    import re2
except ImportError:  # there is no wheel for musl
    re2 = None

MAX_BYTES = 524_288
"""A larger document is read in another process; 10 MB take up to 1.2 s, if they are all NUL."""
MAX_TAGS = 10_000
"""A document with more tags likewise: 10,000 links take 0.06 s, 10,000 nested elements 0.1 s."""
_LEAST_TAG = 3
"""Least bytes of a tag. Counting "<" in 20 KB takes a tenth of the time of parsing them."""


def is_large(body: bytes) -> bool:
    """Whether another process should read ``body`` (process.py); 1 us for 40 KB.

    Nothing else happens while a page is read here. Below both limits the worst pages known
    (tests/hostile/cases.py) take 0.12 s; an ordinary page of 40 KB takes 1.4 ms.
    """
    size = len(body)
    return size > MAX_BYTES or _has_more_tags(body, MAX_TAGS)


def _has_more_tags(markup: bytes, most: int) -> bool:
    return len(markup) > _LEAST_TAG * most and markup.count(b"<") > most


MAX_DEPTH = 256
"""Open elements, without elements whose end tags are optional (li, p, td, ...). The true depth may
be a few times larger."""
MAX_FORMATS = 100
"""Formatting elements left open in a large page."""
MAX_FORMAT_COPIES = 1_000_000
"""Different formatting start tags and their attributes, times all tags of a page that is not large:
what reopening them can add (three times that, HTML 13.2.4.3), at 0.1 us and 120 bytes each; real
pages stay below 400,000."""
MAX_TAG_BYTES = 16_384
"""Bytes of the largest tag. Several tags count by their squares, like 4 tags of 8 KB, because each
of up to 2,300 attributes is compared with each (0.1 s in all)."""
_LONG_TAG_BYTES = 2_048
"""Shorter tags do not count: 512 KB of them take 0.12 s."""
MAX_ROOT_TAGS = 100
MAX_ATTRIBUTES, _FEW_ATTRIBUTES = 2_000, 50
"""The limit of `has_many_attributes` for one tag. Several tags count by their squares; a tag with
up to 50 attributes does not count."""

TINY_BYTES = 4_096
"""With fewer bytes no more than a million copies are possible."""
SMALL_BYTES = 65_536
"""With fewer bytes a tag has 13,000 attributes at worst (0.4 s)."""
LARGE_TAGS = 15_000
"""With more tags a page is read tag by tag; lexbor takes 0.2 s for 15,000 nested elements."""
LARGE_BYTES = 262_144
"""With more bytes a page is read tag by tag, with fewer only if it seems to have long tags."""

_VOID = frozenset(
    b"area base br col embed frame hr img input keygen link meta param source track wbr".split()
)
# Each of these closes its own kind or needs a table, list or select around it, which counts.
_OPTIONAL_END = frozenset(
    b"p li dt dd option optgroup tr td th tbody thead tfoot colgroup caption rb rp rt rtc "
    b"head".split()
)
_UNCOUNTED = {b""}.union(slash + name for name in _VOID | _OPTIONAL_END for slash in (b"", b"/"))
"""Names of start and end tags, and the empty name of text that is not a tag."""
_ROOTS = frozenset((b"html", b"body"))
_FOREIGN = frozenset((b"svg", b"math"))
_FORMATS = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_BARRIERS = frozenset(b"table template object marquee applet svg math button select".split())
# Elements that an end tag of another, ordinary element does not close (HTML 13.2.4.2, "special").
_SPECIAL = _BARRIERS | frozenset(
    b"address article aside blockquote center details dialog dir div dl fieldset figcaption figure "
    b"footer form frameset h1 h2 h3 h4 h5 h6 header hgroup iframe listing main menu nav noembed "
    b"noframes noscript ol pre search section summary ul".split()
)

_REST = rb"[^>=]*+(?:=\s*+(?:\"[^\"]*\"|'[^']*'|[^\s>]*+)[^>=]*+)*+"
_FORMAT_TAG = re.compile(rb"<(?:[bisu]|big|code|em|font|nobr|small|strike|strong|tt)[\s/]" + _REST)
_ANCHOR = re.compile(rb"<a[\s/]" + _REST)
# Or one with ">" in a quoted value.
_LONG_ANCHOR = re.compile(
    rb"<a[\s/](?:[^>]{511}|[^>'\"]*+(?:(?:\"[^\">]*+\"|'[^'>]*+')[^>'\"]*+)*+['\"])"
)
_LONG = (
    rb"a[\s\v/](?:[^>]{511}|[^>'\"]*(?:(?:\"[^\">]*\"|'[^'>]*')[^>'\"]*)*"
    rb"(?:\"[^\">]*|'[^'>]*)(?:>|\z))"
)


class Screen:
    """A first look: might an expression find anything? RE2 goes through 30 KB in 20 to 35 us.
    Python's ``re`` takes 60 to 120 us, if each match begins with the same byte. The screen looks
    for rare things, and ``re`` finds them."""

    def __init__(self, pattern: bytes) -> None:
        """``pattern`` is one of RE2, of bytes; ``(?i)`` is any case of ASCII."""
        self._search = None
        if re2 is not None:
            options: Any = re2.Options()
            options.encoding = re2.Options.Encoding.LATIN1
            options.never_capture = True
            self._search = re2.compile(pattern, options).search

    def may_find(self, markup: bytes) -> bool:
        """Whether the expression may find something. Always True if google-re2 is not installed."""
        return self._search is None or self._search(markup) is not None


_MAY_HAVE_LONG_ANCHOR = Screen(rb"<" + _LONG)
_MAY_COPY = Screen(
    rb"<(?i:(?:[bisu]|big|code|em|font|nobr|small|strike|strong|tt)[\s\v/]|%s)" % _LONG
)
_MAY_HAVE_QUOTED_END = Screen(rb"=[\s\v]*(?:\"[^\">]*>|'[^'>]*>)")
# An attribute of a tag; the tag's name looks the same.
_ATTRIBUTE = re.compile(rb"[^\s/=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s]*+))?+")
# A start tag; also a look-alike inside a script or comment.
_START_TAG = re.compile(rb"<[A-Za-z][^>=]*+(?:=\s*+(?:\"[^\"]*\"|'[^']*'|[^\s>]*+)[^>=]*+)*+")
# A quoted value, or a look-alike, that holds ">", so that a tag does not end at its first.
_QUOTED_END = re.compile(rb"=\s*+(?:\"[^\">]*+>|'[^'>]*+>)")
# An element whose content is not markup; a comment; an element that holds text alone.
_RAW = b"|".join(
    rb"%s\b.*?(?:</%s|\Z)" % (name, name)
    for name in b"script style textarea title xmp iframe noembed noframes".split()
)
_COMMENT = rb"!--(?:-?>|.*?(?:--!?>|\Z))"
_LEAF = b"|".join(
    rb"%s(?=[\s/>])[^>]*+>[^<]*+</%s(?=[\s/>])[^>]*+" % (name, name)
    for name in b"a code div span".split()
)
# One of the first two, or a tag: name and attributes.
_TAG = re.compile(rb"<(?:%s|(/?[a-z][^\s/>]*)(%s)|%s)" % (_RAW, _REST, _COMMENT), re.DOTALL)
# One of the three, or a tag's name, where each tag ends at its first ">".
_PLAIN_TAG = re.compile(
    rb"<(?:%s|%s|(/?[a-z][^\s/>]*+)[^>]*+|%s)" % (_LEAF, _RAW, _COMMENT), re.DOTALL
)


def is_costly(markup: bytes) -> bool:
    """Whether lexbor should be spared ``markup``; costs 0.1 ms for 35 KB, 9 ms for 455 KB with
    LARGE_TAGS (``python -m benchmarks.extraction``, part "guard")."""
    size = len(markup)
    if size > LARGE_BYTES or _has_more_tags(markup, LARGE_TAGS):
        return _read_tags(markup.lower())
    if size > TINY_BYTES and _copies(markup) > MAX_FORMAT_COPIES:
        return True
    return size > SMALL_BYTES and _has_long_tags(markup) and _read_tags(markup.lower())


def has_many_attributes(markup: bytes) -> bool:
    """Whether lxml's parser should be spared ``markup``, whose time grows with the square of a
    tag's attributes: 2,000 take 0.05 s, 100,000 take minutes."""
    squares = 0
    for tag in _START_TAG.finditer(markup):
        if tag.end() - tag.start() > 2 * _FEW_ATTRIBUTES:
            number = sum(1 for _ in _ATTRIBUTE.finditer(tag[0]))
            squares += number * number if number > _FEW_ATTRIBUTES else 0
            if squares > MAX_ATTRIBUTES**2:
                return True
    return False


def _copies(markup: bytes) -> int:
    """Elements and attributes that formatting elements add at worst: each tag may reopen all of
    them, and the last link."""
    if not _MAY_COPY.may_find(markup):
        return 0
    lower = markup.lower()
    formats = set(_FORMAT_TAG.findall(lower))
    if _MAY_HAVE_LONG_ANCHOR.may_find(lower) and _LONG_ANCHOR.search(lower):
        formats.add(max(_ANCHOR.findall(lower), key=len))
    return markup.count(b"<") * sum(len(_ATTRIBUTE.findall(tag)) for tag in formats)


def _has_long_tags(markup: bytes) -> bool:
    """Whether the tags may be too long together; 0.3 ms for 180 KB, 0.9 ms if it has to measure
    them, as one page of twenty."""
    if not _may_have_long_tags(markup):
        return False
    return sum(map(_work, map(len, _START_TAG.findall(markup)))) > MAX_TAG_BYTES**2


def _may_have_long_tags(markup: bytes) -> bool:
    """Whether a tag may have _LONG_TAG_BYTES, or may not end at its first ">".

    A long tag has ">" in a value, or a stretch of _LONG_TAG_BYTES without ">". The stretch covers
    a block of half its length that begins at a multiple of this half."""
    stretch = _LONG_TAG_BYTES // 2
    if _MAY_HAVE_QUOTED_END.may_find(markup) and _QUOTED_END.search(markup):
        return True
    return any(
        markup.find(b">", at, at + stretch) < 0
        for at in range(0, len(markup) - stretch + 1, stretch)
    )


def _work(size: int) -> int:
    """The square of a tag's size, 0 for a tag of usual size."""
    return size * size if size > _LONG_TAG_BYTES else 0


def _read_tags(markup: bytes) -> bool:
    """Follow the open elements through lower-case ``markup``, roughly as a tree builder does."""
    tags: Iterable[tuple[bytes, bytes]]
    names = None if _may_have_long_tags(markup) else _PLAIN_TAG.findall(markup)
    if names is not None and _FOREIGN.isdisjoint(names):
        tags = zip(names, repeat(b""))
    else:
        tags = _TAG.findall(markup)
        if sum(_work(len(attributes)) for _, attributes in tags) > MAX_TAG_BYTES**2:
            return True
    open_names: list[bytes] = []
    formats = roots = foreign = 0
    for name, attributes in tags:
        if name in _UNCOUNTED:
            continue
        if name[0] != 47:  # not "/"
            if foreign and attributes.endswith(b"/"):
                continue
            if name in _ROOTS:
                roots += 1
                if roots > MAX_ROOT_TAGS:
                    return True
                continue
            open_names.append(name)
            if len(open_names) > MAX_DEPTH:
                return True
            if name in _FORMATS and name != b"a":
                formats += 1
                if formats > MAX_FORMATS:
                    return True
            elif name in _FOREIGN:
                foreign += 1
        else:
            name = name[1:]
            if name in _FORMATS:
                formats -= name != b"a" and formats > 0
            if open_names and open_names[-1] == name:
                open_names.pop()
                if foreign and name in _FOREIGN:
                    foreign -= 1
            elif name in open_names:
                _close(open_names, name)
                if foreign:
                    foreign = sum(map(open_names.count, _FOREIGN))
    return False


def _close(open_names: list[bytes], name: bytes) -> None:
    """Apply an end tag of an outer element: it closes the inner ones too, or is ignored."""
    at = len(open_names) - 1 - open_names[::-1].index(name)
    above = open_names[at + 1 :]
    if name in _FORMATS:
        del open_names[at]  # its content stays open, by the "adoption agency algorithm"
        return
    stops = _BARRIERS if name in _SPECIAL else _SPECIAL
    if name in (b"table", b"template") or stops.isdisjoint(above):
        del open_names[at:]
