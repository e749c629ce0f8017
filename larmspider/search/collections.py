"""Several crawls searched as one, each a collection with a name.

    searcher = CollectionsSearcher([("wiki", wiki), ("handbook", handbook.seen_by(access))])
    searcher.search("vpn", filters=Filters(collections=("wiki",)), facets=True)

What a reader may see is a matter of each crawl: its searcher is limited before. Scores compare as
those of a crawl's workers do: how rare a word is counts over the pages of all that are searched. A
page that is the same in two crawls is one hit, as other copies are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Self

from larmspider.index.access import Access
from larmspider.search.facets import Facets
from larmspider.search.query import NO_FILTERS, Clause, Filters, narrowed
from larmspider.search.ranking import Boosts
from larmspider.search.results import Results
from larmspider.search.searcher import Searcher, count_of
from larmspider.search.shards import Deduplicator, WorkersSearcher
from larmspider.search.why import Examined


class CollectionsSearcher(WorkersSearcher):
    """Each collection is the index of a crawl, or those of its workers."""

    _is_one_crawl = False

    def __init__(self, collections: Sequence[tuple[str, Searcher]]) -> None:
        self._collections = list(collections)
        shards = [(name, one) for name, searcher in collections for one in shards_of(searcher)]
        super().__init__([one for _, one in shards], self._deduplicating_each)
        self._names = [name for name, _ in shards]

    @contextmanager
    def _deduplicating_each(self) -> Iterator[Deduplicator]:
        with ExitStack() as stack:
            known: list[tuple[Deduplicator, int]] = []
            for _, searcher in self._collections:
                own = Deduplicator()
                if isinstance(searcher, WorkersSearcher):
                    own = stack.enter_context(searcher._deduplicating())
                known += [(own, number) for number in range(len(shards_of(searcher)))]
            yield _EachByItsOwn(known)

    def seen_by(self, access: Access) -> Self:
        limited = [(name, searcher.seen_by(access)) for name, searcher in self._collections]
        return self._with(limited)

    def _with(self, collections: Sequence[tuple[str, Searcher]]) -> Self:
        found = type(self)(collections)
        found._synonyms, found._shows = self._synonyms, self._shows
        return found

    def among(self, names: Sequence[str]) -> Self:
        """The collections that a filter names; all where it names none."""
        if not names:
            return self
        return self._with([one for one in self._collections if one[0] in names])

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
        among = self.among(filters.collections)
        found = super(CollectionsSearcher, among)._search(
            clauses, limit, offset, filters, facets, copies, newest
        )
        if not facets:
            return found
        counted = replace(found.facets or Facets(), collections=self._counts(clauses, filters))
        return replace(found, facets=counted)

    def _counts(self, clauses: Sequence[Clause], filters: Filters) -> dict[str, int]:
        """Matches by collection, whichever is chosen, most first."""
        found: dict[str, int] = {}
        for name, shard in zip(self._names, self._shards, strict=True):
            with shard.reading() as reader:
                wanted = shard.ranking(Boosts()).build(clauses).matching
                narrowing = shard.narrowing(filters).values()
                found[name] = found.get(name, 0) + count_of(reader, narrowed(wanted, narrowing))
        return {name: n for name, n in sorted(found.items(), key=lambda one: -one[1]) if n}

    def examined(
        self,
        query: str,
        keys: Iterable[str],
        filters: Filters = NO_FILTERS,
        *,
        verbatim: bool = False,
    ) -> dict[str, Examined]:
        among = self.among(filters.collections)
        return super(CollectionsSearcher, among).examined(query, keys, filters, verbatim=verbatim)


class _EachByItsOwn(Deduplicator):
    """Asks the crawl that a shard belongs to; ``shards`` are its Deduplicator and number there."""

    def __init__(self, shards: Sequence[tuple[Deduplicator, int]]) -> None:
        self._shards = shards

    def doubtful(self, shard: int) -> bool:
        crawl, number = self._shards[shard]
        return crawl.doubtful(number)

    def counts(self, shard: int, exact: str, fetched: float) -> bool:
        crawl, number = self._shards[shard]
        return crawl.counts(number, exact, fetched)


def shards_of(searcher: Searcher) -> Sequence[Searcher]:
    """The indexes that a searcher reads."""
    return searcher._shards if isinstance(searcher, WorkersSearcher) else [searcher]
