"""/deletes: pages that are gone and wait for somebody before they leave the search."""

from __future__ import annotations

import time

from larmspider.control.deletes import digests, moved_hosts, silent_hosts, waiting_lists
from larmspider.web.request import PageView, WebRequest, WebResponse

SAMPLES = 20


def deletes(request: WebRequest) -> WebResponse:
    with request.source.crawl.frontier() as frontier:
        now = time.time()
        lists = {} if frontier is None else waiting_lists(frontier, now)
        dead = [] if frontier is None else silent_hosts(frontier, now)
        moves = [] if frontier is None else moved_hosts(frontier, now)
    return request.render(
        "deletes.html",
        lists=lists,
        digests=digests(lists),
        samples=SAMPLES,
        dead=dead,
        moves=moves,
    )


PAGES = (PageView("/deletes", deletes),)
