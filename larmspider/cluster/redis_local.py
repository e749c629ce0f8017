"""The working copy that a worker keeps on its disk of the blocks that it owns.

    local = LocalCopy(SharedFiles(Path("crawl/w1/frontier")), keys)
    local.wipe()                               # at the start: Redis knows better
    local.keep_waiting([(key, place, links, packed)])
    local.purge(17, hosts)                     # the block has another owner

What became of the URLs that this worker fetched stays, whoever owns their block: their pages lie
beside it. Of URLs that others fetched it has the state alone, in the database ``others``: number of
the block (2 bytes) and 8 bytes of the URL key -> state (redis_visited.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from larmspider.cluster.redis_keys import Keys
from larmspider.cluster.redis_visited import UNTOLD, compact, compact_of, state_of
from larmspider.frontier.storage import records as r
from larmspider.frontier.storage.lmdb_env import FIRST_MAP_BYTES, LmdbFiles
from larmspider.frontier.storage.overlay import Layers
from larmspider.frontier.storage.records import UrlState

Row: TypeAlias = tuple[Any, bytes, bytes | None]

CHUNK = 100_000
"""Records in one transaction of those that are no commit."""


class SharedFiles(LmdbFiles):
    """The frontier's files, with one more database."""

    def __init__(self, path: Path, *, map_bytes: int = FIRST_MAP_BYTES) -> None:
        super().__init__(path, map_bytes=map_bytes)
        self.others = self.env.open_db(b"others")


class SharedLayers(Layers):
    """Also knows the URLs that others fetched."""

    files: SharedFiles

    def __init__(self, files: SharedFiles, keys: Keys) -> None:
        super().__init__(files)
        self._keys = keys

    def _name(self, key: bytes) -> bytes:
        return self._keys.block_of_key(key).to_bytes(2, "big") + compact(key)

    def url(self, key: bytes) -> bytes | None:
        record = super().url(key)
        if record is None:
            state = self.files.get(self._name(key), self.files.others)
            record = UNTOLD[UrlState(state[0])] if state else None
        return record

    def urls(self, keys: Sequence[bytes]) -> list[bytes | None]:
        records = super().urls(keys)
        if None in records:
            with self.files.read() as txn:
                for at, record in enumerate(records):
                    if record is None:
                        state = txn.get(self._name(keys[at]), None, self.files.others)
                        records[at] = UNTOLD[UrlState(state[0])] if state else None
        return records


