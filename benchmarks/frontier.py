"""What the frontier costs when it knows many URLs.

    python -m benchmarks.frontier --urls 10000 1000000 --hosts 1000

For each number of known URLs, in a process of its own: they are added (and committed as in a
crawl), then pages of 140 links are checked, 99% of them known, then URLs are pushed and popped.
Checks are measured twice: as long as most of the database's pages are not in the process's page
table yet, as after a start, and when each was read once. Commits are part of the time.

Figures are medians of rounds, by the clock and by the CPU time of the measuring thread: on a
machine that does other work only the second can be compared. Memory is RssAnon, which leaves out
the mapped file.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.meter import Rate, Timer, median, sample_of
from larmspider.frontier.frontier import CHECKPOINT_AT, AddressBook
from larmspider.frontier.hosts import HostPace, HostRules
from larmspider.frontier.politeness import Limits, Politeness
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.state import NO_ADDRESSES, FrontierOptions
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, UrlState, url_key
from larmspider.frontier.strategies import BreadthFirst
from larmspider.learned.learning import LearningFrontier

LINKS, MENU, ROUNDS = 140, 60, 7
SITE = 1000
STORED = FetchRecord(UrlState.STORED, 1.8e9, 200, etag='"abc123"', digest=bytes(16))


def private_mb() -> float:
    """Memory that is the process's own: not the mapped database file."""
    sample = sample_of(os.getpid())
    assert sample is not None
    return sample.anonymous / 2**20


def url(host: int, number: int) -> str:
    return f"http://host{host}.example/docs/section{number % 97}/page{number}.html"


def address_of(name: str) -> str:
    """Of host123.example: that of nine others too."""
    return name.removesuffix(".example")[:-1]


