"""The operator's view of the search, as pages and as JSON (format=json). Unknown values are
refused.

/control/queries                   the search log, queries without a hit first
/control/why?q=vpn&u=http://...    the rank of a page among the hits; filters as in /search
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict

from larmspider.errors import LarmspiderError
from larmspider.reports.why import why
from larmspider.status.crawl_view import Source
from larmspider.web.request import PageView, WebRequest, WebResponse, json_response
from larmspider.web.views.control import login
from larmspider.web.views.search import Asked, mistake, wrong_format

ROWS = 100


def queries(request: WebRequest) -> WebResponse:
    if not request.signed_in:
        return login(request)
    if wrong := wrong_format(request):
        return json_response({"error": wrong}, 400)
    log = request.query_log
    found = {
        "without_hits": log.rows(without_hits=True, limit=ROWS),
        "frequent": log.rows(limit=ROWS),
    }
    if request.text("format") == "json":
        rows = {
            name: [asdict(row) | {"last": row.last.isoformat()} for row in of]
            for name, of in found.items()
        }
        return json_response({"on": log.on, "days": log.days, **rows})
    return request.render("queries.html", log=log, found=found)


def reasons(request: WebRequest) -> WebResponse:
    if not request.signed_in:
        return login(request)
    asked, url = Asked.of(request), request.text("u").strip()
    as_json = request.text("format") not in ("", "html")
    found, error, status = None, "", 200
    if wrong := mistake(request):
        error, status = wrong, 400
    elif asked.query and url:
        try:
            source = _source_of(url, request)
            wanted = asked.request(asked.filters(request))
            found = why(wanted, url, request.searcher(), source.crawl, source.settings)
        except LarmspiderError as problem:
            error, status = str(problem), 400
    elif as_json:
        error, status = "expected a query (q) and a URL (u)", 400
    if as_json:
        return json_response({"error": error} if found is None else asdict(found), status)
    return request.render("why.html", status, asked=asked, url=url, found=found, error=error)


def _source_of(url: str, request: WebRequest) -> Source:
    """The first of several crawls that has fetched a URL."""
    for source in request.source.all if request.source.others else ():
        with suppress(LarmspiderError):
            if source.crawl.last_fetch(source.crawl.forms(url).exact) is not None:
                return source
    return request.source


PAGES = (PageView("/control/queries", queries), PageView("/control/why", reasons))
