"""Searching one or several indexes, also while crawls write them in other processes::

    searcher = Searcher.open(Path("crawl/index"))
    results = searcher.search(SearchRequest('"log in" host:wiki.example', facets=True))
    for hit in results.hits:
        print(hit.score, hit.url, hit.title, hit.snippet.marked("*", "*"))

The life of a query: a SearchRequest names it; ParsedQuery takes it apart, once (request.py). Each
shard builds its own query to Tantivy (ranking.py) and answers with matches (reading.py), which are
merged, looked at once more (rerank.py), grouped with their copies (match.py) and become hits
(results.py, snippets.py).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from heapq import merge
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from tantivy import Query

from larmspider.errors import CrawlDirError, NoWordError, QueryError
from larmspider.index.access import Access
from larmspider.index.queries import kind_of
from larmspider.index.schema import url_words, without_accents
from larmspider.index.signs import signs
from larmspider.search.completions import LIMITED_WAIT_SECS, WAIT_SECS
from larmspider.search.demotion import demoted
from larmspider.search.engine import SearchEngine
from larmspider.search.facets import Facets, count_facets, count_of
from larmspider.search.facets import merge as merge_facets
from larmspider.search.folding import folded
from larmspider.search.gather import ShardError, gather
from larmspider.search.labels import queries
from larmspider.search.match import (
    LOOKED_AT,
    Match,
    Place,
    best_first,
    best_of,
    evened,
    grouped,
    without_copies,
)
from larmspider.search.query import NO_FILTERS, Filters, without_quotes
from larmspider.search.reading import (
    EXACT_TOTAL,
    Crawl,
    Deduplicator,
    Reading,
    ShardQuery,
    all_count,
    by_collection,
    chosen,
    opened,
)
from larmspider.search.request import ParsedQuery, SearchRequest
from larmspider.search.rerank import LOOKED_AT as RERANKED
from larmspider.search.results import Document, Hit, Results, Suggestion, hit_of
from larmspider.search.shard import Shard, typed_head
from larmspider.search.snippets import SnippetMaker
from larmspider.search.spelling import did_you_mean
from larmspider.search.synonyms import NO_SYNONYMS, Synonyms
from larmspider.search.why import Examined

NEXT_TO_NOTHING = 1
"""A better query is looked for if no more pages than this have all words that matter (0 pages for
a name of several words, which hardly any page has by chance)."""
BETTER = 2
"""A better query finds at least twice the number of pages."""
SPARE = 10
"""Matches that are read beyond the wanted number, as some are copies."""
CHUNK = 100
"""Matches in the first portion of each of several shards."""
EQUAL = 0.99
"""Share of the best copy's score, from which on another copy may stand for them."""
_WITH_SITE = re.compile(r" \([^()]+\)$")  # behind a label
T = TypeVar("T")
NO_WORDS = ParsedQuery("")
"""The query of pages that are found without words."""


