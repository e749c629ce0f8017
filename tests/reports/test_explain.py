"""larmspider/reports/explain.py: what the stages say of one URL."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scrapy.settings import Settings

from examples.intranet.serve import DemoServer
from larmspider.crawl.log_index.builder import bring_up_to_date
from larmspider.crawl.reader import CrawlDir, StoredPage
from larmspider.extraction.pages import html
from larmspider.items import Link, Page
from larmspider.reports.explain import LEFT, changed_filters, explain, read_again
from larmspider.workdir.manifest import filters_of
from tests.support.crawling import FAST, crawl, records, scrapy
from tests.support.servers.scripted import Reply, Route, ScriptedServer
from tests.support.stored_crawl import StoredCrawl

DEPTH = "larmspider.middlewares.depth.DepthFilter"


@pytest.mark.parametrize("url", ["http://[::1]/", "http://[::1]:81/", "http://www.h/"])
def test_the_host_rules_that_apply_are_named(tmp_path: Path, url: str) -> None:
    """Also for addresses, whose colons separate no port."""
    (tmp_path / "crawl.json").write_text(json.dumps({"format": 2, "seeds": ["http://h/"]}))
    rules = tmp_path / "hosts.properties"
    rules.write_text("synonym([\\:\\:1])=h\nstartsWith(www.)=\n")
    settings = Settings({"LARM_HOST_RESOLVER_FILE": str(rules)})
    explanation = explain(url, settings, CrawlDir(tmp_path))
    assert len(explanation.host_rules) == 1
    assert (explanation.canonical or "").startswith("http://h")


@pytest.mark.parametrize("is_left", [True, False])
def test_a_link_that_was_left_for_what_is_not_stored_is_told(tmp_path: Path, is_left: bool) -> None:
    """The head of its page said nofollow. A link that a filter rejects has its reason."""
    here, there = "http://h/", f"http://h/{'a' if is_left else 'a?C=N;O=D'}"
    stored = StoredCrawl(tmp_path / "crawl", refresh=False)
    links = [Link(there, normalized=there, exact=there)]
    body = f"<a href='{there}'>a</a>".encode()
    stored.store(here, Page(here, here, mime="text/html", body=body, links=links))
    stored.end()
    settings = Settings()
    settings.setmodule("larmspider.settings")
    explanation = explain(there, settings, CrawlDir(tmp_path / "crawl"))
    assert (LEFT in explanation.notes, explanation.rejected_by is None) == (is_left, is_left)


@pytest.mark.parametrize(
    "changes, note",
    [
        ({}, []),
        (
            {DEPTH: None, "larmspider.middlewares.traps.TrapsFilter": 600},
            [
                "the crawl ran with other filters; this explanation uses the present settings:"
                f" then also {DEPTH}; now also larmspider.middlewares.traps.TrapsFilter"
            ],
        ),
        (
            {DEPTH: None},
            [
                "the crawl ran with other filters; this explanation uses the present settings:"
                f" then also {DEPTH}"
            ],
        ),
    ],
)
def test_filters_that_are_not_the_crawls_are_told(
    tmp_path: Path, changes: dict[str, int | None], note: list[str]
) -> None:
    """Verdicts are of the filters in the settings as they are now."""
    listed = {DEPTH: 630, "larmspider.middlewares.length.LengthFilter": 680}
    filters = filters_of(Settings({"SPIDER_MIDDLEWARES": listed}))
    description = {"format": 2, "seeds": ["http://h/"], "identity": {"filters": filters}}
    (tmp_path / "crawl.json").write_text(json.dumps(description))
    settings = Settings({"SPIDER_MIDDLEWARES": listed | changes})
    assert list(changed_filters(settings, CrawlDir(tmp_path))) == note


def test_a_filter_whose_module_moved_is_the_crawls_own(tmp_path: Path) -> None:
    """Its class keeps its name."""
    settings = Settings({"SPIDER_MIDDLEWARES": {DEPTH: 630}})
    older = [path.replace(DEPTH, "larmspider.older.DepthFilter") for path in filters_of(settings)]
    assert "larmspider.older.DepthFilter" in older
    description = {"format": 2, "identity": {"filters": older}}
    (tmp_path / "crawl.json").write_text(json.dumps(description))
    assert list(changed_filters(settings, CrawlDir(tmp_path))) == []


NESTED = b"<i>" * 20_000 + b"</u>" * 1_000_000  # seconds


@pytest.mark.parametrize(
    ("body", "links", "here"),
    [
        (b"<a href=/x>x</a>", 1, True),
        (b"<a href=/x>x</a>" + b"<p>" * 10_000, 1, False),
        (b"<a href=/x>x</a>" + NESTED, 0, False),
    ],
    ids=["small", "large", "too much"],
)
def test_a_large_page_is_read_in_another_process(
    monkeypatch: pytest.MonkeyPatch, body: bytes, links: int, here: bool
) -> None:
    """Web pages explain URLs in the process of the crawl, which would stand still meanwhile."""
    read: list[str] = []

    def extract(body: bytes, url: str, content_type: str | None) -> Page:
        read.append(url)
        return html.extract(body, url, content_type)

    monkeypatch.setattr(
        "larmspider.extraction.processes.process.extractor_for", lambda mime: extract
    )
    stored = StoredPage("", "http://h/", "http://h/", 0, 200, "text/html", len(body), "", 0, 0)
    page = read_again(body, stored, Settings({"LARM_EXTRACTION_SECS": 0.3}))
    assert (len(page.links), read == ["http://h/"]) == (links, here)


FEWER_STORES = """
from larmspider.settings import *

