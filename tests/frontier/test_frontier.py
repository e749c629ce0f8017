"""The frontier joined: robots first, gaps, retries, budgets, restarts, orders."""

import random
from collections import Counter
from dataclasses import replace
from math import inf

import pytest
from scrapy.settings import Settings

from larmspider.frontier.dispatch import MAX_REFUSED
from larmspider.frontier.frontier import MAX_IN_VAIN, CrawlLimits
from larmspider.frontier.hosts import HostPace, HostState
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.politeness import Limits
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import FetchRecord, UrlState, url_key
from larmspider.frontier.strategies import Backlinks, PathWords
from larmspider.items import REQUISITE
from larmspider.learned.deletes.table import Observation
from larmspider.learned.learning import Learning
from larmspider.learned.revisits.revisiting import RevisitOptions
from larmspider.learned.shortfall import Evidence
from larmspider.urls.normalizer import UrlForms
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import AllowAll, Clock, Simulation, build

STORED = UrlState.STORED
EXACT = Limits(response_factor=0.0, backoff=10.0, jitter=0.0, park=100.0, max_parks=1)


class Rules(AllowAll):
    """Disallows what contains "private"; the body is the Crawl-delay."""

    def __init__(self, body):
        self.crawl_delay = float(body) if body else None

    sitemaps = ("http://a/sitemap.xml",)

    def allowed(self, url):
        return "private" not in url


class World:
    def __init__(self, **options):
        self.disk, self.clock = Disk(), Clock()
        self.options = {"limits": EXACT, "parse": Rules, **options}
        self.start()

    def start(self):
        """Also a restart after a crash: what no checkpoint wrote is gone."""
        self.frontier = build(MemoryBackend(self.disk), self.clock, **self.options)

    def add(self, *urls, **fields):
        return self.frontier.add([self.frontier.entry(url, url, **fields) for url in urls])

    def pop(self):
        lease = self.frontier.pop()
        self.frontier.audit(deep=True)
        return lease

    def wait(self, seconds):
        self.clock.now += seconds

    def robots(self, body=b"", seconds=0.0):
        """Let the one host that is due load its rules."""
        lease = self.pop()
        assert lease.kind is FetchKind.ROBOTS, lease
        self.frontier.robots_loaded(lease, body, seconds)
        self.wait(2.0)

    def store(self, lease, seconds=0.0):
        self.frontier.answered(lease, seconds)
        self.frontier.acknowledge(lease, FetchRecord(STORED, self.clock.now, 200))

    def fail(self, lease, kind="timeout", **fields):
        return self.frontier.failed(lease, kind, 0.0, **fields)

    def record(self, host="a:80"):
        return self.frontier.hosts[host].record

    def crawl(self, seconds=1e6, latency=lambda host, random: 0.01):
        """Run until nothing is left, and the order in which URLs were fetched."""
        fetched = []
        simulation = Simulation(self.frontier, self.clock, latency)
        begin = simulation.begin
        simulation.begin = lambda lease: (fetched.append(lease.url), begin(lease))
        simulation.run(seconds)
        return fetched


@pytest.fixture
def world():
    return World()


def test_nothing_to_do(world):
    assert world.pop() is None
    assert world.frontier.finished
    assert world.frontier.next_ready_time() is None


def test_a_new_host_is_asked_for_its_rules_first_and_others_go_on(world):
    world.add("http://a/1", "http://b/1")
    one, two = world.pop(), world.pop()
    assert [one.url, two.url] == ["http://a/robots.txt", "http://b/robots.txt"]
    assert world.pop() is None
    assert world.record().state is HostState.LOADING
    assert list(world.frontier.robots_loaded(two, b"", 0.0)) == ["http://a/sitemap.xml"]
    assert world.frontier.in_flight == 1
    world.wait(2.0)
    assert world.pop().url == "http://b/1"
    assert world.pop() is None


