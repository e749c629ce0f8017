"""Fetches robots.txt for the scheduler, and reads the answer as RFC 9309 2.3 does.

2xx                    the rules; of the body 500 KiB count, and no more are taken
3xx                    followed five times at most (own_fetches.py); else as 4xx
4xx                    no rules: everything is allowed
429, 5xx, no answer    unreachable: nothing is allowed for now, fetched again with backoff
address refused        no rules: each page is refused then, for its address; where a redirect led
                       there, unreachable
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from larmspider import signals, stats
from larmspider.fetch.errors import DeniedAddress
from larmspider.frontier.robots import MAX_BYTES
from larmspider.learned.sources import ROBOTS
from larmspider.scheduler.own_fetches import OwnFetches, cut_at
from larmspider.urls.resolve import resolve

if TYPE_CHECKING:
    from scrapy.http import Response

    from larmspider.frontier.hosts import Lease


class RobotsFetch(OwnFetches):
    meta = cut_at(MAX_BYTES)
    accept = "identity"
    status_key = stats.ROBOTS_STATUS
    name = "robots.txt"
    unless_followed = "; everything is allowed"

    async def read(self, lease: Lease, response: Response) -> None:
        status, host = response.status, lease.host.record.host
        if status == 429 or status >= 500:
            self.end(lease, f"http-{status}")
            return
        body = response.body if 200 <= status < 300 else b""
        lines = self._loaded(lease, body, str(status))
        if sitemaps := [url for line in lines if (url := resolve(response.url, line))]:
            self.frontier.found_sources(sitemaps, ROBOTS, host)
            self.crawler.signals.send_catch_log(signals.sitemaps_found, host=host, urls=sitemaps)

    def unanswered(self, lease: Lease, error: BaseException) -> None:
        assert lease.own is not None
        if isinstance(error, DeniedAddress) and not lease.own.hops:
            self._loaded(lease, b"", "address")
        else:
            self._count(stats.ROBOTS_FAILED)
            super().unanswered(lease, error)

    def _loaded(self, lease: Lease, body: bytes, answer: str) -> Sequence[str]:
        assert lease.own is not None
        return self.frontier.robots_loaded(lease, body, lease.own.seconds, answer)
