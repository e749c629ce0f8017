"""Deleting a crawl from Redis.

wipe(link, Keys("intranet", 256))       # how many keys there were
"""

from __future__ import annotations

import re

from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.redis_keys import Keys

_AT_ONCE = 1_000


def wipe(link: RedisLink, keys: Keys) -> int:
    """Delete all keys of a crawl, whatever its number of blocks was; seeds that wait in
    ``start_urls`` stay. O(keys of the database). Nobody may work on the crawl."""
    pattern = re.sub(r"([*?\[\]\\^-])", r"\\\1", keys.prefix) + ":*{*}*"
    found: list[bytes] = []
    deleted = 0
    ours = re.compile(re.escape(keys.prefix.encode()) + rb":(\w+:\{\d+\}|\{crawl\}:)")
    for key in link.client.scan_iter(match=pattern, count=_AT_ONCE):
        if ours.match(key):
            found.append(key)
        if len(found) == _AT_ONCE:
            deleted += _unlink(link, found)
            found = []
    return deleted + _unlink(link, found)


def _unlink(link: RedisLink, found: list[bytes]) -> int:
    return sum(map(int, link.run([("UNLINK", key) for key in found])))
