"""A crawler for stores: settings, stats and signals, without an engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scrapy.crawler import Crawler
from scrapy.spiders import Spider
from scrapy.utils.test import get_crawler

from larmspider.settings import DOWNLOAD_MAXSIZE


@pytest.fixture
def crawler_for(tmp_path: Path) -> Callable[..., Crawler]:
    """Makes a crawler whose LARM_DIR is ``tmp_path``/crawl; keywords are settings."""

    def make(**settings: Any) -> Crawler:
        defaults = {"LARM_DIR": str(tmp_path / "crawl"), "DOWNLOAD_MAXSIZE": DOWNLOAD_MAXSIZE}
        crawler = get_crawler(Spider, settings_dict=defaults | settings)
        crawler.spider = Spider("test", start_urls=["http://h/"])
        return crawler

    return make
