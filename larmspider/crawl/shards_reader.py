"""Frontiers of workers read as one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import redis
from redis.exceptions import RedisClusterException

from larmspider import options
from larmspider.cluster.commit import BUCKET, member, pairs, unpack_queued
from larmspider.cluster.redis_client import Keys
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.frontier.politeness import NOTE, Orders
from larmspider.frontier.storage import records as r
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import Counts, Entry, UrlState, Visit
from larmspider.workdir.directory import REDIS_DIR
from larmspider.workdir.manifest import SHARED

if TYPE_CHECKING:
    from larmspider.cluster.reader import RedisReader

# The frontiers of a crawl's workers read as one: what each knows of URLs and hosts.
#
#     with ShardsReader([FrontierReader(a), FrontierReader(b)]) as frontier:
#         frontier.visit(url_key("http://wiki/a"))       # the last one of any of them
#
# What became of a URL is known to the worker that fetched it. Blocks of hosts move between
# workers;
# what they left behind in an earlier one is older, and the newest record counts.

_WAITING = (UrlState.QUEUED, UrlState.LEASED)


class ShardsReader(FrontierReader):
    """Read-only view; the readers are their owner's to close. ``waiting``: what is queued, where
    Redis can be asked; else it is as each worker knew it when it had it last."""

    def __init__(
        self, shards: Sequence[FrontierReader], waiting: RedisReader | None = None
    ) -> None:
        self._shards, self._waiting = list(shards), waiting

    def visit(self, key: bytes) -> Visit | None:
        """The last one."""
        visits = [visit for shard in self._shards if (visit := shard.visit(key)) is not None]
        return max(visits, key=lambda visit: visit.time, default=None)

    def state(self, key: bytes) -> UrlState:
        """Final where any worker has brought it to its end."""
        visit = self.visit(key)
        if visit is not None:
            return visit.state
        if self._waiting is not None:
            return self._waiting.state(key)
        return UrlState.UNKNOWN if (shard := self._shard_of(key)) is None else shard.state(key)

    def _shard_of(self, key: bytes) -> FrontierReader | None:
        """The one in which a URL waits: of several the one that had its host last."""
        if self.visit(key) is not None:
            return None
        waits = [shard for shard in self._shards if shard.state(key) in _WAITING]
        if len(waits) < 2:
            return waits[0] if waits else None
        entry = waits[0].entry(key)
        return waits[0] if entry is None else self._home_of(entry.host)

    def _home_of(self, host: str) -> FrontierReader:
        def progress(shard: FrontierReader) -> tuple[int, int]:
            return _progress(shard.host(host)[1])

        return max(self._shards, key=progress)

    def entry(self, key: bytes) -> Entry | None:
        where = self._waiting or self._shard_of(key)
        return None if where is None or self.visit(key) is not None else where.entry(key)

    def place(self, key: bytes, limit: int = 10_000) -> tuple[int, float] | None:
        where = self._waiting or self._shard_of(key)
        return None if where is None or self.visit(key) is not None else where.place(key, limit)

    def queued(self, host: str, limit: int = 10) -> list[Entry]:
        if self._waiting is not None:
            return self._waiting.queued(host, limit)
        return self._home_of(host).queued(host, limit) if self._shards else []

    def delayed(self, host: str, limit: int = 10) -> list[tuple[Entry, float]]:
        """As the worker knew it that had the host last."""
        return self._home_of(host).delayed(host, limit) if self._shards else []

    def hosts(self) -> dict[str, tuple[bytes, Counts]]:
        """A host's record and counters go with it from owner to owner: the furthest are its own."""
        if self._waiting is not None:
            return self._waiting.hosts()
        rows: dict[str, tuple[bytes, Counts]] = {}
        for shard in self._shards:
            for host, row in shard.hosts().items():
                if host not in rows or _progress(row[1]) > _progress(rows[host][1]):
                    rows[host] = row
        return rows

    def host(self, name: str) -> tuple[bytes, Counts]:
        if self._waiting is not None:
            return self._waiting.host(name)
        return self._home_of(name).host(name) if self._shards else (b"", Counts())

    @property
    def commits(self) -> int:
        """Grows with each commit of any worker."""
        return sum(shard.commits for shard in self._shards)

    def visits(self) -> Iterator[tuple[bytes, Visit]]:
        """Of each URL the last one."""
        every = merge(*(shard.visits() for shard in self._shards), key=itemgetter(0))
        for key, visits in groupby(every, key=itemgetter(0)):
            yield key, max((visit for _, visit in visits), key=lambda visit: visit.time)

    def waiting(self, after: bytes = b"") -> tuple[list[Entry], bytes | None]:
        """As each shard has it: of one after the other, what has come to its end elsewhere left
        out. ``after`` begins with the number of the shard."""
        number = after[0] if after else 0
        if number >= len(self._shards):
            return [], None
        found, more = self._shards[number].waiting(after[1:])
        entries = [entry for entry in found if self.visit(entry.key) is None]
        return entries, bytes([number]) + more if more is not None else bytes([number + 1])

    def host_prefixes(self) -> set[bytes]:
        return set().union(*(shard.host_prefixes() for shard in self._shards))

    def note(self, name: str) -> bytes | None:
        """Of a host; what operators have ordered is added up."""
        if name == NOTE:
            return Orders.together(Orders.unpack(shard.note(name)) for shard in self._shards).pack()
        if self._waiting is not None:
            return self._waiting.note(name)
        return next(
            (note for shard in self._shards if (note := shard.note(name)) is not None), None
        )

    def positions(self) -> dict[str, bytes]:
        """Stores have positions in a shard, not here."""
        return {}

    def close(self) -> None:
        """Leaves the shards open."""


def _progress(counts: Counts) -> tuple[int, int]:
    """Neither number of a host ever gets smaller."""
    return counts.discovered, counts.stored + counts.failed + counts.refused
