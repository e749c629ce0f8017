"""New hosts that hang give up their places to hosts that are new or quick.

Of a host that has never answered nobody knows how long it holds a place. While others wait for one,
its first fetch may take LARM_PROBE_SECS. What takes longer is let go: that is no failure, but the
host is slow from then on (places.py), and asked again with all the time there is. So five hosts
that are well, behind a hundred that trickle, wait for 100 / places seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from scrapy.utils.asyncio import call_later

from larmspider import stats
from larmspider.fetch.downloader import LarmDownloader
from larmspider.frontier.lease import Lease

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

AGAIN_SECS = 0.25
"""Between two looks whether others wait."""
NEXT_SECS = 0.005
"""The same while a fetch is being let go."""


class Probes:
    """``others_wait``: does a host that is new or quick find no place?"""

    def __init__(self, crawler: Crawler, secs: float, others_wait: Callable[[], bool]) -> None:
        self.crawler, self.secs, self._others_wait = crawler, secs, others_wait
        self._cut: Lease | None = None

    def watch(self, lease: Lease, request: Request) -> Request:
        """``request`` is the first to a new host, if ``lease`` says so. What is no GET may have
        done its work by then: it goes on."""
        if lease.is_probe and request.method == "GET":
            call_later(self.secs, self._look, lease)
        return request

    def _look(self, lease: Lease) -> None:
        if lease.holding is None or lease.host.record.hold is not None:
            return  # it was answered or failed, or another fetch from its host was
        if self._cut is not None and self._cut.holding is not None:
            call_later(NEXT_SECS, self._look, lease)  # a place is about to be free
        elif self._others_wait() and self._cancel(lease):
            self._cut, lease.overdue = lease, True
            assert self.crawler.stats is not None
            self.crawler.stats.inc_value(stats.SCHEDULER_PROBES_CUT)
        else:
            call_later(AGAIN_SECS, self._look, lease)

    def _cancel(self, lease: Lease) -> bool:
        downloader: object = self.crawler.engine.downloader
        return isinstance(downloader, LarmDownloader) and downloader.cancel(lease)
