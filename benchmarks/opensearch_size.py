"""Many generated pages in a cluster of OpenSearch: into it, its disk, and what people type.

    python -m benchmarks.opensearch_size --pages 200000 --nodes 3
    python -m benchmarks.opensearch_size --pages 1000000 --heap 2g --ask-every 200000 --index DIR

The pages are benchmarks/generated_text.py's. They go through the spool, 5,000 at a time, and are
sent as `scrapy outbox --send` sends them. Then queries of the `MIX` of benchmarks/search.py are
typed into the search over OpenSearch, by one client, with facets and snippets; words are drawn from
our own index of the first ``--drawn`` pages, which ``--index`` keeps or already has. With
``--compare`` the same queries go to that index.

CPU of the server is the sum of all nodes, from /proc. Making the pages is not counted.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from scrapy.settings import Settings

from benchmarks.generated_text import WORDS, GeneratedPages
from benchmarks.opensearch import cpu_of, size_of
from benchmarks.search import MIX, TOGETHER, build, kinds, percentile
from larmspider.items import Page
from larmspider.pipelines.outbox.facts import IndexFacts
from larmspider.pipelines.outbox.sender import Sender
from larmspider.pipelines.outbox.spool import FOLDER, Spool
from larmspider.plugins.opensearch.engine import searcher_of
from larmspider.plugins.opensearch.receiver import OpenSearchReceiver
from larmspider.search.searcher import Searcher
from tests.support.servers.opensearch.cluster import OpenSearchCluster

_SLICE = 5_000  # pages in the spool at a time
_NAME = "generated"
Ask = Callable[[], None]
_JVM = ("-XX:+UseG1GC", "-XX:G1ReservePercent=25", "-XX:InitiatingHeapOccupancyPercent=30")
"""As OpenSearch's own jvm.options. With another collector the circuit breaker counts garbage: nodes
of 512 MB refused queries after 200,000 pages."""
_WARM_UP = 20
"""Queries before the measured ones: a node that has just started takes ten times as long, until
Java has compiled its code."""


class Meter:
    """Seconds by the clock, and of CPU: of this process and of the nodes."""

    def __init__(self, nodes: Sequence[int]) -> None:
        self._nodes = nodes
        self.clock = self.own = self.server = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        before = self._now()
        yield
        after = self._now()
        self.clock += after[0] - before[0]
        self.own += after[1] - before[1]
        self.server += after[2] - before[2]

    def _now(self) -> tuple[float, float, float]:
        return time.monotonic(), time.process_time(), sum(map(cpu_of, self._nodes))

    def of_a_page(self, pages: int) -> str:
        return (
            f"{pages / self.clock:,.0f} pages/s; a page: sender {self.own / pages * 1e3:.2f} ms,"
            f" server {self.server / pages * 1e3:.2f} ms"
        )


def _wait(secs: float) -> bool:
    time.sleep(secs)
    return True


def send(
    cluster: OpenSearchCluster, crawl: Path, pages: Iterator[Page], often: int, ask: Ask
) -> None:
    """Send the pages; ``ask`` after each ``often`` of them, and at the end."""
    settings = Settings({"LARM_OPENSEARCH_URL": cluster.url(_NAME)})
    receiver = OpenSearchReceiver.from_settings(settings)
    spool, facts = Spool(crawl / FOLDER), IndexFacts()
    spool.open()
    sender = Sender(receiver, crawl / FOLDER, _wait)
    receiver.connect()
    nodes = [node.pid for node in cluster.nodes]
    whole, recent, number = Meter(nodes), Meter(nodes), 0
    while some := list(islice(pages, _SLICE)):
        for page in some:
            spool.append(page, page.fetched, body=False, facts=facts)
        end = spool.flush()
        with whole.running(), recent.running():
            sender.send_up_to(end.offset)
        spool.forget(end.offset)
        number += len(some)
        if number % (4 * _SLICE) == 0:
            print(f"{number:>11,}: {recent.of_a_page(4 * _SLICE)}", flush=True)
            recent = Meter(nodes)
        if often and number % often == 0:
            show_disk(cluster, number)
            ask()
    with whole.running():
        sender.catch_up()
        cluster.ask("POST", f"/{_NAME}/_refresh")
    print(f"{number:,} pages: {whole.of_a_page(number)}", flush=True)
    assert (sender.cursor.sent, sender.cursor.dead) == (number, 0)
    receiver.close()
    spool.close()
    show_disk(cluster, number)
    ask()


def show_disk(cluster: OpenSearchCluster, pages: int) -> None:
    cluster.ask("POST", f"/{_NAME}/_refresh")
    cluster.ask("POST", f"/{_NAME}/_flush")
    stats = cluster.ask("GET", f"/{_NAME}/_stats/store,docs,segments")["_all"]
    assert stats["primaries"]["docs"]["count"] == pages, stats
    primaries, total = (stats[one]["store"]["size_in_bytes"] for one in ("primaries", "total"))
    print(
        f"disk: {primaries / pages:,.0f} bytes a page in primaries, {total / pages:,.0f} with"
        f" replicas; {stats['primaries']['segments']['count']} segments"
    )


def ask_mix(searcher: Searcher, drawn_from: Searcher, nodes: Sequence[int], rounds: int) -> None:
    """Queries of each kind in turns; the first `_WARM_UP` rounds are not measured."""
    ask = {
        kind: one
        for kind, one in kinds(searcher, random.Random(7), drawn_from).items()
        if kind in MIX
    }
    for _ in range(_WARM_UP):
        for one in ask.values():
            one()
    found: dict[str, list[Meter]] = {kind: [] for kind in ask}
    for _ in range(rounds):
        for kind, one in ask.items():
            found[kind].append(Meter(nodes))
            with found[kind][-1].running():
                one()
    found[TOGETHER] = [meter for meters in found.values() for meter in meters]
    print(f"{'milliseconds':<28}{'p50':>8}{'p95':>8}{'own CPU':>9}{'p95':>8}{'server':>9}")
    for kind, meters in found.items():
        clock, own = (sorted(getattr(one, name) for one in meters) for name in ("clock", "own"))
        server = sum(one.server for one in meters) / len(meters)  # in steps of 10 ms: a mean
        figures = [percentile(times, at) for times in (clock, own) for at in (0.5, 0.95)]
        figures.append(server)
        print(f"{kind:<28}" + "".join(f"{one * 1e3:>8.1f} " for one in figures), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Many generated pages in OpenSearch.")
    parser.add_argument("--pages", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=WORDS, help="of a page, on average")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--heap", default="1g")
    parser.add_argument("--shards", type=int, help="by default one for each node")
    parser.add_argument("--replicas", type=int, help="by default 1 in a cluster")
    parser.add_argument("--drawn", type=int, default=20_000, metavar="PAGES")
    parser.add_argument("--index", type=Path, help="our own index, kept for the next run")
    parser.add_argument("--compare", action="store_true", help="type into our own index, too")
    parser.add_argument("--ask-every", type=int, default=0, metavar="PAGES", help="queries, too")
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    shards = options.shards or options.nodes
    replicas = int(options.nodes > 1) if options.replicas is None else options.replicas
    numbers = {"index.number_of_shards": shards, "index.number_of_replicas": replicas}
    with tempfile.TemporaryDirectory() as folder:
        own = options.index or Path(folder) / "own"
        if not own.exists():
            _timed(build, own, options.words, options.drawn)
        drawn_from = Searcher.open(own)
        print(f"our own index: {size_of(own) / drawn_from.count():,.0f} bytes a page", flush=True)
        if options.compare:
            ask_mix(drawn_from, drawn_from, (), options.rounds)
        with OpenSearchCluster(options.nodes, options.heap, _JVM) as cluster:
            wanted = {"index_patterns": [f"{_NAME}-*"], "template": {"settings": numbers}}
            cluster.ask("PUT", "/_index_template/shards", wanted)
            print(f"{options.nodes} nodes, {options.heap} of heap each, {numbers}", flush=True)
            crawl = Path(folder) / "crawl"
            crawl.mkdir()
            pages = GeneratedPages(words=options.words).pages(options.pages)
            settings = Settings({"LARM_OPENSEARCH_URL": cluster.url(_NAME)})
            nodes = [node.pid for node in cluster.nodes]

            def ask() -> None:
                ask_mix(searcher_of([crawl], settings), drawn_from, nodes, options.rounds)

            send(cluster, crawl, pages, options.ask_every, ask)


def _timed(make: Callable[..., None], own: Path, words: int, pages: int) -> None:
    meter = Meter(())
    with meter.running():
        make(own, GeneratedPages(words=words), pages)
    print(f"our own index: {pages / meter.clock:,.0f} pages/s, making them included", flush=True)


if __name__ == "__main__":
    main()
