"""larmspider/cluster/worker.py: as few blocks as possible move when workers join."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from larmspider.cluster.membership import Beat, Membership
from larmspider.cluster.worker import Rebalance
from tests.support.servers.redis import REDIS_SERVER, RedisServer

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


BLOCKS = 256


class Worker:
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
    workers: list[Worker] = []
    for name in names:
        workers.append(
            Worker(Membership(client, "intranet", name, lease_secs=600, partitions=BLOCKS))
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
