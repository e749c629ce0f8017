"""/hosts: all hosts; /hosts/wiki:80, /host?u=http://wiki/a: all about one of them."""

from __future__ import annotations

import time

from larmspider.errors import HttpError
from larmspider.formatting import printable
from larmspider.frontier.storage.records import host_of
from larmspider.reports.hosts import SORTS, STATES, HostQuery, host_page, host_table
from larmspider.web.request import PageView, WebRequest, WebResponse

COLUMNS = (
    ("host", "Host", False),
    ("state", "State", False),
    ("queued", "Queued", True),
    ("retry", "To retry", True),
    ("stored", "Stored", True),
    ("failed", "Failed", True),
    ("refused", "Refused", True),
    ("in-flight", "In flight", True),
    ("delay", "Delay", True),
    ("next", "Next", True),
)
"""Order, title, and whether it is a number."""
LARGEST_FIRST = frozenset({"queued", "retry", "stored", "failed", "refused", "in-flight", "delay"})


def hosts(ask: WebRequest) -> WebResponse:
    query = HostQuery(
        sort=ask.choice("sort", tuple(SORTS)),
        reverse=ask.text("dir", limit=8) == "back",
        name=ask.text("q", limit=300),
        state=ask.choice("state", ("", *STATES)),
        page=ask.number("page", 1),
    )
    table = host_table(ask.source.hosts().values(), query)
    descending = (query.sort in LARGEST_FIRST) is not query.reverse
    return ask.render(
        "hosts.html", table=table, query=query, columns=COLUMNS, descending=descending,
        now=time.time(), states=STATES,
    )  # fmt: skip


def host(ask: WebRequest) -> WebResponse:
    return _host(ask, ask.path["host"].lower())


def host_of_url(ask: WebRequest) -> WebResponse:
    """The page of a URL's host, where the URL is known and the host's name in the crawl is not."""
    url = ask.text("u").strip()
    return _host(ask, host_of(url)) if url else hosts(ask)


def _host(ask: WebRequest, name: str) -> WebResponse:
    url = ask.text("u")
    source = ask.source
    page = host_page(source.crawl, source.settings, source.politeness, name, time.time(), url)
    if page is None:
        raise HttpError(f"The crawl has met no host {printable(name)[:300]}.", 404)
    source.keep_logs_indexed()
    return ask.render("host.html", page=page, row=page.row, url=url, now=time.time())


PAGES = (
    PageView("/hosts", hosts, "Hosts"),
    PageView("/hosts/{host}", host),
    PageView("/host", host_of_url),
)
