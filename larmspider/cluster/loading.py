"""Blocks that a worker gets: made its own in Redis, then copied to its disk.

    loaded = Loading(committer, local, batch=256).load({17: 1_800_000_000_123})    # in a thread
    loaded.counts                                            # for what the frontier has in memory

What the owner before had committed and not carried out is carried out first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from larmspider.cluster.commit import Committer, pairs
from larmspider.cluster.redis_changes import unpack_queued
from larmspider.cluster.redis_local import CHUNK, LocalCopy, Row
from larmspider.cluster.redis_scripts import OWN, Command, call
from larmspider.cluster.redis_visited import buckets
from larmspider.frontier.storage import records as k
from larmspider.frontier.storage import records as r
from larmspider.frontier.storage.backend import Fenced
from larmspider.frontier.storage.records import Counts

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
                loaded.serial = max(loaded.serial, k.serial_of(place))
                if k.run_of(place) == k.DELAYED and place not in late:
                    late.add(place)
                    host = r.unpack_entry(packed).host
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
    counts = r.unpack_counts(packed)
    counts.queued += counts.leased
    counts.leased = counts.delayed = 0
    return counts


_OF_HOSTS = ("hosts", "counts", "notes")
