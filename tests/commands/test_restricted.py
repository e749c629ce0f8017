"""Texts of links on pages that not everybody may see, whatever makes or reads the index."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from larmspider.crawl.worker_dirs import CrawlOfWorkers, open_crawl
from larmspider.index.access import Access
from larmspider.index.schema import FILES
from larmspider.index.version import restricted_of
from larmspider.items import Page
from larmspider.search.searcher import Searcher
from larmspider.workers.merge import merge
from tests.support.crawling import scrapy
from tests.support.stored_crawl import OPEN, OWN, StoredCrawl, linked, restrict
from tests.support.web.serving import TOKEN, Served

pytestmark = pytest.mark.acceptance
BEARER = {"Authorization": f"Bearer {TOKEN}"}
SITES = """[[site]]
hosts = "http://hr"
headers = { X-Word = { env = "LARM_TEST_WORD_THAT_IS_NOT_SET" } }
"""


def found(site: Served, word: str, **headers: str) -> list[str]:
    """The pages that a word finds for who has these headers."""
    answer = site.get(f"/search?q={word}&format=json", **headers).json
    return sorted(hit["url"] for hit in answer["hits"])


def assert_hidden(path: Path) -> None:
    """Texts of links on pages of hr are for those who see hr, and for its own pages alone."""
    with Served(path) as site:
        assert site.source.is_private
        for word, everywhere in (("canary", [OWN]), ("finch", []), ("robin", [OWN, OPEN])):
            assert found(site, word, **BEARER) == everywhere, word
            assert found(site, word) == [url for url in everywhere if url == OPEN], word
        assert "finch" not in site.get("/search/suggest?q=fin").text


@pytest.mark.parametrize("known_by", ["crawl.json", "the sites file", "both"])
@pytest.mark.parametrize("lost", ["index", "index/anchors", ""])
def test_a_new_index_keeps_link_texts_from_who_may_not_see_their_page(
    tmp_path: Path, known_by: str, lost: str
) -> None:
    """`scrapy reindex` of an index that is gone, in part or whole, or that was made while the host
    was not restricted; whether crawl.json or the sites file knows it. Then crawl.json
    does."""
    path = linked(tmp_path / "crawl").path
    given = []
    if known_by != "the sites file":
        restrict(path, "http://hr")
    if known_by != "crawl.json":
        (tmp_path / "sites.toml").write_text(SITES)
        given = ["-s", "LARM_SITES_FILE=sites.toml"]
    if lost:
        shutil.rmtree(path / lost)
    ran = scrapy("reindex", *given, cwd=tmp_path)
    assert ran.status == 0, ran.err
    assert json.loads((path / "crawl.json").read_text())["credentials"] == ["http://hr"]
    assert_hidden(path)


def test_a_sites_file_that_is_not_there_makes_no_new_index(tmp_path: Path) -> None:
    """One line, and nothing has changed."""
    path = linked(tmp_path / "crawl").path
    before = {file: file.read_bytes() for file in path.rglob("*.json")}
    ran = scrapy("reindex", "-s", "LARM_SITES_FILE=none.toml", cwd=tmp_path)
    assert ran.status == 2
    assert ran.err.strip().splitlines()[-1].startswith("scrapy reindex: none.toml: No such file")
    assert {file: file.read_bytes() for file in path.rglob("*.json")} == before


@pytest.fixture
def of_workers(tmp_path: Path) -> Path:
    """A crawl whose first worker met hr without credentials, and whose second one has some; the
    crawl.json of all knows nothing of it."""
    root = tmp_path / "crawl"
    root.mkdir()
    crawl = linked(root / "w1")
    crawl.make_frontier(["http://hr/a", "http://wiki/b", OWN, OPEN])
    other = StoredCrawl(root / "w2", refresh=True)
    restrict(root / "w2", "http://hr")
    other.store("http://pay/", Page("http://pay/", mime="text/plain", body=b"y", text="y"))
    other.end()
    other.make_frontier(["http://pay/"])
    manifest = {"format": 2, "began": "b", "workers": {"redis": "redis://127.0.0.1:1/0"}}
    (root / "crawl.json").write_text(json.dumps(manifest))
    return root


def test_a_merged_crawl_restricts_what_one_worker_restricts(
    of_workers: Path, tmp_path: Path
) -> None:
    """Its crawl.json says so, and its index has none of the link texts."""
    many = open_crawl(of_workers)
    assert isinstance(many, CrawlOfWorkers)
    merge(many, tmp_path / "whole", page_file_bytes=1_000_000, heap_bytes=64_000_000)
    manifest = json.loads((tmp_path / "whole" / "crawl.json").read_text())
    assert manifest["credentials"] == ["http://hr"]
    assert restricted_of(tmp_path / "whole" / "index") == (FILES, "http://hr")
    assert_hidden(tmp_path / "whole")


def test_one_worker_makes_the_whole_crawl_private(of_workers: Path) -> None:
    """The index of another one, from before that, is searched without link texts by who may not
    see all; so it is where a crawl.json cannot be read."""
    with Served(of_workers) as site:
        assert site.source.is_private
        assert "http://hr" in site.source.restricted
        assert found(site, "finch", **BEARER) == [OPEN]
        assert found(site, "finch") == found(site, "robin") == found(site, "hr") == []
        assert found(site, "wiki") == [OPEN, "http://wiki/b"]
        said = [line.partition(":")[0] for line in site.source.stale_link_texts]
        assert said == ["w1", "w2"]
    (of_workers / "w2" / "crawl.json").write_text("{")
    with Served(of_workers) as site:
        assert site.source.is_private


def test_the_index_of_each_worker_is_made_anew_for_the_whole_crawl(of_workers: Path) -> None:
    """Whichever worker restricted a host."""
    ran = scrapy("reindex", cwd=of_workers.parent)
    assert ran.status == 0, ran.err
    hidden = Searcher.open(of_workers / "w1" / "index").seen_by(Access(("http://hr", FILES)))
    assert [hidden.search(word).total for word in ("canary", "finch", "robin")] == [0, 0, 1]


def test_the_operator_restricts_a_host_by_the_sites_file_of_the_crawl(tmp_path: Path) -> None:
    """While its pages are served: at once, before any crawl or command."""
    path = linked(tmp_path / "crawl").path
    sites = tmp_path / "sites.toml"
    sites.write_text("")
    manifest = json.loads((path / "crawl.json").read_text())
    manifest["settings"] = {"LARM_SITES_FILE": str(sites)}
    (path / "crawl.json").write_text(json.dumps(manifest))
    with Served(path) as site:
        assert not site.source.is_private
        assert found(site, "finch") == [OPEN]
        assert found(site, "canary") == [OWN, OPEN]
        sites.write_text(SITES)
        assert site.source.is_private
        assert found(site, "finch") == found(site, "canary") == []
        assert found(site, "wiki") == [OPEN, "http://wiki/b"]
