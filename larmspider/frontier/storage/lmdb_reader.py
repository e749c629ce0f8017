"""The frontier as of its last commit, also while a crawl runs, for ``scrapy hosts`` and others.

    with FrontierReader(Path("crawl/frontier")) as frontier:
        print(frontier.counts(), frontier.state(url_key("http://wiki/a")))

Each call is one short transaction, because an open transaction makes the writer's file grow
(measured: 51 MB instead of 10). If the crawl runs in this process, its own reads wait for these
calls, so long reads are done in slices.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import lmdb
import msgspec

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage import records
from larmspider.frontier.storage.lmdb_env import LmdbFiles, close_shared, open_shared
from larmspider.frontier.storage.records import Counts, FetchRecord, MergedUrl, QueuedUrl, UrlState

SLICE = 500
"""Records that one transaction reads; 0.2 ms."""


class _Doubts(msgspec.Struct, array_like=True):
    """The field of KnowledgeNote (learned/revisits/host.py) that stores need, at its place in the
    note."""

    run: msgspec.Raw
    changes: msgspec.Raw
    exposure: msgspec.Raw
    checks: msgspec.Raw
    gone: msgspec.Raw
    pace: msgspec.Raw
    volatile: msgspec.Raw
    validators: msgspec.Raw
    doubtful: frozenset[bytes] = frozenset()


class FrontierReader(AbstractContextManager["FrontierReader"]):
    """A read-only view. Raises CrawlDirError if there is no frontier, or if it has another format.
    ``runs``: a process runs the crawl; if not, leased URLs count as queued.
    """

    def __init__(self, path: Path, *, runs: bool = True) -> None:
        if not (path / "data.mdb").exists():
            raise CrawlDirError(f"there is no frontier in {path}")
        self._files: LmdbFiles = open_shared(path)
        self._closed, self.runs = False, runs

    def _counts(self, packed: bytes) -> Counts:
        found = records.unpack_counts(packed)
        return found if self.runs else found.after_run()

    def is_doubtful(self, key: bytes, url: str) -> bool:
        """Whether the stores may have lost the page: it is stored again by its next visit."""
        note = self.note(f"refresh {records.host_of(url)}")
        return note is not None and key in msgspec.msgpack.decode(note, type=_Doubts).doubtful

    def state(self, key: bytes) -> UrlState:
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
        return UrlState(record[0]) if record else UrlState.UNKNOWN

    def visit(self, key: bytes) -> FetchRecord | None:
        """The record of a stored, failed or refused URL."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
        return records.unpack_visit(record) if record and records.is_final(record) else None

    def merged(self, key: bytes) -> MergedUrl | None:
        """See Backend.merged()."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
        is_merged = record is not None and record[0] == UrlState.MERGED
        return records.unpack_merged(record) if is_merged else None

    def all_merged(self) -> Iterator[MergedUrl]:
        """Every merged URL, host by host."""
        after: bytes | None = records.OF_HOST
        while after is not None:
            rows, after = self._slice(self._files.aliases, after)
            for row, _ in rows:
                if not row.startswith(records.OF_HOST):
                    return
                if (found := self.merged(row[9:])) is not None:
                    yield found

    def entry(self, key: bytes) -> QueuedUrl | None:
        """The entry of a queued or leased URL."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
            if record is None or not records.is_waiting(record):
                return None
            packed = txn.get(records.unpack_waiting(record)[2], db=self._files.queue)
        return records.unpack_entry(packed) if packed else None

    def place(self, key: bytes, limit: int = 10_000) -> tuple[int, float] | None:
        """The place of a queued URL: the number of its host's URLs before it, at most ``limit``,
        and its earliest time or 0.0."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
            if record is None or record[0] != UrlState.QUEUED:
                return None
            place = records.unpack_waiting(record)[2]
            cursor, before = txn.cursor(self._files.queue), 0
            more = cursor.set_range(place[:9])
            while more and before < limit and cursor.key() < place:
                before += 1
                more = cursor.next()
        return before, records.earliest_of(place) if records.run_of(
            place
        ) == records.DELAYED else 0.0

    def queued(self, host: str, limit: int = 10) -> list[QueuedUrl]:
        """The next entries of a host, leased ones among them."""
        rows = self._queue(records.host_prefix(host), limit)
        return [records.unpack_entry(packed) for _, packed in rows]

    def delayed(self, host: str, limit: int = 10) -> list[tuple[QueuedUrl, float]]:
        """Entries of a host whose last attempt failed, and when each may be tried again."""
        rows = self._queue(records.delayed_prefix(host), limit)
        return [
            (records.unpack_entry(packed), records.earliest_of(key))
            for key, packed in rows
            if not records.is_held(key)
        ]

    def _queue(self, prefix: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        with self._files.read() as txn:
            cursor = txn.cursor(self._files.queue)
            if not cursor.set_range(prefix):
                return []
            rows = takewhile(lambda row: row[0].startswith(prefix), cursor.iternext())
            return list(islice(rows, limit))

    def waiting(self, after: bytes = b"") -> tuple[list[QueuedUrl], bytes | None]:
        """A slice of the queued and leased URLs, host by host. Returns the entries, and ``after``
        for the next slice; None at the end."""
        rows, following = self._slice(self._files.queue, after)
        return [records.unpack_entry(packed) for _, packed in rows], following

    def _slice(self, db: Any, after: bytes) -> tuple[list[tuple[bytes, bytes]], bytes | None]:
        """A slice of a database, and the key at which the next begins, None at the end."""
        with self._files.read() as txn:
            cursor = txn.cursor(db)
            rows = list(islice(cursor.iternext(), SLICE + 1)) if cursor.set_range(after) else []
        return rows[:SLICE], rows[SLICE][0] if len(rows) > SLICE else None

    def _all(self, db: Any) -> Iterator[tuple[bytes, bytes]]:
        """Every record of a database, in slices."""
        after: bytes | None = b""
        while after is not None:
            rows, after = self._slice(db, after)
            yield from rows
            time.sleep(0)

    def hosts(self) -> dict[str, tuple[bytes, Counts]]:
        """Packed host record (b"" for none yet) and counters of each host."""
        rows = dict(self._all(self._files.hosts))
        return {
            name[1:].decode(): (rows.get(b"h" + name[1:], b""), self._counts(data))
            for name, data in rows.items()
            if name[:1] == b"c"
        }

    def visits(self) -> Iterator[tuple[bytes, FetchRecord]]:
        """Keys and records of all URLs that are stored, failed or refused, host by host; some 4 us
        each."""
        for key, record in self._all(self._files.urls):
            if records.is_final(record):
                yield key, records.unpack_visit(record)

    def final_records(self) -> Iterator[tuple[bytes, bytes]]:
        """Keys and packed records of all URLs that are stored, failed or refused."""
        return ((key, data) for key, data in self._all(self._files.urls) if records.is_final(data))

    def queue_rows(self) -> Iterator[tuple[bytes, int, bytes]]:
        """The place of each queued or leased URL, the number of links to it, and its packed
        entry."""
        for place, packed in self._all(self._files.queue):
            with self._files.read() as txn:
                record = txn.get(packed[:16], db=self._files.urls)
            if record is not None and records.is_waiting(record):
                yield place, records.inlinks_of(record), packed

    def merged_records(self) -> Iterator[tuple[bytes, bytes]]:
        """Keys and packed records of merged URLs."""
        return (row for row in self._all(self._files.urls) if row[1][0] == UrlState.MERGED)

    def host_notes(self) -> Iterator[tuple[bytes, bytes]]:
        """Names and values of notes about a host: the host's name is after a space."""
        for name, value in self._all(self._files.meta):
            if name[:1] == b"n" and b" " in name:
                yield name[1:], value

    def others(self) -> Iterator[bytes]:
        """Names of URLs that other workers fetched: number of the partition (2 bytes) and 8 bytes
        of the URL key. Empty for a crawl of one process."""
        try:
            found = self._files.env.open_db(b"others", create=False)
        except lmdb.NotFoundError:
            return
        for name, _ in self._all(found):
            yield name

    def shared_crawl(self) -> tuple[str, int]:
        """The id of the crawl in Redis, and the number of this worker's last commit; ("", 0) where
        one process crawls, or nothing was committed."""
        with self._files.read() as txn:
            known = txn.get(b"redis", b"", db=self._files.meta).decode()
        crawl, _, serial = known.partition(" ")
        return crawl, int(serial or 0)

    def host(self, name: str) -> tuple[bytes, Counts]:
        """Packed record and counters of one host; (b"", zeros) for an unknown host."""
        with self._files.read() as txn:
            record = txn.get(b"h" + name.encode(), b"", db=self._files.hosts)
            counts = txn.get(b"c" + name.encode(), db=self._files.hosts)
        return record, self._counts(counts) if counts else Counts()

    def counts(self) -> Counts:
        """The counters of all hosts together."""
        total = Counts()
        for _, counts in self.hosts().values():
            for name in Counts.__slots__:
                setattr(total, name, getattr(total, name) + getattr(counts, name))
        return total

    def host_prefixes(self) -> set[bytes]:
        """The first 4 bytes of the keys of all URLs: their hosts' part. 3 us each."""
        found: set[bytes] = set()
        after: bytes | None = b""
        while after is not None:
            after = self._more_prefixes(found, after)
            time.sleep(0)
        return found

    def _more_prefixes(self, found: set[bytes], after: bytes) -> bytes | None:
        with self._files.read() as txn:
            cursor = txn.cursor(self._files.urls)
            for _ in range(SLICE):
                if not cursor.set_range(after):
                    return None
                found.add(prefix := cursor.key()[:4])
                after = prefix + b"\xff" * 13
        return after

    @property
    def commits(self) -> int:
        """A number that grows with each commit."""
        return self._files.commits

    def note(self, name: str) -> bytes | None:
        """See Backend.note()."""
        with self._files.read() as txn:
            value: bytes | None = txn.get(b"n" + name.encode(), db=self._files.meta)
        return value

    def positions(self) -> dict[str, bytes]:
        """The stores' committed positions."""
        with self._files.read() as txn:
            return records.unpack_positions(txn.get(b"positions", b"", db=self._files.meta))

    def close(self) -> None:
        """May be called twice."""
        if not self._closed:
            self._closed = True
            close_shared(self._files)

    def __exit__(self, *error: object) -> None:
        self.close()
