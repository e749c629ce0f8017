"""winmail.dat, in which Exchange packs a mail (MS-OXTNEF): its body, and its attachments as parts.

Read are subject, sender, recipients, date and body (mapi.py), attachments by either way in which a
file may hold them, and messages in the message, which are TNEF again. Checksums are not compared.
Not read: objects in the text.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from larmspider.extraction.documents.mails import mapi
from larmspider.extraction.documents.mails.mapi import Properties
from larmspider.extraction.documents.parts import Budget, Member
from larmspider.extraction.documents.reading import DocumentBuilder, Unread, keeping
from larmspider.items import Outcome, Page

MIME = "application/ms-tnef"
SIGNATURE = b"\x78\x9f\x3e\x22"
_HEAD, _ATTRIBUTE, _CHECKSUM = 6, struct.Struct("<BHHI"), 2
_LEVELS = (1, 2)  # of the message, of its attachments
_FROM, _SUBJECT, _BODY, _CODEPAGE = 0x8000, 0x8004, 0x800C, 0x9007
_PROPERTIES, _RECIPIENTS = 0x9003, 0x9004
_BEGIN, _TITLE, _DATA, _ABOUT = 0x9002, 0x8010, 0x800F, 0x9005  # of an attachment
_STRINGS = {_SUBJECT: mapi.SUBJECT, _BODY: mapi.BODY}
_SIZES = {0x0002: 4, 0x0003: 4, 0x0004: 4, 0x000A: 4, 0x000B: 4, 0x0048: 16}
_LONG = 8  # bytes of all others of fixed length
_VARIABLE = (*mapi.VARIABLE, mapi.OBJECT)
_MANY, _BY_NAME = 0x1000, 1
_INTERFACE_BYTES = 16
_WANTED = mapi.WANTED | {mapi.DATA}
_MAX_RECIPIENTS = 500
_DATA_KEYS = (mapi.DATA, mapi.BINARY), (mapi.DATA, mapi.OBJECT)


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    builder = DocumentBuilder()
    with keeping(builder, url):
        message, recipients, _, fault = _read(body)
        mapi.add_head(message, recipients, builder)
        mapi.add_body(message, url, builder)
        if fault is not None:
            raise fault
    return builder.page(url)


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    _, _, attachments, fault = _read(body)
    for number, about in enumerate(attachments, 1):
        called = about.text_of(mapi.FILE_NAME, mapi.SHORT_FILE_NAME, mapi.NAME)
        data = next(filter(None, (about.bytes_of(*key) for key in _DATA_KEYS)), b"")
        if data[_INTERFACE_BYTES:].startswith(SIGNATURE):
            yield Member(called or f"{number}.dat", data[_INTERFACE_BYTES:], MIME)
        elif data:
            yield Member(called or f"attachment-{number}", data)
    if fault is not None:
        raise fault


def _read(body: bytes) -> tuple[Properties, list[Properties], list[Properties], Unread | None]:
    """The message, its recipients and attachments, and the fault that ended the file."""
    if not body.startswith(SIGNATURE):
        raise Unread(Outcome.DAMAGED, "it does not begin as TNEF does")
    message, recipients, attachments = Properties(), list[Properties](), list[Properties]()
    fault = None

    def read(tag: int, data: bytes) -> None:
        if tag == _CODEPAGE:
            (page,) = struct.unpack_from("<I", data)
            message.values.setdefault((mapi.MESSAGE_CODEPAGE, mapi.INTEGER), page)
        elif tag in _STRINGS:
            message.values.setdefault((_STRINGS[tag], mapi.STRING_8), data)
        elif tag == _FROM:
            message.values.setdefault((mapi.FROM, mapi.STRING_8), data[8:])
        elif tag == _PROPERTIES:
            _Pairs(data).read_into(message)
        elif tag == _RECIPIENTS:
            recipients.extend(_Pairs(data).rows(message))
        elif tag == _BEGIN:
            attachments.append(Properties(parent=message))
        elif attachments and tag == _TITLE:
            attachments[-1].values.setdefault((mapi.SHORT_FILE_NAME, mapi.STRING_8), data)
        elif attachments and tag == _DATA:
            attachments[-1].values.setdefault(_DATA_KEYS[0], data)
        elif attachments and tag == _ABOUT:
            _Pairs(data).read_into(attachments[-1])

    for tag, data, is_whole in _attributes(body):
        try:
            read(tag, data)
        except struct.error:
            is_whole = False
        if not is_whole:
            fault = Unread(Outcome.DAMAGED, "its TNEF is cut off or overwritten")
    return message, recipients, attachments, fault


def _attributes(body: bytes) -> Iterator[tuple[int, bytes, bool]]:
    """Tag and data of each attribute, and whether it is there whole."""
    at = _HEAD
    while at + _CHECKSUM < len(body):
        head = body[at : at + _ATTRIBUTE.size]
        if len(head) < _ATTRIBUTE.size:
            yield 0, b"", False
            return
        level, tag, _, size = _ATTRIBUTE.unpack(head)
        if level not in _LEVELS:
            yield 0, b"", not body[at:].strip(b"\0 \r\n")
            return
        at += _ATTRIBUTE.size
        yield tag, body[at : at + size], at + size <= len(body)
        at += size + _CHECKSUM


class _Pairs:
    """Properties of MAPI, one behind the other (MS-OXTNEF 2.1.3.4)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self) -> int:
        (value,) = struct.unpack_from("<I", self.data, self.at)
        self.at += 4
        return int(value)

    def sized(self) -> bytes:
        """Bytes after their number, filled up to a multiple of four."""
        size = self.number()
        if size > len(self.data) - self.at:
            raise struct.error
        found = self.data[self.at : self.at + size]
        self.at += size + (-size % 4)
        return found

    def rows(self, parent: Properties) -> list[Properties]:
        found = [Properties(parent=parent) for _ in range(min(self.number(), _MAX_RECIPIENTS))]
        for one in found:
            self.read_into(one)
        return found

    def read_into(self, found: Properties) -> None:
        for _ in range(self.number()):
            kind, tag = struct.unpack_from("<HH", self.data, self.at)
            self.at += 4
            if tag >= mapi.NAMED:
                self.at += _INTERFACE_BYTES
                if self.number() == _BY_NAME:
                    tag = 0
                    self.sized()
                else:
                    tag = self.number()
            single = kind & ~_MANY
            has_count = kind & _MANY or single in _VARIABLE
            for _ in range(self.number() if has_count else 1):
                value = self._value(single)
                if tag in _WANTED or single in (mapi.INTEGER, mapi.TIME):
                    found.values[tag, single] = value

    def _value(self, kind: int) -> bytes | int:
        if kind in _VARIABLE:
            return self.sized()
        size = _SIZES.get(kind, _LONG)
        if self.at + size > len(self.data):
            raise struct.error
        value = int.from_bytes(self.data[self.at : self.at + size], "little")
        self.at += size
        return value