@pytest.mark.parametrize("of_robots", [True, False])
def test_a_failed_fetch_is_evidence_why_little_of_its_host_is_stored(of_robots):
    world = World(robots=of_robots)
    world.add("http://a/1")
    lease = world.pop()
    assert (lease.kind is FetchKind.ROBOTS) is of_robots
    while not of_robots and world.fail(lease, "bad-response"):
        world.wait(1e4)
        lease = world.pop()
    if of_robots:
        world.fail(lease, "http-503")
    world.frontier.checkpoint({})
    found = Evidence.unpack(world.frontier.backend.note("shortfall a:80"))
    assert (found.robots_failed, found.failed) == (
        ("http-503", {}) if of_robots else ("", {"bad-response": 1})
    )


def test_without_robots_the_page_is_fetched_at_once():
    world = World(robots=False)
    world.add("http://a/1")
    assert world.pop().url == "http://a/1"


def test_the_gap_is_kept_and_the_next_ready_time_is_named(world):
    world.add("http://a/1", "http://a/2")
    world.robots()
    world.store(world.pop())
    start = world.clock.now
    assert world.pop() is None
    assert world.frontier.next_ready_time() == start + 2.0
    world.wait(1.999)
    assert world.pop() is None
    world.wait(0.001)
    assert world.pop().url == "http://a/2"


@pytest.mark.parametrize("seconds, reached", [(0.1, 0.1), (0.5, 0.5), (10.0, 1.0)])
def test_the_gap_counts_from_the_answer_or_a_second_after_the_turn(world, seconds, reached):
    """However late the request left, it had come to its host by then."""
    world.add("http://a/1", "http://a/2")
    world.robots()
    lease = world.pop()
    world.wait(seconds)
    world.frontier.answered(lease, seconds)
    assert world.record().next_time == lease.since + reached + 2.0


@pytest.mark.parametrize("end", ["answered", "failed", "failed for good", "freed", "robots"])
def test_the_gap_counts_so_however_the_fetch_ends(end):
    """A request that was held up for a second leaves its host alone for the whole gap after it."""
    world = World(delay=20.0)
    world.add("http://a/1", "http://a/2")
    lease = world.pop()
    if end != "robots":
        world.frontier.robots_loaded(lease, b"", 0.0)
        world.wait(20.0)
        lease = world.pop()
    world.wait(1.0)
    if end == "answered":
        world.frontier.answered(lease, 1.0)
    elif end == "failed":
        world.frontier.failed(lease, "reset", 1.0)
    elif end == "failed for good":
        world.frontier.failed_for_good(lease, FetchRecord(UrlState.FAILED, reason="http-503"), 1.0)
    elif end == "freed":
        world.frontier.release_slot(lease)
    else:
        world.frontier.robots_loaded(lease, b"", 1.0)
    assert world.frontier.next_ready_time() >= lease.since + 1.0 + 20.0


def test_a_crawl_delay_counts(world):
    world.add("http://a/1", "http://a/2")
    world.robots(b"7")
    assert world.pop() is None
    world.wait(5.0)
    assert world.pop().url == "http://a/1"


@pytest.mark.parametrize("connections", [1, 3])
def test_no_more_connections_than_allowed(connections):
    world = World(connections=connections, delay=0.0)
    world.add(*(f"http://a/{n}" for n in range(9)))
    world.robots()
    leases = []
    while lease := world.pop():
        leases.append(lease)
    assert len(leases) == connections
    world.frontier.answered(leases[0], 0.1)
    assert world.pop() is not None
    assert world.pop() is None


def test_the_gap_holds_between_connections_too():
    world = World(connections=2)
    world.add("http://a/1", "http://a/2")
    world.robots()
    assert world.pop().url == "http://a/1"
    assert world.pop() is None
    assert world.frontier.next_ready_time() == world.clock.now + 2.0
    world.wait(2.0)
    assert world.pop().url == "http://a/2"


def test_a_place_that_comes_free_is_worth_asking_for_at_once():
    world = World(slots=1, robots=False)
    world.add("http://a/1", "http://b/1")
    lease = world.pop()
    assert world.pop() is None
    assert world.frontier.next_ready_time() is None
    world.store(lease, 0.1)
    assert world.frontier.next_ready_time() == world.clock.now
    assert world.pop().url == "http://b/1"


