"""Pages that wait until more links to them are known: then each is indexed once, with their texts.

    waiting = WaitingPages(Path("crawl/index"), packed, commits=2)
    waiting.put("http://wiki.example/", fields)
    for page in waiting.due(): ...     # before a commit: those that came two commits ago
    waiting.write()
    waiting.committed()                # behind it

They are in memory, and in files beside the index: each commit writes a file of what came since the
last one, and deletes that whose pages are all in the index by then. A process that is killed leaves
them to the next one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from larmspider.errors import CrawlDirError
from larmspider.files import replace_file
from larmspider.index.packed import PackedPages

MAX_PAGES = 10_000
"""That wait; of more the first ones are due."""
MAX_CHARS = 64_000_000
"""Of all their texts."""
_NAME = "waiting-"


class WaitingPage(NamedTuple):
    """A page's fields, the same `PackedPages.pack` ed, and the number of commits before it came."""

    stored: dict[str, Any]
    packed: bytes
    since: int

    @property
    def chars(self) -> int:
        return len(self.stored["body"]) + len(self.stored.get("rest", ""))


class WaitingPages:
    """Of the index in ``directory``, which has one writer. A page is due at the commit that comes
    ``commits`` after the next one; at the next one if a process that was killed has left it."""

    def __init__(self, directory: Path, packed: PackedPages, commits: int) -> None:
        """Raises CrawlDirError for a file that cannot be read."""
        self._directory, self._packed, self.commits = directory, packed, commits
        self._pages = OrderedDict[str, WaitingPage]()
        self._new: list[tuple[str, bytes | None]] = []  # None: waits no more
        self._chars = 0
        self._files = _files_in(directory)
        self._number = self._files[-1] if self._files else 0
        for key, (stored, record) in _records_in(directory, packed).items():
            self._add(key, WaitingPage(stored, record, self._number - commits))

    def __len__(self) -> int:
        return len(self._pages)

    def put(self, key: str, stored: dict[str, Any]) -> None:
        """A page without parts, in place of the one that waits under this key, and no longer than
        that would have waited."""
        fields = {name: value for name, value in stored.items() if name != "parts"}
        before = self._pages.get(key)
        if before is not None:
            self._chars -= before.chars
        packed = self._packed.pack(fields)
        self._add(key, WaitingPage(fields, packed, before.since if before else self._number))
        self._new.append((key, packed))

    def drop(self, key: str) -> None:
        """The page, if it waits, is gone, or another version of it is in the index."""
        if self._take(key) is not None or self._files or self._new:
            self._new.append((key, None))

    def due(self, *, every: bool = False) -> Iterator[WaitingPage]:
        """The pages that wait no longer than to this commit; ``every``: all."""
        while self._pages:
            key, page = next(iter(self._pages.items()))
            if not every and page.since + self.commits > self._number:
                return
            self._take(key)
            yield page

    def too_many(self) -> Iterator[WaitingPage]:
        """The pages that cannot wait longer, for there is no room."""
        while len(self._pages) > MAX_PAGES or self._chars > MAX_CHARS:
            key, page = next(iter(self._pages.items()))
            self._take(key)
            yield page

    def write(self) -> None:
        """What came since the last commit; on the disk when this returns. Raises OSError."""
        if self._new:
            content = msgpack.packb(self._new, unicode_errors="replace")
            path = self._directory / f"{_NAME}{self._number + 1}"
            replace_file(path, content, synced=True)
            self._files.append(self._number + 1)
            self._new = []

    def committed(self) -> None:
        """The index has what was due."""
        self._number += 1
        while self._files and (not self._pages or self._files[0] + self.commits <= self._number):
            (self._directory / f"{_NAME}{self._files.pop(0)}").unlink(missing_ok=True)

    def _add(self, key: str, page: WaitingPage) -> None:
        self._pages[key] = page
        self._chars += page.chars

    def _take(self, key: str) -> WaitingPage | None:
        page = self._pages.pop(key, None)
        if page is not None:
            self._chars -= page.chars
        return page


def waiting_in(directory: Path, packed: PackedPages) -> dict[str, dict[str, Any]]:
    """The fields of all pages that wait in an index, by key. Raises CrawlDirError."""
    return {key: stored for key, (stored, _) in _records_in(directory, packed).items()}


def _files_in(directory: Path) -> list[int]:
    names = (path.name.removeprefix(_NAME) for path in directory.glob(f"{_NAME}*"))
    return sorted(int(name) for name in names if name.isdigit())


def _records_in(directory: Path, packed: PackedPages) -> dict[str, tuple[dict[str, Any], bytes]]:
    """Of each page that waits its fields, and the same as they were packed."""
    found: dict[str, tuple[dict[str, Any], bytes]] = {}
    for number in _files_in(directory):
        path = directory / f"{_NAME}{number}"
        try:
            for key, record in msgpack.unpackb(path.read_bytes()):
                found.pop(key, None)
                if record is not None:
                    stored = packed.unpack(record)
                    found[stored["key"]] = stored, record
        except Exception as error:  # whatever a damaged file makes of three formats
            raise CrawlDirError(
                f"{path}: cannot be read: {error}; scrapy reindex makes the index anew"
            ) from error
    return found
