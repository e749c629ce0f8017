"""Tags of pictures, sound and films: title, author and texts, by Pillow and tinytag.

It reads Exif (ImageDescription, Artist, Copyright, XPTitle and the like, UserComment), IPTC and XMP
(title, headline, description, keywords, creator, rights, place) of JPEG, PNG, TIFF, WebP, HEIC and
AVIF, texts of PNG and comments of JPEG and GIF; title, artist, album, composer, genre, comment,
lyrics and copyright of MP3, MP4 (m4a, m4v, mov), Ogg, FLAC, WAV, AIFF and WMA. Neither pixels nor
sound are decoded.
Left out are raw pictures of cameras, Photoshop, AVI and Matroska, and tags after the pixels
of a PNG. A file without such a tag has no text, and stays ``binary``.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from PIL import Image, IptcImagePlugin, TiffImagePlugin
from tinytag import TinyTag

from larmspider.extraction.documents.reading import (
    DocumentBuilder,
    Unread,
    local_name,
    parse_xml,
)
from larmspider.items import Page

Image.MAX_IMAGE_PIXELS = None  # none is decoded
_PICTURES = ("JPEG", "PNG", "TIFF", "GIF")
_EXIF = {
    0x9C9B: "title",
    0x010E: "text",
    0x9C9F: "text",
    0x9C9C: "text",
    0x9C9E: "text",
    0x013B: "author",
    0x9C9D: "author",
    0x8298: "text",
}
"""Tags of Exif 2.32 4.6.5, and Microsoft's, in UTF-16."""
_EXIF_FOLDER, _USER_COMMENT, _MICROSOFT = 0x8769, 0x9286, range(0x9C9B, 0x9CA0)
_TIFF_XMP = 700
_IPTC = {
    (2, 5): "title",
    (2, 105): "text",
    (2, 120): "text",
    (2, 25): "text",
    (2, 80): "author",
    (2, 116): "text",
    **dict.fromkeys(((2, 90), (2, 92), (2, 95), (2, 101)), "text"),
}
"""Data sets of IIM 4.2."""
_XMP = {
    "title": "title",
    "creator": "author",
    **dict.fromkeys(
        ("description", "subject", "rights", "Headline", "UserComment", "Keywords"), "text"
    ),
    **dict.fromkeys(("City", "State", "Country", "Location", "ImageDescription"), "text"),
}
_PNG = {"Title": "title", "Author": "author"} | dict.fromkeys(
    ("Description", "Comment", "Copyright", "Keywords", "Source", "comment"), "text"
)
_SOUND = {"title": "title", "artist": "author", "albumartist": "author"}
"""Other names of tags are texts, also names that a program has chosen (ID3's COMM, TXXX)."""
_TECHNICAL = re.compile(
    r"itun|replaygain|mp3gain|musicbrainz|acoustid|encod|major_brand|minor_version|compatible|"
    r"handler|filesize|mime_type|track|disc|year|bitrate|bpm|isrc|barcode|catalog|initial_key|url|language"
)
"""Names of tags that no one searches for."""
_MAX_ITEMS, _MAX_EXTENTS = 10_000, 100
"""Items of a HEIC file, which has one for each of its some 50 tiles, and pieces of an item."""
_Tags = Iterator[tuple[str, str]]
"""Each tag is a title, an author or a text, and its value."""


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    builder = DocumentBuilder()
    found: dict[str, str] = {}
    with suppress(Exception):  # tags found before the error are kept
        for kind, value in _tags(body):
            if value := " ".join(value.replace("\0", " ").split()):
                found.setdefault(value, kind)
    of_kind = {
        kind: [text for text, one in found.items() if one == kind] for kind in set(_XMP.values())
    }
    builder.title = next(iter(of_kind["title"]), "")
    builder.author = "; ".join(of_kind["author"])
    for texts in (of_kind["title"], of_kind["author"], of_kind["text"]):
        for text in texts:
            builder.add(text)
    return builder.page(url)


def _tags(body: bytes) -> _Tags:
    if body[:4] == b"RIFF" and body[8:12] == b"WEBP":
        yield from _of_webp(body)
    elif body[4:8] == b"ftyp" and body[8:11] in (b"hei", b"hev", b"avi", b"mif", b"msf"):
        yield from _of_heif(body)
    elif body.startswith((b"\xff\xd8", b"\x89PNG", b"GIF8", b"II*\0", b"MM\0*")):
        yield from _of_picture(body)
    else:
        yield from _of_sound(body)


def _of_picture(body: bytes) -> _Tags:
    with warnings.catch_warnings(), Image.open(io.BytesIO(body), formats=_PICTURES) as picture:
        warnings.simplefilter("ignore")
        yield from _of_xmp(picture.info.get("xmp") or picture.info.get("XML:com.adobe.xmp"))
        if isinstance(picture, TiffImagePlugin.TiffImageFile):
            yield from _of_xmp(picture.tag_v2.get(_TIFF_XMP))
        with suppress(Exception):
            yield from _of_iptc(IptcImagePlugin.getiptcinfo(picture) or {})
        with suppress(Exception):
            yield from _of_exif(picture.getexif())
        for name, value in picture.info.items():
            if name in _PNG:
                yield _PNG[str(name)], _decoded(value)


