"""Does a second worker double the rate? One, two, ... workers over one Redis, in turns.

    python -m benchmarks.workers [--workers 0 1 2] [--rounds 3] [--sites docs web] [--pages 10000]

A real redis-server (unix socket, ``appendonly yes``, ``everysec``: what ``scrapy workers`` starts),
nginx with many hosts (worker_run.py), politeness off, the whole chain on, 16 connections a
worker. 0 workers is one process without Redis. Each number of workers runs once free, on all
cores, and once with a core for each worker, which tells how the design scales from how many cores
are left: larmspider's index writes in threads, so one worker alone uses more than one core.

Printed and written to workers.md in --output: pages a second while all had work, the ratio to one
worker, CPU of all processes a page and what the cores could do at that, round trips and bytes to
Redis a page, memory, and what was lost before all had work and after the first had none.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.worker_run import KINDS, Idle, WorkersRun, crawl, serving
from tests.support.servers.redis import RedisServer

_ADDRESS = "127.39.255.1"
_LOADED = (
    "\nThe machine had other work to do: rates, their ratio and seconds say little here, CPU more."
)
_READS = """
*round trips*: times that the frontier sent commands to Redis and waited, a page. *reads*: times
that Redis read from its sockets, 16 KB at most each, heartbeats and questions about the end too."""
Way = tuple[str, int, bool]
"""Site, number of workers, whether each had one core."""

_COLUMNS = {
    "pages/s": lambda r: f"{r.rate:,.0f}",
    "in all": lambda r: f"{r.rate_in_all:,.0f}",
    "s: start": lambda r: f"{r.start_secs:.1f}",
    "unequal": lambda r: f"{r.idle_secs:.1f}",
    "end": lambda r: f"{r.end_secs:.1f}",
    "of": lambda r: f"{r.seconds:.1f}",
    "busiest": lambda r: f"{r.share:.0%}",
    "CPU ms: workers": lambda r: f"{r.cpu_workers:.2f}",
    "main threads": lambda r: f"{r.cpu_main:.2f}",
    "Redis": lambda r: f"{r.cpu_redis:.3f}",
    "nginx": lambda r: f"{r.cpu_nginx:.2f}",
    "round trips": lambda r: f"{r.round_trips:.3f}",
    "reads": lambda r: f"{r.reads:.3f}",
    "bytes to Redis": lambda r: f"{r.sent:,.0f}",
    "from Redis": lambda r: f"{r.received:,.0f}",
    "MB a worker": lambda r: f"{r.worker_mb:,.0f}",
    "MB of Redis": lambda r: f"{r.redis_mb:,.0f}",
}


def why_no_gain(found: dict[Way, list[WorkersRun]], cores: int) -> Iterator[str]:
    """The arithmetic behind the ratio of workers that may use all cores."""
    for site, workers, pinned in found:
        if workers == 1 and not pinned:
            one = median(found[site, workers, pinned])
            used = one.cpu_workers * one.rate / 1000
            yield (
                f"\n{site}: where workers may use all cores, one alone nearly does, as its index\n"
                f"writes in threads: {one.cpu_workers:.2f} ms of CPU a page at {one.rate:,.0f}"
                f" pages/s are {used:.1f} of {cores} cores,\nso others have little to gain."
            )


def median(runs: list[WorkersRun]) -> WorkersRun:
    """Each figure's."""
    rows = [asdict(run) for run in runs]
    return WorkersRun(**{name: statistics.median(row[name] for row in rows) for name in rows[0]})


def ratio(runs: list[WorkersRun], base: list[WorkersRun]) -> str:
    """Of pages a second: the median over the rounds, smallest and largest."""
    each = [one.rate / other.rate for one, other in zip(runs, base, strict=True)]
    return f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"


def report(found: dict[Way, list[WorkersRun]]) -> Iterator[str]:
    """A table a site."""
    cores = os.cpu_count() or 1
    for site in dict.fromkeys(site for site, _, _ in found):
        ways = {way: runs for way, runs in found.items() if way[0] == site}
        pages = max(run.pages for runs in ways.values() for run in runs)
        yield f"\n## {site}: {pages:,} pages\n"
        yield f"| workers | x one | the cores' limit | {' | '.join(_COLUMNS)} |"
        yield "|---" * (len(_COLUMNS) + 3) + "|"
        for (_, workers, pinned), runs in ways.items():
            name = f"{workers or 'one without Redis'}{', a core each' * pinned}"
            one, base = median(runs), found.get((site, 1, pinned))
            limit = (min(cores, max(workers, 1)) if pinned else cores) * 1000 / one.cpu
            cells = [name, ratio(runs, base) if base else "-", f"{limit:,.0f}"]
            yield f"| {' | '.join([*cells, *(show(one) for show in _COLUMNS.values())])} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--sites", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--ways", nargs="+", choices=("free", "pinned"), default=["free", "pinned"])
    parser.add_argument("--set", "-s", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--scratch", type=Path, help="where sites and crawls lie")
    parser.add_argument("--output", type=Path, help="the folder of workers.md; none is written")
    options = parser.parse_args()
    found: dict[Way, list[WorkersRun]] = {}
    idle: list[str] = []
    with RedisServer(_ADDRESS, appendfsync="everysec") as server:
        for kind in options.sites:
            ways = [(kind, n, way == "pinned") for way in options.ways for n in options.workers]
            found |= {way: [] for way in ways}
            with serving(kind, options.pages, options.scratch) as site:
                for number in range(options.rounds):
                    for way in ways[:: -1 if number % 2 else 1]:
                        run = crawl(
                            way[1],
                            site,
                            server,
                            pinned=way[2],
                            settings=options.set,
                            scratch=options.scratch,
                        )
                        found[way].append(run)
                        shown = "  ".join(f"{name} {show(run)}" for name, show in _COLUMNS.items())
                        print(f"{number + 1} {way}: {run.pages:,} pages  {shown}", flush=True)
        with serving("web", 50, options.scratch) as site:
            for number in sorted({1, max(options.workers)}):
                measured = Idle.measure(number, site, server)
                idle.append(f"- {number}: {measured}.")
    load = os.getloadavg()[2]
    lines = [
        "# Workers that share a crawl\n",
        f"`python -m benchmarks.workers --rounds {options.rounds} --pages {options.pages}`, rounds"
        f" in turns, medians; {os.cpu_count()} cores, {platform.machine()}, Python"
        f" {platform.python_version()}; load of the last quarter of an hour, its own included,"
        f" {load:.1f}.",
        *([_LOADED] if load > 2.5 * (os.cpu_count() or 1) else []),
        _READS,
        *why_no_gain(found, os.cpu_count() or 1),
        *report(found),
        "\n## Workers that have nothing to do\n",
        *idle,
    ]
    print("\n".join(lines))
    if options.output:
        (options.output / "workers.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
