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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from copy import copy
from heapq import merge
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Self

import tantivy
from tantivy import Occur, Query

from larmspider.index.access import Access
from larmspider.index.copies import Groups
from larmspider.index.schema import without_accents
from larmspider.search.completions import LIMITED_WAIT_SECS, WAIT_SECS
from larmspider.search.demotion import Place, demoted, place_of
from larmspider.search.facets import Facets, count_facets
from larmspider.search.facets import merge as merge_facets
from larmspider.search.query import NO_FILTERS, Clause, Filters, narrowed
from larmspider.search.ranking import Built, GlobalIdf, Ranking, Statistics
from larmspider.search.rerank import LOOKED_AT as RERANKED
from larmspider.search.rerank import Reranker
from larmspider.search.searcher import (
    EQUAL,
    LOOKED_AT,
    SPARE,
    Document,
    Hit,
    Match,
    Results,
    Searcher,
    best_of,
    count_of,
    evened,
    hit_of,
    typed_head,
    without_copies,
)
from larmspider.search.snippets import SnippetMaker
from larmspider.search.synonyms import NO_SYNONYMS
from larmspider.search.why import Examined

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
    """A match of one shard."""

    shard: int
    match: Match


class _Asked(NamedTuple):
    """One index, and a query for it. It is ``doubtful`` if it may have records that do not
    count."""

    shard: Searcher
    reader: tantivy.Searcher
    ranking: Ranking
    built: Built
    by_filter: dict[str, Query]
    doubtful: bool

    @property
    def narrowing(self) -> list[Query]:
        return list(self.by_filter.values())

    @property
    def matching(self) -> Query:
        return narrowed(self.built.matching, self.narrowing)

    @property
    def every(self) -> Query:
        return narrowed(self.built.every, self.narrowing)


