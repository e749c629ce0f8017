"""Files among the hits: where they lead, and their host, which is `FILES`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser
from selenium.webdriver.common.keys import Keys

from larmspider.access.lists import AccessList
from larmspider.access.rights import Rights
from larmspider.index.schema import FILES
from larmspider.index.writer import IndexWriter
from larmspider.items import Page
from larmspider.urls.file_urls import OpenableUrls
from larmspider.web.readers import Readers
from tests.support.web.browser import Browser
from tests.support.web.serving import Served, request

READERS = Readers({"staff": (FILES,)}, "X-Groups", (ip_network("127.0.0.1"),))
STAFF = {"X_Groups": "staff"}
PLAN = "file:///srv/share/plans/plan.pdf"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files and a page of the web, with the word "budget"."""
    folder = tmp_path_factory.mktemp("files")
    manifest = {"format": 2, "began": "2026", "seeds": ["http://wiki.example/"], "settings": {}}
    (folder / "crawl.json").write_text(json.dumps(manifest))
    with IndexWriter(folder / "index") as index:
        for url in (PLAN, "file:///srv/other/a.txt"):
            index.access.give(url, Rights(AccessList.simple(["group:staff"])))
        text = "\f".join(("cover", "the budget of the year", "annex with the budget"))
        index.add(Page(PLAN, text=text, title="Plan", mime="application/pdf", body=b"1"))
        index.add(Page("file:///srv/other/a.txt", text="budget", title="Other", mime="text/plain"))
        index.add(Page("http://wiki.example/", text="a budget", title="Wiki", mime="text/html"))
    return folder


@pytest.fixture(scope="module")
def site(directory: Path) -> Iterator[Served]:
    """Without LARM_FILE_URLS."""
    with Served(directory, readers=READERS) as running:
        yield running


@pytest.fixture(scope="module")
def mapped(directory: Path) -> Iterator[Served]:
    opens = OpenableUrls({"file:///srv/share/": "smb://nas/share/"})
    with Served(directory, readers=READERS, opens=opens) as running:
        yield running


def page_of(site: Served, target: str) -> LexborHTMLParser:
    return LexborHTMLParser(site.get(target, **STAFF).text)


def titles(page: LexborHTMLParser) -> dict[str, str | None]:
    """Where each title leads, None for nowhere."""
    found = {}
    for title in page.css(".hit"):
        link = title.css_first("a")
        found[title.text().strip()] = link and link.attributes["href"]
    return found


def test_a_file_that_readers_find_nowhere_is_no_link(site: Served, mapped: Served) -> None:
    """On none of the pages of the search, nor do further pages of a document lead anywhere."""
    nowhere = dict.fromkeys(("Plan", "Other")) | {"Wiki": "http://wiki.example/"}
    assert titles(page_of(site, "/search?q=budget")) == nowhere
    for target in ("q=budget", f"similar={PLAN}"):
        page = page_of(site, f"/search?{target}")
        assert not [link for link in page.css("a") if link.attributes["href"] in ("#", "")]
    copy = page_of(site, f"/search/copy?u={PLAN}")
    assert copy.css_first("p.url").text() == PLAN
    assert copy.css("p.url a") == []
    there = "smb://nas/share/plans/plan.pdf"
    assert titles(page_of(mapped, "/search?q=budget")) == nowhere | {"Plan": f"{there}#page=2"}
    copy = page_of(mapped, f"/search/copy?u={PLAN}")
    assert copy.css_first("p.url a").attributes["href"] == there


@pytest.fixture
def staff(browser: Browser) -> Iterator[Browser]:
    """A browser behind a proxy that names its group."""
    browser.driver.execute_cdp_cmd("Network.enable", {})
    send = "Network.setExtraHTTPHeaders"
    browser.driver.execute_cdp_cmd(send, {"headers": {"X-Groups": "staff"}})
    yield browser
    browser.driver.execute_cdp_cmd(send, {"headers": {}})


