"""larmspider/pipelines/store.py: foreign items through the chain."""

from __future__ import annotations

import asyncio
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any

import pytest
import scrapy
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem
from scrapy.utils.test import get_crawler

from larmspider.items import FRAME, FailedFetch, Kept, Link, Page, Removed
from larmspider.pipelines.deleted_log import DeletedLogPipeline
from larmspider.pipelines.fetch_log import FetchLogPipeline
from larmspider.pipelines.link_log import LinkLogPipeline
from larmspider.pipelines.page_files import PageFilesPipeline
from larmspider.pipelines.store import StorageChain, as_page
from tests.support.crawling import records

LOGS = ("store.log", "links.log", "fetch.log")


class ScrapyItem(scrapy.Item):
    url = scrapy.Field()
    body = scrapy.Field()
    price = scrapy.Field()


@dataclass
class DataItem:
    url: str
    body: bytes
    price: int


@pytest.mark.parametrize(
    "item",
    [
        {"url": "http://h/", "body": b"x", "price": 1},
        ScrapyItem(url="http://h/", body=b"x", price=1),
        DataItem("http://h/", b"x", 1),
        {"url": "http://h/", "body": "x", "title": None},
    ],
)
def test_an_item_of_any_kind_is_read_as_a_page(item: Any) -> None:
    """Through itemadapter; what a Page has no field for is left out, None is a missing field."""
    assert as_page(item, ("url", "body")) == Page("http://h/", body=b"x")


def test_a_refusal_is_told_and_counted(
    crawler_for: Callable[..., Crawler], caplog: pytest.LogCaptureFixture
) -> None:
    """By store, URL and reason, a page's and an item's. No password is shown."""
    crawler = crawler_for(LARM_PAGEFILE_BYTES=9, DOWNLOAD_MAXSIZE=9)
    store = PageFilesPipeline.from_crawler(crawler)
    store.open_spider()
    body = b"x" * 10
    for item in ({"url": "http://u:secret@h/", "body": body}, Page("http://h/b", body=body)):
        with pytest.raises(DropItem):
            store.process_item(item)
    store.close_spider()
    why = "it has 10 bytes, a page file holds 9 (LARM_PAGEFILE_BYTES)"
    assert [record.getMessage() for record in caplog.records] == [
        f"PageFilesPipeline refuses http://h/: {why}",
        f"PageFilesPipeline refuses http://h/b: {why}",
    ]
    assert crawler.stats is not None
    assert crawler.stats.get_value("larm/stores/refused/PageFilesPipeline") == 2


def test_what_has_no_links_has_none_to_log(
    crawler_for: Callable[..., Crawler], tmp_path: Path
) -> None:
    """links.log needs a URL only: a foreign item goes on to the stores behind."""
    store = LinkLogPipeline.from_crawler(crawler_for())
    store.open_spider()
    item = {"url": "http://h/"}
    assert store.process_item(item) is item
    store.close_spider()
    assert (tmp_path / "crawl" / "links.log").read_bytes() == b""


@pytest.mark.parametrize(("kept", "lines"), [("distinct", "abcde"), ("all", "aabcdeab")])
def test_a_link_that_a_page_repeats_is_one_line(
    crawler_for: Callable[..., Crawler], tmp_path: Path, kept: str, lines: str
) -> None:
    """Where it is first; another text or type makes another link, and each page has its own."""
    a, b, c = Link("http://a/", anchor="A"), Link("http://b/"), Link("http://a/", anchor="other")
    d, e = Link("http://a/", type=FRAME, anchor="A"), Link("http://a/A", anchor="A")
    links, names = [a, a, b, c, d, e, a, b], {"a": a, "b": b, "c": c, "d": d, "e": e}
    crawler = crawler_for(LARM_LINK_LOG=kept)
    store = LinkLogPipeline.from_crawler(crawler)
    store.open_spider()
    store.write(Page("http://h/", links=links))
    store.write(Page("http://h/2", links=[a]))
    store.close_spider()
    written = records(tmp_path / "crawl" / "links.log")
    assert [(line["to-page"], line["anchor"], line["link-type"]) for line in written] == [
        (names[name].url, names[name].anchor, str(names[name].type)) for name in lines + "a"
    ]
    assert crawler.stats is not None
    assert crawler.stats.get_value("larm/link_log/links") == len(lines) + 1


