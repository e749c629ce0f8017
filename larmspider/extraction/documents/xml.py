"""XML that is no XHTML: feeds, sitemaps, DocBook. The text between the tags; href and the like are
links, and so are URLs that feeds and sitemaps have as text.

Documents of an office in one XML file are read as those in a zip file: OpenDocument
(opendocument.py), what Word saves as XML and the WordprocessingML of Word 2003 (office_text.py).
Their pictures and embedded files, as base64, are not read.
"""

from __future__ import annotations

import re
from typing import Any

from larmspider.extraction import xhtml
from larmspider.extraction.documents import office_text, opendocument
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    dublin_core,
    keeping,
    local_name,
    parse_xml,
)
from larmspider.items import Page

_HREFS = ("href", "{http://www.w3.org/1999/xlink}href", "src")
_URL_ELEMENTS = frozenset(("link", "loc", "guid", "url", "uri", "id"))
_WORD_2003 = b"http://schemas.microsoft.com/office/word/2003/wordml"
_WORD_ROOTS = (
    "{http://schemas.microsoft.com/office/2006/xmlPackage}package",
    f"{{{_WORD_2003.decode()}}}wordDocument",
)
_PICTURE = re.compile(rb">[A-Za-z0-9+/=\s]{5000000,}+<")
"""Base64 of some size: libxml2 ends at 10,000,000 characters without a tag, and all behind is lost.
"""


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    body = _PICTURE.sub(b"><", body)
    root = parse_xml(body)
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
            body = body.replace(_WORD_2003, office_text.W[1:-1].encode())
            _add_word(parse_xml(body), builder)
        else:
            _add_any(root, builder)
    return builder.page(url)


def _add_metadata(found: Any, builder: DocumentBuilder) -> None:
    if found is not None:
        dublin_core(found, builder)


def _add_word(root: Any, builder: DocumentBuilder) -> None:
    for one in root.iter("{*}Relationship"):
        if one.get("TargetMode") == "External":
            builder.add_link(one.get("Target", ""))
    for one in root.iter(office_text.W + "hlink"):
        builder.add_link(one.get(office_text.W + "dest", ""))
    office_text.add_text(root, {}, builder)


def _add_any(root: Any, builder: DocumentBuilder) -> None:
    dublin_core(root, builder)
    for element in root.iter("{*}*"):
        target = next((element.get(name) for name in _HREFS if element.get(name)), None)
        text = (element.text or "").strip()
        if target:
            builder.add_link(target, text)
        elif local_name(element) in _URL_ELEMENTS and text.startswith(("http://", "https://")):
            builder.add_link(text)
    _add_pieces(root, builder)


def _add_pieces(root: Any, builder: DocumentBuilder) -> None:
    for piece in () if root is None else root.itertext("{*}*"):
        builder.add(piece)
