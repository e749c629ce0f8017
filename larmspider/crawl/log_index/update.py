"""Brings the index up to date, from where it ended to where the logs were committed last.

    Update(Path("crawl"), {"links.log": 81_264, ...}, "2026-01-31T12:00:00Z", exact).run()
    Update(Path("crawl"), {"atlas-1/links.log": 7_200, "atlas-2/links.log": ...}, ...).run()

Lines after ``ends`` may be dropped after a crash, so they are not read. If a log is not last
time's (a crawl that started over, a log cut short), the index restarts from nothing: a checksum
of the bytes before the position tells. Each batch of lines is one transaction; a killed update
continues from the last one.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, TypeAlias

from larmspider.crawl.log_index.index import (
    FOLDER,
    FORMAT,
    MAX_REFERRERS,
    SCHEMA,
    WRITER_LOCK,
    IndexBusyError,
    checksum,
    connect,
    is_index_of,
    joined_offset,
    kind_of,
    pack_offsets,
    read_state,
    split_offset,
    unpack_offsets,
    worker_of,
)
from larmspider.errors import CrawlDirError
from larmspider.files import in_words, lock
from larmspider.frontier.storage.records import host_of, url_key
from larmspider.workdir.frames import FRAME_BYTES, LOST, damages, note_damage, open_stored

BATCH_TARGETS = 100_000
"""Targets, or pairs of hosts, after which a batch is full."""
BATCH_LINES = 500_000
"""Lines of links.log; a batch takes some 100 MB."""
NOT_ASKED = frozenset({"robots", "scope", "ignored"})
"""Results in fetch.log of URLs that got no request."""
SOUND = NOT_ASKED | {"same", "noindex"}
"""Results that are neither a status nor a failure."""
_CHUNK = 4 << 20
_CACHE_KB = 64 << 10
_REMEMBERED = 100_000

Progress: TypeAlias = Callable[[int, int], object]
"""Called with bytes read and bytes in all."""


def is_failure(result: str) -> bool:
    """Whether a result in fetch.log makes a link broken: a status from 400 on, or no answer.

    >>> [is_failure(result) for result in ("200", "301", "404", "dns", "same")]
    [False, False, True, True, False]
    """
    if result.isdecimal():
        return int(result) >= 400
    return result not in SOUND


class Update:
    """``ends``: how far each log may be read, in bytes, by its path from ``directory``. ``began``:
    crawl.json's, which names the crawl. ``exact`` makes a URL's exact form; None: the canonical
    form. ``merged`` maps exact forms of merged URLs to the URLs that stand for them, which their
    links count for. The index restarts from nothing if more merges were ``undone``. Raises
    CrawlDirError if the index cannot be written, IndexBusyError while another process writes it."""

    def __init__(
        self,
        directory: Path,
        ends: Mapping[str, int],
        began: str,
        exact: Callable[[str], str] | None = None,
        *,
        merged: Mapping[bytes, bytes] | None = None,
        undone: int = 0,
        clock: Callable[[], float] = time.time,
        progress: Progress = lambda _done, _all: None,
    ) -> None:
        self.directory, self.ends, self.began, self.clock = directory, ends, began, clock
        self._progress = progress
        self._exact = ExactForms(exact)
        self._exact.merged, self.undone = merged or {}, undone
        self._state: dict[str, Any] = {}
        self._done = self._all = 0

    def run(self) -> dict[str, Any]:
        """Read new lines. Returns the state of the index afterwards."""
        folder = self.directory / FOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with lock(folder / WRITER_LOCK):
                for old in ("data.mdb", "lock.mdb"):  # files of format 2
                    (folder / old).unlink(missing_ok=True)
                with closing(connect(folder, readonly=False)) as self._database:
                    self._update()
        except BlockingIOError:
            raise IndexBusyError(
                f"another process brings the index of the logs in {folder} up to date"
            ) from None
        except (sqlite3.Error, OSError) as error:
            said = in_words(error, folder)
            raise CrawlDirError(f"the index of the logs in {folder}: {said}") from error
        return self._state

    def _update(self) -> None:
        database = self._database
        database.execute("PRAGMA journal_mode = WAL")  # readers see the last commit meanwhile
        # a crash of the machine may undo the last commits, never damage the file
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        began = self.clock()
        self._state = self._checked_state()
        workers, positions = self._state["workers"], self._state["positions"]
        workers += sorted({worker_of(log) for log in self.ends} - set(workers))
        self._all = sum(max(0, end - positions.get(log, 0)) for log, end in self.ends.items())
        for kind, batch in _BATCHES.items():
            for log in sorted(log for log in self.ends if kind_of(log) == kind):
                while positions.get(log, 0) < self.ends[log]:
                    worker = workers.index(worker_of(log))
                    self._read_batch(log, batch(worker, self._exact, self._earlier))
        self._write_state(
            time=began,
            seconds=round(self.clock() - began, 3),
            damaged=self._damaged(),
        )

    def _damaged(self) -> list[list[Any]]:
        """The damages found in the logs, now or earlier: file, place, words, and the bytes at this
        place."""
        for name, at, what, _ in self._state.get("damaged", ()):
            note_damage(Path(name), at, what)
        return [
            [str(path), at, what, _what_stands(path, at)]
            for (path, at), what in sorted(damages.items())
            if path.is_relative_to(self.directory)
        ]

    def _repaired(self, state: Mapping[str, Any]) -> bool:
        """Whether a damaged place of a file has changed: skipped lines may be there now."""
        return any(
            now != [_what_stands(Path(name), at)] for name, at, _, *now in state.get("damaged", ())
        )

    def _checked_state(self) -> dict[str, Any]:
        """The state of the index, which restarts from nothing for another crawl, log or format."""
        state = read_state(self._database)
        ours = is_index_of(state, self.began, self.directory, lambda log: self.ends.get(log, 0))
        if ours and state.get("undone", 0) == self.undone and not self._repaired(state):
            return state
        with self._database as database:
            database.execute("BEGIN IMMEDIATE")
            tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            for (table,) in tables.fetchall():
                database.execute(f"DROP TABLE {table}")
            for statement in SCHEMA.split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {FORMAT}")
        return {
            "began": self.began, "undone": self.undone,
            "positions": {}, "checksums": {}, "workers": [],
            "pages": 0, "links": 0, "pairs": 0, "fetches": 0, "time": 0.0, "seconds": 0.0,
        }  # fmt: skip

    def _read_batch(self, log: str, batch: Batch) -> None:
        """Read lines into an empty batch until it is full or the log ends, and write it."""
        start, end = self._state["positions"].get(log, 0), self.ends[log]
        position = self._gather(log, batch, start, end)
        self._done += position - start
        if position == start:  # a line that has no end
            position = end
        self._state["positions"][log] = position
        self._state["checksums"][log] = checksum(self.directory / log, position)
        with self._database as database:
            database.execute("BEGIN IMMEDIATE")
            counts = batch.write(database)
            self._write_state(**{name: self._state[name] + n for name, n in counts.items()})
        self._progress(self._done, self._all)

    def _gather(self, log: str, batch: Batch, position: int, end: int) -> int:
        """The position of the first line that is not in the batch."""
        done = self._done - position
        with open_stored(self.directory / log, skip=True) as file:
            file.seek(position)
            for lines in _whole_lines(file, end - position):
                damaged = LOST in lines
                for line in lines.split(b"\n")[:-1]:
                    if damaged and LOST in line:
                        pass  # no record
                    elif not batch.add(line, position):
                        return position
                    position += len(line) + 1
                self._progress(done + position, self._all)
        return position

    def _earlier(self, page: bytes, before: int | None) -> Earlier:
        """The counts of a page's lines in earlier batches and at ``before``."""
        key, found = _key_of(page), Earlier()
        query = "SELECT worker, time FROM sources WHERE key = ?"
        found.times = dict(self._database.execute(query, (key,)))
        query = (
            "SELECT offset FROM sources WHERE key = ?1"
            " UNION SELECT offset FROM repeats WHERE key = ?1"
        )
        offsets = [offset for (offset,) in self._database.execute(query, (key,))]
        for joined in offsets if before is None else [*offsets, before]:
            self._add_lines_at(joined, page, found)
        return found

    def _add_lines_at(self, joined: int, page: bytes, found: Earlier) -> None:
        """The lines of a page that begin at an offset; none if the page has moved."""
        worker, offset = split_offset(joined)
        log = self.directory / self._state["workers"][worker] / "links.log"
        with suppress(FileNotFoundError), open_stored(log, skip=True) as file:
            file.seek(offset)
            line = file.readline()
            first = True
            while (fields := line.split(b"\t", 3))[0] == page and len(fields) == 4:
                if fields[1]:
                    found.lines += 1
                    target = self._counted_as(fields[1], fields[2], joined)
                    if target and fields[1] != page:
                        found.targets.setdefault(target, joined)
                elif not first:
                    break
                joined += len(line)
                line, first = file.readline(), False

    def _counted_as(self, url: bytes, normalized: bytes, offset: int) -> bytes:
        """The target for which a link was counted. If the URL was merged later, this is the URL
        itself, and not the URL that now stands for it."""
        exact = normalized if url == normalized else self._exact.of(url, normalized)
        if exact in self._exact.merged:
            query = "SELECT offsets FROM targets WHERE key = ?"
            row = self._database.execute(query, (_key_of(exact),)).fetchone()
            if row is None or offset not in unpack_offsets(row[0]):
                return self._exact.merged[exact]
        return exact

    def _write_state(self, **changed: Any) -> None:
        self._state |= changed
        state = json.dumps(self._state)
        self._database.execute("REPLACE INTO state (rowid, state) VALUES (1, ?)", (state,))


