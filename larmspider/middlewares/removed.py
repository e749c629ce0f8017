"""Rejects the URLs that an operator has removed: removed.txt (workdir/removals.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from larmspider import options
from larmspider.items import Link, Page
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.canonical import Forms
from larmspider.workdir.removals import FILE, CurrentRemovals

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings


class RemovedFilter(UrlFilter):
    """Rejects URLs by the rules of removed.txt, at once after it has changed."""

    name = "removed"

    def __init__(self, removals: CurrentRemovals) -> None:
        self._removals = removals

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        removals = CurrentRemovals(options.crawl_root(settings))
        removals.get()
        return cls(removals)

    def reject_reason(self, url: str) -> str | None:
        return self._reason(Forms(url, url))

    def _reason(self, forms: Forms) -> str | None:
        return f"removed by the operator ({FILE})" if self._removals.get().has(forms) else None

    def reject_link(self, link: Link, page: Page) -> str | None:
        assert link.normalized is not None
        return self._reason(Forms(link.normalized, link.exact or link.normalized))

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        if not self._removals.get():
            return [None] * len(links)
        return [self.reject_link(link, page) for link in links]

    def reject_request(self, request: Request, normalized: str) -> str | None:
        return self._reason(Forms(normalized, request.meta.get("exact") or normalized))