def _of_webp(body: bytes) -> _Tags:
    at = 12
    while at + 8 <= len(body):
        name, size = body[at : at + 4], int.from_bytes(body[at + 4 : at + 8], "little")
        data = body[at + 8 : at + 8 + size]
        if name == b"XMP ":
            yield from _of_xmp(data)
        elif name == b"EXIF":
            exif = Image.Exif()
            exif.load(data)
            yield from _of_exif(exif)
        at += 8 + size + size % 2


def _of_heif(body: bytes) -> _Tags:
    """HEIC and AVIF (ISO 23008-12): items of the box "meta" that are Exif or XMP."""
    boxes = dict(_boxes(dict(_boxes(body)).get(b"meta", b"")[4:]))
    places = dict(_places(boxes.get(b"iloc", b"")))
    for number, kind in _items(boxes.get(b"iinf", b"")):
        data = b"".join(
            (boxes.get(b"idat", b"") if is_inside else body)[at : at + size]
            for is_inside, at, size in places.get(number, ())
        )
        if kind == b"Exif":
            exif = Image.Exif()
            exif.load(data[4 + int.from_bytes(data[:4], "big") :])
            yield from _of_exif(exif)
        elif kind == b"mime" and b"<rdf:RDF" in data:
            yield from _of_xmp(data)


def _boxes(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(data):
        size, head = int.from_bytes(data[at : at + 4], "big"), 8
        if size == 1:
            size, head = int.from_bytes(data[at + 8 : at + 16], "big"), 16
        end = at + size if size else len(data)
        yield data[at + 4 : at + 8], data[at + head : end]
        at = max(end, at + 8)


def _items(iinf: bytes) -> Iterator[tuple[int, bytes]]:
    """Numbers and kinds of items."""
    for name, box in _boxes(iinf[6 if iinf[:1] == b"\0" else 8 :]):
        if name == b"infe" and box[0] >= 2:
            end = 6 if box[0] == 2 else 8
            yield int.from_bytes(box[4:end], "big"), box[end + 2 : end + 6]


def _places(iloc: bytes) -> Iterator[tuple[int, list[tuple[bool, int, int]]]]:
    """Numbers of items; each extent is inside "idat" or the file, and has a place and a size."""
    stream = io.BytesIO(iloc)

    def number(size: int) -> int:
        return int.from_bytes(stream.read(size), "big")

    version, sizes = number(1), (number(3), number(2))[1]
    at_size, size_size, base_size = sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15
    index_size = sizes & 15 if version else 0
    wide = 4 if version == 2 else 2
    for _ in range(min(number(wide), _MAX_ITEMS)):
        item = number(wide)
        is_inside = bool(version) and number(2) & 15 == 1
        number(2)
        base, extents = number(base_size), []
        for _ in range(min(number(2), _MAX_EXTENTS)):
            number(index_size)
            extents.append((is_inside, base + number(at_size), number(size_size)))
        yield item, extents


def _of_exif(exif: Image.Exif) -> _Tags:
    for tag, kind in _EXIF.items():
        if (value := exif.get(tag)) is not None:
            yield kind, _wide(value) if tag in _MICROSOFT else _decoded(value)
    comment = exif.get_ifd(_EXIF_FOLDER).get(_USER_COMMENT)
    if isinstance(comment, bytes):
        code, text = comment[:8], comment[8:]
        yield "text", _wide(text) if code == b"UNICODE\0" else _decoded(text)


def _of_iptc(found: dict[tuple[int, int], Any]) -> _Tags:
    for tag, kind in _IPTC.items():
        values = found.get(tag, ())
        for value in values if isinstance(values, list) else (values,):
            yield kind, _decoded(value or b"")


def _of_xmp(data: Any) -> _Tags:
    if not data:
        return
    try:
        root = parse_xml(data.encode() if isinstance(data, str) else bytes(data).strip(b"\0 "))
    except Unread:
        return
    for element in root.iter("{*}*"):
        if kind := _XMP.get(local_name(element)):
            for text in element.itertext():  # in rdf:li
                yield kind, text
        for name, value in element.attrib.items():
            if kind := _XMP.get(name.rpartition("}")[2]):
                yield kind, value


def _of_sound(body: bytes) -> _Tags:
    found = TinyTag.get(file_obj=io.BytesIO(body), duration=False).as_dict()
    for name, values in found.items():
        kind = _SOUND.get(name, "" if _TECHNICAL.match(name) else "text")
        if kind and isinstance(values, list):
            yield from ((kind, str(value)) for value in values)


def _decoded(value: Any) -> str:
    """The text of a string as UTF-8, else Windows-1252. Pillow makes one letter of each byte."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return " ".join(map(_decoded, value))
    data = value.encode("latin-1", "ignore") if isinstance(value, str) else value
    if isinstance(value, str) and len(data) < len(value):
        return value
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        return bytes(data).decode("cp1252", "replace")


def _wide(value: Any) -> str:
    data = bytes(value)
    is_big = data.startswith(b"\xfe\xff") or data[::2].count(0) > data[1::2].count(0)
    return data.decode("utf-16-be" if is_big else "utf-16-le", "replace").strip("\ufeff")
