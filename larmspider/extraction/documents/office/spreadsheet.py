"""Spreadsheets: xlsx, xlsb and xls by calamine, values and results of formulas, row by row.

An xlsx also gives the displayed form of a cell beside its value, the texts beside the cells
(workbook.py), and its embedded documents as parts. Not read are formulas, names and pivot caches.
An xlsb or xls gives its cells alone, and an xls also its hyperlinks.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, PasswordError

from larmspider.errors import is_panic
from larmspider.extraction.documents.archives import ZipReader
from larmspider.extraction.documents.office.embedded import members
from larmspider.extraction.documents.office.office import metadata
from larmspider.extraction.documents.office.relationships import Package
from larmspider.extraction.documents.office.workbook import Workbook, add_cells_alone
from larmspider.extraction.documents.ole import (
    NEEDS_ANOTHER,
    SIGNATURE,
    ole_metadata,
    opened,
    refuse_encrypted,
)
from larmspider.extraction.documents.reading import DocumentBuilder, Unread, keeping
from larmspider.items import Outcome, Page

__all__ = ["extract", "members"]

_RECORD = struct.Struct("<HH")
_HLINK, _FILEPASS, _EOF = 0x01B8, 0x002F, 0x000A
_PLACE = struct.Struct("<HH")
_CELLS = frozenset((0x0006, 0x00BD, 0x00FD, 0x0203, 0x0204, 0x0205, 0x027E))
"""Records of cells with a value: FORMULA, MULRK, LABELSST, NUMBER, LABEL, BOOLERR, RK."""
_MOST = 1 << 16
_MAX_CELLS = 8_000_000
"""Calamine takes 32 bytes for each cell of a rectangle, filled or not: two cells in the corners of
a sheet would take 512 MB. The second reader reads such a workbook."""
_OLD_STREAMS = (b"\x09\x00", b"\x09\x02", b"\x09\x04")
"""Excel 2, 3 and 4 write no container."""
_UNREADABLE = "\ufffd"
"""Calamine takes each byte of Excel 5 for a letter; Chinese, Japanese and Korean ones have two."""
_URL_MONIKER = bytes.fromhex("e0c9ea79f9bace118c8200aa004ba90b")


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    builder = DocumentBuilder()
    with keeping(builder, url):
        _read(body, builder)
    page = builder.page(url)
    if _UNREADABLE in page.text and body.startswith(SIGNATURE):
        page.text = ""
        raise Unread(Outcome.NO_READER, NEEDS_ANOTHER, page)
    return page


def _read(body: bytes, builder: DocumentBuilder) -> None:
    archive: ZipReader | None = None
    if body.startswith(SIGNATURE):
        refuse_encrypted(body)
        ole_metadata(body, builder)
        book = _book(body)
        for target in _targets(book):
            builder.add_link(target)
        if _area(book) > _MAX_CELLS:
            raise Unread(Outcome.NO_READER, NEEDS_ANOTHER)
    elif body.startswith(_OLD_STREAMS):
        raise Unread(Outcome.NO_READER, NEEDS_ANOTHER)
    else:
        archive = ZipReader(body)
        package = Package(archive)
        metadata(package, builder)
        if not package.main.lower().endswith(".bin"):
            _read_package(package, builder)
            return
        body = archive.checked(body)
    builder.note()
    _cells(body, builder)
    if archive is not None:
        archive.end()


def _read_package(package: Package, builder: DocumentBuilder) -> None:
    """An xlsx."""
    try:
        workbook = Workbook(package, builder)
        body = workbook.for_calamine()
        builder.note()
        _cells(body, builder, workbook)
        if package.archive.damage is not None:  # it may have cost a sheet
            add_cells_alone(package, builder)
    except Unread as unread:
        if unread.outcome is Outcome.DAMAGED:
            add_cells_alone(package, builder)
        raise
    workbook.texts.end()
    package.archive.end()


def _book(body: bytes) -> bytes:
    with opened(body) as file:
        name = next((name for name in ("Workbook", "Book") if file.exists(name)), None)
        return file.openstream(name).read() if name else b""


def _records(book: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each record of an xls (MS-XLS 2.1.4)."""
    at = 0
    while at + _RECORD.size <= len(book):
        kind, size = _RECORD.unpack_from(book, at)
        at += _RECORD.size
        yield kind, book[at : at + size]
        at += size


