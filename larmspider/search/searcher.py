"""Searching an index, also while a crawl writes it in another process::

    searcher = Searcher.open(Path("crawl/index"))
    results = searcher.search('"log in" host:wiki.example')
    for hit in results.hits:
        print(hit.score, hit.url, hit.title, hit.snippet.marked("*", "*"))

query.py says what a query may be, ranking.py how results are ordered.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from datetime import datetime
from functools import partial, reduce
from heapq import merge
from itertools import chain, islice
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias, cast

import tantivy
from tantivy import DocAddress, Query

from larmspider.errors import CrawlDirError, QueryError, is_panic
from larmspider.formatting import counted, utc
from larmspider.index.access import EVERYTHING, Access, Limited, statistics
from larmspider.index.copies import MANY_PAGES, Groups, Likenesses, copies_in, near
from larmspider.index.link_access import covered
from larmspider.index.normal import normalized
from larmspider.index.packed import PackedPages
from larmspider.index.schema import (
    FILES,
    MACHINE_MADE_FACTOR,
    kind_of,
    shown_label,
    shown_title,
    stored_fields,
    title_label,
    without_accents,
)
from larmspider.index.signs import signs
from larmspider.index.stems import Stems
from larmspider.index.unreached import ALL_REACHED, UNREACHED_FACTOR, Unreached
from larmspider.index.unreached import NAME as UNREACHED_FILE
from larmspider.index.version import open_index, restricted_of
from larmspider.items import Section, split_part
from larmspider.search.best_bets import BestBet
from larmspider.search.completions import (
    LIMITED_WAIT_SECS,
    SMALL,
    WAIT_SECS,
    Asked,
    Labels,
    LookThrough,
)
from larmspider.search.demotion import Place, demoted, place_of
from larmspider.search.facets import (
    Dates,
    Facets,
    count_facets,
    date_span,
    languages_by_host,
)
from larmspider.search.query import (
    FILTER_FIELDS,
    NO_FILTERS,
    Clause,
    Filters,
    each_once,
    narrowed,
    parse_query,
    straight,
)
from larmspider.search.ranking import Boosts, Built, GlobalIdf, Ranking, Statistics
from larmspider.search.rerank import LOOKED_AT as RERANKED
from larmspider.search.rerank import Reranker
from larmspider.search.results import Document, Hit, Results
from larmspider.search.snippets import Snippet, SnippetMaker, one_line, passage_of
from larmspider.search.spelling import Suggestion, did_you_mean
from larmspider.search.synonyms import NO_SYNONYMS, Synonyms, respelled, with_related
from larmspider.search.why import NOT_REACHED, REREAD, Examined, examine, field_names
from larmspider.urls.file_urls import NOWHERE, OpenableUrls

MAX_LIMIT = 1_000
"""Hits that one search may ask for."""
MAX_OFFSET = 10_000
"""Hits that one search may skip: a page far down costs as much as all before."""
SHORTEST_HEAD = 2
"""Characters from which on the rest of a text is suggested."""
NEXT_TO_NOTHING = 1
"""Pages with all words that matter, up to which a better query is looked for (0 for a name of
several words, which hardly any page has by chance);"""
BETTER = 2
"""it is one that finds so many times as many."""
LOOKED_AT = MAX_LIMIT + MAX_OFFSET
"""Matches that are looked at for hits that are no copies of better ones."""
SOME, MANY = 1_000, 10_000
"""Pages with all words that matter, from which on those without the rarer half of them, or all
others, come behind."""
SPARE = 10  # matches that are asked for beyond those wanted: some are copies
FEW_LOOKED_UP, READ_PER_LOOK_UP = 20, 200
"""Pages whose copies are looked up one by one, and likenesses that are read in the time of one."""
ROUNDED = 1e-5
"""Two scores that are equal but for their rounding differ by at most this share."""
MOST_EVEN = LOOKED_AT
"""Matches with such scores that are brought into the order of the index together: all that are
looked at, for with fewer the rounding decides which of them come first."""
EQUAL = 0.99  # of the best copy's score, from which on another one may stand for them
TITLES = 30
PRIOR = "prior"
"""The field that scores are multiplied by, in units of MACHINE_MADE_FACTOR."""
"""Pages whose titles are read where labels are not looked through in time: 0.1 ms each."""
FLAG_SHARE = 100
"""``-x`` is a flag where at least one in so many of the pages with "x" has it."""

OFTEN = 10_000
"""Pages with each of several words, from which on they are not looked for side by side."""
_REMEMBERED = 10_000  # words side by side

_QUOTES = re.compile(r"(?<=\w:)(\"[^\"]*\")|\"")

__all__ = ["MAX_LIMIT", "MAX_OFFSET", "Document", "Hit", "Results", "Searcher"]


class Searcher:
    """Reads an index. Holds no lock; sees each commit from the next call on."""

    def __init__(
        self,
        index: tantivy.Index,
        stemmer: str,
        directory: Path,
        clock: Callable[[], float] = time.time,
        own_facets: Sequence[str] = (),
    ) -> None:
        """``clock`` gives seconds since the epoch; the periods of facets end now. ``own_facets``:
        own fields that are counted."""
        self.directory = directory
        self._meta = directory / "meta.json"
        self._clock = clock
        self._index, self._stems = index, Stems(stemmer)
        self._packed = PackedPages(directory)
        self.own_facets = own_facets
        self._of_all = Ranking(index.schema, self._stems, unreached=self.unreached_query)
        self._access, self._newest = EVERYTHING, _Newest()
        self._labels, self._crowded = Labels(), dict[tuple[Access, str, int], int]()
        self._synonyms = NO_SYNONYMS
        self._shows = self._link_texts = True
        self.beside: Sequence[Path] = (directory,)
        """The indexes of a crawl's workers: each may know of a page of another's that it is not
        reached."""

    @classmethod
    def open(cls, directory: Path | str, own_facets: Sequence[str] = ()) -> Self:
        """Open the index in ``directory`` for reading; of own fields ``own_facets`` are counted.

        Raises CrawlDirError where there is none, or one of another schema version.
        """
        directory = Path(directory)
        return cls(*open_index(directory), directory, own_facets=own_facets)

    def seen_by(self, access: Access) -> Self:
        """This index without the pages that ``access`` hides. All that is counted for such a reader
        is counted over the other pages, and hits have no score. Where hosts have become restricted
        since the link texts were taken in, all link texts are left out."""
        if access.restricted == ():
            return self
        limited = copy(self)
        limited._access = access
        if not covered(access.restricted, restricted_of(self.directory)):
            limited._link_texts = False
            limited._of_all = limited.ranking(Boosts())
        return limited

    @property
    def sees_all(self) -> bool:
        """Whether no page is hidden, and none would be of another host."""
        with self.reading() as searcher:
            return not self._is_limited(searcher)

    def _is_limited(self, searcher: tantivy.Searcher) -> bool:
        return self._access.is_limited or isinstance(searcher, Limited)

    def widened_by(self, synonyms: Synonyms) -> Self:
        """This index, of which queries find pages with synonyms of their words too."""
        widened = copy(self)
        widened._synonyms = synonyms
        return widened

    def without_snippets(self) -> Self:
        """This index, whose hits have neither snippet nor section, in half of their time."""
        bare = copy(self)
        bare._shows = False
        return bare

    def search(
        self,
        query: str,
        limit: int = 10,
        offset: int = 0,
        *,
        filters: Filters = NO_FILTERS,
        facets: bool = False,
        verbatim: bool = False,
        copies: bool = False,
        newest: bool = False,
    ) -> Results:
        """The best ``limit`` pages (1 to 1,000) after the first ``offset`` (up to 10,000).

        With ``facets`` all pages that match are counted too. A query that finds next to nothing is
        replaced by a better one (`Results.instead`), and words with synonyms are widened, but not
        if ``verbatim``. Of pages that are copies the best one is a hit, or each of them with
        ``copies``. ``newest``: those with all words that matter, if there are any, by date.

        Raises QueryError for a query that cannot mean anything, CrawlDirError for a broken index.
        """
        started = time.perf_counter()
        check_window(limit, offset)
        filters.check(self.has_field)
        clauses = self._clauses(query, verbatim=verbatim)
        found = self._search(clauses, limit, offset, filters, facets, copies, newest)
        is_name = len(clauses) == 1 and clauses[0].plain and not self.is_one_word(clauses)
        if not verbatim and found.total_all <= (0 if is_name else NEXT_TO_NOTHING):
            better = self._better(query, clauses, found, filters)
            if better is not None:
                with suppress(QueryError):  # without its quotes "title: draft" is no query
                    others = self._clauses(better)
                    found = self._search(others, limit, offset, filters, facets, copies, newest)
                    clauses, found = others, replace(found, instead=better)
        also = tuple(dict.fromkeys(text for clause in clauses for text in clause.also))
        return replace(found, also=also, seconds=time.perf_counter() - started)

    def totals(self, query: str, filters: Filters = NO_FILTERS) -> tuple[int, int]:
        """`Results.total` and `Results.total_all`, without hits and without a better query."""
        filters.check(self.has_field)
        clauses = self._clauses(query)
        with self.reading() as searcher:
            built = self._ranking.build(clauses)
            narrowing = list(self.narrowing(filters).values())
            total = count_of(searcher, narrowed(built.matching, narrowing))
            if self.is_one_word(clauses):
                return total, total
            return total, count_of(searcher, narrowed(built.every, narrowing))

    def is_one_word(self, clauses: Sequence[Clause]) -> bool:
        """Whether pages that match have all words, for there is but one; ``read_csv`` is two."""
        return len(clauses) < 2 and all(len(self.words(clause.text)) < 2 for clause in clauses)

    def clauses(self, query: str) -> list[Clause]:
        """The query taken apart (query.py). Raises QueryError."""
        return parse_query(query, self.has_field)

    def has_field(self, name: str) -> bool:
        """Whether a page has this own field (LARM_FIELDS)."""
        return bool(self.frequencies([name], "own_words"))

    def _better(
        self, query: str, clauses: Sequence[Clause], found: Results, filters: Filters
    ) -> str | None:
        """A query that finds more than ``found``: with a mistake corrected, or without quotes, or
        both."""
        if better := self._corrected(query, found.total, found.total_all, filters):
            return better
        if found.total == 0 and any(
            clause.phrase and not (clause.excluded or clause.field) for clause in clauses
        ):
            plain = without_quotes(query)
            with suppress(QueryError):  # "title: draft"
                return self._corrected(plain, *self.totals(plain, filters), filters) or plain
        return None

    def _corrected(self, query: str, total: int, total_all: int, filters: Filters) -> str | None:
        """The query, which finds so much, without a mistake; None where that is not sure."""
        suggestion = self.suggestion(query, filters)
        if (
            suggestion is not None
            and suggestion.total_all >= max(1, BETTER * total_all)
            and suggestion.is_sure(finds_nothing=not total)
        ):
            return suggestion.query
        return None

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
        facets_of = total = None
        with self.reading() as searcher:
            built = self._ranking.build(clauses)
            by_name = self.narrowing(filters)
            narrowing = list(by_name.values())
            matching, every = (narrowed(q, narrowing) for q in (built.matching, built.every))
            if facets:
                now, own = self._clock(), self.own_facets
                wanted = built.matching
                facets_of, total = count_facets(
                    searcher, wanted, by_name, now, own, self.dates(), self.unreached_query()
                )
            if total is None:
                total = count_of(searcher, matching)
            size, total_all = max(offset + limit + SPARE, RERANKED), None
            if not newest:
                stream, total_all = self.matches(searcher, built, narrowing, size)
                reranker = self._ranking.reranker(clauses, self.documents())
                stream = self.reranked(searcher, stream, reranker)
                stream = self._demoted(searcher, stream, matching)
            if total_all is None:
                one = self.is_one_word(clauses)
                total_all = total if one else count_of(searcher, every)
            if newest:
                stream = self.newest(searcher, every if total_all else matching, size)
            groups = grouped(stream, offset + limit + 1, copies=copies)
            maker = self._ranking.snippet_maker(clauses) if self._shows else None
            hits = [self._hit(searcher, group, maker) for group in groups[offset : offset + limit]]
        return Results(total, hits, 0.0, facets_of, total_all, more=len(groups) > offset + limit)

    def matches(
        self,
        searcher: tantivy.Searcher,
        built: Built,
        narrowing: Collection[Query],
        size: int,
    ) -> tuple[Iterator[Match], int | None]:
        """Matches by the best score that one of the ranked queries gives them, times the prior,
        then those behind them; and how many have all words that matter, where that is found by the
        way. Of more than `SOME`, or `MANY`, these come before others, which are then not looked
        for."""
        best, *others = (narrowed(query, narrowing) for query in built.ranked)
        all_words = hits = None
        if others:
            found: Any = searcher.search(best, size, count=True, weight_by_field=PRIOR)
            all_words, hits = int(found.count), found.hits
        first = self._in_portions(searcher, best, size, hits, weight_by_field=PRIOR)
        rest = [self.by_score(searcher, query, size, PRIOR) for query in others]
        among, behind = rest, list[Iterator[Match]]()
        if all_words is not None and all_words > MANY:
            among, behind = [], rest
        elif all_words is not None and all_words > SOME and built.nearly is not None:
            nearly = narrowed(built.nearly, narrowing)
            among, behind = [self.by_score(searcher, nearly, size, PRIOR)], rest
        stream = chain(merge(first, *among, key=lambda match: -match.score), *behind)
        if built.behind is not None:
            everything = narrowed(built.behind, narrowing)
            stream = chain(stream, self.by_score(searcher, everything, size, PRIOR))
        return _each_once(stream), all_words

    def by_score(
        self, searcher: tantivy.Searcher, wanted: Query, size: int, prior: str | None = None
    ) -> Iterator[Match]:
        """Matches by score, times the field ``prior``."""
        return self._in_portions(searcher, wanted, size, weight_by_field=prior)

    def newest(self, searcher: tantivy.Searcher, wanted: Query, size: int) -> Iterator[Match]:
        """Matches by date, which is the score, in seconds since the epoch."""
        for match in self._in_portions(searcher, wanted, size, order_by_field="date"):
            yield match._replace(score=match.score / 1e9)

    def _in_portions(
        self,
        searcher: tantivy.Searcher,
        wanted: Query,
        size: int,
        first: list[Any] | None = None,
        **by: Any,
    ) -> Iterator[Match]:
        """Matches in the order ``by``, read in portions that double, the first has ``size``, and
        may be known."""
        stream = self._portions(searcher, wanted, size, first, **by)
        if "order_by_field" in by or not self._is_limited(searcher):
            return stream
        return (match for _, match in evened((0, match) for match in stream))

    def _portions(
        self,
        searcher: tantivy.Searcher,
        wanted: Query,
        size: int,
        first: list[Any] | None,
        **by: Any,
    ) -> Iterator[Match]:
        start, found = 0, first
        unit = MACHINE_MADE_FACTOR if by.get("weight_by_field") else 1.0
        while True:
            if found is None:
                found = searcher.search(wanted, size, count=False, offset=start, **by).hits
            alike: Sequence[Any] = searcher.fast_field_values(
                "likeness", [address for _, address in found]
            )
            for (score, address), likeness in zip(found, alike, strict=True):
                yield Match(unit * score, address, likeness)
            if len(found) < size:
                return
            start, size, found = start + size, 2 * size, None

    def reranked(
        self, searcher: tantivy.Searcher, stream: Iterator[Match], reranker: Reranker
    ) -> Iterator[Match]:
        """Matches by score, the first ones with their texts looked at."""
        if not reranker:
            return stream
        first = []
        for match in islice(stream, RERANKED):
            stored = self.stored_of(searcher, match.address)
            score = match.score * reranker.factor(stored)
            first.append(match._replace(score=score, stored=stored))
        first.sort(key=lambda match: -match.score)
        if self._is_limited(searcher):
            first = [match for _, match in evened((0, match) for match in first)]
        return chain(first, stream)

    def _demoted(
        self, searcher: tantivy.Searcher, stream: Iterator[Match], wanted: Query
    ) -> Iterator[Match]:
        """Matches of ``wanted``, with those behind that were not reached at their last visit."""
        missed = self.unreached_places(searcher)
        if not missed:
            return stream

        def copies(_: int, match: Match) -> list[Place]:
            found = self.copies_of(searcher, match.likeness, among=wanted)
            return [(0, *place) for place in map(place_of, found) if place not in missed]

        found = demoted(((0, match) for match in islice(stream, LOOKED_AT)), [missed], copies)
        return (match for _, match in found)

    def narrowing(self, filters: Filters) -> dict[str, Query]:
        """The queries of filters, by name."""
        return filters.queries(self.schema, self.unreached_query())

    @property
    def unreached(self) -> Unreached:
        """Which pages were not reached at their last visit; as of the last `reading`."""
        return self._newest.unreached

    def unreached_query(self) -> Query | None:
        """All of these pages; None: there are none."""
        newest = self._newest
        if newest.unreached and newest.unreached_query is None:
            newest.unreached_query = newest.unreached.query(self.schema)
        return newest.unreached_query

    def unreached_places(self, searcher: tantivy.Searcher) -> Collection[tuple[int, int]]:
        """Where these pages are in the index; looked up once a commit, 10 us a page."""
        newest, wanted = self._newest, self.unreached_query()
        if wanted is None:
            return ()
        if newest.unreached_places is None:
            every = statistics(searcher)
            number = max(1, count_of(every, wanted))
            found = every.search(wanted, number, count=False).hits
            newest.unreached_places = frozenset(place_of(address) for _, address in found)
        return newest.unreached_places

    def _hit(
        self, searcher: tantivy.Searcher, group: Sequence[Match], maker: SnippetMaker | None
    ) -> Hit:
        best, missed = group[0], self.unreached_places(searcher)
        there = [one for one in group if place_of(one.address) not in missed] or group
        equal = [match for match in there if match.score >= EQUAL * there[0].score]
        stored = best_of([m.stored or self.stored_of(searcher, m.address) for m in equal])
        copies = self._number_of_copies(searcher, group)
        score = None if self._is_limited(searcher) else best.score
        return hit_of(stored, score, maker, copies, self.unreached)

    def examined(
        self,
        query: str,
        keys: Iterable[str],
        filters: Filters = NO_FILTERS,
        *,
        verbatim: bool = False,
    ) -> dict[str, Examined]:
        """What a query makes of pages, by canonical URL; without those that are not in the index.
        Raises QueryError."""
        clauses = self._clauses(query, verbatim=verbatim)
        with self.reading() as reader:
            return self._examined(reader, self._ranking, clauses, keys, filters)

    def _examined(
        self,
        reader: tantivy.Searcher,
        ranking: Ranking,
        clauses: Sequence[Clause],
        keys: Iterable[str],
        filters: Filters,
    ) -> dict[str, Examined]:
        fields, factors = field_names(self.directory), dict[str, float]()
        prior = PRIOR, MACHINE_MADE_FACTOR
        if reranker := ranking.reranker(clauses, self.documents()):
            narrowing = self.narrowing(filters).values()
            stream, _ = self.matches(reader, ranking.build(clauses), narrowing, RERANKED)
            for match in islice(stream, RERANKED):
                stored = self.stored_of(reader, match.address)
                factors[stored["key"]] = reranker.factor(stored)
        by_name = self.narrowing(filters)
        found = (
            (key, examine(reader, self.schema, fields, ranking, clauses, key, by_name, prior))
            for key in keys
        )
        examined = {
            key: one.times(factors.get(key, 1.0), REREAD).times(
                1.0 if self.unreached.since(key) is None else UNREACHED_FACTOR, NOT_REACHED
            )
            for key, one in found
            if one is not None
        }
        if self._is_limited(reader):
            return {key: one.without_numbers() for key, one in examined.items()}
        return examined

    def stored_of(
        self, searcher: tantivy.Searcher, address: DocAddress, *, whole: bool = False
    ) -> dict[str, Any]:
        """What the index has kept of a page, with the title that is shown; of a very long text what
        a hit is made of, unless ``whole``."""
        stored = stored_fields(searcher.doc(address), self._packed, beginning=not whole)
        if not self._link_texts:
            stored.pop("named", None)
        stored["title"] = shown_title(stored)
        stored.setdefault("own", {})
        stored.pop("named", None)
        return stored

    def copies(self, document: Document, limit: int = 20) -> tuple[int, list[Hit]]:
        """How many copies a page has in the index, and the first ones, by URL."""
        with self.reading() as searcher:
            found = [
                hit_of(
                    self.stored_of(searcher, address),
                    0.0,
                    self.beginnings,
                    unreached=self.unreached,
                )
                for address in self.copies_of(searcher, document.likeness)
            ]
        others = [hit for hit in found if hit.normalized != document.normalized]
        return len(others), sorted(others, key=lambda hit: hit.url)[:limit]

    def copies_of(
        self,
        searcher: tantivy.Searcher,
        likeness: int | None,
        *,
        quickly: bool = False,
        among: Query | None = None,
    ) -> list[DocAddress]:
        """Where a page and its copies are (`copies_in`)."""
        if likeness is None:
            return []
        pages = self.documents()
        return copies_in(searcher, self.schema, likeness, pages, quickly=quickly, among=among)

    def _number_of_copies(self, searcher: tantivy.Searcher, group: Sequence[Match]) -> int:
        """Looked up once a commit; with the likenesses of all pages, once so many were looked up
        that reading these takes no longer."""
        likeness = group[0].likeness
        if likeness is None:
            return 0
        newest, pages = self._newest, self.documents()
        known = newest.copies.setdefault(self._access, {})
        found = known.get(likeness)
        if found is None:
            every = newest.likenesses.get(self._access)
            if every is None and len(known) >= max(FEW_LOOKED_UP, pages // READ_PER_LOOK_UP):
                known.clear()
                if pages <= MANY_PAGES:
                    every = newest.likenesses[self._access] = Likenesses(searcher)
            if every is not None:
                found = every.near(likeness) - 1
            else:
                found = len(self.copies_of(searcher, likeness, quickly=True)) - 1
            known[likeness] = found
        return max(found, len(group) - 1)

    def _clauses(self, query: str, *, verbatim: bool = False) -> list[Clause]:
        clauses = each_once(self._resolved(self.clauses(query)))
        if verbatim:
            return clauses
        return respelled(with_related(self._synonyms.widened(clauses)), self)

    def _resolved(self, clauses: Sequence[Clause]) -> list[Clause]:
        """``-Wall`` or ``-std=c11`` beside other words is no minus, but a flag, where pages have
        ``-Wall`` or ``-std``; ``operator <<`` is one word."""
        found = list[Clause]()
        for clause in clauses:
            sign = f"operator{clause.text}"
            if clause.excluded and not (clause.phrase or clause.field) and self._is_flag(clause):
                found.append(clause.as_flag())
            elif found and _is_operator(found[-1]) and clause.plain and signs(sign) == [sign]:
                found[-1] = replace(found[-1], text=sign)
            else:
                found.append(clause)
        return found

    def _is_flag(self, clause: Clause) -> bool:
        sign = next(iter(signs(f"-{clause.text}")), "")
        words = self.words(sign)
        flagged = self.frequencies([sign], "signs").get(sign, 0)
        having = self.frequencies(words)
        return flagged * FLAG_SHARE > min((having.get(word, 0) for word in words), default=0)

    def get(self, normalized: str) -> Document | None:
        """The page with this canonical URL, or None."""
        key = normalized.encode("utf-8", "replace").decode()
        query = Query.term_query(self._index.schema, "key", key)
        with self.reading() as searcher:
            hits = searcher.search(query, 1, count=False).hits
            if not hits:
                return None
            stored = self.stored_of(searcher, hits[0][1], whole=True)
        for name in ("core", "contents", "apart", "breaks"):
            stored.pop(name, None)
        return Document(
            normalized=stored.pop("key"),
            text=stored.pop("body"),
            rest=stored.pop("rest", ""),
            fetched=stored.pop("fetched").timestamp(),
            modified=_time(stored.pop("modified", None)),
            fields=stored.pop("own"),
            sections=[Section(*one) for one in stored.pop("sections", ())],
            **stored,
        )

    def similar(self, document: Document, limit: int = 10) -> Results:
        """Pages of this index that share the salient words of ``document``, which may be of another
        index. The document and its copies are left out; ``total`` counts the hits."""
        started = time.perf_counter()
        with self.reading() as searcher:
            like_it = self._ranking.more_like_this(document, searcher)
            others = without_copies(self.by_score(searcher, like_it, limit + SPARE), document)
            groups = grouped(self._demoted(searcher, others, like_it), limit)
            hits = [self._hit(searcher, group, self.beginnings) for group in groups]
        return Results(len(hits), hits, time.perf_counter() - started)

    def suggestion(self, query: str, filters: Filters = NO_FILTERS) -> Suggestion | None:
        """A better query, where this one has words that the index does not know."""
        return did_you_mean(self, query, filters, self._synonyms)

    def completions(
        self, typed: str, limit: int = 8, until: float | None = None
    ) -> list[tuple[str, int]]:
        """Texts of links and titles that begin with what is typed, in lower case, and how many
        pages have each, most first. What is typed without accents may have them; with accents,
        those that have the same come before others. 0.2 ms; where very many begin so, who asks
        first has some of them ``until`` then (`time.monotonic`): completions.py."""
        found = dict[str, int]()
        with self.reading() as searcher:
            if until is None:
                limited = isinstance(searcher, Limited)
                until = time.monotonic() + (LIMITED_WAIT_SECS if limited else WAIT_SECS)
            for asked in self._beginnings(searcher, typed, limit):
                if len(found) >= limit:
                    break
                for term, pages in self._labels.most_frequent(asked, until):
                    found.setdefault(_closed(shown_label(term)), pages)
        return [*found.items()][:limit]

    def look_ahead(self, typed: str, limit: int = 8) -> None:
        """Begin to look for `completions`, which are asked for next."""
        with self.reading() as searcher:
            for asked in self._beginnings(searcher, typed, limit)[:1]:
                self._labels.look_ahead(asked)

    def _beginnings(self, searcher: tantivy.Searcher, typed: str, limit: int) -> list[Asked]:
        head = typed_head(typed)
        if len(head) < SHORTEST_HEAD or not self._link_texts:
            return []

        def pages(label: str) -> int:
            if isinstance(searcher, Limited):
                return searcher.doc_freq("labels", label)
            # of a page that is gone a text may still be there
            return count_of(searcher, Query.term_query(self.schema, "labels", label))

        return [
            Asked(
                beginning,
                limit,
                self._newest.seen,
                self._access if isinstance(searcher, Limited) else None,
                _looks_through(searcher, self._pages_of_all()),
                pages,
                partial(self._titles, searcher, beginning),
                at_once=self._pages_of_all() <= SMALL,
            )
            for beginning in dict.fromkeys((head, without_accents(head)))
        ]

    def _titles(self, searcher: tantivy.Searcher, head: str) -> tuple[Iterator[str], bool]:
        """Labels that begin with ``head``, of pages with the first of these in the alphabet, 50 of
        each segment of the index; and whether there are other pages."""
        first = Query.phrase_prefix_query(self.schema, "labels", [head])
        hits = searcher.search(first, TITLES, count=False, weight_by_field=PRIOR).hits
        labels = (title_label(self.stored_of(searcher, address)["title"]) for _, address in hits)
        of_head = (
            one for one in labels if one.startswith(head) or without_accents(one).startswith(head)
        )
        return of_head, len(hits) == TITLES

    def words(self, text: str) -> list[str]:
        """The words of ``text`` as the index writes them."""
        return self._ranking.words(text)

    def occurrences(self, word: str) -> int:
        """Pages that match ``word`` (see `words`), in the field with most of them, or another form
        of it."""
        with self.reading() as searcher:
            terms = self._ranking.terms(word)
            terms += [("exact", form) for form in self._seen_stems.forms(word)]
            return max(searcher.doc_freq(field, term) for field, term in terms)

    def frequencies(self, words: Iterable[str], field: str = "exact") -> dict[str, int]:
        """Pages with each exact word; words without pages are left out."""
        with self.reading() as searcher:
            counted = {word: searcher.doc_freq(field, word) for word in words}
        return {word: count for word, count in counted.items() if count}

    def has_side_by_side(self, words: Sequence[str]) -> bool:
        """Whether a page has several words side by side; looked up once a commit, 0.1 ms. False
        where each is on more than `OFTEN` pages: that takes long to find out, and says little."""
        key = self._access, tuple(words)
        with self.reading() as searcher:
            known = self._newest.side_by_side
            if key not in known:
                if len(known) >= _REMEMBERED:
                    known.clear()
                having = min(searcher.doc_freq("exact", word) for word in words)
                phrase = Query.phrase_query(self.schema, "exact", list(words))
                known[key] = 0 < having <= OFTEN and count_of(searcher, phrase) > 0
            return known[key]

    def few_beginning_with(
        self, head: str, most: int, *, exactly: bool = False
    ) -> list[str] | None:
        """The words that begin with ``head``, None where they are more than ``most``. Unless
        ``exactly``, few of them may be words of pages that are not seen, so look up in
        `frequencies` what is shown. Tantivy looks through all of them (80 ms for 200,000), so heads
        of too many are remembered until the index has fewer pages."""
        with self.reading() as searcher:
            crowded = self._access, head, most
            pages = self._crowded.get(crowded)
            if pages is not None and pages <= self.documents():
                return None
            words = statistics(searcher).terms_with_prefix("exact", head, limit=most + 1)
            if isinstance(searcher, Limited) and (exactly or len(words) > most):
                words = searcher.terms_with_prefix("exact", head, limit=most + 1)
            if len(words) > most:
                self._crowded[crowded] = self.documents()
                return None
            return [word for word, _ in words]

    def languages(self, hosts: int) -> dict[str, dict[str, int]]:
        """Pages by language of the ``hosts`` hosts with most pages."""
        with self.reading() as searcher:
            return languages_by_host(searcher, hosts)

    def count(self) -> int:
        """Pages in the index."""
        with self.reading() as searcher:
            return searcher.num_docs

    def documents(self) -> int:
        """Pages with the deleted ones not yet merged away, which count in BM25 too; for a reader
        who does not see all pages those that are seen."""
        with self.reading() as searcher:
            return searcher.num_docs if isinstance(searcher, Limited) else self._pages_of_all()

    def _pages_of_all(self) -> int:
        """Pages with the deleted ones, seen or not."""
        if self._newest.documents is None:
            meta = json.loads(self._meta.read_bytes())
            self._newest.documents = sum(segment["max_doc"] for segment in meta["segments"])
        return self._newest.documents

    def dates(self) -> Dates:
        """The dates of the oldest and the newest page; 6 ms for a million pages, once a commit."""
        with self.reading() as searcher:
            known = self._newest.dates
            if self._access not in known:
                known[self._access] = date_span(searcher)
            return known[self._access]

    def marker(self, query: str) -> SnippetMaker:
        """Marks the words of a query in any text; none where it means nothing."""
        try:
            clauses = self._clauses(query)
        except QueryError:
            clauses = []
        return self._ranking.snippet_maker(clauses)

    @property
    def beginnings(self) -> SnippetMaker:
        """For pages that are found by no words."""
        return self._ranking.snippet_maker([])

    @property
    def schema(self) -> tantivy.Schema:
        return self._index.schema

    @property
    def _ranking(self) -> Ranking:
        """By what the reader sees."""
        if self._access is EVERYTHING:
            return self._of_all
        with self.reading() as searcher:
            if not isinstance(searcher, Limited):
                return self._of_all
            known = self._newest.rankings
            key = self._access, self._link_texts
            if key not in known:
                known[key] = self.ranking(GlobalIdf([Statistics.of(searcher, 0)]).boosts(0))
            return known[key]

    def ranking(self, boosts: Boosts) -> Ranking:
        """For this index as one of several."""
        return Ranking(
            self._index.schema,
            self._seen_stems,
            boosts,
            link_texts=self._link_texts,
            unreached=self.unreached_query,
        )

    @property
    def _seen_stems(self) -> Stems:
        """They know the words of pages that the reader sees."""
        if self._access is EVERYTHING:
            return self._stems
        with self.reading() as searcher:
            if not isinstance(searcher, Limited):
                return self._stems
            known = self._newest.stems
            if self._access not in known:
                known[self._access] = self._stems.looking_in(searcher)
            return known[self._access]

    @contextmanager
    def reading(self) -> Iterator[tantivy.Searcher]:
        """The newest commit; Tantivy's errors become ours."""
        try:
            if (held := self._newest.held) is not None:
                yield self._limited(held)
                return
            meta = self._meta.stat()
            seen = (meta.st_mtime_ns, meta.st_ino)  # each commit renames a new file into place
            if seen != self._newest.seen:
                self._index.reload()
                self._stems.look_in(self._index.searcher())
                self._newest.renew(seen)
            marks = [_stamp(path / UNREACHED_FILE) for path in self.beside]
            if marks != self._newest.marks:
                self._newest.mark(marks, map(Unreached.read, self.beside))
            yield self._limited(self._index.searcher())
        except (ValueError, OSError) as error:
            raise CrawlDirError(f"{self.directory}: cannot read the index: {error}") from error
        except BaseException as error:
            if not is_panic(error):
                raise
            raise CrawlDirError(f"{self.directory}: the index cannot answer this") from error

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        """Many questions to the commit that is the newest one now: to look for a newer one takes
        longer than most answers."""
        newest = self._newest
        with self.reading():
            held = None if newest.held is not None else self._index.searcher()
            newest.held = newest.held or held
            try:
                yield
            finally:
                if held is not None:
                    newest.held = None

    def _limited(self, searcher: tantivy.Searcher) -> tantivy.Searcher:
        """What the reader may see of a commit: all questions to the index pass here."""
        if self._access is EVERYTHING:
            return searcher
        known = self._newest.limited
        if self._access not in known:
            hidden = self._access.hidden(searcher, self.schema)
            known[self._access] = hidden and Limited(
                searcher, self.schema, hidden, self._pages_of_all()
            )
        return cast("tantivy.Searcher", known[self._access] or searcher)


