"""Overwritten OLE files are damaged, though OLE has no checksums; valid ones are not."""

from __future__ import annotations

import struct
from binascii import crc32
from collections.abc import Callable

import pytest

from benchmarks.valid_documents import mails
from larmspider.extraction.documents.ole_damage import damage_of
from larmspider.extraction.processes.process import Readers
from tests.support.documents.corpus import SAMPLES, overwritten, xls, zipped
from tests.support.documents.ole_file import ole

SECTOR = 512
TEXT = "The crane is locked at night.\r"


def numbers(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}I", *values)


# doc: a text of one piece, with a page for its runs and one for its paragraphs


def doc(text: bytes = TEXT.encode("cp1252"), *, wide: bool = False, **fault: int) -> bytes:
    letters = len(text) // (2 if wide else 1)
    start = 3 * SECTOR
    place = start if wide else 2 * start | 0x40000000
    pieces = numbers(0, fault.get("last", letters)) + struct.pack("<HIH", 0, place, 0)
    pieces = b"\2" + numbers(len(pieces)) + pieces
    formats = [numbers(start, start + len(text), page) for page in (1, fault.get("page", 2))]
    head = bytearray(SECTOR)
    struct.pack_into("<HH", head, 0, 0xA5EC, 0xC1)
    struct.pack_into("<8i", head, 0x4C, letters, *[0] * 7)
    table = b""
    for number, data in ((33, pieces), (12, formats[0]), (13, formats[1])):
        struct.pack_into("<II", head, 0x9A + 8 * number, len(table), len(data))
        table += data
    ends = numbers(start, fault.get("run", start + len(text)))
    page = ends.ljust(SECTOR - 1, b"\0") + bytes([fault.get("runs", 1)])
    body = bytes(head) + page + page + text
    return ole({"WordDocument": body.ljust(5_000, b"\0"), "0Table": table.ljust(5_000, b"\0")})


# ppt: a document with one text


def record(kind: int, data: bytes, options: int = 0) -> bytes:
    return struct.pack("<HHI", options, kind, len(data)) + data


def ppt(text: bytes = b"Crane", kind: int = 0x0FA8, **fault: int) -> bytes:
    inner = record(kind, text)
    document = record(0x03E8, inner[: len(inner) - fault.get("short", 0)], 15)
    listed = len(document)
    document += record(fault.get("listed", 0x1772), numbers(1 << 20 | 1, fault.get("place", 0)))
    edit = len(document)
    document += record(0x0FF5, numbers(0, 0, 0, listed, 0, 0, 0))
    current = bytes(16) + numbers(fault.get("edit", edit))
    return ole({"PowerPoint Document": document.ljust(5_000, b"\0"), "Current User": current})


# xls: a table with two strings


def table_of_strings(flags: int = 0, second: bytes = b"night", number: int = 2) -> bytes:
    strings = struct.pack("<HB", 5, 0) + b"crane" + struct.pack("<HB", len(second), flags) + second
    data = numbers(number, number) + strings
    return xls(struct.pack("<HH", 0x00FC, len(data)) + data)


# msg: two strings with their sizes, and compressed RTF


def msg(size: int = 5, rtf: int = 0, text: str = "crane", stream: str = "1000001F") -> bytes:
    packed = b"{\\rtf1 crane at night}"
    checksum = 0xFFFFFFFF ^ crc32(packed, 0xFFFFFFFF)
    body = numbers(len(packed) + 12, 22, 0x75465A4C, checksum ^ rtf) + packed
    listed = [(0x37, 0x1F, 2 * size + 2), (0x1000, 0x1F, 2 * len(text) + 2)]
    listed += [(0x1009, 0x102, len(body))]
    properties = [struct.pack("<HHII4x", kind, number, 6, size) for number, kind, size in listed]
    return ole(
        {
            "__properties_version1.0": bytes(32) + b"".join(properties),
            "__substg1.0_0037001F": "night".encode("utf-16-le"),
            f"__substg1.0_{stream}": text.encode("utf-16-le", "surrogatepass"),
            "__substg1.0_10090102": body,
        }
    )


