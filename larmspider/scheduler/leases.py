"""The leases that are out: each belongs to a Request, and each has to end.

    leases.take(lease)
    leases.retry(request, "timeout") or leases.release_slot(request, "timeout")
    leases.acknowledge(request, FetchRecord(UrlState.STORED, ...))

The middlewares that see answers (middlewares/fetch_outcome.py) and stored items
(middlewares/acknowledge.py) end them. A component that swallows its Request or response loses a
lease. This module notices that; otherwise the crawl would wait for ever.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from math import inf
from typing import TYPE_CHECKING

from scrapy import Request

from larmspider import stats
from larmspider.frontier.ending import GiveBack
from larmspider.frontier.hosts import HostState, Lease
from larmspider.frontier.storage.records import (
    FetchRecord,
    MergedUrl,
    QueuedUrl,
    UrlState,
    url_key,
)
from larmspider.items import REQUISITE, FailedFetch
from larmspider.learned.describe import failure_in_words
from larmspider.requests import (
    LEASE,
    SAME_PAGE,
    SEED,
    is_page_request,
    normalized_of,
    origin_of,
    pack_request,
    page_request,
    unpack_request,
)
from larmspider.urls.normalizer import forms_from_settings
from larmspider.urls.syntax import without_userinfo

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.statscollectors import StatsCollector

    from larmspider.learned.learning import LearningFrontier

logger = logging.getLogger(__name__)

_SECRETS = frozenset({b"Authorization", b"Proxy-Authorization"})
_WORD = re.compile(r"[a-z0-9-]{1,20}")
_STATES = {state: stats.RUN.format(state=state.name.lower()) for state in UrlState}
_RAISED = {"a store raised": "store", "the spider raised": "spider"}


class Leases:
    """A lease stays in Request.meta until its URL has its final state. ``wake`` lets the engine ask
    for Requests."""

    def __init__(
        self, frontier: LearningFrontier, counters: StatsCollector, wake: Callable[[], None]
    ) -> None:
        self.frontier, self.counters, self._wake = frontier, counters, wake
        self.ready: deque[Request] = deque()
        """Requests that are sent next, of leases that are out: redirects of own fetches."""
        self._out: set[Lease] = set()
        self._parked: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._out)

    def __iter__(self) -> Iterator[Lease]:
        return iter(list(self._out))

    def take(self, lease: Lease) -> None:
        self._out.add(lease)

    def hand_out(self, request: Request) -> None:
        """Give Scrapy this Request, which carries a new lease, before it asks for others."""
        self.ready.append(request)
        self._wake()

    def release(self, request: Request) -> Request:
        """The fetch was not made: its URL returns to its place in the queue. Scrapy drops the
        Request."""
        lease = self._requeued(request)
        self.frontier.release(lease)
        return request

    def retry(
        self, request: Request, kind: str, retry_after: float | None = None
    ) -> Request | None:
        """Queue a failed fetch again, with backoff; None if its attempts are used up."""
        if not self.frontier.may_retry(request.meta[LEASE], kind):
            return None
        lease = self._requeued(request)
        self.frontier.failed(lease, kind, elapsed(request), retry_after=retry_after)
        self._warn_if_parked(lease)
        return request

    def _requeued(self, request: Request) -> Lease:
        lease: Lease = request.meta[LEASE]
        self._out.discard(lease)
        lease.requeued = True
        return lease

    def _take_back(self, request: Request) -> Lease:
        lease: Lease = request.meta.pop(LEASE)
        self._out.discard(lease)
        return lease

    def release_slot(
        self, request: Request, kind: str = "", retry_after: float | None = None
    ) -> None:
        """Free the slot after a last attempt, and judge the host at once. Otherwise the host's next
        URL would be handed out before the stores have finished with this one. ``kind`` as in
        politeness.KINDS, "" if the fetch says nothing about its host."""
        lease = request.meta[LEASE]
        self.frontier.release_slot(lease, kind, elapsed(request), retry_after=retry_after)
        self._warn_if_parked(lease)

    def acknowledge(self, request: Request, visit: FetchRecord) -> None:
        """The URL has its final state; nothing happens if it had one already."""
        lease = lease_of(request)
        if lease is not None and lease.own is None:
            del request.meta[LEASE]
            self.acknowledge_lease(lease, visit, elapsed(request))

    def acknowledge_lease(self, lease: Lease, visit: FetchRecord, seconds: float = 0.0) -> None:
        """acknowledge() by the lease; the fetch took ``seconds``."""
        self._out.discard(lease)
        entry, trials = lease.entry, self.frontier.merger.trials
        if entry is not None and entry.visit is not None:
            # without a verdict, or where a store refused the result, the page stays as it was
            self.frontier.acknowledge(lease, self.frontier.refresh.kept(entry.visit))
            return
        if entry is not None and entry.link_type == REQUISITE:
            state = visit.state.name.lower()
            self.counters.inc_value(stats.REQUISITES.format(state=state))
        elif entry is None or not trials.is_question(entry.key, entry.host):
            for key in keys_of(visit):
                self.counters.inc_value(key)
        if visit.state is UrlState.FAILED and visit.reason:
            self.frontier.failed_for_good(lease, visit, seconds)
            self._warn_if_parked(lease)
        else:
            self.frontier.acknowledge(lease, visit)

    def revisited(self, request: Request, record: FetchRecord | None) -> None:
        """A revisit is judged: the URL gets this record; None: it is forgotten."""
        lease = self._take_back(request)
        if record is None:
            self.frontier.forget(lease)
        else:
            self.frontier.acknowledge(lease, record)

    def look_again(self, request: Request, seconds: float) -> None:
        """A page that was revisited is fetched once more, ``seconds`` later."""
        lease = self._take_back(request)
        self.frontier.look_again(lease, seconds)

    def merge(self, request: Request, merged: MergedUrl) -> None:
        """End a lease whose page belongs to another URL."""
        lease = self._take_back(request)
        if merged.rules:
            self.counters.inc_value(stats.RUN.format(state="merged"))
        self.frontier.merge(lease, merged)

    def end_own(self, lease: Lease) -> None:
        """A fetch of the frontier's own is over."""
        self._out.discard(lease)
        self._warn_if_parked(lease)
        self._wake()

    def end_lost(self) -> None:
        """End the leases that a component lost: their fetches failed."""
        for lease in self:
            shown = without_userinfo(lease.url)
            logger.error("No component handled the response for %s; marked as failed", shown)
            if lease.own is not None:
                self.frontier.own_ended(lease, "lost")
                self.end_own(lease)
            else:
                lost = FetchRecord(UrlState.FAILED, time=time.time(), reason="lost")
                self.acknowledge_lease(lease, lost)
        self._wake()

    def _warn_if_parked(self, lease: Lease) -> None:
        """Log it if a failure has parked the host."""
        record = lease.host.record
        if record.state is not HostState.PARKED:
            self._parked.pop(record.host, None)
            return
        if self._parked.get(record.host) == record.parks:
            return  # another of the fetches that were under way
        self._parked[record.host] = record.parks
        reason = failure_in_words(record.reason)
        if record.until == inf:
            self.counters.inc_value(stats.HOSTS_GIVEN_UP)
            logger.warning("Host %s: %s; until the next run", record.host, reason)
        else:
            seconds = record.until - time.time()
            logger.warning("Host %s: left alone for %.0f s: %s", record.host, seconds, reason)


