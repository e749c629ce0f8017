"""A host whose address is not known yet has no turn, and holds no place meanwhile."""

from __future__ import annotations

import pytest

from larmspider.frontier.frontier import MAX_IN_VAIN, AddressBook, Frontier
from larmspider.frontier.storage.records import FetchRecord, UrlState
from tests.support.frontier.memory_backend import MemoryBackend
from tests.support.frontier.simulation import Clock, build


class World:
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
    world = World(places=1)
    world.add(*(f"http://dead{number}/" for number in range(60)), "http://good/")
    assert world.pops() == ["http://good/"]
    assert world.frontier.in_flight == 1
    assert not world.frontier.finished


def test_a_host_has_its_turn_when_its_address_is_known() -> None:
    world = World()
    world.add("http://late/1", "http://late:8080/1")
    assert world.pops() == []
    assert world.asked == ["late", "late"]
    world.learn("late")
    assert world.pops() == ["http://late/1", "http://late:8080/1"]


def test_hosts_of_one_address_share_nothing_unless_they_are_grouped() -> None:
    apart, together = World(), World(grouped=True)
    for world in (apart, together):
        world.add("http://good/", "http://other/")
    assert apart.pops() == ["http://good/", "http://other/"]
    assert together.pops() == ["http://good/"]


def test_whom_a_proxy_asks_needs_no_address() -> None:
    world = World()
    world.add("http://proxied/")
    assert world.pops() == ["http://proxied/"]
    assert world.asked == []


def test_while_it_is_crowded_hosts_that_never_answered_are_not_looked_up() -> None:
    """Those that have answered have their turns."""
    world = World()
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
    world = World()
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
    world = World(grouped=grouped)
    world.add(*(f"http://dead{number}/" for number in range(3 * MAX_IN_VAIN)), "http://good/")
    for round_ in (1, 2, 3):
        assert world.frontier.pop() is None
        assert len(world.asked) == round_ * MAX_IN_VAIN
        assert world.frontier.next_ready_time() == world.clock.now
    assert world.pops() == ["http://good/"]
