"""Which reader reads which media type, and which media type a body has.

    extractor_for("text/html")                                  # html.extract
    media_type("text/html", b"%PDF-1.7\n...")                   # "application/pdf"
    media_type("application/octet-stream", b"PK\x03\x04...")    # docx, by what lies in it

A new format is one module with an ``extract`` function and one line in FORMATS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from larmspider.items import Page

_HERE = "larmspider.extraction."
_APART = _HERE + "documents."
_OOXML = "application/vnd.openxmlformats-officedocument."
_ODF = "application/vnd.oasis.opendocument."

FORMATS: tuple[tuple[str, str, str], ...] = (
    # media type, extensions, module; what lies in documents/ is read in a process of its own
    ("text/html", "html htm", _HERE + "html"),
    ("application/xhtml+xml", "xhtml xht", _HERE + "html"),
    ("text/plain", "txt text log info", _HERE + "plain_text"),
    ("application/pdf", "pdf", _APART + "pdf"),
    ("application/x-pdf", "", _APART + "pdf"),
    (_OOXML + "wordprocessingml.document", "docx", _APART + "office"),
    (_OOXML + "wordprocessingml.template", "dotx", _APART + "office"),
    ("application/vnd.ms-word.document.macroenabled.12", "docm", _APART + "office"),
    (_OOXML + "presentationml.presentation", "pptx", _APART + "office"),
    (_OOXML + "presentationml.slideshow", "ppsx", _APART + "office"),
    ("application/vnd.ms-powerpoint.presentation.macroenabled.12", "pptm", _APART + "office"),
    (_ODF + "text", "odt", _APART + "office"),
    (_ODF + "text-template", "ott", _APART + "office"),
    (_ODF + "spreadsheet", "ods", _APART + "office"),
    (_ODF + "presentation", "odp", _APART + "office"),
    (_ODF + "graphics", "odg", _APART + "office"),
    (_OOXML + "spreadsheetml.sheet", "xlsx", _APART + "spreadsheet"),
    ("application/vnd.ms-excel", "xls", _APART + "spreadsheet"),
    ("application/vnd.ms-excel.sheet.macroenabled.12", "xlsm", _APART + "spreadsheet"),
    ("application/vnd.ms-excel.sheet.binary.macroenabled.12", "xlsb", _APART + "spreadsheet"),
    ("application/rtf", "rtf", _APART + "rtf"),
    ("text/rtf", "", _APART + "rtf"),
    ("application/epub+zip", "epub", _APART + "epub"),
    ("message/rfc822", "eml", _APART + "mail"),
    ("application/mbox", "mbox", _APART + "mail"),
    ("application/vnd.ms-outlook", "msg", _APART + "msg"),
    ("text/markdown", "md markdown", _APART + "markdown"),
    ("text/x-markdown", "", _APART + "markdown"),
    ("text/csv", "csv", _APART + "text"),
    ("text/tab-separated-values", "tsv", _APART + "text"),
    ("application/json", "json", _APART + "text"),
    ("application/xml", "xml", _APART + "xml"),
    ("text/xml", "", _APART + "xml"),
    ("application/rss+xml", "rss", _APART + "xml"),
    ("application/atom+xml", "atom", _APART + "xml"),
    ("application/zip", "zip", _APART + "archives"),
    ("application/x-zip-compressed", "", _APART + "archives"),
    ("application/x-tar", "tar", _APART + "archives"),
    ("application/gzip", "gz tgz", _APART + "archives"),
    ("application/x-gzip", "", _APART + "archives"),
    ("application/x-bzip2", "bz2", _APART + "archives"),
    ("application/x-xz", "xz", _APART + "archives"),
    # what the base install cannot read says so (docs/documents.md#second-reader)
    ("application/msword", "doc dot", _APART + "ole"),
    ("application/vnd.ms-powerpoint", "ppt pps", _APART + "ole"),
    ("application/x-ole-storage", "", _APART + "ole"),
)

_MODULES = {mime: module for mime, _, module in FORMATS}
_BY_EXTENSION = {name: mime for mime, names, _ in FORMATS for name in names.split()}

Extractor = Callable[[bytes, str, str | None], Page]
"""Makes a Page of a body, its URL and the whole Content-Type, None without one. Pure; those in
documents/ may raise Unread, others raise nothing."""
Members = Callable[[bytes, str, Any], Iterator[tuple[str, Any]]]
"""The documents inside of a body (documents/parts.py)."""


def extractor_for(mime: str) -> Extractor | None:
    """The extractor of ``mime``, in any case and with or without parameters; None without one."""
    extract: Extractor | None = _function(mime.partition(";")[0].strip().lower(), "extract")
    return extract


def members_of(mime: str) -> Members | None:
    """What finds the documents inside of one of type ``mime``; None where there are none."""
    members: Members | None = _function(mime, "members")
    return members


def is_read_apart(mime: str) -> bool:
    """Whether a document of this type is never read in the crawl's process."""
    return _MODULES.get(mime, "").startswith(_APART)


