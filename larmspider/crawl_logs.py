"""Looks lines up in a crawl's logs: by their index as far as it goes, the rest by searching.

    logs = CrawlLogs(Path("crawl"), began="2026-01-31T12:00:00Z", seconds=2.0)
    logs.last("store.log", "http://wiki/a")     # the fields of its last line, or None
    logs.cut_short                              # True: there was more than 2 s could search

A search takes about a second a gigabyte, and lets other threads run after every 4 MB.
"""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from larmspider.errors import CrawlDirError
from larmspider.log_index.environment import FOLDER
from larmspider.log_index.index import LogIndex
from larmspider.log_index.marks import mark_of, marks
from larmspider.log_index.records import Target
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS
from larmspider.pipelines.link_log import LINK_LOG_COLUMNS
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS
from larmspider.shared_handles import SharedHandles

COLUMNS: Mapping[str, int] = {
    "store.log": len(STORE_LOG_COLUMNS),
    "fetch.log": len(FETCH_LOG_COLUMNS),
    "links.log": len(LINK_LOG_COLUMNS),
}
NORMALIZED = 2
"""The field that holds the canonical form, in all three."""
TABLES = {"store.log": "stored", "fetch.log": "fetched"}
_WINDOW = 4 << 20
_LONGEST_LINE = 1 << 20

_indexes = SharedHandles(LogIndex)


