"""The visited table of a partition in Redis: its members, and the bucket that holds each.

    members(link, keys, 17)                        # all members, in the order of their buckets
    table = VisitedTable(link, keys, files)
    table.find(17, numbers)                        # {bucket: [member, ...]}
    table.added(17, [(3, [number, ...])])          # a commit has put these into bucket 3
    table.drop([17])                               # the partition has another owner

A forgotten URL leaves the bucket that holds its member. The worker needs the bucket's number for
that. The first commit that forgets a URL of a partition reads the partition's table once, and notes
the bucket of each member on disk, in the database ``buckets``: number of the partition (2 bytes)
and 8 bytes of the URL key -> number of the bucket (4 bytes). A crawl that forgets nothing has no
such rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from larmspider.cluster.keys import Keys
from larmspider.cluster.local_copy import CHUNK, SharedFiles, tag_of
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.redis_records import buckets, compact_of

_BUCKETS_AT_ONCE = 200  # buckets in one pipeline: 100,000 members, some 2 MB of answers
_NUMBER_BYTES = 4


def members(link: RedisLink, keys: Keys, partition: int, total: int | None = None) -> Iterator[int]:
    """All members. ``total`` is the size that the owner record gives; None: it is read first."""
    for _, found in _by_bucket(link, keys, partition, total):
        yield from found


def _by_bucket(
    link: RedisLink, keys: Keys, partition: int, total: int | None = None
) -> Iterator[tuple[int, list[int]]]:
    if total is None:
        (known,) = link.run([("HGET", keys.partition("owner", partition), "visited")])
        total = int(known or 0)
    numbers = range(buckets(total))
    for at in range(0, len(numbers), _BUCKETS_AT_ONCE):
        part = numbers[at : at + _BUCKETS_AT_ONCE]
        commands = [("SMEMBERS", keys.dupefilter(partition, bucket)) for bucket in part]
        for bucket, found in zip(part, link.run(commands), strict=True):
            yield bucket, [int(number) for number in found]


class VisitedTable:
    """The rows belong to this process. A new process begins with drop_all()."""

    def __init__(self, link: RedisLink, keys: Keys, files: SharedFiles) -> None:
        self._link, self._keys, self._files = link, keys, files
        self._noted: set[int] = set()  # partitions whose members have rows

    def is_noted(self, partition: int) -> bool:
        """Whether the partition's table was read."""
        return partition in self._noted

    def note(self, partition: int) -> None:
        """Read the partition's table. Some 2 us a member."""
        self.drop([partition])
        rows: list[tuple[bytes, bytes]] = []
        for bucket, found in _by_bucket(self._link, self._keys, partition):
            rows += _rows(partition, bucket, found)
            if len(rows) >= CHUNK:
                self._put(rows)
                rows = []
        self._put(rows)
        self._noted.add(partition)

    def find(self, partition: int, numbers: Sequence[int]) -> dict[int, list[int]]:
        """Members by bucket, after note(). A member that no bucket holds is left out."""
        tag, found = tag_of(partition), dict[int, list[int]]()
        with self._files.read() as txn:
            for number in numbers:
                bucket = txn.get(tag + compact_of(number), None, self._files.buckets)
                if bucket is not None:
                    found.setdefault(int.from_bytes(bucket, "big"), []).append(number)
        return found

    def added(self, added: Mapping[int, Iterable[tuple[int, Sequence[int]]]]) -> None:
        """A commit has put members into buckets: (bucket, members), by partition."""
        rows: list[tuple[bytes, bytes]] = []
        for partition in added.keys() & self._noted:
            for bucket, numbers in added[partition]:
                rows += _rows(partition, bucket, numbers)
        self._put(rows)

    def _put(self, rows: list[tuple[bytes, bytes]]) -> None:
        files = self._files

        def write() -> None:
            with files.env.begin(write=True) as txn:
                txn.cursor(files.buckets).putmulti(rows)

        if rows:
            rows.sort()  # neighbours share pages
            files.insist(write)

    def drop(self, partitions: Iterable[int]) -> None:
        """Forget the members of these partitions."""
        for partition in self._noted.intersection(partitions):
            self._noted.discard(partition)
            while self._drop_some(tag_of(partition)):
                pass

    def _drop_some(self, tag: bytes) -> bool:
        files, dropped = self._files, 0

        def write() -> None:
            nonlocal dropped
            dropped = 0
            with files.env.begin(write=True) as txn:
                cursor = txn.cursor(files.buckets)
                more = cursor.set_range(tag)
                while more and dropped < CHUNK and cursor.key()[:2] == tag:
                    more = cursor.delete()
                    dropped += 1

        files.insist(write)
        return dropped == CHUNK

    def drop_all(self) -> None:
        """Forget the members of every partition, also from an earlier process."""
        files = self._files

        def write() -> None:
            with files.env.begin(write=True) as txn:
                txn.drop(files.buckets, delete=False)

        self._noted.clear()
        files.insist(write)


def _rows(partition: int, bucket: int, numbers: Iterable[int]) -> Iterator[tuple[bytes, bytes]]:
    tag, value = tag_of(partition), bucket.to_bytes(_NUMBER_BYTES, "big")
    return ((tag + compact_of(number), value) for number in numbers)
