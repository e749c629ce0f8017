"""One worker among many: how the scheduler shares the crawl, by partitions of hosts, through Redis.

    worker = ClusterWorker(crawler, path, ...)   # joins, or refuses to
    frontier = ... worker.backend ...            # taken up from the last commit
    worker.begin(frontier)                       # the first partitions, if some are free
    ...                                          # partitions come and go, a commit each
    await worker.leave()                         # docs/internals/workers.md

The heartbeat is a thread; Redis commands run in threads; what changes the frontier is done on the
event loop, while no checkpoint is under way.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import redis

from larmspider import options
from larmspider.cluster.heartbeat import Heartbeat
from larmspider.cluster.joining import join
from larmspider.cluster.keys import Keys
from larmspider.cluster.loading import partitions_of, refuse_rebuilding
from larmspider.cluster.membership import (
    MAX_NOTED,
    PARTITIONS,
    WORKERS_NOTE,
    Beat,
    Membership,
    WorkerLease,
)
from larmspider.cluster.memory import LOOK_SECS, MemoryWatch
from larmspider.cluster.owned import Loaded
from larmspider.cluster.placement import BusyHosts, Rebalance
from larmspider.cluster.redis_client import (
    UNREACHABLE,
    ComplaintLog,
    Lost,
    connect,
    insist,
    lasting,
    link_to,
    name_of,
    passing,
    sound,
)
from larmspider.cluster.shared_backend import RedisBackend
from larmspider.cluster.shared_refresh import SharedRefresh
from larmspider.cluster.shared_settings import cluster_settings
from larmspider.cluster.start_urls import StartUrls
from larmspider.fetch.curl_loop import set_send_gate
from larmspider.formatting import counted
from larmspider.frontier.overrides import HostOverride, Overrides, host_as_json
from larmspider.frontier.partition import Partitions
from larmspider.frontier.storage.backend import BackendError, Fenced
from larmspider.urls.normalizer import UrlForms
from larmspider.workdir.directory import asked_fresh

if TYPE_CHECKING:
    from pathlib import Path

    from scrapy.crawler import Crawler

    from larmspider.learned.learning import LearningFrontier
    from larmspider.learned.revisits.revisiting import Revisiting

logger = logging.getLogger(__name__)

TICK_SECS = 0.1
CLOSE_SECS = 10.0
"""How long the end of a worker waits for Redis; uncommitted pages are fetched again."""
END_LOOK_SECS = 0.5
"""Seconds between two checks for the end of the crawl, once this worker has nothing to do."""
BUDGET_LOOK_SECS = 1.0
FACTOR = "factor"
"""A field of the overrides in Redis. It is not a host: hosts have a port."""


class ClusterWorker:
    """Made in FrontierScheduler.open(), with the scheduler's lock and functions.

    ``checkpointing`` is held while a checkpoint is taken. ``busy()``: whether a Request is handed
    out. ``running()``: whether the crawl has neither closed nor broken off. ``break_off(reason)``
    ends the crawl without another commit. ``wake()`` lets the engine ask for Requests.

    Raises ConfigError, CrawlDirError.
    """

    def __init__(
        self,
        crawler: Crawler,
        path: Path,
        *,
        checkpointing: asyncio.Lock,
        busy: Callable[[], bool],
        running: Callable[[], bool],
        stores_open: Callable[[], bool],
        break_off: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._checkpointing, self._busy, self._running = checkpointing, busy, running
        self._stores_open, self._break_off, self._wake = stores_open, break_off, wake
        settings = crawler.settings
        assert crawler.spider is not None
        self.name = options.text(settings, "LARM_WORKER")
        shared = cluster_settings(settings)
        seconds = shared.lease_secs
        self.link = link_to(settings)
        spider, wanted = crawler.spider.name, shared.partitions
        if fresh := asked_fresh(settings):
            if fresh != "force":
                refuse_rebuilding(self.link, spider)
            partitions = wanted or PARTITIONS
        else:
            partitions = partitions_of(self.link, spider, wanted)
        self.keys = Keys(spider, partitions)
        own_client, _ = connect(settings, socket_timeout=max(0.5, seconds / 3))
        self._own_client = own_client
        self.membership = Membership(
            own_client,
            spider,
            self.name,
            lease_secs=seconds,
            partitions=partitions,
        )
        self.overrides = SharedOverrides(own_client, self.keys)
        self._refresh = SharedRefresh(own_client, self.keys)
        self._run_name = options.text(settings, "LARM_REFRESH_RUN")
        forms = UrlForms.from_settings(settings)
        self._earlier = join(self.membership, self.link, self.keys, crawler)
        self.lease = WorkerLease(seconds)
        self.heart = Heartbeat(self.membership, self.lease, self._on_beat, self._on_end)
        self.fenced = False
        self.start_urls = StartUrls(own_client, crawler)
        self.ended = False
        """Whether the crawl has ended for all workers."""
        self._engine_was_idle = False
        self._keep_alive = shared.keep_alive  # LARM_KEEP_ALIVE: the crawl has no end
        self._commit_wanted = False  # the end needs a commit, of changes or of forwarded URLs
        self._next_end_look = 0.0
        self._empty_at = ""  # the number of commits at which all inboxes were empty
        self._complaints = ComplaintLog(self.link.name)
        self._loop = asyncio.get_running_loop()
        self._beat = Beat()
        self._rebalance = Rebalance()
        self._busy_hosts: BusyHosts | None = None
        self._given: dict[int, int] = {}
        self._new_run: set[int] = set()
        self._moved: set[int] = set()  # given partitions that were moved here
        self._to_release: set[int] = set()
        self._waited_for: set[str] = set()
        self._noted_workers = 0  # how many there were when their names were noted
        self._memory = MemoryWatch(self.link, self.keys, self.name)
        self._next_memory_look = 0.0
        assert crawler.stats is not None
        self._pages = partial(crawler.stats.get_value, "response_received_count", 0)
        self._task: asyncio.Task[None] | None = None
        self._frontier: LearningFrontier | None = None
        self._budget: Budget | None = None
        self.heart.start()
        try:
            self.backend = RedisBackend(
                path,
                self.link,
                self.keys,
                worker=self.name,
                epoch=self.membership.epoch,
                batch_entries=shared.local_queue,
                batch_urls=shared.batch_urls,
                forms=forms if forms.has_guesses else None,
                memory=self._memory,
            )
        except BaseException:
            self.abandon()
            raise
        set_send_gate(crawler, lambda: self.lease.valid)

    @property
    def frontier(self) -> LearningFrontier:
        assert self._frontier is not None
        return self._frontier

    @property
    def partitions(self) -> Partitions:
        partitions = self.frontier.partitions
        assert isinstance(partitions, Partitions)
        return partitions

    @property
    def may_fetch(self) -> bool:
        """Whether this worker has its lease, and Redis room for the changes of pages."""
        return self.lease.valid and not self._memory.full and self._has_room()

    def _has_room(self) -> bool:
        """Assumes that each page under way brings as much as the pages before did on average."""
        if not self._memory.is_bounded:
            return True
        brought = self.backend.committed_bytes + self.backend.uncommitted_bytes
        coming = self.backend.leased * brought / (self._pages() + 1)
        return self._memory.has_room(brought + coming)

    # life

    def ended_workers(self) -> list[str]:
        """Names of the workers that have committed to this crawl and do not run now. In any thread;
        O(keys in Redis)."""
        start = self.keys.commit("")
        keys = self.link.client.scan_iter(match=start + b"*", count=1000)
        known = {key.removeprefix(start).decode() for key in keys}
        return sorted(known - {self.name, *self.membership.living()})

    def begin(self, frontier: LearningFrontier) -> None:
        """Free the partitions of an earlier run of this worker, and take a share. Call it after
        recover(). It blocks the event loop, which has nothing else to do yet."""
        self._frontier = frontier
        self._budget = Budget(frontier, self.membership, self._checkpointing)
        self._busy_hosts = BusyHosts(
            frontier,
            self.backend.partition_of,
            self._loop.time,
            may_move=not frontier.addresses.grouped,
        )
        try:
            if self._earlier:
                while not self.membership.reap(self._earlier):
                    self.backend.replay(self.name)
            self._note(self.heart.beat())
            self._memory.look(0, 0, self._beat.workers)
        except UNREACHABLE as error:
            if (refusal := lasting(error, self.link.name, starting=True)) is not None:
                raise refusal from None
            logger.warning("Redis at %s does not answer: %s", self.link.name, error)
        if self._given:
            with suppress(*UNREACHABLE):
                own, since = frontier.control.overrides.copy(), frontier.control.orders
                frontier.control.merge(self.overrides.read(own), since)
                if number := self.overrides.give_back(own):
                    logger.warning(
                        "Redis at %s lacked %s of the operator, and gets them from this worker",
                        self.link.name, counted(number, "order"),
                    )  # fmt: skip
            if self._revisiting.mode:
                self._revisiting.begin(insist(self._run_began, self.link.name))
            given, new_run = self._take_given()
            self._enter(self.backend.load(given), new_run)
        logger.info(
            "Worker %s: %d of %d partitions, with %s; %s",
            self.name,
            len(self.backend.owned),
            self.keys.partitions,
            counted(len(frontier.hosts), "host"),
            counted(self._beat.workers, "worker"),
        )
        self.link.starting = False
        self._task = self._loop.create_task(self._run())

    def is_known_host(self, host: str) -> bool:
        """Whether any worker has committed a URL of the host; False while Redis does not answer.
        May be called in any thread."""
        key = self.keys.partition("counts", self.keys.partition_of(host))
        try:
            return bool(self._own_client.hexists(key, host))
        except UNREACHABLE:
            return False

    def stored_in_all(self) -> int | None:
        """The number of pages that all workers have committed; None while Redis does not answer.
        May be called in any thread."""
        try:
            return self.membership.stored()
        except UNREACHABLE:
            return None

    def abandon(self) -> None:
        """The crawl could not be opened: give the name back."""
        self._leave()

    def closing(self) -> None:
        """The crawl ends: Redis is waited for no longer than CLOSE_SECS."""
        timer = threading.Timer(CLOSE_SECS, self.link.stop.set)
        timer.daemon = True
        timer.start()

    async def leave(self, *, broken: bool) -> None:
        """Free the partitions, after the last commit or because the crawl is ``broken``."""
        if self._task is not None:
            self._task.cancel()
        if not await asyncio.to_thread(self._leave, "" if broken else self.backend.known):
            self.end_fenced(Fenced(f"{self.link.name} has come back without its last commit"))
        self.lease.end()

    def _leave(self, known: str = "") -> bool:
        """Leave the membership. Returns False if Redis has lost commits of this worker."""
        self.heart.stop()
        with suppress(Fenced, *UNREACHABLE):
            return self.membership.leave(known)
        return True

    def explained(self, error: Fenced) -> Fenced:
        """The reason for which other workers have taken over. Not on the event loop: it asks Redis
        whether evicted keys are the cause."""
        self.fenced = True
        return self._memory.explained(error)

    def engine_is_idle(self) -> None:
        """Scrapy asks whether there is more: all that the spider starts with was queued."""
        self._engine_was_idle = True

    # the heartbeat's thread

    def _on_beat(self, beat: Beat) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._note, beat)

    def _on_end(self, error: BackendError) -> None:
        end: Callable[[], None] = partial(self._break_off, str(error))
        if isinstance(error, Fenced):
            end = partial(self.end_fenced, self.explained(error))
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(end)

    # the event loop

    def end_fenced(self, error: Fenced) -> None:
        """Other workers have taken over this worker's partitions."""
        self.fenced = True
        self.lease.end()
        self._break_off(str(error))

    def _note(self, beat: Beat) -> None:
        if beat.quiet and not self._beat.quiet and self._frontier is not None:
            self.backend.mark_inboxes()  # Redis may have forgotten which were filled
        self._beat = beat
        self._rebalance.note(beat)
        self._given.update(beat.given)
        self._new_run |= beat.fresh
        self._moved |= beat.moved
        self._warn_of_silent(beat)
        if self._busy_hosts is not None:
            self._busy_hosts.told(beat.arrived)
        if self._frontier is not None:
            self._note_end(ended=beat.ended)
            self._wake()  # the lease may have run out before

    def _warn_of_silent(self, beat: Beat) -> None:
        """Once a worker: its partitions are missing here, and nothing happens until they come."""
        for name, seconds in beat.silent.items():
            if beat.moving and not beat.excess and name not in self._waited_for:
                self._waited_for.add(name)
                logger.warning(
                    "Waiting up to %.0f s for the lease of worker %s, which is silent and has not"
                    " given up its partitions",
                    seconds,
                    name,
                )

    @property
    def wants_checkpoint(self) -> bool:
        """Whether a commit is needed to give up partitions, to read more forwarded URLs or seeds,
        or to end the crawl."""
        wanted = self._commit_wanted or self.start_urls.wants_checkpoint
        return wanted or bool(self.frontier.partitions and self.partitions.idle)

    async def committed(self) -> None:
        """Called after each commit, while no other can begin: gives up idle partitions, and takes
        in URLs that other workers forwarded."""
        self._to_release |= self.partitions.committed()
        self.frontier.add_forwarded(self.backend.take_inbox())
        self._commit_wanted = False
        assert self._budget is not None
        try:
            if self._to_release:
                self._rebalance.release(self._to_release)
                await asyncio.to_thread(self.membership.release, self._to_release)
                self._to_release.clear()
            await self._budget.committed()
            await self.start_urls.committed(self.keys.commit(self.name), self.backend.serial)
        except UNREACHABLE as error:
            self._log_unreachable(error)  # tried again after the next commit
        self._wake()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECS)
            if not self._running():
                return
            try:
                await self._tick()
            except Fenced as error:
                self.end_fenced(await asyncio.to_thread(self.explained, error))
            except UNREACHABLE as error:
                if isinstance(end := lasting(error, self.link.name, starting=False), Lost):
                    self._break_off(str(end))
                self._log_unreachable(error)
            except BackendError as error:
                self._break_off(str(error))
            except Exception as error:  # without this task the worker would do nothing, for ever
                logger.critical("Worker %s cannot continue", self.name, exc_info=True)
                self._break_off(" ".join(f"{type(error).__name__}: {error}".split()))

    def _log_unreachable(self, error: Exception) -> None:
        """Commits and the heartbeat report an outage. If Redis answers, but refuses, they may never
        notice."""
        if isinstance(error, redis.ResponseError) or not passing(error):
            self._complaints.tell(error)
        else:
            logger.debug("Redis at %s does not answer: %s", self.link.name, error)

    async def _tick(self) -> None:
        if self._beat.dead:
            await self._replace_expired()
        if self._beat.workers != self._noted_workers:
            await self._note_workers()
        if self._given and not self.ended:  # else they are of workers that have left already
            await self._load()
            self._wake()
        partitions = self.partitions
        assert self._busy_hosts is not None
        leaving = partitions.leaving | self._to_release
        self.heart.load = self._busy_hosts.look(self.backend.owns_partition, leaving)
        if going := self._rebalance.next(leaving, self._busy_hosts.staying | self._moved):
            partitions.leave(going)
        assert self._budget is not None
        await self._budget.look()
        await self._fill_refresh()
        owns_seeds = self.backend.owns_partition(0) and 0 not in partitions.leaving
        await self.start_urls.read(mine=owns_seeds and self._stores_open())
        await self._look_for_end()
        await self._look_at_memory()

    @property
    def _revisiting(self) -> Revisiting:
        return self.frontier.refresh

    def _run_began(self) -> float:
        mode, now = self._revisiting.mode, self.frontier.clock()
        return self._refresh.began(mode, now, self._run_name)

    async def _fill_refresh(self) -> None:
        """Plan revisits within the rest of the crawl's budget."""
        refresh = self._revisiting
        if not refresh.wants_budget or self._checkpointing.locked():
            return
        async with self._checkpointing:
            pages = await asyncio.to_thread(self.membership.stored)
            per_day = refresh.budget.per_day_of(pages)
            now = self.frontier.clock()
            left = await asyncio.to_thread(self._refresh.refill, now, per_day)
            refresh.budget.grant(left, pages)
        self._wake()

    async def _look_at_memory(self) -> None:
        committed, pending = self.backend.committed_bytes, self.backend.uncommitted_bytes
        due = self._loop.time() >= self._next_memory_look
        if not (due or self._memory.wants_look(committed + pending)):
            return
        self._next_memory_look = self._loop.time() + LOOK_SECS
        await self._read_orders(all_of_them=False)
        waited = not self._has_room()
        await asyncio.to_thread(self._memory.look, committed, pending, self._beat.workers)
        if waited and not self._memory.full:
            self._wake()

    async def _note_workers(self) -> None:
        """Keep the names of all workers in this directory: a rebuild says which directories are
        missing. Beyond MAX_NOTED names the oldest go."""
        number = self._beat.workers
        names = await asyncio.to_thread(self.membership.names)
        known = (self.backend.note(WORKERS_NOTE) or b"").decode().split()
        if new := [name for name in names if name not in known]:
            noted = [*known, *new][-MAX_NOTED:]
            self.backend.put_note(WORKERS_NOTE, "\n".join(noted).encode())
        self._noted_workers = number

    async def _replace_expired(self) -> None:
        """Apply what workers whose leases ran out had committed; then their partitions are free."""
        for epoch, name in self._beat.dead.items():
            logger.warning(
                "Worker %s has not renewed its lease: its partitions are taken over", name
            )
            await asyncio.to_thread(self.backend.replay, name)
            await asyncio.to_thread(self.membership.reap, epoch, name)
        self._beat = replace(self._beat, dead={})
        self.heart.soon()

    async def _load(self) -> None:
        async with self._checkpointing:
            if not self._running():
                return
            await self._read_orders(all_of_them=True)
            if self._revisiting.mode:
                self._revisiting.begin(await asyncio.to_thread(self._run_began))
            given, new_run = self._take_given()
            self._enter(await asyncio.to_thread(self.backend.load, given), new_run)

    async def _read_orders(self, *, all_of_them: bool) -> None:
        """Read all overrides in Redis, or only the changed ones. Other workers may have received an
        order while this worker was starting."""
        control = self.frontier.control
        own, since = control.overrides.copy(), control.orders
        control.merge(
            await asyncio.to_thread(self.overrides.read, own, all_of_them=all_of_them), since
        )

    def _take_given(self) -> tuple[dict[int, int], set[int]]:
        given, new_run = self._given, self._new_run
        self._given, self._new_run = {}, set()
        return given, new_run

    def _enter(self, loaded: Loaded, new_run: set[int]) -> None:
        hosts = self.partitions.enter(loaded, new_run=new_run)
        assert self._busy_hosts is not None
        moved = self._moved & loaded.tokens.keys()  # without partitions of a later beat
        self._moved -= moved
        self._busy_hosts.came(moved)
        if names := [name for name in hosts if self.backend.partition_of(name) in moved]:
            logger.info(
                "Took over %s from a busier worker: %s%s",
                counted(len(names), "host"),
                ", ".join(names[:5]),
                ", ..." if names[5:] else "",
            )
        logger.debug("%s, %d hosts came", self.partitions, len(hosts))

    # Termination detection. A worker that has nothing to fetch, nothing uncommitted and no
    # partition on its way reports this to Redis; its next commit, or partition, takes the report
    # back in the same step. A worker that then finds all workers quiescent looks at the inboxes of
    # every partition and at the start URLs, and once more at the others. If nothing was committed
    # in between, the crawl is at its end, and every beat reports it.

    def _note_end(self, *, ended: bool) -> None:
        """An end that Redis reports does not count while this worker has work."""
        at_end = self.ended or (ended and not self._keep_alive)
        self.ended = at_end and not self._has_work() and not self.backend.pending

    def _has_work(self) -> bool:
        return self._busy() or not self.frontier.finished

    def _quiescent(self) -> bool:
        moving = self._given or self._to_release or self.partitions.leaving or self._beat.dead
        return self.lease.valid and not (moving or self.ended or self._has_work())

    async def _look_for_end(self) -> None:
        """Raises Fenced, and what UNREACHABLE lists."""
        if not self._quiescent() or self._loop.time() < self._next_end_look:
            return
        if not self._engine_was_idle:
            self._wake()
            return
        if self.backend.pending:
            self._commit_wanted = True
            return
        self._next_end_look = self._loop.time() + END_LOOK_SECS
        async with self._checkpointing:
            if self._quiescent() and not self.backend.pending:
                await self._ask_the_others()

    async def _ask_the_others(self) -> None:
        membership, owned = self.membership, self.backend.owned
        commits, ended = await asyncio.to_thread(membership.idle, len(owned), self.backend.known)
        self._note_end(ended=ended)
        if self.ended:
            self._wake()
            return
        if await asyncio.to_thread(self.backend.has_mail):
            self._commit_wanted = True  # the commit reads it
            return
        # before the end all inboxes are looked at, once: that grows with their number
        if commits and commits != self._empty_at:
            filled = await asyncio.to_thread(self._filled, range(self.keys.partitions))
            if filled & owned:
                self.backend.mark_inboxes(filled & owned)
                self._commit_wanted = True
            if filled:
                return
            self._empty_at = commits
        if not commits or self._keep_alive or await self.start_urls.waiting():
            return
        living = await asyncio.to_thread(membership.living)
        if waiting := await asyncio.to_thread(self._outdated, living):
            self._commit_wanted = self.name in waiting
            return
        if await asyncio.to_thread(membership.finish, commits):
            self.ended = True
            self._wake()
            absent = await asyncio.to_thread(self.ended_workers) if self._revisiting.mode else []
            if left := await asyncio.to_thread(self._outdated, absent):
                logger.warning(
                    "Directories of workers that are not running still have pages that were"
                    " removed or have newer versions: %s. Run these workers to drop the pages",
                    ", ".join(left),
                )

    def _outdated(self, workers: Sequence[str]) -> list[str]:
        """The workers that still have to learn of pages that no longer count."""
        if not workers:
            return []
        found = self.link.run([("LLEN", self.keys.outdated(name)) for name in workers])
        return [name for name, length in zip(workers, found, strict=True) if int(length)]

    def _filled(self, inboxes: Sequence[int]) -> frozenset[int]:
        lengths = self.link.run([("LLEN", self.keys.partition("inbox", at)) for at in inboxes])
        return frozenset(at for at, length in zip(inboxes, lengths, strict=True) if int(length))


