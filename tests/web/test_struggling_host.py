"""A host whose fetches fail and are tried again: its page and the overview say so meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.support.servers.scripted import ScriptedServer
from tests.support.web.crawling import Crawling

TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
HTML = {"Content-Type": "text/html"}


def test_failed_attempts_are_shown_before_a_url_is_given_up(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """How many, of which kind, when they are tried again; and that there is no robots.txt."""
    links = b"<a href=/bad>x</a>"
    routes = {"/": (200, HTML, links), "/bad": (503, {}, b""), "/robots.txt": (404, {}, b"")}
    server = scripted_server(routes)
    with Crawling(tmp_path, server.url("/"), LARM_BACKOFF_SECS="300") as crawl:
        target = f"/hosts/127.0.0.1:{server.port}"
        crawl.until(lambda: crawl.gauges["urls"]["delayed"] == 1, "a failure")
        crawl.until(lambda: 'id="trouble"' in crawl.get(target).text, "it at a checkpoint")
        page = " ".join(crawl.get(target).text.split())
        assert "1 URL whose last attempt failed is tried again." in page
        assert re.search(f"1 failure in a row, the last one http-503 at {TIME}", page)
        again = page[page.index("To be tried again") : page.index("Queue head")]
        assert re.search(rf"<td[^>]*>{TIME}</td><td><a [^>]*>{server.url('/bad')}</a>", again)
        robots = page[page.index('id="robots-outcome"') :]
        assert "None (404): everything is allowed." in robots
        assert re.search(f"Requested at {TIME}, holds until {TIME}\\.", robots)
        overview = crawl.get("/").text
        assert 'data-text="retry">1<' in overview
        tried = overview[overview.index("Attempts tried again by kind") :]
        assert re.search(r'<th scope="row">http-503</th><td class="num">1</td>', tried)
        one = re.compile(r'</span></td>\s*<td class="num">1</td>\s*<td class="num">1</td>')
        crawl.until(lambda: one.search(crawl.get("/hosts?sort=retry").text), "the table anew")


def test_a_robots_txt_that_fails_is_shown_as_that(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Not as one that was not asked for."""
    server = scripted_server({"/robots.txt": (500, {}, b""), "/": "x"})
    with Crawling(tmp_path, server.url("/"), LARM_BACKOFF_SECS="300") as crawl:
        target = f"/hosts/127.0.0.1:{server.port}"
        crawl.until(lambda: "Not reached (500)" in crawl.get(target).text, "the failure")
        page = " ".join(crawl.get(target).text.split())
        assert re.search(f"until it is\\. Requested at {TIME}, not again before {TIME}\\.", page)
        assert "the last one robots.txt: http-500 at" in page
