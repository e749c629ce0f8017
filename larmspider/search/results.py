"""The results of a search: hits, stored documents, and counts of all matches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from larmspider.errors import CrawlDirError, LarmspiderError
from larmspider.formatting import counted, utc
from larmspider.index.schema import FILES, kind_of
from larmspider.index.unreached import ALL_REACHED, Unreached
from larmspider.items import Section, split_part
from larmspider.search.best_bets import BestBet
from larmspider.search.distance import distance
from larmspider.search.facets import Facets
from larmspider.search.query import Filters, without_quotes
from larmspider.search.request import SearchRequest
from larmspider.search.snippets import Snippet, SnippetMaker, one_line, passage_of
from larmspider.urls.file_urls import NOWHERE, OpenableUrls

IN_FRAGMENT = "!$&'()*+,;=:@/?-._~"
"""Characters of an anchor that a URL has as they are (RFC 3986, 3.5)."""
SURE = 5
"""Letters of a word, in which a mistake is corrected though others find pages."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One result.

    url            as fetched; ``normalized``: its canonical form, the key of `Searcher.get`
    score          orders the hits of one search only; None for a reader who does not see all pages,
                   because Tantivy counts all pages
    fetched        seconds since the epoch, as ``modified``; that is None if neither document nor
                   server names a date
    size           in bytes
    depth          links from a seed; None for a reader who does not see all pages: hidden pages may
                   lie on the way
    page           the page of the document that the snippet is from, 0 for none
    section        the part of a long page that the snippet is from, None for the whole page
    container      the URL of the document that a part lies in (items.py)
    copies         other pages of the index with the same or nearly the same text (copies.py)
    collection     the name of its crawl, if several are searched
    fields         own fields (LARM_FIELDS)
    missing_since  the first of the latest visits that did not reach the page; None: the last visit
                   reached it
    """

    url: str
    normalized: str
    title: str
    score: float | None
    snippet: Snippet
    host: str
    mime: str
    kind: str
    language: str
    size: int
    fetched: float
    modified: float | None
    depth: int | None
    author: str = ""
    container: str = ""
    copies: int = 0
    collection: str = ""
    fields: Mapping[str, list[str]] = field(default_factory=dict)
    section: Section | None = None
    missing_since: float | None = None

    @property
    def page(self) -> int:
        return self.snippet.page

    @property
    def target(self) -> str:
        """The target of a click: in a PDF, the page of the snippet; else the section."""
        if self.section is not None and "#" not in self.url:
            return f"{self.url}#{quote(self.section.anchor, IN_FRAGMENT)}"
        return self.target_at(self.page)

    @property
    def other_pages(self) -> dict[int, str]:
        """Further pages with the same number of the query's words, and their URLs."""
        return {page: self.target_at(page) for page in self.snippet.others}

    def target_at(self, page: int) -> str:
        pdf = self.kind == "pdf" and page and "#" not in self.url
        return f"{self.url}#page={page}" if pdf else self.url


@dataclass(frozen=True, slots=True)
class Suggestion:
    """``query`` in place of the typed one; it finds ``total`` pages, ``total_all`` of them with
    all words that matter."""

    query: str
    total: int
    total_all: int = 0
    replaced: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    """Replaced words of the query, each with its replacement."""

    def is_sure(self, *, finds_nothing: bool) -> bool:
        """Whether the suggestion is searched without a question to the reader. In each changed word
        two letters have changed places, or one letter is wrong. If the typed query finds anything,
        the wrong letter must not be the first one, nor in a short word."""
        return all(_is_likely(*words, finds_nothing) for words in self.replaced)


@dataclass(frozen=True, slots=True)
class Results:
    """The answer to a ``request``: ``total`` pages match, ``total_all`` of them with all words that
    matter; ``hits`` are some of them.

    seconds     the time of the search
    facets      None unless the request wants them
    instead     the query that was searched in place of one that finds next to nothing
    more        whether there are further hits after these
    also        synonyms that were searched too
    suggestion  a better query, if the request wants one and there is one
    no_filters  words such as ``colour:red`` that look like filters, and were searched as words
    left_out    errors of shards whose pages are not in this answer
    not_typed   names, codes and flags that no page has as they are typed (``10.2.1``, ``C#``): only
                pages with some of their words are found

    If pages are copies, the totals and facets count each, and ``hits`` has the best one."""

    request: SearchRequest
    total: int
    hits: list[Hit]
    seconds: float = 0.0
    facets: Facets | None = None
    total_all: int = 0
    instead: str | None = None
    more: bool = False
    also: tuple[str, ...] = ()
    suggestion: Suggestion | None = None
    no_filters: tuple[str, ...] = ()
    not_typed: tuple[str, ...] = ()
    left_out: tuple[CrawlDirError, ...] = ()

    @property
    def unquoted(self) -> bool:
        """Whether the query was searched without its quotes."""
        return self.instead is not None and self.instead == without_quotes(self.request.query)


