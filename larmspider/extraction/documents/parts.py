"""Documents inside of documents: members of archives, attachments of mails, the mails of an mbox.

    page = read("application/zip", body, "http://h/docs.zip", None)
    page.parts[0].name                # "docs/readme.txt", named http://h/docs.zip#!/docs/readme.txt
    member("application/zip", body, "docs.zip", "docs/readme.txt")     # its bytes

A reader whose format holds other documents has a function ``members(body, name, budget)`` beside
``extract``. What is inside of a part is a part of the whole document, three deep, named by both
paths: ``inner.zip/readme.txt``. Every limit ends in an outcome; what was read until then is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import IO, TypeAlias
from urllib.parse import unquote, urlsplit

from larmspider.extraction.documents.reading import Unread
from larmspider.extraction.formats import extractor_for, media_type, members_of
from larmspider.extraction.page_builder import MAX_LINKS, MAX_TEXT, one_line
from larmspider.items import Link, Outcome, Page, Part

MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES = 64_000_000
MAX_ALL_BYTES = 200_000_000
MAX_DEPTH = 3
MAX_RATIO = 200
"""Bytes unpacked for each byte of the document, beyond FREE_BYTES."""
FREE_BYTES = 1_000_000
MAX_ALL_TEXT = 5 * MAX_TEXT
"""Characters of all parts."""
MAX_NAME = 1_024

_BASE = "part://document/"
"""What links inside of a part are relative to: other parts, which need no crawl."""
_PIECE = 1 << 16
_SURROGATES = re.compile("[\ud800-\udfff]")
"""Names of tar files that are no UTF-8 have such."""

Member: TypeAlias = tuple[str, "bytes | Unread"]
"""Name and bytes, or why they cannot be had."""


class Spent(Unread):
    """A limit of the whole document: nothing more is read of it."""


class Budget:
    """What may still be unpacked of one document of ``packed`` bytes, whatever lies in what."""

    def __init__(self, packed: int) -> None:
        self.most = self.bytes = min(MAX_ALL_BYTES, max(FREE_BYTES, packed * MAX_RATIO))
        self.members = MAX_MEMBERS
        self.text = MAX_ALL_TEXT

    def read(self, file: IO[bytes]) -> bytes:
        """All of ``file``. Raises Unread where it is larger than allowed."""
        pieces, size = [], 0
        while piece := file.read(_PIECE):
            size += len(piece)
            self.bytes -= len(piece)
            if self.bytes < 0:
                raise Spent(Outcome.TOO_LARGE, f"it unpacks to more than {self.most:,} bytes")
            if size > MAX_MEMBER_BYTES:
                raise Unread(
                    Outcome.TOO_LARGE, f"it unpacks to more than {MAX_MEMBER_BYTES:,} bytes"
                )
            pieces.append(piece)
        return b"".join(pieces)

    def take_member(self) -> None:
        """Raises Spent."""
        self.members -= 1
        if self.members < 0:
            raise Spent(Outcome.TOO_LARGE, f"it holds more than {MAX_MEMBERS:,} documents")

    def take_text(self, text: str) -> None:
        """Raises Spent."""
        self.text -= len(text)
        if self.text < 0:
            raise Spent(Outcome.TOO_LONG, f"it has more than {MAX_ALL_TEXT:,} characters of text")


def read(mime: str, body: bytes, url: str, content_type: str | None) -> Page:
    """The Page of a document, with its parts, its links and theirs. Raises Unread."""
    extract = extractor_for(mime)
    if extract is None:
        return Page(url)
    page = extract(body, url, content_type)
    if members_of(mime) is None:
        return page
    try:
        for name, data in members(mime, body, file_name(url), Budget(len(body))):
            _add(name, data, page)
    except Unread as refused:
        if not page.parts and not page.text:
            raise
        page.unread = refused.unread
    if page.parts and all(part.unread for part in page.parts):
        page.unread = page.unread or page.parts[0].unread
    if not page.text:
        page.text = " ".join(part.name for part in page.parts)[:MAX_TEXT]
    return page


def member(mime: str, body: bytes, name: str, part: str) -> bytes:
    """The bytes of one part. Raises KeyError where there is none of that name, Unread."""
    if members_of(mime) is not None:
        for found, data in members(mime, body, name, Budget(len(body))):
            if found == part:
                if isinstance(data, Unread):
                    raise data
                return data
    raise KeyError(part)


def members(mime: str, body: bytes, name: str, budget: Budget, depth: int = 1) -> Iterator[Member]:
    """All that ``body`` holds, and what that holds. Raises Unread where it cannot be opened."""
    inside = members_of(mime)
    assert inside is not None
    for path, data in inside(body, name, budget):
        budget.take_member()
        path = one_line(_SURROGATES.sub("\ufffd", path), MAX_NAME)
        yield path, data
        if isinstance(data, Unread) or depth == MAX_DEPTH:
            continue
        kind = media_type("", data, path)
        if members_of(kind) is None:
            continue
        try:
            for inner, content in members(kind, data, path, budget, depth + 1):
                yield f"{path}/{inner}", content
        except Spent:
            raise
        except Unread:
            continue  # it has its own outcome as a part


def or_why(unpack: Callable[[], bytes]) -> bytes | Unread:
    """What ``unpack`` returns, or the Unread that it raises about this member alone."""
    try:
        return unpack()
    except Spent:
        raise
    except Unread as unread:
        return unread


def _add(name: str, data: bytes | Unread, page: Page) -> None:
    if isinstance(data, Unread):
        page.parts.append(Part(name, unread=data.unread))
        return
    mime = media_type("", data, name)
    part = Part(name, mime, len(data))
    page.parts.append(part)
    extract = extractor_for(mime)
    if extract is None:
        return
    try:
        found = extract(data, _BASE + file_name(name), None)
    except Unread as refused:
        found = refused.page or Page("")
        found.unread = refused.unread
    part.title, part.text, part.author = found.title, found.text, found.author
    part.language, part.modified, part.unread = found.language, found.modified, found.unread
    page.links += [
        Link(link.url, None, link.type, link.anchor, link.nofollow)
        for link in found.links[: MAX_LINKS - len(page.links)]
        if not link.url.startswith(_BASE)
    ]


def file_name(url: str) -> str:
    """The last segment of a path or of a URL's path."""
    return unquote(urlsplit(url).path if "://" in url else url).rpartition("/")[2]
