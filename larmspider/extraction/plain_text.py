"""Plain text: the body is the text; it has no title and no links.

A README of ``text/plain`` is found by its words and named by its URL.
"""

from __future__ import annotations

from larmspider.extraction.charset import decode
from larmspider.extraction.text import page_text
from larmspider.items import Page


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """The Page that ``body``, fetched from ``url``, makes; never raises, whatever the bytes."""
    text, charset = decode(body, content_type)
    return Page(url, body=body, charset=charset, text=page_text([text]))
