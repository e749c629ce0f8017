"""7z archives: their members are parts, within the limits of all archives."""

from __future__ import annotations

import io
import random
from importlib import util
from itertools import pairwise

import pytest

from larmspider.extraction.documents import parts, sevenzip
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Page

SEVEN = "application/x-7z-compressed"
HTML = b"<!doctype html><title>Rules</title><p>of the <a href='http://h/harbour'>harbour</a>"
py7zr = pytest.importorskip("py7zr")


def packed(files: dict[str, bytes], **options: object) -> bytes:
    file = io.BytesIO()
    with py7zr.SevenZipFile(file, "w", **options) as archive:
        for name, data in files.items():
            archive.writestr(data, name)
    return file.getvalue()


def read(body: bytes) -> Page:
    try:
        return parts.read(SEVEN, body, "http://h/a.7z", None)
    except Unread as unread:
        return Page("http://h/a.7z", unread=unread.unread)


@pytest.mark.parametrize(
    "method", [py7zr.FILTER_LZMA2, py7zr.FILTER_PPMD, py7zr.FILTER_BZIP2, py7zr.FILTER_COPY]
)
def test_members_are_parts_whatever_packs_them(method):
    filters = [{"id": method} | ({"order": 6, "mem": 16} if method == py7zr.FILTER_PPMD else {})]
    inner = packed({"größe.txt": b"inner word"})
    body = packed({"a/rules.html": HTML, "in.7z": inner, "._a": b"x"}, filters=filters)
    page = read(body)
    found = [(part.name, part.title, part.text) for part in page.parts]
    assert found == [
        ("a/rules.html", "Rules", "of the harbour"),
        ("in.7z", "", ""),
        ("in.7z/größe.txt", "inner word", "inner word"),
    ]
    assert [link.url for link in page.links] == ["http://h/harbour"]
    assert page.unread == ""
    assert parts.member(SEVEN, body, "a.7z", "a/rules.html") == HTML


@pytest.mark.parametrize("hidden", [False, True], ids=["files", "list too"])
def test_an_archive_that_needs_a_password_is_encrypted(hidden):
    body = packed({"a.txt": b"word"}, password="secret", header_encryption=hidden)
    assert read(body).unread == "encrypted: needs a password"


def test_what_stands_before_a_damaged_place_is_read():
    noise = random.Random(1).randbytes(40_000).hex().encode()
    body = bytearray(packed({"a.txt": b"first word", "b.txt": noise, "c.txt": b"last word"}))
    body[len(body) // 2] ^= 255
    page = read(bytes(body))
    assert [(part.name, part.unread.partition(":")[0]) for part in page.parts] == [
        ("a.txt", ""),
        ("b.txt", "damaged"),
    ]
    assert page.unread.startswith("damaged: it cannot be unpacked")


def test_too_large_members_and_archives_end_in_an_outcome(monkeypatch):
    body = packed({"a.txt": b"word " * 2_000, "b.txt": b"second"})
    monkeypatch.setattr(sevenzip, "MAX_MEMBER_BYTES", 5_000)
    assert [part.unread[:9] for part in read(body).parts] == ["too-large", ""]
    assert read(body).parts[0].text.startswith("word word")
    monkeypatch.setattr(parts, "MAX_ALL_BYTES", 5_000)
    assert read(body).unread == "too-large: it unpacks to more than 5,000 bytes"
    monkeypatch.undo()
    monkeypatch.setattr(sevenzip, "MAX_MEMBERS", 0)
    assert read(body).unread.startswith("too-large: it holds more than")


def test_cut_and_overwritten_archives_end_in_an_outcome():
    body = packed({"a.txt": b"word " * 300, "b.html": HTML})
    drawn = random.Random(2)
    for start, end in pairwise(range(0, len(body), len(body) // 10)):
        assert read(body[:end]).unread, end
        spoilt = bytearray(body)
        spoilt[drawn.randrange(max(6, start), end)] ^= drawn.randrange(1, 256)
        page = read(bytes(spoilt))
        assert page.unread or any(part.text for part in page.parts)


def test_without_py7zr_another_reader_is_asked(monkeypatch):
    monkeypatch.setattr(sevenzip, "find_spec", lambda name: util.find_spec(f"no_{name}"))
    assert read(packed({"a.txt": b"word"})).unread.startswith(
        "no-reader: no installed reader supports it"
    )
