"""larmspider/cluster/worker.py: a worker hears of the pages of others between its own
checkpoints, or one with a long time between two would go on with all that it has.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from scrapy import Spider
from scrapy.settings import Settings

from larmspider.cluster import start_urls as scheduler_start_urls
from larmspider.cluster import worker as scheduler_budget
from larmspider.cluster.joining import wipe
from larmspider.cluster.keys import Keys
from larmspider.cluster.membership import Beat, Membership
from larmspider.cluster.placement import STAY_SECS, BusyHosts, Rebalance
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.start_urls import StartUrls
from larmspider.cluster.worker import Budget, ClusterWorker, SharedOverrides
from larmspider.frontier.overrides import HostOverride, Overrides
from tests.support.frontier.memory_backend import MemoryBackend
from tests.support.frontier.simulation import Clock, build
from tests.support.servers.redis import REDIS_SERVER, RedisServer


@pytest.mark.parametrize(("lengths", "ends"), [([0, 0, 0, 0], True), ([0, 0, 3, 0], False)])
def test_the_crawl_does_not_end_while_an_inbox_has_urls(lengths: list[int], ends: bool) -> None:
    """Every worker is idle, but a partition's owner has not read its forwarded URLs yet."""
    worker = object.__new__(ClusterWorker)
    finished: list[int] = []
    worker.membership = SimpleNamespace(  # type: ignore[assignment]
        idle=lambda owned, known: (17, False),
        finish=lambda commits: finished.append(commits) or True,
        living=list,
    )
    worker._frontier = SimpleNamespace(  # type: ignore[assignment]
        refresh=SimpleNamespace(mode=""), finished=True
    )
    worker.backend = SimpleNamespace(  # type: ignore[assignment]
        owned=frozenset({0}), pending=0, known="0 0", has_mail=lambda: False
    )
    worker._empty_at = ""
    worker.keys = Keys("intranet", 4)
    worker.link = SimpleNamespace(run=lambda commands: lengths)  # type: ignore[assignment]

    async def waiting() -> bool:
        return False

    worker.start_urls = SimpleNamespace(waiting=waiting)  # type: ignore[assignment]
    worker.ended = worker._keep_alive = False
    worker._wake = lambda: None
    asyncio.run(worker._ask_the_others())
    assert (worker.ended, finished) == (ends, [17] if ends else [])


def test_the_last_commit_of_a_dead_worker_is_applied_before_its_blocks_are_free() -> None:
    worker, done = object.__new__(ClusterWorker), list[tuple[object, ...]]()
    worker.backend = SimpleNamespace(  # type: ignore[assignment]
        replay=lambda name: done.append(("replay", name))
    )
    worker.membership = SimpleNamespace(  # type: ignore[assignment]
        reap=lambda epoch, name: done.append(("reap", epoch, name))
    )
    worker.heart = SimpleNamespace(soon=lambda: done.append(("beat",)))  # type: ignore[assignment]
    worker._beat = Beat(dead={7: "w2"})
    asyncio.run(worker._replace_expired())
    assert done == [("replay", "w2"), ("reap", 7, "w2"), ("beat",)]
    assert not worker._beat.dead


class Worker:
    """A worker for the budget; ``heard`` lists the messages to its blocks."""

    def __init__(self, max_pages: int) -> None:
        self.pages, self.heard = 0, list[int]()
        self.checkpointing = asyncio.Lock()
        frontier = SimpleNamespace(
            limits=SimpleNamespace(max_pages=max_pages),
            partitions=SimpleNamespace(stored_in_all=self.heard.append),
        )
        membership = SimpleNamespace(stored=lambda: self.pages)
        self.budget = Budget(frontier, membership, self.checkpointing)  # type: ignore[arg-type]


