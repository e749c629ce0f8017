"""Mails of Outlook (MS-OXMSG), by olefile: sender, recipients, subject, date and body (mapi.py),
and the place and times of appointments, tasks and contacts.

Attachments are parts (parts.py). A message in a message is a part too, converted to a mail of RFC
5322. Not read: OLE objects in the text of a mail.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import olefile

from larmspider.extraction.documents.mails import mapi
from larmspider.extraction.documents.mails.mail import MAIL
from larmspider.extraction.documents.mails.mapi import Properties
from larmspider.extraction.documents.mails.signed import ENTITY
from larmspider.extraction.documents.ole import opened
from larmspider.extraction.documents.parts import MAX_DEPTH, Budget, Member
from larmspider.extraction.documents.reading import DocumentBuilder, keeping
from larmspider.items import Page

_Path = tuple[str, ...]
_STREAM, _ATTACHMENT, _RECIPIENT = "__substg1.0_", "__attach_version1.0_", "__recip_version1.0_"
_PROPERTIES = "__properties_version1.0"
_INSIDE = f"{_STREAM}{mapi.DATA:04X}{mapi.OBJECT:04X}"
_MAX_RECIPIENTS = 500
_NAMES, _ENTRIES = "__nameid_version1.0", f"{_STREAM}00030102"
_ENTRY, _MAX_NAMES = struct.Struct("<IHH"), 4_096  # MS-OXMSG 2.2.3.1.2
_FIXED = struct.Struct("<HHIQ")  # MS-OXMSG 2.4.2.1


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    builder = DocumentBuilder()
    with keeping(builder, url), opened(body) as file:
        tree = _Tree(file, Budget(len(body)))
        message = tree.properties(())
        mapi.add_head(message, tree.recipients(message), builder)
        mapi.add_body(message, url, builder)
    return builder.page(url)


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    with opened(body) as file:
        yield from _Tree(file, budget).attachments((), Properties())


class _Tree:
    """The folders of the file: the message, its recipients and attachments, messages in these."""

    def __init__(self, file: olefile.OleFileIO, budget: Budget) -> None:
        self.file, self.budget = file, budget
        self.inside: dict[_Path, list[str]] = {}
        for entry in file.listdir(streams=True, storages=True):
            self.inside.setdefault(tuple(entry[:-1]), []).append(entry[-1])
        named = self.read((_NAMES,), _ENTRIES)[: _MAX_NAMES * _ENTRY.size]
        whole = len(named) - len(named) % _ENTRY.size
        self.names = {
            mapi.NAMED + index: number
            for number, kind, index in _ENTRY.iter_unpack(named[:whole])
            if not kind & 1
        }
        """Numbers of properties -> long ids, for properties that have one."""

    def properties(self, path: _Path, parent: Properties | None = None) -> Properties:
        found = Properties(parent=parent)
        for name in self.inside.get(path, ()):
            tag = name.removeprefix(_STREAM)
            try:
                key = int(tag[:4], 16), int(tag[4:], 16)
            except ValueError:
                continue
            number = self.names.get(key[0], 0) if key[0] >= mapi.NAMED else key[0]
            if tag != name and number in mapi.WANTED and key[1] in mapi.VARIABLE:
                found.values[number, key[1]] = self.read(path, name)
        data = self.read(path, _PROPERTIES)
        # 16 bytes each, after a head of 32, 24 or 8 in which no property can be taken for one
        for at in range(len(data) % _FIXED.size, len(data) - _FIXED.size + 1, _FIXED.size):
            kind, number, _, value = _FIXED.unpack_from(data, at)
            number = self.names.get(number, 0) if number >= mapi.NAMED else number
            if kind == mapi.INTEGER:
                found.values[number, kind] = value & 0xFFFFFFFF
            elif kind == mapi.TIME:
                found.values[number, kind] = value
        return found

    def read(self, path: _Path, name: str) -> bytes:
        """A stream, b"" without one. Raises Spent: many may share the same sectors."""
        if name not in self.inside.get(path, ()):
            return b""
        data: bytes = self.file.openstream([*path, name]).read()
        return self.budget.take(data)

    def folders(self, path: _Path, prefix: str) -> list[_Path]:
        return [(*path, name) for name in self.inside.get(path, ()) if name.startswith(prefix)]

    def recipients(self, message: Properties, path: _Path = ()) -> list[Properties]:
        folders = self.folders(path, _RECIPIENT)[:_MAX_RECIPIENTS]
        return [self.properties(folder, message) for folder in folders]

    def attachments(self, path: _Path, message: Properties, depth: int = 1) -> Iterator[Member]:
        message = message if message.values else self.properties(path)
        for number, folder in enumerate(self.folders(path, _ATTACHMENT), 1):
            about = self.properties(folder, message)
            name = about.text_of(mapi.FILE_NAME, mapi.SHORT_FILE_NAME, mapi.NAME)
            if _INSIDE in self.inside.get(folder, ()):
                inner = (*folder, _INSIDE)
                if _PROPERTIES in self.inside.get(inner, ()) and depth <= MAX_DEPTH + 1:
                    found = self.properties(inner)
                    name = name or found.text_of(mapi.SUBJECT) or str(number)
                    yield Member(f"{name}.eml", self.mail(found, inner, depth), MAIL)
            elif data := self.read(folder, f"{_STREAM}{mapi.DATA:04X}{mapi.BINARY:04X}"):
                # Outlook keeps the content of a signed mail so (RFC 8551 3.5.3)
                said = MAIL if name.lower().endswith(".p7m") and ENTITY.match(data) else ""
                yield Member(name or f"attachment-{number}", data, said)

    def mail(self, message: Properties, path: _Path, depth: int) -> bytes:
        """A message in the message as a mail of RFC 5322."""
        people = (one.text_of(mapi.NAME, mapi.SMTP) for one in self.recipients(message, path))
        to = message.text_of(mapi.TO) or "; ".join(filter(None, people))
        return mapi.as_mail(message, to, self.attachments(path, message, depth + 1), depth)
