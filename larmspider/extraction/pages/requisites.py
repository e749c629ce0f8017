"""Requisites of a page: the images, styles and scripts that it names (LARM_REQUISITES).

    requisites_of_page(body, url, "utf-8")    # ["http://wiki.example/logo.png", "http://wiki.example/site.css"]

Not taken are films, sounds and frames (frames are links), files that a script loads, and files that
a page within the page names. This is a separate parse, 0.5 ms for 40 KB, which only crawls with
LARM_REQUISITES pay for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from larmspider.extraction.pages.markup_guard import is_costly, is_large
from larmspider.extraction.texts.charset import decode, query_encoder, to_utf8
from larmspider.urls.resolve import LinkResolver

MAX_REQUISITES = 1_000
"""Requisites of one page or style, in document order."""
_MAX_CHARS = 1_000_000
"""Characters of their URLs together."""
_CSS_CHARS = 2_000_000
_ELEMENTS = (
    "img, source, image, link[rel], script[src], input[src], video[poster], style, [style],"
    " [background], base[href]"
)
_ATTRIBUTES = {
    "img": ("src",),
    "image": ("href", "xlink:href"),
    "script": ("src",),
    "input": ("src",),
    "video": ("poster",),
}
_RELS = frozenset(("stylesheet", "icon", "apple-touch-icon", "mask-icon"))
_CANDIDATE = re.compile(r"[^\s,]\S*+")
_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_IN_CSS = re.compile(
    r"url\(\s*+(?:\"([^\"\n]*)\"|'([^'\n]*)'|([^\s\"'()]+))"
    r"|@import\s++(?:\"([^\"\n]*)\"|'([^'\n]*)')",
    re.IGNORECASE,
)


def requisites_of_page(body: bytes, url: str, charset: str | None) -> list[str]:
    """Absolute URLs, each once; empty for a page that is read in a separate process."""
    if is_large(body):
        return []
    markup, charset = to_utf8(body, f"text/html; charset={charset}" if charset else None)
    if is_costly(markup):
        return []
    base, found = "", list[str]()
    for node in LexborHTMLParser(markup).css(_ELEMENTS):
        if node.tag == "base":
            base = base or node.attributes.get("href") or ""
        else:
            found += _of_element(node)
    return _resolved(found, url, base, charset)


def requisites_of_style(body: bytes, url: str, content_type: str) -> list[str]:
    """The sheets, images and fonts that a style sheet imports and shows."""
    text, charset = decode(body[:_CSS_CHARS], content_type)
    return _resolved(_in_css(text), url, "", charset)


def _of_element(node: LexborNode) -> Iterator[str]:
    attributes, tag = node.attributes, node.tag
    if tag == "link":
        if not _RELS.isdisjoint((attributes.get("rel") or "").lower().split()):
            yield attributes.get("href") or ""
    elif tag == "style":
        yield from _in_css(node.text())
    elif tag != "input" or (attributes.get("type") or "").lower() == "image":
        for name in _ATTRIBUTES.get(tag or "", ()):
            yield attributes.get(name) or ""
        if tag in ("img", "source"):
            yield from _candidates((attributes.get("srcset") or "")[:_MAX_CHARS])
    yield attributes.get("background") or ""
    yield from _in_css(attributes.get("style") or "")


def _candidates(srcset: str) -> Iterator[str]:
    """HTML 4.8.4.2.1, without a look at the descriptors."""
    at = 0
    while at >= 0 and (found := _CANDIDATE.search(srcset, at)):
        yield found[0].rstrip(",")
        at = found.end() if found[0][-1] == "," else srcset.find(",", found.end())


def _in_css(text: str) -> Iterator[str]:
    if "(" in text or "@" in text:
        for groups in _IN_CSS.findall(_COMMENT.sub("", text)):
            yield "".join(groups)


def _resolved(found: Iterable[str], url: str, base: str, charset: str | None) -> list[str]:
    hrefs = list(islice(filter(None, dict.fromkeys(map(str.strip, found))), MAX_REQUISITES))
    urls = LinkResolver(url, base or None, query_encoder(charset)).resolve_all(hrefs, _MAX_CHARS)
    return list(dict.fromkeys(one for one in urls if one.startswith(("http://", "https://"))))
