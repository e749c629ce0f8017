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

from larmspider.crawl.log_index.index import (
    CARRIERS,
    FOLDER,
    FORMAT,
    LOG_BYTES_MOST,
    SHARDS_MOST,
    Fetches,
    IndexFiles,
    LinkedHost,
    TopN,
    is_failure,
    key_in,
    kind_of,
    mark_of,
    marks,
    pack_fetches,
    pack_host,
    pack_place,
    pack_target,
    pages_of,
    place_of,
    shard_and_offset,
    shard_of,
    unpack_fetches,
    unpack_host,
    unpack_place,
)
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.records import host_of, host_prefix, url_key

# Lines of the logs, gathered until they are worth a transaction. 1.5 us a line of links.log.

MANY = 100_000
"""Targets, or pairs of hosts, after which a batch is full."""
MANY_LINES = 500_000
"""Lines of links.log; a batch takes some 100 MB."""


def key_of(url: bytes) -> bytes:
    """url_key() of a URL in a log."""
    return url_key(url.decode("utf-8", "replace"))


def origin_of(url: bytes) -> bytes:
    """``http://wiki`` of ``http://wiki/a``; an absolute URL."""
    slash = url.find(b"/", 8)
    return url if slash < 0 else url[:slash]


class LinkBatch:
    """Lines of links.log. A page counts once for each target, links to itself do not count.

    A page's lines follow each other in the log, but for those of pages with more than 10,000
    links: of these a target may count twice.
    """

    def __init__(self) -> None:
        self.targets: dict[bytes, list[int]] = {}
        """By canonical URL: pages, then the places of the first links."""
        self.sources: dict[bytes, int] = {}
        self.edges: dict[tuple[bytes, bytes], int] = {}
        """Links by the origins of page and target."""
        self.lines = self.pairs = 0
        self._page = b""
        self._seen: set[bytes] = set()

    @property
    def full(self) -> bool:
        return max(len(self.targets), len(self.edges)) > MANY or self.lines > MANY_LINES

    def may_end_before(self, line: bytes) -> bool:
        """A batch has all lines of a page."""
        return not line.startswith(self._page + b"\t")

    def add(self, line: bytes, place: int) -> None:
        """A line without its end, which begins at ``place``; one that is damaged is passed over."""
        fields = line.split(b"\t", 3)
        if len(fields) < 4:
            return
        page, url, target, _ = fields
        self.lines += 1
        if page != self._page:
            self.end_page()
            self._page = page
            self.sources[page] = place
        if not target or target in self._seen or url == page:
            return
        self._seen.add(target)
        found = self.targets.get(target)
        if found is None:
            self.targets[target] = [1, place]
            return
        found[0] += 1
        if len(found) <= CARRIERS:
            found.append(place)

    def end_page(self) -> None:
        """What follows is another page, or another batch."""
        origin = origin_of(self._page)
        edges = self.edges
        for target in self._seen:
            slash = target.find(b"/", 8)
            edge = origin, target if slash < 0 else target[:slash]
            edges[edge] = edges.get(edge, 0) + 1
        self.pairs += len(self._seen)
        self._page, self._seen = b"", set()


class FetchBatch:
    """Lines of fetch.log."""

    def __init__(self) -> None:
        self.fetched: dict[bytes, tuple[int, bool]] = {}
        """By key: the place of the last fetch, and whether it failed."""
        self.results: dict[bytes, Fetches] = {}
        self.failures: list[bytes] = []
        self.lines = 0

    @property
    def full(self) -> bool:
        return len(self.fetched) > MANY

    def may_end_before(self, line: bytes) -> bool:
        return True

    def add(self, line: bytes, place: int) -> None:
        """As LinkBatch.add()."""
        fields = line.split(b"\t")
        if len(fields) != 8:
            return
        _, url, normalized, _, result, size, millis, _ = fields
        self.lines += 1
        failed = is_failure(result.decode("utf-8", "replace"))
        self.fetched[key_of(normalized or url)] = place, failed
        host = host_prefix(host_of(url.decode("utf-8", "replace")))
        if failed:
            self.failures.append(host + place.to_bytes(8, "big"))
        key = host + result[:32]
        took = _number(millis)
        self.results[key] = self.results.get(key, Fetches()).plus(
            Fetches(1, _number(size), took, took)
        )


