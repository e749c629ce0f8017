"""XML that is no XHTML: feeds, sitemaps, DocBook, outlines, drawings (SVG), Office in one file.

The reader takes the text between the tags. Attributes with text for people follow, as in outlines
(OPML) and processes (BPMN). href and similar attributes are links, and so are URLs in the text of
feeds and sitemaps. In broken XML the text between the tags is read to the end of the file.

Office documents in one XML file are read like the ones in a zip file: OpenDocument
(opendocument.py), Word documents saved as XML and the WordprocessingML of Word 2003
(office_text.py). A workbook of Excel 2003 has the names of its sheets, its cells, comments, headers
and links. Their pictures and embedded files, as base64, are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from larmspider.extraction import plain_text
from larmspider.extraction.documents.office import office_text, opendocument
from larmspider.extraction.documents.office.format_codes import header_text
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    date_of,
    dublin_core,
    keeping,
    local_name,
    parse_any_xml,
    parse_xml,
    text_of_broken_xml,
)
from larmspider.extraction.pages import xhtml
from larmspider.items import Page

_WORDS = frozenset(
    {"text", "title", "label", "name", "value", "caption", "description", "desc", "summary"}
    | {"message", "comment", "question", "answer", "displayname", "display-name"}
)
"""Attributes that have the text in files of diagrams, outlines, processes and settings."""
_DRAWN = ("svg",)
"""Roots of files in which these attributes name layers and shapes."""
_SVG_TEXT = "{http://www.w3.org/2000/svg}text"
_PLACES = frozenset(("x", "y", "dy"))
"""Attributes that begin a line or a word of its own within a text of SVG."""
_LETTERS = re.compile(r"[^\W\d_]{2}")
_HREFS = ("href", "{http://www.w3.org/1999/xlink}href", "src")
_DTD = re.compile(rb"<!(?:ELEMENT|ATTLIST|ENTITY)\s")
"""Declarations: a file of them, without an element, is a text."""
_URLS = ("url", "xmlUrl", "htmlUrl")
"""Attributes that name a page: of DocBook, OPML and enclosures of feeds."""
_URL_ELEMENTS = frozenset(("link", "loc", "guid", "url", "uri", "id"))
_WORD_2003 = b"http://schemas.microsoft.com/office/word/2003/wordml"
_WORD_ROOTS = (
    "{http://schemas.microsoft.com/office/2006/xmlPackage}package",
    f"{{{_WORD_2003.decode()}}}wordDocument",
)
_OFFICE_2003 = "{urn:schemas-microsoft-com:office:office}"
_SHEET_2003 = "{urn:schemas-microsoft-com:office:spreadsheet}"
_EXCEL_2003 = "{urn:schemas-microsoft-com:office:excel}"
_HEADS_2003 = (_EXCEL_2003 + "Header", _EXCEL_2003 + "Footer")
_COMMENT_2003 = "{http://schemas.microsoft.com/aml/2001/core}content"
_LONG = 1_000
_BASE64 = re.compile(r"\s*(?:[A-Za-z0-9+/]{40,}+\s*)++(?:[A-Za-z0-9+/]{0,39}={0,2}\s*)?")
"""A piece of 1,000 characters or more that is a picture, as in FictionBook."""
_PICTURE = re.compile(rb">[A-Za-z0-9+/=\s]{5000000,}+<")
"""Base64 of some size: libxml2 ends at 10,000,000 characters without a tag, and all behind is lost.
"""


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    body = _PICTURE.sub(b"><", body)
    try:
        root, is_broken = parse_any_xml(body)
    except Unread as unread:
        if _DTD.search(body) and b"<!DOCTYPE" not in body:
            return plain_text.extract(body, url, content_type)
        with keeping(builder := DocumentBuilder(), url):
            builder.add(text_of_broken_xml(body))
            raise unread from None
    if local_name(root) == "html":
        return xhtml.extract(body, url, content_type)
    builder = DocumentBuilder()
    with keeping(builder, url):
        if root.tag == opendocument.OFFICE + "document":
            _add_metadata(root.find(opendocument.OFFICE + "meta"), builder)
            opendocument.add_text(root, builder)
            if not builder.size:  # it has no paragraphs
                _add_pieces(root.find(opendocument.OFFICE + "body"), builder)
        elif root.tag in _WORD_ROOTS:
            _add_metadata(root.find(".//{*}coreProperties"), builder)
            _add_properties(root, builder)
            body = body.replace(_WORD_2003, office_text.W[1:-1].encode())
            _add_word(parse_xml(body), builder)
        elif root.tag == _SHEET_2003 + "Workbook":
            _add_properties(root, builder)
            _add_workbook(root, builder)
        else:
            _add_any(root, builder, text_of_broken_xml(body) if is_broken else None)
    return builder.page(url)


def _add_metadata(found: Any, builder: DocumentBuilder) -> None:
    if found is not None:
        dublin_core(found, builder)


def _add_properties(root: Any, builder: DocumentBuilder) -> None:
    """Add title and author of a document of Office 2003."""
    if (found := root.find(f"{_OFFICE_2003}DocumentProperties")) is not None:
        said = {local_name(one): one.text or "" for one in found}
        builder.title = said.get("Title") or builder.title
        builder.author = said.get("Author") or said.get("LastAuthor") or builder.author
        builder.modified = date_of(said.get("LastSaved", "")) or builder.modified


def _add_workbook(root: Any, builder: DocumentBuilder) -> None:
    for sheet in root.iter(_SHEET_2003 + "Worksheet"):
        builder.add(sheet.get(_SHEET_2003 + "Name", ""))
        for row in sheet.iter(_SHEET_2003 + "Row"):
            cells = []
            for cell in row.iter(_SHEET_2003 + "Cell"):
                texts = ["".join(one.itertext()) for one in cell]
                cells += texts
                if target := cell.get(_SHEET_2003 + "HRef"):
                    builder.add_link(target, " ".join(texts))
            builder.add(" ".join(cells))
        for head in sheet.iter(*_HEADS_2003):
            builder.add(header_text(head.get(_EXCEL_2003 + "Data", "")))
        builder.note()


def _add_word(root: Any, builder: DocumentBuilder) -> None:
    for comment in list(root.iter(_COMMENT_2003)):
        _part(comment)
    for one in root.iter("{*}Relationship"):
        if one.get("TargetMode") == "External":
            builder.add_link(one.get("Target", ""))
    for one in root.iter(office_text.W + "hlink"):
        builder.add_link(one.get(office_text.W + "dest", ""))
    office_text.add_text(root, {}, builder)


def _part(comment: Any) -> None:
    """A comment lies within its paragraph. Deleted and inserted texts lie there, too, and belong to
    the paragraph."""
    if comment.find(office_text.W + "p") is not None and comment.getparent() is not None:
        comment.getparent().addnext(comment.makeelement(office_text.W + "br"))


def _add_any(root: Any, builder: DocumentBuilder, broken: str | None) -> None:
    """``broken``: the text of broken XML, of which libxml2 may have skipped a part."""
    dublin_core(root, builder)
    has_words = local_name(root) not in _DRAWN
    words: dict[str, None] = {}
    for element in root.iter("{*}*"):
        target = next((element.get(name) for name in _HREFS if element.get(name)), None)
        text = (element.text or "").strip()
        for value in filter(None, map(element.get, _URLS)):
            if value.startswith(("http://", "https://")):
                builder.add_link(value, text)
        if target:
            builder.add_link(target, text)
        elif local_name(element) in _URL_ELEMENTS and text.startswith(("http://", "https://")):
            builder.add_link(text)
        if has_words and element.attrib:
            words.update((value, None) for value in _words_of(element.attrib))
    for drawn in root.iter(_SVG_TEXT):
        _join(drawn)
    if broken is None or {*broken.split()} <= {*" ".join(root.itertext("{*}*")).split()}:
        _add_pieces(root, builder)
    else:
        builder.add(broken)
    for value in words:
        builder.add(value)


def _join(drawn: Any) -> None:
    """Join the spans of a text of SVG that follow each other without a place of their own."""
    pieces: list[str] = []
    for event, span in etree.iterwalk(drawn, events=("start", "end")):
        if event == "start":
            pieces += " " if _PLACES.intersection(span.attrib) else "", span.text or ""
        elif span is not drawn:
            pieces.append(span.tail or "")
    del drawn[:]
    drawn.text = "".join(pieces)


def _words_of(attributes: Any) -> Iterator[str]:
    """The values of attributes that are text for people."""
    for name, value in attributes.items():
        if name.rpartition("}")[2].lower() in _WORDS and _LETTERS.search(value):
            yield value


def _add_pieces(root: Any, builder: DocumentBuilder) -> None:
    for piece in () if root is None else root.itertext("{*}*"):
        if len(piece) < _LONG or not _BASE64.fullmatch(piece):
            builder.add(piece)
