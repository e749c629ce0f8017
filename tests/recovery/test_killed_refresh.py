"""kill -9 at named points of a refresh: nothing is lost, doubled, or taken out twice.

``pytest tests/recovery/test_killed_refresh.py --kills 190`` kills ten times at each of them, one
process and three workers.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
from collections import Counter
from collections.abc import Collection, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import urljoin

import pytest
import tantivy

from larmspider.frontier.storage.lmdb_backend import LmdbBackend
from larmspider.frontier.storage.records import Counts
from larmspider.index.anchors import AnchorTable
from larmspider.index.packed import PackedPages
from larmspider.index.schema import stored_fields
from larmspider.index.version import open_index
from tests.support.crawling import FAST, begin, body_of, records
from tests.support.recovery.kill_points import POINTS, REFRESH_POINTS
from tests.support.servers.scripted import Reply, Request, ScriptedServer
from tests.support.workers.visited_again import Crew, six_hosts

pytestmark = pytest.mark.acceptance

DAY = 86_400.0
PAGES = 40
LEAST = 1
"""Kills at each point, without --kills."""
SETTINGS = FAST | {"LARM_CHECKPOINT_SECS": "0.1", "CONCURRENT_REQUESTS_PER_DOMAIN": "2"}
HTML = {"Content-Type": "text/html"}


class Site:
    """Pages by number, each with its version; the start page names them all, and each page the
    next one with a text of its own. Pages that are gone are 410."""

    def __init__(self) -> None:
        self.versions = dict.fromkeys(range(PAGES), 0)

    def answer(self, request: Request) -> Reply:
        if request.path == "/":
            return Reply(200, HTML, self.start().encode())
        number = request.path.removeprefix("/p")
        if not number.isdigit() or int(number) not in self.versions:
            return Reply(410 if number.isdigit() else 404, HTML, b"<p>There is no such page.")
        return Reply(200, HTML, self.page(int(number)).encode())

    def start(self) -> str:
        links = " ".join(f"<a href=/p{number}>{number} here</a>" for number in self.versions)
        return f"<title>start</title>{links}"

    def page(self, number: int) -> str:
        version = self.versions[number]
        text = f"Page {number} says what it has to say for the time number {version}."
        return f"<title>p{number}</title><p>{text}<a href=/p{number + 1}>next to {version}</a>"

    def texts(self, number: int) -> list[str]:
        """The texts of links to a page."""
        before = self.versions.get(number - 1)
        return sorted([f"{number} here"] + ([] if before is None else [f"next to {before}"]))

    def live(self, chance: random.Random) -> None:
        """Some pages change, one is gone for good, two are new."""
        for number in chance.sample(sorted(self.versions), 8):
            self.versions[number] += 1
        del self.versions[chance.choice(sorted(self.versions))]
        new = max(self.versions) + 1
        self.versions |= {new: 0, new + 1: 0}


class Refreshed:
    """A crawl of the site, and its next day."""

    def __init__(self, site: Site, server: ScriptedServer, folder: Path) -> None:
        self.site, self.server, self.folder = site, server, folder
        self.crawl = folder / "crawl"
        self.days = 0
        self.said = ""

    def run(self, refresh: str = "all", point: str = "", after: float = 0, **more: str) -> bool:
        """Whether it ended by itself; False: it was killed."""
        module = f"killed{self.days}"  # Python takes a file of the same second for the one before
        (self.folder / f"{module}.py").write_text(
            "import time\nfrom tests.support.recovery.kill_points import *\n"
            f"def FRONTIER_CLOCK(): return time.time() + {self.days * DAY}\n"
        )
        words = [f"-s{name}={value}" for name, value in (SETTINGS | more).items()]
        words += ["-a", f"start={self.server.url('/')}"]
        words += ["-a", f"refresh={refresh}"] if refresh else []
        with (self.folder / "said").open("w") as out:
            process = begin(
                "crawl", "intranet", *words, cwd=self.folder, out=out, settings_module=module,
                KILL_POINT=point, KILL_AFTER=str(after),
            )  # fmt: skip
            try:
                status = process.wait(300)
            finally:
                process.kill()
                process.wait()
        self.said = (self.folder / "said").read_text("utf-8")
        assert status in (0, -signal.SIGKILL, -signal.SIGALRM), self.said
        return status == 0

    def check(self) -> None:
        """Index, link texts, page files and frontier agree with the site as it is, and no version
        is stored twice."""
        site, url = self.site, self.server.url
        wanted = {url(f"/p{number}"): site.page(number) for number in site.versions}
        wanted[url("/")] = site.start()
        index, _ = open_index(self.crawl / "index")
        index.reload()
        searcher = index.searcher()
        hits = searcher.search(tantivy.Query.all_query(), 10 * PAGES).hits
        packed = PackedPages(self.crawl / "index")
        found = [stored_fields(searcher.doc(address), packed) for _, address in hits]
        assert Counter(one["url"] for one in found) == Counter(wanted.keys())
        for one in found:
            says = one["body"] + one["rest"]
            sentence = wanted[one["url"]].partition("<p>")[2].partition("<")[0]
            assert sentence in says
        anchors = AnchorTable(self.crawl / "index/anchors")
        texts = {number: sorted(anchors.texts(url(f"/p{number}"))) for number in site.versions}
        stale = anchors.changed(1, due_only=False)
        anchors.close()
        assert texts == {number: site.texts(number) for number in site.versions}
        assert not stale
        self._check_logs(wanted)

    def _check_logs(self, wanted: dict[str, str]) -> None:
        versions: dict[str, list[str]] = {}
        for line in records(self.crawl / "store.log"):
            if line["http-code"] == "200":
                body = body_of(self.crawl, line).decode()
                versions.setdefault(line["url"], []).append(body)
        assert {page: bodies[-1] for page, bodies in versions.items() if page in wanted} == wanted
        for page, bodies in versions.items():
            assert len(set(bodies)) == len(bodies), f"{page} is stored twice"
        deleted = Counter(line["url-exact"] for line in records(self.crawl / "deleted.log"))
        assert deleted == Counter(versions.keys() - wanted.keys())
        backend = LmdbBackend(self.crawl / "frontier")
        try:
            backend.recover()
            assert backend.counts() == backend.audit()
            known = backend.counts()
            assert known == Counts(
                discovered=known.discovered, stored=len(wanted), failed=known.failed
            )
        finally:
            backend.close()


def after(point: str, chance: random.Random, pages: int) -> float:
    """The value for KILL_AFTER, in a run that visits more than ``pages`` pages."""
    if point.startswith("during"):
        return chance.uniform(0.05, 20 if "index" in point else 8)
    often = "commit" in point or "recover" in point or point in ("opened", "positions-named")
    rare = point in ("looking-for-pages", "looking-again", "taken-out")
    return 0 if often or rare else chance.randrange(pages)


@pytest.fixture
def refreshed(tmp_path: Path) -> Iterator[Refreshed]:
    site = Site()
    with ScriptedServer({"*": site.answer}) as server:
        crawl = Refreshed(site, server, tmp_path)
        assert crawl.run("")
        yield crawl


def test_a_refresh_that_is_killed_again_and_again_is_exact(
    refreshed: Refreshed, request: pytest.FixtureRequest
) -> None:
    kills = request.config.getoption("--kills")
    chance = random.Random(request.config.getoption("--kill-seed") or 15)
    times = max(LEAST, -(-kills // len(REFRESH_POINTS)) if kills > 20 else 0)
    plan = [*REFRESH_POINTS] * times
    chance.shuffle(plan)
    killed: Counter[str] = Counter()
    while plan:
        refreshed.days += 9  # the brake has forgotten what left
        refreshed.site.live(chance)
        for _ in range(min(6, len(plan))):
            point = plan.pop()
            if refreshed.run(point=point, after=after(point, chance, pages=30)):
                break
            killed[point] += 1
        refreshed.days += 1  # a page that waited for its host's canaries leaves with the next run
        assert refreshed.run()
        refreshed.check()
    assert killed.total() > len(REFRESH_POINTS) * times // 2, killed
    print(f"{killed.total()} kills: {dict(killed)}")


@pytest.mark.parametrize("point", ["stores-committed", "written-not-committed"])
def test_what_only_the_index_has_after_a_crash_is_put_right(
    refreshed: Refreshed, point: str
) -> None:
    """The site is as it was when the run goes on: what changed is back, what was gone is there, and
    what was new is not."""
    before = dict(refreshed.site.versions)
    refreshed.days += 1
    refreshed.site.live(random.Random(1))
    assert not refreshed.run(point=point, LARM_CHECKPOINT_SECS="60")
    refreshed.site.versions = before
    with pytest.raises(AssertionError):
        refreshed.check()
    assert refreshed.run()
    with pytest.raises(AssertionError, match="stored twice"):
        refreshed.check()


class KilledCrew(Crew):
    """A crew of three workers."""

    def killed(self, points: dict[str, tuple[str, float]]) -> list[str]:
        """The points at which workers were killed in a run, of those at which they were to be."""
        said, marks = self.folder / "out", self.folder / f"killed{self.days}"
        marks.mkdir()
        self.variables = {"KILLS": json.dumps(points), "KILLED": str(marks)}
        running = self.begin("all", 3, LARM_LEASE_SECS="4", LARM_CHECKPOINT_SECS="0.1")
        try:
            status = running.wait(400)
        finally:
            running.kill()
            running.wait()
        assert status == 0, said.read_text()
        return [point for name, (point, _) in points.items() if (marks / name).exists()]

    def live(self, day: int) -> Iterator[str]:
        """A page of each host changes, and one is new, or is gone for good: those. Links lead to
        pages that are there."""
        for number, pages in enumerate(self.sites.pages):
            changed, gone = [path for path, text in pages.items() if text][-2:]
            pages[changed] = f"Version {day} of this page of many words"
            if (number + day) % 2:
                pages[f"/n{day}"] = f"This is a page since day {day}"
                pages[changed] += f" with a <a href=/n{day}>new one</a>"
            else:
                pages[gone] = ""
                self.sites.named[number] = [one for one in self.sites.named[number] if one != gone]
                yield self.sites.servers[number].url(gone)

    def check(self, gone: Collection[str]) -> None:
        """All is as in a fresh crawl of the pages as they are, ``gone`` ones left once."""
        wanted = self.sites.bodies()
        bodies, documents, links = self.held()
        # a page that left is looked for once more after 30 days: its 410 is stored, and is no page
        assert {url: body for url, body in bodies.items() if url not in gone} == wanted
        assert documents == Counter(wanted.keys())
        told = [
            (page, urljoin(page, target), text)
            for page, body in wanted.items()
            for target, text in re.findall(r"<a href=(.*?)>(.*?)</a>", body.decode())
        ]
        assert links == Counter((page, target) for page, target, _ in told)
        texts: Counter[tuple[str, str]] = Counter()
        stored: Counter[tuple[str, bytes]] = Counter()
        for worker in map(self.path.joinpath, self.names()):
            anchors = AnchorTable(worker / "index/anchors")
            texts.update((url, text) for url in wanted for text in anchors.texts(url))
            anchors.close()
            lines = [line for line in records(worker / "store.log") if line["http-code"] == "200"]
            stored.update((line["url"], body_of(worker, line)) for line in lines)
        named = {(page, target, text) for page, target, text in told if page != target}
        assert texts == Counter((to, text) for _, to, text in named if to in wanted)
        assert max(stored.values()) == 1, "a version is stored twice"
        assert Counter(self.deleted()) == Counter(gone)


@pytest.mark.skipif(
    shutil.which("redis-server") is None,
    reason="redis-server is not installed (Debian: redis-server)",
)
def test_three_workers_that_are_killed_are_exact(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each at a point of its own, once in a run; a point to which its worker did not come is
    another's later."""
    kills = request.config.getoption("--kills")
    chance = random.Random(request.config.getoption("--kill-seed") or 15)
    times = -(-kills // len(REFRESH_POINTS)) if kills > 20 else 0
    plan = [*REFRESH_POINTS] * times or chance.sample(POINTS, 3)
    chance.shuffle(plan)
    killed, tried, gone = Counter[str](), Counter[str](), list[str]()
    with six_hosts(tmp_path) as six:
        crew = KilledCrew(six.sites, six.folder)
        assert crew.run(number=3).status == 0
        crew.settings = "tests.support.recovery.kill_points"
        for day in count(1):
            crew.days += 9
            gone += crew.live(day)
            points = [(point, after(point, chance, pages=4)) for point in plan[:3]]
            met = crew.killed(dict(zip(crew.names(), points, strict=False)))
            killed.update(met)
            tried.update(missed := Counter(plan[:3]) - Counter(met))
            plan[:3] = []
            plan += [point for point in missed.elements() if tried[point] <= times]
            if day % 2 == 0 or not plan:
                crew.days += 1
                crew.variables = {}
                done = crew.run("all", number=3)
                assert done.status == 0, done.out + done.err
                crew.check(gone)
            if not plan:
                break
    assert killed.total() > len(REFRESH_POINTS) * times // 2, killed
    print(f"{killed.total()} kills: {dict(killed)}")
