"""/links: which links are broken and who carries them, which pages and hosts are linked most."""

from __future__ import annotations

from dataclasses import asdict, replace

from larmspider.crawl.log_index.builder import IndexProgress
from larmspider.crawl.log_index.index import MAX_REFERRERS
from larmspider.reports.links import (
    BROKEN_COLUMNS,
    BrokenLink,
    broken_links,
    broken_rows,
    most_linked,
    most_linked_hosts,
    to_csv,
)
from larmspider.web.request import PageView, WebRequest, WebResponse, json_reply

SHOWN = 50
CARRIERS_SHOWN = 5
EXPORTED = 1_000
"""Broken targets in one CSV or JSON; ``scrapy links --broken`` gives all."""
MOST = 1_000
AGAIN_SECS = "2"


def links(ask: WebRequest) -> WebResponse:
    show = ask.choice("show", ("broken", "pages", "hosts"))
    form = ask.choice("format", ("html", "csv", "json"))
    if form != "html":
        return _exported(ask, show, form)
    source = ask.source
    indexed = source.keep_logs_indexed()
    number = ask.number("page", 1)
    with source.crawl.logs.index() as index:
        if index is None or not indexed.ready:
            reply = ask.render("links.html", indexed=indexed, show=show, state=None)
            again = {"Refresh": AGAIN_SECS} if indexed.running else {}
            return WebResponse(reply.body, reply.content_type, headers=again)
        logs, broken = source.crawl.logs, source.broken.rows(index)
        total = {"broken": len(broken), "pages": len(index.most_linked()), "hosts": 0}[show]
        pages = max(1, -(-total // SHOWN))
        number = min(number, pages)
        start = (number - 1) * SHOWN
        return ask.render(
            "links.html", indexed=indexed, show=show, state=index.state(), number=number,
            pages=pages, total_broken=len(broken), start=start, exported=EXPORTED,
            carriers_kept=MAX_REFERRERS,
            broken=broken_links(logs, index, broken[start : start + SHOWN], CARRIERS_SHOWN)
            if show == "broken" else [],
            linked=most_linked(logs, index, start, SHOWN) if show == "pages" else [],
            hosts=most_linked_hosts(index, 200) if show == "hosts" else [],
        )  # fmt: skip


def _exported(ask: WebRequest, show: str, form: str) -> WebResponse:
    """The whole list, as far as one answer goes; 503 before there is one, so that no script
    takes what is not counted yet for nothing."""
    crawl, indexed = ask.source.crawl, ask.source.keep_logs_indexed()
    if not indexed.ready:
        return _not_yet(indexed, form)
    rows: list[tuple[object, ...]] = []
    broken: list[BrokenLink] = []
    columns: tuple[str, ...] = BROKEN_COLUMNS
    with crawl.logs.index() as index:
        if index is not None and show == "broken":
            found = ask.source.broken.rows(index)[:EXPORTED]
            broken = broken_links(crawl.logs, index, found, MAX_REFERRERS)
            rows = list(broken_rows(broken))
        elif index is not None and show == "pages":
            rows = [(p.pages, p.url, p.anchor) for p in most_linked(crawl.logs, index, 0, MOST)]
            columns = ("pages", "url", "anchor")
        elif index is not None:
            rows = [(h.name, h.links, h.from_others) for h in most_linked_hosts(index, MOST)]
            columns = ("host", "links", "from-other-hosts")
    if form == "csv":
        headers = {"Content-Disposition": f'attachment; filename="links-{show}.csv"'}
        body = "\ufeff" + to_csv(columns, rows)  # by the mark spreadsheets know UTF-8
        return WebResponse(
            body.encode("utf-8", "replace"), "text/csv; charset=utf-8", headers=headers
        )
    named = [dict(zip(columns, row, strict=True)) for row in rows]
    return json_reply({**_as_of(indexed), "links": list(map(asdict, broken)) or named})


def _not_yet(indexed: IndexProgress, form: str) -> WebResponse:
    text = f"The links of this crawl are being counted: {int(100 * indexed.done)}%."
    if indexed.problem:
        text = f"The logs cannot be counted: {indexed.problem}."
    reply = json_reply({**_as_of(indexed), "complete": False, "error": text}, 503)
    if form == "csv":
        reply = WebResponse(f"{text}\n".encode(), "text/plain; charset=utf-8", 503)
    return replace(reply, headers={"Retry-After": AGAIN_SECS})


def _as_of(indexed: IndexProgress) -> dict[str, object]:
    return {"as_of": indexed.time, "complete": indexed.done >= 1.0}


PAGES = (PageView("/links", links, "Links"),)
