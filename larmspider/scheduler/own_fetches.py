"""Makes the Requests of the crawl's own, and takes the answers. A kind is a subclass: robots.txt
(robots_fetch.py), sitemaps and feeds (source_fetch.py), probes (probe_fetch.py), logins.

A redirect is followed five times at most, by http or https, to the same host (by the host rules, at
any port) or to a host that the frontier has. A server can therefore send the crawler only to hosts
that are crawled anyway, and never with the credentials that the sites file has for another host or
port.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from scrapy import Request

from larmspider.fetch.downloader import Stopped
from larmspider.fetch.errors import kind_of, retry_after
from larmspider.fetch.sites.lookup import origin_of
from larmspider.formatting import printable
from larmspider.frontier.hosts import name_of
from larmspider.frontier.storage.records import host_of
from larmspider.requests import CUT_BYTES, LEASE, NOTHING_SECRET, WITHOUT_SECRETS
from larmspider.urls.host_resolver import HostResolver, canonical_host
from larmspider.urls.normalizer import host_resolver_from_settings
from larmspider.urls.resolve import location_of, resolve
from larmspider.urls.schemes import DEFAULT_PORTS
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from twisted.python.failure import Failure

    from larmspider.frontier.hosts import Lease
    from larmspider.items import Page
    from larmspider.learned.learning import LearningFrontier
    from larmspider.scheduler.leases import Leases

logger = logging.getLogger(__name__)

MAX_REDIRECTS = 5
"""RFC 9309 2.3.1.2."""
MAX_NAMED_BYTES = 64 * 1024 * 1024
"""The limit in place of DOWNLOAD_MAXSIZE. A file that announces more counts as unreachable."""
_SCHEMES = ("http://", "https://")
_SHOWN = 300
"""Characters of a URL in the log."""


def cut_at(max_bytes: int) -> dict[str, int | bool]:
    """Request.meta for a body of which at most ``max_bytes`` are read."""
    return {
        CUT_BYTES: max_bytes + 1,  # one more shows that it was cut
        "download_maxsize": MAX_NAMED_BYTES,
        "download_fail_on_dataloss": True,
    }


class OwnFetches:
    """The own fetches of one kind. ``is_known_elsewhere``: whether another worker has a host; None
    for a crawl of one worker."""

    meta: ClassVar[Mapping[str, Any]] = {}
    """Added to the meta of each Request."""
    accept: ClassVar[str] = ""
    """The Accept-Encoding of each Request; "": as for pages."""
    status_key: ClassVar[str] = ""
    """The stats key that counts responses, by ``status``; "" for none."""
    answer_key: ClassVar[str] = ""
    """The stats key that counts fetches, by ``answer``; "" for none."""
    name: ClassVar[str] = ""
    """The name for the log; "" if no redirect is followed."""
    unless_followed: ClassVar[str] = ""
    """The consequence of a redirect that is not followed, for the log."""

    def __init__(
        self,
        crawler: Crawler,
        frontier: LearningFrontier,
        leases: Leases,
        is_known_elsewhere: Callable[[str], bool] | None = None,
    ) -> None:
        self.crawler, self.frontier, self.leases = crawler, frontier, leases
        self._is_known_elsewhere = is_known_elsewhere
        self._resolver: HostResolver | None = None

    def request(self, lease: Lease, url: str = "", *, secrets: bool = True) -> Request:
        """The Request for the URL of a lease, or for the ``url`` to which it redirects. Without
        ``secrets`` it has no credentials."""
        assert lease.own is not None
        lease.own.began = lease.own.began or time.monotonic()
        meta = {LEASE: lease, "dont_redirect": True, "handle_httpstatus_all": True, **self.meta}
        return Request(
            url or lease.url,
            callback=self.answered,
            errback=self.failed,
            headers={"Accept-Encoding": self.accept} if self.accept else None,
            meta=meta if secrets else meta | NOTHING_SECRET,
            dont_filter=True,
        )

    async def answered(self, response: Response, **kwargs: Any) -> AsyncIterator[Request]:
        if (lease := _take_back(response.meta)) is None:
            return
        assert lease.own is not None
        lease.own.retry_after = retry_after(response.headers.get("Retry-After"), time.time())
        if self.status_key:
            self._count(self.status_key.format(status=response.status))
        if self.name and 300 <= response.status < 400 and await self._follow(lease, response):
            return
        found = await self.read(lease, response)
        self.leases.end_own(lease)
        if found is not None:
            async for request in found:
                yield request

    def failed(self, failure: Failure) -> None:
        error = failure.value
        if (lease := _take_back(failure.request.meta)) is None:  # type: ignore[attr-defined]
            return
        if isinstance(error, Stopped):
            self.frontier.release(lease)
        else:
            assert error is not None
            self.unanswered(lease, error)
        self.leases.end_own(lease)

    async def read(self, lease: Lease, response: Response) -> AsyncIterator[Request] | None:
        """Call end(), and return the Requests that follow from the answer."""
        self.end(lease, f"http-{response.status}")
        return None

    def unanswered(self, lease: Lease, error: BaseException) -> None:
        """Call end() where there was no answer."""
        self.end(lease, kind_of(error))

    def end(self, lease: Lease, answer: str, *, entries: int = 0, page: Page | None = None) -> None:
        """Count the fetch; see Frontier.own_ended()."""
        if self.answer_key:
            self._count(self.answer_key.format(answer=answer))
        self.frontier.own_ended(lease, answer, entries=entries, page=page)

    # redirects

    async def _follow(self, lease: Lease, response: Response) -> bool:
        """Request the target of a redirect. Returns False, and logs it, if the redirect may not be
        followed."""
        own = lease.own
        assert own is not None
        own.hops += 1
        location = response.headers.get("Location") or b""
        url = resolve(response.url, location_of(location)) if location else None
        host = lease.host.record.host
        same = url is not None and self._is_same(host_of(url), host)
        why_not = ""
        if url is None:
            why_not = "its target is not a URL"
        elif not url.startswith(_SCHEMES):
            why_not = "only http and https are followed"
        elif own.hops > MAX_REDIRECTS:
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
        secrets = same and response.meta.get(WITHOUT_SECRETS) is None and _is_bound(lease.url, url)
        self.leases.hand_out(self.request(lease, url, secrets=secrets))
        return True

    def _is_same(self, host: str, other: str) -> bool:
        """Whether two names of hosts, with ports, are one host by LARM_HOST_RESOLVER_FILE."""
        if self._resolver is None:
            self._resolver = host_resolver_from_settings(self.crawler.settings)
        names = [canonical_host(name_of(one)) for one in (host, other)]
        resolved = {self._resolver.resolve(name) for name in names if name is not None}
        return None not in names and len(resolved) == 1

    async def _is_known(self, host: str) -> bool:
        """Whether the frontier has the host; with many workers, any worker's as of its last
        checkpoint."""
        if host in self.frontier.hosts:
            return True
        if self._is_known_elsewhere is None:
            return False
        return await asyncio.to_thread(self._is_known_elsewhere, host)

    def _count(self, key: str, number: int = 1) -> None:
        counters = self.crawler.stats
        assert counters is not None
        if number:
            counters.inc_value(key, number)


def _take_back(meta: dict[str, Any]) -> Lease | None:
    """Take back the lease of an OwnFetch that has succeeded or failed; None if the lease has
    ended."""
    lease: Lease | None = meta.pop(LEASE, None)
    if lease is not None and lease.own is not None:
        lease.own.seconds = time.monotonic() - lease.own.began
    return lease


def _is_bound(url: str, target: str) -> bool:
    """Whether a redirect within a host stays at its port, or goes from http to https. Another port
    may belong to another server, which must not get these credentials."""
    was, now = origin_of(url), origin_of(target)
    if was is None or now is None:
        return False
    return was[0::2] == now[0::2] or all(one[2] == DEFAULT_PORTS[one[0]] for one in (was, now))
