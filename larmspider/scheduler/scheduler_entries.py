"""Requests become entries of the frontier, and entries become Requests again.

A page Request of ours is its URL and where it was found. Any other one (callback, method, body,
meta) is packed with its entry, and comes out as it went in.
"""

from __future__ import annotations

import logging
import time
import uuid
from typing import TYPE_CHECKING

from larmspider.frontier.hosts import Lease
from larmspider.frontier.storage.records import Entry, url_key
from larmspider.items import FailedFetch
from larmspider.requests import (
    LEASE,
    SAME_PAGE,
    SEED,
    is_page_request,
    normalized_of,
    origin_of,
    pack_request,
    page_request,
    unpack_request,
)
from larmspider.urls.normalizer import normalizer_from_settings

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler

    from larmspider.frontier.frontier import Frontier


logger = logging.getLogger(__name__)

_SECRETS = frozenset({b"Authorization", b"Proxy-Authorization"})


class Entries:
    """Of one crawl."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._normalize = normalizer_from_settings(crawler.settings)
        self._warned = False

    @property
    def spider(self) -> Spider:
        assert self.crawler.spider is not None
        return self.crawler.spider

    def of(self, request: Request, frontier: Frontier) -> Entry:
        """What is queued for a Request. ValueError: it cannot be kept, and why."""
        normalized = normalized_of(request, self._normalize)
        payload = (
            b"" if is_page_request(request, self.spider) else pack_request(request, self.spider)
        )
        entry = frontier.entry(request.url, normalized, payload=payload, **origin_of(request))
        if payload and not self._warned and not _SECRETS.isdisjoint(request.headers):
            self._warned = True
            logger.warning(
                "A Request to %s has credentials in its headers, which LARM_DIR/frontier keeps in"
                " the clear: LARM_SITES_FILE is the place for them (docs/sites.md)",
                entry.host,
            )
        if request.dont_filter and payload and not request.meta.get(SEED):
            entry.key = url_key(f"{normalized}#{uuid.uuid4().hex}")
        elif request.meta.get(SAME_PAGE):
            entry.key = url_key(f"{normalized}#{entry.redirects}")
        elif request.method != "GET" or request.body:
            fingerprint = self.crawler.request_fingerprinter.fingerprint(request)
            entry.key = url_key(f"{normalized}#{fingerprint.hex()}")
        if payload:
            entry.priority = min(0xFFFF, max(0, entry.priority - request.priority))
        return entry

    def request(self, lease: Lease) -> Request:
        """The Request of a leased entry. ValueError: what was packed cannot be made again."""
        entry = lease.entry
        assert entry is not None
        if entry.payload:
            request = unpack_request(entry.payload, self.spider)
        else:
            request = page_request(
                self.spider,
                entry.url,
                normalized=entry.normalized,
                from_page=entry.from_page,
                link_type=entry.link_type,
                depth=entry.depth,
                redirects=entry.redirects,
            )
        request.meta[LEASE] = lease
        lease.holder = request
        return request


def refused_by_robots(entry: Entry) -> FailedFetch:
    """What fetch.log says of a URL that robots.txt does not allow."""
    return FailedFetch(
        url=entry.url,
        normalized=entry.normalized,
        from_page=entry.from_page,
        link_type=entry.link_type,
        depth=entry.depth,
        kind="robots",
        message="not allowed by robots.txt",
        fetched=time.time(),
    )
