"""Several indexes searched as one: those of a crawl's workers, near and far.

    searcher = WorkersSearcher([Searcher.open(a), Searcher.open(b)], current)
    searcher.search("vpn login", limit=10, offset=20)

Results are merged by score, which compares by global IDF (ranking.py). A page that two workers have
stored is found once: the latest wins. Which record is the latest is asked one page at a time, so
only for the pages shown and those before them, and up to `EXACT_TOTAL` for the total.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from heapq import merge
from pathlib import Path
from typing import Any, NamedTuple

import tantivy
from tantivy import DocAddress, Occur, Query

from larmspider.index.facets import count_facets
from larmspider.index.facets import merge as merge_facets
from larmspider.index.query import Clause, Filters, narrowed
from larmspider.index.ranking import GlobalIdf
from larmspider.index.search import (
    Document,
    Hit,
    Results,
    Searcher,
    count_of,
    hit_of,
    stored_of,
)

EXACT_TOTAL = 300
"""Matches up to which a total is exact; beyond, a page counts as often as it is stored. 30 us each.
Facets are exact up to so many matches of one index, before a filter of a facet."""
_CHUNK = 100


class Deduplicator:
    """Says which of several records of a page counts; this base class takes all."""

    def doubtful(self, shard: int) -> bool:
        """Whether a shard may have records that do not count."""
        return False

    def counts(self, shard: int, exact: str, fetched: float) -> bool:
        """Whether a shard's record of a page counts."""
        return True


class _Found(NamedTuple):
    """A match of one shard, sorted by score."""

    order: float
    shard: int
    address: DocAddress


