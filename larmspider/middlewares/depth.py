"""Depth: at most DEPTH_LIMIT links from a seed, and no endless chain of redirects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.items import REDIRECT, Link, Page
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.requests import origin_of

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings


class DepthFilter(UrlFilter):
    """Rejects links of pages at depth ``limit`` (0: no limit, as in Scrapy), and a redirect after
    ``max_redirects`` in a row. A redirect is not a step: its target has its source's depth."""

    name = "depth"

    def __init__(self, limit: int, max_redirects: int) -> None:
        self.limit = limit
        self.max_redirects = max_redirects

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls(
            options.integer(settings, "DEPTH_LIMIT", minimum=0),
            options.integer(settings, "LARM_MAX_REDIRECTS", minimum=0),
        )

    def reject_link(self, link: Link, page: Page) -> str | None:
        if link.type == REDIRECT:
            if page.redirects >= self.max_redirects:
                return f"after {page.redirects} redirects in a row (LARM_MAX_REDIRECTS)"
        elif 0 < self.limit <= page.depth:
            return self._too_deep()
        return None

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        deep = 0 < self.limit <= page.depth
        return [
            self.reject_link(link, page) if deep or link.type == REDIRECT else None
            for link in links
        ]

    def reject_request(self, request: Request, normalized: str) -> str | None:
        depth = origin_of(request).get("depth", 0)
        return self._too_deep() if 0 < self.limit < depth else None

    def _too_deep(self) -> str:
        return f"deeper than {self.limit} links from a seed (DEPTH_LIMIT)"
