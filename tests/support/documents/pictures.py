"""Pictures of two pixels, with tags."""

from __future__ import annotations

import io
import struct

from PIL import Image


def saved(kind: str, **options: object) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (2, 2)).save(out, kind, **options)
    return out.getvalue()


def exif() -> bytes:
    found = Image.Exif()
    found[0x010E] = "Hafen bei Nacht"
    found[0x013B] = "Ann Author"
    found[0x9C9B] = "Die Überfahrt".encode("utf-16-le")
    found[0x9C9E] = "boat;harbour\0".encode("utf-16-le")
    found.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + "a comment".encode("utf-16-le")
    return found.tobytes()


XMP = """<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF
 xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:p="http://ns.adobe.com/photoshop/1.0/"
 p:Headline="a headline"><dc:title><rdf:Alt><rdf:li xml:lang="x-default">Überschrift</rdf:li>
</rdf:Alt></dc:title><dc:subject><rdf:Bag><rdf:li>boat</rdf:li><rdf:li>harbour</rdf:li></rdf:Bag>
</dc:subject></rdf:Description></rdf:RDF></x:xmpmeta>""".encode()


def box(kind: bytes, *inside: bytes) -> bytes:
    data = b"".join(inside)
    return struct.pack(">I4s", 8 + len(data), kind) + data


def heif(brand: bytes, version: int = 0, is_inside: bool = False) -> bytes:
    """A HEIC or AVIF file of two items: Exif, and XMP in two pieces (ISO 23008-12)."""
    items = (b"\0\0\0\0" + exif().removeprefix(b"Exif\0\0"), XMP)
    start = box(b"ftyp", brand, bytes(4), b"mif1", brand)
    wide = ">I" if version == 2 else ">H"

    def meta(at: int) -> bytes:
        rows = b""
        for number, pieces in enumerate(((items[0],), (XMP[:9], XMP[9:])), 1):
            rows += struct.pack(wide, number) + (struct.pack(">H", is_inside) if version else b"")
            rows += struct.pack(">HH", 0, len(pieces))
            for piece in pieces:
                rows += struct.pack(">II", at, len(piece))
                at += len(piece)
        where = struct.pack(">B3x", version) + b"\x44\0" + struct.pack(wide, 2) + rows
        named = box(b"infe", b"\2\0\0\0", struct.pack(">HH", 1, 0), b"Exif\0") + box(
            b"infe", b"\2\0\0\0", struct.pack(">HH", 2, 0), b"mime\0application/rdf+xml\0"
        )
        listed = box(b"iinf", bytes(4), struct.pack(">H", 2), named)
        inside = box(b"idat", *items) if is_inside else b""
        return box(b"meta", bytes(4), listed, box(b"iloc", where), inside)

    at = 0 if is_inside else len(start) + len(meta(0)) + 8
    return start + meta(at) + box(b"mdat", *items)
