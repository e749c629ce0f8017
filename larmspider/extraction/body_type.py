"""The media type of a body: one function for HTTP, file://, imports, archives and attachments.

    media_type("application/vnd.ms-word", b"PK...", "http://h/a.docx")     # docx, by its content
    media_type("application/octet-stream", b"[server]\\nport=1\\n")          # "text/plain"
    media_type("video/mp4", b"\\0\\0\\0\\x18ftypmp42...")                       # "video/mp4"

The order: content that cannot be mistaken; a declared type that has a reader; the start of HTML;
the file name; text, if it is text. An unknown declared type hides nothing. Pictures,
sound, films, fonts and programs stay closed (``is_closed`` of urls/media_types.py).

The crawl's own thread looks at 64 KB at each end and at 1,000 names, and opens nothing. Where
documents are read, documents/containers.py opens zip and OLE files for the same function.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Collection
from typing import NamedTuple

from larmspider.extraction.texts.charset import wide_without_mark
from larmspider.extraction.xml_root import root_of
from larmspider.urls.media_types import (
    DOWNLOADS,
    FLAT_ODF,
    NO_TYPES,
    ODF,
    OOXML,
    TAGGED,
    WRAPPED,
    is_closed,
    module_of,
    reader_of,
    type_by_name,
)

ZIP, OLE, XML = "application/zip", "application/x-ole-storage", "application/xml"
XHTML, MAIL, MBOX = "application/xhtml+xml", "message/rfc822", "application/mbox"
UNKNOWN, _CMS = "application/octet-stream", "application/pkcs7-mime"
END_BYTES = 1 << 16
"""`media_type` looks at 64 KB at each end."""
MAX_NAMES = 1_000
"""`media_type` looks at the names of 1,000 members of a zip file."""

_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_WIDEST = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32"}
_SPACE = b"\t\n\f\r "
_HTML = re.compile(
    rb"[\t\n\f\r ]*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body"
    rb"|br|p|!--|meta|link|frameset|ul|ol|pre)(?:[\t\n\f\r />]|-)",
    re.IGNORECASE,
)
_ORDINARY_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?[\t\n\f\r ]{0,200}<[^?]")
_WHOLE_PAGE = re.compile(rb"[\t\n\f\r ]*<(?:!doctype html|html)[\t\n\f\r />]", re.IGNORECASE)
"""No picture, font, style sheet or program begins so."""
_HEAD_BYTES = 1_445
"""WHATWG MIME Sniffing 5.2, "resource header"."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"LZIP\x01", "application/x-lzip"),
    (b"\x04\x22\x4d\x18", "application/x-lz4"),
    (b"\x1f\x9d", "application/x-compress"),
    (b"]\0\0\x80\0", "application/x-lzma"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"\xffWPC", "application/vnd.wordperfect"),
    (b"\x78\x9f\x3e\x22", "application/ms-tnef"),
    (b"ITSF\x03\0", "application/vnd.ms-htmlhelp"),
    (b"\xe4\x52\x5c\x7b\x8c\xd8\xa7\x4d\xae\xb1\x53\x78\xd0\x29\x96\xd3", "application/onenote"),
    (b"-----BEGIN PKCS7-----", _CMS),
    (b"-----BEGIN CMS-----", _CMS),
    (b"AT&TFORM", "image/vnd.djvu"),
    (b"\x09\x00\x04\x00", "application/vnd.ms-excel"),  # BOF of Excel 2, 3 and 4 (MS-XLS 2.4.21)
    (b"\x09\x02\x06\x00", "application/vnd.ms-excel"),
    (b"\x09\x04\x06\x00", "application/vnd.ms-excel"),
    (b"wOFF\0\1\0\0", "font/woff"),
    (b"wOFFOTTO", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO\0", "font/otf"),
    (b"\0\1\0\0\0", "font/ttf"),
    (b"ttcf\0", "font/collection"),
    (b"\x7fELF", "application/x-executable"),
    (b"\xca\xfe\xba\xbe\0", "application/java-vm"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\0asm\1\0", "application/wasm"),
    (b"\xed\xab\xee\xdb", "application/x-rpm"),
    (b"!BDN", "application/vnd.ms-outlook-pst"),
    (b"\0\1\0\0Standard ", "application/x-msaccess"),
    (b"\x31\xbe\0\0", "application/x-mswrite"),  # Word for DOS, too
    (b"\x32\xbe\0\0", "application/x-mswrite"),
    (b"\x06\x06\xed\xf5\xd8\x1d\x46\xe5", "application/x-indesign"),
    (b"HWP Document File", "application/x-hwp"),
    (b"\0\0\2\0\4\4", "application/vnd.lotus-1-2-3"),
    (b"\0\0\2\0\6\4", "application/vnd.lotus-1-2-3"),
    (b"\0\0\x1a\0", "application/vnd.lotus-1-2-3"),
    (b"ITOLITLS", "application/x-ms-reader"),
    (b"!<arch>\ndebian-binary", "application/vnd.debian.binary-package"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"OggS\0", "audio/ogg"),
    (b"fLaC\0", "audio/flac"),
    (b"ID3\2", "audio/mpeg"),
    (b"ID3\3", "audio/mpeg"),
    (b"ID3\4", "audio/mpeg"),
    (b"\x1a\x45\xdf\xa3", "video/x-matroska"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c", "audio/x-ms-wma"),
    (b"\1\1\1\1\n", MBOX),
    (b"\1\1\1\1\r\n", MBOX),
    (b"BABYL OPTIONS:", MBOX),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"8BPS\0\1", "image/vnd.adobe.photoshop"),
    (b"MSCF\0\0\0\0", "application/vnd.ms-cab-compressed"),
)
"""Bytes that no text begins with."""
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/x-wav", b"AVI ": "video/x-msvideo"}
_FORM = {b"AIFF": "audio/x-aiff", b"AIFC": "audio/x-aiff"}
_MP3 = re.compile(rb"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]")
_ID3 = slice(-128, -125)  # tags of 1996 follow the sound
_SKIPPED = re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
"""A frame that Zstandard passes over (RFC 8878 3.1.2)."""
_BZIP2 = re.compile(rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)")
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK00PK\x03\x04", b"PK\x07\x08PK\x03\x04")
_OLE_START = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_TAR = re.compile(rb"ustar(?:\0|  \0| 00)")
"""At 257, where a text in Spanish may have ``gustar``."""
_OLD_TAR = re.compile(rb"[^\0].{98}\0[ 0-7]{6,7}[ \0].{40} *([0-7]{4,7})[ \0]+[\x000-7]", re.DOTALL)
"""Name, mode, then checksum and kind of a member."""
_CMS_BEGINS = re.compile(
    rb"\x30(?:[\x00-\x80]|\x81.|\x82..|\x83.{3}|\x84.{4})"
    rb"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07[\x02\x03]",
    re.DOTALL,
)
"""Signed or encrypted data (RFC 5652)."""
_CONTENT_LINES = re.compile(rb"BEGIN:(VCALENDAR|VCARD)[ \t]*\r?\n", re.IGNORECASE)
_RTF = re.compile(rb"\{\s*\\rtf\d?(?![a-z])")

_PDF_AT = re.compile(rb"%PDF-\d\.\d")
_PDF_JUNK = 1_024
"""Bytes before ``%PDF-`` that readers pass over (ISO 32000-1 annex H, implementation note 13)."""
_BEHIND_JUNK = re.compile(
    rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1|\x1f\x8b\x08[\0-\x1f]|BZh[1-9]1AY&SY|7z\xbc\xaf\x27\x1c"
    rb"|\xfd7zXZ\0|Rar!\x1a\x07|\x28\xb5\x2f\xfd"
)
"""Starts of files of Office and of archives that no text has."""
_PDF_BEGINS = re.compile(
    rb"%PDF-\d\.\d[^\r\n]{0,80}+[\r\n]\s*+(?:%[^\r\n]{0,80}+[\r\n]\s*+)?"
    rb"\d{1,10}+\s{1,9}+\d{1,10}+\s{1,9}+obj"
)
_PDF_ENDS = re.compile(rb"startxref\s+\d+\s+%%EOF[\s\0]*\Z")

_BY_READER = {"office": ZIP, "epub": ZIP, "ole": OLE, "msg": OLE}
"""The container that a reader of this name expects; a spreadsheet may be either."""
_NOT_READ = dict.fromkeys(WRAPPED, ZIP)
_OFFICE = frozenset(("office", "spreadsheet", "ole", "rtf"))
"""Readers of the types of Office. Exports of tables and texts also have these types, because a
browser then opens Office."""
_SIGNED = _OFFICE | {"archives", "epub", "msg", "pdf", "sevenzip", "tnef", "unknown"}
"""Readers of formats that are not text: a text under their type is something else."""
TEXTUAL = frozenset(
    ("text", "delimited", "markdown", "xml", "mail", "html", "xhtml", "plain_text", "content_lines")
)
"""Readers of formats that are text without a signature: there the name of the file counts."""
_EXCEL = "application/vnd.ms-excel"
PLAIN_NAMES = frozenset(
    {"text/markdown", "text/csv", "text/tab-separated-values", MAIL, "application/json", MBOX, XML}
    | {"text/calendar", "text/x-vcalendar", "text/vcard"}
)
"""Types that servers send as text/plain if they do not know them."""

_INFO = re.compile(rb"\AThis is [^\n]{1,200}\bmakeinfo\b|\x1f\n(?:File|Indirect|Tag Table): ?")
"""GNU info: text, with a control character before each node."""
_OVERSTRUCK = re.compile(rb"[^\x00-\x1f]\x08")
"""Bold and underlined letters of a manual page."""
_MAIL = re.compile(
    rb"(?:(?:Return-Path|Received|From|To|Date|Subject|Message-ID|MIME-Version|Delivered-To)"
    rb":[^\n]*\n(?:[ \t][^\n]*\n)*){2}",
    re.IGNORECASE,
)
_HEADERS = re.compile(rb"(?:[!-9;-~]{1,100}[ \t]*:[^\n]*\n(?:[ \t]+\S[^\n]*\n)*)+")
_MIME_VERSION = re.compile(rb"^MIME-Version[ \t]*:", re.IGNORECASE | re.MULTILINE)
_MBOX = re.compile(rb"From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [^\n]{10,60}\r?\n[!-9;-~]+:")
_JSON = re.compile(rb'[\xef\xbb\xbf\s]*+(?:\[\s*+){0,9}\{\s*+"(?:[^"\\\n]|\\.){0,200}+"\s*+:')
"""The first member of an object, where no name says what the text is."""
_UUENCODED = re.compile(rb"begin [0-7]{3,4} [^\r\n]{1,255}\r?\n[!-M][ -`]{4,80}\r?\n")
_MAIL_HEAD_BYTES = 16_384
_TEXT_BYTES = bytes(byte for byte in range(256) if byte >= 32 or byte in b"\t\n\v\f\r\x1b")
_CONTROLS = re.compile("[\0-\x08\x0e-\x1a]")
_WORDS = 8  # bytes of a text with stretches of zeros, at least
_GAP = b"\0" * 16
_GAPS = re.compile(rb"\0{16,}")
TERMINAL_CODES = (
    r"\x1b(?:\[[0-?]{0,99}[ -/]{0,9}[@-~]|\][^\x07\x1b\n]{0,999}(?:\x07|\x1b\\)|[()][0-9A-Z])"
    r"|[\x0e\x0f]"
)
"""Colours, titles and character sets in logs of terminals (ECMA-48 5.4)."""
_TERMINAL = re.compile(TERMINAL_CODES.encode())
_MARKS_IN_TEXT = re.compile(rb"([\0-\x08\x10-\x1a\x1c-\x1f])\1*")
_TWO_MARKS = re.compile(rb"([\0-\x08\x10-\x1a\x1c-\x1f])(?!\1)[\0-\x08\x10-\x1a\x1c-\x1f]")
"""Two different control characters side by side are numbers of a program."""
_LETTERS = 6
"""A text with marks has one mark in six bytes at most: FIX, HL7, lists that end with zeros."""
_FEW, _SOME = 200, 50
"""A text has one control character in 200 bytes at most, and one in 50 beyond its beginning."""


class _Found(NamedTuple):
    """The type that the content shows. ``is_sure`` is False if another type of the same
    container may be in there. ``start``: where it begins, behind a warning of PHP."""

    mime: str = ""
    is_sure: bool = True
    start: int = 0


_NOTHING, _PDF = _Found(), _Found("application/pdf")
Look = Callable[[bytes], str]
"""Names the type of a zip or OLE file, "" if it cannot tell."""


def media_type(content_type: str, body: bytes, name: str = "", look: Look | None = None) -> str:
    """The media type of ``body`` in lower case, without parameters.

        media_type("", b"<!doctype html>...")          # "text/html"
        media_type("text/html", b"%PDF-1.7\\n...")      # "application/pdf"
        media_type("", b"a;b\\n", "/lists/all.csv")     # "text/csv"

    ``content_type`` is the header's value, "" without a header; the first of several types counts.
    ``name`` is a URL or file name, "" for none. ``look``: `type_outside` unless the process may
    open files. As in browsers (WHATWG MIME Sniffing 7) text/plain is not read as HTML.
    """
    mime = declared_type(content_type)
    if mime == "text/html" and _ORDINARY_PAGE.match(body) and not _has_document(body):
        return mime  # in 1 us: this is nearly every body of most crawls
    said = bool(_TYPE.fullmatch(mime)) and mime not in NO_TYPES
    found = _found(body, look or type_outside)
    if found.mime == MAIL and said and _is_head_twice(mime, body):
        found = _NOTHING
    if found.mime and (decided := _decided(mime, found, name, said=said)):
        return decided
    if said and is_closed(mime):
        return "text/html" if _WHOLE_PAGE.match(_plain_start(body)) else mime
    if said and reader_of(mime):
        return _believed(mime, body, name)
    return _unsaid(mime, body, name, said=said)


def _has_document(body: bytes) -> bool:
    """Whether a document may follow a warning of PHP. The warning came before the header that
    says what it is, so PHP has sent it as a page."""
    head = body[:_PDF_JUNK]
    return b"%PDF-" in head or _ZIP_STARTS[0] in head or bool(head.translate(None, _TEXT_BYTES))


def without_junk(body: bytes) -> bytes:
    """``body`` from the start of its archive or OLE file on, if a warning of PHP precedes it. PDF
    and zip files are read with the warning."""
    return body[_found(body, lambda _: "").start :]


def declared_type(content_type: str) -> str:
    """The first type of a Content-Type header in lower case, without parameters."""
    return content_type.partition(";")[0].partition(",")[0].strip(" \t\"'").lower()


def _is_head_twice(mime: str, body: bytes) -> bool:
    """Whether a page, style sheet or script begins with HTTP headers of its own, and therefore is
    not a multipart mail."""
    is_other = is_closed(mime) or module_of(mime) in ("html", "xhtml")
    return is_other and b"multipart/" not in body[:_MAIL_HEAD_BYTES].lower()


def _decided(mime: str, found: _Found, name: str, *, said: bool) -> str:
    """Weigh known content against the declared type; "" leaves the decision to the latter."""
    kind = found.mime
    if kind in (ZIP, OLE):
        return _container(mime, found, name, said=said)
    if kind in (XML, XHTML):
        return _markup(mime, found, name, said=said)
    if not reader_of(kind) or kind == _CMS:  # a picture, a program, a signature
        is_better = kind in TAGGED and mime not in TAGGED
        return mime if said and not reader_of(mime) and not is_better else kind
    return kind


def _container(mime: str, found: _Found, name: str, *, said: bool) -> str:
    """The type of a zip or OLE file that looked like none of the known documents."""
    if said and is_closed(mime):
        return mime
    if said and reader_of(mime) and module_of(mime) != "archives":
        return mime if not found.is_sure and _holds(mime, found.mime) else found.mime
    named = type_by_name(name)
    if not found.is_sure and named and _holds(named, found.mime):
        return named
    return found.mime


def _holds(mime: str, container: str) -> bool:
    module = module_of(mime)
    expected = _NOT_READ.get(mime) or _BY_READER.get(module)
    return module == "spreadsheet" or expected == container


def _markup(mime: str, found: _Found, name: str, *, said: bool) -> str:
    """The type of XML with a root element that decides little, and of XHTML."""
    kind = found.mime
    if mime in DOWNLOADS and kind == XHTML and not type_by_name(name):
        return mime
    if not said:
        return kind
    if is_closed(mime):
        return ""
    if module_of(mime) == "xml":
        return kind if kind == XHTML else mime
    is_text = module_of(mime) in ("html", "xhtml", "plain_text")
    return "" if is_text and (kind == XHTML or not found.is_sure) else kind


def is_signed(mime: str) -> bool:
    """Whether documents of a type begin with a signature, and are not text."""
    return module_of(mime) in _SIGNED


def _believed(mime: str, body: bytes, name: str) -> str:
    """A declared type that has a reader, of a body without a signature."""
    if mime == "text/plain":
        return _plain(name, body)
    module = module_of(mime)
    if body and module == "xml" and not _begins_as_xml(body):
        return _text("" if module_of(type_by_name(name)) == module else name, body)
    if not body or module not in _SIGNED:
        return mime
    if _HTML.match(_plain_start(body)):
        return "text/html"
    if not is_text(body):
        return mime
    if module == "spreadsheet":
        return _table(body)
    if module in _OFFICE:
        return "text/plain"
    return _text(_without_packing(name), body)


def _unsaid(mime: str, body: bytes, name: str, *, said: bool) -> str:
    """The type without a declared one, or with an unknown one."""
    named = type_by_name(name)
    if not body:
        return named or (mime if said else "text/plain")
    if _HTML.match(_plain_start(body)):
        return mime if mime in DOWNLOADS and not named else "text/html"
    if is_text(body):
        return _text(name, body)
    if named and module_of(named) not in TEXTUAL and not is_closed(named):
        return named
    return mime if said else UNKNOWN


def _text(name: str, body: bytes) -> str:
    """The type of a text, by its name."""
    named = type_by_name(name)
    if module_of(named) == "spreadsheet":
        return _table(body)
    if named and named != "text/plain" and module_of(named) in TEXTUAL:
        return named
    if _MBOX.match(body, 0, _MAIL_HEAD_BYTES):
        return MBOX
    if not named and _JSON.match(body, 0, _HEAD_BYTES):
        return "application/json"
    is_mail = _MAIL.match(body, 0, _MAIL_HEAD_BYTES) or _UUENCODED.match(body)
    return MAIL if is_mail else "text/plain"


def _is_padded_text(head: bytes, tail: bytes) -> bool:
    """Whether a text has stretches of zeros: a log that was emptied while it was written, that a
    full disk cut off, or that lost its last lines with the power. One end may be zeros alone."""
    head, tail = head.strip(b"\0"), tail.strip(b"\0")
    if (tail and len(tail) < _WORDS) or (head and len(head) < _WORDS) or not (head or tail):
        return False
    return all(
        not end.translate(None, _TEXT_BYTES) and _is_utf_8(end)
        for end in (_GAPS.sub(b"", head), _GAPS.sub(b"", tail))
    )


def _is_utf_8(stretch: bytes) -> bool:
    """Whether a stretch of a text is UTF-8. Its ends may be parts of a character."""
    return "\ufffd" not in stretch.decode("utf-8", "replace")[3:-3]


def _begins_as_xml(body: bytes) -> bool:
    """Whether a body that the server calls XML may be XML, possibly after a warning. Apache calls
    source code in Rust application/rls-services+xml."""
    return b"<" in _plain_start(body) or not is_text(body)


def _table(body: bytes) -> str:
    """The type of a text that is called a spreadsheet."""
    is_wide = body.startswith(_MARKS[1:])
    has_tabs = (b"\t\0" if is_wide else b"\t") in body[:_HEAD_BYTES].partition(b"\n")[0]
    return "text/tab-separated-values" if has_tabs else "text/csv"


def _plain(name: str, body: bytes) -> str:
    """The type of a text that is declared as text/plain."""
    named = type_by_name(name)
    is_named = named in PLAIN_NAMES and (named != XML or _begins_as_xml(body))
    if not named and _JSON.match(body, 0, _HEAD_BYTES):
        return "application/json"
    return named if is_named else "text/plain"


def _without_packing(name: str) -> str:
    """``notes.txt`` for ``notes.txt.gz``, because the client has already unpacked the body."""
    path = name.partition("?")[0]
    stem, _, extension = path.rpartition(".")
    return stem if extension.lower() in ("gz", "bz2", "xz", "zst") else path


def _plain_start(body: bytes) -> bytes:
    """The first bytes as ASCII has them, without a byte order mark."""
    head = body[:_HEAD_BYTES]
    if (wide := _wide_charset(head)) is not None:
        text = head[: len(head) & ~3].decode(wide, "replace")
        return text.encode("ascii", "replace")
    return head.removeprefix(_MARKS[0])


def _wide_charset(head: bytes) -> str | None:
    """Python's name for the charset of a text with two or four bytes a character; None for other
    texts. Without a mark the first 16 bytes show it."""
    if head.startswith(_MARKS[1:]):
        return _WIDEST.get(head[:4], "utf-16")
    return _WIDEST.get(head[:4]) or wide_without_mark(head)


def is_text(body: bytes) -> bool:
    """Whether both ends of ``body`` look like text in some charset."""
    if _is_plain_text(body):
        return True
    return bool(body) and _is_marked(body[:END_BYTES]) and _is_marked(body[-END_BYTES:])


def _is_marked(end: bytes) -> bool:
    """Whether an end of a body is UTF-8 with control characters that stand alone between letters:
    logs of terminals, and fields that control characters part."""
    if len(end.translate(None, _TEXT_BYTES)) * 2 > len(end) or not _is_utf_8(end):
        return False
    end = _TERMINAL.sub(b"", end)
    if _TWO_MARKS.search(end):
        return False
    return sum(1 for _ in _MARKS_IN_TEXT.finditer(end)) * _LETTERS <= len(end)


def _is_plain_text(body: bytes) -> bool:
    head = body[:END_BYTES]
    if head.startswith(_MARKS[0]):
        return True
    if b"\x08" in head:
        head = _OVERSTRUCK.sub(b"", head)
    if (wide := _wide_charset(head)) is not None:
        shown = head[: len(head) & ~3].decode(wide, "replace")[:_HEAD_BYTES]
        return not _CONTROLS.search(shown)
    tail = body[-END_BYTES:].rstrip(b"\x1a")  # the end of a text for DOS
    is_padded = tail.endswith(b"\0") or head.startswith(b"\0")
    if is_padded or _GAP in head or _GAP in tail:
        if _is_padded_text(head, tail):
            return True
        if is_padded:
            return False
    if b"\x08" in tail:
        tail = _OVERSTRUCK.sub(b"", tail)
    if len(body) <= END_BYTES:
        head = tail
    for end in (head, tail):
        if len(end.translate(None, _TEXT_BYTES)) * _SOME > len(end) and not _INFO.search(head):
            return False
    start = head[:_HEAD_BYTES]
    if not start.translate(None, _TEXT_BYTES) or _INFO.search(start):
        return True
    strange = len(head.translate(None, _TEXT_BYTES))
    return strange * _FEW <= len(head) and (b"\0" not in start or _is_utf_8(head))


# Content that cannot be mistaken.


def _found(body: bytes, look: Look) -> _Found:
    start = body[:4].lstrip(_SPACE)
    if not start.startswith(b"<"):
        for signature, mime in _SIGNATURES:
            if body.startswith(signature):
                return _Found(mime)
    at = 3 if body.startswith(_MARKS[0]) else 0
    while at < len(body) and at < _HEAD_BYTES and body[at] in _SPACE:
        at += 1
    if body.startswith(b"%PDF-", at):
        return _PDF
    if body.startswith(_ZIP_STARTS, at) or body.startswith(_OLE_START):
        return _in_container(body, look)
    if body.startswith(b"<", at) or body.startswith(
        (b"\xff\xfe<\0", b"\xfe\xff\0<", b"<\0?\0", b"\0<\0?")
    ):
        found = _in_markup(body)
        if found.mime:
            return found
        if _is_pdf(body):
            return _PDF
        if _is_zip_behind_junk(body):
            return _in_container(body, look)
        return _behind_junk(body, look)
    if _RTF.match(body, at):
        return _Found("application/rtf")
    if lines := _CONTENT_LINES.match(body, at):
        return _Found("text/calendar" if lines[1].upper() == b"VCALENDAR" else "text/vcard")
    if _CMS_BEGINS.match(body):
        return _Found(_CMS)
    if _BZIP2.match(body):
        return _Found("application/x-bzip2")
    if _TAR.match(body, 257) or _is_old_tar(body[:512]):
        return _Found("application/x-tar")
    if body.startswith(b"RIFF") and body[8:12] in _RIFF:
        return _Found(_RIFF[body[8:12]])
    if body.startswith(b"FORM") and body[8:12] in _FORM:
        return _Found(_FORM[body[8:12]])
    if _SKIPPED.match(body):
        return _Found("application/zstd")
    if body[_ID3] == b"TAG" and _MP3.match(body):
        return _Found("audio/mpeg")
    if body[4:8] == b"ftyp" and body.startswith(b"\0\0"):
        return _Found("video/mp4" if body[8:11] not in (b"hei", b"avi", b"mif") else "image/heif")
    if body.startswith(b"MZ") and not is_text(body):
        return _Found("application/vnd.microsoft.portable-executable")
    if _is_pdf(body):
        return _PDF
    if _is_zip_behind_junk(body):
        return _in_container(body, look)
    return _Found(MAIL) if _is_mime(body, at) else _behind_junk(body, look)


def _behind_junk(body: bytes, look: Look) -> _Found:
    begin = _BEHIND_JUNK.search(body, 1, _PDF_JUNK)
    if begin is None or not is_text(body[: begin.start()]):
        return _NOTHING
    if is_text(body.removeprefix(_MARKS[0])):
        return _NOTHING
    return _found(body[begin.start() :], look)._replace(start=begin.start())


def _is_pdf(body: bytes) -> bool:
    """Whether a PDF begins after a few other bytes: a byte order mark, a head of HTTP, a warning
    of PHP. A text or a page that shows the first bytes of a PDF is not a PDF."""
    if body.find(b"%PDF-", 0, _PDF_JUNK) < 0 or not (found := _PDF_AT.search(body, 0, _PDF_JUNK)):
        return False
    if _PDF_ENDS.search(body[-_PDF_JUNK:]):
        return True
    before = body[: found.start()]
    if _HTML.match(before.removeprefix(_MARKS[0])):
        return False
    return _PDF_BEGINS.match(body, found.start()) is not None or not is_text(body)


def _is_zip_behind_junk(body: bytes) -> bool:
    """Whether a zip file begins after a warning of PHP or the like. A program that unpacks itself
    has more before it."""
    start = body.find(_ZIP_STARTS[0], 1, _PDF_JUNK)
    return start > 0 and is_text(body[:start]) and b"PK\x05\x06" in body[-END_BYTES:]


def _is_old_tar(head: bytes) -> bool:
    """Whether a tar file of before POSIX begins here. Only its checksum shows that."""
    if len(head) < 512 or not (found := _OLD_TAR.match(head)):
        return False
    return int(found[1], 8) == sum(head) - sum(head[148:156]) + 8 * 0x20  # as if it were spaces


def _is_mime(body: bytes, at: int) -> bool:
    """Whether a mail begins at ``at`` (RFC 2045 4). MHTML is a mail, whatever its name is."""
    head = body[at : at + _MAIL_HEAD_BYTES]
    if b"mime-version" not in head.lower():
        return False
    headers = _HEADERS.match(head)
    return headers is not None and _MIME_VERSION.search(headers[0]) is not None


_ROOTS = {"html": XHTML, "svg": "image/svg+xml"}
_SURE_ROOTS = frozenset(
    ("rss", "feed", "RDF", "urlset", "sitemapindex", "opml", "Workbook", "wordDocument")
)
"""Root elements of feeds, sitemaps, and of what Excel and Word save as XML, under any type or name.
As HTML a workbook has no text: its styles hide the rest."""
_ODF_NAMESPACE = b"urn:oasis:names:tc:opendocument"
_NAMESPACES = {
    "feed": b"http://www.w3.org/2005/Atom",
    "svg": b"http://www.w3.org/2000/svg",
}
_FLAT = re.compile(rb"opendocument\.(text|spreadsheet|presentation|graphics)\b")


def _in_markup(body: bytes) -> _Found:
    """XML by its root element; nothing for HTML."""
    name, attributes, is_declared = root_of(body[:END_BYTES])
    if name == "document" and _ODF_NAMESPACE in attributes:
        kind = _FLAT.search(attributes)
        return _Found(FLAT_ODF.format(kind=kind[1].decode() if kind else "text"))
    if is_declared:
        return _Found(_ROOTS.get(name, XML), name in _SURE_ROOTS)
    if name == "rss" or _NAMESPACES.get(name, b">") in attributes:
        return _Found(_ROOTS.get(name, XML))
    return _NOTHING


def _in_container(body: bytes, look: Look) -> _Found:
    container = OLE if body.startswith(_OLE_START) else ZIP
    mime = look(body)
    return _Found(mime or container, bool(mime))


# The type of a zip or OLE file, as far as its bytes show it without opening it.


_LENGTHS = struct.Struct("<HHH")
_LIST_ENDS = (b"PK\x05\x06", b"PK\x06\x06", b"PK\x05\x05")
_CONTENT_TYPES = "[content_types].xml"
_FOLDERS = (
    ("word/", OOXML + "wordprocessingml.document"),
    ("ppt/", OOXML + "presentationml.presentation"),
    ("xl/workbook.bin", "application/vnd.ms-excel.sheet.binary.macroenabled.12"),
    ("xl/", OOXML + "spreadsheetml.sheet"),
    ("visio/", "application/vnd.ms-visio.drawing"),
)
_MAIN_PARTS = {
    "word/document.xml": OOXML + "wordprocessingml.document",
    "ppt/presentation.xml": OOXML + "presentationml.presentation",
    "xl/workbook.xml": OOXML + "spreadsheetml.sheet",
    "xl/workbook.bin": "application/vnd.ms-excel.sheet.binary.macroenabled.12",
}
"""Names of the main part, where nothing lists the parts."""
_KEYNOTE, _NUMBERS, _PAGES = (
    f"application/vnd.apple.{name}" for name in ("keynote", "numbers", "pages")
)
OLE_NAMES = {
    "__properties_version1.0": "application/vnd.ms-outlook",
    "PowerPoint Document": "application/vnd.ms-powerpoint",
    "WordDocument": "application/msword",
    "Workbook": _EXCEL,
    "Book": _EXCEL,
    "VisioDocument": "application/vnd.visio",
    "Quill": "application/x-mspublisher",
    "MatOST": "application/vnd.ms-works",
    "BodyText": "application/x-hwp",
    "NativeContent_MAIN": "application/x-quattro-pro",
    "PP40": "application/vnd.ms-powerpoint",
}
"""Names in the top folder of an OLE file, and the types that they prove; the first match counts."""
_MIMETYPE = re.compile(
    rb"PK\x03\x04.{26}mimetype(application/[a-z0-9.+-]+)(?=PK|[^a-z0-9.+-])", re.DOTALL
)


def is_container(body: bytes) -> bool:
    """Whether the type depends on the content of the body."""
    start = body.lstrip(_SPACE + _MARKS[0])
    return start.startswith((*_ZIP_STARTS, _OLE_START, b"<")) or _OLE_START in body[:_PDF_JUNK]


def type_outside(body: bytes) -> str:
    """Guess the type of a zip or OLE file by `END_BYTES` at each end and `MAX_NAMES` names."""
    if body.startswith(_OLE_START):
        return type_of_ole({name for name in OLE_NAMES if _is_near_an_end(f"{name}\0\0", body)})
    return type_in_zip(body, body[-END_BYTES:], END_BYTES, MAX_NAMES)


def _is_near_an_end(name: str, body: bytes) -> bool:
    wide = name.encode("utf-16-le")
    return body.find(wide, 0, END_BYTES) >= 0 or body.find(wide, max(0, len(body) - END_BYTES)) >= 0


def type_of_ole(names: Collection[str]) -> str:
    """The type that the names in the top folder prove; "" if they prove none."""
    return next((mime for name, mime in OLE_NAMES.items() if name in names), "")


def type_in_zip(body: bytes, tail: bytes, end_bytes: int, max_names: int) -> str:
    """The type that the names of members prove. `ZIP` if all names are seen and prove no type; ""
    if some names are not seen. The names are the first ``max_names`` of the list that begins in
    ``tail``, the file's last bytes. If the list is not there, or longer, ``end_bytes`` at each end
    are searched for them."""
    found = _MIMETYPE.search(body, 0, _HEAD_BYTES)
    if found and reader_of(mime := found[1].decode()):
        return mime
    found_names, is_whole = _names_in_zip(tail, max_names)
    names = set(map(_plain_name, found_names))
    if mime := type_of_names(names):
        return mime
    if names and is_whole:
        return ZIP
    ends = body[:end_bytes], body[-end_bytes:]  # its list is cut off, too long, or of another kind
    if any(b"[Content_Types].xml" in end for end in ends):
        for start, mime in _FOLDERS:
            if any(
                start.encode() in end or start.replace("/", "\\").encode() in end for end in ends
            ):
                return mime
    return ""


def type_of_names(names: Collection[str]) -> str:
    """The document that members of these names make, "" for none. They are in lower case and have
    slashes (`_plain_name`)."""
    if _CONTENT_TYPES in names or "_rels/.rels" in names:
        for start, mime in _FOLDERS:
            if any(name.startswith(start) for name in names):
                return mime
    for part, mime in _MAIN_PARTS.items():
        if part in names:
            return mime
    if "meta-inf/container.xml" in names and any(name.endswith(".opf") for name in names):
        return "application/epub+zip"
    if "content.xml" in names and ("meta-inf/manifest.xml" in names or "styles.xml" in names):
        return ODF + "text"
    return _of_apple(names)


def _of_apple(names: Collection[str]) -> str:
    if "index.apxl" in names or "index.apxl.gz" in names:
        return _KEYNOTE
    if "index/document.iwa" in names or "index.zip" in names:
        if any(name.startswith(("index/slide", "index/masterslide")) for name in names):
            return _KEYNOTE
        return _NUMBERS if "index/calculationengine.iwa" in names else _PAGES
    return ""


def _plain_name(name: bytes) -> str:
    """A part's name as packages compare them: without case, with slashes (ECMA-376-2 9.1.1)."""
    return name.decode("utf-8", "replace").replace("\\", "/").lstrip("/").lower()


def _names_in_zip(tail: bytes, most: int) -> tuple[list[bytes], bool]:
    """The first names of the list at the end of a zip file, and whether these are all. None where
    the list does not begin in ``tail``, the file's last bytes."""
    end = tail.rfind(b"PK\x05\x06")
    at = end - int.from_bytes(tail[end + 12 : end + 16], "little")
    names: list[bytes] = []
    while 0 <= at <= end - 46 and tail.startswith(b"PK\x01\x02", at) and len(names) < most:
        name, extra, comment = _LENGTHS.unpack_from(tail, at + 28)
        names.append(tail[at + 46 : at + 46 + name])
        at += 46 + name + extra + comment
    return names, tail.startswith(_LIST_ENDS, max(0, at))