class Searcher:
    """Searches the shards of one crawl or several as one index. Sees each commit from the next call
    on."""

    def __init__(
        self,
        crawls: Sequence[Crawl],
        clock: Callable[[], float] = time.time,
        synonyms: Synonyms = NO_SYNONYMS,
        *,
        as_one: bool = False,
    ) -> None:
        """``clock`` gives seconds since the epoch; the periods of facets end now. Queries find
        pages with ``synonyms`` of their words too. If one of several shards fails, the others
        answer; ``as_one``: the error is raised (`ShardError`)."""
        self._crawls, self._clock, self._synonyms = crawls, clock, synonyms
        self._as_one = as_one
        self.shards = [shard for crawl in crawls for _, shard in crawl.asked]
        self._has_collections = any(crawl.name for crawl in crawls)

    @classmethod
    def open(
        cls,
        directory: Path | str,
        own_facets: Sequence[str] = (),
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the index in ``directory``; ``own_facets`` are the fields of LARM_FIELDS that are
        counted.

        Raises CrawlDirError if there is no index, or one of another schema version.
        """
        return cls([Crawl([Shard.open(directory, own_facets)])], clock)

    @classmethod
    def of_workers(
        cls,
        workers: Iterable[Searcher],
        deduplicating: Callable[
            [Collection[Path]], AbstractContextManager[Deduplicator]
        ] = all_count,
        unopened: Sequence[CrawlDirError] = (),
    ) -> Self:
        """The indexes of a crawl's workers. If a page has several records, the Deduplicator says
        which one counts. Each answer names the errors of ``unopened`` indexes."""
        shards = [one for worker in workers for one in worker.shards if isinstance(one, Shard)]
        directories = [shard.directory for shard in shards]
        together = [shard.beside(directories) for shard in shards]
        return cls([Crawl(together, deduplicating, unopened=unopened)])

    @classmethod
    def of_collections(cls, collections: Iterable[tuple[str, Searcher]]) -> Self:
        """Several crawls, each with its name. Limit the searcher of each crawl before
        (`seen_by`). A page that is the same in two crawls is one hit."""
        return cls(
            [replace(crawl, name=name) for name, one in collections for crawl in one._crawls]
        )

    def seen_by(self, access: Access) -> Self:
        """The searcher without the pages that ``access`` hides (`Shard.seen_by`)."""
        return type(self)(
            [replace(c, shards=[one.seen_by(access) for one in c.shards]) for c in self._crawls],
            self._clock,
            self._synonyms,
        )

    def among(self, names: Sequence[str]) -> Self:
        """The collections with these names; all if one crawl is searched."""
        return type(self)(chosen(self._crawls, names), self._clock, self._synonyms)

    def widened_by(self, synonyms: Synonyms) -> Self:
        """Queries find pages with synonyms of their words too."""
        return type(self)(self._crawls, self._clock, synonyms)

    @property
    def unopened(self) -> list[CrawlDirError]:
        """The errors of indexes that could not be opened."""
        return [error for crawl in self._crawls for error in crawl.unopened]

    def _of_rest(self, ask: Callable[[Searcher], T]) -> tuple[T, tuple[CrawlDirError, ...]]:
        """An answer of all shards that can answer, and the errors of the others. Raises the last
        error if no shard can answer."""
        unopened = tuple(self.unopened)
        if self._as_one or len(self.shards) < 2:
            return ask(self), unopened
        failed = _failed(self.shards)
        while len(failed) < len(self.shards):
            crawls = [replace(crawl, left_out=failed.keys()) for crawl in self._crawls]
            rest = type(self)(crawls, self._clock, self._synonyms, as_one=True)
            try:
                return ask(rest), (*unopened, *failed.values())
            except ShardError as error:
                wrong = [one for one in rest.shards if one.directory == error.directory]
                if not wrong:
                    raise
                if wrong[0].outage.error is None:
                    wrong[0].outage.begin(error)
                failed[error.directory] = ShardError(error.directory, str(error))
                failed |= _failed(rest.shards)
        raise [*failed.values()][-1]

    # --- a query ---------------------------------------------------------------------------------

    def search(self, request: SearchRequest | str, *args: Any, **options: Any) -> Results:
        """The best pages; a text with options is short for ``SearchRequest(text, ...)``.

        A query that finds next to nothing is replaced by a better one (`Results.instead`), and
        words with synonyms are widened, unless the request is verbatim. A query without a word
        (``=>``) finds nothing.

        If one of several shards fails, the others answer (`Results.left_out`).

        Raises QueryError for a query that cannot mean anything, CrawlDirError for a broken index.
        """
        started = time.perf_counter()
        if isinstance(request, str):
            request = SearchRequest(request, *args, **options)
        request.check()
        try:
            found, left_out = self._of_rest(lambda rest: rest._searched(request, started))
            return replace(found, left_out=left_out) if left_out else found
        except NoWordError:
            facets = Facets() if request.facets else None
            return Results(request, 0, [], time.perf_counter() - started, facets=facets)

    def _searched(self, request: SearchRequest, started: float) -> Results:
        with self.one_commit():
            request.filters.check(self.has_field)
            query = self.parsed(request.query, verbatim=request.verbatim)
            found = self._found(query, request)
            if not request.verbatim and (better := self._better(query, found)):
                found = replace(self._found(better, request), instead=better.text)
            else:
                found = replace(found, not_typed=tuple(self._not_typed(query)))
            found = replace(found, no_filters=query.no_filters)
        seconds, suggestion = time.perf_counter() - started, None
        if request.suggest:
            suggestion = self.suggestion(request.query, request.filters)
        return replace(found, seconds=seconds, suggestion=suggestion)

    def parsed(self, text: str, *, verbatim: bool = False) -> ParsedQuery:
        """The query taken apart, with synonyms unless ``verbatim``. Raises QueryError."""
        return ParsedQuery.of(text, self, self._synonyms, verbatim=verbatim)

    def _found(self, query: ParsedQuery, request: SearchRequest) -> Results:
        with opened(self._crawls, request.filters.collections) as readings:
            asked = [ShardQuery(reading, query, request.filters) for reading in readings]
            wanted = request.offset + request.limit
            size = max(wanted + SPARE, RERANKED)
            size = size if len(asked) == 1 else min(size, CHUNK)
            parts = self._parts(asked, request, size, one_word=query.is_one_word(self))
            totals = [part.total for part in parts]
            total_all = sum(part.all_words for part in parts)
            facets = None
            if request.facets:
                facets = parts[0].facets if len(parts) == 1 else _sum_of_facets(parts)
            streams = [part.matches for part in parts]
            if request.newest:
                streams = _by_date(asked, size, all_words=total_all > 0)
            stream: Iterator[Match] = merge(*streams, key=best_first)
            if len(asked) > 1 and not request.newest and _is_limited(readings):
                stream = evened(stream)
            outdated = list[Match]()
            stream = _that_count(readings, stream, outdated)
            if not request.newest:
                stream = _reranked(asked, stream)
                stream = _demoted(readings, stream, [one.matching for one in asked])
            least = EXACT_TOTAL if any(one.doubtful for one in readings) else 0
            alone = _stands_alone(readings, query)
            groups = grouped(
                stream, wanted + 1, copies=request.copies, least=least, stands_alone=alone
            )
            hits = [
                _hit(readings, group, asked[group[0].shard].maker if request.snippets else None)
                for group in groups[request.offset : wanted]
            ]
        total = sum(totals) - len(outdated)
        if facets is not None and self._has_collections:
            named = by_collection(self._crawls, query, request.filters)
            facets = replace(facets, collections=named)
        return Results(
            request,
            total,
            hits,
            facets=facets,
            total_all=min(total, total_all),
            more=len(groups) > wanted,
            also=query.also,
        )

    def _parts(
        self, asked: Sequence[ShardQuery], request: SearchRequest, size: int, *, one_word: bool
    ) -> list[_Part]:
        """The counts and first matches of each shard, from all shards at the same time."""
        now, calls = self._clock(), list[tuple[SearchEngine, Callable[[], _Part]]]()
        missed = any(one.reading.shard.unreached for one in asked)
        for one in asked:
            # the Deduplicator is not for several threads
            wanted = one.that_count() if request.facets else None
            call = partial(_part, one, request, wanted, size, now, missed=missed, one_word=one_word)
            calls.append((one.reading.shard, call))
        return gather(calls)

    def totals(self, query: str, filters: Filters = NO_FILTERS) -> tuple[int, int]:
        """`Results.total` and `Results.total_all`, without hits and without a better query."""
        try:
            found, _ = self._of_rest(lambda rest: rest._totals_of(query, filters))
            return found
        except NoWordError:
            return 0, 0

    def _totals_of(self, query: str, filters: Filters) -> tuple[int, int]:
        filters.check(self.has_field)
        return self._totals(self.parsed(query), filters)

    def _totals(self, query: ParsedQuery, filters: Filters) -> tuple[int, int]:
        with opened(self._crawls) as readings:
            asked = [ShardQuery(reading, query, filters) for reading in readings]
            total = total_all = sum(one.total() for one in asked)
            if not query.is_one_word(self):
                total_all = sum(count_of(one.reading.reader, one.every) for one in asked)
            if any(one.doubtful for one in readings):
                outdated = list[Match]()
                streams = [one.matches(CHUNK)[0] for one in asked]
                stream = _that_count(readings, merge(*streams, key=best_first), outdated)
                for _ in islice(stream, EXACT_TOTAL):
                    pass
                total -= len(outdated)
        return total, min(total, total_all)

    def examined(self, request: SearchRequest, keys: Iterable[str]) -> dict[str, Examined]:
        """Explain the scores of pages, by canonical URL; pages that the index does not have are
        left out. If a page has several records, the best score counts. Raises QueryError."""
        query = self.parsed(request.query, verbatim=request.verbatim)
        wanted, found = list(keys), dict[str, Examined]()
        with opened(self._crawls, request.filters.collections) as readings:
            for reading in readings:
                here = ShardQuery(reading, query, request.filters).examined(wanted)
                for key, one in here.items():
                    if key not in found or one.score > found[key].score:
                        found[key] = one
        return found

    def _not_typed(self, query: ParsedQuery) -> Iterator[str]:
        """Names, codes and flags of a query that no page has as they are typed."""
        for clause, counts in query.words:
            if not counts or clause.fuzzy or clause.also or "://" in clause.text:
                continue
            text, typed = clause.text.rstrip("?!.,;:"), signs(clause.text)
            words = self.words(text)
            if typed:
                has = len(self.frequencies(typed, "signs")) == len(typed)
            else:
                has = len(words) < 2 or any(one.has_name(words, text) for one in self.shards)
            if not has and words:
                yield text

    # --- a better query --------------------------------------------------------------------------

    def suggestion(self, query: str, filters: Filters = NO_FILTERS) -> Suggestion | None:
        """A better query, if this one has words that the index does not know."""
        try:
            return self._of_rest(lambda rest: did_you_mean(rest, rest.parsed(query), filters))[0]
        except NoWordError:
            return None

    def _better(self, query: ParsedQuery, found: Results) -> ParsedQuery | None:
        """A query that finds more, if ``found`` is next to nothing: with a mistake corrected, or
        without quotes, or both."""
        if found.total_all > (0 if query.is_name(self) else NEXT_TO_NOTHING):
            return None
        filters = found.request.filters
        if better := self._corrected(query, found.total, found.total_all, filters):
            return better
        if not found.total and query.has_phrase:
            with suppress(QueryError):  # "title: draft"
                plain = self.parsed(without_quotes(query.text))
                return self._corrected(plain, *self._totals(plain, filters), filters) or plain
        return None

    def _corrected(
        self, query: ParsedQuery, total: int, total_all: int, filters: Filters
    ) -> ParsedQuery | None:
        """The query without a mistake, or None if no correction is certain. ``total`` and
        ``total_all``: the pages that it finds."""
        found = did_you_mean(self, query, filters)
        if (
            found is not None
            and found.total_all >= max(1, BETTER * total_all)
            and found.is_sure(finds_nothing=not total)
        ):
            return self.parsed(found.query)
        return None

    # --- a page ----------------------------------------------------------------------------------

    def get(self, key: str) -> Document | None:
        """The latest record of the page whose URL has this exact form, or None."""
        return self._of_rest(lambda rest: rest._get(key))[0]

    def _get(self, key: str) -> Document | None:
        found = list[Document]()
        for crawl in self._crawls:
            pages = [(number, shard.get(key)) for number, shard in crawl.asked]
            if any(page for _, page in pages):
                with crawl.deduplicating(crawl.left_out) as dedup:
                    for number, page in pages:
                        if page is not None and dedup.counts(number, key, page.fetched):
                            found.append(page)
        return max(found, key=lambda page: page.fetched, default=None)

    def similar(self, document: Document, limit: int = 10) -> Results:
        """Pages that share the salient words of ``document``, which may be of another index. The
        document and its copies are left out; ``total`` counts the hits."""
        found, left_out = self._of_rest(lambda rest: rest._similar(document, limit))
        return replace(found, left_out=left_out) if left_out else found

    def _similar(self, document: Document, limit: int) -> Results:
        started = time.perf_counter()
        with opened(self._crawls) as readings:
            wanted = [one.ranking.more_like_this(document, one.reader) for one in readings]
            streams = [
                without_copies(one.by_score(like_it, limit + SPARE), document)
                for one, like_it in zip(readings, wanted, strict=True)
            ]
            stream: Iterator[Match] = merge(*streams, key=best_first)
            if len(readings) > 1 and _is_limited(readings):
                stream = evened(stream)
            stream = _demoted(readings, _that_count(readings, stream, []), wanted)
            hits = [
                _hit(readings, group, readings[group[0].shard].ranking.snippet_maker(NO_WORDS))
                for group in grouped(stream, limit)
            ]
        seconds = time.perf_counter() - started
        return Results(SearchRequest("", limit), len(hits), hits, seconds)

    def copies(self, document: Document, limit: int = 20) -> tuple[int, list[Hit]]:
        """The number of copies of a page, and the first copies, by URL. If a page has several
        records, the record that counts."""
        return self._of_rest(lambda rest: rest._copies_of(document, limit))[0]

    def _copies_of(self, document: Document, limit: int) -> tuple[int, list[Hit]]:
        with opened(self._crawls) as readings:
            hits = [
                hit_of(
                    stored,
                    0.0,
                    readings[number].ranking.snippet_maker(NO_WORDS),
                    unreached=readings[number].shard.unreached,
                )
                for number, stored in _copies(readings, document.likeness, document.normalized)
            ]
        return len(hits), sorted(hits, key=lambda hit: hit.url)[:limit]

    def marker(self, query: str) -> SnippetMaker:
        """An object that marks the words of a query in any text. For a query without a word to find
        it marks nothing."""
        try:
            parsed = self.parsed(query)
        except QueryError:
            parsed = NO_WORDS
        return self.shards[0].ranking_alone.snippet_maker(parsed)

    # --- words -----------------------------------------------------------------------------------

    def completions(self, typed: str, limit: int = 8) -> list[tuple[str, int]]:
        """Texts of links and titles that begin with the typed text, in lower case, and the number
        of pages with each, most first; behind them texts with a word that begins so. A text with
        the name of the site in brackets is left out beside the same text without. Text without
        accents also finds texts with accents; for text with accents, texts with the same accents
        come first. Takes 0.2 ms. If very many texts begin
        like this, the first question gets some of them in `WAIT_SECS` (completions.py)."""
        return self._of_rest(lambda rest: rest._completions(typed, limit))[0]

    def _completions(self, typed: str, limit: int) -> list[tuple[str, int]]:
        total, head = Counter[str](), typed_head(typed)
        until = time.monotonic() + (WAIT_SECS if self.sees_all else LIMITED_WAIT_SECS)
        for shard in self.shards if len(self.shards) > 1 else ():
            shard.look_ahead(typed, limit)
        for shard in self.shards:
            total.update(dict(shard.completions(typed, limit, until)))
        for text in [*total]:
            short = _WITH_SITE.sub("", text)
            if short != text and short in total:
                del total[text]
        found = total.most_common()
        plain = without_accents(head)
        found.sort(key=lambda one: not without_accents(one[0]).startswith(plain))
        if head != plain:
            found.sort(key=lambda one: not one[0].startswith(head))
        return found[:limit]

    @property
    def sees_all(self) -> bool:
        """Whether this reader sees all pages, including pages of hosts that the index does not have
        yet."""
        return all(shard.sees_all for shard in self.shards)

    def has_field(self, name: str) -> bool:
        """Whether a page has this own field (LARM_FIELDS)."""
        return bool(self.frequencies([name], "own_words"))

    def words(self, text: str) -> list[str]:
        """The words of ``text`` as the index writes them."""
        return self.shards[0].words(text) if self.shards else []

    def occurrences(self, word: str) -> int:
        """Pages that match ``word`` (see `words`), in the field with most of them, or another form
        of it."""
        return sum(shard.occurrences(word) for shard in self.shards)

    def frequencies(self, words: Iterable[str], field: str = "exact") -> dict[str, int]:
        """Pages with each exact word; words without pages are left out."""
        wanted, total = list(words), Counter[str]()
        for shard in self.shards:
            total.update(shard.frequencies(wanted, field))
        return dict(total)

    def has_side_by_side(self, words: Sequence[str]) -> bool:
        """Whether a page has several words side by side (`Shard.has_side_by_side`)."""
        return any(shard.has_side_by_side(words) for shard in self.shards)

    def few_beginning_with(
        self, head: str, most: int, *, exactly: bool = False
    ) -> list[str] | None:
        """The words that begin with ``head``, None if they are more than ``most``
        (`Shard.few_beginning_with`)."""
        found = set[str]()
        for shard in self.shards:
            words = shard.few_beginning_with(head, most, exactly=exactly)
            if words is None:
                return None
            found.update(words)
        if len(found) <= most:
            return list(found)
        return (
            None if exactly or self.sees_all else self.few_beginning_with(head, most, exactly=True)
        )

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        """Run many queries on the same commits, the newest ones. To look for a newer commit takes
        longer than most answers."""
        with ExitStack() as stack:
            for shard in self.shards:
                stack.enter_context(shard.one_commit())
            yield

    def languages(self, hosts: int) -> dict[str, dict[str, int]]:
        """Pages by language of the ``hosts`` hosts with most pages of each index."""
        total: dict[str, Counter[str]] = {}
        for shard in self.shards:
            for host, pages in shard.languages(hosts).items():
                total.setdefault(host, Counter()).update(pages)
        return {host: dict(pages.most_common()) for host, pages in total.items()}

    def count(self) -> int:
        """Pages in all indexes; a page in two counts twice."""
        return self._of_rest(lambda rest: sum(shard.count() for shard in rest.shards))[0]

    def documents(self) -> int:
        """The number of pages, with the deleted ones that Tantivy has not merged away yet, because
        BM25 counts them; for a reader who does not see all pages, the visible ones."""
        return sum(shard.documents() for shard in self.shards)


def _failed(shards: Iterable[SearchEngine]) -> dict[Path, ShardError]:
    """The shards that are left out now, and why."""
    return {one.directory: error for one in shards if (error := one.outage.error)}


# --- the matches of all shards -------------------------------------------------------------------


def _is_limited(readings: Sequence[Reading]) -> bool:
    return any(one.is_limited for one in readings)


class _Part(NamedTuple):
    """The answer of a shard: ``total`` records match, ``all_words`` of them with all words that
    matter. ``matches`` come best first."""

    total: int
    all_words: int
    facets: Facets | None
    matches: Iterator[Match]


def _part(
    one: ShardQuery,
    request: SearchRequest,
    counted: Query | None,
    size: int,
    now: float,
    *,
    missed: bool,
    one_word: bool,
) -> _Part:
    """``counted``: the matches that facets count. ``missed``: pages of some shard were not reached
    at their last visit. ``one_word``: each match has all words that matter."""
    shard, reader, facets, total = one.reading.shard, one.reading.reader, None, None
    with shard.naming_errors():
        if counted is not None:
            facets, total = count_facets(
                reader,
                counted,
                one.by_filter,
                now,
                shard.own_facets,
                shard.dates(),
                shard.unreached_query()
                or (kind_of(shard.schema).empty_query() if missed else None),
                queries(request.labels, shard.schema),
            )
        if total is None or one.reading.doubtful:
            total = one.total()
        matches: Iterator[Match] = iter(())
        all_words = None
        if not request.newest:
            matches, all_words = one.matches(size)
            matches = _begun(matches)
        if all_words is None:
            all_words = total if one_word else count_of(reader, one.every)
    return _Part(total, all_words, facets, matches)


def _sum_of_facets(parts: Iterable[_Part]) -> Facets:
    return merge_facets(part.facets for part in parts if part.facets is not None)


def _begun(matches: Iterator[Match]) -> Iterator[Match]:
    """The same matches, with the first portion read now."""
    return chain([first], matches) if (first := next(matches, None)) is not None else iter(())


def _by_date(asked: Sequence[ShardQuery], size: int, *, all_words: bool) -> list[Iterator[Match]]:
    """The matches of each shard, newest first; with ``all_words`` only matches with all words that
    matter."""

    def begun(one: ShardQuery) -> Iterator[Match]:
        return _begun(one.reading.newest(one.every if all_words else one.matching, size))

    return gather([(one.reading.shard, partial(begun, one)) for one in asked])


def _stored(readings: Sequence[Reading], match: Match) -> dict[str, Any]:
    return match.stored or readings[match.shard].stored(match.address)


def _that_count(
    readings: Sequence[Reading], stream: Iterator[Match], outdated: list[Match]
) -> Iterator[Match]:
    """Matches of all shards; records that do not count go to ``outdated``."""
    for match in islice(stream, LOOKED_AT):
        reading = readings[match.shard]
        if reading.doubtful and not reading.counts(_stored(readings, match)):
            outdated.append(match)
        else:
            yield match


def _reranked(asked: Sequence[ShardQuery], stream: Iterator[Match]) -> Iterator[Match]:
    """The matches by score. The first matches are reranked by their texts."""
    if not all(one.reranker for one in asked):
        return stream
    readings, first = [one.reading for one in asked], list[Match]()
    for match in islice(stream, RERANKED):
        stored = _stored(readings, match)
        score = match.score * asked[match.shard].reranker.factor(stored)
        first.append(match._replace(score=score, stored=stored))
    first.sort(key=best_first)
    return chain(evened(first) if _is_limited(readings) else first, stream)


def _demoted(
    readings: Sequence[Reading], stream: Iterator[Match], wanted: Sequence[Query]
) -> Iterator[Match]:
    """The matches of ``wanted``. Pages that were not reached at their last visit come later."""
    if not any(one.missed for one in readings):
        return stream

    def is_missed(place: Place) -> bool:
        return place[1:] in readings[place[0]].missed

    def copies(match: Match) -> Iterator[Place]:
        for one, query in zip(readings, wanted, strict=True):
            for address in one.copies_of(match.likeness, among=query):
                place = one.number, address.segment_ord, address.doc
                if not is_missed(place):
                    yield place

    return demoted(islice(stream, LOOKED_AT), is_missed, copies)


def _stands_alone(
    readings: Sequence[Reading], query: ParsedQuery
) -> Callable[[Match, Match], bool]:
    """Whether the title or URL of a copy has a word of the query that the shown page's lacks."""
    typed = " ".join(clause.text for clause, counts in query.told if counts)
    words = set(re.findall(r"[^\W_]+", folded(typed)))

    def own(match: Match) -> set[str]:
        stored = _stored(readings, match)
        return words.intersection(
            re.findall(r"[^\W_]+", folded(f"{stored['title']} {url_words(stored['url'])}"))
        )

    def stands_alone(copy: Match, shown: Match) -> bool:
        is_missed = copy.place[1:] in readings[copy.shard].missed
        return not is_missed and bool(own(copy) - own(shown))

    return stands_alone


def _hit(readings: Sequence[Reading], group: Sequence[Match], maker: SnippetMaker | None) -> Hit:
    """The hit of a match and its copies. If several are equally good, the best page represents
    all."""
    best = group[0]
    there = [one for one in group if one.place[1:] not in readings[one.shard].missed] or group
    equal = [one for one in there if one.score >= EQUAL * there[0].score]
    stored = best_of([_stored(readings, one) for one in equal])
    if len(readings) == 1:
        copies = max(readings[0].number_of_copies(best.likeness), len(group) - 1)
    else:
        copies = sum(1 for _ in _copies(readings, best.likeness, stored["key"]))
    score = None if _is_limited(readings) else best.score
    return hit_of(stored, score, maker, copies, readings[equal[0].shard].shard.unreached)


def _copies(
    readings: Sequence[Reading], likeness: int | None, key: str
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The copies of the page ``key``, each once: number of the shard, and the stored fields."""
    known = {key}
    for one in readings:
        for address in one.copies_of(likeness):
            stored = one.stored(address)
            if stored["key"] not in known and one.counts(stored):
                known.add(stored["key"])
                yield one.number, stored
