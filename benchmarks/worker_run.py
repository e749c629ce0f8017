"""Crawls by some workers, and workers that are idle, measured: CPU of each, Redis, start and end.

    with serving("web", pages=10_000) as site:
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
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from benchmarks.generated_web import Web
from benchmarks.meter import Process, crawl_command, crawl_environment
from benchmarks.sites import SITES
from tests.support.servers.nginx import Nginx, NginxRequest
from tests.support.servers.redis import RedisServer

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
    """About ``pages`` pages, served by nginx; files that have to be made lie in ``folder``.

    A host belongs to one worker, so work is shared only where there are many. "docs" are the pages
    of one module of the JDK's documentation (Debian's openjdk-17-doc), at as many addresses as it
    takes: real pages, which never link to another host. "web" is generated_web.py's, written to
    files: one link of ten leads to another host.
    """

    def __init__(self, kind: str, pages: int, folder: Path, running: ExitStack) -> None:
        self.hosts = max(1, pages // (_MODULE_PAGES if kind == "docs" else _WEB_PAGES))
        folder.chmod(0o755)
        roots = [JDK.folder if kind == "docs" else folder / str(h) for h in range(self.hosts)]
        for root in roots:
            root.mkdir(exist_ok=True)
        served: dict[str, Path | str] = {address(host): root for host, root in enumerate(roots)}
        self.nginx = running.enter_context(Nginx(served))
        below, start = (_MODULE, f"{_MODULE}module-summary.html") if kind == "docs" else ("/", "/")
        self.seeds = [self.nginx.url(address(host), start) for host in range(self.hosts)]
        self.restrict = rf"http://127[.]39[.][0-9.]+:{self.nginx.port}{below}.*"
        if kind == "docs":
            JDK.warm()
        else:
            self._write(pages, roots)

    def _write(self, pages: int, roots: list[Path]) -> None:
        """The pages, now that their port is known."""
        web = Web(pages, self.hosts, self.nginx.port)
        for host, root in enumerate(roots):
            for page in range(web.of_host(host)):
                path = root / (web.path(page)[1:] or "index.html")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(web.page(host, page).replace(b"//127.22.", b"//127.39."))

    def sent(self, since: float) -> Iterator[NginxRequest]:
        """Pages that were sent after a time."""
        for one in self.nginx.requests():
            path = one.target.partition("?")[0]
            if one.time >= since and one.status == 200 and path.endswith((".html", "/")):
                yield one


@contextmanager
def serving(kind: str, pages: int, scratch: Path | None = None) -> Iterator[Site]:
    with ExitStack() as running, tempfile.TemporaryDirectory("-site", dir=scratch) as folder:
        yield Site(kind, pages, Path(folder), running)


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


def figures(server: RedisServer) -> dict[str, float]:
    info: Any = server.client().info()
    names = ("total_net_input_bytes", "total_net_output_bytes", "total_reads_processed")
    return {name: float(info[name]) for name in (*names, "used_memory_peak")}


class Worker:
    """One of them, with its own name; without ``url`` alone; on ``core``, unless that is
    negative."""

    def __init__(
        self, name: str, site: Site, folder: Path, url: str, settings: list[str], core: int = -1
    ) -> None:
        self.name, self._output = name, folder / f"{name}.out"
        (folder / "seeds").write_text("\n".join(site.seeds))
        given: dict[str, object] = {
            "CONCURRENT_REQUESTS": CONNECTIONS,
            "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS,
            "LARM_KEPT_CONNECTIONS": site.hosts,
            "USER_AGENT": name,
        }
        given |= {"REDIS_URL": url, "LARM_WORKER": name} if url else {}
        given |= dict(setting.split("=", 1) for setting in settings)
        words = crawl_command(given, f"restrict={site.restrict}")
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                words, cwd=folder, env=crawl_environment(), stdout=output, stderr=output
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
    server: RedisServer,
    *,
    pinned: bool = False,
    settings: list[str] | None = None,
    scratch: Path | None = None,
    seconds: float = 900.0,
) -> WorkersRun:
    """Raises SystemExit, with the output's end, where a worker does not end well. ``pinned``: each
    has one core, in turn."""
    server.client().flushall()
    server.client().config_resetstat()
    names = [f"worker-{number}" for number in range(max(workers, 1))]
    url = server.unix_url if workers else ""
    with tempfile.TemporaryDirectory("-workers", dir=scratch) as name:
        folder, began, crew = Path(name), time.time(), []
        others = Process(server.pid), Process(site.nginx.pid)
        for at, one in enumerate(names):
            core = at % (os.cpu_count() or 1) if pinned else -1
            crew.append(Worker(one, site, folder, url, settings or [], core))
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
    server: RedisServer,
    others: tuple[Process, Process],
    began: float,
    ended: float,
) -> WorkersRun:
    times: dict[str, list[float]] = {worker.name: [] for worker in crew}
    for one in site.sent(began):
        times[one.user_agent].append(one.time)
    found = [sorted(of_one) for of_one in times.values() if of_one]
    every = sorted(time for of_one in found for time in of_one)
    pages, info = len(every), figures(server)
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
    def measure(cls, workers: int, site: Site, server: RedisServer) -> Self:
        """Of so many workers, after their first lease."""
        server.client().flushall()
        with tempfile.TemporaryDirectory("-idle") as name:
            of_redis = Process(server.pid)
            settings = ["LARM_KEEP_ALIVE=True", "LARM_MAX_PAGES=1"]
            crew = [
                Worker(f"worker-{number}", site, Path(name), server.unix_url, settings)
                for number in range(workers)
            ]
            try:
                groups = [of_redis, *(one.used for one in crew)]
                _tick(groups, _SETTLE_SECS)
                before, begin = figures(server), time.time()
                _tick(groups, _WATCH_SECS)
                after, end = figures(server), time.time()
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