def lease_of(message: object) -> Lease | None:
    """The lease of a Request, or of the Request of a response or failure, until it has ended."""
    request = getattr(message, "request", message)
    lease: Lease | None = request.meta.get(LEASE) if isinstance(request, Request) else None
    return None if lease is None or lease.requeued else lease


def give_back(response: Response) -> None:
    """The crawl stops, and a spider drops this response: its URL goes back to its queue."""
    if (lease := lease_of(response)) is not None:
        lease.ending = GiveBack()


def elapsed(request: Request) -> float:
    """Seconds since the download of this Request began; 0.0 if it did not. Monotonic, so that a
    clock change, or hours that the machine slept, are never taken for a slow host."""
    started = request.meta.get("download_started")
    return 0.0 if started is None else max(0.0, time.monotonic() - started)


def keys_of(visit: FetchRecord) -> Iterator[str]:
    """Stats keys for a URL that has its final state.

    >>> list(keys_of(FetchRecord(UrlState.FAILED, status=503, reason="http-503")))
    ['larm/run/failed', 'larm/run/failed/http-503']
    """
    yield _STATES[visit.state]
    if visit.state is UrlState.STORED:
        yield stats.RUN_STATUS.format(status=visit.status or _word(visit.reason))
    elif visit.state is UrlState.FAILED:
        yield stats.RUN_FAILED.format(kind=_word(visit.reason))


