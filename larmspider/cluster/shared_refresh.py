"""What workers that visit pages again have in common: when the run began, and its budget.

    refresh = SharedRefresh(client, keys)
    refresh.began("all", now, "r1")        # the time at which the first of them began
    refresh.refill(now, per_day=33)        # the visits that all of them together may still make
    adopt(link, keys, directories)         # before it, for a crawl of an earlier version

A run begins when its first worker asks, and is over when the crawl has come to its end: until then
workers that join later, and those that are started again, go on with it. After it, they go on with
it where they have its name (LARM_REFRESH_RUN), and find nothing left to do. Methods may be called
from any thread, and raise what UNREACHABLE lists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import REFILL, Command, RedisLink
from larmspider.cluster.redis_records import member, pack_record
from larmspider.cluster.visited_table import members
from larmspider.errors import CrawlDirError
from larmspider.frontier.dispatch import ROBOTS_REASON
from larmspider.frontier.refresh import KEPT_DAYS
from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.frontier.storage.records import (
    FetchRecord,
    UrlState,
    unpack_counts,
)


class SharedRefresh:
    """``client`` of Redis, which this object may use beside others."""

    def __init__(self, client: Any, keys: Keys) -> None:
        self._client, self._keys = client, keys
        self._refill = client.register_script(REFILL.text)

    def began(self, mode: str, now: float, name: str = "") -> float:
        """When the run with this LARM_REFRESH, and this name, began, in seconds since the epoch."""
        runs, named = self._keys.crawl("refresh"), self._keys.crawl("refresh_run")
        if name:
            known = self._client.hmget(named, "name", "mode", "began")
            if known[:2] == [name.encode(), mode.encode()]:
                return float(known[2])
        self._client.hsetnx(runs, mode, repr(now))
        began = float(self._client.hget(runs, mode) or now)
        if name:
            self._client.hset(named, mapping={"name": name, "mode": mode, "began": repr(began)})
        return began

    def refill(self, now: float, per_day: float) -> float:
        """Visits that are left, of ``per_day`` for the whole crawl, as of the last commits."""
        arguments = [repr(now), repr(per_day), KEPT_DAYS]
        return float(self._refill(keys=[self._keys.crawl("totals")], args=arguments))


def adopt(link: RedisLink, keys: Keys, directories: Sequence[Path]) -> int:
    """Give Redis the records of URLs that an earlier version kept in the workers' directories
    alone, while no worker runs: how many. What Redis does not know any more stays out."""
    if not _lacks_records(link, keys):
        return 0
    adopted = 0
    with ExitStack() as stack:
        named = []
        for path in directories:
            with suppress(CrawlDirError):  # none is there yet
                reader = stack.enter_context(FrontierReader(path / "frontier"))
                named.append(_own_visits(path.name, reader))
        every = merge(*named, key=itemgetter(0))
        for at, rows in groupby(every, key=lambda row: keys.partition_of_key(row[0])):
            known, name = set(members(link, keys, at)), keys.partition("visits", at)
            commands: list[Command] = []
            for key, visits in groupby(rows, key=itemgetter(0)):
                visit = max((visit for _, visit in visits), key=lambda visit: visit.time)
                if member(key, visit.state) in known:
                    commands.append(("HSETNX", name, key, pack_record(visit, 1)))
            adopted += sum(map(int, link.run(commands)))
    return adopted


def _lacks_records(link: RedisLink, keys: Keys) -> bool:
    """Each stored or failed URL has one, and few others have."""
    partitions = range(keys.partitions)
    counts = link.run([("HVALS", keys.partition("counts", at)) for at in partitions])
    found = [unpack_counts(packed) for of_partition in counts for packed in of_partition]
    visited = sum(one.stored + one.failed for one in found)
    known = link.run([("HLEN", keys.partition("visits", at)) for at in partitions])
    return visited > sum(map(int, known))


def _own_visits(name: str, reader: FrontierReader) -> Iterator[tuple[bytes, FetchRecord]]:
    for key, visit in reader.visits():
        refused = visit.state is UrlState.REFUSED and visit.reason != ROBOTS_REASON
        if visit.url and not visit.shard and not refused:
            stored = visit.stored or (visit.time if visit.has_page else 0.0)
            yield key, replace(visit, shard=name, stored=stored)
