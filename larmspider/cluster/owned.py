"""The partitions that a worker owns, as it has them in memory.

owned.take(loaded)
owned.tokens                        # {17: 1_800_000_000_123}: partition -> fencing token
owned.partition_of("www.wiki:80")   # the partition of wiki, if the resolver maps www.wiki to it
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from larmspider.cluster.keys import Keys
from larmspider.frontier.storage.records import Counts, QueuedUrl


@dataclass(slots=True)
class Loaded:
    """The content of loaded partitions: their tokens and the totals of their visited tables,
    partition and counters of each host, the largest serial number of a queue place. ``untouched``:
    partitions that had no owner before, so there is nothing to read."""

    tokens: dict[int, int] = field(default_factory=dict)
    visited: dict[int, int] = field(default_factory=dict)
    hosts: dict[str, int] = field(default_factory=dict)
    counts: dict[str, Counts] = field(default_factory=dict)
    serial: int = 0
    untouched: set[int] = field(default_factory=set)


class Owned:
    """``visited``: totals of the visited tables. ``given_up``: partitions that are still on disk,
    with their hosts."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self.tokens: dict[int, int] = {}
        self.visited: dict[int, int] = {}
        self.given_up: dict[int, list[str]] = {}
        self._elsewhere: dict[str, int] = {}  # hosts whose name would give another partition

    def partition_of(self, host: str) -> int:
        """The partition of a host, by its name in the queue."""
        partition = self._elsewhere.get(host)
        return self._keys.partition_of(host) if partition is None else partition

    def learn(self, entry: QueuedUrl) -> None:
        """Note the partition of an entry's host."""
        self._learn(entry.host, self._keys.partition_of_key(entry.key))

    def _learn(self, host: str, partition: int) -> None:
        if partition != self._keys.partition_of(host):
            self._elsewhere[host] = partition

    def take(self, loaded: Loaded) -> None:
        self.tokens.update(loaded.tokens)
        self.visited.update(loaded.visited)
        for host, partition in loaded.hosts.items():
            self._learn(host, partition)

    def give_up(self, partitions: Collection[int], hosts: Iterable[str]) -> list[str]:
        """Drop the partitions, and return the ``hosts`` that were in them."""
        for partition in partitions:
            del self.tokens[partition]
            self.visited.pop(partition, None)
            self.given_up[partition] = []
        leaving = [host for host in hosts if self.partition_of(host) in partitions]
        for host in leaving:
            self.given_up[self.partition_of(host)].append(host)
            self._elsewhere.pop(host, None)
        return leaving
