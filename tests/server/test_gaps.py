"""Crawls that reach one host keep one gap together; the server finds out which do."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from larmspider.server.config.crawl_schema import Crawl
from larmspider.server.runs.gaps import Gaps, meetings
from tests.server.test_server import Servers
from tests.support.web.console import first_token, serving, until
from tests.support.web.crawling import endless

GAP = 0.4


def crawl(seed: str, restrict: str = "") -> Crawl:
    return Crawl(seeds=[seed], restrict=restrict)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (crawl("http://w/a"), crawl("http://W/b"), {"w:80", "w:443"}),
        (crawl("http://w/a"), crawl("https://w/"), {"w:80", "w:443"}),
        (crawl("http://w:81/a"), crawl("http://w/b"), set()),
        (crawl("http://w/a"), crawl("http://v/b"), set()),
        (crawl("http://w/a", r"https?://[^/]*/.*"), crawl("http://v/b"), {"v:80", "v:443"}),
        (crawl("http://w/", r"http://v\.x/a/.*"), crawl("http://v.x/b"), {"v.x:80", "v.x:443"}),
        (crawl("http://w/", r"http://u/.*"), crawl("http://v/"), set()),
        (crawl("http://w/", r"http://u/.*"), crawl("http://v/", ".*"), {"*"}),
        (crawl("file:///srv/a"), crawl("file:///srv/b"), set()),
    ],
)
def test_where_two_crawls_meet(one: Crawl, other: Crawl, shared: set[str]) -> None:
    found = meetings({"one": one, "other": other})
    assert found["one"] == {host: {"other"} for host in shared}
    assert found["other"] == {host: {"one"} for host in shared}


def test_lists_are_written_where_they_change(tmp_path: Path) -> None:
    gaps = Gaps(tmp_path)
    gaps.write({"a": crawl("http://w/"), "b": crawl("http://w/"), "c": crawl("http://v/")})
    lists = {path.name: path.read_text().split() for path in (tmp_path / "gaps").glob("[a-c]")}
    assert lists == {"a": ["w:443", "w:80"], "b": ["w:443", "w:80"], "c": []}
    before = (tmp_path / "gaps" / "c").stat().st_ino
    gaps.write({"b": crawl("http://w/"), "c": crawl("http://v/")})
    assert sorted(path.name for path in (tmp_path / "gaps").iterdir()) == ["b", "c", "hosts"]
    assert (tmp_path / "gaps" / "b").read_text() == ""
    assert (tmp_path / "gaps" / "c").stat().st_ino == before


@pytest.mark.acceptance
def test_two_crawls_keep_one_gap_at_a_host(scripted_server: Servers, tmp_path: Path) -> None:
    """By the times in the site's own log. Both crawls come forward; a third one, of another host,
    does not wait."""
    site, other = scripted_server({"*": endless()}), scripted_server({"*": endless()})
    folder = tmp_path / "home" / "crawls"
    folder.mkdir(parents=True)
    rules = "[settings]\nLARM_DELAY_RESPONSE_FACTOR = 0\nLARM_SITEMAPS = false\n"
    for name, seed in (("a", site.url("/1")), ("b", site.url("/7000")), ("c", other.url("/"))):
        pages = f"seeds = ['{seed}']\n[limits]\ndelay = {GAP}\npages = 15\n"
        (folder / f"{name}.toml").write_text(pages + rules)
    (tmp_path / "home" / "server.toml").write_text("parallel = 3\n")
    with serving(tmp_path) as server:
        server.token = first_token(server)
        for name in "abc":
            server.api(f"/crawls/{name}/start", "POST")
        for name in "abc":
            until(
                lambda name=name: server.api(f"/crawls/{name}")["summary"]["state"] == "ended",
                f"{name} has ended",
            )
        assert "share one delay" in server.api("/crawls/a")["shared"][0]
        assert server.api("/crawls/c")["shared"] == []
        pages = [server.api(f"/crawls/{name}")["summary"]["pages"] for name in "abc"]
    assert pages == [15, 15, 15]
    times = [one.time for one in site.log]
    assert min(later - earlier for earlier, later in pairwise(times)) > 0.8 * GAP
    numbers = [int(one.target[1:] or 0) >= 7000 for one in site.log if one.target[1:].isdigit()]
    turns = sum(before != after for before, after in pairwise(numbers))
    assert turns >= 6  # neither is kept waiting until the other has ended
