"""A crawl of 300 real hosts of which 10% are slow and 5% dead, judged by the servers' own clock.

One crawl for all tests, SECONDS long: what takes places from healthy hosts shows after a while.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.crawling import scrapy_for
from tests.support.servers.many_hosts import DEAD, HEALTHY, SLOW, ManyHosts, Seen

HOSTS, PLACES, GAP, SLOW_SECS = 300, 32, 2.0, 10.0
SETTLED, END, SECONDS = 60.0, 107.0, 112.0
"""Seconds of the crawl: rates are taken from SETTLED to END; then it gets the signal to stop."""


def crawl_politely(servers: ManyHosts, folder: Path, seconds: float) -> None:
    (folder / "seeds").write_text("\n".join(servers.seeds))
    arguments = {"start": "@seeds", "restrict": servers.restrict, "threads": PLACES}
    options = [f"-a{name}={value}" for name, value in arguments.items()]
    options += [f"-sDOWNLOAD_DELAY={GAP}", f"-sLARM_PROBE_SECS={2 * SLOW_SECS}"]  # they may be slow
    scrapy_for(seconds, "crawl", "intranet", *options, cwd=folder)


pytestmark = [pytest.mark.acceptance, pytest.mark.timed]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    with ManyHosts(HOSTS, mixed=True, slow_secs=SLOW_SECS) as servers:
        crawl_politely(servers, tmp_path_factory.mktemp("crawl"), SECONDS)
        return Seen(servers.stop(), GAP)


def test_healthy_hosts_keep_their_rate_once_the_crawl_has_settled(seen: Seen) -> None:
    """Nearly what the gap allows, all together: 0.95 and more on a machine that is idle."""
    assert seen.rate(seen.of(HEALTHY), SETTLED, END) >= 0.85


def test_each_healthy_host_gets_its_share(seen: Seen) -> None:
    """None pays for the others; one request more or less is 6%."""
    assert min(seen.rate([host], SETTLED, END) for host in seen.of(HEALTHY)) >= 0.75


@pytest.mark.parametrize("kind, at_least", [(SLOW, 3), (DEAD, 1)])
def test_slow_and_dead_hosts_are_asked_too(seen: Seen, kind: str, at_least: int) -> None:
    """Each of them: slow ones answer robots.txt, the start page and go on."""
    assert min(len(host.times) for host in seen.of(kind)) >= at_least


def test_no_gap_is_shorter_than_the_rule(seen: Seen) -> None:
    """By the hosts' own clock, robots.txt among the requests: 2 s, and a slow host is left alone
    for as long as it took to answer."""
    assert min(host.shortest_gap() for host in seen.hosts) >= GAP
    assert min(host.shortest_gap() for host in seen.of(SLOW)) >= SLOW_SECS


def test_no_host_has_two_requests_at_once(seen: Seen) -> None:
    """CONCURRENT_REQUESTS_PER_DOMAIN is 1: one request, and one connection."""
    assert {host.peak_requests for host in seen.hosts} == {1}
    assert {host.peak_connections for host in seen.hosts} == {1}
