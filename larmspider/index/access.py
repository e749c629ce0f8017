"""Limits a reader to the pages of an index that this reader may see.

    access = Access(restricted=("*.hr.example", FILES), allowed=("wiki.hr.example",))
    Searcher.open("crawl/index").seen_by(access).search("salary")

A page is seen if its host is, and if its access list, where it has one, admits the reader
(access/table.py). Every query of a reader goes through `Limited`, which leaves out hidden pages
inside Tantivy. They are missing in hits, in counts, in the words of suggestions, and in the number
of pages with a word. Tantivy's own scores count all pages. Queries of such a reader
therefore weigh words by the pages that the reader sees (`GlobalIdf`), and the reader gets no score.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import tantivy
from tantivy import DocAddress, Occur, Query

from larmspider.access.lists import AUTHENTICATED, Reader
from larmspider.access.table import NO_SLOT, terms_of
from larmspider.access.verdicts import Verdicts, covering
from larmspider.index.schema import FILES, hostname_of
from larmspider.index.version import open_index
from larmspider.urls.host_pattern import HostPattern
from larmspider.urls.host_resolver import canonical_host

FEW_HOSTS = 64
"""Hidden hosts up to which hidden pages are not listed before the pages with a word."""
FEW_SLOTS = 64
"""Terms of hidden slots that are looked up one by one: 0.1 to 1 ms; a set of terms takes 1 to 4
ms."""
FEW_TERMS = 16
"""Terms with one beginning up to which each is counted by itself: listing the visible pages takes
about this long."""
TOGETHER, MANY_HIDDEN = 500, 100_000
"""Terms with one beginning, and hidden pages, up to which the hidden pages of all these terms are
counted together: listing the pages takes 0.1 ms."""
_REMEMBERED = 20_000  # terms whose pages were counted


@dataclass(frozen=True, slots=True)
class Access:
    """Patterns of hosts, as in the sites file, and `FILES`: pages of hosts that are ``restricted``
    are seen only where they are ``allowed`` too. Schemes and ports of patterns do not count: a host
    is restricted at all its ports. ``reader``: the principals that access lists are judged for;
    None: these do not count. Files are restricted by their lists alone for readers with a name."""

    restricted: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    reader: Reader | None = None

    @property
    def is_limited(self) -> bool:
        """Whether any host is restricted and not allowed, independent of the hosts in an index."""
        allowed = {_pattern(text) for text in self.allowed if text != FILES}
        return any(text != FILES and _pattern(text) not in allowed for text in self.restricted)

    @property
    def files(self) -> bool:
        """Whether pages of file URLs are seen."""
        named = self.reader is not None and AUTHENTICATED in self.reader
        return named or FILES not in self.restricted or FILES in self.allowed

    def host(self, host: str) -> bool:
        """Whether pages of this host are seen. A host with a connector counts as files do."""
        if "://" in host:
            return self.files
        return not _matches(self.restricted, host) or _matches(self.allowed, host)

    def page(self, url: str) -> bool:
        """Whether a page is seen."""
        place = place_of(url)
        return self.files if place == FILES else self.host(place)

    def hidden(
        self,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        verdicts: Verdicts | None = None,
        slots: Collection[int] = (),
    ) -> Hidden | None:
        """The hidden pages of a commit; None if no page is hidden. ``slots``: all slots of access
        lists in the commit."""
        found, one_by_one = [], []
        hosts = [host for host, _ in searcher.terms_with_prefix("host", "") if not self.host(host)]
        if hosts:
            found = [Query.term_set_query(schema, "host", hosts)]
            one_by_one = [Query.term_query(schema, "host", host) for host in hosts]
        if not self.files and searcher.doc_freq("domains", FILES):
            files = Query.term_query(schema, "domains", FILES)
            found, one_by_one = [*found, files], [*one_by_one, files]
        if verdicts is not None and self.reader is not None and slots:
            unseen = verdicts.hidden(slots, self.reader)
            if terms := covering(unseen, {*slots}.difference(unseen)):
                few = len(terms) <= FEW_SLOTS
                each = [
                    Query.term_query(schema, "slot", one, index_option="basic") for one in terms
                ]
                found += each if few else [Query.term_set_query(schema, "slot", terms)]
                one_by_one += each if few else found[-1:]
        if not found:
            return None
        hidden = _any_of(found)
        return Hidden(hidden, _any_of(one_by_one) if len(hosts) <= FEW_HOSTS else hidden)


def without_rights(directory: Path) -> int:
    """Documents of an index whose access lists are not known, parts among them. Raises
    CrawlDirError."""
    index, _ = open_index(directory)
    found = Query.term_query(index.schema, "slot", terms_of(NO_SLOT)[0], index_option="basic")
    return int(index.searcher().search(found, 1).count)  # type: ignore[attr-defined]


def slots_in(searcher: tantivy.Searcher) -> list[int]:
    """The slots of all pages of a commit."""
    terms = searcher.terms_with_prefix("slot", "")
    return [int(term, 16) for term, _ in terms if "/" not in term]


class Hidden(NamedTuple):
    """Hidden pages as two queries. ``pages`` reads their list first (1 ms for a million pages). The
    other is checked page by page: for queries that few pages match."""

    pages: Query
    one_by_one: Query


EVERYTHING = Access()


def _any_of(queries: list[Query]) -> Query:
    return Query.boolean_query([(Occur.Should, query) for query in queries])


def place_of(url: str) -> str:
    """The host whose restrictions apply to a page: `FILES` for a file."""
    return FILES if url.startswith("file:") else hostname_of(url)


@lru_cache(4_096)
def _pattern(text: str) -> HostPattern:
    return replace(HostPattern.parse(text), scheme=None, port=0)


@lru_cache(16_384)
def _matches(patterns: tuple[str, ...], host: str) -> bool:
    host = canonical_host(f"[{host}]" if ":" in host else host) or host
    return any(_pattern(text).matches("", host, 0) for text in patterns if text != FILES)


class Limited:
    """A commit without the ``hidden`` pages. ``all`` is the whole commit. ``pages_of_all`` is the
    number of its pages, including deleted pages that Tantivy has not merged away."""

    def __init__(
        self,
        searcher: tantivy.Searcher,
        schema: tantivy.Schema,
        hidden: Hidden,
        pages_of_all: int | None = None,
    ) -> None:
        self.all, self._schema, self._hidden = searcher, schema, hidden
        self.pages_of_all = searcher.num_docs if pages_of_all is None else pages_of_all
        self._hidden_alone = Query.const_score_query(hidden.one_by_one, 0.0)
        self._is_exact = self.pages_of_all == searcher.num_docs
        self._having: dict[tuple[str, str], int] = {}

    def search(self, query: Query, limit: int = 10, **more: Any) -> tantivy.SearchResult:
        return self.all.search(self._seen(query), limit, **more)

    def aggregate(self, query: Query, wanted: dict[str, Any]) -> dict[str, Any]:
        return self.all.aggregate(self._seen(query), wanted)

    def doc(self, address: DocAddress) -> tantivy.Document:
        """A page that `search` has found."""
        return self.all.doc(address)

    def fast_field_values(self, field: str, addresses: list[DocAddress]) -> list[Any]:
        return self.all.fast_field_values(field, addresses)

    @cached_property
    def num_docs(self) -> int:
        return self._count(self._seen(Query.all_query()))

    def doc_freq(self, field: str, word: str) -> int:
        """Counted once: 0.05 ms for a word on few pages, 0.3 ms for a word on 30,000."""
        of_all = self.all.doc_freq(field, word)
        if not of_all:  # most of the asked words: forms of a word, and parts of compounds
            return 0
        found = self._having.get((field, word))
        if found is None:
            found = self._remember(field, word, self._look_up(field, word, of_all))
        return found

    def _remember(self, field: str, word: str, pages: int) -> int:
        if len(self._having) >= _REMEMBERED:
            self._having.clear()
        self._having[field, word] = pages
        return pages

    def _look_up(self, field: str, word: str, of_all: int) -> int:
        # counting the hidden pages takes a third of the time
        having = Query.const_score_query(
            Query.term_query(self._schema, field, word, index_option="basic"), 0.0
        )
        if not self._is_exact:
            of_all = self._count(having)
        hidden = Query.boolean_query([(Occur.Must, having), (Occur.Must, self._hidden_alone)])
        return of_all - self._count(hidden)

    def terms_with_prefix(
        self, field: str, prefix: str, limit: int | None = None
    ) -> list[tuple[str, int]]:
        """The terms on the most pages come first."""
        together = self._is_exact and self.pages_of_all - self.num_docs <= MANY_HIDDEN
        most = TOGETHER if together else FEW_TERMS
        few = self.all.terms_with_prefix(field, prefix, limit=most + 1)
        if len(few) <= most:
            if together and len(few) > 1:
                counted = self._counted_together(field, prefix, few)
            else:
                counted = [(term, self.doc_freq(field, term)) for term, _ in few]
            return sorted((one for one in counted if one[1]), key=_most_first)[:limit]
        seen = self._seen(Query.all_query())
        return self.all.terms_with_prefix(field, prefix, filter_query=seen, limit=limit)

    def _counted_together(
        self, field: str, prefix: str, every: list[tuple[str, int]]
    ) -> list[tuple[str, int]]:
        """All terms with one beginning, with their visible pages. One look at the hidden pages of
        all terms takes as long as a look at one term."""
        hidden = dict(self.all.terms_with_prefix(field, prefix, filter_query=self._hidden.pages))
        return [
            (term, self._remember(field, term, pages - hidden.get(term, 0)))
            for term, pages in every
        ]

    def _count(self, query: Query) -> int:
        return int(self.all.search(query, 1).count)  # type: ignore[attr-defined]

    def _seen(self, query: Query) -> Query:
        return Query.boolean_query([(Occur.Must, query), (Occur.MustNot, self._hidden.pages)])


def _most_first(term: tuple[str, int]) -> tuple[int, str]:
    return -term[1], term[0]


def statistics(searcher: tantivy.Searcher | Limited) -> tantivy.Searcher:
    """The searcher of all pages. None of its figures may leave the server."""
    return searcher.all if isinstance(searcher, Limited) else searcher


def words_beginning_with(
    searcher: tantivy.Searcher | Limited, field: str, head: str, most: int
) -> list[str]:
    """The terms of a field that begin with ``head``: at most ``most``, by number of pages. A short
    list may have terms of hidden pages, so count the visible pages of each term before you use
    it."""
    if not isinstance(searcher, Limited):
        return [word for word, _ in searcher.terms_with_prefix(field, head, limit=most)]
    words = searcher.all.terms_with_prefix(field, head, limit=most + 1)
    if len(words) > most:
        words = searcher.terms_with_prefix(field, head, limit=most)
    return [word for word, _ in words]
