"""How a robots.txt is fetched. docs/internals/hostile-web.md has the meaning of each answer."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from scrapy.exceptions import ResponseDataLossError

from larmspider.frontier.robots import MAX_BYTES, RobotsRules
from larmspider.requests import LEASE
from larmspider.scheduler.robots_fetch import RobotsFetch
from tests.support.fetch.fetching import Fetcher
from tests.support.servers.scripted import Raw, ScriptedServer

Start = Callable[..., ScriptedServer]
Make = Callable[..., Fetcher]


def test_a_line_that_is_cut_is_no_rule(scripted_server: Start, fetcher: Make) -> None:
    """Of a file that is too large half a line comes: "Disallow: /a" is not what it says."""
    head = b"User-agent: *\nDisallow: /private/\n"
    last = b"\nDisallow: /archive/2001/\n"
    cut = len(b"\nDisallow: /a")
    body = head + b"#" * (MAX_BYTES - len(head) - cut) + last
    server = scripted_server({"*": body})
    lease = SimpleNamespace(url=server.url("/robots.txt"))
    request = RobotsFetch(SimpleNamespace()).request(lease)
    del request.meta[LEASE]  # there is no frontier that it were of
    rules = RobotsRules.parse(fetcher().fetch(request).body, "larmspider")
    assert rules.allowed(server.url("/about"))
    assert not rules.allowed(server.url("/private/x"))


def test_half_a_file_is_none(scripted_server: Start, fetcher: Make) -> None:
    """Whatever a spider makes of half a page: what a lost line would have refused is not known."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-agent: *\nDisal"
    server = scripted_server({"*": Raw(answer)})
    request = RobotsFetch(SimpleNamespace()).request(SimpleNamespace(url=server.url()))
    del request.meta[LEASE]
    with pytest.raises(ResponseDataLossError):
        fetcher(DOWNLOAD_FAIL_ON_DATALOSS=False).fetch(request)
