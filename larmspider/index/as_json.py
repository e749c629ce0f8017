"""The results of a search as JSON, the same for `scrapy search --json` and `/search?format=json`.

docs/search.md has the fields. They are stable: new ones may come, none changes its meaning.
"""

from __future__ import annotations

from typing import Any

from larmspider.index.facets import Facets
from larmspider.index.filters import Filters
from larmspider.index.results import Hit, Results
from larmspider.index.spelling import Suggestion
from larmspider.times import utc


def results_json(
    query: str,
    results: Results,
    offset: int,
    filters: Filters,
    suggestion: Suggestion | None,
) -> dict[str, Any]:
    """The answer to a search."""
    return {
        "query": query,
        "total": results.total,
        "offset": offset,
        "seconds": round(results.seconds, 6),
        "suggestion": suggestion and {"query": suggestion.query, "total": suggestion.total},
        "filters": _filters(filters),
        "hits": [hit_json(hit) for hit in results.hits],
        "facets": None if results.facets is None else _facets(results.facets),
    }


def hit_json(hit: Hit) -> dict[str, Any]:
    """One hit; ``snippet`` is HTML: escaped, with the words of the query in <b>."""
    return {
        "url": hit.url,
        "title": hit.title,
        "score": round(hit.score, 4),
        "snippet": hit.snippet.html,
        "host": hit.host,
        "type": hit.kind,
        "mime": hit.mime,
        "language": hit.language,
        "size": hit.size,
        "fetched": hit.fetched,
        "modified": hit.modified,
        "depth": hit.depth,
    }


def _filters(filters: Filters) -> dict[str, Any]:
    """Those that are set; dates as in logs."""
    found: dict[str, Any] = {
        "host": list(filters.hosts),
        "type": list(filters.kinds),
        "language": list(filters.languages),
        "since": None if filters.since is None else utc(filters.since),
        "until": None if filters.until is None else utc(filters.until),
    }
    return {name: value for name, value in found.items() if value}


def _facets(facets: Facets) -> dict[str, Any]:
    return {
        "host": facets.hosts,
        "other_hosts": facets.other_hosts,
        "type": facets.kinds,
        "language": facets.languages,
        "date": facets.dates,
    }
