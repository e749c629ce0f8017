"""The stores of a crawl and its frontier, without the crawl."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any

from scrapy import Spider
from scrapy.utils.test import get_crawler

from larmspider.crawl.log_index.update import Update
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState, host_of, url_key
from larmspider.items import REDIRECT, Link, Page, Removed
from larmspider.pipelines.deleted_log import DeletedLogPipeline
from larmspider.pipelines.fetch_log import FetchLogPipeline
from larmspider.pipelines.link_log import LinkLogPipeline
from larmspider.pipelines.page_files import PageFilesPipeline
from larmspider.pipelines.search_index import SearchIndexPipeline
from larmspider.workdir.manifest import FORMAT, RULES, RULES_DIR

STORES = (
    DeletedLogPipeline, PageFilesPipeline, LinkLogPipeline, FetchLogPipeline, SearchIndexPipeline,
)  # fmt: skip


class StoredCrawl:
    """The stores of a crawl, without the crawl: a checkpoint is a method."""

    def __init__(
        self, path: Path, *, refresh: bool, positions: Mapping[str, bytes] | None = None
    ) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        stores = {f"{one.__module__}.{one.__qualname__}": list(one.files) for one in STORES}
        manifest = {"format": FORMAT, "began": "b", "stores": stores, "seeds": ["http://h/"]}
        (path / "crawl.json").write_text(json.dumps(manifest))
        self.spider = Spider("test", start_urls=["http://h/"])
        self.refresh = "due" if refresh else ""
        self.positions = dict(positions or {})
        self.clock = 1_000.0
        self.open()

    def open(self) -> None:
        settings = {"LARM_DIR": str(self.path), "LARM_REFRESH": self.refresh}
        crawler = get_crawler(Spider, settings_dict={"DOWNLOAD_MAXSIZE": 9_999, **settings})
        crawler.spider = self.spider
        self.crawler = crawler
        self.stores = [one.from_crawler(crawler) for one in STORES]
        self.stores[-1].given_up = lambda: False  # type: ignore[attr-defined]
        for store in self.stores:
            store.recovered(self.positions)
        for store in self.stores:
            if (opening := store.open_spider()) is not None:
                asyncio.run(_awaited(opening))

    def store(self, url: str, page: Page | None, moved_to: str = "") -> None:
        """None: it is taken out, or has moved to another URL."""
        self.clock += 1
        item: Any = page
        if page is None:
            reason = f"moved 2 times over 1.1 days, to {moved_to}" if moved_to else "gone"
            item = Removed(url, url, reason, self.clock, moved_to)
        else:
            page.fetched = self.clock
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

    def ran_with(self, **files: Path) -> None:
        """Settings that name files of rules, of which the crawl keeps copies."""
        manifest = self.path / "crawl.json"
        named = {name: str(path) for name, path in files.items()}
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"settings": named}))
        (self.path / RULES_DIR).mkdir()
        for name, path in files.items():
            shutil.copy(path, self.path / RULES_DIR / RULES[name])

    def make_frontier(self, urls: list[str], visits: Iterable[FetchRecord] = ()) -> None:
        """In which these URLs are stored, and of which there are such ``visits``, as of the last
        checkpoint."""
        backend = LmdbBackend(self.path / "frontier")
        backend.recover()
        visit = FetchRecord(UrlState.STORED, time=self.clock, status=200)
        known = dict.fromkeys(urls, visit) | {visit.url: visit for visit in visits}
        entries = [QueuedUrl(url, url, url_key(url), host_of(url)) for url in known]
        backend.add(entries)
        for entry in entries:
            backend.pop(entry.host, 0.0)
        backend.acknowledge([(entry.key, known[entry.url]) for entry in entries])
        backend.checkpoint(self.positions)
        backend.close()


async def _awaited(opening: Coroutine[Any, Any, None]) -> None:
    await opening


A, B, GONE, PDF = "http://wiki/a", "http://blog.intra:81/b", "http://wiki/gone", "http://wiki/x.pdf"
TIMES = {A: 1_700_000_000.0, B: 1_750_000_000.0, GONE: 1.0}


def two_pages(path: Path) -> Path:
    """A crawl of A, whose second version counts, and of B; GONE was taken out."""
    stored = StoredCrawl(path, refresh=True)
    html = "text/html"
    stored.store(A, Page(A, A, body=b"old", mime=html, links=[Link(B, anchor="old")]))
    stored.store(GONE, Page(GONE, GONE, body=b"x", mime=html))
    body = b"<title>A</title><p>new text"
    links = [Link(B, anchor="to b", normalized=B), Link(PDF, type=REDIRECT)]
    stored.store(A, Page(A, A, body=body, mime=html, title="A", from_page=B, links=links))
    stored.store(B, Page(B, B, body=b"=1+1", mime="text/plain", title="=1+1", links=[Link(A)]))
    stored.store(GONE, None)
    stored.checkpoint()
    stored.close()
    visits = [
        FetchRecord(UrlState.STORED, time=at, status=200, url=url) for url, at in TIMES.items()
    ]
    stored.make_frontier([], visits)
    return path


OWN, OPEN = "http://hr/own", "http://wiki/"


def linked(path: Path) -> StoredCrawl:
    """A crawl of two hosts, hr and wiki: a page of each links to OWN, of hr, and to OPEN, of wiki.
    The page of hr has the texts "canary" (both) and "finch" (OPEN), the page of wiki "robin"
    (both)."""
    crawl = StoredCrawl(path, refresh=True)
    for here, word in (("http://hr/a", "canary"), ("http://wiki/b", "robin")):
        links = [Link(url, url, anchor=word, exact=url) for url in (OWN, OPEN)]
        links += [Link(OPEN, OPEN, anchor="finch", exact=OPEN)] if word == "canary" else []
        crawl.store(here, Page(here, here, mime="text/html", body=word[:1].encode(), links=links))
    for url in (OWN, OPEN):
        text = url.removeprefix("http://")
        crawl.store(url, Page(url, url, mime="text/plain", body=text.encode(), text=text))
    crawl.end()
    return crawl


def restrict(path: Path, *hosts: str) -> None:
    """As a run that had credentials for these hosts would have."""
    manifest = path / "crawl.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"credentials": [*hosts]}))
