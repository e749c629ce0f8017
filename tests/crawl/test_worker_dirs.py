"""larmspider/crawl/worker_dirs.py and the commands over the directories of several workers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lmdb
import pytest
from scrapy.settings import Settings

from larmspider.crawl import api
from larmspider.crawl.state import State
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.search.request import SearchRequest
from larmspider.status.crawl_view import Source
from larmspider.workdir.directory import locked
from tests.support.crawling import crawl, records, scrapy
from tests.support.servers.scripted import Route, ScriptedServer
from tests.support.web.serving import Served
from tests.support.workers.crew import describe, shared_crawl, take_back_pages

HTML = {"Content-Type": "text/html"}
A, B = "127.33.0.1", "127.33.0.2"


def site(name: str, pages: int) -> dict[str, Route]:
    """A start page with links, and pages which all have the word siren."""
    links = "".join(f"<a href=/{n}>{name} {n}</a>" for n in range(pages))
    routes: dict[str, Route] = {"/": (200, HTML, f"<title>{name}</title>{links}".encode())}
    for n in range(pages):
        text = f"<title>{name} page {n}</title>siren {'siren ' * n} of {name}"
        routes[f"/{n}"] = (200, HTML, text.encode())
    return routes


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[ScriptedServer, ScriptedServer]]:
    with ExitStack() as stack:
        first = stack.enter_context(ScriptedServer(site("atlas", 7), A))
        second = stack.enter_context(ScriptedServer(site("boreas", 5), B))
        yield first, second


@pytest.fixture(scope="module")
def folder(
    servers: tuple[ScriptedServer, ScriptedServer], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A crawl of two workers, each of which has a host of its own."""
    folder = tmp_path_factory.mktemp("shards")
    shared_crawl(folder, {"w1": servers[0].url("/"), "w2": servers[1].url("/")})
    return folder


def test_search_finds_the_pages_of_all_workers(folder: Path) -> None:
    """Each once, with the right total."""
    found = scrapy("search", "siren", "--json", "-n", "50", cwd=folder).json
    assert found["total"] == 12
    assert len({hit["url"] for hit in found["hits"]}) == 12
    scores = [hit["score"] for hit in found["hits"]]
    assert scores == sorted(scores, reverse=True)


def test_pages_of_results_join_without_a_gap(folder: Path) -> None:
    """Three at a time gives the same list as all at once."""
    searcher = open_crawl(folder / "crawl").searcher()
    every = [hit.url for hit in searcher.search(SearchRequest("siren", 50)).hits]
    some = [
        hit.url
        for at in range(0, 12, 3)
        for hit in searcher.search(SearchRequest("siren", 3, offset=at)).hits
    ]
    assert some == every
    assert searcher.search(SearchRequest("siren", 3, offset=12)).hits == []


def test_page_explain_and_hosts_know_both_workers(
    servers: tuple[ScriptedServer, ScriptedServer], folder: Path
) -> None:
    """From any worker."""
    for server, name, worker in zip(servers, ("atlas", "boreas"), ("w1", "w2"), strict=True):
        page = scrapy("page", server.url("/2"), cwd=folder)
        assert f"{name} page 2" in page.out
        record = scrapy("page", server.url("/2"), "--json", cwd=folder).json
        assert record["shard"] == str(folder / "crawl" / worker)
        explained = scrapy("explain", server.url("/2"), "--json", cwd=folder).json
        assert (explained["state"], explained["first_referrer"]) == ("stored", server.url("/"))
    rows = scrapy("hosts", "--json", cwd=folder).json["hosts"]
    assert sorted(row["stored"] for row in rows) == [6, 8]


def test_shards_elsewhere_are_listed(
    servers: tuple[ScriptedServer, ScriptedServer], folder: Path, tmp_path: Path
) -> None:
    """One directory, or the LARM_DIR of another machine; by --shard or LARM_SHARDS."""
    shutil.copytree(folder / "crawl" / "w1", tmp_path / "crawl" / "w1")
    shutil.copytree(folder / "crawl" / "w2", tmp_path / "far" / "w2")
    describe(tmp_path / "crawl", ["w1"])
    describe(tmp_path / "far", ["w2"])
    assert scrapy("search", "siren", "--json", cwd=tmp_path).json["total"] == 7
    for arguments in (["--shard", "far"], ["--shard", "far/w2"], ["-s", "LARM_SHARDS=far/w2"]):
        assert scrapy("search", "siren", "--json", *arguments, cwd=tmp_path).json["total"] == 12


