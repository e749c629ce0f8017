"""Hosts of one address share their pace (LARM_GROUP_BY)."""

from itertools import combinations

import pytest

from larmspider.frontier import dispatch
from larmspider.frontier.frontier import MAX_IN_VAIN, Frontier
from larmspider.frontier.hosts import HostPace, name_of
from larmspider.frontier.politeness import Limits
from larmspider.frontier.storage.records import FetchRecord, UrlState
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import Clock, Simulation, build

EXACT = Limits(response_factor=0.0, backoff=10.0, jitter=0.0, park=100.0)
ADDRESSES = {"a": "10.0.0.1", "b": "10.0.0.1", "c": "10.0.0.2"}


class World:
    """``addresses`` are known at once; a name that is not there waits."""

    def __init__(self, addresses=ADDRESSES, **options):
        self.addresses = addresses
        self.asked = []
        self.clock, self.disk = Clock(), Disk()
        self.options = {"limits": EXACT, "robots": False, "address_of": self.address_of} | options
        self.start()

    def start(self) -> None:
        backend = MemoryBackend(self.disk)
        self.frontier: Frontier = build(backend, self.clock, **self.options)

    def address_of(self, name):
        self.asked.append(name)
        return self.addresses.get(name)

    def add(self, *urls):
        self.frontier.add([self.frontier.entry(url, url) for url in urls])

    def pops(self):
        """The URLs that may be fetched now."""
        return [lease.url for lease in self.leases()]

    def leases(self):
        leases = []
        while lease := self.frontier.pop():
            leases.append(lease)
        return leases

    def turn(self):
        """The only lease, once all that is due has joined its group."""
        while not (leases := self.leases()):
            assert self.frontier.next_ready_time() <= self.clock.now, "pop() is worth a call"
        (lease,) = leases
        return lease

    def store(self, lease, seconds=0.0):
        self.clock.now += seconds
        self.frontier.answered(lease, seconds)
        self.frontier.acknowledge(lease, FetchRecord(UrlState.STORED, self.clock.now, 200))


def test_one_request_at_once_over_both_and_another_address_is_not_held():
    world = World()
    world.add("http://a/1", "http://b/1", "http://c/1")
    one, other = world.leases()
    assert [one.url, other.url] == ["http://a/1", "http://c/1"]
    world.clock.now += 60.0
    assert world.pops() == []
    world.store(one)
    assert world.pops() == ["http://b/1"]


def test_the_gap_counts_from_the_answer_of_the_other_name():
    world = World()
    world.add("http://a/1", "http://b/1")
    (lease,) = world.leases()
    world.store(lease, 0.5)
    assert world.pops() == []
    assert world.frontier.next_ready_time() == lease.since + 2.5
    world.clock.now = lease.since + 2.499
    assert world.pops() == []
    world.clock.now = lease.since + 2.5
    assert world.pops() == ["http://b/1"]


@pytest.mark.parametrize("first, second", ["ab", "ba"])
def test_the_larger_gap_of_the_two_holds(first, second):
    world = World(rules=[HostPace("b", delay=10.0)])
    world.add(f"http://{first}/1")
    (lease,) = world.leases()
    world.add(f"http://{second}/1")
    world.store(lease, 0.5)
    world.clock.now = lease.since + 10.499
    assert world.pops() == []
    world.clock.now = lease.since + 10.5
    assert world.pops() == [f"http://{second}/1"]


def test_by_host_two_names_of_one_address_do_not_wait_for_each_other():
    world = World(address_of=None)
    world.add("http://a/1", "http://b/1")
    assert world.pops() == ["http://a/1", "http://b/1"]
    assert world.frontier.hosts["a:80"].group is None
    assert world.asked == []


def test_a_host_waits_for_its_address_and_the_crawl_is_not_over():
    world = World({"a": "10.0.0.1"})
    world.add("http://late/1", "http://late:8080/1")
    assert world.pops() == []
    assert world.asked == ["late", "late"]
    assert not world.frontier.finished
    world.add("http://late/2")
    assert world.pops() == []
    assert world.asked == ["late", "late"]
    world.addresses["late"] = "10.0.0.1"
    world.frontier.on_resolved("late", "10.0.0.1")
    (lease,) = world.leases()
    assert lease.url == "http://late/1"
    world.store(lease)
    world.clock.now += 2.0
    assert world.pops() == ["http://late:8080/1"]


