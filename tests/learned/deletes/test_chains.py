"""A host that is renamed twice, and visited by a small budget: which pages leave, and the notices.

No network, and a clock that is set.
"""

from __future__ import annotations

import pytest

from larmspider.frontier.hosts import Lease
from larmspider.frontier.storage.records import QueuedUrl, UrlState, url_key
from larmspider.items import REDIRECT, Kept, Page
from larmspider.learned.deletes.notes import UNDECIDED
from larmspider.learned.deletes.table import Observation
from larmspider.learned.learning import LearningFrontier
from tests.learned.deletes.test_moves import there
from tests.middlewares.test_revisits import DAY, World
from tests.support.frontier.memory_backend import MemoryBackend

NAMES = ["", *(f"p{number}" for number in range(13))]
HOSTS = ["http://h/", "http://new/", "http://third/"]
LOST = ("p1", "p2")
"""Pages that the last host does not have."""


class Renamed(World):
    """h moves to new on day 2, and new to third on the day ``second``. A run follows redirects."""

    def __init__(self, second: float) -> None:
        super().__init__(len(NAMES) - 1)
        self.second = second
        self.site |= {url.removeprefix(HOSTS[0]): self.page_of for url in self.urls()}

    @staticmethod
    def urls() -> list[str]:
        return [f"{host}{name}" for host in HOSTS for name in NAMES]

    def page_of(self, path: str) -> Page:
        day = (self.clock.now - 1.8e9) / DAY
        url = path if "//" in path else f"{HOSTS[0]}{path}"
        now, at = (
            (day >= 2) + (day >= self.second),
            [url.startswith(one) for one in HOSTS].index(True),
        )
        name = url.removeprefix(HOSTS[at])
        if at < now:
            return there(url, status=301, to=f"{HOSTS[at + 1]}{name}")
        if at == 2 and name in LOST:
            return there(url, status=404)
        return there(url, f"What page {name} has to say, on whichever host.")

    def answer(self, frontier: LearningFrontier, lease: Lease) -> None:
        super().answer(frontier, lease)
        found = self.site.get(lease.url.removeprefix(HOSTS[0]))
        if (
            lease.entry is not None
            and callable(found)
            and isinstance(page := found(lease.url), Page)
        ):
            targets = [link.url for link in page.links if link.type == REDIRECT]
            frontier.add([frontier.entry(url, url, depth=1) for url in targets])

    def begin(self, mode: str = "due", *, sources: bool = False) -> LearningFrontier:
        return super().begin(mode, sources=sources)

    def left(self, host: str) -> set[str]:
        """The pages of a host that are stored; redirects are none."""
        backend, pages = MemoryBackend(self.disk), set[str]()
        for url in self.urls():
            visit = backend.visit(url_key(url))
            if visit is not None and visit.state is UrlState.STORED and visit.status == 200:
                pages |= {url} if url.startswith(host) else set()
        return pages


@pytest.mark.parametrize("second", [2.9, 5, 8])
def test_all_pages_of_a_host_that_is_renamed_twice_leave_and_nobody_has_to_decide(
    second: float,
) -> None:
    """Also those that the last host does not have."""
    world, told, seen = Renamed(second), list[str](), set[str]()
    for day in range(1, 22):
        kept = [one for one in world.run(day) if isinstance(one, Kept)]
        seen |= {one.kind for one in kept if one.url == "http://h/p2" and day > 12}
        told += {one.name for one in world.notices}
    assert world.left(HOSTS[0]) == world.left(HOSTS[1]) == set()
    assert world.left(HOSTS[2]) == {f"{HOSTS[2]}{name}" for name in NAMES if name not in LOST}
    late = {"undecided h:80 missing"} if second < 3 else set()  # on the eighth day
    assert sorted(told) == ["moved h:80", "moved new:80", *late]
    assert seen <= {"missing"}, "each visit counts"


def test_pages_stay_while_the_last_of_several_hosts_does_not_work() -> None:
    """It does not have these pages, and its other pages do not answer."""
    world = Renamed(5)
    for day in range(1, 14):
        world.run(day)
    silent = {f"{HOSTS[2]}{name}" for name in NAMES if name not in LOST}
    world.site |= {url: there(url, status=503) for url in silent}
    for day in range(14, 40):
        world.run(day)
    assert f"{HOSTS[0]}p2" in world.left(HOSTS[0])


def test_a_page_that_alternates_between_a_failure_and_a_redirect_is_one_condition() -> None:
    """A login form is another one."""
    gate, told = World().begin().gate, list[str]()
    entry = QueuedUrl("http://h/p1", "http://h/p1", url_key("http://h/p1"), "h:80")
    for day in range(60):
        seen = Observation.FAILED if day % 2 else Observation.MOVED
        seen = seen if day < 40 else Observation.LOGIN
        gate.undecided.keeps(entry, seen, str(seen), 0.0, 1.8e9 + day * DAY)
        gate.undecided.waits_for(entry, "its new URL is not stored")
        told += [one.seen for one in gate.notes.notices if one.what == UNDECIDED]
        gate.notes.notices.clear()
        assert not (told and gate.is_over(UNDECIDED, "h:80", told[-1]))
    assert len({*told}) == 2, told
    assert told[-1] == "login"
    assert gate.is_over(UNDECIDED, "h:80", told[0])
