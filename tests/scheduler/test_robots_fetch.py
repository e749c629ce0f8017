"""How a robots.txt is fetched. docs/internals/hostile-web.md has the meaning of each answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from scrapy import Request
from scrapy.exceptions import ResponseDataLossError

from larmspider.frontier.hosts import Host, HostPace, HostRecord, Lease
from larmspider.frontier.own_fetch import FetchKind, OwnFetch
from larmspider.frontier.robots import MAX_BYTES, RobotsRules
from larmspider.requests import LEASE
from larmspider.scheduler.robots_fetch import RobotsFetch
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.scripted import Raw, ScriptedServer

Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]


def robots_request(url: str) -> Request:
    host = Host(HostRecord("h:80"), HostPace())
    own = OwnFetch(FetchKind.ROBOTS, url, lambda: None)
    nobody: Any = None
    request = RobotsFetch(nobody, nobody, nobody).request(Lease(url, host, None, 0.0, None, own))
    del request.meta[LEASE]  # there is no frontier that it were of
    return request


def test_a_line_that_is_cut_is_no_rule(scripted_server: Start, fetcher: Make) -> None:
    """Of a file that is too large half a line comes: "Disallow: /a" is not what it says."""
    head = b"User-agent: *\nDisallow: /private/\n"
    last = b"\nDisallow: /archive/2001/\n"
    cut = len(b"\nDisallow: /a")
    body = head + b"#" * (MAX_BYTES - len(head) - cut) + last
    server = scripted_server({"*": body})
    request = robots_request(server.url("/robots.txt"))
    rules = RobotsRules.parse(fetcher().fetch(request).body, "larmspider")
    assert rules.allowed(server.url("/about"))
    assert not rules.allowed(server.url("/private/x"))


def test_half_a_file_is_none(scripted_server: Start, fetcher: Make) -> None:
    """Whatever a spider makes of half a page: what a lost line would have refused is not known."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-agent: *\nDisal"
    server = scripted_server({"*": Raw(answer)})
    request = robots_request(server.url())
    with pytest.raises(ResponseDataLossError):
        fetcher(DOWNLOAD_FAIL_ON_DATALOSS=False).fetch(request)
