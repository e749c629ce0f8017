"""OLE files (MS-CFB): what Office wrote until 2007, mails of Outlook, encrypted OOXML.

Read are title, author and date. The text of doc, ppt and others is the second reader's (tika.py);
msg.py and spreadsheet.py read mails and sheets. Documents with a password are ``encrypted``. Word
before 6 and PowerPoint before 97 have no reader.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import olefile

from larmspider.extraction.documents.reading import DocumentBuilder, Unread
from larmspider.items import Outcome, Page

_ROOT = "Root Entry".encode("utf-16-le")
"""The name of the top folder of every OLE file (MS-CFB 2.6.2)."""
SIGNATURE = b"\xd0\xcf\x11\xe0"
NEEDS_ANOTHER = "no installed reader supports it (LARM_SECOND_READER)"
_WORD_FLAGS, _IS_ENCRYPTED = 11, 0x01  # FibBase (MS-DOC 2.5.2)
_SHORTEST_USER = 28
"""Bytes of the stream Current User, since PowerPoint 97."""
_POWERPOINT_TOKEN, _ENCRYPTED_TOKEN = slice(12, 16), bytes.fromhex("dfc4d1f3")  # MS-PPT 2.3.2


@contextmanager
def opened(body: bytes) -> Iterator[olefile.OleFileIO]:
    """Raises Unread for a file that is not OLE, or is broken."""
    try:
        with olefile.OleFileIO(io.BytesIO(body)) as file:
            yield file
    except Unread:
        raise
    except Exception as error:  # noqa: BLE001 - olefile raises IndexError, struct.error and more
        raise Unread(Outcome.DAMAGED, f"the OLE file cannot be read: {error}") from None


def refuse_encrypted(body: bytes) -> None:
    """Raise Unread for encrypted OOXML (MS-OFFCRYPTO 2.3), doc and ppt."""
    with opened(body) as file:
        word, powerpoint = (_start(file, name) for name in ("WordDocument", "Current User"))
        if (
            file.exists("EncryptedPackage")
            or file.exists("EncryptionInfo")
            or (len(word) > _WORD_FLAGS and word[_WORD_FLAGS] & _IS_ENCRYPTED)
            or powerpoint[_POWERPOINT_TOKEN] == _ENCRYPTED_TOKEN
        ):
            raise Unread(Outcome.ENCRYPTED, "needs a password")


def _start(file: olefile.OleFileIO, name: str) -> bytes:
    data: bytes = file.openstream(name).read(16) if file.exists(name) else b""
    return data


def ole_metadata(body: bytes, builder: DocumentBuilder) -> None:
    with opened(body) as file:
        found = file.get_metadata()
    codepage = f"cp{found.codepage}" if found.codepage and found.codepage > 0 else "utf-8"
    builder.title = _text(found.title, codepage)
    builder.author = _text(found.author, codepage)
    if isinstance(found.last_saved_time, datetime) and found.last_saved_time.year > 1980:
        builder.modified = found.last_saved_time.replace(tzinfo=UTC).timestamp()


def _text(value: bytes | str | None, codepage: str) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode(codepage, "replace").strip("\0 ")
        except LookupError:
            return value.decode("cp1252", "replace").strip("\0 ")
    return value or ""


def _is_old_powerpoint(body: bytes) -> bool:
    with opened(body) as file:
        if not file.exists("PowerPoint Document"):
            return bool(file.exists("PP40"))
        return not file.exists("Current User") or file.get_size("Current User") < _SHORTEST_USER


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """Metadata of .doc and .ppt, whose text has no reader in the base install."""
    if not body.startswith((SIGNATURE, bytes(8))) and _ROOT not in body:
        why = "nothing reads it: Word wrote it before version 6, or another program"
        raise Unread(Outcome.NO_READER, why)
    refuse_encrypted(body)
    builder = DocumentBuilder()
    ole_metadata(body, builder)
    page = builder.page(url)
    if _is_old_powerpoint(body):
        raise Unread(Outcome.NO_READER, "nothing reads what PowerPoint wrote before 97", page)
    raise Unread(Outcome.NO_READER, NEEDS_ANOTHER, page)
