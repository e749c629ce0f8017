"""larmspider/reports/link_faults.py: links that are broken although no fetch has failed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from larmspider.reports.link_faults import (
    _HREF,
    _NAME,
    _has,
    _leading_into_rings,
    _names,
    _without_scripts,
)
from tests.support.crawling import crawl, scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.web.serving import Served

HTML = {"Content-Type": "text/html"}
START = """
<a href='/b#here'>1</a><a href='/b#gone'>2</a><a href=#own>3</a><a href=#lost>4</a>
<a href='/b#%C3%BCber'>5</a><a href='/b#top'>6</a><a href='/b#!/route'>7</a>
<a href='/b#:~:text=x'>8</a><a href='http://[b'>9</a><a href='mailto:a@b'>10</a>
<a href='/round'>11</a><a href='/into'>12</a><a href='/fine'>13</a>
<!-- <a href='/b#comment'> --><script>'<a href="/b#script">'</script><p id=own>
"""
PAGES = {
    "/": (200, HTML, START.encode()),
    "/b": (200, HTML, "<h1 id=here>x</h1><a name='\u00fcber'>y</a><!-- id=gone -->".encode()),
    "/round": (302, {"Location": "/and-round"}, b""),
    "/and-round": (302, {"Location": "/round"}, b""),
    "/into": (301, {"Location": "/round"}, b""),
    "/fine": (301, {"Location": "/b"}, b""),
}


def test_all_kinds_in_one_crawl(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    site = scripted_server(PAGES)
    crawl(site.url("/"), tmp_path)
    ran = scrapy("links", "--broken", "--json", cwd=tmp_path)
    found = {(one["result"], one["url"].removeprefix(site.url(""))) for one in ran.json["broken"]}
    assert {one for one in found if one[0] in ("fragment", "no-url", "redirect-loop")} == {
        ("fragment", "/b#gone"),
        ("fragment", "/#lost"),
        ("no-url", "http://[b"),
        ("redirect-loop", "/round"),
        ("redirect-loop", "/and-round"),
        ("redirect-loop", "/into"),
    }
    (ring,) = [one for one in ran.json["broken"] if one["url"] == site.url("/into")]
    assert ring["carriers"][0]["page"] == site.url("/")
    assert ring["message"].count(" -> ") == 3
    with Served(tmp_path / "crawl") as served:
        seen_by_pages(served, site, found)
    refused = scrapy("links", "--fragments", cwd=tmp_path)
    assert (refused.status, "belongs to --broken" in refused.err) == (2, True)


def seen_by_pages(served: Served, site: ScriptedServer, found: set[tuple[str, str]]) -> None:
    """The page has the kinds of the command, but for fragments, and says how to find these."""
    end = time.monotonic() + 60
    while (got := served.get("/links?format=json")).status == 503:
        assert time.monotonic() < end
        time.sleep(0.1)
    wanted = {(kind, url) for kind, url in found if kind != "fragment"}
    links = got.json["links"]
    assert {(one["result"], one["url"].removeprefix(site.url(""))) for one in links} == wanted
    assert "--fragments" in got.json["fragments"]
    lines = served.get("/links?format=csv").text.splitlines()[1:]
    assert {line.partition(",")[0] for line in lines} == {kind for kind, _ in wanted}
    page = served.get("/links").text
    assert f"{len(wanted)} broken targets" in page
    assert page.count(">redirect-loop<") == 3
    assert "links --broken --fragments</code> lists them" in page


@pytest.mark.parametrize(
    ("following", "expected"),
    [
        ({}, []),
        ({"a": "b", "b": "c"}, []),
        ({"a": "a"}, ["a"]),
        ({"a": "b", "b": "a", "c": "a", "d": "e"}, ["a", "b", "c"]),
        ({"x": "a", "a": "b", "b": "a", "d": "x"}, ["a", "b", "d", "x"]),
    ],
)
def test_ways_that_never_end(following: dict[str, str], expected: list[str]) -> None:
    assert sorted(_leading_into_rings(following)) == expected


def test_a_fragment_is_compared_as_written_then_decoded() -> None:
    names = _names(b"<p id='a b'><a name=c%20d><i ID=\"e&amp;f\">")
    for fragment in ("a b", "a%20b", "c%20d", "e&f"):
        assert _has(names, fragment)
    assert not _has(names, "c d")


@pytest.mark.parametrize(
    "markup",
    [b"<a " * 500_000, b'<a href="' * 200_000, b" id=" * 400_000, b"<!--" * 500_000,
     b"<script" * 300_000, b"<a href='" + b"x" * 2_000_000, b" id =" + b" " * 2_000_000],
    ids=["tags", "hrefs", "ids", "comments", "scripts", "value", "spaces"],
)  # fmt: skip
def test_hostile_markup_takes_linear_time(markup: bytes) -> None:
    began = time.process_time()
    kept = _without_scripts(markup)
    for pattern in (_HREF, _NAME):
        for _ in pattern.finditer(kept):
            pass
    assert time.process_time() - began < 10
