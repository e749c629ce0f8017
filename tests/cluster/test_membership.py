"""Workers join, share the blocks of a crawl, die and leave, in a real Redis with a time of ours."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
import redis

from larmspider.cluster.membership import (
    Beat,
    Load,
    Membership,
    NameTaken,
    OtherCrawl,
    WorkerLease,
    clock,
)
from larmspider.cluster.placement import Rebalance
from larmspider.frontier.storage.backend import Fenced
from tests.support.servers.redis import REDIS_SERVER, RedisServer

LEASE = 10.0
BLOCKS = 12
Make = Callable[[str], Membership]


class Server:
    """The time by Redis, in ms, and the run of its process."""

    def __init__(self) -> None:
        self.now, self.run = 1_800_000_000_000, "first"

    def __call__(self) -> tuple[int, str]:
        return self.now, self.run

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * 1000)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture(scope="module")
def running() -> Iterator[RedisServer]:
    if REDIS_SERVER is None:
        pytest.skip("Debian package is not installed: redis-server")
    with RedisServer("127.32.0.1", appendonly="no") as redis_server:
        yield redis_server


@pytest.fixture
def connection(running: RedisServer) -> redis.Redis:
    client = running.client()
    client.flushall()
    return client


@pytest.fixture
def make(connection: redis.Redis, server: Server) -> Make:
    def make(name: str) -> Membership:
        return Membership(
            connection, "intranet", name, lease_secs=LEASE, partitions=BLOCKS, server=server
        )

    return make


def joined(make: Make, *names: str) -> list[Membership]:
    members = [make(name) for name in names]
    for member in members:
        member.join("a crawl")
    return members


def settle(*members: Membership) -> list[Beat]:
    """Beats and releases, until everybody has a fair share."""
    beats = []
    for _ in range(4):
        beats = []
        for member in members:
            beat = member.beat()
            member.release(list(member.held)[: beat.excess])
            beats.append(beat)
    return beats


def owners(*members: Membership) -> list[int]:
    """How many blocks each has; no block has two owners."""
    held = [block for member in members for block in member.held]
    assert len(held) == len(set(held))
    return [len(member.held) for member in members]


def test_a_beat_says_whether_blocks_are_to_change_hands(make: Make) -> None:
    """Too many, too few, or the fair share, of which some have one more."""
    (first,) = joined(make, "first")
    assert not first.beat().moving
    (second,) = joined(make, "second")
    assert second.beat().moving
    full = first.beat()
    assert full.excess == 6
    assert full.moving
    first.release(list(first.held)[:6])
    assert [second.beat().moving, first.beat().moving] == [False, False]
    joined(make, *"abc")
    *_, last = settle(first, second)
    assert not last.moving  # 12 blocks, five workers: 2 or 3


def test_a_worker_alone_gets_all_blocks(make: Make) -> None:
    [alone] = joined(make, "a")
    beat = alone.beat()
    assert set(beat.given) == set(range(BLOCKS)) == set(alone.held)
    assert beat.fresh == frozenset(range(BLOCKS))
    assert (beat.workers, beat.excess, beat.quiet) == (1, 0, False)


def test_blocks_are_shared_fairly_as_workers_join_and_leave(make: Make) -> None:
    [a] = joined(make, "a")
    settle(a)
    [b] = joined(make, "b")
    settle(a, b)
    assert owners(a, b) == [6, 6]
    c, d, e = joined(make, "c", "d", "e")
    settle(a, b, c, d, e)
    assert owners(a, b, c, d, e) == [3, 3, 2, 2, 2]
    b.leave()
    settle(a, c, d, e)
    assert owners(a, c, d, e) == [3, 3, 3, 3]


def test_no_more_blocks_move_than_the_newcomer_gets(make: Make) -> None:
    a, b, c = joined(make, "a", "b", "c")
    settle(a, b, c)
    before = {block for member in (a, b, c) for block in member.held.items()}
    [d] = joined(make, "d")
    settle(a, b, c, d)
    after = {block for member in (a, b, c) for block in member.held.items()}
    assert after < before
    assert len(before - after) == len(d.held) == 3


def test_a_block_that_is_not_released_yet_is_given_to_nobody(make: Make) -> None:
    [a] = joined(make, "a")
    a.beat()
    [b] = joined(make, "b")
    assert a.beat().excess == 6
    assert not b.beat().given
    a.release([0, 1])
    assert set(b.beat().given) == {0, 1}


def test_tokens_only_grow(make: Make, server: Server) -> None:
    [a] = joined(make, "a")
    first = dict(a.beat().given)
    server.now -= 3_600_000  # the clock is set back
    a.leave()
    [b] = joined(make, "b")
    second = b.beat().given
    assert all(second[block] > first[block] for block in first)
    assert min(second.values()) > max(first.values())
    assert b.epoch > a.epoch


def test_who_is_silent_expires_after_a_full_lease_and_not_before(
    make: Make, server: Server
) -> None:
    a, b = joined(make, "a", "b")
    settle(a, b)
    for _ in range(5):
        server.wait(LEASE / 5)
        beat = b.beat()
        assert (beat.workers, beat.dead) == (2, {})
    server.wait(0.001)
    beat = b.beat()
    assert (beat.workers, beat.dead) == (1, {a.epoch: "a"})
    with pytest.raises(Fenced, match="from worker a: its lease ran out"):
        a.beat()


def test_blocks_of_the_dead_are_free_when_their_last_commit_was_carried_out(
    make: Make, server: Server
) -> None:
    a, b = joined(make, "a", "b")
    settle(a, b)
    before = dict(a.held)
    for _ in range(6):
        server.wait(LEASE / 5)
        beat = b.beat()
    assert beat.dead
    assert not beat.given
    b.reap(a.epoch)
    beat = b.beat()
    assert not beat.dead
    assert beat.given.keys() == before.keys()
    assert all(beat.given[block] > before[block] for block in before)
    assert not beat.fresh, "what another one had in this run is not new"


def test_a_late_worker_of_whom_nobody_took_notice_goes_on(make: Make, server: Server) -> None:
    [a] = joined(make, "a")
    a.beat()
    server.wait(LEASE * 50)
    assert a.beat().workers == 1
    assert len(a.held) == BLOCKS


def test_after_an_outage_nobody_expires_for_a_lease(make: Make, server: Server) -> None:
    a, b = joined(make, "a", "b")
    settle(a, b)
    server.wait(LEASE * 6)  # no worker could reach Redis
    assert b.beat().quiet
    for _ in range(4):
        server.wait(LEASE / 5)
        assert not b.beat().dead
    beat = a.beat()
    assert beat.quiet
    assert owners(a, b) == [6, 6]
    server.wait(LEASE / 5)
    assert not b.beat().quiet


def test_what_was_given_up_is_given_out_even_after_an_outage(make: Make, server: Server) -> None:
    """Redis was only slow, it has forgotten nothing."""
    a, b = joined(make, "a", "b")
    settle(a, b)
    given_up = list(a.held)[:2]
    a.release(given_up)
    server.wait(LEASE * 6)
    beat = a.beat()
    assert beat.quiet
    assert sorted(beat.given) == sorted(given_up)
    assert owners(a, b) == [6, 6]


def test_who_dies_while_the_clock_is_set_back_expires_after_a_lease(
    make: Make, server: Server
) -> None:
    """Redis' clock goes back an hour: no lease and no rest ends later than one that begins now."""
    a, b = joined(make, "a", "b")
    settle(a, b)
    server.run = "second"  # no worker expires for a lease, by the wrong clock
    a.beat()
    server.wait(-3600)
    b.beat()
    again = make("a")
    with pytest.raises(NameTaken) as taken:
        again.join("a crawl")
    assert taken.value.seconds <= LEASE
    for _ in range(3):
        server.wait(LEASE / 2)
        dead = b.beat().dead
    assert dead == {a.epoch: "a"}
    b.reap(a.epoch, "a")
    assert len(settle(b)[-1].held) == BLOCKS


