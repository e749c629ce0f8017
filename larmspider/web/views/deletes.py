"""/deletes: pages that are gone, and leave the search after an operator's decision."""

from __future__ import annotations

from larmspider import options
from larmspider.control.deletes import what_waits
from larmspider.web.request import PageView, WebRequest, WebResponse

SAMPLES = 20


def deletes(request: WebRequest) -> WebResponse:
    with request.source.crawl.frontier() as frontier:
        now = options.clock(request.source.settings)()
        waits = what_waits(frontier, now, SAMPLES)
    return request.render(
        "deletes.html",
        lists=waits.lists,
        digests=waits.digests,
        samples=SAMPLES,
        dead=waits.dead,
        moves=waits.moves,
    )


PAGES = (PageView("/deletes", deletes),)