class WorkersSearcher(Searcher):
    """Reads indexes of one schema. ``deduplicating`` gives a Deduplicator for one search."""

    _is_one_crawl = True

    def __init__(
        self,
        shards: Sequence[Searcher],
        deduplicating: Callable[[], AbstractContextManager[Deduplicator]],
    ) -> None:
        self.directory = shards[0].directory.parent if shards else Path()
        self._shards = list(shards)
        if self._is_one_crawl:
            for shard in self._shards:
                shard.beside = [one.directory for one in self._shards]
        self._deduplicating = deduplicating
        self._clock = time.time
        self._synonyms = NO_SYNONYMS
        self._shows = True
        self._names = [""] * len(self._shards)  # of the collection of each

    def seen_by(self, access: Access) -> Self:
        limited = copy(self)
        limited._shards = [shard.seen_by(access) for shard in self._shards]
        return limited

    @property
    def sees_all(self) -> bool:
        return all(shard.sees_all for shard in self._shards)

    def _are_limited(self, readers: Sequence[tantivy.Searcher]) -> bool:
        each = zip(self._shards, readers, strict=True)
        return any(shard._is_limited(reader) for shard, reader in each)

    def _search(
        self,
        clauses: Sequence[Clause],
        limit: int,
        offset: int,
        filters: Filters,
        facets: bool,
        copies: bool,
        newest: bool,
    ) -> Results:
        """As in one index; of a ``limit`` of 0 it only counts. Raises QueryError, CrawlDirError."""
        with ExitStack() as stack:
            readers = [stack.enter_context(shard.reading()) for shard in self._shards]
            dedup = stack.enter_context(self._deduplicating())
            asked = self._asked(readers, dedup, clauses, filters)
            totals, counted = self._counted(asked, dedup, facets=facets)
            size = min(max(1, offset + limit), _CHUNK)
            if newest:
                streams, total_all = _by_date(asked, size)
            else:
                one_word = self.is_one_word(clauses)
                streams, total_all = _by_score(asked, size, totals if one_word else None)
            outdated: list[_Found] = []
            stream: Iterator[_Found] = merge(*streams, key=_best_first)
            if not newest and self._are_limited(readers):
                stream = _evened(stream)
            stream = self._that_count(asked, stream, dedup, outdated)
            if limit and not newest:
                rerankers = [one.ranking.reranker(clauses, one.shard.documents()) for one in asked]
                stream = self._reranked(readers, stream, rerankers)
                wanted = [one.matching for one in asked]
                stream = self._behind(readers, stream, wanted)
            doubtful = any(one.doubtful for one in asked)
            groups, more = _grouped(stream, offset + limit, copies=copies, doubtful=doubtful)
            makers = [one.ranking.snippet_maker(clauses) if self._shows else None for one in asked]
            hits = [self._hit_of(readers, dedup, group, makers) for group in groups[offset:]]
        total = sum(totals) - len(outdated)
        return Results(total, hits, 0.0, counted, min(total, total_all), more=more)

    def _asked(
        self,
        readers: Sequence[tantivy.Searcher],
        dedup: Deduplicator,
        clauses: Sequence[Clause],
        filters: Filters,
    ) -> list[_Asked]:
        global_idf = self._global_idf(readers)
        asked = []
        for number, (shard, reader) in enumerate(zip(self._shards, readers, strict=True)):
            ranking = shard.ranking(global_idf.boosts(number))
            narrowing = shard.narrowing(filters)
            built, doubtful = ranking.build(clauses), dedup.doubtful(number)
            asked.append(_Asked(shard, reader, ranking, built, narrowing, doubtful))
        return asked

    def _counted(
        self, asked: Sequence[_Asked], dedup: Deduplicator, *, facets: bool
    ) -> tuple[list[int], Facets | None]:
        """How many records of each index match, and all of them by value."""
        totals, counted = [], []
        none = Query.empty_query() if any(one.shard.unreached for one in asked) else None
        for number, one in enumerate(asked):
            total = None
            if facets:
                wanted = one.built.matching
                if one.doubtful:
                    wanted = _current(one.shard, one.reader, wanted, dedup, number)
                shard, now = one.shard, self._clock()
                part, total = count_facets(
                    one.reader,
                    wanted,
                    one.by_filter,
                    now,
                    shard.own_facets,
                    shard.dates(),
                    shard.unreached_query() or none,
                )
                counted.append(part)
            if total is None or one.doubtful:
                total = count_of(one.reader, one.matching)
            totals.append(total)
        return totals, merge_facets(counted) if facets else None

    def _that_count(
        self,
        asked: Sequence[_Asked],
        stream: Iterator[_Found],
        dedup: Deduplicator,
        outdated: list[_Found],
    ) -> Iterator[_Found]:
        """Matches of all indexes; records that do not count go to ``outdated``."""
        readers = [one.reader for one in asked]
        for found in islice(stream, LOOKED_AT):
            if asked[found.shard].doubtful:
                stored = self._stored(readers, found)
                when = stored["fetched"].timestamp()
                if not dedup.counts(found.shard, stored["key"], when):
                    outdated.append(found)
                    continue
            yield found

    def _hit_of(
        self,
        readers: Sequence[tantivy.Searcher],
        dedup: Deduplicator,
        group: Sequence[_Found],
        makers: Sequence[SnippetMaker | None],
    ) -> Hit:
        best, missed = group[0], self._unreached_places(readers)
        there = [one for one in group if place_of(one.match.address) not in missed[one.shard]]
        there = there or list(group)
        equal = [found for found in there if found.match.score >= EQUAL * there[0].match.score]
        stored = best_of([self._stored(readers, one) for one in equal])
        others = self._copies(readers, dedup, best.match.likeness, stored["key"])
        score = None if self._are_limited(readers) else best.match.score
        unreached = self._shards[equal[0].shard].unreached
        return hit_of(stored, score, makers[best.shard], len(others), unreached)

    def _reranked(
        self,
        readers: Sequence[tantivy.Searcher],
        stream: Iterator[_Found],
        rerankers: Sequence[Reranker],
    ) -> Iterator[_Found]:
        """As in one index."""
        if not all(rerankers):
            return stream
        first = []
        for shard, match in islice(stream, RERANKED):
            stored = self._stored(readers, _Found(shard, match))
            score = match.score * rerankers[shard].factor(stored)
            first.append(_Found(shard, match._replace(score=score, stored=stored)))
        first.sort(key=_best_first)
        if self._are_limited(readers):
            first = list(_evened(first))
        return chain(first, stream)

    def _unreached_places(
        self, readers: Sequence[tantivy.Searcher]
    ) -> list[Collection[tuple[int, int]]]:
        each = zip(self._shards, readers, strict=True)
        return [shard.unreached_places(reader) for shard, reader in each]

    def _behind(
        self,
        readers: Sequence[tantivy.Searcher],
        stream: Iterator[_Found],
        wanted: Sequence[Query],
    ) -> Iterator[_Found]:
        """Put pages that were not reached behind others, over all shards as over one index."""
        missed = self._unreached_places(readers)
        if not any(missed):
            return stream

        def copies(_: int, match: Match) -> Iterator[Place]:
            for number, (shard, reader) in enumerate(zip(self._shards, readers, strict=True)):
                for address in shard.copies_of(reader, match.likeness, among=wanted[number]):
                    if (place := place_of(address)) not in missed[number]:
                        yield number, *place

        return (_Found(*one) for one in demoted(islice(stream, LOOKED_AT), missed, copies))

    def _stored(self, readers: Sequence[tantivy.Searcher], found: _Found) -> dict[str, Any]:
        shard, match = found.shard, found.match
        stored = match.stored or self._shards[shard].stored_of(readers[shard], match.address)
        return stored | {"collection": self._names[found.shard]}

    def _copies(
        self,
        readers: Sequence[tantivy.Searcher],
        dedup: Deduplicator,
        likeness: int | None,
        key: str,
    ) -> dict[str, tuple[int, dict[str, Any]]]:
        """The copies of the page ``key``: by theirs the shard, and what it has stored."""
        found = {}
        for number, (shard, reader) in enumerate(zip(self._shards, readers, strict=True)):
            for address in shard.copies_of(reader, likeness):
                stored = shard.stored_of(reader, address)
                when = stored["fetched"].timestamp()
                if stored["key"] != key and dedup.counts(number, stored["key"], when):
                    found[stored["key"]] = number, stored
        return found

    def copies(self, document: Document, limit: int = 20) -> tuple[int, list[Hit]]:
        """As in one index; of several records of a page the one that counts."""
        with ExitStack() as stack:
            readers = [stack.enter_context(shard.reading()) for shard in self._shards]
            dedup = stack.enter_context(self._deduplicating())
            found = self._copies(readers, dedup, document.likeness, document.normalized)
            hits = [
                hit_of(
                    stored,
                    0.0,
                    self._shards[shard].beginnings,
                    unreached=self._shards[shard].unreached,
                )
                for shard, stored in found.values()
            ]
        return len(hits), sorted(hits, key=lambda hit: hit.url)[:limit]

    def totals(self, query: str, filters: Filters = NO_FILTERS) -> tuple[int, int]:
        filters.check(self.has_field)
        found = self._search(self._clauses(query), 0, 0, filters, False, False, False)
        return found.total, found.total_all

    def marker(self, query: str) -> SnippetMaker:
        return self._shards[0].marker(query)

    def has_field(self, name: str) -> bool:
        return any(shard.has_field(name) for shard in self._shards)

    def examined(
        self,
        query: str,
        keys: Iterable[str],
        filters: Filters = NO_FILTERS,
        *,
        verbatim: bool = False,
    ) -> dict[str, Examined]:
        """As in one index; of several records of a page that with the best score."""
        clauses, wanted = self._clauses(query, verbatim=verbatim), list(keys)
        found: dict[str, Examined] = {}
        with ExitStack() as stack:
            readers = [stack.enter_context(shard.reading()) for shard in self._shards]
            global_idf = self._global_idf(readers)
            for number, (shard, reader) in enumerate(zip(self._shards, readers, strict=True)):
                ranking = shard.ranking(global_idf.boosts(number))
                here = shard._examined(reader, ranking, clauses, wanted, filters)
                for key, one in here.items():
                    if key not in found or one.score > found[key].score:
                        found[key] = one
        return found

    def _global_idf(self, readers: Sequence[tantivy.Searcher]) -> GlobalIdf:
        each = zip(readers, self._shards, strict=True)
        return GlobalIdf([Statistics.of(reader, shard.documents()) for reader, shard in each])

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
        with ExitStack() as stack:
            readers = [stack.enter_context(shard.reading()) for shard in self._shards]
            dedup = stack.enter_context(self._deduplicating())
            global_idf = self._global_idf(readers)
            streams, wanted = [], []
            for number, (shard, reader) in enumerate(zip(self._shards, readers, strict=True)):
                ranking = shard.ranking(global_idf.boosts(number))
                like_it = ranking.more_like_this(document, reader)
                matches = without_copies(shard.by_score(reader, like_it, limit + SPARE), document)
                streams.append(_of_shard(number, matches))
                wanted.append(like_it)
            known, hits = Groups(), list[Hit]()
            stream: Iterator[_Found] = merge(*streams, key=_best_first)
            limited = self._are_limited(readers)
            if limited:
                stream = _evened(stream)
            for found in self._behind(readers, stream, wanted):
                if len(hits) == limit:
                    break
                stored = self._stored(readers, found)
                counts = dedup.counts(found.shard, stored["key"], stored["fetched"].timestamp())
                if not counts or known.place(found.match.likeness) < len(hits):
                    continue
                others = self._copies(readers, dedup, found.match.likeness, stored["key"])
                maker = self._shards[found.shard].beginnings
                score = None if limited else found.match.score
                unreached = self._shards[found.shard].unreached
                hits.append(hit_of(stored, score, maker, len(others), unreached))
        return Results(len(hits), hits, time.perf_counter() - started)

    def completions(
        self, typed: str, limit: int = 8, until: float | None = None
    ) -> list[tuple[str, int]]:
        """As of one index; all are looked through at a time."""
        total, head = Counter[str](), typed_head(typed)
        if until is None:
            until = time.monotonic() + (WAIT_SECS if self.sees_all else LIMITED_WAIT_SECS)
        for shard in self._shards:
            shard.look_ahead(typed, limit)
        for shard in self._shards:
            total.update(dict(shard.completions(typed, limit, until)))
        found = total.most_common()
        if head != without_accents(head):
            found.sort(key=lambda one: not one[0].startswith(head))
        return found[:limit]

    def words(self, text: str) -> list[str]:
        return self._shards[0].words(text) if self._shards else []

    def occurrences(self, word: str) -> int:
        return sum(shard.occurrences(word) for shard in self._shards)

    def frequencies(self, words: Iterable[str], field: str = "exact") -> dict[str, int]:
        wanted, total = list(words), Counter[str]()
        for shard in self._shards:
            total.update(shard.frequencies(wanted, field))
        return dict(total)

    def has_side_by_side(self, words: Sequence[str]) -> bool:
        return any(shard.has_side_by_side(words) for shard in self._shards)

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        """As `Searcher.one_commit`, of each index."""
        with ExitStack() as stack:
            for shard in self._shards:
                stack.enter_context(shard.one_commit())
            yield

    def few_beginning_with(
        self, head: str, most: int, *, exactly: bool = False
    ) -> list[str] | None:
        found = set[str]()
        for shard in self._shards:
            words = shard.few_beginning_with(head, most, exactly=exactly)
            if words is None:
                return None
            found.update(words)
        if len(found) <= most:
            return list(found)
        return (
            None if exactly or self.sees_all else self.few_beginning_with(head, most, exactly=True)
        )

    def languages(self, hosts: int) -> dict[str, dict[str, int]]:
        total: dict[str, Counter[str]] = {}
        for shard in self._shards:
            for host, pages in shard.languages(hosts).items():
                total.setdefault(host, Counter()).update(pages)
        return {host: dict(pages.most_common()) for host, pages in total.items()}

    def count(self) -> int:
        """Pages in all indexes; a page in two counts twice."""
        return sum(shard.count() for shard in self._shards)

    def documents(self) -> int:
        return sum(shard.documents() for shard in self._shards)