def test_who_died_before_the_clock_was_set_back_stands_in_nobodys_way(
    make: Make, server: Server
) -> None:
    """No worker runs any more, and another crawl begins, a lease later."""
    joined(make, "a")
    server.wait(-3600)
    other = make("b")
    assert other.living() == ["a"]
    with pytest.raises(OtherCrawl):
        other.join("another crawl")
    server.wait(LEASE + 1)
    assert other.living() == []
    other.join("another crawl", "a crawl")


def test_who_does_not_come_back_after_an_outage_expires_then(make: Make, server: Server) -> None:
    a, b = joined(make, "a", "b")
    settle(a, b)
    server.wait(LEASE * 6)
    b.beat()
    for _ in range(5):
        server.wait(LEASE / 5)
        beat = b.beat()
    assert beat.dead == {a.epoch: "a"}


def test_redis_that_lost_its_last_seconds_gives_no_block_twice(
    make: Make, server: Server, connection: redis.Redis
) -> None:
    [a] = joined(make, "a")
    a.beat()
    [b] = joined(make, "b")
    settle(a, b)
    key = "intranet:{crawl}:blocks"
    stale = dict.fromkeys(range(BLOCKS), f"{a.epoch} 1")  # as it was before b had any
    connection.hset(key, mapping=stale)
    server.run = "second"
    beat = a.beat()
    assert beat.quiet
    assert not beat.given
    assert b.beat().quiet
    for _ in range(6):
        server.wait(LEASE / 5)
        assert not a.beat().given
        assert not b.beat().given
    assert owners(a, b) == [6, 6]
    told = connection.hgetall(key)
    mine = {int(block) for block, owner in told.items() if owner.split()[0] == b"%d" % b.epoch}
    assert mine == b.held.keys()