def test_hosts_that_are_due_but_may_have_no_place_are_not_asked_for_in_vain():
    """With every long place held, the time to ask again is when a fetch turns slow, not now."""
    world = World(slots=2, robots=False)
    world.add("http://q/1", "http://q/2", "http://a/1", "http://b/1")
    world.store(world.pop(), 0.1)  # q is quick and has work: places are kept for it
    for name in ("a:80", "b:80"):
        world.frontier.hosts[name].record.slot_secs = 30.0
    assert world.pop().url == "http://a/1"
    assert world.pop() is None
    assert world.frontier.next_ready_time() == world.clock.now + 2.0  # the turn of q


def test_disallowed_urls_are_refused_and_do_not_use_up_the_gap(world):
    world.add("http://a/private/1", "http://a/private/2", "http://a/3")
    world.robots()
    assert world.pop().url == "http://a/3"
    counts = world.frontier.audit()
    assert (counts.refused, counts.leased) == (2, 1)
    assert world.frontier.backend.visit(url_key("http://a/private/1")).reason == "robots.txt"


def test_a_host_of_disallowed_urls_only_ends(world):
    world.add("http://a/private/1")
    world.robots()
    assert world.pop() is None
    assert world.frontier.finished


def test_a_host_of_very_many_disallowed_urls_does_not_hold_up_the_rest(world):
    """They are refused some at a time: a robots.txt may close a host of a million queued URLs."""
    world.add(*(f"http://a/private/{number}" for number in range(1200)), "http://a/3")
    for _ in range(2):
        world.frontier.robots_loaded(world.frontier.pop(), b"", 0.0)
        world.wait(2.0)
        world.add("http://b/1")
    lease = world.frontier.pop()
    assert (lease.url, len(world.frontier.refused)) == ("http://b/1", MAX_REFUSED)
    most, before = 0, MAX_REFUSED
    while (lease := world.frontier.pop()) is None:
        assert world.frontier.next_ready_time() == world.clock.now
        refused = len(world.frontier.refused)
        most, before = max(most, refused - before), refused
    assert (lease.url, len(world.frontier.refused)) == ("http://a/3", 1200)
    assert 0 < most < MAX_IN_VAIN + MAX_REFUSED


def test_unreachable_rules_allow_nothing_until_they_load(world):
    world.add("http://a/1")
    lease = world.pop()
    assert world.fail(lease, "http-503", retry_after=30.0)
    assert world.record().state is HostState.SNOOZED
    assert world.pop() is None
    assert world.frontier.next_ready_time() == world.clock.now + 30.0
    world.wait(30.0)
    assert world.pop().kind is FetchKind.ROBOTS


def test_expired_rules_are_renewed_and_old_ones_serve_while_they_cannot_be():
    world = World(crawl_limits=CrawlLimits(robots_expires=100.0, robots_retry=50.0))
    world.add("http://a/1", "http://a/2", "http://a/private")
    world.robots()
    world.store(world.pop())
    world.wait(100.0)
    lease = world.pop()
    assert lease.kind is FetchKind.ROBOTS
    world.fail(lease, "timeout")
    world.wait(10.0)
    assert world.pop().url == "http://a/2"


def test_rules_that_expire_while_a_page_is_fetched_are_renewed_after_it():
    world = World(crawl_limits=CrawlLimits(robots_expires=100.0), connections=2)
    world.add("http://a/1", "http://a/2")
    world.robots()
    lease = world.pop()
    world.wait(200.0)
    assert world.pop() is None
    world.store(lease)
    assert world.pop().kind is FetchKind.ROBOTS


def test_a_share_that_is_away_costs_no_file_its_attempts():
    world = World(crawl_limits=CrawlLimits(retry_times=1), limits=Limits(park=60.0, max_parks=2))
    world.add("http://a/1")
    world.robots()
    while (at := world.frontier.next_ready_time()) is not None:
        world.clock.now = max(world.clock.now, at)
        assert world.fail(world.pop(), "unmounted")
    assert world.frontier.backend.counts().queued == 1
    assert world.frontier.finished


