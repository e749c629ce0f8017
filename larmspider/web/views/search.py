"""/search: the search page and its JSON; /opensearch.xml adds it to a browser's search engines.

/search?q=vpn&host=wiki.example&type=pdf&lang=de&since=week&page=2
/search?q=lisence&exact=1                     the typed query, without corrections
/search?q=vpn&field.room=4.12                 a field of LARM_FIELDS
/search?q=vpn&label=Handbook                  a label (docs/labels.md)
/search?q=vpn&copies=1                        copies of a page as separate hits
/search?q=vpn&sort=date                       newest first, of pages with all the words
/search?q=vpn&unreachable=no                  without pages that were not reached lately
/search?q=vpn&format=json                     the fields are in docs/search-api.md
/search/suggest?q=vp                          ["vp", ["vpn", "vpn for travellers"]]
/search?similar=http://wiki.example/vpn       pages like this one; format=json too
/search/copy?u=http://wiki.example/vpn&q=vpn  the text of its stored copy, with the words marked
/search/preview?u=http://wiki.example/a.pdf   its first page as a small picture
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from larmspider.errors import (
    CrawlDirError,
    HttpError,
    QueryError,
    SearchAwayError,
    SearchRefusedError,
)
from larmspider.index.schema import WORD_LIMIT_BYTES
from larmspider.reports.stored_copy import (
    HTML_TYPES,
    Block,
    html_blocks,
    shown_blocks,
    stored_copy,
    text_blocks,
)
from larmspider.search.facets import Facets
from larmspider.search.labels import NO_LABELS, LabelSet
from larmspider.search.query import (
    DAYS,
    LABEL,
    NO_FILTERS,
    REACH,
    UNREACHABLE,
    Filters,
    parse_query,
    since_time,
    until_time,
)
from larmspider.search.request import SearchRequest
from larmspider.search.results import Document, Results, results_json
from larmspider.search.searcher import Searcher
from larmspider.search.shard import SHORTEST_HEAD
from larmspider.web.request import (
    PageView,
    WebRequest,
    WebResponse,
    json_response,
    search_status,
)
from larmspider.web.views.url import SEARCH_SECS
from larmspider.web.words import Words

PAGE_HITS = 10
MAX_PAGES = 100
SIMILAR_HITS = 10
FACET_VALUES = 10
MAX_FREQUENT = 3
"""Frequent queries that are tried for a suggestion, a search each."""
ASKED_FOR = 30
"""Frequent queries from which these are taken."""
MAX_TYPED = 60
"""Characters of a typed text up to which there are suggestions."""
SUGGESTIONS_TYPE = "application/x-suggestions+json; charset=utf-8"
PREVIEW_HEADERS = {"Cache-Control": "private, max-age=300", "Vary": "Cookie, Authorization"}
"""A browser may keep a picture for the same session: going back then needs no request."""
OPENSEARCH_TYPE = "application/opensearchdescription+xml; charset=utf-8"

FILTERS = ("collection", LABEL, "host", "type", "lang", "since", "until", UNREACHABLE)
"""Parameters that narrow a search, with one value each; own fields are ``field.room``."""
FIELD = "field."
TITLES = {"host": "Host", "type": "Type", "lang": "Language", "since": "Date", "until": "Date"}
TITLES |= {"collection": "Collection", LABEL: "Label", UNREACHABLE: "Reachability"}
PERIODS = {"day": "past day", "week": "past week", "month": "past month", "year": "past year"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The parameters of a search. ``narrow``: the values of the set filters."""

    query: str
    page: int
    narrow: Mapping[str, str]
    exact: bool = False
    copies: bool = False
    newest: bool = False

    @classmethod
    def of(cls, request: WebRequest) -> Asked:
        narrow = {
            name: value
            for name in (*FILTERS, *(name for name in request.query if name.startswith(FIELD)))
            if (value := request.text(name, limit=255).strip())
            and (name, value) != (UNREACHABLE, REACH[0])
        }
        page = request.number("page", 1, 1, MAX_PAGES)
        exact, copies = (request.text(name) == "1" for name in ("exact", "copies"))
        newest = request.text("sort") == "date"
        return cls(_typed(request), page, narrow, exact, copies, newest)

    @property
    def offset(self) -> int:
        return (self.page - 1) * PAGE_HITS

    @property
    def is_typed(self) -> bool:
        """Whether this search consists of the query alone, as the search box sends it. The box
        keeps the order. Other searches come from links on the page of a typed search."""
        return self.page == 1 and not (self.narrow or self.exact or self.copies)

    def filters(self, request: WebRequest) -> Filters:
        """Raises QueryError for bad values."""
        narrow = self.narrow
        known = request.source.collections
        if (name := narrow.get("collection")) and name not in known:
            if not known:
                raise QueryError(
                    "collection {name!r:.50} is unknown; one crawl is searched", name=name
                )
            raise QueryError(
                "collection {name!r:.50} is unknown; expected one of {names}",
                name=name,
                names=", ".join(known),
            )
        label = request.curated.labels.value.of(name) if (name := narrow.get(LABEL, "")) else None
        if name and label is None:
            raise QueryError("label {name!r:.50} is unknown", name=name)
        return Filters.of(
            labels=() if label is None else (label,),
            hosts=[narrow.get("host", "")],
            kinds=[narrow["type"]] if "type" in narrow else (),
            languages=[narrow["lang"]] if "lang" in narrow else (),
            since=since_time(narrow["since"], time.time()) if "since" in narrow else None,
            until=until_time(narrow["until"]) if "until" in narrow else None,
            collections=[narrow.get("collection", "")],
            unreachable=narrow.get(UNREACHABLE, ""),
            fields=[
                (name.removeprefix(FIELD), value)
                for name, value in narrow.items()
                if name.startswith(FIELD)
            ],
        )

    def request(self, filters: Filters, labels: LabelSet = NO_LABELS) -> SearchRequest:
        return SearchRequest(
            self.query,
            PAGE_HITS,
            self.offset,
            filters,
            facets=True,
            verbatim=self.exact,
            copies=self.copies,
            newest=self.newest,
            suggest=not self.offset,
            labels=labels.all,
        )

    def link(self, **changed: Any) -> dict[str, Any]:
        """Parameters of a link to the first page of this search with ``changed``."""
        flags = {name: "1" for name in ("exact", "copies") if getattr(self, name)}
        if self.newest:
            flags["sort"] = "date"
        return {"q": self.query, **flags, **self.narrow, **changed}