class CrawlLogs:
    """``seconds`` bound all searches of this object together; None: no bound. ``end`` says of a log
    by its name and size up to which byte it counts; None: to its end."""

    def __init__(
        self,
        path: Path,
        began: str,
        seconds: float | None = None,
        end: Callable[[str, int], int] | None = None,
    ) -> None:
        self.path, self.began = path, began
        self._end = end or (lambda _, size: size)
        self.cut_short = False
        self._left = seconds

    @contextmanager
    def index(self) -> Iterator[LogIndex | None]:
        """The index of the logs; None where there is none, or one of another crawl."""
        folder = self.path / FOLDER
        if not (folder / "data.mdb").exists():
            yield None
            return
        with ExitStack() as stack:
            index = None
            with suppress(CrawlDirError):  # one that is only just being made
                index = stack.enter_context(_indexes.of(folder))
            yield index if index is not None and self._is_ours(index) else None

    def _is_ours(self, index: LogIndex) -> bool:
        state = index.state()
        return state.get("began") == self.began and all(
            position <= self.size(name) and mark_of(self.path / name, position) == mark
            for name, position, mark in marks(state)
        )

    def size(self, name: str) -> int:
        """Bytes of a log that count, 0 where there is none."""
        try:
            return self._end(name, (self.path / name).stat().st_size)
        except FileNotFoundError:
            return 0

    def last(self, name: str, normalized: str) -> list[str] | None:
        """The last record of a canonical form in store.log or fetch.log."""
        with self.index() as index:
            place = None if index is None else index.place(TABLES[name], normalized)
            start = 0 if index is None else index.end(name)
        found = None if place is None else self.record(name, place)
        for _, fields in self.search(name, normalized, NORMALIZED, start):
            found = fields
        return found

    def links_to(self, normalized: str) -> Iterator[list[str]]:
        """Records of links.log with links to a canonical form: of as many pages as the index keeps,
        then of those that are not yet in it."""
        with self.index() as index:
            target = None if index is None else index.target(normalized)
            start = 0 if index is None else index.end("links.log")
        for fields in self.records_at("links.log", () if target is None else target.places):
            if fields:
                yield fields
        for _, found in self.search("links.log", normalized, NORMALIZED, start):
            yield found

    def target(self, normalized: str) -> Target | None:
        """What the index has of the links to it."""
        with self.index() as index:
            return None if index is None else index.target(normalized)

    def links_from(self, page: str, limit: int) -> list[list[str]] | None:
        """The first ``limit`` links of a page, by its URL as fetched; None if not found in time."""
        with self.index() as index:
            place = None if index is None else index.place("sources", page)
            start = 0 if index is None else index.end("links.log")
        if place is None:
            found = next(self.search("links.log", page, 0, start), None)
            if found is None:
                return None if self.cut_short else []
            place = found[0]
        return self.links_at(place, page, limit)

    def links_at(self, place: int, page: str, limit: int) -> list[list[str]]:
        """The links of a page whose first one is at ``place`` of links.log."""
        links: list[list[str]] = []
        for fields in self.records("links.log", place):
            if fields[0] != page or len(links) >= limit:
                break
            links.append(fields)
        return links

    def record(self, name: str, place: int) -> list[str] | None:
        """The record that begins at ``place``; None if it is not there, or damaged."""
        return next(self.records_at(name, (place,)))

    def records_at(self, name: str, places: Iterable[int]) -> Iterator[list[str] | None]:
        """The same for many places; the file is opened once."""
        with ExitStack() as opened:
            file: BinaryIO | None = None
            with suppress(FileNotFoundError):
                file = opened.enter_context((self.path / name).open("rb"))
            for place in places:
                line = b""
                if file is not None:
                    file.seek(place)
                    line = file.readline(_LONGEST_LINE)
                fields = _fields(line[:-1]) if line.endswith(b"\n") else []
                yield fields if len(fields) == COLUMNS[name] else None

    def records(self, name: str, place: int) -> Iterator[list[str]]:
        """Records from ``place`` on, until one is damaged."""
        try:
            with (self.path / name).open("rb") as file:
                file.seek(place)
                while (line := file.readline(_LONGEST_LINE)).endswith(b"\n"):
                    fields = _fields(line[:-1])
                    if len(fields) != COLUMNS[name]:
                        return
                    yield fields
        except FileNotFoundError:
            return

    def search(
        self, name: str, value: str | None, field: int, start: int = 0
    ) -> Iterator[tuple[int, list[str]]]:
        """Place and fields of records that hold ``value`` in ``field``, all for None, in order."""
        try:
            with (self.path / name).open("rb") as file:
                size = self._end(name, file.seek(0, 2))
                if size <= start:
                    return
                with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as data:
                    yield from self._search(data, value, field, COLUMNS[name], start)
        except FileNotFoundError:
            return

    def _search(
        self, data: mmap.mmap, value: str | None, field: int, columns: int, start: int
    ) -> Iterator[tuple[int, list[str]]]:
        needle = b"\n" if value is None else _needle(value, field)
        position = start
        if value is not None and field == 0:  # its needle begins with the end of the line before
            position = max(0, start - 1)
            if not start and data[: len(needle) - 1] == needle[1:]:
                fields = _fields(data[: max(0, data.find(b"\n"))])
                if len(fields) == columns:
                    yield 0, fields
        while (hit := self._find(data, needle, position)) >= 0:
            begin = position if value is None else data.rfind(b"\n", 0, hit + 1) + 1
            end = data.find(b"\n", max(hit, begin))
            if end < 0:
                return  # a line still being written
            fields = _fields(data[begin:end])
            if len(fields) == columns and (value is None or fields[field] == value):
                yield begin, fields
            position = end + (0 if field == 0 and value is not None else 1)

    def _find(self, data: mmap.mmap, needle: bytes, position: int) -> int:
        """As data.find(), in windows."""
        while position < len(data):
            if self._left is not None and self._left <= 0:
                self.cut_short = True
                return -1
            began = time.monotonic()
            hit = data.find(needle, position, position + _WINDOW + len(needle))
            if self._left is not None:
                self._left -= time.monotonic() - began
            if hit >= 0:
                return hit
            position += _WINDOW
        return -1


def _needle(value: str, field: int) -> bytes:
    return f"\n{value}\t".encode() if field == 0 else f"\t{value}\t".encode()


def _fields(line: bytes) -> list[str]:
    return line.decode("utf-8", "replace").split("\t")
