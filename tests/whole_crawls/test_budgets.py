"""Budgets and rules of single hosts in a crawl, by the servers' logs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.crawling import crawl, records, scrapy
from tests.support.servers.scripted import Reply, Route, ScriptedServer

Start = Callable[..., ScriptedServer]
PLAIN = {"ROBOTSTXT_OBEY": "0"}


def site(pages: int) -> dict[str, Route]:
    """A start page and ``pages`` others."""
    names = [f"/{number}" for number in range(pages)]
    routes: dict[str, Route] = {"/": "".join(f"<a href={name}>x</a>" for name in names)}
    return routes | dict.fromkeys(names, "x")


def stored(folder: Path) -> list[str]:
    return [line["url"] for line in records(folder / "crawl" / "store.log")]


def test_a_host_has_a_budget(scripted_server: Start, tmp_path: Path) -> None:
    """LARM_HOST_MAX_PAGES pages of each host, also over a restart; a larger one goes on."""
    servers = [scripted_server(site(12)), scripted_server(site(12), host="127.0.0.2")]
    seeds = " ".join(server.url() for server in servers)
    for _ in range(2):
        ran = crawl(seeds, tmp_path, LARM_HOST_MAX_PAGES="4", **PLAIN)
        assert ran.status == 0
        assert "left        18 URLs beyond the budgets of 2 hosts" in ran.out
        assert "run the same command to continue" not in ran.out
        assert [len(server.log) for server in servers] == [4, 4]
    assert len(stored(tmp_path)) == 8
    assert crawl(seeds, tmp_path, LARM_HOST_MAX_PAGES="6", **PLAIN).status == 0
    assert [len(server.log) for server in servers] == [6, 6]


def test_a_page_that_failed_is_not_on_the_budget(scripted_server: Start, tmp_path: Path) -> None:
    """A budget is of stored pages: what gave no page makes room for another."""
    server = scripted_server(site(12) | dict.fromkeys(("/0", "/1", "/2"), Reply(body=b"x" * 3000)))
    ran = crawl(server.url(), tmp_path, LARM_HOST_MAX_PAGES="4", DOWNLOAD_MAXSIZE="2000", **PLAIN)
    assert ran.status == 0
    assert len(stored(tmp_path)) == 4


def test_a_crawl_has_a_budget(scripted_server: Start, tmp_path: Path) -> None:
    """LARM_MAX_PAGES in all; the rest waits for a run with more."""
    server = scripted_server(site(12))
    ran = crawl(server.url(), tmp_path, LARM_MAX_PAGES="5", **PLAIN)
    assert ran.status == 0
    assert len(stored(tmp_path)) == 5
    assert len(server.log) == 5
    assert "ended       finished; LARM_MAX_PAGES is reached\n" in ran.out
    assert "left        8 URLs beyond LARM_MAX_PAGES; run the same" in ran.out
    assert crawl(server.url(), tmp_path, **PLAIN).status == 0
    assert len(stored(tmp_path)) == 13
    assert len(server.log) == 13


def test_rules_of_a_host_by_pattern(scripted_server: Start, tmp_path: Path) -> None:
    """Delay, connections and budget of one host; the others have the general ones."""
    slow = Reply(body=b"x", delay=0.2)
    leaves: dict[str, Route] = {f"/{number}": slow for number in range(4)}
    ruled = scripted_server(site(4) | leaves, host="127.0.0.2")
    free = scripted_server(site(4) | leaves)
    rules = {"127.0.0.2": {"delay": 0.6, "budget": 4}, f"*:{ruled.port}": {"connections": 1}}
    settings = {"LARM_HOST_RULES": json.dumps(rules), "LARM_DELAY_RESPONSE_FACTOR": "0"}
    assert crawl(f"{ruled.url()} {free.url()}", tmp_path, **PLAIN, **settings).status == 0
    assert len(ruled.log) == 4
    gaps = [later.time - earlier.time for earlier, later in pairwise(ruled.log)]
    assert min(gaps) >= 0.55
    assert ruled.peak_open == 1
    assert len(free.log) == 5
    assert free.peak_open > 1, "eight are allowed"


def test_a_host_is_asked_in_its_hours(scripted_server: Start, tmp_path: Path) -> None:
    """Outside its window a host waits, and the crawl with it; the others are fetched meanwhile.

    The window is the hour that is six hours away.
    """
    closed, opened = scripted_server(site(3), host="127.0.0.2"), scripted_server(site(3))
    hour = (time.localtime().tm_hour + 6) % 24
    now = {"127.0.0.2": {"window": [hour, (hour + 1) % 24]}, "*": {"window": [0, 24]}}
    settings = {"LARM_HOST_RULES": json.dumps(now), "CLOSESPIDER_TIMEOUT": "3"}
    ran = crawl(f"{closed.url()} {opened.url()}", tmp_path, **PLAIN, **settings)
    assert "ended       closespider_timeout" in ran.out, "it would have waited"
    assert closed.log == []
    assert len(opened.log) == 4
    settings["LARM_HOST_RULES"] = "{}"
    assert crawl(f"{closed.url()} {opened.url()}", tmp_path, **PLAIN, **settings).status == 0
    assert len(closed.log) == 4


# The time of day is set while a crawl runs: by NTP, or because the machine slept.


SETTINGS = """
import time

from larmspider.settings import *

LARM_CHECKPOINT_SECS = DOWNLOAD_DELAY = 0.1
LARM_SITEMAPS, LARM_LANGUAGES, LARM_TRAPS = False, "", "off"
DOWNLOADER_MIDDLEWARES = {**DOWNLOADER_MIDDLEWARES, "stepped_settings.Step": 999}
as_it_was, steps = time.time, []
time.time = lambda: as_it_was() + sum(steps)


class Step:
    def process_response(self, request, response):
        if not steps or request.url.endswith("/1"):
            steps.append(5 * 3600)
        return response
"""


def test_a_clock_that_jumps_ahead_makes_no_server_slow(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """During the fetch of robots.txt, and of a page: neither took five hours, nor is the gap so."""
    (tmp_path / "stepped_settings.py").write_text(SETTINGS)
    routes = {"/": "<a href=/1>x</a>", "/1": "<a href=/2>x</a>", "/2": "x"}
    server = scripted_server(routes)
    arguments = ["crawl", "intranet", "-a", f"start={server.url()}"]
    ran = scrapy(*arguments, cwd=tmp_path, settings_module="stepped_settings", timeout=120)
    assert ran.status == 0, ran.err
    assert [request.target for request in server.log] == ["/robots.txt", "/", "/1", "/2"]


# LARM_STRATEGY in a crawl: each order shows in what the server is asked, one page at a time.


GAP = {"DOWNLOAD_DELAY": "0.05"}
"""With it all links of a page are queued before the next one is fetched."""
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


@pytest.mark.acceptance
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
