"""Fetches robots.txt for the scheduler, and reads the answer as RFC 9309 2.3 does.

2xx                    the rules; of the body 500 KiB count, and no more are taken
3xx                    followed to any http or https URL, five times at most; then as 4xx
4xx                    no rules: everything is allowed
429, 5xx, no answer    unreachable: nothing is allowed for now, asked again with backoff
address refused        no rules: each page is refused then, for its address; where a redirect led
                       there, unreachable
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from scrapy import Request

from larmspider import signals, stats
from larmspider.fetch.downloader import Stopped
from larmspider.fetch.errors import DeniedAddress, kind_of, retry_after
from larmspider.frontier.robots import MAX_BYTES
from larmspider.requests import CUT_BYTES, LEASE
from larmspider.urls.resolve import location_of, resolve

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from larmspider.frontier.hosts import Lease
    from larmspider.scheduler.scheduler import FrontierScheduler

MAX_REDIRECTS = 5
"""RFC 9309 2.3.1.2."""
MAX_NAMED_BYTES = 64 * 1024 * 1024
"""Instead of DOWNLOAD_MAXSIZE: a file that says it is larger counts as unreachable."""
_SCHEMES = ("http://", "https://")
_HOPS = "larm_robots_hops"
_BEGAN = "larm_robots_began"


class RobotsFetch:
    """Makes the Requests and takes the answers, for one scheduler."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self.scheduler = scheduler

    def request(
        self, lease: Lease, url: str = "", hops: int = 0, began: float | None = None
    ) -> Request:
        """For the robots.txt of a lease, or for what that redirects to."""
        meta = {
            LEASE: lease,
            _HOPS: hops,
            _BEGAN: time.monotonic() if began is None else began,
            CUT_BYTES: MAX_BYTES + 1,  # one more, or nobody would see that it was cut
            "download_maxsize": MAX_NAMED_BYTES,
            "download_fail_on_dataloss": True,
            "dont_redirect": True,
            "handle_httpstatus_all": True,
        }
        return Request(
            url or lease.url,
            callback=self.answered,
            errback=self.failed,
            headers={"Accept-Encoding": "identity"},
            meta=meta,
            dont_filter=True,
        )

    def answered(self, response: Response, **kwargs: Any) -> None:
        lease = response.meta.pop(LEASE, None)
        if lease is None:
            return
        status, frontier = response.status, self.scheduler.frontier
        self._count(stats.ROBOTS_STATUS.format(status=status))
        seconds = time.monotonic() - response.meta[_BEGAN]
        if status == 429 or status >= 500:
            wait = retry_after(response.headers.get("Retry-After"), time.time())
            frontier.failed(lease, f"http-{status}", seconds, retry_after=wait)
        elif 300 <= status < 400 and self._follow(lease, response):
            return
        else:
            body = response.body if 200 <= status < 300 else b""
            sitemaps = frontier.robots_loaded(lease, body, seconds, str(status))
            if sitemaps:
                self.scheduler.crawler.signals.send_catch_log(
                    signals.sitemaps_found, host=lease.host.record.host, urls=list(sitemaps)
                )
        self.scheduler.end_robots(lease)

    def failed(self, failure: Failure) -> None:
        request: Request = failure.request  # type: ignore[attr-defined]
        lease = request.meta.pop(LEASE, None)
        if lease is None:
            return
        error, seconds = failure.value, time.monotonic() - request.meta[_BEGAN]
        assert error is not None
        if isinstance(error, Stopped):
            self.scheduler.frontier.release(lease)
        elif isinstance(error, DeniedAddress) and not request.meta[_HOPS]:
            self.scheduler.frontier.robots_loaded(lease, b"", seconds, "address")
        else:
            self._count(stats.ROBOTS_FAILED)
            self.scheduler.frontier.failed(lease, kind_of(error), seconds)
        self.scheduler.end_robots(lease)

    def _follow(self, lease: Lease, response: Response) -> bool:
        """Ask where the redirect leads; False if it leads nowhere, or was one too many."""
        hops = response.meta[_HOPS] + 1
        location = response.headers.get("Location") or b""
        url = resolve(response.url, location_of(location))
        if hops > MAX_REDIRECTS or not location or url is None or not url.startswith(_SCHEMES):
            return False
        self.scheduler.hand_out(self.request(lease, url, hops, response.meta[_BEGAN]))
        return True

    def _count(self, key: str) -> None:
        counters = self.scheduler.crawler.stats
        assert counters is not None
        counters.inc_value(key)
