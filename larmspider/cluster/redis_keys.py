"""The names of everything in Redis, and which block a host or URL falls into (docs/redis.md).

    keys = Keys("intranet", blocks=256)
    keys.block_of("wiki:80")              # 171, of 0..255
    keys.requests(171, "wiki:80")         # b"intranet:requests:{171}:wiki:80"

What stands in braces is the hash tag of Redis Cluster: all keys of a block lie on one node, so that
one script may change them together. The block is the host's part of a URL key (keys.url_key) scaled
to the number of blocks, so the URL keys of a block are neighbours. The host counts as it stands in
the canonical URL: two names of one host never have two owners.
"""

from __future__ import annotations

from larmspider.errors import ConfigError
from larmspider.frontier.storage.records import host_prefix

MAX_BLOCKS = 16_384
"""The number of slots of a Redis Cluster."""


class Keys:
    """``prefix`` is the spider's name. Raises ConfigError for one that has braces."""

    def __init__(self, prefix: str, blocks: int) -> None:
        if not prefix or "{" in prefix or "}" in prefix:
            raise ConfigError(f"the spider's name {prefix!r} cannot begin the keys in Redis")
        self.prefix, self.blocks = prefix, blocks

    # blocks

    def block_of(self, host: str) -> int:
        """Of a host, ``wiki:80``."""
        return self.block_of_key(host_prefix(host))

    def block_of_key(self, key: bytes) -> int:
        """Of a URL key."""
        return int.from_bytes(key[:4], "big") * self.blocks >> 32

    def first_key(self, block: int) -> bytes:
        """The smallest URL key of a block; of the one after the last: above all."""
        start = -(-(block << 32) // self.blocks)
        return start.to_bytes(5, "big")[1:] if start < 1 << 32 else b"\xff" * 17

    # keys of a block

    def block(self, name: str, block: int) -> bytes:
        """``owner``, ``entries``, ``delayed``, ``hosts``, ``counts``, ``notes``, ``inbox``."""
        return b"%b:%b:{%d}" % (self.prefix.encode(), name.encode(), block)

    def requests(self, block: int, host: str) -> bytes:
        """The queue of a host."""
        return self.block("requests", block) + b":" + host.encode()

    def dupefilter(self, block: int, bucket: int) -> bytes:
        """One bucket of the visited table."""
        return self.block("dupefilter", block) + b":%d" % bucket

    # keys of the crawl

    def crawl(self, name: str) -> bytes:
        """``format``, ``workers``, ``commits``, ``idle``, ``totals``, ``token``."""
        return b"%b:{crawl}:%b" % (self.prefix.encode(), name.encode())

    def commit(self, worker: str) -> bytes:
        """The commit record of a worker."""
        return self.crawl("commit:" + worker)
