"""larmspider/pipelines/search_index.py: which pages are in the index."""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider
from scrapy.settings import Settings

from larmspider import options, signals
from larmspider.access.table import AccessTable
from larmspider.control.reindex import reindex
from larmspider.crawl.reader import CrawlDir
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState, url_key
from larmspider.index import writer
from larmspider.index.access import Access
from larmspider.index.link_access import LinkAccess
from larmspider.index.schema import FILES
from larmspider.index.unreached import Unreached
from larmspider.index.version import META_NAME
from larmspider.index.writer import IndexWriter
from larmspider.items import REDIRECT, Kept, Link, Page, Removed
from larmspider.pipelines import search_index
from larmspider.pipelines.search_index import SearchIndexPipeline
from larmspider.search.searcher import Searcher
from tests.support.stored_crawl import StoredCrawl, linked, restrict

ELSEWHERE = Link("http://h/b", "http://h/b", REDIRECT)
RELOAD = Link("http://h/?sid=2", "http://h/", REDIRECT)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, True),
        ({"status": 404}, False),
        ({"status": 302, "links": [ELSEWHERE]}, False),
        ({"noindex": True}, False),
        ({"moved": True, "links": [ELSEWHERE]}, False),
        ({"moved": True, "links": [RELOAD]}, True),
        ({"moved": True}, True),
        ({"links": [ELSEWHERE]}, True),
    ],
)
def test_what_can_be_found(
    crawler_for: Callable[..., Crawler], fields: dict[str, object], found: bool, before: bool
) -> None:
    """Not what is missing, asks for it, or has moved to another page, whatever it was before; a
    dashboard that reloads itself is found, and a page that leads on after a while."""
    crawler = crawler_for()
    store = SearchIndexPipeline.from_crawler(crawler)
    store.open_spider()
    if before:
        store.write(Page("http://h/", "http://h/", text="zebra"))
    store.write(Page("http://h/?sid=1", "http://h/", text="zebra", **fields))
    asyncio.run(store.close_spider())
    assert Searcher.open(store.directory).search("zebra").total == found


def restricting(crawler: Crawler, *hosts: str) -> SearchIndexPipeline:
    """A store for which these hosts are restricted; as the crawl makes it otherwise."""
    assert crawler.stats is not None
    return SearchIndexPipeline(
        options.larm_dir(crawler.settings) / "index",
        64_000_000,
        "english",
        crawler.stats,
        stopping=lambda: True,
        given_up=lambda: True,
        restricted=lambda: hosts,
    )


def test_link_texts_of_a_page_that_not_everybody_may_see(
    crawler_for: Callable[..., Crawler],
) -> None:
    """They are for pages of its own host alone: words of others find nothing of it."""
    store = restricting(crawler_for(), "hr.example", "pay.example")
    store.open_spider()
    targets = ("http://hr.example/b", "http://wiki.example/", "http://pay.example/")
    for here in ("http://hr.example/a", "file:///srv/a", "http://intra.example/"):
        page = Page(here, here)
        word = {"h": "canary", "f": "finch", "i": "robin"}[here[0 if here[0] == "f" else 7]]
        page.links = [Link(url, url, anchor=word) for url in targets]
        store.write(page)
    asyncio.run(store.commit())
    for url in targets:
        store.write(Page(url, url))
    asyncio.run(store.close_spider())
    searcher = Searcher.open(store.directory)
    found = {
        word: {hit.url for hit in searcher.search(word).hits}
        for word in ("canary", "finch", "robin")
    }
    assert found == {"canary": {targets[0]}, "finch": set(), "robin": set(targets)}


