"""Explains the place of a page among the hits of a query, or why it is not a hit.

    request = SearchRequest("vpn login")
    found = why(request, "http://wiki.example/vpn", searcher, crawl, settings)
    found.verdict        # "hit 3 of 120"
    found.reasons        # ['the hit above has "vpn" in the title: 2.1 more', ...]

`scrapy search --why URL` and the operators' page show it, for the pages that the searcher may see.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from larmspider import program
from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.errors import LarmspiderError
from larmspider.extraction.texts.language import is_in_another, languages_in
from larmspider.items import part_url, split_part
from larmspider.pipelines.fetch_log import remarks_in
from larmspider.pipelines.reextract import is_for_readers
from larmspider.reports.explain import Explanation, explain, read_again
from larmspider.search.request import MAX_LIMIT, SearchRequest
from larmspider.search.results import Document, Hit
from larmspider.search.searcher import Searcher
from larmspider.search.why import Examined

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_WINDOWS = (10, 100, MAX_LIMIT)
_NAMED = 5  # parts of a score in which another hit has more
_LEAST = 0.005  # difference that shows in two decimals
BY_RELEVANCE = (
    "Places are those by relevance, with copies folded, whatever the list that led here shows."
)


@dataclass(frozen=True, slots=True)
class Placed:
    """A page among the hits; ``position`` counts from 1, None for a page that is not a hit."""

    url: str
    title: str
    position: int | None
    examined: Examined


@dataclass(slots=True)
class Why:
    """``query`` is the searched query. It differs from ``typed`` if that finds next to nothing.
    ``total`` pages match. ``page`` is None if the index does not have it. ``above``: the hit before
    the page, or the copy that is shown in its place, or the last hit that was examined. ``first``:
    the first hit, if it differs from ``above``. ``note``: a remark about all places."""

    typed: str
    query: str
    url: str
    verdict: str
    total: int = 0
    reasons: list[str] = field(default_factory=list)
    page: Placed | None = None
    above: Placed | None = None
    first: Placed | None = None
    state: str = ""
    """The state in the frontier, for a page that is not in the index."""
    note: str = ""


def why(
    request: SearchRequest, url: str, searcher: Searcher, crawl: CrawlDir, settings: BaseSettings
) -> Why:
    """Explains the place of ``url`` by relevance, with copies folded. If the request is for another
    list, `Why.note` says so.

    Raises QueryError for a query without a meaning, CrawlDirError without an index."""
    asked = SearchRequest(request.query, 1, filters=request.filters, verbatim=request.verbatim)
    results = searcher.search(asked)
    asked = replace(asked, query=results.instead or request.query, snippets=False)
    found = Why(request.query, asked.query, url, "not in the index", results.total)
    found.note = BY_RELEVANCE if request.newest or request.copies else ""
    document = _document(url, searcher, crawl)
    if document is None:
        explanation = explain(url, settings, crawl, lambda: searcher)
        found.state = explanation.state
        found.reasons += _not_indexed(explanation, crawl, settings)
        return found
    key = document.normalized
    examined = searcher.examined(asked, [key]).get(key)
    if examined is None:  # what its collection has
        found.verdict, found.reasons = "in the index, but no hit", ["it is in another collection"]
        return found
    if not examined.score:
        found.verdict = "in the index, but no hit"
        found.page = Placed(document.url, document.title, None, examined)
        found.reasons += _no_hit(examined)
        return found
    hits = _hits(searcher, asked, key)
    at = next((n for n, hit in enumerate(hits) if hit.normalized == key), None)
    found.page = Placed(document.url, document.title, None if at is None else at + 1, examined)
    if at is None:
        _, copies = searcher.copies(document, MAX_LIMIT)
        others = {copy.normalized for copy in copies}
        stand = next((n for n, hit in enumerate(hits) if hit.normalized in others), None)
        found.verdict = (
            f"beyond the first {len(hits):,} hits"
            if stand is None
            else f"a copy of hit {stand + 1:,}, which stands for it"
        )
        above = len(hits) - 1 if stand is None else stand
    else:
        found.verdict = f"hit {at + 1:,} of {results.total:,}"
        above = at - 1
    numbers = [n for n in dict.fromkeys((above, 0)) if 0 <= n < len(hits) and n != at]
    keys = [hits[n].normalized for n in numbers]
    better = searcher.examined(asked, keys)
    placed = [
        Placed(hits[n].url, hits[n].title, n + 1, better.get(key, Examined()))
        for n, key in zip(numbers, keys, strict=True)
    ]
    found.above, found.first = (*placed, None, None)[:2]
    found.reasons += [f"it lacks: {word}" for word in examined.missing]
    if found.above is not None:
        found.reasons += _differences(examined, found.above)
    return found


def _document(url: str, searcher: Searcher, crawl: CrawlDir) -> Document | None:
    """The page of a URL, or of the URL that stands for it; a part of a document by its own URL."""
    exact, part = crawl.forms(url).exact, split_part(url)[1]
    names = [exact, crawl.name_of(exact)]
    of_part = [part_url(name, part) for name in names if part]
    for name in dict.fromkeys((*of_part, exact, url, *names)):
        if (document := searcher.get(name)) is not None:
            return document
    return None


def _hits(searcher: Searcher, request: SearchRequest, key: str) -> list[Hit]:
    """The first hits, as many as it takes to come to ``key``."""
    hits = list[Hit]()
    for limit in _WINDOWS:
        results = searcher.search(replace(request, limit=limit))
        hits = results.hits
        if not results.more or any(hit.normalized == key for hit in hits):
            break
    return hits


def _no_hit(examined: Examined) -> Iterator[str]:
    yield from examined.lacks
    yield from (f"the filter {name} leaves it out" for name in examined.filters)
    yield from (f"it lacks: {word}" for word in examined.missing)


def _differences(mine: Examined, above: Placed) -> Iterator[str]:
    theirs = above.examined
    more = {
        name: value * theirs.prior - mine.parts.get(name, 0.0) * mine.prior
        for name, value in theirs.parts.items()
    }
    named = sorted((name for name in more if more[name] > _LEAST), key=lambda name: -more[name])
    for name in named[:_NAMED]:
        yield f"hit {above.position} scores {more[name]:.2f} more for: {name}"
    if theirs.prior > mine.prior + _LEAST:
        yield (
            f"the score of hit {above.position} is multiplied by {theirs.prior:.2f},"
            f" {theirs.because}, the score of this page by {mine.prior:.2f}, {mine.because}"
        )
    if not named and abs(theirs.score - mine.score) < _LEAST:
        yield f"hit {above.position} has the same score"


def _not_indexed(
    explanation: Explanation, crawl: CrawlDir, settings: BaseSettings
) -> Iterator[str]:
    """Why the index does not have a page."""
    if explanation.merged:
        yield explanation.merged
    fetched, stored = explanation.fetched, explanation.stored
    if stored is not None:
        yield from _stored_not_indexed(stored, explanation, crawl, settings)
        return
    if fetched is not None:
        yield f"its last fetch ended with: {fetched.result} {fetched.message}".rstrip()
    rejected = [one for one in explanation.verdicts if one.verdict == "reject"]
    yield from (f"{one.stage} rejects it: {one.reason}".rstrip(": ") for one in rejected)
    yield from explanation.frontier
    if not explanation.known and not rejected:
        yield "it is not crawled: no page of the crawl links to it, and it is not a seed"


def _stored_not_indexed(
    stored: StoredPage, explanation: Explanation, crawl: CrawlDir, settings: BaseSettings
) -> Iterator[str]:
    if stored.status != 200:
        yield f"only pages with status 200 are found; it has {stored.status}"
        return
    fetched = explanation.fetched
    if fetched is not None and fetched.message and remarks_in(fetched.message).noindex:
        yield "it says noindex"
        return
    try:
        page = read_again(crawl.body(stored), stored, settings)
    except LarmspiderError as error:
        yield f"it is stored, and its page file cannot be read: {error}"
        return
    page.status, page.exact = stored.status, stored.exact
    languages = languages_in(settings, "LARM_INDEX_LANGUAGES")
    if page.noindex:
        yield "it says noindex"
    elif not is_for_readers(page):
        yield "it redirects its readers to another page at once"
    elif languages and is_in_another(page, languages):
        yield f"its language is {page.language}, and LARM_INDEX_LANGUAGES has others"
    else:
        yield (
            "it is stored: the index has it three checkpoints later, or after"
            f" {program.NAME} reindex"
        )