def test_links_may_be_urls_mappings_or_links() -> None:
    """However a foreign spider names them."""
    links = [
        *("http://a/", {"url": "http://b/", "anchor": "B", "rank": 1}, Link("http://c/")),
        {"url": "http://d/", "anchor": None},
    ]
    page = as_page({"url": "http://h/", "links": links}, ("links",))
    assert page.links == [
        Link("http://a/"),
        Link("http://b/", anchor="B"),
        Link("http://c/"),
        Link("http://d/"),
    ]


@pytest.mark.parametrize(
    ("store", "item", "message"),
    [
        (PageFilesPipeline, {"url": "http://h/"}, "http://h/: .* dict has no field 'body'"),
        (PageFilesPipeline, {"body": b"x"}, "an item without a URL: .* has no field 'url'"),
        (PageFilesPipeline, {"url": "no URL", "body": b"x"}, "no URL: "),
        (LinkLogPipeline, {"url": "http://h/", "links": [7]}, "http://h/: a link is int"),
        (LinkLogPipeline, {"url": "http://h/", "links": [{"url": 7}]}, ".* a link's 'url' is int"),
        (
            LinkLogPipeline,
            {"url": "http://h/", "links": [{"url": "/a", "type": "x"}]},
            ".* a link's 'type' is str, not int",
        ),
        (FetchLogPipeline, {"url": "http://h/", "fetched": nan}, ".* 'fetched' is nan, not a"),
        (
            FetchLogPipeline,
            {"url": "http://h/", "fetched": 10**40},
            ".* 'fetched' is 253402300800.0, not",
        ),
        (FetchLogPipeline, {"url": "http://h/", "status": True}, ".* 'status' is bool, not int"),
        (FetchLogPipeline, {"url": "http://h/", "depth": 10**400}, ".* 'depth' is 1000"),
        (FetchLogPipeline, {"url": "http://h/", "depth": -1}, ".* 'depth' is -1, not a number"),
    ],
)
def test_an_item_that_lacks_a_field_goes_on_to_the_next_store(
    crawler_for: Callable[..., Crawler],
    caplog: pytest.LogCaptureFixture,
    store: Any,
    item: dict[str, Any],
    message: str,
) -> None:
    """Each is counted; the first of a type has a line with the store, the type and the field."""
    crawler = crawler_for()
    pipeline = store.from_crawler(crawler)
    pipeline.open_spider()
    for _ in range(2):
        assert pipeline.process_item(item) is item
    pipeline.close_spider()
    (told,) = [record.getMessage() for record in caplog.records]
    assert re.match(f"{store.__name__} does not store {message}", told), told
    assert crawler.stats is not None
    assert crawler.stats.get_value(f"larm/stores/passed/{store.__name__}") == 2


def test_no_log_has_a_password(crawler_for: Callable[..., Crawler], tmp_path: Path) -> None:
    """Of a page, where it was found, its links and what failed, whoever made the item."""
    url, found_on = "http://joe:secret@h/a", "http://joe:secret@h/"
    links = [Link("http://joe:secret@[bad"), Link("ftp://joe:secret@h/")]
    page = Page(url, "http://h/a", from_page=found_on, links=links)
    failed = FailedFetch(url, "http://h/a", found_on, 0, 0, "dns", "", 0.0)
    foreign = {"url": url, "from_page": found_on, "body": b"x", "links": [found_on]}
    for kind in (PageFilesPipeline, LinkLogPipeline, FetchLogPipeline):
        store = kind.from_crawler(crawler_for())
        store.open_spider()
        for item in (page, failed, foreign):
            store.process_item(item)
        store.close_spider()
    written = {name: (tmp_path / "crawl" / name).read_text() for name in LOGS}
    assert not [name for name, text in written.items() if "joe" in text or "secret" in text]
    assert written["store.log"].startswith("http://h/\thttp://h/a\t")
    assert written["links.log"].splitlines() == [
        "http://h/a\thttp://[bad\t\t0\t",
        "http://h/a\tftp://h/\t\t0\t",
        "http://h/a\thttp://h/\thttp://h/\t0\t",
    ]
    assert written["fetch.log"].count("\thttp://h/a\thttp://h/a\thttp://h/\t") == 3


