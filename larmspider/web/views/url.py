"""/url?u=...: why is this page in the crawl, or why not, and its history; /copy: its stored copy;
/diff: the changes from one version to the next."""

from __future__ import annotations

from contextlib import suppress

from larmspider import options, plugin
from larmspider.crawl.reader import StoredPage
from larmspider.errors import ConfigError, CrawlDirError, HttpError, InvalidURL
from larmspider.formatting import printable
from larmspider.frontier.storage.records import host_of
from larmspider.learned.describe import host_row
from larmspider.reports.explain import explain
from larmspider.reports.links import neighbours
from larmspider.reports.stored_copy import is_shown, stored_copy
from larmspider.urls.normalizer import exact_from_settings
from larmspider.web.auth import HEADERS
from larmspider.web.request import PageView, WebRequest, WebResponse

VISITS = 20
"""The last visits that are shown."""
EXAMPLES = 3
"""The seeds that the page names before a URL was typed."""
SEARCH_SECS = 2.0
"""How long a page may search the logs that are not indexed yet."""
_VERSIONS = "versions.versions"
_FRAMING = HEADERS["Content-Security-Policy"] + "; frame-src 'self'"


def url(request: WebRequest) -> WebResponse:
    asked = request.text("u").strip()
    if not asked:
        seeds = request.source.crawl.seeds[:EXAMPLES]
        return request.render("url.html", asked="", found=None, seeds=seeds)
    source = request.source
    crawl = source.crawl.within(SEARCH_SECS)
    found = explain(asked, source.settings, crawl, request.searcher)
    around = None
    if found.exact is not None:
        fetched_as = (
            found.fetched.url if found.fetched else found.stored.url if found.stored else ""
        )
        around = neighbours(crawl, found.exact, fetched_as)
    host = host_of(found.fetched.url if found.fetched else asked)
    versions = plugin.find(_VERSIONS)
    with crawl.frontier() as frontier:
        now = options.clock(source.settings)()
        row = frontier and host_row(frontier, source.politeness, host, now)
    return request.render(
        "url.html", asked=asked, found=found, around=around, host=row,
        history=None if found.exact is None or versions is None else versions.history(
            crawl, found.exact, now, request.may_see
        ), visits=VISITS,
        indexed=source.keep_logs_indexed(), cut_short=crawl.logs.cut_short,
        shown=found.stored is not None and is_shown(found.stored.mime),
    )  # fmt: skip


def view(request: WebRequest) -> WebResponse:
    """The stored copy in a frame without scripts, below a line that describes it."""
    asked, page = _stored(request)
    if not is_shown(page.mime):
        raise HttpError(f"A document of type {printable(page.mime)} is not shown here.", 415)
    response = request.render("view.html", asked=asked, page=page, at=request.text("at"))
    return WebResponse(
        response.body, response.content_type, headers={"Content-Security-Policy": _FRAMING}
    )


def copy(request: WebRequest) -> WebResponse:
    _, page = _stored(request)
    download = request.text("download") == "yes"
    text = "" if download or request.text("at") else _text_of(request, page)
    got = stored_copy(request.source.crawl, page, text=text, download=download)
    return WebResponse(got.body, got.content_type, headers=got.headers)


def _text_of(request: WebRequest, page: StoredPage) -> str:
    """The page's text in the index, or ""."""
    with suppress(CrawlDirError):
        if (document := request.searcher().get(page.exact)) is not None:
            return document.text
    return ""


def diff(request: WebRequest) -> WebResponse:
    """The changes in a page's text from the version before ``at`` to version ``at``."""
    asked, page = _stored(request)
    crawl, at, versions = request.source.crawl, request.text("at"), plugin.load(_VERSIONS)
    within = crawl.within(SEARCH_SECS)
    seen = versions.history(within, page.exact, may_see=request.may_see).versions
    times = [version.time for version in seen]
    number = times.index(at) if at in times else len(times) - 1
    before = seen[number - 1] if number > 0 else None
    lines: list[tuple[str, str]] = []
    left = ""
    if before is not None and before.page is not None:
        settings = request.source.settings
        lines, left = versions.changes(
            *(versions.text_of(crawl, one, settings) for one in (before.page, page))
        )
    return request.render(
        "diff.html", asked=asked, after=seen[number] if seen else None, before=before,
        lines=lines, left=left,
    )  # fmt: skip


def _stored(request: WebRequest) -> tuple[str, StoredPage]:
    """The page, in its version of the time ``at``."""
    asked = request.text("u").strip()
    crawl = request.source.crawl.within(SEARCH_SECS)
    try:
        exact = exact_from_settings(request.source.settings)(asked)
    except InvalidURL as error:
        raise HttpError(f"Not a URL of a page: {error}", 400) from None
    page = crawl.stored(exact)
    if page is None or not request.may_see(page.url):
        raise HttpError(f"{printable(asked)[:500]} is not stored in this crawl.", 404)
    if at := request.text("at"):
        try:
            versions = plugin.load(_VERSIONS)
            found = versions.history(crawl, exact, may_see=request.may_see)
            page = found.at(versions.moment(at))[1]
        except (ConfigError, CrawlDirError) as error:
            raise HttpError(printable(str(error)), 404) from None
    return asked, page


PAGES = (
    PageView("/url", url, "URL"),
    PageView("/view", view),
    PageView("/copy", copy),
    PageView("/diff", diff),
)
