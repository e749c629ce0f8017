"""scrapy hosts: what an operator asks first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import crawl, scrapy
from tests.support.servers.scripted import ScriptedServer

HTML = {"Content-Type": "text/html"}


@pytest.fixture
def folder(scripted_server: Callable[..., ScriptedServer], tmp_path: Path) -> Path:
    """A crawl of a host with two pages, one that asks for time, and one that is not there."""
    slow = scripted_server(
        {
            "/robots.txt": (200, {}, b"User-agent: *\nCrawl-delay: 0.3\nDisallow: /private\n"),
            "/": (200, HTML, b"<a href=/private>private</a>"),
        },
        host="127.0.0.2",
    )
    links = f"<a href=/a>a</a><a href={slow.url('/')}>b</a><a href=http://127.0.0.3:9/>c</a>"
    server = scripted_server({"/": (200, HTML, links.encode()), "/a": (200, HTML, b"")})
    ran = crawl(
        server.url("/"),
        tmp_path,
        restrict="http://.*",
        LARM_HOST_MAX_FAILURES="1",
        LARM_HOST_MAX_PARKS="0",
    )
    assert ran.status == 0, ran.err
    return tmp_path


def test_lists_state_counts_delay_and_reason(folder: Path) -> None:
    """A row a host; --json gives the same with names."""
    hosts = {row["host"]: row for row in scrapy("hosts", "--json", cwd=folder).json["hosts"]}
    assert len(hosts) == 3
    good = next(row for host, row in hosts.items() if host.startswith("127.0.0.1:"))
    assert (good["state"], good["stored"], good["queued"]) == ("ready", 2, 0)
    slow = next(row for host, row in hosts.items() if host.startswith("127.0.0.2:"))
    assert (slow["stored"], slow["refused"]) == (1, 1)
    assert (slow["delay"], slow["delay_rule"]) == (0.3, "robots.txt Crawl-delay")
    dead = hosts["127.0.0.3:9"]
    assert (dead["state"], dead["queued"], dead["next_time"]) == ("parked", 1, None)
    assert "refused" in dead["reason"]


def test_sorts_and_cuts(folder: Path) -> None:
    """--sort by any column, counts largest first; -n the first ones."""
    by_stored = scrapy("hosts", "--sort", "stored", "-n", "1", "--json", cwd=folder).json["hosts"]
    assert [row["stored"] for row in by_stored] == [2]
    text = scrapy("hosts", "--sort", "queued", cwd=folder).out.splitlines()
    assert text[0].split()[:2] == ["host", "state"]
    assert text[1].startswith("127.0.0.3:9 ")
    assert "never" in text[1]


def test_a_host_that_was_given_up_is_explained(folder: Path) -> None:
    """scrapy explain says why the URL is not fetched yet."""
    explained = scrapy("explain", "http://127.0.0.3:9/", cwd=folder).out
    assert "frontier     URL: queued" in explained
    assert "parked" in explained
    assert "not fetched in this run" in explained


@pytest.mark.parametrize("arguments", [["--sort", "size"], ["x"]])
def test_bad_arguments(folder: Path, arguments: list[str]) -> None:
    """One line, status 2."""
    ran = scrapy("hosts", *arguments, cwd=folder)
    assert ran.status == 2
    assert len(ran.err.splitlines()) == 1
