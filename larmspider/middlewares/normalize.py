"""URL normalization, the first step: URLs without a canonical form (mailto:, http://[) stop here.

A link of a web page to a file, or to a server with a connector, also stops here, so that a
web server cannot make the crawl read files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from larmspider.items import Link, Page
from larmspider.middlewares.url_filter import UrlFilter
from larmspider.urls.file_urls import FileRoots, is_file
from larmspider.urls.schemes import is_same_source, is_source

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.settings import BaseSettings

FROM_THE_WEB = "a page of the web names a file"
FROM_ELSEWHERE = "a document of one source names a document of another source"


class NormalizeFilter(UrlFilter):
    """Rejects a link that names no page, no file and nothing that a connector reads.

    FilterMiddleware makes the canonical form of each link for its first filter, which is this one,
    and keeps it in Link.normalized and Request.meta["normalized"]. The original URL is fetched.
    """

    name = "normalize"

    def __init__(self, *, files: bool = False) -> None:
        """``files``: whether files may be crawled. If not, every link to a file is rejected."""
        self._files = files

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        return cls(files=bool(FileRoots.from_settings(settings)))

    def reject_links(self, links: Sequence[Link], page: Page) -> list[str | None]:
        return [_why_not(link.normalized or "", page.url, self._files) for link in links]

    def reject_request(self, request: Request, normalized: str) -> str | None:
        return from_the_web(request, normalized)


def from_the_web(request: Request, normalized: str) -> str | None:
    """Why a file is not read that a page, a sitemap or a redirect of the web names."""
    if not is_source(normalized):
        return None
    before = [request.meta.get("from_page"), *request.meta.get("redirect_urls", ())]
    return next(filter(None, (_why_not(normalized, url) for url in before if url)), None)


def _why_not(url: str, page: str, files: bool = True) -> str | None:
    """Why a page may not lead to ``url``."""
    if not is_source(url) or is_same_source(url, page) or (is_file(url) and not files):
        return None
    return FROM_ELSEWHERE if is_source(page) else FROM_THE_WEB
