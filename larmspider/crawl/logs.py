"""Looks lines up in a crawl's logs: in their index, and after its end by searching.

    logs = CrawlLogs(Path("crawl"), "2026-01-31T12:00:00Z", seconds=2.0)
    logs.last("store.log", "http://wiki/a")     # the fields of its last line, or None
    logs.cut_short                              # True: there was more than 2 s could search

A search takes about a second a gigabyte, and lets other threads run after every 4 MB.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import accumulate, groupby
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, TypeAlias

from larmspider.crawl.log_index.index import (
    DATABASE,
    FOLDER,
    OWN,
    LogIndex,
    Target,
    is_index_of,
    kind_of,
    split_offset,
    worker_of,
)
from larmspider.errors import CrawlDirError
from larmspider.pipelines.fetch_log import FETCH_LOG_COLUMNS
from larmspider.pipelines.link_log import LINK_LOG_COLUMNS
from larmspider.pipelines.page_files import STORE_LOG_COLUMNS
from larmspider.urls.canonical import Forms
from larmspider.workdir.frames import open_stored, stored_size

COLUMNS: Mapping[str, int] = {
    "store.log": len(STORE_LOG_COLUMNS),
    "fetch.log": len(FETCH_LOG_COLUMNS),
    "links.log": len(LINK_LOG_COLUMNS),
}
URL, NORMALIZED = 1, 2
"""The fields that hold a URL and its canonical form, in all three."""
STATUS = STORE_LOG_COLUMNS.index("http-code")
REMOVED = "0"
"""The status of a record of store.log that says that the page was removed."""
TABLES = {"store.log": "stored", "fetch.log": "fetched"}
_WINDOW = 4 << 20
_LONGEST_LINE = 1 << 20


VisitTime: TypeAlias = Callable[[str, str], float]
"""Given a worker and a URL: when that worker was last done with it; 0.0: it was not."""


class CrawlLogs:
    """``forms`` gives a URL's canonical form, which finds lines, and its exact form, which
    identifies them; None: they are equal. ``name_of`` gives the exact form of the URL that stands
    for a merged one. ``seconds`` limits all searches of this object together; None: no limit.
    ``end`` returns the number of bytes of a log that count, given its name and size; None: all."""

    def __init__(
        self,
        path: Path,
        began: str,
        seconds: float | None = None,
        end: Callable[[str, int], int] | None = None,
        forms: Callable[[str], Forms] | None = None,
        name_of: Callable[[str], str] = lambda exact: exact,
    ) -> None:
        self.path, self.began, self.forms, self.name_of = path, began, forms, name_of
        self._end = end or (lambda _, size: size)
        self.cut_short = False
        self._left = seconds
        self._visit_time: VisitTime = lambda _worker, _url: 0.0

    @property
    def parts(self) -> Mapping[str, CrawlLogs]:
        """The logs of each worker by its directory's path from here."""
        return {OWN: self}

    @contextmanager
    def index(self) -> Iterator[LogIndex | None]:
        """The index of the logs; None if there is none, or it is another crawl's. Takes 0.2 ms."""
        with ExitStack() as stack:
            index, state = None, {}
            if (self.path / FOLDER / DATABASE).exists():
                with suppress(CrawlDirError):  # it is just being created
                    index = stack.enter_context(closing(LogIndex(self.path / FOLDER)))
                    state = index.state()
            ours = is_index_of(state, self.began, self.path, self._size_of)
            yield index if ours else None

    def _size_of(self, log: str) -> int:
        """Bytes that count of a log in the index."""
        return self.size(log)

    def size(self, name: str) -> int:
        """The counting bytes of a log, 0 without a log."""
        try:
            return self._end(name, stored_size(self.path / name))
        except FileNotFoundError:
            return 0

    def last(self, name: str, exact: str) -> list[str] | None:
        """The last record of an exact form in store.log or fetch.log; of several workers' the
        latest."""
        found = self.last_of_each(name, exact)
        if name == "fetch.log":
            return max((fields for _, fields in found), key=lambda one: one[0], default=None)
        times = [self._visit_time(worker, exact) for worker, _ in found]
        return found[times.index(max(times))][1] if found else None

    def last_of_each(self, name: str, exact: str) -> list[tuple[str, list[str]]]:
        """The last record of an exact form in the log of each worker: its name, the fields."""
        known, ends = self._in_index(TABLES[name], exact, name)
        found = []
        for worker, logs in self.parts.items():
            offset = known.get(worker)
            last = None if offset is None else logs.record(name, offset)
            for fields in self._records_of(logs, name, exact, ends[worker]):
                last = fields
            if last is not None:
                found.append((worker, last))
        return found

    def all_of(self, name: str, exact: str) -> Iterator[list[str]]:
        """All records of an exact form in store.log or fetch.log of one directory."""
        return self._records_of(self, name, exact, 0)

    def _records_of(
        self, logs: CrawlLogs, name: str, exact: str, start: int
    ) -> Iterator[list[str]]:
        """Records of a URL by its exact form, from ``start`` on."""
        forms = self.forms
        normalized = forms(exact).normalized if forms else exact
        for _, fields in logs.search(name, normalized, NORMALIZED, start):
            if forms is None or forms(fields[URL]).exact == exact:
                yield fields

    def _is_link_to(self, target: str, exact: str) -> bool:
        return target == exact or self.name_of(target) == exact

    def _in_index(self, table: str, url: str, log: str) -> tuple[dict[str, int], dict[str, int]]:
        """For each worker: the offset of the URL's last line in the index, and the offset at which
        the unindexed part of the log begins. For fetches, only the latest line of all workers
        counts."""
        with self.index() as index:
            if index is None:
                return {}, dict.fromkeys(self.parts, 0)
            ends, workers = self._ends(index, log), index.workers()  # first: the index may grow
            split = map(split_offset, index.offsets(table, url))
            return {workers[number]: offset for number, offset in split}, ends

    def _ends(self, index: LogIndex, log: str) -> dict[str, int]:
        ends = index.state().get("positions", {})
        return {worker: int(ends.get(str(Path(worker, log)), 0)) for worker in self.parts}

    def links_to(self, exact: str) -> Iterator[list[str]]:
        """Records of links.log with links to an exact form: first the indexed lines, then newer
        ones. A link to a merged URL counts as a link to the URL that stands for it."""
        exact = self.name_of(exact)
        with self.index() as index:
            target = None if index is None else index.target(exact)
            ends = {} if index is None else self._ends(index, "links.log")
        restarts = self._restarts(ends)
        for fields in self.records_at("links.log", () if target is None else target.offsets):
            if fields and fields[0] not in restarts:
                yield fields
        for worker, logs in self.parts.items():
            start, forms = ends.get(worker, 0), self.forms
            normalized = forms(exact).normalized if forms else exact
            for at, found in logs.search("links.log", normalized, NORMALIZED, start):
                if forms is None or self._is_link_to(forms(found[URL]).exact, exact):
                    _, other, since = restarts.get(found[0], ("", worker, 0))
                    if other == worker and at >= since:
                        yield found

    def _restarts(self, starts: Mapping[str, int]) -> dict[str, tuple[str, str, int]]:
        """The last restart of each page's links: its time, the worker of the log, and the offset;
        from the starts in each worker's log on."""
        latest: dict[str, tuple[str, str, int]] = {}
        for worker, logs in self.parts.items():
            for at, fields in logs.beginnings(starts.get(worker, 0)):
                found = fields[4], worker, at
                latest[fields[0]] = max(latest.get(fields[0], found), found)
        return latest

    def links(self, start: int = 0) -> Iterator[list[str]]:
        """The records of links.log that count, from ``start`` on: the records of each page's last
        version."""
        since = {fields[0]: at for at, fields in self.beginnings(start)}
        for at, fields in self.search("links.log", None, 0, start):
            if fields[URL] and at >= since.get(fields[0], 0):
                yield fields

    def beginnings(self, start: int = 0) -> Iterator[tuple[int, list[str]]]:
        """Offsets and fields of the records that restart the links of a page."""
        for at, fields in self._records_with("links.log", "\t\t", URL, start):
            if not fields[URL]:
                yield at, fields

    def links_from(self, page: str, limit: int) -> list[list[str]] | None:
        """The first ``limit`` links of a page, by its URL as fetched; None if not found in time.
        If several workers have fetched the page, the last one's links count."""
        known, ends = self._in_index("sources", page, "links.log")
        found = []
        for worker, logs in self.parts.items():
            offset, since = known.get(worker), ""
            for at, fields in logs.search("links.log", page, 0, ends[worker]):
                if not fields[URL]:
                    offset, since = at, fields[4]
                elif offset is None:
                    offset = at
            if offset is not None:
                found.append((since, self._visit_time(worker, page), worker, offset))
        if not found:
            return None if self.cut_short else []
        _, _, worker, offset = max(found)
        return self.parts[worker].links_at(offset, page, limit)

    def target(self, exact: str) -> Target | None:
        """The links to a page, from the index."""
        with self.index() as index:
            return None if index is None else index.target(self.name_of(exact))

    def links_at(self, offset: int, page: str, limit: int) -> list[list[str]]:
        """The links of a page whose first one is at ``offset`` of links.log."""
        links: list[list[str]] = []
        for number, fields in enumerate(self.records("links.log", offset)):
            if fields[0] != page or len(links) >= limit or (number and not fields[URL]):
                break
            if fields[URL]:
                links.append(fields)
        return links

    def record(self, name: str, offset: int) -> list[str] | None:
        """The record that begins at ``offset``; None if it is not there, or damaged."""
        return next(self.records_at(name, (offset,)))

    def records_at(self, name: str, offsets: Iterable[int]) -> Iterator[list[str] | None]:
        """record() for many offsets; the file is opened once."""
        with ExitStack() as opened:
            file: BinaryIO | None = None
            with suppress(FileNotFoundError):
                file = opened.enter_context(open_stored(self.path / name, skip=True))
            for offset in offsets:
                line = b""
                if file is not None:
                    file.seek(offset)
                    line = file.readline(_LONGEST_LINE)
                fields = _fields(line[:-1]) if line.endswith(b"\n") else []
                yield fields if len(fields) == COLUMNS[name] else None

    def records(self, name: str, offset: int) -> Iterator[list[str]]:
        """Records from ``offset`` on, until one is damaged."""
        try:
            with open_stored(self.path / name, skip=True) as file:
                file.seek(offset)
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
        """Offset and fields of records that hold ``value`` in ``field``, all for None, in order."""
        for at, fields in self._records_with(name, value, field, start):
            if value in (None, fields[field]):
                yield at, fields

    def _records_with(
        self, name: str, value: str | None, field: int, start: int
    ) -> Iterator[tuple[int, list[str]]]:
        """The records of search(), and others."""
        try:
            with open_stored(self.path / name, buffered=False, skip=True) as file:
                end = self._end(name, file.seek(0, 2))
                for begin, lines in self._hits(file, value, field, start, end):
                    for at, line in lines:
                        fields = _fields(line)
                        if len(fields) == COLUMNS[name]:
                            yield begin + at, fields
        except FileNotFoundError:
            return

    def _hits(
        self, file: BinaryIO, value: str | None, field: int, start: int, end: int
    ) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
        """Lines that may be wanted records, by their offsets in a stretch of some 4 MB, and the
        beginning of the stretch. The file is read and not mapped: a crawl that continues from its
        last checkpoint cuts its logs, and the system kills a process that reads a map after a
        file's end."""
        window = _WINDOW
        while start < end:
            if self._left is not None and self._left <= 0:
                self.cut_short = True
                return
            began = time.monotonic()
            file.seek(start)
            data = file.read(min(window, end - start))
            whole = data.rfind(b"\n") + 1
            found = _lines(data[:whole]) if value is None else _with(data, whole, value, field)
            if self._left is not None:
                self._left -= time.monotonic() - began
            yield start, found
            if whole:
                start, window = start + whole, _WINDOW
            elif len(data) < window:
                return  # a line still being written, or cut off
            else:
                window *= 2


