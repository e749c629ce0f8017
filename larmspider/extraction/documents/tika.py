"""The second reader: Apache Tika, compiled into a library (``iscc-tika``), for the other formats.

    helped("application/msword", body, page)       # the Page with the text of a doc

- It alone reads doc, ppt, OneNote, Publisher, Visio until 2010, chm, WordPerfect, XPS, Excel 2 to
  4, Pages, Numbers and Keynote of iWork '09, HWP 5, dBase, pst, cpio and arj (`READ`), and most
  files of Quattro Pro since 9 and of AutoCAD. In later iWork files, Works, Project, StarOffice 5,
  Access, Lotus 1-2-3 and Write it finds no text: they are ``no-reader``. A pst is one text, without
  the mails as parts.
- It adds the parts of xls and xlsb that calamine leaves out: comments, charts, text boxes, headers,
  displayed forms of cells, embedded documents. A text without a new word is left out (`MERGED`).
- It helps if another reader finds no text in an Office file, or calls the file damaged or
  encrypted.

It does not read PDF without text, nor plain texts, in which it finds nothing more. Its OCR is off.
The first document that needs it loads it. Its output is XHTML, which html.py reads.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from larmspider.extraction.documents.broken_zip import is_broken
from larmspider.extraction.documents.office.format_codes import header_text
from larmspider.extraction.documents.ole import NEEDS_ANOTHER
from larmspider.extraction.documents.reading import CUT_OFF, Unread, date_of, parse_xml
from larmspider.extraction.pages import html
from larmspider.extraction.pages.page_builder import MAX_LINKS, MAX_TEXT
from larmspider.items import Outcome, Page
from larmspider.urls.media_types import WRAPPED, module_of

READ = frozenset(
    {"application/msword", "application/vnd.ms-powerpoint", "application/x-mspublisher"}
    | {"application/vnd.visio", "application/vnd.wordperfect"}
    | {"application/onenote", "application/vnd.ms-htmlhelp", "application/vnd.ms-excel"}
    | {f"application/vnd.apple.{name}" for name in ("pages", "numbers", "keynote")}
    | {"application/vnd.ms-xpsdocument", "application/x-hwp", "application/vnd.ms-outlook-pst"}
    | {"application/x-dbf", "application/x-cpio", "application/x-arj"}
)
"""Types whose documents are damaged if Tika cannot read them."""
MERGED = frozenset(
    {"application/vnd.ms-excel", "application/vnd.ms-excel.sheet.binary.macroenabled.12"}
)
_ASKED_AFTER = frozenset(
    {"office", "spreadsheet", "rtf", "epub", "msg", "ole", "sevenzip", "unknown"}
)
"""Readers whose documents it may read where they fail."""
_HELPED = (Outcome.NO_READER, Outcome.NO_TEXT, Outcome.DAMAGED, Outcome.ENCRYPTED)
"""Outcomes of a first reader after which Tika is tried. Workbooks that are only protected against
changes are encrypted, with a well-known password."""
_NOT_COMPILED = frozenset({"application/x-msaccess"})
"""Its reader lacks its tables in the library, and prints where it failed."""
_ENCRYPTED = re.compile(r"(?i)encrypt|password|-protected$")
_LISTS_ONLY = frozenset({"EmptyParser", "IWork13PackageParser", "IWork18PackageParser"})
"""Parsers of Tika's that give names and no text."""
_AS_TEXT = frozenset({"TXTParser", "TextAndCSVParser"})
_HEADER = re.compile(r"\s*&[LCR]")
"""How a header or footer of a sheet begins."""
_ARCHIVES = frozenset({"application/x-7z-compressed", "application/vnd.rar"})
_FAULTS = "X-TIKA:EXCEPTION:embedded_exception"
_WARNS = "X-TIKA:warning"
_HEAVY_BYTES = 200_000_000
_AS_ZIP = "PackageParser"
"""Tika's for documents in a zip file that it does not know, and for archives. It gives markup."""
_IN_ZIP = ("office", "spreadsheet", "epub")


def helped(mime: str, body: bytes, page: Page) -> Page:
    """``page`` of the first reader, or what Tika makes of it."""
    if not _is_asked(mime, page):
        return page
    try:
        second, passages = _read(mime, body, page.url)
    except Unread as refused:
        if page.unread.endswith(NEEDS_ANOTHER) and (
            mime in READ or refused.outcome is not Outcome.DAMAGED
        ):
            page.unread = refused.unread
        return page
    if page.text:
        _merge(page, second, passages)
    elif second.text:
        second.title = page.title or second.title
        second.author = page.author or second.author
        second.modified = page.modified or second.modified
        if _is_damaged(mime, body, page):
            second.unread = page.unread
        _add_links(second, page)
        return second
    elif page.unread.endswith(NEEDS_ANOTHER) and mime in READ:
        page.unread = f"{Outcome.NO_TEXT}: it was read, and has no text"
    return page


