"""Blocks that a worker gets: made its own in Redis, then copied to its disk.

    loaded = Loading(committer, local, batch=256).load({17: 1_800_000_000_123})    # in a thread
    loaded.counts                                            # for what the frontier has in memory

What the owner before had committed and not carried out is carried out first.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeAlias

from larmspider.cluster.commit import (
    UNTOLD,
    CommitRecord,
    Committer,
    buckets,
    compact,
    compact_of,
    pairs,
    state_of,
    unpack_queued,
)
from larmspider.cluster.redis_client import OWN, Command, Keys, call
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage import records
from larmspider.frontier.storage.backend import Fenced, FormatError
from larmspider.frontier.storage.lmdb_env import FIRST_MAP_BYTES, LmdbFiles
from larmspider.frontier.storage.overlay import WriteOverlay
from larmspider.frontier.storage.records import Counts, UrlState

# The working copy that a worker keeps on its disk of the blocks that it owns.
#
#     local = LocalCopy(SharedFiles(Path("crawl/w1/frontier")), keys)
#     local.wipe()                               # at the start: Redis knows better
#     local.keep_waiting([(key, place, links, packed)])
#     local.purge(17, hosts)                     # the block has another owner
#
# What became of the URLs that this worker fetched stays, whoever owns their block: their pages lie
# beside it. Of URLs that others fetched it has the state alone, in the database ``others``: number
# of
# the block (2 bytes) and 8 bytes of the URL key -> state (redis_visited.py).

Row: TypeAlias = tuple[Any, bytes, bytes | None]

CHUNK = 100_000
"""Records in one transaction of those that are no commit."""


class SharedFiles(LmdbFiles):
    """The frontier's files, with one more database."""

    def __init__(self, path: Path, *, map_bytes: int = FIRST_MAP_BYTES) -> None:
        super().__init__(path, map_bytes=map_bytes)
        self.others = self.env.open_db(b"others")


class SharedWriteOverlay(WriteOverlay):
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
            record = records.pack_waiting(UrlState.QUEUED, links, place)
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
                place = records.unpack_waiting(record)[2]
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


_AT_ONCE = 64
"""Blocks whose hosts come in one round trip."""
_BUCKETS_AT_ONCE = 200


@dataclass(slots=True)
class Loaded:
    """Blocks with their tokens, and what is kept in memory of them: totals of the visited tables,
    blocks and counters by host, the largest serial number of a queue place."""

    tokens: dict[int, int] = field(default_factory=dict)
    visited: dict[int, int] = field(default_factory=dict)
    hosts: dict[str, int] = field(default_factory=dict)
    counts: dict[str, Counts] = field(default_factory=dict)
    serial: int = 0


