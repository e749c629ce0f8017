"""Archives: zip, tar and compressed files, whose members are parts of the document (parts.py).

Read are zip (stored, Deflate, bzip2, LZMA; streamed, with zip64, after other bytes), tar (ustar,
GNU, pax, before POSIX; sparse members), gzip, bzip2, xz, lzma and Zstandard, each also around a
tar. A size that an archive claims counts for nothing. Not read: members with a password
(``encrypted``), zip by other methods and in several files (``no-reader``), and comments.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import struct
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from copy import copy
from typing import Any

from larmspider.extraction.documents.broken_zip import is_listed_within, with_list
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.ole import SIGNATURE, refuse_encrypted
from larmspider.extraction.documents.parts import DAMAGES, MAX_MEMBERS, Budget, Member, or_why
from larmspider.extraction.documents.reading import Unread
from larmspider.extraction.documents.zip_names import ZipNames, without_false_flags
from larmspider.items import Outcome, Page

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_OPENERS: dict[str, Any] = {
    "application/gzip": gzip.open,
    "application/x-bzip2": lambda file: _Streams(file, bz2.BZ2Decompressor),
    "application/x-xz": lambda file: _Streams(file, lzma.LZMADecompressor),
    "application/x-lzma": lzma.open,
    "application/zstd": zstd.open,
}
_PIECE = 1 << 16
_END_BYTES = (1 << 16) + 22
"""Bytes at the end of a zip file in which the head of its list lies (APPNOTE 4.3.16)."""
_HEAD_BYTES = 30  # bytes of a member's head before its name
_UNPACKED = ("gz", "bz2", "xz", "z", "zst", "lzma")
_UNKNOWN_METHOD = "its compression is not supported"


class _Streams(io.RawIOBase):
    """The streams of an xz or bzip2 file, unpacked as they are read. Zeros may separate them (xz
    1.2, 2.2). ``lzma.open`` and ``bz2.open`` would take zeros or a damaged stream for the end."""

    def __init__(self, packed: io.BytesIO, make: Any) -> None:
        self._packed, self._make, self._stream = packed, make, make()

    def read(self, size: int = -1) -> bytes:
        while True:
            packed = b""
            if self._stream.eof:
                if not (packed := self._next_stream()):
                    return b""
                self._stream = self._make()
            elif self._stream.needs_input and not (packed := self._packed.read(_PIECE)):
                raise EOFError("it is cut off")
            if data := self._stream.decompress(packed, size):
                return bytes(data)

    def _next_stream(self) -> bytes:
        """The first bytes of the next stream; b"" at the end of the file."""
        packed: bytes = self._stream.unused_data
        while not (packed := packed.lstrip(b"\0")):
            if not (packed := self._packed.read(_PIECE)):
                return b""
        return packed


class ZipReader:
    """The members of a zip file by name, within the limits. Raises Unread.

    Damage costs the members that it hits: a damaged list is replaced (broken_zip.py), a member that
    is not where the list says is found by its own head, and `beginning` gives the bytes before a
    fault. `end` then raises the fault."""

    def __init__(self, body: bytes, budget: Budget | None = None) -> None:
        self.budget = Budget(len(body)) if budget is None else budget
        self._body = body
        self.lies = False
        """Whether a member that was read has a size other than the list says."""
        if body.startswith(SIGNATURE):
            refuse_encrypted(body)
        self.damage: Unread | None = None
        """Why the list or a member could not be read."""
        self._scanned: zipfile.ZipFile | None = None
        try:
            self._zip = _opened(body)
        except DAMAGES as error:
            self.damage = Unread(Outcome.DAMAGED, f"the zip file cannot be read: {error}")
            self._zip = self._scanned = self._repaired(self.damage)
        self.infos = self._zip.infolist()[: MAX_MEMBERS + 1]
        self.names = frozenset(info.filename for info in self.infos)

    def _repaired(self, damage: Unread) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(io.BytesIO(with_list(self._body)))
        except DAMAGES:
            raise damage from None

    def beginning(self, name: str) -> bytes:
        """The bytes of a member, or the bytes before its damage. Raises Unread if there are
        none."""
        try:
            return self.read(name)
        except Unread as unread:
            if unread.outcome is not Outcome.DAMAGED or not unread.data:
                raise
            return unread.data

    def end(self) -> None:
        """Raises Unread if the list of members, or a member that was read, is damaged."""
        if self.damage is not None:
            raise self.damage

    def read(self, name: str | zipfile.ZipInfo) -> bytes:
        info = self._zip.getinfo(name) if isinstance(name, str) else name
        try:
            return self._read(self._zip, info)
        except Unread as unread:
            if unread.outcome is not Outcome.DAMAGED:
                raise
            self.damage = self.damage or unread
            if unread.data or self._scanned is self._zip:
                raise
            if self._scanned is None:  # bytes that were lost or added shift what is behind them
                self._scanned = self._repaired(unread)
            found = self._scanned.NameToInfo.get(info.filename)
            if found is None or found.flag_bits & 1:
                raise
        return self._read(self._scanned, found)

    def _read(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
        if info.flag_bits & 1:
            raise Unread(Outcome.ENCRYPTED, "needs a password")
        left = self.budget.bytes
        try:
            with archive.open(info) as file:
                data = self.budget.read(file, info.filename)
                self.lies |= len(data) != info.file_size
                return data
        except Unread as unread:
            if unread.outcome is not Outcome.DAMAGED:
                raise
            fault = unread
        except NotImplementedError:
            raise Unread(Outcome.NO_READER, _UNKNOWN_METHOD) from None
        except DAMAGES as error:
            raise Unread(Outcome.DAMAGED, f"{info.filename} cannot be read: {error}") from None
        self.budget.bytes = left
        data = self._to_its_end(archive, info)
        if zlib.crc32(data) == info.CRC:
            self.lies = True
            return data
        fault.data = max(fault.data, data, key=len)
        raise fault

    def _to_its_end(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
        """The bytes of a member whose sizes or checksum are wrong: deflate says where it ends.
        Raises Unread."""
        real = copy(info)
        begin = info.header_offset + _HEAD_BYTES
        begin += sum(struct.unpack_from("<HH", self._body, begin - 4))  # of name and extra field
        real.compress_size, real.file_size = max(0, len(self._body) - begin), 1 << 62
        if info.compress_type == zipfile.ZIP_STORED:
            real.compress_size = real.file_size = info.compress_size
        del real.CRC  # so that zipfile does not compare it
        try:
            with archive.open(real) as file:
                return self.budget.read(file, info.filename)
        except Unread as unread:
            if unread.outcome is Outcome.DAMAGED:
                return unread.data
            raise

    def checked(self, body: bytes) -> bytes:
        """``body`` for a library that unpacks it itself, has no limits and trusts the sizes in the
        list. All members are unpacked; if one has another size, all are packed again. Raises
        Unread."""
        claims = False
        for info in self.infos:
            data = self.read(info)
            claims |= without_claims(data) is not data
        if not claims and not self.lies:
            return body
        honest = io.BytesIO()
        reader = ZipReader(body)
        with zipfile.ZipFile(honest, "w") as made:
            for name in dict.fromkeys(info.filename for info in self.infos):  # keeps their order
                made.writestr(name, without_claims(reader.read(name)))
        return honest.getvalue()


def _opened(body: bytes) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
    except UnicodeDecodeError:
        archive = zipfile.ZipFile(io.BytesIO(without_false_flags(body)))
    if is_listed_within(body, archive):
        raise zipfile.BadZipFile("it has lost its list")
    return archive


_COUNT = re.compile(rb"""\s(?:count|uniqueCount)\s*=\s*["'](\d+)["']""")


def without_claims(data: bytes) -> bytes:
    """XML without a count of elements that is larger than the file (ECMA-376 18.4.9); ``data``
    itself if it has no such count."""
    if not data.startswith((b"<", b"\xef\xbb\xbf<")):
        return data
    if b"ount" not in data:
        return data
    most = len(str(len(data)))
    if all(len(found.lstrip(b"0")) <= most for found in _COUNT.findall(data)):
        return data
    return _COUNT.sub(lambda found: found[0] if len(found[1].lstrip(b"0")) <= most else b"", data)


def extract(body: bytes, url: str, content_type: str | None) -> Page:
    """The only text of an archive is the names of its members."""
    return Page(url)


def members(body: bytes, name: str, budget: Budget) -> Iterator[Member]:
    mime = document_type(body)
    if mime == "application/zip":
        _refuse_pieces(body)
        reader = ZipReader(body, budget)
        damage, names = reader.damage, ZipNames(reader.infos)
        for info in reader.infos:
            name = names.of(info)
            if not name.endswith("/"):
                yield Member(name, or_why(lambda: reader.read(info)))  # noqa: B023
        if damage is not None:
            raise damage
    elif mime == "application/x-tar":
        yield from _tar(body, budget)
    elif mime in _OPENERS:
        yield from _unpacked(body, mime, name, budget)
    else:
        _refuse_pieces(body)
        raise Unread(Outcome.DAMAGED, "it is not an archive")


def _refuse_pieces(body: bytes) -> None:
    """Raises Unread for one of the files of a split zip archive (APPNOTE 8.3)."""
    end = body.rfind(b"PK\x05\x06", max(0, len(body) - _END_BYTES))
    number = body[end + 4 : end + 6] if end >= 0 else b""
    if number.strip(b"\0\xff") or (end < 0 and body.startswith(b"PK\x07\x08PK")):
        raise Unread(Outcome.NO_READER, "it is one of several files that are one archive")


def _unpacked(body: bytes, mime: str, name: str, budget: Budget) -> Iterator[Member]:
    fault: Unread | None = None
    try:
        with _OPENERS[mime](io.BytesIO(body)) as file:
            data = budget.read(file)
    except Unread as unread:
        if not unread.data:
            raise
        fault, data = unread, unread.data
    except DAMAGES as error:
        raise Unread(Outcome.DAMAGED, f"it cannot be unpacked: {error}") from None
    if document_type(data) == "application/x-tar":
        yield from _tar(data, budget, counted=True)
        if fault is not None:
            raise fault
    else:
        stem, _, extension = name.rpartition(".")
        inside = stem if stem and extension.lower() in _UNPACKED else name or "content"
        yield Member(inside, data if fault is None else fault)


def _tar(body: bytes, budget: Budget, *, counted: bool = False) -> Iterator[Member]:
    """``counted``: the bytes of the members were counted when the archive was unpacked, except the
    holes of sparse files. A member that claims to go beyond the archive, or to have a negative
    size, ends at the next head."""
    at, file = 0, io.BytesIO(body)
    for _ in range(_MAX_LIES):
        file.seek(at)
        try:
            with tarfile.open(fileobj=file, mode="r:") as archive:
                for info in archive:
                    begin, lies = info.offset_data, False
                    if not info.issparse():
                        lies = info.size < 0 or begin + info.size > len(body)
                    if lies:
                        at = _next_head(body, begin)
                        break
                    if info.issparse() and info.size > min(_MAX_HOLES, budget.bytes // 2):
                        if not counted:
                            budget.take(_stored(info, body))
                        yield Member(_plain(info), _without_holes(info, body))
                    elif (
                        member := archive.extractfile(info) if info.isfile() else None
                    ) is not None:
                        with member:
                            before = counted and not info.issparse()
                            data = or_why(lambda: budget.read(member, counted=before))  # noqa: B023
                            yield Member(_plain(info), data)
                else:
                    return
        except DAMAGES as error:
            raise Unread(Outcome.DAMAGED, f"the tar file cannot be read: {error}") from None
        cut = Unread(Outcome.DAMAGED, "it says that it is larger than the archive")
        cut.data = body[begin:at].rstrip(b"\0")
        if not counted:
            budget.take(cut.data)
        if info.isfile():
            yield Member(_plain(info), cut)
        if at >= len(body):
            return


_MAX_HOLES = 1_000_000
"""Bytes of a sparse member that is read with its holes, which are zeros."""
_MAX_LIES = 100
"""Members of wrong sizes in a tar file that are passed over."""


def _without_holes(info: tarfile.TarInfo, body: bytes) -> Unread:
    """The outcome, with the data between the holes of a sparse member that may be too large."""
    why = f"it unpacks to {info.size:,} bytes with its holes; what is between them is searched"
    cut = Unread(Outcome.TOO_LARGE, why)
    cut.data = _stored(info, body)
    return cut


def _stored(info: tarfile.TarInfo, body: bytes) -> bytes:
    """The bytes of a sparse member that lie in the archive, one stretch behind the other."""
    stretches = getattr(info, "sparse", None) or ()
    at = info.offset_data
    pieces = []
    for _, size in stretches:
        pieces.append(body[at : at + max(0, size)].strip(b"\0"))
        at += max(0, size)
    return b"\n".join(filter(None, pieces))


def _plain(info: tarfile.TarInfo) -> str:
    return info.name.removeprefix("./")


def _next_head(body: bytes, begin: int) -> int:
    """Where the next member begins, after ``begin``; the end if no member follows."""
    at = begin
    while (at := body.find(b"ustar", at)) >= 0:
        head = at - 257
        if head >= begin and head % tarfile.BLOCKSIZE == 0:
            try:
                tarfile.TarInfo.frombuf(body[head : head + tarfile.BLOCKSIZE], "utf-8", "replace")
            except tarfile.TarError:
                pass
            else:
                return head
        at += 1
    return len(body)
