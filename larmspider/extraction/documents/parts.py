"""Documents inside of documents: members of archives, attachments of mails, the mails of an mbox.

    page = read("application/zip", body, "http://h/docs.zip", None)
    page.parts[0].name                # "docs/readme.txt", named http://h/docs.zip#!/docs/readme.txt
    member("application/zip", body, "docs.zip", "docs/readme.txt")     # its bytes

A reader whose format holds other documents has a function ``members(body, name, budget)`` beside
``extract``. The documents inside of a part are parts of the whole document, three deep, named by
both paths: ``inner.zip/readme.txt``. Every limit ends in an outcome; the text until then is kept.
"""

from __future__ import annotations

import lzma
import re
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha1
from posixpath import splitext
from typing import IO, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

from larmspider.extraction.body_type import without_junk
from larmspider.extraction.documents import ole_damage
from larmspider.extraction.documents.containers import document_type
from larmspider.extraction.documents.reading import Unread
from larmspider.extraction.formats import extractor_for, members_of, without_text
from larmspider.extraction.pages.page_builder import CUT, MAX_LINKS, MAX_TEXT, is_cut, one_line
from larmspider.extraction.processes import progress
from larmspider.items import Link, Outcome, Page, Part
from larmspider.urls.media_types import is_read_apart, module_of

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
else:
    from backports.zstd import ZstdError

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
"""The base of links inside of a part: they lead to other parts, which need no crawl."""
_HOLDERS = ("archives", "mail", "msg", "sevenzip", "signed")
"""Readers of documents whose parts are all that counts, or stand for it."""
_PIECE = 1 << 16
_KEPT_BYTES = 8 << 20
"""First bytes of a member that is too large, which are searched."""
DAMAGES = (
    *(
        zipfile.BadZipFile,
        tarfile.TarError,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        OSError,
        ZstdError,
    ),
    *(NotImplementedError, ValueError, IndexError, RuntimeError),
)
"""Python's library raises these for a damaged archive."""
_CLUTTER = re.compile(
    r"(?i)(?:^|/)(?:__MACOSX/.*|\.DS_Store|(?:eh)?thumbs(?:_vista)?\.db|desktop\.ini"
    r"|\._[^/]+|~\$[^/]+|\.~lock\.[^/]*#)$"
)
"""Files that programs leave beside documents, as in known_paths.txt: they are not parts."""
_SURROGATES = re.compile("[\ud800-\udfff]")
"""Surrogates in names of tar files that are not UTF-8."""


class Member(NamedTuple):
    """Name and bytes, or why it has no bytes. ``said``: the Content-Type of an attachment."""

    name: str
    data: bytes | Unread
    said: str = ""


Helped: TypeAlias = Callable[[str, bytes, Page], Page]
"""Takes media type, body, and the first reader's Page. Returns the Page of another reader, if that
one is better."""


class Spent(Unread):
    """A limit of the whole document: nothing more is read of it."""