def _what_stands(path: Path, at: int) -> str:
    """The digest of a stretch as long as a frame and its header."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(at)
        return blake2b(file.read(2 * FRAME_BYTES), digest_size=16).hexdigest()
    return ""


class ExactForms(dict[bytes, bytes]):
    """The exact forms of URLs in the logs, each made once: navigation stands on each page."""

    def __init__(self, exact: Callable[[str], str] | None = None) -> None:
        super().__init__()
        self._exact = exact
        self.merged: Mapping[bytes, bytes] = {}

    def of(self, url: bytes, normalized: bytes) -> bytes:
        """The exact form of a URL in a log, made from the log's two columns; b"" if there is no
        exact form."""
        return self[url] if normalized and self._exact else normalized

    def __missing__(self, url: bytes) -> bytes:
        assert self._exact is not None
        form = self._exact(_text(url)).encode()
        if len(self) >= _REMEMBERED:
            self.clear()
        self[url] = form
        return form


@dataclass(slots=True)
class Earlier:
    """The earlier lines of a page: ``targets`` with the offset of the first line of each, the
    number of ``lines``, and ``times``: by worker, when its links restarted, "" for never."""

    targets: dict[bytes, int] = field(default_factory=dict)
    lines: int = 0
    times: dict[int, str] = field(default_factory=dict)

    def is_later(self, worker: int, time: str) -> bool:
        """Whether another worker's links of the page restarted after ``time``."""
        return any(other > time for number, other in self.times.items() if number != worker)


