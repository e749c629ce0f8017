"""Plain text: the body is the text, its first line the title. The Page has no links."""

from __future__ import annotations

from larmspider.extraction.charset import decode
from larmspider.extraction.page_builder import MAX_TITLE, one_line, page_text
from larmspider.items import Page

_LINE = 200


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text, charset = decode(body, content_type)
    page = Page(url, body=body, charset=charset, text=page_text([text]))
    page.title = first_line(text)
    return page


def first_line(text: str) -> str:
    """The first line with a letter or digit; "" if it is too long for a title."""
    for line in text[: 10 * _LINE].splitlines():
        if any(map(str.isalnum, line)):
            return one_line(line, MAX_TITLE) if len(line) <= _LINE else ""
    return ""
