"""Writes winmail.dat (MS-OXTNEF) and compressed RTF (MS-OXRTFCP)."""

import struct
from collections.abc import Iterable

HEAD = struct.pack("<IH", 0x223E9F78, 1)


def attribute(level: int, tag: int, data: bytes) -> bytes:
    return struct.pack("<BHHI", level, tag, 0, len(data)) + data + b"\0\0"


def attachment(title: bytes, data: bytes) -> bytes:
    return (
        attribute(2, 0x9002, bytes(14)) + attribute(2, 0x8010, title) + attribute(2, 0x800F, data)
    )


def prop(kind: int, tag: int, data: bytes) -> bytes:
    """A property; of variable length, filled up to a multiple of four, where ``kind`` says so."""
    if kind in (0x001E, 0x001F, 0x0102, 0x000D):
        return struct.pack("<HHII", kind, tag, 1, len(data)) + data + bytes(-len(data) % 4)
    return struct.pack("<HH", kind, tag) + data


def properties(each: Iterable[bytes]) -> bytes:
    pairs = list(each)
    return struct.pack("<I", len(pairs)) + b"".join(pairs)


def tnef(*attributes: bytes, codepage: int = 1252) -> bytes:
    return HEAD + attribute(1, 0x9007, struct.pack("<II", codepage, 0)) + b"".join(attributes)


def compressed(rtf: bytes, references: bytes = b"") -> bytes:
    """``rtf`` letter by letter, then ``references`` (flags and pairs as they are)."""
    out = b"".join(b"\0" + rtf[at : at + 8] for at in range(0, len(rtf), 8)) + references
    return struct.pack("<IIII", len(out) + 12, len(rtf), 0x75465A4C, 0) + out