def test_links_log_has_larms_five_columns(
    crawler_for: Callable[..., Crawler], tmp_path: Path
) -> None:
    """Every link, rejected ones too, in the order of the page."""
    store = LinkLogPipeline.from_crawler(crawler_for())
    store.open_spider()
    links = [
        Link("http://H/A", "http://h/a", anchor="to A", rejected_by="scope"),
        Link("mailto:x", anchor="tab\there", type=0),
        Link("http://h/f", "http://h/f", type=1),
    ]
    store.process_item(Page("http://h/", links=links))
    store.close_spider()
    assert [list(line.values()) for line in records(tmp_path / "crawl" / "links.log")] == [
        ["http://h/", "http://H/A", "http://h/a", "0", "to A"],
        ["http://h/", "mailto:x", "", "0", "tab here"],
        ["http://h/", "http://h/f", "http://h/f", "1", ""],
    ]


def test_links_of_a_foreign_item_have_a_canonical_form(
    crawler_for: Callable[..., Crawler], tmp_path: Path
) -> None:
    """As those of a Page; whole seconds are a time like others."""
    item = {"url": "http://h/", "links": ["http://H/A/index.html", "mailto:x"], "fetched": 5}
    for kind in (LinkLogPipeline, FetchLogPipeline):
        store = kind.from_crawler(crawler_for())
        store.open_spider()
        store.process_item(item)
        store.close_spider()
    lines = records(tmp_path / "crawl" / "links.log")
    assert [line["to-page-normalized"] for line in lines] == ["http://h/a/", ""]
    assert records(tmp_path / "crawl" / "fetch.log")[0]["time"] == "1970-01-01T00:00:05.000Z"


# larmspider/pipelines/store.py: an item goes from store to store.


class Same:
    def process_item(self, item: Any) -> Any:
        item["same"] = True
        return item


class Other:
    def process_item(self, item: Any) -> Any:
        return {**item, "other": True}


class Coroutine:
    async def process_item(self, item: Any) -> Any:
        await asyncio.sleep(0)
        return {**item, "coroutine": True}


class Dropping:
    def process_item(self, item: Any) -> Any:
        raise DropItem("no")


class WantsTheSpider:
    """As pipelines were written for older versions of Scrapy."""

    def process_item(self, item: Any, spider: Any) -> Any:
        return {**item, "spider": spider.name}


def run(*pipelines: Any) -> Any:
    crawler = get_crawler()
    crawler.spider = crawler._create_spider("one")

    async def process() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Scrapy tells authors of the last kind
            chain = StorageChain(*pipelines, crawler=crawler)
        return await chain.process_item_async({})

    return asyncio.run(process())


def test_runs_every_kind_of_pipeline_in_order() -> None:
    """An item may come back itself, as another one, or later; foreign pipelines do all of that."""
    assert run(Same(), Other(), Coroutine()) == {"same": True, "other": True, "coroutine": True}
    assert run(Same(), WantsTheSpider()) == {"same": True, "spider": "one"}


def test_a_dropped_item_goes_no_further() -> None:
    with pytest.raises(DropItem):
        run(Dropping(), Same())


@pytest.mark.parametrize(
    ("kind", "status", "result"),
    [("not-modified", 304, "304"), ("same", 200, "same"), ("missing", 404, "404"),
     ("timeout", 0, "timeout"), ("same", 404, "404"), ("login", 403, "login")],
)  # fmt: skip
def test_a_page_that_stays_has_a_line_in_fetch_log_and_nowhere_else(
    kind: str, status: int, result: str, crawler_for: Callable[..., Crawler], tmp_path: Path
) -> None:
    crawler = crawler_for()
    kinds = (PageFilesPipeline, LinkLogPipeline, FetchLogPipeline, DeletedLogPipeline)
    stores = [one.from_crawler(crawler) for one in kinds]
    for store in stores:
        store.open_spider()
        store.process_item(Kept("http://h/a", "http://h/a", None, "", 0, 1, kind, "", 5.0, status))
        store.process_item(Removed("http://h/gone", "http://h/gone", "404, three times", 6.0))
        store.close_spider()
    (line,) = records(tmp_path / "crawl" / "fetch.log")
    assert (line["result"], line["message"]) == (result, f"kept: {kind}")
    (line,) = records(tmp_path / "crawl" / "deleted.log")
    assert (line["time"], line["reason"]) == ("1970-01-01T00:00:06.000Z", "404, three times")
    assert not (tmp_path / "crawl" / "pagefile_0.pfl").read_bytes()