Stamp: TypeAlias = tuple[int, int] | None
"""By which a file is known again."""


def _stamp(path: Path) -> Stamp:
    """None: there is no such file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino


class _Newest:
    """What was found out of the commit that was read last, by all readers."""

    def __init__(self) -> None:
        self.held: tantivy.Searcher | None = None
        self.renew(None)
        self.mark([], ())

    def renew(self, seen: Stamp) -> None:
        """For a commit, which is known again by ``seen``."""
        self.seen = seen
        self.limited: dict[Access, Limited | None] = {}
        self.stems: dict[Access, Stems] = {}
        self.rankings: dict[tuple[Access, bool], Ranking] = {}
        self.documents: int | None = None
        self.side_by_side: dict[tuple[Access, tuple[str, ...]], bool] = {}
        self.dates: dict[Access, Dates] = {}
        self.copies: dict[Access, dict[int, int]] = {}
        self.likenesses: dict[Access, Likenesses] = {}
        self.unreached_places: Collection[tuple[int, int]] | None = None

    def mark(self, seen: Sequence[Stamp], unreached: Iterable[Unreached]) -> None:
        """For files with marks, which are known again by ``seen``."""
        self.marks = list(seen)
        self.unreached = reduce(or_, unreached, Unreached())
        self.unreached_query: Query | None = None
        self.unreached_places = None


class Match(NamedTuple):
    """A page that a query finds."""

    score: float
    address: DocAddress
    likeness: int | None
    stored: dict[str, Any] | None = None
    """Where it was looked at."""


def _each_once(stream: Iterable[Match]) -> Iterator[Match]:
    """The first one of each page."""
    known = set[tuple[int, int]]()
    for match in stream:
        address = match.address.segment_ord, match.address.doc
        if address not in known:
            known.add(address)
            yield match


def evened(stream: Iterable[tuple[int, Match]]) -> Iterator[tuple[int, Match]]:
    """Matches by score, each with the number of its index; those whose scores are equal but for
    their rounding come by their place. For a reader who does not see all pages words are weighed in
    two steps, and how these are rounded depends on pages that are hidden."""
    run, first = list[tuple[int, Match]](), 0.0
    for number, match in stream:
        if run and (match.score < first * (1 - ROUNDED) or len(run) == MOST_EVEN or not first):
            yield from sorted(run, key=_place)
            run = []
        if not run:
            first = match.score
        run.append((number, match if match.score == first else match._replace(score=first)))
    yield from sorted(run, key=_place)


def _place(found: tuple[int, Match]) -> tuple[int, int, int]:
    number, match = found
    return number, match.address.segment_ord, match.address.doc


def grouped(stream: Iterable[Match], most: int, *, copies: bool = False) -> list[list[Match]]:
    """The first ``most`` matches that are no copies of a better one, each with its copies as far as
    they were looked at; with ``copies`` each match by itself."""
    known, groups = Groups(), list[list[Match]]()
    for match in islice(stream, LOOKED_AT):
        at = known.place(None if copies else match.likeness)
        if at < len(groups):
            groups[at].append(match)
        elif len(groups) == most:
            break
        else:
            groups.append([match])
    return groups


def without_copies(stream: Iterable[Match], document: Document) -> Iterator[Match]:
    """Matches that are no copies of ``document``."""
    for match in stream:
        one, other = match.likeness, document.likeness
        if one is None or other is None or not near(one, other):
            yield match


def best_of(copies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of copies that answer a query as well as each other: one that does not name another page as
    the canonical one, with the shortest URL."""
    return min(copies, key=lambda one: (one.get("elsewhere", 0), len(one["url"]), one["url"]))