def _current(
    index: Searcher, reader: tantivy.Searcher, wanted: Query, dedup: Deduplicator, shard: int
) -> Query:
    """``wanted`` without the records that do not count, if there are at most EXACT_TOTAL
    matches."""
    found = reader.search(wanted, EXACT_TOTAL + 1, count=False).hits
    if len(found) > EXACT_TOTAL:
        return wanted
    pages = (index.stored_of(reader, address) for _, address in found)
    outdated = [
        page["key"]
        for page in pages
        if not dedup.counts(shard, page["key"], page["fetched"].timestamp())
    ]
    if not outdated:
        return wanted
    others = Query.term_set_query(index.schema, "key", outdated)
    return Query.boolean_query([(Occur.Must, wanted), (Occur.MustNot, others)])


def _by_score(
    asked: Sequence[_Asked], size: int, totals: Sequence[int] | None
) -> tuple[list[Iterator[_Found]], int]:
    """The matches of each index, best first, and how many have all words that matter: ``totals``
    for one word."""
    streams, total_all = [], 0
    for number, one in enumerate(asked):
        matches, all_words = one.shard.matches(one.reader, one.built, one.narrowing, size)
        if all_words is None:
            all_words = totals[number] if totals else count_of(one.reader, one.every)
        streams.append(_of_shard(number, matches))
        total_all += all_words
    return streams, total_all


