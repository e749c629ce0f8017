"""Keeps Redis from running full: new links wait from 90% on, and each commit waits for room.

    memory = MemoryWatch(link, keys, "w1")
    memory.look(committed=9_000_000, pending=120_000, workers=4)  # in a thread, every LOOK_SECS
    memory.full                   # True from 90% of maxmemory on, until below 85%
    memory.has_room(9_140_000)    # whether 9,140,000 bytes since its start are within its claim
    with memory.claimed(commit_bytes(400_000, 6_000)):   # waits until this worker has the room
        ...                       # the commit, which brings no more

A full Redis accepts neither commits nor signs of life, and its workers lose their leases. Each
worker therefore claims the bytes that it may still bring, in one table for all workers. A claim
counts only if all claims together fit into the free memory of Redis, so no two workers count on the
same bytes. A commit knows to the byte what it sends, and claims the room for it. If this does not
fit below 95%, the commit waits, and the other workers claim only the room for their commits. The
last 5% are for everything else: leases, other clients, and tables of Redis, which grow by leaps.

A fetched page brings new links of 300 bytes each, so fetching stops at 90%, before commits do. Each
look claims an equal part of the room up to 90%, by an estimate of what pages will bring, so that
commits seldom wait; a worker looks at once when half of its part is used up.
"""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import redis

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import (
    REBUILD,
    SAY_AGAIN_SECS,
    SET_NO_EVICTION,
    UNREACHABLE,
    RedisLink,
)
from larmspider.formatting import counted
from larmspider.frontier.storage.backend import BackendError, Fenced

logger = logging.getLogger(__name__)

LOOK_SECS = 2.0
WARN_AT, WARN_AGAIN_BELOW = 0.8, 0.75
"""Shares of maxmemory."""
FULL_AT, GO_ON_BELOW = 0.9, 0.85
COMMIT_AT = 0.95
COPIES, WORD_BYTES, CLIENT_BYTES = 4, 100, 150_000
"""Factors of a commit's memory in Redis. Its words lie in the write-ahead log, in their places and
in the received command, each in a block of memory that may be a quarter larger. A word in a table
of Redis has a row there. A client has its buffers, and each script the sizes that it counts."""
CHANGE_BYTES, URL_COPIES = 600, COPIES
"""An estimate of the bytes that a change takes in Redis while its commit is under way, with short
URLs; a queued URL is two changes. Further bytes of a URL count as in a commit."""


def change_bytes(changes: int, url_bytes: int) -> int:
    """Bytes in Redis for ``changes`` changes whose URLs have ``url_bytes`` in all."""
    return CHANGE_BYTES * changes + URL_COPIES * url_bytes


def commit_bytes(size: int, words: int) -> int:
    """The most bytes, at any moment, of a commit with ``words`` words and ``size`` bytes."""
    return COPIES * size + WORD_BYTES * words + CLIENT_BYTES


