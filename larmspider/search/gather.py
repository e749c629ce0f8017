"""Asks several shards at the same time, and answers without a shard that fails.

    found = gather([(shard, partial(count, shard)) for shard in shards])    # in this order

Tantivy searches outside of Python's lock, so threads use all cores. A shard that raises an error or
exceeds `SHARD_SECS` is left out of all queries for `AGAIN_SECS`, and is named in each answer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Protocol, TypeVar

from larmspider.errors import CrawlDirError

SHARD_SECS = 5.0
"""The time limit of one shard of several; the median of a million pages takes 0.01 s."""
AGAIN_SECS = 10.0
"""After an error, the next query to a shard comes this much later: the other queries are then not
searched twice."""
MOST_CALLS = 64
"""Shards that are searched at a time, for all readers. A late search keeps its thread until it
ends; its shard gets no other meanwhile."""
CORES = len(os.sched_getaffinity(0))

T = TypeVar("T")
_threads = ThreadPoolExecutor(MOST_CALLS, thread_name_prefix="larm-shard")  # started when needed


class ShardError(CrawlDirError):
    """The index in ``directory`` cannot answer."""

    def __init__(self, directory: Path, text: str) -> None:
        super().__init__(text)
        self.directory = directory


class Outage:
    """Whether a shard is left out, and why. Shared by all readers of the shard."""

    def __init__(self) -> None:
        self._error: tuple[Path, str] | None = None  # a kept error would keep its commit open
        self._until = 0.0
        self._late: tuple[Future[Any], ...] = ()

    @property
    def error(self) -> ShardError | None:
        """None: the shard is searched."""
        self._late = tuple(future for future in self._late if not future.done())
        is_out = self._late or time.monotonic() < self._until
        return ShardError(*self._error) if self._error is not None and is_out else None

    def begin(self, error: ShardError, *late: Future[Any]) -> None:
        """``late``: the search that has not ended."""
        self._error, self._until = (error.directory, str(error)), time.monotonic() + AGAIN_SECS
        self._late += late


class Asked(Protocol):
    """A shard."""

    directory: Path
    outage: Outage


def gather(calls: Sequence[tuple[Asked, Callable[[], T]]]) -> list[T]:
    """The results of one call for each shard, in their order; one call after another if there is
    one shard or one core. Raises the first error, and begins the `Outage` of each shard that has
    failed."""
    if len(calls) < 2 or CORES < 2:
        return [call() for _, call in calls]
    futures = [_threads.submit(call) for _, call in calls]
    wait(futures, SHARD_SECS)
    for (shard, _), future in zip(calls, futures, strict=True):
        if not future.done():
            text = f"{shard.directory}: the index has not answered in {SHARD_SECS:g} seconds"
            shard.outage.begin(ShardError(shard.directory, text), future)
        elif isinstance(error := future.exception(), ShardError):
            shard.outage.begin(error)
    for shard, _ in calls:
        if error := shard.outage.error:
            raise error
    return [future.result() for future in futures]