class Budget:
    """LARM_MAX_PAGES over many workers: what all have committed counts, and a worker's own pages.

        await budget.look()            # once a second: others have committed since
        await budget.committed()       # after a commit of this worker, before the next one

    Redis gets commands only if there is a limit. Raises what UNREACHABLE lists.
    """

    def __init__(
        self, frontier: LearningFrontier, membership: Membership, checkpointing: asyncio.Lock
    ) -> None:
        self._frontier, self._membership = frontier, membership
        self._checkpointing = checkpointing
        self._next = 0.0

    async def look(self) -> None:
        """Skipped while this worker commits: the number may or may not include that commit."""
        due = asyncio.get_running_loop().time() >= self._next
        if due and not self._checkpointing.locked():
            async with self._checkpointing:
                await self.committed()

    async def committed(self) -> None:
        """Note how many pages are stored in all."""
        self._next = asyncio.get_running_loop().time() + BUDGET_LOOK_SECS
        if self._frontier.limits.max_pages:
            stored = await asyncio.to_thread(self._membership.stored)
            self._frontier.partitions.stored_in_all(stored)


class SharedOverrides:
    """The operator's overrides in Redis, for a worker that gets a host later.

        <spider>:{crawl}:orders      "factor" -> 2.0, "wiki:80" -> {"paused": true, "delay": null}

    Each worker has its overrides in its own frontier. The overrides in Redis are newer: a worker
    reads them whenever it gets hosts. Methods may be called from any thread.
    """

    def __init__(self, client: Any, keys: Keys) -> None:
        self._client, self._key = client, keys.crawl("orders")
        self._seen: dict[bytes, bytes] = {}  # the result of the last read()
        self._writing = threading.Lock()

    def keep_host(self, name: str, override: HostOverride) -> bool:
        """Keep the part of an override that outlasts this run; also an override that was taken
        back. Returns whether Redis has it. ``override`` is read when its turn has come: if two
        threads write, the later order stays."""
        return self._keep(name, lambda: json.dumps(host_as_json(override.after_run())))

    def keep_factor(self, factor: float) -> bool:
        """Returns whether Redis has it."""
        return self._keep(FACTOR, lambda: str(factor))

    def _keep(self, name: str, value: Callable[[], str]) -> bool:
        try:
            with self._writing:
                kept = value().encode()
                self._client.hset(self._key, name, kept)
                # an order of another worker that follows at once differs from this one
                self._seen[name.encode()] = kept
        except UNREACHABLE:
            return False
        return True

    def give_back(self, own: Overrides) -> int:
        """Give Redis the orders in ``own`` that it lacked at the last read(): it has lost the key,
        or was away when they came. Returns their number. Raises what UNREACHABLE lists."""
        kept = own.after_run()
        orders = {
            name: json.dumps(host_as_json(order))
            for name, order in kept.hosts.items()
            if order != HostOverride()
        }
        if kept.factor != 1.0:
            orders[FACTOR] = str(kept.factor)
        lacking = {name: order for name, order in orders.items() if name.encode() not in self._seen}
        return sum(self._client.hsetnx(self._key, name, one) for name, one in lacking.items())

    def read(self, own: Overrides, *, all_of_them: bool = True) -> Overrides:
        """``own``, replaced by the overrides in Redis; without ``all_of_them`` only by the
        overrides that changed since the last read(). Raises what UNREACHABLE lists, and Lost."""
        with self._writing, sound(self._client, name_of(self._client), [self._key]):
            known, self._seen = self._seen, self._client.hgetall(self._key)
            found = {
                name.decode(): value
                for name, value in self._seen.items()
                if all_of_them or known.get(name) != value
            }
            factor = float(found.pop(FACTOR, own.after_run().factor))
            kept = {name: HostOverride(**json.loads(value)) for name, value in found.items()}
        for name in kept.keys() & own.hosts.keys():
            kept[name] = kept[name].with_orders_for_run(own.hosts[name])
        found_here = replace(own, factor=factor, hosts=own.hosts | kept, for_run={})
        return found_here.with_orders_for_run(own)
