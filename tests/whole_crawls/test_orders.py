"""LARM_STRATEGY in a crawl: each order shows in what the server is asked, one page at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import crawl
from tests.support.servers.scripted import Route, ScriptedServer

Start = Callable[..., ScriptedServer]
GAP = {"DOWNLOAD_DELAY": "0.05"}
"""So that all links of a page are queued before the next one is fetched."""
ONE_AT_A_TIME = {"threads": "1", "CONCURRENT_REQUESTS_PER_DOMAIN": "1", "ROBOTSTXT_OBEY": "0"}

SITE = {
    "/": ["/x/y/deep", "/a/b", "/c", "/e"],
    "/c": ["/d"],
    "/x/y/deep": ["/late/popular", "/e"],
    "/a/b": ["/late/popular"],
    "/d": [],
    "/e": ["/late/popular", "/late/lonely"],
    "/late/popular": [],
    "/late/lonely": [],
}


def routes(site: dict[str, list[str]]) -> dict[str, Route]:
    return {
        path: " ".join(["<title>x</title>", *(f"<a href={link}>x</a>" for link in links)])
        for path, links in site.items()
    }


def order(server: ScriptedServer) -> list[str]:
    return [request.target for request in server.log]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (
            "breadth-first",
            "/ /x/y/deep /a/b /c /e /late/popular /d /late/lonely",
        ),
        (  # fewer path segments first, whatever the depth
            "path-words",
            "/ /c /e /d /a/b /late/popular /late/lonely /x/y/deep",
        ),
        (  # /e and then /late/popular are linked twice before the others are
            "backlinks",
            "/ /x/y/deep /e /late/popular /a/b /c /late/lonely /d",
        ),
        (  # without ranks yet: all average, less for depth
            "pagerank",
            "/ /x/y/deep /a/b /c /e /late/popular /d /late/lonely",
        ),
    ],
)
def test_an_order_shows_at_the_server(
    scripted_server: Start, tmp_path: Path, strategy: str, expected: str
) -> None:
    """One host, one connection: the server's log is the order."""
    server = scripted_server(routes(SITE))
    ran = crawl(server.url(), tmp_path, LARM_STRATEGY=strategy, **(ONE_AT_A_TIME | GAP))
    assert ran.status == 0
    assert order(server) == expected.split()


def many(pages: int) -> dict[str, list[str]]:
    """A menu of pages that all link to one other page, which the menu names last."""
    leaves = [f"/{number}" for number in range(pages)]
    return {"/": [*leaves, "/hub"], "/hub": []} | {leaf: ["/hub"] for leaf in leaves}


def test_ranks_bring_the_most_linked_page_forward(scripted_server: Start, tmp_path: Path) -> None:
    """With ranks computed every 0.3 s a page that all others link to is fetched before most of
    them; breadth first it is the last."""
    server = scripted_server(routes(many(60)))
    settings = ONE_AT_A_TIME | {"LARM_STRATEGY": "pagerank", "LARM_PAGERANK_SECS": "0.3"}
    ran = crawl(server.url(), tmp_path, DOWNLOAD_DELAY="0.08", **settings)
    assert ran.status == 0
    assert len(server.log) == 62
    assert order(server).index("/hub") < 40
    assert "'larm/pagerank/computed':" in ran.err


def test_ranks_are_off_in_other_orders(scripted_server: Start, tmp_path: Path) -> None:
    """Nothing is gathered or computed."""
    server = scripted_server(routes(many(10)))
    ran = crawl(server.url(), tmp_path, LARM_PAGERANK_SECS="0.1", **ONE_AT_A_TIME)
    assert order(server)[-1] == "/hub"
    assert "larm/pagerank" not in ran.err
