"""Slow and dead hosts cannot take the places that the healthy ones need."""

import pytest
from simulation import Clock, Simulation, build

from larmspider.frontier.lmdb_backend import LmdbBackend

GAP, HOSTS = 2.0, 300


def kind(number):
    """10% slow, 5% dead, mixed among the others."""
    place = number % 20
    return "slow" if place in (3, 11) else "dead" if place == 7 else "healthy"


def run(path, quick, seconds=240.0, places=32, pages=200):
    clock = Clock()
    frontier = build(LmdbBackend(path), clock, delay=GAP, places=places)
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


@pytest.fixture(scope="module", params=[0.005, 0.05, 0.1])
def crawl(request, tmp_path_factory):
    return run(tmp_path_factory.mktemp("frontier"), request.param)


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
