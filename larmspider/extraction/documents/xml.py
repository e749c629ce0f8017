"""XML that is no XHTML: feeds, sitemaps, DocBook. The text between the tags; href and the like are
links, and so are URLs that feeds and sitemaps have as text."""

from __future__ import annotations

from larmspider.extraction import xhtml
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    dublin_core,
    keeping,
    local_name,
    parse_xml,
)
from larmspider.items import Page

_HREFS = ("href", "{http://www.w3.org/1999/xlink}href", "src")
_URL_ELEMENTS = frozenset(("link", "loc", "guid", "url", "uri", "id"))


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    root = parse_xml(body)
    if local_name(root) == "html":
        return xhtml.extract(body, url, content_type)
    builder = DocumentBuilder()
    dublin_core(root, builder)
    for element in root.iter("{*}*"):
        target = next((element.get(name) for name in _HREFS if element.get(name)), None)
        text = (element.text or "").strip()
        if target:
            builder.add_link(target, text)
        elif local_name(element) in _URL_ELEMENTS and text.startswith(("http://", "https://")):
            builder.add_link(text)
    with keeping(builder, url):
        for piece in root.itertext("{*}*"):
            builder.add(piece)
    return builder.page(url)