EarlierOf: TypeAlias = Callable[[bytes, int | None], Earlier]
"""Takes a page's URL and an offset. Returns its lines in earlier batches and at the offset."""


class Batch:
    """Lines of a worker's log, gathered until they are worth a transaction.

    Rows are written in the order of their keys, so that neighbours share pages of the file.
    """

    def __init__(self, worker: int, exact: ExactForms, earlier: EarlierOf) -> None:
        self.worker, self.base, self.exact = worker, joined_offset(worker, 0), exact
        self.earlier = earlier
        self.lines = 0

    def add(self, line: bytes, offset: int) -> bool:
        """Take a line without its line end. A damaged line is skipped. Returns False if the batch
        is full and has not taken the line."""
        raise NotImplementedError

    def write(self, database: sqlite3.Connection) -> dict[str, int]:
        """Write the batch. Returns the numbers to add to the totals in the index's state."""
        raise NotImplementedError


class LinkBatch(Batch):
    """Lines of links.log. A page counts once for each target, links to itself do not count.

    That holds wherever its lines are. A line may come a second time, because another worker has it
    too or because its links were written in parts: it adds only the targets that the earlier lines
    lack. When the links of a page restart (pipelines/link_log.py), its earlier lines no longer
    count. The latest restart of several workers counts.
    """

    def __init__(self, worker: int, exact: ExactForms, earlier: EarlierOf) -> None:
        super().__init__(worker, exact, earlier)
        self.targets: dict[bytes, list[int]] = {}
        """By exact form: number of pages, then the offsets of the first links."""
        self.sources: dict[bytes, int] = {}
        self.host_links: dict[tuple[str, str], int] = defaultdict(int)
        self.pairs = 0
        self._page = b""
        self._seen: set[bytes] = set()
        self._counted: set[bytes] = set()
        self._again: dict[bytes, set[bytes]] = {}
        """Targets that known pages have been counted for, by URL of the page."""
        self.repeats: set[tuple[bytes, int]] = set()
        """The offsets of earlier lines of these pages."""
        self.restarts: dict[bytes, str] = {}
        """Pages whose links restart, and when."""
        self.moved: dict[bytes, dict[int, int]] = defaultdict(dict)
        """By target: earlier places of lines, and the place of the same page's link now; -1: it is
        gone."""
        self.dropped = 0
        """Lines that no longer count."""
        self._old: dict[bytes, int] = {}
        self._passed = False

    @property
    def full(self) -> bool:
        size = max(len(self.targets), len(self.host_links))
        return size > BATCH_TARGETS or self.lines > BATCH_LINES

    def add(self, line: bytes, offset: int) -> bool:
        fields = line.split(b"\t", 3)
        if len(fields) < 4:
            return True
        page, url, target, rest = fields
        if not url and rest[:1] == b"\t":
            return self._restart(page, _text(rest[1:]), offset + self.base)
        if url != target:
            target = self.exact.of(url, target)
        if self.exact.merged:
            target = self.exact.merged.get(target, target)
        offset += self.base
        if page != self._page:
            if self.full or page in self.restarts:
                return False
            self._end_page()
            self._page = page
            counted = self._again.get(page)
            if counted is None:
                earlier = self.earlier(page, self.sources.get(page))
                self._passed = earlier.is_later(self.worker, earlier.times.get(self.worker, ""))
                counted = set() if self._passed else set(earlier.targets)
                if counted:
                    self._again[page] = counted
            self._counted = counted
            if self._passed:
                return True
            if page in self.sources:
                self.repeats.add((page, self.sources[page]))
            self.sources[page] = offset
        if self._passed:
            return True
        self.lines += 1
        if not target or target in self._seen or url == page:
            return True
        self._seen.add(target)
        if target in self._counted:
            if target in self._old:
                self.moved[target][self._old.pop(target)] = offset
            return True
        found = self.targets.get(target)
        if found is None:
            self.targets[target] = [1, offset]
            return True
        found[0] += 1
        if len(found) <= MAX_REFERRERS:
            found.append(offset)
        return True

    def _restart(self, page: bytes, time: str, offset: int) -> bool:
        if self.full or page in self.sources or page in self.restarts:
            return False  # its earlier lines have to be written first
        self._end_page()
        self._page = page
        earlier = self.earlier(page, None)
        self._passed = earlier.is_later(self.worker, time)
        if not self._passed:
            self.sources[page], self.restarts[page] = offset, time
            self.dropped += earlier.lines
            self._old = earlier.targets
            self._counted = set(earlier.targets)
        return True

    def _end_page(self) -> None:
        source = _host_of_origin(_origin(self._page))
        for target, offset in self._old.items():
            self.moved[target][offset] = -1
            self.host_links[source, _host_of_origin(_origin(target))] -= 1
        self.pairs -= len(self._old)
        self._old, self._passed = {}, False
        new = self._seen - self._counted
        for target in new:
            self.host_links[source, _host_of_origin(_origin(target))] += 1
        self.pairs += len(new)
        if self._counted:
            self._counted |= new
        self._seen.clear()

    def write(self, database: sqlite3.Connection) -> dict[str, int]:
        self._end_page()
        self._move(database)
        database.executemany(
            "INSERT INTO targets VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET"  # noqa: S608
            " pages = pages + excluded.pages, offsets = substr("
            f"CAST(offsets || excluded.offsets AS BLOB), 1, {8 * MAX_REFERRERS})",
            sorted(
                (_key_of(url), pages, pack_offsets(offsets))
                for url, (pages, *offsets) in self.targets.items()
            ),
        )
        database.executemany(
            "INSERT OR IGNORE INTO repeats SELECT key, offset FROM sources"
            " WHERE key = ? AND worker = ?",
            sorted((_key_of(page), self.worker) for page in self._again),
        )
        database.executemany(
            "INSERT OR IGNORE INTO repeats VALUES (?, ?)",
            sorted((_key_of(page), offset) for page, offset in self.repeats),
        )
        again = sorted((_key_of(page),) for page in self.restarts)
        for table in ("sources", "repeats"):
            database.executemany(f"DELETE FROM {table} WHERE key = ?", again)  # noqa: S608
        database.executemany(
            "INSERT INTO sources VALUES (?, ?, ?, ?) ON CONFLICT (key, worker) DO UPDATE SET"
            " offset = excluded.offset",
            sorted(
                (_key_of(page), self.worker, offset, self.restarts.get(page, ""))
                for page, offset in self.sources.items()
            ),
        )
        hosts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for (source, host), links in self.host_links.items():
            hosts[source]  # is listed even if nothing links there
            hosts[host][0] += links
            hosts[host][1] += links if host != source else 0
        database.executemany(
            "INSERT INTO host_links VALUES (?, ?, ?) ON CONFLICT (source, target) DO UPDATE SET"
            " links = links + excluded.links",
            sorted((*pair, links) for pair, links in self.host_links.items()),
        )
        database.executemany(
            "INSERT INTO hosts VALUES (?, ?, ?) ON CONFLICT (host) DO UPDATE SET"
            " links = links + excluded.links, from_others = from_others + excluded.from_others",
            sorted((host, *counts) for host, counts in hosts.items()),
        )
        if self.moved:
            database.execute("DELETE FROM host_links WHERE links <= 0")
        return {"links": self.lines - self.dropped, "pairs": self.pairs}

    def _move(self, database: sqlite3.Connection) -> None:
        """Update the earlier targets of pages whose links restarted."""
        for key, places in sorted((_key_of(url), places) for url, places in self.moved.items()):
            query = "SELECT pages, offsets FROM targets WHERE key = ?"
            row = database.execute(query, (key,)).fetchone()
            if row is None:
                continue
            pages = row[0] - sum(place < 0 for place in places.values())
            found = (places.get(offset, offset) for offset in unpack_offsets(row[1]))
            offsets = pack_offsets([offset for offset in found if offset >= 0])
            if pages > 0:
                query = "UPDATE targets SET pages = ?, offsets = ? WHERE key = ?"
                database.execute(query, (pages, offsets, key))
            else:
                database.execute("DELETE FROM targets WHERE key = ?", (key,))


