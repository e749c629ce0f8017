"""Visited: each canonical URL once (http://h/Index.html and http://h/ are one page)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from larmspider.items import REDIRECT, Link, Page
from larmspider.middlewares.url_filter import UrlFilter

if TYPE_CHECKING:
    from scrapy import Request


class VisitedFilter(UrlFilter):
    """Rejects a URL it has seen before, and remembers the others. The one filter with a memory,
    so it stands last: what another filter rejects is not remembered."""

    name = "visited"

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def reject_reason(self, url: str) -> str | None:
        if url in self.seen:
            return "known"
        self.seen.add(url)
        return None

    def reject_link(self, link: Link, page: Page) -> str | None:
        if link.type == REDIRECT and link.normalized == page.normalized and link.url != page.url:
            # http://h/index.html -> http://h/ : the same page by our comparison, but only the
            # target has its content; LARM_MAX_REDIRECTS ends a ring of such redirects
            return None
        assert link.normalized is not None
        return self.reject_reason(link.normalized)

    def reject_request(self, request: Request, normalized: str) -> str | None:
        reason = self.reject_reason(normalized)
        return None if request.dont_filter else reason
