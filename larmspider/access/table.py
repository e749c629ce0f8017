"""The table of access lists beside an index: ``index/access``.

A document of the index has the number of a *slot*. The table has each slot's list, and the slot of
the folder that a reader has to enter first. If the list of 100,000 files changes, one row of the
table changes, and no document is indexed again.

    table = AccessWriter(Path("crawl/index"))
    table.give("file:///srv/hr/a.odt", rights)     # True: the document has another slot now
    table.slot_of("file:///srv/hr/a.odt")          # 16; None: the document has no list
    table.flush()                                  # durable, and seen by readers

Slots with one list have neighbouring numbers, in blocks of 16, 256 and 4,096. The index also has
the numbers of the blocks as terms (`terms_of`), so a few terms stand for many slots.

The file is a log, and readers continue where they were (`AccessTable.refresh`). A record has its
length, its checksum and a msgpack list of changes:

    ["l", number, list]                 a list
    ["s", number, above, list, name]    a slot: in a folder's slot or -1, with this list
    ["d", names, numbers]               slots of documents, 8 and 4 bytes each; 0xFFFFFFFF: none
    ["f", names, marks]                 what documents were when they were read, 8 and 4 bytes each
    ["m", [name, ...]]                  documents to be written again, as their slots changed
    ["w", [name, ...]]                  documents that were
    ["r", [pattern, ...], [host, ...]]  rules, and hosts that send rights
    ["i", id, number]                   the table, and how many names of "m" and "w" came before

A slot's number never changes its meaning in a table of one id. A server that has
documents with slots follows the names of "m" and "w" (plugins/opensearch/rights.py).
"""

from __future__ import annotations

import os
import secrets
import struct
import threading
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgpack

from larmspider.access.file_rights import files_of
from larmspider.access.lists import OPERATORS_ONLY, AccessList
from larmspider.access.rights import Rights
from larmspider.access.rules import matcher, slot_name
from larmspider.access.sent import Sent
from larmspider.errors import MEND, CrawlDirError
from larmspider.files import replace_file
from larmspider.items import split_part
from larmspider.urls.schemes import is_source

NAME = "access"
NO_SLOT = 0
"""The slot of documents whose rights cannot be read, or are not known yet."""
NOTHING = -1
"""Stands for the folder above a slot that has none."""
BLOCKS = (16, 256, 4_096)
"""Sizes of blocks of slots."""
FOLDERS = 1 << 30
"""Slots from this number on belong to folders and shares, which no document has."""
MAX_BYTES = 1 << 31
"""Largest table: 40 bytes each of 50 million documents."""
_NO_LISTS = 4_096  # bytes of a table that may be without a list
_WASTE = 1 << 20  # bytes of records that no longer count, from which on the table is rewritten
_HEAD = struct.Struct("<II")
_NONE = 0xFFFFFFFF
_FEW_MARKS = 10_000  # in a dictionary, 100 bytes each, before they are sorted into arrays
_LARGEST_RECORD = 1 << 28
_RECORD = 1 << 24  # bytes of a record, from which on changes go to the next one
_NAMES, _NUMBERS = 10_000, 1_000_000  # names and slots of documents in a change


class Slot(NamedTuple):
    """``above`` and ``list`` are numbers."""

    above: int
    list: int
    name: str


def terms_of(slot: int) -> list[str]:
    """The terms of a document: its slot's, and its blocks'."""
    return [f"{slot:x}", *(f"{slot // size:x}/{number}" for number, size in enumerate(BLOCKS))]


def has_lists(directory: Path) -> bool:
    """Whether a document of the index may have a list. True if the table cannot be read."""
    try:
        with (directory / NAME).open("rb") as file:
            if os.fstat(file.fileno()).st_size > _NO_LISTS:
                return True
            changes = [change for record in _records(file) for change in record]
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return any(change[0] != "i" and change != ["r", [], []] for change in changes)


def key_of(name: str) -> int:
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


