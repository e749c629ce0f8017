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

Prints the tables and writes results.md into --output.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.meter import Process, measure
from benchmarks.peer_crawlers import PEERS, Peer, Task
from benchmarks.sites import SITES, DocsSite
from tests.support.servers.nginx import Nginx, NginxRequest

ADDRESS = "127.21.0.1"
_WHOLE = 0.9
"""Of the most pages that any of them found: so many count as the whole site."""


STOCK = "Scrapy CrawlSpider"
_WHAT = """\
`python -m benchmarks.peers`, {rounds} rounds in turns, medians; {machine}. {site} served by nginx
on the same machine, 16 connections, no delay, breadth first. Pages/s from the first page to the
last, by nginx's log. CPU in milliseconds a page: of the process with all its threads and children,
and of its main thread. Memory is that of the largest process, pages of mapped files included.
Several workers of larmspider are not among them, for one of them has a whole host:
[workers.md](workers.md).
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one run: pages a second, CPU milliseconds a page in all and on the main thread, peak
    memory, and seconds in all."""

    pages: float
    rate: float
    cpu_ms: float
    main_ms: float
    peak_mb: float
    seconds: float


def page_times(requests: Sequence[NginxRequest]) -> list[float]:
    """When each page was sent for the first time, in order."""
    first: dict[str, float] = {}
    for request in requests:
        path = request.target.partition("?")[0]
        if request.status == 200 and path.endswith((".html", "/")):
            first.setdefault(path, request.time)
    return sorted(first.values())


def figures(run: Process, times: list[float], pages: int = 0) -> Figures:
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


def crawl(peer: Peer, site: DocsSite, options: argparse.Namespace) -> tuple[Process, list[float]]:
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


Found = Mapping[str, Sequence[Figures]]
"""Crawler -> one Figures a round."""


def median(found: Sequence[Figures]) -> Figures:
    """Each figure's median over the rounds."""
    return Figures(*(statistics.median(one) for one in zip(*map(astuple, found), strict=True)))


def ratio(found: Sequence[Figures], base: Sequence[Figures]) -> float:
    """How many times as fast, the median over the rounds."""
    pairs = zip(found, base, strict=True)
    return statistics.median(one.rate / other.rate for one, other in pairs)


def table(found: Found) -> list[str]:
    """A Markdown table, the fastest first."""
    base = found.get(STOCK)
    lines = [
        f"| crawler | pages | pages/s | x {STOCK} | CPU ms | of it main thread | MB | s in all |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in sorted(found.items(), key=lambda item: -median(item[1]).rate):
        one = median(runs)
        times = f"{ratio(runs, base):.1f}" if base else ""
        lines.append(
            f"| {name} | {one.pages:,.0f} | {one.rate:,.0f} | {times} | {one.cpu_ms:.2f}"
            f" | {one.main_ms:.2f} | {one.peak_mb:.0f} | {one.seconds:.1f} |"
        )
    return lines


def features(peers: Sequence[Peer]) -> list[str]:
    """What each does and does not, as a Markdown table."""
    lines = [
        "| crawler | which links it takes | stores | index | politeness | goes on after a stop"
        " | remark |",
        "|---|---|---|---|---|---|---|",
    ]
    for peer in peers:
        answers = (peer.links, peer.stores, peer.index, peer.polite, peer.restart, peer.remark)
        lines.append(f"| {peer.name} | " + " | ".join(answer or "-" for answer in answers) + " |")
    return lines


def machine() -> str:
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()},"
        f" Scrapy {version('scrapy')}"
    )


def write(folder: Path, site: str, peers: Sequence[Peer], first: Found, whole: Found) -> None:
    """Print the tables, and write them into ``folder``. ``first`` is empty, or compares all over
    the first pages."""
    rounds = len(next(iter((first or whole).values())))
    parts = [
        "# larmspider beside other crawlers",
        _WHAT.format(rounds=rounds, machine=machine(), site=site),
    ]
    if first:
        pages = median(next(iter(first.values()))).pages
        parts += [f"## The first {pages:,.0f} pages of {site}\n", "\n".join(table(first)) + "\n"]
    parts += [
        "## The whole site, with start and end\n",
        "\n".join(table(whole)) + "\n",
        "## What they do\n",
        "\n".join(features(peers)) + "\n",
    ]
    print("\n".join(parts), flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.md").write_text("\n".join(parts))


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
    runs: dict[str, list[tuple[Process, list[float]]]] = {peer.name: [] for peer in peers}
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
    write(options.output, site.package, peers, first if limited else {}, whole)


if __name__ == "__main__":
    main()