class Loading:
    """``batch``: queued URLs of a block that come in one round trip, about."""

    def __init__(self, committer: Committer, local: LocalCopy, batch: int) -> None:
        self._committer, self._local, self._batch = committer, local, batch
        self._link, self._keys = committer.link, committer.keys

    def load(self, blocks: Mapping[int, int]) -> Loaded:
        """Raises Fenced where a block has had a later owner."""
        loaded = Loaded(dict(blocks))
        numbers = sorted(blocks)
        self._carry_out_before(numbers)
        for at in range(0, len(numbers), _AT_ONCE):
            part = numbers[at : at + _AT_ONCE]
            self._own(part, loaded)
            self._load_hosts(part, loaded)
            self._load_queues(part, loaded)
            self._load_visited(part, loaded)
        return loaded

    def _carry_out_before(self, blocks: Sequence[int]) -> None:
        found = self._link.run([("HGET", self._key("owner", b), "worker") for b in blocks])
        owned = {block: worker for block, worker in zip(blocks, found, strict=True) if worker}
        for worker in sorted(set(owned.values())):
            if worker.decode() != self._committer.worker:
                self._committer.replay(
                    worker.decode(), blocks=[b for b in owned if owned[b] == worker]
                )

    def _own(self, blocks: Sequence[int], loaded: Loaded) -> None:
        commands: list[Command] = []
        for block in blocks:
            owner = self._key("owner", block)
            token = loaded.tokens[block]
            commands += [
                call(OWN, [owner], [token, self._committer.worker]),
                ("HGET", owner, "visited"),
            ]
        answers = self._link.run(commands)
        for block, said, visited in zip(blocks, answers[::2], answers[1::2], strict=True):
            if said == b"FENCED":
                raise Fenced(f"block {block} has had a later owner than {self._committer.worker}")
            loaded.visited[block] = int(visited or 0)

    def _load_hosts(self, blocks: Sequence[int], loaded: Loaded) -> None:
        commands: list[Command] = []
        for block in blocks:
            commands += [("HGETALL", self._key(name, block)) for name in _OF_HOSTS]
        answers = [pairs(answer) for answer in self._link.run(commands)]
        found: tuple[dict[str, bytes], ...] = ({}, {}, {})
        for at, block in enumerate(blocks):
            records, counts, notes = (
                {name.decode(): value for name, value in answer.items()}
                for answer in answers[3 * at : 3 * at + 3]
            )
            for kind, rows in zip(found, (records, counts, notes), strict=True):
                kind.update(rows)
            loaded.hosts.update(dict.fromkeys([*records, *counts], block))
            loaded.counts.update({host: _at_rest(packed) for host, packed in counts.items()})
        self._local.purge(dict.fromkeys(blocks, ()))
        self._local.keep_hosts(*found)

    def _load_queues(self, blocks: Sequence[int], loaded: Loaded) -> None:
        cursors: dict[int, Any] = dict.fromkeys(blocks, 0)
        late: set[bytes] = set()  # a scan may give the same one twice
        while cursors:
            scans: list[Command] = [
                ("HSCAN", self._key("entries", block), cursor, "COUNT", self._batch)
                for block, cursor in cursors.items()
            ]
            rows = []
            for block, (cursor, found) in zip(list(cursors), self._link.run(scans), strict=True):
                rows += [unpack_queued(value) for value in pairs(found).values()]
                cursors[block] = cursor
                if int(cursor) == 0:
                    del cursors[block]
            self._local.keep_waiting(rows)
            for place, _, packed in rows:
                loaded.serial = max(loaded.serial, records.serial_of(place))
                if records.run_of(place) == records.DELAYED and place not in late:
                    late.add(place)
                    host = records.unpack_entry(packed).host
                    loaded.counts[host].delayed += 1

    def _load_visited(self, blocks: Sequence[int], loaded: Loaded) -> None:
        rows: list[Row] = []
        for block in blocks:
            rows += self._local.visited_rows(block, self._members(block, loaded.visited[block]))
            if len(rows) > CHUNK:
                self._local.write(rows)
                rows = []
        self._local.write(rows)

    def members(self, block: int) -> Iterator[int]:
        """The visited table of a block, as it is in Redis."""
        (total,) = self._link.run([("HGET", self._key("owner", block), "visited")])
        return self._members(block, int(total or 0))

    def _members(self, block: int, total: int) -> Iterator[int]:
        names = [self._keys.dupefilter(block, bucket) for bucket in range(buckets(total))]
        for at in range(0, len(names), _BUCKETS_AT_ONCE):
            for found in self._link.run(
                [("SMEMBERS", n) for n in names[at : at + _BUCKETS_AT_ONCE]]
            ):
                yield from map(int, found)

    def _key(self, name: str, block: int) -> bytes:
        return self._keys.block(name, block)


def _at_rest(packed: bytes) -> Counts:
    """What was leased waits again; of those that wait for a time the queue tells."""
    counts = records.unpack_counts(packed)
    counts.queued += counts.leased
    counts.leased = counts.delayed = 0
    return counts


_OF_HOSTS = ("hosts", "counts", "notes")


