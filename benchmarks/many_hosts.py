"""What it costs that pages lie on thousands of hosts instead of a few.

    python benchmarks/many_hosts.py --pages 10000 --hosts 50 5000 --rounds 3

Crawls as many pages from 50 hosts and from 5,000, in turns, politeness off, from as many seeds, and
prints requests a second from the first to the last, and CPU microseconds for each. Four ways:

    no network       answers come out of memory, no robots.txt: what differs is the crawler itself,
                     and most of that the frontier. This is the fair comparison.
    new connections  real hosts at loopback addresses, no robots.txt, a connection for every request
    kept alive       the same, but connections stay open: 50 hosts spare 9,950 connects
    robots.txt too   kept alive, and one more request for every host: 5,000 more with 5,000 hosts

"in the scheduler" is the time inside its methods, which Scrapy's engine and our middlewares call.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from scrapy.http import HtmlResponse

from larmspider.scheduler.scheduler import FrontierScheduler
from tests.support.servers.many_hosts import ManyHosts, Site, address

ROOT = Path(__file__).parents[1]
PLACES = 32
PORT = 8000  # nobody listens there: answers come out of memory
ANSWER_SECS = 0.03
"""Until a host out of memory answers: all places are in use, as in a crawl of real hosts."""
WAYS: dict[str, tuple[bool, dict[str, Any]]] = {
    "no network": (
        True,
        {"ROBOTSTXT_OBEY": False, "DOWNLOAD_HANDLERS": '{"http": "many_hosts.MemoryHandler"}'},
    ),
    "new connections": (False, {"ROBOTSTXT_OBEY": False}),
    "kept alive": (True, {"ROBOTSTXT_OBEY": False}),
    "robots.txt too": (True, {"ROBOTSTXT_OBEY": True}),
}
"""Whether connections are kept alive, and settings."""
_TIMED = ("next_request", "enqueue_request", "known", "end_robots", "wake")


class TimedScheduler(FrontierScheduler):
    """The scheduler; at its end times.json says how often each method ran, and how long in all."""

    def __init__(self, crawler: Any) -> None:
        super().__init__(crawler)
        self.times: dict[str, list[float]] = {}
        self.handed_out = 0
        self.begin = self.end = (0, 0.0, 0.0)
        for name in _TIMED:
            setattr(self, name, self._timed(name, getattr(self, name)))

    def open(self, spider: Any) -> None:
        super().open(spider)
        self.frontier.answered = self._timed("answered", self.frontier.answered)
        self.leases.settle = self._timed("settle", self.leases.settle)

    def next_request(self) -> Any:
        request = super().next_request()
        if request is not None:
            self.handed_out += 1
            self.end = self._now()
            if self.handed_out == 1:
                self.begin = self.end
        return request

    def _now(self) -> tuple[int, float, float]:
        """Requests so far, wall clock and CPU seconds."""
        return self.handed_out, time.perf_counter(), time.process_time()

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        total = self.times.setdefault(name, [0, 0.0])

        @functools.wraps(method)
        def timed(*arguments: Any, **named: Any) -> Any:
            begin = time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                total[0] += 1
                total[1] += time.perf_counter() - begin

        return timed

    def close(self, reason: str) -> Any:
        window = [end - begin for begin, end in zip(self.begin, self.end, strict=True)]
        Path("times.json").write_text(json.dumps([*window, self.times]))
        return super().close(reason)


class MemoryHandler:
    """The pages of the real hosts, without hosts."""

    lazy = False

    def __init__(self, crawler: Any) -> None:
        self.site = Site(int(os.environ["MANY_HOSTS_PAGES"]))
        self.headers = {"Content-Type": "text/html; charset=utf-8"}

    @classmethod
    def from_crawler(cls, crawler: Any) -> MemoryHandler:
        return cls(crawler)

    async def download_request(self, request: Any) -> HtmlResponse:
        body = self.site.page("/" + request.url.split("/", 3)[3])
        assert body is not None
        await asyncio.sleep(ANSWER_SECS)
        return HtmlResponse(request.url, headers=self.headers, body=body, request=request)

    async def close(self) -> None:
        pass


class Figures(NamedTuple):
    """Of one crawl: requests a second, CPU microseconds each, scheduler microseconds a page."""

    rate: float
    cpu: float
    scheduler: float
    calls: dict[str, list[float]]


def crawl(hosts: int, pages: int, seeds: int, way: str, profile: Path | None = None) -> Figures:
    """``pages`` pages from ``hosts`` hosts, of which ``seeds`` are named at the start."""
    keep_alive, settings = WAYS[way]
    settings = settings | {
        "CONCURRENT_REQUESTS": PLACES,
        "DOWNLOAD_DELAY": 0,
        "LARM_DELAY_RESPONSE_FACTOR": 0,
        "SCHEDULER": "many_hosts.TimedScheduler",
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="many_hosts")))
        port = PORT
        if "DOWNLOAD_HANDLERS" not in settings:
            servers = ManyHosts(hosts, pages=pages // hosts, keep_alive=keep_alive)
            port = stack.enter_context(servers).port
        names = [f"http://{address(number)}:{port}/" for number in range(hosts)]
        paths = ["", *(f"p{number}.html" for number in range(1, seeds // hosts))]
        (folder / "seeds.txt").write_text("\n".join(n + path for path in paths for n in names))
        command = [sys.executable, *(["-m", "cProfile", "-o", str(profile)] if profile else [])]
        command += ["-m", "scrapy", "crawl", "intranet", "-a", "start=@seeds.txt"]
        command += ["-a", rf"restrict=http://127\.[0-9.]+:{port}/.*"]
        for name, value in settings.items():
            command += ["-s", f"{name}={value}"]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}",
            "SCRAPY_SETTINGS_MODULE": "larmspider.settings",
            "MANY_HOSTS_PAGES": str(pages // hosts),
        }
        with (folder / "log").open("w+") as log:
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )
            process.wait()
        stored = len((folder / "crawl" / "store.log").read_bytes().splitlines())
        if process.returncode or stored != pages:
            print((folder / "log").read_text()[-3000:], file=sys.stderr)
            raise SystemExit(f"{stored} of {pages} pages stored, status {process.returncode}")
        count, seconds, cpu, calls = json.loads((folder / "times.json").read_text())
    scheduler = sum(used for _, used in calls.values())
    return Figures(count / seconds, cpu * 1e6 / count, scheduler * 1e6 / pages, calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--hosts", type=int, nargs=2, default=[50, 5000], metavar=("FEW", "MANY"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--profile", type=Path, help="cProfile files, FOLDER/<hosts>.prof")
    options = parser.parse_args()
    if any(options.pages % hosts for hosts in options.hosts):
        parser.error("every host has as many pages: --pages must be a multiple of --hosts")
    seeds = max(options.hosts)
    for way in options.ways:
        print(f"{way}, {options.pages:,} pages, {PLACES} places")
        rates: dict[int, list[Figures]] = {hosts: [] for hosts in options.hosts}
        for at in range(options.rounds):
            for hosts in options.hosts if at % 2 else reversed(options.hosts):
                profile = options.profile and options.profile / f"{hosts}.prof"
                rates[hosts].append(crawl(hosts, options.pages, seeds, way, profile))
        for hosts, found in rates.items():
            speed, cpu, scheduler = (
                statistics.median(figures[at] for figures in found) for at in range(3)
            )
            print(
                f"  {hosts:5,} hosts: {speed:6.0f} requests/s, CPU {cpu:5.0f} us each,"
                f" {scheduler:4.0f} us a page in the scheduler"
            )
            for name, (count, seconds) in found[-1].calls.items():
                if count:
                    each = seconds * 1e6 / count
                    print(
                        f"      {name:16}{count / options.pages:6.2f} a page, {each:5.0f} us each"
                    )
        few, many = (rates[hosts] for hosts in options.hosts)
        pairs = [b.rate / a.rate for a, b in zip(few, many, strict=True)]
        print(f"  many / few: {statistics.median(pairs):.0%} (rounds: ", end="")
        print(", ".join(f"{pair:.0%}" for pair in pairs), end="); ")
        pairs = [a.cpu / b.cpu for a, b in zip(few, many, strict=True)]
        print(f"by CPU time {statistics.median(pairs):.0%}", flush=True)


if __name__ == "__main__":
    main()
