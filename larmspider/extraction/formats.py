"""Which reader reads which media type, and which media type a body has.

    extractor_for("text/html")                                  # html.extract
    media_type("text/html", b"%PDF-1.7\n...")                   # "application/pdf"
    media_type("application/octet-stream", b"PK\x03\x04...")    # docx, by what lies in it

The crawl's own process asks `media_type`, which looks at both ends of a body and opens nothing.
Where documents are read documents/containers.py is asked, which opens OLE files.

A new format is one module with an ``extract`` function and one line in urls/media_types.py.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection, Iterator
from functools import cache
from importlib import import_module
from typing import Any

from larmspider.items import Page
from larmspider.urls.media_types import (
    DOWNLOADS,
    NO_TYPES,
    OOXML,
    is_read_apart,
    reader_of,
    type_by_name,
)

Extractor = Callable[[bytes, str, str | None], Page]
"""Makes a Page of a body, its URL and the whole Content-Type, None without one. Pure; those in
documents/ may raise Unread, others raise nothing."""
ColumnExtractor = Callable[[bytes, str, str | None], tuple[Page, Any]]
"""The same, with the links as columns (page_builder.py), for another process."""
Members = Callable[[bytes, str, Any], Iterator[tuple[str, Any]]]
"""The documents inside of a body (documents/parts.py)."""


def extractor_for(mime: str) -> Extractor | None:
    """The extractor of ``mime``, in any case and with or without parameters; None without one."""
    extract: Extractor | None = _function(mime.partition(";")[0].strip().lower(), "extract")
    return extract


def column_extractor_for(mime: str) -> ColumnExtractor | None:
    """The extractor of ``mime`` that leaves links as columns; None without one."""
    extract: ColumnExtractor | None = _function(mime, "extract_columns")
    return extract


def members_of(mime: str) -> Members | None:
    """What finds the documents inside of one of type ``mime``; None where there are none."""
    members: Members | None = _function(mime, "members")
    return members


@cache
def _function(mime: str, name: str) -> Any:
    module = reader_of(mime)
    return getattr(import_module(module), name, None) if module else None


# What a body is: by its first bytes, by Content-Type, by its name, in this order.

_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")
_READ_AS_TEXT = frozenset(("text/html", "application/xhtml+xml", "text/plain"))
_PLAIN_NAMES = frozenset(
    {"text/markdown", "text/csv", "text/tab-separated-values", "message/rfc822"}
    | {"application/json", "application/mbox", "application/xml"}
)
"""What servers that know no better send as text/plain."""
_HTML = re.compile(
    rb"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body"
    rb"|br|p|!--|meta|link|frameset|ul|ol|pre)(?:[\t\n\f\r />]|-)",
    re.IGNORECASE,
)
ZIP, OLE = "application/zip", "application/x-ole-storage"
"""Containers: what one is may depend on what it holds."""
_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),  # an empty one
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"{\\rtf", "application/rtf"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
)
_CONTAINERS = tuple(start for start, mime in _SIGNATURES if mime in (ZIP, OLE))
_EXCEL = "application/vnd.ms-excel"
_OFTEN_PAGES = frozenset(("application/pdf", _EXCEL, "application/msword"))
"""What is said of a login form in place of a PDF, and of tables that are HTML."""
_OFTEN_TEXTS = {_EXCEL: "text/csv", "application/msword": "text/plain"}
"""What exports of tables and texts are called, so that a browser opens Office."""
_HEAD_BYTES = 1445
"""WHATWG MIME Sniffing 5.2, "resource header"."""
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
END_BYTES = 1 << 16
"""`media_type` looks at 64 KB at each end of a zip or OLE file."""
MAX_NAMES = 1_000
"""`media_type` looks at the names of 1,000 members of a zip file."""
_LENGTHS = struct.Struct("<HHH")
_IN_ZIP = (
    (b"word/", OOXML + "wordprocessingml.document"),
    (b"ppt/", OOXML + "presentationml.presentation"),
    (b"xl/workbook.bin", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    (b"xl/", OOXML + "spreadsheetml.sheet"),
    (b"visio/", "application/vnd.ms-visio.drawing"),
)
OLE_NAMES = {
    "__properties_version1.0": "application/vnd.ms-outlook",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
    "WordDocument": "application/msword",
    "Workbook": _EXCEL,
    "Book": _EXCEL,
    "VisioDocument": "application/vnd.visio",
}
"""Names in the top folder of an OLE file, and the types that they prove; the first match counts."""
_MIMETYPE = re.compile(
    rb"PK\x03\x04.{26}mimetype(application/[a-z.+-]+)(?=PK|[^a-z.+-])", re.DOTALL
)
_INFO = re.compile(rb"\AThis is [^\n]{1,200}\bmakeinfo\b|\x1f\n(?:File|Indirect|Tag Table): ?")
"""GNU info: text, with a control character before each node."""
_MAIL = re.compile(
    rb"(?:(?:Return-Path|Received|From|To|Date|Subject|Message-ID|MIME-Version|Delivered-To)"
    rb":[^\n]*\n(?:[ \t][^\n]*\n)*){2}",
    re.IGNORECASE,
)


def media_type(
    content_type: str, body: bytes, name: str = "", look: Callable[[bytes], str] | None = None
) -> str:
    """The media type of ``body`` in lower case, without parameters.

        media_type("", b"<!doctype html>...")          # "text/html"
        media_type("text/html", b"%PDF-1.7\n...")      # "application/pdf"
        media_type("", b"a;b\n", "/lists/all.csv")     # "text/csv"

    ``content_type`` is the HTTP header's value, "" without one; of several types the first counts.
    ``name`` is a URL or file name, "" for none. What begins like a well-known binary format is that
    format, whatever a server says of a page or a document, lest pictures end in the index; a PDF
    that begins as HTML does is a page (of a login, mostly). Where nothing is said, or what says
    nothing, the name counts if the content may be that. As in browsers (WHATWG MIME Sniffing 7)
    text/plain is not read as HTML; any other type is believed.

    ``look`` says of a zip or OLE file which type it is. None: type_outside, which opens nothing and
    may be wrong; documents/containers.py has one that opens them.
    """
    mime = content_type.partition(";")[0].partition(",")[0].strip().lower()
    if mime in _READ_AS_TEXT:
        return _by_signature(body, look) or (_plain(name) if mime == "text/plain" else mime)
    said = bool(_TYPE.fullmatch(mime)) and mime not in NO_TYPES
    if said and not reader_of(mime):
        return mime
    found = _by_signature(body, look)
    if found is not None:
        generic = found in (ZIP, OLE)
        return mime if said and generic and is_read_apart(mime) else found
    head = body[:_HEAD_BYTES]
    if not body and not said and type_by_name(name):
        return type_by_name(name)
    if said:
        if mime in _OFTEN_PAGES and _HTML.match(head.removeprefix(_MARKS[0])):
            return "text/html"
        return _text_for_office(head, mime) if mime in _OFTEN_TEXTS and head else mime
    if mime in DOWNLOADS and not type_by_name(name):
        return mime
    if _HTML.match(head.removeprefix(_MARKS[0])):
        return "text/html"
    if head.startswith(_MARKS) or not _BINARY.search(head):
        named = _plain(name)
        return "message/rfc822" if named == "text/plain" and _MAIL.match(head) else named
    if _INFO.search(head):
        return "text/plain"
    if b"%PDF-" in body[:1024]:
        return "application/pdf"
    return "application/octet-stream"


def _plain(name: str) -> str:
    """The type of a text."""
    named = type_by_name(name)
    return named if named in _PLAIN_NAMES else "text/plain"


def _text_for_office(head: bytes, said: str) -> str:
    """What a text is that is sent as what Office writes; ``said`` for what is no text."""
    is_wide = head.startswith(_MARKS[1:])
    if not is_wide and _BINARY.search(head):
        return said
    text = head.removeprefix(_MARKS[0]).lstrip()
    if text.startswith(b"<?xml"):
        return "application/xml"
    has_tabs = said == _EXCEL and (b"\t\0" if is_wide else b"\t") in head.partition(b"\n")[0]
    return "text/tab-separated-values" if has_tabs else _OFTEN_TEXTS[said]


def _by_signature(body: bytes, look: Callable[[bytes], str] | None) -> str | None:
    if body.startswith(b"<"):
        return None
    for start, mime in _SIGNATURES:
        if body.startswith(start):
            return (look or type_outside)(body) if mime in (ZIP, OLE) else mime
    return "application/x-tar" if body[257:262] == b"ustar" else None


def is_container(body: bytes) -> bool:
    """Whether the content decides the media type."""
    return body.startswith(_CONTAINERS)


def type_outside(body: bytes) -> str:
    """Guess the type of a zip or OLE file by `END_BYTES` at each end and `MAX_NAMES` names."""
    if body.startswith(b"PK"):
        return type_in_zip(body, body[-END_BYTES:], END_BYTES, MAX_NAMES)
    return type_of_ole({name for name in OLE_NAMES if _is_near_an_end(f"{name}\0\0", body)})


def _is_near_an_end(name: str, body: bytes) -> bool:
    wide = name.encode("utf-16-le")
    return body.find(wide, 0, END_BYTES) >= 0 or body.find(wide, max(0, len(body) - END_BYTES)) >= 0


def type_of_ole(names: Collection[str]) -> str:
    """The type that names in the top folder prove; ``application/x-ole-storage`` if none does."""
    return next((mime for name, mime in OLE_NAMES.items() if name in names), OLE)


def type_in_zip(body: bytes, tail: bytes, end_bytes: int, max_names: int) -> str:
    """The type that the names of members prove; ``application/zip`` if none does. The names are the
    first ``max_names`` of the list that begins in ``tail``, the file's last bytes. If the list is
    not there, or longer, ``end_bytes`` at each end are searched for them."""
    if (found := _MIMETYPE.match(body, 0, end_bytes)) and reader_of(mime := found[1].decode()):
        return mime
    names = _names_in_zip(tail, max_names)
    if b"[Content_Types].xml" in names:
        for start, mime in _IN_ZIP:
            if any(name.startswith(start) for name in names):
                return mime
    if 0 < len(names) < max_names:
        return ZIP
    ends = body[:end_bytes], body[-end_bytes:]  # its list is cut off, too long, or of another kind
    if any(b"[Content_Types].xml" in end for end in ends):
        for start, mime in _IN_ZIP:
            if any(start in end for end in ends):
                return mime
    return ZIP


def _names_in_zip(tail: bytes, most: int) -> list[bytes]:
    """The first names of the list at the end of a zip file; none where it does not begin in
    ``tail``, the file's last bytes."""
    end = tail.rfind(b"PK\x05\x06")
    at = end - int.from_bytes(tail[end + 12 : end + 16], "little")
    names: list[bytes] = []
    while 0 <= at <= end - 46 and tail.startswith(b"PK\x01\x02", at) and len(names) < most:
        name, extra, comment = _LENGTHS.unpack_from(tail, at + 28)
        names.append(tail[at + 46 : at + 46 + name])
        at += 46 + name + extra + comment
    return names
