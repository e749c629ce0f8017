"""Pages, and removals of pages, that wait for the next commit of the index.

A commit costs Tantivy a segment, whatever its size; segments are merged later. A page that is
indexed before most links to it are known is indexed again, with their texts. Pages are therefore
collected, in memory and in files beside the index, one for each checkpoint, and indexed together
once they are `due`::

    waiting = WaitingPages(Path("crawl/index"), packed)
    waiting.put("http://wiki.example/", page)
    waiting.put("http://wiki.example/old", None)     # a removal
    due = waiting.due(indexed=200)
    waiting.write()                                  # now they outlast the process
    for page in waiting.take(due): ...
    waiting.committed()                              # after Tantivy's commit

After a kill the next process indexes the waiting pages. Indexing a page twice does no harm.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgpack

from larmspider.errors import CrawlDirError
from larmspider.files import replace_file
from larmspider.index.packed import PackedPages
from larmspider.index.page import IndexedPage
from larmspider.index.version import REBUILDS

MAX_PAGES = 10_000
"""Most pages that wait."""
MAX_CHARS = 96_000_000
"""Most characters of all waiting pages."""
MAX_CHECKPOINTS = 12
"""Most checkpoints that a page waits for: a minute."""
LEFT = 0.75
"""If one of the three limits is reached, pages are due until this share of each is left."""
FIRST = 50
"""Pages that are due at once while the index has less than half of this number, so that searches
find something in a new crawl."""
_NAME = "waiting-"


class WaitingPage(NamedTuple):
    """A page, None for a removal; ``packed`` are the page and its parts. ``since``: the
    number of the first file that has the page."""

    key: str
    page: IndexedPage | None
    packed: list[bytes]
    since: int = 0
    chars: int = 0
    """Characters of all its texts."""


class WaitingPages:
    """Waiting pages of the index in ``directory``, which has one writer."""

    def __init__(self, directory: Path, packed: PackedPages) -> None:
        """Raises CrawlDirError for a file that cannot be read."""
        self._directory, self._packed = directory, packed
        self._files = _files_in(directory)
        self._number = self._files[-1] if self._files else 0
        self._pages = _pages_in(directory, packed)
        self._chars = sum(page.chars for page in self._pages.values())
        self._new: list[tuple[str, list[bytes]]] = []
        self._urgent = {*self._pages}

    def __len__(self) -> int:
        return len(self._pages)

    @property
    def keys(self) -> Collection[str]:
        return self._pages.keys()

    def put(self, key: str, page: IndexedPage | None, *, urgent: bool = False) -> None:
        """Let a page wait; None removes the page. It replaces the waiting page of this key, and
        waits no longer than that page would have. An ``urgent`` page waits for the next checkpoint
        at most."""
        packed = [self._packed.pack(one.fields()) for one in page.documents] if page else []
        before = self._pages.get(key)
        since = before.since if before else self._number + 1
        self._pages[key] = now = WaitingPage(key, page, packed, since, page.chars if page else 0)
        self._chars += now.chars - (before.chars if before else 0)
        self._new.append((key, packed))
        if urgent:
            self._urgent.add(key)

    def due(self, indexed: int) -> int:
        """The number of pages, oldest first, that this checkpoint should commit: all pages, if none
        came since the last checkpoint or one is urgent. ``indexed``: pages in the index. Call it
        before `write`."""
        if self._urgent or not self._new:
            return len(self._pages)
        first = FIRST if indexed < FIRST // 2 else 0
        return self.too_many() or min(len(self._pages), first)

    def too_many(self) -> int:
        """The number of pages, oldest first, that cannot wait longer."""
        pages, chars, number = len(self._pages), self._chars, 0
        for number, page in enumerate(self._pages.values()):
            share = LEFT if number else 1.0
            if not (
                pages - number > share * MAX_PAGES
                or chars > share * MAX_CHARS
                or self._number + 1 - page.since >= share * MAX_CHECKPOINTS
            ):
                return number
            chars -= page.chars
        return pages

    def write(self) -> None:
        """Write the pages since the last call; they are on the disk on return. Raises OSError."""
        if self._new:
            content = msgpack.packb(self._new, unicode_errors="replace")
            path = self._directory / f"{_NAME}{self._number + 1}"
            replace_file(path, content)
            self._number += 1
            self._files.append(self._number)
            self._new = []

    def take(self, number: int) -> list[WaitingPage]:
        """The first pages."""
        taken = [self._pages.pop(key) for key in [*islice(self._pages, number)]]
        self._chars -= sum(page.chars for page in taken)
        self._urgent.difference_update(page.key for page in taken)
        return taken

    def committed(self) -> None:
        """The index has all that was taken."""
        first = next(iter(self._pages.values()), None)
        while self._files and (first is None or self._files[0] < first.since):
            # the first one first: an older version of a page must not be the last
            (self._directory / f"{_NAME}{self._files[0]}").unlink(missing_ok=True)
            del self._files[0]


def waiting_in(directory: Path, packed: PackedPages) -> Mapping[str, IndexedPage | None]:
    """All pages that wait in an index, by key; None: a removal. Raises CrawlDirError."""
    return {key: waiting.page for key, waiting in _pages_in(directory, packed).items()}


def _files_in(directory: Path) -> list[int]:
    names = (path.name.removeprefix(_NAME) for path in directory.glob(f"{_NAME}*"))
    return sorted(int(name) for name in names if name.isdigit())


def _pages_in(directory: Path, packed: PackedPages) -> dict[str, WaitingPage]:
    found: dict[str, WaitingPage] = {}
    for number in _files_in(directory):
        path = directory / f"{_NAME}{number}"
        try:
            for key, pieces in msgpack.unpackb(path.read_bytes()):
                found.pop(key, None)
                page = _unpacked(pieces, packed)
                found[key] = WaitingPage(key, page, pieces, chars=page.chars if page else 0)
        except Exception as error:  # whatever a damaged file makes of three formats
            raise CrawlDirError(f"{path}: cannot be read: {error}; {REBUILDS}") from error
    return found


def _unpacked(pieces: list[bytes], packed: PackedPages) -> IndexedPage | None:
    if not pieces:
        return None
    page, *parts = (IndexedPage.of(packed.unpack(piece)) for piece in pieces)
    page.parts = parts
    return page
