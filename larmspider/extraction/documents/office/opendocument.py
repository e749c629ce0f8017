"""OpenDocument (ODF 1.3), in a zip file or in one XML file: text, spreadsheet, presentation; and
what OpenOffice.org 1 and StarOffice 6 wrote (sxw, sxc, sxi), which has other namespaces.

    add_text(root, builder)

The reader takes paragraphs and headings, headers and footers of all page styles, formulas and
charts inside the document, labels and values of forms, names of sheets, and the value of a cell
beside its displayed text. It takes names, queries, forms and reports of a database (odb). Notes,
comments, frames, shapes and the readings of rubies are blocks apart. No text are deleted words, the
numbers of notes, the authors and dates of comments, scripts, and alternative texts. Rows of a
database are in a format of its engine, and not read. Linked files are links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from posixpath import join
from typing import Any

from lxml import etree

from larmspider.extraction.documents.office.relationships import Package
from larmspider.extraction.documents.parts import Spent
from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    dublin_core,
    parse_xml,
)
from larmspider.extraction.pages.note_numbers import is_note_behind
from larmspider.items import Outcome

CONTENTS = ("content.xml", "encrypted-package")
"""The document, or all of it in one encrypted member (ODF 1.4; LibreOffice 24.2)."""
_ODF = "{urn:oasis:names:tc:opendocument:xmlns:"
_TEXT = _ODF + "text:1.0}"
OFFICE = _ODF + "office:1.0}"
_DRAW = _ODF + "drawing:1.0}"
_TABLE = _ODF + "table:1.0}"
_SHOW = _ODF + "presentation:1.0}"
_FORM = _ODF + "form:1.0}"
_STYLE = _ODF + "style:1.0}"
_MATH = "{http://www.w3.org/1998/Math/MathML}"
_BASE = _ODF + "database:1.0}"
_OF_BASE = ("forms/", "reports/")
"""Folders of the forms and reports of a database."""
_BASE_TEXTS = (_BASE + "name", _BASE + "title", _BASE + "description", _BASE + "command")
_OLD_NAMESPACE = re.compile(rb"http://openoffice\.org/2000/(\w+)")
_NAMESPACE_BYTES = 1 << 13
_XLINK = "{http://www.w3.org/1999/xlink}href"

_HEADING = _TEXT + "h"
_PARAGRAPHS = (_TEXT + "p", _HEADING)
_BLOCKS = (*_PARAGRAPHS, _SHOW + "footer-decl", _SHOW + "header-decl", _MATH + "math")
_DROPPED = (
    *(_TEXT + "tracked-changes", _TABLE + "tracked-changes", _TEXT + "script"),
    *(_TEXT + f"{note}-citation" for note in ("note", "footnote", "endnote")),
    *(_MATH + "annotation", _MATH + "annotation-xml"),
)
_SPACES = tuple(_TEXT + name for name in ("s", "tab", "line-break"))
_SHAPES = (
    *("frame", "custom-shape", "rect", "square", "ellipse", "circle", "line", "polyline", "g"),
    *("polygon", "regular-polygon", "path", "connector", "caption", "measure", "control"),
)
_NOTES = [_TEXT + name for name in ("note", "footnote", "endnote")]
_APART = dict.fromkeys(
    [*_NOTES, _DRAW + "text-box", *(_DRAW + name for name in _SHAPES)], " "
) | dict.fromkeys([OFFICE + "annotation", OFFICE + "annotation-end", _TEXT + "ruby-text"], "")
"""Elements outside the text of the paragraph around them, and their replacements there."""
_VALUES = (OFFICE + "date-value", OFFICE + "value", OFFICE + "string-value")
_XPATH_NAMES = {
    "text": _TEXT[1:-1],
    "office": OFFICE[1:-1],
    "table": _TABLE[1:-1],
    "math": _MATH[1:-1],
}
_SHOWN_OTHERWISE = etree.XPath(
    "//*[self::table:table-cell or self::table:covered-table-cell]"
    "[(@office:value|@office:date-value|@office:string-value) != string(text:p)]",
    namespaces=_XPATH_NAMES,
)
"""Cells whose text is not their value."""
_NESTED = etree.XPath(
    "descendant::*[self::text:p or self::text:h or self::math:math]"
    "[ancestor::text:p or ancestor::text:h]",
    namespaces=_XPATH_NAMES,
)
_RAISED = etree.XPath(
    "//style:text-properties[starts-with(@style:text-position, 'super') or "
    "number(substring-before(@style:text-position, '%')) > 0]",
    namespaces={"style": _STYLE[1:-1]},
)
_FORM_TEXTS = (_FORM + "label", _FORM + "current-value")
_CHOICES = (_FORM + "option", _FORM + "item")
_LINKING = (_TEXT + "a", _DRAW + "a", _TEXT + "section-source")


def read(package: Package, builder: DocumentBuilder) -> None:
    archive, faults = package.archive, list[Unread]()
    manifest = package.name("META-INF/manifest.xml")
    try:
        is_locked = bool(manifest) and b"encryption-data" in archive.beginning(manifest)
    except Unread as unread:
        if unread.outcome is not Outcome.DAMAGED:
            raise
        is_locked = False
    if is_locked:
        raise Unread(Outcome.ENCRYPTED, "needs a password")
    if name := package.name("meta.xml"):
        try:
            dublin_core(_root(archive.read(name)), builder)
        except Spent:
            raise
        except Unread:
            pass  # the text may be whole
    builder.note()
    left, seen = ["styles.xml", "content.xml"], set[str]()  # the former has headers and footers
    left[:0] = [name for name in package.names(_OF_BASE) if name.endswith("/content.xml")]
    while left:
        name = package.name(left.pop())
        if not name or name in seen:
            continue
        seen.add(name)
        try:
            root = _root(archive.beginning(name))
        except Spent:
            raise
        except Unread as unread:
            if unread.outcome is not Outcome.DAMAGED:
                raise
            faults.append(unread)
            continue
        folder = name.rpartition("/")[0]
        for one in root.iter(_DRAW + "object"):
            left.insert(0, join(folder, one.get(_XLINK, ""), "content.xml"))
        add_text(root, builder)
        builder.note()
    if faults:
        raise faults[0]


def _root(data: bytes) -> Any:
    if b"openoffice.org/2000" in data[:_NAMESPACE_BYTES]:
        data = _OLD_NAMESPACE.sub(rb"urn:oasis:names:tc:opendocument:xmlns:\1:1.0", data)
    return parse_xml(data)


def add_text(root: Any, builder: DocumentBuilder) -> None:
    """Text and links of an XML file, or of a whole document in one."""
    _prepare(root)
    apart: list[Any] = []
    for sheets in root.iter(OFFICE + "spreadsheet"):
        for sheet in sheets.iterchildren(_TABLE + "table"):
            builder.add(sheet.get(_TABLE + "name", ""))
    for forms in root.iter(OFFICE + "forms"):
        for text in _of_forms(forms):
            builder.add(text)
    for element in root.iter(_BASE + "*"):
        for text in filter(None, map(element.get, _BASE_TEXTS)):
            builder.add(text)
    for element, text in _blocks(root, apart):
        builder.add(text)
        if element.tag == _HEADING and not builder.title:
            builder.title = text
    for link in chain.from_iterable(one.iter(*_LINKING) for one in (root, *apart)):
        builder.add_link(link.get(_XLINK) or "", "".join(link.itertext()))


def _of_forms(forms: Any) -> Iterator[str]:
    """Labels and values of the controls of forms; from a list only the chosen entries."""
    for control in forms.iter("{*}*"):
        is_chosen = any(
            control.get(_FORM + name) == "true" for name in ("selected", "current-selected")
        )
        if control.tag != _FORM + "password" and (control.tag not in _CHOICES or is_chosen):
            yield from filter(None, map(control.get, _FORM_TEXTS))


def _prepare(root: Any) -> None:
    for dropped in list(root.iter(*_DROPPED)):
        if dropped is not root:
            _replace(dropped, "")
    for space in root.iter(*_SPACES):
        space.text = " "
    raised = {style.getparent().get(_STYLE + "name") for style in _RAISED(root)}
    for span in root.iter(_TEXT + "span") if raised else ():
        if span.get(_TEXT + "style-name") in raised and (span.text or "").strip().isdigit():
            _part_note(span)
    for number in root.iter(_TEXT + "number"):
        number.tail = f" {number.tail or ''}"
    for token in root.iter(_MATH + "mi", _MATH + "mn", _MATH + "mo", _MATH + "mtext"):
        token.tail = " "
    for cell in _SHOWN_OTHERWISE(root):
        value = next(filter(None, map(cell.get, _VALUES)), "")
        shown = next(cell.iterchildren(_TEXT + "p"), None)
        if shown is None:
            shown = etree.SubElement(cell, _TEXT + "p")
        etree.SubElement(shown, _TEXT + "span").text = f" {value}"


def _part_note(span: Any) -> None:
    """Set the raised number of a note apart from the word before it."""
    last = span.getprevious()
    before = span.getparent().text if last is None else last.tail or "".join(last.itertext())
    if is_note_behind(before or ""):
        span.text = f" {span.text}"


def _replace(element: Any, text: str) -> None:
    """Replace an element by ``text``; the text after the element stays."""
    place = element.makeelement(_TEXT + "span")
    place.text, place.tail, element.tail = text, element.tail, None
    element.getparent().replace(element, place)


def _blocks(root: Any, apart: list[Any]) -> Iterator[tuple[Any, str]]:
    """Outer paragraphs and headings, with their text. Elements that are taken out of a block are
    appended to ``apart``; the block comes before them."""
    inner = set(_NESTED(root))
    outer = {
        above for one in chain(root.iter(*_APART), inner) for above in one.iterancestors(*_BLOCKS)
    }
    for paragraph in list(root.iter(*_BLOCKS)):
        if paragraph in inner:
            continue
        if paragraph not in outer:
            if text := "".join(paragraph.itertext()) if len(paragraph) else paragraph.text:
                yield paragraph, text
            continue
        taken = list(paragraph.iterdescendants(*_APART))
        for element in taken:
            _replace(element, _APART[element.tag])
        for nested in paragraph.iterdescendants(*_BLOCKS):
            nested.text = f" {nested.text or ''}"
            nested.tail = f" {nested.tail or ''}"
        if text := "".join(paragraph.itertext()):
            yield paragraph, text
        for element in taken:
            if element.tag == _TEXT + "ruby-text":
                yield element, "".join(element.itertext())
            else:
                yield from _blocks(element, apart)
        apart += taken
