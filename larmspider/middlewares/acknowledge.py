"""Acknowledgement: a URL has its final state when its Page has passed every store, and not before.

    every store has it           stored (failed, if its status is 404, 503, ...)
    a store dropped it           refused, with the reason
    a store or the spider raised failed, with the error
    a store cannot write         none: the crawl breaks off, and fetches it again when resumed
    no answer, attempts spent    failed, with the kind
    a revisit                    unchanged, or as revisits.py found

The outermost spider middleware: a spider's whole output for a response passes here last.
"""

from __future__ import annotations

import errno
import time
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request, signals
from scrapy.http import Response

from larmspider import signals as larm_signals
from larmspider.errors import CrawlDirError
from larmspider.frontier.ending import GiveBack, LookAgain, Merge, Output, Revisited
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.items import FailedFetch, Page, Requisite
from larmspider.requests import LEASE
from larmspider.scheduler.leases import lease_of
from larmspider.scheduler.scheduler import WithScheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})


class AcknowledgeMiddleware(WithScheduler):
    """Listens to the outcomes of items and ends their leases."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        middleware = cls(crawler)
        connect = crawler.signals.connect
        connect(middleware.item_scraped, signal=signals.item_scraped)
        connect(middleware.item_dropped, signal=signals.item_dropped)
        connect(middleware.item_error, signal=signals.item_error)
        connect(middleware.spider_error, signal=signals.spider_error)
        return middleware

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        lease, request = lease_of(response), response.request
        if lease is None or lease.own is not None or request is None:
            async for item in result:
                yield item
            return
        output, scheduler = Output(), self.lessor
        lease.output = output
        async for item in result:
            if not isinstance(item, Request):
                await scheduler.gate.wait()
                if scheduler.broken and not output.items:
                    # nothing is stored any more: this page is fetched again by the next run
                    scheduler.leases.release(request)
                    return
                output.items += 1
            elif LEASE in item.meta:  # made with meta=response.meta, or the same Request again
                item = item.copy()
                del item.meta[LEASE]
            yield item
        output.complete = True
        if not output.items or isinstance(lease.ending, GiveBack | LookAgain):
            self._end(request, output.worst or visit_of(response))

    def item_scraped(self, item: Any, response: Response | Failure | None) -> None:
        if (request := _leased(response)) is None:
            return
        if isinstance(request.meta[LEASE].ending, Revisited):
            self._item_ended(response, FetchRecord(UrlState.STORED))
        elif isinstance(item, Page):
            self._end(request, visit_of_page(item))
        elif isinstance(item, Requisite):
            failed = FetchRecord(UrlState.FAILED, time=item.page.fetched, reason=item.failed)
            self._end(request, failed if item.failed else visit_of_page(item.page))
        elif isinstance(item, FailedFetch):
            refused = item.kind in ("scope", "ignored")
            state = UrlState.REFUSED if refused else UrlState.FAILED
            reason = item.message if refused else item.kind
            self._end(request, FetchRecord(state, time=item.fetched, reason=reason))
        elif isinstance(response, Response):
            self._item_ended(response, visit_of(response))

    def item_dropped(
        self, item: Any, response: Response | Failure | None, exception: BaseException
    ) -> None:
        self._item_ended(response, _ended(response, UrlState.REFUSED, str(exception)))

    def item_error(self, item: Any, response: Response | Failure | None, failure: Failure) -> None:
        error = failure.value
        full = isinstance(error, OSError) and error.errno in _FULL
        if full or isinstance(error, CrawlDirError):
            # nothing is wrong with the page: it is fetched again when there is room
            if (request := _leased(response)) is not None:
                self.lessor.leases.release(request)
            self.lessor.break_off(f"a store cannot write: {error}")
            return
        self._item_ended(response, _ended(response, UrlState.FAILED, f"a store raised {error!r}"))

    def spider_error(self, response: Response | Failure | None, failure: Failure) -> None:
        reason = f"the spider raised {failure.value!r}"
        if (request := _leased(response)) is not None:
            self._end(request, _ended(response, UrlState.FAILED, reason))

    def _item_ended(self, response: Response | Failure | None, visit: FetchRecord) -> None:
        """One item is through; the URL is done when all that the response gave are."""
        if (request := _leased(response)) is None:
            return
        if (output := request.meta[LEASE].output) is not None:
            output.items -= 1
            if visit.state is not UrlState.STORED:
                output.worst = visit
            if output.items or not output.complete:
                return
            visit = output.worst or visit
        self._end(request, visit)

    def _end(self, request: Request, visit: FetchRecord) -> None:
        """The fetch is over, unless it was before."""
        scheduler, lease = self.lessor, lease_of(request)
        leases, merger = scheduler.leases, scheduler.frontier.merger
        is_stored = visit.state is UrlState.STORED
        match lease and lease.ending:
            case GiveBack():
                leases.release(request)
            case LookAgain(seconds):
                leases.look_again(request, seconds)
            case Merge(page, message, merged) if is_stored:
                self.crawler.signals.send_catch_log(
                    larm_signals.page_copied, page=page, message=message
                )
                leases.merge(request, merged)
                scheduler.wake()
            case Revisited(record) if is_stored:
                leases.revisited(request, record)
            case _:
                leases.acknowledge(request, visit)
        if merger.wants_turn:
            scheduler.wake()


def _leased(response: Response | Failure | None) -> Request | None:
    """The Request of a response or failure, if its lease has not ended."""
    request: Request | None = getattr(response, "request", None)
    return request if lease_of(request) is not None else None


def _ended(response: Response | Failure | None, state: UrlState, reason: str) -> FetchRecord:
    visit = visit_of(response) if isinstance(response, Response) else FetchRecord(state)
    visit.state, visit.reason = state, " ".join(reason.split())[:300]
    visit.time = visit.time or time.time()
    return visit


def visit_of_page(page: Page) -> FetchRecord:
    """The frontier's record of a page. An error (404, 503 at last) has failed, although its body
    is in the page files."""
    kind = f"http-{page.status}"
    failed = page.status >= 400
    return FetchRecord(
        UrlState.FAILED if failed else UrlState.STORED,
        time=page.fetched,
        status=page.status,
        etag=page.etag,
        last_modified=page.last_modified,
        digest=bytes.fromhex(page.digest) + page.fingerprint,
        reason=kind if failed else "",
        signature=page.signature,
        link_signature=page.link_signature,
    )


def visit_of(response: Response) -> FetchRecord:
    """The same for a response whose items are a foreign spider's own."""
    header = response.headers.get
    return FetchRecord(
        UrlState.STORED,
        time=time.time(),
        status=response.status,
        etag=(header("ETag") or b"").decode("latin-1"),
        last_modified=(header("Last-Modified") or b"").decode("latin-1"),
    )
