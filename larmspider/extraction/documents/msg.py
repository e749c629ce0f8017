"""Mails of Outlook (MS-OXMSG), by olefile. Attachments are parts (parts.py)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import olefile

from larmspider.extraction.documents.mail import add_html, add_plain
from larmspider.extraction.documents.ole import opened
from larmspider.extraction.documents.parts import Budget, Member
from larmspider.extraction.documents.reading import DocumentBuilder, keeping
from larmspider.items import Page

_SUBJECT, _SENDER, _TO, _BODY, _HTML = "0037", "0C1A", "0E04", "1000", "1013"
_NAME, _SHORT_NAME, _DATA = "3707", "3704", "3701"
_SENT = (0x0039, 0x0E06)
_EPOCH_TICKS = 116_444_736_000_000_000  # 1601 to 1970, in 100 ns


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    builder = DocumentBuilder()
    with keeping(builder, url):
        _read(body, url, builder)
    return builder.page(url)


def _read(body: bytes, url: str, builder: DocumentBuilder) -> None:
    with opened(body) as file:
        builder.title = _string(file, [], _SUBJECT)
        builder.author = _string(file, [], _SENDER)
        builder.modified = _sent(file)
        for tag in (_SENDER, _TO):
            if value := _string(file, [], tag):
                builder.add(value)
        builder.note()
        text, markup = _string(file, [], _BODY), _bytes(file, [], _HTML + "0102")
        markup = markup or _string(file, [], _HTML).encode()
        if text:
            add_plain(text, builder)
            builder.note()
        if markup:
            add_html(markup, url, builder, text=not text)
    builder.note()


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    with opened(body) as file:
        folders = dict.fromkeys(
            entry[0] for entry in file.listdir() if entry[0].startswith("__attach_version1.0_")
        )
        for number, folder in enumerate(folders, 1):
            if data := _bytes(file, [folder], _DATA + "0102"):
                names = (_string(file, [folder], tag) for tag in (_NAME, _SHORT_NAME))
                # many streams may share the same sectors
                name = next(filter(None, names), f"attachment-{number}")
                yield Member(name, budget.take(data))


def _bytes(file: olefile.OleFileIO, folder: list[str], tag: str) -> bytes:
    path = [*folder, f"__substg1.0_{tag}"]
    if not file.exists(path):
        return b""
    data: bytes = file.openstream(path).read()
    return data


def _string(file: olefile.OleFileIO, folder: list[str], tag: str) -> str:
    if data := _bytes(file, folder, tag + "001F"):
        return data.decode("utf-16-le", "replace").rstrip("\0")
    return _bytes(file, folder, tag + "001E").decode("cp1252", "replace").rstrip("\0")


def _sent(file: olefile.OleFileIO) -> float | None:
    """When it was sent: fixed-length properties, 16 bytes each behind a head of 32 (2.4.2)."""
    path: Any = "__properties_version1.0"
    data = file.openstream(path).read() if file.exists(path) else b""
    for at in range(32, len(data) - 15, 16):
        kind, tag, _, value = struct.unpack_from("<HHIQ", data, at)
        if kind == 0x0040 and tag in _SENT and value > _EPOCH_TICKS:
            return float((value - _EPOCH_TICKS) / 1e7)
    return None
