"""Shards while they answer a question: each at one commit, as the reader may see it.

    with opened(crawls) as readings:
        asked = [ShardQuery(reading, query, filters) for reading in readings]

Scores of several shards compare by global IDF (ranking.py). A page that two workers have stored
counts once: the latest record wins. Which record that is, is looked up one page at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import merge
from itertools import chain, islice
from pathlib import Path
from typing import Any

import tantivy
from tantivy import DocAddress, Occur, Query

from larmspider.errors import CrawlDirError
from larmspider.index.copies import MANY_PAGES, Likenesses, copies_in
from larmspider.index.queries import kind_of
from larmspider.index.schema import MACHINE_MADE_FACTOR, PRIOR
from larmspider.index.unreached import UNREACHED_FACTOR
from larmspider.search.engine import SearchEngine
from larmspider.search.facets import count_of
from larmspider.search.match import ROUNDED, Match, best_first, each_once, evened
from larmspider.search.query import Filters, narrowed
from larmspider.search.ranking import GlobalIdf, Ranking, Statistics
from larmspider.search.request import ParsedQuery
from larmspider.search.rerank import LOOKED_AT as RERANKED
from larmspider.search.rerank import Reranker
from larmspider.search.snippets import SnippetMaker
from larmspider.search.why import NOT_REACHED, REREAD, Examined, examine

SOME, MANY = 1_000, 10_000
"""Pages with all words that matter. With more than `SOME` of them, pages without the rarer half of
the words come last; with more than `MANY`, all other pages."""
FEW_LOOKED_UP, READ_PER_LOOK_UP = 20, 200
"""Pages whose copies are looked up one by one, and likenesses that are read in the time of one."""
EXACT_TOTAL = 300
"""Matches up to which a total is exact; beyond, a page counts as often as it is stored. 30 us each.
Facets are exact up to 300 matches of one index, before a filter of a facet."""

_LARGER = 16
"""Factor of the next portion after one of equal scores. Each search for a fuzzy word takes as long
for 320 matches as for 20."""


class Deduplicator:
    """Says which of several records of a page counts; this base class takes all. ``shard`` is a
    number within its crawl."""

    def doubtful(self, shard: int) -> bool:
        """Whether a shard may have records that do not count."""
        return False

    def counts(self, shard: int, exact: str, fetched: float) -> bool:
        """Whether a shard's record of a page counts."""
        return True


def all_count(_: Collection[Path] = ()) -> AbstractContextManager[Deduplicator]:
    """A deduplicator for shards without a common page."""
    return nullcontext(Deduplicator())


@dataclass(frozen=True)
class Crawl:
    """The indexes of a crawl. ``deduplicating`` gives a Deduplicator for one question, without the
    indexes of some directories. ``name`` is the collection's; "" if one crawl is searched.
    ``unopened``: the errors of indexes that are not among the shards."""

    shards: Sequence[SearchEngine]
    deduplicating: Callable[[Collection[Path]], AbstractContextManager[Deduplicator]] = all_count
    name: str = ""
    unopened: Sequence[CrawlDirError] = ()
    left_out: Collection[Path] = ()
    """Directories of shards that are not searched."""

    @property
    def asked(self) -> list[tuple[int, SearchEngine]]:
        """Shards that are searched, with their numbers."""
        shards = enumerate(self.shards)
        return [(n, shard) for n, shard in shards if shard.directory not in self.left_out]


def chosen(crawls: Sequence[Crawl], names: Sequence[str]) -> Sequence[Crawl]:
    """The collections with these names; all without names, and if one crawl is searched."""
    if not names or not any(crawl.name for crawl in crawls):
        return crawls
    return [crawl for crawl in crawls if crawl.name in names]


@contextmanager
def opened(crawls: Sequence[Crawl], names: Sequence[str] = ()) -> Iterator[list[Reading]]:
    """The shards of all crawls, or of collections with these ``names``. Raises CrawlDirError."""
    found = list[Reading]()
    with ExitStack() as stack:
        for crawl in chosen(crawls, names):
            dedup = stack.enter_context(crawl.deduplicating(crawl.left_out))
            for number, shard in crawl.asked:
                reader = stack.enter_context(shard.reading())
                records = _Records(dedup, number)
                found.append(Reading(len(found), shard, reader, records, crawl.name))
        if len(found) != 1:
            pages = [Statistics.of(one.reader, one.shard.documents()) for one in found]
            global_idf = GlobalIdf(pages)
            for one in found:
                one.ranking = one.shard.ranking(global_idf.boosts(one.number))
        yield found