def test_others_pages_are_looked_up_without_an_own_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time that it is due; a commit counts as one."""
    worker = Worker(max_pages=10)
    budget = worker.budget

    async def run() -> None:
        worker.pages = 3
        await budget.look()
        worker.pages = 7
        await budget.look()
        assert worker.heard == [3], "too soon"
        await budget.committed()
        assert worker.heard == [3, 7]
        monkeypatch.setattr(scheduler_budget, "BUDGET_LOOK_SECS", 0.0)
        await budget.committed()
        worker.pages = 11
        await budget.look()
        assert worker.heard == [3, 7, 7, 11]

    asyncio.run(run())


def test_nothing_is_looked_up_in_the_middle_of_an_own_commit() -> None:
    """Whether that is in the number cannot be told then."""
    worker = Worker(max_pages=10)
    budget = worker.budget

    async def run() -> None:
        async with worker.checkpointing:
            await budget.look()
        assert worker.heard == []
        await budget.look()
        assert worker.heard == [0]

    asyncio.run(run())


def test_without_a_limit_nobody_is_asked() -> None:
    worker = Worker(max_pages=0)
    asyncio.run(worker.budget.look())
    assert worker.heard == []


# larmspider/cluster/worker.py: as few blocks as possible move when workers join.


HELD = {0: 10, 1: 20, 2: 30}


@pytest.mark.parametrize(
    ("leaving", "excess", "chosen"),
    [((), 0, []), ((), 2, [1, 2]), ((2,), 2, [1]), ((2, 1), 1, []), ((), 9, [0, 1, 2])],
)
def test_blocks_that_came_last_leave_first(
    leaving: tuple[int, ...], excess: int, chosen: list[int]
) -> None:
    handing_over = Rebalance()
    handing_over.note(Beat(held=HELD, excess=excess))
    assert handing_over.next(leaving) == chosen


def test_a_beat_that_is_older_than_a_release_asks_for_nothing_more() -> None:
    """Redis answered the beat, then the release; they were heard the other way round."""
    handing_over = Rebalance()
    beat = Beat(held=HELD, excess=2)
    handing_over.note(beat)
    handing_over.release([1, 2])
    assert handing_over.next(()) == []
    handing_over.note(beat)
    assert handing_over.next(()) == []
    handing_over.note(Beat(held={0: 10}))
    assert handing_over.next(()) == []


def test_a_block_that_came_back_counts_again() -> None:
    handing_over = Rebalance()
    handing_over.note(Beat(held=HELD, excess=1))
    handing_over.release([2])
    handing_over.note(Beat(held=HELD | {2: 40}, given={2: 40}))
    handing_over.note(Beat(held=HELD | {2: 40}, excess=1))
    assert handing_over.next(()) == [2]


def test_a_partition_that_was_moved_here_stays_for_a_while() -> None:
    """Another one leaves in exchange, although this one came last and its host is not yet counted:
    it goes on in a minute at least."""
    clock = Clock()
    busy = BusyHosts(build(MemoryBackend(), clock), lambda _: 2, clock)
    busy.look(HELD.__contains__, ())
    busy.came({2})
    assert busy.look(HELD.__contains__, ()).arrived == (2,)
    handing_over = Rebalance()
    handing_over.note(Beat(held=HELD, excess=1))
    assert handing_over.next((), busy.staying) == [1]
    clock.now += STAY_SECS
    assert handing_over.next((), busy.staying) == [2]


BLOCKS = 256


class Holding:
    """Its blocks leave at once, and are released one tick later."""

    def __init__(self, membership: Membership) -> None:
        self.membership, self.handing_over = membership, Rebalance()
        self.leaving: set[int] = set()
        self.given = 0
        membership.join("a crawl")

    def tick(self) -> bool:
        """Whether anything moved."""
        released = bool(self.leaving)
        self.handing_over.release(self.leaving)
        self.membership.release(self.leaving)
        self.leaving.clear()
        beat = self.membership.beat()
        self.given += len(beat.given)
        self.handing_over.note(beat)
        self.leaving.update(self.handing_over.next(self.leaving))
        return released or bool(beat.given or self.leaving)


@pytest.fixture(scope="module")
def running() -> Iterator[RedisServer]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer("127.32.0.1", appendonly="no") as server:
        yield server


@pytest.mark.parametrize("names", ["abc", "cba", "bac"])
@pytest.mark.parametrize("ticks", [1, 2, 50], ids=["at once", "soon", "when all is still"])
def test_three_workers_that_join_one_after_another_move_the_least(
    running: RedisServer, names: str, ticks: int
) -> None:
    """Each newcomer gets its share and no block moves besides, whatever the order of their names
    and however much is still on its way: 128 and 85 of 256 blocks, or fewer where the third comes
    before those for the second have left; one more where the one left over changes hands."""
    client = running.client()
    client.flushall()
    workers: list[Holding] = []
    for name in names:
        workers.append(
            Holding(Membership(client, "intranet", name, lease_secs=600, partitions=BLOCKS))
        )
        for _ in range(ticks):
            for worker in workers:
                worker.tick()
    while sum(worker.tick() for worker in workers):
        pass
    held = [len(worker.membership.held) for worker in workers]
    assert sorted(held) == [85, 85, 86]
    moved = sum(worker.given for worker in workers) - BLOCKS
    assert BLOCKS - held[0] <= moved <= 128 + 85 + 1


# Orders in Redis: who gets a host later takes them up.


KEYS = Keys("intranet", 8)


@pytest.fixture
def server(redis_server):
    return redis_server()


def test_a_host_of_any_worker_is_known(server):
    """Once it has committed a URL of it; none is while Redis does not answer."""
    client = server.client()
    client.hset(KEYS.partition("counts", KEYS.partition_of("wiki:80")), "wiki:80", b"1")
    worker = SimpleNamespace(keys=KEYS, _own_client=client)
    assert ClusterWorker.is_known_host(worker, "wiki:80")
    assert not ClusterWorker.is_known_host(worker, "wiki:8080")
    server.kill()
    assert not ClusterWorker.is_known_host(worker, "wiki:80")


def test_orders_for_a_run_are_each_workers_own(server):
    """Redis has the orders for the next run; a worker that reads it keeps its own orders."""
    orders, own = SharedOverrides(server.client(), KEYS), Overrides()
    own.of("a:80").order("delay", 9.0)
    own.of("a:80").order("connections", 4, keep=False)
    own.order("factor", 3.0, keep=False)
    own.threads, own.threads_instead_of = 8, 16
    assert orders.keep_host("a:80", own.of("a:80"))
    assert orders.read(Overrides()).hosts == {"a:80": HostOverride(delay=9.0)}
    assert orders.read(own) == own
    assert orders.keep_factor(2.0)
    read = orders.read(own)
    assert (read.factor, read.after_run().factor, read.threads) == (3.0, 2.0, 8)
    assert read.hosts == own.hosts


def test_what_is_kept_is_newer_than_what_a_worker_has(server):
    """An order that was taken back too; of what is not kept its own holds."""
    orders = SharedOverrides(server.client(), KEYS)
    own = Overrides(
        3.0, {"a:80": HostOverride(paused=True), "b:80": HostOverride(delay=9.0)}, "x", "y"
    )
    assert orders.read(own) == own
    assert orders.keep_host("a:80", HostOverride())
    assert orders.keep_host("c:80", HostOverride(paused=True, delay=0.5))
    read = orders.read(own)
    hosts = {"b:80": HostOverride(delay=9.0), "c:80": HostOverride(paused=True, delay=0.5)}
    assert read.copy() == Overrides(3.0, hosts, "x", "y")
    assert orders.keep_factor(2.5)
    assert orders.read(own).factor == 2.5
    assert wipe(RedisLink(server.client(), "r"), KEYS) == 1
    assert orders.read(own) == own


def test_only_what_has_changed_in_redis_is_taken_up_later(server):
    """By a worker that an order did not reach; orders for this worker alone stay."""
    orders, others = (SharedOverrides(server.client(), KEYS) for _ in range(2))
    paused = HostOverride(paused=True)
    assert others.keep_host("a:80", paused)
    assert others.keep_factor(2.0)
    own = orders.read(Overrides())
    assert own == Overrides(2.0, {"a:80": paused})
    own.factor = 5.0
    own.hosts["b:80"] = HostOverride(delay=1.0)
    assert orders.read(own, all_of_them=False) == own
    assert others.keep_host("a:80", HostOverride())
    read = orders.read(own, all_of_them=False)
    assert (read.factor, read.copy().hosts) == (5.0, {"b:80": HostOverride(delay=1.0)})


def test_a_pause_that_another_worker_takes_back_at_once_does_not_stay(server):
    """Again and again: the value in Redis is the one that was read before this worker's pause."""
    orders, others = (SharedOverrides(server.client(), KEYS) for _ in range(2))
    own = Overrides(1.0, {"a:80": HostOverride()})
    for _ in range(3):
        own.hosts["a:80"].paused = True
        assert orders.keep_host("a:80", own.of("a:80"))
        assert others.keep_host("a:80", HostOverride())
        own = orders.read(own, all_of_them=False)
        assert own.copy() == Overrides()
        own.hosts["a:80"] = HostOverride()
    own.factor = 3.0
    assert orders.keep_factor(3.0)
    assert others.keep_factor(1.0)
    assert orders.read(own, all_of_them=False).factor == 1.0


