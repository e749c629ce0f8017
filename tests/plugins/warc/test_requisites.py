"""Images, styles and scripts of pages, for WARC files (LARM_REQUISITES)."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from larmspider.frontier.storage.lmdb_reader import FrontierReader
from larmspider.plugins.warc.pipeline import cdxj_of, warc_files
from larmspider.search.searcher import Searcher
from larmspider.settings import ITEM_PIPELINES
from tests.support.crawling import FAST, crawl, records
from tests.support.recovery.killed_crawl import run_through_kills
from tests.support.servers.scripted import Reply, Request, Route, ScriptedServer
from tests.support.warcs import check, pages_in

pytestmark = pytest.mark.acceptance

HTML, PNG, CSS = ({"Content-Type": kind} for kind in ("text/html", "image/png", "text/css"))
WITH_WARC = {
    "ITEM_PIPELINES": json.dumps(
        ITEM_PIPELINES | {"larmspider.plugins.warc.pipeline.WarcPipeline": 250}
    )
}
WANTED = {**WITH_WARC, "LARM_REQUISITES": "yes"}


def _warcs(folder: Path) -> list[Path]:
    paths = list(warc_files(folder / "crawl" / "warc").values())
    assert all(check(path) for path in paths)
    return paths


def _captured(folder: Path) -> list[str]:
    """The URLs of all lines of CDXJ."""
    lines = [
        line for path in _warcs(folder) for line in cdxj_of(path).read_text("utf-8").splitlines()
    ]
    return [json.loads(line.split(" ", 2)[2])["url"] for line in lines]


def _site() -> dict[str, Route]:
    """The page at /docs/ and what it needs; its scope is /docs/."""
    page = b"""<title>Docs</title><link rel=stylesheet href=/css/s.css><img src=/img/logo.png>
        <img src=/img/private.png><img src=/img/moved.png><img src=/img/gone.png>
        <img src=/docs/photo.jpg><a href=/docs/photo.jpg>the photo</a><a href=b>b</a>
        <img src=http://elsewhere.invalid/x.png><script src=/s.js></script>"""
    again = b"<title>B</title><img src=/img/logo.png><a href=/img/logo.png>no page</a>"
    return {
        "/robots.txt": (200, {}, b"User-agent: *\nDisallow: /img/private"),
        "/docs/": (200, HTML, page),
        "/docs/b": (200, HTML, again),
        "/docs/photo.jpg": (200, {"Content-Type": "image/jpeg"}, b"\xff\xd8\xff photo"),
        "/css/s.css": (200, CSS, b"@import 'more.css'; p { background: url(../img/bg.png) }"),
        "/css/more.css": (200, CSS, b"@import 's.css'; @import 'more.css';"),
        "/img/logo.png": (200, PNG, b"\x89PNG logo"),
        "/img/bg.png": (200, PNG, b"\x89PNG bg"),
        "/img/moved.png": (302, {"Location": "/img/logo2.png"}, b""),
        "/img/logo2.png": (200, PNG, b"\x89PNG logo2"),
        "/img/private.png": (200, PNG, b"secret"),
        "/s.js": (200, {"Content-Type": "text/javascript"}, b"document.title = 'x'"),
    }


def test_what_pages_need_is_in_the_warc_and_nowhere_else(tmp_path: Path) -> None:
    """Each once, as robots.txt allows, outside of the scope too."""
    with ScriptedServer(_site()) as server:
        scope = {"restrict": server.url("/docs/.*")}
        ran = crawl(server.url("/docs/"), tmp_path, **WANTED, **scope)
        assert ran.status == 0, ran.err
        asked = Counter(request.path for request in server.log)
        paths = _warcs(tmp_path)
        origin = server.url("")
        needed = ["css/s.css", "css/more.css", "img/logo.png", "img/bg.png", "img/moved.png",
                  "img/logo2.png", "img/gone.png", "s.js"]  # fmt: skip
        pages = ["docs/", "docs/b", "docs/photo.jpg"]
        assert sorted(pages_in(*paths)) == sorted(f"{origin}/{path}" for path in needed + pages)
        assert set(asked.values()) == {1}, asked
        assert "/img/private.png" not in asked
        assert pages_in(*paths)[f"{origin}/img/bg.png"] == b"\x89PNG bg"
        assert sorted(_captured(tmp_path)) == sorted(pages_in(*paths))
        stored = {line["url"] for line in records(tmp_path / "crawl" / "store.log")}
        assert stored == {f"{origin}/{path}" for path in pages}
        logged = {line["url"] for line in records(tmp_path / "crawl" / "fetch.log")}
        assert logged == stored
    assert Searcher.open(tmp_path / "crawl" / "index").count() == 3
    with FrontierReader(tmp_path / "crawl" / "frontier") as frontier:
        counts = frontier.counts()
    assert (counts.discovered, counts.stored, counts.refused, counts.failed) == (3, 3, 0, 0)
    assert "9 requisites of pages (stored 7, failed 1, refused 1)" in ran.err + ran.out


