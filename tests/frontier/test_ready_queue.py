"""Hosts in turn, and the places they may take."""

from dataclasses import dataclass

import pytest

from larmspider.frontier.dispatch import ReadyQueue
from larmspider.frontier.slots import Kind, SlotPool

Q, S, U, F = Kind


@dataclass(eq=False)
class Host:
    name: str
    kind: Kind = Q
    ticket: int = 0
    next_fetch_time: float = 0.0


def taken(turns, now, kinds=tuple(Kind)):
    host = turns.take(now, kinds)
    return host.name if host else None


def test_the_host_that_is_due_longest_goes_first():
    turns = ReadyQueue(lambda host: host.kind)
    for name, at in (("b", 2.0), ("c", 3.0), ("a", 1.0)):
        turns.put(Host(name), at)
    assert len(turns) == 3
    assert [taken(turns, 2.5) for _ in range(3)] == ["a", "b", None]
    assert turns.next_time() == 3.0
    assert len(turns) == 1


def test_a_new_turn_replaces_the_old_one_and_a_dropped_one_is_gone():
    turns, one, two = ReadyQueue(lambda host: host.kind), Host("a"), Host("b")
    turns.put(one, 1.0)
    turns.put(one, 5.0)
    turns.put(two, 2.0)
    turns.drop(two)
    assert (taken(turns, 4.0), turns.next_time(), len(turns)) == (None, 5.0, 1)
    assert taken(turns, 5.0) == "a"
    assert (taken(turns, 9.0), len(turns)) == (None, 0)


def test_the_same_turn_again_costs_no_memory():
    turns, one = ReadyQueue(lambda host: host.kind), Host("a")
    for _ in range(1000):
        turns.put(one, 9.0)
    assert len(turns._later) == 1


def test_a_kind_without_place_does_not_stand_in_the_way():
    turns = ReadyQueue(lambda host: host.kind)
    turns.put(Host("slow", S), 1.0)
    turns.put(Host("quick"), 2.0)
    assert taken(turns, 3.0, [Q]) == "quick"
    assert turns.due(S)
    assert not turns.due(Q)
    assert taken(turns, 3.0, [Q]) is None
    assert taken(turns, 3.0) == "slow"


def test_a_host_that_changed_its_kind_while_due_goes_with_the_new_one():
    turns, host = ReadyQueue(lambda host: host.kind), Host("a", U)
    turns.put(host, 1.0)
    assert taken(turns, 2.0, [Q]) is None
    host.kind = Q
    assert taken(turns, 2.0, [U]) is None
    assert taken(turns, 2.0, [Q]) == "a"
    turns.put(host, 3.0)
    assert taken(turns, 3.0, [U]) is None
    host.kind = S
    assert taken(turns, 3.0) == "a"


def test_unproven_hosts_may_have_all_places_until_quick_ones_need_some():
    places = SlotPool(8)
    for _ in range(4):
        places.acquire(U, 0.0)
    assert places.allows(U)
    places.change_demand(places.demand(0.5, 1.0, 1) * 4)  # two places on average, reserved 5
    assert places.reserved == 5
    assert not places.allows(U)
    assert places.allows(Q)


def test_slow_hosts_have_at_most_their_share_while_quick_ones_have_work():
    places = SlotPool(16)
    places.change_demand(1000)
    while places.allows(S):
        places.acquire(S, 0.0)
    assert places.held[S] == 8
    assert places.allows(Q)
    places.change_demand(-1000)
    while places.allows(S):
        places.acquire(S, 0.0)
    assert places.held[S] == 14  # two are left for probes
    assert places.allows(U)


def test_failing_hosts_have_the_probes_share():
    places = SlotPool(16)
    while places.allows(F):
        places.acquire(F, 0.0)
    assert places.held[F] == 2


@pytest.mark.parametrize("total", [1, 2, 3])
def test_with_few_places_every_kind_still_gets_one(total):
    for kind in Kind:
        places = SlotPool(total)
        places.change_demand(99_000_000)
        assert places.allows(kind)
        for _ in range(total):
            places.acquire(Q, 0.0)
        assert not places.allows(kind)


def test_a_fetch_that_lasts_counts_as_slow():
    places = SlotPool(8, slow_secs=2.0)
    first, second = places.acquire(U, 0.0), places.acquire(Q, 1.0)
    places.release(places.acquire(Q, 1.0))
    places.age(1.9)
    assert (places.held, places.next_age()) == ([1, 0, 1, 0], 2.0)
    places.age(2.0)
    assert places.held == [1, 1, 0, 0]
    places.age(5.0)
    assert places.held == [0, 2, 0, 0]
    places.release(first)
    places.release(second)
    assert (places.held, places.next_age()) == ([0, 0, 0, 0], None)


@pytest.mark.parametrize(
    "hold, failures, kind",
    [(None, 0, U), (None, 3, U), (0.1, 0, Q), (0.1, 3, Q), (2.0, 0, S), (30.0, 1, F)],
)
def test_kinds_of_host(hold, failures, kind):
    assert SlotPool(8).kind(hold, failures) is kind