class AccessTable:
    """The table for readers, also while a crawl writes it."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / NAME
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self.lists: dict[int, AccessList] = {0: OPERATORS_ONLY}
        self.slots: dict[int, Slot] = {NO_SLOT: Slot(NOTHING, 0, "")}
        self.names: dict[str, int] = {}
        self.moved: set[str] = set()
        self.patterns: list[str] = []
        self.hosts: list[str] = []
        self.id, self.moves = "", 0
        self._own: dict[int, int] = {}
        self._match: Callable[[str], int | None] = lambda _url: None
        self._sent = Sent()
        self._read_to, self._file = 0, (0, 0)

    @property
    def version(self) -> tuple[int, int, int]:
        """A value that differs after each change of the table."""
        return (*self._file, self._read_to)

    def refresh(self) -> tuple[int, int, int]:
        """Read what is new; the `version`. Raises CrawlDirError for a damaged table."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            with self._lock:
                if self._read_to:
                    self._clear()
            return self.version
        except OSError as error:
            raise self._unreadable(error.strerror or str(error)) from None
        file = found.st_dev, found.st_ino
        if (file, found.st_size) != (self._file, self._read_to):
            with self._lock:
                if file != self._file or found.st_size < self._read_to:
                    self._clear()
                self._file = file
                self._read()
        return self.version

    def _read(self) -> None:
        try:
            with self.path.open("rb") as file:
                file.seek(self._read_to)
                for changes in _records(file):
                    for change in changes:
                        self._apply(change)
                    self._read_to = file.tell()
        except (OSError, ValueError, LookupError, TypeError, struct.error) as error:
            raise self._unreadable(str(error)) from error

    def _unreadable(self, why: str) -> CrawlDirError:
        return CrawlDirError(f"{self.path}: the access lists cannot be read: {why}; {MEND}")

    def _apply(self, change: Sequence[Any]) -> None:
        kind, *told = change
        if kind == "l":
            self.lists[told[0]] = AccessList.unpack(told[1])
        elif kind == "s":
            number, above, listed, name = told
            self.slots[number] = Slot(above, listed, name)
            if name:
                self.names[name] = number
        elif kind == "d":
            names, numbers = array("Q", told[0]), array("I", told[1])
            for key, number in zip(names, numbers, strict=True):
                if number == _NONE:
                    self._own.pop(key, None)
                else:
                    self._own[key] = number
        elif kind == "m":
            self.moved.update(told[0])
            self.moves += len(told[0])
        elif kind == "w":
            self.moved.difference_update(told[0])
            self.moves += len(told[0])
        elif kind == "i":
            self.id, self.moves = told
        elif kind == "r":
            self.patterns, self.hosts = told
            self._match = matcher(self.patterns)
            self._sent = Sent.of(dict(one.rsplit(" ", 1) for one in self.hosts))

    def slot_of(self, name: str) -> int | None:
        """The slot of a document. A part has the slot of the document that contains it. None if the
        document has no list. Waits while another thread reads the table."""
        with self._lock:
            return self._slot_of(split_part(name)[0])

    def _slot_of(self, name: str) -> int | None:
        rule = self._match(name)
        if rule is not None:
            slot = self.names.get(slot_name(self.patterns[rule]))
            return None if slot is not None and self.list_of(slot).is_for_everyone else slot or 0
        if (own := self._own.get(key_of(name))) is not None:
            return own
        if is_source(name):
            return NO_SLOT if name.endswith("/") else self.names.get(files_of(name), NO_SLOT)
        return NO_SLOT if self._sent.place_of(name) else None

    def is_by_rule(self, slot: int) -> bool:
        """Whether the slot belongs to a rule: its documents are the documents that the rule
        fits."""
        return self.slots[slot].name.startswith("rule ")

    def list_of(self, slot: int) -> AccessList:
        return self.lists[self.slots[slot].list]

    def above(self, slot: int) -> Iterator[AccessList]:
        """The lists of folders and shares to enter first, the innermost first."""
        number, seen = self.slots[slot].above, 0
        while number != NOTHING and seen < len(self.slots):
            yield self.list_of(number)
            number, seen = self.slots[number].above, seen + 1


class _Marks:
    """A number of 32 bits for each of many keys, of 64 bits: 12 bytes in memory."""

    def __init__(self) -> None:
        self._keys, self._numbers = array("Q"), array("I")  # sorted
        self._new = dict[int, int]()

    def __len__(self) -> int:
        return len(self._keys) + len(self._new)

    def get(self, key: int) -> int | None:
        if (found := self._new.get(key)) is not None:
            return found
        at = bisect_left(self._keys, key)
        return self._numbers[at] if at < len(self._keys) and self._keys[at] == key else None

    def put(self, key: int, number: int) -> None:
        self._new[key] = number
        if len(self._new) > _FEW_MARKS + len(self._keys) // 4:
            every = sorted(self.all().items())
            self._keys = array("Q", (key for key, _ in every))
            self._numbers = array("I", (number for _, number in every))
            self._new = {}

    def all(self) -> dict[int, int]:
        return {**dict(zip(self._keys, self._numbers, strict=True)), **self._new}