def test_one_that_is_known_late_keeps_the_gap_to_its_group():
    world = World({"a": "10.0.0.1"})
    world.add("http://a/1", "http://b/1")
    (lease,) = world.leases()
    world.store(lease)
    world.addresses["b"] = "10.0.0.1"
    world.frontier.on_resolved("b", "10.0.0.1")
    assert world.pops() == []
    world.clock.now += 2.0
    assert world.pops() == ["http://b/1"]


def test_a_new_address_moves_the_host_to_another_group():
    world = World(dict(ADDRESSES))
    world.add("http://a/1", "http://b/1", "http://b/2")
    (lease,) = world.leases()
    world.store(lease)
    world.addresses["b"] = "10.0.0.9"
    world.clock.now += 2.0
    (lease,) = world.leases()
    assert lease.url == "http://b/1"
    world.add("http://a/2")
    assert world.pops() == ["http://a/2"]
    assert lease.host.group.address == "10.0.0.9"


def test_a_host_that_moves_away_lets_go_of_those_that_it_held_up():
    world = World(dict(ADDRESSES), connections=3, rules=[HostPace("a", connections=1)])
    world.add("http://b/1", "http://b/2")
    assert world.pops() == ["http://b/1"]
    del world.addresses["b"]  # it is old, a look-up begins
    world.clock.now += 2.0
    assert world.pops() == []
    world.add("http://a/1")
    assert world.pops() == [], "a has a limit of one"
    world.addresses["b"] = "10.0.0.9"
    world.frontier.on_resolved("b", "10.0.0.9")
    assert sorted(world.pops()) == ["http://a/1", "http://b/2"]


def test_the_only_host_of_an_address_may_move_too():
    world = World(dict(ADDRESSES))
    world.add("http://c/1", "http://c/2")
    (lease,) = world.leases()
    world.store(lease)
    world.addresses["c"] = "10.0.0.9"
    world.clock.now += 2.0
    assert world.pops() == ["http://c/2"]


def test_failures_stay_with_their_host():
    world = World()
    world.add("http://a/1", "http://b/1")
    (lease,) = world.leases()
    world.frontier.failed(lease, "timeout", 0.0)
    world.clock.now += 2.0
    (other,) = world.leases()
    assert other.url == "http://b/1"
    world.store(other)
    world.clock.now = lease.since + 10.0
    assert world.pops() == ["http://a/1"]


def test_a_lease_that_is_given_back_lets_the_other_go():
    world = World()
    world.add("http://a/1", "http://b/1")
    (lease,) = world.leases()
    world.frontier.release(lease)
    world.clock.now += 2.0
    assert world.pops() == ["http://b/1"]


def test_robots_txt_is_asked_at_the_shared_pace_too():
    world = World(robots=True)
    world.add("http://a/1", "http://b/1")
    (lease,) = world.leases()
    assert lease.url == "http://a/robots.txt"
    world.frontier.robots_loaded(lease, b"", 0.0)
    assert world.pops() == []
    world.clock.now += 2.0
    assert world.pops() == ["http://b/robots.txt"]


def test_after_a_restart_the_gap_holds_between_them():
    world = World()
    world.add("http://a/1", "http://a/2", "http://b/1")
    world.leases()
    world.frontier.checkpoint({})
    world.start()
    assert world.pops() == []
    world.clock.now += 2.0
    (lease,) = world.leases()
    world.store(lease)
    assert world.pops() == []
    world.clock.now += 2.0
    assert len(world.pops()) == 1


def test_one_that_joins_while_another_is_asked_has_its_turn():
    world = World()
    world.add("http://c/1", "http://c/2")
    (lease,) = world.leases()
    world.store(lease)
    world.clock.now += 3.0
    world.add("http://a/1")
    assert sorted(world.pops()) == ["http://a/1", "http://c/2"]


@pytest.mark.parametrize("late", [False, True])
def test_many_names_of_one_address_join_in_linear_time(late, monkeypatch):
    """400 names: turns are worked out a few times for each, not once for every other one. One pop()
    lets others have the CPU before all have joined."""
    names = [f"h{number}" for number in range(400)]
    world = World({} if late else dict.fromkeys(names, "10.0.0.1"))
    asked = []
    next_fetch_time = dispatch.next_fetch_time
    monkeypatch.setattr(
        dispatch,
        "next_fetch_time",
        lambda frontier, host: (asked.append(1), next_fetch_time(frontier, host))[1],
    )
    world.add(*(f"http://{name}/{n}" for name in names for n in range(2)))
    if late:
        assert world.pops() == []
        for name in names:
            world.addresses[name] = "10.0.0.1"
            world.frontier.on_resolved(name, "10.0.0.1")
    first, before = [], len(asked)
    assert world.frontier.pop() is None
    assert len(asked) - before < 4 * MAX_IN_VAIN
    for _ in range(3):
        lease = world.turn()
        first.append(lease.host)
        world.store(lease)
        world.clock.now += 2.0
    assert len(set(first)) == 3, "they take turns"
    assert len(asked) < 40 * len(names)


