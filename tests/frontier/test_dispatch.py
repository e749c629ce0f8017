"""When a host's turn is, by its state, gap, queue and rule; groups are in test_groups.py."""

from math import inf

import pytest

from larmspider.frontier.dispatch import next_ready_time, schedule, take
from larmspider.frontier.frontier import Frontier
from larmspider.frontier.hosts import Host, HostPace, HostRecord, HostRules, HostState
from larmspider.frontier.politeness import Limits, Politeness
from larmspider.frontier.robots import RobotsCache
from larmspider.frontier.slots import Kind, SlotPool
from larmspider.frontier.storage.records import QueuedUrl, url_key
from larmspider.frontier.strategies import BreadthFirst
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import AllowAll, Clock

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
            robots=RobotsCache(self.backend, lambda body: AllowAll()) if robots else None,
            clock=self.clock,
            hour_of=lambda now: 12.0,
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
