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
import json
import logging
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import redis

from larmspider import options
from larmspider.cluster.heartbeat import UNREACHABLE, Heartbeat
from larmspider.cluster.joining import join
from larmspider.cluster.membership import Beat, Membership, WorkerLease, cluster_settings
from larmspider.cluster.redis_client import ComplaintLog, Keys, connect, lasting, link_to, passing
from larmspider.cluster.shared_backend import RedisBackend
from larmspider.cluster.start_urls import StartUrls
from larmspider.fetch.curl_loop import set_send_gate
from larmspider.frontier.overrides import HostOverride, Overrides
from larmspider.frontier.partition import Partitions
from larmspider.frontier.storage.backend import Fenced

if TYPE_CHECKING:
    from pathlib import Path

    from larmspider.cluster.start_urls import Owner, Worker
    from larmspider.frontier.frontier import Frontier

logger = logging.getLogger(__name__)


# The end of a crawl, as every worker sees it: nobody has work, and no mail is on its way.
#
# A worker that has nothing to fetch, nothing uncommitted and no block on its way says so in Redis;
# its next commit, or block, takes that back in the same step. Who then finds that all are at rest
# looks at the mail of every block and at start_urls, and then once more at the others: if nothing
# was
# committed in between, the crawl is at its end, and every beat says so.

LOOK_SECS = 0.5
"""Between two looks, once this worker is at rest."""


class TerminationDetection:
    """``keep_alive``: LARM_KEEP_ALIVE, the crawl has no end."""

    def __init__(self, sharing: Worker, start_urls: StartUrls, *, keep_alive: bool) -> None:
        self._sharing, self._start_urls = sharing, start_urls
        self.keep_alive = keep_alive
        self.ended = False
        self.engine_idle = False
        """Scrapy has asked whether there is more: all that the spider starts with was queued."""
        self.wants_checkpoint = False
        """There is something to commit, or mail to be read, and nothing else to do."""
        self._next = 0.0

    def hear(self, *, ended: bool) -> None:
        """What Redis says of the end. It does not hold while this worker has work."""
        there = self.ended or (ended and not self.keep_alive)
        self.ended = there and not self._has_work() and not self._sharing.backend.pending

    def committed(self) -> None:
        """A checkpoint is done."""
        self.wants_checkpoint = False

    async def look(self) -> None:
        """Is the crawl at its end? Raises Fenced, and what heartbeat.UNREACHABLE lists."""
        sharing = self._sharing
        scheduler, loop = sharing.scheduler, asyncio.get_running_loop()
        if not self._at_rest() or loop.time() < self._next:
            return
        if not self.engine_idle:
            scheduler.wake()
            return
        if sharing.backend.pending:
            self.wants_checkpoint = True
            return
        self._next = loop.time() + LOOK_SECS
        async with scheduler.checkpointing:
            if self._at_rest() and not sharing.backend.pending:
                await self._ask_the_others()

    def _at_rest(self) -> bool:
        sharing = self._sharing
        quiet = sharing.lease.valid and not sharing.moving
        return quiet and not self.ended and not self._has_work()

    def _has_work(self) -> bool:
        return self._sharing.scheduler.busy or not self._sharing.frontier.finished

    async def _ask_the_others(self) -> None:
        sharing = self._sharing
        membership = sharing.membership
        commits, ended = await asyncio.to_thread(membership.idle, len(sharing.backend.owned))
        self.hear(ended=ended)
        if self.ended:
            sharing.scheduler.wake()
            return
        # the mail of others is theirs to read, unless this may be the end
        blocks = range(sharing.keys.blocks) if commits else sorted(sharing.backend.owned)
        mail = await asyncio.to_thread(self._with_mail, blocks)
        if mail & sharing.backend.owned:
            self.wants_checkpoint = True  # it brings the mail
        if not commits or mail or self.keep_alive or await self._start_urls.waiting():
            return
        if await asyncio.to_thread(membership.finish, commits):
            self.ended = True
            sharing.scheduler.wake()

    def _with_mail(self, blocks: Sequence[int]) -> frozenset[int]:
        keys, link = self._sharing.keys, self._sharing.link
        lengths = link.run([("LLEN", keys.block("inbox", block)) for block in blocks])
        return frozenset(b for b, length in zip(blocks, lengths, strict=True) if int(length))


# LARM_MAX_PAGES over many workers: each goes by what all have committed, and by its own pages.
#
# await budget.look()            # once a second: others have committed since
# await budget.committed()       # after an own commit, before the next one can begin

BUDGET_LOOK_SECS = 1.0


class Budget:
    """Asks Redis only where there is a limit. Raises what heartbeat.UNREACHABLE lists."""

    def __init__(self, sharing: Worker) -> None:
        self._sharing = sharing
        self._next = 0.0

    async def look(self) -> None:
        """Not while an own commit is under way, which may be in that number or not."""
        checkpointing = self._sharing.scheduler.checkpointing
        if asyncio.get_running_loop().time() >= self._next and not checkpointing.locked():
            async with checkpointing:
                await self.committed()

    async def committed(self) -> None:
        """Note how many pages are stored in all."""
        self._next = asyncio.get_running_loop().time() + BUDGET_LOOK_SECS
        sharing = self._sharing
        if sharing.frontier.limits.max_pages:
            sharing.blocks.stored_in_all(await asyncio.to_thread(sharing.membership.stored))


