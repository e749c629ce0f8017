"""Mails of Outlook: code pages, recipients, bodies, messages in messages."""

from __future__ import annotations

import struct

import pytest

from larmspider.extraction.documents import parts
from larmspider.extraction.documents.mails import msg
from larmspider.items import Page
from tests.support.documents.ole_file import ole
from tests.support.documents.tnef_file import compressed

PROPERTIES, STREAM = "__properties_version1.0", "__substg1.0_"
ATTACHED, INSIDE = "__attach_version1.0_#0000000", f"{STREAM}3701000D"
MIME = "application/vnd.ms-outlook"


def fixed(codepages: dict[int, int], head: int = 32) -> bytes:
    pairs = (struct.pack("<HHIQ", 0x0003, tag, 6, page) for tag, page in codepages.items())
    return bytes(head) + b"".join(pairs)


def read(streams: dict[str, bytes]) -> Page:
    return parts.read(MIME, ole({PROPERTIES: bytes(32), **streams}), "http://h/x.msg", None)


@pytest.mark.parametrize(
    ("codepages", "codec", "text"),
    [
        ({0x3FFD: 1251}, "cp1251", "Письмо"),
        ({0x3FFD: 932}, "cp932", "打合せ"),
        ({0x3FDE: 1250}, "cp1250", "Žádost"),
        ({0x3FFD: 20127, 0x3FDE: 28592}, "iso8859-2", "Žádost"),
        ({0x3FFD: 65001, 0x3FDE: 1252}, "utf-8", "Größe"),
        ({0x3FFD: 932, 0x3FDE: 1252}, "cp1252", "Café"),
        ({}, "cp1252", "Größe für Köln"),
    ],
)
def test_strings_are_in_the_code_page_of_the_message(
    codepages: dict[int, int], codec: str, text: str
) -> None:
    data = text.encode(codec)
    page = read(
        {
            PROPERTIES: fixed(codepages),
            f"{STREAM}0037001E": data,
            f"{STREAM}1000001E": data,
            f"{ATTACHED}0/{STREAM}3704001E": data,
            f"{ATTACHED}0/{STREAM}37010102": b"plan",
        }
    )
    assert (page.title, page.text, page.parts[0].name) == (text, text, text)


def test_recipients_are_found() -> None:
    folder = "__recip_version1.0_#00000000/"
    page = read(
        {
            f"{STREAM}0E04001E": b"Bo",
            f"{folder}{STREAM}3001001E": b"Bo Doe",
            f"{folder}{STREAM}39FE001E": b"bo@h.example",
        }
    )
    assert page.text == "Bo Bo Doe bo@h.example"


NAMES = "__nameid_version1.0/__substg1.0_00030102"
START = struct.pack("<Q", 133_541_856_000_000_000)  # 2024-03-06 08:00


def named(*ids: int) -> dict[str, bytes]:
    """The n-th property from 0x8000 on has the n-th long id."""
    return {NAMES: b"".join(struct.pack("<IHH", one, 6, at) for at, one in enumerate(ids))}


def test_place_and_times_of_an_appointment_are_found() -> None:
    times = b"".join(struct.pack("<HHI", 0x0040, 0x8000 + at, 6) + START for at in (1, 3))
    page = read(
        {
            PROPERTIES: bytes(32) + times,
            **named(0x8208, 0x820D, 0x1234, 0x5678),
            f"{STREAM}8000001F": "Großer Saal".encode("utf-16-le"),
            f"{STREAM}8002001F": "no fact".encode("utf-16-le"),
            f"{STREAM}1000001E": b"agenda",
        }
    )
    assert page.text == "Großer Saal 2024-03-06 08:00 UTC agenda"


def test_those_of_an_appointment_in_a_mail_are_found() -> None:
    folder = f"{ATTACHED}0/{INSIDE}/"
    page = read(
        {
            **named(0x8208),
            f"{ATTACHED}0/{STREAM}3701000D/{PROPERTIES}": bytes(24),
            f"{folder}{STREAM}8000001E": b"Room 7",
            f"{folder}{STREAM}1000001E": b"agenda",
        }
    )
    assert [part.text for part in page.parts] == ["Room 7 agenda"]


