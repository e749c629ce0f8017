"""A part of OpenSearch's search API, for existing clients: /search/_search.

    POST /search/_search
    {"query": {"query_string": {"query": "vpn login"}}, "from": 0, "size": 10,
     "highlight": {"fields": {"text": {}}}, "aggs": {"hosts": {"terms": {"field": "host"}}}}

Queries have the syntax of the search page (search/query.py). Unsupported parts of a request get an
error with OpenSearch's fields. docs/search-api.md has the details.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from aiohttp import web

from larmspider.errors import CrawlDirError, HttpError, LarmspiderError, QueryError
from larmspider.search.facets import MAX_VALUES, Facets
from larmspider.search.query import Filters
from larmspider.search.request import MAX_LIMIT, SearchRequest
from larmspider.search.results import Hit, hit_json
from larmspider.urls.file_urls import OpenableUrls
from larmspider.web.connections import REQUEST_SECS
from larmspider.web.request import WebRequest, WebResponse, json_response
from larmspider.web.site import (
    EVERY_INDEX,
    INDEX,
    SEARCH,
    SITE,
    aiohttp_response,
    web_request,
)

PATH = f"{SEARCH}/_search"
"""A named index has the path /search/{index}/_search."""
MAX_WINDOW = 10_000
"""Hits that a search may skip and ask for together, as in OpenSearch."""
MAX_AGGREGATIONS = 10
MAX_TAG = 100
"""Characters of a tag around a marked word."""
_PARSING, _ILLEGAL = "parsing_exception", "illegal_argument_exception"
_KEYS = ("query", "from", "size", "highlight", "aggs", "aggregations", "_source")
_IGNORED = ("track_total_hits", "timeout", "pretty", "human")
_PARAMETERS = ("q", "from", "size", "_source", *_IGNORED)
_NOT_SOURCE = ("score", "snippet", "collection")


class SearchError(HttpError):
    """``kind`` is the type of an OpenSearch exception."""

    def __init__(self, kind: str, reason: str, status: int = 400) -> None:
        super().__init__(reason, status)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Question:
    """``aggregations``: field and size by name. ``tags`` stand around marked words, None: no
    highlight. ``source``: names of fields, or "*"."""

    query: str
    start: int = 0
    size: int = 10
    aggregations: Mapping[str, tuple[str, int]] | None = None
    tags: tuple[str, str] | None = None
    source: Collection[str] = ("*",)


async def search(request: web.Request) -> web.Response:
    """/search/_search and /search/{index}/_search, GET and POST. It changes nothing, so it needs no
    CSRF token; access is as on the search page."""
    site, asked = request.app[SITE], web_request(request)
    try:
        async with asyncio.timeout(REQUEST_SECS):
            body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise SearchError(_ILLEGAL, "the body is too long: expected less than 64 KB") from None
    except TimeoutError:
        reason = f"the body took longer than {REQUEST_SECS:g} s to come"
        raise SearchError("timeout_exception", reason, 408) from None
    return aiohttp_response(await site.work.run(_answer, asked, body))


def add_routes(router: web.UrlDispatcher) -> None:
    for path in (PATH, f"{SEARCH}/{{index}}/_search"):
        router.add_get(path, search, allow_head=False)
        router.add_post(path, search)


def is_asked(path: str) -> bool:
    """Whether a path is one of this API, so that errors have its form."""
    return path.startswith(f"{SEARCH}/") and path.endswith("/_search")


def error_response(error: LarmspiderError, reason: str, status: int) -> WebResponse:
    """An error as OpenSearch writes it, with ``reason`` as its text."""
    kind = "query_shard_exception" if isinstance(error, QueryError) else "search_exception"
    if status in (401, 403):
        kind = "security_exception"
    what = {"type": getattr(error, "kind", kind), "reason": reason}
    return json_response({"error": {"root_cause": [what], **what}, "status": status}, status)


def _answer(request: WebRequest, body: bytes) -> WebResponse:
    question = parsed(body, request.query)
    filters = Filters.of(collections=_collections(request))
    try:
        searcher = request.searcher()
    except CrawlDirError as error:
        raise SearchError("index_not_found_exception", request.told(error), 404) from None
    results = searcher.search(
        SearchRequest(
            question.query,
            max(1, question.size),
            question.start,
            filters,
            facets=bool(question.aggregations),
            verbatim=True,
        )
    )
    hits, failed = results.hits[: question.size], len(results.left_out)
    answer: dict[str, Any] = {
        "took": round(results.seconds * 1000),
        "timed_out": False,
        "_shards": {"total": 1 + failed, "successful": 1, "skipped": 0, "failed": failed},
        "hits": {
            "total": {"value": results.total, "relation": "eq"},
            "max_score": hits[0].score if hits else None,
            "hits": [_hit(hit, question, request.templates.opens) for hit in hits],
        },
    }
    if results.facets is not None and question.aggregations:
        answer["aggregations"] = {
            name: _buckets(results.facets, field, size)
            for name, (field, size) in question.aggregations.items()
        }
    return json_response(answer)


def _collections(request: WebRequest) -> list[str]:
    """The crawls that the path names, none for all. Raises SearchError for other names."""
    known = request.source.collections
    found = []
    for name in request.path.get("index", "_all").split(","):
        if name in EVERY_INDEX:
            return []
        if name not in known:
            raise SearchError("index_not_found_exception", f"no such index [{name:.100}]", 404)
        found.append(name)
    return found


def _hit(hit: Hit, question: Question, opens: OpenableUrls) -> dict[str, Any]:
    found: dict[str, Any] = {
        "_index": hit.collection or INDEX,
        "_id": hit.normalized,
        "_score": hit.score,
    }
    values = hit_json(hit, opens)
    values = {name: value for name, value in values.items() if name not in _NOT_SOURCE}
    values["text"] = hit.snippet.text
    if question.source:
        every = "*" in question.source
        found["_source"] = {
            name: value for name, value in values.items() if every or name in question.source
        }
    if question.tags is not None and hit.snippet.highlights:
        found["highlight"] = {"text": [hit.snippet.marked(*question.tags, escape)]}
    return found


def _buckets(facets: Facets, field: str, size: int) -> dict[str, Any]:
    counts = {
        "host": facets.hosts,
        "type": facets.kinds,
        "language": facets.languages,
    }[field]
    first = list(counts.items())[:size]
    rest = sum(counts.values()) - sum(count for _, count in first)
    return {
        "doc_count_error_upper_bound": 0,
        "sum_other_doc_count": rest + (facets.other_hosts if field == "host" else 0),
        "buckets": [{"key": value, "doc_count": count} for value, count in first],
    }


def parsed(body: bytes, parameters: Mapping[str, str]) -> Question:
    """The question of a body, or of the parameters of the URL, which count more. Raises
    SearchError."""
    for name in parameters:
        if name not in _PARAMETERS:
            raise SearchError(_ILLEGAL, f"request contains unrecognized parameter: [{name:.100}]")
    asked: Mapping[str, Any] = {}
    if body.strip():
        try:
            asked = _mapping("the body", json.loads(body))
        except (ValueError, RecursionError):
            raise SearchError(_PARSING, "the body is not valid JSON") from None
    _only("the search request", asked, (*_KEYS, *_IGNORED))
    query = asked.get("query")
    if "q" in parameters:
        query = {"query_string": {"query": parameters["q"]}}
    start, size = (
        _number(name, _of_url(parameters[name]) if name in parameters else asked.get(name, default))
        for name, default in (("from", 0), ("size", 10))
    )
    if size > MAX_LIMIT:
        raise SearchError(_ILLEGAL, f"size is {size:,}; expected at most {MAX_LIMIT:,}")
    if start + size > MAX_WINDOW:
        raise SearchError(
            _ILLEGAL,
            "Result window is too large, from + size must be less than or equal to:"
            f" [{MAX_WINDOW}] but was [{start + size}]",
        )
    source = parameters["_source"] if "_source" in parameters else asked.get("_source", True)
    return Question(
        _query(query),
        start,
        size,
        _aggregations(asked),
        _tags(asked.get("highlight")),
        _source(source),
    )


def _query(query: Any) -> str:
    kinds = list(_mapping("[query]", {} if query is None else query))
    if kinds != ["query_string"]:
        raise SearchError(_PARSING, f"unknown query {kinds!s:.100}; expected one: query_string")
    told = query["query_string"]
    inside = _mapping("[query_string]", {"query": told} if isinstance(told, str) else told)
    for name in inside:
        if name != "query":
            raise SearchError(_PARSING, f"[query_string] query does not support [{name:.100}]")
    text = inside.get("query")
    if not isinstance(text, str):
        raise SearchError(_PARSING, "[query_string] expected [query], a text")
    return text


def _aggregations(asked: Mapping[str, Any]) -> dict[str, tuple[str, int]]:
    told = _mapping("[aggs]", asked.get("aggs", asked.get("aggregations", {})))
    if len(told) > MAX_AGGREGATIONS:
        raise SearchError(_ILLEGAL, f"{len(told)} aggregations, at most {MAX_AGGREGATIONS}")
    found = {}
    for name, kinds in told.items():
        what = f"[aggs] [{name:.50}]"
        _only(what, _mapping(what, kinds), ("terms",))
        terms = _mapping(what, kinds.get("terms"))
        _only(what, terms, ("field", "size"))
        field = str(terms.get("field")).removesuffix(".keyword")
        if field not in ("host", "type", "language"):
            raise SearchError(
                _ILLEGAL, f"{what}: field [{field:.50}]: expected host, type or language"
            )
        size = _number("size", terms.get("size", 10))
        if not 1 <= size <= MAX_VALUES:
            raise SearchError(_ILLEGAL, f"{what}: size [{size}]: expected 1 to {MAX_VALUES}")
        found[name] = field, size
    return found


def _tags(told: Any) -> tuple[str, str] | None:
    """The tags around marked words, if the request wants ``text`` highlighted; else None."""
    if told is None:
        return None
    told = _mapping("[highlight]", told)
    fields = told.get("fields", {})
    if isinstance(fields, list):
        fields = {name: {} for each in fields for name in _mapping("[highlight]", each)}
    if {"text", "*"}.isdisjoint(_mapping("[highlight] [fields]", fields)):
        return None
    tags = []
    for name, default in (("pre_tags", "<em>"), ("post_tags", "</em>")):
        given = told.get(name, [default])
        tag = given[0] if isinstance(given, list) and given else given
        if not isinstance(tag, str) or len(tag) > MAX_TAG:
            raise SearchError(
                _PARSING, f"[highlight] [{name}]: expected a text of at most {MAX_TAG} characters"
            )
        tags.append(tag)
    return tags[0], tags[1]


def _source(told: Any) -> Collection[str]:
    if told in (True, "true"):
        return ("*",)
    if told in (False, "false"):
        return ()
    names = told.split(",") if isinstance(told, str) else told
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise SearchError(_PARSING, "[_source]: expected true, false or names of fields")
    return [name[:MAX_TAG] for name in names[:MAX_TAG]]


def _only(what: str, found: Mapping[str, Any], accepted: Collection[str]) -> None:
    for name in found:
        if name not in accepted:
            expected = ", ".join(accepted)
            raise SearchError(_PARSING, f"unknown key [{name:.50}] in {what}; expected {expected}")


def _mapping(what: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise SearchError(_PARSING, f"{what}: expected an object")
    return value


def _of_url(text: str) -> Any:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def _number(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 31:
        raise SearchError(_ILLEGAL, f"[{name}]: expected a whole number of at least 0")
    return value
