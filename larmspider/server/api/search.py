"""/api/v1/search and /api/v1/page: the search over all crawls, and the text of a page.

GET /api/v1/search?q=vpn+login&type=pdf&size=5
GET /api/v1/page?url=http://wiki.example/vpn%23login       the section `login` alone
GET /api/v1/page?url=http://wiki.example/vpn&start=20000   the text from this character on

Readers see the pages that the search page shows them, by the same Access.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from urllib.parse import quote

import msgspec

from larmspider.errors import CrawlDirError, HttpError, InvalidURL, QueryError
from larmspider.formatting import printable
from larmspider.index.schema import kind_of
from larmspider.items import PART_MARK
from larmspider.reports.markdown import Part, html_parts, text_parts, window, within
from larmspider.reports.stored_copy import HTML_TYPES, html_blocks, stored_copy
from larmspider.search.results import IN_FRAGMENT, Document, results_json
from larmspider.server.api.api_types import PageAnswer, PageSection, SearchAnswer
from larmspider.status.crawl_view import Source
from larmspider.web.request import MAX_TEXT, WebRequest, search_status
from larmspider.web.views.search import FIELD, FILTERS, PAGE_HITS, Asked, mistake
from larmspider.web.views.url import SEARCH_SECS

MAX_SIZE = 100
"""Hits of an answer."""
MAX_FILTER = 255
"""Characters of the value of a filter."""
CHARS, MIN_CHARS, MAX_CHARS = 20_000, 200, 100_000
"""Characters of a page in an answer: the default and the limits."""
SEARCH_QUERY = ("q", *FILTERS, "sort", "exact", "copies", "page", "size")
PAGE_QUERY = ("url", "section", "start", "chars")
NOT_THERE = "This page is not in the index."
"""Also said of a page that this reader may not see."""


def search(request: WebRequest) -> SearchAnswer:
    """Raises HttpError."""
    _check_names(request, SEARCH_QUERY, (FIELD,))
    if wrong := mistake(request):
        raise HttpError(wrong, 400)
    size = _number(request, "size", PAGE_HITS, 1, MAX_SIZE)
    asked = Asked.of(request)
    if not asked.query:
        raise HttpError("q: expected a query", 400)
    try:
        wanted = asked.request(asked.filters(request), request.curated.labels.value)
        wanted = replace(wanted, limit=size, offset=(asked.page - 1) * size)
        results = request.searcher().search(wanted)
    except QueryError as error:
        raise HttpError(str(error), 400) from None
    except CrawlDirError as error:
        raise HttpError(request.told(error), search_status(error)) from None
    bets = request.best_bets(asked.query) if asked.page == 1 else []
    found = results_json(results, bets, request.templates.opens, request.told)
    return msgspec.convert(found, SearchAnswer)


def page(request: WebRequest) -> PageAnswer:
    """Raises HttpError, 404 for a page that is not there or that the reader may not see."""
    _check_names(request, PAGE_QUERY)
    url, wanted = request.text("url"), request.text("section")
    start = _number(request, "start", 0, 0, 1_000_000_000)
    chars = _number(request, "chars", CHARS, MIN_CHARS, MAX_CHARS)
    if not url:
        raise HttpError("url: expected the URL of a page", 400)
    if PART_MARK not in url and "#" in url:
        url, _, fragment = url.partition("#")
        wanted = wanted or fragment
    source, document = _found(request, url)
    parts, cut = _parts(request, source, document)
    if wanted:
        parts = _section(parts, document, wanted)
    found = window(parts, start, chars)
    if start and start >= found.whole:
        raise HttpError(f"start {start:,}: expected less than {found.whole:,}", 400)
    opens = request.templates.opens
    return PageAnswer(
        url=document.url,
        target=opens(document.url) or None,
        title=document.title.strip(),
        language=document.language,
        type=kind_of(document.mime),
        mime=document.mime,
        author=document.author,
        modified=document.modified,
        fetched=document.fetched,
        collection=source.name or None,
        section=wanted or None,
        start=start,
        next=found.next,
        chars=found.whole,
        cut=cut,
        sections=[
            PageSection(
                anchor=part.anchor or None,
                heading=part.heading,
                level=part.level,
                target=opens(_target(document.url, part.anchor)) or None,
                text=part.text,
            )
            for part in found.parts
        ],
    )


def _target(url: str, anchor: str) -> str:
    return f"{url}#{quote(anchor, IN_FRAGMENT)}" if anchor and "#" not in url else url


def _check_names(request: WebRequest, names: Collection[str], fronts: tuple[str, ...] = ()) -> None:
    """Raises HttpError for a parameter that this operation does not have, or that is too long."""
    for name, value in request.query.items():
        if name not in names and not name.startswith(fronts or "\0"):
            raise HttpError(f"{printable(name[:40])}: expected {', '.join(names)}", 400)
        most = MAX_TEXT if name in ("q", "url", "section") else MAX_FILTER
        if len(value) > most:
            raise HttpError(
                f"{printable(name[:40])} has {len(value):,} characters: expected at most {most:,}",
                400,
            )


def _number(request: WebRequest, name: str, default: int, low: int, high: int) -> int:
    """Raises HttpError if the parameter is not a whole number in the range."""
    text = request.text(name)
    if not text and name not in request.query:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 12 and low <= int(text) <= high):
        raise HttpError(
            f"{name} {printable(text[:40])!r}: expected a whole number from {low:,} to {high:,}",
            400,
        )
    return int(text)


def _found(request: WebRequest, url: str) -> tuple[Source, Document]:
    """The page as its newest crawl has it, and this crawl. Raises HttpError."""
    try:
        searcher = request.searcher()
        found = [
            (source, document)
            for source in request.source.all
            for key in _keys(source, url)
            if (document := searcher.among([source.name]).get(key)) is not None
        ]
    except CrawlDirError as error:
        raise HttpError(request.told(error), search_status(error)) from None
    except (InvalidURL, ValueError) as error:
        raise HttpError(f"url: {printable(str(error))[:200]}", 400) from None
    best = max(found, key=lambda one: one[1].fetched, default=None)
    # one of several crawls may restrict a document that its own crawl shows, as for /search/copy
    if best is None or not request.may_see(best[1].url):
        raise HttpError(NOT_THERE, 404)
    return best


def _keys(source: Source, url: str) -> Iterator[str]:
    """The keys that a page may have in the index of a crawl; empty without a crawl."""
    yield url
    outer, mark, name = url.partition(PART_MARK)
    with suppress(CrawlDirError):
        yield source.crawl.forms(outer).exact + mark + name


def _parts(request: WebRequest, source: Source, document: Document) -> tuple[list[Part], bool]:
    """The parts of a page, of HTML by its stored copy; and whether the copy has more."""
    if document.mime in HTML_TYPES and not document.container:
        with suppress(CrawlDirError):
            crawl = source.crawl.within(SEARCH_SECS)
            stored = crawl.stored(document.normalized)
            if stored is not None and request.may_see(stored.url):
                copy = stored_copy(crawl, stored, text=document.text)
                if parts := html_parts(html_blocks(copy.body), document.sections):
                    return parts, copy.cut
    return text_parts(document.text, document.sections), False


def _section(parts: list[Part], document: Document, anchor: str) -> list[Part]:
    """A section and its subsections. If the copy does not show where the section begins, its text
    in the index. Raises HttpError."""
    found = within(parts, anchor) or within(text_parts(document.text, document.sections), anchor)
    if not found:
        raise HttpError(f"This page has no section {printable(anchor[:100])!r}.", 404)
    return found
