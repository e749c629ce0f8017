"""Slow and dead hosts cannot take the places that the healthy ones need."""

import pytest

from larmspider.frontier.slots import SlotPool
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from tests.support.frontier.memory_backend import MemoryBackend
from tests.support.frontier.simulation import Clock, Simulation, build

GAP, HOSTS = 2.0, 300


def kind(number):
    """10% slow, 5% dead, mixed among the others."""
    place = number % 20
    return "slow" if place in (3, 11) else "dead" if place == 7 else "healthy"


def run(path, quick, seconds=240.0, places=32, pages=200):
    clock = Clock()
    frontier = build(LmdbBackend(path), clock, delay=GAP, slots=places)
    kinds = {f"h{n}:80": kind(n) for n in range(HOSTS)}

    def latency(host, random):
        if kinds[host] == "healthy":
            return quick * random.uniform(0.5, 1.5)
        return 10.0 if kinds[host] == "slow" else None

    for page in range(pages):
        frontier.add([frontier.entry(u := f"http://h{n}/{page}", u) for n in range(HOSTS)])
    simulation = Simulation(frontier, clock, latency)
    simulation.quick = quick
    simulation.run(seconds)
    frontier.audit(deep=True)
    frontier.backend.close()
    return simulation, {
        what: [host for host, its in kinds.items() if its == what] for what in kinds.values()
    }


def share(simulation, hosts, start, end):
    """Requests, as part of what the gap allows."""
    asked = sum(simulation.requests(host, start, end) for host in hosts)
    return asked * GAP / (end - start) / len(hosts)


@pytest.fixture(
    scope="module",
    params=[0.005, *(pytest.param(share, marks=pytest.mark.acceptance) for share in (0.05, 0.1))],
)
def crawl(request, tmp_path_factory):
    return run(tmp_path_factory.mktemp("frontier"), request.param)


@pytest.mark.acceptance
def test_healthy_hosts_keep_their_rate_from_the_second_minute_on(crawl):
    simulation, hosts = crawl
    for minute in (60.0, 120.0, 180.0):
        allowed = GAP / (GAP + simulation.quick)  # the gap counts from a quick answer
        assert share(simulation, hosts["healthy"], minute, minute + 60.0) >= 0.95 * allowed


def test_each_healthy_host_gets_its_share(crawl):
    simulation, hosts = crawl
    least = min(share(simulation, [host], 60.0, 240.0) for host in hosts["healthy"])
    assert least >= 0.9


def test_slow_hosts_go_on_too(crawl):
    simulation, hosts = crawl
    asked = [simulation.requests(host, 60.0, 240.0) for host in hosts["slow"]]
    assert min(asked) >= 5  # 18 is all that one connection can do


def test_dead_hosts_are_tried_again(crawl):
    simulation, hosts = crawl
    assert min(simulation.requests(host, 0.0, 240.0) for host in hosts["dead"]) >= 2


def test_no_gap_is_shorter_than_the_rule_and_no_host_has_two_connections(crawl):
    simulation, _ = crawl
    assert min(simulation.shortest_gap(host) for host in simulation.asked) >= GAP
    assert max(simulation.most_open.values()) == 1


def new_hosts(slow, quick, seconds):
    """So many that answer after 10 s stand before so many quick ones, all new, 16 places."""
    clock = Clock()
    frontier = build(MemoryBackend(), clock, delay=GAP, slots=SlotPool(16))
    names = [*(f"slow{n}" for n in range(slow)), *(f"quick{n}" for n in range(quick))]
    frontier.add([frontier.entry(u := f"http://{name}/", u) for name in names])
    latencies = {"s": 10.0, "q": 0.05}
    simulation = Simulation(frontier, clock, lambda host, _: latencies[host[0]])
    simulation.run(seconds)
    frontier.audit(deep=True)
    return simulation, frontier


def test_new_hosts_that_hang_hold_up_those_behind_for_a_short_time_each():
    """100 / 16 rounds of 1 s; by their own time limit 10 s each."""
    simulation, _ = new_hosts(100, 5, 2_000.0)
    pages = [simulation.asked[f"quick{n}:80"][1] - simulation.begun for n in range(5)]
    assert max(pages) < 7 * 1.0 + GAP + 1


def test_a_new_host_does_not_wait_behind_those_that_were_cut_short():
    """They are slow ones now, and leave places free."""
    simulation, frontier = new_hosts(100, 5, 20.0)
    frontier.add([frontier.entry("http://quick9/", "http://quick9/")])
    came = simulation.clock.now
    simulation.begun = came
    simulation.run(10.0)
    assert simulation.asked["quick9:80"][0] - came < 2.0


def test_what_was_cut_short_has_all_its_time_later():
    """None of the slow ones is lost."""
    _, frontier = new_hosts(100, 5, 2_000.0)
    assert frontier.finished
    assert frontier.backend.counts().stored == 105


def test_new_hosts_have_all_their_time_where_there_are_places_for_all():
    """Nobody waits behind them."""
    simulation, _ = new_hosts(11, 5, 25.0)
    times = [simulation.asked[f"slow{n}:80"] for n in range(11)]
    assert [len(asked) for asked in times] == [2] * 11  # robots.txt and the page, no second try
