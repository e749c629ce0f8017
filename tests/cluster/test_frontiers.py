"""Two frontiers over one Redis: hosts pass from one to the other with all that is known of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest
import redis

from larmspider.cluster.keys import Keys
from larmspider.cluster.redis_client import RedisLink
from larmspider.cluster.shared_backend import RedisBackend
from larmspider.frontier.frontier import Frontier
from larmspider.frontier.hosts import HostState, Lease
from larmspider.frontier.links import CrawlLimits
from larmspider.frontier.politeness import Limits
from larmspider.frontier.storage.records import FetchRecord, UrlState
from tests.support.frontier.simulation import AllowAll, Clock, build
from tests.support.servers.redis import REDIS_SERVER, RedisServer

DELAY = 2.0
KEYS = Keys("intranet", 8)
HOST = "wiki:80"
BLOCK = KEYS.partition_of(HOST)
OTHERS = [block for block in range(8) if block != BLOCK]
ELSEWHERE = next(f"h{n}" for n in range(100) if KEYS.partition_of(f"h{n}:80") != BLOCK)
LIMITS = Limits(response_factor=0.0, jitter=0.0, max_failures=1, park=1000.0, max_parks=1)


class Worker:
    """A frontier of its own over the common Redis; ``epoch`` is also the token of what it takes."""

    def __init__(self, client: redis.Redis, folder: Path, clock: Clock, epoch: int) -> None:
        name = f"w{epoch}"
        client.hset("intranet:{crawl}:workers", name, f"{epoch} 9999999999999")
        self.epoch, self.clock = epoch, clock
        self.backend = RedisBackend(
            folder / name, RedisLink(client, "redis"), KEYS, worker=name, epoch=epoch
        )
        self.frontier: Frontier = build(
            self.backend,
            clock,
            delay=DELAY,
            limits=LIMITS,
            crawl_limits=CrawlLimits(max_pages=5),
            parse=lambda body: AllowAll(),
            shared=self.backend,
        )
        assert self.frontier.partitions is not None
        self.blocks = self.frontier.partitions

    def take(self, *blocks: int, new_run: bool = False) -> None:
        loaded = self.backend.load(dict.fromkeys(blocks, self.epoch))
        self.blocks.enter(loaded, new_run=blocks if new_run else ())

    def add(self, *urls: str) -> int:
        """How many were posted."""
        return self.frontier.add([self.frontier.entry(url, url) for url in urls]).forwarded

    def checkpoint(self) -> frozenset[int]:
        """Blocks that were given up with it."""
        self.frontier.checkpoint({})
        gone = self.blocks.committed()
        self.frontier.add_forwarded(self.backend.take_inbox(), self.backend.take_links())
        return gone

    def pop(self) -> Lease | None:
        lease = self.frontier.pop()
        if lease is not None and lease.is_robots:
            self.frontier.robots_loaded(lease, b"", 0.0)
            self.clock.now += DELAY
            return self.pop()
        return lease

    def store(self, lease: Lease) -> None:
        self.frontier.answered(lease, 0.1)
        self.frontier.acknowledge(lease, FetchRecord(UrlState.STORED, self.clock.now, 200))


@pytest.fixture(scope="module")
def client() -> Iterator[redis.Redis]:
    if REDIS_SERVER is None:
        pytest.skip("redis-server is not installed (Debian package redis-server)")
    with RedisServer("127.32.0.1", appendonly="no") as server:
        yield server.client()


Pair = tuple[Worker, Worker, Clock]


@pytest.fixture
def pair(client: redis.Redis, tmp_path: Path) -> Iterator[Pair]:
    """The first has all blocks."""
    client.flushall()
    clock = Clock()
    first, second = (Worker(client, tmp_path, clock, epoch) for epoch in (1, 2))
    first.take(*range(8), new_run=True)
    yield first, second, clock
    first.backend.close()
    second.backend.close()


def pass_on(first: Worker, second: Worker) -> None:
    first.blocks.leave([BLOCK])
    assert first.checkpoint() == {BLOCK}
    second.take(BLOCK)


def test_links_to_hosts_of_others_arrive_there(pair: Pair) -> None:
    first, second, _ = pair
    pass_on(first, second)
    assert first.add("http://wiki/a", f"http://{ELSEWHERE}/b") == 1
    assert HOST not in first.frontier.hosts
    assert first.frontier.known(["http://wiki/a"]) == [True], "it is not posted twice"
    first.checkpoint()
    second.checkpoint()
    lease = second.pop()
    assert lease is not None
    assert lease.url == "http://wiki/a"


def test_what_is_under_way_in_a_block_comes_to_its_end_first(pair: Pair) -> None:
    first, _, clock = pair
    first.add("http://wiki/a", "http://wiki/b")
    lease = first.pop()
    assert lease is not None
    first.blocks.leave([BLOCK])
    clock.now += 10 * DELAY
    assert first.pop() is None, "nothing more is handed out"
    assert not first.blocks.idle
    assert not first.checkpoint()
    first.frontier.answered(lease, 0.1)
    assert not first.blocks.idle, "the stores do not have it yet"
    first.frontier.acknowledge(lease, FetchRecord(UrlState.STORED, clock.now, 200))
    assert first.blocks.idle == {BLOCK}
    assert first.checkpoint() == {BLOCK}
    assert HOST not in first.frontier.hosts
    assert BLOCK not in first.backend.owned


def test_what_is_purged_while_its_block_leaves_is_left_to_the_next_owner(pair: Pair) -> None:
    """The commit that gives it up is under way, and knows nothing of it."""
    first, _, _ = pair
    first.add("http://wiki/a", "http://wiki/b")
    first.checkpoint()
    first.blocks.leave([BLOCK])
    first.frontier.seal()
    assert first.frontier.control.purge_host(HOST) == 0
    first.frontier.commit({})
    first.frontier.discard()
    assert first.blocks.committed() == {BLOCK}
    assert first.frontier.control.purge_host(HOST) == 0


def test_the_next_owner_waits_a_gap_and_knows_robots_txt(pair: Pair) -> None:
    first, second, clock = pair
    first.add("http://wiki/a", "http://wiki/b")
    lease = first.pop()
    assert lease is not None
    first.store(lease)
    pass_on(first, second)
    assert second.frontier.pop() is None
    clock.now += DELAY - 0.01
    assert second.frontier.pop() is None
    clock.now += 0.01
    lease = second.frontier.pop()
    assert lease is not None
    assert lease.url == "http://wiki/b", "robots.txt came with the block"
    second.store(lease)
    assert second.checkpoint() == frozenset()
    assert second.backend.counts(HOST).stored == 2
    second.frontier.audit(deep=True)


@pytest.mark.parametrize("new_run", [False, True])
def test_a_host_that_was_given_up_stays_so_for_the_run(new_run: bool, pair: Pair) -> None:
    first, second, clock = pair
    first.add("http://wiki/a")
    for _ in range(2):
        clock.now += 5000.0
        lease = first.pop()
        assert lease is not None
        first.frontier.failed(lease, "timeout", 1.0)
    assert first.frontier.hosts[HOST].record.until == inf
    first.blocks.leave([BLOCK])
    assert first.checkpoint() == {BLOCK}
    second.take(BLOCK, new_run=new_run)
    record = second.frontier.hosts[HOST].record
    assert (record.state is HostState.PARKED) is not new_run
    assert second.frontier.finished is not new_run


def test_links_found_while_a_block_leaves_are_not_lost(pair: Pair) -> None:
    """From a page here they go to its inbox; out of the inbox they are taken in, as long as the
    block is here, and are not handed out."""
    first, second, clock = pair
    first.add("http://wiki/a")
    lease = first.pop()
    assert lease is not None
    first.blocks.leave([BLOCK])
    assert first.add("http://wiki/b") == 1
    first.checkpoint()
    assert first.backend.counts(HOST).queued == 1
    clock.now += 10 * DELAY
    assert first.pop() is None
    first.add("http://wiki/c")
    first.store(lease)
    assert first.checkpoint() == {BLOCK}
    second.take(BLOCK)
    second.checkpoint()
    assert second.backend.counts(HOST).queued == 2
    assert first.frontier.finished


def test_the_budget_counts_what_others_have_stored(pair: Pair) -> None:
    first, second, _ = pair
    first.add(*(f"http://wiki/{n}" for n in range(9)), *(f"http://{ELSEWHERE}/{n}" for n in "ab"))
    for _ in range(3):
        lease = first.pop()
        assert lease is not None
        first.store(lease)
        first.clock.now += DELAY
    first.checkpoint()
    first.blocks.stored_in_all(3)
    assert not first.frontier.finished
    pass_on(first, second)
    first.blocks.stored_in_all(5)
    second.blocks.stored_in_all(5)
    assert first.frontier.finished
    assert second.frontier.finished
    second.blocks.stored_in_all(4)
    assert not second.frontier.finished