def test_a_share_that_is_away_keeps_no_other_share_from_its_turn():
    world = World()
    world.add("http://a/away/", "http://a/there/")
    world.robots()
    for wait in (1.0, 2.0):
        lease = world.pop()
        assert lease.url == "http://a/away/"
        world.fail(lease, "unmounted")
        failed_at = world.clock.now
        world.clock.now = world.frontier.next_ready_time()
        assert world.clock.now - failed_at == 10.0 * wait
        lease = world.pop()
        assert lease.url == f"http://a/there/{'' if wait == 1.0 else 'more'}"
        world.store(lease)
        world.wait(10.0 * wait)
        world.add("http://a/there/more")


def test_a_failed_fetch_is_tried_again_later_then_failed_with_its_reason():
    world = World(crawl_limits=CrawlLimits(retry_times=2))
    world.add("http://a/1")
    world.robots()
    waits = []
    for again in (True, True, False):
        failed_at = world.clock.now
        assert world.fail(world.pop(), "reset") is again
        if again:
            waits.append(world.frontier.next_ready_time() - failed_at)
            world.clock.now = world.frontier.next_ready_time()
    assert waits == [10.0, 20.0]
    visit = world.frontier.backend.visit(url_key("http://a/1"))
    assert (visit.state, visit.reason) == (UrlState.FAILED, "reset")
    assert world.frontier.finished


def test_while_a_url_waits_for_its_retry_others_of_its_host_go_on(world):
    world.add("http://a/1", "http://a/2")
    world.robots()
    world.fail(world.pop(), "bad-response")
    world.wait(2.0)
    assert world.pop().url == "http://a/2"


def test_new_links_wake_a_host_whose_only_url_waits_for_its_retry(world):
    world.add("http://a/1")
    world.robots()
    world.fail(world.pop(), "bad-response")
    world.add("http://a/2")
    world.wait(2.0)
    assert world.pop().url == "http://a/2"


def test_what_will_not_get_better_is_not_tried_again(world):
    world.add("http://a/1")
    world.robots()
    visit = FetchRecord(STORED, 5.0, 413, etag='"e"')
    assert not world.fail(world.pop(), "too-big", visit=visit)
    kept = world.frontier.backend.visit(url_key("http://a/1"))
    assert (kept.state, kept.status, kept.etag, kept.reason) == (
        UrlState.FAILED,
        413,
        '"e"',
        "too-big",
    )


def test_a_dead_host_is_parked_probed_given_up_and_the_crawl_ends():
    world = World(crawl_limits=CrawlLimits(retry_times=99))
    world.add("http://a/1", "http://a/2")
    world.crawl(latency=lambda host, random: None)
    record = world.record()
    assert (record.state, record.until) == (HostState.PARKED, inf)
    assert record.reason == "given up: probe 1 failed: robots.txt: timeout"
    assert world.frontier.finished
    assert world.frontier.audit().queued == 2


def test_a_host_that_was_given_up_is_tried_again_by_the_next_run():
    world = World()
    world.add("http://a/1")
    world.crawl(latency=lambda host, random: None)
    world.frontier.checkpoint({})
    world.start()
    world.wait(2.0)
    assert world.pop().kind is FetchKind.ROBOTS


def test_a_dead_host_does_not_hold_up_the_others(world):
    world.add(*(f"http://{host}/{n}" for n in range(20) for host in "abc"))
    start = world.clock.now
    world.crawl(latency=lambda host, random: None if host == "b:80" else 0.01, seconds=60.0)
    counts = [world.frontier.backend.counts(f"{host}:80") for host in "ac"]
    assert [count.stored for count in counts] == [20, 20]
    assert world.clock.now - start <= 90.0


def test_given_back_it_is_at_its_old_place(world):
    world.add("http://a/1", "http://a/2")
    robots = world.pop()
    world.frontier.release(robots)
    world.wait(2.0)
    world.robots()
    world.frontier.release(world.pop())
    world.wait(2.0)
    lease = world.pop()
    assert (lease.url, lease.entry.attempts) == ("http://a/1", 0)


