"""A reader process notes what it has read so far of a document, in case it does not reach the end.

    begin(fd)              # for each document: the file of its Notes (notes.py)
    text("chapter 1")

The limit of CPU, a lack of memory or a parser's fault ends a reader by a signal, so it cannot say
anything then. Each note is appended to a file in memory when it is made, which takes 5 us.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

from larmspider.extraction.helper_child import packed
from larmspider.items import Link, Part

MAX_BYTES = 32_000_000
"""Bytes of all notes of a document; later ones are not kept."""
MAX_LINKS = 10_000
"""Links of the document that are kept; a Page may have more."""
MAX_FIELD = 2_048
"""Characters of a title or an author."""
STEP = 4_096
"""Characters after which a builder makes a note inside of one section."""
ABOUT, TEXT, LINKS, PART, DONE, PAGE, PAGES = range(7)

RawLink = tuple[str, int, str, bool]
"""Target, type, text, nofollow, as in PageBuilder.links."""


class _Writer:
    """Where notes of this process go; none without ``fd``."""

    def __init__(self, fd: int) -> None:
        self.fd, self.at = fd, 0

    def write(self, *note: Any) -> None:
        data = packed(note)
        if self.at + len(data) > MAX_BYTES:
            self.fd = -1
            return
        try:
            os.pwrite(self.fd, data, self.at)
        except OSError:  # no memory, no space
            self.fd = -1
        else:
            self.at += len(data)


_writer = _Writer(-1)


def begin(fd: int) -> None:
    """A new document, whose notes go to ``fd``; -1: none are made."""
    global _writer
    _writer = _Writer(fd)


def is_kept() -> bool:
    """Whether notes are made at all."""
    return _writer.fd >= 0


def about(title: str, author: str, modified: float | None, language: str | None) -> None:
    if is_kept():
        _writer.write(ABOUT, title[:MAX_FIELD], author[:MAX_FIELD], modified, language)


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
    """All pages of a PDF, in place of those that are known."""
    if is_kept():
        _writer.write(PAGES, texts)


def part(name: str, mime: str = "", size: int = 0, digest: str = "") -> None:
    """A part is begun."""
    if is_kept():
        _writer.write(PART, name, mime, size, digest)


def part_read(part: Part, found: Sequence[Link]) -> None:
    """The part that was begun last is read."""
    if is_kept():
        _writer.write(DONE, astuple(part), [_raw(link) for link in found[:MAX_LINKS]])


def _raw(link: Link) -> RawLink:
    return link.url, link.type, link.anchor, link.nofollow