# The operator's orders in a crawl of many workers: in Redis, for who gets a host later.
#
#     <spider>:{crawl}:orders      "factor" -> 2.0, "wiki:80" -> {"paused": true, "delay": null}
#
# Each worker has the orders that it was given in its own frontier. What is kept here is newer: a
# worker reads it whenever blocks of hosts come to it, and so does one that joins.

FACTOR = "factor"
"""No host: those have a port."""


class SharedOverrides:
    """Methods may be called from any thread."""

    def __init__(self, client: Any, keys: Keys) -> None:
        self._client, self._key = client, keys.crawl("orders")

    def keep_host(self, name: str, order: HostOverride) -> bool:
        """Also that nothing is ordered of it any more. Whether Redis has it."""
        return self._keep(name, json.dumps(asdict(order)))

    def keep_factor(self, factor: float) -> bool:
        """What all workers were told."""
        return self._keep(FACTOR, str(factor))

    def _keep(self, name: str, value: str) -> bool:
        try:
            self._client.hset(self._key, name, value)
        except UNREACHABLE:
            return False
        return True

    def read(self, own: Overrides) -> Overrides:
        """``own`` with all that is kept here in its place. Raises what UNREACHABLE lists."""
        found = {name.decode(): value for name, value in self._client.hgetall(self._key).items()}
        factor = float(found.pop(FACTOR, own.factor))
        kept = {name: HostOverride(**json.loads(order)) for name, order in found.items()}
        return Overrides(factor, own.hosts | kept, own.restrict, own.instead_of)


# Which blocks a worker is to give up: as many as Redis said last, less those given up since.
#
#     handing_over.hear(beat)               # each sign of life: what is held, how much is too much
#     handing_over.next(blocks.leaving)     # [17, 201]: these are to leave as well
#     handing_over.release([17, 201])       # they are on their way back to Redis
#
# A beat may be heard after blocks were released that it still counts; they count as given up then,
# or
# as many again would leave.


class Rebalance:
    """Asked and told on the event loop only."""

    def __init__(self) -> None:
        self._held: Mapping[int, int] = {}
        self._excess = 0
        self._released: set[int] = set()

    def hear(self, beat: Beat) -> None:
        """What Redis says now."""
        self._held, self._excess = beat.held, beat.excess
        self._released = (self._released & beat.held.keys()) - beat.given.keys()

    def release(self, blocks: Iterable[int]) -> None:
        """These are given up."""
        self._released.update(blocks)

    def next(self, leaving: Collection[int]) -> list[int]:
        """Blocks that are to leave, beside those that do: those that came last, by their tokens."""
        going = self._held.keys() & (self._released | set(leaving))
        staying = sorted(
            (token, block) for block, token in self._held.items() if block not in going
        )
        number = max(0, self._excess - len(going))
        return [block for _, block in staying[len(staying) - number :]]


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
        shared = cluster_settings(settings)
        seconds = shared.lease_secs
        self.link = link_to(settings)
        self.keys = Keys(crawler.spider.name, shared.blocks)
        own_client, _ = connect(settings, socket_timeout=max(0.5, seconds / 3))
        self.membership = Membership(
            own_client, crawler.spider.name, self.name, lease_secs=seconds, blocks=shared.blocks
        )
        self.orders = SharedOverrides(own_client, self.keys)
        self._earlier = join(self.membership, self.link, self.keys, crawler)
        self.lease = WorkerLease(seconds)
        self.heart = Heartbeat(self.membership, self.lease, self._beaten, self._fenced)
        self.fenced = False
        self.start_urls = StartUrls(self, own_client, crawler)
        self.budget = Budget(self)
        self.rest = TerminationDetection(self, self.start_urls, keep_alive=shared.keep_alive)
        self._complaints = ComplaintLog(self.link.name)
        self._loop = asyncio.get_running_loop()
        self._beat = Beat()
        self._handing_over = Rebalance()
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
        set_send_gate(crawler, lambda: self.lease.valid)

    @property
    def frontier(self) -> Frontier:
        assert self._frontier is not None
        return self._frontier

    @property
    def blocks(self) -> Partitions:
        assert self.frontier.partitions is not None
        return self.frontier.partitions

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
                own = frontier.control.overrides.copy()
                frontier.control.merge(self.orders.read(own), own)
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
        return wanted or bool(self.frontier.partitions and self.blocks.idle)

    async def settled(self) -> None:
        """After each commit, while no other can begin: blocks at rest are given up, and what other
        workers posted is taken in."""
        self._to_release |= self.blocks.committed()
        self.frontier.add_forwarded(self.backend.take_inbox(), self.backend.take_links())
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
            own = self.frontier.control.overrides.copy()
            self.frontier.control.merge(await asyncio.to_thread(self.orders.read, own), own)
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