class FetchBatch(Batch):
    """Lines of fetch.log."""

    def __init__(self, worker: int, exact: ExactForms, earlier: EarlierOf) -> None:
        super().__init__(worker, exact, earlier)
        self.fetched: list[tuple[bytes, int, str, bool]] = []
        self.results: list[tuple[str, str, int, int, int, int]] = []
        self.failures: list[tuple[str, int]] = []

    def add(self, line: bytes, offset: int) -> bool:
        if len(self.fetched) > BATCH_TARGETS:
            return False
        fields = line.split(b"\t")
        if len(fields) != 8:
            return True
        time_, url, normalized, _, word, size, millis, _ = fields
        self.lines += 1
        offset += self.base
        result, host, took = _text(word), host_of(_text(url)), _number(millis)
        failed = is_failure(result)
        key = _key_of(self.exact.of(url, normalized) or url)
        self.fetched.append((key, offset, _text(time_), failed))
        self.results.append((host, result, 1, _number(size), took, took))
        if failed:
            self.failures.append((host, offset))
        return True

    def write(self, database: sqlite3.Connection) -> dict[str, int]:
        # the last of one worker's lines counts, even if its clock was set back; of several workers'
        # lines the latest, and at the same time the last worker's, in any order of reading
        database.executemany(
            "INSERT INTO fetched VALUES (?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"  # noqa: S608
            " offset = excluded.offset, time = excluded.time, failed = excluded.failed"
            f" WHERE offset / {joined_offset(1, 0)} = {self.worker} OR time < excluded.time"
            f" OR (time = excluded.time AND offset < {self.base})",
            sorted(self.fetched),
        )
        database.executemany(
            "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (host, result) DO UPDATE"
            " SET times = times + excluded.times, bytes = bytes + excluded.bytes,"
            " millis = millis + excluded.millis, longest = max(longest, excluded.longest)",
            sorted(self.results),
        )
        database.executemany("INSERT INTO failures VALUES (?, ?)", sorted(self.failures))
        return {"fetches": self.lines}


