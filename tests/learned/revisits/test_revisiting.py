"""Which pages a run visits again: order, budget, turns, crashes. No network, no disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from email.utils import formatdate
from random import Random
from typing import Any

import msgpack
import pytest
from scrapy.settings import Settings

from larmspider.extraction.pages.sitemap import ANYWHERE
from larmspider.frontier.dispatch import ROBOTS_REASON
from larmspider.frontier.hosts import HostPace, Lease
from larmspider.frontier.storage.records import FetchRecord, UrlState, url_key
from larmspider.learned.deletes.table import Observation
from larmspider.learned.learning import Learning, LearningFrontier
from larmspider.learned.revisits.host import HostKnowledge
from larmspider.learned.revisits.revisiting import Purpose, RevisitOptions
from larmspider.urls.normalizer import UrlForms
from tests.support.frontier.memory_backend import Disk, MemoryBackend
from tests.support.frontier.simulation import Clock, build

DAY = 86_400.0
SAME = Observation.SAME
PAGES = [f"http://a/{number}" for number in range(8)]


class World:
    """A crawl of eight pages that has ended. ``rules`` of hosts are those of later runs."""

    def __init__(self) -> None:
        self.disk, self.clock = Disk(), Clock()
        self.rules: list[HostPace] = []
        settings = Settings()
        settings.setmodule("larmspider.settings")
        self.forms = UrlForms.from_settings(settings)
        frontier = self.begin("", per_day=2)
        frontier.add([frontier.entry(url, url) for url in PAGES])
        while lease := self.next(frontier):
            frontier.acknowledge(lease, FetchRecord(UrlState.STORED, self.clock.now, 200))
        frontier.checkpoint({})

    def begin(
        self,
        mode: str,
        per_day: float = 0,
        matches: Callable[[str], bool] | None = None,
        *,
        sources: bool = False,
        **more: Any,
    ) -> LearningFrontier:
        """A new run, after the end of the one before or after a crash."""
        more = {"random": lambda: 0.5} | more  # which chooses no page of so few
        revisits = RevisitOptions(mode, per_day, matches, **more)
        learning = Learning(self.forms, revisits=revisits, asks_sources=sources)
        backend = MemoryBackend(self.disk)
        return build(backend, self.clock, robots=False, rules=self.rules, learning=learning)

    def next(self, frontier: LearningFrontier) -> Lease | None:
        """The next lease, whatever the gap; None once the run is over."""
        for _ in range(50):
            if (lease := frontier.pop()) is not None:
                frontier.answered(lease, 0.0)
                return lease
            if frontier.finished:
                return None
            self.clock.now += 2.0
        return None

    def visit(
        self, frontier: LearningFrontier, lease: Lease, seen: Observation = Observation.SAME
    ) -> None:
        assert lease.entry is not None
        entry, now = lease.entry, self.clock.now
        assert entry.visit is not None
        decision = frontier.refresh.judge(entry, entry.visit, seen, now)
        frontier.acknowledge(lease, decision.record)

    def gone(self, frontier: LearningFrontier, lease: Lease) -> str:
        """Why a page that is gone is kept, "" if it leaves."""
        refresh, entry, now = frontier.refresh, lease.entry, self.clock.now
        assert entry is not None
        assert entry.visit is not None
        decision = refresh.judge(entry, entry.visit, Observation.GONE, now)
        why_not = refresh.delete(entry, Observation.GONE, decision.reason, now)
        if not isinstance(why_not, str):
            frontier.forget(lease)
            return ""
        frontier.acknowledge(lease, decision.record)
        return why_not

    def run(self, frontier: LearningFrontier, most: int = 99) -> list[str]:
        visited: list[str] = []
        while len(visited) < most and (lease := self.next(frontier)):
            self.visit(frontier, lease)
            visited.append(lease.url)
        return visited


@pytest.fixture
def world() -> World:
    return World()


def test_pages_near_the_seeds_come_first(world: World) -> None:
    """So that what is new is found by the shortest way."""
    frontier = world.begin("")
    deep = [f"http://a/deep/{depth}" for depth in (9, 3, 1, 5, 500)]
    frontier.add([frontier.entry(url, url, depth=int(url.split("/")[-1])) for url in deep])
    while lease := world.next(frontier):
        frontier.acknowledge(lease, FetchRecord(UrlState.STORED, world.clock.now, 200))
    frontier.checkpoint({})
    world.clock.now += DAY
    visited = [url for url in world.run(world.begin("all")) if url in deep]
    assert visited == sorted(deep, key=lambda url: int(url.split("/")[-1]))


def test_all_visits_each_page_once(world: World) -> None:
    world.clock.now += DAY
    assert sorted(world.run(world.begin("all"))) == PAGES


def test_a_pattern_visits_what_it_matches(world: World) -> None:
    world.clock.now += DAY
    frontier = world.begin("http://a/[12]", matches=lambda url: url[-1] in "12")
    assert sorted(world.run(frontier)) == PAGES[1:3]


def test_a_run_that_was_killed_is_gone_on_with(world: World) -> None:
    world.clock.now += DAY
    frontier = world.begin("all")
    before = world.run(frontier, 3)
    frontier.checkpoint({})
    world.run(frontier, 2)  # no checkpoint has these
    assert world.next(frontier) is not None  # nor what was being fetched
    world.clock.now += 60
    after = world.run(world.begin("all"))
    assert sorted(before + after) == PAGES


@pytest.mark.parametrize("mode", ["all", "due", "watch", "http://a/.*"])
def test_visits_wait_for_the_hours_of_their_host(world: World, mode: str) -> None:
    """Over the end of these hours, and over a crash; the run does not end meanwhile."""
    world.rules = [HostPace("a", window=(22, 6))]
    midnight = 15 * DAY  # virtual days begin at 0 o'clock
    world.clock.now = midnight - 4 * 3600
    frontier = world.begin(mode, per_day=16)
    assert world.next(frontier) is None
    assert not frontier.finished
    world.clock.now = midnight - 2 * 3600
    before = [lease.url for _ in range(3) if (lease := world.next(frontier))]
    world.clock.now = midnight + 6 * 3600
    assert world.next(frontier) is None
    assert not frontier.finished
    frontier.checkpoint({})
    frontier = world.begin(mode, per_day=16)
    world.clock.now = midnight + 12 * 3600
    assert world.next(frontier) is None
    at = frontier.next_ready_time()
    assert at == midnight + 22 * 3600 or mode == "watch"
    world.clock.now = midnight + 22 * 3600
    after = world.run(frontier, most=8)
    assert set(before) <= set(after) == set(PAGES), "what was leased is due again"


def test_a_page_that_waited_to_be_taken_out_when_the_run_was_killed_is_not_forgotten(
    world: World,
) -> None:
    """It is visited once more, however often the run looks for pages."""
    world.clock.now += DAY
    frontier = world.begin("all")
    lease = world.next(frontier)
    assert lease is not None
    assert "asked first" in world.gone(frontier, lease)
    frontier.checkpoint({})
    world.clock.now += 60
    frontier = world.begin("all")
    visited = []
    while lease := world.next(frontier):
        visited.append(lease.url)
        if lease.url == PAGES[0]:
            why_not = world.gone(frontier, lease)
        else:
            world.visit(frontier, lease)
        frontier.refresh.entered()
    assert Counter(visited) == Counter(PAGES) + Counter([PAGES[0]]), "before and after the others"
    assert why_not == "", "all other canaries are there, and the page is no root"


@pytest.mark.parametrize(
    "known",
    [
        [b"", 3.0, 900.0],
        [b"", 3.0, 900.0, {20_000: [5, 4]}],
        [b"", 3.0, 900.0, {}, [[1.8e6, "http://a/gone", 1]]],
        [b"", 3.0, 900.0, {}, [], [20_000, 150, 8], [], [], [], {}, "of a later version"],
    ],
    ids=lambda known: str(len(known)),
)
def test_a_note_without_later_fields_is_gone_on_with(world: World, known: list[Any]) -> None:
    """What is not in it is not known; what a later release added is passed over."""
    frontier = world.begin("")
    frontier.backend.put_note("refresh a:80", msgpack.packb(known))
    frontier.backend.seal()
    frontier.backend.commit({})
    world.clock.now += 10 * DAY
    frontier = world.begin("all")
    assert sorted(url for url in world.run(frontier) if url in PAGES) == PAGES
    frontier.checkpoint({})
    assert world.begin("").refresh is not None
    before = HostKnowledge.unpack(frontier.backend.note("refresh a:80"))
    assert (before.changes, before.exposure > 900.0) == (3.0, True)
    assert before.checks.days == (known[3] if known[3:] else {})


def test_the_next_run_visits_all_of_them_again(world: World) -> None:
    for _ in range(2):
        world.clock.now += DAY
        frontier = world.begin("all")
        assert len(world.run(frontier)) == len(PAGES)
        frontier.checkpoint({})


def test_a_budget_is_kept_across_runs_and_spent_in_order(world: World) -> None:
    visited = []
    for _ in range(4):
        world.clock.now += DAY
        frontier = world.begin("due", per_day=2)
        visited += world.run(frontier)
        frontier.checkpoint({})
        assert world.run(world.begin("due", per_day=2)) == []
    assert sorted(visited) == PAGES


def test_new_urls_come_first_and_one_turn_in_four_is_for_what_is_due(world: World) -> None:
    world.clock.now += DAY
    frontier = world.begin("all")
    frontier.add([frontier.entry(f"http://a/new{n}", f"http://a/new{n}") for n in range(6)])
    urls = []
    while len(urls) < 8 and (lease := world.next(frontier)):
        urls.append(lease.url)
    assert sum("new" in url for url in urls) == 6
    assert "new" in urls[0]
    assert sum("new" not in url for url in urls[:4]) == 1


def test_a_signal_makes_a_page_due_before_all_others(world: World) -> None:
    world.clock.now += DAY
    frontier = world.begin("due", per_day=1)
    key = url_key(PAGES[5])
    visit = frontier.backend.visit(key)
    assert visit is not None
    frontier.refresh.signalled([(key, visit)], precision=0.5)
    assert world.run(frontier) == [PAGES[5]]


def test_a_page_that_a_feed_calls_newer_than_its_visit_is_due(world: World) -> None:
    """Another one, whose last change was seen, is not."""
    feed = "http://a/feed.xml"
    world.clock.now += 3 * DAY
    frontier = world.begin("due", per_day=2, sources=True)
    frontier.sources.found("a:80", [feed], "feed")
    frontier.sources.asked(feed, world.clock.now, "200", 2)
    changes = [(PAGES[6], world.clock.now - 30 * DAY), (PAGES[7], world.clock.now - DAY)]
    assert frontier.signalled(changes, feed) == 1
    assert world.run(frontier, 1) == [PAGES[7]]


@pytest.mark.parametrize("is_silent", [False, True])
def test_the_oldest_page_is_visited_unless_its_host_does_not_answer(
    world: World, is_silent: bool
) -> None:
    """Though all pages of another host are worth more, which have changed since."""
    frontier = world.begin("")
    oldest = "http://b/"
    frontier.add([frontier.entry(oldest, oldest)])
    while lease := world.next(frontier):
        frontier.acknowledge(lease, FetchRecord(UrlState.STORED, world.clock.now, 200))
    frontier.checkpoint({})
    world.clock.now += 5 * DAY
    frontier = world.begin("http://a/", matches=lambda url: url.startswith("http://a/"))
    while lease := world.next(frontier):
        world.visit(frontier, lease, Observation.CHANGED)
    frontier.checkpoint({})
    frontier = world.begin("due", per_day=0.35)
    assert world.run(frontier) == []
    frontier.checkpoint({})
    world.clock.now += 30 * DAY
    frontier = world.begin("due", per_day=0.35)
    frontier.hosts["b:80"].record.silent_since = world.clock.now - DAY if is_silent else 0.0
    visited = world.run(frontier)
    assert len(visited) == 2
    assert (oldest in visited) is not is_silent


@pytest.mark.parametrize("ahead", [0, 400])
def test_what_robots_txt_refused_is_checked_after_thirty_days_beside_the_budget(
    world: World, ahead: float
) -> None:
    """Also if the clock was a year ahead when it was refused."""
    refused, begin = "http://a/no", world.clock.now
    frontier = world.begin("")
    frontier.add([frontier.entry(refused, refused)])
    lease = world.next(frontier)
    assert lease is not None
    then = begin + ahead * DAY
    record = FetchRecord(UrlState.REFUSED, then, due=then + 30 * DAY, reason=ROBOTS_REASON)
    frontier.backend.acknowledge([(url_key(refused), record)])
    frontier.checkpoint({})
    checked = []
    for day in (10, 29, 31, 32, 50, 62):
        world.clock.now = begin + day * DAY
        frontier = world.begin("due", per_day=0.001)
        while lease := world.next(frontier):
            checked += [day] if lease.url == refused else []
            world.visit(frontier, lease, Observation.ROBOTS if lease.url == refused else SAME)
        frontier.checkpoint({})
    assert checked == ([10, 50] if ahead else [31, 62])


@pytest.mark.parametrize("mode", ["due", "all"])
def test_a_clock_that_was_ahead_does_not_keep_pages_from_being_visited(
    world: World, mode: str
) -> None:
    world.clock.now -= 5 * DAY
    frontier = world.begin(mode, per_day=8)
    assert sorted(world.run(frontier)) == PAGES
    frontier.checkpoint({})
    assert world.run(world.begin("due", per_day=8)) == []


def test_a_url_whose_page_has_left_is_queued_once_more_after_thirty_days(world: World) -> None:
    """As a new one, unless the operator has taken it out by now."""
    frontier = world.begin("all")
    known = frontier.refresh.known("a:80")
    assert known is not None
    urls = [f"http://a/{name}" for name in ("gone", "later", "secret")]
    ago = (30.1, 29.9, 99)
    known.gone = [
        (world.clock.now - days * DAY, url, 3) for days, url in zip(ago, urls, strict=True)
    ]
    frontier.refresh.touch("a:80")
    frontier.checkpoint({})
    frontier = world.begin("due", is_removed=lambda forms: forms.exact == urls[2])
    lease = world.next(frontier)
    assert lease is not None
    assert lease.entry is not None
    assert (lease.url, lease.entry.depth, lease.entry.visit) == (urls[0], 3, None)
    frontier.acknowledge(lease, FetchRecord(UrlState.FAILED, world.clock.now, 404))
    frontier.checkpoint({})
    known = world.begin("due").refresh.known("a:80")
    assert [url for _, url, _ in known.gone] == [urls[1]]


def test_some_visits_are_to_pages_chosen_at_random(world: World) -> None:
    """In place of those that are worth least; what they find is kept. One in forty of a run that
    visits all."""
    world.clock.now += DAY
    frontier = world.begin("due", per_day=1, random=lambda: 0.99)
    rare = min(PAGES, key=url_key)  # the first of all that are offered
    visit = frontier.backend.visit(url_key(rare))
    assert visit is not None
    visit.a, visit.b = 0.5, 1e12  # it never changes
    assert world.run(frontier) == [rare]
    frontier.checkpoint({})
    frontier = world.begin("all", random=lambda: 0.02)
    assert frontier.refresh.known("a:80").checks.lately(world.clock.now) == (1, 1)
    lease = world.next(frontier)
    assert lease is not None
    world.gone(frontier, lease)
    assert frontier.refresh.known("a:80").checks.lately(world.clock.now) == (2, 1)


def test_a_page_that_was_visited_in_this_hour_needs_no_visit_to_be_as_stored(world: World) -> None:
    frontier = world.begin("due", per_day=1, random=lambda: 0.99)
    assert world.run(frontier) == []
    assert frontier.refresh.known("a:80").checks.lately(world.clock.now) == (1, 1)


def test_a_visit_that_failed_keeps_the_page(world: World) -> None:
    world.clock.now += DAY
    frontier = world.begin("all")
    lease = world.next(frontier)
    assert lease is not None
    assert lease.entry is not None
    assert not frontier.failed(lease, "too-big", 0.0)
    kept = frontier.backend.visit(lease.entry.key)
    assert kept is not None
    assert (kept.state, kept.status) == (UrlState.STORED, 200)
    assert kept.due > world.clock.now


def test_a_page_in_doubt_equals_no_page_until_it_was_visited(world: World) -> None:
    """Over crashes; a visit that came to nothing leaves the doubt in its record."""
    key = url_key(PAGES[3])
    frontier = world.begin("")
    assert frontier.refresh.doubt([PAGES[3], "http://a/never"]) == ["http://a/never"]
    frontier.checkpoint({})
    for _ in range(2):
        world.clock.now += DAY
        frontier = world.begin("all")
        before = frontier.backend.visit(key)
        while (lease := world.next(frontier)) and lease.url != PAGES[3]:
            world.visit(frontier, lease)
        assert lease is not None
        assert lease.entry is not None
        assert lease.entry.visit != before
    world.visit(frontier, lease)
    frontier.checkpoint({})
    assert not world.begin("all").refresh.known("a:80").doubtful


def test_a_visit_that_began_before_the_doubt_does_not_end_it(world: World) -> None:
    """It compared the answer with the stored page, and stored nothing."""
    frontier, url = world.begin(""), "http://a/in-doubt"
    frontier.add([frontier.entry(url, url)])
    while lease := world.next(frontier):
        visit = FetchRecord(UrlState.STORED, world.clock.now, 200, digest=bytes(range(20)))
        frontier.acknowledge(lease, visit)
    frontier.checkpoint({})
    world.clock.now += DAY
    frontier = world.begin("all")
    while (lease := world.next(frontier)) and lease.url != url:
        world.visit(frontier, lease)
    assert lease is not None
    frontier.refresh.doubt([url])
    world.visit(frontier, lease)
    assert frontier.refresh.known("a:80").doubtful == {url_key(url)}


def test_a_page_in_doubt_and_no_other_is_visited_as_if_nothing_was_known_of_it(
    world: World,
) -> None:
    doubted, sure = "http://a/in-doubt", "http://a/sure"
    frontier = world.begin("")
    frontier.add([frontier.entry(url, url) for url in (doubted, sure)])
    while lease := world.next(frontier):
        visit = FetchRecord(UrlState.STORED, world.clock.now, 200, etag='"1"')
        frontier.acknowledge(lease, visit)
    frontier.refresh.doubt([doubted])
    frontier.checkpoint({})
    world.clock.now += DAY
    frontier, etags = world.begin("all"), dict[str, str]()
    while lease := world.next(frontier):
        assert lease.entry is not None
        assert lease.entry.visit is not None
        etags[lease.url] = lease.entry.visit.etag
        world.visit(frontier, lease)
    assert (etags[doubted], etags[sure]) == ("", '"1"')


def test_a_visit_that_is_looked_at_again_is_charged_once(world: World) -> None:
    """A page that waits for the made-up URL is judged, though the budget is gone meanwhile."""
    world.clock.now += DAY
    frontier = world.begin("due", per_day=2)
    judged: list[str] = []
    looked: Counter[str] = Counter()
    while lease := world.next(frontier):
        looked[lease.url] += 1
        if looked[lease.url] < 3:
            frontier.look_again(lease)
        else:
            world.visit(frontier, lease)
            judged.append(lease.url)
    assert len(judged) == len(looked) == 2


@pytest.mark.parametrize("every", [1, 3])
def test_a_missing_page_is_confirmed_beside_the_budget(world: World, every: int) -> None:
    """One run in n days takes less than 2n + 2 days, whatever the hour at which it sees a page; the
    other pages are visited as if nothing was missing."""
    gone, since, days, others = PAGES[3], 0.0, 0.0, 0
    begun = world.clock.now
    while not days and world.clock.now < begun + 60 * DAY:
        world.clock.now += every * DAY
        night = world.clock.now
        frontier = world.begin("due", per_day=1)
        while lease := world.next(frontier):
            assert lease.entry is not None
            assert lease.entry.visit is not None
            if lease.url != gone:
                world.visit(frontier, lease)
                others += 1
                continue
            world.clock.now += 600 if not since else 0
            since = since or world.clock.now
            now, entry = world.clock.now, lease.entry
            assert entry.visit is not None
            decision = frontier.refresh.judge(entry, entry.visit, Observation.MISSING, now)
            frontier.acknowledge(lease, decision.record)
            days = (now - since) / DAY if decision.delete else 0.0
        frontier.checkpoint({})
        world.clock.now = night
    assert 2 <= days < 2 * every + 2
    assert others >= (night - begun) / DAY - 3


def test_a_page_that_is_kept_all_the_same_is_confirmed_ever_more_rarely(world: World) -> None:
    visits = 0
    for _ in range(60):
        world.clock.now += DAY
        frontier = world.begin("due", per_day=1)
        while lease := world.next(frontier):
            if lease.url != PAGES[3]:
                world.visit(frontier, lease)
                continue
            entry, refresh = lease.entry, frontier.refresh
            assert entry is not None
            assert entry.visit is not None
            now, visits = world.clock.now, visits + 1
            decision = refresh.judge(entry, entry.visit, Observation.MISSING, now)
            frontier.acknowledge(lease, decision.record)
        frontier.checkpoint({})
    assert visits <= 16


def test_no_page_starves_on_a_quiet_host(world: World) -> None:
    """Each is visited within twice the time that one page after the other takes, although nothing
    ever changes, and pages that never changed are worth ever less."""
    frontier = world.begin("")
    quiet = [f"http://a/quiet/{number}" for number in range(22)]
    frontier.add([frontier.entry(url, url) for url in quiet])
    while lease := world.next(frontier):
        frontier.acknowledge(lease, FetchRecord(UrlState.STORED, world.clock.now, 200))
    frontier.checkpoint({})
    chance, visited = Random(1), Counter[str]()
    for _ in range(2 * 30):
        world.clock.now += DAY
        frontier = world.begin("due", per_day=1, random=chance.random)
        visited.update(world.run(frontier))
        frontier.checkpoint({})
    assert set(visited) == {*PAGES, *quiet}


def test_folders_of_files_are_listed_by_each_run_beside_the_budget(world: World) -> None:
    """A list says when each file was changed; no other page of the budget is visited later."""
    folders = ["file:///srv/a/", "file:///srv/a/b/", "file:///srv/a/?from=x"]
    frontier = world.begin("due", per_day=2)
    frontier.add([frontier.entry(url, url) for url in [*folders, "file:///srv/a/text"]])
    while lease := world.next(frontier):
        record = FetchRecord(UrlState.STORED, world.clock.now, 200)
        if lease.entry is not None and lease.entry.visit is None:
            frontier.acknowledge(lease, record)
        else:
            world.visit(frontier, lease)
    frontier.checkpoint({})
    for day in range(3):
        world.clock.now += DAY
        frontier = world.begin("due", per_day=2)
        visited = world.run(frontier)
        assert set(folders) <= set(visited)
        assert len(visited) == len(folders) + (2 if day else 4)  # two were kept
        frontier.checkpoint({})
        assert not set(folders) & set(world.run(world.begin("due", per_day=2)))  # within an hour


def test_a_file_that_is_older_than_at_its_visit_was_put_back_and_is_due(world: World) -> None:
    """One with the same time, to the minute, is not."""
    files, then = [f"file:///srv/a/{name}" for name in "xyz"], world.clock.now - 5 * DAY
    frontier = world.begin("due", per_day=2)
    frontier.add([frontier.entry(url, url) for url in files])
    while lease := world.next(frontier):
        record = FetchRecord(UrlState.STORED, world.clock.now, 200)
        if lease.url in files:
            record.last_modified = formatdate(then, usegmt=True)
        frontier.acknowledge(lease, record)
    frontier.checkpoint({})
    world.clock.now += 2 * DAY
    frontier = world.begin("due", per_day=2)
    rows = [then, then - 9 * DAY, then + 300]
    listed = [at // 60 * 60 + ANYWHERE.total_seconds() for at in rows]
    assert frontier.signalled(zip(files, listed, strict=True), "file:///srv/a/") == 1
    assert world.run(frontier, 1) == [files[1]]


def test_requests_are_counted_by_purpose(world: World) -> None:
    """One of eight pages is missing since the last run, one is a canary, six are as before."""
    frontier = world.begin("all")
    refresh = frontier.refresh
    while (lease := world.next(frontier)) and refresh is not None:
        assert refresh.purpose_of(lease) is Purpose.VISIT
        seen = Observation.MISSING if lease.url == PAGES[0] else Observation.SAME
        assert lease.entry is not None
        assert lease.entry.visit is not None
        decision = refresh.judge(lease.entry, lease.entry.visit, seen, world.clock.now)
        frontier.acknowledge(lease, decision.record)
    frontier.checkpoint({})
    world.clock.now += 2 * DAY
    frontier = world.begin("due", per_day=1)
    refresh = frontier.refresh
    frontier.backend.schedule([(url_key(PAGES[1]), 0.5)])
    found: dict[str, list[str]] = {}
    while lease := world.next(frontier):
        assert lease.entry is not None
        found.setdefault(lease.url, []).append(refresh.purpose_of(lease).value)
        if lease.url not in (PAGES[0], PAGES[1]) and len(found[lease.url]) == 1:
            frontier.look_again(lease)
        else:
            world.visit(frontier, lease)
    assert found.pop(PAGES[0]) == ["second_looks"], "it confirms that the page is missing"
    assert found.pop(PAGES[1]) == ["proofs"]
    assert found
    assert all(purposes == ["visits", "second_looks"] for purposes in found.values()), found


def test_no_page_starves_after_a_night_with_a_clock_that_is_a_year_ahead(world: World) -> None:
    """The operator gets one notice, once the clock is right again."""
    visits, said = Counter[str](), list[str]()
    for night in range(1, 18):
        world.clock.now = 1_000_000.0 + DAY * (night + 365 * (night == 3))
        frontier = world.begin("due", per_day=1)
        said += [notice.message for notice in frontier.gate.notes.notices]
        visited = world.run(frontier)
        if night > 3:
            visits.update(visited)
        frontier.checkpoint({})
    assert set(visits) == set(PAGES), visits
    assert max(visits.values()) <= 4, visits
    assert len(said) == 1, said
    assert said[0].startswith("The clock was set back: the last run began or ended 364 days later")


@pytest.mark.parametrize("ahead", [0.0, 400 * DAY])
def test_a_sitemap_that_calls_every_page_new_each_night_starves_no_page(
    world: World, ahead: float
) -> None:
    """The budget holds, and the sitemap is not believed for long; of a time far ahead the reader of
    sitemaps makes none."""
    sitemap, visits = "http://a/sitemap.xml", Counter[str]()
    for night in range(1, 17):
        world.clock.now = 1_000_000.0 + DAY * night
        frontier = world.begin("due", per_day=2, sources=True)
        frontier.sources.found("a:80", [sitemap], "guess")
        frontier.sources.asked(sitemap, world.clock.now, "200", len(PAGES))
        frontier.signalled([(url, world.clock.now + ahead) for url in PAGES], sitemap)
        visited = world.run(frontier)
        assert len(visited) <= 3
        visits.update(visited)
        frontier.checkpoint({})
    assert set(visits) == set(PAGES), visits


def test_the_next_run_is_due_when_a_missing_page_may_be_confirmed(world: World) -> None:
    """With one visit in ten days, which is used up."""
    first = PAGES[0]
    frontier = world.begin(first, matches=lambda url: url == first)
    lease = world.next(frontier)
    assert lease is not None
    assert lease.entry is not None
    missing = Observation.MISSING
    decision = frontier.refresh.judge(lease.entry, lease.entry.visit, missing, world.clock.now)
    frontier.acknowledge(lease, decision.record)
    frontier.checkpoint({})
    seen, at = world.clock.now, world.clock.now
    world.clock.now += 0.1 * DAY
    for found in (missing, missing, Observation.SAME):
        frontier = world.begin("due", per_day=0.1)
        refresh = frontier.refresh
        while lease := world.next(frontier):
            assert lease.entry is not None
            seen_now = found if lease.url == first else Observation.SAME
            now = world.clock.now
            decision = refresh.judge(lease.entry, lease.entry.visit, seen_now, now)
            frontier.acknowledge(lease, decision.record)
        frontier.checkpoint({})
        next_visit = refresh.next_visit(world.clock.now)
        if world.clock.now < at + 0.75 * DAY:
            assert next_visit == pytest.approx(seen + 0.75 * DAY, abs=60)
        elif found is Observation.SAME:
            assert next_visit > world.clock.now + 5 * DAY
        else:
            assert next_visit < world.clock.now + 1.3 * DAY
        world.clock.now = next_visit + 1


def test_targets_of_redirects_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that has moved has as many as pages; a target that many pages share stays known."""
    monkeypatch.setattr("larmspider.learned.revisits.revisiting.MAX_TARGETS", 10, raising=False)
    frontier = World().begin("all")
    for number in range(100):
        entry = frontier.entry(f"http://a/{number}", f"http://a/{number}")
        assert frontier.refresh.pages_at(entry, f"http://b/{number}", 3) == 1
        assert frontier.refresh.pages_at(entry, "http://b/", 3) == min(3, number + 1)
    assert len(frontier.refresh._targets) == 10
