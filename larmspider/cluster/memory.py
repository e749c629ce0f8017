"""How full Redis is, so that it never is: new links wait before, and nothing is fetched meanwhile.

    memory = MemoryWatch(link)
    memory.look(committed=9_000_000, pending=120_000, workers=4)  # in a thread, every LOOK_SECS
    memory.full                   # True from 90% of maxmemory on, until below 85%
    memory.has_room(9_140_000)    # whether this worker may have brought so many bytes by now

A Redis that is full takes no commit and no sign of life any more, and its workers lose their
leases. A page that is fetched brings new links, which cost 300 bytes each; so pages wait instead of
them. What is being fetched is stored and committed. Each look gives each worker an equal part of
what is left up to 90%, which its changes until the next look may take, so that a burst of links
between two looks seldom fills it. A worker looks at once when half of its part is used up.
"""

from __future__ import annotations

import logging
import math
from typing import Any

import redis

from larmspider.cluster.redis_client import RedisLink

logger = logging.getLogger(__name__)

LOOK_SECS = 2.0
WARN_AT, WARN_AGAIN_BELOW = 0.8, 0.75
"""Parts of maxmemory."""
FULL_AT, GO_ON_BELOW = 0.9, 0.85
CHANGE_BYTES, URL_COPIES = 600, 3
"""A change takes at most so much in Redis while its commit is under way, where URLs are short; a
queued URL is two changes. What URLs have beyond counts so often: in its place, in the write-ahead
log, and in what the worker sends."""


def change_bytes(changes: int, url_bytes: int) -> int:
    """What changes with URLs of so many bytes take in Redis."""
    return CHANGE_BYTES * changes + URL_COPIES * url_bytes


class MemoryWatch:
    """``full``: new links wait. A Redis without maxmemory is never full."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._warned = False
        self.full = False
        self._most = self._next_look = math.inf  # bytes that this worker has brought

    @property
    def is_bounded(self) -> bool:
        """Whether Redis has a maxmemory."""
        return self._most < math.inf

    def has_room(self, brought: float) -> bool:
        """``brought``: bytes of all changes of this worker since its start, with those that the
        pages are reckoned to bring that it fetches now."""
        return brought < self._most

    def wants_look(self, brought: int) -> bool:
        """Whether half of what this worker may bring until the next look is brought."""
        return not self.full and brought >= self._next_look

    def look(self, committed: int, pending: int, workers: int) -> None:
        """Ask Redis. ``committed`` bytes of this worker were in Redis before, ``pending`` ones wait
        for its next commit, and of the other ``workers`` as many. Raises redis.RedisError,
        OSError."""
        used, limit = max(map(_used_of, self._infos()), key=_part, default=(0, 0))
        if not limit:
            self.judge(0.0, 0.0, 0)
            self._most = self._next_look = math.inf
            return
        self.judge(used / limit, (used + pending * workers) / limit, limit)
        left = 0.0 if self.full else (FULL_AT * limit - used) / max(1, workers) - pending
        self._most = committed + pending + left
        self._next_look = committed + pending + left / 2

    def _infos(self) -> list[dict[str, Any]]:
        client = self._link.client
        if not self._link.is_cluster:
            return [client.info("memory")]
        found = client.info("memory", target_nodes=redis.RedisCluster.PRIMARIES)
        return list(found.values()) if "used_memory" not in found else [found]

    def judge(self, now: float, soon: float, limit: int) -> None:
        """Both are parts of ``limit`` bytes; ``soon`` has what is still to be committed."""
        was_full, name = self.full, self._link.name
        self.full = soon >= (GO_ON_BELOW if was_full else FULL_AT)
        if now >= WARN_AT and not self._warned:
            self._warned = True
            logger.warning(
                "Redis at %s has used %.0f%% of its maxmemory of %.0f MB: from %.0f%% on new links"
                " wait, and nothing is fetched until there is more (CONFIG SET maxmemory)",
                name, 100 * now, limit / 1e6, 100 * FULL_AT,
            )  # fmt: skip
        elif now < WARN_AGAIN_BELOW:
            self._warned = False
        if self.full and not was_full:
            logger.warning(
                "Redis at %s is nearly full, at %.0f%% of its maxmemory with what is to be"
                " committed: new links wait, and nothing is fetched until it is below %.0f%%",
                name, 100 * soon, 100 * GO_ON_BELOW,
            )  # fmt: skip
        elif was_full and not self.full:
            logger.warning("Redis at %s has room again: the crawl goes on", name)


def _used_of(info: dict[str, Any]) -> tuple[int, int]:
    return int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))


def _part(used: tuple[int, int]) -> float:
    return used[0] / used[1] if used[1] else 0.0
