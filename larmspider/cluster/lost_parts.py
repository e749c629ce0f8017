"""Parts of a crawl that Redis has lost: keys that were evicted, or deleted by hand.

    for part in lost_parts(link.run, keys, owners, untouched): ...   # "partition 3 has 0 of 2 ..."

``counts`` has the numbers of a partition's URLs. The owner record has the lengths of the other
tables (lua/apply.lua), and ``totals`` the lengths of the lists ``outdated`` (lua/carried_out.lua);
in a crawl that was begun without these, once the tables change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import Command, pairs
from larmspider.cluster.redis_records import buckets
from larmspider.frontier.storage import records

COUNTED = {
    "hosts": ("HLEN", "records of hosts"),
    "notes": ("HLEN", "notes about hosts"),
    "visits": ("HLEN", "records of visited URLs"),
    "merged": ("HLEN", "merged URLs"),
    "pages": ("LLEN", "lists of spellings"),
    "inbox": ("LLEN", "messages from other workers"),
}
"""How the length of each table is read, and what its records are."""
_AT_ONCE = 64
"""Partitions in one round trip."""

Run = Callable[[list[Command]], Sequence[Any]]
"""Sends commands in one round trip."""


def size_field(table: str) -> str:
    """The field of the owner record with the number of records of a table."""
    return f"size:{table}"


def outdated_field(worker: str) -> str:
    """The field of the totals with the number of lists of outdated pages of a worker."""
    return f"outdated:{worker}"


OWNER_FIELDS = ("visited", *map(size_field, COUNTED))
"""Fields of the owner record: the size of the visited table, and the lengths of the others."""


def lost_parts(
    run: Run, keys: Keys, owners: Mapping[int, Sequence[Any]], untouched: Collection[int]
) -> Iterator[str]:
    """The lost part of each partition in ``owners``, which has the values of OWNER_FIELDS.
    ``untouched``: partitions that have had no owner."""
    partitions = sorted(owners)
    for at in range(0, len(partitions), _AT_ONCE):
        some = partitions[at : at + _AT_ONCE]
        asked: list[Command] = [
            command
            for one in some
            for command in (
                ("HGETALL", keys.partition("counts", one)),
                ("HLEN", keys.partition("entries", one)),
            )
        ]
        answers = iter(run(asked))
        found = [_Partition(keys, one, owners[one], next(answers), next(answers)) for one in some]
        used = [one for one in found if one.is_used]
        lengths = iter(run([command for one in used for command in one.questions()]))
        for one in used:
            if lost := one.lost(lengths, is_untouched=one.number in untouched):
                yield f"partition {one.number} {lost}"


def lost_outdated(run: Run, keys: Keys, worker: str) -> str:
    """The lost lists of pages in a worker's directory that no longer count; "" if none is."""
    size, length = run(
        [("HGET", keys.crawl("totals"), outdated_field(worker)), ("LLEN", keys.outdated(worker))]
    )
    wanted, there = int(size or 0), int(length)
    if there >= wanted:
        return ""
    return f"{there:,} of {wanted:,} lists of outdated pages of worker {worker}"


def is_commit_lost(run: Run, keys: Keys, worker: str) -> bool:
    """Whether partitions have steps of a worker's commits, and Redis has no commit of it."""
    if run([("EXISTS", keys.commit(worker))]) != [0]:
        return False
    fields = [f"{kind}:{worker}" for kind in ("applied", "posted")]
    owners = [keys.partition("owner", at) for at in range(keys.partitions)]
    return any(map(any, run([("HMGET", owner, *fields) for owner in owners])))


def stored_pages(run: Run, keys: Keys) -> tuple[int, int]:
    """The number of stored pages of the crawl by its totals, and by the counters of its hosts. The
    first is larger if pages were stored more than once."""
    counts = [keys.partition("counts", at) for at in range(keys.partitions)]
    total, *found = run(
        [("HGET", keys.crawl("totals"), "stored"), *(("HVALS", name) for name in counts)]
    )
    every = (records.unpack_counts(packed) for answer in found for packed in answer)
    return int(total or 0), sum(one.stored for one in every)


class _Partition:
    """A partition's counters in Redis. Most partitions of a small crawl have no URLs
    (``is_used``)."""

    def __init__(
        self, keys: Keys, number: int, owner: Sequence[Any], counts: Any, queued: Any
    ) -> None:
        self.number, self._keys, self._queued = number, keys, int(queued)
        self._counts = {
            host.decode(): records.unpack_counts(packed) for host, packed in pairs(counts).items()
        }
        visited, *self._sizes = (int(value or 0) for value in owner)
        self._buckets = buckets(visited)
        self.is_used = bool(visited or queued or self._counts or any(self._sizes))

    def questions(self) -> Iterator[Command]:
        """The lengths of all tables: of the visited table, the queues, the others."""
        name, number = self._keys.partition, self.number
        for bucket in range(self._buckets):
            yield "SCARD", self._keys.dupefilter(number, bucket)
        for host in self._waiting():
            yield "ZCARD", self._keys.requests(number, host)
        yield "ZCARD", name("delayed", number)
        for table, (command, _) in COUNTED.items():
            yield command, name(table, number)

    def _waiting(self) -> list[str]:
        return [host for host, one in self._counts.items() if one.queued + one.leased]

    def lost(self, lengths: Iterator[Any], *, is_untouched: bool) -> str:
        """``lengths``: the answers to questions()."""
        visited = sum(int(next(lengths)) for _ in range(self._buckets))
        in_queues = sum(int(next(lengths)) for _ in (*self._waiting(), "delayed"))
        others = [int(next(lengths)) for _ in COUNTED]
        counts = self._counts.values()
        done = sum(one.stored + one.failed + one.refused for one in counts)
        waiting = sum(one.queued + one.leased for one in counts)
        if is_untouched and (counts or self._queued):
            return "has URLs and no owner record"
        if visited < done:
            return f"has {visited:,} of {done:,} visited URLs"
        if self._queued < waiting:
            return f"has {self._queued:,} of {waiting:,} queued URLs"
        if not counts and (visited or self._queued):
            return "has URLs and no counters"
        if in_queues < self._queued:
            return f"has {in_queues:,} of {self._queued:,} places in queues"
        for there, size, (_, what) in zip(others, self._sizes, COUNTED.values(), strict=True):
            if there < size:
                return f"has {there:,} of {size:,} {what}"
        return ""
