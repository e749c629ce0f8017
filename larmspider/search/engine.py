"""The contract of search engines: a Searcher gets candidates, words and counts from them.

Tantivy's is Shard (shard.py), the default. LARM_SEARCH names another, which is in
larmspider/plugins/opensearch/engine.py. An engine finds candidates and counts; the second look
(rerank.py), snippets, sections, synonyms and best bets are the same for all.

A ``reader`` has the methods of `tantivy.Searcher` that `Limited` has, and finds only pages that
the person may see. It takes the queries that the class of the ``schema`` makes
(index/queries.py). An engine that cannot list the words of its index has no completions, and
returns None from `few_beginning_with`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from larmspider.index.queries import kind_of
from larmspider.index.schema import shown_title
from larmspider.items import Section
from larmspider.search.facets import count_of, languages_by_host
from larmspider.search.gather import Outage
from larmspider.search.results import Document, seconds_of

if TYPE_CHECKING:
    import tantivy
    from tantivy import DocAddress, Query

    from larmspider.index.access import Access
    from larmspider.index.stems import Stems
    from larmspider.index.unreached import Unreached
    from larmspider.search.facets import Dates
    from larmspider.search.query import Filters
    from larmspider.search.ranking import Boosts, Ranking
    from larmspider.search.shard import KnownOfReader

OFTEN = 10_000
"""Pages with each of several words, from which on they are not looked for side by side."""
_REMEMBERED = 10_000  # words side by side
_NAME_FIELDS = ("anchors", "url_words", "rest")  # beside the text


class SearchEngine(ABC):
    """An index as one person sees it. Its methods raise CrawlDirError.

    directory             names the index, in errors too
    outage                whether it is left out of searches over several indexes
    own_facets            own fields that are counted
    link_texts            whether texts of links find pages
    lists_all_likenesses  whether the likenesses of all pages can be read at once
    """

    directory: Path
    outage: Outage
    own_facets: Sequence[str]
    link_texts: bool
    lists_all_likenesses: ClassVar[bool]

    # --- the person, and the state of the index ---

    @abstractmethod
    def seen_by(self, access: Access) -> Self:
        """The index without the pages that ``access`` hides."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[tantivy.Searcher]:
        """The newest state of the index."""

    def naming_errors(self) -> AbstractContextManager[None]:
        """Errors of an engine's library become ours."""
        return nullcontext()

    @abstractmethod
    def one_commit(self) -> AbstractContextManager[None]:
        """Run many queries on the same state of the index."""

    @abstractmethod
    def is_limited(self, reader: tantivy.Searcher) -> bool:
        """Whether any page may be hidden from the person."""

    @property
    @abstractmethod
    def known(self) -> KnownOfReader:
        """Facts about the newest state, as this person sees it."""

    # --- queries ---

    @property
    @abstractmethod
    def schema(self) -> tantivy.Schema:
        """Names the class of queries."""

    @property
    @abstractmethod
    def seen_stems(self) -> Stems:
        """Stems that know only the words of pages that the person sees."""

    @property
    @abstractmethod
    def ranking_alone(self) -> Ranking:
        """The ranking by the pages that the person sees."""

    @abstractmethod
    def ranking(self, boosts: Boosts) -> Ranking:
        """The ranking for this index as one of several."""

    @abstractmethod
    def field_names(self) -> Sequence[str]:
        """The fields of the index, by their numbers in explanations of a score."""

    @abstractmethod
    def words(self, text: str) -> list[str]:
        """The words of ``text`` as the index writes them."""

    @abstractmethod
    def few_beginning_with(
        self, head: str, most: int, *, exactly: bool = False
    ) -> list[str] | None:
        """The words that begin with ``head``, None if they are more than ``most``, or cannot be
        listed. Unless ``exactly``, a few may belong to hidden pages."""

    @abstractmethod
    def completions(self, typed: str, limit: int, until: float) -> list[tuple[str, int]]:
        """Texts of links and titles that begin with the typed text (`Searcher.completions`)."""

    @abstractmethod
    def look_ahead(self, typed: str, limit: int) -> None:
        """Begin to look for the `completions` of the next question."""

    # --- pages ---

    @abstractmethod
    def get(self, key: str) -> Document | None:
        """The page with this canonical URL, or None."""

    @abstractmethod
    def stored_of(self, reader: tantivy.Searcher, address: DocAddress) -> dict[str, Any]:
        """The stored fields of a page, `as_shown`."""

    @property
    @abstractmethod
    def unreached(self) -> Unreached:
        """The pages that were not reached at their last visit, as of the last `reading`."""

    @abstractmethod
    def unreached_query(self) -> Query | None:
        """A query for all of these pages; None if there are none."""

    @abstractmethod
    def unreached_places(self, reader: tantivy.Searcher) -> Collection[tuple[int, int]]:
        """Where these pages are in the index."""

    # --- counts ---

    @abstractmethod
    def documents(self) -> int:
        """The number of pages by which words are weighed."""

    @abstractmethod
    def dates(self) -> Dates:
        """The dates of the oldest and the newest page, or earlier and later ones."""

    @property
    def sees_all(self) -> bool:
        """Whether this reader sees all pages, including pages of hosts that the index does not have
        yet."""
        with self.reading() as reader:
            return not self.is_limited(reader)

    def narrowing(self, filters: Filters) -> dict[str, Query]:
        """The queries of filters, by name."""
        return filters.queries(self.schema, self.unreached_query())

    def occurrences(self, word: str) -> int:
        """Pages that match ``word`` (see `words`), in the field with most of them, or another form
        of it."""
        with self.reading() as reader:
            terms = self.ranking_alone.terms(word)
            terms += [("exact", form) for form in self.seen_stems.forms(word)]
            terms.append(("signs", word))  # a word in several parts, typed as one
            return max(reader.doc_freq(field, term) for field, term in terms)

    def frequencies(self, words: Iterable[str], field: str = "exact") -> dict[str, int]:
        """Pages with each exact word; words without pages are left out."""
        with self.reading() as reader:
            counted = {word: reader.doc_freq(field, word) for word in words}
        return {word: count for word, count in counted.items() if count}

    def has_side_by_side(self, words: Sequence[str]) -> bool:
        """Whether a page has several words side by side; looked up once a commit, 0.1 ms. False
        if each is on more than `OFTEN` pages: that takes long to find out, and says little."""
        key = tuple(words)
        with self.reading() as reader:
            known = self.known.side_by_side
            if key not in known:
                if len(known) >= _REMEMBERED:
                    known.clear()
                having = min(reader.doc_freq("exact", word) for word in words)
                phrase = kind_of(self.schema).phrase_query(self.schema, "exact", list(words))
                known[key] = 0 < having <= OFTEN and count_of(reader, phrase) > 0
            return known[key]

    def has_name(self, words: Sequence[str], text: str) -> bool:
        """Whether a page, its URL or a link to it has the ``words`` of a name side by side, or
        ``text`` with other separators. Also true where each word is on more than `OFTEN` pages."""
        if self.has_side_by_side(words) or self.ranking_alone.joined(text):
            return True
        with self.reading() as reader:
            if min(reader.doc_freq("exact", word) for word in words) > OFTEN:
                return True
            schema, fields = self.schema, _NAME_FIELDS if self.link_texts else _NAME_FIELDS[1:]
            kind = kind_of(schema)
            each = [kind.phrase_query(schema, field, list(words)) for field in fields]
            return any(reader.search(query, 1, count=False).hits for query in each)

    def languages(self, hosts: int) -> dict[str, dict[str, int]]:
        """Pages by language of the ``hosts`` hosts with most pages."""
        with self.reading() as reader:
            return languages_by_host(reader, kind_of(self.schema).all_query(), hosts)

    def count(self) -> int:
        """Pages in the index."""
        with self.reading() as reader:
            return reader.num_docs


def as_shown(stored: dict[str, Any], *, link_texts: bool) -> dict[str, Any]:
    """The stored fields of a page with the title that is shown."""
    if not link_texts:
        stored.pop("named", None)
    stored["title"] = shown_title(stored)
    stored.setdefault("own", {})
    stored.pop("named", None)
    return stored


def document_of(stored: dict[str, Any]) -> Document:
    """The page of all its stored fields, which are used up."""
    for name in ("core", "contents", "apart", "breaks"):
        stored.pop(name, None)
    return Document(
        normalized=stored.pop("key"),
        text=stored.pop("body"),
        rest=stored.pop("rest", ""),
        fetched=stored.pop("fetched").timestamp(),
        modified=seconds_of(stored.pop("modified", None)),
        fields=stored.pop("own"),
        sections=[Section(*one) for one in stored.pop("sections", ())],
        **stored,
    )