VALID = {
    "doc": doc(),
    "doc of wide letters": doc("Größe\x13 PAGE \x15\r".encode("utf-16-le"), wide=True),
    "Word 6": ole({"WordDocument": struct.pack("<HH", 0xA5DC, 0x65).ljust(5_000, b"\1")}),
    "ppt": ppt(),
    "ppt of wide letters": ppt("Größe\v".encode("utf-16-le"), 0x0FA0),
    "ppt without its newest version": ppt(edit=9_999),
    "xls": xls(),
    "xls of two strings": table_of_strings(),
    "xls with a wrong number of strings": table_of_strings(number=9),
    "msg": msg(),
    "msg without a list": SAMPLES["msg"].body,
    **{made.name: made.body for made in mails.files() if made.format == "msg"},
}


@pytest.mark.parametrize("name", VALID)
def test_a_valid_file_is_not_damaged(name: str) -> None:
    assert damage_of(VALID[name]) == ""


def changed(body: bytes, at: int, data: bytes) -> bytes:
    return body[:at] + data + body[at + len(data) :]


def in_table(body: bytes, value: int, index: int = 0) -> bytes:
    """One entry of the table of sectors, whose first sector the head names."""
    sector = int.from_bytes(body[76:80], "little")
    return changed(body, SECTOR * (sector + 1) + 4 * index, numbers(value))


def in_entry(body: bytes, name: str, at: int, data: bytes) -> bytes:
    return changed(body, body.index(name.encode("utf-16-le")) + at, data)


DAMAGED: dict[str, Callable[[], bytes]] = {
    "a chain that leaves the file": lambda: in_table(doc(), 9_999),
    "a chain that is too short": lambda: in_table(doc(), 0xFFFFFFFE),
    "a chain that loops": lambda: in_table(doc(), 0, index=1),
    "two streams in one place": lambda: in_entry(doc(), "0Table", 116, numbers(0)),
    "a stream without a place": lambda: in_entry(doc(), "Root Entry", 76, b"\xff" * 4),
    "a kind of stream": lambda: in_entry(doc(), "0Table", 66, b"\x41"),
    "the colour of a stream": lambda: in_entry(doc(), "0Table", 67, b"\x41"),
    "a letter of a doc": lambda: doc(b"The \x1d crane"),
    "half a pair of surrogates": lambda: doc(b"a\0\x00\xd8b\0", wide=True),
    "the end of a piece": lambda: doc(last=77),
    "a page of formats": lambda: doc(page=77),
    "an end of a run": lambda: doc(run=7),
    "a number of runs": lambda: doc(runs=0x77),
    "a letter of a ppt": lambda: ppt(b"Cr\x1dne"),
    "a wide letter of a ppt": lambda: ppt(b"C\0\x00\xdc", 0x0FA0),
    "a length in a ppt": lambda: ppt(short=1),
    "a kind of record": lambda: ppt(kind=0x4FA8),
    "a list of slides": lambda: ppt(listed=0x1773),
    "the place of a slide": lambda: ppt(place=3),
    "flags of a string": lambda: table_of_strings(flags=0x40),
    "a letter of an xls": lambda: table_of_strings(second=b"ni\x1dht"),
    "a number of strings": lambda: table_of_strings(number=1),
    "a length in an xls": lambda: xls().replace(b"\x42\0\2\0", b"\x42\0\2\7"),
    "a kind of record in an xls": lambda: xls().replace(b"\x42\0\2\0", b"\x42\x42\2\0"),
    "a sheet's place": lambda: changed(xls(), xls().index(b"\x85\0\x0e\0") + 4, b"\1"),
    "a size in a msg": lambda: msg(size=7),
    "a checksum in a msg": lambda: msg(rtf=1),
    "a letter of a msg": lambda: msg(text="cr\x1dne"),
    "a name in a msg": lambda: msg(stream="1007001F"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_with_one_wrong_field_is_damaged(name: str) -> None:
    assert damage_of(DAMAGED[name]()) != ""


def test_the_page_of_a_damaged_file_keeps_its_text_and_says_so() -> None:
    body = msg(rtf=1)
    with Readers() as readers:
        page = readers.read_again("application/vnd.ms-outlook", body, "http://h/a.msg")
        inside = readers.read_again("application/zip", zipped({"a.msg": body}), "http://h/a.zip")
    assert "crane" in page.text
    assert page.unread == "damaged: the checksum of its RTF is wrong"
    assert inside.parts[0].unread == page.unread


@pytest.mark.parametrize("name", ["doc", "ppt", "xls of two strings", "msg"])
def test_any_overwritten_file_gives_an_answer(name: str) -> None:
    body = VALID[name]
    for seed in range(200):
        damage_of(overwritten(body, seed, 20))
        damage_of(body[: len(body) * seed // 200])
