"""The frontier as other processes see it while a crawl runs: ``scrapy explain``, ``scrapy hosts``.

    with FrontierReader(Path("crawl/frontier")) as frontier:
        print(frontier.counts(), frontier.state(url_key("http://wiki/a")))

Each call is one short read of the last commit, a few seconds old while the crawl runs: a reader
that stays open in a transaction would make the writer's file grow (measured: 51 MB instead of 10).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from larmspider.errors import CrawlDirError
from larmspider.frontier import keys as k
from larmspider.frontier import records as r
from larmspider.frontier.lmdb_files import LmdbFiles
from larmspider.frontier.records import Counts, Entry, UrlState, Visit


class FrontierReader(AbstractContextManager["FrontierReader"]):
    """Read-only view. CrawlDirError: no frontier there; FormatError: another version's."""

    def __init__(self, path: Path) -> None:
        if not (path / "data.mdb").exists():
            raise CrawlDirError(f"there is no frontier in {path}")
        self._files = LmdbFiles(path, readonly=True)

    def state(self, key: bytes) -> UrlState:
        """State of a URL at the last commit."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
        return UrlState(record[0]) if record else UrlState.UNKNOWN

    def visit(self, key: bytes) -> Visit | None:
        """What became of a stored, failed or refused URL."""
        with self._files.read() as txn:
            record = txn.get(key, db=self._files.urls)
        return r.unpack_visit(record) if record and record[0] > UrlState.LEASED else None

    def entry(self, key: bytes) -> Entry | None:
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

    def queued(self, host: str, limit: int = 10) -> list[Entry]:
        """The next entries of a host, leased ones among them."""
        with self._files.read() as txn:
            found = self._run(txn.cursor(self._files.queue), k.host_prefix(host))
            return [r.unpack_entry(packed) for packed, _ in zip(found, range(limit), strict=False)]

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
        with self._files.read() as txn:
            rows = dict(txn.cursor(self._files.hosts))
        return {
            name[1:].decode(): (rows.get(b"h" + name[1:], b""), r.unpack_counts(data))
            for name, data in rows.items()
            if name[:1] == b"c"
        }

    def counts(self) -> Counts:
        """Counters of all hosts together."""
        total = Counts()
        for _, counts in self.hosts().values():
            for name in Counts.__slots__:
                setattr(total, name, getattr(total, name) + getattr(counts, name))
        return total

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
        self._files.close()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
