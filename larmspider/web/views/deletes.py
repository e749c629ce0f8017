"""/deletes: pages that are gone and wait for somebody before they leave the search."""

from __future__ import annotations

import time

from larmspider.control.deletes import dead_hosts, digests, waiting_lists
from larmspider.web.request import PageView, WebRequest, WebResponse

SAMPLES = 20


def deletes(request: WebRequest) -> WebResponse:
    with request.source.crawl.frontier() as frontier:
        lists = {} if frontier is None else waiting_lists(frontier)
        dead = [] if frontier is None else dead_hosts(frontier, time.time())
    return request.render(
        "deletes.html", lists=lists, digests=digests(lists), samples=SAMPLES, dead=dead
    )


PAGES = (PageView("/deletes", deletes),)