class Budget:
    """The remaining limits for unpacking one document of ``packed`` bytes, however it is nested."""

    def __init__(self, packed: int) -> None:
        self.most = self.bytes = min(MAX_ALL_BYTES, max(FREE_BYTES, packed * MAX_RATIO))
        self.members = MAX_MEMBERS
        self.text = MAX_ALL_TEXT
        self._names: dict[str, int] = {}

    def read(self, file: IO[bytes], what: str = "it", *, counted: bool = False) -> bytes:
        """All bytes of ``file``, whatever its declared size. Raises Unread, with the first bytes,
        if it is larger than allowed or damaged. ``counted``: its bytes were counted before."""
        pieces: list[bytes] = []
        size = 0
        read = getattr(file, "read1", file.read)  # gives the bytes before a fault
        try:
            while piece := read(_PIECE):
                size += len(piece)
                self.bytes -= 0 if counted else len(piece)
                pieces.append(piece)
                if self.bytes < 0:
                    raise Spent(Outcome.TOO_LARGE, f"it unpacks to more than {self.most:,} bytes")
                if size > MAX_MEMBER_BYTES:
                    raise Unread(
                        Outcome.TOO_LARGE, f"it unpacks to more than {MAX_MEMBER_BYTES:,} bytes"
                    )
        except Unread as unread:
            unread.data = b"".join(pieces)[:_KEPT_BYTES]
            raise
        except DAMAGES as error:
            damaged = Unread(Outcome.DAMAGED, f"{what} cannot be read: {error}")
            damaged.data = b"".join(pieces)
            raise damaged from None
        return b"".join(pieces)

    def take(self, data: bytes) -> bytes:
        """``data``, which a library has unpacked. Raises Spent."""
        self.bytes -= len(data)
        if self.bytes < 0:
            raise Spent(Outcome.TOO_LARGE, f"it unpacks to more than {self.most:,} bytes")
        return data

    def take_member(self) -> None:
        """Raises Spent."""
        self.members -= 1
        if self.members < 0:
            raise Spent(Outcome.TOO_LARGE, f"it holds more than {MAX_MEMBERS:,} documents")

    def own_name(self, name: str) -> str:
        """``name``, and ``a (2).txt`` for the second a.txt."""
        own, (stem, extension) = name, splitext(name)
        while own in self._names:
            self._names[name] += 1
            own = f"{stem} ({self._names[name]}){extension}"
        self._names[own] = 1
        return own

    def take_text(self, text: str) -> None:
        """Raises Spent."""
        self.text -= len(text)
        if self.text < 0:
            raise Spent(Outcome.TOO_LONG, f"it has more than {MAX_ALL_TEXT:,} characters of text")


def _unhelped(_mime: str, _body: bytes, page: Page) -> Page:
    return page


def read(
    mime: str, body: bytes, url: str, content_type: str | None, helped: Helped = _unhelped
) -> Page:
    """The Page of a document, with its parts, its links and theirs. Raises Unread. ``helped`` is
    given each part that is a document, once it is read."""
    extract = extractor_for(mime)
    if extract is None:
        return Page(url)
    try:
        page = extract(body, url, content_type)
    except Unread as unread:
        if members_of(mime) is None or unread.page is None:
            raise
        page = unread.page
        page.unread = unread.unread
    if members_of(mime) is None:
        return page
    budget, known = Budget(len(body)), dict[str, Part]()
    try:
        for name, data, said in members(mime, body, file_name(url), budget):
            if name not in known:
                links = len(page.links)
                part = _read_part(name, data, said, page, helped)
                if isinstance(data, Spent) and not part.text:
                    continue  # zeros
                known[name] = part
                page.parts.append(part)
                progress.part_read(part, page.links[links:])
                budget.take_text(part.text)
            elif isinstance(data, Unread):
                known[name].unread = data.unread
                if data.outcome is Outcome.TOO_LARGE:
                    page.unread = f"{data.unread} ({name})"
    except MemoryError:
        raise
    except Exception as error:
        if not page.parts and not page.text:
            raise
        page.unread = page.unread or _unread(error).unread
    if is_holder(mime) or not page.text:
        page.unread = page.unread or _unread_as_its_parts(page)
    if not page.text:
        page.text = " ".join(part.name for part in page.parts)[:MAX_TEXT]
    return page


def is_holder(mime: str) -> bool:
    """Whether documents of a type are read only for their contents, such as archives and mails;
    others may hold documents beside a text of their own."""
    return module_of(mime) in _HOLDERS


def member(mime: str, body: bytes, name: str, part: str) -> bytes:
    """The bytes of one part. Raises KeyError for an unknown name, Unread."""
    if members_of(mime) is not None:
        for found, data, _ in members(mime, body, name, Budget(len(body))):
            if found == part:
                if isinstance(data, Unread):
                    raise data
                return data
    raise KeyError(part)


