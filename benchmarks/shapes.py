"""Does a crawl's work grow with its size alone? CPU seconds of shapes that are ten times larger.

    python -m benchmarks.growth shapes                        # all, three sizes each: ten minutes
    python -m benchmarks.growth shapes --sizes 2              # without the largest ones: one minute
    python -m benchmarks.growth shapes --only links broken    # those whose name has such a word
    python -m benchmarks.growth shapes --sizes 2 --calls      # on a busy machine

A shape is one thing that may be large: a group of hosts, a class of URLs, a page with many links.
Each runs in a process of its own, on an LMDB of its own, without a network. The ratio is how many
times as much ten times the size costs: 10 is linear, more than 13 is marked, and the exit status
is 1. What is made before and after the work, such as URLs, is not measured. CPU time of the process
counts; on a machine that does other work it varies by half. There ``--calls`` counts the calls of
functions instead, which are the same each time, and miss only what one call does of itself.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import multiprocessing
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from larmspider.crawl.log_index.index import FOLDER, LogIndex
from larmspider.crawl.log_index.update import Update
from larmspider.crawl.logs import CrawlLogs
from larmspider.extensions.tuning import THRESHOLDS
from larmspider.extraction.pages.html import extract
from larmspider.frontier.frontier import AddressBook, Frontier
from larmspider.frontier.hosts import HostPace, HostRules, Lease
from larmspider.frontier.politeness import Limits, Politeness
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.state import NO_ADDRESSES, FrontierOptions
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.frontier.strategies import BreadthFirst
from larmspider.items import Page
from larmspider.learned.learning import LearningFrontier
from larmspider.learned.traps.host_traps import Budgets, HostTraps
from larmspider.pipelines.link_log import LinkLogPipeline
from larmspider.pipelines.outbox.spool import FOLDER as OUTBOX
from larmspider.pipelines.outbox.spool import Spool
from larmspider.reports.links import broken_links
from larmspider.urls.canonical import Canonicalizer

MOST = 13.0
"""How many times as much ten times the size may cost."""
STORED = FetchRecord(UrlState.STORED, 1.8e9, 200, etag='"abc123"', digest=bytes(16))
_BATCH = 1_000
_LINES_A_PAGE = 36
_SHOWN = 100
Clock = Callable[[], Any]
"""A context manager: what is within it counts."""


class Shape(NamedTuple):
    """``run`` does the work for a size in a folder."""

    name: str
    sizes: tuple[int, int, int]
    run: Callable[[Path, int, Clock], None]


def _frontier(folder: Path, address: str = "") -> Frontier:
    rules = HostRules([], HostPace(delay=0.0, connections=1))
    politeness = Politeness(Limits(response_factor=0.0), rules, random.Random(1).random)
    frontier = LearningFrontier(
        LmdbBackend(folder / "frontier"),
        politeness,
        BreadthFirst(),
        SlotPool(32),
        FrontierOptions(
            addresses=AddressBook(lambda _: address) if address else NO_ADDRESSES,
            hour_of=lambda _: 0.0,
        ),
    )
    frontier.recover()
    return frontier


def _add(frontier: Frontier, urls: Sequence[str]) -> None:
    for start in range(0, len(urls), _BATCH):
        some = urls[start : start + _BATCH]
        frontier.add([frontier.entry(url, url, from_page=urls[0]) for url in some])
        _commit(frontier)


def _commit(frontier: Frontier) -> None:
    if frontier.wants_checkpoint:
        frontier.checkpoint({})


def _fetch_all(frontier: Frontier, number: int) -> None:
    leases: list[Lease] = []
    for _ in range(number):
        while len(leases) < 16 and ((lease := frontier.pop()) is not None or not leases):
            if lease is not None:  # else hosts have joined their group
                leases.append(lease)
        lease = leases.pop(0)
        frontier.answered(lease, 0.001)
        frontier.acknowledge(lease, STORED)
        _commit(frontier)
    frontier.checkpoint({})


def hosts_of_one_address(folder: Path, size: int, counted: Clock) -> None:
    """A page of each is fetched, with LARM_GROUP_BY=address."""
    frontier = _frontier(folder, "10.0.0.7")
    urls = [f"http://h{number}.example/" for number in range(size)]
    with counted():
        _add(frontier, urls)
        _fetch_all(frontier, size)
    frontier.backend.close()


def hosts(folder: Path, size: int, counted: Clock) -> None:
    """A page of each is fetched."""
    frontier = _frontier(folder)
    urls = [f"http://h{number}.example/" for number in range(size)]
    with counted():
        _add(frontier, urls)
        _fetch_all(frontier, size)
    frontier.backend.close()


def urls_of_one_host(folder: Path, size: int, counted: Clock) -> None:
    """All are queued, then all are fetched."""
    frontier = _frontier(folder)
    urls = [f"http://h.example/a{number % 97}/{number}" for number in range(size)]
    with counted():
        _add(frontier, urls)
        _fetch_all(frontier, size)
    frontier.backend.close()


def urls_of_one_class(folder: Path, size: int, counted: Clock) -> None:
    """All belong to a trap: each is met and judged, held, and queued again at the end."""
    backend = LmdbBackend(folder / "frontier")
    frontier = _frontier_of(backend)
    urls = [f"http://h.example/list?page={number}&sort=a" for number in range(size)]
    entries = [frontier.entry(url, url, from_page="http://h.example/") for url in urls]
    traps = HostTraps.unpack(None, "h.example:80", Budgets())
    with counted():
        for start in range(0, size, _BATCH):
            some = entries[start : start + _BATCH]
            backend.add(some)
            backend.pop(some[0].host, 0.0, len(some))
            for entry in some:
                met = traps.meet(entry.normalized, 1, 1)
                if traps.wants_verdict(met):
                    traps.judge(met, 0.0, (entry.url, entry.from_page))
            backend.hold([(entry.key, 7) for entry in some])
            _commit(frontier)
        while backend.unhold(entries[0].host, 7, _BATCH):
            _commit(frontier)
        frontier.checkpoint({})
    backend.close()


def _frontier_of(backend: LmdbBackend) -> Frontier:
    rules = HostRules([], HostPace(delay=0.0, connections=1))
    politeness = Politeness(Limits(), rules, random.Random(1).random)
    options = FrontierOptions(hour_of=lambda _: 0.0)
    frontier = LearningFrontier(backend, politeness, BreadthFirst(), SlotPool(32), options)
    frontier.recover()
    return frontier


def forgotten_urls(folder: Path, size: int, counted: Clock) -> None:
    """Half of the known URLs are forgotten."""
    backend = LmdbBackend(folder / "frontier")
    frontier = _frontier_of(backend)
    urls = [f"http://h{number % 10}.example/{number}" for number in range(2 * size)]
    entries = [frontier.entry(url, url, from_page="") for url in urls]
    for start in range(0, len(entries), _BATCH):
        some = entries[start : start + _BATCH]
        backend.add(some)
        for host in {entry.host for entry in some}:
            backend.pop(host, 0.0, len(some))
        backend.acknowledge([(entry.key, STORED) for entry in some])
        _commit(frontier)
    frontier.checkpoint({})
    with counted():
        for start in range(0, size, _BATCH):
            backend.forget([entry.key for entry in entries[start : start + _BATCH]])
            _commit(frontier)
        frontier.checkpoint({})
    backend.close()


def links_of_one_page(folder: Path, size: int, counted: Clock) -> None:
    """They are read, resolved, looked up, logged, put into the outbox and queued."""
    links = "".join(f"<li><a href='/d{n % 89}/p{n}.html'>page {n}</a>" for n in range(size))
    body = f"<html><title>Index</title><body><ul>{links}</ul>".encode()
    frontier, forms = _frontier(folder), Canonicalizer().forms
    stats: Any = SimpleNamespace(inc_value=lambda *_: None)
    log, spool = LinkLogPipeline(folder, stats, every_link=True), Spool(folder / OUTBOX)
    log.open_spider()
    spool.open()
    with counted():
        page = extract(body, "http://h.example/", "text/html")
        for link in page.links:
            link.normalized, link.exact = forms(link.url)
        known = frontier.known([link.exact or "" for link in page.links])
        assert not any(known)
        page.digest, page.fetched = "0" * 40, 1.8e9
        asyncio.run(_logged(log, page))
        spool.append(page, 1.8e9, body=True)
        spool.flush()
        frontier.add(
            [frontier.entry(link.url, link.normalized, from_page=page.url) for link in page.links]
        )
        frontier.checkpoint({})
    log.close_spider()
    spool.close()
    frontier.backend.close()


async def _logged(log: LinkLogPipeline, page: Page) -> None:
    waiting = log.process_item(page)
    if not isinstance(waiting, Page):
        await waiting


def lines_of_links(folder: Path, size: int, counted: Clock) -> None:
    """`scrapy links --broken`, the first time: the logs are counted, broken links are shown."""
    pages = max(1, size // _LINES_A_PAGE)
    chance = random.Random(1)
    with (folder / "links.log").open("w") as log:
        for number in range(size):
            page = number // _LINES_A_PAGE
            at = number % 9 if number % 3 else chance.randrange(pages + pages // 9)
            url = f"http://h{at % 20}.example/p{at}"
            log.write(f"http://h{page % 20}.example/p{page}\t{url}\t{url}\t0\tto {at}\n")
    with (folder / "fetch.log").open("w") as log:
        for number in range(pages + pages // 9):
            url, result = (
                f"http://h{number % 20}.example/p{number}",
                404 if number >= pages else 200,
            )
            when = "2026-01-31T12:00:00.000Z"
            log.write(f"{when}\t{url}\t{url}\thttp://h/\t{result}\t9\t9\t\n")
    ends = {name: (folder / name).stat().st_size for name in ("links.log", "fetch.log")}
    with counted():
        Update(folder, ends, "b").run()
        with closing(LogIndex(folder / FOLDER)) as index:
            rows = index.broken()
            assert rows
            broken_links(CrawlLogs(folder, "b"), index, rows[:_SHOWN], 10)


SHAPES = (
    Shape("hosts of one address, a page each", (10_000, 100_000, 1_000_000), hosts_of_one_address),
    Shape("hosts, a page each", (10_000, 100_000, 1_000_000), hosts),
    Shape("URLs of one class of a trap", (4_000, 40_000, 400_000), urls_of_one_class),
    Shape("URLs of one host, queued and fetched", (10_000, 100_000, 1_000_000), urls_of_one_host),
    Shape("links of one page", (1_000, 10_000, 100_000), links_of_one_page),
    Shape("lines of links.log, links --broken", (18_000, 180_000, 1_800_000), lines_of_links),
    Shape("forgotten URLs", (5_000, 50_000, 500_000), forgotten_urls),
)


def cost(shape: Shape, size: int, folder: Path | None = None, *, calls: bool = False) -> float:
    """CPU seconds of the work, or millions of calls, in a process of its own."""
    receiving, sending = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("spawn").Process(
        target=_work, args=(SHAPES.index(shape), size, folder, calls, sending)
    )
    child.start()
    sending.close()
    try:
        found: float = receiving.recv()
    except EOFError:
        raise SystemExit(f"{shape.name}, {size:,}: the process has ended") from None
    finally:
        child.join()
    return found


def _work(number: int, size: int, scratch: Path | None, calls: bool, answer: Any) -> None:
    gc.freeze()  # as a crawl does (extensions/tuning.py)
    gc.set_threshold(*THRESHOLDS)
    with tempfile.TemporaryDirectory(prefix="shape-", dir=scratch) as folder:
        count = calls_of if calls else _seconds_of
        answer.send(count(SHAPES[number], Path(folder), size))


def _seconds_of(shape: Shape, folder: Path, size: int) -> float:
    spent = 0.0

    @contextmanager
    def counted() -> Iterator[None]:
        nonlocal spent
        begun = time.process_time()
        yield
        spent += time.process_time() - begun

    shape.run(folder, size, counted)
    return spent


def calls_of(shape: Shape, folder: Path, size: int) -> float:
    """Millions of calls of functions, of C and Python, in this process."""
    profile = cProfile.Profile()

    @contextmanager
    def counted() -> Iterator[None]:
        profile.enable()
        yield
        profile.disable()

    shape.run(folder, size, counted)
    return sum(entry.callcount for entry in profile.getstats()) / 1e6


def _least(shape: Shape, size: int, folder: Path | None, *, calls: bool) -> float:
    """The least of three runs, or the only one where it takes a second: other work disturbs."""
    least = cost(shape, size, folder, calls=calls)
    for _ in range(2 if least < 1 and not calls else 0):
        least = min(least, cost(shape, size, folder))
    return least


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 where a shape grows faster than it may."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growth shapes",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--sizes", type=int, choices=(2, 3), default=3, help="how many of each")
    parser.add_argument("--only", nargs="+", default=[""], help="shapes with such a word")
    parser.add_argument("--scratch", type=Path, help="where files lie meanwhile; 2 GB")
    parser.add_argument("--calls", action="store_true", help="count calls, not seconds")
    options = parser.parse_args(arguments)
    wanted = [one for one in SHAPES if any(word in one.name for word in options.only)]
    what, each_of = ("M calls", "calls") if options.calls else ("seconds", "us")
    print(f"{'':38}{'size':>12}{what:>10}{f'{each_of} each':>12}{'times':>8}")
    worst = 0.0
    for shape in wanted:
        found = []
        for size in shape.sizes[: options.sizes]:
            found.append(_least(shape, size, options.scratch, calls=options.calls))
            times = found[-1] / found[-2] if len(found) > 1 else 0.0
            worst = max(worst, times)
            shown = f"{times:8.1f}{' too much' if times > MOST else ''}" if times else ""
            each = found[-1] / size * 1e6
            print(
                f"{shape.name if len(found) == 1 else '':38}{size:12,}{found[-1]:10.3f}"
                f"{each:12.1f}{shown}",
                flush=True,
            )
    return int(worst > MOST)
