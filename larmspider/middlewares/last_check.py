"""The last check before a fetch, as a downloader middleware: is this URL really in scope, and does
it only show something on hosts with a login?

The filters see every seed, link and Request of a spider's callbacks. Other Requests are only seen
here: redirects that Scrapy's own middleware follows for a foreign spider, or Requests of its
errback. They are checked before they are queued, so that no robots.txt of a host outside the scope
is fetched, and once more before the fetch.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.http.request import NO_CALLBACK

from larmspider import stats
from larmspider.errors import InvalidURL
from larmspider.fetch.errors import Disallowed, OutOfScope
from larmspider.fetch.sites.lookup import Sites
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.items import REQUISITE
from larmspider.middlewares.known_paths import acts_signed_in
from larmspider.middlewares.normalize import from_the_web
from larmspider.middlewares.scope import ScopeFilter
from larmspider.scheduler.leases import lease_of
from larmspider.scheduler.scheduler import scheduler_of
from larmspider.urls.normalizer import normalizer_from_settings

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector


_ALWAYS = (FetchKind.ROBOTS, FetchKind.LOGIN)
"""Own fetches whose URLs may act."""


class LastCheckMiddleware:
    """Refuses a request out of scope. Requests for robots.txt and for a login pass. A request for a
    sitemap or feed is refused only if its URL acts."""

    def __init__(
        self,
        crawler: Crawler,
        scope: ScopeFilter,
        normalize: Callable[[str], str],
        counters: StatsCollector,
        sites: Sites | None = None,
    ) -> None:
        self.crawler = crawler
        self.scope = scope
        self.normalize = normalize
        self.counters = counters
        self.sites = sites if sites is not None and sites.has_logins else None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        assert crawler.stats is not None
        normalize = normalizer_from_settings(crawler.settings)
        sites = Sites.from_settings(crawler.settings)
        middleware = cls(crawler, ScopeFilter.build(crawler), normalize, crawler.stats, sites)
        crawler.signals.connect(middleware.request_scheduled, signal=signals.request_scheduled)
        return middleware

    def request_scheduled(self, request: Request) -> None:
        """Raises IgnoreRequest, at which Scrapy does not queue the Request."""
        try:
            self.process_request(request)
        except OutOfScope as error:
            lease = lease_of(request)
            if lease is not None and lease.holder is request:
                scheduler = scheduler_of(self.crawler)
                assert scheduler is not None  # there is a lease, so there is a frontier
                visit = FetchRecord(UrlState.REFUSED, time=time.time(), reason=str(error))
                scheduler.leases.acknowledge(request, visit)
            raise

    def process_request(self, request: Request) -> None:
        lease = lease_of(request)
        own = None if lease is None else lease.own
        if request.callback is NO_CALLBACK or own is not None:
            if own is not None and own.kind not in _ALWAYS and self.sites is not None:
                self._refuse(acts_signed_in(request.url, self.sites))
            return
        if lease is not None and lease.disallowed:
            raise Disallowed("no longer allowed by robots.txt")
        try:
            # not meta["normalized"]: a redirected request inherits its source's
            normalized = self.normalize(request.url)
            entry = None if lease is None else lease.entry
            is_requisite = entry is not None and entry.link_type == REQUISITE
            reason = None if is_requisite else self.scope.reject_reason(normalized)
            reason = reason or from_the_web(request, normalized)
            if reason is None and self.sites is not None:
                reason = acts_signed_in(request.url, self.sites)
        except InvalidURL as error:
            reason = str(error)
        self._refuse(reason)

    def _refuse(self, reason: str | None) -> None:
        if reason is not None:
            self.counters.inc_value(stats.LAST_CHECK_REJECTED)
            raise OutOfScope(f"out of scope: {reason}")
