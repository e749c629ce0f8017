"""Scrapy's scheduler over the frontier.

    SCHEDULER = "larmspider.scheduler.FrontierScheduler"

A Request goes in as a QueuedUrl and comes out with a lease (leases.py), when its host may get a
request; the lease ends when the URL has its final state. A host's robots.txt is fetched by a
Request of the scheduler's own (robots_fetch.py). At a checkpoint frontier and stores move together
(checkpoint.py).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import scrapy.signals
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro

from larmspider import options, signals, stats
from larmspider.errors import CommittedGoneError, CrawlDirError, LarmspiderError
from larmspider.fetch.dns import Addresses, DnsCache, OwnAddress
from larmspider.fetch.sites.session import Sessions
from larmspider.formatting import counted, printable
from larmspider.frontier.hosts import Lease
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.state import AddressBook
from larmspider.frontier.storage.backend import Fenced
from larmspider.frontier.storage.records import FetchRecord, UrlState, host_of, url_key
from larmspider.index.unreached import LASTING_SECS
from larmspider.items import REQUISITE
from larmspider.learned.factory import Surroundings, build_frontier, probe_secs
from larmspider.learned.learning import LearningFrontier
from larmspider.learned.shortfall import MAX_SEEDS, shortfalls
from larmspider.learned.shortfall import NOTE as NOTE_OF_HOST
from larmspider.pipelines.compaction import finish as finish_compaction
from larmspider.pipelines.store import Store
from larmspider.requests import LEASE
from larmspider.scheduler.checkpoint import let_go, recover_stores, store_positions
from larmspider.scheduler.counters import end_of_refresh, final_counts
from larmspider.scheduler.leases import Leases, RequestConverter, refused_by_robots
from larmspider.scheduler.login_fetch import SHOWN, LoginFetch, LoginSteps
from larmspider.scheduler.own_fetches import OwnFetches
from larmspider.scheduler.probe_fetch import MadeUpFetch, ViewProbeFetch
from larmspider.scheduler.probes import Probes
from larmspider.scheduler.robots_fetch import RobotsFetch
from larmspider.scheduler.source_fetch import SourceFetch
from larmspider.urls.normalizer import forms_from_settings
from larmspider.urls.syntax import without_userinfo
from larmspider.workdir.directory import ClusterDirectory, CrawlDirectory
from larmspider.workdir.manifest_copy import NOTE, NOTE_OF_ALL, packed
from larmspider.workdir.removals import CurrentRemovals

if TYPE_CHECKING:
    from scrapy import Request, Spider
    from scrapy.crawler import Crawler
    from scrapy.statscollectors import StatsCollector
    from scrapy.utils.asyncio import CallLaterResult
    from twisted.internet.defer import Deferred

    from larmspider.cluster.worker import ClusterWorker

logger = logging.getLogger(__name__)

T = TypeVar("T")


def _unless_unopened(record: logging.LogRecord) -> bool:
    """False for the two tracebacks that Scrapy logs when it closes a spider that was not opened.
    The component that refused to open has already logged the reason."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    unopened = isinstance(error, RuntimeError) and str(error) == "Scraper slot not assigned"
    unstarted = isinstance(error, AssertionError) and "CoreStats.spider_closed" in str(record.args)
    return not (unopened or unstarted)


for _name in ("scrapy.core.engine", "scrapy.utils.signal"):
    logging.getLogger(_name).addFilter(_unless_unopened)


