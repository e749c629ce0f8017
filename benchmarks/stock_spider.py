"""Scrapy as it comes, for comparison: its scheduler, downloader, robots.txt and retries."""

from __future__ import annotations

from scrapy.linkextractors import LinkExtractor
from scrapy.spiders import CrawlSpider, Rule


class StockSpider(CrawlSpider):
    """Follows every link; stores nothing. ``seeds`` is a file with one URL a line, ``host`` the one
    that it stays on."""

    name = "stock"
    rules = (Rule(LinkExtractor(), follow=True),)
    custom_settings = {  # noqa: RUF012 - as Scrapy's own examples have it
        "SCHEDULER": "scrapy.core.scheduler.Scheduler",
        "DOWNLOADER": "scrapy.core.downloader.Downloader",
        "ROBOTSTXT_OBEY": True,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "DOWNLOAD_DELAY_JITTER": 0,  # or half of its gaps would be shorter than the delay
        "DOWNLOAD_TIMEOUT": 30,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "INFO",
    }

    def __init__(self, seeds: str, host: str | None = None) -> None:
        super().__init__()
        with open(seeds) as lines:  # noqa: PTH123
            self.start_urls = lines.read().split()
        if host:
            self.allowed_domains = [host]
