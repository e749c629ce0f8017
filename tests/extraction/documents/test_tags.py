"""Pictures, sound and films are found by what they say of themselves."""

import struct
import zlib

import pytest

from larmspider.extraction.documents import parts, tags
from larmspider.extraction.formats import extractor_for, media_type, without_text
from larmspider.items import Page
from larmspider.urls.media_types import TAGGED, is_closed, is_document, is_read_apart
from tests.support.documents import corpus
from tests.support.documents.pictures import XMP, box, exif, heif, saved


def read(body: bytes, name: str = "a.jpg") -> Page:
    return tags.extract(body, f"http://h/{name}", None)


def with_iptc(*sets: tuple[int, bytes]) -> bytes:
    """A JPEG with data sets of IIM."""
    listed = b"".join(struct.pack(">BBBH", 0x1C, 2, tag, len(data)) + data for tag, data in sets)
    data = b"Photoshop 3.0\x008BIM\x04\x04\0\0" + struct.pack(">I", len(listed)) + listed
    data += b"\0" * (len(listed) % 2)
    picture = saved("JPEG")
    return picture[:2] + b"\xff\xed" + struct.pack(">H", len(data) + 2) + data + picture[2:]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_exif_is_text(kind):
    page = read(saved(kind, exif=exif()))
    assert (page.title, page.author) == ("Die Überfahrt", "Ann Author")
    assert page.text == ("Die Überfahrt Ann Author Hafen bei Nacht boat;harbour a comment")


@pytest.mark.parametrize(
    ("kind", "option"), [("JPEG", "xmp"), ("WEBP", "xmp"), ("TIFF", "tiffinfo")]
)
def test_xmp_is_text(kind, option):
    page = read(saved(kind, **{option: XMP if option == "xmp" else {700: XMP}}))
    assert page.text == "Überschrift a headline boat harbour"


@pytest.mark.parametrize("charset", ["utf-8", "cp1252"])
def test_iptc_is_text_once(charset):
    body = with_iptc(
        (5, "Köln".encode(charset)), (25, b"one"), (25, b"two"), (120, b"two"), (80, b"Ann")
    )
    page = read(body)
    assert (page.title, page.author, page.text) == ("Köln", "Ann", "Köln Ann two one")


def test_texts_of_png_and_comments_are_text():
    chunk = b"tEXt" + b"Description\0a boat"
    body = saved("PNG")
    body = (
        body[:33]
        + struct.pack(">I", len(chunk) - 4)
        + chunk
        + struct.pack(">I", zlib.crc32(chunk))
        + body[33:]
    )
    assert read(body).text == "a boat"
    assert read(saved("GIF", comment=b"a comment")).text == "a comment"
    assert read(saved("JPEG", comment=b"a comment")).text == "a comment"


def id3(**frames: str) -> bytes:
    data = b""
    for name, text in frames.items():
        value = b"\3" + (b"eng\0" if name == "COMM" else b"") + text.encode()
        data += name.encode() + struct.pack(">IH", len(value), 0) + value
    size = len(data)
    return b"ID3\4\0\0" + bytes((size >> 21, size >> 14 & 127, size >> 7 & 127, size & 127)) + data


def mp4(**atoms: str) -> bytes:
    def atom(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data) + 8) + name + data

    listed = b"".join(
        atom(b"\xa9" + name.encode(), atom(b"data", b"\0\0\0\1\0\0\0\0" + text.encode()))
        for name, text in atoms.items()
    )
    meta = atom(b"meta", b"\0\0\0\0" + atom(b"ilst", listed))
    return atom(b"ftyp", b"mp42\0\0\0\0") + atom(b"moov", atom(b"udta", meta))


def test_tags_of_sound_and_films_are_text():
    song = read(id3(TIT2="Über Wasser", TPE1="Ann", TALB="Harbours", COMM="recorded live"))
    assert (song.title, song.author) == ("Über Wasser", "Ann")
    assert song.text == "Über Wasser Ann Harbours recorded live"
    film = read(mp4(nam="Launch", ART="Yard", cmt="first trip"))
    assert (film.title, film.text) == ("Launch", "Launch Yard first trip")


def test_members_of_an_archive_have_their_tags():
    body = corpus.zipped({"a.jpg": saved("JPEG", comment=b"a comment"), "b.jpg": saved("JPEG")})
    page = parts.read("application/zip", body, "http://h/a.zip", None)
    assert [(part.text, part.unread.partition(":")[0]) for part in page.parts] == [
        ("a comment", ""),
        ("", "binary"),
    ]


def test_pictures_stay_closed():
    for mime in TAGGED:
        assert is_closed(mime)
        assert is_read_apart(mime)
        assert extractor_for(mime)
        assert not is_document(mime, "http://h/a.jpg")
        assert without_text(mime).startswith("binary")
        assert media_type(mime, b"<!doctype html><html></html>") == "text/html"


@pytest.mark.parametrize(
    "body",
    [
        saved("JPEG", exif=exif()),
        saved("TIFF", exif=exif()),
        saved("WEBP", exif=exif()),
        with_iptc((5, b"title")),
        id3(TIT2="title"),
        mp4(nam="title"),
    ],
    ids=["jpeg", "tiff", "webp", "iptc", "id3", "mp4"],
)
def test_cut_and_overwritten_tags_raise_nothing(body):
    for damaged in (
        *(body[: len(body) * tenth // 10] for tenth in range(10)),
        *(corpus.overwritten(body, seed, 20) for seed in range(10)),
    ):
        assert isinstance(read(damaged), Page)


def test_no_pixel_is_unpacked():
    head = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)  # 30 GB
    body = saved("PNG", exif=exif())
    chunk = b"IHDR" + head
    body = (
        body[:8] + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk)) + body[33:]
    )
    assert read(body).title == "Die Überfahrt"


@pytest.mark.parametrize("brand", [b"heic", b"avif", b"mif1", b"hevc"])
@pytest.mark.parametrize("version", [0, 1, 2])
def test_heic_and_avif_have_their_exif_and_xmp(brand, version):
    for is_inside in (False, version > 0):
        body = heif(brand, version, is_inside)
        mime = media_type("application/octet-stream", body, "a")
        assert (mime in TAGGED, is_closed(mime), is_read_apart(mime)) == (True, True, True)
        page = read(body)
        assert page.text.split() == read(saved("WEBP", exif=exif(), xmp=XMP)).text.split()


def test_damaged_heic_raises_nothing():
    body = heif(b"heic")
    for end in range(0, len(body), 7):
        read(body[:end])
    for seed in range(200):
        read(body[:30] + corpus.overwritten(body[30:], seed))
    endless = box(b"iloc", b"\2\0\0\0\xff\xff", b"\xff" * 400_000)
    read(box(b"ftyp", b"heic") + box(b"meta", bytes(4), endless))


def test_a_comment_with_a_name_of_its_own_is_text():
    def frame(name: bytes, data: bytes) -> bytes:
        return name + struct.pack(">I2x", len(data)) + data

    frames = (
        frame(b"COMM", b"\0eng\0first remark")
        + frame(b"COMM", b"\0engdescribed\0second remark")
        + frame(b"COMM", b"\0engiTunNORM\0 00000A1B 00000A1B")
        + frame(b"TXXX", b"\0mood\0calm sea")
    )
    size = bytes(len(frames) >> shift & 127 for shift in (21, 14, 7, 0))
    page = read(b"ID3\3\0\0" + size + frames + b"\xff\xfb\x90\0" + bytes(413), "a.mp3")
    assert page.text == "first remark second remark calm sea"
