"""Whatever happens to workers and to Redis, a block never has two owners who may act on it.

Simulated workers join, beat, stop for a while in the middle of a beat, leave, die and come back,
and Redis is restarted, with or without its last second. The scripts run in a real Redis; time is
ours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis

from larmspider.cluster.membership import Beat, Membership, NameTaken, WorkerLease
from larmspider.frontier.storage.backend import Fenced
from tests.support.servers.redis import REDIS_SERVER, RedisServer

LEASE = 6.0
BLOCKS = 24
STEP_SECS = 0.1
STEPS = 1500


class World:
    """The true time, and Redis with what it would have if its last second were lost."""

    def __init__(self, client: redis.Redis, chance: random.Random) -> None:
        self.client, self.chance = client, chance
        self.now, self.run = 1_800_000_000.0, 1
        self.up = True
        self.saved: list[dict[bytes, bytes]] = []
        self.tokens: dict[int, int] = {}

    def server(self) -> tuple[int, str]:
        if not self.up:
            raise redis.ConnectionError("down")
        return int(self.now * 1000), f"run {self.run}"

    def pass_time(self) -> None:
        self.now += STEP_SECS
        if self.up:
            names = list(self.client.scan_iter(count=1000))
            with self.client.pipeline(transaction=False) as pipe:
                for name in names:
                    pipe.dump(name)
                self.saved = [*self.saved[-9:], dict(zip(names, pipe.execute(), strict=True))]

    def restart(self, *, loses: bool) -> None:
        self.run += 1
        self.up = True
        if loses:
            self.client.flushall()
            for key, value in self.chance.choice(self.saved).items():
                self.client.restore(key, 0, value)


class Worker:
    """A worker's use of its membership: beats, gives up, buries, and obeys its lease."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.lease = WorkerLease(LEASE, lambda: world.now)
        self.membership = Membership(
            world.client, "intranet", name, lease_secs=LEASE, partitions=BLOCKS, server=world.server
        )
        self.stopped_until = self.next_beat = 0.0
        self.joined = self.over = False
        self.answer: tuple[float, Beat] | None = None
        self.leaving: list[int] = []
        self.acts_on: set[int] = set()

    @property
    def acting(self) -> set[int]:
        """Blocks whose hosts it may ask now. A stopped process sends nothing."""
        if self.over or not self.lease.valid or self.world.now < self.stopped_until:
            return set()
        return self.acts_on

    def step(self) -> None:
        now, chance = self.world.now, self.world.chance
        if self.over or now < self.stopped_until:
            return
        try:
            if not self.joined:
                _, earlier = self.membership.join("a crawl")
                self.joined = True
                if earlier:
                    self.membership.reap(earlier)
            elif self.answer:
                (sent, beat), self.answer = self.answer, None
                self.take_in(sent, beat)
            elif self.leaving and chance.random() < 0.5:
                self.membership.release(self.leaving)
                self.leaving = []
            elif now >= self.next_beat:
                self.next_beat = now + LEASE / 3
                self.answer = now, self.membership.beat()
                for block, token in self.answer[1].given.items():
                    assert token > self.world.tokens.get(block, 0), "tokens only grow"
                    self.world.tokens[block] = token
                if chance.random() < 0.1:
                    self.stopped_until = now + chance.random() * LEASE * 2
        except Fenced:
            self.over = True
        except redis.ConnectionError:
            self.next_beat = now + LEASE / 20
        except NameTaken:
            pass

    def take_in(self, sent: float, beat: Beat) -> None:
        self.lease.renewed(sent)
        self.acts_on |= beat.given.keys()
        if not self.leaving:
            self.leaving = sorted(self.acts_on)[: beat.excess]
            self.acts_on -= set(self.leaving)
        for epoch in beat.dead:
            self.membership.reap(epoch)

    def leave(self) -> None:
        self.over = True
        with suppress(Fenced, redis.ConnectionError):
            self.membership.leave()


@pytest.fixture(scope="module")
def client() -> Iterator[redis.Redis]:
    if REDIS_SERVER is None:
        pytest.skip("Debian package is not installed: redis-server")
    with RedisServer("127.32.0.1", appendonly="no") as server:
        yield server.client()


@pytest.mark.parametrize("seed", range(2))
def test_a_block_never_has_two_owners(seed: int, client: redis.Redis) -> None:
    client.flushall()
    chance = random.Random(seed)
    world = World(client, chance)
    workers: list[Worker] = []
    acted = moved = fenced = 0
    owner_before: dict[int, Worker] = {}
    for _ in range(STEPS):
        living = [worker for worker in workers if not worker.over]
        if len(living) < 5 and chance.random() < 0.05:
            workers.append(Worker(world, f"w{chance.randrange(7)}"))
        if living and chance.random() < 0.004:
            chance.choice(living).over = True  # kill -9
        if living and chance.random() < 0.004:
            chance.choice(living).leave()
        if world.up and chance.random() < 0.004:
            if chance.random() < 0.5:
                world.up = False
            else:
                world.restart(loses=chance.random() < 0.5)
        elif not world.up and chance.random() < 0.02:
            world.restart(loses=chance.random() < 0.5)
        for worker in chance.sample(workers, len(workers)):
            before = worker.over
            worker.step()
            fenced += worker.over and not before
            owners: dict[int, Worker] = {}
            for other in workers:
                for block in other.acting:
                    assert block not in owners, (seed, world.now, owners[block].name, other.name)
                    owners[block] = other
            acted += len(owners)
            moved += sum(owner_before.get(block) is not other for block, other in owners.items())
            owner_before |= owners
        world.pass_time()
    assert moved > 2 * BLOCKS, "blocks changed hands"
    assert acted > STEPS * BLOCKS / 2, "most of the time work could be done"
    assert fenced, "some came too late"


def test_blocks_that_nobody_may_act_on_are_taken_over_in_bounded_time(client: redis.Redis) -> None:
    """All but one die while Redis is away; the one has everything three leases after it is back."""
    client.flushall()
    world = World(client, random.Random(0))
    workers = [Worker(world, f"w{number}") for number in range(4)]
    while sum(len(worker.acting) for worker in workers) < BLOCKS:
        for worker in workers:
            worker.step()
        world.pass_time()
    world.up = False
    for worker in workers[1:]:
        worker.over = True
    world.now += LEASE * 3
    workers[0].stopped_until = 0.0
    world.restart(loses=False)
    back = world.now
    while len(workers[0].acting) < BLOCKS:
        world.pass_time()
        workers[0].step()
        assert world.now < back + 3 * LEASE
