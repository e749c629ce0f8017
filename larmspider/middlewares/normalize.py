"""URL normalization, the first step: URLs without a canonical form (mailto:, http://[) stop here.

A link of a web page to a file also stops here: no server chooses which files are read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from larmspider.items import Link, Page
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.file_urls import SCHEME, FileRoots, is_file

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings

FROM_THE_WEB = "a page of the web names a file"


class NormalizeFilter(UrlFilter):
    """Rejects a link that is not an http, https or file URL.

    FilterMiddleware makes the canonical form of each link for its first filter, which is this one,
    and keeps it in Link.normalized and Request.meta["normalized"]. The original URL is fetched.
    """

    name = "normalize"

    def __init__(self, *, files: bool = False) -> None:
        """``files``: whether any may be crawled; else they are out of scope, wherever they are
        named."""
        self._files = files

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls(files=bool(FileRoots.from_settings(settings)))

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        if not self._files or is_file(page.url):
            return [None] * len(links)
        return [
            FROM_THE_WEB if (link.normalized or "").startswith(SCHEME) else None for link in links
        ]

    def reject_request(self, request: Request, normalized: str) -> str | None:
        return from_the_web(request, normalized)


def from_the_web(request: Request, normalized: str) -> str | None:
    """Why a file is not asked for that a page, a sitemap or a redirect of the web names."""
    if not is_file(normalized):
        return None
    before = [request.meta.get("from_page"), *request.meta.get("redirect_urls", ())]
    return FROM_THE_WEB if any(url and not is_file(url) for url in before) else None
