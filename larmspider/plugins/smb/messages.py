"""Messages of SMB 2 and 3 (MS-SMB2 2.2), as bytes. smbprotocol's own take eight times as long.

[create("a.odt", READ_FILE), query_security(), read(0, 65_536), close()]      # one request
"""

from __future__ import annotations

import struct
from typing import NamedTuple

HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
"""Protocol, size, charge, status, command, credits, flags, next, id, -, tree, session, signature"""
MAGIC = b"\xfeSMB"
CREATE, CLOSE, READ, IOCTL, QUERY_DIRECTORY, QUERY_INFO = 5, 6, 8, 11, 14, 16
RELATED, SIGNED, IS_ASYNC, DFS_PATH = 0x4, 0x8, 0x2, 0x10000000
THE_OPENED = b"\xff" * 16
"""The file that an earlier message of the same request has opened."""

READ_FILE, READ_FILE_ONLY = 0x120089, 0x100081
"""Rights to open with: content, attributes and the access list; the first two alone."""
READ_RIGHTS = 0x120080
"""Attributes and access list, not the content."""
LIST_FOLDER = 0x100081
PIPE = 0x12019F
IS_FOLDER, IS_NO_FOLDER, NO_RECALL = 0x1, 0x40, 0x400000
FSCTL_DFS_GET_REFERRALS, FSCTL_PIPE_TRANSCEIVE = 0x60194, 0x11C017

_CREATE = struct.Struct("<HBBIQQIIIIIHHII")
_CREATED = struct.Struct("<HBBIQQQQQQII16s")
_QUERY_INFO = struct.Struct("<HBBIHHIII16s")
_READ = struct.Struct("<HBBIQ16sIIIHHB")
_QUERY_DIRECTORY = struct.Struct("<HBBI16sHHI")
_CLOSE = struct.Struct("<HHI16s")
_IOCTL = struct.Struct("<HHI16sIIIIIIII")
_ENTRY = struct.Struct("<IIQQQQQQIIIBB24sHQ")
_EPOCH = 116_444_736_000_000_000  # 1970 in units of 100 ns since 1601
_PAYLOAD = 65_536  # bytes of an answer that one credit pays for
_SECURITY = 3  # info type
_OWNER_AND_DACL = 5
_MAX_SECURITY = 65_536


class Message(NamedTuple):
    command: int
    data: bytes
    charge: int = 1
    """Credits that the answer costs."""


def create(name: str, access: int, options: int = 0) -> Message:
    path = name.encode("utf-16-le")
    data = _CREATE.pack(57, 0, 0, 2, 0, 0, access, 0, 7, 1, options, 120, len(path), 0, 0)
    return Message(CREATE, data + (path or b"\0\0"))


def query_security() -> Message:
    return Message(
        QUERY_INFO,
        _QUERY_INFO.pack(
            41, _SECURITY, 0, _MAX_SECURITY, 0, 0, 0, _OWNER_AND_DACL, 0, THE_OPENED
        ),
    )  # fmt: skip


def query_number() -> Message:
    """FileInternalInformation: the number of a file on its volume."""
    return Message(QUERY_INFO, _QUERY_INFO.pack(41, 1, 6, 8, 0, 0, 0, 0, 0, THE_OPENED))


def read(offset: int, length: int, file: bytes = THE_OPENED) -> Message:
    data = _READ.pack(49, 0x50, 0, length, offset, file, 0, 0, 0, 0, 0, 0)
    return Message(READ, data, _charge(length))


def query_directory(length: int, file: bytes = THE_OPENED) -> Message:
    """FileIdBothDirectoryInformation of the next entries."""
    pattern = "*".encode("utf-16-le")
    data = _QUERY_DIRECTORY.pack(33, 37, 0, 0, file, 96, len(pattern), length)
    return Message(QUERY_DIRECTORY, data + pattern, _charge(length))


def ioctl(code: int, data: bytes, length: int, file: bytes = THE_OPENED) -> Message:
    head = _IOCTL.pack(57, 0, code, file, 120, len(data), 0, 0, 0, length, 1, 0)
    return Message(IOCTL, head + data, _charge(length))


def close(file: bytes = THE_OPENED) -> Message:
    return Message(CLOSE, _CLOSE.pack(24, 0, 0, file))


def _charge(length: int) -> int:
    return max(1, -(-length // _PAYLOAD))


class Reply(NamedTuple):
    """``message`` with its header."""

    status: int
    message: bytes

    def data(self, offset_at: int, length_at: int, width: str = "H") -> bytes:
        """The buffer whose place and length are at these places."""
        (start,) = struct.unpack_from("<" + width, self.message, 64 + offset_at)
        (length,) = struct.unpack_from("<I", self.message, 64 + length_at)
        return self.message[start : start + length]

    @property
    def info(self) -> bytes:
        """The answer of QUERY_INFO or QUERY_DIRECTORY."""
        return self.data(2, 4)

    @property
    def content(self) -> bytes:
        """The answer of READ: content of the file."""
        return self.data(2, 4, "B")

    @property
    def output(self) -> bytes:
        """The answer of IOCTL."""
        return self.data(32, 36, "I")


class Opened(NamedTuple):
    file: bytes
    mtime_ns: int
    size: int
    attributes: int

    @classmethod
    def of(cls, reply: Reply) -> Opened:
        found = _CREATED.unpack_from(reply.message, 64)
        return cls(found[12], ns_of(found[6]), found[9], found[10])


class Entry(NamedTuple):
    """An entry of a folder. ``tag``: the kind of a reparse point."""

    name: str
    mtime_ns: int
    size: int
    attributes: int
    tag: int
    number: int


def entries_of(data: bytes) -> list[Entry]:
    found, at = list[Entry](), 0
    while len(data) - at >= _ENTRY.size:
        (step, _, _, _, written, _, size, _, attributes, length, tag, _, _, _, _, number) = (
            _ENTRY.unpack_from(data, at)
        )
        start = at + _ENTRY.size
        name = data[start : start + length].decode("utf-16-le", "surrogatepass")
        found.append(Entry(name, ns_of(written), size, attributes, tag, number))
        if not step:
            break
        at += step
    return found


def ns_of(time: int) -> int:
    """Nanoseconds since 1970 of a FILETIME."""
    return (time - _EPOCH) * 100 if time else 0