class FrontierScheduler:
    """SCHEDULER. Opened, it owns LARM_DIR until it is closed.

    No subclass of scrapy.core.scheduler.BaseScheduler, whose metaclass makes isinstance() true of
    every scheduler for each of its subclasses. Scrapy asks for the methods only.
    """

    files = ("frontier", "deletes-*.json")
    """Files in LARM_DIR."""
    sources: SourceFetch
    """Set by open(), as are the following attributes."""
    logins: LoginFetch
    _own: Mapping[FetchKind, OwnFetches]
    _probes: Probes

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self.gate = asyncio.Event()
        """Clear while a checkpoint waits for the stores to be idle: items wait before it."""
        self.gate.set()
        self.broken = ""
        """The reason why nothing more may be committed; the crawl goes back to its last
        checkpoint."""
        self.held = ""
        """Why nothing is fetched for now, though hosts are due (signals.hold)."""
        self.closed = False
        self.checkpointing = asyncio.Lock()
        """Held while a checkpoint is taken: there is one at a time."""
        self.opened = False
        """Whether the stores are open."""
        self.searching = False
        """Whether URLs to queue are still looked for, without which the crawl does not end."""
        self.worker: ClusterWorker | None = None
        """Shares the crawl with other workers; None without REDIS_URL."""
        self._frontier: LearningFrontier | None = None
        self._directory: CrawlDirectory | None = None
        self._manifest = b""
        """The copy of crawl.json that the frontier has."""
        self._leases: Leases | None = None
        self._converter = RequestConverter(crawler)
        self._addresses = Addresses(DnsCache.from_crawler(crawler), self._on_resolved, self.wake)
        self._waker = Waker(crawler)
        self._forms = forms_from_settings(crawler.settings)
        self._asked: list[asyncio.Future[None]] = []  # for a checkpoint
        self._sealed: list[asyncio.Future[None]] = []  # the next commit has what they asked for

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        scheduler = cls(crawler)
        crawler.signals.connect(scheduler.spider_opened, signal=scrapy.signals.spider_opened)
        crawler.signals.connect(scheduler.wake, signal=signals.wake)
        crawler.signals.connect(scheduler.hold, signal=signals.hold)
        crawler.signals.connect(scheduler.in_doubt, signal=signals.in_doubt)
        crawler.signals.connect(scheduler.unlinked, signal=signals.unlinked)
        crawler.signals.connect(scheduler.unreached, signal=signals.unreached)
        return scheduler

    def in_doubt(self, names: Sequence[str]) -> list[str]:
        """See signals.in_doubt."""
        return self.frontier.refresh.doubt(names)

    def unlinked(self, names: Sequence[str]) -> None:
        """Make pages due to which no link leads any longer, because they may be gone."""
        if not self.closed:
            self.frontier.unlinked(names)

    def unreached(self, names: Sequence[str]) -> tuple[dict[str, float], list[str]] | None:
        """See signals.unreached."""
        if self._frontier is None:
            return None
        frontier = self._frontier
        hosts = frontier.hosts.silent(frontier.clock() - LASTING_SECS)
        shared = names if frontier.partitions.shared else ()
        return hosts, [name for name in shared if not frontier.is_own(url_key(name))]

    def _links_to(self, urls: Sequence[str]) -> list[int]:
        """The number of pages that link to each URL; 0 without a search index."""
        names = [self._forms(url).exact for url in urls]
        found = self.crawler.signals.send_catch_log(signals.links_to, names=names)
        numbers = (one for _, one in found if isinstance(one, list) and len(one) == len(urls))
        return next(numbers, [0] * len(urls))

    def _take_out(self, host: str, since: float) -> bool:
        """See signals.host_abandoned."""
        found = self.crawler.signals.send_catch_log(signals.host_abandoned, host=host, since=since)
        return any(answer is True for _, answer in found)

    @property
    def frontier(self) -> LearningFrontier:
        """Raises RuntimeError before open(), as the next two do."""
        return _opened(self._frontier)

    @property
    def paused(self) -> bool:
        """Whether the operator has paused the crawl."""
        return self._frontier is not None and self._frontier.control.paused

    @property
    def directory(self) -> CrawlDirectory:
        return _opened(self._directory)

    @property
    def leases(self) -> Leases:
        """The leases that have not ended."""
        return _opened(self._leases)

    # life

    def open(self, spider: Spider) -> None:
        """Claim LARM_DIR, take up the last checkpoint, tell the stores where they were.

        Raises ConfigError or LarmspiderError; then LARM_DIR is as it was, and free.
        """
        directory, root = CrawlDirectory.from_crawler(self.crawler), None
        directory.check_frontier()
        if options.many_workers(self.crawler.settings):
            root = ClusterDirectory.from_crawler(self.crawler)
            root.claim()
        directory.claim()
        try:
            finish_compaction(directory.path)
            frontier = self._open_frontier(directory.path / "frontier")
        except BaseException:
            directory.release()
            raise
        assert self.crawler.stats is not None
        self._directory, self._frontier = directory, frontier
        if root is not None:
            frontier.backend.put_note(NOTE_OF_ALL, packed(root.manifest))
        self._begin_fetching(frontier, self.crawler.stats)
        counts = frontier.audit()
        if directory.resumed:
            logger.info(
                "Continuing the crawl in %s: %s%s",
                directory.path,
                counts,
                ""
                if counts.to_fetch or self.worker or not counts.discovered
                else f": nothing left to fetch; -a refresh=due revisits due pages,"
                f" {directory.how_to_start_over()}"
                if not self._asked_again
                else "",
            )

    def _begin_fetching(self, frontier: LearningFrontier, counters: StatsCollector) -> None:
        self._leases = leases = Leases(frontier, counters, self.wake)
        is_known_elsewhere = None if self.worker is None else self.worker.is_known_host
        parts = self.crawler, frontier, leases, is_known_elsewhere
        self.sources, self.logins = SourceFetch(*parts), LoginFetch(*parts)
        self._own = {
            FetchKind.ROBOTS: RobotsFetch(*parts),
            FetchKind.LOGIN: self.logins,
            FetchKind.SOURCE: self.sources,
            FetchKind.MADE_UP: MadeUpFetch(*parts),
            FetchKind.VIEW_PROBE: ViewProbeFetch(*parts),
        }
        self._probes = Probes(self.crawler, frontier, leases, probe_secs(self.crawler.settings))

    def _shortfalls(self, frontier: LearningFrontier) -> list[str]:
        """Why little of seeds' hosts is stored."""
        note, counts = frontier.backend.note, frontier.backend.counts
        frontier.shortfall.save()
        seeds = [str(seed) for seed in getattr(self.crawler.spider, "start_urls", ())]
        hosts = dict.fromkeys(host_of(seed) for seed in seeds[:MAX_SEEDS])
        rows = ((host, counts(host).stored, note(NOTE_OF_HOST.format(host=host))) for host in hosts)
        restrict = bool(options.text(self.crawler.settings, "LARM_RESTRICT"))
        return list(shortfalls(rows, restrict=restrict))

    @property
    def _asked_again(self) -> bool:
        """Whether pages are visited again in this run."""
        return bool(self.frontier.refresh.mode)

    def _open_frontier(self, path: Path) -> LearningFrontier:
        """Take the frontier up from its last commit; the stores go back to it.

        After an error nothing is open, and no worker has joined.
        """
        settings = self.crawler.settings
        frontier = worker = None
        if options.many_workers(settings):
            from larmspider.cluster.worker import ClusterWorker  # needs Redis

            worker = ClusterWorker(
                self.crawler,
                path,
                checkpointing=self.checkpointing,
                busy=lambda: self.busy,
                running=lambda: not (self.closed or self.broken),
                stores_open=lambda: self.opened,
                break_off=self.break_off,
                wake=self.wake,
            )
        try:
            addresses = AddressBook(
                self._addresses.of,
                own_address=OwnAddress.from_settings(settings),
                saturated=self._addresses.saturated,
            )
            shared = None if worker is None else worker.backend
            removals = CurrentRemovals(options.crawl_root(settings))
            sessions = Sessions.from_crawler(self.crawler)
            around = Surroundings(
                addresses,
                shared,
                logins=LoginSteps(sessions),
                links_to=self._links_to,
                take_out=self._take_out,
                is_removed=lambda forms: removals.get().has(forms),
                asks_sources=getattr(self.crawler.spider, "asks_sources", False),
            )
            frontier = build_frontier(settings, path, around)
            positions = frontier.recover().positions
            try:
                recover_stores(self.crawler, positions)
            except CommittedGoneError as gone:
                if worker is None:
                    raise
                # to start over, as one crawl alone may, would delete what all workers have in Redis
                raise CrawlDirError(
                    f"worker {worker.name} of the crawl in Redis has its pages in another"
                    f" directory, or they are gone ({gone.what}): take another LARM_WORKER, or its"
                    " LARM_DIR"
                ) from None
            if worker is not None:
                worker.begin(frontier)
        except BaseException:
            if worker is not None:
                worker.abandon()
                worker.backend.close()
            if frontier is not None:
                frontier.backend.close()
            raise
        self.worker = worker
        return frontier

    def spider_opened(self) -> None:
        self.opened = True

    def break_off(self, reason: str) -> None:
        """Nothing more may be committed."""
        self.broken = self.broken or reason

    def close(self, reason: str) -> Deferred[None]:
        """The last checkpoint, unless something is broken; then unlock LARM_DIR."""
        return deferred_from_coro(self.close_async(reason))

    async def close_async(self, reason: str) -> None:
        self._waker.cancel()
        self._addresses.close()
        if self._frontier is None or self._directory is None:
            return
        if self.worker is not None:
            self.worker.closing()
        async with self.checkpointing:  # one may be under way in a thread
            self.closed = True
            self._probes.close()
            if not self.opened:
                # a store that never opened has no position to name
                self.break_off("the stores could not be opened")
            try:
                if not self.broken:
                    await self._commit_last()
            except Exception as error:  # the directory is released whatever happens
                foreseen = isinstance(error, LarmspiderError)
                self.broken = str(error) if foreseen else f"{type(error).__name__}: {error}"
                logger.critical("The last checkpoint failed: %s", error, exc_info=not foreseen)
            if self.worker is not None:
                await self.worker.leave(broken=bool(self.broken))
            self._end(reason)

    def _end(self, reason: str) -> None:
        assert self._frontier is not None
        assert self._directory is not None
        assert self.crawler.stats is not None
        set_value = self.crawler.stats.set_value
        if self.broken:
            set_value(stats.BROKEN, self.broken)
        if self.worker is not None:
            set_value(stats.REDIS_ROUND_TRIPS, self.worker.link.round_trips)
            set_value(stats.REDIS_WAITED, round(self.worker.link.waited, 3))
            if self.worker.fenced:
                set_value(stats.FENCED, 1)
            if self.broken and self.worker.link.gave_up:
                set_value(stats.REDIS_GAVE_UP, 1)
        for key, number in final_counts(self._frontier).items():
            set_value(key, number)
        for key, text in end_of_refresh(self._frontier).items():
            set_value(key, printable(text))
        if hosts := self._frontier.scripts.hosts():
            more = f" and {counted(len(hosts) - SHOWN, 'host')} more" if len(hosts) > SHOWN else ""
            set_value(stats.SCRIPT_HOSTS, printable(", ".join(hosts[:SHOWN]) + more))
        if lines := self._frontier.traps.alike():
            set_value(stats.ALIKE, "\n".join(map(printable, lines)))
        if lines := self._shortfalls(self._frontier):
            set_value(stats.SHORTFALLS, "\n".join(lines))
        self._frontier.backend.close()
        self.crawler.signals.send_catch_log(signals.ended)
        self._directory.finish("broken" if self.broken else reason)

    # checkpoints

    def seal(self) -> dict[str, bytes]:
        """Let every store name its position, and end the frontier's batch at the same moment; on
        the event loop.

        Raises CheckpointError if a store cannot write; then no batch ends.
        """
        positions = store_positions(self.crawler)
        if (manifest := packed(self.directory.manifest)) != self._manifest:
            self.frontier.backend.put_note(NOTE, manifest)
            self._manifest = manifest
        self.frontier.seal()
        if self.worker is not None:
            self.worker.start_urls.seal()
        self._sealed += self._asked
        self._asked.clear()
        return positions

    def commit(self, positions: Mapping[str, bytes]) -> None:
        """Make the batch and the stores' positions durable. May be called in any thread."""
        try:
            self.frontier.commit(positions)
        except Fenced as error:
            assert self.worker is not None
            raise self.worker.explained(error) from None

    async def discard(self, positions: Mapping[str, bytes]) -> None:
        """Drop the committed batch. Called on the event loop after a successful commit, before the
        next one."""
        self.frontier.discard()
        self._tell_committed(positions)
        if self.worker is not None:
            await self.worker.committed()
            self._take_out_outdated(self.worker)

    def _take_out_outdated(self, worker: ClusterWorker) -> None:
        """Other workers have newer versions of pages that this worker has stored, or have removed
        them: the stores drop these pages."""
        chain = self.crawler.engine.scraper.itemproc.middlewares
        stores = [one for one in chain if isinstance(one, Store)]
        let_go(worker.backend.take_outdated(), stores, self._forms, self.frontier.clock())

    async def _commit_last(self) -> None:
        """Make the whole last checkpoint, after the stores' slow part. While Redis is awaited, the
        event loop continues."""
        positions = self.seal()
        if self.worker is None:
            self.commit(positions)
        else:
            await asyncio.to_thread(self.commit, positions)
        self.frontier.discard()
        self._tell_committed(positions)

    @property
    def wants_checkpoint(self) -> bool:
        """Whether one is due before its time."""
        shared = self.worker is not None and self.worker.wants_checkpoint
        return bool(self._asked) or shared or self.frontier.wants_checkpoint

    def checkpointed(self) -> asyncio.Future[None]:
        """Have a checkpoint taken soon: done when one has all that was changed before this call."""
        asked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        return asked

    def _tell_committed(self, positions: Mapping[str, bytes]) -> None:
        self.crawler.signals.send_catch_log(signals.committed, positions=positions)
        for asked in self._sealed:
            if not asked.done():
                asked.set_result(None)
        self._sealed.clear()

    # what Scrapy asks

    def has_pending_requests(self) -> bool:
        more = self.busy or not self.frontier.finished
        if self.worker is None:
            return more
        self.worker.engine_is_idle()  # Scrapy asks this last
        return more or not self.worker.ended

    @property
    def busy(self) -> bool:
        """Whether something is handed out, or URLs are still looked for."""
        return bool(self.leases) or self.searching

    def __len__(self) -> int:
        """URLs that wait in queues."""
        return 0 if self._frontier is None else self._frontier.backend.counts().queued

    def enqueue_request(self, request: Request) -> bool:
        """Queue a Request; False if its URL is known, beyond a limit, or it cannot be kept."""
        lease = request.meta.pop(LEASE, None)
        if lease is not None and lease.holder is request:
            if lease.requeued:
                return True
            # a middleware returned this Request again: its first fetch has had its answer
            if lease.own is not None:
                request.meta[LEASE] = lease
                self.leases.hand_out(request)
                return True
            replaced = FetchRecord(UrlState.STORED, time=time.time(), reason="replaced")
            self.leases.acknowledge_lease(lease, replaced)
        try:
            entry = self._converter.to_queued(request, self.frontier)
        except ValueError as error:
            self._count(stats.SCHEDULER_UNSERIALIZABLE)
            shown = f"<{request.method} {without_userinfo(request.url)}>"
            logger.warning("Refused: %s cannot be queued: %s", shown, error)
            return False
        added = self.frontier.add([entry])
        return bool(added.new or added.forwarded)

    def next_request(self) -> Request | None:
        """The next Request that may be sent now. O(log hosts)."""
        if self.worker is not None and not self.worker.may_fetch:
            return None  # until Redis has renewed it
        if self.leases.ready:
            return self.leases.ready.popleft()
        if self.broken or self.held:
            return None
        while (lease := self._pop()) is not None:
            self.leases.take(lease)
            try:
                request = (
                    self._own[lease.kind].request(lease)
                    if lease.own is not None
                    else self._converter.to_request(lease, self.frontier)
                )
            except ValueError as error:
                reason = f"cannot be made again: {error}"
                self.leases.acknowledge_lease(lease, FetchRecord(UrlState.REFUSED, reason=reason))
            else:
                self._probes.watch()
                return request
        at = self.frontier.next_ready_time()
        if at is not None and self.frontier.clock is not time.time:
            at += time.time() - self.frontier.clock()
        self._waker.wake_at(at)
        return None

    def _pop(self) -> Lease | None:
        lease = self.frontier.pop()
        for entry in self.frontier.refused:
            if entry.link_type == REQUISITE:
                self._count(stats.REQUISITES.format(state="refused"))
                continue
            self.frontier.shortfall.refused_by_robots(entry.host)
            self._count(stats.ROBOTS_REJECTED)
            self._count(stats.RUN.format(state="refused"))
            failed = refused_by_robots(entry)
            self.crawler.signals.send_catch_log(signals.url_refused, failed=failed)
        self.frontier.refused.clear()
        return lease

    def lost(self) -> bool:
        """Whether leases remain although nothing is being fetched or stored. Only a component that
        swallowed its Request or response leaves one."""
        engine = self.crawler.engine
        busy = (
            engine.downloader.active or not engine.scraper.slot or not engine.scraper.slot.is_idle()
        )
        return bool(self.leases) and not self.leases.ready and not busy

    def end_lost(self) -> None:
        """Fail them, or the crawl would wait for ever."""
        self.leases.end_lost()

    def wake(self) -> None:
        """Let the engine ask for Requests."""
        self._waker.wake()

    def hold(self, why: str) -> None:
        """See signals.hold."""
        self.held = why
        self.wake()

    def hold_host(self, name: str, held: bool) -> None:
        """See Frontier.hold_host()."""
        if not self.closed:
            self.frontier.hold_host(name, held)
            self.wake()

    def group_of(self, name: str) -> str:
        """The address that a host shares its pace by; "" if it does not (LARM_GROUP_BY)."""
        host = self.frontier.hosts.get(name)
        return "" if host is None or host.group is None else host.group.address

    def _on_resolved(self, name: str, address: str) -> None:
        self.frontier.on_resolved(name, address)
        self.wake()

    def _count(self, key: str) -> None:
        assert self.crawler.stats is not None
        self.crawler.stats.inc_value(key)


