"""Which extractor reads which media type: ``extractor_for("text/html")`` is html.extract.

A new format is one module with an ``extract`` function and one line here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from larmspider.extraction import html
from larmspider.extraction.charset import decode
from larmspider.extraction.page_builder import page_text
from larmspider.items import Page

# What a body is, where its Content-Type does not say or cannot be right.
#
# A picture that is sent as text/html would end in the index as garbage; a page without any type
# would lose its links. So a type is guessed where there is none, or none that can be, and
# text/html
# that begins like a well-known binary format is that format::
#
#     media_type("", b"<!doctype html>...")          # "text/html"
#     media_type("text/html", b"%PDF-1.7\n...")      # "application/pdf"
#
# As browsers do (WHATWG MIME Sniffing Standard, 7), text/plain stays text, even if it looks like
# HTML: it is the source of a page on purpose. A type that names something else is believed.

_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")
_NO_TYPES = frozenset(("unknown/unknown", "application/unknown", "*/*", "content/unknown"))
_READ_AS_TEXT = frozenset(("text/html", "application/xhtml+xml", "text/plain"))
_HTML = re.compile(
    rb"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body"
    rb"|br|p|!--|meta|link|frameset|ul|ol|pre)(?:[\t\n\f\r />]|-)",
    re.IGNORECASE,
)
_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
)
_HEAD_BYTES = 1445
"""How much is looked at, as in the standard (5.2, "resource header")."""
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def media_type(content_type: str, body: bytes) -> str:
    """The media type of ``body`` in lower case, without parameters.

    ``content_type`` is the HTTP header's value, "" without one; of several types the first counts.
    """
    mime = content_type.partition(";")[0].partition(",")[0].strip().lower()
    if _TYPE.fullmatch(mime) and mime not in _NO_TYPES:
        return (_by_signature(body) or mime) if mime in _READ_AS_TEXT else mime
    if found := _by_signature(body):
        return found
    head = body[:_HEAD_BYTES]
    if _HTML.match(head.removeprefix(_MARKS[0])):
        return "text/html"
    if head.startswith(_MARKS) or not _BINARY.search(head):
        return "text/plain"
    return "application/octet-stream"


def _by_signature(body: bytes) -> str | None:
    return next((mime for start, mime in _SIGNATURES if body.startswith(start)), None)


# Plain text: the body is the text; it has no title and no links.
#
# A README of ``text/plain`` is found by its words and named by its URL.


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """The Page that ``body``, fetched from ``url``, makes; never raises, whatever the bytes."""
    text, charset = decode(body, content_type)
    return Page(url, body=body, charset=charset, text=page_text([text]))


class Extractor(Protocol):
    """Makes a Page of a response body; pure, never raises for any body."""

    def __call__(self, body: bytes, url: str, content_type: str | None) -> Page:
        """``content_type`` is the HTTP header's whole value, None if there was none."""


EXTRACTORS: Mapping[str, Extractor] = MappingProxyType(
    {
        "text/html": html.extract,
        "application/xhtml+xml": html.extract,
        "text/plain": extract,
    }
)
"""Extractor by media type, lower case, without parameters."""


def extractor_for(mime: str) -> Extractor | None:
    """The extractor of ``mime``, whose case and parameters do not matter; None if there is none."""
    return EXTRACTORS.get(mime.partition(";")[0].strip().lower())