for name in ("fetch_log.FetchLogPipeline", "link_log.LinkLogPipeline"):
    del ITEM_PIPELINES["larmspider.pipelines." + name]
"""


def test_the_frontier_is_asked_where_fetch_log_is_not_kept(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """State, time and result of pages that were stored, failed or were refused; and of a redirect
    from one spelling of a page to another, where the last one counts."""
    html = {"Content-Type": "text/html"}
    links = "".join(f"<a href={path}>x</a>" for path in ("a", "no", "bad", "cut", "d/index.html"))
    routes: dict[str, Route] = {
        "/robots.txt": (200, {}, b"User-agent: *\nDisallow: /no\n"),
        "/": (200, html, links.encode()),
        "/a": (404, html, b"gone"),
        "/bad": (500, html, b"broken"),
        "/cut": Reply(body=b"x" * 5000),
        "/d/index.html": (301, {"Location": "/d/"}, b""),
        "/d/": (200, html, b"d"),
    }
    server = scripted_server(routes)
    (tmp_path / "fewer.py").write_text(FEWER_STORES)
    settings = FAST | {"LARM_RETRY_TIMES": "0", "DOWNLOAD_MAXSIZE": "4000"}
    options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    arguments = ["crawl", "intranet", "-a", f"start={server.url()}", *options]
    ran = scrapy(*arguments, cwd=tmp_path, settings_module="fewer")
    assert ran.status == 0, ran.err
    assert not (tmp_path / "crawl" / "fetch.log").exists()
    assert re.search(
        r"^failed      3 URLs \(1 not found, http-500 1, too-big 1\)$", ran.out, re.MULTILINE
    )

    def explained(path: str, *options: str) -> str:
        arguments = ["explain", server.url(path), *options]
        ran = scrapy(*arguments, cwd=tmp_path, settings_module="fewer")
        assert ran.status == 0, ran.err
        return ran.out

    found = {path: json.loads(explained(path, "--json")) for path in (*routes, "/no", "/unknown")}
    results = {
        path: (facts["state"], (facts["fetched"] or {}).get("result"))
        for path, facts in found.items()
        if path != "/robots.txt"
    }
    assert results == {
        "/": ("stored", "200"),
        "/a": ("failed", "404"),
        "/no": ("refused", "robots"),
        "/bad": ("failed", "500"),
        "/cut": ("failed", "too-big"),
        "/d/index.html": ("stored", "301"),
        "/d/": ("stored", "200"),
        "/unknown": ("unknown", None),
    }
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT.*Z", found["/a"]["fetched"]["time"])
    assert found["/a"]["first_referrer"] == server.url()
    text = explained("/cut")
    assert re.search(r"^fetched +20\S+Z +too-big$", text, re.MULTILINE)
    assert re.search(r"^visited +pass +known already$", text, re.MULTILINE)
    assert re.search(r"^found on +not known$", text, re.MULTILINE)


def test_the_link_that_was_followed_is_judged(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """A redirect adds no step, and a nofollow link beside a followed one does no harm: no filter
    rejects a page that was fetched."""
    html = {"Content-Type": "text/html"}
    away = (302, {"Location": "http://127.0.0.9:9/"}, b"")
    server = scripted_server(
        {
            "/": "<a href=/a>a</a><a rel=nofollow href=/c>c</a><a href=/out>x</a><a href=/d>d</a>",
            "/a": (302, html | {"Location": "/b"}, b""),
            "/d": "<a href=/deep>deep</a>",
            "/out": away,
            "/b": "b<a rel=nofollow href=/c>c</a> <a href=/c>c</a>",
            "/c": "c",
        }
    )
    settings = FAST | {"DEPTH_LIMIT": "1"}
    options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    ran = scrapy("crawl", "intranet", "-a", f"start={server.url()}", *options, cwd=tmp_path)
    assert ran.status == 0, ran.err
    seen = {}
    for url in (*map(server.url, ("/b", "/c", "/deep")), "http://127.0.0.9:9/"):
        facts = scrapy("explain", url, "--json", cwd=tmp_path).json
        seen[url] = (facts["state"], facts["rejected_by"], facts["first_referrer"])
    assert seen == {
        server.url("/b"): ("stored", None, server.url("/a")),
        server.url("/c"): ("unknown", "nofollow", server.url()),
        server.url("/deep"): ("unknown", "depth", server.url("/d")),
        "http://127.0.0.9:9/": ("unknown", "scope", server.url("/out")),
    }
    text = scrapy("explain", server.url("/deep"), cwd=tmp_path).out
    assert re.search(r"^visited +pass +not known yet$", text, re.MULTILINE)
    ran = scrapy(
        *("crawl", "intranet", "-a", f"start={server.url()}", "-s", "LARM_DIR=all"),
        *options[:-1], "DEPTH_LIMIT=2", cwd=tmp_path,
    )  # fmt: skip
    assert ran.status == 0, ran.err
    facts = scrapy("explain", server.url("/c"), "--json", "--dir", "all", cwd=tmp_path).json
    assert (facts["state"], facts["rejected_by"]) == ("stored", None)
    assert facts["first_referrer"] == server.url()


def test_robots_txt_is_read_for_the_name_that_the_crawl_had(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """ROBOTSTXT_USER_AGENT, which a user does not repeat for ``scrapy explain``."""
    rules = b"User-agent: special\nDisallow: /a\n"
    server = scripted_server({"/robots.txt": (200, {}, rules), "/": "<a href=/a>a</a>", "/a": "a"})
    settings = FAST | {"ROBOTSTXT_USER_AGENT": "special"}
    options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    ran = scrapy("crawl", "intranet", "-a", f"start={server.url()}", *options, cwd=tmp_path)
    assert ran.status == 0, ran.err
    facts = scrapy("explain", server.url("/a"), "--json", cwd=tmp_path).json
    assert (facts["state"], facts["rejected_by"]) == ("refused", "robots")


def test_an_index_of_the_logs_changes_no_explanation(
    demo_server: DemoServer, tmp_path: Path
) -> None:
    """It is only quicker: one in four URLs of a crawl, and some it has not met."""
    assert crawl(demo_server.url, tmp_path).status == 0
    settings = Settings()
    settings.setmodule("larmspider.settings")
    crawled = CrawlDir(tmp_path / "crawl")
    settings.setdict(crawled.settings)
    links = records(tmp_path / "crawl" / "links.log")
    met = sorted({line["to-page"] for line in links})
    urls = [*met[::4], f"{demo_server.url}nowhere", "http://x/"]
    before = [explain(url, settings, crawled) for url in urls]
    bring_up_to_date(crawled)
    with crawled.logs.index() as index:
        assert index is not None
    assert [explain(url, settings, crawled) for url in urls] == before