def test_an_answer_that_was_lost_is_given_again(make: Make) -> None:
    [a] = joined(make, "a")
    first = a.beat()
    a.held = {}
    assert a.beat().given == first.given


def test_a_name_is_taken_until_its_lease_is_over(make: Make, server: Server) -> None:
    [first] = joined(make, "a")
    first.beat()
    second = make("a")
    with pytest.raises(NameTaken) as taken:
        second.join("a crawl")
    assert (taken.value.epoch, taken.value.seconds) == (first.epoch, LEASE)
    server.wait(LEASE + 0.001)
    assert second.join("a crawl") == (0, first.epoch)
    with pytest.raises(Fenced):
        first.beat()
    assert not second.beat().given, "what the first one committed last is to be carried out first"
    second.reap(first.epoch)
    assert len(second.beat().given) == BLOCKS


def test_who_left_is_gone_at_once(make: Make) -> None:
    [first] = joined(make, "a")
    first.beat()
    first.leave()
    second = make("a")
    assert second.join("a crawl") == (0, 0)
    assert len(second.beat().given) == BLOCKS
    with pytest.raises(Fenced):
        first.leave()


def test_who_is_known_to_have_ended_is_not_waited_for(make: Make, server: Server) -> None:
    """Also where Redis was started again: its blocks are free once its last commit is carried out,
    and its name is at once."""
    a, b = joined(make, "a", "b")
    settle(a, b)
    server.run = "second"
    make("").expire(["a", "b", "nobody"])
    assert make("").names() == []
    [again] = joined(make, "a")
    beat = again.beat()
    assert set(beat.dead.values()) == {"a", "b"}
    for epoch in beat.dead:
        again.reap(epoch)
    assert len(again.beat().held) == BLOCKS
    with pytest.raises(Fenced):
        b.beat()


def test_a_beat_names_who_is_silent(make: Make, server: Server) -> None:
    """And until when it is waited for, longer where Redis was started again."""
    a, _ = joined(make, "a", "b")
    for _ in range(3):
        assert a.beat().silent == {}
        server.wait(LEASE * 0.2)
    assert a.beat().silent == {"b": pytest.approx(LEASE * 0.4)}
    server.run = "second"
    assert a.beat().silent == {"b": pytest.approx(LEASE)}


def test_a_worker_with_another_description_is_refused(make: Make) -> None:
    [a] = joined(make, "a")
    with pytest.raises(OtherCrawl) as refused:
        make("b").join("another crawl", instead_of="a crawl")
    assert (refused.value.known, refused.value.living) == ("a crawl", 1)
    a.leave()
    with pytest.raises(OtherCrawl) as refused:
        make("b").join("another crawl")
    assert refused.value.living == 0
    b = make("b")
    b.join("another crawl", instead_of="a crawl")
    assert b.beat().workers == 1