def _lines(data: bytes) -> list[tuple[int, bytes]]:
    """All lines, each with its offset."""
    lines = data.split(b"\n")[:-1]
    return list(zip(accumulate((len(line) + 1 for line in lines), initial=0), lines, strict=False))


def _with(data: bytes, whole: int, value: str, field: int) -> list[tuple[int, bytes]]:
    """The lines, up to ``whole``, that hold ``value`` in this field, or in another field except the
    first."""
    needle, found = _needle(value, field), []
    at_once = field == 0 and data.startswith(needle[1:])
    hit = 0 if at_once and whole else data.find(needle, 0, whole)
    while hit >= 0:
        begin = data.rfind(b"\n", 0, hit + 1) + 1
        end = data.find(b"\n", begin, whole)
        found.append((begin, data[begin:end]))
        hit = data.find(needle, end, whole)
    return found


def _needle(value: str, field: int) -> bytes:
    return f"\n{value}\t".encode() if field == 0 else f"\t{value}\t".encode()


def _fields(line: bytes) -> list[str]:
    return line.decode("utf-8", "replace").split("\t")


class WorkersLogs(CrawlLogs):
    """The logs of all workers of a crawl as one: in one index over all of them, and after its end
    by searching.

    ``parts`` are the logs of each worker by its directory's path from ``path``; each limits its own
    searches. Offsets in the index name the worker: split_offset().
    """

    def __init__(
        self,
        path: Path,
        began: str,
        parts: Mapping[str, CrawlLogs],
        visit_time: VisitTime,
        forms: Callable[[str], Forms] | None = None,
        name_of: Callable[[str], str] = lambda exact: exact,
    ) -> None:
        self.path, self.began, self.forms, self._parts = path, began, forms, parts
        self.name_of = name_of
        self._visit_time = visit_time

    @property
    def parts(self) -> Mapping[str, CrawlLogs]:
        return self._parts

    @property
    def cut_short(self) -> bool:  # type: ignore[override]
        return any(logs.cut_short for logs in self.parts.values())

    def size(self, name: str) -> int:
        return sum(logs.size(name) for logs in self.parts.values())

    def _size_of(self, log: str) -> int:
        part = self.parts.get(worker_of(log))
        return 0 if part is None else part.size(kind_of(log))

    def records_at(self, name: str, offsets: Iterable[int]) -> Iterator[list[str] | None]:
        with self.index() as index:
            workers = [] if index is None else index.workers()
        for number, neighbours in groupby(map(split_offset, offsets), key=itemgetter(0)):
            inner = [offset for _, offset in neighbours]
            logs = self.parts.get(workers[number]) if number < len(workers) else None
            yield from logs.records_at(name, inner) if logs else [None] * len(inner)

    def records(self, name: str, offset: int) -> Iterator[list[str]]:
        with self.index() as index:
            workers = [] if index is None else index.workers()
        number, offset = split_offset(offset)
        if number < len(workers) and workers[number] in self.parts:
            yield from self.parts[workers[number]].records(name, offset)

    def search(
        self, name: str, value: str | None, field: int, start: int = 0
    ) -> Iterator[tuple[int, list[str]]]:
        """One log after the other; offsets are each log's own, not the index's."""
        for logs in self.parts.values():
            yield from logs.search(name, value, field, start)
