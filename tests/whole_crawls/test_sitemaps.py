"""Sitemaps and feeds in a crawl: pages that no link leads to are found, politely."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import crawl, records
from tests.support.servers.scripted import Reply, Request, Route, ScriptedServer

Start = Callable[..., ScriptedServer]


def test_pages_that_only_sitemaps_and_feeds_name_are_stored(
    scripted_server: Start, tmp_path: Path
) -> None:
    """An index, what it names packed, a feed that a page names; through filters and robots.txt."""

    def index(request: Request) -> bytes:
        maps = "".join(f"<sitemap><loc>/maps/{n}</loc></sitemap>" for n in ("1.gz", "bomb", "gone"))
        return f"<sitemapindex>{maps}</sitemapindex>".encode()

    one = (
        b"<urlset><url><loc>/alone?x=1&amp;y=2</loc></url><url><loc>/secret/a</loc></url>"
        b"<url><loc>/linked</loc></url><url><loc>http://elsewhere.example/</loc></url></urlset>"
    )
    bomb = b'<!DOCTYPE u [<!ENTITY a "aa">]><urlset><url><loc>/bomb&a;</loc></url></urlset>'
    atom = b"<feed><entry><link href='/news'/></entry></feed>"
    pages: dict[str, Route] = {
        "/": "<a href=/linked>l</a><link rel=alternate href=/feed type=application/atom+xml>",
        "/robots.txt": "User-agent: *\nDisallow: /secret/\nSitemap: /ignored\nSitemap: {}",
        "/moved.xml": Reply(302, {"Location": "/index.xml"}),
        "/index.xml": index,
        "/maps/1.gz": (200, {}, gzip.compress(one)),
        "/maps/bomb": (200, {}, bomb),
        "/feed": (200, {"Content-Type": "application/atom+xml"}, atom),
        **dict.fromkeys(("/linked", "/alone?x=1&y=2", "/news", "/secret/a"), "page"),
    }
    server = scripted_server(pages)
    robots = str(pages["/robots.txt"]).format(server.url("/moved.xml"))
    server.routes["/robots.txt"] = (200, {"Content-Type": "text/plain"}, robots.encode())
    ran = crawl(server.url("/"), tmp_path, LARM_SITEMAPS="yes")
    assert ran.status == 0, ran.err
    found = {one["url"]: one for one in records(tmp_path / "crawl" / "store.log")}
    assert set(found) == {
        server.url(path) for path in ("/", "/linked", "/alone?x=1&y=2", "/news", "/feed")
    }
    fetched = {one["url"]: one for one in records(tmp_path / "crawl" / "fetch.log")}
    assert fetched[server.url("/alone?x=1&y=2")]["from-page"] == server.url("/maps/1.gz")
    for path in ("/moved.xml", "/index.xml", "/maps/1.gz", "/maps/bomb", "/maps/gone", "/feed"):
        assert len(server.requests(path)) == 1, path
    assert len(server.requests("/sitemap.xml")) == 1
    assert "/maps/bomb: entities, 0 URLs" in ran.err


def test_no_sitemap_is_asked_where_none_is_wanted(scripted_server: Start, tmp_path: Path) -> None:
    server = scripted_server({"/": "page"})
    assert crawl(server.url("/"), tmp_path, LARM_SITEMAPS="no").status == 0
    assert [one.target for one in server.log] == ["/robots.txt", "/"]


@pytest.mark.acceptance
def test_sitemaps_that_lie_cost_a_word_each(scripted_server: Start, tmp_path: Path) -> None:
    """URLs before and behind the broken place count; neither another host nor the network is
    asked, and a time in the future makes no page due."""
    other = scripted_server({"*": "page"}, "127.60.0.9")

    def urlset(*rows: str) -> bytes:
        return f"<urlset>{''.join(f'<url><loc>{row}</url>' for row in rows)}</urlset>".encode()

    lines = "".join(f"<!ENTITY b{n} '{f'&b{n - 1};' * 10}'>" for n in range(1, 10))
    future = "/future-page</loc><lastmod>2199-01-01</lastmod>"
    maps = {
        "/future": urlset(future, "/a</loc><lastmod>2199-01-01</lastmod>"),
        "/foreign": urlset(f"{other.url('/far')}</loc>", "file:///etc/passwd</loc>"),
        "/index": f"<sitemapindex><sitemap><loc>{other.url('/map')}</loc></sitemap>".encode(),
        "/big": gzip.compress(urlset("/first</loc>")[:-9] + b" " * 60_000_000 + b"</urlset>", 1),
        "/broken": urlset("/before</loc>", "/after</loc><lastmod"),
        "/bomb": f"<!DOCTYPE u [<!ENTITY b0 'a'>{lines}]>".encode() + urlset("/&b9;</loc>"),
        "/file": b"<!DOCTYPE u [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + urlset("/&a;</loc>"),
    }
    routes: dict[str, Route] = {path: (200, {}, body) for path, body in maps.items()}
    routes["/"] = "<a href=/a>a</a>"
    routes |= dict.fromkeys(("/a", "/future-page", "/first", "/before", "/after"), "page")
    server = scripted_server(routes)
    named = "".join(f"Sitemap: {server.url(path)}\n" for path in maps)
    robots = f"User-agent: *\nDisallow:\n{named}Sitemap: {other.url('/named')}\n"
    server.routes["/robots.txt"] = (200, {"Content-Type": "text/plain"}, robots.encode())
    ran = crawl(server.url("/"), tmp_path, LARM_SITEMAPS="yes")
    assert ran.status == 0, ran.err
    stored = {one["url"] for one in records(tmp_path / "crawl/store.log")}
    paths = ("/", "/a", "/future-page", "/first", "/before", "/after")
    assert stored >= {server.url(path) for path in paths}
    assert not other.log
    for said in ("/big: too-big, 1 URL", "/broken: broken, 2 URLs", "/bomb: entities, 0 URLs"):
        assert said in ran.err
    assert "/file: entities, 0 URLs" in ran.err
    again = crawl(server.url("/"), tmp_path, LARM_SITEMAPS="yes", refresh="due")
    assert again.status == 0, again.err
    assert "nothing was due" in again.out
