"""Formats that a person can read as they are, such as CSV and JSON: the text as it stands."""

from __future__ import annotations

from larmspider.extraction.charset import decode
from larmspider.extraction.documents.reading import DocumentBuilder, urls_in
from larmspider.extraction.page_builder import MAX_TEXT
from larmspider.items import Outcome, Page


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text, charset = decode(body, content_type)
    return text_page(text, charset, url, DocumentBuilder())


def text_page(text: str, charset: str | None, url: str, builder: DocumentBuilder) -> Page:
    """The Page of ``text``, with the URLs in it as links beside those that ``builder`` has."""
    known = {link[0] for link in builder.links}
    for target in urls_in(text):
        if target not in known:
            builder.add_link(target)
    builder.pieces.append(text[:MAX_TEXT])
    page = builder.page(url)
    page.charset = charset
    if len(text) > MAX_TEXT:
        page.unread = f"{Outcome.TOO_LONG}: text of the first {MAX_TEXT:,} characters"
    return page