def test_shards_alone_are_read(folder: Path, tmp_path: Path) -> None:
    """Where no crawl is in the folder; not where LARM_DIR is named, which must be right then."""
    root = folder / "crawl"
    for shards, pages in (([root], 14), ([root / "w1", root / "w2"], 14), ([root / "w2"], 6)):
        listed = [word for shard in shards for word in ("--shard", str(shard))]
        assert sum(row["stored"] for row in _rows("hosts", listed, tmp_path)["hosts"]) == pages
        assert _rows("search", ["siren", *listed], tmp_path)["total"] > 0
    ran = scrapy("search", "siren", "--shard", str(root), "--dir", "nowhere", cwd=tmp_path)
    assert ran.status == 2
    assert "nowhere" in ran.err


def _rows(command: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = scrapy(command, "--json", *arguments, cwd=folder).json
    return found


@pytest.mark.parametrize(
    ("shard", "why"), [("nowhere", "is not a directory"), ("empty", "has no crawl.json")]
)
def test_a_shard_that_is_none_is_named(folder: Path, shard: str, why: str) -> None:
    """And not taken for LARM_DIR, which is right; the message names the accepted values."""
    (folder / "empty").mkdir(exist_ok=True)
    ran = scrapy("search", "siren", "--shard", shard, cwd=folder)
    assert (ran.status, len(ran.err.splitlines())) == (2, 1)
    refusal = f"the shard {folder / shard} (--shard, LARM_SHARDS) {why}: expected a worker's dir"
    assert refusal in ran.err
    assert "LARM_DIR=" not in ran.err


def test_a_page_stored_by_two_workers_is_found_once(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """As the later one stored it, in every command; words that it has lost find it no more."""
    routes = site("atlas", 3)
    server = scripted_server(routes, A)
    crawl(server.url("/"), tmp_path, LARM_DIR="crawl/w2")
    server.routes["/1"] = (200, HTML, b"<title>renewed</title>klaxon")
    crawl(server.url("/"), tmp_path, LARM_DIR="crawl/w1")
    describe(tmp_path / "crawl", ["w1", "w2"])
    crawled = open_crawl(tmp_path / "crawl")
    found = crawled.searcher().search(SearchRequest("siren klaxon", 10, facets=True))
    assert found.total == len(found.hits) == 3
    assert found.facets is not None
    assert found.facets.hosts == {A: 3}
    assert found.facets.kinds == {"html": 3}
    assert found.facets.dates == dict.fromkeys(("day", "week", "month", "year"), 3)
    assert {hit.title for hit in found.hits} == {"atlas page 0", "renewed", "atlas page 2"}
    page = crawled.stored(server.url("/1"))
    assert page is not None
    assert page.title == "renewed"
    assert b"klaxon" in crawled.body(page)
    assert sorted(page.title for page in crawled.pages()) == [
        "atlas", "atlas page 0", "atlas page 2", "renewed",
    ]  # fmt: skip
    document = crawled.searcher().get(server.url("/1"))
    assert document is not None
    assert document.title == "renewed"
    assert crawled.searcher().search("siren").total == 2
    with api.open_crawl(tmp_path / "crawl") as for_programs:
        bodies = {one.url: one.body for one in for_programs.pages()}
        assert bodies[server.url("/1")] == b"<title>renewed</title>klaxon"
        links = [link.to_page for link in for_programs.links()]
        assert links == [server.url(f"/{n}") for n in range(3)]


def test_what_was_not_committed_does_not_count(folder: Path, tmp_path: Path) -> None:
    """A dead worker's tail: lines of its logs behind the last checkpoint, pages in its index."""
    shutil.copytree(folder / "crawl", tmp_path / "crawl")
    before = {page.normalized for page in open_crawl(tmp_path / "crawl").pages()}
    lost = records(tmp_path / "crawl" / "w1" / "store.log")[-2:]
    take_back_pages(tmp_path / "crawl" / "w1", 2)
    crawled = open_crawl(tmp_path / "crawl")
    for line in lost:
        assert crawled.stored(line["url-normalized"]) is None
        assert crawled.searcher().get(line["url-normalized"]) is None
    kept = {page.normalized for page in crawled.pages()}
    assert before - kept == {line["url-normalized"] for line in lost}
    found = crawled.searcher().search(SearchRequest("siren", 50))
    assert found.total == len(found.hits) == 10


def test_pages_that_an_index_kept_and_its_worker_lost_do_not_count(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """A worker was killed, another one fetched its pages again, and it came back: its logs were cut
    to the last checkpoint, its index has more."""
    server = scripted_server(site("atlas", 3), A)
    for name in ("w1", "w2"):
        assert crawl(server.url("/"), tmp_path, LARM_DIR=f"crawl/{name}").status == 0
    describe(tmp_path / "crawl", ["w1", "w2"])
    take_back_pages(tmp_path / "crawl" / "w1", 4)
    (tmp_path / "crawl" / "w1" / "store.log").write_bytes(b"")
    described = json.loads((tmp_path / "crawl" / "w1" / "crawl.json").read_text())
    (tmp_path / "crawl" / "w1" / "crawl.json").write_text(
        json.dumps(described | {"cut_back": True})
    )
    found = open_crawl(tmp_path / "crawl").searcher().search(SearchRequest("siren", 50))
    assert found.total == len(found.hits) == 3


def test_a_worker_that_is_just_beginning_holds_up_no_reader(folder: Path, tmp_path: Path) -> None:
    """Its directory is there, and nothing in it yet, or half of it."""
    shutil.copytree(folder / "crawl", tmp_path / "crawl")
    new = tmp_path / "crawl" / "w3"
    (new / "index").mkdir(parents=True)
    (new / "frontier").mkdir()
    shutil.copy(folder / "crawl" / "w1" / "crawl.json", new)
    lmdb.open(str(new / "frontier")).close()
    (new / "index" / "larmspider-index.json").touch()
    crawled = open_crawl(tmp_path / "crawl")
    assert crawled.searcher().search("siren").total == 12
    assert len(list(crawled.pages())) == 14
    assert scrapy("hosts", cwd=tmp_path).status == 0


def test_the_web_pages_read_all_shards(folder: Path) -> None:
    """What `scrapy serve` shows is of both workers: hosts, search, and how the crawl stands."""
    source = served(folder / "crawl")
    assert source.searcher().search("siren").total == 12
    assert sorted(row.counts.stored for row in source.hosts().values()) == [6, 8]
    assert source.run_state.state is State.ENDED
    held = locked(folder / "crawl" / "w2" / "lock")
    assert source.run_state.state is State.RUNNING
    held.close()


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    """The same crawl, for a test that damages it."""
    shutil.copytree(folder / "crawl", tmp_path / "crawl")
    return tmp_path / "crawl"


def spoil(path: Path) -> None:
    path.write_bytes(b"{" * 5_000)


@pytest.mark.parametrize("file", ["meta.json", "larmspider-index.json"])
def test_an_index_that_cannot_be_opened_is_named(copied: Path, file: str) -> None:
    """The others are searched."""
    spoil(copied / "w2" / "index" / file)
    ran = scrapy("search", "siren", "--json", cwd=copied.parent)
    (why,) = ran.json["left_out"]
    assert (ran.status, ran.json["total"]) == (1, 7)
    assert why.startswith(str(copied / "w2" / "index"))
    assert ran.err.splitlines() == [f"scrapy search: without the pages of an index: {why}"]
    spoil(copied / "w1" / "index" / file)
    ran = scrapy("search", "siren", "--json", cwd=copied.parent)
    assert (ran.status, ran.out) == (1, "")


def served(crawl: Path, *elsewhere: Path) -> Source:
    settings = Settings({"LARM_SHARDS": [], "REDIS_URL": ""})
    settings.setmodule("larmspider.settings", priority="default")
    return Source(crawl, lambda _: settings, opened=lambda path: open_crawl(path, elsewhere))


def test_an_index_that_fails_while_it_is_served_is_named(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its whole directory. Once it is there again, it is searched."""
    monkeypatch.setattr("larmspider.search.gather.AGAIN_SECS", 0.0)
    monkeypatch.setattr("larmspider.status.crawl_view.AGAIN_SECS", 0.0)
    worker, kept = copied.parent / "far" / "w2", copied.parent / "kept"
    shutil.move(copied / "w2", worker)
    source = served(copied, worker)
    assert source.searcher().search("siren").total == 12
    shutil.copytree(worker, kept)
    for damage in (
        lambda: shutil.rmtree(worker),
        lambda: spoil(worker / "index" / "meta.json"),
    ):
        damage()
        found = source.searcher().search("siren")
        assert (found.total, len(found.left_out)) == (7, 1), damage
        assert str(worker) in str(found.left_out[0])
        shutil.rmtree(worker, ignore_errors=True)
        shutil.copytree(kept, worker)
        found = source.searcher().search("siren")
        assert (found.total, found.left_out) == (12, ())


def test_a_worker_whose_frontier_cannot_be_read_is_named(copied: Path) -> None:
    """The frontier says which record of a page counts."""
    spoil(copied / "w2" / "frontier" / "data.mdb")
    found = open_crawl(copied).searcher().search("siren")
    assert found.total == 7
    assert [str(copied / "w2") in str(error) for error in found.left_out] == [True]


def test_the_pages_and_programs_say_that_an_index_is_missing(copied: Path) -> None:
    spoil(copied / "w2" / "index" / "meta.json")
    with Served(copied) as site:
        page = site.get("/search?q=siren").text
        assert "An index did not answer, so its pages are missing here" in page
        assert len(site.get("/search?q=siren&format=json").json["left_out"]) == 1
        shards = site.get("/search/_search?q=siren").json["_shards"]
        assert (shards["failed"], shards["successful"]) == (1, 1)