@pytest.mark.parametrize(
    "old, new, found",
    [
        ("http://wiki.example", "https://wiki.example", {"canary", "robin"}),
        ("http://hr.example", "http://people.example", set()),
        ("http://wiki.example", "http://hr.example", set()),
        ("http://hr.example", "https://hr.example", {"canary", "robin"}),
    ],
)
def test_link_texts_of_a_page_that_has_moved_do_not_widen_who_finds_it(
    crawler_for: Callable[..., Crawler], old: str, new: str, found: set[str]
) -> None:
    """A page of the old host gives "canary", a page for everybody "robin"."""
    store = restricting(crawler_for(), "hr.example")
    store.open_spider()
    for here, word in ((f"{old}/start", "canary"), ("http://intra.example/", "robin")):
        page = Page(here, here)
        page.links = [Link(f"{old}/a", f"{old}/a", anchor=word)]
        store.write(page)
    for url in (f"{old}/a", f"{new}/a"):
        store.write(Page(url, url, text="zebra"))
    asyncio.run(store.commit())
    store.remove(Removed(f"{old}/a", f"{old}/a", "moved", 1.0, f"{new}/a"))
    asyncio.run(store.close_spider())
    searcher = Searcher.open(store.directory)
    words = {word for word in ("canary", "robin") if searcher.search(word).total}
    assert words == found
    assert [hit.url for hit in searcher.search("zebra").hits] == [f"{new}/a"]


def _finds(path: Path, *restricted: str) -> dict[str, list[str]]:
    """Where each word is found, by who may not see these hosts."""
    searcher = Searcher.open(path / "index").seen_by(Access((*restricted, FILES)))
    return {
        word: sorted(hit.url for hit in searcher.search(word).hits)
        for word in ("canary", "finch", "robin")
    }


