"""Scrapy's robots middleware with our reading of robots.txt (frontier/robots.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.robotstxt import RobotParser

from larmspider.frontier.robots import RobotsRules

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class LarmRobotParser(RobotParser):
    """ROBOTSTXT_PARSER over RobotsRules; keeps the body for extensions/robots_files.py."""

    def __init__(self, body: bytes, user_agent: str) -> None:
        self.body = body
        self.rules = RobotsRules.parse(body, user_agent)

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Self:
        settings = crawler.settings
        return cls(robotstxt_body, settings["ROBOTSTXT_USER_AGENT"] or settings["USER_AGENT"])

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether our agent may fetch ``url``; ``user_agent`` is the one given at the start."""
        return self.rules.allowed(url if isinstance(url, str) else url.decode("latin-1"))
