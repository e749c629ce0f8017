"""LARM_GROUP_BY=address in a crawl: one server by two names, judged by the turns of requests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.crawling import crawl
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.workers.crew import CLOCKS_SECS, TURNS

NAMES = ("127.0.0.1", "localhost")
PAGES = [f"/{number}" for number in range(5)]
GAP, SLOW = 0.3, 0.7
HTML = {"Content-Type": "text/html"}


def host(request: Request) -> str:
    return request.headers["host"].partition(":")[0]


def turn(request: Request) -> float:
    """When the crawler handed out a page's request, which may come later; not for robots.txt."""
    return float(request.headers["turn"].split()[1])


def answer_secs(request: Request) -> float:
    """Every other page takes longer than the gap."""
    return SLOW if request.target in PAGES[::2] else 0.0


def page(request: Request) -> Reply:
    links = "".join(f"<a href={path}>{path}</a> " for path in PAGES)
    return Reply(200, HTML, f"{links} on {host(request)}".encode(), answer_secs(request))


@pytest.mark.acceptance
@pytest.mark.parametrize("group_by", ["address", "host"])
def test_two_names_of_one_address_share_their_pace(
    group_by: str, scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """By address no two requests are closer than the gap, none comes while another is answered,
    and the names take turns; by host they do not wait for each other."""
    server = scripted_server({"*": page, "/robots.txt": (404, {}, b"")})
    seeds = " ".join(f"http://{name}:{server.port}/" for name in NAMES)
    settings = {
        "LARM_GROUP_BY": group_by,
        "DOWNLOAD_DELAY": str(GAP),
        "CONCURRENT_REQUESTS_PER_DOMAIN": "1",
    }
    restrict = r"http://(127\.0\.0\.1|localhost):\d+/.*"
    ran = crawl(seeds, tmp_path, restrict=restrict, settings_module=TURNS, **settings)
    assert ran.status == 0, ran.err
    asked = sorted((host(request), request.target) for request in server.log)
    assert asked == sorted((name, path) for name in NAMES for path in ["/robots.txt", "/", *PAGES])
    log = sorted((one for one in server.log if "turn" in one.headers), key=turn)
    kept = all(
        turn(late) + CLOCKS_SECS >= max(turn(early) + GAP, early.time + answer_secs(early))
        for early, late in pairwise(log)
    )
    assert kept is (group_by == "address")
    if group_by == "address":
        first = [host(request) for request in log[:8]]
        assert min(first.count(name) for name in NAMES) >= 3, first
