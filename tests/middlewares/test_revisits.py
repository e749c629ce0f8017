"""The table of deletes, row by row: what a site answers day by day, and when a page leaves.

No network, and a clock that is set.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import HtmlResponse
from scrapy.settings import Settings

from larmspider import options, stats
from larmspider.extraction.pages.html import extract
from larmspider.extraction.texts.fingerprint import fingerprint, link_signature, signature
from larmspider.frontier.ending import LookAgain, Revisited
from larmspider.frontier.hosts import Lease
from larmspider.frontier.own_fetch import FetchKind
from larmspider.frontier.storage.records import UrlState, url_key
from larmspider.items import REDIRECT, Kept, Link, Page, Removed
from larmspider.learned.deletes.notes import SITEMAP, UNDECIDED
from larmspider.learned.deletes.table import AT_LEAST, Observation
from larmspider.learned.learning import Learning, LearningFrontier
from larmspider.learned.revisits.budget import LEAST_CONFIRMATIONS
from larmspider.learned.revisits.plan import CONFIRM
from larmspider.learned.revisits.revisiting import RevisitOptions
from larmspider.middlewares.acknowledge import visit_of_page
from larmspider.middlewares.revisits import RevisitsMiddleware, _Judge
from larmspider.scheduler.counters import end_of_refresh
from larmspider.urls.normalizer import UrlForms
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import Clock, build

DAY = 86_400.0
HOST = "h:80"
FORM = "<h1>Who are you?</h1><p>Say your name here<form><input type=password name=p></form>"
Answer = Page | Observation


def page(path: str, text: str = "", status: int = 200, to: str = "", robots: str = "") -> Page:
    url = f"http://h/{path}"
    markup = text if "<" in text else f"<p>What page {path} has to say. {text}"
    found = extract(f"<meta name=robots content='{robots}'>{markup}".encode(), url, None)
    found.url = found.normalized = found.exact = url
    found.body = markup.encode() if status < 300 else b""
    found.status, found.fetched = status, 1.8e9
    if to:
        target = f"http://h/{to}" if "//" not in to else to
        found.links = [Link(target, target, REDIRECT, exact=target)]
    return found


class World:
    """A start page and others, p0 to p7, which all stay as they are except those in ``site``."""

    def __init__(
        self, pages: int = 8, robots: bool = False, site: Mapping[str, Answer] | None = None
    ) -> None:
        self.disk, self.clock, self.robots = Disk(), Clock(1.8e9), robots
        self.site: dict[str, Answer | Callable[[str], Answer]] = dict(site or {})
        self.made_up: Callable[[], Page] | None = None
        """Gives the answer to made-up URLs; None: 404."""
        self.links: dict[str, int] = {}
        self.stored: list[Any] = []
        self.asked: list[str] = []
        self.for_all = True
        self.random = random.Random(1).random
        self.bodies: dict[str, Page] = {}
        """The versions that are stored."""
        self.day = 0
        settings = Settings()
        settings.setmodule("larmspider.settings")
        self.forms = UrlForms.from_settings(settings)
        frontier = self.begin("")
        names = ["", "login", *(f"p{number}" for number in range(pages))]
        urls = [f"http://h/{name}" for name in names]
        frontier.add([frontier.entry(url, url, depth=len(url) > 9) for url in urls])
        self.site["login"] = page("login", FORM)
        self.work(frontier)

    def begin(self, mode: str = "all", *, sources: bool = False) -> LearningFrontier:
        learning = Learning(
            self.forms,
            revisits=RevisitOptions(mode, random=self.random),
            asks_sources=sources,
            links_to=lambda urls: [self.links.get(url, 0) for url in urls],
        )
        backend = MemoryBackend(self.disk)
        return build(backend, self.clock, robots=self.robots, learning=learning)

    def run(self, day: float) -> list[Any]:
        """The pages and removals that the stores get in a run on that day."""
        self.clock.now, self.stored, self.asked = 1.8e9 + day * DAY, [], []
        frontier = self.frontier = self.begin()
        self.work(frontier)
        self.notices = frontier.gate.notes.notices
        return self.stored

    def work(self, frontier: LearningFrontier) -> None:
        for _ in range(1_000):
            if (lease := frontier.pop()) is not None:
                frontier.answered(lease, 0.0)
                self.answer(frontier, lease)
            elif frontier.finished:
                break
            else:
                self.clock.now += 2.0
        frontier.checkpoint({})

    def answer(self, frontier: LearningFrontier, lease: Lease) -> None:
        path = lease.url.removeprefix("http://h/")
        self.asked.append(path)
        if lease.kind is FetchKind.ROBOTS:
            frontier.robots_loaded(lease, b"", 0.0)
            return
        if lease.own is not None:
            made_up = self.made_up and self.made_up()
            frontier.own_ended(lease, "200" if made_up else "404", page=made_up)
            return
        found = self.site.get(path) or page(path)
        answer = found(path) if callable(found) else found
        assert lease.entry is not None
        if isinstance(answer, Page):
            digest = hashlib.sha1(answer.body, usedforsecurity=False).hexdigest()
            answer = replace(answer, fingerprint=fingerprint(answer), digest=digest)
        if lease.entry.visit is None:
            assert isinstance(answer, Page)
            answer.signature, answer.link_signature = signature(answer), link_signature(answer)
            self.bodies[lease.url] = answer
            frontier.acknowledge(lease, visit_of_page(answer))
        else:
            self.judge(frontier, lease, answer)

    def judge(self, frontier: LearningFrontier, lease: Lease, answer: Answer) -> None:
        refresh, entry, now = frontier.refresh, lease.entry, self.clock.now
        assert entry is not None
        assert entry.visit is not None
        if isinstance(answer, Observation):  # without a response
            decision = refresh.judge(entry, entry.visit, answer, now)
            removed = ""
            if decision.delete:
                removed = refresh.delete(entry, answer, decision.reason, now)
            record = None if isinstance(removed, Removed) else decision.record
            self.stored += [removed] if removed else []
        else:
            request = Request(lease.url)
            response = HtmlResponse(lease.url, answer.status, body=answer.body, request=request)
            judge = _Judge(refresh, lease, response, for_all=self.for_all)
            if judge.wants_stored(answer):
                judge.stored = self.bodies.get(lease.url)
            items = list(judge.judge(answer))
            self.bodies |= {item.url: item for item in items if isinstance(item, Page)}
            self.stored += items
            if isinstance(lease.ending, LookAgain):
                frontier.look_again(lease, lease.ending.seconds)
                return
            assert isinstance(lease.ending, Revisited)
            record = lease.ending.record
        if record is None:
            frontier.forget(lease)
        else:
            frontier.acknowledge(lease, record)

    def state(self, path: str) -> UrlState:
        return MemoryBackend(self.disk).check([url_key(f"http://h/{path}")])[0]

    def leaves_on(self, path: str, days: Sequence[float]) -> float | None:
        """The first of some days on which a page is taken out of the search."""
        for day in days:
            found = [one for one in self.run(day) if isinstance(one, Removed)]
            if any(one.url == f"http://h/{path}" for one in found):
                return day
        return None


DAILY = [day * 1.01 for day in range(1, 6)]
ROWS: dict[str, tuple[Answer, int | None]] = {
    "410": (page("p1", status=410), 1),
    "noindex": (page("p1", robots="noindex"), 1),
    "404": (page("p1", status=404), 3),
    "a redirect to a page that is stored": (page("p1", status=301, to="p2"), 2),
    "a redirect to a page that nobody has": (page("p1", status=301, to="nowhere"), None),
    "a redirect to another server": (page("p1", status=302, to="http://other/p1"), None),
    "a redirect to the start page": (page("p1", status=302, to=""), None),
    "a redirect to a login that is stored": (page("p1", status=302, to="login"), None),
    "out of scope": (Observation.SCOPE, None),
    "401": (page("p1", status=401), None),
    "403": (page("p1", status=403), None),
    "a login form": (page("p1", FORM), None),
    "empty": (replace(page("p1"), body=b" ", text=""), None),
    "no answer, or a time-out": (Observation.FAILED, None),
    "500": (page("p1", status=500), None),
    "429": (page("p1", status=429), None),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_page_leaves_by_its_row_of_the_table(row: str) -> None:
    """On which of the days, with a visit a day; None: on none of them."""
    world = World()
    world.site["p1"], at = ROWS[row]
    assert world.leaves_on("p1", DAILY) == (None if at is None else DAILY[at - 1])


@pytest.mark.parametrize("status", [201, 202, 203, 204, 205, 207])
def test_another_2xx_writes_nothing_over_a_stored_page(status: int) -> None:
    """A server that looks at its visitor first answers 202, for example."""
    world = World()
    body = b"" if status in (204, 205) else b"<p>Please wait"
    world.site["p1"] = replace(page("p1", status=status), body=body, text=body[3:].decode())
    for day in DAILY[:4]:
        items = [one for one in world.run(day) if one.url == "http://h/p1"]
        assert [(type(one), one.kind, one.status) for one in items] == [(Kept, "empty", status)]


def test_a_redirect_counts_as_a_move_as_soon_as_the_target_is_stored() -> None:
    world = World()
    world.site["p1"] = page("p1", status=301, to="p99")
    assert world.leaves_on("p1", DAILY[:4]) is None
    frontier = world.begin("")
    frontier.add([frontier.entry("http://h/p99", "http://h/p99")])
    world.work(frontier)
    assert world.leaves_on("p1", DAILY[4:6]) == DAILY[4]


def test_one_url_to_which_many_lead_is_no_page_that_they_have_moved_to() -> None:
    """Later pages count as missing, and those before them too, from the next run on."""
    world = World()
    for number in range(6):
        world.site[f"p{number}"] = page(f"p{number}", status=302, to="p7")
    seen = [one.kind for one in world.run(1) if isinstance(one, Kept) and one.status == 302]
    assert seen == ["moved"] * 2 + ["moved-to-one"] * 4
    gone = [one for one in world.run(2.5) if isinstance(one, Removed)]
    assert len(gone) <= 2
    assert not [one for one in world.run(2.6) if isinstance(one, Removed)]


@pytest.mark.parametrize("days, at", [(range(1, 6), None), ([1, 5, 9], 9)])
def test_who_may_not_see_a_page_any_more_loses_it_where_not_everybody_may(
    days: Sequence[int], at: int | None
) -> None:
    """On a host with credentials: 401 twice over seven days."""
    world = World()
    world.site["p1"] = page("p1", status=401)
    world.for_all = False
    assert world.leaves_on("p1", [float(day) for day in days]) == at


@pytest.mark.parametrize(
    "reads, answers, at",
    [
        ([1, 1, 1, 1], "200", None),  # one robots.txt, seen again and again
        ([1, 2.1, 3.2, 4.3], "200", 2),
        ([1, 2.1, 3.2, 4.3], "timeout", None),  # old rules still hold
        ([1, 1, 1, 4], "200", 4),
    ],
)
def test_robots_txt_has_to_be_read_twice(
    reads: Sequence[float], answers: str, at: float | None
) -> None:
    world = World()
    world.site["p1"] = Observation.ROBOTS
    left = []
    for day, read in enumerate(reads, 1):
        world.clock.now = 1.8e9 + day * DAY + 3
        frontier = world.begin()
        host = frontier.hosts.get(HOST)
        assert host is not None
        host.record.robots_answer = "200" if day == 1 else answers
        host.record.robots_time = 1.8e9 + read * DAY
        world.stored = []
        world.work(frontier)
        left += [day for one in world.stored if isinstance(one, Removed)]
    assert left == ([] if at is None else [at])


def test_a_page_that_is_not_to_be_indexed_is_stored_and_leaves_by_the_brake() -> None:
    world = World()
    world.site["p1"] = page("p1", robots="noindex")
    removed, hidden = (one for one in world.run(1) if not isinstance(one, Kept))
    assert isinstance(removed, Removed)
    assert isinstance(hidden, Page)
    assert (removed.reason, hidden.noindex, world.state("p1")) == ("noindex", True, UrlState.STORED)
    assert removed.time < hidden.fetched
    assert not [one for one in world.run(2) if not isinstance(one, Kept)]
    world.site["p1"] = page("p1")
    assert [type(one) for one in world.run(3) if not isinstance(one, Kept)] == [Page]


def test_no_more_pages_are_hidden_than_the_brake_lets_go() -> None:
    """A host forbids by mistake to index any page; its pages stay as they were."""
    world = World(pages=40)
    for name in ["", *(f"p{number}" for number in range(40))]:
        world.site[name] = page(name, robots="noindex")
    assert sum(isinstance(one, Removed) for one in world.run(1)) == AT_LEAST
    assert {notice.what for notice in world.notices} == {"deletes"}
    assert not any(isinstance(one, Removed) for one in world.run(2))
    world.site = {"login": world.site["login"]}
    changed = [one for one in world.run(3) if isinstance(one, Page)]
    assert len(changed) == AT_LEAST, "those that the brake has held are as they were"


def test_a_page_that_has_left_and_is_back_is_found_though_nobody_names_it() -> None:
    world = World()
    world.site["p1"] = page("p1", status=410)
    assert world.leaves_on("p1", [1]) == 1
    del world.site["p1"]
    world.run(29)
    assert world.state("p1") is UrlState.UNKNOWN
    world.site["p2"] = page("p2", status=301, to="p3")
    assert world.leaves_on("p2", [30, 31.5]) == 31.5
    world.run(32)
    assert world.state("p1") is UrlState.STORED
    world.run(64)
    assert world.state("p2") is UrlState.UNKNOWN, "an error page with 200 would be stored"


def test_the_canaries_are_the_pages_that_most_pages_link_to() -> None:
    world = World()
    most = [f"p{number}" for number in range(3, 8)]
    world.links = {f"http://h/{name}": 40 for name in most} | {"http://h/p1": 7}
    for name in most:
        world.site[name] = page(name, status=500)
    world.site["p1"] = page("p1", status=410)
    kept = [one.message for one in world.run(1) if isinstance(one, Kept) and one.status == 410]
    assert kept[-1].startswith("gone; only 1 of 6 pages are there")
    for name in most:
        del world.site[name]
    assert world.leaves_on("p1", [2]) == 2


def test_a_host_that_is_silent_for_long_keeps_its_pages_and_somebody_is_told() -> None:
    world = World()
    frontier = world.begin()
    for day in range(1, 101):
        world.clock.now = 1.8e9 + day * DAY
        frontier = world.begin()
        world.clock.now += 5  # the gap
        lease = frontier.pop()
        assert lease is not None
        frontier.failed(lease, "timeout", 30.0)
        frontier.checkpoint({})
        assert bool(frontier.gate.notes.notices) is (day > 90)
    (notice,) = frontier.gate.notes.notices
    assert notice.what == "dead"
    assert "h:80 has not answered for 99 days. Its 10 pages stay in the search." in notice.message
    world.run(101)
    assert world.notices == []
    assert world.state("p1") is UrlState.STORED


def test_a_page_that_no_link_leads_to_is_due_and_stays() -> None:
    world = World()
    frontier = world.begin("due")
    frontier.unlinked(["http://h/p4", "http://h/never"])
    world.asked = []
    world.work(frontier)
    assert "p4" in world.asked[:2]
    assert world.state("p4") is UrlState.STORED


def test_a_page_that_no_sitemap_names_any_more_is_looked_at_next() -> None:
    """One that another sitemap names, or that no sitemap has named, is not."""
    world = World()
    frontier = world.begin("due", sources=True)
    sitemaps = ["http://h/a.xml", "http://h/b.xml"]
    frontier.sources.found("h:80", sitemaps, "robots.txt")
    pages = [f"http://h/p{number}" for number in range(1, 7)]
    assert [frontier.sitemap_read(one, pages) for one in sitemaps] == [0, 0]
    assert frontier.sitemap_read(sitemaps[0], pages[:3]) == 0
    assert frontier.sitemap_read(sitemaps[1], pages[:4]) == 2
    world.asked = []
    world.work(frontier)
    pages_asked = [one for one in world.asked if not one.endswith(".xml")]
    assert set(pages_asked[:2]) == {"p5", "p6"}
    assert world.state("p5") is UrlState.STORED


@pytest.mark.parametrize("honest", [False, True])
def test_a_sitemap_that_stops_naming_pages_that_are_there_loses_its_say(honest: bool) -> None:
    """Until then half of the confirmations that are left are for such pages, at most. The operator
    reads why."""
    world, sitemap, looks, told = World(pages=40), "http://h/a.xml", list[int](), list[str]()
    pages = [f"http://h/p{number}" for number in range(40)]
    for day in range(12):
        world.clock.now = 1.8e9 + (day + 1) * DAY
        frontier = world.begin("due", sources=True)
        frontier.sources.found(HOST, [sitemap], "robots.txt")
        gone = pages[day : day + 1] if honest else pages[5:]
        world.site |= {url[9:]: page(url[9:], status=404) for url in gone if honest}
        frontier.sitemap_read(sitemap, [url for url in pages if not day % 2 or url not in gone])
        visits = [visit for _, visit in frontier.backend.visits(b"", 100) if visit is not None]
        looks.append(sum(visit.due == CONFIRM and not visit.missing_as for visit in visits))
        told += [one.message for one in frontier.gate.notes.notices if one.what == SITEMAP]
        world.work(frontier)
    assert looks[1] <= LEAST_CONFIRMATIONS // 2
    assert (bool(looks[-1]), bool(told)) == (honest, not honest)
    if told:
        assert sum(looks) <= 40
        assert told[0].startswith(f"{sitemap} stops naming pages that are there: ")


def test_hosts_of_earlier_runs_count_as_not_for_everybody(
    crawler_for: Callable[..., Crawler], tmp_path: Path
) -> None:
    """By crawl.json, though the sites file of this run does not name them; files do not."""
    crawler = crawler_for()
    directory = options.larm_dir(crawler.settings)
    directory.mkdir()
    manifest = {"format": 2, "seeds": ["file:///srv/"], "credentials": ["http://hr"]}
    (directory / "crawl.json").write_text(json.dumps(manifest))
    seen = RevisitsMiddleware(crawler)._access.page
    assert [seen(url) for url in ("http://hr/a", "http://wiki/", "file:///srv/a")] == [
        False, True, True,
    ]  # fmt: skip


def changed(stored: list[Any]) -> int:
    return sum(isinstance(item, Page) for item in stored)


class Restless:
    """Pages that say something else at each fetch, in a line at their end."""

    def __init__(self, says: Callable[[World, int], str], pages: int = 12) -> None:
        self.news, self.fetches, self.world = dict[str, str](), 0, World(pages)
        self.says = says
        for number in range(pages):
            self.world.site[f"p{number}"] = self.answer
        for name in list(self.world.bodies):  # as if it had said so from the beginning
            path = name.removeprefix("http://h/")
            if path in self.world.site and path != "login":
                self.world.bodies[name] = self.answer(path)

    def answer(self, path: str) -> Page:
        self.fetches += 1
        said = self.says(self.world, self.fetches)
        found = page(path, f"{self.news.get(path, '')} Best regards from the whole team. {said}")
        return replace(found, fingerprint=fingerprint(found))


RESTLESS: dict[str, Callable[[World, int], str]] = {
    "a counter": lambda _, fetch: f"You are visitor {fetch} of this site.",
    "a clock": lambda world, _: time.strftime("It is %H:%M:%S now.", time.gmtime(world.clock.now)),
    "a clock without seconds": lambda world, _: time.strftime(
        "This page was made at %H:%M for you.", time.gmtime(world.clock.now)
    ),
    "words of two kinds": lambda _, fetch: (
        "Try our new menu today, with salad." if fetch % 2 else "Read the blog of the kitchen now."
    ),
    "words by chance": lambda _, fetch: (
        "Try our new menu today, with salad."
        if random.Random(fetch).random() < 0.5
        else "Read the blog of the kitchen now."
    ),
    "words of four kinds": lambda _, fetch: (
        "Try our new menu today, with salad.",
        "Read the blog of the kitchen now.",
        "Somebody has lost a blue umbrella.",
        "Order your winter boots before Friday.",
    )[fetch % 4],
    "words or none": lambda _, fetch: "We are hiring, come and see us." if fetch % 3 else "",
}


@pytest.mark.parametrize("says", RESTLESS)
def test_a_page_that_is_another_at_each_fetch_is_as_before_at_its_first_visit(says: str) -> None:
    site = Restless(RESTLESS[says])
    # the first of these pages may have had the other words at both fetches
    assert changed(site.world.run(1)) <= 2 * ("chance" in says)
    site.news["p5"] = "Lunch is free."
    assert changed(site.world.run(2)) == 1
    assert changed(site.world.run(3)) == 0


def test_a_page_that_changes_at_each_visit_without_new_words_is_no_fast_one() -> None:
    """Who is on call, of three; beside it a page that changes as often with news."""
    world = World()
    world.site["p1"] = lambda _: page("p1", f"On call: {['Anna', 'Bert', 'Cleo'][world.day % 3]}.")
    world.site["p2"] = lambda _: page("p2", f"Said today: {'abcdefghijklmnop'[world.day] * 9}.")
    for world.day in range(1, 10):
        stored = world.run(world.day)
        assert {one.url[-2:] for one in stored if isinstance(one, Page)} == {"p1", "p2"}
    rates = {}
    for name in ("p1", "p2", "p3"):
        visit = MemoryBackend(world.disk).visit(url_key(f"http://h/{name}"))
        assert visit is not None
        rates[name] = visit.due
    assert rates["p2"] < rates["p1"] <= rates["p3"]


@pytest.mark.parametrize(
    "target",
    [
        "http://sso/x/login.php?next=1",
        "sign-in",
        "Anmelden.aspx",
        "http://idp/portal?back=http%3A%2F%2Fh%2F{}",
    ],
)
def test_redirects_of_all_pages_to_a_login_are_told_after_five(target: str) -> None:
    """The login is not stored. Nothing leaves, and the host waits for the operator."""
    world = World()
    for name in ["", *(f"p{number}" for number in range(8))]:
        world.site[name] = page(name, status=302, to=target.format(name))
    for day in (1, 2, 3):
        stored = world.run(day)
        assert not any(isinstance(item, Removed) for item in stored)
        (notice,) = world.notices
        assert "login expired" in notice.message
        assert sum(path.startswith("p") for path in world.asked) <= 6


@pytest.mark.parametrize("leads_to_error", [True, False])
def test_a_redirect_to_an_error_page_with_the_url_is_no_login(leads_to_error: bool) -> None:
    """As ASP.NET has them, where made-up URLs lead there, too. Else the target is not known."""
    world = World()
    to = "http://h/errors/NotFound.aspx?aspxerrorpath=/{}"
    world.made_up = lambda: page("x", status=302, to=to.format("x") if leads_to_error else "p1")
    world.site["p5"] = page("p5", status=302, to=to.format("p5"))
    assert world.leaves_on("p5", DAILY) == (DAILY[2] if leads_to_error else None)
    assert world.notices == []


def test_a_page_that_moved_to_another_name_is_no_login() -> None:
    world = World()
    world.site["p1"] = page("p1", status=301, to="p2?from=/p1")
    world.site["p3"] = page("p3", status=301, to="login-help")
    assert [item.kind for item in world.run(1) if "/p3" in item.url] == ["moved"]


def test_a_clock_that_is_a_year_ahead_for_a_night_takes_nothing_out_early() -> None:
    """A page is missing at two visits, and again an hour later by a clock that is wrong."""
    world = World()
    world.site |= {"p1": page("p1", status=404), "p2": page("p2", status=403)}
    world.for_all = False
    days = (1, 1.96, 367, 2.1, 2.9)
    left = {day: [one.url for one in world.run(day) if isinstance(one, Removed)] for day in days}
    assert left == {day: [] for day in days}
    assert world.leaves_on("p1", [3.2, 4.3, 5.4]) in (4.3, 5.4)
    del world.site["p2"]
    world.run(6)
    assert world.state("p2") is UrlState.STORED


def test_a_night_with_a_clock_that_is_ahead_makes_no_page_and_no_host_wait_longer() -> None:
    """Nor the nights after, if it stays ahead; later the operator is told as always."""
    for back in (True, False):
        world, told = World(), dict[float, list[str]]()
        world.site["p1"] = page("p1", FORM)
        for day in (1, 2, 3, 380, *((4, 5) if back else (381, 382)), *range(383, 395)):
            if back and day > 383:
                day -= 378
            world.run(day)
            told[day] = [one.what for one in world.notices if one.what == UNDECIDED]
            world.notices.clear()
            world.frontier.gate.silent(HOST, 1.8e9, world.clock.now)
            told[day] += [one.what for one in world.notices]
        early = [day for day in told if told[day] and day in (1, 2, 3, 380, 4, 5, 381, 382)]
        assert early == []
        assert [what for found in told.values() for what in found][:1] == [UNDECIDED]


def test_pages_that_left_while_the_clock_was_ahead_do_not_hold_the_brake_for_a_year() -> None:
    world = World(pages=60)
    gone = {f"p{number}": page(f"p{number}", status=410) for number in range(30, 60)}
    world.site |= gone
    removed = [one for one in world.run(367) if isinstance(one, Removed)]
    assert len(removed) == AT_LEAST
    assert not [one for one in world.run(2) if isinstance(one, Removed)]
    assert len([one for one in world.run(9.5) if isinstance(one, Removed)]) == 10


def test_the_end_of_a_run_counts_all_pages_that_scrapy_deletes_lists() -> None:
    """Pages that stay undecided for long count too, not only those that the brake holds."""
    world = World()
    world.site["p1"] = page("p1", status=403)
    for day, said in ((1, None), (7, None), (9, "1 page of h:80 for `scrapy deletes`")):
        world.run(day)
        assert end_of_refresh(world.frontier).get(stats.REFRESH_WAITS) == said, day


@pytest.mark.parametrize(
    "later, reason",
    [
        (403, "locked; approved by the operator"),
        (404, "missing 1 time over 0.0 days; approved by the operator"),
    ],
)
def test_a_page_that_leaves_by_approval_names_it_as_the_reason(later: int, reason: str) -> None:
    world = World()
    for world.day in (1, 9):
        world.site["p1"] = page("p1", status=403)
        world.run(world.day)
    world.site["p1"] = page("p1", status=later)
    frontier = world.begin()
    frontier.gate.approve(HOST, {url_key("http://h/p1"): 0.0})
    world.clock.now += DAY
    world.work(frontier)
    assert [one.reason for one in world.stored if isinstance(one, Removed)] == [reason]


@pytest.mark.parametrize("body", ["", "<p>Nothing was said in this month, nor in another one."])
def test_a_body_that_is_lost_is_stored_again_if_the_page_is_as_it_was(body: str) -> None:
    """Though it is empty, or as the error page is; until then it is awaited."""
    lost = replace(page("p1", body or "<p>"), body=body.encode())
    world = World(site={"p1": lost})
    world.made_up = lambda: lost
    frontier = world.begin()
    assert frontier.refresh is not None
    frontier.refresh.doubt(["http://h/p1"])
    frontier.checkpoint({})
    world.bodies.clear()
    for day, answer in ((1, page("p1", status=503)), (2, page("p1", status=404)), (3, lost)):
        world.site["p1"] = answer
        items = [one for one in world.run(day) if one.url == "http://h/p1"]
        assert [type(one) for one in items] == [Page if answer is lost else Kept]
    assert world.begin().refresh.known(HOST).doubtful == set()  # type: ignore[union-attr]


NAVIGATION = "<p>Start, people, projects, canteen, travel, all of the intranet, search, help</p>"
SORRY = f"{NAVIGATION}<h1>Sorry</h1><p>There is no such page here any more."
WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "jetty")


def some_words(seed: random.Random, number: int = 12) -> str:
    return " ".join(f"{seed.choice(WORDS)}-{seed.choice(WORDS)}" for _ in range(number))


ERRORS: dict[str, Callable[[random.Random], str]] = {
    "random words": lambda seed: f"{SORRY}<p>Meanwhile: {some_words(seed)}",
    "random words in three places": lambda seed: (
        f"<p>{some_words(seed)}</p>{SORRY}<p>{some_words(seed)}</p><p>Call us: {some_words(seed)}"
    ),
    "a tip out of three": lambda seed: SORRY + "<p>" + seed.choice(
        ["Lock your screen when you leave.", "Save the file twice.", "Coffee is on floor three."]
    ),
}  # fmt: skip


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("seed", range(3))
def test_an_error_page_with_other_words_each_time_is_one(error: str, seed: int) -> None:
    """It is not stored over the page, which leaves as by 404. A page that changed is stored, though
    all of its own words are others now."""
    source = random.Random(seed)
    own = {f"p{n}": page(f"p{n}", f"{NAVIGATION}<p>{some_words(source, 40)}") for n in (1, 2)}
    world = World(site=own)
    world.site["p1"] = lambda path: page(path, ERRORS[error](source))
    world.made_up = lambda: page("made-up", ERRORS[error](source))
    for day in DAILY[:3]:
        world.site["p2"] = page("p2", f"{NAVIGATION}<p>New: {some_words(source, 40)}")
        items = {one.url: one for one in world.run(day) if one.url[-2:] in ("p1", "p2")}
        assert isinstance(items["http://h/p2"], Page)
        left = isinstance(items["http://h/p1"], Removed)
        assert left or getattr(items["http://h/p1"], "kind", "") == "soft-404"
    assert left


def test_a_server_that_says_something_else_to_every_url_overwrites_nothing() -> None:
    """No sentence tells an error page there: a page stays. One with a lasting text is stored."""
    source = random.Random(1)
    world = World(site={"p1": page("p1", f"<p>{some_words(source, 40)}")})
    world.site["p1"] = lambda path: page(path, f"<h1>{some_words(source, 40)}")
    world.made_up = lambda: page("made-up", f"<h1>{some_words(source, 40)}")
    world.site["p2"] = page("p2", f"<h1>{some_words(source, 40)}")
    items = {one.url: one for one in world.run(1)}
    assert (items["http://h/p1"].kind, type(items["http://h/p2"])) == ("empty", Page)


@pytest.mark.parametrize("menu", ["", NAVIGATION])
@pytest.mark.parametrize("words", [3, 12, 60])
def test_a_fault_in_place_of_pages_is_none(menu: str, words: int) -> None:
    """The server knows which URLs exist, and says something else at each answer. Two such pages
    may be believed, if only few words differ."""
    source = random.Random(words)
    names = [f"p{n}" for n in range(8)]
    own = {name: page(name, f"{menu}<p>{some_words(source, 40)}") for name in names}
    world = World(site=own)
    fault = f"{menu}<h1>Oops</h1><p>The database is away. "
    world.site |= dict.fromkeys(names, lambda path: page(path, fault + some_words(source, words)))
    items = [one for one in world.run(1) if one.url[9:] in names]
    assert len(items) == 8
    assert sum(isinstance(one, Page) for one in items) <= (2 if words == 3 else 0)
    world.site |= own
    assert not [one for one in world.run(2) if isinstance(one, Removed)]


def test_pages_that_are_all_written_anew_are_stored() -> None:
    """With a sentence that all of them have, and a counter."""
    source, names = random.Random(1), [f"p{n}" for n in range(8)]
    world = World(site={name: page(name, f"<p>{some_words(source, 40)}") for name in names})
    text = {name: f"{NAVIGATION}<h1>{some_words(source, 40)}</h1>" for name in names}
    world.site |= dict.fromkeys(
        names, lambda path: page(path, f"{text[path]}<p>Seen {source.randrange(10**6)} times.")
    )
    items = [one for one in world.run(1) if one.url[9:] in names]
    assert [type(one) for one in items] == [Page] * 8


def test_a_new_design_makes_no_error_pages_of_small_pages() -> None:
    """All pages and the new error page share their navigation."""
    source = random.Random(1)
    said = {f"p{n}": f"<p>Number {n} {some_words(source, 10)}" for n in (1, 2)}
    world = World(site={name: page(name, f"{NAVIGATION}{text}") for name, text in said.items()})
    design = f"<p>{some_words(source, 60)}</p>"
    world.site |= {name: page(name, f"{design}{text}") for name, text in said.items()}
    world.made_up = lambda: page("made-up", f"{design}<h1>Sorry</h1>{some_words(source)}")
    items = [one for one in world.run(1) if one.url[-2:] in said]
    assert [type(one) for one in items] == [Page, Page]