class Bench:
    """``grouped``: ten hosts share an address, as with LARM_GROUP_BY=address."""

    def __init__(self, path: Path, urls: int, hosts: int, *, grouped: bool = False) -> None:
        self.urls, self.hosts, self.each = urls, hosts, max(1, urls // hosts)
        self.random = random.Random(1)
        self.peak, self.number = 0.0, 2 * 10**9
        self.writer: threading.Thread | None = None
        politeness = Politeness(
            Limits(response_factor=0.0),
            HostRules([], HostPace(delay=0.0, connections=1)),
            self.random.random,
        )
        self.frontier = LearningFrontier(
            LmdbBackend(path),
            politeness,
            BreadthFirst(),
            SlotPool(32),
            FrontierOptions(
                addresses=AddressBook(address_of) if grouped else NO_ADDRESSES,
                hour_of=lambda _: 0.0,
            ),
        )
        self.frontier.recover()

    def fill(self) -> float:
        """Seconds to make the URLs known. Host by host, as the links of a site come together."""
        begin = time.perf_counter()
        for host in range(self.hosts):
            for start in range(0, self.each, 1000):
                stop = min(self.each, start + 1000)
                urls = [url(host, number) for number in range(start, stop)]
                self.frontier.add([self.frontier.entry(u, u, from_page=urls[0]) for u in urls])
                self.checkpoint_if_due()
        self.frontier.checkpoint({})
        return time.perf_counter() - begin

    def checkpoint_in_thread(self) -> None:
        """As a crawl does it: the loop goes on while the batch is written."""
        frontier = self.frontier
        if self.writer is not None:
            if self.writer.is_alive() and frontier.backend.pending < 3 * CHECKPOINT_AT:
                return
            self.writer.join()
            self.writer = None
            frontier.discard()
            self.peak = max(self.peak, private_mb())
        if frontier.wants_checkpoint:
            frontier.seal()
            self.writer = threading.Thread(target=frontier.commit, args=({"store.log": b"1"},))
            self.writer.start()

    def checkpoint_if_due(self) -> None:
        if self.frontier.wants_checkpoint:
            self.frontier.checkpoint({"store.log": b"1"})
            self.peak = max(self.peak, private_mb())

    def page(self, menu: int) -> list[str]:
        """Links of one page: ``menu`` on all pages of its site, 1% new, a tenth elsewhere.

        A site is a host, or as many as have 1,000 URLs together: so few links come twice.
        """
        pick, each = self.random.randrange, self.each
        width = min(self.hosts, max(1, SITE // each))
        home = pick(self.hosts // width) * width
        links = [url(home + number % width, number // width % each) for number in range(menu)]
        while len(links) < LINKS:
            host = home + pick(width) if pick(10) else pick(self.hosts)
            number = pick(each)
            links.append(url(host, each + 10**9 + number if not pick(100) else number))
        return links

    def checks(self, menu: int = 0, *, cached: bool = False) -> Rate:
        """Links a second; ``cached``: through RecentlySeen."""
        rates = []
        for _ in range(ROUNDS):
            pages, timer = [self.page(menu) for _ in range(300)], Timer()
            with timer:
                for links in pages:
                    self.check(links, cached=cached)
            rates.append(timer.rate(300 * LINKS))
        return median(rates)

    def check(self, links: list[str], *, cached: bool = False) -> None:
        if cached:
            self.frontier.known(links)
        else:
            self.frontier.backend.check([url_key(link) for link in links])

    def warm_up(self) -> None:
        """Read each page of the database's tree at least once, all but some in a hundred."""
        for _ in range(min(20_000, self.urls // 1000)):
            self.check(self.page(0))

    def push_pop(self, checkpoint: Callable[[], None], *, count: int = 30_000) -> tuple[Rate, Rate]:
        """(Push and pop alone, whole cycles) a second.

        A cycle: a new URL in, one out, its answer, its acknowledgement, and its part of a commit.
        """
        alone, whole = [], []
        frontier = self.frontier
        for _ in range(ROUNDS):
            self.number += count
            urls = [url(self.random.randrange(self.hosts), self.number + at) for at in range(count)]
            cycles, pushing = Timer(), Timer()
            with cycles:
                for start in range(0, count, 10):
                    links, leases = urls[start : start + 10], []
                    with pushing:
                        frontier.add(
                            [frontier.entry(u, u, depth=1, from_page=links[0]) for u in links]
                        )
                        while len(leases) < len(links) and (lease := frontier.pop()):
                            leases.append(lease)
                    if len(leases) < len(links):
                        raise SystemExit("the frontier has nothing to fetch")
                    for lease in leases:
                        frontier.answered(lease, 0.001)
                        frontier.acknowledge(lease, STORED)
                    checkpoint()
            whole.append(cycles.rate(count))
            alone.append(pushing.rate(count))
        if self.writer is not None:
            self.writer.join()
            frontier.discard()
            self.writer = None
        frontier.checkpoint({})
        return median(alone), median(whole)

    def measure(self) -> None:
        """Prints the rates."""
        print(f"  {'':34}{'a second':>12}{'a CPU second':>14}")
        before = faults()
        print(f"  {'link checks, most pages unmapped':34}{self.checks()}")
        print(f"    page faults a link {(faults() - before) / (ROUNDS * 300 * LINKS):.2f}")
        self.warm_up()
        before = faults()
        print(f"  {'link checks, nothing repeated':34}{self.checks()}")
        print(f"    page faults a link {(faults() - before) / (ROUNDS * 300 * LINKS):.2f}")
        print(f"  {'the same through recently seen':34}{self.checks(cached=True)}")
        print(f"  {f'{MENU} of {LINKS} links a menu':34}{self.checks(MENU, cached=True)}")
        alone, inline = self.push_pop(self.checkpoint_if_due)
        print(f"  {'push+pop':34}{alone}")
        print(f"  {'with answer, acknowledge, commit':34}{inline}")
        _, thread = self.push_pop(self.checkpoint_in_thread)
        print(f"  {'... commits in a thread':34}{thread}")
        self.frontier.audit()


def faults() -> int:
    """Page faults of this process so far, those that read the disk among them."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_minflt + usage.ru_majflt


def run(urls: int, hosts: int, folder: str, *, grouped: bool) -> None:
    path = Path(tempfile.mkdtemp(prefix="frontier", dir=folder))
    try:
        bench = Bench(path, urls, hosts, grouped=grouped)
        filled = bench.fill()
        before = time.perf_counter()
        print(f"{urls:,} URLs, {hosts:,} hosts: filled in {filled:.1f} s ({urls / filled:,.0f}/s)")
        bench.measure()
        size = sum(file.stat().st_blocks for file in path.iterdir()) * 512 / 2**20
        print(f"  {'private MB':34}{private_mb():12,.0f}   (peak {bench.peak:.0f})")
        print(f"  {'file MB':34}{size:12,.0f}")
        print(f"  (measured for {time.perf_counter() - before:.0f} s)", flush=True)
        bench.frontier.backend.close()
    finally:
        shutil.rmtree(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where the database goes")
    parser.add_argument("--group-by", choices=["host", "address"], default="host")
    options = parser.parse_args()
    if len(options.urls) == 1:
        run(options.urls[0], options.hosts, options.folder, grouped=options.group_by == "address")
        return
    for urls in options.urls:
        sizes = ["--urls", str(urls), "--hosts", str(options.hosts), "--folder", options.folder]
        sizes += ["--group-by", options.group_by]
        subprocess.run([sys.executable, __file__, *sizes], check=True)


if __name__ == "__main__":
    main()