def _targets(book: bytes) -> Iterator[str]:
    """The targets of the hyperlinks of an xls: URL monikers in HLINK records (MS-XLS 2.4.140,
    MS-OSHARED 2.3.7.6). Raises Unread for an encrypted file."""
    for kind, content in _records(book):
        if kind == _FILEPASS:
            raise Unread(Outcome.ENCRYPTED, "needs a password")
        if kind == _HLINK:
            _, found, moniker = content.partition(_URL_MONIKER)
            if found:
                length = int.from_bytes(moniker[:4], "little")
                url = moniker[4 : 4 + length].decode("utf-16-le", "replace")
                yield url.partition("\0")[0]


def _area(book: bytes) -> int:
    """Cells of the rectangles around the filled cells of each sheet of an xls."""
    area, top, left, bottom, right = 0, _MOST, _MOST, -1, -1
    for kind, content in _records(book):
        if kind in _CELLS and len(content) >= _PLACE.size:
            row, column = _PLACE.unpack_from(content)
            top, left = min(top, row), min(left, column)
            bottom, right = max(bottom, row), max(right, column)
        elif kind == _EOF and bottom >= 0:
            area += (bottom - top + 1) * (right - left + 1)
            top, left, bottom, right = _MOST, _MOST, -1, -1
    return area


def _cells(body: bytes, builder: DocumentBuilder, workbook: Workbook | None = None) -> None:
    """Raises Unread."""
    try:
        _add_cells(body, builder, workbook)
    except PasswordError:
        raise Unread(Outcome.ENCRYPTED, "needs a password") from None
    except CalamineError as error:
        raise Unread(Outcome.DAMAGED, f"the cells cannot be read: {error}") from None
    except BaseException as error:
        if not is_panic(error):
            raise
        raise Unread(Outcome.DAMAGED, "the cells cannot be read") from None


def _add_cells(body: bytes, builder: DocumentBuilder, workbook: Workbook | None) -> None:
    book = CalamineWorkbook.from_filelike(io.BytesIO(body))
    for name in book.sheet_names:
        builder.add(name)
        sheet = book.get_sheet_by_name(name)
        formatted = workbook.formatted(name) if workbook is not None else {}
        left = sheet.start[1] if formatted and sheet.start else 0
        for number, row in enumerate(sheet.iter_rows(), 1):
            if beside := formatted.get(number):
                builder.add(" ".join(_with_formatted(row, left, beside)))
            elif cells := [_shown(cell) for cell in row if cell != ""]:
                builder.add(" ".join(cells))
        builder.note()
        if workbook is not None:
            workbook.read_beside(name)
    if workbook is not None:
        workbook.read_rest()


def _with_formatted(row: list[Any], left: int, beside: dict[int, str]) -> list[str]:
    """The cells of a row; a cell whose displayed form differs has it after its value."""
    cells = []
    for column, cell in enumerate(row, left):
        if cell != "":
            cells.append(value := _shown(cell))
            if (seen := beside.get(column)) and seen != value:
                cells.append(seen)
    return cells


def _shown(cell: Any) -> str:
    """The value in the form that a person would type: 42 for 42.0, 2024-01-31 for a day."""
    if isinstance(cell, float):
        if cell.is_integer() and abs(cell) < 1e15:
            return str(int(cell))
        return f"{cell:.15g}"  # Excel keeps 15 digits
    if isinstance(cell, str):
        return cell.replace("\0", "")  # after each letter of Excel 5
    if isinstance(cell, datetime | date | time):
        return cell.isoformat(" ") if isinstance(cell, datetime) else cell.isoformat()
    return str(cell)
