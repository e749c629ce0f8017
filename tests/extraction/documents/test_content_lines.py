"""Calendars and cards: lines as they were before they were folded, without escapes."""

from __future__ import annotations

import time

import pytest

from larmspider.extraction.documents import content_lines
from larmspider.extraction.formats import media_type
from larmspider.items import Page


def read(*lines: str | bytes, end: bytes = b"\r\n", said: str | None = None) -> Page:
    raw = (line.encode() if isinstance(line, str) else line for line in lines)
    return content_lines.extract(end.join(raw) + end, "http://h/x", said)


EVENT = ("BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT")


def test_a_calendar_is_unfolded_without_escapes() -> None:
    for end in (b"\r\n", b"\n"):
        page = read(
            *EVENT,
            "SUMMARY;LANGUAGE=de:Planung und Besprechun",
            " gsprotokoll",
            'DESCRIPTION;ALTREP="cid:a:b":Tag\\nHaushalt\\, \\; \\\\ see http://h/a',
            "ATTACH:http://h/b",
            "ATTACH;ENCODING=BASE64;VALUE=BINARY:QUFB",
            " QkJC",
            "END:VEVENT",
            end=end,
        )
        assert page.title == "Planung und Besprechungsprotokoll"
        assert 'DESCRIPTION;ALTREP="cid:a:b":Tag Haushalt, ; \\ see http://h/a' in page.text
        assert "QUFB" not in page.text
        assert "QkJC" not in page.text
        assert [link.url for link in page.links] == ["http://h/a", "http://h/b"]


def test_a_fold_may_part_a_character() -> None:
    whole = "NOTE:Grüße zusammengefügt".encode()
    for at in (8, 9, 10, 11):
        page = read("BEGIN:VCARD", "VERSION:4.0", whole[:at], b" " + whole[at:], "FN:Übel")
        assert "Grüße zusammengefügt" in page.text
        assert page.title == "Übel"


def test_an_old_card_is_read_in_the_charsets_of_its_lines() -> None:
    page = read(
        "BEGIN:VCARD",
        "VERSION:2.1",
        "FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller=",
        "visite",
        b"NOTE;CHARSET=ISO-8859-1:Stra\xdfe",
        "ORG;QUOTED-PRINTABLE;CHARSET=windows-1251:=C4=E0=0D=0AJa",
        "ADR:;;Weg\\;1",
        "PHOTO;JPEG;ENCODING=BASE64:",
        " QUFB",
        "",
        "TITLE:lange",
        "  Zeile",
    )
    assert page.title == "Müllervisite"
    for words in ("NOTE;CHARSET=ISO-8859-1:Straße", ":Да Ja", "ADR:;;Weg;1", "TITLE:lange Zeile"):
        assert words in page.text
    assert "QUFB" not in page.text


def test_a_picture_of_a_new_card_is_no_text() -> None:
    page = read("BEGIN:VCARD", "VERSION:4.0", "FN:X", "PHOTO:data:image/png;base64,QUFB")
    assert page.text == "BEGIN:VCARD VERSION:4.0 FN:X"


def test_a_file_in_another_charset_is_read() -> None:
    text = "\r\n".join((*EVENT, "SUMMARY:Prüfung"))
    wide = content_lines.extract(text.encode("utf-16"), "http://h/x", None)
    assert wide.title == "Prüfung"
    assert read(text.encode("cp1252")).title == "Prüfung"


@pytest.mark.parametrize("name", ["a.ics", "a.vcf", "a.vcs"])
def test_a_calendar_is_known_by_its_name(name: str) -> None:
    for said in ("", "text/plain", "application/octet-stream"):
        assert media_type(said, b"BEGIN:V", f"/{name}") in content_lines_types()


def content_lines_types() -> set[str]:
    return {"text/calendar", "text/vcard", "text/x-vcalendar"}


@pytest.mark.parametrize(
    "body",
    [
        b"A;QUOTED-PRINTABLE:=\n" + b"x=\n" * 100_000,
        b"A" + b";QUOTED-PRINTABLE" * 50_000,
        b"A" + b';"' * 200_000,
        b"A:" + b"\n " * 200_000,
        b"VERSION:2.1\nA:" + b"\n " * 200_000,
    ],
)
def test_odd_lines_take_linear_time(body: bytes) -> None:
    before = time.process_time()
    content_lines.extract(body, "http://h/x", None)
    assert time.process_time() - before < 2
