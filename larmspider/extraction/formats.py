"""Which extractor reads which media type: ``extractor_for("text/html")`` is html.extract.

A new format is one module with an ``extract`` function and one line here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from larmspider.extraction import html
from larmspider.extraction.charset import decode
from larmspider.extraction.page_builder import page_text
from larmspider.items import Page

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
"""WHATWG MIME Sniffing 5.2, "resource header"."""
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def media_type(content_type: str, body: bytes) -> str:
    """The media type of ``body`` in lower case, without parameters.

        media_type("", b"<!doctype html>...")          # "text/html"
        media_type("text/html", b"%PDF-1.7\n...")      # "application/pdf"

    ``content_type`` is the HTTP header's value, "" without one; of several types the first counts.
    A type is guessed where there is none or an impossible one, and a text type that begins like a
    well-known binary format is that format, lest pictures end in the index. As in browsers (WHATWG
    MIME Sniffing 7) text/plain is not read as HTML; any other type is believed.
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


def extract_plain_text(body: bytes, url: str, content_type: str | None) -> Page:
    """The body is the text; the Page has no title and no links."""
    text, charset = decode(body, content_type)
    return Page(url, body=body, charset=charset, text=page_text([text]))


Extractor = Callable[[bytes, str, str | None], Page]
"""Makes a Page of a body, its URL and the whole Content-Type, None without one; pure, never
raises."""

EXTRACTORS: Mapping[str, Extractor] = MappingProxyType(
    {
        "text/html": html.extract,
        "application/xhtml+xml": html.extract,
        "text/plain": extract_plain_text,
    }
)


def extractor_for(mime: str) -> Extractor | None:
    """The extractor of ``mime``, in any case and with or without parameters; None without one."""
    return EXTRACTORS.get(mime.partition(";")[0].strip().lower())
