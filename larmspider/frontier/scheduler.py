"""Scrapy's scheduler over the frontier: what Scrapy asks for, in its terms.

    SCHEDULER = "larmspider.frontier.scheduler.FrontierScheduler"

A Request goes in as an Entry and comes out as a lease, when its host may be asked. The lease stays
in Request.meta until the URL has its final state (middlewares/answers.py, acknowledge.py). A host's
robots.txt is fetched by a Request of the scheduler's own.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import deque
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Self

import scrapy.signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from twisted.python.failure import Failure

from larmspider import signals, stats
from larmspider.directory import CrawlDirectory
from larmspider.errors import CrawlDirError, LarmspiderError
from larmspider.fetch.addresses import Addresses
from larmspider.fetch.robots_txt import RobotsFetch
from larmspider.frontier.build import build_frontier
from larmspider.frontier.frontier import Frontier
from larmspider.frontier.host import HostState
from larmspider.frontier.keys import url_key
from larmspider.frontier.lease import Lease
from larmspider.frontier.records import Entry, UrlState, Visit
from larmspider.items import FailedFetch
from larmspider.requests import (
    LEASE,
    REQUEUED,
    SAME_PAGE,
    SEED,
    is_page_request,
    normalized_of,
    origin_of,
    pack_request,
    page_request,
    unpack_request,
)
from larmspider.urls.normalizer import normalizer_from_settings

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)


class CheckpointError(LarmspiderError):
    """A store could not write; nothing was committed."""


class FrontierScheduler:
    """SCHEDULER. Opened, it owns LARM_DIR until it is closed.

    No subclass of scrapy.core.scheduler.BaseScheduler, whose metaclass makes isinstance() true of
    every scheduler for each of its subclasses. Scrapy asks for the methods only.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.gate = asyncio.Event()
        """Set, but while a checkpoint waits for the stores to be at rest: items wait before it."""
        self.gate.set()
        self.broken = ""
        """Why nothing may be committed any more; the crawl goes back to its last checkpoint."""
        self.closed = False
        self.checkpointing = asyncio.Lock()
        """Held from a checkpoint's cut to its end: there is one at a time."""
        self._stores_opened = False
        self._frontier: Frontier | None = None
        self._directory: CrawlDirectory | None = None
        self._normalize = normalizer_from_settings(crawler.settings)
        self._robots = RobotsFetch(self)
        self._addresses = Addresses(self._address_known)
        self._ready: deque[Request] = deque()
        self._out: set[Lease] = set()
        self._parked: dict[str, int] = {}
        self._timer: CallLaterResult | None = None
        self._timer_at = 0.0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        scheduler = cls(crawler)
        crawler.signals.connect(scheduler.spider_opened, signal=scrapy.signals.spider_opened)
        crawler.signals.connect(scheduler.wake, signal=signals.wake)
        return scheduler

    @property
    def frontier(self) -> Frontier:
        """Raises RuntimeError before open()."""
        if self._frontier is None:
            raise RuntimeError("the frontier is not open")
        return self._frontier

    @property
    def spider(self) -> Spider:
        assert self.crawler.spider is not None
        return self.crawler.spider

    # life

    def open(self, spider: Spider) -> None:
        """Claim LARM_DIR, take up the last checkpoint, tell the stores where they were.

        Raises ConfigError or LarmspiderError; then LARM_DIR is as it was, and free.
        """
        directory = CrawlDirectory.from_crawler(self.crawler)
        directory.claim()
        try:
            frontier = build_frontier(
                self.crawler.settings, directory.path / "frontier", self._addresses.of
            )
            try:
                self._recover(frontier)
            except BaseException:
                frontier.backend.close()
                raise
        except BaseException:
            directory.release()
            raise
        self._directory, self._frontier = directory, frontier
        counts = frontier.audit()
        if directory.resumed:
            logger.info(
                "Going on with the crawl in %s: %d URLs discovered, %d stored, %d refused,"
                " %d failed, %d to fetch%s",
                directory.path,
                counts.discovered,
                counts.stored,
                counts.refused,
                counts.failed,
                counts.queued,
                "" if counts.queued else ": it is finished, -a fresh=yes starts over",
            )

    def _recover(self, frontier: Frontier) -> None:
        """Frontier and stores go back to the last commit. Raises what a store raised."""
        positions = frontier.recover().positions
        results = self.crawler.signals.send_catch_log(
            signals.recovered, positions=positions, dont_log=LarmspiderError
        )
        for receiver, result in results:
            if isinstance(result, Failure):
                error = result.value
                if isinstance(error, LarmspiderError):
                    raise error
                raise CrawlDirError(
                    f"{receiver_name(receiver)} cannot go back to its last commit: {error}"
                )

    def spider_opened(self) -> None:
        self._stores_opened = True

    def close(self, reason: str) -> Deferred[None]:
        """The last checkpoint, unless something is broken; then unlock LARM_DIR."""
        return deferred_from_coro(self.close_async(reason))

    async def close_async(self, reason: str) -> None:
        """The same as a coroutine."""
        if self._timer is not None:
            self._timer.cancel()
        self._addresses.close()
        if self._frontier is None or self._directory is None:
            return
        async with self.checkpointing:  # one may be under way in a thread
            self.closed = True
            if not self._stores_opened:
                # a store that never opened has no position to name
                self.broken = self.broken or "the stores could not be opened"
            try:
                if not self.broken:
                    self.commit_now()
            except LarmspiderError as error:
                self.broken = str(error)
                logger.critical("The last checkpoint failed: %s", error)
            self._end(reason)

    def _end(self, reason: str) -> None:
        assert self._frontier is not None
        assert self._directory is not None
        counts = self._frontier.backend.counts()
        assert self.crawler.stats is not None
        if self.broken:
            self.crawler.stats.set_value(stats.BROKEN, self.broken)
        for name in ("discovered", "queued", "stored", "failed", "refused"):
            key = stats.FRONTIER.format(state=name)
            self.crawler.stats.set_value(key, getattr(counts, name))
        self._frontier.backend.close()
        self._directory.finish("broken" if self.broken else reason)

    def cut(self) -> dict[str, bytes]:
        """Let every store name its position, and end the frontier's batch at the same moment.

        Raises CheckpointError if a store cannot write; then nothing is cut.
        """
        positions = {}
        for receiver, result in self.crawler.signals.send_catch_log(signals.checkpoint):
            if not isinstance(result, tuple):
                error = getattr(result, "value", result)
                raise CheckpointError(f"{receiver_name(receiver)} cannot write: {error}")
            name, position = result
            positions[name] = position
        self.frontier.cut()
        return positions

    def commit_now(self) -> None:
        """A whole checkpoint in one go; the stores' slow part must be done."""
        positions = self.cut()
        self.frontier.commit(positions)
        self.frontier.settle()

    # what Scrapy asks

    def has_pending_requests(self) -> bool:
        return bool(self._ready or self._out) or not self.frontier.finished

    def __len__(self) -> int:
        """URLs that wait in queues."""
        return 0 if self._frontier is None else self._frontier.backend.counts().queued

    def enqueue_request(self, request: Request) -> bool:
        """Queue a Request; False if its URL is known, out of bounds, or it cannot be kept."""
        if request.meta.pop(REQUEUED, False):
            return True
        lease = request.meta.pop(LEASE, None)
        if lease is not None and lease.holder is request:
            # a middleware went on with this Request: the first one has had its answer
            if lease.is_robots:
                request.meta[LEASE] = lease
                self.hand_out(request)
                return True
            self.settle_lease(lease, Visit(UrlState.STORED, time=time.time(), reason="replaced"))
        try:
            entry = self._entry(request)
        except ValueError as error:
            self._count(stats.SCHEDULER_UNSERIALIZABLE)
            logger.warning("Refused: %s cannot be queued: %s", request, error)
            return False
        return bool(self.frontier.add([entry]).new)

    def next_request(self) -> Request | None:
        """The next Request that may be sent now. O(log hosts)."""
        if self._ready:
            return self._ready.popleft()
        if self.broken:
            return None
        while (lease := self._pop()) is not None:
            self._out.add(lease)
            if lease.is_robots:
                return self._robots.request(lease)
            try:
                return self._request(lease)
            except ValueError as error:
                reason = f"cannot be made again: {error}"
                self.settle_lease(lease, Visit(UrlState.REFUSED, reason=reason))
        self._wake_later()
        return None

    def _pop(self) -> Lease | None:
        lease = self.frontier.pop()
        refused = self.frontier.refused
        while refused:
            self._count(stats.ROBOTS_REJECTED)
            failed = _refused(refused.pop(0))
            self.crawler.signals.send_catch_log(signals.url_refused, failed=failed)
        return lease

    def known(self, normalized: Sequence[str]) -> list[bool]:
        """Of each canonical URL: has the frontier met it?"""
        return self.frontier.known(normalized)

    # answers

    def hand_out(self, request: Request) -> None:
        """Let Scrapy take this Request next, for a lease that is out already."""
        self._ready.append(request)
        self.wake()

    def give_back(self, request: Request) -> Request:
        """The fetch was not made: its URL returns to its place. Scrapy drops the Request."""
        lease = request.meta.pop(LEASE)
        self._out.discard(lease)
        self.frontier.give_back(lease)
        request.meta[REQUEUED] = True
        return request

    def retry(
        self, request: Request, kind: str, retry_after: float | None = None
    ) -> Request | None:
        """Queue a failed fetch again, with backoff; None if it has had its attempts."""
        lease = request.meta[LEASE]
        if not self.frontier.retries(lease, kind):
            return None
        request.meta.pop(LEASE)
        self._out.discard(lease)
        self.frontier.failed(lease, kind, elapsed(request), retry_after=retry_after)
        self.tell_if_parked(lease)
        request.meta[REQUEUED] = True
        return request

    def settle(self, request: Request, visit: Visit) -> None:
        """The URL's final state; nothing if it has one already."""
        lease = request.meta.pop(LEASE, None)
        if lease is not None and not lease.is_robots:
            self.settle_lease(lease, visit, elapsed(request))

    def settle_lease(self, lease: Lease, visit: Visit, seconds: float = 0.0) -> None:
        self._out.discard(lease)
        if visit.state is UrlState.FAILED and visit.reason:
            self.frontier.failed_for_good(lease, visit, seconds)
            self.tell_if_parked(lease)
        else:
            self.frontier.done(lease, visit)

    def free(self, request: Request, kind: str = "", retry_after: float | None = None) -> None:
        """A last attempt is over: its place is free, its host judged at once, or the host's next
        URL would go out before the stores are through with this one. ``kind`` as in failures.py,
        "" where the fetch says nothing about its host."""
        lease = request.meta[LEASE]
        self.frontier.freed(lease, kind, elapsed(request), retry_after=retry_after)
        self.tell_if_parked(lease)

    def lost(self) -> bool:
        """Whether leases are out although nothing is fetched or stored any more. Only a component
        that swallowed its Request or response leaves one."""
        engine = self.crawler.engine
        busy = (
            engine.downloader.active or not engine.scraper.slot or not engine.scraper.slot.is_idle()
        )
        return bool(self._out) and not self._ready and not busy

    def end_lost(self) -> None:
        """Fail them, or the crawl would wait for ever."""
        for lease in list(self._out):
            logger.error("Nobody ended the fetch of %s; it counts as failed", lease.url)
            if lease.is_robots:
                self.frontier.failed(lease, "lost", 0.0)
                self.end_robots(lease)
            else:
                self.settle_lease(lease, Visit(UrlState.FAILED, time=time.time(), reason="lost"))
        self.wake()

    def end_robots(self, lease: Lease) -> None:
        """The robots.txt of a lease was answered, or failed."""
        self._out.discard(lease)
        self.tell_if_parked(lease)
        self.wake()

    def tell_if_parked(self, lease: Lease) -> None:
        """After a failure: say so where it was one too many for the host."""
        record = lease.host.record
        if record.state is not HostState.PARKED:
            self._parked.pop(record.host, None)
            return
        if self._parked.get(record.host) == record.parks:
            return  # another of the fetches that were under way
        self._parked[record.host] = record.parks
        if record.until == inf:
            self._count(stats.HOSTS_GIVEN_UP)
            logger.warning("Host %s: %s; until the next run", record.host, record.reason)
        else:
            seconds = record.until - time.time()
            logger.warning(
                "Host %s: left alone for %.0f s: %s", record.host, seconds, record.reason
            )

    # the engine

    def wake(self) -> None:
        """Let the engine ask for Requests. The only place that touches what is private to Scrapy:
        the engine itself asks again only every 5 s."""
        if self._timer is not None:
            self._timer.cancel()  # nothing if it is this timer that woke us
            self._timer = None
        slot = getattr(self.crawler.engine, "_slot", None)
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    def _address_known(self, name: str, address: str) -> None:
        self.frontier.address_known(name, address)
        self.wake()

    def _wake_later(self) -> None:
        at = self.frontier.next_ready_time()
        if at is None or (self._timer is not None and self._timer_at <= at):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at
        self._timer = call_later(max(0.001, at - time.time()), self.wake)

    # requests and entries

    def _entry(self, request: Request) -> Entry:
        normalized = normalized_of(request, self._normalize)
        payload = (
            b"" if is_page_request(request, self.spider) else pack_request(request, self.spider)
        )
        entry = self.frontier.entry(request.url, normalized, payload=payload, **origin_of(request))
        if request.dont_filter and payload and not request.meta.get(SEED):
            entry.key = url_key(f"{normalized}#{uuid.uuid4().hex}")
        elif request.meta.get(SAME_PAGE):
            entry.key = url_key(f"{normalized}#{entry.redirects}")
        elif request.method != "GET" or request.body:
            fingerprint = self.crawler.request_fingerprinter.fingerprint(request)
            entry.key = url_key(f"{normalized}#{fingerprint.hex()}")
        if payload:
            entry.priority = min(0xFFFF, max(0, entry.priority - request.priority))
        return entry

    def _request(self, lease: Lease) -> Request:
        entry = lease.entry
        assert entry is not None
        if entry.payload:
            request = unpack_request(entry.payload, self.spider)
        else:
            request = page_request(
                self.spider,
                entry.url,
                normalized=entry.normalized,
                from_page=entry.from_page,
                link_type=entry.link_type,
                depth=entry.depth,
                redirects=entry.redirects,
            )
        request.meta[LEASE] = lease
        lease.holder = request
        return request

    def _count(self, key: str) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(key)


def receiver_name(receiver: Any) -> str:
    """The class behind a signal's receiver, for a message."""
    return type(getattr(receiver, "__self__", receiver)).__name__


def scheduler_of(crawler: Crawler) -> FrontierScheduler | None:
    """The crawl's scheduler if it is ours."""
    scheduler: object = crawler.engine.scheduler
    return scheduler if isinstance(scheduler, FrontierScheduler) else None


def _refused(entry: Entry) -> FailedFetch:
    """What fetch.log says of a URL that robots.txt does not allow."""
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


def elapsed(request: Request) -> float:
    """Seconds since the download of this Request began; 0.0 if it did not."""
    started = request.meta.get("download_started")
    return 0.0 if started is None else max(0.0, time.time() - started)
