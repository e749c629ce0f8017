"""What an operator does to a frontier, with a clock of the test's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from larmspider.frontier.control import PURGED
from larmspider.frontier.frontier import CrawlLimits, Frontier
from larmspider.frontier.hosts import HostPace, HostRules
from larmspider.frontier.overrides import HostOverride, Overrides
from larmspider.frontier.politeness import Limits, Politeness
from larmspider.frontier.slots import SlotPool
from larmspider.frontier.state import FrontierOptions
from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.lmdb_reader import SLICE, FrontierReader
from larmspider.frontier.storage.records import FetchRecord, UrlState, url_key
from larmspider.frontier.strategies import BreadthFirst


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Callable[[], Frontier]]:
    """Opens the frontier of a directory; the one before is closed without a commit."""
    running: list[Frontier] = []

    def start() -> Frontier:
        for frontier in running:
            frontier.backend.close()
        rules = HostRules([], HostPace(delay=1.0, connections=2))
        frontier = Frontier(
            LmdbBackend(tmp_path),
            Politeness(Limits(response_factor=0.0, jitter=0.0), rules, lambda: 0.5),
            BreadthFirst(),
            SlotPool(8),
            FrontierOptions(clock=clock, hour_of=lambda now: 12.0),
        )
        frontier.recover()
        running.append(frontier)
        return frontier

    yield start
    for frontier in running:
        frontier.backend.close()


def add(frontier: Frontier, *urls: str) -> None:
    frontier.add([frontier.entry(url, url) for url in urls])


def fetch(frontier: Frontier, clock: Clock, seconds: float = 10.0) -> list[str]:
    """What is asked within so many seconds, each answered at once."""
    end, asked = clock.now + seconds, []
    while clock.now < end:
        while (lease := frontier.pop()) is not None:
            asked.append(lease.url)
            frontier.answered(lease, 0.0)
            frontier.acknowledge(lease, FetchRecord(UrlState.STORED, clock.now))
        ready = frontier.next_ready_time()
        clock.now = min(end, ready) if ready is not None else end
    return asked


def test_a_paused_crawl_hands_nothing_out(opened: Callable[[], Frontier], clock: Clock) -> None:
    """And goes on where it was; a restart ends the pause."""
    frontier = opened()
    add(frontier, "http://a/1", "http://a/2")
    frontier.control.paused = True
    assert fetch(frontier, clock) == []
    assert frontier.next_ready_time() is None
    assert not frontier.finished
    frontier.control.paused = False
    assert fetch(frontier, clock) == ["http://a/1", "http://a/2"]
    frontier.control.paused = True
    frontier.checkpoint({})
    assert not opened().control.paused


def test_a_paused_host_is_left_alone_over_a_restart(
    opened: Callable[[], Frontier], clock: Clock
) -> None:
    """Others go on; the crawl does not end before it is resumed, or purged."""
    frontier = opened()
    add(frontier, "http://a/1", "http://b/1")
    frontier.control.pause_host("a:80")
    assert fetch(frontier, clock) == ["http://b/1"]
    assert not frontier.finished
    frontier.checkpoint({})
    frontier = opened()
    assert fetch(frontier, clock) == []
    assert frontier.control.waiting_hosts == ["a:80"]
    add(frontier, "http://a/2")
    assert fetch(frontier, clock) == []
    frontier.control.resume_host("a:80")
    assert fetch(frontier, clock) == ["http://a/1", "http://a/2"]
    assert frontier.finished


def test_a_fetch_under_way_ends_as_ever_on_a_paused_host(
    opened: Callable[[], Frontier], clock: Clock
) -> None:
    """Its answer does not give the host a turn."""
    frontier = opened()
    add(frontier, "http://a/1", "http://a/2")
    lease = frontier.pop()
    assert lease is not None
    frontier.control.pause_host("a:80")
    clock.now += 5
    frontier.answered(lease, 5.0)
    frontier.acknowledge(lease, FetchRecord(UrlState.STORED, clock.now))
    assert fetch(frontier, clock) == []
    frontier.audit(deep=True)


def in_flight(frontier: Frontier) -> int:
    """How many fetches it begins at once; none of them ends."""
    begun = 0
    while frontier.pop() is not None:
        begun += 1
    return begun


def test_threads_and_connections_by_order(opened: Callable[[], Frontier], clock: Clock) -> None:
    """Of all, and of one host, at once; over a restart, or until the run ends."""
    urls = [f"http://{host}/{n}" for host in "abcdefghij" for n in range(9)]

    def begin() -> Frontier:
        frontier = opened()
        frontier.limits = CrawlLimits()
        clock.now += 100.0
        return frontier

    frontier = begin()
    add(frontier, *urls)
    frontier.checkpoint({})
    assert in_flight(frontier) == 8
    assert frontier.control.overrides == Overrides()
    frontier.control.set_threads(9)
    assert in_flight(frontier) == 1
    frontier.control.set_threads(3)
    assert in_flight(frontier) == 0
    frontier.checkpoint({})
    frontier = begin()
    assert in_flight(frontier) == 3
    frontier.control.set_threads(5, keep=False)
    assert in_flight(frontier) == 2
    frontier.checkpoint({})
    frontier = begin()
    assert in_flight(frontier) == 3, "what was kept before"
    frontier.control.set_threads(None)
    assert in_flight(frontier) == 5


def test_another_number_of_the_settings_counts_more(
    opened: Callable[[], Frontier], tmp_path: Path, clock: Clock
) -> None:
    """Of threads, in a later run, than what was ordered in place of the one before."""
    frontier = opened()
    frontier.control.set_threads(3)
    frontier.checkpoint({})
    frontier = opened()
    assert frontier.slots.total == 3
    frontier.backend.close()
    other = Frontier(
        LmdbBackend(tmp_path),
        frontier.politeness,
        BreadthFirst(),
        SlotPool(16),
        FrontierOptions(clock=clock),
    )
    other.recover()
    assert other.slots.total == 16
    assert other.control.overrides.threads is None
    other.backend.close()


def test_connections_of_a_host_by_order(opened: Callable[[], Frontier], clock: Clock) -> None:
    """Also of one that comes later; its demand for slots follows, and readers see it."""
    frontier = opened()
    frontier.politeness.rules.of("a:80")
    frontier.control.set_connections("a:80", 1)
    frontier.control.set_delay("a:80", 0.0)
    add(frontier, *(f"http://a/{n}" for n in range(9)))
    assert in_flight(frontier) == 1
    frontier.control.set_connections("a:80", 4, keep=False)
    assert in_flight(frontier) == 3
    assert frontier.politeness.pace_of("a:80").connections == 4
    frontier.checkpoint({})
    frontier = opened()
    assert frontier.hosts["a:80"].rule.connections == 1
    frontier.control.set_connections("a:80", None)
    assert frontier.hosts["a:80"].rule.connections == 2
    frontier.audit(deep=True)


def test_what_holds_for_a_run_gives_way_to_what_was_kept(opened: Callable[[], Frontier]) -> None:
    """A delay and a factor; taken back within the run there is nothing left of them."""
    frontier = opened()
    control = frontier.control
    control.set_delay("a:80", 10.0)
    control.set_delay("a:80", 2.0, keep=False)
    control.set_delay("a:80", 3.0, keep=False)
    control.slow_down(4.0, keep=False)
    control.set_delay("b:80", 1.0, keep=False)
    control.set_delay("b:80", None, keep=False)
    assert Overrides.from_json(control.overrides.as_json()) == control.overrides.copy()
    assert control.overrides.delay("a:80", 0.0) == 3.0
    frontier.checkpoint({})
    control = opened().control
    assert control.overrides.copy() == Overrides(hosts={"a:80": HostOverride(delay=10.0)})


def test_delays_by_order(opened: Callable[[], Frontier], clock: Clock) -> None:
    """A factor for all, a delay for one; both last, and are named as what sets the gap."""
    frontier = opened()
    add(frontier, *(f"http://a/{n}" for n in range(40)), *(f"http://b/{n}" for n in range(40)))
    assert len(fetch(frontier, clock, 10.0)) == 20
    frontier.control.slow_down(2.0)
    fetch(frontier, clock, 4.0)
    assert len(fetch(frontier, clock, 10.0)) == 10
    frontier.control.set_delay("a:80", 2.5)
    record = frontier.hosts["a:80"].record
    gap = frontier.politeness.gap(record)
    assert gap == (5.0, "delay set by the operator, 2 times as long, set by the operator")
    frontier.checkpoint({})
    frontier = opened()
    assert frontier.politeness.gap(frontier.hosts["a:80"].record) == gap
    frontier.control.set_delay("a:80", None)
    frontier.control.slow_down(1.0)
    assert frontier.politeness.gap(frontier.hosts["a:80"].record) == (1.0, "delay")
    frontier.control.set_delay("c:80", 3.0)
    frontier.control.pause_host("c:80")
    assert frontier.politeness.overrides.delay("c:80", 1.0) == 3.0, "it may come later"


def test_purge_refuses_all_that_waits(opened: Callable[[], Frontier], clock: Clock) -> None:
    """Those that wait for another attempt too; not what is in flight. The books balance."""
    frontier = opened()
    add(frontier, *(f"http://a/{n}" for n in range(5)), "http://b/")
    leases = [frontier.pop(), frontier.pop()]
    failed = next(lease for lease in leases if lease and lease.host.record.host == "a:80")
    frontier.failed(failed, "http-500", 0.1)
    assert frontier.backend.counts("a:80").delayed == 1
    clock.now += 100
    flying = frontier.pop()
    assert flying is not None
    assert flying.entry is not None
    assert frontier.control.purge_host("a:80", 3) == 3
    assert frontier.control.purge_host("a:80", 3) == 1
    assert frontier.control.purge_host("a:80", 3) == 0
    assert frontier.backend.counts("a:80").refused == 4
    gone = next(url for n in range(5) if (url := f"http://a/{n}") != flying.url)
    visit = frontier.backend.visit(url_key(gone))
    assert visit is not None
    assert visit.reason == PURGED
    frontier.audit(deep=True)
    add(frontier, gone)
    assert frontier.backend.counts("a:80").queued == 0


def test_retry_forgets_failures(opened: Callable[[], Frontier], clock: Clock) -> None:
    """A parked host is asked again at once, and so are its URLs that wait for another attempt."""
    frontier = opened()
    add(frontier, *(f"http://a/{n}" for n in range(3)))
    while frontier.hosts["a:80"].record.state.name != "PARKED":
        clock.now = max(clock.now, frontier.next_ready_time() or 0.0)
        lease = frontier.pop()
        assert lease is not None
        frontier.failed(lease, "timeout", 1.0)
    delayed = frontier.backend.counts("a:80").delayed
    assert delayed
    assert fetch(frontier, clock, 5.0) == []
    assert frontier.control.retry_host("a:80") == delayed
    left = frontier.backend.counts("a:80").queued
    assert len(fetch(frontier, clock, 10.0)) == left
    assert frontier.hosts["a:80"].record.state.name == "READY"


def test_refuse_takes_queued_ones_only(opened: Callable[[], Frontier], clock: Clock) -> None:
    """What is in flight or done stays what it is, though the list that names it is older."""
    frontier = opened()
    add(frontier, "http://a/1", "http://a/2", "http://a/3")
    frontier.checkpoint({})
    with FrontierReader(frontier.backend.files.path) as reader:  # type: ignore[attr-defined]
        entries, more = reader.waiting()
    assert (len(entries), more) == (3, None)
    assert frontier.pop() is not None
    assert frontier.control.refuse(entries, "out of scope") == 2
    assert frontier.backend.counts().leased == 1
    frontier.audit(deep=True)


def test_all_that_waits_is_read_in_slices(opened: Callable[[], Frontier]) -> None:
    """Each once, none left out."""
    frontier = opened()
    urls = {f"http://h{n % 7}/{n}" for n in range(2 * SLICE + 10)}
    add(frontier, *urls)
    frontier.checkpoint({})
    found: list[str] = []
    after: bytes | None = b""
    with FrontierReader(frontier.backend.files.path) as reader:  # type: ignore[attr-defined]
        while after is not None:
            entries, after = reader.waiting(after)
            found += [entry.url for entry in entries]
    assert len(found) == len(urls)
    assert set(found) == urls


def test_orders_from_elsewhere_are_taken_up(opened: Callable[[], Frontier]) -> None:
    """In place of those from before, but not of what was ordered meanwhile; and they are kept."""
    frontier = opened()
    add(frontier, "http://a/", "http://b/", "http://c/")
    control = frontier.control
    control.pause_host("a:80")
    since = control.orders
    control.pause_host("c:80")
    control.slow_down(4.0)
    hosts = {"a:80": HostOverride(), "b:80": HostOverride(paused=True), "c:80": HostOverride()}
    control.merge(Overrides(2.0, hosts), since)
    assert [frontier.hosts[name].paused for name in ("a:80", "b:80", "c:80")] == [False, True, True]
    assert control.overrides.factor == 4.0
    frontier.checkpoint({})
    kept = opened().control.overrides
    assert kept == Overrides(4.0, {n: HostOverride(paused=True) for n in ("b:80", "c:80")})


def test_an_order_that_is_taken_back_while_others_are_read_stays_taken_back(
    opened: Callable[[], Frontier],
) -> None:
    """Redis was read between the two, and has the first of them."""
    frontier = opened()
    add(frontier, "http://a/")
    control = frontier.control
    since = control.orders
    control.pause_host("a:80")
    control.slow_down(4.0)
    read = Overrides(4.0, {"a:80": HostOverride(paused=True)})
    control.resume_host("a:80")
    control.slow_down(1.0)
    control.merge(read, since)
    assert not frontier.hosts["a:80"].paused
    assert control.overrides.copy() == Overrides()