def members(
    mime: str, body: bytes, name: str, budget: Budget, within: str = "", depth: int = 1
) -> Iterator[Member]:
    """All that ``body`` holds, and what that holds; after a member that cannot be opened its name
    again, with the reason. Raises Unread where ``body`` cannot be opened."""
    inside = members_of(mime)
    assert inside is not None
    for path, data, said in inside(body, name, budget):
        if _CLUTTER.search(path):
            continue
        budget.take_member()
        path = one_line(_SURROGATES.sub("\ufffd", path), MAX_NAME) or "content"
        own = budget.own_name(within + path)
        data = without_junk(data) if isinstance(data, bytes) and not said else data
        yield Member(own, data, said)
        if isinstance(data, Spent):
            raise data
        if isinstance(data, Unread):
            continue
        kind = document_type(data, path, said)
        if (more := members_of(kind)) is None:
            continue
        try:
            if depth < MAX_DEPTH:
                yield from members(kind, data, path, budget, f"{own}/", depth + 1)
            elif next(more(data, path, budget), None) is not None:
                why = f"documents in documents are read {MAX_DEPTH} levels deep, not deeper"
                raise Unread(Outcome.TOO_LARGE, why)
        except (Spent, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - only the content of this member is lost
            yield Member(own, _unread(error))


def _unread(error: Exception) -> Unread:
    """Why a part is not read: it costs the others nothing."""
    if isinstance(error, Unread):
        return error
    return Unread(Outcome.READER_DIED, f"raised {error!r}"[:500])


def or_why(unpack: Callable[[], bytes]) -> bytes | Unread:
    """The bytes that ``unpack`` returns. An Unread about this member alone, or one with its first
    bytes, is returned."""
    try:
        return unpack()
    except Spent as spent:
        if not spent.data:
            raise
        return spent
    except Unread as unread:
        return unread


def _unread_as_its_parts(page: Page) -> str:
    """The outcome of a document none of whose parts can be read; "" if one can. Parts that are no
    documents, such as the pictures of a mail, count only if there are no others."""
    binary = f"{Outcome.BINARY}:"
    parts = [part for part in page.parts if not part.unread.startswith(binary)]
    if not parts and page.text:
        return ""
    parts = parts or page.parts
    return parts[0].unread if parts and all(part.unread for part in parts) else ""


def _read_part(name: str, data: bytes | Unread, said: str, page: Page, helped: Helped) -> Part:
    """The part; its links are added to the page of the document."""
    if isinstance(data, Unread):
        if not data.data:
            return Part(name, unread=data.unread)
        part = _read_part(name, data.data, said, page, helped)
        part.digest, part.unread = "", data.unread  # the digest is of its beginning
        return part
    mime = document_type(data, name, said)
    part = Part(name, mime, len(data), digest=sha1(data, usedforsecurity=False).hexdigest())
    extract, url = extractor_for(mime), _BASE + file_name(name)
    if extract is None or not data:
        part.unread = without_text(mime, is_empty=not data)
        return part
    progress.part(name, mime, part.size, part.digest)
    try:
        found = extract(data, url, None)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - as above
        refused = _unread(error)
        found = refused.page or Page(url)
        found.unread = refused.unread
    if not is_holder(mime):
        if not found.text and not found.unread:
            found.unread = without_text(mime)
        if is_cut(found.text):
            found.unread = found.unread or CUT
        if is_read_apart(mime):
            found = helped(mime, data, found)
    ole_damage.mark(data, found)
    part.title, part.text, part.author = found.title, found.text, found.author
    part.language, part.modified, part.unread = found.language, found.modified, found.unread
    page.links += [
        Link(link.url, None, link.type, link.anchor, link.nofollow)
        for link in found.links[: MAX_LINKS - len(page.links)]
        if not link.url.startswith(_BASE)
    ]
    return part


def file_name(url: str) -> str:
    """The last segment of a path or of a URL's path."""
    return unquote(urlsplit(url).path if "://" in url else url).rpartition("/")[2]
