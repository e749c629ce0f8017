"""Tells the frontier the result of each fetch: success, failure of the host, or retry.

A downloader middleware in the place of Scrapy's RetryMiddleware. A fetch that may succeed later
goes back to its host's queue with backoff, and the spider never hears of it.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from larmspider import stats
from larmspider.errors import CrawlDirError
from larmspider.fetch.downloader import Stopped
from larmspider.fetch.errors import SignedOut, kind_of, message_of, retry_after
from larmspider.frontier.politeness import failure_kind
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.learned.revisits.revisiting import Purpose
from larmspider.scheduler.leases import elapsed, lease_of
from larmspider.scheduler.scheduler import WithScheduler

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.http import Response

    from larmspider.frontier.hosts import Lease

logger = logging.getLogger(__name__)


class AnswersMiddleware(WithScheduler):
    """Tells the frontier the result of each fetch. Requests without a lease are left alone."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        lease = lease_of(request)
        self._count_request(lease)
        if lease is None or lease.own is not None:
            return response
        scheduler, seconds = self.lessor, elapsed(request)
        if lease.unrendered is not None:
            return self._give_up(request, lease.unrendered)
        turned_away = scheduler.logins.turned_away(request, response)
        if isinstance(turned_away, SignedOut):
            return self._give_up(request, turned_away)
        if turned_away:
            scheduler.frontier.answered(lease, seconds)
            return scheduler.leases.release(request)
        kind = f"http-{response.status}"
        if not failure_kind(kind).blames_host:
            scheduler.frontier.answered(lease, seconds)
            return response
        wait = retry_after(response.headers.get("Retry-After"), time.time())
        again = self._retry(request, kind, wait)
        if again is None:
            scheduler.leases.release_slot(
                request, kind, wait
            )  # a last answer: it is a Page like any other
            return response
        return again

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        lease = lease_of(request)
        if not isinstance(exception, IgnoreRequest):  # else it was not sent
            self._count_request(lease)
        if lease is None or lease.own is not None:
            return None
        return self._failed(request, exception)

    def _count_request(self, lease: Lease | None) -> None:
        if self.scheduler is None or not self.scheduler.frontier.refresh.mode:
            return
        refresh = self.scheduler.frontier.refresh
        purpose = Purpose.OTHER if lease is None else refresh.purpose_of(lease)
        counters = self.crawler.stats
        assert counters is not None
        counters.inc_value(stats.REFRESH_SPENT.format(purpose=purpose))
        if lease is not None and lease.entry is not None and lease.entry.visit is not None:
            counters.inc_value(stats.REFRESH_REQUESTS)

    def _failed(self, request: Request, exception: Exception) -> Request | None:
        scheduler = self.lessor
        if isinstance(exception, Stopped):
            return scheduler.leases.release(request)
        if isinstance(exception, CrawlDirError):  # nothing is wrong with the page
            released = scheduler.leases.release(request)
            scheduler.break_off(f"a body cannot be written: {exception}")
            return released
        kind = kind_of(exception)
        ignored = isinstance(exception, IgnoreRequest)
        if not ignored and (again := self._retry(request, kind)) is not None:
            return again
        scheduler.leases.release_slot(request, "" if ignored else kind)
        if not _yields_the_failure(request, self.crawler.spider):
            state = UrlState.REFUSED if ignored else UrlState.FAILED
            reason = message_of(exception) if ignored else kind
            scheduler.leases.acknowledge(
                request, FetchRecord(state, time=time.time(), reason=reason)
            )
        return None

    def _give_up(self, request: Request, error: Exception) -> Request:
        """Ends the fetch of a useless answer. Raises the error, unless the URL is retried."""
        again = self._failed(request, error)
        if again is None:
            raise error
        return again

    def _retry(self, request: Request, kind: str, wait: float | None = None) -> Request | None:
        again = self.lessor.leases.retry(request, kind, wait)
        if again is not None:
            assert self.crawler.stats is not None
            self.crawler.stats.inc_value(stats.RETRIES)
            self.crawler.stats.inc_value(stats.RETRIES_KIND.format(kind=kind))
            logger.debug("Will be retried: %s (%s)", request.url, kind)
        return again


def _yields_the_failure(request: Request, spider: Spider | None) -> bool:
    """Whether its errback makes an item of the failure, whose way through the stores ends the
    lease. The output of another errback reaches no component: it passes no spider middleware."""
    return request.errback is not None and request.errback == getattr(spider, "fetch_failed", None)
