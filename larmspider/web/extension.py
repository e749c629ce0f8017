"""WebExtension starts the web application in a crawl; LARM_WEB=no turns it off.

The import of aiohttp takes 0.15 s, so a crawl with LARM_WEB=no never imports it.
"""

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

SOCKET = "web.sock"
"""In LARM_DIR, with LARM_WEB_SOCKET."""


class WebExtension:
    """Serves while the spider is open."""

    files = ("web.token", "web.token.*", "web.json", "web.json.new", "web.sock")

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
        """Start the server; if it cannot listen, the crawl continues without it."""
        from larmspider.control.controller import LocalController
        from larmspider.status.crawl_view import Source
        from larmspider.status.crawl_workers import write_server_file
        from larmspider.web.auth import stored_token
        from larmspider.web.server import Server

        settings = BaseSettings()  # a copy that is not frozen: an operator may change the scope
        settings.update(self.crawler.settings)
        directory = options.larm_dir(settings)
        try:
            token = self.binding.token or stored_token(options.crawl_root(settings))
            controller = LocalController(self.crawler, settings, time.time())
            source = Source(directory, lambda _: settings, controller)
            guard = self.binding.guard(token, source)
            app = self.binding.app(source, guard)
            name = SOCKET if options.boolean(settings, "LARM_WEB_SOCKET") else ""
            if name:
                self._server = await Server.start_at_socket(app, directory / name)
            else:
                self._server = await Server.start(app, self.binding.address, self.binding.port)
            write_server_file(directory, self._server.url, token, guard.key, socket=name)
        except (ConfigError, OSError) as error:
            logger.error("The crawl continues without its web pages: %s", error)
        else:
            logger.info("Web pages of this crawl: %s", name or self._server.url)

    async def spider_closed(self) -> None:
        if self._server is not None:
            for name in ("web.json", SOCKET):
                (options.larm_dir(self.crawler.settings) / name).unlink(missing_ok=True)
            await self._server.stop()
            self._server = None
