"""A zip file whose list of members is missing or damaged: it was cut off, or overwritten there.

    zipfile.ZipFile(io.BytesIO(with_list(body)))

Each member has a head of its own (APPNOTE 4.3.7), which gives its entry in a new list. A streamed
member has its sizes after it (4.3.9). A member without known sizes goes to the next head, and the
last one to the end.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from typing import NamedTuple

_HEAD = struct.Struct("<4s5H3I2H")
_LISTED = struct.Struct("<4s6H3I5H2I")
_SIZES_BEHIND = re.compile(rb"PK\x07\x08(?=(.{12}))", re.DOTALL)
_STREAMED = 8
_UNKNOWN = 0xFFFFFFFF
_JUNK_BYTES = 1_024  # before the first member
_MAX_LISTED = 10_000  # as parts.MAX_MEMBERS
_MAX_STREAMED = 10 * _MAX_LISTED


class _Sizes(NamedTuple):
    crc: int
    packed: int
    unpacked: int


def is_broken(body: bytes) -> bool:
    """Whether ``body`` is a zip file whose list of members cannot be read."""
    if body.find(b"PK\3\4", 0, _JUNK_BYTES) < 0:
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            return is_listed_within(body, archive)
    except Exception:  # noqa: BLE001 - zipfile and its codecs raise what bytes make them raise
        return True


def is_listed_within(body: bytes, archive: zipfile.ZipFile) -> bool:
    """Whether ``body`` has lost its list, and ``archive`` has the list of a member: a docx that is
    stored unpacked."""
    places = [info.header_offset for info in archive.infolist()]
    return body.startswith(b"PK\3\4") and bool(places) and min(places) > 0


def with_list(body: bytes) -> bytes:
    """``body`` with a new list of its members after it. Raises BadZipFile if there are none."""
    behind = _sizes_behind(body)
    listed: list[bytes] = []
    at = body.find(b"PK\3\4")
    while 0 <= at <= len(body) - _HEAD.size and len(listed) <= _MAX_LISTED:
        _, version, flags, method, time, day, *sizes, name, extra = _HEAD.unpack_from(body, at)
        begin = at + _HEAD.size + name + extra
        if begin > len(body):
            break
        found = _Sizes(*sizes)
        if flags & _STREAMED or _UNKNOWN in found[1:]:
            found = behind.get(begin) or _Sizes(found.crc, _UNKNOWN, _UNKNOWN)
        known = found.packed if found.packed != _UNKNOWN else 0
        if begin + known < len(body) and not body.startswith(b"PK", begin + known):
            known = 0  # bytes are missing, or there are too many
        following = body.find(b"PK\3\4", begin + known)
        end = following if following >= 0 else len(body)
        packed = min(found.packed, end - begin)
        unpacked = min(found.unpacked, _UNKNOWN - 1)
        fields = version, version, flags, method, time, day, found.crc, packed, unpacked
        heads = name, extra, 0, 0, 0, 0, at
        text = body[at + _HEAD.size : begin]
        listed.append(_LISTED.pack(b"PK\1\2", *fields, *heads) + text)
        at = following
    if not listed:
        raise zipfile.BadZipFile("it has no member")
    whole = b"".join(listed)
    ends = struct.pack(
        "<4s4H2IH", b"PK\5\6", 0, 0, len(listed), len(listed), len(whole), len(body), 0
    )
    return body + whole + ends


def _sizes_behind(body: bytes) -> dict[int, _Sizes]:
    """The sizes of streamed members, by the places where these begin."""
    found = {}
    for match in _SIZES_BEHIND.finditer(body):
        sizes = _Sizes(*struct.unpack("<3I", match[1]))
        found[match.start() - sizes.packed] = sizes
        if len(found) > _MAX_STREAMED:
            break
    return found
