"""Builds the parts of a crawl once and throws them away: what one of them would refuse is refused
before anything is deleted or started.

    check_components(crawler)       # ConfigError: restrict does not compile, a rule file is missing
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.exceptions import NotConfigured
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import build_from_crawler, load_object

from larmspider.extensions.preflight import PreflightExtension
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.pipelines.store import Store

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

_LISTS = ("SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES", "ITEM_PIPELINES", "EXTENSIONS")


def check_components(crawler: Crawler) -> None:
    """Filters and stores, which read their settings as they are built and open nothing, and all
    else of this project. Components of others are not built: what they do then is not known.

    ``crawler`` has its spider and stats, and is not to run afterwards. Raises ConfigError.
    """
    asyncio.run(_build_all(crawler))  # as in a crawl, an event loop is running


async def _build_all(crawler: Crawler) -> None:
    for name in _LISTS:
        listed = crawler.settings.get_component_priority_dict_with_base(name)
        for path in build_component_list(listed):
            component = load_object(path)
            if _is_ours(component):
                try:
                    build_from_crawler(component, crawler)
                except NotConfigured:
                    pass  # it is off


def _is_ours(component: object) -> bool:
    if not isinstance(component, type) or component is PreflightExtension:
        return False
    known = issubclass(component, (UrlFilter, Store))
    return known or component.__module__.startswith("larmspider.")