def test_a_page_keeps_its_lease_but_not_its_place_until_it_is_stored(world):
    world.add("http://a/1", "http://a/2")
    world.robots()
    lease = world.pop()
    world.frontier.answered(lease, 0.1)
    assert world.frontier.in_flight == 0
    assert world.frontier.audit().leased == 1
    world.wait(2.0)
    assert world.pop().url == "http://a/2"
    world.frontier.acknowledge(lease, FetchRecord(STORED))
    assert world.frontier.audit().stored == 1
    assert not world.frontier.finished


def test_a_store_that_drops_a_page_refuses_its_url(world):
    world.add("http://a/1")
    world.robots()
    world.frontier.acknowledge(world.pop(), FetchRecord(UrlState.REFUSED, reason="dropped by X"))
    assert world.frontier.finished
    assert world.add("http://a/1").new == []


def test_robots_leases_do_not_end_with_done(world):
    world.add("http://a/1")
    with pytest.raises(ValueError):
        world.frontier.acknowledge(world.pop(), FetchRecord(STORED))


def test_links_beyond_the_bounds_are_rejected_with_a_reason():
    world = World(crawl_limits=CrawlLimits(depth_limit=2, max_redirects=1))
    assert len(world.add("http://a/1", depth=2, redirects=1).new) == 1
    ((_, reason),) = world.add("http://a/2", depth=3).rejected
    assert reason == "depth 3 is over 2"
    ((_, reason),) = world.add("http://a/3", redirects=2).rejected
    assert reason == "2 redirects in a row, 1 are allowed"
    assert world.frontier.audit().discovered == 1


def test_a_host_name_that_no_key_can_hold_is_rejected_and_stops_nothing(tmp_path):
    frontier = build(LmdbBackend(tmp_path), Clock())
    urls = [f"http://{'a' * length}/" for length in (297, 298, 600)]
    result = frontier.add([frontier.entry(url, url) for url in urls])
    assert [len(reason) > 0 for _, reason in result.rejected] == [True, True]
    frontier.robots_loaded(frontier.pop(), b"", 0.1)
    frontier.checkpoint({})
    assert frontier.audit(deep=True).discovered == 1
    frontier.backend.close()


def test_known_urls_are_known_from_memory_and_from_disk(world):
    world.add("http://a/1")
    assert world.frontier.known(["http://a/1", "http://a/2", "http://a/1"]) == [True, False, True]
    world.frontier.checkpoint({})
    world.start()
    assert world.frontier.known(["http://a/1", "http://a/2"]) == [True, False]
    result = world.add("http://a/1", "http://a/2", "http://a/2")
    assert [entry.url for entry in result.new] == ["http://a/2"]


def test_what_was_seen_lately_is_told_from_memory_alone(world):
    """After a start nothing is; and nothing where the order counts every link."""
    world.add("http://a/1")
    assert world.frontier.seen_lately(["http://a/1", "http://a/2"]) == [True, False]
    world.frontier.checkpoint({})
    world.start()
    assert world.frontier.seen_lately(["http://a/1"]) == [False]
    world.frontier.known(["http://a/1"])
    assert world.frontier.seen_lately(["http://a/1"]) == [True]
    counting = World(strategy=Backlinks())
    counting.add("http://a/1")
    assert counting.frontier.seen_lately(["http://a/1"]) == [False]


def test_a_budget_for_the_crawl(world):
    world = World(crawl_limits=CrawlLimits(max_pages=3))
    world.add(*(f"http://{host}/{n}" for n in range(3) for host in "ab"))
    world.crawl()
    assert (world.frontier.audit().stored, world.frontier.audit().queued) == (3, 3)
    assert world.frontier.finished


def test_a_budget_for_a_host_parks_it_and_a_larger_one_goes_on(world):
    world = World(rules=[HostPace("a", budget=2)])
    world.add("http://a/1", "http://a/2", "http://a/3", "http://b/1")
    world.crawl()
    assert world.record().reason == "budget of 2 pages"
    assert world.frontier.backend.counts("a:80").stored == 2
    assert world.frontier.finished
    world.frontier.checkpoint({})
    world.options["rules"] = [HostPace("a", budget=3)]
    world.start()
    assert world.crawl() == ["http://a/3"]


