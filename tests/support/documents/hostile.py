"""Small bodies that cost their reader memory without bound, or seconds."""

from __future__ import annotations

import struct

from tests.support.documents.corpus import zipped
from tests.support.documents.ole_file import END, FAT, NONE, SECTOR

_PACKAGE = "http://schemas.openxmlformats.org/package/2006/"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml."


def xlsx_of_two_far_cells() -> bytes:
    """1.5 KB with a cell at each end of a sheet that declares to be small: calamine asks for
    512 GB, and its process ends by SIGABRT."""
    relation = (
        f'<Relationships xmlns="{_PACKAGE}relationships"><Relationship Id="r1"'
        f' Type="{_OFFICE}/%s" Target="%s"/></Relationships>'
    )
    override = '<Override PartName="/xl/%s.xml" ContentType="%s+xml"/>'
    parts = [("workbook", f"{_TYPES}sheet.main"), ("worksheets/s1", f"{_TYPES}worksheet")]
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    cells = "".join(
        f'<row r="{row}"><c r="{cell}"><v>1</v></c></row>'
        for row, cell in ((1, "A1"), (1_048_576, "XFD1048576"))
    )
    return zipped(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}content-types">'
            f'<Default Extension="rels" ContentType="{_PACKAGE}relationships+xml"/>'
            f"{''.join(override % part for part in parts)}</Types>",
            "_rels/.rels": relation % ("officeDocument", "xl/workbook.xml"),
            "xl/workbook.xml": f'<workbook {main} xmlns:r="{_OFFICE}"><sheets>'
            '<sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": relation % ("worksheet", "worksheets/s1.xml"),
            "xl/worksheets/s1.xml": f'<worksheet {main}><dimension ref="A1:B2"/>'
            f"<sheetData>{cells}</sheetData></worksheet>",
        }
    )


def ole_of_many_entries(entries: int, name: str = "WordDocument") -> bytes:
    """An OLE file whose directory has ``entries``; ``name`` is in the middle."""
    per_sector = SECTOR // 128
    entries -= entries % per_sector
    sectors = entries // per_sector
    fats = -(-(sectors + 8_000) // (SECTOR // 4))  # room for the FAT itself

    def entry(number: int) -> bytes:
        called = "Root Entry" if not number else name if number == entries // 2 else f"s{number}"
        wide = (called + "\0").encode("utf-16-le")
        following = number + 1 if 0 < number < entries - 1 else NONE
        return wide.ljust(64, b"\0") + struct.pack(
            "<HBBIII16sIQQIQ",
            *(len(wide), 5 if not number else 2, 1, NONE, following),
            *(1 if not number else NONE, b"\0" * 16, 0, 0, 0, END, 0),
        )

    directory = b"".join(map(entry, range(entries)))
    chain = [*range(1, sectors), END, *[FAT] * fats]
    fat = b"".join(struct.pack("<I", one) for one in chain).ljust(fats * SECTOR, b"\xff")
    places = list(range(sectors, sectors + fats))
    more, difats = places[109:], list[bytes]()
    for at in range(0, len(more), 127):
        last = at + 127 >= len(more)
        following = END if last else sectors + fats + len(difats) + 1
        row = b"".join(struct.pack("<I", one) for one in more[at : at + 127])
        difats.append(row.ljust(508, b"\xff") + struct.pack("<I", following))
    head = (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
        + b"\0" * 16
        + struct.pack(
            "<HHHHH6sIIIIIIIII",
            *(0x3E, 3, 0xFFFE, 9, 6, b"\0" * 6, 0, fats, 0, 0, 4096),
            *(END, 0, sectors + fats if difats else END, len(difats)),
        )
    )
    first = b"".join(struct.pack("<I", one) for one in places[:109]).ljust(436, b"\xff")
    return head + first + directory + fat + b"".join(difats)


def zip_of_many_names(names: int) -> bytes:
    """Empty members, listed at the end of the file."""
    rows, listed = [], []
    at = 0
    for number in range(names):
        name = b"folder/%06d" % number
        row = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0) + name
        listed.append(
            struct.pack(
                "<4sHHHHHHIIIHHHHHII", b"PK\1\2",
                *(20, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, at),
            )
            + name
        )  # fmt: skip
        rows.append(row)
        at += len(row)
    table = b"".join(listed)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, names, names, len(table), at, 0)
    return b"".join(rows) + table + end
