"""Requests of a foreign spider: kept whole over a kill -9, or refused with a reason."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.crawling import PROJECT, Ran, records, scrapy
from tests.support.servers.scripted import Raw, Reply, Request, ScriptedServer

Start = Callable[..., ScriptedServer]

SPIDER = """
import json

from scrapy import Request, Spider


class Foreign(Spider):
    name = "foreign"

    def __init__(self, url, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [url]

    def parse(self, response):
        yield Request(
            response.urljoin("/form"),
            callback=self.form,
            errback=self.broken,
            method="POST",
            body=b"\\x00name=\\xff",
            headers={"X-Ours": ["one", "two"]},
            cookies={"session": "abc"},
            cb_kwargs={"row": 7, "names": ["a", "b"]},
            meta={"deep": {"1": [None, True, 2.5]}, "handle_httpstatus_list": [418]},
            priority=5,
        )
        for _ in range(2):
            yield Request(response.urljoin("/again"), self.again, dont_filter=True)
        yield Request(response.urljoin("/lambda"), callback=lambda response: None)
        yield Request(response.urljoin("/object"), self.again, meta={"object": object()})
        yield Request(response.urljoin("/dead"))

    def form(self, response, row, names):
        yield {
            "url": response.url,
            "body": json.dumps([response.status, row, names, response.meta["deep"]]).encode(),
            "links": [],
        }

    def again(self, response):
        yield {"url": response.url, "body": b"again", "links": []}

    def broken(self, failure):
        self.logger.error("errback: %r", failure.value)
"""
SETTINGS = """
from larmspider.settings import *

SPIDER_MODULES = ["foreign"]
DOWNLOAD_DELAY = 0
LARM_SITEMAPS = False
ROBOTSTXT_OBEY = False
COOKIES_ENABLED = True
LARM_CHECKPOINT_SECS = 0.1
LARM_BACKOFF_SECS = 0.1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "foreign.py").write_text(SPIDER)
    (tmp_path / "foreign_settings.py").write_text(SETTINGS)
    return tmp_path


def run(server: ScriptedServer, folder: Path) -> Ran:
    options = ["-a", f"url={server.url('/')}"]
    return scrapy(
        "crawl", "foreign", *options, cwd=folder, settings_module="foreign_settings", timeout=120
    )


