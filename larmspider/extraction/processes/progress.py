"""A reader process notes its progress in a document, in case it does not reach the end.

    begin(fd)              # for each document: the file of its Notes (notes.py)
    text("chapter 1")

The limit of CPU, a lack of memory or a parser's fault ends a reader by a signal, so it cannot send
anything then. Each note goes at once to memory that both processes share.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import msgpack

from larmspider.extraction.processes.helper_child import LENGTH, packed
from larmspider.items import Link, Part

SIZE = struct.Struct("=Q")
MAX_BYTES = 32_000_000
"""Bytes of all notes of a document; later ones are not kept."""
MAX_LINKS = 10_000
"""Links of the document that are kept; a Page may have more."""
MAX_FIELD = 2_048
"""Characters of a title or an author."""
STEP = 4_096
"""Characters after which a builder makes a note inside of one section."""
ABOUT, TEXT, LINKS, PART, DONE, PAGE, PAGES, TYPE = range(8)

_FIELDS = tuple(field.name for field in fields(Part))

RawLink = tuple[str, int, str, bool]
"""Target, type, text, nofollow, as in PageBuilder.links."""


class _Writer:
    """The notes of this process, as messages (helper_child.py) behind their size."""

    def __init__(self, fd: int) -> None:
        self.fd, self.on = fd, fd >= 0
        self._at = SIZE.size
        self._shared = mmap.mmap(fd, MAX_BYTES) if fd >= 0 else None

    def begin(self) -> None:
        self._at, self.on = SIZE.size, self._shared is not None

    def write(self, *note: Any) -> None:
        try:
            data = _packer.pack(note)
        except UnicodeEncodeError:  # lone surrogates
            data = packed(note)[LENGTH.size :]
        end = self._at + LENGTH.size + len(data)
        if self._shared is None or end > MAX_BYTES:
            self.on = False
            return
        self._shared[self._at : end] = LENGTH.pack(len(data)) + data
        self._at = end
        SIZE.pack_into(self._shared, 0, end - SIZE.size)  # the last: a note is whole or not there


_packer = msgpack.Packer()
_writer = _Writer(-1)


def begin(fd: int) -> None:
    """Begin a document. Its notes go to ``fd``; -1 makes no notes."""
    global _writer
    if fd != _writer.fd:
        _writer = _Writer(fd)
    _writer.begin()


def is_kept() -> bool:
    """Whether notes are made at all."""
    return _writer.on


def about(title: str, author: str, modified: float | None, language: str | None) -> None:
    if is_kept():
        _writer.write(ABOUT, title[:MAX_FIELD], author[:MAX_FIELD], modified, language)


def media_type(mime: str) -> None:
    """The document's media type, where it is not the type that the crawl's process saw."""
    if is_kept():
        _writer.write(TYPE, mime)


def text(text: str) -> None:
    """More text of the document, or of the part that was begun last."""
    if text and is_kept():
        _writer.write(TEXT, text)


def links(found: Sequence[RawLink]) -> None:
    if found and is_kept():
        _writer.write(LINKS, found)


def page(text: str) -> None:
    """The next page of a PDF."""
    if is_kept():
        _writer.write(PAGE, text)


def pages(texts: Sequence[str]) -> None:
    """All pages of a PDF; they replace the known ones."""
    if is_kept():
        _writer.write(PAGES, texts)


def part(name: str, mime: str = "", size: int = 0, digest: str = "") -> None:
    """A part is begun."""
    if is_kept():
        _writer.write(PART, name, mime, size, digest)


def part_read(part: Part, found: Sequence[Link]) -> None:
    """The part that was begun last is read."""
    if is_kept():
        values = [getattr(part, name) for name in _FIELDS]  # astuple takes 75 us
        _writer.write(DONE, values, [_raw(link) for link in found[:MAX_LINKS]])


def _raw(link: Link) -> RawLink:
    return link.url, link.type, link.anchor, link.nofollow
