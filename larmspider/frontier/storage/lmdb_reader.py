"""The frontier as other processes see it while a crawl runs: ``scrapy explain``, ``scrapy hosts``.

    with FrontierReader(Path("crawl/frontier")) as frontier:
        print(frontier.counts(), frontier.state(url_key("http://wiki/a")))

Each call is one short read of the last commit, a few seconds old while the crawl runs: a reader
that stays open in a transaction would make the writer's file grow (measured: 51 MB instead of 10).
Where the crawl runs in this process its own reads wait for ours, so long ones are cut into slices.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from larmspider.errors import CrawlDirError
from larmspider.frontier.storage import records as k
from larmspider.frontier.storage import records as r
from larmspider.frontier.storage.lmdb_env import LmdbFiles, borrow, give_back
from larmspider.frontier.storage.records import Counts, FetchRecord, QueuedUrl, UrlState

SLICE = 500
"""Records that one transaction reads; 0.2 ms."""


class FrontierReader(AbstractContextManager["FrontierReader"]):
    """Read-only view. CrawlDirError: no frontier there; FormatError: another version's."""

    def __init__(self, path: Path) -> None:
        if not (path / "data.mdb").exists():
            raise CrawlDirError(f"there is no frontier in {path}")
        self._files: LmdbFiles = borrow(path)
        self._closed = False

    def state(self, key: bytes) -> UrlState:
        """State of a URL at the last commit."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
        return UrlState(record[0]) if record else UrlState.UNKNOWN

    def visit(self, key: bytes) -> FetchRecord | None:
        """What became of a stored, failed or refused URL."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
        return r.unpack_visit(record) if record and record[0] > UrlState.LEASED else None

    def entry(self, key: bytes) -> QueuedUrl | None:
        """The entry of a queued or leased URL."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
            if record is None or record[0] > UrlState.LEASED:
                return None
            packed = txn.get(r.unpack_waiting(record)[2], db=self._files.queue)
        return r.unpack_entry(packed) if packed else None

    def place(self, key: bytes, limit: int = 10_000) -> tuple[int, float] | None:
        """(URLs of its host before it, at most ``limit``; earliest time or 0.0) if it is queued."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
            if record is None or record[0] != UrlState.QUEUED:
                return None
            place = r.unpack_waiting(record)[2]
            cursor, before = txn.cursor(self._files.queue), 0
            more = cursor.set_range(place[:9])
            while more and before < limit and cursor.key() < place:
                before += 1
                more = cursor.next()
        return before, k.earliest_of(place) if k.run_of(place) == k.DELAYED else 0.0

    def queued(self, host: str, limit: int = 10) -> list[QueuedUrl]:
        """The next entries of a host, leased ones among them."""
        with self._files.read() as txn:
            found = self._run(txn.cursor(self._files.queue), k.host_prefix(host))
            return [r.unpack_entry(packed) for packed, _ in zip(found, range(limit), strict=False)]

    def delayed(self, host: str, limit: int = 10) -> list[tuple[QueuedUrl, float]]:
        """Entries of a host whose last attempt failed, and when each may be tried again."""
        found: list[tuple[QueuedUrl, float]] = []
        with self._files.read() as txn:
            cursor, prefix = txn.cursor(self._files.queue), k.delayed_prefix(host)
            more = cursor.set_range(prefix)
            while more and len(found) < limit and cursor.key().startswith(prefix):
                found.append((r.unpack_entry(cursor.value()), k.earliest_of(cursor.key())))
                more = cursor.next()
        return found

    def waiting(self, after: bytes = b"") -> tuple[list[QueuedUrl], bytes | None]:
        """A slice of all that is queued or leased, host by host: the entries, and where to go on;
        None at the end."""
        found: list[QueuedUrl] = []
        with self._files.read() as txn:
            cursor = txn.cursor(self._files.queue)
            if cursor.set_range(after):
                for key, packed in cursor.iternext():
                    if len(found) == SLICE:
                        return found, bytes(key)
                    found.append(r.unpack_entry(packed))
        return found, None

    @staticmethod
    def _run(cursor: object, prefix: bytes) -> Iterator[bytes]:
        more = cursor.set_range(prefix)  # type: ignore[attr-defined]
        while more:
            key, value = cursor.item()  # type: ignore[attr-defined]
            if not key.startswith(prefix):
                return
            yield value
            more = cursor.next()  # type: ignore[attr-defined]

    def hosts(self) -> dict[str, tuple[bytes, Counts]]:
        """Packed host record (b"" for none yet) and counters of each host."""
        rows: dict[bytes, bytes] = {}
        after: bytes | None = b""
        while after is not None:
            after = self._more_hosts(rows, after)
            time.sleep(0)
        return {
            name[1:].decode(): (rows.get(b"h" + name[1:], b""), r.unpack_counts(data))
            for name, data in rows.items()
            if name[:1] == b"c"
        }

    def _more_hosts(self, rows: dict[bytes, bytes], after: bytes) -> bytes | None:
        """A slice of the table; the key to go on from, None at the end."""
        with self._files.read() as txn:
            cursor = txn.cursor(self._files.hosts)
            if cursor.set_range(after):
                for count, (key, value) in enumerate(cursor.iternext()):
                    if count == SLICE:
                        return bytes(key)
                    rows[key] = value
        return None

    def visits(self) -> Iterator[tuple[bytes, FetchRecord]]:
        """Keys and visits of all URLs that are stored, failed or refused, hosts together; some 4 us
        each, in slices."""
        after: bytes | None = b""
        while after is not None:
            found = []
            with self._files.read() as txn:
                cursor, at = txn.cursor(self._files.urls), after
                after = None
                if cursor.set_range(at):
                    for seen, (key, value) in enumerate(cursor):
                        if seen == SLICE:
                            after = bytes(key)
                            break
                        if value[0] > UrlState.LEASED:
                            found.append((bytes(key), bytes(value)))
            yield from ((key, r.unpack_visit(value)) for key, value in found)

    def host(self, name: str) -> tuple[bytes, Counts]:
        """The same of one host; (b"", zeros) for one that is not known."""
        with self._files.read() as txn:
            record = txn.get(b"h" + name.encode(), b"", db=self._files.hosts)
            counts = txn.get(b"c" + name.encode(), db=self._files.hosts)
        return record, r.unpack_counts(counts) if counts else Counts()

    def counts(self) -> Counts:
        """Counters of all hosts together."""
        total = Counts()
        for _, counts in self.hosts().values():
            for name in Counts.__slots__:
                setattr(total, name, getattr(total, name) + getattr(counts, name))
        return total

    def host_prefixes(self) -> set[bytes]:
        """The first 4 bytes of the keys of all URLs here, which are of their hosts. 3 us each."""
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
        """Grows with each commit."""
        return self._files.commits

    def note(self, name: str) -> bytes | None:
        """As Backend.note()."""
        with self._files.read() as txn:
            value: bytes | None = txn.get(b"n" + name.encode(), db=self._files.meta)
        return value

    def positions(self) -> dict[str, bytes]:
        """The stores' committed positions."""
        with self._files.read() as txn:
            return r.unpack_positions(txn.get(b"positions", b"", db=self._files.meta))

    def close(self) -> None:
        """May be called twice."""
        if not self._closed:
            self._closed = True
            give_back(self._files)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