def _is_damaged(mime: str, body: bytes, page: Page) -> bool:
    """Whether the first reader's verdict counts though Tika has found text."""
    if not page.unread.startswith(f"{Outcome.DAMAGED}:"):
        return False
    return page.unread.endswith(CUT_OFF) or (module_of(mime) in _IN_ZIP and is_broken(body))


def _is_asked(mime: str, page: Page) -> bool:
    if page.text:
        return mime in MERGED and not page.unread
    outcome = page.unread.partition(":")[0]
    if mime in _NOT_COMPILED:
        return False
    if outcome == Outcome.DAMAGED and module_of(mime) == "pdf":
        return True
    return module_of(mime) in _ASKED_AFTER and outcome in _HELPED


def _merge(page: Page, second: Page, passages: Iterator[str]) -> None:
    """Add to ``page`` the passages that have a word it does not have, and links."""
    words, added = set(page.text.split()), []
    for passage in passages:
        text = header_text(passage) if _HEADER.match(passage) else passage
        if not words.issuperset(new := text.split()):
            words.update(new)
            added += new
    if added:
        page.text = f"{page.text} {' '.join(added)}"[:MAX_TEXT]
    page.title = page.title or second.title
    _add_links(page, second)


def _add_links(page: Page, other: Page) -> None:
    known = {link.url for link in page.links}
    page.links += [link for link in other.links if link.url not in known]
    del page.links[MAX_LINKS:]


def _read(mime: str, body: bytes, url: str) -> tuple[Page, Iterator[str]]:
    """The Page, and the passages of its text. Raises Unread."""
    try:
        xhtml, metadata = _extractor().extract_bytes_to_string(bytearray(body))
    except Exception as error:  # noqa: BLE001 - TypeError, RuntimeError, ... by kind of document
        if _ENCRYPTED.search(str(error)):
            raise Unread(Outcome.ENCRYPTED, "needs a password") from None
        raise Unread(Outcome.DAMAGED, f"Tika cannot read it: {error}"[:300]) from None
    if any(map(_ENCRYPTED.search, (*metadata.get("Content-Type", ()), *metadata.get(_WARNS, ())))):
        raise Unread(Outcome.ENCRYPTED, "needs a password")
    parsers = {one.rpartition(".")[2] for one in metadata.get("X-TIKA:Parsed-By", ())}
    is_zip = mime in WRAPPED or module_of(mime) in _IN_ZIP
    if parsers & _LISTS_ONLY or (_AS_ZIP in parsers and is_zip):
        raise Unread(Outcome.NO_READER, "Tika does not read it either")
    if parsers & _AS_TEXT:  # bytes as if they were letters
        raise Unread(Outcome.DAMAGED, "Tika finds no such document in it")
    data = xhtml.replace("\ufffd", " ").encode("utf-8", "replace")  # numbers of notes
    page = html.extract(data, url, "text/html; charset=utf-8")
    page.author = "; ".join(metadata.get("dc:creator", ()))[:255]
    page.language = page.language or next(iter(metadata.get("dc:language", ())), None)
    page.modified = next(map(date_of, metadata.get("dcterms:modified", ())), None)
    page.charset = None
    if mime in _ARCHIVES and (faults := len(metadata.get(_FAULTS, ()))):
        page.unread = f"{Outcome.DAMAGED}: Tika cannot read {faults} of the documents in it"
    return page, parse_xml(data).itertext()


def is_heavy() -> bool:
    """Whether this process has taken more than `_HEAVY_BYTES`, since Tika was loaded."""
    if not _extractor.cache_info().currsize:
        return False
    try:
        resident = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except OSError:  # no Linux
        return False
    return resident * mmap.PAGESIZE > _HEAVY_BYTES


@cache
def _extractor() -> Any:
    _allow_threads()
    import iscc_tika

    without_ocr = iscc_tika.TesseractOcrConfig().set_skip_ocr(True)
    pdf = iscc_tika.PdfParserConfig().set_ocr_strategy(iscc_tika.PdfOcrStrategy.NO_OCR)
    office = iscc_tika.OfficeParserConfig().set_include_headers_and_footers(True)
    extractor = (
        iscc_tika.Extractor()
        .set_office_config(office)
        .set_xml_output(True)
        .set_extract_string_max_length(MAX_TEXT)
    )
    return extractor.set_ocr_config(without_ocr).set_pdf_config(pdf)


def _allow_threads() -> None:
    """Raise the limit that process_child.py sets until a reader needs threads."""
    try:
        import resource
    except ImportError:  # no POSIX
        return
    most = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
