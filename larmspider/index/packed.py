"""Stores all fields of a page in one piece, compressed by itself.

Pages of an intranet have much in common, so each is compressed with a dictionary. zstd trains the
dictionary on some of the first pages, and trains another one when a run has seen many more pages.
The dictionaries lie beside the index; a page names its dictionary::

    pages = PackedPages(Path("crawl/index"))
    packed = pages.pack({"key": "http://wiki.example/", "body": "..."})
    pages.unpack(packed)["body"]

The text comes last, so that the beginning of a very long page can be read alone.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from itertools import chain
from pathlib import Path
from sys import getsizeof
from typing import Any

import msgpack

from larmspider.files import replace_file

if sys.version_info >= (3, 14):
    from compression.zstd import (
        ZstdCompressor,
        ZstdDecompressor,
        ZstdDict,
        ZstdError,
        get_frame_info,
        train_dict,
    )
else:
    from backports.zstd import (
        ZstdCompressor,
        ZstdDecompressor,
        ZstdDict,
        ZstdError,
        get_frame_info,
        train_dict,
    )

LEVEL = 3
"""10 KB take 0.03 ms and 1.4 KB (2.4 without a dictionary, 2.6 in Tantivy's own store)."""
SAMPLES = 128
"""A dictionary is trained on 128 pages, at first every second page; takes 0.05 s."""
SAMPLE_BYTES = 8_192
"""Bytes of each of these pages that are used."""
DICTIONARY_BYTES = 65_536
MORE = 32
"""Each dictionary is trained on pages that are 32 times further apart than for the last one."""
BEGINNING_CHARS = 100_000
"""At least 100,000 characters of a long page's text are unpacked."""
REMEMBERED_BYTES = 5_000_000
"""Bytes of memory for pages that searches looked at: at least about this, at most twice this. A
page that takes more than an eighth of them is not remembered."""
_BEGINNING_BYTES = 131_072  # hold the beginning of most pages; the others need twice this
_LONG_BYTES = 400_000
_ENTRY = 250  # bytes of a remembered page beside its fields: its place in two full dicts
_SECTION = 240  # bytes of a section at least: a tuple, a number, two strings without characters
_NUMBER = 32  # bytes of a number, at most
_BUFFER = 16_384
"""Bytes of msgpack's buffer, in place of 256 KB that malloc returns to the system each time."""
_NAME = "pages-{}.zdict"
_TEXT = "body"
_WHOLE = "whole"  # a key beside the fields of a page with the beginning of its text: gives the rest
_LONG_STRING = 0xDB  # msgpack's, with a length of four bytes
_WITHOUT_PAGES = ("text/html", "application/xhtml+xml")


class PackedPages:
    """The packed pages of the index in ``directory``. Only its writer calls `pack`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[int, ZstdDict] = {}
        self._number = 0  # of the newest dictionary
        self._compressor = ZstdCompressor(LEVEL)
        self._seen = 0
        self._samples: list[bytes] = []
        self._remembered = _Remembered()
        self._load()

    def _load(self) -> None:
        while (path := self._directory / _NAME.format(self._number + 1)).exists():
            self._use(ZstdDict(path.read_bytes()))

    def _use(self, dictionary: ZstdDict) -> None:
        self._known[dictionary.dict_id] = dictionary
        self._compressor = ZstdCompressor(LEVEL, zstd_dict=dictionary.as_digested_dict)
        self._number += 1

    def pack(self, fields: Mapping[str, Any]) -> bytes:
        fields = dict(fields)
        if (text := fields.pop(_TEXT, None)) is not None:
            fields[_TEXT] = text
        data = msgpack.packb(fields, datetime=True, unicode_errors="replace", buf_size=_BUFFER)
        self._seen += 1
        if self._seen % (2 * MORE**self._number) == 0:
            self._samples.append(data[:SAMPLE_BYTES])
            if len(self._samples) == SAMPLES:
                self._train()
        return self._compressor.compress(data, ZstdCompressor.FLUSH_FRAME)

    def _train(self) -> None:
        samples, self._samples, self._seen = self._samples, [], 0
        try:
            dictionary = train_dict(samples, DICTIONARY_BYTES)
        except ZstdError:  # too little text, or none in common
            return
        path = self._directory / _NAME.format(self._number + 1)
        # before the commit that has pages which need it
        replace_file(path, dictionary.dict_content)
        self._use(dictionary)

    def unpack(self, packed: bytes, *, beginning: bool = False) -> dict[str, Any]:
        """The fields of a page. Raises ValueError if they cannot be read. ``beginning``, for a
        search: `BEGINNING_CHARS` of a long text without pages are enough, `text_of` has more; the
        latest pages are remembered."""
        if not beginning:
            return self._unpacked(packed)
        found = self._remembered.get(packed)
        if found is None:
            found = self._unpacked(packed, beginning=True)
            self._remembered.add(packed, found)
        copy = found.copy()
        if _WHOLE in copy:  # only in the copy: the remembered page would keep itself alive
            copy[_WHOLE] = partial(self._unpacked, packed)
        return copy

    def _unpacked(self, packed: bytes, *, beginning: bool = False) -> dict[str, Any]:
        try:
            frame = get_frame_info(packed)
            name = frame.dictionary_id
            if name and name not in self._known:
                self._load()  # trained by a writer since
            reader = ZstdDecompressor(self._known[name].as_digested_dict if name else None)
            data, unread = b"", packed
            if beginning and (frame.decompressed_size or 0) > _LONG_BYTES:
                for _ in range(2):
                    data += reader.decompress(unread, _BEGINNING_BYTES)
                    unread = b""  # the reader has it
                    if found := _beginning_of(data):
                        return found | {_WHOLE: None}
                    if found is not None:
                        break
            if not reader.eof:
                data += reader.decompress(unread)
        except (ZstdError, KeyError, OSError) as error:
            raise ValueError(f"a page in it cannot be unpacked: {error!r}") from error
        fields: dict[str, Any] = msgpack.unpackb(data, timestamp=3, use_list=not beginning)
        return fields


def has_more(fields: dict[str, Any]) -> bool:
    """Whether the text of a page that was unpacked for a search is longer than its beginning. False
    for a document with pages, whose text is complete."""
    return _WHOLE in fields or (
        len(fields[_TEXT]) > BEGINNING_CHARS and fields["mime"] in _WITHOUT_PAGES
    )


def text_of(fields: dict[str, Any], end: int) -> str:
    """The text of a page that was unpacked for a search, up to ``end`` at least."""
    if len(fields[_TEXT]) < end and _WHOLE in fields:
        fields[_TEXT] = fields.pop(_WHOLE)()[_TEXT]
    text: str = fields[_TEXT]
    return text


class _Remembered:
    """Unpacked pages by their packed form: at least about `REMEMBERED_BYTES`, at most twice
    this."""

    def __init__(self) -> None:
        self._new: dict[bytes, tuple[dict[str, Any], int]] = {}
        self._old = self._new
        self._left = REMEMBERED_BYTES

    def get(self, packed: bytes) -> dict[str, Any] | None:
        found = self._new.get(packed)
        if found is None and (found := self._old.get(packed)) is not None:
            self._keep(packed, *found)
        return None if found is None else found[0]

    def add(self, packed: bytes, fields: dict[str, Any]) -> None:
        size = _ENTRY + getsizeof(packed) + _memory_of(fields)
        if size <= REMEMBERED_BYTES // 8:
            self._keep(packed, fields, size)

    def _keep(self, packed: bytes, fields: dict[str, Any], size: int) -> None:
        if size > self._left:
            self._old, self._new, self._left = self._new, {}, REMEMBERED_BYTES
        self._new[packed] = fields, size
        self._left -= size


def _memory_of(fields: dict[str, Any]) -> int:
    """Bytes that a page takes, or some more; names of fields are shared by all."""
    own, sections = fields.get("own", {}).values(), fields.get("sections", ())
    each = (fields, *fields.values(), *own, *chain.from_iterable(own))
    chars = sum([len(anchor) + len(heading) for _, anchor, heading in sections])
    numbers = _NUMBER * len(fields.get("breaks", ()))
    return sum(map(getsizeof, each)) + _SECTION * len(sections) + 4 * chars + numbers


def _beginning_of(data: bytes) -> dict[str, Any] | None:
    """The fields of a page whose first bytes are ``data``. None if more bytes are needed; {} if
    even twice this number would not suffice."""
    reader = msgpack.Unpacker(timestamp=3, use_list=False)
    reader.feed(data)
    fields: dict[str, Any] = {}
    try:
        for _ in range(reader.read_map_header() - 1):
            name = reader.unpack()
            fields[name] = reader.unpack()
        name, start = reader.unpack(), reader.tell()
    except msgpack.OutOfData:
        return None
    if start == len(data):
        return None
    if name != _TEXT or data[start] != _LONG_STRING or fields.get("mime") not in _WITHOUT_PAGES:
        return {}
    text = data[start + 5 :].decode("utf-8", "ignore")
    return fields | {_TEXT: text} if len(text) >= BEGINNING_CHARS else None
