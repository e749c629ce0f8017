"""How much longer several shards take one after another than at the same time (gather.py).

The pages are benchmarks/generated_text.py's, dealt out to the shards; the queries are what people
type (`MIX` of benchmarks/search.py), with facets. Each query is asked in turns in both ways, and
must give the same answer. Run it:

    python -m benchmarks.shards [--documents 100000] [--shards 4] [--index DIR] [--rounds 20]

``shards`` is the shards' part: first matches, counts and facets. ``ratio``: at the same time, by
one after another. ``rest`` is the other part, in the asking thread: the parsed query, the queries
to Tantivy, the second look, snippets and copies.

Other programs make the clock useless on a busy machine. ``CPU ratio`` says what an idle one would
take: the CPU time of the calls, dealt out to the cores, by its sum.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from benchmarks.generated_text import WORDS, GeneratedPages
from benchmarks.search import MIX, TOGETHER, kinds
from larmspider.index.writer import IndexWriter
from larmspider.search import gather as gathering
from larmspider.search import searcher as searching
from larmspider.search.request import SearchRequest
from larmspider.search.results import Results
from larmspider.search.searcher import Searcher

COMMIT_PAGES = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=WORDS, help="of a page, on average")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--index", type=Path, help="where the shards are, or are to be kept")
    parser.add_argument("--rounds", type=int, default=20, help="queries of each kind")
    parser.add_argument("--again", type=int, default=5, help="times a query; the fastest counts")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = options.index or Path(scratch) / "shards"
        if not directory.exists():
            pages = GeneratedPages(words=options.words)
            build(directory, pages, options.documents, options.shards)
        found = sorted(path for path in directory.iterdir() if (path / "meta.json").exists())
        searcher = Searcher.of_workers(map(Searcher.open, found))
        compare(searcher, options.rounds, options.again)


def build(directory: Path, pages: GeneratedPages, count: int, shards: int) -> None:
    writers = [IndexWriter(directory / str(number)) for number in range(shards)]
    for n, page in enumerate(pages.pages(count), 1):
        writers[n % shards].add(page, page.digest)
        if n % COMMIT_PAGES == 0 or n == count:
            for writer in writers:
                writer.commit()
    for writer in writers:
        writer.close()


class Asked(NamedTuple):
    """Seconds of a query: of the whole, of the shards' part, and the CPU time of each call."""

    whole: float
    shards: float
    calls: Sequence[float]


class Clock:
    """Takes the time of the shards' part, in place of `gather`."""

    def __init__(self) -> None:
        self.seconds, self.calls = 0.0, list[float]()

    def gather(self, calls: Sequence[tuple[Any, Callable[[], Any]]]) -> list[Any]:
        def timed(call: Callable[[], Any]) -> Any:
            start = time.thread_time()
            found = call()
            self.calls.append(time.thread_time() - start)
            return found

        start = time.perf_counter()
        found = gathering.gather([(shard, lambda c=call: timed(c)) for shard, call in calls])
        self.seconds += time.perf_counter() - start
        return found

    def ask(self, searcher: Searcher, query: str, cores: int) -> tuple[Results, Asked]:
        gathering.CORES, self.seconds, self.calls = cores, 0.0, []
        start = time.perf_counter()
        found = searcher.search(SearchRequest(query, facets=True))
        return found, Asked(time.perf_counter() - start, self.seconds, self.calls)


def compare(searcher: Searcher, rounds: int, again: int) -> None:
    cores, clock = len(os.sched_getaffinity(0)), Clock()
    searching.gather = clock.gather  # type: ignore[assignment]
    heads = ("one by one", "at a time", "ratio", "CPU ratio", "rest", "rest, of all")
    print(f"{searcher.count():,} documents, {len(searcher.shards)} shards, {cores} cores; ms")
    print(f"{'kind':<28}" + "".join(f"{head:>13}" for head in heads))
    every = list[tuple[Asked, Asked]]()
    for kind, queries in asked_for(searcher, rounds).items():
        found = [_in_turns(clock, searcher, query, cores, again) for query in queries]
        _print(kind, found, cores)
        every += found
    _print(TOGETHER, every, cores)


def asked_for(searcher: Searcher, rounds: int) -> dict[str, list[str]]:
    """Queries of each kind."""
    noted = list[str]()

    class Noting:
        def search(self, request: SearchRequest) -> Results:
            noted.append(request.query)
            return searcher.search(request)

    found = dict[str, list[str]]()
    for kind, ask in kinds(Noting(), random.Random(7), searcher).items():  # type: ignore[arg-type]
        if kind in MIX:
            noted.clear()
            for _ in range(rounds):
                ask()
            found[kind] = [*noted]
    return found


def _in_turns(
    clock: Clock, searcher: Searcher, query: str, cores: int, again: int
) -> tuple[Asked, Asked]:
    times: tuple[list[Asked], list[Asked]] = [], []
    for _ in range(again):
        (one, first), (other, second) = (
            clock.ask(searcher, query, number) for number in (1, max(2, cores))
        )
        assert (one.hits, one.total, one.facets) == (other.hits, other.total, other.facets), query
        times[0].append(first)
        times[1].append(second)
    one_by_one, at_a_time = (min(each, key=lambda asked: asked.shards) for each in times)
    return one_by_one, at_a_time


def _print(kind: str, found: Sequence[tuple[Asked, Asked]], cores: int) -> None:
    one, other = (fmean(pair[n].shards for pair in found) for n in (0, 1))
    cpu = sum(sum(first.calls) for first, _ in found)
    packed = sum(_packed(first.calls, cores) for first, _ in found)
    rest = median(second.whole - second.shards for _, second in found)
    share = rest / median(second.whole for _, second in found)
    print(
        f"{kind:<28}{one * 1e3:>13.2f}{other * 1e3:>13.2f}{other / one:>13.2f}"
        f"{packed / cpu:>13.2f}{rest * 1e3:>13.2f}{share:>13.0%}",
        flush=True,
    )


def _packed(calls: Sequence[float], cores: int) -> float:
    """When the last call ends, if each begins on the first core that is free."""
    ends = [0.0] * cores
    for seconds in calls:
        ends[ends.index(min(ends))] += seconds
    return max(ends)


if __name__ == "__main__":
    main()
