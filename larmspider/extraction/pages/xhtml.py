"""XHTML, which is XML: pages of application/xhtml+xml, and the chapters of books.

    page = extract(b'<html xmlns="http://www.w3.org/1999/xhtml"><title/>See</html>', url, None)
    page.text                          # "See": in HTML the text after <title/> would be the title

The markup is rewritten as HTML, then html.py reads it. An element that XML closes at once gets an
end tag, CDATA becomes text, and a prefix of XHTML's names is left out (HTML 14, XHTML 1.0 appendix
C). Attributes without quotes, and the content of scripts and style sheets, stay as they are: many
pages of this type are not XML, and are read by the rules of HTML.
"""

from __future__ import annotations

import re

from larmspider.extraction.pages import html
from larmspider.extraction.pages.page_builder import LinkColumns
from larmspider.extraction.texts.charset import to_utf8
from larmspider.items import Page

_VOID = frozenset(
    b"area base br col embed frame hr img input link meta param source track wbr".split()
)
_TOKEN = re.compile(
    rb"<(?:(?P<tag>[a-z_][\w.:-]*)"
    rb"(?P<attributes>(?:\s+[\w.:-]+\s*=\s*(?:\"[^<\"]*\"|'[^<']*'))*)\s*/>"
    rb"|(?P<comment>!--)|(?P<text>!\[CDATA\[)|(?P<instruction>\?)"
    rb"|(?P<doctype>!DOCTYPE\b[^\[<>]*\[)|(?P<script>script\b)|(?P<style>style\b))",
    re.IGNORECASE,
)
_ENDS = {
    "comment": re.compile(rb"-->"),
    "text": re.compile(rb"\]\]>"),
    "instruction": re.compile(rb"[^<]*?\?>|[^>]*+>"),  # Word writes <?xml:namespace ... />
    "doctype": re.compile(rb"\]\s*>"),
    "script": re.compile(rb"</script\s*>", re.IGNORECASE),
    "style": re.compile(rb"</style\s*>", re.IGNORECASE),
}
"""The ends of constructs whose content is not markup."""
_PREFIX = re.compile(rb"""xmlns:([\w.-]+)\s*=\s*["']http://www\.w3\.org/1999/xhtml["']""")
_HEAD_BYTES = 16_384


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """See html.extract."""
    markup, charset = to_utf8(body, content_type)
    page, builder = html.begun(as_html(markup), charset, body, url)
    builder.fill(page)
    return page


def extract_columns(body: bytes, url: str, content_type: str | None) -> tuple[Page, LinkColumns]:
    """See html.extract_columns."""
    markup, charset = to_utf8(body, content_type)
    page, builder = html.begun(as_html(markup), charset, body, url)
    return page, builder.fill_but_links(page)


def as_html(markup: bytes) -> bytes:
    """``markup`` with end tags for elements that XML closes at once, and text for CDATA."""
    if found := _PREFIX.search(markup, 0, _HEAD_BYTES):
        markup = re.sub(rb"<(/?)%s:" % re.escape(found[1]), rb"<\1", markup)
    pieces, done, at = list[bytes](), 0, 0
    endless = set[str]()
    while token := _TOKEN.search(markup, at):
        kind, start, at = token.lastgroup, token.start(), token.end()
        if kind is None or kind in endless:
            continue
        if kind in ("tag", "attributes"):
            name = token["tag"]
            if name.lower() in _VOID:
                continue
            new = b"<%s%s></%s>" % (name, token["attributes"], name)
        elif (end := _ENDS[kind].search(markup, at)) is None:
            endless.add(kind)  # a later one has no end either
            continue
        else:
            inside, at = markup[at : end.start()], end.end()
            if kind == "text":
                new = inside.replace(b"&", b"&amp;").replace(b"<", b"&lt;")
            elif kind in ("instruction", "doctype"):
                new = b""
            else:
                continue
        pieces += markup[done:start], new
        done = at
    pieces.append(markup[done:])
    return b"".join(pieces)