def test_a_contact_has_its_telephone_numbers_and_addresses() -> None:
    page = read(
        {
            **named(0x8083),
            f"{STREAM}3A08001E": b"+49 40 123",
            f"{STREAM}3A16001E": b"Port & Co",
            f"{STREAM}8000001E": b"ada@h.example",
        }
    )
    assert page.text == "Port & Co +49 40 123 ada@h.example"


def test_the_body_may_be_html_or_compressed_rtf() -> None:
    html = "<meta charset=windows-1251><p>Привет".encode("cp1251")
    assert read({f"{STREAM}10130102": html}).text == "Привет"
    assert read({f"{STREAM}10090102": compressed(b"{\\rtf1 words}")}).text == "words"


def test_a_message_in_a_message_is_a_part() -> None:
    inner = f"{ATTACHED}0/{INSIDE}/"
    deep = f"{inner}{ATTACHED}0/"
    page = read(
        {
            f"{inner}{PROPERTIES}": fixed({0x3FFD: 1251}, 24),
            f"{inner}{STREAM}0037001E": "Тема".encode("cp1251"),
            f"{inner}{STREAM}1000001E": "Письмо".encode("cp1251"),
            f"{deep}{STREAM}3707001E": "план.txt".encode("cp1251"),
            f"{deep}{STREAM}37010102": b"deep plan",
        }
    )
    assert [(part.name, part.title, part.text) for part in page.parts] == [
        ("Тема.eml", "Тема", "Письмо"),
        ("Тема.eml/план.txt", "deep plan", "deep plan"),
    ]


def test_a_message_in_a_message_has_its_sender_and_copies() -> None:
    inner = f"{ATTACHED}0/{INSIDE}/{STREAM}"
    values = {"0C1A": "Ann", "5D01": "ann@h.example", "0E03": "Bob", "1013": "<p>Größe"}
    streams = {f"{inner}{tag}001F": text.encode("utf-16-le") for tag, text in values.items()}
    page = read({f"{ATTACHED}0/{INSIDE}/{PROPERTIES}": fixed({0x3FDE: 1252}, 24), **streams})
    assert page.parts[0].text == "Ann <ann@h.example> Bob Größe"


def test_a_signed_message_is_read() -> None:
    head = (
        b'Content-Type: multipart/signed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain\r\n'
    )
    signed = head + b"Content-Transfer-Encoding: base64\r\n\r\nd29yZHM=\r\n--b--\r\n"
    name = "smime.p7m".encode("utf-16-le")
    page = read({f"{ATTACHED}0/{STREAM}3707001F": name, f"{ATTACHED}0/{STREAM}37010102": signed})
    assert [(part.name, part.text) for part in page.parts] == [("smime.p7m", "words")]


def test_messages_in_messages_are_read_three_deep() -> None:
    path, streams = "", dict[str, bytes]()
    for _ in range(8):
        path += f"{ATTACHED}0/{INSIDE}/"
        streams |= {path + PROPERTIES: bytes(24), f"{path}{STREAM}1000001E": b"words"}
    page = read(streams)
    assert [part.text for part in page.parts] == ["words"] * 3
    assert page.parts[-1].unread.startswith(
        "too-large: documents in documents are read 3 levels deep"
    )


def test_streams_that_share_their_bytes_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "FREE_BYTES", 1_000)
    monkeypatch.setattr(parts, "MAX_RATIO", 0)
    body = ole(
        {PROPERTIES: bytes(32), f"{STREAM}0037001E": b"x", f"{STREAM}1000001E": b"y" * 2_000}
    )
    with pytest.raises(parts.Spent, match="unpacks to more"):
        msg.extract(body, "http://h/x", None)