def _by_date(asked: Sequence[_Asked], size: int) -> tuple[list[Iterator[_Found]], int]:
    """The matches of each index with all words that matter, if there are any, newest first, and how
    many these are."""
    total_all = sum(count_of(one.reader, one.every) for one in asked)
    wanted = [one.every if total_all else one.matching for one in asked]
    streams = [
        _of_shard(number, one.shard.newest(one.reader, query, size))
        for number, (one, query) in enumerate(zip(asked, wanted, strict=True))
    ]
    return streams, total_all


def _grouped(
    stream: Iterable[_Found], most: int, *, copies: bool, doubtful: bool
) -> tuple[list[list[_Found]], bool]:
    """The first ``most`` matches with their copies, as in one index, and whether there are more.
    Where records are ``doubtful`` further ones are looked at, for the total."""
    known, groups, more = Groups(), list[list[_Found]](), False
    for number, found in enumerate(stream):
        if more and (number >= EXACT_TOTAL or not doubtful):
            break
        at = known.place(None if copies else found.match.likeness)
        if at < len(groups):
            groups[at].append(found)
        elif len(groups) < most:
            groups.append([found])
        else:
            more = True
    return groups, more


def _of_shard(shard: int, matches: Iterable[Match]) -> Iterator[_Found]:
    return (_Found(shard, match) for match in matches)


def _best_first(found: _Found) -> float:
    return -found.match.score


def _evened(stream: Iterable[_Found]) -> Iterator[_Found]:
    return (_Found(*one) for one in evened(stream))
