"""The parts of an xlsx by their relationships, for calamine, and the content calamine leaves out.

    workbook = Workbook(package, builder)
    CalamineWorkbook.from_filelike(io.BytesIO(workbook.for_calamine()))
    workbook.formatted("Sheet1")        # {7: {1: "06.03.2024"}}: row from 1, column from 0
    workbook.read_beside("Sheet1")      # header, footer, comments, text boxes, charts into builder

Only cells whose format may show a text other than the value are read a second time.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import defaultdict
from functools import cache
from html import unescape
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from larmspider.extraction.documents.archives import without_claims
from larmspider.extraction.documents.office.format_codes import header_text
from larmspider.extraction.documents.office.number_formats import BUILTIN, formatter
from larmspider.extraction.documents.office.office import PartTexts
from larmspider.extraction.documents.office.office_text import R, S
from larmspider.extraction.documents.office.relationships import Package, unescaped
from larmspider.extraction.documents.parts import Spent
from larmspider.extraction.documents.reading import DocumentBuilder, Unread
from larmspider.items import Outcome

_SHEETS = ("worksheet", "chartsheet", "dialogsheet", "xlmacrosheet")
_RELATIONSHIP = '<Relationship Id={} Type="' + R[1:-1] + '/{}" Target="{}"/>'
_RELATIONSHIPS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}'
    "</Relationships>"
)
_TO_MAIN = _RELATIONSHIP.format('"r"', "officeDocument", "xl/workbook.xml")
_TYPES = '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
_EMPTY = f'<worksheet xmlns="{S[1:-1]}"><sheetData/></worksheet>'.encode()

_CELL = (
    rb""" s="(%b)"[^<>]{0,200}>\s{0,200}"""
    rb"""(?:<(?:\w{1,99}:)?f\b(?:[^<>]{0,200}/>|[^<>]{0,200}>[^<]{0,9999}</[\w:]{1,99}>)\s{0,200})?"""
    rb"""<(?:\w{1,99}:)?v\b[^<>]{0,200}>\s{0,200}([-+.\dEe]{1,40})\s{0,200}</"""
)
"""Begins with fixed letters, so that the search takes a tenth of the time."""
_REFERENCE = re.compile(rb"""\br=["']([A-Za-z]{1,3})(\d{1,7})["']""")
_NO_NUMBER = re.compile(rb"""\bt=["'](?!n["'])""")
_MAX_TAG = 500
_HEADER = re.compile(rb"<(?:\w+:)?(?:odd|even|first)(?:Header|Footer)\b[^>]*>([^<]{1,2000})</")
_MAX_HEADERS = 20_000
"""Bytes of the headers and footers of a sheet."""
_TARGET = re.compile(rb"""HYPERLINK\(\s{0,9}(?:"|&quot;)([^<"]{1,2000}?)(?:"|&quot;)""")
_DIMENSION = re.compile(
    rb"""<(?:\w{1,99}:)?dimension\s[^<>]{0,99}?ref=["']([A-Z0-9:$]{1,40})["']"""
)
_PLACES = re.compile(rb"""\br=["']([A-Z]{1,3})(\d{1,7})["']""")
_PLACE = re.compile(rb"""\sr=["'](?:[A-Z]{1,3})?\d{1,7}["']""")
_ENCODING = re.compile(r"^\s*<\?xml[^>]{0,200}\?>")
_MAX_DIMENSION = 4_096  # bytes from the start of a sheet
_MAX_AREA = 10_000_000
"""Cells between the first and the last one of a sheet. Calamine keeps 24 bytes for each, used or
not; a program that saves a sheet with one stray cell at its end leaves 17,000,000,000."""
_MAX_FORMATTED = 300_000
"""Cells of a sheet that are shown beside their values; more would exceed the limit of text."""


class _Sheet(NamedTuple):
    id: str
    part: str
    kind: str
    copy: str


class Workbook:
    """Raises Unread where the workbook itself cannot be read; ``texts`` has the fault of another
    part."""

    def __init__(self, package: Package, builder: DocumentBuilder) -> None:
        if not package.main:
            raise Unread(Outcome.DAMAGED, "it is a zip file without the parts of a workbook")
        self._package, self._builder = package, builder
        self.texts = PartTexts(package, builder)
        root = package.xml(package.main)
        properties = next(root.iter(S + "workbookPr"), None)
        is_1904 = None if properties is None else properties.get("date1904")
        self._since_1904 = is_1904 in ("1", "true")
        self._sheets = self._listed(root)
        self._left = dict.fromkeys(self._sheets)
        self._copy: zipfile.ZipFile | None = None
        self._codes: dict[bytes, str] = {}
        self._unplaced: list[str] = []
        """Shown texts of cells without a reference."""
        self._cells: re.Pattern[bytes] | None = None

    def _listed(self, root: Any) -> dict[str, _Sheet]:
        """The sheets by their names. A sheet with a wrong id is the next part without a sheet."""
        related = [one for one in self._package.related(self._package.main) if one.kind in _SHEETS]
        by_id = {one.id: one for one in related if one.id}
        others = iter([one for one in related if not one.id])
        found = {}
        for number, sheet in enumerate(root.iter(S + "sheet"), 1):
            link, copy = sheet.get(R + "id", ""), f"worksheets/sheet{number}.xml"
            one = by_id.get(link) or next(others, None)
            part, kind = (one.target, one.kind) if one else ("", _SHEETS[0])
            found[sheet.get("name", "")] = _Sheet(link, part, kind, copy)
        return found

    def for_calamine(self) -> bytes:
        """A workbook of the parts that calamine reads, under the names that calamine expects.
        Calamine gets a copy because it unpacks files without limits and trusts the list in the
        file."""
        copy, related = io.BytesIO(), list[str]()
        main = self._package.main
        with zipfile.ZipFile(copy, "w") as made:
            made.writestr("[Content_Types].xml", _TYPES)
            made.writestr("_rels/.rels", _RELATIONSHIPS.format(_TO_MAIN))
            made.writestr("xl/workbook.xml", self._part(main))
            parts = {one.kind: one.target for one in self._package.related(main)}
            for name in ("sharedStrings", "styles"):
                part = parts.get(name.lower()) or self._package.name(f"xl/{name}.xml")
                if part:
                    made.writestr(f"xl/{name}.xml", self._part(part))
                    related.append(_RELATIONSHIP.format(quoteattr(name), name, f"{name}.xml"))
            self._read_styles(part)
            for sheet in self._sheets.values():
                data = self._part(sheet.part) if sheet.kind != "chartsheet" else _EMPTY
                made.writestr(f"xl/{sheet.copy}", _without_gaps(data) or _EMPTY)
                related.append(_RELATIONSHIP.format(quoteattr(sheet.id), sheet.kind, sheet.copy))
                self._add_links(sheet.part, data)
            made.writestr("xl/_rels/workbook.xml.rels", _RELATIONSHIPS.format("".join(related)))
        self._copy = zipfile.ZipFile(copy)
        return copy.getvalue()

    def _part(self, name: str) -> bytes:
        """The bytes of a part, or its first bytes. A damaged part does not affect the others."""
        try:
            if not name:
                raise Unread(Outcome.DAMAGED, "a sheet is missing")
            return without_claims(_in_utf_8(self._package.archive.read(name)))
        except Spent:
            raise
        except Unread as unread:
            self.texts.fault = self.texts.fault or unread
            return without_claims(unread.data)

    def _read_styles(self, part: str) -> None:
        """The format codes of the cell formats that may show a text other than the value."""
        try:
            root = self._package.xml(part) if part else None
        except Spent:
            raise
        except Unread:
            root = None
        if root is None:
            return
        codes = {str(number): code for number, code in BUILTIN.items()}
        codes |= {
            one.get("numFmtId", ""): one.get("formatCode", "") for one in root.iter(S + "numFmt")
        }
        for formats in root.iter(S + "cellXfs"):
            for number, one in enumerate(formats.iter(S + "xf")):
                code = codes.get(one.get("numFmtId", "0"), "")
                if code and code.lower() not in ("general", "@"):
                    self._codes[b"%d" % number] = code
        if self._codes:
            self._cells = re.compile(_CELL % b"|".join(self._codes))

    def _add_links(self, part: str, data: bytes) -> None:
        if part:
            for target in self.texts.links(part).values():
                self._builder.add_link(target)
        if b"HYPERLINK(" in data:
            for found in _TARGET.findall(data):
                self._builder.add_link(unescape(found.decode("utf-8", "replace")))

    def _data(self, sheet: _Sheet) -> bytes:
        if sheet.kind == "chartsheet":
            return self._part(sheet.part)
        return self._copy.read(f"xl/{sheet.copy}") if self._copy else b""

    def formatted(self, name: str) -> dict[int, dict[int, str]]:
        """Shown texts of the cells that have a number format, by row and column."""
        found: dict[int, dict[int, str]] = defaultdict(dict)
        sheet, cells = self._sheets.get(name), self._cells
        if sheet is None or cells is None:
            return found
        formats = {
            style: formatter(code, since_1904=self._since_1904)
            for style, code in self._codes.items()
        }
        data = self._data(sheet)
        if b" s='" in data:
            data = data.replace(b"'", b'"')
        for number, match in enumerate(cells.finditer(data)):
            style, value = match.groups()
            at = match.start()
            begin, end = data.rfind(b"<", max(0, at - _MAX_TAG), at) + 1, data.find(b">", at)
            if number > _MAX_FORMATTED or _NO_NUMBER.search(data, begin, end):
                continue
            try:
                text = formats[style](float(value))
            except ValueError:
                continue
            if reference := _REFERENCE.search(data, begin, end):
                found[int(reference[2])][_column(reference[1])] = text
            else:
                self._unplaced.append(text)
        return found

    def read_beside(self, name: str) -> None:
        """Text of the sheet that lies in no cell."""
        self._left.pop(name, None)
        if (sheet := self._sheets.get(name)) is None:
            return
        self._builder.add(" ".join(self._unplaced))
        self._unplaced.clear()
        data = self._data(sheet)
        for found in _HEADER.findall(data, max(0, data.rfind(b"eaderFooter>") - _MAX_HEADERS)):
            text = unescaped(unescape(found.decode("utf-8", "replace")))
            self._builder.add(header_text(text))
        for part in self.texts.leads_to(sheet.part) if sheet.part else ():
            self.texts.read(part)
        self._builder.note()

    def read_rest(self) -> None:
        """The same of sheets that calamine does not know."""
        for name in list(self._left):
            self.read_beside(name)


def add_cells_alone(package: Package, builder: DocumentBuilder) -> None:
    """Texts and values of a workbook that calamine does not open, part by part: what is whole of a
    damaged file."""
    for name in package.names(("xl/sharedstrings", "xl/worksheets/sheet")):
        try:
            root = package.xml(name)
        except Spent:
            raise
        except Unread:
            continue
        for text in root.iter(S + "si", S + "is"):
            builder.add("".join(text.itertext()))
        for row in root.iter(S + "row"):
            cells = (cell for cell in row if cell.get("t") != "s")
            values = " ".join(one.text or "" for cell in cells for one in cell.iter(S + "v"))
            if values:
                builder.add(values)
        builder.note()


def _in_utf_8(data: bytes) -> bytes:
    """A part in UTF-16 (ECMA-376-2 8.1.4), which calamine does not read, in UTF-8."""
    if not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data
    return _ENCODING.sub("", data.decode("utf-16", "replace"), count=1).encode("utf-8", "replace")


def _without_gaps(data: bytes) -> bytes:
    """A sheet whose cells lie far apart, with the cells of each row next to each other."""
    known = _DIMENSION.search(data, 0, _MAX_DIMENSION)
    if known and _area(re.findall(rb"([A-Z]{1,3})(\d{1,7})", known[1])) <= _MAX_AREA:
        return data
    return _PLACE.sub(b"", data) if _area(_PLACES.findall(data)) > _MAX_AREA else data


def _area(places: list[tuple[bytes, bytes]]) -> int:
    """Cells of the smallest rectangle around ``places``."""
    columns = [_column(letters) for letters in {letters for letters, _ in places}]
    rows = [int(number) for _, number in places]
    return (max(columns) - min(columns) + 1) * (max(rows) - min(rows) + 1) if places else 0


@cache
def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number - 1