def check_window(limit: int, offset: int) -> None:
    """Raise QueryError for more than one search may ask for."""
    if not 1 <= limit <= MAX_LIMIT or not 0 <= offset <= MAX_OFFSET:
        raise QueryError(
            f"limit={limit}, offset={offset}: expected 1 to {MAX_LIMIT} and 0 to {MAX_OFFSET}"
        )


def count_of(searcher: tantivy.Searcher, query: Query) -> int:
    """How many pages match, without their scores, which would take six times as long; each has one
    kind. To order them by date and count them takes half as long again."""
    found = searcher.aggregate(query, {"pages": {"value_count": {"field": FILTER_FIELDS["type"]}}})
    return int(found["pages"]["value"])


def _looks_through(searcher: tantivy.Searcher | Limited, pages: int) -> LookThrough:
    """``pages`` with those that are gone, which Tantivy counts where there is no filter."""
    look = partial(searcher.terms_with_prefix, "labels")
    if not isinstance(searcher, Limited) and searcher.num_docs < pages:
        look = partial(look, filter_query=Query.all_query())
    return lambda head, most: look(head, limit=most)


def typed_head(typed: str) -> str:
    """What is typed, as labels begin with it."""
    return " ".join(normalized(typed).lower().split())


def replaced(query: str, results: Results) -> str | None:
    """What to say where another query was searched: one line for people."""
    if results.instead is None:
        return None
    if results.instead == without_quotes(query):
        return "No page has these words side by side. Searched for them without quotes."
    return f"Next to nothing found for: {query}. Searched instead for: {results.instead}"


