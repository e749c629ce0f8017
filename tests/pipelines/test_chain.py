"""larmspider/pipelines/store.py: an item goes from store to store."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import pytest
from scrapy.exceptions import DropItem
from scrapy.utils.test import get_crawler

from larmspider.pipelines.store import StorageChain


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