def test_a_crawl_is_at_rest_when_all_are_and_every_block_is_owned(
    make: Make, connection: redis.Redis
) -> None:
    a, b = joined(make, "a", "b")
    settle(a, b)
    assert a.idle(6) == ("", False)
    commits, _ = b.idle(6)
    assert commits == "0"
    connection.incr("intranet:{crawl}:commits")  # like a commit of another worker
    assert not b.finish(commits)
    commits, _ = b.idle(6)
    assert commits == "1"
    assert b.finish(commits)
    assert a.beat().ended
    assert a.idle(6) == ("1", True)
    assert joined(make, "c")
    assert not a.beat().ended, "whoever joins looks for himself"


@pytest.mark.parametrize("change", ["released", "given", "dead"])
def test_a_crawl_is_not_at_rest_while_blocks_move(change: str, make: Make, server: Server) -> None:
    a, b = joined(make, "a", "b")
    settle(a, b)
    a.idle(6)
    if change == "released":
        a.release(list(a.held)[:1])
    elif change == "given":
        a.release(list(a.held)[:1])
        assert a.beat().given
    else:
        for _ in range(6):
            server.wait(LEASE / 5)
            b.beat()
    assert b.idle(len(b.held)) == ("", False)


def test_a_worker_that_does_not_know_yet_of_a_block_is_not_at_rest(make: Make) -> None:
    """It was given a block, and has not taken it up: the block's URLs have no worker yet."""
    a, b = joined(make, "a", "b")
    settle(a, b)
    assert a.idle(6) == ("", False)
    b.release(list(b.held)[:1])
    b.beat()
    assert b.idle(5) == ("", False)
    assert b.idle(6) == ("0", False)


def test_the_scripts_ask_redis_itself_for_its_time_and_its_run(connection: redis.Redis) -> None:
    member = Membership(connection, "intranet", "a", lease_secs=2.0, partitions=4)
    member.join("a crawl")
    assert len(member.beat().given) == 4
    assert connection.hget("intranet:{crawl}:pulse", "run").decode() == connection.info()["run_id"]
    deadline = int(connection.hget("intranet:{crawl}:workers", "a").split()[1])
    seconds, microseconds = connection.time()
    assert abs(deadline / 1000 - 2 - seconds - microseconds / 1e6) < 30


# A worker may act for nine tenths of its lease, from when it asked for it.


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_counts_from_when_its_renewal_was_sent() -> None:
    now = Clock()
    lease = WorkerLease(10.0, now)
    assert not lease.valid, "it was never renewed"
    sent = lease.now()
    now.now += 5.0  # the answer takes its time
    lease.renewed(sent)
    now.now = 108.9
    assert lease.valid
    now.now = 109.0
    assert not lease.valid


def test_an_answer_that_comes_late_shortens_nothing() -> None:
    now = Clock()
    lease = WorkerLease(10.0, now)
    lease.renewed(100.0)
    lease.renewed(95.0)
    now.now = 108.0
    assert lease.valid


def test_a_lease_that_was_ended_is_over() -> None:
    lease = WorkerLease(10.0, Clock())
    lease.renewed(100.0)
    lease.end()
    assert not lease.valid
    lease.renewed(100.0)
    assert not lease.valid, "a beat was under way when others had taken over a block"


def test_the_clock_is_one_that_nobody_sets_and_no_sleep_stops() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= clock() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_while_nothing_changes_a_beat_tells_no_blocks(make: Make, connection: redis.Redis) -> None:
    """Neither the worker nor Redis goes through them, whatever their number; a change is heard."""
    a, b = joined(make, "a", "b")
    settle(a, b)
    a.beat()
    whole = len(a.held)
    connection.config_resetstat()
    beat = a.beat()
    commands = connection.info("commandstats")
    assert "cmdstat_hgetall" in commands  # of workers, moves and the dead
    assert commands["cmdstat_evalsha"]["calls"] == 1
    assert (len(beat.held), beat.excess, beat.moving) == (whole, 0, False)
    b.leave()
    assert len(a.beat().given) == BLOCKS - whole


def test_what_redis_forgot_is_told_again(
    make: Make, server: Server, connection: redis.Redis
) -> None:
    """It came back without the last changes: its version is older than the worker's."""
    a, b = joined(make, "a", "b")
    a.beat()
    saved = {key: connection.dump(key) for key in connection.scan_iter()}
    a.release(list(a.held)[:6])
    assert len(b.beat().given) == 6
    a.beat()
    connection.flushall()
    for key, value in saved.items():
        connection.restore(key, 0, value)
    server.run = "second"
    for worker in (b, a, b, a):
        worker.beat()
    assert owners(a, b) == [6, 6]
    server.wait(LEASE * 0.9)
    [worker.beat() for worker in (a, b)]
    server.wait(LEASE * 0.9)
    [worker.beat() for worker in (a, b)]
    assert owners(a, b) == [6, 6]


