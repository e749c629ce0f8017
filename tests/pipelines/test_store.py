"""larmspider/pipelines/store.py: foreign items through the chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import scrapy
from scrapy.crawler import Crawler
from scrapy.exceptions import DropItem

from larmspider.items import Link, Page
from larmspider.pipelines.link_log import LinkLogPipeline
from larmspider.pipelines.page_files import PageFilesPipeline
from larmspider.pipelines.store import as_page
from tests.crawling import records


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


def test_links_may_be_urls_mappings_or_links() -> None:
    """However a foreign spider names them."""
    links = ["http://a/", {"url": "http://b/", "anchor": "B", "rank": 1}, Link("http://c/")]
    page = as_page({"url": "http://h/", "links": links}, ("links",))
    assert page.links == [Link("http://a/"), Link("http://b/", anchor="B"), Link("http://c/")]


@pytest.mark.parametrize(
    ("store", "item", "message"),
    [
        (PageFilesPipeline, {"url": "http://h/"}, "PageFilesPipeline: .* dict has no field 'body'"),
        (PageFilesPipeline, {"body": b"x"}, "PageFilesPipeline: .* has no field 'url'"),
        (LinkLogPipeline, {"url": "http://h/"}, "LinkLogPipeline: .* has no field 'links'"),
        (LinkLogPipeline, {"url": "http://h/", "links": [7]}, "LinkLogPipeline: a link is int"),
    ],
)
def test_an_item_that_lacks_a_field_is_refused_by_name(
    crawler_for: Callable[..., Crawler], store: Any, item: dict[str, Any], message: str
) -> None:
    """The message names the store, the item's type and the field."""
    pipeline = store.from_crawler(crawler_for())
    pipeline.open_spider()
    with pytest.raises(DropItem, match=message):
        pipeline.process_item(item)
    pipeline.close_spider()


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