@dataclass(frozen=True, slots=True)
class Document:
    """A stored page: ``text`` is its main text, ``rest`` the text around it, ``digest`` the digest
    of its body, in hex. ``likeness`` as in copies.py. ``elsewhere`` is 1 if the page names another
    page as its canonical one. ``fields`` and units as in `Hit`."""

    url: str
    normalized: str
    host: str
    title: str
    text: str
    description: str
    mime: str
    language: str
    depth: int
    size: int
    digest: str
    fetched: float
    modified: float | None = None
    author: str = ""
    container: str = ""
    rest: str = ""
    likeness: int | None = None
    elsewhere: int = 0
    sections: list[Section] = field(default_factory=list)
    fields: Mapping[str, list[str]] = field(default_factory=dict)


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
        modified=seconds_of(stored.get("modified")),
        depth=None if score is None else stored["depth"],
        author=one_line(stored.get("author", "")),
        container=split_part(stored["url"])[0] if "container" in stored else "",
        copies=copies,
        collection=stored.get("collection", ""),
        # a copy: the stored page is remembered
        fields={name: [*values] for name, values in stored["own"].items()},
        missing_since=unreached.since(stored["key"]) if unreached else None,
    )


def seconds_of(date: datetime | None) -> float | None:
    """Since the epoch."""
    return None if date is None else date.timestamp()


def replaced(results: Results) -> str | None:
    """One line for people, if another query was searched."""
    if results.instead is None:
        return None
    if results.unquoted:
        return "No page has these words side by side. Searched for them without quotes."
    typed = results.request.query
    return f"Showing results for {results.instead}. Almost nothing was found for {typed}"


def found_line(results: Results, took: str) -> str:
    """How many pages were found: "3 pages found in 2 ms; 50 with any of the words"."""
    if results.not_typed:
        typed = ", ".join(results.not_typed)
        return f"No page has {typed} as typed; {results.total:,} with any of the words, in {took}"
    line = f"{counted(results.total_all, 'page')} found in {took}"
    if results.total_all < results.total:
        line += f"; {results.total:,} with any of the words"
    return line


def _is_likely(word: str, other: str, finds_nothing: bool) -> bool:
    moved = sorted(word) == sorted(other)
    if not moved and distance(word, other, 1) > 1:
        return False
    return finds_nothing or (word[0] == other[0] and (moved or len(word) >= SURE))


def results_json(
    results: Results,
    best_bets: Iterable[BestBet] = (),
    opens: OpenableUrls = NOWHERE,
    told: Callable[[LarmspiderError], str] = str,
) -> dict[str, Any]:
    """The results of a search as JSON, for `scrapy search --json` and `/search?format=json`.
    ``told`` gives the text of an error for the reader.

    docs/search-api.md has the fields. They are stable: new ones may come, none changes its meaning.
    """
    request, suggestion = results.request, results.suggestion
    return {
        "query": request.query,
        "total": results.total,
        "total_all": results.total_all,
        "instead": results.instead,
        "also": list(results.also),
        "no_filters": list(results.no_filters),
        "not_typed": list(results.not_typed),
        "left_out": [told(error) for error in results.left_out],
        "best_bets": [{"url": bet.url, "title": bet.title} for bet in best_bets],
        "offset": request.offset,
        "more": results.more,
        "seconds": round(results.seconds, 6),
        "suggestion": suggestion
        and {
            "query": suggestion.query,
            "total": suggestion.total,
            "total_all": suggestion.total_all,
        },
        "filters": _filters(request.filters),
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
        "label": [label.name for label in filters.labels],
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
        "label": facets.labels,
    }
