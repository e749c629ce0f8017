"""Starts the web application in a crawl, and says where; LARM_WEB=no: none."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings

from larmspider import options
from larmspider.errors import ConfigError

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

    from larmspider.web.server import Binding, Server

logger = logging.getLogger(__name__)


class WebExtension:
    """Serves while the spider is open."""

    files = ("web.token", "web.token.*", "web.json", "web.json.new")
    """In LARM_DIR."""

    def __init__(self, crawler: Crawler, binding: Binding) -> None:
        self.crawler, self.binding = crawler, binding
        self._server: Server | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not options.boolean(crawler.settings, "LARM_WEB"):
            raise NotConfigured
        try:
            from larmspider.web.server import Binding
        except ModuleNotFoundError as missing:
            raise ConfigError(
                f"LARM_WEB=yes needs the package {missing.name}, which pip install larmspider"
                " installs; LARM_WEB=no does without"
            ) from None
        extension = cls(crawler, Binding.from_settings(crawler.settings))
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    async def spider_opened(self) -> None:
        """A crawl goes on without the server if it cannot listen."""
        from larmspider.control.controller import LocalCrawl
        from larmspider.status.crawl_view import Source
        from larmspider.status.crawl_workers import note_server
        from larmspider.web.app import build
        from larmspider.web.auth import kept_token
        from larmspider.web.server import Server

        settings = BaseSettings()  # a copy that is not frozen: an operator may change the scope
        settings.update(self.crawler.settings)
        directory = options.larm_dir(settings)
        try:
            token = self.binding.token or kept_token(options.crawl_root(settings))
            live = LocalCrawl(self.crawler, settings, time.time())
            app = build(Source(directory, lambda _: settings, live), self.binding.guard(token))
            self._server = await Server.start(app, self.binding.address, self.binding.port)
            note_server(directory, self._server.url, token)
        except (ConfigError, OSError) as error:
            logger.error("The crawl continues without its web pages: %s", error)
        else:
            logger.info("Web pages of this crawl: %s", self._server.url)

    async def spider_closed(self) -> None:
        if self._server is not None:
            (options.larm_dir(self.crawler.settings) / "web.json").unlink(missing_ok=True)
            await self._server.stop()
            self._server = None
