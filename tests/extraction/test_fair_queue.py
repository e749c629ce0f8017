"""Hosts share what is scarce by what they have used of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from larmspider.extraction.processes import fair_queue
from larmspider.extraction.processes.fair_queue import HALF_LIFE, PROBATION, FairQueue, Turn, Turns

HOSTILE, GOOD = "hostile", "good"
LIMIT = 30.0
COSTS = {HOSTILE: LIMIT, GOOD: 0.1}


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def queue(places: int, clock: Callable[[], float] = lambda: 0.0) -> FairQueue[str]:
    return FairQueue(places, places - 1, clock)


def push(queue: FairQueue[str], host: str, number: int, group: str = "") -> None:
    for count in range(number):
        queue.push(host, f"{host}{count}", group)


def cost_of(host: str) -> float:
    return next(cost for name, cost in COSTS.items() if host.startswith(name))


def simulate(queue: FairQueue[str]) -> list[tuple[str, float]]:
    """Each job and the seconds used by then, in the order in which the jobs end."""
    done: list[tuple[str, float]] = []
    running: list[tuple[float, int, Turn[str]]] = []
    now = 0.0
    while True:
        while (turn := queue.next()) is not None:
            running.append((now + cost_of(turn.host.name), turn.number, turn))
        if not running:
            return done
        running.sort(key=lambda one: one[:2])
        now, _, turn = running.pop(0)
        hostile = turn.host.name.startswith(HOSTILE)
        queue.end(turn, cost_of(turn.host.name), failed=hostile)
        done.append((turn.job, cost_of(turn.host.name)))


def hostile_cost(done: list[tuple[str, float]]) -> float:
    """Seconds that hostile jobs had used when the last good one ended."""
    last = max(at for at, (job, _) in enumerate(done) if job.startswith(GOOD))
    return sum(cost for job, cost in done[:last] if job.startswith(HOSTILE))


@pytest.mark.parametrize("places", [1, 2, 4])
def test_thirty_good_documents_do_not_wait_for_thirty_hostile_ones(places: int) -> None:
    fair = queue(places)
    push(fair, HOSTILE, 30)
    push(fair, GOOD, 30)
    done = simulate(fair)
    assert len(done) == 60
    assert hostile_cost(done) < 3 * LIMIT


@pytest.mark.parametrize("places", [1, 2])
def test_what_a_host_used_long_ago_does_not_put_it_behind_a_new_host(places: int) -> None:
    fair = queue(places)
    push(fair, GOOD, 2_000)
    simulate(fair)
    push(fair, HOSTILE, 30)
    push(fair, GOOD, 30)
    assert hostile_cost(simulate(fair)) < 3 * LIMIT


def test_several_hostile_hosts_together_leave_a_place() -> None:
    """As soon as they are known: none has failed when its first job begins."""
    fair = queue(2)
    for number in range(5):
        push(fair, f"{HOSTILE}{number}", 10)
    first, second = fair.next(), fair.next()
    assert first is not None
    assert second is not None
    for turn in (first, second):
        fair.end(turn, LIMIT, failed=True)
    assert fair.next() is not None
    assert fair.next() is None, "they have a place together"
    push(fair, GOOD, 1)
    assert fair.next() is None, "an unknown host, while others fail"
    fair.judge(GOOD, failed=False)
    turn = fair.next()
    assert turn is not None
    assert turn.host.name == GOOD


def test_a_host_that_failed_is_like_others_after_some_time() -> None:
    clock = Clock()
    fair = queue(2, clock)
    for host in ("a", "b"):
        fair.judge(host, failed=True)
        push(fair, host, 1)
    assert fair.next() is not None
    assert fair.next() is None
    clock.now += PROBATION
    assert fair.next() is not None


def test_one_host_never_holds_all_places() -> None:
    fair = queue(3)
    push(fair, GOOD, 9)
    turns = [fair.next(), fair.next()]
    assert None not in turns
    assert fair.next() is None
    push(fair, HOSTILE, 1)
    assert fair.next() is not None


def test_a_single_place_serves_every_host() -> None:
    fair = queue(1)
    push(fair, GOOD, 1)
    assert fair.next() is not None
    assert fair.next() is None


def test_hosts_of_a_group_share_as_one() -> None:
    """A hundred names of one address have the time of one host, and share it."""
    fair = queue(1)
    for number in range(100):
        push(fair, f"{HOSTILE}{number}", 1, group="10.0.0.66")
    push(fair, GOOD, 30, group="10.0.0.7")
    assert hostile_cost(simulate(fair)) <= LIMIT


def test_hosts_of_one_group_are_fair_to_each_other() -> None:
    fair = queue(1)
    push(fair, HOSTILE, 30, group="proxy")
    push(fair, GOOD, 30, group="proxy")
    assert hostile_cost(simulate(fair)) <= LIMIT


def test_what_was_used_is_forgotten_with_time() -> None:
    clock = Clock()
    fair = queue(1, clock)
    push(fair, "old", 1)
    turn = fair.next()
    assert turn is not None
    fair.end(turn, 64.0)
    clock.now += 6 * HALF_LIFE
    push(fair, "old", 2)
    push(fair, "new", 2)
    order = []
    while (turn := fair.next()) is not None:
        order.append(turn.host.name)
        fair.end(turn, 2.0)
    assert order == ["new", "old", "new", "old"]


def test_jobs_that_are_dropped_do_not_begin() -> None:
    fair = queue(1)
    turn = fair.push(GOOD, "x")
    fair.push(GOOD, "y")
    fair.drop(turn)
    assert len(fair) == 1
    (begun,) = [fair.next()]
    assert begun is not None
    assert begun.job == "y"


def test_failures_are_counted_in_a_row() -> None:
    fair = queue(1)
    for failed in (True, True, None, True):
        fair.judge(HOSTILE, failed)
    assert fair.failures(HOSTILE) == 3
    fair.judge(HOSTILE, failed=False)
    assert fair.failures(HOSTILE) == fair.failures("unknown") == 0


def test_the_table_of_hosts_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that failed are remembered longest, and those that wait stay."""
    monkeypatch.setattr(fair_queue, "MOST_HOSTS", 100)
    fair = queue(1)
    fair.judge(HOSTILE, failed=True)
    fair.push("waits", "x")
    for number in range(1_000):
        fair.judge(f"h{number}", failed=False, group=f"g{number % 7}")
    assert fair._hosts == sum(len(one.hosts.accounts) for one in fair._groups.values()) <= 100
    assert set(fair._groups) == set(fair._all.accounts)
    assert fair.failures(HOSTILE) == 1
    assert fair.next() is not None


