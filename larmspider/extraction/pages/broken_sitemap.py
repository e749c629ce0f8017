"""Sitemaps and feeds that are not XML: the entries before and after the damage.

    text = text_of(b"<b>Warning</b>: x<?xml ...?><urlset><url><loc>/a?x=1&y=2</loc></url></urlset>")
    root_of(text)                        # "urlset"
    [one.url for one in items(text, "url")]    # ["/a?x=1&y=2"]

An XML parser ends at a bare ``&``, a bad byte or a missing tag, and libxml2's recovery drops the
``&`` of a URL. The important tags are few and flat, so a search for them is enough. Its time is
linear in the text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import webencodings

TIMES = frozenset({"lastmod", "pubDate", "date", "updated", "published"})
HEAD_BYTES = 64 * 1024
"""Bytes in which the root element must begin. A script's warnings may come first."""
_MAX_VALUE = 4_096
"""Characters of a URL or time, with white space around it."""
_MAX_TAGS = 1_000_000
"""50,000 URLs with 10 elements each, which have a beginning and an end; 7 s of CPU at most."""
_ROOT = re.compile(r"<(?:[\w.-]+:)?(urlset|sitemapindex|rss|RDF|feed)[\s>]")
_TAG = re.compile(
    r"<(/?)((?:[\w.-]+:)?)"
    r"(url|sitemap|item|entry|loc|link|guid|lastmod|pubDate|date|updated|published)(?=[\s/>])"
    r"([^<>]*)>"
)
_ATTRIBUTE = re.compile(r"(?<![\w:.-])([\w:.-]++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_REFERENCE = re.compile(r"&#?\w{1,32};")
_BYTE = re.compile("[\udc80-\udcff]")
_ENCODING = re.compile(rb"<\?xml\s[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})")


class Item(NamedTuple):
    """One page; ``url`` or ``guid`` may be empty."""

    url: str
    guid: str
    times: list[str]


def text_of(body: bytes) -> str:
    """The characters in the charset that the document declares, else UTF-8. A byte that is not
    UTF-8 becomes a surrogate, which `items` escapes in URLs."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace")
    found = _ENCODING.search(body, 0, HEAD_BYTES)
    encoding = webencodings.lookup(found[1].decode()) if found else None
    if encoding is None or encoding.name.startswith("utf-"):  # .NET declares UTF-16 in UTF-8
        return body.decode("utf-8-sig", "surrogateescape")
    return str(encoding.codec_info.decode(body, "replace")[0])


def root_of(text: str) -> str:
    """The name of the root element; "" if the text is neither a sitemap nor a feed."""
    found = _ROOT.search(text, 0, HEAD_BYTES)
    return found[1] if found else ""


def items(text: str, name: str) -> Iterator[Item]:
    """The elements ``name`` of the text, in their order. An element ends where the next
    one begins; a value that is cut at the end of the text does not count."""
    text = _without_sections(text)
    url = guid = prefix = ""
    times: list[str] = []
    is_inside = False
    for tag in islice(_TAG.finditer(text), _MAX_TAGS):
        closing, tag_prefix, tag_name, attributes = tag.groups()
        if tag_name == name:
            if url or guid:
                yield Item(url, guid, times)
            url, guid, times, prefix = "", "", [], tag_prefix
            is_inside = not closing
        elif closing or not is_inside:
            continue
        elif tag_name in TIMES:
            times.append(_value(text, tag.end()))
        elif tag_prefix != prefix:  # the URL of an image, or a feed's own
            continue
        elif tag_name == "guid":
            if _attributes(attributes).get("isPermaLink", "true") == "true":
                guid = _value(text, tag.end())
        else:
            url = url or _url(text, tag)
    if url or guid:
        yield Item(url, guid, times)


def _url(text: str, tag: re.Match[str]) -> str:
    found = _attributes(tag[4])
    if "href" not in found:
        return _value(text, tag.end())
    return _plain(found["href"]) if found.get("rel", "alternate") == "alternate" else ""


def _attributes(text: str) -> dict[str, str]:
    return {
        name: double or single or bare for name, double, single, bare in _ATTRIBUTE.findall(text)
    }


def _value(text: str, start: int) -> str:
    end = text.find("<", start, start + _MAX_VALUE)
    return _plain(text[start:end]) if end >= 0 else ""


def _plain(text: str) -> str:
    """The value of an element or attribute: without references, and with its odd bytes escaped."""
    text = _REFERENCE.sub(lambda found: html.unescape(found[0]), text.strip())
    return _BYTE.sub(lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", text)


def _without_sections(text: str) -> str:
    """The text without comments; the content of CDATA is escaped."""
    text = _replaced(text, "<!--", "-->", lambda _: "")
    return _replaced(text, "<![CDATA[", "]]>", html.escape)


def _replaced(text: str, begin: str, end: str, change: Callable[[str], str]) -> str:
    """The text with each stretch between ``begin`` and ``end`` changed and both marks left out. A
    ``begin`` without an ``end`` is left out alone."""
    pieces, at = list[str](), 0
    while (start := text.find(begin, at)) >= 0:
        inside = start + len(begin)
        stop = text.find(end, inside)
        if stop < 0:
            break
        pieces += text[at:start], change(text[inside:stop])
        at = stop + len(end)
    rest = text[at:]
    return "".join([*pieces, rest.replace(begin, "")])
