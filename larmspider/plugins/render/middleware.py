"""Pages of hosts that the sites file marks with ``render`` go through Chromium (browser.py).

The crawl itself fetches the requests of a page that is being rendered. Like other requests they
have to be in scope, must not act while signed in, need the permission of robots.txt and
LARM_DENY_ADDRESSES, and wait for their host's turn. A host that is new to the crawl, or to this
worker, gets no request. Origins other than the page's get no credentials, unless the site's
``render_origins`` name them (same_origin.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Self

from scrapy import Request, signals
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse
from scrapy.utils.defer import maybe_deferred_to_future

from larmspider import signals as larm_signals
from larmspider import stats
from larmspider.fetch.downloader import Stopped
from larmspider.fetch.errors import TooBig
from larmspider.fetch.limits import RenderLimits
from larmspider.fetch.sites.lookup import Origin, Sites, origin_of
from larmspider.fetch.sites.model import origin_text
from larmspider.formatting import printable
from larmspider.frontier.hosts import Host, HostState
from larmspider.frontier.storage.records import host_of
from larmspider.plugins.render.browser import Browser, NotRendered, find_browser
from larmspider.plugins.render.same_origin import FRAME, Asking, is_script
from larmspider.requests import NOTHING_SECRET, VALIDATORS
from larmspider.scheduler.leases import lease_of
from larmspider.scheduler.scheduler import WithScheduler
from larmspider.urls.resolve import location_of, resolve

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response

logger = logging.getLogger(__name__)

MAX_HOPS = 5
"""Redirects of one request of a page."""
KEPT_BYTES = 32_000_000
"""Scripts that are kept for further pages."""
MAX_TOLD = 20
"""Warnings about hosts that get requests of pages without credentials."""


class RenderMiddleware(WithScheduler):
    def __init__(self, crawler: Crawler, sites: Sites, browser: Browser) -> None:
        super().__init__(crawler)
        self.sites, self.browser = sites, browser
        self._kept: OrderedDict[tuple[str, str, str], Response] = OrderedDict()
        """Kept scripts, by Asking.shares."""
        self._kept_bytes = 0
        self._told: set[tuple[Origin, Origin]] = set()
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        sites = Sites.from_settings(crawler.settings)
        if not sites.renders:
            raise NotConfigured
        limits = RenderLimits.from_settings(crawler.settings)
        middleware = cls(crawler, sites, Browser(find_browser(), limits))
        crawler.signals.connect(middleware.browser.close, signal=signals.spider_closed)
        crawler.signals.connect(middleware.let_go, signal=larm_signals.let_go)
        return middleware

    async def process_response(self, request: Request, response: Response) -> Response:
        lease = lease_of(request)
        site = self.sites.for_url(request.url)
        if (
            lease is None
            or lease.own is not None
            or site is None
            or not site.options.render
            or request.method != "GET"
            or response.status != 200
            or not isinstance(response, HtmlResponse)
        ):
            return response
        began = time.monotonic()
        try:
            allowed = site.options.render_origins or ()
            group = self.lessor.group_of(host_of(request.url))
            rendered = await self.browser.render(response, self._answer, allowed, group)
        except (NotRendered, Stopped) as error:
            self._count("failed", int(isinstance(error, NotRendered)))
            lease.unrendered = error
            return response
        finally:
            # later steps measure the time of the host, not of the browser
            started = request.meta.get("download_started", began)
            request.meta["download_started"] = started + time.monotonic() - began
        self._count("pages")
        self._count("requests", rendered.requests)
        if rendered.cut:
            self._count("cut")
            limits = ", ".join(rendered.cut)
            logger.warning("Rendering of %s ended by %s", printable(request.url), limits)
        response.headers["Content-Type"] = "text/html; charset=utf-8"
        for name in ("ETag", "Last-Modified"):  # they describe a shell that hardly ever changes
            response.headers.pop(name, None)
        request.meta[VALIDATORS] = {}
        page = response.replace(body=rendered.html.encode("utf-8", "replace"), encoding="utf-8")
        page.headers = response.headers  # a copy knows nothing of the fetch
        return page

    def let_go(self) -> None:
        """The crawl stops: pages that are being rendered go back to their queues."""
        self._closing = self.browser.stop()

    async def _answer(
        self, asking: Asking, headers: dict[str, str], bytes_left: Callable[[], int]
    ) -> Response | None:
        for _ in range(MAX_HOPS + 1):
            url, key = asking.url, asking.shares
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            host = self.lessor.frontier.hosts.get(host_of(url)) if url.startswith("http") else None
            if (why := self._why_not(url, host)) or host is None:
                self._refused(url, why)
                return None
            await self._turn(host)
            if (left := bytes_left()) <= 0:
                raise TooBig("other answers have used up LARM_RENDER_BYTES")
            request = _request(asking, headers, left)
            self._tell_without(asking)
            try:
                fetched = self.crawler.engine.downloader.fetch(request)
                found = await maybe_deferred_to_future(fetched)
            except Exception as error:
                self._refused(url, str(error))
                if isinstance(error, TooBig):
                    raise
                return None
            assert not isinstance(found, Request)
            location = found.headers.get("Location")
            if not (300 <= found.status < 400 and location):
                self._keep(key, found)
                return found
            target = resolve(url, location_of(location)) or ""
            if not target.startswith(("http://", "https://")):
                self._refused(url, "its redirect does not lead to a web page")
                return None
            asking.redirected(target)
            if asking.kind == FRAME and asking.crossed:
                return found
        return None

    def _why_not(self, url: str, host: Host | None) -> str:
        """Why ``url`` is not requested; "" if only the last check may still refuse it."""
        frontier = self.lessor.frontier
        if host is None or (frontier.robots.obeyed and not host.record.robots_until):
            return "this crawl does not know its host"
        if host.paused or host.record.state in (HostState.SNOOZED, HostState.PARKED):
            return "its host is left alone"
        if not frontier.robots.of(host.record.host).allowed(url):
            return "robots.txt does not allow it"
        return ""

    async def _turn(self, host: Host) -> None:
        """Wait until the host may get a request, and take its turn."""
        frontier, record = self.lessor.frontier, host.record
        while (wait := self._next_time(host) - frontier.clock()) > 0:
            await asyncio.sleep(wait)
        now = frontier.clock()
        record.next_time = now + frontier.politeness.gap_seconds(record)
        if host.group is not None:
            host.group.asked(host, now)
        frontier.hosts.touch(host)
        frontier.reschedule(host)

    def _next_time(self, host: Host) -> float:
        gap = self.lessor.frontier.politeness.gap_seconds(host.record)
        shared = 0.0 if host.group is None else host.group.last + gap
        return max(host.record.next_time, shared)

    def _keep(self, key: tuple[str, str, str], response: Response) -> None:
        if key not in self._kept and response.status == 200 and is_script(response.headers):
            self._kept[key] = response
            self._kept_bytes += len(response.body)
            while self._kept_bytes > KEPT_BYTES:
                self._kept_bytes -= len(self._kept.popitem(last=False)[1].body)

    def _tell_without(self, asking: Asking) -> None:
        """Warn about a host with credentials that gets a request without them, once for each host
        of pages."""
        at, page = origin_of(asking.url), asking.page
        if (
            asking.with_credentials
            or not asking.by_page
            or at is None
            or page is None
            or at == page
        ):
            return
        pair = page, at
        if pair in self._told or len(self._told) >= MAX_TOLD:
            return
        site = self.sites.for_url(asking.url)
        if site is not None and site.options.sends_credentials:
            self._told.add(pair)
            logger.warning(
                "Pages of %s ask %s. They get what it shows without credentials, unless"
                " render_origins names it (docs/sites.md)",
                *map(origin_text, pair),
            )

    def _refused(self, url: str, why: str) -> None:
        self._count("refused")
        logger.debug("Not asked while a page was rendered: %s: %s", printable(url[:300]), why)

    def _count(self, event: str, number: int = 1) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(stats.RENDER.format(event=event), number)


def _request(asking: Asking, headers: dict[str, str], max_bytes: int) -> Request:
    meta = {"download_maxsize": max_bytes, "dont_redirect": True, "handle_httpstatus_all": True}
    if not asking.with_credentials:
        meta |= NOTHING_SECRET
    if asking.sent_origin:
        headers = headers | {"Origin": asking.sent_origin}
    return Request(asking.url, headers=headers, meta=meta, dont_filter=True)