def _word(reason: str) -> str:
    """The reason if it is a word, else a word for what kind of sentence it is."""
    if _WORD.fullmatch(reason):
        return reason
    return next((word for start, word in _RAISED.items() if reason.startswith(start)), "other")


class RequestConverter:
    """Requests become queued URLs, and queued URLs become Requests again.

    A page Request of ours becomes its URL and the place where it was found. Any other Request
    (callback, method, body, meta) is packed into ``QueuedUrl.payload``, and comes out unchanged.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._forms = forms_from_settings(crawler.settings)
        self._warned = False

    @property
    def spider(self) -> Spider:
        assert self.crawler.spider is not None
        return self.crawler.spider

    def to_queued(self, request: Request, frontier: LearningFrontier) -> QueuedUrl:
        """Raises ValueError, with the reason, for a Request that cannot be kept."""
        normalized = normalized_of(request, self._forms)
        exact: str = request.meta["exact"]
        payload = (
            b"" if is_page_request(request, self.spider) else pack_request(request, self.spider)
        )
        entry = frontier.entry(
            request.url, normalized, exact=exact, payload=payload, **origin_of(request)
        )
        if payload and not self._warned and not _SECRETS.isdisjoint(request.headers):
            self._warned = True
            logger.warning(
                "A Request to %s has credentials in its headers, which LARM_DIR/frontier keeps in"
                " the clear: LARM_SITES_FILE is the place for them (docs/sign-in.md)",
                entry.host,
            )
        if request.dont_filter and payload and not request.meta.get(SEED):
            entry.key = url_key(f"{exact}#{uuid.uuid4().hex}")
        elif request.meta.get(SAME_PAGE):
            entry.key = url_key(f"{exact}#{entry.redirects}")
        elif request.method != "GET" or request.body:
            fingerprint = self.crawler.request_fingerprinter.fingerprint(request)
            entry.key = url_key(f"{exact}#{fingerprint.hex()}")
        if payload:
            entry.priority = min(0xFFFF, max(0, entry.priority - request.priority))
        return entry

    def to_request(self, lease: Lease, frontier: LearningFrontier) -> Request:
        """Raises ValueError if a packed Request cannot be made again."""
        entry = lease.entry
        assert entry is not None
        if entry.payload:
            request = unpack_request(entry.payload, self.spider)
        else:
            forms = self._forms(entry.url)
            request = page_request(
                self.spider,
                entry.url,
                normalized=entry.normalized if entry.visit is None else forms.normalized,
                exact=forms.exact,
                from_page=entry.from_page,
                link_type=entry.link_type,
                depth=entry.depth,
                redirects=entry.redirects,
            )
        if entry.visit is not None:
            for name, value in frontier.refresh.validators_for(entry).items():
                request.headers[name] = value.encode("latin-1", "replace")  # byte for byte
        request.meta[LEASE] = lease
        lease.holder = request
        return request


def refused_by_robots(entry: QueuedUrl) -> FailedFetch:
    """The line of fetch.log for a URL that robots.txt does not allow."""
    return FailedFetch(
        url=entry.url,
        normalized=entry.normalized,
        from_page=entry.from_page,
        link_type=entry.link_type,
        depth=entry.depth,
        kind="robots",
        message="not allowed by robots.txt",
        fetched=time.time(),
    )