class StoreBatch(Batch):
    """Lines of store.log."""

    def __init__(self, worker: int, exact: ExactForms, earlier: EarlierOf) -> None:
        super().__init__(worker, exact, earlier)
        self.stored: list[tuple[bytes, int, int]] = []

    def add(self, line: bytes, offset: int) -> bool:
        if len(self.stored) > BATCH_TARGETS:
            return False
        fields = line.split(b"\t", 3)
        if len(fields) == 4:
            self.lines += 1
            key = _key_of(self.exact.of(fields[1], fields[2]) or fields[1])
            self.stored.append((key, self.worker, self.base + offset))
        return True

    def write(self, database: sqlite3.Connection) -> dict[str, int]:
        database.executemany("REPLACE INTO stored VALUES (?, ?, ?)", sorted(self.stored))
        return {"pages": self.lines}


_BATCHES = {"store.log": StoreBatch, "fetch.log": FetchBatch, "links.log": LinkBatch}


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")


def _key_of(url: bytes) -> bytes:
    return url_key(_text(url))


def _origin(url: bytes) -> bytes:
    """``http://wiki`` of ``http://wiki/a``."""
    slash = url.find(b"/", 8)
    return url if slash < 0 else url[:slash]


@lru_cache(maxsize=16_384)
def _host_of_origin(origin: bytes) -> str:
    return host_of(_text(origin))


def _number(field: bytes) -> int:
    return int(field) if field.isdigit() and len(field) < 16 else 0


def _whole_lines(log: IO[bytes], size: int) -> Iterator[bytes]:
    """``size`` bytes in pieces of some 4 MB that end where a line does."""
    rest = b""
    while size > 0 and (piece := log.read(min(_CHUNK, size))):
        size -= len(piece)
        whole, end, tail = (rest + piece).rpartition(b"\n")
        rest = tail
        if end:
            yield whole + end
