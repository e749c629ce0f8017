"""The pass over the rights of servers, beside the crawl (pipelines/search_index.py)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from scrapy.crawler import Crawler
from scrapy.exceptions import DontCloseSpider

from larmspider import options
from larmspider.access.connected import ConnectedRights
from larmspider.access.lists import AccessList
from larmspider.access.rights import Checked
from larmspider.access.sources import Sources
from larmspider.access.table import AccessTable
from larmspider.items import Page
from larmspider.pipelines import search_index
from larmspider.pipelines.search_index import SearchIndexPipeline

URL = "smb://nas/s/a.txt"
HR = AccessList.simple(["group:hr"])


class Server(ConnectedRights):
    """A source with one server, which answers about its file once ``answers`` is set."""

    known: dict[object, AccessList] | None = None
    in_use = True  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self._readers["smb"] = self
        self.answers, self.asked = threading.Event(), threading.Event()

    def root_of(self, name: str) -> str:
        return "smb://nas/s/"

    def is_mounted(self, root: str) -> bool:
        return True

    def above(self, folder: str) -> list[tuple[str, AccessList]]:
        return []

    def files(self, folder: str, names: list[str]) -> Iterator[Checked]:
        self.asked.set()
        self.answers.wait(20)
        yield from (Checked(name, HR) for name in names)


def store_of(crawler: Crawler, server: Server) -> SearchIndexPipeline:
    assert crawler.stats is not None
    directory = options.larm_dir(crawler.settings) / "index"
    sources = Sources(connected=server)
    return SearchIndexPipeline(
        directory, 64_000_000, "english", crawler.stats, sources=sources, access_secs=0.0
    )


@pytest.fixture
def store(
    crawler_for: Callable[..., Crawler], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[SearchIndexPipeline, Server]]:
    """With a document of the server in the index."""
    monkeypatch.setattr(search_index, "PASS_SECS", 0.3)
    server, crawler = Server(), crawler_for()
    first = store_of(crawler, Server())
    first.open_spider().close()  # type: ignore[union-attr]
    first.write(Page(URL, URL, text="canary"))
    asyncio.run(first.close_spider())
    yield store_of(crawler, server), server
    server.answers.set()


def has_list(store: SearchIndexPipeline) -> bool:
    table = AccessTable(store.directory)
    table.refresh()
    return table.list_of(table.slot_of(URL) or 0) == HR


def test_a_server_that_answers_is_renewed_before_the_first_fetch(
    store: tuple[SearchIndexPipeline, Server],
) -> None:
    found, server = store

    async def run() -> None:
        server.answers.set()
        await found.open_spider()  # type: ignore[misc]
        assert has_list(found)
        await found.close_spider()

    asyncio.run(run())


def test_a_server_that_hangs_holds_up_no_fetch_no_checkpoint_and_no_end(
    store: tuple[SearchIndexPipeline, Server],
) -> None:
    found, server = store

    async def run() -> None:
        began = time.monotonic()
        await found.open_spider()  # type: ignore[misc]
        await found.commit()
        assert server.asked.is_set()
        await found.close_spider()
        assert time.monotonic() - began < 3
        server.answers.set()
        await asyncio.sleep(0.1)

    asyncio.run(run())
    assert not has_list(found)  # the index is closed


def test_the_end_of_a_crawl_waits_for_a_pass_that_goes_on(
    store: tuple[SearchIndexPipeline, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, server = store

    async def run() -> None:
        await found.open_spider()  # type: ignore[misc]
        monkeypatch.setattr(search_index, "PASS_SECS", 10.0)
        found._up_to_date = True  # the link texts
        with pytest.raises(DontCloseSpider):
            found.spider_idle()
        server.answers.set()
        while found._pass is not None or found._refresh is not None:
            await asyncio.sleep(0.05)
        assert has_list(found)
        while True:
            try:
                found.spider_idle()
            except DontCloseSpider:  # the link texts
                await asyncio.sleep(0.05)
                continue
            break
        await found.close_spider()

    found.stopping = lambda: False
    asyncio.run(asyncio.wait_for(run(), 15))