def is_readable(mime: str) -> bool:
    return mime in _MODULES


def announced_type(content_type: str, url: str) -> str:
    """The media type that the head of a response announces: by Content-Type or, where that says
    nothing, by the name."""
    mime = content_type.partition(";")[0].strip().lower()
    return mime if mime and mime not in _NO_TYPES else _named(url)


def is_document(content_type: str, url: str) -> bool:
    """Whether the head of a response announces a document and no page."""
    return is_read_apart(announced_type(content_type, url))


@cache
def _function(mime: str, name: str) -> Any:
    module = _MODULES.get(mime)
    return None if module is None else getattr(import_module(module), name, None)


# What a body is: by its first bytes, by Content-Type, by its name, in this order.

_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")
_DOWNLOADS = frozenset(
    f"{family}/{name}"
    for family in ("application", "binary")
    for name in ("octet-stream", "force-download", "x-download", "download")
)
"""They say that a browser is to save the body, and nothing about it."""
_NO_TYPES = _DOWNLOADS | {"unknown/unknown", "application/unknown", "*/*", "content/unknown"}
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
_ZIP, _OLE = "application/zip", "application/x-ole-storage"
_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"PK\x03\x04", _ZIP),
    (b"PK\x05\x06", _ZIP),  # an empty one
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _OLE),
    (b"{\\rtf", "application/rtf"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
)
_HEAD_BYTES = 1445
"""WHATWG MIME Sniffing 5.2, "resource header"."""
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_TAIL_BYTES = 1 << 17
"""Where a zip file lists its members, at its end."""
_IN_ZIP = (
    (b"word/", _OOXML + "wordprocessingml.document"),
    (b"ppt/", _OOXML + "presentationml.presentation"),
    (b"xl/workbook.bin", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    (b"xl/", _OOXML + "spreadsheetml.sheet"),
)
_IN_OLE = (
    ("__properties_version1.0", "application/vnd.ms-outlook"),
    ("PowerPoint Document", "application/vnd.ms-powerpoint"),
    ("WordDocument", "application/msword"),
    ("Workbook", "application/vnd.ms-excel"),
    ("Book\0\0", "application/vnd.ms-excel"),
)
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


def media_type(content_type: str, body: bytes, name: str = "") -> str:
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
    """
    mime = content_type.partition(";")[0].partition(",")[0].strip().lower()
    if mime in _READ_AS_TEXT:
        return _by_signature(body) or (_plain(name) if mime == "text/plain" else mime)
    said = bool(_TYPE.fullmatch(mime)) and mime not in _NO_TYPES
    if said and mime not in _MODULES:
        return mime
    found = _by_signature(body)
    if found is not None:
        generic = found in (_ZIP, _OLE)
        return mime if said and generic and is_read_apart(mime) else found
    head = body[:_HEAD_BYTES]
    if said:
        is_page = mime == "application/pdf" and _HTML.match(head.removeprefix(_MARKS[0]))
        return "text/html" if is_page else mime
    if mime in _DOWNLOADS and not _named(name):
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


def _named(name: str) -> str:
    """The media type that the extension of a URL or file name stands for; "" for none."""
    path = urlsplit(name).path if "://" in name else name
    return _BY_EXTENSION.get(path.rpartition("/")[2].rpartition(".")[2].lower(), "")


def _plain(name: str) -> str:
    """The type of a text."""
    named = _named(name)
    return named if named in _PLAIN_NAMES else "text/plain"


def _by_signature(body: bytes) -> str | None:
    if body.startswith(b"<"):
        return None
    for start, mime in _SIGNATURES:
        if body.startswith(start):
            return _in_zip(body) if mime is _ZIP else _in_ole(body) if mime is _OLE else mime
    return "application/x-tar" if body[257:262] == b"ustar" else None


def _in_zip(body: bytes) -> str:
    if (found := _MIMETYPE.match(body)) and (mime := found[1].decode()) in _MODULES:
        return mime
    tail = body[-_TAIL_BYTES:]
    if b"[Content_Types].xml" in tail or b"[Content_Types].xml" in body[:_TAIL_BYTES]:
        for name, mime in _IN_ZIP:
            if name in tail or name in body[:_TAIL_BYTES]:
                return mime
    return _ZIP


def _in_ole(body: bytes) -> str:
    return next((mime for name, mime in _IN_OLE if name.encode("utf-16-le") in body), _OLE)
