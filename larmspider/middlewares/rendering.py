"""Pages of hosts that the sites file marks with ``render`` go through the plugin render."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.exceptions import NotConfigured

from larmspider import plugin
from larmspider.fetch.sites.lookup import Sites

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class RenderMiddleware:
    """The plugin's class of this name, if a site needs rendering."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Any:
        if not Sites.from_settings(crawler.settings).renders:
            raise NotConfigured
        return plugin.load("render.middleware").RenderMiddleware.from_crawler(crawler)