class MemoryWatch:
    """``full``: new links wait. A Redis without maxmemory is never full.

    The table of claims has the bytes that each worker may bring from then on: more than the worker
    has left between two of its looks. A negative claim: the commit waits for this number."""

    def __init__(self, link: RedisLink, keys: Keys, worker: str) -> None:
        self._link, self._keys, self._worker = link, keys, worker.encode()
        self._committing = threading.Lock()
        self._claim = 0.0
        self._warned = False
        self._evicted: int | None = None  # keys that Redis had deleted by the first look
        self.full = False
        self._most = self._next_look = math.inf  # bytes that this worker has brought

    @property
    def is_bounded(self) -> bool:
        """Whether Redis has a maxmemory."""
        return self._most < math.inf

    def has_room(self, brought: float) -> bool:
        """``brought``: bytes of all changes of this worker since its start, with the estimated
        changes of the pages under way."""
        return brought < self._most

    def wants_look(self, brought: int) -> bool:
        """Whether half of this worker's room until the next look is used."""
        return not self.full and brought >= self._next_look

    def look(self, committed: int, pending: int, workers: int) -> None:
        """Read the memory of Redis, and claim room. Redis had ``committed`` bytes of this worker
        before; ``pending`` bytes wait for the next commit. The other ``workers`` are assumed to
        hold as much each. Raises redis.RedisError, OSError, and BackendError if Redis deletes
        keys."""
        info = self._link.info("memory", "stats")
        self._refuse_eviction(info)
        used, limit = _used_of(info)
        self.judge(_part((used, limit)), _part((used + pending * workers, limit)), limit)
        if not self._committing.acquire(blocking=False):
            self._next_look = math.inf  # until the running commit, which has the claim, is over
            return
        try:
            self._claim = part = math.inf
            if limit:
                waits = self.full or self._others()[1]
                part = 0.0 if waits else _left(used, limit, FULL_AT) / max(1, workers)
                part = self._claim_of(max(pending, part), FULL_AT) - pending
        finally:
            self._committing.release()
        self._most = committed + pending + part
        self._next_look = committed + pending + part / 2

    @contextmanager
    def claimed(self, need: int) -> Iterator[None]:
        """Claim ``need`` bytes for the block, after a wait for room. Raises BackendError if
        link.stop is set meanwhile."""
        with self._committing:
            began = warned = 0.0
            while self._claim < need:
                try:
                    if not self._used()[1]:
                        self._claim = math.inf
                    elif self._claim_of(need, COMMIT_AT) < need:
                        self._claim = 0.0
                        self._set(-need)  # the rest is for workers with smaller commits
                except (redis.RedisError, OSError):
                    self._link.run([("HDEL", self._keys.crawl("room"), self._worker)])  # waits
                    continue
                if self._claim >= need:
                    break
                now = time.monotonic()
                began = began or now
                if not warned or now - warned >= SAY_AGAIN_SECS:
                    warned = now
                    logger.warning(
                        "Redis at %s has no room below %.0f%% of its maxmemory for a commit of"
                        " %.1f MB: it waits",
                        self._link.name, 100 * COMMIT_AT, need / 1e6,
                    )  # fmt: skip
                if self._link.stop.wait(random.uniform(0.1, 1.0)):  # noqa: S311 - no secret
                    raise self._link.give_up("has no room for a commit")
            if began:
                logger.warning(
                    "Redis at %s has room for the commit after %.1f s",
                    self._link.name, time.monotonic() - began,
                )  # fmt: skip
            try:
                yield
            finally:
                if self._claim < math.inf:
                    self._claim -= need
                    self._next_look = 0.0

    def _claim_of(self, wish: float, at: float) -> float:
        """``wish``, or the rest of the room. The own claim is written before others' claims are
        read, and these before the used memory: if two workers claim at once, one sees the other,
        and bytes of a commit under way count twice rather than never."""
        self._claim = 0.0
        if not self._set(wish):
            return 0.0
        others, _ = self._others()
        claim = min(wish, max(0.0, _left(*self._used(), at) - others))
        if claim < wish:
            self._set(claim)
        self._claim = claim
        return claim

    def _set(self, claim: float) -> bool:
        """Returns False if Redis is full; then the earlier claim still counts."""
        try:
            self._link.client.hset(self._keys.crawl("room"), self._worker, int(claim))
        except redis.exceptions.OutOfMemoryError:
            return False
        return True

    def _others(self) -> tuple[int, bool]:
        """The claims of all other workers, including dead ones whose logs are still to be applied;
        and whether a commit of theirs waits."""
        with self._link.client.pipeline(transaction=False) as pipe:
            pipe.hgetall(self._keys.crawl("room"))
            pipe.hkeys(self._keys.crawl("workers"))
            pipe.hvals(self._keys.crawl("dead"))
            claims, living, dead = pipe.execute()
        alive = {*living, *dead} - {self._worker}
        found = [int(claim) for who, claim in claims.items() if who in alive]
        return sum(claim for claim in found if claim > 0), any(claim < 0 for claim in found)

    def _used(self) -> tuple[int, int]:
        """Bytes used and allowed."""
        return _used_of(self._link.info("memory"))

    def _refuse_eviction(self, info: Mapping[str, Any]) -> None:
        """Raise BackendError where Redis has deleted keys since the first look."""
        evicted = int(info.get("evicted_keys", 0))
        if self._evicted is None or evicted < self._evicted:  # Redis was started again
            self._evicted = evicted
        if evicted > self._evicted:
            raise BackendError(
                f"Redis at {self._link.name} has evicted {counted(evicted - self._evicted, 'key')}"
                " while the crawl ran, and parts of the crawl are gone with them:"
                f" {SET_NO_EVICTION}; then start again, and where a worker refuses what is left,"
                f" {REBUILD}"
            )

    def explained(self, fenced: Fenced) -> Fenced:
        """The error, with its cause where Redis has deleted keys, such as this worker's lease."""
        try:
            self._refuse_eviction(self._link.info("stats"))
        except BackendError as error:
            return Fenced(f"{fenced}: {error}")
        except UNREACHABLE:
            pass
        return fenced

    def judge(self, now: float, soon: float, limit: int) -> None:
        """Both are shares of ``limit`` bytes; ``soon`` includes uncommitted changes."""
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
            logger.warning("Redis at %s has room again: the crawl continues", name)


def _used_of(info: Mapping[str, Any]) -> tuple[int, int]:
    return int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))


def _left(used: int, limit: int, at: float) -> float:
    return at * limit - used if limit else math.inf


def _part(used: tuple[int, int]) -> float:
    return used[0] / used[1] if used[1] else 0.0