def test_link_texts_of_a_host_that_becomes_restricted_leave_when_the_crawl_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At its start, whichever pages it visits; texts for pages of the host itself stay. Until then
    a search for others finds nothing by link texts."""
    caplog.set_level("INFO")
    crawl = linked(tmp_path / "crawl")
    both = ["http://hr/own", "http://wiki/"]
    assert _finds(crawl.path) == {"canary": both, "finch": both[1:], "robin": both}
    restrict(crawl.path, "hr")
    assert _finds(crawl.path, "hr") == {"canary": [], "finch": [], "robin": []}
    crawl.open()
    crawl.close()
    assert "now removed from it" in caplog.text
    assert "are removed, in" in caplog.text
    every = _finds(crawl.path)
    assert every == {"canary": both[:1], "finch": [], "robin": both}
    assert _finds(crawl.path, "hr") == {"canary": [], "finch": [], "robin": both[1:]}
    caplog.clear()
    crawl.open()
    crawl.close()
    assert "restricted" not in caplog.text, "it is done once"


def test_a_page_that_was_named_by_a_link_text_loses_that_title(tmp_path: Path) -> None:
    """The title that is shown of a page without one."""
    crawl = linked(tmp_path / "crawl")
    url = "http://wiki/"

    def title(*restricted: str) -> str:
        searcher = Searcher.open(crawl.path / "index").seen_by(Access((*restricted, FILES)))
        found = searcher.get(url)
        assert found is not None
        return found.title

    assert title() in ("canary", "finch")
    restrict(crawl.path, "hr")
    assert title("hr") not in ("canary", "finch", "robin")
    crawl.open()
    crawl.close()
    assert title("hr") == title() == "robin"


def test_link_texts_that_were_not_all_taken_out_are_taken_out_by_the_next_run(
    tmp_path: Path,
) -> None:
    """A crawl was stopped meanwhile. Readers find nothing by link texts until then."""
    crawl = linked(tmp_path / "crawl")
    restrict(crawl.path, "hr")
    with IndexWriter(crawl.path / "index") as stopped:
        access = LinkAccess(["hr"])
        stopped.withdraw_link_texts(access, lambda: [("http://hr/a", "http://hr/a")], lambda: True)
    assert _finds(crawl.path, "hr")["robin"] == []
    crawl.open()
    crawl.close()
    assert _finds(crawl.path)["canary"] == ["http://hr/own"]
    assert _finds(crawl.path, "hr")["robin"] == ["http://wiki/"]


def test_a_crawl_without_a_log_of_links_withdraws_link_texts_too(tmp_path: Path) -> None:
    """The pages that are stored say which hosts gave texts."""
    crawl = linked(tmp_path / "crawl")
    (crawl.path / "links.log").unlink()
    restrict(crawl.path, "hr")
    crawl.positions.pop("LinkLogPipeline")
    crawl.open()
    crawl.close()
    assert _finds(crawl.path)["canary"] == ["http://hr/own"]
    assert _finds(crawl.path, "hr")["robin"] == ["http://wiki/"]


def test_what_came_after_the_last_checkpoint_is_in_doubt(
    crawler_for: Callable[..., Crawler],
) -> None:
    """The index cannot go back; what the crawl does not have at all leaves it."""
    position = b""
    asked: list[list[str]] = []

    def unknown(names: Sequence[str]) -> list[str]:
        asked.append([*names])
        return ["http://h/2"]

    for number in range(4):
        crawler = crawler_for()
        crawler.signals.connect(unknown, signal=signals.in_doubt)
        store = SearchIndexPipeline.from_crawler(crawler)
        store.recover(position)
        store.open_spider()
        for page in range(number + 1) if number < 3 else ():
            url = f"http://h/{page}"
            store.write(Page(url, url, text="zebra", exact=url))
            if page == 1:
                store.flush()
                asyncio.run(store.commit())
                position = store.flush() if number == 1 else position
        asyncio.run(store.close_spider())  # as if it was killed after the index's commit
    assert asked == [["http://h/0"], [f"http://h/{page}" for page in range(3)]]
    assert Searcher.open(store.directory).search("zebra").total == 2


def test_a_crawl_that_goes_back_by_many_checkpoints_puts_their_pages_in_doubt(
    crawler_for: Callable[..., Crawler],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Redis comes back without its last commits. Pages that the index no longer remembers are named
    to the operator."""

    def opened(position: bytes) -> tuple[SearchIndexPipeline, list[str]]:
        asked: list[str] = []

        def unknown(names: Sequence[str]) -> list[str]:
            asked.extend(names)
            return [*names]

        crawler = crawler_for()
        crawler.signals.connect(unknown, signal=signals.in_doubt, weak=False)
        store = SearchIndexPipeline.from_crawler(crawler)
        store.recover(position)
        store.open_spider()
        return store, asked

    monkeypatch.setattr(search_index, "_REMEMBERED", 6)
    store, _ = opened(b"")
    positions = [store.flush()]
    for page in range(9):
        url = f"http://h/{page}"
        store.write(Page(url, url, text="zebra", exact=url))
        asyncio.run(store.commit())
        positions.append(store.flush())
    asyncio.run(store.close_spider())
    store, asked = opened(positions[5])
    asyncio.run(store.close_spider())
    assert asked == [f"http://h/{page}" for page in range(5, 9)]
    assert Searcher.open(store.directory).search("zebra").total == 5
    assert not caplog.records
    store, asked = opened(positions[1])
    asyncio.run(store.close_spider())
    assert {f"http://h/{page}" for page in range(3, 9)} <= {*asked}
    assert "http://h/1" not in asked
    assert "scrapy verify --repair" in caplog.text


def test_an_index_of_another_format_is_refused(
    crawler_for: Callable[..., Crawler], tmp_path: Path
) -> None:
    """And stays as it is."""
    store = SearchIndexPipeline.from_crawler(crawler_for())
    store.open_spider()
    asyncio.run(store.close_spider())
    meta = store.directory / META_NAME
    meta.write_text('{"schema": 9, "stemmer": "english"}')
    again = SearchIndexPipeline.from_crawler(crawler_for())
    with pytest.raises(CrawlDirError, match=r"has format 9, .*: scrapy reindex rebuilds it"):
        again.open_spider()
    assert meta.read_text() == '{"schema": 9, "stemmer": "english"}'


