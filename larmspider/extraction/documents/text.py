"""Formats that a person can read as they are, such as JSON: the text as it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from larmspider.extraction.charset import decode
from larmspider.extraction.documents.reading import DocumentBuilder, urls_in, urls_in_value
from larmspider.extraction.page_builder import MAX_TEXT
from larmspider.items import Outcome, Page

_JSON_STRING = re.compile(r'"([^"\\\n]*+(?:\\.[^"\\\n]*+)*+)"?')
"""Also one that is not closed: linear, and without memory for each character."""
_STARTS_OF_JSON = ("{", "[", '"')


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    text, charset = decode(body, content_type)
    is_json = text.lstrip("\ufeff \t\r\n").startswith(_STARTS_OF_JSON)
    urls = _urls_in_json(text) if is_json else urls_in(text)
    return text_page(text, charset, url, DocumentBuilder(), urls=urls)


def _urls_in_json(text: str) -> Iterator[str]:
    """URLs in the strings, without their escapes (RFC 8259 7), and in text beside these."""
    for found in _JSON_STRING.finditer(text):
        if "://" in found[1] or ":\\/" in found[1]:
            try:
                yield from urls_in_value(json.loads(found[0], strict=False))
            except ValueError:
                yield from urls_in(found[1])
    yield from urls_in(_JSON_STRING.sub(" ", text))


def text_page(
    text: str, charset: str | None, url: str, builder: DocumentBuilder, urls: Iterable[str]
) -> Page:
    """The Page of ``text``, with ``urls`` as links beside those that ``builder`` has, each once."""
    known = {link[0] for link in builder.links}
    for target in urls:
        if target not in known:
            known.add(target)
            builder.add_link(target)
    builder.pieces.append(text[:MAX_TEXT])
    page = builder.page(url)
    page.charset = charset
    if len(text) > MAX_TEXT:
        page.unread = f"{Outcome.TOO_LONG}: text of the first {MAX_TEXT:,} characters"
    return page