# A worker starts: is what lies on its disk of the crawl in Redis, and where had it got to?
#
#     recovering = Recovering(committer, local, loading)
#     record = recovering.take_up()       # the last commit, carried out; the disk agrees with it
#
# Redis is right. What it has lost, as it came back without its last second, is forgotten here too;
# what it has and the disk has not, as the worker was killed in between, comes from the commit
# record.

FORMAT = "larmspider frontier in Redis 1, {blocks} blocks"
_LENGTH = struct.Struct(">I")


class Recovering:
    """``crawl_id`` is of the crawl in Redis, once it was taken up."""

    def __init__(self, committer: Committer, local: LocalCopy, loading: Loading) -> None:
        self._committer, self._local, self._loading = committer, local, loading
        self._link, self._keys, self._files = committer.link, committer.keys, local.files
        self.crawl_id = ""

    def take_up(self) -> CommitRecord:
        """Raises FormatError, CrawlDirError where Redis holds another crawl than the files, or
        none any more."""
        worker = self._committer.worker
        self._same_crawl()
        self._committer.replay(worker)
        record = self._committer.read(worker)
        serial = self._serial_on_disk()
        if serial and not record.serial:
            raise CrawlDirError(
                f"Redis at {self._link.name} has nothing of worker {worker}, whose crawl is in"
                f" {self._files.path}: bring its data back, or start over with -a fresh=force"
            )
        self._local.wipe()
        if serial < record.serial:
            self._keep_visits(record)
        elif serial > record.serial:
            self._forget_visits()
        self._committer.serial = record.serial
        return record

    def mark(self) -> bytes:
        """Which commit of which crawl the files hold, after a commit."""
        return f"{self.crawl_id} {self._committer.serial}".encode()

    def _marked(self) -> tuple[str, str]:
        mark = self._files.get(b"redis", self._files.meta) or b""
        crawl, _, serial = mark.decode().partition(" ")
        return crawl, serial

    def _serial_on_disk(self) -> int:
        return int(self._marked()[1] or 0)

    def _same_crawl(self) -> None:
        name = self._keys.crawl
        wanted = FORMAT.format(blocks=self._keys.blocks)
        _, _, found, crawl = self._link.run(
            [
                ("SET", name("format"), wanted, "NX"),
                ("SET", name("id"), token_hex(8), "NX"),
                ("GET", name("format")),
                ("GET", name("id")),
            ]
        )
        if found.decode("utf-8", "replace") != wanted:
            raise FormatError(
                f"Redis at {self._link.name} holds a crawl of format {found!r} under"
                f" {self._keys.prefix!r}, this is {wanted!r}"
            )
        self.crawl_id = crawl.decode()
        known = self._marked()[0]
        if self._files.get(b"serial", self._files.meta) is not None and known != self.crawl_id:
            what = "another crawl than" if known else "a crawl without Redis, not"
            raise CrawlDirError(
                f"{self._files.path} holds {what} that in Redis at {self._link.name}: name another"
                " LARM_DIR, or start over with -a fresh=force"
            )

    def _keep_visits(self, record: CommitRecord) -> None:
        """The last commit was carried out in Redis, and did not come to the disk any more."""
        urls = self._files.urls
        self._local.write([(urls, key, visit) for key, visit in unpack_visits(record.visits)])

    def _forget_visits(self) -> None:
        """Redis has lost what it had not written to disk: so have the stores, then."""
        for block in range(self._keys.blocks):
            if next(self._local.own_visits(block), None) is not None:
                self._local.keep_visited(block, self._loading.members(block))
                self._local.purge({block: ()})


def pack_visits(visits: Iterable[tuple[bytes, bytes]]) -> bytes:
    """URL keys and records of URLs that came to their end, for the commit record."""
    return b"".join(key + _LENGTH.pack(len(record)) + record for key, record in visits)


def unpack_visits(data: bytes) -> list[tuple[bytes, bytes]]:
    """The reverse of pack_visits()."""
    visits, at = [], 0
    while at < len(data):
        (length,) = _LENGTH.unpack_from(data, at + 16)
        visits.append((data[at : at + 16], data[at + 20 : at + 20 + length]))
        at += 20 + length
    return visits