def test_keys_go_to_the_copy_of_a_hit_that_is_no_link(site: Served, staff: Browser) -> None:
    """Arrows stop at each hit, and Enter opens what can be opened."""
    staff.open(f"{site.url}/search?q=budget+plan")
    assert staff.text(".hit") == "Plan"
    staff.find("#q").send_keys(Keys.ARROW_DOWN)
    at = (
        "return [...document.querySelectorAll('.hits > li')]"
        ".findIndex(hit => hit.contains(document.activeElement))"
    )
    assert staff.script(at) == 0
    for place in (1, 2):
        staff.driver.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
        assert staff.script(at) == place
    staff.driver.switch_to.active_element.send_keys("kk")
    staff.driver.switch_to.active_element.send_keys(Keys.ENTER)
    staff.until(lambda: staff.all(".cached"), "the copy")
    assert PLAN in staff.text("p.url")


def test_files_have_a_host_by_which_they_are_narrowed(site: Served) -> None:
    """On the page, in JSON and for OpenSearch's clients, beside the hosts of the web."""
    page = page_of(site, "/search?q=budget")
    (item,) = [one for one in page.css(".facet li") if FILES in one.text()]
    assert item.css_first(".num").text() == "2"
    narrowed = page_of(site, item.css_first("a").attributes["href"])
    assert set(titles(narrowed)) == {"Plan", "Other"}
    assert narrowed.css_first(".facet [aria-current]").text() == FILES
    chip = narrowed.css_first(".chip")
    assert chip.text().split()[0] == FILES
    assert len(titles(page_of(site, chip.attributes["href"]))) == 3

    def found(query: str) -> Any:
        return site.get(f"/search?format=json&{query}", **STAFF).json

    everything, files = found("q=budget"), found("q=budget&host=file://")
    assert everything["facets"]["host"] == {FILES: 2, "wiki.example": 1}
    assert files["facets"]["host"] == everything["facets"]["host"]
    assert (files["total"], files["filters"]) == (2, {"host": [FILES]})
    assert {hit["host"] for hit in files["hits"]} == {FILES}
    assert found("q=budget&host=wiki.example")["total"] == 1
    assert found("q=budget+host:file://")["total"] == 2
    assert found("q=budget+-host:FILE:///")["total"] == 1
    body = {
        "query": {"query_string": {"query": "budget"}},
        "aggs": {"hosts": {"terms": {"field": "host"}}},
    }
    sent = json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "X-Groups": "staff"}
    answer = request(f"{site.url}/search/_search", "POST", headers, sent).json
    buckets = answer["aggregations"]["hosts"]["buckets"]
    assert {one["key"]: one["doc_count"] for one in buckets} == {FILES: 2, "wiki.example": 1}
    assert {one["_source"]["host"] for one in answer["hits"]["hits"]} == {FILES, "wiki.example"}


def test_who_may_see_no_file_is_told_of_none(site: Served) -> None:
    for query in ("q=budget", "q=budget&host=file://", "q=budget+host:file://"):
        got = site.get(f"/search?{query}&format=json").json
        assert got["total"] == ("file" not in query)
        assert FILES not in got["facets"]["host"]


def test_programs_are_told_what_readers_can_open(site: Served, mapped: Served) -> None:
    """The target of a hit is what its title on the page leads to; null for nowhere."""
    for served, plan in ((site, None), (mapped, "smb://nas/share/plans/plan.pdf#page=2")):
        wanted = {"Plan": plan, "Other": None, "Wiki": "http://wiki.example/"}
        hits = served.get("/search?q=budget&format=json", **STAFF).json["hits"]
        assert {hit["title"]: hit["target"] for hit in hits} == wanted
        assert PLAN in {hit["url"] for hit in hits}
        found = served.get("/search/_search?q=budget", **STAFF).json["hits"]["hits"]
        assert {hit["_source"]["title"]: hit["_source"]["target"] for hit in found} == wanted
