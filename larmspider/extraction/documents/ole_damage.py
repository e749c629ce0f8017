"""Whether an OLE file was overwritten: OLE has no checksums, but its tables have to agree.

    damage_of(body)        # "" or "the sectors of one stream belong to another, too"

Checked are the chains of sectors, the list of streams, and for doc, ppt and xls their own tables
(office/old_tables.py); for mails of Outlook the sizes of their strings and the checksum of their
RTF. Valid files of Office, LibreOffice, Apache POI and Tika pass. A letter that became another
letter is not noticed.
"""

from __future__ import annotations

import re
import struct
from binascii import crc32
from collections.abc import Iterator

import olefile

from larmspider.extraction.documents.office import old_tables
from larmspider.extraction.documents.ole import SIGNATURE, opened
from larmspider.extraction.documents.reading import Unread
from larmspider.items import Outcome, Page

_ENTRY_BYTES, _NAME_LENGTH, _KIND, _COLOUR = 128, 64, 66, 67  # MS-CFB 2.6.1
_LINKS = struct.Struct("<III")
_NONE, _END = 0xFFFFFFFF, 0xFFFFFFFE
_KINDS = (0, olefile.STGTY_STORAGE, olefile.STGTY_STREAM, olefile.STGTY_ROOT)
_PROPERTIES, _STREAM = "__properties_version1.0", "__substg1.0_"
_PROPERTY = struct.Struct("<HHII4x")  # MS-OXMSG 2.4.2
_HEADS = {"__attach": 8, "__recip_": 8}
"""Bytes before the properties, by the start of the folder's name."""
_OUTERMOST, _INNER = 32, 24
_KEY = re.compile("[0-9A-F]{8}")
_MAX_FOLDERS = 200  # messages, attachments and recipients of a mail
_STRING_8, _STRING, _BINARY = 0x001E, 0x001F, 0x0102
_TERMINATORS = {_STRING: 2, _STRING_8: 1, _BINARY: 0}
"""Bytes that the size of a property counts beyond its stream, by its type."""
_TEXTS, _RTF, _COMPRESSED_RTF = (0x0037, 0x1000), 0x1009, 0x75465A4C
"""Numbers of subject, body and compressed RTF, and how the latter begins."""
_RTF_HEAD = struct.Struct("<IIII")  # MS-OXRTFCP 2.1.3.1.1
_EMPTY = f"{Outcome.NO_TEXT}:"


def mark(body: bytes, page: Page) -> None:
    """Say of ``page`` that it is damaged, if the OLE file ``body`` is and the page says nothing."""
    is_open = not page.unread or page.unread.startswith(_EMPTY)
    if body.startswith(SIGNATURE) and is_open and (why := damage_of(body)):
        page.unread = f"{Outcome.DAMAGED}: {why}"


def damage_of(body: bytes) -> str:
    """The first fault, or "" without one."""
    try:
        with opened(body) as file:
            return next(_faults(file), "")
    except Unread as refused:
        return str(refused)


def _faults(file: olefile.OleFileIO) -> Iterator[str]:
    yield from _chains(file)
    yield from _entries(file)
    yield from old_tables.faults(file)
    if file.exists(_PROPERTIES):
        yield from _of_mail(file)


