"""A stock CrawlSpider uses our filters and stores by settings alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.support.crawling import Ran, records, scrapy
from tests.support.servers.scripted import Raw, ScriptedServer

SPIDER = """
from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class Foreign(CrawlSpider):
    name = "foreign"
    rules = [Rule(LinkExtractor(deny_extensions=[]), callback="page", follow=True)]

    def __init__(self, url, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]

    def page(self, response):
        item = {"url": response.url, "body": response.body, "title": "a page", "rank": 1}
        if "nobody" in response.url:
            del item["body"]
        return item
"""
SETTINGS = """
SPIDER_MODULES = ["foreign"]
LARM_DIR = "stored"
DOWNLOAD_MAXSIZE = 1_000_000
SPIDER_MIDDLEWARES = {
    "larmspider.middlewares.length.LengthFilter": 680,
    "larmspider.middlewares.known_paths.KnownPathsFilter": 670,
    "larmspider.middlewares.scope.ScopeFilter": 660,
    "larmspider.middlewares.visited.VisitedFilter": 620,
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
}
DOWNLOADER_MIDDLEWARES = {"larmspider.middlewares.last_check.LastCheckMiddleware": 90}
ITEM_PIPELINES = {"larmspider.pipelines.page_files.PageFilesPipeline": 200}
"""
ROUTES = {
    "/": (
        200,
        {"Content-Type": "text/html"},
        b"<a href=/a>a</a> <a href=/A>A</a> <a href=/index.html>home</a> <a href=/away>away</a>"
        b"<a href=http://127.0.0.2:9/>out</a> <a href='/?C=N;O=D'>sort</a>"
        b"<a href=/nobody>nobody</a> <a href=/" + b"x" * 2100 + b">long</a>",
    ),
    "/a": (200, {"Content-Type": "text/html"}, b"a"),
    "/nobody": (200, {"Content-Type": "text/html"}, b"nobody"),
    "/away": (302, {"Location": "http://127.0.0.2:9/secret"}, b""),
}


def run(server: ScriptedServer, folder: Path) -> Ran:
    (folder / "foreign.py").write_text(SPIDER)
    (folder / "foreign_settings.py").write_text(SETTINGS)
    options = ["-a", f"url={server.url('/')}"]
    return scrapy("crawl", "foreign", *options, cwd=folder, settings_module="foreign_settings")


def test_filters_and_stores_work_by_settings_alone(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Requests are filtered by canonical form, redirects are checked again, items are stored."""
    server = scripted_server(ROUTES)
    ran = run(server, tmp_path)
    assert ran.status == 0, ran.err
    fetched = sorted(request.target for request in server.log)
    assert fetched == ["/", "/a", "/away", "/nobody"]
    stored = records(tmp_path / "stored" / "store.log")
    assert [(line["url"], line["title"]) for line in stored] == [(server.url("/a"), "a page")]
    for counted in (
        "'larm/length/rejected': 1",
        "'larm/known-paths/rejected': 1",
        "'larm/scope/rejected': 1",
        "'larm/visited/rejected': 2",
        "'larm/last_check/rejected': 1",
    ):
        assert counted in ran.err


