"""The headers of every request: DEFAULT_REQUEST_HEADERS and the User-Agent, made once.

It replaces Scrapy's DefaultHeadersMiddleware and UserAgentMiddleware, which normalize and encode
the headers again for each request (15 us a page).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.http.headers import Headers
from scrapy.utils.python import without_none_values

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler


class DefaultHeadersMiddleware:
    """Adds the headers that a request lacks."""

    def __init__(self, headers: Headers) -> None:
        self.headers = {name: tuple(values) for name, values in dict.items(headers)}

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        settings = crawler.settings
        headers = Headers(without_none_values(settings["DEFAULT_REQUEST_HEADERS"]))
        agent = getattr(crawler.spider, "user_agent", None) or settings["USER_AGENT"]
        if agent:
            headers.setdefault("User-Agent", agent)
        return cls(headers)

    def process_request(self, request: Request) -> None:
        headers = request.headers
        for name, values in self.headers.items():
            if not dict.__contains__(headers, name):  # names are normalized
                dict.__setitem__(headers, name, [*values])
