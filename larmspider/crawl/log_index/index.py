"""Answers questions from the index of the logs; crawl/logs.py reads the lines themselves.

>>> with closing(LogIndex(Path("crawl/logs.idx"))) as index:
...     index.offsets("stored", "http://wiki/a")     # {".": 81_264}: its last line in store.log
"""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.records import url_key
from larmspider.workdir.frames import open_stored

FORMAT = 5
FOLDER = "logs.idx"
DATABASE = "index.sqlite"
WRITER_LOCK = "writer.lock"
OWN = "."
"""The worker directory of a crawl of one process: the crawl's own."""
MAX_REFERRERS = 50
"""Links whose lines are known for each target; of a menu's the first 50 of 10,000 pages."""
TOP = 1000
"""How many of the most linked pages and hosts are listed, and drawn with links between them."""
FREQUENT = 20
"""Pages from which on a target is in the table's index by pages."""
SCHEMA = f"""
CREATE TABLE state (state TEXT);
CREATE TABLE targets (key BLOB PRIMARY KEY, pages INTEGER, offsets BLOB) WITHOUT ROWID;
CREATE INDEX frequent_targets ON targets (pages) WHERE pages >= {FREQUENT};
CREATE TABLE sources (key BLOB, worker INTEGER, offset INTEGER, time TEXT,
    PRIMARY KEY (key, worker)) WITHOUT ROWID;
CREATE TABLE repeats (key BLOB, offset INTEGER, PRIMARY KEY (key, offset)) WITHOUT ROWID;
CREATE TABLE stored (key BLOB, worker INTEGER, offset INTEGER, PRIMARY KEY (key, worker))
    WITHOUT ROWID;
CREATE TABLE fetched (key BLOB PRIMARY KEY, offset INTEGER, time TEXT, failed INTEGER)
    WITHOUT ROWID;
CREATE INDEX broken ON fetched (key) WHERE failed;
CREATE TABLE hosts (host TEXT PRIMARY KEY, links INTEGER, from_others INTEGER) WITHOUT ROWID;
CREATE INDEX hosts_by_links ON hosts (links);
CREATE TABLE host_links (source TEXT, target TEXT, links INTEGER, PRIMARY KEY (source, target))
    WITHOUT ROWID;
CREATE TABLE results (host TEXT, result TEXT, times INTEGER, bytes INTEGER, millis INTEGER,
    longest INTEGER, PRIMARY KEY (host, result)) WITHOUT ROWID;
CREATE TABLE failures (host TEXT, offset INTEGER, PRIMARY KEY (host, offset)) WITHOUT ROWID;
"""

_OFFSET_BITS = 48
_CHUNK = 1000


class IndexBusyError(CrawlDirError):
    """Another process is updating the index."""


class Target(NamedTuple):
    """``pages`` have a link to it; ``offsets`` of the first `MAX_REFERRERS` lines in links.log."""

    pages: int
    offsets: tuple[int, ...]


class LinkedHost(NamedTuple):
    """``links``: pairs of a page and a target on this host. ``from_others``: the pairs whose page
    is on another host."""

    name: str
    links: int
    from_others: int


class Fetches(NamedTuple):
    """A host's fetches with one result: how many, their bytes, their milliseconds, the longest."""

    times: int = 0
    bytes: int = 0
    millis: int = 0
    longest: int = 0

    def plus(self, other: Fetches) -> Fetches:
        return Fetches(
            self.times + other.times,
            self.bytes + other.bytes,
            self.millis + other.millis,
            max(self.longest, other.longest),
        )


def joined_offset(worker: int, offset: int) -> int:
    """One number for a worker (by its number in the index) and an offset in its log. For worker 0,
    and in a crawl of one process, it is the offset itself."""
    return worker << _OFFSET_BITS | offset


def split_offset(joined: int) -> tuple[int, int]:
    """
    >>> split_offset(joined_offset(2, 81_264))
    (2, 81264)
    """
    return joined >> _OFFSET_BITS, joined & ((1 << _OFFSET_BITS) - 1)


def pack_offsets(offsets: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(offsets)}Q", *offsets)


def worker_of(log: str) -> str:
    """``atlas-1`` of the log ``atlas-1/links.log``; "." in a crawl of one process."""
    return str(PurePath(log).parent)


def kind_of(log: str) -> str:
    """``links.log`` of the log ``atlas-1/links.log``."""
    return PurePath(log).name


def checksum(log: Path, position: int) -> str:
    """A checksum of the 256 bytes before ``position``, which shows that a log still has the content
    that was read up to there; "" if the log is absent."""
    try:
        with open_stored(log, skip=True) as file:
            file.seek(max(0, position - 256))
            before = file.read(position - file.tell())
    except FileNotFoundError:
        return ""
    return blake2b(before, digest_size=16).hexdigest()


def is_index_of(
    state: Mapping[str, Any], began: str, directory: Path, size_of: Callable[[str], int]
) -> bool:
    """Whether an index belongs to the crawl that ``began`` at this time, and whether the logs still
    begin with the indexed content. ``size_of`` returns the size of a log."""
    return (
        bool(state)
        and state["began"] == began
        and all(
            position <= size_of(log)
            and checksum(directory / log, position) == state["checksums"][log]
            for log, position in state["positions"].items()
        )
    )


def connect(path: Path, *, readonly: bool = True) -> sqlite3.Connection:
    """The database of the index in the folder ``path``, in autocommit mode. Raises sqlite3.Error,
    OSError."""
    options = "mode=ro" if readonly else "mode=rwc"
    wal = path / f"{DATABASE}-wal"
    if readonly and os.statvfs(path).f_flag & os.ST_RDONLY and not wal.exists():
        options += "&immutable=1"  # else SQLite makes a file for its readers' locks
    return sqlite3.connect(
        f"{(path / DATABASE).absolute().as_uri()}?{options}",
        uri=True,
        timeout=30.0,
        isolation_level=None,
        check_same_thread=False,
    )