class StoreBatch:
    """Lines of store.log."""

    def __init__(self) -> None:
        self.stored: dict[bytes, int] = {}
        self.lines = 0

    @property
    def full(self) -> bool:
        return len(self.stored) > MANY

    def may_end_before(self, line: bytes) -> bool:
        return True

    def add(self, line: bytes, place: int) -> None:
        """As LinkBatch.add()."""
        fields = line.split(b"\t", 3)
        if len(fields) == 4:
            self.lines += 1
            self.stored[key_of(fields[2] or fields[1])] = place


def _number(text: bytes) -> int:
    return int(text) if text.isdigit() else 0


# A batch into the tables, in one transaction; keys in order, so that neighbours share pages.

Tables = dict[str, Any]


def write_links(
    txn: Any, tables: Tables, batch: LinkBatch, shard: int, pages: TopN, hosts: TopN
) -> None:
    """Targets, sources, hosts and edges of a shard; ``pages`` and ``hosts`` hear of each count that
    grew."""
    puts = []
    keyed = sorted((key_of(url), found) for url, found in batch.targets.items())
    for key, (count, *places) in keyed:
        record = txn.get(key, db=tables["targets"])
        if record:
            count += pages_of(record)
        puts.append((key, pack_target(count, places, record)))
        pages.offer(key, count)
    txn.cursor(tables["targets"]).putmulti(puts)
    sources = sorted(
        (key_in(shard, key_of(page)), pack_place(at)) for page, at in batch.sources.items()
    )
    txn.cursor(tables["sources"]).putmulti(sources)
    _write_edges(txn, tables, batch, hosts)


def _write_edges(txn: Any, tables: Tables, batch: LinkBatch, leaders: TopN) -> None:
    names = {
        origin: host_of(origin.decode("utf-8", "replace"))
        for origin in {origin for edge in batch.edges for origin in edge}
    }
    edges: dict[bytes, int] = {}
    hosts: dict[str, LinkedHost] = {}
    for (page, target), count in batch.edges.items():
        source, host = names[page], names[target]
        key = host_prefix(source) + host_prefix(host)
        edges[key] = edges.get(key, 0) + count
        hosts.setdefault(source, LinkedHost(0, 0, source))
        links, from_others, _ = hosts.get(host, (0, 0, ""))
        hosts[host] = LinkedHost(
            links + count, from_others + (0 if host == source else count), host
        )
    for key, count in sorted(edges.items()):
        earlier_count = unpack_place(txn.get(key, b"\0", db=tables["edges"]))
        txn.put(key, pack_place(earlier_count + count), db=tables["edges"])
    for name, found in hosts.items():
        key = host_prefix(name)
        if record := txn.get(key, db=tables["hosts"]):
            earlier = unpack_host(record)
            found = LinkedHost(
                found.links + earlier.links, found.from_others + earlier.from_others, name
            )
        txn.put(key, pack_host(found), db=tables["hosts"])
        leaders.offer(key, found.links)


def write_fetches(
    txn: Any, tables: Tables, batch: FetchBatch, is_newer: Callable[[int, int], bool]
) -> None:
    """The last fetch of each URL, what is broken, results and failures by host. ``is_newer`` says
    whether the fetch at a place was after that at another one."""
    for key, (place, failed) in sorted(batch.fetched.items()):
        known = txn.get(key, db=tables["fetched"])
        if known and not is_newer(place, unpack_place(known)):
            continue
        txn.put(key, pack_place(place), db=tables["fetched"])
        if failed:
            txn.put(key, pack_place(place), db=tables["broken"])
        else:
            txn.delete(key, db=tables["broken"])
    for key, fetches in sorted(batch.results.items()):
        if record := txn.get(key, db=tables["results"]):
            fetches = fetches.plus(unpack_fetches(record))
        txn.put(key, pack_fetches(fetches), db=tables["results"])
    for key in sorted(batch.failures):
        txn.put(key, b"", db=tables["failures"])


def write_stored(txn: Any, tables: Tables, batch: StoreBatch, shard: int) -> None:
    """The last line of each page in a shard."""
    puts = sorted((key_in(shard, key), pack_place(at)) for key, at in batch.stored.items())
    txn.cursor(tables["stored"]).putmulti(puts)


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
                name: TopN(LEADERS, msgpack.unpackb(txn.get(name, b"\x90", db=tables["meta"])))
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
