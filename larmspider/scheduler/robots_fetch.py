"""Fetches robots.txt for the scheduler, and reads the answer as RFC 9309 2.3 does.

2xx                    the rules; of the body 500 KiB count, and no more are taken
3xx                    followed five times at most, by http or https, to the same host (by the host
                       rules, at any port) or to a host that the frontier has; else as 4xx
4xx                    no rules: everything is allowed
429, 5xx, no answer    unreachable: nothing is allowed for now, asked again with backoff
address refused        no rules: each page is refused then, for its address; where a redirect led
                       there, unreachable

A server that is crawled can so make the crawler ask none but hosts that are crawled anyway, and
never with the credentials that the sites file has for another host or port.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from scrapy import Request

from larmspider import signals, stats
from larmspider.fetch.errors import DeniedAddress, kind_of, retry_after
from larmspider.fetch.sites.lookup import origin_of
from larmspider.formatting import printable
from larmspider.frontier.hosts import name_of
from larmspider.frontier.robots import MAX_BYTES
from larmspider.frontier.sources import ROBOTS
from larmspider.frontier.storage.records import host_of
from larmspider.requests import CUT_BYTES, LEASE, NOTHING_SECRET, WITHOUT_SECRETS
from larmspider.urls.host_pattern import DEFAULT_PORTS
from larmspider.urls.host_resolver import HostResolver, canonical_host
from larmspider.urls.normalizer import host_resolver_from_settings
from larmspider.urls.resolve import location_of, resolve
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from larmspider.frontier.hosts import Lease
    from larmspider.scheduler.scheduler import FrontierScheduler

logger = logging.getLogger(__name__)

MAX_REDIRECTS = 5
"""RFC 9309 2.3.1.2."""
MAX_NAMED_BYTES = 64 * 1024 * 1024
"""Instead of DOWNLOAD_MAXSIZE: a file that says it is larger counts as unreachable."""
_SCHEMES = ("http://", "https://")
_SHOWN = 300
"""Characters of a URL in the log."""
_HOPS = "larm_robots_hops"
_BEGAN = "larm_robots_began"


def began_at(message: Request | Response) -> float:
    """When the first of a row of redirects was asked, by time.monotonic()."""
    began: float = message.meta[_BEGAN]
    return began


class RobotsFetch:
    """Makes the Requests and takes the answers, for one scheduler. What is fetched otherwise by the
    same rules is a subclass (source_fetch.py)."""

    max_bytes = MAX_BYTES
    """What follows is not read."""
    accept = "identity"
    name = "robots.txt"
    unless_followed = "; everything is allowed"
    """What that means, in the log."""

    def __init__(self, scheduler: FrontierScheduler) -> None:
        self.scheduler = scheduler
        self._resolver: HostResolver | None = None

    def request(
        self,
        lease: Lease,
        url: str = "",
        hops: int = 0,
        began: float | None = None,
        *,
        secrets: bool = True,
    ) -> Request:
        """For the robots.txt of a lease, or for what that redirects to. Without ``secrets`` nothing
        is sent that proves who we are."""
        meta = {
            LEASE: lease,
            _HOPS: hops,
            _BEGAN: time.monotonic() if began is None else began,
            CUT_BYTES: self.max_bytes + 1,  # one more, or nobody would see that it was cut
            "download_maxsize": MAX_NAMED_BYTES,
            "download_fail_on_dataloss": True,
            "dont_redirect": True,
            "handle_httpstatus_all": True,
        }
        if not secrets:
            meta |= NOTHING_SECRET
        return Request(
            url or lease.url,
            callback=self.answered,
            errback=self.failed,
            headers={"Accept-Encoding": self.accept},
            meta=meta,
            dont_filter=True,
        )

    async def answered(self, response: Response, **kwargs: Any) -> Any:
        lease = response.meta.pop(LEASE, None)
        if lease is None:
            return
        status, frontier = response.status, self.scheduler.frontier
        self._count(stats.ROBOTS_STATUS.format(status=status))
        seconds = time.monotonic() - response.meta[_BEGAN]
        if status == 429 or status >= 500:
            wait = retry_after(response.headers.get("Retry-After"), time.time())
            frontier.failed(lease, f"http-{status}", seconds, retry_after=wait)
        elif 300 <= status < 400 and await self._follow(lease, response):
            return
        else:
            body = response.body if 200 <= status < 300 else b""
            lines = frontier.robots_loaded(lease, body, seconds, str(status))
            sitemaps = [url for line in lines if (url := resolve(response.url, line))]
            if sitemaps:
                frontier.found_sources(sitemaps, ROBOTS, lease.host.record.host)
                self.scheduler.crawler.signals.send_catch_log(
                    signals.sitemaps_found, host=lease.host.record.host, urls=sitemaps
                )
        self.scheduler.end_own(lease)

    def failed(self, failure: Failure) -> None:
        if (found := self.scheduler.failed_own(failure)) is None:
            return
        lease, request, error = found
        seconds = time.monotonic() - request.meta[_BEGAN]
        if isinstance(error, DeniedAddress) and not request.meta[_HOPS]:
            self.scheduler.frontier.robots_loaded(lease, b"", seconds, "address")
        else:
            self._count(stats.ROBOTS_FAILED)
            self.scheduler.frontier.failed(lease, kind_of(error), seconds)
        self.scheduler.end_own(lease)

    async def _follow(self, lease: Lease, response: Response) -> bool:
        """Ask where the redirect leads; False if it may not be followed, which the log says."""
        hops = response.meta[_HOPS] + 1
        location = response.headers.get("Location") or b""
        url = resolve(response.url, location_of(location)) if location else None
        host = lease.host.record.host
        same = url is not None and self._is_same(host_of(url), host)
        why_not = ""
        if url is None:
            why_not = "it leads to no URL"
        elif not url.startswith(_SCHEMES):
            why_not = "only http and https are followed"
        elif hops > MAX_REDIRECTS:
            why_not = f"it is one redirect more than {MAX_REDIRECTS}"
        elif not same and not await self._is_known(host_of(url)):
            why_not = "this crawl has no page of that host"
        target = without_userinfo(url) if url is not None else location.decode("utf-8", "replace")
        logger.info(
            "%s of %s redirects to %s: %s",
            self.name,
            host,
            printable(target[:_SHOWN]),
            f"not followed, as {why_not}{self.unless_followed}" if why_not else "followed",
        )
        if why_not or url is None:
            return False
        began = response.meta[_BEGAN]
        secrets = same and response.meta.get(WITHOUT_SECRETS) is None and _is_bound(lease.url, url)
        self.scheduler.hand_out(self.request(lease, url, hops, began, secrets=secrets))
        return True

    def _is_same(self, host: str, other: str) -> bool:
        """Whether two names of hosts, with ports, are one host by LARM_HOST_RESOLVER_FILE."""
        if self._resolver is None:
            self._resolver = host_resolver_from_settings(self.scheduler.crawler.settings)
        names = [canonical_host(name_of(one)) for one in (host, other)]
        resolved = {self._resolver.resolve(name) for name in names if name is not None}
        return None not in names and len(resolved) == 1

    async def _is_known(self, host: str) -> bool:
        """Whether the frontier has the host; with many workers, any worker's as of its last
        checkpoint."""
        scheduler = self.scheduler
        if host in scheduler.frontier.hosts:
            return True
        if scheduler.worker is None:
            return False
        return await asyncio.to_thread(scheduler.worker.is_known_host, host)

    def _count(self, key: str, number: int = 1) -> None:
        counters = self.scheduler.crawler.stats
        assert counters is not None
        if number:
            counters.inc_value(key, number)


def _is_bound(url: str, target: str) -> bool:
    """Whether a redirect to another URL of the same host keeps to its port, or goes from http to
    https: another port may be another server's, and its credentials are for those who ask there."""
    was, now = origin_of(url), origin_of(target)
    if was is None or now is None:
        return False
    return was[0::2] == now[0::2] or all(one[2] == DEFAULT_PORTS[one[0]] for one in (was, now))
