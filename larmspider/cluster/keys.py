"""The names of everything in Redis, and the partition of a host or URL (docs/internals/workers.md).

keys = Keys("intranet", 256)
keys.partition_of("wiki:80")              # 171, of 0..255
keys.requests(171, "wiki:80")             # b"intranet:requests:{171}:wiki:80"
"""

from __future__ import annotations

import re

from larmspider.errors import ConfigError
from larmspider.frontier.storage.records import host_prefix

TYPES = {
    b"hash": (
        "entries hosts counts notes merged visits owner workers blocks dead pulse runs idle load"
        " moves totals refresh refresh_run orders room commit log rebuild rebuild_visits"
        " rebuild_entries rebuild_merged rebuild_hosts rebuild_stale"
    ),
    b"zset": "requests delayed mail",
    b"list": "pages inbox outdated",
    b"set": "dupefilter rebuild_known rebuild_workers",
    b"string": "token commits format id ended description rebuilding",
}
"""The names of keys by the type that Redis has them as."""
_TYPE_OF = {name.encode(): kind for kind, names in TYPES.items() for name in names.split()}
_NAME = re.compile(rb":(?:(\w+):\{\d+\}|\{crawl\}:(\w+))")


def type_of(key: bytes) -> bytes | None:
    """The type of a key of a crawl; None if it is not a key of a crawl."""
    found = _NAME.search(key)
    return _TYPE_OF.get(found[1] or found[2]) if found else None


class Keys:
    """``prefix`` is the spider's name. Raises ConfigError for a name with braces.

    The number of a partition is in braces. The partition is the host's part of a URL key scaled
    to the number of partitions, so the URL keys of a partition are neighbours. The partition
    depends on the host's name in the canonical URL, so two names of one host never have two owners.
    """

    def __init__(self, prefix: str, partitions: int) -> None:
        if not prefix or "{" in prefix or "}" in prefix:
            raise ConfigError(f"the spider's name {prefix!r} cannot begin the keys in Redis")
        self.prefix, self.partitions = prefix, partitions

    def partition_of(self, host: str) -> int:
        """The partition of a host, ``wiki:80``."""
        return self.partition_of_key(host_prefix(host))

    def partition_of_key(self, key: bytes) -> int:
        """The partition of a URL key."""
        return int.from_bytes(key[:4], "big") * self.partitions >> 32

    def first_key(self, partition: int) -> bytes:
        """The smallest URL key of a partition; after the last partition, a key above all keys."""
        start = -(-(partition << 32) // self.partitions)
        return start.to_bytes(5, "big")[1:] if start < 1 << 32 else b"\xff" * 17

    # keys of a partition

    def partition(self, name: str, partition: int) -> bytes:
        """``owner``, ``entries``, ``delayed``, ``hosts``, ``counts``, ``notes``, ``merged``,
        ``pages``, ``visits``, ``inbox``."""
        return b"%b:%b:{%d}" % (self.prefix.encode(), name.encode(), partition)

    def requests(self, partition: int, host: str) -> bytes:
        """The queue of a host."""
        return self.partition("requests", partition) + b":" + host.encode()

    def dupefilter(self, partition: int, bucket: int) -> bytes:
        """A bucket of the visited table."""
        return self.partition("dupefilter", partition) + b":%d" % bucket

    # keys of the crawl

    def crawl(self, name: str) -> bytes:
        """``format``, ``workers``, ``commits``, ``idle``, ``totals``, ``token``."""
        return b"%b:{crawl}:%b" % (self.prefix.encode(), name.encode())

    def outdated(self, worker: str) -> bytes:
        """Pages in a worker's directory that no longer count."""
        return self.crawl("outdated:" + worker)

    def log(self, worker: str) -> bytes:
        """Parts of a worker's commit record that are too long for one value."""
        return self.crawl("log:" + worker)

    def commit(self, worker: str) -> bytes:
        """The commit record of a worker."""
        return self.crawl("commit:" + worker)
