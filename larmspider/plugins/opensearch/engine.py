"""The search over an index that OpenSearchReceiver has written (LARM_SEARCH = "opensearch")::

    searcher_of([Path("crawl")], settings).seen_by(access).search("vpn")

OpenSearch finds the candidates and counts them; the rest of the search is as over our own index
(search/engine.py). Each question is one structured query with the filter for the person
(rights.py), which is at most `VIEW_SECS` old. The numbers of pages with the words of a query are
looked up together: a question takes some milliseconds. OpenSearch does not list the words of an
index: there are no completions and no compounds, and a word with two mistakes is not corrected.
English forms of a word are made from endings, and those that the index has count.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import reduce
from math import inf
from operator import or_
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from larmspider import options
from larmspider.errors import QueryError, SearchAwayError, SearchRefusedError
from larmspider.index.access import EVERYTHING, Access
from larmspider.index.copies import MOST, like, near
from larmspider.index.link_access import covered
from larmspider.index.normal import normalized
from larmspider.index.schema import STEMMERS, ExactAnalyzer, label
from larmspider.index.stems import COMPOUNDING, STEMMERS_OF, Stems
from larmspider.index.unreached import Unreached
from larmspider.index.version import restricted_of
from larmspider.pipelines.outbox.receiver import AwayError, RefusedError
from larmspider.pipelines.outbox.replies import REPLY_BYTES, LongReplyError
from larmspider.plugins.opensearch.connection import (
    Address,
    Answer,
    Connection,
    as_object,
    check_mapping,
)
from larmspider.plugins.opensearch.documents import page_in
from larmspider.plugins.opensearch.queries import SCHEMA, OpenSearchQuery
from larmspider.plugins.opensearch.receiver import OpenSearchReceiver
from larmspider.redaction import told
from larmspider.search.engine import SearchEngine, as_shown, document_of
from larmspider.search.gather import Outage, ShardError
from larmspider.search.ranking import (
    EXACT_WEIGHTS,
    FORM_FIELDS,
    FORM_WEIGHT,
    STEMMED_WEIGHTS,
    Boosts,
    GlobalIdf,
    Ranking,
    Statistics,
)
from larmspider.search.reading import Crawl
from larmspider.search.searcher import Searcher
from larmspider.search.shard import MAX_READERS, KnownOfReader

if TYPE_CHECKING:
    import tantivy
    from tantivy import DocAddress, Query

    from larmspider.options import Settings
    from larmspider.search.facets import Dates
    from larmspider.search.request import ParsedQuery
    from larmspider.search.results import Document

TIMEOUT_SECS = 10
"""OpenSearch answers a question within this time; the reader of the page waits."""
VIEW_SECS = 5.0
"""Age of the rights filter and of the counts. OpenSearch shows new documents every 5 s."""
CHECK_SECS = 60.0
"""Age of the last check of version and mapping."""
WINDOW = 10_000
"""Hits of a query that OpenSearch gives (index.max_result_window)."""
KNOWN_MAJORS: Mapping[str, frozenset[int]] = {
    "opensearch": frozenset({2, 3}),
    "elasticsearch": frozenset({7, 8, 9}),
}
_BYTES = 64_000_000  # most bytes of an answer with pages
_PAGES = 32  # that are read together
_TERMS = 500  # that are counted together
_FEW_WORDS = 20  # that are looked up with their stems
_IDLE = 8  # connections
_AT_ONCE_SECS = 1.0
"""A kept connection that fails within this time was closed by the server before."""
_SHARDS = 1_000  # values of a facet that each shard counts
_COUNTED_FIELDS = (*EXACT_WEIGHTS, "signs", "labels")
_LIKE_CHARS = 20_000  # first characters of a page that count, as in ranking.py
_TONGUES = (*STEMMERS_OF, *COMPOUNDING, "he")  # that Stems looks for
_ENDINGS = (
    *("", "s", "es", "ed", "ing", "ings", "er", "ers", "e", "y", "ies", "ied", "ying", "ier"),
    *("ly", "al", "ally", "ion", "ions", "able", "ment", "ments", "ness"),
)
_DOUBLING = ("ed", "er", "ers", "ing", "ings")  # stopped: after another last letter
_MAJOR = re.compile(r"(\d{1,4})\.")
_TOO_MANY = ("too_many", "max_clause_count", "maxClauseCount")
_NANOSECONDS = 1_000_000  # in a millisecond


def searcher_of(crawls: Sequence[Path], settings: Settings, facets: Sequence[str] = ()) -> Searcher:
    """The search over LARM_OPENSEARCH_URL. ``crawls``: the directories of the crawls that have
    written there. Raises ConfigError; questions raise CrawlDirError."""
    stemmer = options.choice(settings, "LARM_INDEX_STEMMER", STEMMERS)
    client = Client(Address.from_settings(settings), stemmer)
    return Searcher([Crawl([OpenSearchEngine(client, crawls, stemmer, facets)])])


class EngineAwayError(SearchAwayError, ShardError):
    """OpenSearch cannot answer now: other indexes do."""


class EngineRefusedError(SearchRefusedError, ShardError):
    """OpenSearch denies access, or has no index of ours: other indexes answer."""


class LongAnswerError(EngineAwayError):
    """An answer has more bytes than its limit."""


def english_forms(head: str) -> list[str]:
    """Words that may be forms of an English word whose forms begin with ``head``."""
    doubled = [head[-1] + ending for ending in _DOUBLING]
    return [head + ending for ending in (*_ENDINGS, *doubled)]


class Client:
    """Asks OpenSearch, from several threads. Raises EngineAwayError, EngineRefusedError and,
    for a query that is too long, QueryError."""

    def __init__(self, address: Address, stemmer: str) -> None:
        self._address, self._stemmer = address, stemmer
        self.name = f"{address.at}/{address.name}"
        self.directory = Path(self.name)
        self._idle = list[Connection]()
        self._good_until = -inf

    def close(self) -> None:
        """Close the connections; a later question opens another."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        self.close()

    def search(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a query, of all shards."""
        self._check()
        name = self._address.name
        path = (
            f"/{name}/_search?allow_partial_search_results=false&search_type=dfs_query_then_fetch"
            "&preference=larmspider"
        )
        answer = self._ask("POST", path, body, _BYTES)
        if answer.status != 200:
            self._good_until = -inf
            if answer.status == 400 and any(one in str(answer.body) for one in _TOO_MANY):
                raise QueryError("the query has too many words for OpenSearch")
            if answer.status == 404:
                raise EngineRefusedError(self.directory, self._told(f"there is no index {name}"))
            raise EngineRefusedError(self.directory, self._told(answer.error))
        found = as_object(answer.body)
        shards = as_object(found.get("_shards"))
        if (
            found.get("timed_out")
            or shards.get("failed")
            or not isinstance(as_object(found.get("hits")).get("hits"), list)
        ):
            raise EngineAwayError(self.directory, self._told("some of its shards do not answer"))
        return found

    def _check(self) -> None:
        """Check version, mapping and stemmer, every `CHECK_SECS`."""
        if time.monotonic() < self._good_until:
            return
        answer = self._ask("GET", "/")
        version = as_object(as_object(answer.body).get("version"))
        if answer.status != 200 or not version:
            raise EngineRefusedError(
                self.directory, self._told(f"is not OpenSearch: GET / gave {answer.error}")
            )
        kind = str(version.get("distribution", "elasticsearch"))
        number = str(version.get("number", ""))
        major = _MAJOR.match(number)
        if not major or int(major[1]) not in KNOWN_MAJORS.get(kind, ()):
            known = "OpenSearch 2 and 3, Elasticsearch 7 to 9"
            raise EngineRefusedError(
                self.directory,
                self._told(f"unknown version {told(kind)} {told(number)}: expected {known}"),
            )
        name = self._address.name
        answer = self._ask("GET", f"/{name}")
        if answer.status == 404:
            raise EngineRefusedError(
                self.directory,
                self._told(f"there is no index {name}: a crawl with OpenSearchReceiver makes it"),
            )
        if answer.status != 200:
            raise EngineRefusedError(self.directory, self._told(answer.error))
        for found in as_object(answer.body).values():
            try:
                check_mapping(name, as_object(found), self._stemmer)
            except RefusedError as error:
                raise EngineRefusedError(self.directory, self._told(str(error))) from None
        self._good_until = time.monotonic() + CHECK_SECS

    def _told(self, text: str) -> str:
        return f"OpenSearch at {self._address.at}: {text}"

    def _ask(self, method: str, path: str, body: Any = None, limit: int = REPLY_BYTES) -> Answer:
        try:
            return self._answered(method, path, body, limit)
        except LongReplyError as error:
            raise LongAnswerError(self.directory, f"OpenSearch at {error}") from None
        except AwayError as error:
            self._good_until = -inf
            raise EngineAwayError(self.directory, f"OpenSearch at {error}") from None
        except RefusedError as error:
            self._good_until = -inf
            raise EngineRefusedError(self.directory, f"OpenSearch at {error}") from None

    def _answered(self, method: str, path: str, body: Any, limit: int) -> Answer:
        started = time.monotonic()
        try:
            kept = self._idle.pop()
        except IndexError:
            kept = None
        if kept is not None:
            try:
                return self._by(kept, method, path, body, limit)
            except LongReplyError:
                raise
            except AwayError:
                if time.monotonic() - started > _AT_ONCE_SECS:
                    raise
        return self._by(Connection(self._address, TIMEOUT_SECS), method, path, body, limit)

    def _by(self, connection: Connection, method: str, path: str, body: Any, limit: int) -> Answer:
        try:
            answer = connection.ask(method, path, body, limit)
        except BaseException:
            connection.close()
            raise
        if len(self._idle) < _IDLE:
            self._idle.append(connection)
        else:
            connection.close()
        return answer


class Place(NamedTuple):
    """The place of a document, as Tantivy's DocAddress has it; ``doc`` is its id."""

    segment_ord: int
    doc: str
    likeness: int | None
    prior: float | None


@dataclass(frozen=True, slots=True)
class Found:
    hits: list[tuple[Any, Place]]
    count: int | None


class View:
    """The documents that one person may see, and the number of pages with each term, for
    `VIEW_SECS`."""

    def __init__(self, client: Client, seen: dict[str, Any], unreached: Unreached) -> None:
        self.client, self.filter, self.unreached = client, seen, unreached
        self.until = time.monotonic() + VIEW_SECS
        self.known = KnownOfReader()
        self.pages = self.pages_of_all = 0
        self._counts: dict[tuple[str, str], tuple[int, int]] = {}
        self.stems: Stems | None = None

    def look_up(self, terms: Iterable[tuple[str, str]]) -> None:
        """Count the pages with each term, in few requests."""
        wanted = [one for one in dict.fromkeys(terms) if one not in self._counts]
        if self._counts and not wanted:
            return
        for start in range(0, max(1, len(wanted)), _TERMS):
            some = wanted[start : start + _TERMS]
            each = {
                str(number): {"term": {field: {"value": token}}}
                for number, (field, token) in enumerate(some)
            }
            counted = {"terms": {"filters": {"filters": each}}} if each else {}
            found = self.client.search(
                {
                    "size": 0,
                    "track_total_hits": True,
                    "query": self.filter,
                    "aggs": {**counted, "all": {"global": {}, "aggs": counted}},
                }
            )
            of_all = found["aggregations"]["all"]
            self.pages, self.pages_of_all = found["hits"]["total"]["value"], of_all["doc_count"]
            for number, term in enumerate(some):
                seen, every = (
                    int(one["terms"]["buckets"][str(number)]["doc_count"])
                    for one in (found["aggregations"], of_all)
                )
                self._counts[term] = seen, every

    def counted(self, field: str, token: str) -> tuple[int, int]:
        """The number of pages with a term that the person sees, and of all pages."""
        if (field, token) not in self._counts:
            self.look_up([(field, token)])
        return self._counts[field, token]


class OfAll:
    """The pages by which OpenSearch weighs words: all pages, also pages that the person does not
    see."""

    def __init__(self, view: View) -> None:
        self._view = view

    def doc_freq(self, field: str, token: str) -> int:
        return self._view.counted(field, token)[1]


class OpenSearchReader:
    """The documents that a person may see, with the methods of `tantivy.Searcher`."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.keys: dict[str, str] = {}
        self._pages: dict[str, dict[str, Any]] = {}
        self._next: list[str] = []

    @property
    def num_docs(self) -> int:
        return self.view.pages

    def doc_freq(self, field: str, token: str) -> int:
        return self.view.counted(field, token)[0]

    def terms_with_prefix(self, field: str, head: str, **_: Any) -> list[tuple[str, int]]:
        """OpenSearch does not list words: the English forms that the index has."""
        if field not in FORM_FIELDS or not head.isalpha():
            return []
        fields = {field, "exact", "labels"}  # a ranking asks for these next
        self.view.look_up((one, word) for word in english_forms(head) for one in fields)
        counted = ((word, self.doc_freq(field, word)) for word in english_forms(head))
        return [(word, pages) for word, pages in counted if pages]

    def search(
        self,
        query: OpenSearchQuery,
        limit: int = 10,
        *,
        count: bool = True,
        offset: int = 0,
        weight_by_field: str | None = None,
        order_by_field: str | None = None,
    ) -> Found:
        wanted = query.json()
        if weight_by_field is not None:
            by = {"field": weight_by_field, "missing": 1.0}
            wanted = {
                "function_score": {
                    "query": wanted,
                    "field_value_factor": by,
                    "boost_mode": "multiply",
                }
            }
        size = min(limit, WINDOW - offset)
        if size <= 0:
            return Found([], None)
        body: dict[str, Any] = {
            "query": self._seen(wanted),
            "from": offset,
            "size": size,
            "track_total_hits": count,
            "_source": ["page.key"],
            "docvalue_fields": ["likeness", "prior"],
        }
        if order_by_field is not None:
            body["sort"] = [{order_by_field: {"order": "desc"}}]
        answer = self.view.client.search(body)
        hits = list[tuple[Any, Place]]()
        for hit in answer["hits"]["hits"]:
            values, name = hit.get("fields", {}), str(hit["_id"])
            address = Place(0, name, *(values.get(n, [None])[0] for n in ("likeness", "prior")))
            try:
                self.keys[name] = str(hit["_source"]["page"]["key"])
            except (KeyError, TypeError):
                raise self._foreign(name) from None
            value: Any = hit["_score"]
            if order_by_field == "likeness":
                value = address.likeness
            elif order_by_field is not None:
                value = hit["sort"][0] * _NANOSECONDS
            hits.append((value, address))
        self._next = self._next + [place.doc for _, place in hits]
        return Found(hits, answer["hits"]["total"]["value"] if count else None)

    def aggregate(self, query: OpenSearchQuery, wanted: Mapping[str, Any]) -> dict[str, Any]:
        body = {
            "size": 0,
            "track_total_hits": False,
            "query": self._seen(query.json()),
            "aggs": {name: _aggregation(one) for name, one in wanted.items()},
        }
        found = self.view.client.search(body)["aggregations"]
        return {name: _counted(one, found[name]) for name, one in wanted.items()}

    def fast_field_values(self, field: str, addresses: Sequence[Place]) -> list[Any]:
        if field == "likeness":
            return [address.likeness for address in addresses]
        # the documents have the factor that Tantivy computes
        return [2 ** (address.prior or 1.0) - 2 for address in addresses]

    def score_of(self, query: OpenSearchQuery, address: Place) -> float:
        ids = {"ids": {"values": [address.doc]}}
        body = {"query": self._seen(query.json(), ids), "size": 1, "_source": False}
        hits = self.view.client.search(body)["hits"]["hits"]
        return float(hits[0]["_score"]) if hits else 0.0

    def page(self, name: str) -> dict[str, Any]:
        """The fields of a page that `search` has found; the next ones are read along. The query
        has the filter too: a document may have got another access list."""
        if name not in self._pages:
            some = [one for one in self._next if one not in self._pages and one != name]
            self._read([name, *some[: _PAGES - 1]])
        if name not in self._pages:
            raise EngineAwayError(
                self.view.client.directory, "the index has changed during the search: search again"
            )
        return self._pages[name].copy()

    def _read(self, names: Sequence[str]) -> None:
        wanted = {"ids": {"values": list(names)}}
        body = {
            "query": {"bool": {"filter": [wanted, self.view.filter]}},
            "size": len(names),
            "_source": ["page", "link_texts"],
        }
        try:
            hits = self.view.client.search(body)["hits"]["hits"]
        except LongAnswerError:
            if len(names) == 1:
                raise EngineAwayError(
                    self.view.client.directory, "a page in OpenSearch is too long to be shown"
                ) from None
            half = len(names) // 2
            self._read(names[:half])
            self._read(names[half:])
            return
        alike = set[int]()
        for hit in hits:
            try:
                page, _ = page_in(hit["_source"])
            except (ValueError, KeyError, TypeError, AttributeError):
                raise self._foreign(hit["_id"]) from None
            found = page.fields()
            found["sections"] = [tuple(one) for one in found.get("sections", ())]
            self._pages[hit["_id"]] = found
            if page.likeness is not None and page.likeness not in self.view.known.copies:
                alike.add(page.likeness)
        if alike:
            self._count_copies(alike)

    def _foreign(self, name: str) -> EngineRefusedError:
        return EngineRefusedError(
            self.view.client.directory,
            f"the document {told(name)} in OpenSearch was not written by larmspider",
        )

    def _count_copies(self, likenesses: Collection[int]) -> None:
        """Count the copies of several pages together, as `Reading.number_of_copies` would."""
        blocks = sorted({block for one in likenesses for block in like(one)})
        query = OpenSearchQuery.term_set_query(SCHEMA, "blocks", blocks)
        after = self._next
        found = [place.likeness for _, place in self.search(query, WINDOW, count=False).hits]
        self._next = after  # these pages are not shown
        if len(found) < WINDOW:
            for one in likenesses:
                copies = sum(other is not None and near(one, other) for other in found)
                self.view.known.copies[one] = min(MOST, copies) - 1

    def _seen(self, query: dict[str, Any], *more: dict[str, Any]) -> dict[str, Any]:
        return {"bool": {"must": [query], "filter": [self.view.filter, *more]}}


def _aggregation(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """An aggregation of Tantivy for OpenSearch, whose dates are in milliseconds."""
    ((kind, params),) = ((one, params) for one, params in wanted.items() if one != "aggs")
    params = dict(params)
    inner = {name: _aggregation(one) for name, one in wanted.get("aggs", {}).items()}
    if kind == "terms":
        params["shard_size"] = max(_SHARDS, params.get("size", 0))
    elif kind == "range":
        kind = "date_range"
        params["format"] = "epoch_millis"
        params["ranges"] = [
            {name: round(value / _NANOSECONDS) for name, value in one.items()}
            for one in params["ranges"]
        ]
    return {kind: params, "aggs": inner} if inner else {kind: params}


def _counted(wanted: Mapping[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The answer in Tantivy's form."""
    for bucket in found.get("buckets", ()):
        if "range" in wanted:
            for end in ("from", "to"):
                if end in bucket:
                    bucket[end] *= _NANOSECONDS
        elif wanted["terms"]["field"].startswith("own."):
            bucket["key"] = f"={bucket['key']}"  # Tantivy's values have a mark
        for name, inner in wanted.get("aggs", {}).items():
            bucket[name] = _counted(inner, bucket[name])
    return found


class Missed(Collection[tuple[int, int]]):
    """The documents found by a reader that were not reached at their last visit."""

    def __init__(self, reader: OpenSearchReader) -> None:
        self._keys, self._unreached = reader.keys, reader.view.unreached

    def __contains__(self, place: object) -> bool:
        key = self._keys.get(place[1]) if isinstance(place, tuple) else None
        return key is not None and self._unreached.since(key) is not None

    def __len__(self) -> int:
        return sum(self._unreached.since(key) is not None for key in self._keys.values())

    def __bool__(self) -> bool:
        return bool(self._unreached)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(())


class OpenSearchRanking(Ranking):
    """Looks up all words of a query together. OpenSearch has the stems of all texts, where our own
    index looks for other forms of a word in its dictionary."""

    view: View

    def build(self, query: ParsedQuery) -> Any:
        texts = [text for clause in query.clauses for text in (clause.text, *clause.also)]
        texts += [related for clause in query.clauses for related in clause.related]
        whole = label(" ".join(clause.text for clause in query.clauses))
        terms = [one for text in texts for one in self.terms_of(text)]
        self.view.look_up([*terms, ("labels", whole)])
        return super().build(query)

    def terms_of(self, text: str) -> Iterator[tuple[str, str]]:
        """The terms by which the words of a text are weighed."""
        for word in self.words(text):
            yield from ((field, word) for field in _COUNTED_FIELDS)
            for stem in self._stems.analyze(word):
                yield from ((field, stem) for field in STEMMED_WEIGHTS)
                for at in range(1, len(stem)) if self._stems.has_compounds else ():
                    yield from (("body", part) for part in (stem[:at], stem[at:]))

    def more_like_this(self, document: Document, searcher: tantivy.Searcher) -> Query:
        text = f"{document.title} {document.text[:_LIKE_CHARS]}"
        self.view.look_up(("exact", word) for word in dict.fromkeys(self.words(text)))
        return super().more_like_this(document, searcher)

    def _forms(self, word: str, fields: Sequence[str], share: float) -> Iterator[Query]:
        for field in fields:
            if f"{field}.stems" in ("anchors.stems", "url_words.stems"):
                for stem in self._stems.analyze(word):
                    weight = EXACT_WEIGHTS[field] * FORM_WEIGHT * share
                    term = self._queries.term_query(self.schema, f"{field}.stems", stem)
                    yield self._queries.boost_query(term, weight)


class OpenSearchEngine(SearchEngine):
    """An index of OpenSearch, as one person sees it."""

    lists_all_likenesses = False

    def __init__(
        self, client: Client, crawls: Sequence[Path], stemmer: str, own_facets: Sequence[str]
    ) -> None:
        self._client, self._crawls, self.own_facets = client, crawls, own_facets
        self.directory, self.outage = client.directory, Outage()
        self._access, self.link_texts = EVERYTHING, True
        self._stems, self._exact = Stems(stemmer), ExactAnalyzer()
        self._views: dict[Access, View] = {}
        self._lock = Lock()

    def close(self) -> None:
        self._client.close()

    def seen_by(self, access: Access) -> Self:
        limited = copy(self)
        limited._access = access
        if access.restricted:
            # hosts may have become restricted since their link texts were collected
            noted = [restricted_of(crawl / "index") for crawl in self._crawls]
            limited.link_texts = all(covered(access.restricted, one) for one in noted)
        return limited

    @property
    def _view(self) -> View:
        """Raises CrawlDirError if the rights of the person cannot be read."""
        with self._lock:
            view = self._views.get(self._access)
        if view is not None and time.monotonic() < view.until:
            return view
        try:
            seen = OpenSearchReceiver.seen_by(self._crawls, self._access)
            marks = [Unreached.read(crawl / "index") for crawl in self._crawls]
        except OSError as error:
            raise ShardError(self.directory, f"the access lists cannot be read: {error}") from error
        view = View(self._client, seen, reduce(or_, marks, Unreached()))
        view.look_up([("tongue", one) for one in _TONGUES])
        view.stems = self._stems.looking_in(cast("tantivy.Searcher", OpenSearchReader(view)))
        with self._lock:
            self._views.pop(self._access, None)
            self._views[self._access] = view
            if len(self._views) > MAX_READERS:
                del self._views[next(iter(self._views))]
        return view

    @contextmanager
    def reading(self) -> Iterator[tantivy.Searcher]:
        yield cast("tantivy.Searcher", OpenSearchReader(self._view))

    @contextmanager
    def one_commit(self) -> Iterator[None]:
        yield

    def is_limited(self, reader: tantivy.Searcher) -> bool:
        """Each query has the filter, so nothing is said about whether it hides a page."""
        return self._access != EVERYTHING

    @property
    def known(self) -> KnownOfReader:
        return self._view.known

    @property
    def schema(self) -> tantivy.Schema:
        return cast("tantivy.Schema", SCHEMA)

    @property
    def seen_stems(self) -> Stems:
        stems = self._view.stems
        assert stems is not None
        return stems

    @property
    def ranking_alone(self) -> Ranking:
        if self._access == EVERYTHING:
            return self.ranking(Boosts())
        return self.ranking(GlobalIdf([self._statistics(self._view)]).boosts(0))

    def _statistics(self, view: View) -> Statistics:
        of_all, seen = cast("tantivy.Searcher", OfAll(view)), OpenSearchReader(view)
        return Statistics(of_all, view.pages_of_all, cast("Any", seen))

    def ranking(self, boosts: Boosts) -> OpenSearchRanking:
        found = OpenSearchRanking(
            self.schema,
            self.seen_stems,
            boosts,
            link_texts=self.link_texts,
            unreached=self.unreached_query,
        )
        found.view = self._view
        return found

    def field_names(self) -> Sequence[str]:
        return ()

    def words(self, text: str) -> list[str]:
        return self._exact.analyze(normalized(text.encode("utf-8", "replace").decode()))

    def frequencies(self, words: Iterable[str], field: str = "exact") -> dict[str, int]:
        wanted = list(words)
        terms = [(field, word) for word in wanted]
        if len(wanted) <= _FEW_WORDS:  # of a query, whose ranking looks up more about them
            ranking = self.ranking(Boosts())
            terms += [one for word in wanted for one in ranking.terms_of(word)]
        self._view.look_up(terms)
        return super().frequencies(wanted, field)

    def few_beginning_with(
        self, head: str, most: int, *, exactly: bool = False
    ) -> list[str] | None:
        return None

    def completions(self, typed: str, limit: int, until: float) -> list[tuple[str, int]]:
        return []

    def look_ahead(self, typed: str, limit: int) -> None:
        pass

    def get(self, key: str) -> Document | None:
        key = key.encode("utf-8", "replace").decode()
        reader = OpenSearchReader(self._view)
        hits = reader.search(OpenSearchQuery.term_query(SCHEMA, "key", key), 1, count=False).hits
        if not hits:
            return None
        return document_of(self._shown(reader, hits[0][1].doc))

    def stored_of(self, reader: tantivy.Searcher, address: DocAddress) -> dict[str, Any]:
        return self._shown(cast("OpenSearchReader", reader), cast("str", address.doc))

    def _shown(self, reader: OpenSearchReader, name: str) -> dict[str, Any]:
        return as_shown(reader.page(name), link_texts=self.link_texts)

    @property
    def unreached(self) -> Unreached:
        return self._view.unreached

    def unreached_query(self) -> Query | None:
        return self._view.unreached.query(self.schema) if self._view.unreached else None

    def unreached_places(self, reader: tantivy.Searcher) -> Collection[tuple[int, int]]:
        return Missed(cast("OpenSearchReader", reader))

    def documents(self) -> int:
        return self._view.pages

    def dates(self) -> Dates:
        return -inf, inf