def test_a_page_that_fails_leaves_its_part_of_the_budget_to_another():
    world = World(rules=[HostPace("a", budget=1)])
    world.add("http://a/1", "http://a/2")
    world.robots()
    lease = world.pop()
    world.wait(10.0)
    world.frontier.answered(lease, 0.1)
    assert world.pop() is None
    world.frontier.acknowledge(lease, FetchRecord(UrlState.REFUSED, reason="dropped"))
    assert world.pop().url == "http://a/2"


@pytest.mark.parametrize("robots", [True, False])
def test_a_fetch_that_fails_leaves_its_part_of_the_budget_and_the_host_snoozes(robots):
    rules, bounds = [HostPace("a", budget=1, connections=2)], CrawlLimits(retry_times=0)
    world = World(rules=rules, crawl_limits=bounds, robots=robots)
    world.add("http://a/1", "http://a/2")
    if robots:
        world.robots()
    lease = world.pop()
    world.wait(2.0)
    assert world.pop() is None
    assert world.record().state is HostState.PARKED
    world.fail(lease, "timeout")
    assert world.record().state is HostState.SNOOZED
    world.wait(10.0)
    assert world.pop().url == "http://a/2"


def test_a_host_is_left_alone_outside_its_window():
    world = World(rules=[HostPace("a", window=(22, 6))])
    world.clock.now = 12 * 3600.0
    world.add("http://a/1")
    assert world.pop() is None
    assert world.frontier.next_ready_time() == 22 * 3600.0
    world.clock.now = 22 * 3600.0
    assert world.pop().kind is FetchKind.ROBOTS


def test_health_and_rules_survive_a_restart(world):
    world.add("http://a/1", "http://a/2", "http://a/private")
    world.robots(b"7")
    world.wait(9.0)
    world.fail(world.pop(), "http-503", retry_after=200.0)
    world.frontier.checkpoint({})
    until = world.clock.now + 200.0
    world.start()
    record = world.record()
    assert (record.state, record.until, record.crawl_delay) == (HostState.SNOOZED, until, 7.0)
    assert world.pop() is None
    world.clock.now = until
    fetched = world.crawl()
    assert fetched == ["http://a/1", "http://a/2"]
    assert world.frontier.audit().refused == 1


def test_a_crash_between_checkpoints_fetches_again_and_loses_nothing(world):
    world.add(*(f"http://{host}/{n}" for n in range(10) for host in "ab"))
    world.crawl(seconds=11.0)
    world.frontier.checkpoint({})
    stored = world.frontier.audit().stored
    world.crawl(seconds=6.0)
    assert world.frontier.audit().stored > stored > 0
    world.start()
    assert world.frontier.audit().stored == stored
    world.crawl()
    assert world.frontier.audit().stored == 20


def test_the_gap_holds_over_a_crash_and_a_restart_at_once(world):
    world.add("http://a/1", "http://a/2")
    world.robots()
    world.frontier.checkpoint({})
    world.wait(100.0)
    assert world.pop().url == "http://a/1"
    world.start()
    assert world.pop() is None
    world.wait(2.0)
    assert world.pop().url == "http://a/1"


def test_a_clock_that_was_ahead_holds_nobody_up_after_a_restart(world):
    world.clock.now += 1e8
    world.add("http://a/1", "http://b/1")
    for _ in range(2):
        world.frontier.robots_loaded(world.pop(), b"", 0.0)
    world.wait(2.0)
    world.fail(world.pop(), "too-big")
    world.fail(world.pop(), "http-503", retry_after=50.0)
    world.add("http://a/2", "http://b/2")
    world.frontier.checkpoint({})
    world.clock.now -= 1e8
    world.start()
    assert world.frontier.next_ready_time() == world.clock.now + 2.0
    world.wait(2.0)
    assert world.pop().url == "http://a/2"
    longest = world.frontier.politeness.longest_wait
    assert world.record("b:80").until == world.clock.now - 2.0 + longest
    world.wait(longest)
    lease = world.pop()
    assert lease.url == "http://b/2"
    world.store(lease)
    world.wait(2.0)
    assert world.pop().url == "http://b/1", "its next attempt was to be years from now"