def test_the_later_of_two_orders_in_two_threads_stays(server):
    """The one that was given first may be written last, and is written as it is by then."""
    orders, override = SharedOverrides(server.client(), KEYS), HostOverride(paused=True)
    with orders._writing:
        late = threading.Thread(target=orders.keep_host, args=("a:80", override))
        late.start()
        override.paused = False
    late.join()
    assert orders.read(Overrides()).copy() == Overrides()


def test_an_order_that_cannot_be_kept_is_told(server):
    """It does not end the crawl, nor wait."""
    orders = SharedOverrides(server.client(), KEYS)
    server.kill()
    assert not orders.keep_factor(2.0)


# larmspider/cluster/start_urls.py: many seeds at once, and each out of Redis only when it is
# committed.


KEY = "intranet:start_urls"
AT_ONCE, SLICE = 50, 20


class Waiting:
    """A key of one kind, filled by another client, and the seeds queued from it."""

    def __init__(self, client, kind):
        self.client, self.kind = client, kind
        self.owned, self.queued = {0}, []
        engine = SimpleNamespace(
            crawl=lambda request: self.queued.append(request.url),
            scraper=SimpleNamespace(spidermw=SimpleNamespace(methods={"process_start": []})),
        )
        settings = Settings({"REDIS_START_URLS_KEY": "%(name)s:start_urls"})
        settings.set("REDIS_START_URLS_AS_SET", kind == "set")
        settings.set("REDIS_START_URLS_AS_ZSET", kind == "zset")
        crawler = SimpleNamespace(spider=Spider("intranet"), settings=settings, engine=engine)
        self.seeds = StartUrls(client, crawler)

    def push(self, *urls, head=False):
        if self.kind == "list":
            (self.client.lpush if head else self.client.rpush)(KEY, *urls)
        elif self.kind == "set":
            self.client.sadd(KEY, *urls)
        else:
            self.client.zadd(KEY, {url: (n if head else -n) for n, url in enumerate(urls)})

    @property
    def left(self):
        """In Redis."""
        if self.kind == "list":
            found = self.client.lrange(KEY, 0, -1)
        elif self.kind == "set":
            found = self.client.smembers(KEY)
        else:
            found = self.client.zrange(KEY, 0, -1)
        return {url.decode() for url in found}

    def commit(self):
        """A checkpoint."""
        self.seeds.seal()
        asyncio.run(self.seeds.committed(b"commit", 0))

    def read(self, times=1):
        """``times`` ticks; each queues a slice."""
        for _ in range(times):
            asyncio.run(self.seeds.read(mine=0 in self.owned))