class WorkersSearcher(Searcher):
    """Reads indexes of one schema. ``deduplicating`` gives a Deduplicator for one search."""

    def __init__(
        self,
        shards: Sequence[Searcher],
        deduplicating: Callable[[], AbstractContextManager[Deduplicator]],
    ) -> None:
        self.directory = shards[0].directory.parent if shards else Path()
        self._shards = list(shards)
        self._deduplicating = deduplicating
        self._clock = time.time

    def _search(
        self,
        clauses: Sequence[Clause],
        limit: int,
        offset: int,
        filters: Filters,
        facets: bool,
    ) -> Results:
        """As in one index. Raises QueryError, CrawlDirError."""
        with ExitStack() as stack:
            readers = [stack.enter_context(shard.reading()) for shard in self._shards]
            dedup = stack.enter_context(self._deduplicating())
            sizes = [shard.documents() for shard in self._shards]
            global_idf = GlobalIdf(list(zip(readers, sizes, strict=True)))
            doubtful = [dedup.doubtful(number) for number in range(len(readers))]
            total = total_all = 0
            streams, makers, counted = [], [], []
            for number, (shard, reader) in enumerate(zip(self._shards, readers, strict=True)):
                ranking = shard.ranking(global_idf.boost(number))
                narrowing = list(filters.queries(shard.schema).values())
                ranked = narrowed(ranking.build(clauses), narrowing)
                if facets:
                    found_by = ranking.build(clauses, ranks=False)
                    if doubtful[number]:
                        found_by = _current(reader, shard.schema, found_by, dedup, number)
                    counted.append(
                        count_facets(reader, shard.schema, found_by, filters, self._clock())
                    )
                total += count_of(reader, ranked)
                every = narrowed(ranking.build(clauses, every=True), narrowing)
                total_all += count_of(reader, every)
                size = min(offset + limit, _CHUNK)
                streams.append(_matches(reader, ranked, number, size, shard.prior))
                makers.append(ranking.snippet_maker(clauses))
            hits: list[Any] = []
            passed = looked_at = 0
            for match in merge(*streams):
                if passed == offset + limit and (looked_at >= EXACT_TOTAL or not any(doubtful)):
                    break
                looked_at += 1
                shown = offset <= passed < offset + limit
                if shown or doubtful[match.shard]:
                    stored = stored_of(readers[match.shard], match.address)
                    when = stored["fetched"].timestamp()
                    if doubtful[match.shard] and not dedup.counts(match.shard, stored["key"], when):
                        total -= 1
                        continue
                    if shown:
                        hits.append(hit_of(stored, -match.order, makers[match.shard]))
                passed += passed < offset + limit
        merged = merge_facets(counted) if facets else None
        return Results(total, hits, 0.0, merged, min(total, total_all))

    @property
    def corrects(self) -> bool:
        return all(shard.corrects for shard in self._shards)

    def get(self, exact: str) -> Document | None:
        """The latest record of the page with this canonical URL, or None."""
        found = [(number, shard.get(exact)) for number, shard in enumerate(self._shards)]
        with self._deduplicating() as dedup:
            kept = [
                page
                for number, page in found
                if page is not None and dedup.counts(number, exact, page.fetched)
            ]
        return max(kept, key=lambda page: page.fetched, default=None)

    def similar(self, document: Document, limit: int = 10) -> Results:
        """As in one index; a page of several is shown once."""
        started = time.perf_counter()
        best: dict[str, Hit] = {}
        with ExitStack() as stack:
            readers = [stack.enter_context(shard.reading()) for shard in self._shards]
            sizes = [shard.documents() for shard in self._shards]
            global_idf = GlobalIdf(list(zip(readers, sizes, strict=True)))
            for number, (shard, reader) in enumerate(zip(self._shards, readers, strict=True)):
                ranking = shard.ranking(global_idf.boost(number))
                maker = ranking.snippet_maker([])
                found = reader.search(
                    ranking.more_like_this(document, reader), limit, count=False
                ).hits
                for score, address in found:
                    hit = hit_of(stored_of(reader, address), score, maker)
                    kept = best.setdefault(hit.normalized, hit)
                    if kept.fetched < hit.fetched:
                        best[hit.normalized] = hit
        hits = sorted(best.values(), key=lambda hit: -hit.score)[:limit]
        return Results(len(hits), hits, time.perf_counter() - started)

    def words(self, text: str) -> list[str]:
        return self._shards[0].words(text)

    def occurrences(self, word: str) -> int:
        return sum(shard.occurrences(word) for shard in self._shards)

    def frequencies(self, words: Iterable[str], field: str = "exact") -> dict[str, int]:
        wanted, total = list(words), Counter[str]()
        for shard in self._shards:
            total.update(shard.frequencies(wanted, field))
        return dict(total)

    def beginning_with(self, head: str) -> list[tuple[str, int]]:
        total = Counter[str]()
        for shard in self._shards:
            total.update(dict(shard.beginning_with(head)))
        return total.most_common()

    def languages(self, hosts: int) -> dict[str, dict[str, int]]:
        total: dict[str, Counter[str]] = {}
        for shard in self._shards:
            for host, pages in shard.languages(hosts).items():
                total.setdefault(host, Counter()).update(pages)
        return {host: dict(pages.most_common()) for host, pages in total.items()}

    def count(self) -> int:
        """Pages in all indexes; a page in two counts twice."""
        return sum(shard.count() for shard in self._shards)


def _current(
    reader: tantivy.Searcher, schema: tantivy.Schema, wanted: Query, dedup: Deduplicator, shard: int
) -> Query:
    """``wanted`` without the records that do not count, if there are at most EXACT_TOTAL
    matches."""
    found = reader.search(wanted, EXACT_TOTAL + 1, count=False).hits
    if len(found) > EXACT_TOTAL:
        return wanted
    pages = (stored_of(reader, address) for _, address in found)
    outdated = [
        page["key"]
        for page in pages
        if not dedup.counts(shard, page["key"], page["fetched"].timestamp())
    ]
    if not outdated:
        return wanted
    others = Query.term_set_query(schema, "key", outdated)
    return Query.boolean_query([(Occur.Must, wanted), (Occur.MustNot, others)])


def _matches(
    reader: tantivy.Searcher, ranked: Query, shard: int, size: int, prior: str | None
) -> Iterator[_Found]:
    """Matches by score, read in portions that double."""
    start = 0
    while True:
        found = reader.search(ranked, size, count=False, offset=start, weight_by_field=prior).hits
        for score, address in found:
            yield _Found(-score, shard, address)
        if len(found) < size:
            return
        start += size
        size *= 2