def found_line(results: Results, took: str) -> str:
    """How many pages were found: "3 pages found in 2 ms; 50 with any of the words"."""
    line = f"{counted(results.total_all, 'page')} found in {took}"
    if results.total_all < results.total:
        line += f"; {results.total:,} with any of the words"
    return line


def _is_operator(clause: Clause) -> bool:
    """Whether this is the word "operator"."""
    return clause.plain and clause.text.lower() == "operator"


def without_quotes(query: str) -> str:
    """The words of a query, none excluded or in a phrase any more than they were; those of
    ``title:"log in"`` stay."""
    plain = _QUOTES.sub(lambda found: found[0] if found[1] else " ", straight(query))
    return " ".join(plain.split())


def hit_of(
    stored: dict[str, Any],
    score: float | None,
    maker: SnippetMaker | None,
    copies: int = 0,
    unreached: Unreached = ALL_REACHED,
) -> Hit:
    snippet, section = passage_of(stored, maker) if maker else (Snippet(""), None)
    return Hit(
        url=stored["url"],
        normalized=stored["key"],
        title=one_line(stored["title"]).strip(),
        score=score,
        snippet=snippet,
        section=section and section._replace(heading=one_line(section.heading).strip()),
        host=stored["host"] or FILES,
        mime=stored["mime"],
        kind=kind_of(stored["mime"]),
        language=stored["language"],
        size=stored["size"],
        fetched=stored["fetched"].timestamp(),
        modified=_time(stored.get("modified")),
        depth=None if score is None else stored["depth"],
        author=one_line(stored.get("author", "")),
        container=split_part(stored["url"])[0] if "container" in stored else "",
        copies=copies,
        collection=stored.get("collection", ""),
        # of a page that is remembered
        fields={name: [*values] for name, values in stored["own"].items()},
        missing_since=unreached.since(stored["key"]) if unreached else None,
    )


