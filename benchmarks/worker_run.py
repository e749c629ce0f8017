"""Crawls by some workers, and workers that are idle, measured: CPU of each, Redis, start and end.

    with Site("web", pages=10_000) as site:
        run = crawl(2, site, redis)
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
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from benchmarks.generated_web import Web
from benchmarks.meter import Process
from benchmarks.sites import SITES
from tests.support.servers.nginx import Nginx, NginxRequest

ROOT = Path(__file__).parents[1]
CONNECTIONS = 16
_TICK_SECS = 0.1
_TRIPS = re.compile(r"'larm/redis/round_trips': (\d+)")
_SETTLE_SECS, _WATCH_SECS, _IDLE_TICK_SECS = 25.0, 20.0, 0.5
KINDS = ("docs", "web")
JDK = SITES["openjdk-17-doc"]
_MODULE, _MODULE_PAGES = "/api/java.sql/", 155
_WEB_PAGES = 50
"""Of a host."""


def address(number: int) -> str:
    """The loopback address of a host: 127.39.0.1 and so on, as in generated_web.address()."""
    third, last = divmod(number, 250)
    return f"127.39.{third}.{last + 1}"


class Site:
    """About ``pages`` pages, served by nginx; files that have to be made lie in ``scratch``.

    A host belongs to one worker, so work is shared only where there are many. "docs" are the pages
    of one module of the JDK's documentation (Debian's openjdk-17-doc), at as many addresses as it
    takes: real pages, which never link to another host. "web" is generated_web.py's, written to
    files: one link of ten leads to another host.
    """

    def __init__(self, kind: str, pages: int, scratch: Path | None = None) -> None:
        self.kind, self.pages, self._scratch = kind, pages, scratch
        self.hosts = max(1, pages // (_MODULE_PAGES if kind == "docs" else _WEB_PAGES))
        self._stack = ExitStack()

    @property
    def seeds(self) -> list[str]:
        start = f"{_MODULE}module-summary.html" if self.kind == "docs" else "/"
        return [self.nginx.url(address(host), start) for host in range(self.hosts)]

    @property
    def restrict(self) -> str:
        """For spider argument ``restrict``."""
        below = _MODULE if self.kind == "docs" else "/"
        return rf"http://127[.]39[.][0-9.]+:{self.nginx.port}{below}.*"

    def sent(self, since: float) -> Iterator[NginxRequest]:
        """Pages that were sent after a time."""
        for one in self.nginx.requests():
            path = one.target.partition("?")[0]
            if one.time >= since and one.status == 200 and path.endswith((".html", "/")):
                yield one

    def __enter__(self) -> Self:
        folder = Path(
            self._stack.enter_context(tempfile.TemporaryDirectory("-site", dir=self._scratch))
        )
        folder.chmod(0o755)
        roots = [JDK.folder if self.kind == "docs" else folder / str(h) for h in range(self.hosts)]
        for root in roots:
            root.mkdir(exist_ok=True)
        served: dict[str, Path | str] = {address(host): root for host, root in enumerate(roots)}
        self.nginx = self._stack.enter_context(Nginx(served))
        if self.kind == "docs":
            JDK.warm()
        else:
            self._write(roots)
        return self

    def _write(self, roots: list[Path]) -> None:
        """The pages, now that their port is known."""
        web = Web(self.pages, self.hosts, self.nginx.port)
        for host, root in enumerate(roots):
            for page in range(web.of_host(host)):
                path = root / (web.path(page)[1:] or "index.html")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(web.page(host, page).replace(b"//127.22.", b"//127.39."))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()


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
        self.used = Process(self.process.pid, ours=True)

    def said(self) -> str:
        return self._output.read_text("utf-8", "replace")

    def check(self) -> None:
        """Raise SystemExit if it did not end well."""
        self.process.returncode = self.used.status
        if self.used.status:
            raise SystemExit(f"{self.name}: status {self.used.status}: {self.said()[-3000:]}")


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
        others = Process(server.pid), Process(site.nginx.pid)
        for at, one in enumerate(names):
            arguments = command(one, site, folder, url, settings or [])
            core = at % (os.cpu_count() or 1) if pinned else -1
            crew.append(Worker(one, arguments, folder, tree, core))
        while any([group.tick() for group in (*others, *(one.used for one in crew))][2:]):
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
    others: tuple[Process, Process],
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
        cpu_workers=sum(one.used.cpu_between(begin, end) for one in crew) * 1000 / steady,
        cpu_main=sum(one.used.main_between(begin, end) for one in crew) * 1000 / steady,
        cpu_redis=of_redis * 1000 / steady,
        cpu_nginx=of_nginx * 1000 / steady,
        round_trips=sum(int(one[1]) for one in trips if one) / pages,
        reads=info["total_reads_processed"] / pages,
        sent=info["total_net_input_bytes"] / pages,
        received=info["total_net_output_bytes"] / pages,
        worker_mb=max(worker.used.anonymous / 1e6 for worker in crew),
        redis_mb=info["used_memory_peak"] / 1e6,
    )


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
            folder, of_redis = Path(name), Process(server.pid)
            settings = ["LARM_KEEP_ALIVE=True", "LARM_MAX_PAGES=1"]
            crew = [
                Worker(one, command(one, site, folder, server.url, settings), folder, tree, -1)
                for one in (f"worker-{number}" for number in range(workers))
            ]
            try:
                groups = [of_redis, *(one.used for one in crew)]
                _tick(groups, _SETTLE_SECS)
                before, begin = server.figures(), time.time()
                _tick(groups, _WATCH_SECS)
                after, end = server.figures(), time.time()
            finally:
                for one in crew:
                    one.process.terminate()
                while any([one.used.tick() for one in crew]):  # noqa: C419 - each is to tick
                    time.sleep(_IDLE_TICK_SECS)
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


def _tick(groups: list[Process], seconds: float) -> None:
    end = time.time() + seconds
    while time.time() < end:
        for group in groups:
            group.tick()
        time.sleep(_IDLE_TICK_SECS)
