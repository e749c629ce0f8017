"""What workers cost that have nothing to do: LARM_KEEP_ALIVE, waiting for seeds.

idle = Idle.measure(2, site, redis)
idle.worker_ms, idle.redis_ms     # CPU a second, of one worker and of Redis
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from benchmarks.worker_groups import Group
from benchmarks.worker_run import ROOT, Redis, Worker, command
from benchmarks.worker_sites import Site

_SETTLE_SECS, _WATCH_SECS, _TICK_SECS = 25.0, 20.0, 0.5


@dataclass(frozen=True, slots=True)
class Idle:
    """A second: CPU milliseconds of one worker and, for all workers, of Redis, its reads from
    sockets and the bytes that it is sent."""

    worker_ms: float
    redis_ms: float
    reads: float
    sent: float

    @classmethod
    def measure(cls, workers: int, site: Site, server: Redis, *, tree: Path = ROOT) -> Self:
        """Of so many workers, after their first lease."""
        server.client.flushall()
        with tempfile.TemporaryDirectory("-idle") as name:
            folder, of_redis = Path(name), Group(server.pid)
            settings = ["LARM_KEEP_ALIVE=True", "LARM_MAX_PAGES=1"]
            crew = [
                Worker(one, command(one, site, folder, server.url, settings), folder, tree, -1)
                for one in (f"worker-{number}" for number in range(workers))
            ]
            try:
                groups = [of_redis, *(one.group for one in crew)]
                _tick(groups, _SETTLE_SECS)
                before, begin = server.figures(), time.time()
                _tick(groups, _WATCH_SECS)
                after, end = server.figures(), time.time()
            finally:
                for one in crew:
                    one.process.terminate()
                while any([one.group.tick() for one in crew]):  # noqa: C419 - each is to tick
                    time.sleep(_TICK_SECS)
            for one in crew:
                one.check()
        used = [1000 * group.cpu_between(begin, end) / (end - begin) for group in groups]
        reads, sent = (
            (after[name] - before[name]) / (end - begin)
            for name in ("total_reads_processed", "total_net_input_bytes")
        )
        return cls(sum(used[1:]) / workers, used[0], reads, sent)

    def __str__(self) -> str:
        return (
            f"{self.worker_ms:.0f} ms of CPU a second of each worker, {self.redis_ms:.1f} of Redis,"
            f" which reads {self.reads:.1f} times and {self.sent:,.0f} bytes a second from all"
        )


def _tick(groups: list[Group], seconds: float) -> None:
    end = time.time() + seconds
    while time.time() < end:
        for group in groups:
            group.tick()
        time.sleep(_TICK_SECS)
