"""From a batch of the local files to what it changes in Redis.

    changes = Changes(keys, files, batch, unchanged)
    changes.gather(block_of_host)
    changes.by_block[17].steps(...)       # commands that change block 17 (redis_redo.py)

A URL that waits is in ``entries`` and in its host's queue (or in ``delayed``, when it has an
earliest time); one that is done leaves them and joins the visited table. A lease is no state in
Redis: what was handed out still waits there, at its place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterator, Mapping

from larmspider.cluster.redis_keys import Keys
from larmspider.cluster.redis_redo import BlockChanges
from larmspider.cluster.redis_visited import member, spread
from larmspider.frontier.storage import records as k
from larmspider.frontier.storage import records as r
from larmspider.frontier.storage.lmdb_env import LmdbFiles, Pending
from larmspider.frontier.storage.records import UrlState

SERIAL_BITS = 37
"""Of a score's 53 bits, beside 16 of the priority: 137 thousand million places in a crawl."""
_WAITING = struct.Struct(">IB")


def score(place: bytes) -> int:
    """Of a queue place: a sorted set gives the places in their order. Priority first, or time."""
    if k.run_of(place) == k.DELAYED:
        return int.from_bytes(place[9:15], "big")
    return int.from_bytes(place[9:11], "big") << SERIAL_BITS | k.serial_of(place)


def pack_queued(links: int, place: bytes, packed: bytes) -> bytes:
    """The value in ``entries``: links seen, place in the queue, packed entry."""
    return _WAITING.pack(links, len(place)) + place + packed


def unpack_queued(data: bytes) -> tuple[bytes, int, bytes]:
    """Place, links seen, packed entry."""
    links, length = _WAITING.unpack_from(data)
    return data[5 : 5 + length], links, data[5 + length :]


class Changes:
    """Of ``batch``, by block. ``unchanged`` are leased URLs whose record says nothing new.

    ``block_of_host`` as RedisBackend.block_of().
    """

    def __init__(
        self, keys: Keys, files: LmdbFiles, batch: Pending, unchanged: Container[bytes]
    ) -> None:
        self._keys, self._files, self._batch, self._unchanged = keys, files, batch, unchanged
        self.by_block: dict[int, BlockChanges] = {}
        self.members: dict[int, list[int]] = {}
        self.stored = 0
        self.visits: list[tuple[bytes, bytes]] = []

    def gather(self, block_of_host: Callable[[str], int]) -> None:
        """Look through the batch, once."""
        for key, record in self._batch.urls.items():
            if record[0] > UrlState.LEASED:
                self._done(key, record)
            elif key not in self._unchanged:
                self._waits(key, record)
        for name, value in self._batch.hosts.items():
            host = name[1:].decode()
            block = block_of_host(host)
            where = "hosts" if name[:1] == b"h" else "counts"
            self.of(block).put("HSET", self._keys.block(where, block), name[1:], value)
        for name, value in self._notes():
            block = block_of_host(name.decode().rpartition(" ")[2])
            self.of(block).put("HSET", self._keys.block("notes", block), name, value)

    def _notes(self) -> Iterator[tuple[bytes, bytes]]:
        """Those of hosts; any other is this worker's own (``orders``), and no block's."""
        for name, value in self._batch.meta.items():
            if name[:1] == b"n" and b" " in name:
                yield name[1:], value

    def of(self, block: int) -> BlockChanges:
        """The changes of a block."""
        found = self.by_block.get(block)
        if found is None:
            found = self.by_block[block] = BlockChanges(self._keys.block("owner", block))
        return found

    def _waits(self, key: bytes, record: bytes) -> None:
        _, links, place = r.unpack_waiting(record)
        # as of the cut: what came after it is no part of this commit
        packed = self._batch.queue.get(place) or self._files.get(place, self._files.queue)
        assert packed is not None
        block = self._keys.block_of_key(key)
        changes, name = self.of(block), self._keys.block
        queue = self._keys.requests(block, r.unpack_entry(packed).host)
        delayed = name("delayed", block)
        late = k.run_of(place) == k.DELAYED
        changes.put("HSET", name("entries", block), key, pack_queued(links, place, packed))
        changes.put("ZREM", queue if late else delayed, key)
        changes.put("ZADD", delayed if late else queue, b"%d" % score(place), key)

    def _done(self, key: bytes, record: bytes) -> None:
        block = self._keys.block_of_key(key)
        changes, name = self.of(block), self._keys.block
        visit = r.unpack_visit(record)
        changes.put("HDEL", name("entries", block), key)
        changes.put("ZREM", name("delayed", block), key)
        changes.put("ZREM", self._keys.requests(block, k.host_of(visit.url)), key)
        self.members.setdefault(block, []).append(member(key, visit.state))
        self.stored += visit.state is UrlState.STORED
        self.visits.append((key, record))

    def add_visited(self, totals: Mapping[int, int]) -> dict[int, int]:
        """Those that are done join the visited table: new totals of the blocks that had any."""
        found = {}
        for block, members in self.members.items():
            before = totals.get(block, 0)
            changes = self.of(block)
            for bucket, part in spread(before, members):
                words = [b"%d" % number for number in part]
                changes.put("SADD", self._keys.dupefilter(block, bucket), *words)
            found[block] = before + len(members)
            changes.put("HSET", self._keys.block("owner", block), b"visited", b"%d" % found[block])
        return found
