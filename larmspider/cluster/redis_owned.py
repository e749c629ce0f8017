"""The blocks that a worker owns, as it has them in memory.

owned = Owned(keys)
owned.take(loaded)
owned.tokens                    # block -> fencing token
owned.block_of("www.wiki:80")   # where the resolver says that it is wiki: wiki's
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from larmspider.cluster.loading import Loaded
from larmspider.cluster.redis_keys import Keys
from larmspider.frontier.storage.records import Entry


class Owned:
    """``visited``: totals of the visited tables. ``left``: blocks given up that are still on disk,
    with their hosts."""

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self.tokens: dict[int, int] = {}
        self.visited: dict[int, int] = {}
        self.left: dict[int, list[str]] = {}
        self._elsewhere: dict[str, int] = {}  # hosts whose block is not that of their name

    def owns(self, key: bytes) -> bool:
        """Whether a URL is in one of the blocks."""
        return self._keys.block_of_key(key) in self.tokens

    def block_of(self, host: str) -> int:
        """Of a host, by its name in the queue."""
        block = self._elsewhere.get(host)
        return self._keys.block_of(host) if block is None else block

    def learn(self, entry: Entry) -> None:
        """The block of its host, which may not be known yet."""
        self._note(entry.host, self._keys.block_of_key(entry.key))

    def _note(self, host: str, block: int) -> None:
        if block != self._keys.block_of(host):
            self._elsewhere[host] = block

    def take(self, loaded: Loaded) -> None:
        """Blocks that were loaded."""
        self.tokens.update(loaded.tokens)
        self.visited.update(loaded.visited)
        for host, block in loaded.hosts.items():
            self._note(host, block)

    def give_up(self, gone: Collection[int], hosts: Iterable[str]) -> list[str]:
        """Those of ``hosts`` that are in these blocks."""
        for block in gone:
            del self.tokens[block]
            self.visited.pop(block, None)
            self.left[block] = []
        leaving = [host for host in hosts if self.block_of(host) in gone]
        for host in leaving:
            self.left[self.block_of(host)].append(host)
            self._elsewhere.pop(host, None)
        return leaving
