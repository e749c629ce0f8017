"""larmspider beside other crawlers: same pages, same machine, in turns. ``make bench``'s heart.

    python -m benchmarks.peers [--rounds 3] [--slow-pages 2000] [--only larmspider wget2]

nginx serves a documentation site (JDK: 10,136 pages) from memory. Each crawler runs alone, one
after the other and again for each round, over 16 connections, politeness off, breadth first. When
a page was sent is read from nginx's log, the same for all; a page is a distinct path that ends in
.html or / and was answered 200. Rates are of steady running, from the first page to the last, and
so without start and end; what the end costs (a last commit) is in the CPU and in "s in all".

The whole site takes crawlee five minutes and ht://Dig eight. With --slow-pages these two stop after
so many, and another table compares all over as many; but a site's first pages are no fair sample:
the JDK's are lists of 10,000 links, all of them new.

Prints the tables and writes results.md, results.json, results.png and results.svg (the plot needs
matplotlib, ``pip install -e '.[bench]'``) into --output.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks import peer_report
from benchmarks.measured_run import Run, measure
from benchmarks.peer_crawlers import PEERS, Peer, Task
from benchmarks.peer_report import Figures
from benchmarks.sites import SITES, DocsSite
from tests.support.servers.nginx import Nginx, NginxRequest

ADDRESS = "127.21.0.1"
_WHOLE = 0.9
"""Of the most pages that any of them found: so many count as the whole site."""


def page_times(requests: Sequence[NginxRequest]) -> list[float]:
    """When each page was sent for the first time, in order."""
    first: dict[str, float] = {}
    for request in requests:
        path = request.target.partition("?")[0]
        if request.status == 200 and path.endswith((".html", "/")):
            first.setdefault(path, request.time)
    return sorted(first.values())


def figures(run: Run, times: list[float], pages: int = 0) -> Figures:
    """Of the first ``pages`` of a run; 0: of all, with what came after the last page."""
    whole = not pages
    times = times[: pages or len(times)]
    begin, end = times[0], run.ended if whole else times[-1]
    cpu = run.cpu_after(begin) if whole else run.cpu_between(begin, end)
    return Figures(
        pages=len(times),
        rate=(len(times) - 1) / (times[-1] - begin),
        cpu_ms=cpu * 1000 / len(times),
        main_ms=run.main_between(begin, end) * 1000 / len(times),
        peak_mb=run.peak_rss / 1e6,
        seconds=run.ended - run.began if whole else times[-1] - begin,
    )


def crawl(peer: Peer, site: DocsSite, options: argparse.Namespace) -> tuple[Run, list[float]]:
    """One run of one crawler, and when its pages were sent."""
    with (
        tempfile.TemporaryDirectory(prefix="peers-", dir=options.scratch) as folder,
        Nginx({ADDRESS: site.folder}) as server,
    ):
        start = server.url(ADDRESS, site.start)
        pages = options.slow_pages if peer.slow else options.pages
        task = Task(start, urlsplit(start).netloc, Path(folder), pages, options.crawlee)
        command = peer.command(task)
        assert command is not None
        environment = {**os.environ, **command.environment}
        run = measure(
            command.arguments, task.folder, seconds=options.seconds, environment=environment
        )
        times = page_times(server.requests())
        if len(times) < 2 or (run.status not in peer.statuses and not run.killed):
            print((task.folder / "output").read_text("utf-8", "replace")[-2000:], file=sys.stderr)
            raise SystemExit(f"{peer.name}: {len(times)} pages, exit status {run.status}")
        return run, times


def available(names: Sequence[str] | None, options: argparse.Namespace) -> list[Peer]:
    """The crawlers that are asked for and installed."""
    found = []
    for peer in PEERS:
        if names and peer.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            task = Task("http://h/", "h", Path(folder), 1, options.crawlee)
            if peer.command(task) is None:
                print(f"{peer.name}: not installed, left out", file=sys.stderr)
            else:
                found.append(peer)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--site", choices=SITES, default="openjdk-17-doc")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=0, help="0: the whole site")
    parser.add_argument("--slow-pages", type=int, default=0, help="for the slow ones")
    parser.add_argument("--seconds", type=float, default=900.0, help="a run's longest time")
    parser.add_argument("--only", nargs="+", choices=[peer.name for peer in PEERS])
    parser.add_argument("--crawlee", type=Path, help="the folder of npm install @crawlee/cheerio")
    parser.add_argument("--scratch", type=Path, help="where the crawlers write")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent)
    options = parser.parse_args()
    site = SITES[options.site]
    if not site.installed:
        parser.error(f"the Debian package {site.package} is not installed")
    peers = available(options.only, options)
    print(f"{site.package}: {site.warm():,} files of pages; {options.rounds} rounds", flush=True)
    runs: dict[str, list[tuple[Run, list[float]]]] = {peer.name: [] for peer in peers}
    for number in range(options.rounds):
        for peer in peers if number % 2 else reversed(peers):
            run, times = crawl(peer, site, options)
            runs[peer.name].append((run, times))
            one = figures(run, times)
            print(
                f"  round {number + 1} {peer.name:22}{one.pages:7,} pages {one.rate:8.1f}/s"
                f" {one.cpu_ms:7.2f} ms CPU a page, {one.main_ms:7.2f} on the main thread",
                flush=True,
            )
    common = min(len(times) for one in runs.values() for _, times in one)
    whole = {name: [figures(*run) for run in found] for name, found in runs.items()}
    full = max(one.pages for found in whole.values() for one in found)
    limited = common < full * _WHOLE
    first = {name: [figures(*run, common) for run in found] for name, found in runs.items()}
    if limited:
        whole = {name: found for name, found in whole.items() if found[0].pages > full * _WHOLE}
    peer_report.write(options.output, site.package, peers, first if limited else {}, whole)


if __name__ == "__main__":
    main()
