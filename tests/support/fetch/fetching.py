"""Fetches with the download handler by itself, in an event loop of its own.

with Fetcher(DOWNLOAD_MAXSIZE=1000) as fetcher:
    response = fetcher.get("http://127.0.0.1:8000/")
    error = fetcher.failure("http://nowhere.invalid/")
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self, TypeVar

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from larmspider.fetch.curl_handler import CurlHandler
from larmspider.options import defaults

T = TypeVar("T")


class Fetcher:
    """``settings`` over ours and Scrapy's."""

    def __init__(self, **settings: Any) -> None:
        ours = {name: value for name, value in defaults().items() if name.startswith("DOWNLOAD_")}
        self.crawler: Crawler = get_crawler(Spider, settings_dict=ours | settings)
        self.crawler.spider = Spider("fetcher")

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self.handler = self.run(self._make)
        return self

    async def _make(self) -> CurlHandler:
        return CurlHandler.from_crawler(self.crawler)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.run(self.handler.close)
        self._runner.close()

    def run(self, function: Callable[[], Awaitable[T]]) -> T:
        """Call an async function in the loop of the handler."""

        async def call() -> T:
            return await function()

        return self._runner.run(call())

    def get(self, url: str, **options: Any) -> Response:
        """The Response, with its Request; ``options`` are the Request's."""
        return self.fetch(Request(url, **options))

    def fetch(self, request: Request) -> Response:
        response = self.run(lambda: self.handler.download_request(request))
        response.request = request
        return response

    def failure(self, url: str, **options: Any) -> Exception:
        """The error that the fetch ends with; AssertionError if it ends well."""
        try:
            response = self.get(url, **options)
        except Exception as error:  # noqa: BLE001 - whatever it is
            return error
        raise AssertionError(f"it was fetched: {response}")
