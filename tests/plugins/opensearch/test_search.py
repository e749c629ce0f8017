"""The search over OpenSearch finds what the search over our own index finds."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from scrapy.settings import Settings

from larmspider import settings
from larmspider.access.lists import AccessList
from larmspider.access.rights import UNREADABLE, Rights
from larmspider.errors import SearchAwayError, SearchRefusedError
from larmspider.index.access import EVERYTHING, Access
from larmspider.index.schema import FILES
from larmspider.index.writer import IndexWriter
from larmspider.items import Link, Page
from larmspider.plugins.opensearch import engine
from larmspider.plugins.opensearch.engine import searcher_of
from larmspider.search.labels import parse_labels
from larmspider.search.query import Filters
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.workdir.manifest import FORMAT
from tests.plugins.opensearch.test_node import receiver_for
from tests.support.crawling import Ran, scrapy
from tests.support.servers.opensearch.cluster import OpenSearchCluster
from tests.support.servers.opensearch.shared import SharedNode
from tests.support.spooled import entries
from tests.support.web.serving import Served

pytestmark = pytest.mark.acceptance

NOW = 1_800_000_000.0
TEXTS = [
    ("vpn", "VPN for travellers", "Install the client, then connect with --prefix=/usr. Resetting"),
    ("reset", "Reset a password", "Passwords are reset by the help desk. read_csv() fails."),
    ("libs", "Libraries", "A library of os.path.join and std::vector; the librarian helps."),
    ("cpp", "C++ and Go", "C++ compilers warn with -Wall. Linking libraries takes long."),
    ("haus", "Druckertreiber", "Der Druckertreiber wird im Haus installiert. Häuser, Verträge."),
    ("cafe", "Café menu", "Éclairs, naïve prices: 4 Euro. Wi-Fi password on the receipt."),
    ("empty", "", "Nothing has a title here, but links name it."),
    ("moved", "Old handbook", "The handbook of holidays: apply for leave in writing."),
    ("handbook/leave", "Leave", "Apply for annual leave in the handbook portal."),
    ("search", "Searching", "Searches find pages, a search finds a page; searched words."),
]
QUERIES = [
    "password", "passwords reset", "reset a password", '"help desk"', "library", "libraries -help",
    "title:library", "url:handbook", "host:files.example", "C++", "--prefix", "read_csv",
    "os.path.join", "Häuser", "eclairs", "serch~", "tls OR vpn", "type:html leave",
    "author:anna search", "before:2030 page", "portal manual", "unknownword", "lang:de haus",
]  # fmt: skip
HR, IT = AccessList.simple(["group:hr"]), AccessList.simple(["group:it"])
RESTRICTED = ("pay.example", FILES)


def pages() -> list[Page]:
    found = []
    for number in range(30):
        name, title, text = TEXTS[number % len(TEXTS)]
        host = ("wiki.example", "files.example", "pay.example")[number // len(TEXTS)]
        url = f"http://{host}/{name}"
        text = f"{text} {host} number{number} " + " ".join(f"w{number}x{n}" for n in range(60))
        links = [Link("http://wiki.example/empty", "http://wiki.example/empty", anchor="manual")]
        found.append(
            Page(
                url, normalized=url, exact=url, title=title, text=text, mime="text/html",
                language="de" if name == "haus" else "en", author="Anna" if number % 2 else "",
                fetched=NOW - number * 86_400 * 5, body=url.encode(), digest=f"{number:08x}",
                links=links if host != "pay.example" else [], fields={"room": [str(number % 3)]},
            )
        )  # fmt: skip
    return found


RIGHTS: dict[str, Rights | None] = {
    "http://wiki.example/reset": Rights(HR),
    "http://wiki.example/vpn": Rights(IT),
    "http://files.example/reset": UNREADABLE,
}


def settings_for(url: str) -> Settings:
    return Settings({"LARM_OPENSEARCH_URL": url, "LARM_INDEX_STEMMER": "english"})


class Both:
    """The same pages in our own index and in OpenSearch."""

    def __init__(self, crawl: Path, node: SharedNode) -> None:
        self.crawl, self.node, self.name = crawl, node, f"test-{uuid4().hex}"
        self.url = node.url(self.name)
        writer = IndexWriter(crawl / "index")
        receiver = receiver_for(self.url, crawl)
        receiver.connect()
        for page in pages():
            writer.access.give(page.url, RIGHTS.get(page.url))
            writer.add(page, page.digest)
            if page.links:
                writer.add_anchors(page.url, {(link.url, link.anchor) for link in page.links})
        writer.refresh_all_anchors()
        writer.commit()
        writer.close()
        sent = receiver.send(entries(crawl, *pages(), now=NOW))
        assert (dict(sent.rejected), list(sent.again)) == ({}, [])
        receiver.catch_up()
        receiver.close()
        node.ask("POST", f"/{self.name}/_refresh")
        own = ("room",)
        self.ours = Searcher.open(crawl / "index", own, clock=lambda: NOW)
        theirs = searcher_of([crawl], settings_for(self.url), own)
        self.theirs = Searcher(theirs._crawls, lambda: NOW)


@pytest.fixture(scope="module")
def both(opensearch: SharedNode, tmp_path_factory: pytest.TempPathFactory) -> Both:
    return Both(tmp_path_factory.mktemp("crawl"), opensearch)


def outcome(searcher: Searcher, request: SearchRequest) -> dict[str, Any]:
    found = searcher.search(request)
    return {
        "hits": sorted(hit.url for hit in found.hits),
        "total": found.total,
        "total_all": found.total_all,
        "facets": found.facets,
        "instead": found.instead,
        "copies": sorted(hit.copies for hit in found.hits),
        "not typed": found.not_typed,
    }


@pytest.mark.parametrize("query", QUERIES)
def test_both_engines_find_the_same(both: Both, query: str) -> None:
    request = SearchRequest(query, 50, facets=True, suggest=True)
    assert outcome(both.theirs, request) == outcome(both.ours, request)


LABELS, _ = parse_labels(
    ["Book => http://wiki.example/handbook/", "Files => http://files.example/*"]
)
FILTERS = [
    Filters(hosts=("wiki.example", "pay.example")),
    Filters(kinds=("html",), languages=("de",)),
    Filters(since=NOW - 40 * 86_400, until=NOW - 10 * 86_400),
    Filters(fields=(("room", "1"),)),
    Filters(labels=LABELS.all[:1]),
    Filters(labels=LABELS.all),
    Filters(unreachable="no"),
]


@pytest.mark.parametrize("filters", FILTERS, ids=repr)
def test_filters_and_labels_narrow_both(both: Both, filters: Filters) -> None:
    request = SearchRequest("help handbook menu haus", 50, facets=True, filters=filters)
    request = replace(request, labels=LABELS.all)
    found = outcome(both.theirs, request)
    assert found == outcome(both.ours, request)
    assert found["total"]


@pytest.mark.parametrize("word", ["library", "password", "resets", "searching", "linking"])
def test_both_know_the_forms_of_an_english_word(both: Both, word: str) -> None:
    ours, theirs = (one.shards[0] for one in (both.ours, both.theirs))
    with ours.reading():
        found = ours.seen_stems.forms(word)
    assert theirs.seen_stems.forms(word).keys() == found.keys() != set()


def test_pages_sections_copies_and_dates(both: Both) -> None:
    ours, theirs = both.ours, both.theirs
    key = "http://wiki.example/haus"
    page, other = theirs.get(key), ours.get(key)
    assert page is not None
    assert other is not None
    assert replace(page, likeness=None) == replace(other, likeness=None)
    assert theirs.count() == ours.count() == 30
    assert theirs.languages(10) == ours.languages(10)
    newest = SearchRequest("help", 50, newest=True)
    assert [hit.url for hit in theirs.search(newest).hits] == [
        hit.url for hit in ours.search(newest).hits
    ]
    assert theirs.copies(page) == ours.copies(page)
    assert {hit.url for hit in theirs.similar(page).hits} == {
        hit.url for hit in ours.similar(page).hits
    }
    assert theirs.totals("password") == ours.totals("password")
    suggestion = theirs.suggestion("passwrd")
    assert suggestion is not None
    assert suggestion == ours.suggestion("passwrd")
    (one,) = theirs.examined(SearchRequest("password"), ["http://wiki.example/reset"]).values()
    assert one.score > 0
    hits = theirs.search("password").hits
    assert [hit.snippet for hit in hits if "*" in hit.snippet.marked("*", "*")] == [
        hit.snippet for hit in hits
    ]
    second = theirs.search(SearchRequest("help", 3, offset=3, copies=True)).hits
    first = theirs.search(SearchRequest("help", 3, copies=True)).hits
    assert not {hit.url for hit in first} & {hit.url for hit in second}


PEOPLE = {
    "anna": Access(RESTRICTED, ("pay.example",), frozenset({"everyone", "user:anna", "group:hr"})),
    "ben": Access(RESTRICTED, (), frozenset({"everyone", "user:ben", "group:it"})),
    "nobody": Access(RESTRICTED, (), frozenset({"everyone"})),
}


@pytest.mark.parametrize("name", PEOPLE)
def test_each_person_finds_the_same(both: Both, name: str) -> None:
    access = PEOPLE[name]
    ours, theirs = both.ours.seen_by(access), both.theirs.seen_by(access)
    for query in QUERIES:
        request = SearchRequest(query, 50, facets=True)
        found = outcome(theirs, request)
        assert found == outcome(ours, request), query
        seen = set(found["hits"])
        assert ("http://pay.example/vpn" in seen) <= (name == "anna")
        assert ("http://wiki.example/reset" in seen) <= (name == "anna")
        assert ("http://wiki.example/vpn" in seen) <= (name == "ben")
        assert "http://files.example/reset" not in seen
    for page in pages():
        assert (theirs.get(page.url) is None) == (ours.get(page.url) is None)
    assert theirs.count() == ours.count()
    assert theirs.frequencies(["number1", "number20"]) == ours.frequencies(["number1", "number20"])
    assert all(hit.score is None for hit in theirs.search("password").hits)


def test_a_crawl_without_access_lists_shows_nothing(both: Both, tmp_path: Path) -> None:
    found = searcher_of([tmp_path], settings_for(both.url))
    assert found.seen_by(PEOPLE["nobody"]).search("password").total == 0
    assert found.seen_by(EVERYTHING).search("password").total > 0


def test_the_page_and_the_command_search_it(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = {"format": FORMAT, "began": "b", "stores": {}, "seeds": ["http://wiki.example/"]}
    (both.crawl / "crawl.json").write_text(json.dumps(manifest))
    monkeypatch.setattr(settings, "LARM_SEARCH", "opensearch")
    monkeypatch.setattr(settings, "LARM_OPENSEARCH_URL", both.url)
    everyone = Access((FILES,), (), frozenset({"everyone"}))
    seen = both.ours.seen_by(everyone).search("password").total
    wanted = both.ours.search("password").total
    assert 0 < seen < wanted
    with Served(both.crawl) as site:
        page = site.get("/search?q=password")
        assert page.status == 200
        assert f"{seen} pages found" in page.text
        found = site.get("/search?q=password&format=json").json
        assert found["total"] == seen
        for path in (
            "/search",
            "/search/suggest?q=pa",
            "/search?q=passwrd",
            "/search?q=%22a%20b%22",
        ):
            assert site.get(path).status == 200
        similar = "/search?similar=http://wiki.example/haus"
        assert site.get(similar).status == 200
        assert "Druckertreiber" in site.get("/search/copy?u=http://wiki.example/haus").text
        assert site.get(f"{similar}&format=json").json["total"] >= 1
    away = "http://larm:s3cret-word@127.0.0.1:1/intranet"
    monkeypatch.setattr(settings, "LARM_OPENSEARCH_URL", away)
    with Served(both.crawl) as site:
        for path in ("/search?q=password", "/search?q=password&format=json", "/search/copy?u=x"):
            answer = site.get(path)
            assert answer.status == 503
            assert "OpenSearch at 127.0.0.1:1: " in answer.text
            assert "s3cret" not in answer.text
        start = site.get("/search")
        assert start.status == 200
        assert "The search cannot be used right now" in start.text
        assert "no pages yet" not in start.text
        assert site.get("/search/suggest?q=pa").json == ["pa", []]
        assert site.get("/url?u=http://wiki.example/haus").status == 200

    def searched(url: str, query: str = "password") -> Ran:
        own = [
            "-s",
            "LARM_SEARCH=opensearch",
            "-s",
            f"LARM_OPENSEARCH_URL={url}",
            "--dir",
            str(both.crawl),
        ]
        return scrapy("search", *own, query, "--json", cwd=both.crawl)

    ran = searched(both.url)
    assert (ran.status, ran.json["total"]) == (0, wanted)
    ran = searched(away)
    assert ran.status == 75
    assert ran.err.startswith("scrapy search: OpenSearch at 127.0.0.1:1: ")
    assert len(ran.err.splitlines()) == 1
    assert searched(both.node.url("test-none")).status == 2
    assert searched("ftp://x").status == 2


def test_no_index_of_this_name(opensearch: SharedNode, tmp_path: Path) -> None:
    found = searcher_of([tmp_path], settings_for(opensearch.url("test-none")))
    with pytest.raises(SearchRefusedError, match="there is no index test-none"):
        found.search("vpn")


def test_a_node_that_is_slow_stopped_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenSearchCluster(1) as cluster:
        receiver = receiver_for(cluster.url("intranet"), tmp_path)
        receiver.connect()
        receiver.send(entries(tmp_path, *pages()[:3], now=NOW))
        receiver.close()
        cluster.ask("POST", "/intranet/_refresh")
        monkeypatch.setattr(engine, "TIMEOUT_SECS", 1)
        found = searcher_of([tmp_path], settings_for(cluster.url("intranet")))
        assert found.search("password").total == 1
        cluster.ask("PUT", "/intranet/_settings", {"index.blocks.read_only_allow_delete": True})
        assert found.search("password").total == 1
        node = cluster.nodes[0]
        os.kill(node.pid, signal.SIGSTOP)
        started = time.monotonic()
        with pytest.raises(SearchAwayError, match=r"timed out|not there after 1 s"):
            found.search("password")
        assert time.monotonic() - started < 5
        os.kill(node.pid, signal.SIGCONT)
        node.kill()
        with pytest.raises(SearchAwayError, match="refused"):
            found.search("password")
        node.start()
        assert _soon(lambda: found.search("password").total) == 1
        for shard in found.shards:
            assert isinstance(shard, engine.OpenSearchEngine)
            shard.close()


def _soon(ask: Callable[[], int]) -> int:
    """Its answer, once the shards are there."""
    last = time.monotonic() + 60
    while True:
        try:
            return ask()
        except SearchAwayError:
            if time.monotonic() > last:
                raise
            time.sleep(0.2)