def test_coroutines_wait_for_their_turn() -> None:
    async def used() -> list[str]:
        turns, order = Turns(1, 1), []

        async def job(host: str) -> None:
            turn = turns.push(host)
            await turns.begin(turn)
            order.append(host)
            await asyncio.sleep(0)
            turns.end(turn, COSTS[host])

        await asyncio.gather(*map(job, [HOSTILE] * 3 + [GOOD] * 3))
        return order

    assert asyncio.run(used()) == [HOSTILE, GOOD, GOOD, GOOD, HOSTILE, HOSTILE]


def test_who_is_cancelled_or_refused_leaves_the_place_to_others() -> None:
    async def tried() -> None:
        turns = Turns(1, 1)
        first, second, third = (turns.push(host) for host in ("a", "b", "c"))
        await turns.begin(first)
        waiting = asyncio.ensure_future(turns.begin(second))
        refused = asyncio.ensure_future(turns.begin(third))
        await asyncio.sleep(0)
        waiting.cancel()
        turns.refuse(third, KeyError("room"))
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(KeyError):
            await refused
        last = turns.push("d")
        turns.end(first, 1.0)
        await turns.begin(last)
        turns.refuse(last, KeyError("too late"))
        turns.end(last, 1.0)
        assert not len(turns.queue)

    asyncio.run(tried())
