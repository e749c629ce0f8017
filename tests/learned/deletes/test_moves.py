"""A host that moves as a whole, and undecided pages: which pages leave, and the notices.

No network, and a clock that is set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from larmspider.frontier.frontier import Frontier
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.items import Kept, Removed
from larmspider.learned.deletes.moves import (
    HostMove,
    Successor,
    moved_to,
)
from larmspider.learned.deletes.notes import (
    DELETES,
    LOGIN,
    MOVED,
    SCOPE,
    UNDECIDED,
    HostDeletes,
    Waiting,
    note_of,
)
from larmspider.learned.deletes.table import AT_LEAST, Observation
from larmspider.learned.revisits import budget
from tests.middlewares.test_revisits import HOST, World, page
from tests.support.frontier.memory_backend import MemoryBackend

NEW = "http://new/"


class Moving(World):
    """The pages of h, which are on another host, too."""

    def __init__(self, pages: int = 8, to: str = NEW, *, copied: bool = True) -> None:
        super().__init__(pages)
        self.names, self.to = ["", *(f"p{number}" for number in range(pages))], to
        if copied:
            frontier = self.begin("")
            urls = [f"{to}{name}" for name in self.names]
            frontier.add([frontier.entry(url, url, depth=len(url) > len(to)) for url in urls])
            for url in urls:
                self.site[url] = there(url)
            self.work(frontier)

    def move(self) -> None:
        for name in self.names:
            self.site[name] = page(name, status=301, to=f"{self.to}{name}")

    def run(self, day: float) -> list[Any]:
        stored = super().run(day)
        self.said = [notice.message for notice in self.notices if notice.what == MOVED]
        return stored

    def left(self, day: float) -> set[str]:
        return {one.url for one in self.run(day) if isinstance(one, Removed)}

    def note(self, name: str) -> bytes | None:
        return MemoryBackend(self.disk).note(name)


def there(url: str, text: str = "", **fields: Any) -> Any:
    """A page of another host."""
    found = page(url, text or f"What is at {url[-2:]}, on the new host.", **fields)
    return replace(found, url=url, normalized=url, exact=url)


@pytest.mark.parametrize(
    "to", [NEW, "https://h/", "http://www.h/", "http://h:8080/", "http://new/old/wiki/"]
)
def test_pages_of_a_host_that_has_moved_leave_after_two_confirmations(to: str) -> None:
    world = Moving(pages=AT_LEAST + 10, to=to)
    world.move()
    assert world.left(1) == set()
    gone = world.left(2.1)
    assert gone >= {f"http://h/{name}" for name in world.names}, "the brake does not count them"
    shown = to.rstrip("/").removesuffix("/old/wiki")
    shown = "h:8080" if "8080" in to else shown  # the scheme of the port is not known
    assert world.said == [f"http://h moved to {shown}: {len(world.names) + 1} pages."]
    found = HostDeletes.unpack(world.note(note_of(HOST))).move
    assert found is not None
    assert found.left == len(world.names)
    assert world.left(3.2) == set()
    assert world.said == []


def test_a_host_that_became_two_hosts_has_moved_to_both() -> None:
    world, other = Moving(), "http://other/"
    world.move()
    frontier = world.begin("")
    half = [name for name in world.names if name[-1:] in {"1", "3", "5", "7"}]
    for url in (f"{other}{name}" for name in half):
        frontier.add([frontier.entry(url, url, depth=1)])
        world.site[url] = there(url)
        world.site[url.removeprefix(other)] = page(url.removeprefix(other), status=301, to=url)
    world.work(frontier)
    world.run(1)
    assert world.left(2.1) == {f"http://h/{name}" for name in world.names}
    found = HostDeletes.unpack(world.note(note_of(HOST))).move
    assert found is not None
    assert {*found.hosts} == {"new:80", "other:80"}
    assert found.left == len(world.names)
    assert world.said[0].startswith("http://h moved to http://new and http://other: ")


def test_the_redirect_of_a_seed_does_not_call_a_host_back_that_has_moved() -> None:
    """Each run fetches the seed again, as its page has left; it still redirects."""
    world = Moving()
    world.move()
    for day in (1, 2.1, 3.2):
        world.run(day)
    frontier = world.begin()
    frontier.add([frontier.entry("http://h/", "http://h/", depth=0)])
    world.work(frontier)
    for day in (4.3, 5.4):
        world.run(day)
    found = HostDeletes.unpack(world.note(note_of(HOST))).move
    assert found is not None
    assert found.to == "new:80"


def test_pages_that_the_new_host_has_no_more_leave_after_the_others() -> None:
    """Their redirects lead to missing pages. They stay while the new host is not well."""
    for is_well in (True, False):
        world = Moving()
        world.move()
        world.run(1)
        world.site[f"{NEW}p1"] = there(f"{NEW}p1", status=404)
        for day in range(4):
            world.run(2.1 + 1.1 * day)
        assert world.state("p2") is UrlState.UNKNOWN
        if not is_well:
            silent = [f"{NEW}{name}" for name in world.names if name != "p1"]
            world.site |= dict.fromkeys(silent, Observation.FAILED)
        for day in range(5):
            world.run(10 + 1.1 * day)
            frontier = world.begin("")  # the redirect is followed
            frontier.add([frontier.entry(f"{NEW}p1", f"{NEW}p1", depth=1)])
            world.work(frontier)
        assert (world.state("p1") is UrlState.STORED) != is_well


def test_a_page_that_redirects_to_itself_has_not_moved() -> None:
    world = Moving()
    world.site |= {name: page(name, status=302, to=name) for name in world.names}
    for day in (1, 2.1, 3.2):
        assert world.left(day) == set()
    kinds = {one.kind for one in world.stored if isinstance(one, Kept)}
    assert kinds == {"http-302", "same"}  # the page of a login


THIRD = "http://third/"


@pytest.mark.parametrize("again", [2.1, 3.2])
def test_a_host_that_is_renamed_twice_leaves_for_the_last_name(again: float) -> None:
    """Its pages redirect to pages that have moved themselves."""
    world = Moving()
    world.move()
    gone = world.left(1)
    urls = [f"{THIRD}{name}" for name in world.names]
    for name in world.names:
        world.site[f"{THIRD}{name}"] = there(f"{THIRD}{name}")
        world.site[f"{NEW}{name}"] = there(f"{NEW}{name}", status=301, to=f"{THIRD}{name}")
    frontier = world.begin("")
    frontier.add([frontier.entry(url, url, depth=len(url) > len(THIRD)) for url in urls])
    world.work(frontier)
    told = list[str]()
    for day in range(5):
        gone |= world.left(again + 1.1 * day)
        told += world.said
    assert gone >= {f"{host}{name}" for name in world.names for host in ("http://h/", NEW)}
    found = MemoryBackend(world.disk).check([url_key(url) for url in urls])
    assert {*found} == {UrlState.STORED}
    assert sum("http://h moved to http://third" in one for one in told) == 1


def test_pages_that_the_last_name_does_not_have_leave_by_their_chain_of_redirects() -> None:
    world = Moving()
    world.move()
    world.run(1)
    for name in world.names:
        world.site[f"{THIRD}{name}"] = there(f"{THIRD}{name}")
        world.site[f"{NEW}{name}"] = there(f"{NEW}{name}", status=301, to=f"{THIRD}{name}")
    world.site[f"{THIRD}p1"] = there(f"{THIRD}p1", status=404)
    gone = set[str]()
    for day in range(7):
        frontier = world.begin("")  # redirects are followed
        for name in world.names:
            urls = [f"{THIRD}{name}", *([f"{NEW}p1"] if day > 3 else [])]
            frontier.add([frontier.entry(url, url, depth=1) for url in urls])
        world.work(frontier)
        gone |= world.left(2.1 + 1.1 * day)
    assert "http://h/p1" in gone


def test_a_host_moves_after_its_most_linked_pages_have_gone() -> None:
    world = Moving(pages=12)
    none = ("p0", "p1", "p2")
    world.links = {f"http://h/{name}": 9 for name in (*none, "p3", "p4")}
    world.move()
    world.site |= {f"{NEW}{name}": there(f"{NEW}{name}", status=404) for name in none}
    frontier = world.begin("")
    frontier.backend.forget([url_key(f"{NEW}{name}") for name in none])
    frontier.checkpoint({})
    gone = set[str]()
    for day in range(6):
        frontier = world.begin("")  # redirects are followed
        frontier.add([frontier.entry(f"{NEW}{name}", f"{NEW}{name}", depth=1) for name in none])
        world.work(frontier)
        gone |= world.left(1 + 1.1 * day)
    assert gone >= {f"http://h/{name}" for name in world.names}


def test_a_page_of_a_host_that_has_moved_leaves_once_its_own_new_url_is_found() -> None:
    """Meanwhile most of the other old pages have none."""
    world, late, none = Moving(), ("p3", "p4", "p5"), ("p0", "p1", "p2")
    world.move()
    world.links = {f"http://h/{name}": 9 for name in (*late, "p6", "p7")}
    world.run(1)
    world.site |= {f"{NEW}{name}": there(f"{NEW}{name}", status=404) for name in none}
    world.site |= dict.fromkeys([f"{NEW}{name}" for name in late], Observation.FAILED)
    gone = world.left(2.1)
    assert "http://h/p6" in gone
    assert "http://h/p3" not in gone
    world.links = {f"http://h/{name}": 9 for name in none}
    for name in late:
        world.site[f"{NEW}{name}"] = there(f"{NEW}{name}")
    for day in (3.2, 4.3):
        gone |= world.left(day)
    assert gone >= {f"http://h/{name}" for name in late}


def test_a_removal_names_the_new_url() -> None:
    world = Moving()
    world.move()
    world.run(1)
    reasons = {one.url: one.reason for one in world.run(2.1) if isinstance(one, Removed)}
    assert reasons["http://h/p1"] == "moved 2 times over 1.1 days, to http://new/p1"


def test_pages_that_the_new_host_does_not_have_stay() -> None:
    world = Moving()
    world.move()
    world.site["http://new/p1"] = there("http://new/p1", status=404)
    world.run(1)
    gone = world.left(2.1)
    assert "http://h/p1" not in gone
    assert "http://h/p2" in gone


def test_a_host_whose_new_name_was_not_crawled_stays_and_somebody_is_told() -> None:
    """Out of scope, for one."""
    world = Moving(copied=False)
    world.move()
    for day in (1, 2.1, 5, 8.2, 9.3):
        assert world.left(day) == set()
    told = [notice.message for notice in world.notices if notice.what == UNDECIDED]
    assert any("is not stored" in message for message in told), told
    waiting = HostDeletes.unpack(world.note(note_of(HOST))).undecided
    assert {one.url for one in waiting.values()} >= {f"http://h/{name}" for name in world.names[1:]}
    assert all(one.is_listed(world.clock.now) for one in waiting.values())


def test_a_page_that_stays_says_why_its_new_url_does_not_take_its_place() -> None:
    """The new URL is out of scope, or it is not for this crawl."""
    world = Moving(copied=False)
    world.site["p1"], world.site["p2"] = (
        page(name, status=301, to=f"{NEW}{name}") for name in ("p1", "p2")
    )
    world.site["p1"].links[0].rejected_by = "scope"
    world.site[f"{NEW}p2"] = there(f"{NEW}p2", status=401)
    frontier = world.begin("")
    frontier.add([frontier.entry(f"{NEW}p2", f"{NEW}p2", depth=1)])
    world.work(frontier)
    world.run(1)
    whys = {one.message.partition("; ")[2] for one in world.run(2.1) if isinstance(one, Kept)}
    assert f"{NEW}p1 is not stored: it is out of scope" in whys
    assert f"{NEW}p2 is not stored: it answers 401" in whys


def test_a_new_host_that_answers_every_path_alike_has_no_such_pages() -> None:
    world = Moving()
    for name in world.names:
        world.site[f"{NEW}{name}"] = there(
            f"{NEW}{name}", "<p>Welcome to our new portal, all of you"
        )
    frontier = world.begin()  # the stored texts become one
    world.work(frontier)
    world.run(0.5)
    world.move()
    assert world.left(1) | world.left(2.1) | world.left(4) == set()


@pytest.mark.parametrize("start", ["http://h/wiki/", "http://h/wiki/start"])
def test_a_folder_that_moves_to_the_root_of_another_host_has_moved(start: str) -> None:
    """``/wiki/x`` is ``/x`` there. The start page of a new host is no page for what is gone."""
    world = Moving(to=NEW)
    frontier = world.begin("")
    backend = frontier.backend
    backend.forget([url_key(f"http://h/{name}") for name in ("", "login", *world.names)])
    old = [start, *(f"http://h/wiki/{name}" for name in world.names[1:])]
    frontier.add([frontier.entry(url, url, depth=url != start) for url in old])
    world.work(frontier)
    for url, name in zip(old, world.names, strict=True):
        path = url.removeprefix("http://h/")
        world.site[path] = page(path, status=301, to=f"{NEW}{name}")
    assert world.left(1) == set()
    assert world.left(2.1) == {*old}
    assert world.said == ["http://h moved to http://new: 9 pages."]


def test_the_pages_with_most_links_may_have_other_urls() -> None:
    """A new site has other paths; or a folder of it has another host. Nothing is broken."""
    for to in ("http://h/new/", NEW):
        world = Moving(to=to)
        world.links = {f"http://h/{name}": 9 for name in world.names}
        moved = world.names[1:]
        for name in moved:
            world.site[name] = page(name, status=301, to=f"{to}{name}")
        assert world.left(1) == set()
        assert world.left(2.1) == {f"http://h/{name}" for name in moved}
        assert world.said == []


def test_a_host_without_a_root_page_is_well_though_the_page_nearest_to_the_seeds_has_gone() -> None:
    """The host was found by a link to any of its pages."""
    for root in (False, True):
        world = Moving(pages=8, copied=False)
        frontier = world.begin("")
        url = "http://deep/" if root else "http://deep/x"
        urls = [url, *(f"http://deep/p{number}" for number in range(8))]
        frontier.add([frontier.entry(one, one, depth=one != url) for one in urls])
        world.site |= {one: there(one) for one in urls}
        world.work(frontier)
        world.site[url] = there(url, status=404)
        gone = set().union(*map(world.left, (1, 2.1, 3.2, 4.3)))
        assert gone == (set() if root else {url})


def test_pages_that_lead_to_one_page_are_no_pages_with_other_urls() -> None:
    world = Moving(pages=3, to="http://h/new/")
    world.links = {f"http://h/{name}": 9 for name in world.names}
    for name in world.names[1:]:
        world.site[name] = page(name, status=302, to="http://h/new/p1")
    assert {day for day in (1, 2.1, 3.2, 4.3) if world.left(day)} == set()


def test_some_pages_that_move_do_not_make_a_host_that_moves() -> None:
    world = Moving()
    for name in ("p1", "p2"):
        world.site[name] = page(name, status=301, to=f"{NEW}{name}")
    world.run(1)
    assert world.left(2.1) == {"http://h/p1", "http://h/p2"}
    assert world.said == []


def test_hosts_that_redirect_to_each_other_keep_their_pages() -> None:
    world = Moving()
    world.move()
    for name in world.names:
        world.site[f"{NEW}{name}"] = there(f"{NEW}{name}", status=301, to=f"http://h/{name}")
    gone = world.left(1) | world.left(2.1) | world.left(3.2) | world.left(9)
    kept = [
        name for name in world.names if f"http://h/{name}" not in gone or f"{NEW}{name}" not in gone
    ]
    assert kept == world.names, "one of both stays"
    reasons = [one.message for one in world.stored if isinstance(one, Kept)]
    assert any("is moved itself" in reason for reason in reasons), reasons


TARGETS = {
    "it is there": there(f"{NEW}p1"),
    "it redirects back": there(f"{NEW}p1", status=301, to="http://h/p1"),
    "it does not answer": Observation.FAILED,
    "it wants a password": there(f"{NEW}p1", status=403),
}


@pytest.mark.parametrize("target", TARGETS)
def test_the_target_of_a_redirect_is_found_before_the_page_leaves(target: str) -> None:
    """Where a run visits only what is due, the target's last visit may be older than its own
    redirect back; and a visit that does not find it says nothing."""
    world = Moving()
    world.site["p1"] = page("p1", status=301, to=f"{NEW}p1")
    world.site[f"{NEW}p1"] = TARGETS[target]
    gone = set()
    for day in (10, 11.1, 12.2):
        world.asked, world.stored = [], []
        world.clock.now = 1.8e9 + day * 86_400
        frontier = world.begin("due")
        if day == 10:
            frontier.backend.schedule([(url_key("http://h/p1"), 2.0)])
        world.work(frontier)
        if day == 10:
            assert world.asked[0] == "p1"
            assert f"{NEW}p1" in world.asked
        gone |= {one.url for one in world.stored if isinstance(one, Removed)}
    assert gone == ({"http://h/p1"} if target == "it is there" else set())


def test_the_target_of_a_redirect_is_visited_though_no_confirmation_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(budget, "CONFIRMATIONS", 0)
    monkeypatch.setattr(budget, "LEAST_CONFIRMATIONS", 0)
    world = Moving()
    world.site["p1"] = page("p1", status=301, to=f"{NEW}p1")
    world.clock.now, world.asked = 1.8e9 + 10 * 86_400, []
    frontier = world.begin("due")
    frontier.backend.schedule([(url_key("http://h/p1"), 2.0)])
    world.work(frontier)
    assert world.asked[0] == "p1"
    assert f"{NEW}p1" in world.asked


def test_a_redirect_to_a_page_that_the_operator_took_out_does_not_bring_it_back() -> None:
    world = Moving()
    frontier = world.begin("due")
    key = url_key(f"{NEW}p1")
    frontier.backend.forget([key])
    entry = frontier.entry(f"{NEW}p1", f"{NEW}p1", depth=1)
    frontier.backend.refuse([(entry, "removed")])
    frontier.backend.schedule([(url_key("http://h/p1"), 2.0)])
    world.site["p1"] = page("p1", status=301, to=f"{NEW}p1")
    world.clock.now += 10 * 86_400
    world.asked = []
    world.work(frontier)
    assert world.asked[0] == "p1"
    assert f"{NEW}p1" not in world.asked


def test_a_host_that_moves_and_moves_back_loses_nothing() -> None:
    world = Moving()
    world.move()
    world.run(1)
    for name in world.names:
        del world.site[name]
        world.site[f"{NEW}{name}"] = there(f"{NEW}{name}", status=301, to=f"http://h/{name}")
    assert world.left(2.1) == set(), "the count of the old host starts again"
    gone = world.left(3.2)
    assert gone == {f"{NEW}{name}" for name in world.names}
    assert world.state("p1") is UrlState.STORED
    assert world.said == ["http://new moved to http://h: 9 pages."]


def test_a_clock_that_goes_back_and_forth_confirms_no_move() -> None:
    world = Moving()
    world.move()
    assert world.left(400) | world.left(1) | world.left(400.01) == set()


@pytest.mark.parametrize("days, at", [([1.01, 2.02, 3.03, 4.04], 3.03), ([7, 14, 21, 28], 21)])
def test_a_redirect_to_a_page_that_is_missing_counts_as_missing(
    days: list[float], at: float
) -> None:
    """Also if runs are a week apart, and the target is visited after the page."""
    world = World()
    frontier = world.begin("")
    world.site["there"] = page("there", status=404)
    frontier.add([frontier.entry("http://h/there", "http://h/there", depth=5)])
    world.work(frontier)
    world.site["p1"] = page("p1", status=301, to="there")
    assert world.leaves_on("p1", days) == at


def test_the_other_pages_of_a_host_that_moves_are_due_at_once() -> None:
    world = Moving(pages=30)
    world.move()
    world.run(1)
    frontier = world.begin("due")
    backend = frontier.backend
    world.clock.now += 86_400 * 1.1
    gate = frontier.gate
    canaries = gate.canaries.find(HOST)
    for key in canaries:
        gate.saw(HOST, key, Observation.MOVED, Successor("new:80", key))
    backend.schedule([(url_key("http://h/p29"), 1.9e9)])
    gate.canaries.ask(HOST, canaries[0], world.clock.now, is_well=False)
    visit = backend.visit(url_key("http://h/p29"))
    assert visit is not None
    assert visit.due == 2.0


# undecided pages


def listed(world: World) -> dict[bytes, Waiting]:
    return HostDeletes.unpack(MemoryBackend(world.disk).note(note_of(HOST))).undecided


def undecided(world: World) -> dict[str, str]:
    """The reasons why the listed pages stay."""
    found = (one for one in listed(world).values() if one.is_listed(world.clock.now))
    return {one.url: one.why or one.reason for one in found}


CONDITIONS = {
    "maintenance": (page("p1", status=503), "failed"),
    "403": (page("p1", status=403), "locked"),
    "login": (
        page("p1", "<h1>Who?</h1><p>Say it here<form><input type=password name=p></form>"),
        "login",
    ),
    "empty": (replace(page("p1"), body=b" ", text=""), "empty"),
    "no answer": (Observation.FAILED, "failed"),
    "a redirect to nothing that is stored": (page("p1", status=301, to="x"), "is not stored"),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_page_that_stays_undecided_for_more_than_seven_days_is_listed(name: str) -> None:
    world = World()
    world.site["p1"], said = CONDITIONS[name]
    for day in (1, 2.1, 7.9):
        world.run(day)
        assert undecided(world) == {}
        assert world.notices == []
    world.run(8.3)
    assert said in undecided(world)["http://h/p1"]
    assert {notice.what for notice in world.notices} == {UNDECIDED}
    del world.site["p1"]
    world.run(9)
    assert undecided(world) == {}, "it is back"


def test_pages_that_canaries_keep_are_listed_with_the_reason() -> None:
    """As ``Disallow: /`` does, for months."""
    world = World()
    for name in ("", "login", *(f"p{number}" for number in range(8))):
        world.site[name] = Observation.ROBOTS
    for day in (1, 3, 5, 9):
        world.run(day)
    found = undecided(world)
    assert len(found) == 10
    assert all(why.startswith("only 0 of 6 pages are there") for why in found.values()), found


def approve(world: World, frontier: Frontier) -> None:
    pages = listed(world)
    frontier.gate.approve(HOST, {key: one.since for key, one in pages.items()})


def test_an_approved_page_leaves_if_it_is_as_it_was_listed() -> None:
    world = World()
    world.site |= {"p1": page("p1", status=403), "p2": page("p2", status=403)}
    world.site["p3"] = page("p3", status=403)
    for day in (1, 9):
        world.run(day)
    world.site["p2"] = page("p2", status=503)
    del world.site["p3"]
    world.clock.now, world.stored = 1.8e9 + 10 * 86_400, []
    frontier = world.begin()
    approve(world, frontier)
    world.work(frontier)
    assert [one.url for one in world.stored if isinstance(one, Removed)] == ["http://h/p1"]
    assert world.state("p2") is UrlState.STORED
    assert world.state("p3") is UrlState.STORED


def test_an_approval_of_a_page_that_came_back_and_went_again_is_void() -> None:
    world = World()
    world.site["p1"] = page("p1", status=403)
    world.run(1)
    frontier = world.begin("")
    old = {key: one.since for key, one in listed(world).items()}
    del world.site["p1"]
    world.run(2)
    world.site["p1"] = page("p1", status=403)
    world.run(3)
    frontier = world.begin("")
    assert frontier.gate.undecided.still_waiting(HOST, old) == {}


@pytest.mark.parametrize("at_once", [True, False])
def test_an_approval_of_what_the_brake_held_is_void_for_pages_that_are_locked_by_now(
    at_once: bool,
) -> None:
    """In the next runs, too, and if a visit saw the 403 before the approval."""
    world = World(pages=AT_LEAST + 20)
    names = [f"p{number}" for number in range(10, AT_LEAST + 20)]
    world.site |= {name: page(name, status=404) for name in names}
    for day in (1, 2.1, 3.2):
        world.run(day)
    shown = {key: one.since for key, one in _waiting(world).items()}
    assert len(shown) == 10
    world.site |= {name: page(name, status=403) for name in names}
    if not at_once:
        world.run(4.3)
    for day in (5.4, 6.5):
        world.clock.now, world.stored = 1.8e9 + day * 86_400, []
        frontier = world.begin()
        frontier.gate.approve(HOST, shown)  # the file with the approval is read by each run
        world.work(frontier)
        assert [one.url for one in world.stored if isinstance(one, Removed)] == []
    assert _waiting(world) == {}


def _waiting(world: World) -> dict[bytes, Waiting]:
    return HostDeletes.unpack(MemoryBackend(world.disk).note(note_of(HOST))).waiting


# without a frontier


def _one(host: str, text: int) -> Successor:
    return Successor(host, bytes([text]))


@pytest.mark.parametrize(
    "canaries, host",
    [
        ([], ""),
        ([_one("b", 1)], "b"),
        ([None, _one("b", 1), _one("b", 2)], ""),  # the start page is where it was
        ([_one("b", 1), _one("b", 2), None, None], ""),
        ([_one("b", 1), _one("b", 2), _one("c", 3)], "b"),
        ([_one("b", 1), _one("c", 2), _one("d", 3)], "b c d"),
        ([_one("b", 1), _one("c", 2), None, None], ""),
        ([_one("b", 1), _one("c", 1), _one("d", 1)], ""),
        ([_one("b", 1)] * 6, ""),  # one text
        ([*map(_one, "bbb", (1, 2, 3)), *[Successor("b", b"")] * 3], "b"),  # three are missing
        ([*map(_one, "bb", (1, 2)), *[Successor("b", b"")] * 4], ""),
        ([*map(_one, "bbb", (1, 2, 3)), *[Successor("c", b"")] * 3], ""),
    ],
)
def test_a_host_has_moved_by_its_start_page_and_most_canaries(
    canaries: list[Successor | None], host: str
) -> None:
    assert " ".join(moved_to(canaries)) == host


def test_a_move_is_kept_in_a_note() -> None:
    move = HostMove("wiki:80", "wiki:443", 1.8e9, 30, 2)
    assert HostDeletes.unpack(HostDeletes(move=move).pack()).move == move
    assert HostDeletes.unpack(None).move is None
    assert move.in_words() == "http://wiki moved to https://wiki: 30 pages"


def test_pages_whose_new_url_another_worker_has_stay_and_the_list_says_so() -> None:
    """Until this worker has the new host, too."""
    world = Moving()
    world.move()
    begin = world.begin

    def split(mode: str = "all") -> Frontier:
        frontier = begin(mode)
        frontier.is_own = lambda key: key not in theirs  # type: ignore[method-assign]
        return frontier

    theirs = {url_key(f"{NEW}{name}") for name in world.names}
    world.begin = split  # type: ignore[method-assign]
    for day in (1, 2.1, 5, 9.3):
        assert world.left(day) == set()
        assert world.said == []
    why = undecided(world)["http://h/p1"]
    assert why == "http://new/p1 belongs to another worker, which alone knows whether it is stored"
    theirs = set()
    assert world.left(10.5) == {f"http://h/{name}" for name in world.names}


# notices


def _of_all(answer: Any) -> dict[str, Any]:
    names = ["", "login", *(f"p{number}" for number in range(8))]
    return {name: answer(name) if callable(answer) else answer for name in names}


FORM = "<h1>Who?</h1><p>Say your name here<form><input type=password name=p></form>"
LASTING: dict[str, tuple[dict[str, Any], str]] = {
    "a login form": (_of_all(lambda name: page(name, FORM)), LOGIN),
    "redirects to a login": (
        _of_all(lambda name: page(name, status=302, to=f"http://sso/login?next=/{name}")),
        LOGIN,
    ),
    "Disallow: /": (_of_all(Observation.ROBOTS), UNDECIDED),
    "403": (_of_all(lambda name: page(name, status=403)), UNDECIDED),
    "no answer": (_of_all(Observation.FAILED), UNDECIDED),
    "out of scope": ({"p1": Observation.SCOPE, "p2": Observation.SCOPE}, SCOPE),
}


def told_in(
    world: World,
    days: Sequence[float],
    known: set[str],
    *,
    run: Callable[[float], Any] | None = None,
) -> list[str]:
    """The notices of nightly runs, each once, as extensions/notify.py sends them."""
    found: list[str] = []
    for day in days:
        (run or world.run)(day)
        gate = world.frontier.gate
        new = {one.name for one in world.notices} - known
        found += sorted(new)
        known |= new
        known -= {name for name in known if gate.is_over(*name.split())}
    return found


@pytest.mark.parametrize("name", LASTING)
def test_a_lasting_condition_is_told_once_and_again_when_it_came_back(name: str) -> None:
    world = World()
    site, what = LASTING[name]
    known = set[str]()
    for begin in (1, 101):
        world.site |= site
        ill = [begin + 1.01 * night for night in range(10)]
        told = [one for one in told_in(world, ill, known) if one.startswith(what)]
        name = f"{what} {SCOPE if what == SCOPE else HOST}"
        assert [one[: len(name)] for one in told] == [name], [told, begin]
        for one in site:
            del world.site[one]
        world.site["login"] = page("login", FORM)
        assert told_in(world, [begin + 50, begin + 51], known) == []


@pytest.mark.parametrize("name", sorted(LASTING.keys() - {"out of scope"}))
def test_a_condition_is_told_in_time_where_few_pages_are_visited_a_night(name: str) -> None:
    """A page a night: none is visited twice within three weeks."""
    world = World(pages=22)
    site, what = LASTING[name]
    world.site |= {f"p{number}": answer for number in range(22) for answer in [site["p1"]]} | site

    def night(day: float) -> None:
        world.clock.now = 1.8e9 + day * 86_400
        world.frontier = world.begin("due")
        world.work(world.frontier)
        world.notices = world.frontier.gate.notes.notices

    told = told_in(world, [1 + 1.01 * number for number in range(10)], set(), run=night)
    assert [one for one in told if one.startswith(what)], told


def test_a_second_condition_of_a_host_is_told_while_the_first_one_lasts() -> None:
    world, known = World(), set[str]()
    world.site["p1"] = page("p1", status=403)
    told = told_in(world, [1 + 1.01 * night for night in range(12)], known)
    assert told == [f"{UNDECIDED} {HOST} locked"]
    world.site |= LASTING["Disallow: /"][0] | {"p1": page("p1", status=403)}
    told = told_in(world, [20 + 1.01 * night for night in range(12)], known)
    assert told == [f"{UNDECIDED} {HOST} robots"]


def test_a_brake_is_told_once_and_again_when_it_came_back() -> None:
    world, known = World(pages=60), set[str]()
    for begin, numbers in ((1, range(10, 34)), (101, range(34, 60))):
        gone = {f"p{number}": page(f"p{number}", status=410) for number in numbers}
        world.site |= gone
        told = told_in(world, [begin + 1.01 * night for night in range(3)], known)
        assert told == [f"{DELETES} {HOST}"]
        told = told_in(world, [begin + 7 + 1.01 * night for night in range(3)], known)
        assert told == [], "the rest leaves after a week"


def test_a_move_is_told_once_and_again_when_it_came_back() -> None:
    world, known = Moving(), set[str]()
    for begin in (1, 101):
        world.move()
        told = told_in(world, [begin + 1.01 * night for night in range(10)], known)
        assert [one for one in told if one.startswith(MOVED)] == [f"{MOVED} {HOST}"], begin
        for one in world.names:
            del world.site[one]
        frontier = world.begin()
        urls = [f"http://h/{one}" for one in world.names]
        frontier.add([frontier.entry(url, url, depth=len(url) > 9) for url in urls])
        world.work(frontier)
        assert told_in(world, [begin + 50, begin + 51], known) == []