@pytest.fixture(params=["list", "set", "zset"])
def waiting(request, redis_server, monkeypatch):
    monkeypatch.setattr(scheduler_start_urls, "CHECKPOINT_AT", AT_ONCE)
    monkeypatch.setattr(scheduler_start_urls, "SLICE", SLICE)
    return Waiting(redis_server().client(), request.param)


def urls(*numbers):
    return [f"http://wiki/{number}" for number in numbers]


def test_seeds_stay_where_redis_has_come_back_without_their_commit(waiting):
    """They are read again, and known or not."""
    waiting.push(*urls(1, 2))
    waiting.read()
    waiting.seeds.seal()
    waiting.client.hset("commit", "serial", 6)
    asyncio.run(waiting.seeds.committed(b"commit", 7))
    assert waiting.left == set(urls(1, 2))
    waiting.read()
    waiting.seeds.seal()
    waiting.client.hset("commit", "serial", 7)
    asyncio.run(waiting.seeds.committed(b"commit", 7))
    assert waiting.left == set()


def test_as_many_as_a_commit_holds_are_read_at_once_and_then_it_is_due(waiting):
    """In slices, so that the crawl goes on; the next ones follow without a wait."""
    every = set(urls(*range(120)))
    waiting.push(*sorted(every))
    for queued in (20, 40):
        waiting.read()
        assert len(waiting.queued) == queued
        assert not waiting.seeds.wants_checkpoint
    waiting.read()
    assert len(waiting.queued) == AT_ONCE
    assert waiting.seeds.wants_checkpoint
    waiting.read(3)
    assert len(waiting.queued) == AT_ONCE, "no more are kept in memory"
    waiting.commit()
    assert not waiting.seeds.wants_checkpoint
    waiting.read(3)
    assert len(waiting.queued) == 2 * AT_ONCE
    waiting.commit()
    waiting.read(2)
    assert not waiting.seeds.wants_checkpoint, "the last ones wait for the time that is set"
    waiting.commit()
    assert waiting.left == set()
    assert set(waiting.queued) == every
    assert len(waiting.queued) == len(every)


def test_what_is_not_committed_stays_in_redis(waiting):
    """A commit in the middle removes the seeds queued by then, whatever was pushed meanwhile."""
    every = set(urls(*range(45)))
    waiting.push(*sorted(every))
    waiting.read()
    assert waiting.left == every
    waiting.push(*urls(901), head=True)
    waiting.push(*urls(902))
    waiting.commit()
    gone = set(waiting.queued)
    assert len(gone) == SLICE
    assert waiting.left == every - gone | set(urls(901, 902))
    waiting.read(2)
    waiting.commit()
    assert waiting.left == set(urls(901, 902))


def test_the_next_owner_finds_what_this_one_has_not_queued(waiting):
    """The block leaves while seeds that were read wait for their slice."""
    waiting.push(*urls(*range(45)))
    waiting.read()
    waiting.owned.clear()
    waiting.read(3)
    assert len(waiting.queued) == SLICE
    waiting.commit()
    assert len(waiting.left) == 45 - SLICE
