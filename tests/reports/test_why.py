"""Why a page is where it is among the hits of a query, or is none of them."""

from __future__ import annotations

import pytest
from scrapy.settings import Settings

from larmspider.crawl.reader import CrawlDir
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import QueuedUrl, host_of, url_key
from larmspider.items import Page, Part
from larmspider.reports.why import Why, why
from larmspider.search.query import NO_FILTERS, Filters
from larmspider.search.request import SearchRequest
from tests.support.stored_crawl import StoredCrawl

LONG = " ".join(f"word{n}" for n in range(60))
PAGES: dict[str, dict[str, object]] = {
    "best": {"text": "the vpn login page", "title": "VPN login"},
    "mine": {"text": f"{LONG} vpn"},
    "twin": {"text": f"canteen {LONG}", "body": b"same"},
    "twin/long": {"text": f"canteen {LONG}", "body": b"same"},
    "hidden": {"text": "vpn", "noindex": True, "body": b"<meta name=robots content=noindex>vpn"},
    "a.zip": {"text": "b c.txt", "parts": [Part("b c.txt", text="zebra")]},
    "gone": {"text": "vpn", "status": 404},
}


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> CrawlDir:
    path = tmp_path_factory.mktemp("why")
    stored = StoredCrawl(path, refresh=False)
    for name, fields in PAGES.items():
        url = f"http://h/{name}"
        values = {"body": name.encode(), "status": 200, "mime": "text/html", "digest": ""} | fields
        stored.store(url, Page(url, normalized=url, exact=url, **values))  # type: ignore[arg-type]
    stored.checkpoint()
    stored.close()
    backend = LmdbBackend(path / "frontier")
    backend.recover()
    url = "http://h/queued"
    backend.add([QueuedUrl(url, url, url_key(url), host_of(url))])
    backend.checkpoint(stored.positions)
    backend.close()
    return CrawlDir(path)


def asked(
    crawl: CrawlDir, query: str, name: str, filters: Filters = NO_FILTERS, **more: bool
) -> Why:
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    settings.set("LARM_DIR", str(crawl.path))
    return why(
        SearchRequest(query, filters=filters, **more),
        f"http://H/{name}",
        crawl.searcher(),
        crawl,
        settings,
    )


def test_a_hit_and_what_the_hit_above_has(crawl: CrawlDir) -> None:
    """Its place, and the parts in which the page above scores more."""
    found = asked(crawl, "vpn login", "mine")
    assert found.verdict == "hit 2 of 2"
    assert found.reasons[0] == "it lacks: login"
    assert any('more for: "login" in the' in reason for reason in found.reasons)
    assert any("more for: all words that matter" in reason for reason in found.reasons)
    assert found.above is not None
    assert (found.above.url, found.above.position, found.first) == ("http://h/best", 1, None)
    first = asked(crawl, "vpn login", "best")
    assert (first.verdict, first.above, first.reasons) == ("hit 1 of 2", None, [])


def test_a_part_of_a_document_is_a_page_of_its_own(crawl: CrawlDir) -> None:
    assert asked(crawl, "zebra", "a.zip#!/b%20c.txt").verdict == "hit 1 of 1"
    assert asked(crawl, "zebra", "a.zip").verdict == "in the index, but no hit"


def test_a_copy_names_the_hit_that_stands_for_it(crawl: CrawlDir) -> None:
    found = asked(crawl, "canteen", "twin/long")
    assert found.verdict == "a copy of hit 1, which stands for it"
    assert found.above is not None
    assert found.above.url == "http://h/twin"


@pytest.mark.parametrize(("query", "name", "reason"), [
    ('"vpn page"', "best", 'it has no "vpn page"'),
    ("vpn -login", "best", "it has login, which is excluded"),
    ("canteen", "best", "it lacks: canteen"),
])  # fmt: skip
def test_no_hit_and_what_it_lacks(crawl: CrawlDir, query: str, name: str, reason: str) -> None:
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    found = why(
        SearchRequest(query, verbatim=True), f"http://h/{name}", crawl.searcher(), crawl, settings
    )
    assert found.verdict == "in the index, but no hit"
    assert reason in found.reasons


def test_a_filter_that_leaves_it_out_is_named(crawl: CrawlDir) -> None:
    found = asked(crawl, "vpn", "best", Filters.of(kinds=["pdf"], languages=["de"]))
    assert "the filter type leaves it out" in found.reasons
    assert "the filter language leaves it out" in found.reasons


@pytest.mark.parametrize(("name", "reason"), [
    ("hidden", "it says noindex"),
    ("gone", "only pages with status 200 are found; it has 404"),
    ("never", "it is not crawled: no page of the crawl links to it, and it is not a seed"),
])  # fmt: skip
def test_not_in_the_index_and_why(crawl: CrawlDir, name: str, reason: str) -> None:
    found = asked(crawl, "vpn", name)
    assert (found.verdict, found.page) == ("not in the index", None)
    assert reason in found.reasons


def test_out_of_scope_or_queued(crawl: CrawlDir) -> None:
    """The filter that rejects it; the state in the frontier, and what it waits for."""
    settings = Settings()
    settings.setmodule("larmspider.settings", priority="default")
    found = why(SearchRequest("vpn"), "http://elsewhere/", crawl.searcher(), crawl, settings)
    assert found.reasons[0].startswith("scope rejects it: ")
    assert found.state == "unknown"
    queued = asked(crawl, "vpn", "queued")
    assert (queued.verdict, queued.state) == ("not in the index", "queued")
    assert any("queued" in reason for reason in queued.reasons)
