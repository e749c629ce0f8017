"""The text of one part of a drawing of Visio 2013 and later (MS-VSDX): vsdx, vsdm, vstx, vssx.

    is_visio(root); add_text(root, builder)

Read are the names of pages, the texts of shapes with the values of their fields, the labels and
texts of shape data, the addresses of hyperlinks, and comments. A master is read once, for shapes
without a text of their own show its text. No text are formulas, layers, styles and numbers.
"""

from __future__ import annotations

from typing import Any

from larmspider.extraction.documents.reading import DocumentBuilder

_V = "{http://schemas.microsoft.com/office/visio/2012/main}"
_PAGE, _TEXT, _SECTION, _COMMENT = _V + "Page", _V + "Text", _V + "Section", _V + "CommentEntry"


def is_visio(root: Any) -> bool:
    return isinstance(root.tag, str) and root.tag.startswith(_V)


def add_text(root: Any, builder: DocumentBuilder) -> None:
    for element in root.iter(_PAGE, _TEXT, _COMMENT, _SECTION):
        if element.tag == _PAGE:
            builder.add(element.get("Name", ""))
        elif element.tag != _SECTION:
            builder.add("".join(element.itertext()).strip())
        elif element.get("N") == "Property":
            builder.add(" ".join(_strings(element, "Label", "Value")))
        elif element.get("N") == "Hyperlink":
            _add_links(element, builder)


def _add_links(section: Any, builder: DocumentBuilder) -> None:
    for row in section:
        cells = _cells(row)
        if target := cells.get("Address", ""):
            builder.add_link(target, cells.get("Description", ""))


def _strings(section: Any, *names: str) -> list[str]:
    """Values that are words. A number, such as a width, is not a word."""
    found = (_cells(row) for row in section)
    values = (cells.get(name, "") for cells in found for name in names)
    return [value for value in values if any(map(str.isalpha, value))]


def _cells(row: Any) -> dict[str, str]:
    return {cell.get("N", ""): cell.get("V", "") for cell in row}
