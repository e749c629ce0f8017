"""/url?u=...: why is this page in the crawl, or why not; /copy: what is stored of it."""

from __future__ import annotations

import time
from contextlib import suppress

from larmspider.crawl.reader import StoredPage
from larmspider.errors import CrawlDirError, HttpError, InvalidURL
from larmspider.formatting import printable
from larmspider.frontier.describe import host_row
from larmspider.frontier.storage.records import host_of
from larmspider.reports.explain import explain
from larmspider.reports.links import neighbours
from larmspider.reports.stored_copy import is_shown, stored_copy
from larmspider.urls.normalizer import normalizer_from_settings
from larmspider.web.auth import HEADERS
from larmspider.web.request import PageView, WebRequest, WebResponse

SEARCH_SECS = 2.0
"""How long a page may search what no index of the logs has yet."""
_FRAMING = HEADERS["Content-Security-Policy"] + "; frame-src 'self'"


def url(ask: WebRequest) -> WebResponse:
    asked = ask.text("u").strip()
    if not asked:
        return ask.render("url.html", asked="", found=None)
    source = ask.source
    crawl = source.crawl.within(SEARCH_SECS)
    found = explain(asked, source.settings, crawl)
    around = None
    if found.canonical is not None:
        fetched_as = (
            found.fetched.url if found.fetched else found.stored.url if found.stored else ""
        )
        around = neighbours(crawl, found.canonical, fetched_as)
    host = host_of(found.fetched.url if found.fetched else asked)
    with crawl.frontier() as frontier:
        now = time.time()
        row = frontier and host_row(frontier, source.politeness, host, now)
    return ask.render(
        "url.html", asked=asked, found=found, around=around, host=row,
        indexed=source.keep_logs_indexed(), cut_short=crawl.logs.cut_short,
        shown=found.stored is not None and is_shown(found.stored.mime),
    )  # fmt: skip


def view(ask: WebRequest) -> WebResponse:
    """The stored copy in a frame that runs nothing, below a line that says what it is."""
    asked, page = _stored(ask)
    if not is_shown(page.mime):
        raise HttpError(f"A document of type {printable(page.mime)} is not shown here.", 415)
    reply = ask.render("view.html", asked=asked, page=page)
    return WebResponse(
        reply.body, reply.content_type, headers={"Content-Security-Policy": _FRAMING}
    )


def copy(ask: WebRequest) -> WebResponse:
    """The bytes themselves."""
    _, page = _stored(ask)
    download = ask.text("download") == "yes"
    text = "" if download else _text_of(ask, page)
    got = stored_copy(ask.source.crawl, page, text=text, download=download)
    return WebResponse(got.body, got.content_type, headers=got.headers)


def _text_of(ask: WebRequest, page: StoredPage) -> str:
    """As the index has it; "" where it has none."""
    with suppress(CrawlDirError):
        if (document := ask.source.searcher().get(page.normalized)) is not None:
            return document.text
    return ""


def _stored(ask: WebRequest) -> tuple[str, StoredPage]:
    asked = ask.text("u").strip()
    crawl = ask.source.crawl.within(SEARCH_SECS)
    try:
        normalized = normalizer_from_settings(ask.source.settings)(asked)
    except InvalidURL as error:
        raise HttpError(f"This is no URL of a page: {error}", 400) from None
    page = crawl.stored(normalized)
    if page is None:
        raise HttpError(f"{printable(asked)[:500]} is not stored in this crawl.", 404)
    return asked, page


PAGES = (PageView("/url", url, "URL"), PageView("/view", view), PageView("/copy", copy))
