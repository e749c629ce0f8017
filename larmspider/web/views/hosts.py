"""/hosts: all hosts; /hosts/wiki:80 and /host?u=http://wiki/a: one host."""

from __future__ import annotations

from larmspider import options
from larmspider.errors import HttpError
from larmspider.formatting import printable
from larmspider.frontier.storage.records import host_of
from larmspider.learned.describe import HOST_COLUMNS, HOST_STATES, next_request
from larmspider.reports.hosts import HostQuery, host_page, host_table
from larmspider.status.snapshot import why_stopped
from larmspider.web.request import PageView, WebRequest, WebResponse


def hosts(request: WebRequest) -> WebResponse:
    query = HostQuery(
        sort=request.choice("sort", HOST_COLUMNS, "queued"),
        reverse=request.text("dir", limit=8) == "back",
        name=request.text("q", limit=300),
        state=request.choice("state", ("", *HOST_STATES)),
        page=request.number("page", 1),
    )
    table = host_table(request.source.hosts().values(), query)
    descending = HOST_COLUMNS[query.sort].largest_first is not query.reverse
    return request.render(
        "hosts.html", table=table, query=query, columns=HOST_COLUMNS, descending=descending,
        now=options.clock(request.source.settings)(), states=HOST_STATES,
        next_request=next_request, stopped=why_stopped(request.source.run_state, request.gauges),
    )  # fmt: skip


def host(request: WebRequest) -> WebResponse:
    return _host(request, request.path["host"].lower())


def host_of_url(request: WebRequest) -> WebResponse:
    """The page of a URL's host, for links that do not know the host's name in the crawl."""
    url = request.text("u").strip()
    return _host(request, host_of(url)) if url else hosts(request)


def _host(request: WebRequest, name: str) -> WebResponse:
    url = request.text("u")
    source = request.source
    now = options.clock(source.settings)()
    page = host_page(source.crawl, source.settings, source.politeness, name, now, url)
    if page is None:
        raise HttpError(f"This crawl has no host {printable(name)[:300]}.", 404)
    source.keep_logs_indexed()
    following = next_request(page.row, now, why_stopped(source.run_state, request.gauges))
    return request.render(
        "host.html", page=page, row=page.row, url=url, now=now, following=following
    )


PAGES = (
    PageView("/hosts", hosts, "Hosts", live=True),
    PageView("/hosts/{host}", host, live=True),
    PageView("/host", host_of_url, live=True),
)