def _closed(text: str) -> str:
    """A label with the bracket that it lost at its end."""
    return text + ")" * (text.count("(") - text.count(")"))


def _time(date: datetime | None) -> float | None:
    return None if date is None else date.timestamp()


def results_json(
    query: str,
    results: Results,
    offset: int,
    filters: Filters,
    suggestion: Suggestion | None,
    best_bets: Iterable[BestBet] = (),
    opens: OpenableUrls = NOWHERE,
) -> dict[str, Any]:
    """The results of a search as JSON, for `scrapy search --json` and `/search?format=json`.

    docs/search-api.md has the fields. They are stable: new ones may come, none changes its meaning.
    """
    return {
        "query": query,
        "total": results.total,
        "total_all": results.total_all,
        "instead": results.instead,
        "also": list(results.also),
        "best_bets": [{"url": bet.url, "title": bet.title} for bet in best_bets],
        "offset": offset,
        "more": results.more,
        "seconds": round(results.seconds, 6),
        "suggestion": suggestion
        and {
            "query": suggestion.query,
            "total": suggestion.total,
            "total_all": suggestion.total_all,
        },
        "filters": _filters(filters),
        "hits": [hit_json(hit, opens) for hit in results.hits],
        "facets": None if results.facets is None else _facets(results.facets),
    }