def _chains(file: olefile.OleFileIO) -> Iterator[str]:
    """Every stream has its own sectors, as many as its size says (MS-CFB 2.3)."""
    file.loadminifat()
    used: dict[bool, set[int]] = {False: set(), True: set()}
    for entry in file.direntries:
        if entry is None or entry.entry_type != olefile.STGTY_STREAM or not entry.size:
            continue
        is_small = entry.size < file.minisectorcutoff
        table, size = (
            (file.minifat, file.mini_sector_size) if is_small else (file.fat, file.sector_size)
        )
        at = entry.isectStart
        for _ in range(-(-entry.size // size)):
            if at >= len(table):
                yield "a stream continues where the file has no sector"
                return
            if at in used[is_small]:
                yield "two streams have the same sector"
                return
            used[is_small].add(at)
            at = table[at]
        if at != _END and at >= len(table):
            yield "a stream has no end"


def _entries(file: olefile.OleFileIO) -> Iterator[str]:
    """Each entry of the list of streams has a possible name, and a place in the tree."""
    data = file.directory_fp.getvalue()
    number = len(data) // _ENTRY_BYTES
    for index in range(number):
        entry = data[index * _ENTRY_BYTES : (index + 1) * _ENTRY_BYTES]
        kind, length = entry[_KIND], int.from_bytes(entry[_NAME_LENGTH:_KIND], "little")
        if kind not in _KINDS:
            yield "an entry of the list of streams has an unknown kind"
        is_used = index < len(file.direntries) and file.direntries[index] is not None
        if not is_used and kind:
            yield "a stream has no place in the tree of streams"
        if is_used and kind:
            is_name = 2 <= length <= _NAME_LENGTH and length % 2 == 0
            links = _LINKS.unpack_from(entry, _COLOUR + 1)
            is_linked = all(link == _NONE or link < number for link in links)
            if not is_name or not is_linked or entry[_COLOUR] > 1:
                yield "an entry of the list of streams is overwritten"


def _of_mail(file: olefile.OleFileIO) -> Iterator[str]:
    """Properties and their streams agree, in each folder of a mail (MS-OXMSG 2.1)."""
    folders: list[tuple[tuple[str, ...], olefile.OleDirectoryEntry]] = [((), file.root)]
    checked = 0
    while folders and checked < _MAX_FOLDERS:
        path, folder = folders.pop()
        names = {entry.name: entry for entry in folder.kids}
        folders += [
            ((*path, entry.name), entry)
            for entry in folder.kids
            if entry.entry_type == olefile.STGTY_STORAGE
        ]
        if _PROPERTIES in names:
            checked += 1
            yield from _of_folder(file, path, names)


def _of_folder(
    file: olefile.OleFileIO, path: tuple[str, ...], names: dict[str, olefile.OleDirectoryEntry]
) -> Iterator[str]:
    listed = file.openstream([*path, _PROPERTIES]).read()
    head = _HEADS.get(path[-1][:8], _INNER) if path else _OUTERMOST
    if (len(listed) - head) % _PROPERTY.size:
        yield "a list of properties is cut off"
        return
    streams = {name[len(_STREAM) :].upper(): name for name in names if name.startswith(_STREAM)}
    number_of_streams = len(streams)
    for at in range(head, len(listed), _PROPERTY.size):
        kind, number, _, size = _PROPERTY.unpack_from(listed, at)
        if kind not in _TERMINATORS:
            continue
        name = streams.pop(f"{number:04X}{kind:04X}", "")
        if not name:
            yield "a property has no stream"
            return
        found = names[name].size
        if size not in (found, found + _TERMINATORS[kind]):
            yield "the sizes of a property and its stream differ"
        if number in (*_TEXTS, _RTF):
            yield from _of_property(kind, file.openstream([*path, name]).read())
    left = [key for key in streams if _KEY.fullmatch(key) and int(key[4:], 16) in _TERMINATORS]
    if left and len(streams) < number_of_streams:  # some programs list none
        yield "a stream is not among the properties"


def _of_property(kind: int, data: bytes) -> Iterator[str]:
    if kind == _STRING and old_tables.is_odd_wide(data.rstrip(b"\0")):
        yield "its text has characters that no text has"
    if kind == _BINARY and len(data) >= _RTF_HEAD.size:
        size, _, magic, checksum = _RTF_HEAD.unpack_from(data)
        packed = data[_RTF_HEAD.size : size + 4]
        if magic == _COMPRESSED_RTF and checksum != 0xFFFFFFFF ^ crc32(packed, 0xFFFFFFFF):
            yield "the checksum of its RTF is wrong"