def test_an_item_without_a_body_is_refused_by_name(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """The log says which store wants which field of which page; it is counted."""
    server = scripted_server(ROUTES)
    ran = run(server, tmp_path)
    refusal = f"PageFilesPipeline refuses {server.url('/nobody')}: the item of type dict has no"
    assert f"{refusal} field 'body'" in ran.err
    assert "'larm/stores/refused/PageFilesPipeline': 1" in ran.err


FRONTIER_SPIDER = """
from scrapy import Request, Spider


class Foreign(Spider):
    name = "foreign"

    def __init__(self, url, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]

    def parse(self, response):
        yield {"url": response.url, "body": response.body, "title": response.meta.get("from", "")}
        for href in response.css("a::attr(href)").getall():
            meta = response.meta | {"from": response.url}
            yield Request(response.urljoin(href), meta=meta, errback=self.lost)

    def lost(self, failure):
        self.logger.info("lost %s", failure.request.url)
"""
FRONTIER_SETTINGS = """
from larmspider.settings import *

SPIDER_MODULES = ["foreign"]
LARM_DIR = "stored"
DOWNLOAD_DELAY = LARM_DELAY_RESPONSE_FACTOR = LARM_RETRY_TIMES = 0
ITEM_PIPELINES = {"larmspider.pipelines.page_files.PageFilesPipeline": 200}
DOWNLOADER_MIDDLEWARES["scrapy.downloadermiddlewares.redirect.RedirectMiddleware"] = 600
"""


def run_over_the_frontier(server: ScriptedServer, folder: Path, *options: str) -> Ran:
    (folder / "foreign.py").write_text(FRONTIER_SPIDER)
    (folder / "foreign_settings.py").write_text(FRONTIER_SETTINGS)
    arguments = ["crawl", "foreign", "-a", f"url={server.url('/')}", *options]
    return scrapy(*arguments, cwd=folder, settings_module="foreign_settings", timeout=60)


def test_an_item_without_links_is_found_by_search(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Through the whole storage chain; one that lacks its text is stored, and refused by name."""
    page = (200, {"Content-Type": "text/html"}, b"a rhubarb cake")
    server = scripted_server({"/": page, "/bare": page})
    (tmp_path / "foreign.py").write_text(
        "from scrapy import Spider\n\nclass Foreign(Spider):\n    name = 'foreign'\n"
        f"    start_urls = {[server.url(), server.url('/bare')]!r}\n"
        "    def parse(self, response):\n"
        "        item = {'url': response.url, 'body': response.body, 'title': 'Cake'}\n"
        "        yield item if 'bare' in response.url else item | {'text': response.text}\n"
    )
    (tmp_path / "foreign_settings.py").write_text(
        "from larmspider.settings import *\nSPIDER_MODULES = ['foreign']\n"
    )
    ran = scrapy("crawl", "foreign", cwd=tmp_path, settings_module="foreign_settings")
    assert ran.status == 0, ran.err
    refusal = f"SearchIndexPipeline refuses {server.url('/bare')}: the item of type dict has no"
    assert f"{refusal} field 'text'" in ran.err
    found = scrapy("search", "rhubarb", cwd=tmp_path, settings_module="foreign_settings")
    assert "Cake" in found.out
    assert len(records(tmp_path / "crawl" / "store.log")) == 2
    year = str(time.gmtime().tm_year)
    assert all(line["time"][:4] == year for line in records(tmp_path / "crawl" / "fetch.log"))


def link(*paths: str) -> tuple[int, dict[str, str], bytes]:
    return (
        200,
        {"Content-Type": "text/html"},
        "".join(f"<a href={p}>x</a>" for p in paths).encode(),
    )


def test_requests_with_the_meta_of_their_parent_are_pages_of_their_own(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """meta=response.meta is common; each page is fetched and stored once, none taken as known."""
    server = scripted_server(
        {"/": link("/a", "/b"), "/a": link("/a/1", "/"), "/b": link("/A"), "/a/1": link()}
    )
    ran = run_over_the_frontier(server, tmp_path)
    assert ran.status == 0, ran.err
    stored = {line["url"]: line["title"] for line in records(tmp_path / "stored" / "store.log")}
    assert stored == {
        server.url("/"): "",
        server.url("/a"): server.url("/"),
        server.url("/b"): server.url("/"),
        server.url("/a/1"): server.url("/a"),
    }
    assert "'larm/frontier/stored': 4" in ran.err
    assert "\nstored    4 pages, " in ran.out
    assert "(HTTP 200 4)" in ran.out
    assert "fetch.log" not in ran.out, "it is not kept"
    assert "'larm/frontier/failed': 0" in ran.err


def test_a_fetch_that_ends_in_a_foreign_errback_has_ended(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """An errback that yields nothing keeps nothing alive, and the crawl ends."""
    server = scripted_server({"/": link("/broken"), "/broken": Raw(b"")})
    ran = run_over_the_frontier(server, tmp_path)
    assert ran.status == 0, ran.err
    assert f"lost {server.url('/broken')}" in ran.err
    assert "'larm/frontier/failed': 1" in ran.err
    assert "'larm/frontier/queued': 0" in ran.err


def test_a_redirect_by_scrapy_out_of_scope_touches_nothing_there(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Not even robots.txt is asked for; the page that redirects is refused, one in scope is not."""
    other = scripted_server({"/x": link()}, host="127.0.0.2")
    routes = {"/": link("/away", "/in"), "/in": (302, {"Location": "/b"}, b""), "/b": link()}
    server = scripted_server(routes | {"/away": (302, {"Location": other.url("/x")}, b"")})
    ran = run_over_the_frontier(server, tmp_path)
    assert ran.status == 0, ran.err
    assert other.log == []
    stored = {line["url"] for line in records(tmp_path / "stored" / "store.log")}
    assert stored == {server.url("/"), server.url("/b")}
    assert "'larm/last_check/rejected': 1" in ran.err
    assert "'larm/frontier/refused': 1" in ran.err


def test_depth_limit_holds_for_plain_requests(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Scrapy's DepthMiddleware is off; a redirect that Scrapy follows is no step."""
    moved = (302, {"Location": "/b"}, b"")
    server = scripted_server(
        {"/": link("/a"), "/a": moved, "/b": link("/c"), "/c": link("/d"), "/d": link()}
    )
    ran = run_over_the_frontier(server, tmp_path, "-s", "DEPTH_LIMIT=2")
    assert [request.target for request in server.log] == ["/robots.txt", "/", "/a", "/b", "/c"]
    assert "'larm/depth/rejected': 1" in ran.err