class Waker:
    """Wakes Scrapy's engine when a host is due: by itself the engine polls only every 5 s. One
    timer, for the earliest requested time.
    """

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler
        self._timer: CallLaterResult | None = None
        self._at = 0.0

    def wake(self) -> None:
        """Let the engine ask for Requests now. The only use of a private member of Scrapy."""
        self.cancel()  # nothing if it is this timer that woke us
        slot = getattr(self.crawler.engine, "_slot", None)
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    def wake_at(self, at: float | None) -> None:
        """Wake the engine at a time in seconds since the epoch, unless an earlier time is set;
        None: never."""
        if at is None or (self._timer is not None and self._at <= at):
            return
        self.cancel()
        self._at = at
        self._timer = call_later(max(0.001, at - time.time()), self.wake)

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _opened(part: T | None) -> T:
    if part is None:
        raise RuntimeError("the frontier is not open")
    return part


def scheduler_of(crawler: Crawler) -> FrontierScheduler | None:
    """The crawl's scheduler if it is ours."""
    scheduler: object = crawler.engine.scheduler
    return scheduler if isinstance(scheduler, FrontierScheduler) else None


class WithScheduler:
    """A component that asks the crawl's scheduler, which Scrapy makes after its middlewares."""

    def __init__(self, crawler: Crawler) -> None:
        self.crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @cached_property
    def scheduler(self) -> FrontierScheduler | None:
        """None if it is not ours."""
        return scheduler_of(self.crawler)

    @property
    def lessor(self) -> FrontierScheduler:
        """The scheduler of a leased Request, which is ours."""
        assert self.scheduler is not None
        return self.scheduler