@pytest.mark.parametrize("grouped", [False, True])
def test_a_clock_that_is_set_back_holds_nobody_up(grouped):
    """A machine whose clock was ahead when it was started: its hosts would rest for as long."""
    address_of = (lambda name: "10.0.0.7") if grouped else None
    world = World(address_of=address_of, robots=False)
    world.add(*(f"http://{host}/{number}" for host in "ab" for number in (1, 2)))
    first = world.pop()
    world.fail(first, "http-500")
    under_way = None if grouped else world.pop()
    world.clock.now -= 1e6
    if under_way is not None:
        world.store(under_way)
    assert world.frontier.next_ready_time() <= world.clock.now + 2.0
    begun = world.clock.now
    assert len(world.crawl()) == 4 - (under_way is not None)
    assert world.frontier.finished
    assert world.clock.now < begun + 60.0


@pytest.mark.parametrize("seed", range(8))
def test_whatever_fails_and_whenever_it_crashes_every_url_ends_and_no_gap_is_cut(seed):
    dice = random.Random(seed)
    world = World(
        crawl_limits=CrawlLimits(retry_times=2), limits=Limits(park=60.0, max_parks=9), slots=4
    )
    asked = {}

    def latency(host, chance):
        assert world.clock.now - asked.get(host, 0.0) >= 2.0
        asked[host] = world.clock.now
        return None if chance.random() < 0.2 else chance.uniform(0.01, 4.0)

    world.add(*(f"http://{host}/{n}" for host in "abcdef" for n in range(12)))
    world.frontier.checkpoint({})
    for _ in range(25):
        simulation = Simulation(world.frontier, world.clock, latency, seed=dice.random())
        simulation.run(dice.uniform(1.0, 60.0))
        world.frontier.audit(deep=True)
        if dice.random() < 0.7:
            world.frontier.checkpoint({})
        world.start()
        assert world.frontier.audit(deep=True).leased == 0
    simulation = Simulation(world.frontier, world.clock, latency)
    simulation.run(1e6)
    counts = world.frontier.audit(deep=True)
    assert world.frontier.finished
    assert (counts.discovered, counts.stored + counts.failed) == (72, 72)


def test_hosts_take_turns_whatever_the_order():
    world = World(strategy=PathWords(), robots=False, delay=0.0)
    world.add("http://a/x/y/z", "http://a/x", "http://a/", "http://b/1/2", "http://b/3")
    assert [url for url in world.crawl() if "/a/" in url] == [
        "http://a/",
        "http://a/x",
        "http://a/x/y/z",
    ]


def test_backlinks_fetch_the_most_linked_first():
    world = World(strategy=Backlinks(), robots=False)
    world.add("http://a/1", "http://a/2", "http://a/3")
    for urls in (["http://a/3"], ["http://a/2", "http://a/3"]):
        assert all(world.frontier.known(urls))
    assert world.crawl() == ["http://a/3", "http://a/2", "http://a/1"]


def test_a_checkpoint_is_due_when_much_is_pending(world):
    world.frontier.checkpoint({})
    assert not world.frontier.wants_checkpoint
    world.frontier.backend.operations = 20_000
    assert world.frontier.wants_checkpoint


def test_a_failure_after_the_answer_counts_after_a_restart(world):
    """The page broke a store: between the answer and that, a checkpoint wrote the host's record."""
    world.add("http://a/1")
    world.robots()
    lease = world.pop()
    world.frontier.answered(lease, 0.0)
    world.frontier.checkpoint({})
    world.fail(lease, "http-500")
    assert world.record().failures == 1
    world.frontier.checkpoint({})
    world.start()
    assert world.record().failures == 1


