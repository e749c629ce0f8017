"""One crawl by some workers, measured: CPU of each group of processes, Redis, start and end.

    run = crawl(2, site, redis, options)
    run.rate          # pages a second while all workers had work
    run.start_secs    # until then

Each worker is ``scrapy crawl intranet``, told from the others by its User-Agent in nginx's log.
``workers`` 0 is one process without Redis, the frontier in LMDB alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from benchmarks.worker_groups import Group
from benchmarks.worker_sites import Site

ROOT = Path(__file__).parents[1]
CONNECTIONS = 16
_TICK_SECS = 0.1
_TRIPS = re.compile(r"'larm/redis/round_trips': (\d+)")


@dataclass(frozen=True, slots=True)
class WorkersRun:
    """Of one crawl. ``rate`` is steady: from the first page of the last worker to begin, after
    ``start_secs``, to the last page of the first to run out of work; the others had some for
    ``idle_secs`` more, and ``end_secs`` after the last page all had ended. ``share`` is that of the
    pages which the busiest worker had.

    CPU is milliseconds a page of that steady time: of all workers with their children, of their
    main threads, of Redis, of nginx. ``round_trips`` of the frontier, ``reads`` of Redis from its
    sockets (16 KB at most each, heartbeats and all), bytes ``sent`` to Redis and ``received`` are
    of the whole run, a page. Memory is MB, of the largest worker anonymous."""

    pages: int
    seconds: float
    rate: float
    rate_in_all: float
    start_secs: float
    idle_secs: float
    end_secs: float
    share: float
    cpu_workers: float
    cpu_main: float
    cpu_redis: float
    cpu_nginx: float
    round_trips: float
    reads: float
    sent: float
    received: float
    worker_mb: float
    redis_mb: float

    @property
    def cpu(self) -> float:
        """Of everything that runs on this machine for a page."""
        return self.cpu_workers + self.cpu_redis + self.cpu_nginx


@dataclass(frozen=True, slots=True)
class Redis:
    """The server that the workers share, by unix socket."""

    pid: int
    url: str
    client: redis.Redis

    def figures(self) -> dict[str, float]:
        info: Any = self.client.info()
        names = ("total_net_input_bytes", "total_net_output_bytes", "total_reads_processed")
        return {name: float(info[name]) for name in (*names, "used_memory", "used_memory_peak")}


def command(name: str, site: Site, folder: Path, url: str, settings: list[str]) -> list[str]:
    """A worker of this name in ``folder``; without ``url`` it is alone."""
    (folder / "seeds").write_text("\n".join(site.seeds))
    given = {
        "DOWNLOAD_DELAY": 0,
        "LARM_DELAY_RESPONSE_FACTOR": 0,
        "CONCURRENT_REQUESTS": CONNECTIONS,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS,
        "LARM_KEPT_CONNECTIONS": site.hosts,
        "USER_AGENT": name,
    }
    given |= {"REDIS_URL": url, "LARM_WORKER": name} if url else {}
    words = [sys.executable, "-m", "scrapy", "crawl", "intranet", "-astart=@seeds"]
    words += [f"-arestrict={site.restrict}", *(f"-s{key}={given[key]}" for key in given)]
    return [*words, *(f"-s{setting}" for setting in settings)]


class Worker:
    """One of them; on ``core`` alone, unless that is negative."""

    def __init__(self, name: str, words: list[str], folder: Path, tree: Path, core: int) -> None:
        self.name, self._output = name, folder / f"{name}.out"
        environment = {**os.environ, "PYTHONPATH": str(tree)}
        environment["SCRAPY_SETTINGS_MODULE"] = "larmspider.settings"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                words, cwd=folder, env=environment, stdout=output, stderr=output
            )
        if core >= 0:
            os.sched_setaffinity(self.process.pid, {core})  # threads to come inherit it
        self.group = Group(self.process.pid, ours=True)

    def said(self) -> str:
        return self._output.read_text("utf-8", "replace")

    def check(self) -> None:
        """Raise SystemExit if it did not end well."""
        self.process.returncode = self.group.status
        if self.group.status:
            raise SystemExit(f"{self.name}: status {self.group.status}: {self.said()[-3000:]}")


def crawl(
    workers: int,
    site: Site,
    server: Redis,
    *,
    pinned: bool = False,
    tree: Path = ROOT,
    settings: list[str] | None = None,
    scratch: Path | None = None,
    seconds: float = 900.0,
) -> WorkersRun:
    """Raises SystemExit, with the output's end, where a worker does not end well. ``pinned``: each
    has one core, in turn; ``tree``: the project that they run."""
    server.client.flushall()
    server.client.config_resetstat()
    names = [f"worker-{number}" for number in range(max(workers, 1))]
    url = server.url if workers else ""
    with tempfile.TemporaryDirectory("-workers", dir=scratch) as name:
        folder, began, crew = Path(name), time.time(), []
        others = Group(server.pid), Group(site.nginx.pid)
        for at, one in enumerate(names):
            arguments = command(one, site, folder, url, settings or [])
            core = at % (os.cpu_count() or 1) if pinned else -1
            crew.append(Worker(one, arguments, folder, tree, core))
        while any([group.tick() for group in (*others, *(one.group for one in crew))][2:]):
            time.sleep(_TICK_SECS)
            if time.time() > began + seconds:
                raise SystemExit(f"no end after {seconds:.0f} s: {crew[0].said()[-3000:]}")
        ended = time.time()
        for worker in crew:
            worker.check()
        return _figures(crew, site, server, others, began, ended)


def _figures(
    crew: list[Worker],
    site: Site,
    server: Redis,
    others: tuple[Group, Group],
    began: float,
    ended: float,
) -> WorkersRun:
    times: dict[str, list[float]] = {worker.name: [] for worker in crew}
    for one in site.sent(began):
        times[one.user_agent].append(one.time)
    found = [sorted(of_one) for of_one in times.values() if of_one]
    every = sorted(time for of_one in found for time in of_one)
    pages, info = len(every), server.figures()
    begin, end = max(one[0] for one in found), min(one[-1] for one in found)
    steady = sum(begin <= time <= end for time in every)
    trips = [_TRIPS.search(worker.said()) for worker in crew]
    of_redis, of_nginx = (group.cpu_between(begin, end) for group in others)
    return WorkersRun(
        pages=pages,
        seconds=ended - began,
        rate=steady / (end - begin),
        rate_in_all=pages / (ended - began),
        start_secs=begin - began,
        idle_secs=every[-1] - end,
        end_secs=ended - every[-1],
        share=max(map(len, found)) / pages,
        cpu_workers=sum(one.group.cpu_between(begin, end) for one in crew) * 1000 / steady,
        cpu_main=sum(one.group.main_between(begin, end) for one in crew) * 1000 / steady,
        cpu_redis=of_redis * 1000 / steady,
        cpu_nginx=of_nginx * 1000 / steady,
        round_trips=sum(int(one[1]) for one in trips if one) / pages,
        reads=info["total_reads_processed"] / pages,
        sent=info["total_net_input_bytes"] / pages,
        received=info["total_net_output_bytes"] / pages,
        worker_mb=max(worker.group.peak_mb for worker in crew),
        redis_mb=info["used_memory_peak"] / 1e6,
    )
