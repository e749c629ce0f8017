"""/control/queries: what was searched for, what found nothing first; also as JSON (format=json)."""

from __future__ import annotations

from dataclasses import asdict

from larmspider.web.request import PageView, WebRequest, WebResponse, json_response
from larmspider.web.views.control import login

ROWS = 100


def queries(request: WebRequest) -> WebResponse:
    if not request.signed_in:
        return login(request)
    log = request.query_log
    found = {
        "without_hits": log.rows(without_hits=True, limit=ROWS),
        "frequent": log.rows(limit=ROWS),
    }
    if request.choice("format", ("html", "json")) == "json":
        rows = {
            name: [asdict(row) | {"last": row.last.isoformat()} for row in of]
            for name, of in found.items()
        }
        return json_response({"on": log.on, "days": log.days, **rows})
    return request.render("queries.html", log=log, found=found)


PAGES = (PageView("/control/queries", queries),)
