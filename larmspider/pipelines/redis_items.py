"""Items as scrapy-redis's RedisPipeline writes them: JSON, one object an item, bytes in base64.

    ITEM_PIPELINES["scrapy_redis.pipelines.RedisPipeline"] = 600     # into <spider>:items

For REDIS_ITEMS_SERIALIZER; scrapy-redis's own serializer cannot write the body of a page.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from scrapy.utils.serialize import ScrapyJSONEncoder

from larmspider.items import Page
from larmspider.pipelines.feeds import page_record


class _Encoder(ScrapyJSONEncoder):
    def default(self, o: Any) -> Any:
        return b64encode(o).decode("ascii") if isinstance(o, bytes) else super().default(o)


def serialize(item: Any) -> str:
    """``item`` with all its fields, a Page's body too."""
    return _Encoder().encode(page_record(item) if isinstance(item, Page) else item)
