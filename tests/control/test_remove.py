"""Pages that an operator removes are out of the search at once, and stay out."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem

from larmspider.control.remove import find, find_gone, put_back_now, queue_now, take_out_now
from larmspider.crawl.reader import CrawlDir
from larmspider.crawl.worker_dirs import open_crawl
from larmspider.errors import ConfigError, CrawlDirError
from larmspider.frontier.storage.lmdb_env import BeingMade
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.items import Link, Page
from larmspider.middlewares.removed import RemovedFilter
from larmspider.pipelines.deleted_log import DeletedLogPipeline
from larmspider.pipelines.outbox.spool import FOLDER, read_committed, read_entries
from larmspider.search.request import SearchRequest
from larmspider.search.searcher import Searcher
from larmspider.workdir.directory import locked
from larmspider.workdir.manifest import LOCK
from larmspider.workdir.removals import FILE, LOOK_SECS, REASON, Removals, Rule
from tests.support.crawling import begin, records, scrapy
from tests.support.servers.scripted import ScriptedServer
from tests.support.stored_crawl import StoredCrawl
from tests.support.web.crawling import SETTINGS, endless

URLS = ["http://wiki/", "http://wiki/hr/a", "http://wiki/hr/b", "http://other:8080/"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    crawl = StoredCrawl(tmp_path_factory.mktemp("finished") / "crawl", refresh=False)
    for url in URLS:
        links = [Link(other, other, anchor="text", exact=other) for other in URLS]
        page = Page(url, url, body=b"zebra", text="zebra", mime="text/html", links=links)
        page.exact = url
        crawl.store(url, page)
    crawl.end()
    crawl.make_frontier(URLS)
    return crawl.path


@pytest.fixture
def crawl(finished: Path, tmp_path: Path) -> CrawlDir:
    shutil.copytree(finished, tmp_path / "crawl")
    return CrawlDir(tmp_path / "crawl")


def test_receivers_are_told(crawl: CrawlDir, crawler_for: Callable[..., Crawler]) -> None:
    """The removal waits in the outbox, committed, even without settings to reach them."""
    manifest = json.loads((crawl.path / "crawl.json").read_text())
    manifest["stores"] |= {
        f"larmspider.pipelines.outbox.{name}": [FOLDER]
        for name in ("sql.SqlReceiver", "dummy.DummyReceiver")
    }
    (crawl.path / "crawl.json").write_text(json.dumps(manifest))
    crawl = CrawlDir(crawl.path)
    take_out_now(crawl, Rule.of("http://wiki/hr/.*", crawl.forms), crawler_for().settings)
    committed = read_committed(crawl.path / FOLDER)
    told = read_entries(crawl.path / FOLDER, 0, committed.offset)
    assert sorted((entry.url, entry.removed) for entry in told) == [
        (url, "removed by the operator (removed.txt)") for url in URLS[1:3]
    ]


@pytest.mark.parametrize(
    ("text", "out"),
    [
        ("http://wiki/hr/a", URLS[1:2]),
        ("http://wiki/hr/.*", URLS[1:3]),
        ("wiki", URLS[:3]),
        ("other:8080", URLS[3:]),
        ("*i", URLS[:3]),
        (".*", URLS),
        (".*/hr/.*", URLS[1:3]),
    ],
)
def test_what_is_taken_out_is_gone_and_refused(
    crawl: CrawlDir, crawler_for: Callable[..., Crawler], text: str, out: list[str]
) -> None:
    """From the search, from the stored pages, from link counts; its URLs are refused, with a line
    in deleted.log each. Removed pages that are put back are queued again."""
    rule, settings = Rule.of(text, crawl.forms), crawler_for().settings
    found = find(crawl, rule)
    assert sorted(entry.url for entry, _ in found.pages) == sorted(out)
    assert take_out_now(crawl, rule, settings) == len(out)
    assert Removals.read(crawl.path).rules == [rule]
    left = [url for url in URLS if url not in out]
    assert sorted(
        hit.url
        for hit in Searcher.open(crawl.index_dir).search(SearchRequest("zebra", copies=True)).hits
    ) == sorted(left)
    assert [page.url for page in crawl.pages()] == left
    assert [crawl.stored(url) for url in out] == [None] * len(out)
    assert {page for page, _ in crawl.links_to("http://x/")} == set()
    assert {page for page, _ in crawl.links_to(URLS[0])} == set(left)
    gone = records(crawl.path / "deleted.log")
    assert sorted(line["url"] for line in gone) == sorted(out)
    assert {line["reason"] for line in gone} == {"removed by the operator (removed.txt)"}
    with crawl.frontier() as frontier:
        assert frontier is not None
        assert [frontier.state(url_key(url)) for url in out] == [UrlState.REFUSED] * len(out)
    assert put_back_now(crawl, rule, settings) == len(out)
    assert not Removals.read(crawl.path)
    with crawl.frontier() as frontier:
        assert frontier is not None
        assert [frontier.state(url_key(url)) for url in out] == [UrlState.QUEUED] * len(out)


def test_pages_that_left_by_themselves_are_queued_again(
    crawl: CrawlDir, crawler_for: Callable[..., Crawler]
) -> None:
    """Not pages that an operator has removed, or that are known again."""
    settings = crawler_for().settings
    known, gone, removed = URLS[1], "http://wiki/hr/gone", "http://wiki/hr/secret"
    lines = ((known, "missing"), (gone, "missing"), (gone, "gone"), (removed, REASON))
    (crawl.path / "deleted.log").write_text(
        "".join(f"2026-01-31T12:00:00.000Z\t{url}\t{url}\t{why}\n" for url, why in lines)
    )
    assert find_gone(crawl, Rule.of("http://wiki/b.*", crawl.forms)) == []
    found = find_gone(crawl, Rule.of("wiki", crawl.forms))
    assert [entry.url for entry in found] == [gone]
    assert queue_now(crawl, found, settings) == 1
    with crawl.frontier() as frontier:
        assert frontier is not None
        assert frontier.state(url_key(gone)) is UrlState.QUEUED
    assert find_gone(crawl, Rule.of("wiki", crawl.forms)) == []


def test_a_crawl_of_workers_whose_redis_nobody_names_is_not_changed(
    tmp_path: Path, crawler_for: Callable[..., Crawler]
) -> None:
    manifest = {"format": 2, "spider": "intranet", "workers": {"redis": "redis://other:6379/0"}}
    (tmp_path / "crawl.json").write_text(json.dumps(manifest))
    rule = Rule("host", "wiki")
    with pytest.raises(ConfigError, match=r"Redis \(redis://other:6379/0\): expected -s REDIS_URL"):
        take_out_now(CrawlDir(tmp_path), rule, crawler_for().settings)
    assert not (tmp_path / FILE).exists()


def test_a_crawl_whose_workers_are_starting_is_not_changed(
    tmp_path: Path, crawler_for: Callable[..., Crawler]
) -> None:
    """Not even for a moment: each of them is to find its directory free."""
    manifest = {"format": 2, "spider": "intranet", "workers": {}}
    (tmp_path / "redis").mkdir()
    (tmp_path / "crawl.json").write_text(json.dumps(manifest))
    (tmp_path / "vm-1").mkdir()
    (tmp_path / "vm-1/crawl.json").write_text(json.dumps(manifest | {"stores": {}}))
    with (
        locked(tmp_path / "redis" / LOCK),
        pytest.raises(CrawlDirError, match="`scrapy workers` is starting or ending in"),
    ):
        take_out_now(open_crawl(tmp_path), Rule("host", "wiki"), crawler_for().settings)
    assert not (tmp_path / "vm-1" / LOCK).exists()
    assert not (tmp_path / FILE).exists()


def test_what_is_taken_out_is_neither_followed_nor_stored(
    crawler_for: Callable[..., Crawler], tmp_path: Path
) -> None:
    """From LOOK_SECS after the file is there on, and until it is not any more."""
    crawler = crawler_for()
    url_filter = RemovedFilter.from_settings(crawler.settings)
    store = DeletedLogPipeline.from_crawler(crawler)
    page, link = Page("http://wiki/hr/a", "http://wiki/hr/a"), Link("http://wiki/hr/a")
    link.normalized = link.exact = page.exact = page.url
    assert url_filter.reject_links([link], Page("")) == [None]
    store.process_item(page)
    (tmp_path / "crawl").mkdir()
    removals = Removals(tmp_path / "crawl" / FILE, [Rule("pattern", "http://wiki/hr/.*")])
    removals.write()
    time.sleep(LOOK_SECS)
    assert url_filter.reject_links([link], Page("")) == ["removed by the operator (removed.txt)"]
    with pytest.raises(DropItem):
        store.process_item(page)
    removals.path.unlink()
    time.sleep(LOOK_SECS)
    assert url_filter.reject_links([link], Page("")) == [None]


@pytest.mark.parametrize(
    "text", ["", "a b", "http://wiki/(", "/hr/", "x\ny", "http://wiki/a.zip#!/in%20it.txt"]
)
def test_what_is_neither_url_nor_pattern_nor_host_is_refused(text: str, crawl: CrawlDir) -> None:
    with pytest.raises(ConfigError, match="expected"):
        Rule.of(text, crawl.forms)


def test_a_pattern_that_is_none_is_shown_as_it_was_typed(crawl: CrawlDir) -> None:
    with pytest.raises(ConfigError, match=r"^the argument: pattern 'http://wiki/\(' does not"):
        Rule.of("http://wiki/(", crawl.forms)


def test_a_line_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("# mine\nhost wiki\nhttp://wiki/\n")
    with pytest.raises(ConfigError, match=r"removed.txt:3: 'http://wiki/' is not understood"):
        Removals.read(tmp_path)


def test_a_crawl_without_web_pages_goes_by_the_file(
    scripted_server: Callable[..., ScriptedServer], tmp_path: Path
) -> None:
    """It cannot be asked: with its next checkpoints the pages leave, or are queued again."""
    server = scripted_server({"/robots.txt": (404, {}, b""), "*": endless()})
    page, settings = server.url("/1"), SETTINGS | {"LARM_WEB": "no"}
    options = [word for name, value in settings.items() for word in ("-s", f"{name}={value}")]
    start = f"start={server.url('/0')}"

    def state() -> UrlState:
        with suppress(BeingMade), CrawlDir(tmp_path / "crawl").frontier() as frontier:
            return UrlState.UNKNOWN if frontier is None else frontier.state(url_key(page))
        return UrlState.UNKNOWN

    def until(true: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end
            assert running.poll() is None
            time.sleep(0.1)

    with (tmp_path / "out").open("w") as out:
        running = begin("crawl", "intranet", "-a", start, *options, cwd=tmp_path, out=out)
        try:
            until(lambda: (tmp_path / "crawl/frontier").exists())
            until(lambda: state() is UrlState.STORED)
            done = scrapy("remove", page, "--yes", cwd=tmp_path)
            assert done.status == 0, done.err
            assert "1 page removed with the next checkpoints" in done.out
            until(lambda: state() is UrlState.REFUSED)
            (gone,) = records(tmp_path / "crawl/deleted.log")
            assert (gone["url"], gone["reason"]) == (page, REASON)
            done = scrapy("remove", page, "--undo", cwd=tmp_path)
            assert done.status == 0, done.err
            until(lambda: state() is not UrlState.REFUSED)
        finally:
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 0, (tmp_path / "out").read_text()
    lines = (tmp_path / "crawl/control.log").read_text().splitlines()
    assert [line.split("\t")[1:3] for line in lines] == [[FILE, "remove"]] * 2
