"""Pages that are stored again, or taken out: what is read is what a fresh crawl would have."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scrapy import Spider
from scrapy.utils.test import get_crawler

from larmspider.crawl.log_index.update import Update
from larmspider.crawl.reader import CrawlDir
from larmspider.index.anchors import AnchorTable
from larmspider.index.search import Searcher
from larmspider.items import Link, Page, Removed
from larmspider.pipelines.deleted_log import DeletedLogPipeline
from larmspider.pipelines.fetch_log import FetchLogPipeline
from larmspider.pipelines.link_log import LinkLogPipeline
from larmspider.pipelines.page_files import PageFilesPipeline
from larmspider.pipelines.search_index import SearchIndexPipeline
from larmspider.workdir.manifest import FORMAT

STORES = (
    PageFilesPipeline, LinkLogPipeline, FetchLogPipeline, DeletedLogPipeline, SearchIndexPipeline,
)  # fmt: skip
URLS = [f"http://{host}/{page}" for host in ("a", "b") for page in range(3)]
TEXTS = ["", "home", "next page", "home page"]


@dataclass(frozen=True)
class Version:
    """What a server has under a URL."""

    word: int
    links: Sequence[tuple[int, int]]

    def page(self, url: str, when: float) -> Page:
        links = [
            Link(URLS[to], URLS[to], anchor=TEXTS[text], exact=URLS[to]) for to, text in self.links
        ]
        links.append(Link("mailto:x@h", rejected_by="normalize"))
        text = f"word{self.word}"
        page = Page(url, url, body=text.encode(), text=text, mime="text/html", fetched=when)
        page.exact, page.links = url, links if self.links else []
        return page


LINKS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.integers(0, 5), st.builds(Version, st.integers(0, 3), LINKS)),
        st.tuples(st.integers(0, 5), st.none()),
        st.sampled_from(["checkpoint", "look", "crash"]),
    ),
    max_size=16,
)


class Crawl:
    """The stores of a crawl, without the crawl: a checkpoint is a method."""

    def __init__(self, path: Path, *, refresh: bool) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        (path / "crawl.json").write_text(json.dumps({"format": FORMAT, "began": "b"}))
        self.spider = Spider("test", start_urls=["http://h/"])
        self.spider.refresh = "due" if refresh else ""  # type: ignore[attr-defined]
        self.positions: Mapping[str, bytes] = {}
        self.clock = 1_000.0
        self.open()

    def open(self) -> None:
        crawler = get_crawler(
            Spider, settings_dict={"LARM_DIR": str(self.path), "DOWNLOAD_MAXSIZE": 9_999}
        )
        crawler.spider = self.spider
        self.stores = [one.from_crawler(crawler) for one in STORES]
        for store in self.stores:
            store.recovered(self.positions)
        for store in self.stores:
            store.open_spider()

    def store(self, url: str, version: Version | None) -> None:
        self.clock += 1
        item: Any = Removed(url, url, "gone", self.clock)
        if version is not None:
            item = version.page(url, self.clock)
        for store in self.stores:
            store.process_item(item)

    def checkpoint(self) -> None:
        positions = dict(store.checkpoint() for store in self.stores)
        asyncio.run(self._commit())
        self.positions = positions

    async def _commit(self) -> None:
        for store in self.stores:
            if (waiting := store.commit()) is not None:
                await waiting

    def close(self) -> None:
        asyncio.run(self._close())

    async def _close(self) -> None:
        for store in self.stores:
            if (waiting := store.close_spider()) is not None:
                await waiting

    def look(self) -> None:
        """Bring the index of the logs up to date."""
        names = {"PageFilesPipeline": "store.log", "FetchLogPipeline": "fetch.log",
                 "LinkLogPipeline": "links.log"}  # fmt: skip
        ends = {
            names[store]: int(at.split()[-1])
            for store, at in self.positions.items()
            if store in names
        }
        Update(self.path, ends, "b").run()

    def end(self) -> None:
        writer = self.stores[-1]._writer  # type: ignore[attr-defined]
        writer.refresh_all_anchors()
        self.checkpoint()
        self.close()


def known(path: Path) -> dict[str, Any]:
    """What can be read of a crawl, by the index of the logs and by the logs alone."""
    crawl = CrawlDir(path)
    found: dict[str, Any] = {
        "pages": sorted((page.url, crawl.body(page)) for page in crawl.pages()),
        "stored": {url for url in URLS if crawl.stored(url)},
        "searched": _searched(path),
    }
    with closing(AnchorTable(path / "index" / "anchors")) as table:
        found["anchors"] = dict(zip(URLS, table.links_to(URLS), strict=True))
    with crawl.logs.index() as index:
        if index is not None:
            found["targets"] = {
                key: (target.pages, _lines(crawl, target.offsets))
                for key, target in index.targets()
            }
            found["totals"] = [index.state()[name] for name in ("links", "pairs")]
            found["hosts"] = [host for host in index.most_linked_hosts() if host.links]
            found["between hosts"] = index.host_links()
    found["out"] = {url: crawl.logs.links_from(url, 99) for url in URLS}
    found["in"] = {
        url: sorted({fields[0] for fields in crawl.logs.links_to(url)} - {url}) for url in URLS
    }
    return found


def _lines(crawl: CrawlDir, offsets: Sequence[int]) -> list[list[str] | None]:
    return sorted(crawl.logs.records_at("links.log", offsets), key=str)


def _searched(path: Path) -> dict[str, list[str]]:
    searcher = Searcher.open(path / "index")
    words = [*(f"word{n}" for n in range(4)), "home", "next", "page"]
    return {word: sorted(hit.url for hit in searcher.search(word).hits) for word in words}


@settings(max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(STEPS)
def test_what_is_read_is_what_a_fresh_crawl_would_have(steps: Sequence[Any]) -> None:
    """After any versions and removals, with crashes between: what a crash took back is fetched
    again."""
    with TemporaryDirectory() as folder:
        crawl = Crawl(Path(folder, "crawl"), refresh=True)
        last: dict[int, Version | None] = {}
        since: set[int] = set()
        for step in steps:
            if step == "checkpoint":
                crawl.checkpoint()
                since.clear()
            elif step == "look":
                crawl.look()
            elif step == "crash":
                crawl.close()
                crawl.open()
                for number in sorted(since):
                    crawl.store(URLS[number], last[number])
            else:
                number, version = step
                last[number] = version
                since.add(number)
                crawl.store(URLS[number], version)
        crawl.end()
        fresh = Crawl(Path(folder, "fresh"), refresh=False)
        for number, version in last.items():
            if version is not None:
                fresh.store(URLS[number], version)
        fresh.end()
        for _ in range(2):
            parts = [known(one.path) for one in (crawl, fresh)]
            both = [name for name in parts[0] if name in parts[1]]
            for name in both:
                assert parts[0][name] == parts[1][name], name
            for one in (crawl, fresh):
                one.look()
        assert "targets" in both
