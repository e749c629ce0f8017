"""When a host's turn is, by its state, gap, queue and rule; groups are in test_groups.py."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass
from math import inf

import pytest

from larmspider.frontier.dispatch import next_ready_time, schedule, take
from larmspider.frontier.frontier import MAX_IN_VAIN, AddressBook, Frontier
from larmspider.frontier.hosts import Host, HostPace, HostRecord, HostRules, HostState
from larmspider.frontier.politeness import Limits, Politeness
from larmspider.frontier.ready_queue import ReadyQueue
from larmspider.frontier.robots import NotAsked, RobotsCache
from larmspider.frontier.slots import Kind, SlotPool
from larmspider.frontier.state import FrontierOptions
from larmspider.frontier.storage.records import FetchRecord, QueuedUrl, UrlState, url_key
from larmspider.frontier.strategies import BreadthFirst
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import AllowAll, Clock, build

NOW = 1_000_000.0
READY, LOADING = HostState.READY, HostState.LOADING
SNOOZED, PARKED = HostState.SNOOZED, HostState.PARKED


class World:
    def __init__(self, *, robots=True, places=4):
        self.clock = Clock(NOW)
        self.backend = MemoryBackend(Disk())
        self.rules = HostRules([], HostPace(delay=2.0, connections=1))
        self.places = SlotPool(places)
        politeness = Politeness(Limits(), self.rules, lambda: 0.5)
        self.frontier = Frontier(
            self.backend,
            politeness,
            BreadthFirst(),
            self.places,
            FrontierOptions(
                RobotsCache(self.backend, lambda body: AllowAll()) if robots else NotAsked(),
                clock=self.clock,
                hour_of=lambda now: 12.0,
            ),
        )

    def host(self, name="a:80", *, urls=1, window=None, connections=1, in_flight=0, **record):
        record.setdefault("state", READY)
        rule = HostPace(connections=connections, window=window)
        links = [f"http://{name}/{number}" for number in range(urls)]
        self.backend.add([QueuedUrl(url, url, url_key(url), name) for url in links])
        fields = {"robots_until": inf, "slot_secs": 0.1, **record}
        return Host(HostRecord(name, **fields), rule, in_flight=in_flight)

    def turn(self, host):
        """When it may be asked: None without a turn."""
        schedule(self.frontier, host)
        return host.next_fetch_time if host.ticket else None


@pytest.mark.parametrize(
    "fields, at",
    [
        ({}, 0.0),
        ({"urls": 0}, None),
        ({"state": HostState.NEW, "next_time": NOW + 1}, NOW + 1),
        ({"next_time": NOW + 2}, NOW + 2),
        ({"state": LOADING}, None),
        ({"state": SNOOZED, "until": NOW + 5}, NOW + 5),
        ({"state": SNOOZED, "until": NOW + 5, "next_time": NOW + 9}, NOW + 9),
        ({"state": PARKED, "until": NOW + 600}, NOW + 600),
        ({"state": PARKED, "until": inf}, None),
        ({"state": READY, "until": NOW + 5}, 0.0),
        ({"in_flight": 1}, None),
        ({"in_flight": 1, "connections": 2}, 0.0),
        ({"in_flight": 1, "connections": 2, "robots_until": NOW}, None),
        ({"robots_until": NOW}, 0.0),
        ({"window": (11, 13)}, NOW),
        ({"window": (11, 13), "next_time": NOW + 2}, NOW + 2),
        ({"window": (22, 6)}, NOW + 10 * 3600),
    ],
)
def test_a_turn_comes_when_state_gap_queue_and_rule_allow(fields, at):
    world = World()
    assert world.turn(world.host(**fields)) == at


def test_expired_rules_hold_nobody_up_where_robots_txt_is_not_obeyed():
    world = World(robots=False)
    assert world.turn(world.host(in_flight=1, connections=2, robots_until=0.0)) == 0.0


def test_a_host_that_waits_for_its_address_has_no_turn():
    world = World()
    host = world.host()
    host.resolving = True
    assert world.turn(host) is None


def test_whoever_may_not_have_a_place_is_passed_over():
    world = World(places=4)
    slow, quick = world.host("slow:80", slot_secs=10.0), world.host("quick:80", next_time=NOW - 1)
    for host in (slow, quick):
        schedule(world.frontier, host)
    held = [world.places.acquire(Kind.SLOW, NOW) for _ in range(2)]  # half of all
    assert take(world.frontier, NOW) is quick
    assert take(world.frontier, NOW) is None
    for place in held:
        world.places.release(place)
    assert next_ready_time(world.frontier, NOW) == NOW
    assert take(world.frontier, NOW) is slow
    assert len(world.frontier.ready) == 0


def test_nobody_is_asked_while_all_places_are_taken():
    world = World(places=1)
    schedule(world.frontier, world.host())
    held = world.places.acquire(Kind.QUICK, NOW)
    assert take(world.frontier, NOW) is None
    assert next_ready_time(world.frontier, NOW) is None
    world.places.release(held)
    assert next_ready_time(world.frontier, NOW) == 0.0


def test_the_places_that_quick_hosts_need_are_kept_while_they_have_work():
    world = World()
    host = world.host()
    assert world.places.reserved == 0
    schedule(world.frontier, host)
    assert host.demand > 0
    assert world.places.reserved == 2
    world.backend.pop("a:80", NOW)
    schedule(world.frontier, host)
    assert (host.demand, world.places.reserved) == (0, 0)


# Hosts in turn, and the places they may take.


Q, S, U, F = Kind


@dataclass(eq=False)
class Named:
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
        turns.put(Named(name), at)
    assert len(turns) == 3
    assert [taken(turns, 2.5) for _ in range(3)] == ["a", "b", None]
    assert turns.next_time() == 3.0
    assert len(turns) == 1


def test_a_new_turn_replaces_the_old_one_and_a_dropped_one_is_gone():
    turns, one, two = ReadyQueue(lambda host: host.kind), Named("a"), Named("b")
    turns.put(one, 1.0)
    turns.put(one, 5.0)
    turns.put(two, 2.0)
    turns.drop(two)
    assert (taken(turns, 4.0), turns.next_time(), len(turns)) == (None, 5.0, 1)
    assert taken(turns, 5.0) == "a"
    assert (taken(turns, 9.0), len(turns)) == (None, 0)


def test_the_same_turn_again_costs_no_memory():
    turns, one = ReadyQueue(lambda host: host.kind), Named("a")
    tracemalloc.start()
    try:
        for _ in range(1000):
            turns.put(one, 9.0)
        taken_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken_bytes < 10_000  # one turn takes some 100
    assert taken(turns, 9.0) == "a"
    assert taken(turns, 9.0) is None


def test_a_kind_without_place_does_not_stand_in_the_way():
    turns = ReadyQueue(lambda host: host.kind)
    turns.put(Named("slow", S), 1.0)
    turns.put(Named("quick"), 2.0)
    assert taken(turns, 3.0, [Q]) == "quick"
    assert turns.due(S)
    assert not turns.due(Q)
    assert taken(turns, 3.0, [Q]) is None
    assert taken(turns, 3.0) == "slow"


def test_a_host_that_changed_its_kind_while_due_goes_with_the_new_one():
    turns, host = ReadyQueue(lambda host: host.kind), Named("a", U)
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


# A host whose address is not known yet has no turn, and holds no place meanwhile.


class LookupWorld:
    """``known`` names have an address; ``crowded`` while that is True."""

    def __init__(self, places: int = 16, grouped: bool = False) -> None:
        self.known = {"good": "10.0.0.1", "other": "10.0.0.1"}
        self.asked: list[str] = []
        self.crowded = False
        self.clock = Clock()
        book = AddressBook(
            self.address_of,
            grouped=grouped,
            own_address=lambda url: "proxied" not in url,
            saturated=lambda: self.crowded,
        )
        self.frontier: Frontier = build(
            MemoryBackend(), self.clock, slots=places, robots=False, delay=1.0, addresses=book
        )

    def address_of(self, name: str) -> str | None:
        self.asked.append(name)
        return self.known.get(name)

    def add(self, *urls: str) -> None:
        self.frontier.add([self.frontier.entry(url, url) for url in urls])

    def learn(self, name: str) -> None:
        self.known[name] = "10.0.0.2"
        self.frontier.on_resolved(name, "10.0.0.2")

    def pops(self) -> list[str]:
        urls = []
        while lease := self.frontier.pop():
            urls.append(lease.url)
        return urls

    def fetch(self, url: str) -> None:
        lease = self.frontier.pop()
        assert lease is not None
        assert lease.url == url
        self.frontier.answered(lease, 0.01)
        self.frontier.acknowledge(lease, FetchRecord(UrlState.STORED, self.clock.now, 200))


def test_silent_names_hold_no_place_and_a_good_one_behind_them_is_fetched() -> None:
    world = LookupWorld(places=1)
    world.add(*(f"http://dead{number}/" for number in range(60)), "http://good/")
    assert world.pops() == ["http://good/"]
    assert world.frontier.in_flight == 1
    assert not world.frontier.finished


def test_a_host_has_its_turn_when_its_address_is_known() -> None:
    world = LookupWorld()
    world.add("http://late/1", "http://late:8080/1")
    assert world.pops() == []
    assert world.asked == ["late", "late"]
    world.learn("late")
    assert world.pops() == ["http://late/1", "http://late:8080/1"]


def test_hosts_of_one_address_share_nothing_unless_they_are_grouped() -> None:
    apart, together = LookupWorld(), LookupWorld(grouped=True)
    for world in (apart, together):
        world.add("http://good/", "http://other/")
    assert apart.pops() == ["http://good/", "http://other/"]
    assert together.pops() == ["http://good/"]


def test_whom_a_proxy_asks_needs_no_address() -> None:
    world = LookupWorld()
    world.add("http://proxied/")
    assert world.pops() == ["http://proxied/"]
    assert world.asked == []


def test_while_it_is_crowded_hosts_that_never_answered_are_not_looked_up() -> None:
    """Those that have answered have their turns."""
    world = LookupWorld()
    world.add("http://good/1")
    world.fetch("http://good/1")
    world.add("http://good/2", "http://late/")
    world.clock.now += 1.0
    world.crowded = True
    assert world.pops() == ["http://good/2"]
    assert "late" not in world.asked
    soon = world.frontier.next_ready_time()
    assert soon is None or soon > world.clock.now, "somebody says when it is over"
    world.crowded = False
    assert world.frontier.next_ready_time() == world.clock.now
    assert world.pops() == []
    assert world.asked[-1] == "late"


def test_a_host_that_is_known_waits_again_when_its_address_is_old() -> None:
    world = LookupWorld()
    world.add("http://good/1", "http://good/2")
    world.fetch("http://good/1")
    del world.known["good"]
    world.clock.now += 1.0
    assert world.pops() == []
    assert world.frontier.in_flight == 0
    world.learn("good")
    assert world.pops() == ["http://good/2"]


@pytest.mark.parametrize("grouped", [False, True])
def test_a_hundred_thousand_names_are_not_begun_in_one_go(grouped: bool) -> None:
    world = LookupWorld(grouped=grouped)
    world.add(*(f"http://dead{number}/" for number in range(3 * MAX_IN_VAIN)), "http://good/")
    for round_ in (1, 2, 3):
        assert world.frontier.pop() is None
        assert len(world.asked) == round_ * MAX_IN_VAIN
        assert world.frontier.next_ready_time() == world.clock.now
    assert world.pops() == ["http://good/"]


def test_a_host_whose_documents_wait_for_readers_is_not_asked() -> None:
    world = World(robots=False)
    frontier = world.frontier
    frontier.add([frontier.entry(f"http://{name}/", f"http://{name}/") for name in ("a", "b")])
    frontier.hold_host("a:80", True)
    frontier.hold_host("unknown:80", True)
    lease = frontier.pop()
    assert lease is not None
    assert lease.url == "http://b/"
    assert frontier.pop() is None
    frontier.hold_host("a:80", False)
    lease = frontier.pop()
    assert lease is not None
    assert lease.url == "http://a/"
