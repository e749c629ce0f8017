"""The storage chain at work: hands an item from store to store.

Scrapy's own manager makes a coroutine of what each pipeline returns and waits for it. A store of
ours returns the item at once, so here only what is no item yet is waited for.
"""

from __future__ import annotations

from typing import Any

from scrapy.pipelines import ItemPipelineManager
from scrapy.utils.defer import ensure_awaitable


class StorageChain(ItemPipelineManager):
    """ITEM_PROCESSOR; runs any pipeline, coroutine or not."""

    async def process_item_async(self, item: Any) -> Any:
        if self._mw_methods_requiring_spider:  # pipelines written for older versions of Scrapy
            return await super().process_item_async(item)
        for process in self.methods["process_item"]:
            assert process is not None
            returned = process(item)
            item = returned if returned is item else await ensure_awaitable(returned)
        return item
