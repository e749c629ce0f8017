"""7z, by py7zr: the members are parts of the document (parts.py), whatever packs them (LZMA, PPMd,
Deflate64, BCJ). Without py7zr the second reader (tika.py) finds their text.

py7zr unpacks all members in the order of the archive, and hands over what it has unpacked. An
archive that is damaged, or too large, has the members before that place. Files or a list that need
a password are ``encrypted``. Not read: archives in several files.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from larmspider.extraction.documents.ole import NEEDS_ANOTHER
from larmspider.extraction.documents.parts import (
    MAX_MEMBER_BYTES,
    MAX_MEMBERS,
    Budget,
    Member,
    Spent,
)
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Outcome, Page

_KEPT_BYTES = 8 << 20
"""First bytes of a member that is too large, which are searched."""


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """The only text of an archive is the names of its members."""
    if find_spec("py7zr") is None:
        raise Unread(Outcome.NO_READER, NEEDS_ANOTHER)
    return Page(url)


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    """Raises Unread."""
    import py7zr  # 0.1 s, and few crawls need it
    from py7zr import exceptions

    files = _Files(budget)
    fault: Unread | None = None
    try:
        with py7zr.SevenZipFile(io.BytesIO(body)) as archive:
            if archive.needs_password():
                raise Unread(Outcome.ENCRYPTED, "needs a password")
            archive.extractall(factory=files)
    except MemoryError:
        raise
    except Unread as unread:
        fault = unread
    except exceptions.PasswordRequired:
        raise Unread(Outcome.ENCRYPTED, "needs a password") from None
    except exceptions.UnsupportedCompressionMethodError:
        fault = Unread(Outcome.NO_READER, "its compression is not supported")
    except Exception as error:  # noqa: BLE001 - LZMAError, CrcError, struct.error and more
        fault = Unread(Outcome.DAMAGED, f"it cannot be unpacked: {error!r}"[:500])
    yield from files.members(fault)
    if fault is not None:
        raise fault


class _Files:
    """The members as py7zr unpacks them (py7zr.io.WriterFactory)."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._files: list[_File] = []

    def create(self, filename: str) -> _File:
        if len(self._files) > MAX_MEMBERS:
            raise Spent(Outcome.TOO_LARGE, f"it holds more than {MAX_MEMBERS:,} documents")
        self._files.append(_File(filename, self._budget))
        return self._files[-1]

    def members(self, fault: Unread | None) -> Iterator[Member]:
        """``fault``: the error that ended the unpacking; the incomplete member carries it."""
        for file in self._files:
            data = bytes(file.data)
            cut = file.fault or (None if file.is_whole else fault)
            if cut is None:
                yield Member(file.name, data)
            elif data:
                part = Unread(cut.outcome, str(cut))
                part.data = data[:_KEPT_BYTES]
                yield Member(file.name, part)
            else:
                yield Member(file.name, Unread(cut.outcome, str(cut)))


class _File:
    """One member (py7zr.io.Py7zIO), within the limits."""

    def __init__(self, name: str, budget: Budget) -> None:
        self.name, self._budget = name, budget
        self.data = bytearray()
        self.is_whole = False
        self.fault: Unread | None = None

    def write(self, data: Any) -> int:
        self._budget.take(data)
        if self.fault is None:
            self.data += data
            if len(self.data) > MAX_MEMBER_BYTES:
                why = f"it unpacks to more than {MAX_MEMBER_BYTES:,} bytes"
                self.fault = Unread(Outcome.TOO_LARGE, why)
                del self.data[_KEPT_BYTES:]
        return len(data)

    def read(self, size: int | None = None) -> bytes:
        return bytes(self.data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def flush(self) -> None:
        pass

    def size(self) -> int:
        return len(self.data)

    def close(self) -> None:
        self.is_whole = True
