"""larmspider/extensions/tuning.py: the collector's set-up while a spider is open."""

from __future__ import annotations

import gc
from collections.abc import Callable

from scrapy.crawler import Crawler

from larmspider.extensions.tuning import THRESHOLDS, GarbageExtension


def test_what_was_loaded_is_set_aside_until_the_spider_closes(
    crawler_for: Callable[..., Crawler],
) -> None:
    extension = GarbageExtension.from_crawler(crawler_for())
    before = gc.get_threshold()
    extension.spider_opened()
    try:
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold() == THRESHOLDS
    finally:
        extension.spider_closed()
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before
