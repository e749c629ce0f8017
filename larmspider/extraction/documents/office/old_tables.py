"""Faults that overwritten bytes leave in the tables of doc (MS-DOC), ppt (MS-PPT), xls (MS-XLS).

    next(faults(file), "")     # "" or "a piece of its text is not in the file"

Only the tables are read that lead to the text. Word before 97 has others, and is not checked.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from itertools import pairwise

import olefile

_ODD = re.compile("[\x0e-\x1f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_ODD_8 = re.compile(b"[\x0e-\x1f]")
_ODD_IN_WORD = re.compile("[\x06\x0f-\x12\x16-\x1d\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_ODD_IN_WORD_8 = re.compile(b"[\x06\x0f-\x12\x16-\x1d]")
"""Word has marks of its own among the control characters."""


def faults(file: olefile.OleFileIO) -> Iterator[str]:
    try:
        if file.exists("WordDocument"):
            yield from _of_word(file)
        if file.exists("PowerPoint Document"):
            yield from _of_powerpoint(file)
        for name in ("Workbook", "Book"):
            if file.exists(name):
                yield from _of_excel(file.openstream(name).read(), is_old=name == "Book")
    except (IndexError, struct.error):
        yield "a table ends too early"


def is_odd_wide(data: bytes) -> bool:
    """Whether UTF-16 has half a pair of surrogates, or a character that no text has."""
    text = data[: len(data) & ~1].decode("utf-16-le", "surrogatepass")
    return _ODD.search(text) is not None


# doc

_WORD_97, _FIRST_97, _IS_ENCRYPTED, _OTHER_TABLE = 0xA5EC, 0x00C0, 0x0100, 0x0200
_LENGTHS, _PLACES = struct.Struct("<8i"), 0x9A  # MS-DOC 2.5.4, 2.5.5
_PIECES, _CHARACTERS, _PARAGRAPHS = 33, 12, 13
"""Numbers of tables in the list at `_PLACES`."""
_PAGE = 512
_PIECE = struct.Struct("<HIH")
_COMPRESSED = 0x40000000


def _of_word(file: olefile.OleFileIO) -> Iterator[str]:
    text = file.openstream("WordDocument").read()
    kind, version = struct.unpack_from("<HH", text)
    (flags,) = struct.unpack_from("<H", text, 10)
    if kind != _WORD_97 or version < _FIRST_97 or flags & _IS_ENCRYPTED:
        return
    table: bytes = file.openstream("1Table" if flags & _OTHER_TABLE else "0Table").read()

    def place(number: int) -> bytes:
        start, size = struct.unpack_from("<II", text, _PLACES + 8 * number)
        return table[start : start + size]

    lengths = _LENGTHS.unpack_from(text, 0x4C)
    if min(lengths) < 0:
        yield "a length of its text is negative"
    beside = sum(lengths[1:])
    yield from _of_pieces(place(_PIECES), text, lengths[0] + beside + bool(beside))
    for number, most in ((_CHARACTERS, 0x65), (_PARAGRAPHS, 0x1D)):
        yield from _of_pages(place(number), text, most)


def _of_pieces(table: bytes, text: bytes, size: int) -> Iterator[str]:
    """The pieces in which Word keeps a text (MS-DOC 2.9.38)."""
    at = 0
    while table[at] == 1:
        at += 3 + struct.unpack_from("<H", table, at + 1)[0]
    (length,) = struct.unpack_from("<I", table, at + 1)
    number, at = (length - 4) // 12, at + 5
    if table[at - 5] != 2 or (length - 4) % 12 or number < 1 or at + length > len(table):
        yield "the list of its pieces is damaged"
        return
    starts = struct.unpack_from(f"<{number + 1}I", table, at)
    if starts[0] or starts[-1] != size or not _ascends(starts):
        yield "the pieces of its text do not follow each other"
        return
    for index, (start, end) in enumerate(pairwise(starts)):
        _, place, _ = _PIECE.unpack_from(table, at + 4 * (number + 1) + 8 * index)
        if is_single := bool(place & _COMPRESSED):
            place = (place & (_COMPRESSED - 1)) // 2
        letters = (end - start) * (1 if is_single else 2)
        data = text[place : place + letters]
        if len(data) < letters:
            yield "a piece of its text is not in the file"
        if _ODD_IN_WORD_8.search(data) if is_single else _is_odd_in_word(data):
            yield "its text has characters that no text has"


def _is_odd_in_word(data: bytes) -> bool:
    return _ODD_IN_WORD.search(data.decode("utf-16-le", "surrogatepass")) is not None


def _of_pages(table: bytes, text: bytes, most: int) -> Iterator[str]:
    """The pages that say where runs or paragraphs of a text end (MS-DOC 2.9.33, 2.9.174)."""
    number = (len(table) - 4) // 8
    if number < 1 or (len(table) - 4) % 8 or number > len(text) // _PAGE:
        yield "a list of its formats is damaged"
        return
    if not _ascends(struct.unpack_from(f"<{number + 1}I", table)):
        yield "a list of its formats does not ascend"
    for page in struct.unpack_from(f"<{number}I", table, 4 * (number + 1)):
        data = text[(page & 0x3FFFFF) * _PAGE :][:_PAGE]
        if len(data) < _PAGE or not 1 <= data[-1] <= most:
            yield "a page of its formats is damaged"
        elif not _ascends(struct.unpack_from(f"<{data[-1] + 1}I", data)):
            yield "a page of its formats does not ascend"


def _ascends(numbers: tuple[int, ...]) -> bool:
    return all(one < other for one, other in pairwise(numbers))


# ppt

_RECORD = struct.Struct("<HHI")
_EDIT, _PERSISTED = 0x0FF5, 0x1772
_WIDE_TEXTS, _TEXT = (0x0FA0, 0x0FBA), 0x0FA8
_FAMILIES = ((0x03E8, 0x1800), (0x2AF8, 0x3100), (0xF000, 0xF200))
"""Types of records that PowerPoint and its drawings have."""
_PACKED = frozenset((0x040E, 0x040F, *range(0x041C, 0x0429)))
"""Zip files for later versions, in what looks like a list of records."""
_MAX_DEPTH, _MAX_RECORDS = 50, 2_000_000


def _of_powerpoint(file: olefile.OleFileIO) -> Iterator[str]:
    data = file.openstream("PowerPoint Document").read()
    (edit,) = struct.unpack_from("<I", file.openstream("Current User").read(), 16)
    if edit + _RECORD.size > len(data):
        return  # PowerPoint looks for the newest version itself
    places: dict[int, int] = {}
    seen: set[int] = set()
    while edit:
        if edit in seen or _RECORD.unpack_from(data, edit)[1] != _EDIT:
            yield "the list of its versions is damaged"
            return
        seen.add(edit)
        before, listed = struct.unpack_from("<II", data, edit + 16)
        for number, place in _persisted(data, listed):
            places.setdefault(number, place)
        edit = before
    walked: set[int] = set()
    for place in sorted(set(places.values())):
        yield from _of_records(data, place, walked)


def _persisted(data: bytes, at: int) -> Iterator[tuple[int, int]]:
    """Numbers of slides and the like, and where they are (MS-PPT 2.3.4)."""
    _, kind, size = _RECORD.unpack_from(data, at)
    if kind != _PERSISTED:
        raise IndexError
    at += _RECORD.size
    end = min(at + size, len(data))
    while at < end:
        (word,) = struct.unpack_from("<I", data, at)
        first, number = word & 0xFFFFF, word >> 20
        at += 4
        for index, place in enumerate(struct.unpack_from(f"<{number}I", data, at)):
            yield first + index, place
        at += 4 * number


def _of_records(data: bytes, start: int, walked: set[int]) -> Iterator[str]:
    """A record and the records in it, which have to fill it."""
    open_ends = [start + _RECORD.size + _RECORD.unpack_from(data, start)[2]]
    if open_ends[0] > len(data):
        yield "a record is longer than its file"
        return
    at = start
    while open_ends:
        if at == open_ends[-1]:
            open_ends.pop()
            continue
        if at in walked or len(walked) > _MAX_RECORDS:
            return
        walked.add(at)
        options, kind, size = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        if at + size > open_ends[-1] or not any(low <= kind < top for low, top in _FAMILIES):
            yield "a record is longer than the record around it, or of an unknown kind"
            return
        if options & 15 == 15 and kind not in _PACKED:
            if len(open_ends) > _MAX_DEPTH:
                return
            open_ends.append(at + size)
            continue
        if _is_odd_text(kind, data[at : at + size]):
            yield "its text has characters that no text has"
        at += size


def _is_odd_text(kind: int, data: bytes) -> bool:
    if kind == _TEXT:
        return _ODD_8.search(data) is not None
    return kind in _WIDE_TEXTS and (len(data) % 2 == 1 or is_odd_wide(data))


# xls

_BIFF = struct.Struct("<HH")
_BEGIN, _BEGIN_OLD, _END, _FILEPASS, _SHEET, _STRINGS, _CONTINUE = (
    *(0x0809, 0x0409),
    *(0x000A, 0x002F, 0x0085, 0x00FC, 0x003C),
)
_SIZES = {0x00FD: 10, 0x027E: 10, 0x0203: 14, 0x0201: 6}
"""LABELSST, RK, NUMBER and BLANK (MS-XLS 2.4)."""
_KINDS = frozenset((0x00, 0x01, 0x02, 0x04, 0x08, 0x10))
"""High bytes of the types of records."""
_LONGEST = 8_224
_MANY_BYTES, _HAS_RUNS, _HAS_MORE = 1, 8, 4


def _of_excel(data: bytes, *, is_old: bool) -> Iterator[str]:
    at = depth = 0
    begins, sheets = set(), []
    is_encrypted = False
    strings: list[bytes] = []
    before = 0
    while at + _BIFF.size <= len(data):
        kind, size = _BIFF.unpack_from(data, at)
        if not depth and kind not in (_BEGIN, _BEGIN_OLD):
            if kind or size:
                yield "there is something between its sheets"
                return
            break  # zeros
        body = data[at + _BIFF.size : at + _BIFF.size + size]
        if len(body) < size or size > _LONGEST or kind >> 8 not in _KINDS:
            yield "a record is too long, or of an unknown kind"
            return
        if not is_old and _SIZES.get(kind, size) != size:
            yield "the size of a cell does not fit its kind"
        if kind in (_BEGIN, _BEGIN_OLD):
            depth += 1
            begins.add(at)
        elif kind == _END:
            depth -= 1
        elif kind == _FILEPASS:
            is_encrypted = True
        elif kind == _SHEET:
            sheets.append(int.from_bytes(body[:4], "little"))
        elif kind == _STRINGS or (kind == _CONTINUE and before == _STRINGS):
            strings.append(body)
            kind = _STRINGS
        before = kind
        at += _BIFF.size + size
    if depth:
        yield "a sheet does not end"
    if is_encrypted:
        return
    if not begins.issuperset(sheets):
        yield "a sheet is not where its list says"
    if strings and not is_old:
        yield from _Strings(strings).faults()


class _Strings:
    """The table of strings, which may begin in one record and end in another (MS-XLS 2.4.265)."""

    def __init__(self, records: list[bytes]) -> None:
        self._records, self._record, self._at = records, 0, 0

    def faults(self) -> Iterator[str]:
        _, number = struct.unpack("<II", self._take(8))
        for _ in range(number):
            if self._left() == 0:
                if self._record == len(self._records) - 1:
                    return  # its number is too large, as some programs write it
                self._next()
            length, flags = struct.unpack("<HB", self._take(3))
            if flags & ~(_MANY_BYTES | _HAS_RUNS | _HAS_MORE):
                yield "a string has unknown flags"
            runs = int.from_bytes(self._take(2), "little") if flags & _HAS_RUNS else 0
            more = int.from_bytes(self._take(4), "little") if flags & _HAS_MORE else 0
            if self._is_odd(length, flags & _MANY_BYTES):
                yield "its text has characters that no text has"
            self._take(4 * runs + more)
        if self._left() or self._record < len(self._records) - 1:
            yield "its strings end too early"

    def _left(self) -> int:
        return len(self._records[self._record]) - self._at

    def _next(self) -> None:
        self._record, self._at = self._record + 1, 0

    def _take(self, size: int) -> bytes:
        pieces = []
        while size:
            if self._left() == 0:
                self._next()
            piece = self._records[self._record][self._at : self._at + size]
            self._at += len(piece)
            size -= len(piece)
            pieces.append(piece)
        return b"".join(pieces)

    def _is_odd(self, length: int, is_wide: int) -> bool:
        """Whether the next string has odd characters. Each record says how wide its letters are."""
        is_odd = False
        while length:
            if self._left() == 0:
                self._next()
                (is_wide,) = self._take(1)
                if is_wide > 1:
                    return True
            width = 2 if is_wide else 1
            letters = min(length, self._left() // width)
            if not letters:
                return True
            data = self._take(letters * width)
            length -= letters
            is_odd = is_odd or (is_odd_wide(data) if is_wide else bool(_ODD_8.search(data)))
        return is_odd
