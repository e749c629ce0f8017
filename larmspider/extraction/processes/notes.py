"""The notes that a reader process made of a document (progress.py), and the Page from them.

notes = Notes()                            # its number goes to the reader
notes.so_far("http://wiki/a.pdf", why)     # once the reader has ended without an answer
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from larmspider.extraction.documents.reading import DocumentBuilder
from larmspider.extraction.pages.page_builder import MAX_TEXT, MAX_TITLE, one_line, page_text
from larmspider.extraction.processes import progress
from larmspider.extraction.processes.helper_child import unpacked
from larmspider.items import Link, Page, Part

_KEPT_BYTES = 1 << 20
"""Memory that stays with a reader for the notes of its next document."""


class Notes:
    """The notes of one reader process, in an unnamed file in memory. Systems without such files
    keep no notes (Linux has them)."""

    def __init__(self) -> None:
        self.fd = -1
        with suppress(OSError, AttributeError):
            self.fd = os.memfd_create("larmspider-notes")
            os.ftruncate(self.fd, progress.MAX_BYTES)

    def clear(self) -> None:
        """Drop all notes, before each document: a reader that dies at once leaves none then."""
        if self.fd < 0:
            return
        if self._size() > _KEPT_BYTES:
            os.ftruncate(self.fd, 0)
            os.ftruncate(self.fd, progress.MAX_BYTES)
        os.pwrite(self.fd, progress.SIZE.pack(0), 0)

    def read(self) -> bytes:
        """All notes, as they were written."""
        return os.pread(self.fd, self._size(), progress.SIZE.size) if self.fd >= 0 else b""

    def _size(self) -> int:
        return int(progress.SIZE.unpack(os.pread(self.fd, progress.SIZE.size, 0))[0])

    def so_far(self, url: str, unread: str) -> Page | None:
        """The Page of the notes, with ``unread`` as its outcome; None without notes."""
        data = bytearray(self.read())
        self.clear()
        return _page(_notes(data), url, unread) if data else None

    def close(self) -> None:
        """May be called twice."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


def _notes(data: bytearray) -> Iterator[list[Any]]:
    at = 0
    while (found := unpacked(data, at)) is not None:
        note, size = found
        at += size
        yield note


def _page(notes: Iterator[list[Any]], url: str, unread: str) -> Page | None:
    """The notes as a Page, with the finished parts and the one under way."""
    document, parts, links_ = _Begun(""), list[Part](), list[Link]()
    begun, mime = document, ""
    for kind, *values in notes:
        if kind == progress.PART:
            begun = _Begun(*values)
        elif kind == progress.DONE:
            begun = document
            parts.append(Part(*values[0]))
            links_ += [Link(to, None, *rest) for to, *rest in values[1]]
        elif kind == progress.TYPE:
            mime = values[0]
        else:
            begun.add(kind, values)
    if begun is not document:
        parts.append(begun.part(unread))
    builder = DocumentBuilder()
    builder.title, builder.author, builder.modified, builder.language = document.about
    builder.links = [(to, kind, text, bool(no)) for to, kind, text, no in document.links]
    page = builder.page(url)
    page.text, page.unread, page.mime = document.text(), unread, mime
    page.links += links_
    page.links = [link for link in page.links if not link.url.startswith("part:")]
    page.parts = parts
    if parts and not page.text:
        page.text = " ".join(part.name for part in parts)[:MAX_TEXT]
    return page if page.text or page.title or page.author else None


class _Begun:
    """The document, or a part, that is still being read."""

    def __init__(self, name: str, mime: str = "", size: int = 0, digest: str = "") -> None:
        self.name, self.mime, self.size, self.digest = name, mime, size, digest
        self.about: list[Any] = ["", "", None, None]
        self.links: list[progress.RawLink] = []
        self._pieces: list[str] = []
        self._sheets: list[str] = []

    def add(self, kind: int, values: list[Any]) -> None:
        if kind == progress.ABOUT:
            self.about = values
        elif kind == progress.TEXT:
            self._pieces.append(values[0])
        elif kind == progress.PAGE:
            self._sheets.append(values[0])
        elif kind == progress.PAGES:
            self._sheets = values[0]
        elif kind == progress.LINKS and len(self.links) < progress.MAX_LINKS:
            self.links += values[0]

    def text(self) -> str:
        """The text on one line, as extraction makes it. Each page of a PDF is one line."""
        if any(self._sheets):
            return "\f".join(self._sheets)[:MAX_TEXT]
        return page_text(self._pieces)

    def part(self, unread: str) -> Part:
        title, author, modified, language = self.about
        return Part(
            self.name, self.mime, self.size, one_line(title or "", MAX_TITLE), self.text(),
            one_line(author or "", 255), language, modified, unread, self.digest,
        )  # fmt: skip