def test_what_is_free_after_a_restart_is_given_out_a_lease_later(
    make: Make, server: Server
) -> None:
    """Although nothing else happens meanwhile."""
    a, b = joined(make, "a", "b")
    server.run = "second"
    assert not a.beat().given
    for _ in range(4):
        server.wait(LEASE / 3)
        a.beat()
        b.beat()
    assert owners(a, b) == [6, 6]


def settled(loads: dict[str, dict[int, int]], members: dict[str, Membership]) -> dict[str, int]:
    """Beats with these busy blocks, and moves, until none moves: busy hosts of each worker."""
    hosts = {block: number for held in loads.values() for block, number in held.items()}
    arrived: dict[str, set[int]] = {name: set() for name in members}
    rebalance = {name: Rebalance() for name in members}
    for _ in range(12):
        for name, member in members.items():
            busy = {block: hosts[block] for block in member.held if block in hosts}
            load = Load(sum(busy.values()), busy, tuple(arrived[name]))
            beat = member.beat(load)
            arrived[name] -= set(load.arrived)
            arrived[name] |= beat.moved
            rebalance[name].note(beat)
            leaving = rebalance[name].next((), busy.keys() | beat.moved)
            rebalance[name].release(leaving)
            member.release(leaving)
    return {
        name: sum(hosts.get(block, 0) for block in member.held) for name, member in members.items()
    }


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        ((2, 0), [1, 1]),
        ((1, 0), [0, 1]),
        ((3, 0), [1, 2]),
        ((3, 0, 0), [1, 1, 1]),
        ((4, 2, 0), [2, 2, 2]),
        ((2, 1), [1, 2]),
        ((3, 3, 0, 0), [1, 1, 2, 2]),
    ],
)
def test_hosts_move_from_who_is_busy_to_who_is_not(
    make: Make, busy: tuple[int, ...], expected: list[int]
) -> None:
    """One by one, each to who has least; shares of blocks stay, as others that are not busy come
    back for them."""
    names = "abcd"[: len(busy)]
    workers = joined(make, *names)
    settle(*workers)
    members = dict(zip(names, workers, strict=True))
    loads = {
        name: dict.fromkeys(list(members[name].held)[:number], 1)
        for name, number in zip(names, busy, strict=True)
    }
    before = owners(*workers)
    assert sorted(settled(loads, members).values()) == expected
    assert owners(*workers) == before
    assert sum(before) == BLOCKS


def test_two_hosts_of_one_block_do_not_move_for_nothing(make: Make) -> None:
    """The other worker would have two then, and this one none."""
    a, b = joined(make, "a", "b")
    settle(a, b)
    block = next(iter(a.held))
    assert settled({"a": {block: 2}}, {"a": a, "b": b}) == {"a": 2, "b": 0}


@pytest.mark.parametrize("gone", ["a", "b"])
def test_a_move_is_off_when_one_of_the_two_is_gone(make: Make, server: Server, gone: str) -> None:
    """Who is left has everything in the end."""
    a, b = joined(make, "a", "b")
    settle(a, b)
    block, other = list(a.held)[:2]
    assert a.beat(Load(2, {block: 1, other: 1})).going == {block}
    assert b.beat().moving
    {"a": a, "b": b}[gone].leave()
    left = b if gone == "a" else a
    left.beat()
    beat = left.beat(Load(0, {}, (block,) if gone == "a" else ()))
    assert len(beat.held) == BLOCKS
    assert not beat.going
    assert not left.beat().moving


def test_who_moves_a_block_is_told_until_it_is_released(make: Make) -> None:
    """An answer may be lost."""
    a, b = joined(make, "a", "b")
    settle(a, b)
    block, other = list(a.held)[:2]
    load = Load(2, {block: 1, other: 1})
    assert [a.beat(load).going, a.beat(load).going, a.beat().going] == [{block}] * 3
    a.release([block])
    assert not a.beat(Load(1, {other: 1})).given, "it is not taken back"
    beat = b.beat()
    assert (set(beat.given), beat.moved, beat.excess) == ({block}, {block}, 1)
