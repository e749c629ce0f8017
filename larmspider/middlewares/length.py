"""URLs that grow without end (http://h/a/?back=/a/%3Fback=...): no longer than URLLENGTH_LIMIT."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.items import Link, Page
from larmspider.middlewares.url_filter import UrlFilter

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings


class LengthFilter(UrlFilter):
    """Rejects URLs of more than ``limit`` characters as they would be fetched; 0: no limit."""

    name = "length"

    def __init__(self, limit: int) -> None:
        self.limit = limit

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls(options.integer(settings, "URLLENGTH_LIMIT", minimum=0))

    def reject_reason(self, url: str) -> str | None:
        if 0 < self.limit < len(url):
            return f"{len(url)} characters, at most {self.limit} (URLLENGTH_LIMIT)"
        return None

    def reject_link(self, link: Link, page: Page) -> str | None:
        return self.reject_reason(link.url)

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        limit = self.limit or inf
        return [None if len(link.url) <= limit else self.reject_reason(link.url) for link in links]

    def reject_request(self, request: Request, normalized: str) -> str | None:
        return self.reject_reason(request.url)
