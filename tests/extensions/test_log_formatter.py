"""larmspider/extensions/tuning.py: no line for each page where nobody reads it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from larmspider.extensions.tuning import LarmLogFormatter


@pytest.mark.parametrize(
    ("level", "wanted"),
    [
        ("DEBUG", True),
        ("debug", True),
        (10, True),
        ("INFO", False),
        ("WARNING", False),
        (30, False),
    ],
)
def test_lines_for_each_page_are_made_for_level_debug(
    crawler_for: Callable[..., Crawler], level: object, wanted: bool
) -> None:
    crawler = crawler_for(LOG_LEVEL=level)
    assert crawler.spider is not None
    lines = LarmLogFormatter.from_crawler(crawler)
    request, response = Request("http://h/"), Response("http://h/")
    assert (lines.crawled(request, response, crawler.spider) is not None) is wanted
    assert (lines.scraped({}, response, crawler.spider) is not None) is wanted
