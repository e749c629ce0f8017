"""PDF, by PDFium: text page by page, titles, the targets of links; pdf_objects.py has the rest.

Form feeds separate the pages in the Page's text, so that a hit can name its page. Undrawn text
follows the drawn text of a page and a line end: looks of annotations and form fields, their
contents and values, titles of the outline, names of attached files, each passage once. Embedded
files are parts. A document that an empty password opens is read. Left out are pictures (the plugin
ocr), alternative texts of the structure tree, scripts and names of layers.
"""

from __future__ import annotations

import ctypes
import logging
import re
import sys
from contextlib import closing
from itertools import islice
from typing import Any
from urllib.parse import urljoin

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

from larmspider.extraction.documents.pdfs import pdf_objects
from larmspider.extraction.documents.pdfs.pdf_text import HYPHENS, text_of
from larmspider.extraction.documents.reading import CUT_OFF, DocumentBuilder, Unread, date_of
from larmspider.extraction.pages.page_builder import MAX_TEXT, page_text
from larmspider.extraction.processes import progress
from larmspider.items import Outcome, Page

_FIRST_CHARS = 2_000
"""Characters of the first page among which the title is looked for."""
_MADE_UP = re.compile(r"(?i)^(?:microsoft (?:word|powerpoint|excel) - |untitled|\W*$)")
_ANCHOR = 512
_OBJECT = re.compile(rb"\d obj\b")
_MAX_LOOKS = 1_000
"""Annotations of a page whose looks are read."""
_EMPTY = len("\0\0")
_UNDRAWN = (pdfium_c.FPDF_ANNOT_LINK, pdfium_c.FPDF_ANNOT_POPUP, pdfium_c.FPDF_ANNOT_TEXT)