def test_what_was_a_requisite_may_become_a_page(tmp_path: Path) -> None:
    """A link that is met later counts; its record says that the body is there already."""
    routes: dict[str, Route] = {
        "/": (200, HTML, b"<img src=/pic.png><a href=/a>a</a>"),
        "/a": Reply(200, HTML, b"<a href=/pic.png>the picture</a>", delay=1.0),
        "/pic.png": (200, PNG, b"\x89PNG pic"),
    }
    with ScriptedServer(routes) as server:
        assert crawl(server.url("/"), tmp_path, **WANTED).status == 0
        urls = [server.url(path) for path in ("/", "/a", "/pic.png", "/pic.png")]
        assert sorted(_captured(tmp_path)) == urls
    stored = {line["url"] for line in records(tmp_path / "crawl" / "store.log")}
    assert stored == set(urls)


def test_a_refresh_fetches_what_is_new(tmp_path: Path) -> None:
    """Known requisites are not fetched again."""
    with ScriptedServer(_site()) as server:
        scope = {"restrict": server.url("/docs/.*")}
        assert crawl(server.url("/docs/"), tmp_path, **WANTED, **scope).status == 0
        before = len(server.log)
        server.routes["/docs/b"] = (200, HTML, b"<p>other words<img src=/img/new.png>"
                                               b"<img src=/img/logo.png>")  # fmt: skip
        server.routes["/img/new.png"] = (200, PNG, b"\x89PNG new")
        ran = crawl(server.url("/docs/"), tmp_path, refresh="all", **WANTED, **scope)
        assert ran.status == 0, ran.err
        asked = {request.path for request in server.log[before:]}
        assert "/img/new.png" in asked
        assert not asked & {"/img/logo.png", "/css/s.css", "/s.js"}
        assert server.url("/img/new.png") in _captured(tmp_path)


def test_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    def image(request: Request) -> Reply:
        return Reply(200, PNG, f"\x89PNG {request.path}".encode(), delay=0.05)

    routes: dict[str, Route] = {f"/i/{n}.png": image for n in range(60)}
    for page in range(20):
        images = "".join(f"<img src=/i/{(3 * page + n) % 60}.png>" for n in range(5))
        routes[f"/{page}"] = (200, HTML, f"<a href=/{page + 1}>next</a>{images}".encode())
    options = FAST | WANTED | {"LARM_CHECKPOINT_SECS": "0.1", "CONCURRENT_REQUESTS_PER_DOMAIN": "2"}
    with ScriptedServer(routes) as server:
        run_through_kills(server, server.url("/0"), tmp_path, **options)
        wanted = {server.url(path) for path in routes} | {server.url("/20")}
        assert sorted(_captured(tmp_path)) == sorted(wanted)
    with FrontierReader(tmp_path / "crawl" / "frontier") as frontier:
        counts = frontier.counts()
    assert (counts.discovered, counts.stored, counts.failed) == (21, 20, 1)


def test_without_a_store_for_them_they_are_refused(tmp_path: Path) -> None:
    ran = crawl("http://127.0.0.1:9/", tmp_path, LARM_REQUISITES="yes")
    assert ran.status == 2
    assert (
        "LARM_REQUISITES=yes: expected larmspider.plugins.warc.pipeline.WarcPipeline in" in ran.err
    )
    assert not (tmp_path / "crawl").exists()
