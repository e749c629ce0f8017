"""/links: broken links with the pages that have them, and the most linked pages and hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import NamedTuple

from larmspider import program
from larmspider.crawl.log_index.builder import IndexProgress
from larmspider.crawl.log_index.index import MAX_REFERRERS, LogIndex
from larmspider.crawl.logs import CrawlLogs
from larmspider.reports.link_faults import link_faults
from larmspider.reports.links import (
    BROKEN_COLUMNS,
    BrokenLink,
    broken_links,
    broken_rows,
    most_linked,
    to_csv,
)
from larmspider.web.request import PageView, WebRequest, WebResponse, json_response

SHOWN = 50
CARRIERS_SHOWN = 5
EXPORTED = 1_000
"""Broken targets in one CSV or JSON; ``scrapy links --broken`` gives all."""
MOST = 1_000
AGAIN_SECS = "2"
SEARCH_SECS = 5.0
"""Time to search all links for links that are not URLs, so that the page does not wait longer."""
FAULTS_SECS = 5.0
"""Seconds after which the links are searched again, in the background."""
Rows = Sequence[tuple[int, bytes, int]]
"""Rows of LogIndex.broken()."""


def links(request: WebRequest) -> WebResponse:
    show = request.choice("show", ("broken", "pages", "hosts"))
    form = request.choice("format", ("html", "csv", "json"))
    if form != "html":
        return _exported(request, show, form)
    source = request.source
    indexed = source.keep_logs_indexed()
    number = request.number("page", 1)
    if _has_no_links(request):
        return request.render("links.html", indexed=indexed, show=show, state=None, none_yet=True)
    with source.crawl.logs.index() as index:
        if index is None or not indexed.ready:
            response = request.render("links.html", indexed=indexed, show=show, state=None)
            again = {"Refresh": AGAIN_SECS} if indexed.running else {}
            return WebResponse(response.body, response.content_type, headers=again)
        logs, broken = source.crawl.logs, source.broken.rows(index)
        faults = _faults(request) if show == "broken" else NO_FAULTS
        every = len(broken) + len(faults.links)
        total = {"broken": every, "pages": len(index.most_linked()), "hosts": 0}[show]
        pages = max(1, -(-total // SHOWN))
        number = min(number, pages)
        start = (number - 1) * SHOWN
        return request.render(
            "links.html", indexed=indexed, show=show, state=index.state(), number=number,
            pages=pages, total_broken=every, start=start, exported=EXPORTED,
            carriers_kept=MAX_REFERRERS, cut_short=faults.cut_short,
            broken=_slice(logs, index, broken, faults, start, SHOWN, CARRIERS_SHOWN)
            if show == "broken" else [],
            linked=most_linked(logs, index, start, SHOWN) if show == "pages" else [],
            hosts=index.most_linked_hosts()[:200] if show == "hosts" else [],
            known=source.hosts() if show == "hosts" else {},
        )  # fmt: skip


def _has_no_links(request: WebRequest) -> bool:
    """Whether nothing was fetched yet, or the crawl keeps no logs: there is nothing to count."""
    logs = request.source.crawl.logs
    return not logs.size("links.log") and not logs.size("fetch.log")


class Faults(NamedTuple):
    """``cut_short``: the search of the links took longer than a page may take."""

    links: Sequence[BrokenLink] = ()
    cut_short: bool = False


NO_FAULTS = Faults()


def _faults(request: WebRequest) -> Faults:
    """The broken links that no failed fetch shows; some seconds old."""

    def find() -> Faults:
        crawl = request.source.crawl.within(SEARCH_SECS)
        return Faults(link_faults(crawl), crawl.logs.cut_short)

    return request.source.kept("link faults", find, FAULTS_SECS)


def _slice(
    logs: CrawlLogs, index: LogIndex, rows: Rows, faults: Faults, start: int, many: int, pages: int
) -> list[BrokenLink]:
    """A slice of the faults, with up to ``pages`` pages for each. Failed fetches come first, as in
    ``scrapy links --broken``."""
    found = broken_links(logs, index, rows[start : start + many], pages)
    start = max(0, start - len(rows))
    others = faults.links[start : start + many - len(found)]
    return [*found, *(replace(link, carriers=link.carriers[:pages]) for link in others)]


def _exported(request: WebRequest, show: str, form: str) -> WebResponse:
    """The list as CSV or JSON; 503 until the links are counted, so that no script takes an empty
    list for the result."""
    crawl, indexed = request.source.crawl, request.source.keep_logs_indexed()
    if not indexed.ready and not _has_no_links(request):
        return _not_yet(indexed, form)
    rows: list[tuple[object, ...]] = []
    broken: list[BrokenLink] = []
    columns: tuple[str, ...] = BROKEN_COLUMNS
    faults = NO_FAULTS
    with crawl.logs.index() as index:
        if index is not None and show == "broken":
            found, faults = request.source.broken.rows(index), _faults(request)
            broken = _slice(crawl.logs, index, found, faults, 0, EXPORTED, MAX_REFERRERS)
            rows = list(broken_rows(broken))
        elif index is not None and show == "pages":
            rows = [(p.pages, p.url, p.anchor) for p in most_linked(crawl.logs, index, 0, MOST)]
            columns = ("pages", "url", "anchor")
        elif index is not None:
            rows = [(h.name, h.links, h.from_others) for h in index.most_linked_hosts()]
            columns = ("host", "links", "from-other-hosts")
    if form == "csv":
        headers = {"Content-Disposition": f'attachment; filename="links-{show}.csv"'}
        text = "\ufeff" + to_csv(
            columns, rows
        )  # the byte order mark tells spreadsheets that it is UTF-8
        return WebResponse(
            text.encode("utf-8", "replace"), "text/csv; charset=utf-8", headers=headers
        )
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    body = {**_as_of(indexed), "links": list(map(asdict, broken)) or named}
    if show == "broken":
        body["fragments"] = f"not checked: {program.NAME} links --broken --fragments lists them"
        body["complete"] = bool(body["complete"]) and not faults.cut_short
    return json_response(body)


def _not_yet(indexed: IndexProgress, form: str) -> WebResponse:
    text = f"The links of this crawl are being counted: {int(100 * indexed.done)}%."
    if indexed.problem:
        text = f"The logs cannot be counted: {indexed.problem}."
    response = json_response({**_as_of(indexed), "complete": False, "error": text}, 503)
    if form == "csv":
        response = WebResponse(f"{text}\n".encode(), "text/plain; charset=utf-8", 503)
    return replace(response, headers={"Retry-After": AGAIN_SECS})


def _as_of(indexed: IndexProgress) -> dict[str, object]:
    return {"as_of": indexed.time, "complete": indexed.done >= 1.0}


PAGES = (PageView("/links", links, "Links"),)
