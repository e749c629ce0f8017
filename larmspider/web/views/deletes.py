"""/deletes: pages that are gone and wait for somebody before they leave the search."""

from __future__ import annotations

from larmspider.control.deletes import digests, waiting_lists
from larmspider.web.request import PageView, WebRequest, WebResponse

SAMPLES = 20


def deletes(request: WebRequest) -> WebResponse:
    with request.source.crawl.frontier() as frontier:
        lists = {} if frontier is None else waiting_lists(frontier)
    return request.render("deletes.html", lists=lists, digests=digests(lists), samples=SAMPLES)


PAGES = (PageView("/deletes", deletes),)
