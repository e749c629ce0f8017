"""Brings the index up to date, from where it ended to where the logs were committed last.

    Update(Path("crawl"), ends={"links.log": 81_264, ...}, began="2026-01-31T12:00:00Z").run()
    Update(Path("crawl"), ends={"atlas-1/links.log": 7_200, "atlas-2/links.log": ...}, ...).run()

What lies behind ``ends`` may be dropped after a crash, so it is not read. A log that is another
one than last time (a crawl that started over, a log cut short) makes the index begin anew: the
bytes before the position are compared. Each batch is one transaction; whoever is killed goes on
from the last.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import starmap
from pathlib import Path
from typing import Any, TypeAlias

import lmdb
import msgpack

from larmspider.errors import CrawlDirError
from larmspider.crawl.log_index.batch import FetchBatch, LinkBatch, StoreBatch
from larmspider.crawl.log_index.environment import FOLDER, FORMAT, IndexFiles
from larmspider.crawl.log_index.leaders import Leaders
from larmspider.crawl.log_index.marks import mark_of, marks
from larmspider.crawl.log_index.places import (
    LOG_BYTES_MOST,
    SHARDS_MOST,
    kind_of,
    place_of,
    shard_and_offset,
    shard_of,
)
from larmspider.crawl.log_index.write import write_fetches, write_links, write_stored

LOGS = ("store.log", "fetch.log", "links.log")
LEADERS = 1000
"""How many of the most linked pages and hosts are known by name."""
_CHUNK = 4 << 20
_TIME_BYTES = 32

Batch: TypeAlias = LinkBatch | FetchBatch | StoreBatch
_BATCHES: dict[str, Callable[[], Batch]] = {
    "store.log": StoreBatch,
    "fetch.log": FetchBatch,
    "links.log": LinkBatch,
}
Progress: TypeAlias = Callable[[int, int], object]
"""Called with bytes read and bytes in all."""


class Update:
    """``ends``: how far each log may be read, in bytes, by its path from ``directory``; ``began``:
    crawl.json's, which names the crawl. Raises CrawlDirError where the index cannot be written."""

    def __init__(
        self,
        directory: Path,
        ends: Mapping[str, int],
        began: str,
        clock: Callable[[], float] = time.time,
        progress: Progress = lambda _done, _all: None,
    ) -> None:
        self.directory, self.ends, self.began, self.clock = directory, ends, began, clock
        self._progress = progress
        self._files = IndexFiles(directory / FOLDER, readonly=False)
        self._state: dict[str, Any] = {}
        self._done = self._all = 0

    def run(self) -> dict[str, Any]:
        """Read what is new; the state of the index afterwards."""
        try:
            self._state = self._checked_state()
            self._number_shards()
            began = self.clock()
            self._all = sum(
                max(0, end - self._state["positions"].get(name, 0))
                for name, end in self.ends.items()
            )
            for kind in LOGS:
                for name in sorted(name for name in self.ends if kind_of(name) == kind):
                    self._read(name)
            self._commit({"time": began, "seconds": round(self.clock() - began, 3)})
        finally:
            self._files.close()
        return self._state

    def _checked_state(self) -> dict[str, Any]:
        state = self._files.state()
        if state and state["began"] == self.began and all(starmap(self._same, marks(state))):
            return state
        with self._files.env.begin(write=True) as txn:
            for table in self._files.tables.values():
                txn.drop(table, delete=False)
        return {
            "format": FORMAT, "began": self.began, "positions": {}, "marks": {}, "shards": [],
            "pages": 0, "links": 0, "pairs": 0, "fetches": 0, "time": 0.0, "seconds": 0.0,
        }  # fmt: skip

    def _number_shards(self) -> None:
        """Those that are new get the next numbers."""
        numbered = self._state["shards"]
        numbered += sorted({shard_of(name) for name in self.ends} - set(numbered))
        if len(numbered) > SHARDS_MOST:
            raise CrawlDirError(f"an index of the logs holds {SHARDS_MOST:,} workers' at most")
        if len(numbered) > 1 and max(self.ends.values()) > LOG_BYTES_MOST:
            raise CrawlDirError("an index of the logs of many workers holds 256 GB of each log")

    def _number_of(self, name: str) -> int:
        """Of a log's shard."""
        return int(self._state["shards"].index(shard_of(name)))

    def _is_newer(self, place: int, other: int) -> bool:
        """In fetch.log: whether the line at ``place``, which is new, is of a later time."""
        one, two = shard_and_offset(place)[0], shard_and_offset(other)[0]
        if len(self._state["shards"]) == 1 or one == two:
            return True
        return self._time_at(place) >= self._time_at(other)

    def _time_at(self, place: int) -> bytes:
        number, offset = shard_and_offset(place)
        log = self.directory / self._state["shards"][number] / "fetch.log"
        try:
            with log.open("rb") as file:
                file.seek(offset)
                line: bytes = file.read(_TIME_BYTES)
        except OSError:
            return b""
        return line.partition(b"\t")[0]

    def _same(self, name: str, position: int, mark: str) -> bool:
        return position <= self.ends.get(name, 0) and self._mark(name, position) == mark

    def _mark(self, name: str, position: int) -> str:
        return mark_of(self.directory / name, position)

    def _read(self, name: str) -> None:
        """One log, batch by batch."""
        position, end = self._state["positions"].get(name, 0), self.ends.get(name, 0)
        while position < end:
            position = self._batch(name, position, end)

    def _batch(self, name: str, position: int, end: int) -> int:
        """The position behind a batch, which is written."""
        batch, number = _BATCHES[kind_of(name)](), self._number_of(name)
        read = self._gather(name, batch, position, end)
        self._done += read
        position += read or end - position  # none: a line that has no end
        self._state["positions"][name] = position
        self._state["marks"][name] = self._mark(name, position)
        self._write(batch, number)
        return position

    def _gather(self, name: str, batch: Batch, start: int, end: int) -> int:
        """Lines into ``batch`` until it is full or the log ends; how many bytes they have."""
        position, full = start, False
        base = place_of(self._number_of(name), 0)
        with (self.directory / name).open("rb") as log:
            log.seek(start)
            for lines in _whole_lines(log, end - start):
                for line in lines.split(b"\n")[:-1]:
                    if full and batch.may_end_before(line):
                        return position - start
                    batch.add(line, base + position)
                    position += len(line) + 1
                self._progress(self._done + position - start, self._all)
                full = batch.full
        return position - start

    def _write(self, batch: Batch, shard: int) -> None:
        counts = {"pages": 0, "links": 0, "pairs": 0, "fetches": 0}
        if isinstance(batch, LinkBatch):
            batch.end_page()
            counts |= {"links": batch.lines, "pairs": batch.pairs}
        elif isinstance(batch, FetchBatch):
            counts["fetches"] = batch.lines
        else:
            counts["pages"] = batch.lines
        sums = {name: self._state[name] + count for name, count in counts.items()}
        self._commit(sums, batch, shard)

    def _commit(self, state: dict[str, Any], batch: Batch | None = None, shard: int = 0) -> None:
        """One transaction; a full map rolls it back, grows and begins again."""
        self._state |= state
        while True:
            try:
                with self._files.env.begin(write=True) as txn:
                    self._put(txn, batch, shard)
            except lmdb.MapFullError:
                self._files.grow()
            else:
                return

    def _put(self, txn: Any, batch: Batch | None, shard: int) -> None:
        tables = self._files.tables
        if isinstance(batch, LinkBatch):
            leaders = {
                name: Leaders(LEADERS, msgpack.unpackb(txn.get(name, b"\x90", db=tables["meta"])))
                for name in (b"pages", b"hosts")
            }
            write_links(txn, tables, batch, shard, leaders[b"pages"], leaders[b"hosts"])
            for name, first in leaders.items():
                txn.put(name, msgpack.packb(first.first()), db=tables["meta"])
        elif isinstance(batch, FetchBatch):
            write_fetches(txn, tables, batch, self._is_newer)
        elif isinstance(batch, StoreBatch):
            write_stored(txn, tables, batch, shard)
        txn.put(b"state", json.dumps(self._state).encode(), db=tables["meta"])


def _whole_lines(log: Any, size: int) -> Iterator[bytes]:
    """``size`` bytes in pieces of some 4 MB that end where a line does."""
    rest = b""
    while size > 0 and (piece := log.read(min(_CHUNK, size))):
        size -= len(piece)
        whole, end, tail = (rest + piece).rpartition(b"\n")
        rest = tail
        if end:
            yield whole + end