for _name in ("pikepdf", "pypdfium2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())  # keeps damages off stderr

members = pdf_objects.members


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    try:
        document = pdfium.PdfDocument(body)
    except pdfium.PdfiumError as error:
        if error.err_code in (pdfium_c.FPDF_ERR_PASSWORD, pdfium_c.FPDF_ERR_SECURITY):
            raise Unread(Outcome.ENCRYPTED, "needs a password") from None
        why = CUT_OFF if _is_cut_off(body) else "PDFium finds no PDF in it"
        raise Unread(Outcome.DAMAGED, why) from None
    with closing(document):
        page, mended = _read(document, body, url)
    if mended and not page.unread.startswith(Outcome.TOO_LONG):
        with closing(pdfium.PdfDocument(mended)) as document:
            whole, _ = _read(document, mended, url)
        if len(whole.text) > len(page.text):
            whole.unread = f"{Outcome.DAMAGED}: its table of objects is damaged"
            return whole
    return page


def _read(document: Any, body: bytes, url: str) -> tuple[Page, bytes]:
    """The Page, and a copy of a document with a damaged table of objects, b"" for others."""
    builder = DocumentBuilder()
    _metadata(document, builder)
    builder.note()
    is_titled = bool(builder.title)
    creator = document.get_metadata_value("Creator")
    pages: list[str] = []
    drawing: list[int] = []
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
        text = _text(text_page, creator)
        if not builder.title and not number:
            builder.title = _largest_text(text_page)
        _links(document, page, text_page, builder)
        text_page.close()
        if _draws_annotations(page):
            drawing.append(number)
        page.close()
        pages.append(text)
        size += len(text)
        builder.note()
        progress.page(text)
        if size > MAX_TEXT:
            break
    for number in drawing:
        pages[number] = _with_looks(document, number, pages[number], creator)
    notes = _add_notes(document, body, pages, builder, is_titled=is_titled)
    size = sum(map(len, pages))
    made = builder.page(url)
    made.text = "\f".join(pages)[:MAX_TEXT] if size else ""
    if size > MAX_TEXT:
        of = f"text of the first {len(pages):,} of {len(document):,} pages"
        made.unread = f"{Outcome.TOO_LONG}: {of}"
    elif size and bad:
        of = f"{bad:,} of {len(document):,} pages cannot be read"
        made.unread = f"{Outcome.DAMAGED}: {of}"
    elif bad or not len(document):
        made.unread = f"{Outcome.DAMAGED}: no page can be read"
    elif _is_cut_off(body):
        made.unread = f"{Outcome.DAMAGED}: {CUT_OFF}"
    made.unread = made.unread or notes.unread
    return made, notes.mended


def _is_cut_off(body: bytes) -> bool:
    """Each PDF ends in ``startxref`` (ISO 32000-1 7.5.5); zeros or junk may follow. In a file that
    was changed, or that is linearized, objects follow an earlier one."""
    at = body.rfind(b"startxref")
    return at < 0 or _OBJECT.search(body, at) is not None


def _text(text_page: Any, creator: str) -> str:
    return page_text([text_of(text_page, creator).replace("\f", " ")])


def _draws_annotations(page: Any) -> bool:
    """Whether an annotation or a form field has a look of its own. A page with more than
    `_MAX_LOOKS` annotations is skipped: reading the looks takes the square of their number."""
    number = pdfium_c.FPDFPage_GetAnnotCount(page)
    return number <= _MAX_LOOKS and any(_is_drawn(page, index) for index in range(number))


def _is_drawn(page: Any, index: int) -> bool:
    annotation = pdfium_c.FPDFPage_GetAnnot(page, index)
    if not annotation:
        return False
    normal = pdfium_c.FPDF_ANNOT_APPEARANCEMODE_NORMAL
    drawn = (
        pdfium_c.FPDFAnnot_GetSubtype(annotation) not in _UNDRAWN
        and pdfium_c.FPDFAnnot_GetAP(annotation, normal, None, 0) > _EMPTY
    )
    pdfium_c.FPDFPage_CloseAnnot(annotation)
    return drawn


def _with_looks(document: Any, number: int, text: str, creator: str) -> str:
    """The text of a page, and after it the text that its annotations draw."""
    try:
        with closing(document[number]) as page:
            pdfium_c.FPDFPage_Flatten(page, pdfium_c.FLAT_NORMALDISPLAY)
        with closing(document[number]) as flat, closing(flat.get_textpage()) as text_page:
            drawn = _text(text_page, creator)
    except pdfium.PdfiumError:
        return text
    if drawn.startswith(text):
        return _noted(text, [drawn[len(text) :]])
    return max(drawn, text, key=len)


def _noted(text: str, notes: list[str]) -> str:
    """``text`` of a page with the ``notes`` that it does not have."""
    has = f" {text} ".replace("\n", " ")
    cleaned = dict.fromkeys(page_text([note.replace("\f", " ")]) for note in notes)
    added = " ".join(note for note in cleaned if note and f" {note} " not in has)
    if not added:
        return text
    return f"{text} {added}" if "\n" in text else f"{text}\n{added}"


def _add_notes(
    document: Any, body: bytes, pages: list[str], builder: DocumentBuilder, *, is_titled: bool
) -> pdf_objects.Notes:
    """Add the notes of pdf_objects.py and the titles of the outline to their pages, and metadata
    that are missing. ``is_titled``: the document has a title, else the title is a guess."""
    titles: list[tuple[int, str]] = []
    outline_acts = False
    for entry in islice(document.get_toc(), pdf_objects.MAX_OBJECTS):
        place = entry.get_dest()
        titles.append(((place.get_index() if place else None) or 0, entry.get_title()))
        outline_acts |= bool(pdfium_c.FPDFBookmark_GetAction(entry))
    outline_acts = outline_acts and pdf_objects.has_more_links(body, len(builder.links))
    notes = pdf_objects.Notes()
    try:
        with pdf_objects.opened(body) as objects:
            notes = pdf_objects.notes_of(objects, len(pages), body, outline_acts=outline_acts)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001, S110 - PDFium has read the pages
        pass
    if notes.title and not is_titled and not _MADE_UP.match(notes.title):
        builder.title = notes.title
    builder.author = builder.author or notes.author
    builder.modified = builder.modified or notes.modified
    for number, title in titles:
        notes.add(number, title)
    for number, texts in notes.pages.items():
        if number < len(pages):
            pages[number] = _noted(pages[number], texts)
    if notes.pages:
        progress.pages(pages)
    known = {target for target, *_ in builder.links}
    for target in notes.targets:
        target = _joined(notes.base, target)
        if target not in known:
            builder.add_link(target)
    builder.note()
    return notes


def _joined(base: str, target: str) -> str:
    try:
        return urljoin(base, target)
    except ValueError:
        return target


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
        code = pdfium_c.FPDFText_GetUnicode(text_page, index)
        if code > sys.maxunicode or (char := chr(code)) in HYPHENS:  # a font may map to any number
            continue
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
