"""larmspider/pipelines/search_index.py: which pages are in the index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from scrapy.crawler import Crawler

from larmspider.index.search import Searcher
from larmspider.items import REDIRECT, Link, Page
from larmspider.pipelines.search_index import SearchIndexPipeline

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
