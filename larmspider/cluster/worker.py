"""One worker among many: how the scheduler shares the crawl, by blocks of hosts, through Redis.

    sharing = Sharing(scheduler, path)        # joins, or refuses to
    frontier = ... sharing.backend ...        # taken up from the last commit
    sharing.begin(frontier)                   # the first blocks, if some are free
    ...                                       # blocks come and go, a commit each (docs/workers.md)
    await sharing.leave()

The heartbeat is a thread; Redis is asked in threads; what changes the frontier is done on the event
loop, while no checkpoint is under way.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import redis

from larmspider import options
from larmspider.cluster.handing_over import HandingOver
from larmspider.cluster.heartbeat import UNREACHABLE, Heartbeat
from larmspider.cluster.joining import join
from larmspider.cluster.membership import Beat, Membership
from larmspider.cluster.redis_errors import Complaints, lasting, passing
from larmspider.cluster.redis_keys import Keys
from larmspider.cluster.scheduler_budget import Budget
from larmspider.cluster.scheduler_redis import connect, link_to
from larmspider.cluster.scheduler_rest import Rest
from larmspider.cluster.shared_backend import RedisBackend
from larmspider.cluster.shared_orders import SharedOrders
from larmspider.cluster.start_urls import StartUrls
from larmspider.cluster.worker_lease import WorkerLease
from larmspider.fetch.curl_loop import set_guard
from larmspider.frontier.factory import sharing
from larmspider.frontier.partition import Blocks
from larmspider.frontier.storage.backend import Fenced

if TYPE_CHECKING:
    from pathlib import Path

    from larmspider.cluster.scheduler_parts import Owner
    from larmspider.frontier.frontier import Frontier

logger = logging.getLogger(__name__)

TICK_SECS = 0.1
CLOSE_SECS = 10.0
"""How long the end of a worker waits for Redis; what is not committed then is fetched again."""


class Sharing:
    """Made in FrontierScheduler.open(). Raises ConfigError, CrawlDirError."""

    def __init__(self, scheduler: Owner, path: Path) -> None:
        self.scheduler, crawler = scheduler, scheduler.crawler
        settings = crawler.settings
        assert crawler.spider is not None
        self.name = options.text(settings, "LARM_WORKER")
        shared = sharing(settings)
        seconds = shared.lease_secs
        self.link = link_to(settings)
        self.keys = Keys(crawler.spider.name, shared.blocks)
        own_client, _ = connect(settings, socket_timeout=max(0.5, seconds / 3))
        self.membership = Membership(
            own_client, crawler.spider.name, self.name, lease_secs=seconds, blocks=shared.blocks
        )
        self.orders = SharedOrders(own_client, self.keys)
        self._earlier = join(self.membership, self.link, self.keys, crawler)
        self.lease = WorkerLease(seconds)
        self.heart = Heartbeat(self.membership, self.lease, self._beaten, self._fenced)
        self.fenced = False
        self.start_urls = StartUrls(self, own_client, crawler)
        self.budget = Budget(self)
        self.rest = Rest(self, self.start_urls, keep_alive=shared.keep_alive)
        self._complaints = Complaints(self.link.name)
        self._loop = asyncio.get_running_loop()
        self._beat = Beat()
        self._handing_over = HandingOver()
        self._given: dict[int, int] = {}
        self._fresh: set[int] = set()
        self._to_release: set[int] = set()
        self._waited_for: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._frontier: Frontier | None = None
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
            )
        except BaseException:
            self.abandon()
            raise
        set_guard(crawler, lambda: self.lease.valid)

    @property
    def frontier(self) -> Frontier:
        assert self._frontier is not None
        return self._frontier

    @property
    def blocks(self) -> Blocks:
        assert self.frontier.blocks is not None
        return self.frontier.blocks

    # life

    def begin(self, frontier: Frontier) -> None:
        """After recover(): what an earlier run of this worker had is free, and a share is taken.
        Blocks the event loop, which has nothing else to do yet."""
        self._frontier = frontier
        try:
            if self._earlier:
                self.membership.bury(self._earlier)
            self._note(self.heart.beat())
        except UNREACHABLE as error:
            if (refusal := lasting(error, self.link.name, starting=True)) is not None:
                raise refusal from None
            logger.warning("Redis at %s does not answer: %s", self.link.name, error)
        if self._given:
            with suppress(*UNREACHABLE):
                own = frontier.control.orders.copy()
                frontier.control.take_up(self.orders.read(own), own)
            given, fresh = self._take_given()
            self._enter(self.backend.load(given), fresh)
        logger.info(
            "Worker %s: %d of %d blocks, with %d hosts; %d workers",
            self.name,
            len(self.backend.owned),
            self.keys.blocks,
            len(frontier.hosts),
            self._beat.workers,
        )
        self.link.starting = False
        self._task = self._loop.create_task(self._run())

    def abandon(self) -> None:
        """The crawl could not be opened: give the name back."""
        self.heart.stop()
        with suppress(Fenced, *UNREACHABLE):
            self.membership.leave()

    def closing(self) -> None:
        """The crawl ends: Redis is waited for no longer than CLOSE_SECS."""
        timer = threading.Timer(CLOSE_SECS, self.link.stop.set)
        timer.daemon = True
        timer.start()

    async def leave(self) -> None:
        """All is committed, or broken: the blocks are free."""
        if self._task is not None:
            self._task.cancel()
        await asyncio.to_thread(self.abandon)
        self.lease.end()

    # the heartbeat's thread

    def _beaten(self, beat: Beat) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._note, beat)

    def _fenced(self, error: Fenced) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.break_off, error)

    # the event loop

    def break_off(self, error: Fenced) -> None:
        """Others have taken over."""
        self.fenced = True
        self.lease.end()
        self.scheduler.broken = self.scheduler.broken or str(error)

    def _note(self, beat: Beat) -> None:
        self._beat = beat
        self._handing_over.hear(beat)
        self._given.update(beat.given)
        self._fresh |= beat.fresh
        self._tell_of_silent(beat)
        if self._frontier is not None:
            self.rest.hear(ended=beat.ended)
            self.scheduler.wake()  # it may have rested

    def _tell_of_silent(self, beat: Beat) -> None:
        """Blocks are missing, and belong to who is silent: once a worker, why nothing happens."""
        for name, seconds in beat.silent.items():
            if beat.moving and not beat.excess and name not in self._waited_for:
                self._waited_for.add(name)
                logger.warning(
                    "Waiting up to %.0f s for the lease of worker %s, which is silent and has not"
                    " given up its blocks",
                    seconds,
                    name,
                )

    @property
    def wants_checkpoint(self) -> bool:
        """So that blocks can be given up, mail or more seeds be read, or the crawl end."""
        wanted = self.rest.wants_checkpoint or self.start_urls.wants_checkpoint
        return wanted or bool(self.frontier.blocks and self.blocks.resting)

    async def settled(self) -> None:
        """After each commit, while no other can begin: blocks at rest are given up, and what other
        workers posted is taken in."""
        self._to_release |= self.blocks.given_up()
        self.frontier.add_mail(self.backend.take_inbox(), self.backend.take_links())
        self.rest.committed()
        await self._ask_redis()
        self.scheduler.wake()

    async def _ask_redis(self) -> None:
        try:
            if self._to_release:
                self._handing_over.release(self._to_release)
                await asyncio.to_thread(self.membership.release, self._to_release)
                self._to_release.clear()
            await self.budget.committed()
            await self.start_urls.committed()
        except UNREACHABLE as error:
            self._not_now(error)  # after the next commit

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECS)
            if self.scheduler.closed or self.scheduler.broken:
                return
            try:
                await self._tick()
            except Fenced as error:
                self.break_off(error)
            except UNREACHABLE as error:
                self._not_now(error)
            except Exception as error:  # without this task the worker would do nothing, for ever
                logger.critical("Worker %s cannot go on", self.name, exc_info=True)
                why = " ".join(f"{type(error).__name__}: {error}".split())
                self.scheduler.broken = self.scheduler.broken or why

    def _not_now(self, error: Exception) -> None:
        """It is asked again. Of an outage the commits and the heartbeat tell; that Redis answers,
        and refuses, they may never meet."""
        if isinstance(error, redis.ResponseError) or not passing(error):
            self._complaints.tell(error)
        else:
            logger.debug("Redis at %s does not answer: %s", self.link.name, error)

    async def _tick(self) -> None:
        if self._beat.dead:
            await self._bury()
        if self._given and not self.rest.ended:  # else they are of workers that have left already
            await self._load()
            self.scheduler.wake()
        self.blocks.leave(self._handing_over.next(self.blocks.leaving | self._to_release))
        await self.budget.look()
        await self.start_urls.read()
        await self.rest.look()

    async def _bury(self) -> None:
        """Carry out what dead workers had committed; then their blocks are free."""
        dead = dict(self._beat.dead)
        for epoch, name in dead.items():
            logger.warning("Worker %s has not renewed its lease: its blocks are taken over", name)
            await asyncio.to_thread(self.backend.replay, name)
            await asyncio.to_thread(self.membership.bury, epoch)
        self._beat = replace(self._beat, dead={})
        self.heart.soon()

    async def _load(self) -> None:
        async with self.scheduler.checkpointing:
            if self.scheduler.closed or self.scheduler.broken:
                return
            own = self.frontier.control.orders.copy()
            self.frontier.control.take_up(await asyncio.to_thread(self.orders.read, own), own)
            given, fresh = self._take_given()
            self._enter(await asyncio.to_thread(self.backend.load, given), fresh)

    def _take_given(self) -> tuple[dict[int, int], set[int]]:
        given, fresh = self._given, self._fresh
        self._given, self._fresh = {}, set()
        return given, fresh

    def _enter(self, loaded: object, fresh: set[int]) -> None:
        hosts = self.blocks.enter(loaded, new_run=fresh)
        logger.debug("%s, %d hosts came", self.blocks, hosts)

    @property
    def moving(self) -> bool:
        """Whether blocks are on their way to or from this worker."""
        return bool(self._given or self._to_release or self.blocks.leaving or self._beat.dead)