@dataclass(frozen=True)
class _Records:
    """The records of one shard."""

    dedup: Deduplicator
    shard: int

    @property
    def doubtful(self) -> bool:
        return self.dedup.doubtful(self.shard)

    def count(self, stored: dict[str, Any]) -> bool:
        return self.dedup.counts(self.shard, stored["key"], stored["fetched"].timestamp())


class Reading:
    """A shard at one commit. ``number`` is its number among all searched shards."""

    def __init__(
        self,
        number: int,
        shard: SearchEngine,
        reader: tantivy.Searcher,
        records: _Records,
        name: str,
    ) -> None:
        self.number, self.shard, self.reader = number, shard, reader
        self.ranking: Ranking = shard.ranking_alone
        """Its scores compare with the other shards' scores."""
        self.is_limited = shard.is_limited(reader)
        self.counts, self._name = records.count, name
        self.doubtful = records.doubtful
        """Whether records may not count."""

    @cached_property
    def missed(self) -> Collection[tuple[int, int]]:
        """Segments and numbers of pages that were not reached at their last visit."""
        return self.shard.unreached_places(self.reader)

    def stored(self, address: DocAddress) -> dict[str, Any]:
        """The stored fields of a page, and its collection."""
        with self.shard.naming_errors():
            found = self.shard.stored_of(self.reader, address)
        found["collection"] = self._name
        return found

    def by_score(self, wanted: Query, size: int, prior: str | None = None) -> Iterator[Match]:
        """Matches by score, times the field ``prior``."""
        return self.in_portions(wanted, size, weight_by_field=prior)

    def newest(self, wanted: Query, size: int) -> Iterator[Match]:
        """Matches by date."""
        for match in self._portions(wanted, size, None, order_by_field="date"):
            yield match._replace(score=match.score / 1e9)

    def in_portions(
        self, wanted: Query, size: int, first: list[Any] | None = None, **by: Any
    ) -> Iterator[Match]:
        """Matches by score, read in portions that double; the ``first`` one has ``size`` and may
        be known."""
        stream = self._portions(wanted, size, first, **by)
        return evened(stream) if self.is_limited else stream

    def _portions(
        self, wanted: Query, size: int, found: list[Any] | None, **by: Any
    ) -> Iterator[Match]:
        start, unit = 0, MACHINE_MADE_FACTOR if by.get("weight_by_field") else 1.0
        while True:
            with self.shard.naming_errors():
                if found is None:
                    found = self.reader.search(wanted, size, count=False, offset=start, **by).hits
                addresses = [address for _, address in found]
                alike: Sequence[Any] = self.reader.fast_field_values("likeness", addresses)
            for (score, address), likeness in zip(found, alike, strict=True):
                yield Match(unit * score, self.number, address, likeness)
            if len(found) < size:
                return
            in_run = self.is_limited and "order_by_field" not in by and _all_equal(found)
            start, size, found = start + size, size * (_LARGER if in_run else 2), None

    def copies_of(
        self, likeness: int | None, *, quickly: bool = False, among: Query | None = None
    ) -> list[DocAddress]:
        """The places of a page and its copies (`copies_in`)."""
        if likeness is None:
            return []
        schema, pages = self.shard.schema, self.shard.documents()
        with self.shard.naming_errors():
            return copies_in(self.reader, schema, likeness, pages, quickly=quickly, among=among)

    def number_of_copies(self, likeness: int | None) -> int:
        """The number of copies of a page, looked up once in each commit. The likenesses of all
        pages are read once the look-ups together have taken as long as that."""
        if likeness is None:
            return 0
        of_reader, pages = self.shard.known, self.shard.documents()
        known, every = of_reader.copies, of_reader.likenesses
        if (found := known.get(likeness)) is not None:
            return found
        if every is None and len(known) >= max(FEW_LOOKED_UP, pages // READ_PER_LOOK_UP):
            known.clear()
            if pages <= MANY_PAGES and self.shard.lists_all_likenesses:
                every = of_reader.likenesses = Likenesses(self.reader)
        if every is not None:
            found = every.near(likeness) - 1
        else:
            found = len(self.copies_of(likeness, quickly=True)) - 1
        known[likeness] = found
        return found


def _all_equal(found: Sequence[tuple[float, DocAddress]]) -> bool:
    """Whether a portion may be part of a longer run of equal scores. `evened` reads whole runs."""
    return found[-1][0] >= found[0][0] * (1 - ROUNDED)


class ShardQuery:
    """A query to one shard, narrowed by filters. Raises QueryError."""

    def __init__(self, reading: Reading, query: ParsedQuery, filters: Filters) -> None:
        self.reading, self.query = reading, query
        with reading.shard.naming_errors():
            self.built = reading.ranking.build(query)
        self.by_filter = reading.shard.narrowing(filters)
        self.matching, self.every = map(self._narrowed, (self.built.matching, self.built.every))

    def _narrowed(self, query: Query) -> Query:
        return narrowed(query, self.by_filter.values())

    @cached_property
    def maker(self) -> SnippetMaker:
        """Makes the snippets of this shard's hits."""
        return self.reading.ranking.snippet_maker(self.query)

    @cached_property
    def reranker(self) -> Reranker:
        return self.reading.ranking.reranker(self.query, self.reading.shard.documents())

    def matches(self, size: int) -> tuple[Iterator[Match], int | None]:
        """The matches by their best score in any of the ranked queries, times the prior; then the
        other matches. Also returns the number of pages with all words that matter, if it is known.
        If more than `SOME`, or `MANY`, pages have all words, they come first, and the search for
        others starts only when they are used up."""
        built, reading, prior = self.built, self.reading, PRIOR
        best, *others = map(self._narrowed, built.ranked)
        all_words = hits = None
        if reading.is_limited and any(clause.fuzzy for clause in self.query.clauses):
            size *= _LARGER  # most scores are equal, and `evened` reads all of them
        if others:
            found: Any = reading.reader.search(best, size, count=True, weight_by_field=prior)
            all_words, hits = int(found.count), found.hits
        first = reading.in_portions(best, size, hits, weight_by_field=prior)
        rest = [reading.by_score(query, size, prior) for query in others]
        among, behind = rest, list[Iterator[Match]]()
        if all_words is not None and all_words > MANY:
            among, behind = [], rest
        elif all_words is not None and all_words > SOME and built.nearly is not None:
            nearly = self._narrowed(built.nearly)
            among, behind = [reading.by_score(nearly, size, prior)], rest
        stream = chain(merge(first, *among, key=best_first), *behind)
        if built.behind is not None:
            stream = chain(stream, reading.by_score(self._narrowed(built.behind), size, prior))
        return each_once(stream), all_words

    def that_count(self) -> Query:
        """The matches before filters, without records that do not count, if there are at
        most `EXACT_TOTAL` matches."""
        reading, wanted = self.reading, self.built.matching
        if not reading.doubtful:
            return wanted
        found = reading.reader.search(wanted, EXACT_TOTAL + 1, count=False).hits
        if len(found) > EXACT_TOTAL:
            return wanted
        pages = (reading.stored(address) for _, address in found)
        outdated = [page["key"] for page in pages if not reading.counts(page)]
        if not outdated:
            return wanted
        kind = kind_of(reading.shard.schema)
        others = kind.term_set_query(reading.shard.schema, "key", outdated)
        return kind.boolean_query([(Occur.Must, wanted), (Occur.MustNot, others)])

    def total(self) -> int:
        """How many records match."""
        return count_of(self.reading.reader, self.matching)

    def examined(self, keys: Sequence[str]) -> dict[str, Examined]:
        """Explain the scores of pages, by canonical URL; pages that are not here are left out."""
        shard, factors = self.reading.shard, dict[str, float]()
        if self.reranker:
            for match in islice(self.matches(RERANKED)[0], RERANKED):
                stored = self.reading.stored(match.address)
                factors[stored["key"]] = self.reranker.factor(stored)
        examined, fields = dict[str, Examined](), shard.field_names()
        for key in keys:
            if (one := examine(self, fields, key)) is None:
                continue
            reached = shard.unreached.since(key) is None
            one = one.times(factors.get(key, 1.0), REREAD)
            one = one.times(1.0 if reached else UNREACHED_FACTOR, NOT_REACHED)
            examined[key] = one.without_numbers() if self.reading.is_limited else one
        return examined


def by_collection(crawls: Sequence[Crawl], query: ParsedQuery, filters: Filters) -> dict[str, int]:
    """The matches of each collection, most first, including collections that the filter leaves
    out."""
    found = Counter[str]()
    for crawl in crawls:
        with opened([replace(crawl, deduplicating=all_count)]) as readings:
            found[crawl.name] += sum(ShardQuery(one, query, filters).total() for one in readings)
    return {name: pages for name, pages in found.most_common() if pages}