class LocalCopy:
    """Changes to the files beside the commits. One thread at a time, and no commit meanwhile."""

    def __init__(self, files: SharedFiles, keys: Keys) -> None:
        self.files, self.keys = files, keys

    def wipe(self) -> None:
        """Forget everything but what this worker fetched itself. O(queued URLs)."""
        files = self.files
        while waiting := self._some_waiting():
            self.write([(files.urls, key, None) for _, key in waiting])
            self.write([(files.queue, place, None) for place, _ in waiting])
        files.insist(self._drop)

    def _drop(self) -> None:
        with self.files.env.begin(write=True) as txn:
            txn.drop(self.files.hosts, delete=False)
            txn.drop(self.files.others, delete=False)
            cursor = txn.cursor(self.files.meta)
            more = cursor.set_range(b"n")
            while more and cursor.key()[:1] == b"n":
                more = cursor.delete() if b" " in cursor.key() else cursor.next()

    def _some_waiting(self) -> list[tuple[bytes, bytes]]:
        with self.files.read() as txn:
            rows = txn.cursor(self.files.queue)
            return [(place, packed[:16]) for place, packed in islice(rows, CHUNK)]

    def write(self, rows: Sequence[Row]) -> None:
        """(database, key, value); None deletes. In transactions of CHUNK rows."""
        for at in range(0, len(rows), CHUNK):
            part = rows[at : at + CHUNK]
            self.files.insist(lambda part=part: self._write(part))  # type: ignore[misc]

    def _write(self, rows: Sequence[Row]) -> None:
        puts: dict[Any, list[tuple[bytes, bytes]]] = {}
        with self.files.env.begin(write=True) as txn:
            for db, key, value in sorted(rows, key=_by_key):  # neighbours share pages
                if value is None:
                    txn.delete(key, db=db)
                else:
                    puts.setdefault(db, []).append((key, value))
            for db, pairs in puts.items():
                txn.cursor(db).putmulti(pairs)

    def keep_waiting(self, rows: Iterable[tuple[bytes, int, bytes]]) -> None:
        """Queued URLs of a block: place in the queue, links seen, packed entry."""
        files, changes = self.files, []
        for place, links, packed in rows:
            record = r.pack_waiting(UrlState.QUEUED, links, place)
            changes += [(files.urls, packed[:16], record), (files.queue, place, packed)]
        self.write(changes)

    def keep_hosts(
        self, records: Mapping[str, bytes], counts: Mapping[str, bytes], notes: Mapping[str, bytes]
    ) -> None:
        """What belongs to the hosts of a block."""
        hosts, meta = self.files.hosts, self.files.meta
        rows = [(hosts, b"h" + host.encode(), packed) for host, packed in records.items()]
        rows += [(hosts, b"c" + host.encode(), packed) for host, packed in counts.items()]
        self.write([*rows, *((meta, b"n" + name.encode(), note) for name, note in notes.items())])

    def keep_visited(self, block: int, members: Iterable[int]) -> None:
        """The visited table of a block."""
        self.write(self.visited_rows(block, members))

    def visited_rows(self, block: int, members: Iterable[int]) -> list[Row]:
        """What the visited table of a block changes: what others fetched is added, and what this
        worker believes to have fetched and Redis does not know of, as it lost its last second, is
        forgotten."""
        own = {compact(key): key for key in self.own_visits(block)}
        known: set[bytes] = set()
        rows: list[Row] = []
        tag = block.to_bytes(2, "big")
        for number in members:
            name = compact_of(number)
            if name in own:
                known.add(name)
            else:
                rows.append((self.files.others, tag + name, bytes((state_of(number),))))
        rows += [(self.files.urls, key, None) for name, key in own.items() if name not in known]
        return rows

    def own_visits(self, block: int) -> Iterator[bytes]:
        """Keys of the block's URLs that came to their end here."""
        for key, record in self.block_rows(block):
            if record[0] > UrlState.LEASED:
                yield key

    def block_rows(self, block: int) -> Iterator[tuple[bytes, bytes]]:
        """The records of a block's URLs, as of the last commit."""
        after, end = self.keys.first_key(block), self.keys.first_key(block + 1)
        while rows := self._some_rows(after, end):
            yield from rows
            after = rows[-1][0] + b"\0"

    def _some_rows(self, start: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        rows: list[tuple[bytes, bytes]] = []
        with self.files.read() as txn:
            cursor = txn.cursor(self.files.urls)
            more = cursor.set_range(start)
            while more and len(rows) < CHUNK and cursor.key() < end:
                rows.append(cursor.item())
                more = cursor.next()
        return rows

    def others(self, block: int) -> list[UrlState]:
        """States of the block's URLs that others fetched."""
        tag, states = block.to_bytes(2, "big"), []
        with self.files.read() as txn:
            cursor = txn.cursor(self.files.others)
            more = cursor.set_range(tag)
            while more and cursor.key()[:2] == tag:
                states.append(UrlState(cursor.value()[0]))
                more = cursor.next()
        return states

    def purge(self, blocks: Mapping[int, Iterable[str]]) -> None:
        """Forget blocks, given with their hosts, but for what this worker fetched itself."""
        for block, hosts in blocks.items():
            self.write(self._purged(block))
            self.write(self._purged_hosts(hosts))

    def _purged(self, block: int) -> list[Row]:
        files, tag = self.files, block.to_bytes(2, "big")
        rows: list[Row] = []
        for key, record in self.block_rows(block):
            if record[0] <= UrlState.LEASED:
                place = r.unpack_waiting(record)[2]
                rows += [(files.urls, key, None), (files.queue, place, None)]
        with files.read() as txn:
            cursor = txn.cursor(files.others)
            more = cursor.set_range(tag)
            while more and cursor.key()[:2] == tag:
                rows.append((files.others, cursor.key(), None))
                more = cursor.next()
        return rows

    def _purged_hosts(self, hosts: Iterable[str]) -> list[Row]:
        files = self.files
        rows: list[Row] = []
        for host in hosts:
            name = host.encode()
            rows += [(files.hosts, b"h" + name, None), (files.hosts, b"c" + name, None)]
            rows.append((files.meta, b"nrobots " + name, None))
        return rows


def _by_key(row: Row) -> bytes:
    return row[1]