def hit_json(hit: Hit, opens: OpenableUrls = NOWHERE) -> dict[str, Any]:
    """One hit; ``snippet`` is HTML: escaped, with the words of the query in <b>. ``opens`` says
    where readers find files."""
    return {
        "url": hit.url,
        "title": hit.title,
        "score": None if hit.score is None else round(hit.score, 4),
        "snippet": hit.snippet.html,
        "host": hit.host,
        "type": hit.kind,
        "mime": hit.mime,
        "language": hit.language,
        "size": hit.size,
        "fetched": hit.fetched,
        "missing_since": hit.missing_since,
        "modified": hit.modified,
        "depth": hit.depth,
        "author": hit.author,
        "page": hit.page or None,
        "section": hit.section and {"anchor": hit.section.anchor, "heading": hit.section.heading},
        "other_pages": list(hit.other_pages),
        "target": opens(hit.target) or None,
        "container": hit.container or None,
        "copies": hit.copies,
        "collection": hit.collection or None,
        "fields": hit.fields,
    }


def _filters(filters: Filters) -> dict[str, Any]:
    """The filters that are set; dates as in logs."""
    found: dict[str, Any] = {
        "host": list(filters.hosts),
        "type": list(filters.kinds),
        "language": list(filters.languages),
        "collection": list(filters.collections),
        "since": None if filters.since is None else utc(filters.since),
        "until": None if filters.until is None else utc(filters.until),
        "fields": filters.by_field,
        "unreachable": filters.unreachable,
    }
    return {name: value for name, value in found.items() if value}


def _facets(facets: Facets) -> dict[str, Any]:
    return {
        "host": facets.hosts,
        "other_hosts": facets.other_hosts,
        "type": facets.kinds,
        "language": facets.languages,
        "date": facets.dates,
        "collection": facets.collections,
        "fields": facets.fields,
        "unreachable": facets.unreachable,
    }