def run_until(server: ScriptedServer, folder: Path, path: str) -> None:
    """Kill the crawl without warning, some checkpoints after ``path`` was requested."""
    environment = {
        **os.environ,
        "SCRAPY_SETTINGS_MODULE": "foreign_settings",
        "PYTHONPATH": os.pathsep.join([str(folder), str(PROJECT)]),
    }
    arguments = ["crawl", "foreign", "-a", f"url={server.url('/')}"]
    child = subprocess.Popen(
        [sys.executable, "-m", "scrapy", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + 120
        while not server.requests(path) and time.monotonic() < end:
            time.sleep(0.02)
        state = folder / "crawl" / "frontier" / "data.mdb"
        for _ in range(2):  # one commit may have been under way
            before = state.stat().st_mtime_ns
            while state.stat().st_mtime_ns == before and time.monotonic() < end:
                time.sleep(0.02)
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()


ROUTES = {
    "/": "x",
    "/form": Reply(418, {"Content-Type": "text/plain"}, b"tea"),
    "/again": "x",
    "/dead": Raw(b""),
}


def as_sent(request: Request) -> tuple[str, bytes, str | None, str | None]:
    headers = request.headers
    return request.method, request.body, headers.get("x-ours"), headers.get("cookie")


def check(server: ScriptedServer, folder: Path) -> None:
    """Each of the spider's Requests reached the server and then its own callback, once."""
    form = server.requests("/form")
    assert as_sent(form[-1]) == ("POST", b"\0name=\xff", "two", "session=abc")
    stored = records(folder / "crawl" / "store.log")
    urls = sorted(line["url"].rsplit("/", 1)[1] for line in stored)
    assert urls == ["again", "again", "form"]
    body = (folder / "crawl" / "pagefile_0.pfl").read_bytes()
    assert json.dumps([418, 7, ["a", "b"], {"1": [None, True, 2.5]}]).encode() in body


def test_a_request_reaches_its_callback(scripted_server: Start, folder: Path) -> None:
    """Method, body, headers, cookies, cb_kwargs, meta and dont_filter are kept in the queue."""
    server = scripted_server(ROUTES)
    ran = run(server, folder)
    assert ran.status == 0, ran.err
    check(server, folder)
    asked = [request.target for request in server.log]
    assert asked[1] == "/form", "priority 5 goes first"
    assert len(server.requests("/form")) == 1
    assert len(server.requests("/again")) == 2


def test_what_cannot_be_kept_is_refused_with_a_reason(scripted_server: Start, folder: Path) -> None:
    """A callback that is not a method, and meta that is no plain data: a line each, and counted."""
    server = scripted_server(ROUTES)
    ran = run(server, folder)
    assert server.requests("/lambda") == server.requests("/object") == []
    assert "'larm/scheduler/unserializable': 2" in ran.err
    lines = [line for line in ran.err.splitlines() if "cannot be queued" in line]
    assert len(lines) == 2
    assert "/lambda> cannot be queued" in lines[0]
    assert "is not an instance method" in lines[0]
    assert "/object> cannot be queued: not plain data" in lines[1]
    assert "object" in lines[1]


def test_a_failed_fetch_without_errback_ends_the_url(scripted_server: Start, folder: Path) -> None:
    """The crawl ends, the URL is failed, and a second run fetches nothing."""
    server = scripted_server(ROUTES)
    ran = run(server, folder)
    assert "'larm/frontier/failed': 1" in ran.err
    assert "'larm/frontier/queued': 0" in ran.err
    assert "'finish_reason': 'finished'" in ran.err
    asked = len(server.log)
    assert "nothing left to fetch" in run(server, folder).err
    assert len(server.log) == asked


@pytest.mark.acceptance
def test_requests_survive_a_kill(scripted_server: Start, folder: Path) -> None:
    """Killed without warning while the first of them is under way; the next run sends them all."""
    server = scripted_server(ROUTES | {"/form": Raw(b"", hang=True), "/again": Raw(b"", hang=True)})
    run_until(server, folder, "/form")
    server.routes |= ROUTES
    killed = len(server.log)
    ran = run(server, folder)
    assert ran.status == 0, ran.err
    assert "Continuing the crawl" in ran.err
    assert len(server.requests("/")) == 1, "the page with the links is not fetched again"
    assert {request.path for request in server.log[killed:]} == {"/form", "/again", "/dead"}
    check(server, folder)


@pytest.mark.parametrize(
    ("command", "shows"),
    [
        (["fetch", "--nolog", "{0}"], "<p>hello"),
        (["parse", "--spider=intranet", "-c", "parse", "{0}"], "'status': 200"),
        (["shell", "--nolog", "{0}", "-c", "response.status + 1000"], "1200"),
        (["view", "--help"], "Usage"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_scrapys_own_commands_leave_no_crawl(
    scripted_server: Start, tmp_path: Path, command: list[str], shows: str
) -> None:
    """fetch, parse and shell work in the project folder without a crawl's directory."""
    server = scripted_server({"/": "<p>hello"})
    ran = scrapy(*[part.format(server.url()) for part in command], cwd=tmp_path, timeout=120)
    assert ran.status == 0, ran.err
    assert shows in ran.out, ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.acceptance
def test_a_lease_that_a_component_swallows_is_no_endless_crawl(
    scripted_server: Start, folder: Path
) -> None:
    """Without the component that ends leases, URLs fail, the log says so, and the crawl ends."""
    middleware = "larmspider.middlewares.acknowledge.AcknowledgeMiddleware"
    with (folder / "foreign_settings.py").open("a") as settings:
        settings.write(f"\nSPIDER_MIDDLEWARES[{middleware!r}] = None\n")
    server = scripted_server({"/": (404, {}, b"")})
    ran = run(server, folder)
    assert f"No component handled the response for {server.url('/')}" in ran.err
    assert "'larm/frontier/failed': 1" in ran.err


# A stock CrawlSpider uses our filters and stores by settings alone.


STOCK_SPIDER = """
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
STOCK_SETTINGS = """
SPIDER_MODULES = ["foreign"]
LARM_DIR = "stored"
LARM_CANONICAL_RULES = "always"
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
FEED_EXPORTERS = {"jsonl": "larmspider.pipelines.feeds.JsonLinesFeed"}
"""
STOCK_ROUTES = {
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


def run_stock_spider(server: ScriptedServer, folder: Path, *more: str) -> Ran:
    (folder / "foreign.py").write_text(STOCK_SPIDER)
    (folder / "foreign_settings.py").write_text(STOCK_SETTINGS)
    options = ["-a", f"url={server.url('/')}", *more]
    return scrapy("crawl", "foreign", *options, cwd=folder, settings_module="foreign_settings")


def test_filters_and_stores_work_by_settings_alone(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Requests are filtered by canonical form, redirects are checked again, items are stored."""
    server = scripted_server(STOCK_ROUTES)
    ran = run_stock_spider(server, tmp_path)
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


def test_an_item_without_a_body_passes_the_page_files_and_reaches_the_feed(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """The log says which store wants which field of which page; it is counted."""
    server = scripted_server(STOCK_ROUTES)
    ran = run_stock_spider(server, tmp_path, "-O", "items.jsonl")
    passed = f"PageFilesPipeline does not store {server.url('/nobody')}: the item of type dict has"
    assert f"{passed} no field 'body'" in ran.err
    assert "'larm/stores/passed/PageFilesPipeline': 1" in ran.err
    items = [json.loads(line) for line in (tmp_path / "items.jsonl").read_text().splitlines()]
    assert sorted((item["url"], item.get("body_base64")) for item in items) == [
        (server.url("/a"), "YQ=="),
        (server.url("/nobody"), None),
    ]


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
LARM_CANONICAL_RULES = "always"
DOWNLOAD_DELAY = LARM_DELAY_RESPONSE_FACTOR = LARM_RETRY_TIMES = 0
LARM_SITEMAPS = False
ITEM_PIPELINES = {"larmspider.pipelines.page_files.PageFilesPipeline": 200}
DOWNLOADER_MIDDLEWARES["scrapy.downloadermiddlewares.redirect.RedirectMiddleware"] = 600
"""


def run_over_the_frontier(server: ScriptedServer, folder: Path, *options: str) -> Ran:
    (folder / "foreign.py").write_text(FRONTIER_SPIDER)
    (folder / "foreign_settings.py").write_text(FRONTIER_SETTINGS)
    arguments = ["crawl", "foreign", "-a", f"url={server.url('/')}", *options]
    return scrapy(*arguments, cwd=folder, settings_module="foreign_settings", timeout=120)


def test_an_item_without_links_is_found_by_search(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """Through all stores; an item without text is stored anyway."""
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
    passed = f"SearchIndexPipeline does not store {server.url('/bare')}: the item of type dict has"
    assert f"{passed} no field 'text'" in ran.err
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
    assert "\nstored      4 pages, " in ran.out
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
    """Not even robots.txt is fetched there; the redirecting page is refused, one in scope is
    not."""
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


@pytest.mark.acceptance
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