def read_state(database: sqlite3.Connection) -> dict[str, Any]:
    """{} for an index of another format, or none yet. Raises sqlite3.Error."""
    if database.execute("PRAGMA user_version").fetchone() != (FORMAT,):
        return {}
    row = database.execute("SELECT state FROM state").fetchone()
    return dict(json.loads(row[0])) if row else {}


class LogIndex:
    """Read-only, beside the process that writes. Raises CrawlDirError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._errors():
            self._database = connect(path)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise CrawlDirError(f"the index of the logs in {self.path}: {error}") from error

    def _rows(self, query: str, *values: object) -> list[Any]:
        with self._errors():
            return self._database.execute(query, values).fetchall()

    def state(self) -> dict[str, Any]:
        """``positions`` by log, ``pages``, ``links``, ``pairs``, ``fetches``, the ``time`` of this
        state, ``seconds`` of the last update; {} while the index is empty."""
        with self._errors():
            return read_state(self._database)

    def workers(self) -> list[str]:
        """The workers whose logs are in the index, by the numbers in its offsets; "." for one
        process."""
        return [str(worker) for worker in self.state().get("workers", ())]

    def end(self, log: str) -> int:
        """How much of a log is in the index, in bytes; ``atlas-1/links.log`` of a worker."""
        return int(self.state().get("positions", {}).get(log, 0))

    def offsets(self, table: str, url: str) -> list[int]:
        """Where the last line of ``url`` begins: in ``fetched`` by exact form, in ``stored``
        (by exact form) and ``sources`` (by the URL as fetched) for each worker with one."""
        rows = self._rows(f"SELECT offset FROM {table} WHERE key = ?", url_key(url))  # noqa: S608
        return [offset for (offset,) in rows]

    def target(self, exact: str) -> Target | None:
        """The links to the URL with this exact form."""
        return self.target_of(url_key(exact))

    def target_of(self, key: bytes) -> Target | None:
        """The links to an exact form by its url_key()."""
        rows = self._rows("SELECT pages, offsets FROM targets WHERE key = ?", key)
        return Target(rows[0][0], unpack_offsets(rows[0][1])) if rows else None

    def targets(self) -> Iterator[tuple[bytes, Target]]:
        """All targets, sorted by url_key, so that the targets of a host are neighbours. They are
        read in short transactions, which delay no writer."""
        after = b""
        query = "SELECT key, pages, offsets FROM targets WHERE key > ? ORDER BY key LIMIT ?"
        while rows := self._rows(query, after, _CHUNK):
            for key, pages, offsets in rows:
                yield key, Target(pages, unpack_offsets(offsets))
            after = rows[-1][0]

    def most_linked(self) -> list[tuple[int, bytes]]:
        """Pages that link to it and url_key() of each of the first `TOP` targets."""
        query = "SELECT pages, key FROM targets {} ORDER BY pages DESC, key DESC LIMIT ?"
        rows = self._rows(query.format(f"WHERE pages >= {FREQUENT}"), TOP)
        return rows if len(rows) == TOP else self._rows(query.format(""), TOP)

    def most_linked_hosts(self) -> list[LinkedHost]:
        """The first `TOP` by links."""
        rows = self._rows("SELECT * FROM hosts ORDER BY links DESC, host LIMIT ?", TOP)
        return [LinkedHost(*row) for row in rows]

    def broken(self) -> list[tuple[int, bytes, int]]:
        """All broken targets, the most linked first. Each has the number of pages that link to it,
        its url_key(), and the offset of its line in fetch.log."""
        return self._rows(
            "SELECT coalesce(pages, 0), key, offset FROM fetched LEFT JOIN targets USING (key)"
            " WHERE failed ORDER BY 1 DESC, offset"
        )

    def results(self, host: str) -> dict[str, Fetches]:
        """The fetches of a host by result, the most frequent first."""
        rows = self._rows("SELECT * FROM results WHERE host = ? ORDER BY times DESC", host)
        return {result: Fetches(*sums) for _, result, *sums in rows}

    def failures(self, host: str, limit: int) -> list[int]:
        """Offsets in fetch.log of the last failed fetches of a host, the last first; ``limit`` of
        each worker."""
        query = (
            "SELECT offset FROM failures WHERE host = ? AND offset >= ? AND offset < ?"
            " ORDER BY offset DESC LIMIT ?"
        )
        found = []
        for number in range(len(self.workers())):
            bounds = joined_offset(number, 0), joined_offset(number + 1, 0)
            found += [offset for (offset,) in self._rows(query, host, *bounds, limit)]
        return found

    def host_links(self) -> dict[tuple[str, str], int]:
        """Links from host to host, between the `TOP` hosts that are linked most."""
        rows = self._rows(
            "WITH top AS (SELECT host FROM hosts ORDER BY links DESC, host LIMIT ?)"
            " SELECT * FROM host_links WHERE source IN top AND target IN top",
            TOP,
        )
        return {(source, target): links for source, target, links in rows}

    def close(self) -> None:
        """May be called twice."""
        self._database.close()


def unpack_offsets(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 8}Q", data)


class BrokenCache:
    """The rows of LogIndex.broken(), read once for each state of the index; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: tuple[object, Sequence[tuple[int, bytes, int]]] = (None, ())

    def rows(self, index: LogIndex) -> Sequence[tuple[int, bytes, int]]:
        state = index.state()
        seen = (state.get("began"), state.get("checksums"))
        with self._lock:
            if self._rows[0] != seen:
                self._rows = seen, index.broken()
            return self._rows[1]
