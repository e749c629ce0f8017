"""PDF, by PDFium: text page by page, titles, the targets of URI links.

Pages are parted by form feeds in the Page's text, so that a hit can be named by its page.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from larmspider.extraction import progress
from larmspider.extraction.documents.reading import DocumentBuilder, Unread, date_of
from larmspider.extraction.page_builder import MAX_TEXT, page_text
from larmspider.items import Outcome, Page

_FIRST_CHARS = 2_000
"""Characters of the first page among which the title is looked for."""
_HYPHENS = ("\ufffe", "\x02")
"""PDFium's marks for a hyphen at the end of a line, where a word goes on."""
_MADE_UP = re.compile(r"(?i)^(?:microsoft (?:word|powerpoint|excel) - |untitled|\W*$)")
_ANCHOR = 512


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    try:
        document = pdfium.PdfDocument(body)
    except pdfium.PdfiumError as error:
        if error.err_code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise Unread(Outcome.ENCRYPTED, "needs a password") from None
        raise Unread(Outcome.DAMAGED, "PDFium finds no PDF in it") from None
    try:
        return _read(document, url)
    finally:
        document.close()


def _read(document: Any, url: str) -> Page:
    builder = DocumentBuilder()
    _metadata(document, builder)
    builder.note()
    pages: list[str] = []
    size = bad = 0
    for number in range(len(document)):
        try:
            page = document[number]
            text_page = page.get_textpage()
        except pdfium.PdfiumError:
            bad += 1
            pages.append("")
            progress.page("")
            continue
        text = text_page.get_text_bounded() if text_page.count_chars() > 0 else ""
        for mark in _HYPHENS:
            text = text.replace(mark, "")
        if not builder.title and not number:
            builder.title = _largest_text(text_page)
        _links(document, page, text_page, builder)
        text_page.close()
        page.close()
        pages.append(page_text([text.replace("\f", " ")]))
        size += len(pages[-1])
        builder.note()
        progress.page(pages[-1])
        if size > MAX_TEXT:
            break
    made = builder.page(url)
    made.text = "\f".join(pages)[:MAX_TEXT] if size else ""
    if size > MAX_TEXT:
        of = f"text of the first {len(pages):,} of {len(document):,} pages"
        made.unread = f"{Outcome.TOO_LONG}: {of}"
    elif not size and (bad or not len(document)):
        made.unread = f"{Outcome.DAMAGED}: no page can be read"
    return made


def _metadata(document: Any, builder: DocumentBuilder) -> None:
    title = str(document.get_metadata_value("Title")).strip()
    found = _MADE_UP.match(title)
    builder.title = title[found.end() :] if found else title
    builder.author = document.get_metadata_value("Author")
    builder.modified = date_of(document.get_metadata_value("ModDate"))
    if builder.modified is None:
        builder.modified = date_of(document.get_metadata_value("CreationDate"))
    size = pdfium_c.FPDFCatalog_GetLanguage(document, None, 0)
    if 2 < size < 100:
        text = (ctypes.c_ushort * (size // 2))()
        pdfium_c.FPDFCatalog_GetLanguage(document, text, size)
        builder.html({"lang": bytes(text).decode("utf-16-le", "ignore").rstrip("\0")})


def _largest_text(text_page: Any) -> str:
    """The first text of the largest letters, as the title page has its title."""
    best, pieces, last = 0.0, [], False
    for index in range(min(text_page.count_chars(), _FIRST_CHARS)):
        char = chr(pdfium_c.FPDFText_GetUnicode(text_page, index))
        size = pdfium_c.FPDFText_GetFontSize(text_page, index)
        if char.isalnum() and size > best + 0.1:
            best, pieces, last = size, [char], True
        elif last and (char.isspace() or abs(size - best) <= 0.1):
            pieces.append(char)
        else:
            last = False
    return "".join(pieces)


def _links(document: Any, page: Any, text_page: Any, builder: DocumentBuilder) -> None:
    at, link = ctypes.c_int(0), pdfium_c.FPDF_LINK()
    while pdfium_c.FPDFLink_Enumerate(page, ctypes.byref(at), ctypes.byref(link)):
        if not (action := pdfium_c.FPDFLink_GetAction(link)):
            continue
        kind = pdfium_c.FPDFAction_GetType(action)
        if kind == pdfium_c.PDFACTION_URI:
            size = pdfium_c.FPDFAction_GetURIPath(document, action, None, 0)
            data = ctypes.create_string_buffer(size)
            pdfium_c.FPDFAction_GetURIPath(document, action, data, size)
        elif kind == pdfium_c.PDFACTION_REMOTEGOTO:
            size = pdfium_c.FPDFAction_GetFilePath(action, None, 0)
            data = ctypes.create_string_buffer(size)
            pdfium_c.FPDFAction_GetFilePath(action, data, size)
        else:
            continue
        box = pdfium_c.FS_RECTF()
        text = ""
        if pdfium_c.FPDFLink_GetAnnotRect(link, ctypes.byref(box)):
            text = text_page.get_text_bounded(box.left, box.bottom, box.right, box.top)
        builder.add_link(data.value.decode("utf-8", "replace"), text[:_ANCHOR])