def gap_of(first: str, second: str) -> float:
    return max(GAPS[name_of(first)], GAPS[name_of(second)])


GAPS = {"a": 2.0, "b": 10.0, "c": 2.0, "d": 3.0}


@pytest.mark.parametrize("robots", [True, False])
@pytest.mark.parametrize("connections", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_all_pairs_keep_their_gap_and_nobody_starves(seed, connections, robots):
    """Four names of one address, one with a long gap, one with a limit of one; some fail."""
    rules = [HostPace("d", connections=1), *(HostPace(n, delay=gap) for n, gap in GAPS.items())]
    world = World(
        dict.fromkeys(GAPS, "10.0.0.1"), rules=rules, connections=connections, robots=robots
    )
    urls = [f"http://{name}/{number}" for name in GAPS for number in range(20)]
    world.add(*urls)

    def latency(host, random):
        return None if random.random() < 0.02 else random.choice([0.01, 0.5, 5.0])

    simulation = Simulation(world.frontier, world.clock, latency, seed=seed)
    most, begin = [], simulation.begin

    def watch(lease):
        begin(lease)
        most.append(sum(simulation.open.values()))
        if simulation.open["d:80"]:
            assert most[-1] == 1, "the smallest limit holds for all"

    simulation.begin = watch
    simulation.run(100_000)
    asked = sorted((time, host) for host, times in simulation.asked.items() for time in times)
    for (early, one), (late, other) in combinations(asked, 2):
        assert late - early >= gap_of(one, other) - 1e-6
    assert max(most) <= connections
    counts = world.frontier.backend.counts()
    assert counts.queued == counts.leased == 0
    assert world.frontier.finished
    early = [host for _, host in asked[:24]]
    assert all(early.count(f"{name}:80") >= 3 for name in GAPS), "they take turns"


def test_a_page_costs_the_same_however_many_names_its_address_has(monkeypatch):
    """Next fetch times worked out a page, once all hosts have joined: 320 names as few as 16."""
    asked = []
    next_fetch_time = dispatch.next_fetch_time
    monkeypatch.setattr(
        dispatch,
        "next_fetch_time",
        lambda frontier, host: (asked.append(1), next_fetch_time(frontier, host))[1],
    )
    costs = []
    for count in (16, 320):
        names = [f"h{number}" for number in range(count)]
        world = World(dict.fromkeys(names, "10.0.0.1"))
        world.add(*(f"http://{name}/{n}" for name in names for n in range(2)))
        for turn in range(12):
            if turn == 2:
                asked.clear()
            lease = world.turn()
            world.store(lease)
            world.clock.now += 2.0
        costs.append(len(asked))
    assert costs[1] <= costs[0] + 2


def test_members_take_turns_in_order_for_ever():
    names = ["a", "b", "d", "e"]
    world = World(dict.fromkeys(names, "10.0.0.1"))
    world.add(*(f"http://{name}/{n}" for n in range(3) for name in names))
    order = []
    while not world.frontier.finished:
        for lease in world.leases():
            order.append(lease.url)
            world.store(lease)
        world.clock.now += 2.0
    assert order == [f"http://{name}/{n}" for n in range(3) for name in names]


def test_a_slow_member_without_a_slot_does_not_stand_in_the_way_of_a_quick_one():
    world = World({"slow": "10.0.0.1", "quick": "10.0.0.1", "other": "10.0.0.2"}, slots=2)
    for name, seconds in (("slow", 20.0), ("quick", 0.1), ("other", 20.0)):
        world.add(f"http://{name}/0")
        (lease,) = world.leases()
        world.store(lease, seconds)
        world.clock.now += 100.0
    world.add("http://other/1")
    assert world.pops() == ["http://other/1"], "it holds the only slot of slow hosts"
    world.add("http://slow/1", "http://quick/1")
    assert world.pops() == ["http://quick/1"]
