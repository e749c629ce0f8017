"""Acknowledgement: a URL has its final state when its Page has passed every store, and not before.

    every store has it           stored (failed, if its status is 404, 503, ...)
    a store dropped it           refused, with the reason
    a store or the spider raised failed, with the error
    a store cannot write         none: the crawl breaks off, and fetches it again when resumed
    no answer, attempts spent    failed, with the kind
    a visit again                as it was, or as revisits.py found

The outermost spider middleware: a spider's whole output for a response passes here last.
"""

from __future__ import annotations

import errno
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from scrapy import Request, signals
from scrapy.http import Response

from larmspider import signals as larm_signals
from larmspider.errors import CrawlDirError
from larmspider.frontier.storage.records import FetchRecord, UrlState
from larmspider.items import FailedFetch, Page, Requisite
from larmspider.requests import COPY, GIVE_BACK, LEASE, LOOK_AGAIN, REVISITED
from larmspider.scheduler.scheduler import WithScheduler

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from twisted.python.failure import Failure

    from larmspider.frontier.hosts import Lease
    from larmspider.frontier.trials import Copy

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})


@dataclass(slots=True)
class _Output:
    """What one response gave: items not yet through the stores, and how the worst of the others
    ended."""

    items: int = 0
    complete: bool = False
    worst: FetchRecord | None = None


class AcknowledgeMiddleware(WithScheduler):
    """Listens to what becomes of items and settles their leases."""

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._outputs: dict[Lease, _Output] = {}

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
        lease = response.meta.get(LEASE)
        if lease is None or lease.own is not None:
            async for item in result:
                yield item
            return
        output = self._outputs[lease] = _Output()
        async for item in result:
            if not isinstance(item, Request):
                scheduler = self.lessor
                await scheduler.gate.wait()
                if scheduler.broken and response.request is not None and not output.items:
                    # nothing is stored any more: this page is fetched again by the next run
                    self._outputs.pop(lease, None)
                    scheduler.leases.release(response.request)
                    return
                output.items += 1
            elif LEASE in item.meta:  # made with meta=response.meta, or the same Request again
                item = item.copy()
                del item.meta[LEASE]
            yield item
        output.complete = True
        if response.meta.pop(GIVE_BACK, False) and response.request is not None:
            self._outputs.pop(lease, None)
            self.lessor.leases.release(response.request)
        elif (later := response.meta.pop(LOOK_AGAIN, 0.0)) and response.request is not None:
            self._outputs.pop(lease, None)
            self.lessor.leases.look_again(response.request, later)
        elif not output.items and COPY in response.meta and response.request is not None:
            self._outputs.pop(lease, None)
            self._merge(response.request, *response.meta.pop(COPY))
        elif not output.items:
            self._settle(response.request, output.worst or visit_of(response))

    def _merge(self, request: Request, page: Page, copy: Copy) -> None:
        self.crawler.signals.send_catch_log(
            larm_signals.page_copied, page=page, message=copy.message
        )
        self.lessor.leases.merge(request, copy.merged)
        self.lessor.wake()

    def item_scraped(self, item: Any, response: Response | Failure | None) -> None:
        request = _leased(response)
        if request is None:
            return
        if REVISITED in request.meta:
            self._end(response, FetchRecord(UrlState.STORED))
        elif isinstance(item, Page):
            self._settle(request, visit_of_page(item))
        elif isinstance(item, Requisite):
            failed = FetchRecord(UrlState.FAILED, time=item.page.fetched, reason=item.failed)
            self._settle(request, failed if item.failed else visit_of_page(item.page))
        elif isinstance(item, FailedFetch):
            refused = item.kind in ("scope", "ignored")
            state = UrlState.REFUSED if refused else UrlState.FAILED
            reason = item.message if refused else item.kind
            self._settle(request, FetchRecord(state, time=item.fetched, reason=reason))
        elif isinstance(response, Response):
            self._end(response, visit_of(response))

    def item_dropped(
        self, item: Any, response: Response | Failure | None, exception: BaseException
    ) -> None:
        self._end(response, _ended(response, UrlState.REFUSED, str(exception)))

    def item_error(self, item: Any, response: Response | Failure | None, failure: Failure) -> None:
        error = failure.value
        full = isinstance(error, OSError) and error.errno in _FULL
        if full or isinstance(error, CrawlDirError):
            # nothing is wrong with the page: it is fetched again when there is room
            request = _leased(response)
            if request is not None:
                self._outputs.pop(request.meta[LEASE], None)
                self.lessor.leases.release(request)
            self.lessor.break_off(f"a store cannot write: {error}")
            return
        self._end(response, _ended(response, UrlState.FAILED, f"a store raised {error!r}"))

    def spider_error(self, response: Response | Failure | None, failure: Failure) -> None:
        request = _leased(response)
        if request is not None:
            reason = f"the spider raised {failure.value!r}"
            self._settle(request, _ended(response, UrlState.FAILED, reason))

    def _end(self, response: Response | Failure | None, visit: FetchRecord) -> None:
        """One item is through; the URL is done when all that the response gave are."""
        request = _leased(response)
        if request is None:
            return
        output = self._outputs.get(request.meta[LEASE])
        if output is not None:
            output.items -= 1
            if visit.state is not UrlState.STORED:
                output.worst = visit
            if output.items or not output.complete:
                return
            visit = output.worst or visit
        self._settle(request, visit)

    def _settle(self, request: Request | None, visit: FetchRecord) -> None:
        assert request is not None
        lease = request.meta.get(LEASE)
        if lease is not None:
            self._outputs.pop(lease, None)
        scheduler = self.lessor
        if REVISITED in request.meta and lease is not None:
            planned = request.meta.pop(REVISITED)
            stored = visit.state is UrlState.STORED
            scheduler.leases.revisited(request, planned, stored=stored)
        else:
            scheduler.leases.acknowledge(request, visit)
        merger = scheduler.frontier.merger
        if merger is not None and merger.wants_turn:
            scheduler.wake()


def _leased(response: Response | Failure | None) -> Request | None:
    """The Request behind a response or failure, if its lease is still out."""
    request: Request | None = getattr(response, "request", None)
    return request if request is not None and LEASE in request.meta else None


def _ended(response: Response | Failure | None, state: UrlState, reason: str) -> FetchRecord:
    visit = visit_of(response) if isinstance(response, Response) else FetchRecord(state)
    visit.state, visit.reason = state, " ".join(reason.split())[:300]
    visit.time = visit.time or time.time()
    return visit


def visit_of_page(page: Page) -> FetchRecord:
    """What the frontier keeps of a page. An error (404, 503 at last) has failed, although its body
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