def test_a_crawl_that_is_stopped_says_how_many_pages_wait_for_the_index(
    crawler_for: Callable[..., Crawler],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Where there was no time to index them; the next run has them."""
    monkeypatch.setattr(writer, "_LAST_SECS", -1.0)
    for run, found in enumerate((0, 3)):
        store = SearchIndexPipeline.from_crawler(crawler_for())
        store.stopping = lambda run=run: run == 0
        store.open_spider()
        for name in "abc" if run == 0 else "":
            store.write(Page(f"http://h/{name}", f"http://h/{name}", text="zebra"))
        asyncio.run(store.close_spider())
        assert Searcher.open(store.directory).search("zebra").total == found
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "3 pages: stored; not in the search index before the same command continues"
    ]


def test_no_crawl_ends_while_link_texts_are_brought_up_to_date(
    crawler_for: Callable[..., Crawler], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor when it is idle again meanwhile."""
    store = SearchIndexPipeline.from_crawler(crawler_for())
    store.open_spider()
    may_end = threading.Event()

    def refresh(_writer: IndexWriter, _stop: Callable[[], bool]) -> int:
        may_end.wait(60)
        return 0

    monkeypatch.setattr(IndexWriter, "refresh_all_anchors", refresh)

    def is_busy() -> bool:
        try:
            store.spider_idle()
        except DontCloseSpider:
            return True
        return False

    async def idle() -> None:
        for _ in range(3):
            with pytest.raises(DontCloseSpider):
                store.spider_idle()
            await asyncio.sleep(0)
        may_end.set()
        async with asyncio.timeout(60):
            while is_busy():
                await asyncio.sleep(0)
        await store.close_spider()

    asyncio.run(idle())


def _marks(path: Path) -> dict[str, float]:
    return dict(Unreached.read(path / "index").pages)


def _kept(url: str, kind: str, at: float) -> Kept:
    return Kept(url, url, url, "", 0, 0, kind, "", at, 404)


def test_a_page_that_was_missed_is_marked_until_it_answers_or_leaves(tmp_path: Path) -> None:
    """From the next checkpoint on."""
    crawl = StoredCrawl(tmp_path / "crawl", refresh=True)
    for name in "abcd":
        crawl.store(f"http://h/{name}", Page(f"http://h/{name}", f"http://h/{name}", text=name))
    crawl.checkpoint()
    for name in "abc":
        crawl.stores[-1].process_item(_kept(f"http://h/{name}", "missing", 5.0))
    crawl.stores[-1].process_item(_kept("http://h/d", "noindex", 5.0))
    crawl.checkpoint()
    assert _marks(crawl.path) == {f"http://h/{name}": 5.0 for name in "abc"}
    crawl.stores[-1].process_item(_kept("http://h/a", "not-modified", 6.0))
    crawl.store("http://h/b", Page("http://h/b", "http://h/b", text="new"))
    crawl.checkpoint()
    assert _marks(crawl.path) == {"http://h/c": 5.0}
    crawl.store("http://h/c", None)
    crawl.close()
    assert _marks(crawl.path) == {}


def test_a_rebuild_without_settings_keeps_the_rules_of_the_crawl(tmp_path: Path) -> None:
    """A lost index is built again, and opens no page that a rule shuts."""
    crawl = StoredCrawl(tmp_path / "crawl", refresh=True)
    crawl.store("http://h/a", Page("http://h/a", "http://h/a", text="zebra", mime="text/html"))
    crawl.checkpoint()
    crawl.close()
    shutil.rmtree(crawl.path / "index")
    manifest = json.loads((crawl.path / "crawl.json").read_text())
    rules = {"LARM_ACCESS_RULES": {"*": ["group:hr"]}}
    (crawl.path / "crawl.json").write_text(json.dumps(manifest | {"settings": rules}))
    settings = Settings(dict(options.defaults()))
    reindex(CrawlDir(crawl.path), settings, lambda *_: None, restricted=())
    table = AccessTable(crawl.path / "index")
    table.refresh()
    slot = table.slot_of("http://h/a")
    assert slot
    assert table.list_of(slot).principals == ["group:hr"]


@pytest.mark.parametrize("lost", ["marks", "index"])
def test_marks_that_are_lost_come_from_the_frontier(tmp_path: Path, lost: str) -> None:
    crawl = StoredCrawl(tmp_path / "crawl", refresh=True)
    crawl.store("http://h/a", Page("http://h/a", "http://h/a", text="zebra", mime="text/html"))
    crawl.checkpoint()
    crawl.close()
    backend = LmdbBackend(crawl.path / "frontier")
    entry = QueuedUrl("http://h/a", "http://h/a", url_key("http://h/a"), "h:80")
    backend.add([entry])
    backend.pop("h:80", 0.0)
    visit = FetchRecord(UrlState.STORED, 8.0, 200, url="http://h/a", missing_since=5.0)
    backend.acknowledge([(entry.key, replace(visit, missing_as="missing", confirmations=1))])
    backend.checkpoint(crawl.positions)
    backend.close()
    if lost == "index":
        shutil.rmtree(crawl.path / "index")
        reindex(CrawlDir(crawl.path), Settings(), lambda *_: None, restricted=())
        assert _marks(crawl.path) == {"http://h/a": 5.0}
        return
    (crawl.path / "index" / "unreached").unlink()
    crawl.open()
    crawl.close()
    assert _marks(crawl.path) == {"http://h/a": 5.0}


def test_hosts_that_do_not_answer_and_pages_of_another_worker(tmp_path: Path) -> None:
    crawl = StoredCrawl(tmp_path / "crawl", refresh=True)
    store = crawl.stores[-1]
    assert isinstance(store, SearchIndexPipeline)
    store.process_item(_kept("http://moved/", "missing", 5.0))
    answer: tuple[dict[str, float], list[str] | None] = ({"http://h": 3.0}, None)

    def unreached(names: list[str]) -> tuple[dict[str, float], list[str]]:
        hosts, pages = answer
        return hosts, names if pages is None else pages

    crawl.crawler.signals.connect(unreached, signal=signals.unreached)
    crawl.checkpoint()
    assert Unreached.read(crawl.path / "index") == Unreached({}, {"http://h": 3.0})
    answer = ({}, [])
    crawl.close()
    assert not Unreached.read(crawl.path / "index")


@pytest.mark.parametrize("number", range(3))
def test_a_copy_that_was_shown_through_a_page_is_shown_through_its_new_url(
    crawler_for: Callable[..., Crawler], number: int
) -> None:
    """The copy's URL is before, between or behind both others."""
    old, new = "http://wiki.example/k", "https://wiki.example/k"
    copy = ("http://a.example/k", "http://wiki.example/z", "https://z.example/k")[number]
    crawler = crawler_for(LARM_REFRESH="due")
    store = SearchIndexPipeline.from_crawler(crawler)
    store.open_spider()
    text = " ".join(f"zebra{word} eats grass{word * 7 % 50}" for word in range(120)) + " zebra"
    for at in range(3):
        here = f"http://intra.example/{at}"
        page = Page(here, here, text=f"page {at}")
        page.links = [Link(old, old, anchor="zebra")]
        store.write(page)
    for url in (old, copy, new):
        store.write(Page(url, url, text=text))
    asyncio.run(store.close_spider())

    def shown() -> list[tuple[str, int]]:
        hits = Searcher.open(store.directory).search("zebra").hits
        return [(hit.url, hit.copies) for hit in hits]

    assert shown() == [(old, 2)]
    store = SearchIndexPipeline.from_crawler(crawler)
    store.open_spider()
    store.remove(Removed(old, old, "moved", 1.0, new))
    asyncio.run(store.close_spider())
    with IndexWriter(store.directory) as index:
        index.refresh_all_anchors()
    assert shown() == [(new, 1)]