def test_a_requisite_is_known_and_in_no_sum_once_it_has_ended(world):
    world.add("http://a/logo#requisite", link_type=REQUISITE)
    world.robots()
    for state in (UrlState.FAILED, STORED):
        lease = world.pop()
        assert lease.entry.url == "http://a/logo#requisite"
        assert world.frontier.backend.counts().discovered == 1
        world.frontier.checkpoint({})
        if state is STORED:
            world.frontier.acknowledge(lease, FetchRecord(state))
        else:
            world.start()  # killed
            world.wait(100.0)
    counts = world.frontier.backend.counts()
    assert (counts.discovered, counts.stored, counts.merged) == (0, 0, 0)
    world.frontier.audit(deep=True)
    world.frontier.checkpoint({})
    world.start()
    assert not world.add("http://a/logo#requisite", link_type=REQUISITE).new
    assert world.frontier.known(["http://a/logo#requisite", "http://a/logo"]) == [True, False]


def nightly(world, mode, latency):
    """Seconds that a run takes, a day later, and the requests to each host."""
    world.frontier.checkpoint({})
    world.clock.now += 86_400
    settings = Settings()
    settings.setmodule("larmspider.settings")
    revisits = RevisitOptions(mode, per_day=99)
    world.options["learning"] = Learning(UrlForms.from_settings(settings), revisits=revisits)
    world.start()
    refresh = world.frontier.refresh
    begun, asked = world.clock.now, Counter()
    for _ in range(10_000):
        if (lease := world.frontier.pop()) is not None:
            name = lease.host.record.host
            asked[name] += 1
            world.clock.now += 0.1
            if latency(name) is None:
                world.frontier.failed(lease, "timeout", 0.1)
            elif lease.kind is FetchKind.ROBOTS:
                world.frontier.robots_loaded(lease, b"", 0.1)
            else:
                world.frontier.answered(lease, 0.1)
                entry, now = lease.entry, world.clock.now
                found = refresh.judge(entry, entry.visit, Observation.SAME, now)
                world.frontier.acknowledge(lease, found.record)
        elif world.frontier.finished:
            return world.clock.now - begun, asked
        else:
            world.clock.now = max(world.clock.now + 0.01, world.frontier.next_ready_time() or 0.0)
    raise AssertionError("the run does not end")


@pytest.mark.parametrize("mode", ["due", "all"])
def test_a_host_that_was_silent_yesterday_is_asked_once_and_holds_up_no_night(mode):
    world = World(limits=replace(EXACT, park=600.0, max_parks=3))
    world.add(*(f"http://{host}/{number}" for host in "ab" for number in range(6)))
    world.crawl()
    dead = {"a:80": None}.get
    seconds, asked = nightly(world, mode, lambda name: dead(name, 0.1))
    assert asked["b:80"] == 7
    assert world.record().state is HostState.PARKED
    assert seconds < 200  # the run does not wait for its next probe
    seconds, asked = nightly(world, mode, lambda name: dead(name, 0.1))
    assert asked == {"a:80": 1, "b:80": 7}
    assert seconds < 60
    assert "did not answer again" in world.record().reason
    seconds, asked = nightly(world, mode, lambda name: 0.1)
    assert asked == {"a:80": 7, "b:80": 7}
    assert world.record().silent_since == 0.0


@pytest.mark.parametrize("mode", ["due", "all"])
def test_a_share_that_is_away_holds_up_no_night_for_an_hour(mode):
    """It is tried again, for another share may be there."""
    world = World(limits=replace(EXACT, park=600.0, max_parks=3))
    world.add(*(f"file:///srv/{number}" for number in range(12)), "http://b/1")
    world.crawl()
    for _ in range(2):
        seconds, asked = nightly(world, mode, {"b:80": 0.1}.get)
        assert asked["file://"] == 8
        assert seconds < 400
    seconds, asked = nightly(world, mode, lambda name: 0.1)
    assert asked["file://"] >= 12


def test_a_first_crawl_waits_for_hosts_that_do_not_answer():
    world = World()
    world.add("http://a/1", "http://b/1")
    world.crawl(latency=lambda host, random: None if host == "a:80" else 0.1)
    world.frontier.checkpoint({})
    world.clock.now += 86_400
    world.start()
    assert not world.record().on_probation