class AccessWriter(AccessTable):
    """The one writer of a table. All methods may be called in any thread."""

    def __init__(self, directory: Path) -> None:
        """Raises CrawlDirError for a table that cannot be read."""
        self._noted: dict[int, int] = {}
        super().__init__(directory)
        self._writing = threading.RLock()
        self._changes: list[list[Any]] = []
        self._given: dict[int, int] = {}
        self.refresh()
        self._cut_off()
        self._by_digest = {one.digest: number for number, one in self.lists.items()}
        self._by_content = {  # a slot with a name is for the documents that share the name
            (one.above, one.list): number for number, one in self.slots.items() if not one.name
        }
        self._room: dict[tuple[int, ...], tuple[int, int, int]] = {}
        last = max(number for number in self.slots if number < FOLDERS)
        self._next = (last // BLOCKS[-1] + 1) * BLOCKS[-1]
        self._next_folder = max(FOLDERS, *self.slots) + 1
        self._moved_before = set(self.moved)  # as the file has them
        self._touched = set[str]()  # documents marked since, also if written meanwhile
        if not self.id:
            self.id = secrets.token_hex(8)
            self._changes.append(["i", self.id, self.moves])
        self.tidy()

    def _clear(self) -> None:
        super()._clear()
        self._marks = _Marks()

    def _apply(self, change: Sequence[Any]) -> None:
        if change[0] != "f":
            super()._apply(change)
            return
        for key, number in zip(array("Q", change[1]), array("I", change[2]), strict=True):
            self._marks.put(key, number)

    def tidy(self) -> None:
        """Rewrite a file that has more outdated records than valid ones. Raises
        CrawlDirError."""
        with self._writing:
            self.flush()
            if self._live() + _WASTE < self._read_to and 2 * self._live() < self._read_to:
                try:
                    self._rewrite()
                except OSError as error:
                    raise self._unwritable(error) from error

    def _cut_off(self) -> None:
        """Remove a record that a crash left incomplete."""
        if self.path.exists() and self.path.stat().st_size > self._read_to:
            os.truncate(self.path, self._read_to)

    def _live(self) -> int:
        """About the bytes of all records that count."""
        return (
            100 * len(self.slots) + 200 * len(self.lists) + 12 * (len(self._own) + len(self._marks))
        )

    def _rewrite(self) -> None:
        replace_file(self.path, _packed(self._everything()))
        found = self.path.stat()
        self._file, self._read_to = (found.st_dev, found.st_ino), found.st_size
        self.moves += len(self.moved)

    def _everything(self) -> Iterator[list[Any]]:
        yield ["i", self.id, self.moves]
        yield from (["l", number, one.pack()] for number, one in self.lists.items() if number)
        yield from (["s", number, *one] for number, one in self.slots.items() if number)
        yield from _slots("d", self._own)
        yield from _slots("f", self._marks.all())
        yield from _names("m", self.moved)
        yield ["r", self.patterns, self.hosts]

    def changing(self) -> AbstractContextManager[object]:
        """Hold this while several changes belong together."""
        return self._writing

    # what documents have

    def give(self, name: str, rights: Rights | None) -> bool:
        """Give a document its rights; None if it no longer has a list of its own. Returns whether
        its slot changed; then the document has to be indexed again (`moved`)."""
        with self._writing:
            before = self.slot_of(name)
            if rights is None:
                self._assign(name, None)
            else:
                self._assign(name, self._slot_for(rights))
            return self._moves(name, before)

    def assign(self, name: str, slot: int) -> bool:
        """Give a document a slot. Returns whether the slot differs from the earlier one."""
        with self._writing:
            before = self.slot_of(name)
            self._assign(name, slot)
            return self._moves(name, before)

    def _moves(self, name: str, before: int | None) -> bool:
        if self.slot_of(name) == before:
            return False
        self.mark_moved([name])
        return True

    def note_read(self, name: str, mark: str) -> None:
        """The index has what a document was with this ETag."""
        with self._writing:
            key, number = key_of(name), key_of(mark) & _NONE
            if self._marks.get(key) != number:
                self._marks.put(key, number)
                self._noted[key] = number

    def is_replaced(self, name: str, mark: str) -> bool:
        """Whether a document with another ETag was read. False if no ETag is known."""
        with self._writing:
            known = self._marks.get(key_of(name)) if mark else None
            return known is not None and known != key_of(mark) & _NONE

    def written(self, names: Collection[str]) -> None:
        """The index has these documents with their new slots."""
        with self._writing:
            self.moved.difference_update(names)

    def _assign(self, name: str, slot: int | None) -> None:
        key = key_of(name)
        had = self._own.pop(key, None)
        # a slot that follows from the name needs no row; but the files of a folder get a slot when
        # the first of them is given one, which is not for a file whose rights cannot be read
        if slot is not None and (slot == NO_SLOT or self.slot_of(name) != slot):
            self._own[key] = slot
        if had != self._own.get(key):
            self._given[key] = self._own.get(key, _NONE)

    def _slot_for(self, rights: Rights) -> int:
        above = self.enter(rights.above)
        number = self.number_of(rights.list)
        if not number and not rights.name:
            return NO_SLOT
        found = self.names.get(rights.name) if rights.name else None
        if found is not None and self.slots[found][:2] == (above, number):
            return found
        if found is None and rights.name:
            return self._new_slot(above, number, rights.name)
        return self.slot_with(above, number)

    def slot_with(self, above: int, number: int) -> int:
        """A slot with this list, for documents that do not share one by its name."""
        if (found := self._by_content.get((above, number))) is not None:
            return found
        return self._new_slot(above, number, "")

    def enter(self, above: Iterable[tuple[str, AccessList]]) -> int:
        """The slot of the innermost of these folders, each with its present list."""
        slot = NOTHING
        with self._writing:
            for name, rights in above:
                row = Slot(slot, self.number_of(rights), f"in {name}")
                found = self.names.get(row.name)
                if found is None:
                    found, self._next_folder = self._next_folder, self._next_folder + 1
                if self.slots.get(found) != row:
                    self._set(found, row)
                slot = found
        return slot

    def put(self, name: str, rights: AccessList) -> int:
        """The slot of this name, with this list from now on."""
        with self._writing:
            number, found = self.number_of(rights), self.names.get(name)
            if found is None:
                return self._new_slot(NOTHING, number, name)
            if self.slots[found].list != number:
                self.replace(found, NOTHING, number)
            return found

    def replace(self, slot: int, above: int, number: int) -> None:
        """Give all documents of a slot another list."""
        with self._writing:
            before = self.slots[slot]
            if self._by_content.get(before[:2]) == slot:
                del self._by_content[before[:2]]
            self._set(slot, Slot(above, number, before.name))

    def number_of(self, rights: AccessList) -> int:
        with self._writing:
            number = self._by_digest.get(rights.digest)
            if number is None:
                number = self._by_digest[rights.digest] = len(self.lists)
                self.lists[number] = rights
                self._changes.append(["l", number, rights.pack()])
            return number

    def _new_slot(self, above: int, number: int, name: str) -> int:
        slot = self._free_number((number, *self._chain(above)))
        self._set(slot, Slot(above, number, name))
        return slot

    def _set(self, slot: int, row: Slot) -> None:
        self.slots[slot] = row
        if row.name:
            self.names[row.name] = slot
        else:
            self._by_content.setdefault((row.above, row.list), slot)
        self._changes.append(["s", slot, *row])

    def _chain(self, slot: int) -> Iterator[int]:
        """The lists above, each once: folders with the same lists have the same readers."""
        seen = set[int]()
        while slot != NOTHING:
            row = self.slots[slot]
            if row.list not in seen:
                seen.add(row.list)
                yield row.list
            slot = row.above

    def _free_number(self, lists: tuple[int, ...]) -> int:
        """A number beside the slots with the same lists."""
        number, end, size = self._room.get(lists, (0, 0, 0))
        if number == end:
            size = next((one for one in BLOCKS if one > size), BLOCKS[-1])
            number = -(-self._next // size) * size
            end = self._next = number + size
        self._room[lists] = number + 1, end, size
        return number

    def set_rules(self, patterns: Sequence[str], hosts: Sequence[str]) -> bool:
        """The rules and the hosts that send rights, from now on; whether they were others. Then
        look at the slot of each document again."""
        with self._writing:
            if (list(patterns), list(hosts)) == (self.patterns, self.hosts):
                return False
            change = ["r", list(patterns), list(hosts)]
            self._changes.append(change)
            self._apply(change)
            return True

    def adopt_rules(self, table: AccessTable) -> None:
        """Take over the rules of another table, of the same crawl."""
        for pattern in table.patterns:
            if (slot := table.names.get(slot_name(pattern))) is not None:
                self.put(slot_name(pattern), table.list_of(slot))
        if table.patterns or table.hosts:
            self.set_rules(table.patterns, table.hosts)

    def adopt(self, name: str, table: AccessTable) -> None:
        """Give a document the rights that it has in another table."""
        slot = table.slot_of(name)
        if slot is None or split_part(name)[1] or table.is_by_rule(slot):
            return
        row = table.slots[slot]
        folders, number = list[tuple[str, AccessList]](), row.above
        while number != NOTHING and len(folders) <= len(table.slots):
            folders.append((table.slots[number].name.removeprefix("in "), table.list_of(number)))
            number = table.slots[number].above
        self.give(name, Rights(table.list_of(slot), row.name, folders[::-1]))

    def mark_moved(self, names: Iterable[str]) -> None:
        """Have these documents written again."""
        with self._writing:
            found = set(names)
            self.moved |= found
            self._touched |= found

    # on the disk

    def flush(self) -> None:
        """Write the changes; they are on the disk on return. Raises CrawlDirError."""
        with self._writing:
            # a crash may leave the first records alone: moved documents come before their slots
            moving, written = self._touched, (self._moved_before | self._touched) - self.moved
            changes = [
                *_names("m", moving),
                *self._changes,
                *_slots("d", self._given),
                *_slots("f", self._noted),
                *_names("w", written),
            ]
            if not changes:
                return
            records = _packed(changes)
            if self._read_to + len(records) > MAX_BYTES:
                raise CrawlDirError(f"{self.path}: more than {MAX_BYTES:,} bytes of access lists")
            try:
                with self.path.open("ab") as file:
                    if file.tell() != self._read_to:  # what a full disk has left of a record
                        file.truncate(self._read_to)
                    file.write(records)
                    file.flush()
                    os.fsync(file.fileno())
                    found = os.fstat(file.fileno())
            except OSError as error:
                raise self._unwritable(error) from error
            self._file = found.st_dev, found.st_ino
            self._read_to += len(records)
            self._changes, self._given, self._noted = [], {}, {}
            self._moved_before, self._touched = set(self.moved), set()
            self.moves += len(moving) + len(written)

    def _unwritable(self, error: OSError) -> CrawlDirError:
        return CrawlDirError(f"{self.path}: cannot write access lists: {error.strerror or error}")


def _slots(kind: str, own: dict[int, int]) -> Iterator[list[Any]]:
    rest = iter(own.items())
    while some := dict(islice(rest, _NUMBERS)):
        yield [kind, array("Q", some.keys()).tobytes(), array("I", some.values()).tobytes()]


def _names(kind: str, names: Iterable[str]) -> Iterator[list[Any]]:
    rest = iter(sorted(names))
    while some := list(islice(rest, _NAMES)):
        yield [kind, some]


def _packed(changes: Iterable[list[Any]]) -> bytes:
    """The changes as records of bounded size."""
    records, packed, size = list[bytes](), list[bytes](), 0
    for change in changes:
        packed.append(msgpack.packb(change, unicode_errors="replace"))
        size += len(packed[-1])
        if size >= _RECORD:
            records.append(_record(packed))
            packed, size = [], 0
    return b"".join([*records, _record(packed)] if packed else records)


def _record(changes: list[bytes]) -> bytes:
    content: bytes = msgpack.Packer().pack_array_header(len(changes)) + b"".join(changes)
    return _HEAD.pack(len(content), zlib.crc32(content)) + content


def _records(file: IO[bytes]) -> Iterator[list[Any]]:
    """The complete records; the last one may be being written."""
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        size, checksum = _HEAD.unpack(head)
        if size > _LARGEST_RECORD:
            raise ValueError(f"a record of {size:,} bytes")
        content = file.read(size)
        if len(content) < size:
            return
        if zlib.crc32(content) != checksum:
            raise ValueError("a record is damaged")
        yield msgpack.unpackb(content)