def _typed(request: WebRequest) -> str:
    return request.text("q", nul=" ").strip()


def search(request: WebRequest) -> WebResponse:
    as_json = request.text("format") not in ("", "html")
    if as_json and (wrong := mistake(request)):
        return json_response({"error": wrong}, 400)
    if request.text("similar"):
        return _similar(request, as_json=as_json)
    asked = Asked.of(request)
    if as_json:
        return _as_json(request, asked)
    if not asked.query:
        return request.render("search_start.html", asked=asked, pages=_count(request))
    try:
        filters = asked.filters(request)
    except QueryError as error:  # the box is not to send them again
        return _refused(request, replace(asked, narrow={}), error)
    try:
        results = request.searcher().search(asked.request(filters, request.curated.labels.value))
    except QueryError as error:
        return _refused(request, asked, error)
    if asked.is_typed and not request.only_head:
        request.query_log.note(asked.query, 0 if results.instead else results.total_all)
    bets = request.best_bets(asked.query) if asked.page == 1 else []
    above = {url for bet in bets for url in (bet.url, bet.place)}
    hits = [hit for hit in results.hits if hit.url not in above] or results.hits
    anywhere = 0
    if not results.total and filters != NO_FILTERS:
        anywhere, _ = request.searcher().totals(asked.query)
    return request.render(
        "search.html",
        asked=asked,
        results=replace(results, hits=hits),
        bets=bets,
        suggestion=None if results.instead else results.suggestion,
        unquoted=results.unquoted,
        found=_found_line(request.say, results),
        left_out=[request.told(error) for error in results.left_out],
        anywhere=anywhere,
        excludes=not results.total and _excludes(asked.query),
        chosen=_chosen(request.say, asked),
        groups=_groups(request.say, asked, results),
        days=_day(asked.narrow.get("since", "")),
        # copies of hits are found too: how many pages these leave is not known before the last one
        last_page=min(MAX_PAGES, -(-_listed(asked, results) // PAGE_HITS))
        if results.more
        else asked.page,
    )


def _excludes(query: str) -> bool:
    """Whether something of the query but its words keeps pages out of the hits."""
    return any(one.field or one.phrase or one.excluded for one in parse_query(query))


def _listed(asked: Asked, results: Results) -> int:
    """The number of pages to which the hits belong."""
    return (asked.newest and results.total_all) or results.total


def _refused(request: WebRequest, asked: Asked, error: QueryError) -> WebResponse:
    """The search box, with the error."""
    why = request.say.error(error)
    return request.render("search_start.html", 400, asked=asked, pages=0, error=why)


def wrong_format(request: WebRequest) -> str | None:
    if (form := request.text("format")) not in ("", "html", "json"):
        return f"format {form!r:.50} is unknown; expected html or json"
    return None


def mistake(request: WebRequest) -> str | None:
    """The error in a request that the page ignores and that a program gets as an answer."""
    if wrong := wrong_format(request):
        return wrong
    page = request.text("page")
    if page and not 0 < request.number("page", 0, 0, MAX_PAGES + 1) <= MAX_PAGES:
        return f"page {page!r:.50} is none; expected a whole number from 1 to {MAX_PAGES}"
    if (sort := request.text("sort")) not in ("", "date", "relevance"):
        return f"sort {sort!r:.50} is unknown; expected date or relevance"
    for name in ("exact", "copies"):
        if (value := request.text(name)) not in ("", "0", "1"):
            return f"{name} {value!r:.50} is unknown; expected 0 or 1"
    return None


def _as_json(request: WebRequest, asked: Asked) -> WebResponse:
    try:
        wanted = asked.request(asked.filters(request), request.curated.labels.value)
        results = request.searcher().search(wanted)
    except QueryError as error:
        return json_response({"error": str(error)}, 400)
    except CrawlDirError as error:
        return json_response({"error": request.told(error)}, search_status(error))
    bets = request.best_bets(asked.query) if asked.page == 1 else []
    return json_response(results_json(results, bets, request.templates.opens, request.told))


def _similar(request: WebRequest, *, as_json: bool) -> WebResponse:
    searcher, url = request.searcher(), request.text("similar")
    # links of the page have the canonical URL, programs send the URL of a hit
    document = searcher.get(url) or searcher.get(request.source.crawl.forms(url).exact)
    if document is None:
        raise HttpError("This page is not in the index.", 404)
    results = searcher.similar(document, SIMILAR_HITS)
    if as_json:
        opens = request.templates.opens
        return json_response(results_json(results, opens=opens, told=request.told))
    return request.render(
        "similar.html", asked=Asked("", 1, {}), document=document, results=results
    )


def cached(request: WebRequest) -> WebResponse:
    """The text of a stored page. The text of HTML comes from the page files, the text of other
    documents from the index. No markup of the page is passed on."""
    searcher, document = _shown(request)
    name = request.text("collection")
    blocks = list[Block]()
    has_page = not name or name == request.source.name  # page files of the crawl that is shown
    if has_page and document.mime in HTML_TYPES and not document.container:
        with suppress(CrawlDirError):
            crawl = request.source.crawl.within(SEARCH_SECS)
            page = crawl.stored(document.normalized)
            if page is not None and request.may_see(page.url):
                blocks = html_blocks(stored_copy(crawl, page, text=document.text).body)
    shown, whole = shown_blocks(blocks or text_blocks(document.text))
    marker = searcher.marker(query := _typed(request))
    return request.render(
        "cached.html",
        asked=Asked(query, 1, {}),
        document=document,
        blocks=[(block, marker.marked(block.text)) for block in shown],
        whole=whole,
    )


def _shown(request: WebRequest) -> tuple[Searcher, Document]:
    """The document of parameter ``u``, and the searcher that found it. Raises HttpError if this
    reader may not see it."""
    searcher = request.searcher()
    if name := request.text("collection"):
        searcher = searcher.among([name])
    document = searcher.get(request.text("u"))
    # one of several crawls may restrict a document that its own crawl shows, as for /copy and /view
    if document is None or not request.may_see(document.url):
        raise HttpError("This page is not in the index.", 404)
    return searcher, document


def preview(request: WebRequest) -> WebResponse:
    """The first page of a document as a picture, for readers who may see its stored copy."""
    _, document = _shown(request)
    name = request.text("collection")
    source = next((one for one in request.source.all if one.name == name), request.source)
    page = picture = None
    with suppress(CrawlDirError):
        crawl = source.crawl.within(SEARCH_SECS)
        page = crawl.stored(document.normalized)
        if page is not None and not document.container and request.may_see(page.url):
            picture = request.previews.picture(crawl, page)
    if picture is None:
        raise HttpError("This document has no preview.", 404)
    return WebResponse(picture, "image/jpeg", headers=PREVIEW_HEADERS)


def suggest(request: WebRequest) -> WebResponse:
    """Suggestions for the typed text, in the form that browsers use (OpenSearch Suggestions)."""
    typed = request.text("q", limit=MAX_TYPED, nul=" ")
    try:
        searcher = request.searcher()
        texts = _frequent(request, searcher, typed)
        texts += [text for text, _ in searcher.completions(typed) if text not in texts]
    except CrawlDirError:
        texts = []
    return WebResponse(json_response([typed, texts]).body, SUGGESTIONS_TYPE)


def _frequent(request: WebRequest, searcher: Searcher, typed: str) -> list[str]:
    """Frequent queries of other readers that find something for this reader too."""
    if len(typed.strip()) < SHORTEST_HEAD:
        return []
    found = []
    queries = request.query_log.suggested(typed, ASKED_FOR)
    for query in islice((one for one in queries if _shows_all(searcher, one)), MAX_FREQUENT):
        with suppress(QueryError):
            if searcher.totals(query)[1]:
                found.append(query)
    return found


def _shows_all(searcher: Searcher, query: str) -> bool:
    """Whether pages with all words of a query match the whole query. They may not if the query
    excludes something, names two hosts, or has a word too long for the index."""
    try:
        clauses = searcher.parsed(query, verbatim=True).clauses
    except QueryError:  # limits were others when it was typed
        return False
    return not any(
        clause.excluded or clause.field or len(clause.text.encode()) >= WORD_LIMIT_BYTES
        for clause in clauses
    )


def _count(request: WebRequest) -> int | None:
    """The number of pages; None if the search engine does not answer."""
    try:
        return request.searcher().count()
    except (SearchAwayError, SearchRefusedError):
        return None
    except CrawlDirError:
        return 0


def _found_line(say: Words, results: Results) -> str:
    if results.not_typed:
        line = say("No page has {words} as typed", words=", ".join(results.not_typed))
        return f"{line}; {say('{n} with any of the words', n=results.total)}"
    line = say(
        "{n} page found in {ms} ms|{n} pages found in {ms} ms",
        n=results.total_all,
        ms=round(results.seconds * 1000),
    )
    if results.total_all < results.total:
        line += "; " + say("{n} with any of the words", n=results.total)
    return line


def _title(say: Words, name: str) -> str:
    own = name.removeprefix(FIELD).capitalize()
    return say(TITLES[name]) if name in TITLES else own


def _label(say: Words, name: str, value: str) -> str:
    """A value of a filter as people read it."""
    if name == "type":
        return say.kind(value)
    if name == "lang":
        return say.tongue(value)
    if value in PERIODS:
        return say(PERIODS[value])
    if name == UNREACHABLE:
        return say("not reached") if value == "only" else say("reached")
    if name not in ("since", "until"):
        return value
    day = say.date(since_time(value, 0.0))
    return say("from {day}", day=day) if name == "since" else say("to {day}", day=day)


def _chosen(say: Words, asked: Asked) -> list[dict[str, Any]]:
    """The filters that are set, each with the search without it."""
    return [
        {
            "title": _title(say, name),
            "label": _label(say, name, value),
            "without": asked.link(**{name: None}),
        }
        for name, value in asked.narrow.items()
    ]


def _day(since: str) -> str:
    """The value for a form field that takes days."""
    return "" if since in DAYS else since


def _groups(say: Words, asked: Asked, results: Results) -> list[dict[str, Any]]:
    """The facets as the page shows them, without facets that have only one value."""
    facets = results.facets
    assert facets is not None
    groups: tuple[tuple[str, Mapping[str, int]], ...] = (
        ("collection", facets.collections),
        (LABEL, facets.labels),
        ("host", facets.hosts),
        ("type", facets.kinds),
        ("lang", facets.languages),
        *((FIELD + name, counts) for name, counts in facets.fields.items()),
        (UNREACHABLE, _missed(facets.unreachable)),
        ("since", _telling(facets.dates, results.total)),
    )
    found = []
    for name, counts in groups:
        cleared = {"until": None} if name == "since" else {}
        if name == "host" and "host" not in asked.narrow and is_host_each(facets):
            continue
        chosen = asked.narrow.get(name) or asked.narrow.get("until" if cleared else name, "")
        if not chosen and (not counts or (len(counts) == 1 and name not in ("since", LABEL))):
            continue
        values = [
            {
                "value": value,
                "label": _label(say, name, value),
                "count": count,
                "link": asked.link(**{name: value}, **cleared),
            }
            for value, count in counts.items()
        ][:FACET_VALUES]
        found.append(
            {
                "name": name,
                "title": _title(say, name),
                "values": values,
                "chosen": chosen,
                "any": asked.link(**{name: None}, **cleared),
            }
        )
    return found


def is_host_each(facets: Facets) -> bool:
    """Whether each of several collections has one host: both facets would say the same."""
    collections, hosts = facets.collections.values(), facets.hosts.values()
    return len(collections) > 1 and sorted(collections) == sorted(hosts)


def _missed(unreachable: Mapping[str, int]) -> dict[str, int]:
    """The values of the filter, where it leaves a choice."""
    return {name: count for name, count in unreachable.items() if count}


def _telling(dates: Mapping[str, int], total: int) -> dict[str, int]:
    """The periods that have some of the pages, not all."""
    return {name: count for name, count in dates.items() if count and count != total}


def opensearch(request: WebRequest) -> WebResponse:
    """The description with which a browser adds this search to its own."""
    response = request.render("opensearch.xml", origin=request.origin)
    return WebResponse(response.body, OPENSEARCH_TYPE)


PAGES = (
    PageView("/search", search, "Search"),
    PageView("/search/suggest", suggest),
    PageView("/search/copy", cached),
    PageView("/search/preview", preview, aside=True),
    PageView("/opensearch.xml", opensearch, without_crawl=True),
)
