"""Fetches with the download handler by itself, in an event loop of its own.

with Fetcher(DOWNLOAD_MAXSIZE=1000) as fetcher:
    response = fetcher.get("http://127.0.0.1:8000/")
    error = fetcher.failure("http://nowhere.invalid/")
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pycurl
import pytest
from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response
from scrapy.utils.test import get_crawler

from larmspider.fetch.curl_handler import CurlHandler
from larmspider.fetch.sites.curl import apply_site
from larmspider.fetch.sites.lookup import Sites, read_sites_file
from larmspider.options import defaults
from tests.support.servers.scripted import Reply

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


# A fetch by pycurl alone, with a sites file and without the download handler.


CANARY = "canary-7d1f"
E_PROXY = 97
"""CURLE_PROXY, which pycurl does not name."""


@dataclass
class BareCurl:
    """A minimal fetch: one easy handle, one sites file; what is not set is libcurl's default."""

    folder: Path
    curl: pycurl.Curl = field(default_factory=pycurl.Curl)
    sites: Sites = field(default_factory=Sites)

    def configure(self, text: str) -> None:
        path = self.folder / "sites.toml"
        path.write_text(text)
        self.sites = read_sites_file(path)

    def get(self, url: str, headers: tuple[str, ...] = (), *, forget: bool = True) -> str:
        """Body of the page, after "status "; raises pycurl.error. ``forget``: a handle as new."""
        body = BytesIO()
        if forget:
            self.curl.reset()
        self.curl.setopt(pycurl.URL, url)
        self.curl.setopt(pycurl.TIMEOUT, 20)
        self.curl.setopt(pycurl.WRITEFUNCTION, body.write)
        self.curl.setopt(pycurl.HTTPHEADER, list(headers))
        site = self.sites.for_url(url)
        if site is not None:
            apply_site(self.curl, site, url, [line.encode() for line in headers])
        self.curl.perform()
        return f"{self.curl.getinfo(pycurl.RESPONSE_CODE)} {body.getvalue().decode()}".strip()


@contextmanager
def fails(*codes: int) -> Iterator[None]:
    """The fetch fails with one of libcurl's error codes, whose text holds no secret."""
    with pytest.raises(pycurl.error) as caught:
        yield
    assert caught.value.args[0] in codes, caught.value
    assert CANARY not in str(caught.value)


def echo(request: object) -> Reply:
    return Reply(body=b"ok")
