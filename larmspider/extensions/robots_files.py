"""Keeps each robots.txt as it was read, so that a verdict can be explained line by line later.

crawl/robots/http_wiki.example_80.txt
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from scrapy import signals

from larmspider import options
from larmspider.crawl_dir import robots_name

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

MAX_BYTES = 512_000
"""RFC 9309 2.5 asks for 500 KiB at least."""


class RobotsFilesExtension:
    """Writes the body of every robots.txt that was parsed to LARM_DIR/robots/."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        extension = cls(options.larm_dir(crawler.settings) / "robots")
        crawler.signals.connect(extension.robots_parsed, signal=signals.robots_parsed)
        return extension

    def robots_parsed(self, robotparser: Any, request: Request) -> None:
        body = getattr(robotparser, "body", None)
        if isinstance(body, bytes):
            self.directory.mkdir(parents=True, exist_ok=True)
            (self.directory / f"{robots_name(request.url)}.txt").write_bytes(body[:MAX_BYTES])
