"""Which pages of an index a reader may see.

    access = Access(restricted=("*.hr.example", FILES), allowed=("wiki.hr.example",))
    Searcher.open("crawl/index").seen_by(access).search("salary")

A reader's questions to an index, whatever they are for, go through `Limited`, which leaves out the
other pages inside Tantivy: hits and counts, and the words that suggestions are made of. Scores are
as for everybody: how rare a word is counts over all pages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import tantivy
from tantivy import DocAddress, Occur, Query

from larmspider.index.schema import FILES, hostname_of
from larmspider.urls.host_pattern import HostPattern
from larmspider.urls.host_resolver import canonical_host

FEW_PAGES, FEW_HOSTS = 100, 64
"""Pages that have a word, and hosts that are hidden, up to which these are not listed first."""


@dataclass(frozen=True, slots=True)
class Access:
    """Patterns of hosts, as in the sites file, and `FILES`: pages of hosts that are ``restricted``
    are seen only where they are ``allowed`` too. Schemes and ports of patterns do not count: a host
    is restricted at all its ports."""

    restricted: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    @property
    def files(self) -> bool:
        """Whether pages of file URLs are seen."""
        return FILES not in self.restricted or FILES in self.allowed

    def host(self, host: str) -> bool:
        """Whether pages of this host are seen."""
        return not _matches(self.restricted, host) or _matches(self.allowed, host)

    def page(self, url: str) -> bool:
        """Whether a page is seen."""
        place = place_of(url)
        return self.files if place == FILES else self.host(place)

    def hidden(self, searcher: tantivy.Searcher, schema: tantivy.Schema) -> Hidden | None:
        """The pages of a commit that are not seen; None: all are."""
        found, one_by_one = [], []
        hosts = [host for host, _ in searcher.terms_with_prefix("host", "") if not self.host(host)]
        if hosts:
            found = [Query.term_set_query(schema, "host", hosts)]
            one_by_one = [Query.term_query(schema, "host", host) for host in hosts]
        if not self.files and searcher.doc_freq("domains", FILES):
            files = Query.term_query(schema, "domains", FILES)
            found, one_by_one = [*found, files], [*one_by_one, files]
        if not found:
            return None
        hidden = _any_of(found)
        return Hidden(hidden, _any_of(one_by_one) if len(hosts) <= FEW_HOSTS else hidden)


class Hidden(NamedTuple):
    """Pages that are not seen, as a query whose list of pages is read first (1 ms for a million
    pages), and as one that is asked page by page: for queries that few pages match."""

    pages: Query
    one_by_one: Query


EVERYTHING = Access()


def _any_of(queries: list[Query]) -> Query:
    return Query.boolean_query([(Occur.Should, query) for query in queries])


def place_of(url: str) -> str:
    """The host by which a page is restricted: `FILES` for a file."""
    return FILES if url.startswith("file:") else hostname_of(url)


@lru_cache(4_096)
def _pattern(text: str) -> HostPattern:
    return replace(HostPattern.parse(text), scheme=None, port=0)


@lru_cache(16_384)
def _matches(patterns: tuple[str, ...], host: str) -> bool:
    host = canonical_host(f"[{host}]" if ":" in host else host) or host
    return any(_pattern(text).matches("", host, 0) for text in patterns if text != FILES)


class Limited:
    """A `tantivy.Searcher` without the pages that are ``hidden``; ``all`` is the whole one."""

    def __init__(self, searcher: tantivy.Searcher, schema: tantivy.Schema, hidden: Hidden) -> None:
        self.all, self._schema, self._hidden = searcher, schema, hidden

    def search(self, query: Query, limit: int = 10, **more: Any) -> tantivy.SearchResult:
        return self.all.search(self._seen(query), limit, **more)

    def aggregate(self, query: Query, wanted: dict[str, Any]) -> dict[str, Any]:
        return self.all.aggregate(self._seen(query), wanted)

    def doc(self, address: DocAddress) -> tantivy.Document:
        """A page that `search` has found."""
        return self.all.doc(address)

    def fast_field_values(self, field: str, addresses: list[DocAddress]) -> list[Any]:
        return self.all.fast_field_values(field, addresses)

    @property
    def num_docs(self) -> int:
        return self._count(Query.all_query(), self._hidden.pages)

    def doc_freq(self, field: str, word: str) -> int:
        of_all = self.all.doc_freq(field, word)
        if not of_all:
            return 0
        hidden = self._hidden.one_by_one if of_all <= FEW_PAGES else self._hidden.pages
        return self._count(Query.term_query(self._schema, field, word), hidden)

    def terms_with_prefix(
        self, field: str, prefix: str, limit: int | None = None
    ) -> list[tuple[str, int]]:
        seen = self._seen(Query.all_query())
        return self.all.terms_with_prefix(field, prefix, filter_query=seen, limit=limit)

    def _count(self, query: Query, hidden: Query) -> int:
        return int(self.all.search(_without(query, hidden), 1).count)  # type: ignore[attr-defined]

    def _seen(self, query: Query) -> Query:
        return _without(query, self._hidden.pages)


def _without(query: Query, hidden: Query) -> Query:
    return Query.boolean_query([(Occur.Must, query), (Occur.MustNot, hidden)])


def statistics(searcher: tantivy.Searcher | Limited) -> tantivy.Searcher:
    """The searcher by which Tantivy itself says how rare a word is."""
    return searcher.all if isinstance(searcher, Limited) else searcher
