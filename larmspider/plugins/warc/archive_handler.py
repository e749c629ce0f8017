"""DOWNLOAD_HANDLERS of `scrapy import`: answers from an archive in place of servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.http import Headers
from scrapy.responsetypes import responsetypes

from larmspider.fetch import errors
from larmspider.fetch.blobs import Room, folder_of
from larmspider.fetch.in_thread import in_thread
from larmspider.fetch.limits import Limits
from larmspider.fetch.sites.lookup import Sites
from larmspider.plugins.warc.archives import Archive
from larmspider.requests import BLOB, TIMING, VALIDATORS, WITHOUT_SECRETS

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response


class ArchiveHandler:
    """Answers by the ``archive`` of the spider."""

    lazy = True
    asks_servers = False
    """No name is looked up for it (fetch/dns.py)."""

    def __init__(self, archive: Archive, room: Room, sites: Sites | None = None) -> None:
        self._archive, self._room, self._sites = archive, room, sites or Sites()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        limits = Limits.from_settings(crawler.settings)
        folder = folder_of(crawler.settings, limits)
        room = Room(limits.document_bytes, limits.blob_bytes, folder)
        sites = Sites.from_settings(crawler.settings)
        return cls(crawler.spider.archive, room, sites)  # type: ignore[union-attr]

    async def download_request(self, request: Request) -> Response:
        """Raises BadResponse, TooBig, CrawlDirError."""
        site = self._sites.for_url(request.url) if WITHOUT_SECRETS in request.meta else None
        if site is not None and site.options.sends_credentials:
            raise errors.BadResponse("an archive does not know what its server shows to everybody")
        capture = self._archive.find(request.url)
        if capture is None:
            raise errors.BadResponse("the archive has no such page")
        source = capture.source
        answer = await in_thread(lambda: source.read(capture, self._room))
        if answer.blob is not None:
            request.meta[BLOB] = answer.blob
        headers = Headers()
        for name, value in answer.headers:
            headers.appendlist(name, value)
        request.meta["download_latency"] = 0.0
        request.meta[TIMING] = dict.fromkeys(("dns", "connect", "tls", "first_byte", "total"), 0.0)
        request.meta[VALIDATORS] = {}
        cls = responsetypes.from_args(headers=headers, url=request.url, body=answer.body)
        return cls(request.url, answer.status, headers=headers, body=answer.body)

    async def close(self) -> None:
        """Nothing is open."""
