"""winmail.dat: its body and its attachments, alone and in a mail."""

from __future__ import annotations

import base64
import struct
import time
from contextlib import suppress
from random import Random

import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.mails import tnef
from larmspider.extraction.documents.mails.mapi import decompressed
from larmspider.extraction.documents.reading import Unread
from larmspider.extraction.formats import media_type
from larmspider.items import Page
from tests.support.documents import tnef_file as make

TICKS = struct.pack("<Q", 133_485_000_000_000_000)
SUBJECT = make.attribute(1, 0x8004, "Тема".encode("cp1251") + b"\0")
BODY = make.attribute(1, 0x800C, "Письмо".encode("cp1251") + b"\0")


def message(*pairs: bytes) -> bytes:
    return make.attribute(1, 0x9003, make.properties(pairs))


def about(*pairs: bytes) -> bytes:
    """An attachment by properties alone."""
    return make.attribute(2, 0x9002, bytes(14)) + make.attribute(2, 0x9005, make.properties(pairs))


INNER = make.tnef(make.attribute(1, 0x800C, b"inner words\0"))
WHOLE = make.tnef(
    SUBJECT,
    BODY,
    message(
        make.prop(0x0040, 0x0039, TICKS),
        struct.pack("<HH16sII4sII", 0x001E, 0x8001, bytes(16), 1, 2, b"a\0\0\0", 1, 4) + b"abc\0",
        struct.pack("<HH16sII", 0x0003, 0x8002, bytes(16), 0, 7) + bytes(4),
        struct.pack("<HHIIIII", 0x1102, 0x6001, 2, 1, 0, 1, 0),
        make.prop(0x001F, 0x0C1A, "Ада\0".encode("utf-16-le")),
    ),
    make.attribute(
        1,
        0x9004,
        make.properties([make.properties([make.prop(0x001E, 0x3001, "Борис\0".encode("cp1251"))])]),
    ),
    make.attachment("план.txt".encode("cp1251") + b"\0", b"enclosed plan"),
    about(
        make.prop(0x001F, 0x3707, "long name.txt\0".encode("utf-16-le")),
        make.prop(0x0102, 0x3701, b"second plan"),
    ),
    about(make.prop(0x001E, 0x3001, b"note\0"), make.prop(0x000D, 0x3701, bytes(16) + INNER)),
    codepage=1251,
)


def read(body: bytes) -> Page:
    return parts.read(tnef.MIME, body, "http://h/winmail.dat", None)


def test_body_and_attachments_are_read() -> None:
    page = read(WHOLE)
    assert (page.title, page.author, page.unread) == ("Тема", "Ада", "")
    assert page.text == "Ада Борис Письмо"
    assert page.modified is not None
    assert [(part.name, part.text) for part in page.parts] == [
        ("план.txt", "enclosed plan"),
        ("long name.txt", "second plan"),
        ("note", "inner words"),
    ]


def test_the_place_of_an_appointment_is_found() -> None:
    head = struct.pack("<HH16sII", 0x001E, 0x8003, bytes(16), 0, 0x8208)
    page = read(make.tnef(message(head + struct.pack("<II", 1, 7) + b"Room 7\0\0"), BODY))
    assert page.text.startswith("Room 7 ")


def test_it_is_known_by_its_first_bytes_and_in_a_mail() -> None:
    for said in ("", "application/octet-stream", "application/vnd.ms-tnef", "text/plain"):
        assert media_type(said, WHOLE, "/winmail.dat") == tnef.MIME
    mail = (
        b"MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: "
        b"application/ms-tnef; name=winmail.dat\nContent-Transfer-Encoding: base64\n\n"
    )
    page = parts.read("message/rfc822", mail + base64.encodebytes(WHOLE), "http://h/x.eml", None)
    assert [part.name for part in page.parts][:2] == ["winmail.dat", "winmail.dat/план.txt"]


RTF = make.compressed(b"{\\rtf1\\ansi K\\'f6ln \\par}")
HTML = "<p>Größe <a href='http://h/a'>a</a>".encode("cp1252")


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([make.prop(0x0102, 0x1009, RTF)], "Köln"),
        ([make.prop(0x0102, 0x1009, RTF), make.prop(0x0102, 0x1013, HTML)], "Größe a"),
        ([make.prop(0x0102, 0x1013, HTML), make.prop(0x001E, 0x1000, b"text\0")], "text"),
        ([make.prop(0x001F, 0x1013, HTML.decode("cp1252").encode("utf-16-le"))], "Größe a"),
    ],
)
def test_the_body_is_text_else_html_else_rtf(pairs: list[bytes], text: str) -> None:
    page = read(make.tnef(message(*pairs)))
    assert page.text == text
    if text != "Köln":
        assert [link.url for link in page.links] == ["http://h/a"]


def test_compressed_rtf_refers_to_what_was_written() -> None:
    """The example of MS-OXRTFCP 4.1.1, and one that refers to itself (4.1.2)."""
    example = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d"
        "0a800fa0"
    )
    assert decompressed(example) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
    crossing = bytes.fromhex("1a0000001c0000004c5a4675e2d44b51410004205758595a0d6e7d010eb0")
    assert decompressed(crossing) == b"{\\rtf1 WXYZWXYZWXYZWXYZWXYZ}"
    assert decompressed(struct.pack("<IIII", 0, 3, 0x414C454D, 0) + b"abcd") == b"abc"


@pytest.mark.parametrize("part", [2, 3, 4, 6, 7, 8, 9])
def test_a_file_that_is_cut_off_says_so(part: int) -> None:
    page = read(WHOLE[: len(WHOLE) * part // 10 - 5])
    assert page.unread.startswith("damaged:")
    assert page.title == "Тема"


def test_an_overwritten_file_ends_in_linear_time() -> None:
    before, random = time.process_time(), Random(1)
    for _ in range(20):
        body = bytearray(WHOLE)
        for _ in range(20):
            body[random.randrange(6, len(body))] = random.randrange(256)
        with suppress(Unread):
            read(bytes(body))
    many = struct.pack("<I", 0xFFFFFFFF) + struct.pack("<HHI", 3, 1, 1) * 50_000
    with suppress(Unread):
        read(make.tnef(make.attribute(1, 0x9003, many)))
    read(make.tnef(message(make.prop(0x0102, 0x1009, make.compressed(b"a" * 200_000)))))
    assert time.process_time() - before < 3
